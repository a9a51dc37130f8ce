//! How a finding happens, as rows that can be stored: what the threads do, by name, in the order in which it
//! happens. The rows are laid out when they are shown, for the width of the terminal.

use selvedge_model::symbols::{Nameless, Names};
use selvedge_model::{
    Access, AtomicOp, Blocked, Ended, Failure, Flow, Mode, Op, RegionId, Role, Site, Step, Symbols,
    ThreadId, Values, Wakes,
};

use crate::case::Holder;
use crate::explain::{self, Explanation};
use crate::words;

/// What the threads do.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interleaving {
    /// How many threads were stopped although they could have gone on.
    pub preemptions: usize,
    /// The names of the threads that appear; those all of whose events are left out come last.
    pub threads: Vec<String>,
    /// What they do.
    pub rows: Vec<Row>,
    /// How likely the finding is from each row on, if that was measured; else empty.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub margin: Vec<Option<Chance>>,
}

/// The largest number of left-out events that an interleaving keeps.
const KEPT: usize = 4000;

/// One row. Threads are indices of [`Interleaving::threads`].
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Row {
    /// A thread does something; it may be what makes the finding.
    Does {
        thread: usize,
        act: Act,
        site: Site,
        critical: bool,
        /// What an access found and left.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Values::is_empty"))]
        values: Values,
    },
    /// A thread is stopped although it could go on.
    Stopped { thread: usize, before: Act, site: Site },
    /// A thread waits until the end of the execution.
    Waits { thread: usize, to: Act, site: Site, holder: Option<Holder> },
    /// The execution ends.
    Ends { thread: usize, how: End },
    /// Events that do not matter.
    Elided(Elided),
}

/// Events that are left out.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(untagged))]
pub enum Elided {
    /// A reader may ask for them.
    Rows(Vec<Row>),
    /// Only their number is known: there are too many, or an earlier version stored them.
    Count(usize),
}

impl Elided {
    /// How many they are.
    pub fn count(&self) -> usize {
        match self {
            Elided::Rows(rows) => rows.len(),
            Elided::Count(n) => *n,
        }
    }
}

/// How likely the finding is once the execution has come to a row, in percent, with the limits of 95%
/// confidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Chance {
    pub percent: u8,
    pub low: u8,
    pub high: u8,
}

/// A row in words.
#[allow(missing_docs)]
pub struct Told<'a> {
    /// `None` for events that are left out.
    pub thread: Option<usize>,
    pub text: String,
    pub site: Option<&'a Site>,
    pub weight: Weight,
    /// By how much the thread is deeper inside locks and regions afterwards.
    pub nests: i32,
}

/// What a row is to the finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Weight {
    Plain,
    /// It makes the finding.
    Critical,
    /// A thread is stopped although it could go on.
    Stopped,
}

impl Row {
    /// The row in words.
    pub fn told(&self) -> Told<'_> {
        let told = |thread: &usize, text, site, weight| Told {
            thread: Some(*thread),
            text,
            site,
            weight,
            nests: 0,
        };
        match self {
            Row::Does { thread, act, site, critical, values } => {
                let weight = if *critical { Weight::Critical } else { Weight::Plain };
                let nests = act.verb.nests();
                let text = act.words() + &words::values(act.verb, values);
                Told { nests, ..told(thread, text, Some(site), weight) }
            }
            Row::Stopped { thread, before, site } => {
                let text = format!("stopped before {}", before.words());
                told(thread, text, Some(site), Weight::Stopped)
            }
            Row::Waits { thread, to, site, holder } => {
                let held = match holder {
                    Some(Holder::Itself) => ", held by itself".to_owned(),
                    Some(Holder::Thread(name)) if to.verb != Verb::Join => {
                        format!(", held by {name}")
                    }
                    _ => String::new(),
                };
                // A thread that waits for the end of others is stuck because they are.
                let weight = match to.verb {
                    Verb::Join => Weight::Plain,
                    _ => Weight::Critical,
                };
                told(thread, format!("{}{held}", to.waiting()), Some(site), weight)
            }
            Row::Ends { thread, how } => told(thread, how.words(), None, Weight::Critical),
            Row::Elided(left_out) => Told {
                thread: None,
                text: format!("… {} …", words::count(left_out.count() as u64, "step")),
                site: None,
                weight: Weight::Plain,
                nests: 0,
            },
        }
    }
}

/// How an execution ends, if that gets a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum End {
    Process(Ended),
    Panics,
    /// It exceeds the limit of steps.
    Endless,
    /// It exceeds the time limit.
    Late,
}

impl End {
    /// How a failed execution ends; `None` if all threads wait.
    pub fn of(failure: &Failure) -> Option<End> {
        match failure {
            Failure::Signal { number, .. } => Some(End::Process(Ended::Signal(*number))),
            Failure::Message { ended: Some(ended), .. } => Some(End::Process(*ended)),
            Failure::Exit { code, .. } => Some(End::Process(Ended::Code(*code))),
            Failure::Message { ended: None, .. } | Failure::Unwinding(_) => Some(End::Panics),
            Failure::Steps(_) => Some(End::Endless),
            Failure::Stall(_) => Some(End::Late),
            Failure::Stuck { .. } | Failure::Left(_) => None,
            Failure::NoStack { .. } | Failure::Shared(_) | Failure::Unrepeatable { .. } => None,
        }
    }

    /// In words.
    pub fn words(self) -> String {
        match self {
            End::Process(Ended::Code(code)) => format!("exits with {code}"),
            End::Process(Ended::Signal(number)) => format!("killed by {}", words::signal(number)),
            End::Panics => "panics".to_owned(),
            End::Endless => "goes on without end".to_owned(),
            End::Late => "does not end in time".to_owned(),
        }
    }
}

/// What a thread does, or would do next: a verb and the name of its object.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Act {
    pub verb: Verb,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "String::is_empty"))]
    pub object: String,
}

/// What threads do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Verb {
    Read,
    Write,
    Load,
    Store,
    Update,
    Fence,
    Lock,
    ReadLock,
    TryLock,
    Unlock,
    ReadUnlock,
    Start,
    Join,
    Begin,
    End,
    Arrive,
    Leave,
    Signal,
    Await,
    NotifyOne,
    NotifyAll,
    WaitOn,
    Woken,
    Enter,
    Exit,
    Allocate,
    Free,
    Use,
    Define,
    Branch,
    Show,
    Yield,
    GoOn,
    Ended,
    Sleep,
}

impl Verb {
    fn nests(self) -> i32 {
        match self {
            Verb::Lock | Verb::ReadLock | Verb::Enter => 1,
            Verb::Unlock | Verb::ReadUnlock | Verb::Exit => -1,
            _ => 0,
        }
    }

    /// The verb itself.
    pub fn word(self) -> &'static str {
        match self {
            Verb::Read => "read",
            Verb::Write => "write",
            Verb::Load => "load",
            Verb::Store => "store",
            Verb::Update => "update",
            Verb::Fence => "fence",
            Verb::Lock => "lock",
            Verb::ReadLock => "read-lock",
            Verb::TryLock => "try to lock",
            Verb::Unlock => "unlock",
            Verb::ReadUnlock => "read-unlock",
            Verb::Start => "start",
            Verb::Join => "join",
            Verb::Begin => "begin",
            Verb::End => "end",
            Verb::Arrive => "arrive at",
            Verb::Leave | Verb::Exit => "leave",
            Verb::Signal => "signal",
            Verb::Await => "await",
            Verb::NotifyOne => "notify one on",
            Verb::NotifyAll => "notify all on",
            Verb::WaitOn => "wait on",
            Verb::Woken => "woken on",
            Verb::Enter => "enter",
            Verb::Allocate => "allocate",
            Verb::Free => "free",
            Verb::Use => "use",
            Verb::Define => "define",
            Verb::Branch => "branch",
            Verb::Show => "show",
            Verb::Yield => "yield",
            Verb::GoOn => "go on",
            Verb::Ended => "ended",
            Verb::Sleep => "sleep",
        }
    }
}

impl Act {
    /// An operation.
    pub fn of_op(op: Op, symbols: &Symbols) -> Act {
        let lock = |id: u32| name(&symbols.locks, id);
        let barrier = |id: u32| named(&symbols.barriers, id, "barrier");
        let cond = |id: u32| named(&symbols.conds, id, "condition");
        let cell = |a: Access| memory(a, symbols, "cell");
        let atomic = |a: Access| memory(a, symbols, "atomic");
        let (verb, object) = match op {
            Op::Read(a) => (Verb::Read, cell(a)),
            Op::Write(a) => (Verb::Write, cell(a)),
            Op::Atomic(a, AtomicOp::Load(_)) => (Verb::Load, atomic(a)),
            Op::Atomic(a, AtomicOp::Store(_)) => (Verb::Store, atomic(a)),
            Op::Atomic(a, AtomicOp::Update(_)) => (Verb::Update, atomic(a)),
            Op::Fence(_) => (Verb::Fence, String::new()),
            Op::Acquire(l, Mode::Exclusive) => (Verb::Lock, lock(l.0)),
            Op::Acquire(l, Mode::Shared) => (Verb::ReadLock, lock(l.0)),
            Op::Release(l, Mode::Exclusive) => (Verb::Unlock, lock(l.0)),
            Op::Release(l, Mode::Shared) => (Verb::ReadUnlock, lock(l.0)),
            Op::Fork(t) => (Verb::Start, short(t, symbols)),
            Op::Join(t) => (Verb::Join, short(t, symbols)),
            Op::Begin => (Verb::Begin, String::new()),
            Op::End => (Verb::End, String::new()),
            Op::Arrive(b, _) => (Verb::Arrive, barrier(b.0)),
            Op::Leave(b, _) => (Verb::Leave, barrier(b.0)),
            Op::Post(s) => (Verb::Signal, name(&symbols.semaphores, s.0)),
            Op::Wait(s) => (Verb::Await, named(&symbols.semaphores, s.0, "signal")),
            Op::Notify(c, Wakes::One) => (Verb::NotifyOne, cond(c.0)),
            Op::Notify(c, Wakes::All) => (Verb::NotifyAll, cond(c.0)),
            Op::Wake(c) => (Verb::Woken, cond(c.0)),
            Op::RegionEnter(r, _) => (Verb::Enter, region(r, symbols)),
            Op::RegionExit(r) => (Verb::Exit, region(r, symbols)),
            Op::Alloc(_) => (Verb::Allocate, String::new()),
            Op::Free(_) => (Verb::Free, String::new()),
            Op::Flow(Flow::Use(l)) => (Verb::Use, symbols.local(l)),
            Op::Flow(Flow::Define(l) | Flow::Take(l)) => (Verb::Define, symbols.local(l)),
            Op::Flow(Flow::Branch) => (Verb::Branch, String::new()),
            Op::Flow(Flow::Updates(operator)) => (Verb::Update, operator.name().to_owned()),
            Op::Focus(range) => (Verb::Show, symbols.variable(range)),
        };
        Act { verb, object }
    }

    /// A step that a thread has not made yet.
    pub fn of_step(step: Step, symbols: &Symbols) -> Act {
        let bare = |verb| Act { verb, object: String::new() };
        match step {
            Step::Do(Op::Wake(cond)) | Step::Enroll(cond, _) => {
                Act { verb: Verb::WaitOn, object: named(&symbols.conds, cond.0, "condition") }
            }
            Step::Do(op) => Act::of_op(op, symbols),
            Step::TryAcquire(lock, _) => {
                Act { verb: Verb::TryLock, object: name(&symbols.locks, lock.0) }
            }
            Step::Yield => bare(Verb::Yield),
            Step::Busy => bare(Verb::GoOn),
            Step::Ended => bare(Verb::Ended),
        }
    }

    /// What a thread that waits at the end waits to do.
    pub fn of_blocked(blocked: &Blocked, symbols: &Symbols) -> Act {
        let (verb, object) = match blocked.wants {
            Role::Acquire(l) if blocked.mode == Mode::Shared => {
                (Verb::ReadLock, name(&symbols.locks, l.0))
            }
            Role::Acquire(l) => (Verb::Lock, name(&symbols.locks, l.0)),
            Role::Join(t) => (Verb::Join, short(t, symbols)),
            Role::Arrive(b) | Role::Leave(b) => {
                (Verb::Leave, named(&symbols.barriers, b.0, "barrier"))
            }
            Role::Wait(s) => (Verb::Await, named(&symbols.semaphores, s.0, "signal")),
            Role::Await(c) => (Verb::WaitOn, named(&symbols.conds, c.0, "condition")),
            Role::Read | Role::Write | Role::AtomicRead | Role::AtomicWrite | Role::Free => {
                (Verb::GoOn, String::new())
            }
            Role::Release(_) | Role::Fork(_) | Role::Post(_) | Role::Enter(_) => {
                (Verb::GoOn, String::new())
            }
            Role::Fail | Role::Ensure | Role::Observe | Role::Part(_) => {
                (Verb::GoOn, String::new())
            }
            Role::Sleep => (Verb::Sleep, String::new()),
        };
        Act { verb, object }
    }

    /// In words, such as `lock a`.
    pub fn words(&self) -> String {
        match self.object.as_str() {
            "" => self.verb.word().to_owned(),
            object => format!("{} {object}", self.verb.word()),
        }
    }

    /// The act of a thread that has to wait, such as `waits to lock a`.
    pub fn waiting(&self) -> String {
        match self.verb {
            Verb::Await => format!("waits for {}", self.object),
            Verb::WaitOn => format!("waits on {}", self.object),
            Verb::Sleep => "waits to be woken".to_owned(),
            _ => format!("waits to {}", self.words()),
        }
    }
}

impl Interleaving {
    /// Gives names to an explanation.
    pub fn new(explanation: &Explanation, preemptions: usize, symbols: &Symbols) -> Interleaving {
        // Threads all of whose events are left out come last: they have no column.
        let mut threads = explanation.threads.clone();
        for row in &explanation.rows {
            let explain::Row::Elided(hidden) = row else { continue };
            for thread in hidden.iter().filter_map(explain::Row::thread) {
                if !threads.contains(&thread) {
                    threads.push(thread);
                }
            }
        }
        let column =
            |thread: ThreadId| threads.iter().position(|&t| t == thread).unwrap_or_default();
        let row = |row: &explain::Row| shown(row, &column, symbols);
        let rows: Vec<Row> = explanation.rows.iter().map(row).collect();
        let hidden = rows.iter().map(|r| if let Row::Elided(e) = r { e.count() } else { 0 });
        let too_many = hidden.sum::<usize>() > KEPT;
        let without = |row| match row {
            Row::Elided(left_out) if too_many => Row::Elided(Elided::Count(left_out.count())),
            row => row,
        };
        Interleaving {
            preemptions,
            threads: threads.iter().map(|&t| symbols.thread(t)).collect(),
            rows: rows.into_iter().map(without).collect(),
            margin: Vec::new(),
        }
    }

    /// How many rows at the beginning are those of another interleaving.
    pub fn common(&self, other: &Interleaving) -> usize {
        let told = |of: &Interleaving, row: &Row| {
            let told = row.told();
            let thread = told.thread.and_then(|t| of.threads.get(t)).cloned();
            (thread, told.text, told.site.cloned())
        };
        let pairs = self.rows.iter().zip(&other.rows);
        pairs.take_while(|(a, b)| told(self, a) == told(other, b)).count()
    }

    /// Some of the rows.
    pub fn part(&self, range: impl std::slice::SliceIndex<[Row], Output = [Row]>) -> Interleaving {
        let Interleaving { preemptions, threads, rows, .. } = self;
        Interleaving {
            preemptions: *preemptions,
            threads: threads.clone(),
            rows: rows[range].to_vec(),
            margin: Vec::new(),
        }
    }

    /// How many threads have a row that is not left out. They come first in `threads`.
    pub fn lanes(&self) -> usize {
        let last = self.rows.iter().filter_map(|row| row.told().thread).max();
        last.map_or(0, |thread| thread + 1).min(self.threads.len())
    }

    /// The line above it.
    pub fn heading(&self) -> String {
        match self.preemptions {
            0 => "how it happens (threads run until they have to wait):".to_owned(),
            n => format!("how it happens ({}):", words::count(n as u64, "preemption")),
        }
    }
}

/// A row with names instead of ids.
fn shown(row: &explain::Row, column: &dyn Fn(ThreadId) -> usize, symbols: &Symbols) -> Row {
    match row {
        explain::Row::Does { at, event, critical } => Row::Does {
            values: symbols.values.get(at).cloned().unwrap_or_default(),
            thread: column(event.thread),
            act: Act::of_op(event.op, symbols),
            site: symbols.site(event.site),
            critical: *critical,
        },
        explain::Row::Stopped { thread, next, .. } => Row::Stopped {
            thread: column(*thread),
            before: Act::of_step(next.step, symbols),
            site: symbols.site(next.site),
        },
        explain::Row::Waits(blocked) => Row::Waits {
            thread: column(blocked.thread),
            to: Act::of_blocked(blocked, symbols),
            site: symbols.site(blocked.site),
            holder: blocked.waits_for.map(|other| match other == blocked.thread {
                true => Holder::Itself,
                false => Holder::Thread(short(other, symbols)),
            }),
        },
        explain::Row::Ends { thread, how } => Row::Ends { thread: column(*thread), how: *how },
        explain::Row::Elided(rows) => {
            let rows = rows.iter().map(|row| shown(row, column, symbols));
            Row::Elided(Elided::Rows(rows.collect()))
        }
    }
}

/// The name of a thread, without its function.
fn short(thread: ThreadId, symbols: &Symbols) -> String {
    named(&symbols.threads, thread.0, "thread")
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
    let addr = access.addr;
    match symbols.variables.at(addr).is_some() || symbols.nameless.at(addr).is_some() {
        true => symbols.variable(access.range()),
        false => format!("{kind} {}", addr / Nameless::PIECE),
    }
}

fn region(id: RegionId, symbols: &Symbols) -> String {
    let known = symbols.region(id).filter(|r| !r.name.is_empty());
    known.map_or_else(|| format!("region {}", id.0), |r| r.name.to_string())
}
