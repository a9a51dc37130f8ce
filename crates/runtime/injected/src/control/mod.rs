//! Controlled executions: one thread runs at a time, and the host says which.
//!
//! At every scheduling point the thread whose turn it is writes down what it is about to do. If it is
//! the only one that can go on it does so; if another is the only one, the turn goes there; otherwise
//! the host is asked. Real primitives are called only when the model ([`wire`]) says that they succeed
//! at once, and condition variables, barriers and futexes are waited for in the model alone.
//!
//! Ground rules:
//! - Nothing here is looked at unless [`is_on`]; a thread that the runtime does not know, or that is
//!   inside the runtime, is not controlled.
//! - The model is changed only by the thread whose turn it is. A thread that was away in a system call
//!   may run beside it, until its next scheduling point.
//! - While a thread waits for its turn its signals are put off; a signal makes it able to go on, for
//!   as long as its handlers take.

use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed,
};

use crate::arch::words;
use crate::regions;
use crate::sys;
use crate::thread::{self, Busy, Thread};

pub mod flow;
pub mod ops;
pub mod seen;
pub mod sources;
pub mod time;
pub mod wire;

use crate::rings;
use crate::wire::{FRAMES, Failure, Phase, Record, RecordKind, TRY};
use wire::{Control, Frames, HOST, THREADS, request, status};

static CONTROL: AtomicPtr<Control> = AtomicPtr::new(core::ptr::null_mut());

/// Accesses between two scheduling points after which a thread is taken to spin. Where data flow is followed, these are words.
const ACCESSES: u32 = 1 << 20;

pub use crate::thread::is_controlled as is_on;

/// Takes the control memory into use; the current thread is thread 0.
pub fn attach(fd: usize, main: &mut Thread) {
    let at = sys::map_shared(fd, size_of::<Control>());
    if at == 0 {
        return;
    }
    // SAFETY: a mapping of that size, never unmapped; all fields are atomic.
    let control = unsafe { &*(at as *const Control) };
    if control.magic.load(Relaxed) != wire::MAGIC {
        return;
    }
    if control.version.load(Relaxed) != wire::VERSION {
        crate::rings::refuse(
            Failure::Version,
            b"selvedge: this program was built with another version of selvedge; build it again\n",
        );
    }
    // Programs that the program starts in turn are not controlled.
    let pid = sys::pid();
    if control.program.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    CONTROL.store(at as *mut Control, Ordering::Release);
    control.reset(control.flags.load(Relaxed), 0);
    control.slots[0].tid.store(sys::tid(), Relaxed);
    main.controlled = 1;
    main.ring.open_log();
    thread::set_controlled(true);
    main.set_unusual();
}

/// The processors that the program may believe to have.
pub fn processors() -> Option<[u64; 16]> {
    let (c, _) = me()?;
    let mask = core::array::from_fn(|i| c.processors[i].load(Relaxed));
    (mask != [0; 16]).then_some(mask)
}

/// The process goes on by itself: in the child of a fork of the program's own.
pub fn leave() {
    flow::leave();
    thread::set_controlled(false);
}

/// The process of the current execution, 0 if there is none.
pub fn process() -> u32 {
    control().map_or(0, |c| c.child.load(Ordering::Acquire))
}

/// Number of the current thread plus one, or 0. It may be past its last step, and giving back what
/// the C library keeps for it.
pub fn number_by_kernel() -> u32 {
    let Some(c) = control() else { return 0 };
    let tid = sys::tid();
    let mine = |&i: &usize| c.slots[i].tid.load(Relaxed) == tid;
    (0..c.threads()).rev().find(mine).map_or(0, |i| i as u32 + 1)
}

/// An execution has found a function of a library: `known` is where its address is kept.
pub fn looked_up(known: &AtomicUsize, at: usize) {
    let Some(c) = control().filter(|_| is_on()) else { return };
    let entry = c.looked_up_len.fetch_add(1, Relaxed) as usize;
    if let Some((place, address)) = c.looked_up.get(entry) {
        address.store(at as u64, Relaxed);
        place.store(core::ptr::from_ref(known) as u64, Ordering::Release);
    }
}

/// The control memory, if there is some.
pub fn control() -> Option<&'static Control> {
    // SAFETY: null, or mapped for good.
    unsafe { CONTROL.load(Ordering::Acquire).as_ref() }
}

/// The control memory and the current thread, if it is controlled.
#[inline]
pub fn me() -> Option<(&'static Control, &'static mut Thread)> {
    let t = thread::me()?;
    Some((of(t)?, t))
}

/// The control memory, if the thread is controlled.
#[inline]
pub fn of(t: &Thread) -> Option<&'static Control> {
    if t.ring.is_log() { control() } else { None }
}

/// What a thread is about to do.
#[derive(Clone, Copy)]
pub struct Want {
    /// What the thread is about to do.
    pub record: Record,
    /// [`wire::YIELDS`], [`wire::REENTRANT`].
    pub flags: u32,
    /// Virtual time until which it waits; 0 for ever.
    pub deadline: u64,
}

impl Want {
    /// With the second argument and the rest 0.
    pub fn new(kind: RecordKind, flags: u8, pc: usize, a: usize) -> Want {
        Want::with(kind, flags, pc, a, 0)
    }

    /// With the rest 0.
    pub fn with(kind: RecordKind, flags: u8, pc: usize, a: usize, b: usize) -> Want {
        let record = Record::new(0, kind, flags, pc as u64, a as u64, b as u64);
        Want { record, flags: 0, deadline: 0 }
    }
}

/// Number of the current thread.
fn number(t: &Thread) -> usize {
    (t.controlled as usize - 1) % THREADS
}

/// Where callers do not matter.
const NO_CALLERS: Frames = [0; FRAMES];

/// The instrumented functions that the current thread is in.
fn callers(t: &Thread) -> Frames {
    let mut frames = NO_CALLERS;
    t.stack(words::stack_top(), &mut frames);
    frames
}

/// Returns where the line stands.
fn log(c: &Control, phase: Phase, thread: usize, record: &Record, callers: &Frames) -> usize {
    let at = c.log_len.fetch_add(1, Relaxed) as usize;
    if at >= wire::LOG || at as u32 >= c.limit.load(Relaxed) {
        too_much(c, thread);
    }
    c.put(at, phase, thread, record, callers);
    at
}

/// The thread's words of data flow since its last record.
pub fn words(t: &Thread, at: usize, len: usize) {
    if let Some(c) = of(t) {
        let record = Record::new(0, RecordKind::Flow, 0, 0, at as u64, len as u64);
        log(c, Phase::Event, number(t), &record, &NO_CALLERS);
    }
}

/// This has happened. Memory that comes and goes matters only where accesses are looked at.
pub fn happened(t: &Thread, record: &Record) {
    let Some(c) = control() else { return };
    let memory = matches!(record.kind(), Some(RecordKind::Alloc | RecordKind::Free));
    if !memory || c.flags.load(Relaxed) & (wire::ACCESSES | wire::FLOW) != 0 {
        flow::name_words(t);
        let slot = &c.slots[number(t)];
        seen::finish(c, slot);
        let at = log(c, Phase::Event, number(t), record, &callers(t));
        if seen::is_wanted(c) {
            seen::happened(c, slot, at, record);
        }
    }
}

/// The host ends the execution.
fn too_much(c: &Control, thread: usize) -> ! {
    ask(c, thread, request::LIMIT);
    loop {
        sys::pause(1_000_000_000);
    }
}

/// Makes the host look at what has changed.
pub fn wake_host(c: &Control) {
    c.wakeups.fetch_add(1, Ordering::SeqCst);
    wake(&c.wakeups);
}

fn ask(c: &Control, thread: usize, what: u32) {
    c.asker.store(thread as u32, Relaxed);
    c.request.store(what, Relaxed);
    c.turn.store(HOST, Ordering::Release);
    wake_host(c);
}

/// Wakes all threads that wait for the word to change.
pub fn wake(word: &AtomicU32) {
    const WAKE: usize = 1;
    let at = core::ptr::from_ref(word) as usize;
    // SAFETY: a word in shared memory.
    unsafe { sys::call(sys::FUTEX, [at, WAKE, usize::MAX >> 33, 0, 0, 0]) };
}

/// Waits until the word may have changed from `value`.
pub fn sleep_on(word: &AtomicU32, value: u32) {
    const WAIT: usize = 0;
    let at = core::ptr::from_ref(word) as usize;
    // SAFETY: a word in shared memory.
    unsafe { sys::call(sys::FUTEX, [at, WAIT, value as usize, 0, 0, 0]) };
}

fn give(c: &Control, from: usize, to: usize) {
    let slot = &c.slots[to];
    slot.status.store(status::RUNNING, Relaxed);
    c.turn.store(to as u32, Relaxed);
    slot.word.store(1, Ordering::Release);
    if to != from {
        wake(&slot.word);
    }
}

/// Lets the next thread run. If several can, the host decides.
fn hand_over(c: &Control, from: usize) {
    loop {
        match c.enabled() {
            (0, _) if !c.any_away() && c.pass_time() => {}
            (0, _) if HANDLES_SIGNALS.load(Relaxed) => {
                return ask(c, from, request::STUCK_UNLESS_SIGNALLED);
            }
            (0, _) => return ask(c, from, request::STUCK),
            // The only thread that can run waits for one that waits for a time.
            (1, only) if only == from && c.is_quiet() && !c.any_away() && c.pass_time() => {}
            (1, only) => return give(c, from, only),
            _ => return ask(c, from, request::CHOOSE),
        }
    }
}

/// Waits for the thread's turn.
fn wait_for_turn(c: &Control, t: &mut Thread) {
    let me = number(t);
    let slot = &c.slots[me];
    while slot.word.swap(0, Ordering::Acquire) == 0 {
        sleep_on(&slot.word, 0);
    }
    let dying = c.dying.swap(0, Relaxed);
    if dying != 0 {
        await_gone(dying);
    }
}

/// A thread that has ended still has a stack to give back: what comes after must not depend on how
/// long that takes.
fn await_gone(thread: u32) {
    let pid = sys::pid() as usize;
    // SAFETY: signal 0 is not delivered.
    while unsafe { sys::call(sys::TGKILL, [pid, thread as usize, 0, 0, 0, 0]) } == 0 {
        sys::yield_now();
    }
}

/// A scheduling point: returns when the thread may do what it wants.
pub fn point(c: &Control, t: &mut Thread, want: &Want) {
    regions::tell(t);
    let me = number(t);
    let slot = &c.slots[me];
    seen::finish(c, slot);
    loop {
        state(c, t, want);
        let busy = Busy::new(t);
        if slot.status.swap(status::WAITING, Ordering::AcqRel) == status::AWAY {
            wake_host(c);
        } else {
            hand_over(c, me);
        }
        wait_for_turn(c, t);
        let signalled = slot.signalled.swap(0, Ordering::AcqRel) != 0;
        drop(busy);
        if !signalled {
            break;
        }
    }
    let waits =
        matches!(want.record.kind(), Some(RecordKind::Wake | RecordKind::Wait | RecordKind::Join));
    if waits && want.record.flags() & TRY == 0 {
        slot.cancelled.store(0, Relaxed);
    }
    log(c, Phase::Step, me, &want.record, &NO_CALLERS);
    if seen::is_wanted(c) {
        seen::about_to(slot, &want.record);
    }
}

/// A marked task is about to begin. Another may come first, also one of a thread that has just ended one itself.
pub fn task_begins(t: &mut Thread, pc: usize) {
    if let Some(c) = of(t) {
        point(c, t, &Want::new(RecordKind::Yield, 0, pc, 0));
    }
}

/// A number below `below` that the host chooses; 0 if nothing is controlled.
pub fn chosen_number(below: u32) -> u32 {
    chosen_number_at(below, 0)
}

/// The same, for a place in the program.
pub fn chosen_number_at(below: u32, place: usize) -> u32 {
    let Some((c, t)) = me() else { return 0 };
    let me = number(t);
    if c.slots[me].status.load(Ordering::Acquire) != status::RUNNING {
        // It was away in a system call, and another thread may have the turn.
        point(c, t, &Want::new(RecordKind::Yield, 0, 0, 0));
    }
    c.number.store(below, Relaxed);
    c.number_place.store(place as u64, Relaxed);
    let _busy = Busy::new(t);
    ask(c, me, request::NUMBER);
    wait_for_turn(c, t);
    c.number.load(Relaxed).min(below - 1)
}

/// Has the host read what has happened so far, and gives back the memory for values. Not while another thread may have the
/// turn.
fn have_it_read(c: &Control, t: &mut Thread) {
    let me = number(t);
    if c.slots[me].status.load(Ordering::Acquire) == status::RUNNING {
        let _busy = Busy::new(t);
        ask(c, me, request::READ);
        wait_for_turn(c, t);
    }
}

/// A signal came for the thread while it was busy, probably waiting for its turn.
pub fn interrupted(t: &Thread) {
    if let Some(c) = of(t) {
        c.slots[number(t)].signalled.store(1, Ordering::Release);
        wake_host(c);
    }
}

/// Whether a signal can make a thread go on that waits.
static HANDLES_SIGNALS: AtomicBool = AtomicBool::new(false);

/// The program has a handler for a signal. Those that an instruction causes come to threads that run;
/// every Rust program has a handler for some of them.
pub fn handles_signal(number: usize) {
    const BY_INSTRUCTIONS: [usize; 6] = [4, 5, 7, 8, 11, 31];
    if !BY_INSTRUCTIONS.contains(&number) {
        HANDLES_SIGNALS.store(true, Relaxed);
    }
}

/// The program asks to cancel a thread, given by its number plus one.
pub fn cancelled(thread: u32) {
    // That is done by a signal as well.
    HANDLES_SIGNALS.store(true, Relaxed);
    if let Some((c, _)) = me()
        && thread != 0
    {
        c.slots[thread as usize - 1].cancelled.store(1, Relaxed);
    }
}

fn state(c: &Control, t: &Thread, want: &Want) {
    let me = number(t);
    let slot = &c.slots[me];
    flow::name_words(t);
    log(c, Phase::Pending, me, &want.record, &callers(t));
    let Record { a, b, .. } = want.record;
    let Some(kind) = want.record.kind() else { return };
    let object = match kind.has_object().then(|| c.object(a as usize)) {
        Some(None) => too_much(c, me),
        Some(Some(i)) => i as u32 + 1,
        None => 0,
    };
    slot.object.store(object, Relaxed);
    slot.kind.store(kind as u32, Relaxed);
    slot.flags.store(want.flags | u32::from(want.record.flags()), Relaxed);
    slot.a.store(a, Relaxed);
    slot.b.store(b, Relaxed);
    slot.deadline.store(want.deadline, Relaxed);
    flow::count_from_here();
}

/// The thread has changed something that others could notice.
fn changed(c: &Control, t: &Thread) {
    c.slots[number(t)].changed.store(c.log_len.load(Relaxed), Relaxed);
}

/// Accesses of instrumented code have been seen: what a thread writes under a lock is known.
static INSTRUMENTED: AtomicBool = AtomicBool::new(false);

/// A plain access of instrumented code.
#[cold]
pub fn access(addr: usize, len: usize, write: bool, pc: usize) {
    let Some((c, t)) = me() else { return };
    flow::count(1);
    plain(c, t, (addr, len), write, pc);
    flow::range(c, addr, len, write);
}

/// Whether the host asked for a scheduling point at a place in the code.
#[inline]
pub fn is_watched(c: &Control, pc: usize) -> bool {
    let watched = c.watched_len.load(Relaxed) as usize;
    c.watched.iter().take(watched).any(|w| w.load(Relaxed) == pc as u64)
}

/// The same, without words of data flow.
pub fn plain(
    c: &'static Control,
    t: &mut Thread,
    (addr, len): (usize, usize),
    write: bool,
    pc: usize,
) {
    INSTRUMENTED.store(true, Relaxed);
    seen::finish(c, &c.slots[number(t)]);
    if write {
        changed(c, t);
        regions::tell_before_write(t);
    }
    let is_watched = is_watched(c, pc);
    if is_watched {
        let kind = if write { RecordKind::Write } else { RecordKind::Read };
        point(c, t, &Want::with(kind, 0, pc, addr, len));
    } else if flow::counted() >= ACCESSES {
        ops::give_way(c, t, pc);
    }
    if is_watched && write {
        changed(c, t);
    }
    if is_watched || c.flags.load(Relaxed) & wire::ACCESSES != 0 {
        rings::record_access(t, false, write, pc, addr, len);
    }
}

/// An atomic operation: a scheduling point, and then `operation`, which records itself and says whether
/// it wrote.
pub fn atomic<T>(
    c: &Control,
    t: &mut Thread,
    want: &Want,
    operation: impl FnOnce(&mut Thread) -> (T, bool),
) -> T {
    point(c, t, want);
    let (value, wrote) = operation(t);
    if wrote {
        changed(c, t);
    }
    value
}

/// A thread is about to be created: its number plus one, 0 if it is not controlled.
pub fn creating(pc: usize, function: usize) -> u32 {
    let Some((c, t)) = me() else { return 0 };
    let child = c.threads();
    if child >= THREADS {
        too_much(c, number(t));
    }
    point(c, t, &Want::new(RecordKind::Fork, 0, pc, child));
    // Another thread may have created one meanwhile.
    let child = c.threads();
    if child >= THREADS {
        too_much(c, number(t));
    }
    let slot = &c.slots[child];
    slot.clear();
    slot.kind.store(RecordKind::Begin as u32, Relaxed);
    slot.tid.store(0, Relaxed);
    slot.status.store(status::WAITING, Relaxed);
    c.threads.store(child as u32 + 1, Relaxed);
    let begin = Want::new(RecordKind::Begin, 0, function, 0);
    log(c, Phase::Pending, child, &begin.record, &NO_CALLERS);
    changed(c, t);
    child as u32 + 1
}

/// It could not be created.
pub fn not_created(controlled: u32) {
    if let Some((c, _)) = me()
        && controlled != 0
    {
        c.slots[controlled as usize - 1].status.store(status::ENDED, Relaxed);
    }
}

/// First thing that a created thread does. Its records go to the log from now on.
pub fn begin(t: &mut Thread) {
    let Some(c) = control().filter(|_| is_on() && t.controlled != 0) else { return };
    t.ring.open_log();
    c.slots[number(t)].tid.store(sys::tid(), Ordering::Release);
    {
        let _busy = Busy::new(t);
        wait_for_turn(c, t);
    }
    let begin = Want::new(RecordKind::Begin, 0, t.start.0, 0);
    log(c, Phase::Step, number(t), &begin.record, &NO_CALLERS);
}

/// A thread is about to end.
pub fn ending(t: &mut Thread) {
    if let Some(c) = of(t) {
        point(c, t, &Want::new(RecordKind::End, 0, 0, 0));
    }
}

/// Last thing that it does: others go on.
pub fn end(t: &mut Thread) {
    let Some(c) = of(t) else { return };
    let me = number(t);
    changed(c, t);
    ops::give_up_robust(c, me);
    t.controlled = 0;
    t.ring.close();
    // The first thread of a process is not gone before the last.
    c.dying.store(if sys::tid() == sys::pid() { 0 } else { sys::tid() }, Relaxed);
    c.slots[me].status.store(status::ENDED, Ordering::Release);
    hand_over(c, me);
}
