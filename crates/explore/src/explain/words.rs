//! Steps and events in a few words, by the names of what they are about.

use selvedge_model::symbols::Names;
use selvedge_model::{Access, AtomicOp, Mode, Op, RegionId, Symbols, ThreadId, Wakes};

use crate::Step;

/// Numbers of memory that has no name count pieces of this size.
const PIECE: u64 = 16;

/// A step in words, such as `lock a`.
pub fn step_in_words(step: Step, symbols: &Symbols) -> String {
    match step {
        Step::Do(Op::Wake(cond)) => {
            format!("wait on {}", named(&symbols.conds, cond.0, "condition"))
        }
        Step::Do(op) => op_in_words(op, symbols),
        Step::TryAcquire(lock, _) => format!("try to lock {}", name(&symbols.locks, lock.0)),
        Step::Enroll(cond, _) => format!("wait on {}", named(&symbols.conds, cond.0, "condition")),
        Step::Yield => "yield".into(),
        Step::Busy => "go on".into(),
        Step::Ended => "ended".into(),
    }
}

/// What a thread that cannot take its step does, such as `waits to lock a`.
pub fn waiting_in_words(step: Step, symbols: &Symbols) -> String {
    let step = step_in_words(step, symbols);
    if let Some(signal) = step.strip_prefix("await ") {
        format!("waits for {signal}")
    } else if let Some(condition) = step.strip_prefix("wait ") {
        format!("waits {condition}")
    } else {
        format!("waits to {step}")
    }
}

/// An operation in words.
pub fn op_in_words(op: Op, symbols: &Symbols) -> String {
    let lock = |id: u32| name(&symbols.locks, id);
    let thread = |id: u32| short_name(ThreadId(id), symbols);
    let barrier = |id: u32| named(&symbols.barriers, id, "barrier");
    let signal = |id: u32| named(&symbols.semaphores, id, "signal");
    let cond = |id: u32| named(&symbols.conds, id, "condition");
    match op {
        Op::Read(a) => format!("read {}", memory(a, symbols, "cell")),
        Op::Write(a) => format!("write {}", memory(a, symbols, "cell")),
        Op::Atomic(a, AtomicOp::Load(_)) => format!("load {}", memory(a, symbols, "atomic")),
        Op::Atomic(a, AtomicOp::Store(_)) => format!("store {}", memory(a, symbols, "atomic")),
        Op::Atomic(a, AtomicOp::Update(_)) => format!("update {}", memory(a, symbols, "atomic")),
        Op::Fence(_) => "fence".into(),
        Op::Acquire(l, Mode::Exclusive) => format!("lock {}", lock(l.0)),
        Op::Acquire(l, Mode::Shared) => format!("read-lock {}", lock(l.0)),
        Op::Release(l, Mode::Exclusive) => format!("unlock {}", lock(l.0)),
        Op::Release(l, Mode::Shared) => format!("read-unlock {}", lock(l.0)),
        Op::Fork(t) => format!("start {}", thread(t.0)),
        Op::Join(t) => format!("join {}", thread(t.0)),
        Op::Begin => "begin".into(),
        Op::End => "end".into(),
        Op::Arrive(b, _) => format!("arrive at {}", barrier(b.0)),
        Op::Leave(b, _) => format!("leave {}", barrier(b.0)),
        Op::Post(s) => format!("signal {}", name(&symbols.semaphores, s.0)),
        Op::Wait(s) => format!("await {}", signal(s.0)),
        Op::Notify(c, Wakes::One) => format!("notify one on {}", cond(c.0)),
        Op::Notify(c, Wakes::All) => format!("notify all on {}", cond(c.0)),
        Op::Wake(c) => format!("woken on {}", cond(c.0)),
        Op::RegionEnter(r, _) => format!("enter {}", region(r.0, symbols)),
        Op::RegionExit(r) => format!("leave {}", region(r.0, symbols)),
        Op::Alloc(_) => "allocate".into(),
        Op::Free(_) => "free".into(),
    }
}

/// What a thread is called without what stands in parentheses: `T1` of `T1 (worker)`.
pub fn short_name(thread: ThreadId, symbols: &Symbols) -> String {
    let name = named(&symbols.threads, thread.0, "thread");
    name.split(" (").next().unwrap_or(&name).to_owned()
}

/// The name of a thing, or its number: `lock 0` reads like `lock a`.
fn name(names: &Names, id: u32) -> String {
    known(names, id).unwrap_or_else(|| id.to_string())
}

/// The name of a thing, or its kind and number.
fn named(names: &Names, id: u32, kind: &str) -> String {
    known(names, id).unwrap_or_else(|| format!("{kind} {id}"))
}

fn known(names: &Names, id: u32) -> Option<String> {
    names.get(id).filter(|n| !n.is_empty()).map(ToString::to_string)
}

fn memory(access: Access, symbols: &Symbols, kind: &str) -> String {
    match symbols.variables.at(access.addr) {
        Some(_) => symbols.variable(access.range()),
        None => format!("{kind} {}", access.addr / PIECE),
    }
}

fn region(id: u32, symbols: &Symbols) -> String {
    let known = symbols.region(RegionId(id)).filter(|r| !r.name.is_empty());
    known.map_or_else(|| format!("region {id}"), |r| r.name.to_string())
}
