//! The executor: runs the threads of one execution as coroutines on one OS thread.
//!
//! An execution is a sequence of *steps*. A thread runs until it is about to do something that other
//! threads can notice, says what, and asks who goes on. If that is itself, nothing is switched. A new
//! thread first runs to its first such point without being chosen, since no other thread can notice that.
//!
//! | module | what lives there |
//! | --- | --- |
//! | this one | the state of an execution; who can run and who does |
//! | [`ops`] | what controlled types do, in terms of the state |
//! | [`objects`] | locks, condition variables, barriers, semaphores |
//! | [`blocks`] | what threads say of their deterministic blocks |
//! | [`circles`] | deadlocks of readers behind writers |
//! | [`failing`] | what ends an execution, as findings |
//! | [`ownership`] | races that the count of an `Arc` may have ordered |
//! | [`fiber`] | coroutines; the only unsafe code of the executor |
//! | [`worker`] | executions one after the other, with strategies and analyses |

pub(crate) mod blocks;
mod circles;
pub(crate) mod failing;
pub(crate) mod fiber;
pub(crate) mod made;
pub(crate) mod objects;
pub(crate) mod ops;
mod ownership;
pub(crate) mod panics;
pub(crate) mod sites;
pub(crate) mod slot;
pub(crate) mod worker;

use std::any::Any;
use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_analyses::registry::{Contents, Needs};
use selvedge_analyses::{Entry, Pipeline, fasttrack};
use selvedge_engine::Heartbeat;
use selvedge_explore::{Abstraction, Choice, Driver, Pending, Rng, Step, Strategy, fairness};
use selvedge_model::{
    Access, Event, Failure, Finding, Kind, LockId, Op, RegionKind, Site, SiteId, Symbols, ThreadId,
    allocation, conditions, rendezvous, threads,
};

use blocks::Speech;
use made::Made;
use objects::{Barrier, Cond, Enabling, Lock, Semaphore};
use ownership::Ownership;
use panics::Panicked;
use sites::{Place, Sites};

/// What an execution may use.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) steps: usize,
    pub(crate) stack_size: usize,
}

/// A log of so many events is shown to the analyses before the execution is over.
const LONG_LOG: usize = 1 << 16;

/// Whether the asking thread goes on or another one runs first.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Go {
    On,
    Switch,
}

/// A thread's own storage for `thread_local!`, in order of initialisation.
pub(crate) type Locals = Vec<Local>;

/// One of its values.
pub(crate) struct Local {
    /// The address of the key.
    pub(crate) key: usize,
    pub(crate) value: Rc<dyn Any>,
    /// It has no destructor: it is there as long as the thread.
    pub(crate) stays: bool,
}

#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) name: Option<Arc<str>>,
    /// The function that it runs, if that has a name.
    pub(crate) function: Option<&'static str>,
    enabled: bool,
    ended: bool,
    joiners: Vec<ThreadId>,
    /// When a timed wait of it is over, in virtual nanoseconds.
    deadline: Option<u64>,
    timed_out: bool,
    pub(crate) panicked: Option<Panicked>,
    /// Another thread handles its panic: the thread was joined.
    pub(crate) handled: bool,
    pub(crate) locals: Locals,
    /// Its [name across executions](Names).
    abstraction: u64,
    children: u64,
    /// How many locks it holds.
    held: u32,
}

/// Names of threads and locks that are the same in every execution. A thread is named by who started
/// it, where, and as which of its children; a lock by where it was made.
#[derive(Default, Debug, Clone)]
pub(crate) struct Names {
    threads: Vec<u64>,
    locks: Vec<u64>,
}

/// The names of the execution that runs, for a strategy to look at.
#[derive(Default, Clone)]
pub(crate) struct SharedNames(pub(crate) Rc<RefCell<Names>>);

impl Abstraction for Names {
    fn thread(&self, thread: ThreadId) -> u64 {
        self.threads.get(thread.index()).copied().unwrap_or(0)
    }
    fn lock(&self, lock: LockId) -> u64 {
        self.locks.get(lock.index()).copied().unwrap_or(0)
    }
}

impl Abstraction for SharedNames {
    fn thread(&self, thread: ThreadId) -> u64 {
        self.0.borrow().thread(thread)
    }
    fn lock(&self, lock: LockId) -> u64 {
        self.0.borrow().lock(lock)
    }
}

/// The state of one execution, and what is kept from one to the next.
pub(crate) struct Exec {
    pub(crate) generation: u64,
    limits: Limits,
    /// The strategy chooses which stars are executed.
    pub(crate) stars: bool,
    /// The strategy that chooses, while [`fiber::run`] is on the stack.
    strategy: Option<fiber::Lent>,
    follows: bool,
    pub(crate) driver: Driver,
    /// Which thread runs now.
    pub(crate) current: ThreadId,
    /// Which thread took the last step.
    running: Option<ThreadId>,
    yielding: bool,
    next: Option<ThreadId>,
    // invariant: ascending; exactly the threads whose `enabled` is true.
    enabled: Vec<ThreadId>,
    pending: Vec<Pending>,
    pub(crate) threads: Vec<Thread>,
    /// Started, and not yet run to their first step.
    fresh: Vec<ThreadId>,
    jobs: Vec<(ThreadId, fiber::Job)>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) conds: Vec<Cond>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) semaphores: Vec<Semaphore>,
    /// Some lock has been held for reading.
    has_readers: bool,
    pub(crate) made: Made,
    pub(crate) names: SharedNames,
    /// Virtual time, in nanoseconds.
    pub(crate) now: u64,
    steps: usize,
    pub(crate) rng: Rng,
    pub(crate) symbols: Symbols,
    sites: Sites,
    /// Whether events are noted down: for analyses, or to be shown.
    pub(crate) noting: bool,
    /// The events of the execution that the analyses have not seen yet.
    pub(crate) log: Vec<Event>,
    pub(crate) contents: Contents,
    /// How many events the analyses have seen.
    analysed: usize,
    ownership: Ownership,
    pub(crate) speech: Speech,
    /// The analyses to run.
    pub(crate) selected: Arc<[&'static Entry]>,
    // invariant: started only when the execution is over, or because the log got long.
    pub(crate) pipeline: Pipeline,
    /// Whether the whole log is kept.
    pub(crate) keep: bool,
    observed: bool,
    /// Releases are steps: some thread tries locks, and notices who holds them when.
    pub(crate) release_points: bool,
    /// Why the execution is over before its end.
    pub(crate) failed: Option<Finding>,
    /// The execution was ended because it was too long, so how it would have ended is not known.
    pub(crate) cut_off: bool,
    /// A thread was left in the middle of unwinding: the OS thread must not be used again.
    pub(crate) tainted: bool,
    pub(crate) heartbeat: Heartbeat,
    /// Tells other workers which generation runs here.
    live: Arc<AtomicU64>,
}

static GENERATIONS: AtomicU64 = AtomicU64::new(1);

/// The generations of the executions that run now, one entry per worker; 0 between executions.
static LIVE: Mutex<Vec<Arc<AtomicU64>>> = Mutex::new(Vec::new());

fn live() -> MutexGuard<'static, Vec<Arc<AtomicU64>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Exec {
    fn drop(&mut self) {
        live().retain(|l| !Arc::ptr_eq(l, &self.live));
    }
}

impl Exec {
    pub(crate) fn new(limits: Limits, heartbeat: Heartbeat) -> Exec {
        let live_here = Arc::new(AtomicU64::new(0));
        live().push(Arc::clone(&live_here));
        Exec {
            generation: 0,
            limits,
            stars: false,
            strategy: None,
            follows: false,
            driver: Driver::default(),
            current: ThreadId(0),
            running: None,
            yielding: false,
            next: None,
            enabled: Vec::new(),
            pending: Vec::new(),
            threads: Vec::new(),
            fresh: Vec::new(),
            jobs: Vec::new(),
            locks: Vec::new(),
            conds: Vec::new(),
            barriers: Vec::new(),
            semaphores: Vec::new(),
            has_readers: false,
            made: Made::default(),
            names: SharedNames::default(),
            now: 0,
            steps: 0,
            rng: Rng::new(0),
            symbols: Symbols::default(),
            sites: Sites::new(),
            noting: false,
            log: Vec::new(),
            contents: Contents::default(),
            analysed: 0,
            ownership: Ownership::default(),
            speech: Speech::default(),
            selected: Arc::default(),
            pipeline: Pipeline::default(),
            keep: false,
            observed: false,
            release_points: false,
            failed: None,
            cut_off: false,
            tainted: false,
            heartbeat,
            live: live_here,
        }
    }

    /// Forgets the execution before and gets ready for one whose first thread does `body`.
    pub(crate) fn begin(
        &mut self,
        follows: bool,
        seed: u64,
        body: fiber::Job,
        here: &'static Location<'static>,
    ) {
        self.generation = GENERATIONS.fetch_add(1, Ordering::Relaxed);
        self.live.store(self.generation, Ordering::Relaxed);
        self.follows = follows;
        self.driver.clear();
        self.driver.schedule.seed = seed;
        self.driver.schedule.releases = self.release_points;
        self.running = None;
        self.yielding = false;
        self.enabled.clear();
        self.pending.clear();
        self.threads.clear();
        self.fresh.clear();
        self.jobs.clear();
        self.locks.clear();
        self.conds.clear();
        self.barriers.clear();
        self.semaphores.clear();
        self.has_readers = false;
        self.made.clear();
        *self.names.0.borrow_mut() = Names::default();
        self.now = 0;
        self.steps = 0;
        self.rng = Rng::new(seed);
        self.failed = None;
        self.cut_off = false;
        self.log.clear();
        self.contents = Contents::default();
        self.analysed = 0;
        self.ownership = Ownership::default();
        self.speech.clear();
        self.pipeline.restart();
        self.observed = self.noting || self.follows;
        self.heartbeat.beat();
        let main = self.start(Some("main".into()), body, here);
        self.fresh.clear();
        self.next = Some(main);
    }

    /// The execution is over.
    pub(crate) fn end(&mut self, strategy: &mut dyn Strategy) {
        self.live.store(0, Ordering::Relaxed);
        strategy.end(&self.pending);
    }

    pub(crate) fn stack_size(&self) -> usize {
        self.limits.stack_size
    }

    /// How many choices and steps there were.
    pub(crate) fn length(&self) -> (usize, usize) {
        (self.driver.choices(), self.steps)
    }

    // ---- threads ----

    /// Registers a thread that does `job`.
    pub(crate) fn start(
        &mut self,
        name: Option<Arc<str>>,
        job: fiber::Job,
        here: &'static Location<'static>,
    ) -> ThreadId {
        let id = ThreadId(self.threads.len() as u32);
        let place = self.place(here);
        let abstraction = match self.threads.get_mut(self.current.index()) {
            Some(parent) if id.0 > 0 => {
                parent.children += 1;
                hash([parent.abstraction, place.name, parent.children])
            }
            _ => 0,
        };
        self.names.0.borrow_mut().threads.push(abstraction);
        self.threads.push(Thread { name, abstraction, ..Thread::default() });
        self.inherit_block(id);
        let step = Step::Do(Op::Begin);
        self.pending.push(Pending { site: place.site, landmark: place.landmark, step });
        self.jobs.push((id, job));
        self.fresh.push(id);
        id
    }

    /// What the hub resumes next, with its job if it has not begun.
    pub(crate) fn take_next(&mut self) -> Option<(ThreadId, Option<fiber::Job>)> {
        let thread = self.next.take()?;
        self.current = thread;
        let job = self.jobs.iter().position(|j| j.0 == thread).map(|i| self.jobs.swap_remove(i).1);
        Some((thread, job))
    }

    /// The current thread has ended.
    pub(crate) fn finish_thread(&mut self) {
        let me = self.current;
        self.pending[me.index()].step = Step::Ended;
        self.threads[me.index()].ended = true;
        self.disable(me);
        let joiners = std::mem::take(&mut self.threads[me.index()].joiners);
        for joiner in joiners {
            self.enable(joiner);
        }
        if !self.is_over() {
            let _ = self.schedule();
        }
    }

    pub(crate) fn has_ended(&self, thread: ThreadId) -> bool {
        self.threads[thread.index()].ended
    }

    pub(crate) fn await_end(&mut self, thread: ThreadId) -> bool {
        let me = self.current;
        if self.has_ended(thread) {
            return true;
        }
        self.threads[thread.index()].joiners.push(me);
        false
    }

    pub(crate) fn thread_name(&self, thread: ThreadId) -> String {
        match self.threads.get(thread.index()).and_then(|t| t.name.as_deref()) {
            Some(name) => name.to_owned(),
            None => format!("thread {}", thread.0),
        }
    }

    // ---- who can run ----

    pub(crate) fn enable(&mut self, thread: ThreadId) {
        let state = &mut self.threads[thread.index()].enabled;
        if !*state {
            *state = true;
            let at = self.enabled.partition_point(|&t| t < thread);
            self.enabled.insert(at, thread);
        }
    }

    pub(crate) fn disable(&mut self, thread: ThreadId) {
        let state = &mut self.threads[thread.index()].enabled;
        if *state {
            *state = false;
            let at = self.enabled.partition_point(|&t| t < thread);
            self.enabled.remove(at);
        }
    }

    pub(crate) fn set_enabled(&mut self, list: &[Enabling]) {
        for &(thread, enabled) in list {
            // A thread whose timeout is over goes on even if the object does not let it.
            if enabled || self.threads[thread.index()].timed_out {
                self.enable(thread);
            } else {
                self.disable(thread);
            }
        }
    }

    // ---- who does ----

    /// The current thread is about to take `step`, and can if `enabled`. Who goes on?
    #[inline]
    pub(crate) fn point(&mut self, place: Place, step: Step, enabled: bool) -> Go {
        let me = self.current;
        let Place { site, landmark, .. } = place;
        self.pending[me.index()] = Pending { site, landmark, step };
        if enabled {
            self.enable(me);
        } else {
            self.disable(me);
        }
        self.schedule()
    }

    /// Chooses the next thread.
    fn schedule(&mut self) -> Go {
        if self.is_over() {
            self.next = None;
            return Go::Switch;
        }
        if let Some(fresh) = self.fresh.pop() {
            self.next = Some(fresh);
            return Go::Switch;
        }
        if self.enabled.is_empty() && !self.pass_time() {
            self.stuck();
            return Go::Switch;
        }
        self.steps += 1;
        if self.steps > self.limits.steps {
            return self.too_long();
        }
        // Threads that only look, while others wait for a time.
        if self.driver.fairness.all_spin(&self.enabled) {
            self.pass_time();
        }
        let thread = if let [only] = self.enabled[..] { only } else { self.choose() };
        self.driver.fairness.stepped(thread, fairness::changes(&self.pending[thread.index()].step));
        if self.follows
            && let Some(strategy) = &mut self.strategy
        {
            strategy.get().step(thread, &self.pending);
        }
        self.steps(thread);
        self.running = Some(thread);
        self.yielding = self.pending[thread.index()].step == Step::Yield;
        if thread == self.current && !self.threads[thread.index()].ended {
            return Go::On;
        }
        self.next = Some(thread);
        Go::Switch
    }

    /// Whether the star at a place is executed.
    pub(crate) fn star(&mut self, here: &'static Location<'static>) -> bool {
        let Some(strategy) = self.strategy.as_mut().filter(|_| self.stars) else { return true };
        let place = std::ptr::from_ref(here) as usize as u64;
        self.driver.number_at(strategy.get(), 2, place) == 0
    }

    fn choose(&mut self) -> ThreadId {
        let choice = Choice {
            step: self.driver.choices(),
            enabled: &self.enabled,
            running: self.running,
            yielding: self.yielding,
            pending: &self.pending,
        };
        let strategy = self.strategy.as_mut().expect("an execution has a strategy");
        let events = self.keep.then_some(self.log.len());
        let thread = self.driver.choose(strategy.get(), &choice, events);
        if self.driver.choices().is_multiple_of(1024) {
            self.heartbeat.beat();
        }
        thread
    }

    /// No thread can run: if threads wait with a timeout, the earliest one expires.
    fn pass_time(&mut self) -> bool {
        let next = (0..self.threads.len())
            .filter_map(|t| Some((self.threads[t].deadline?, t)))
            .filter(|&(_, t)| !self.threads[t].ended)
            .min();
        let Some((deadline, t)) = next else { return false };
        // A clock is read a little later than it struck: who then asks how much is left gets nothing.
        self.now = self.now.max(deadline).saturating_add(1);
        let thread = &mut self.threads[t];
        thread.deadline = None;
        thread.timed_out = true;
        self.enable(ThreadId(t as u32));
        true
    }

    pub(crate) fn set_timer(&mut self, after: u64) {
        let deadline = self.now.saturating_add(after);
        self.threads[self.current.index()].deadline = Some(deadline);
    }

    /// Whether the timed wait of the current thread is over because of its timeout.
    pub(crate) fn clear_timer(&mut self) -> bool {
        let thread = &mut self.threads[self.current.index()];
        thread.deadline = None;
        std::mem::take(&mut thread.timed_out)
    }

    /// No thread can run, and none ever will.
    fn stuck(&mut self) {
        self.next = None;
        let blocked: Vec<ThreadId> = (0..self.threads.len() as u32)
            .map(ThreadId)
            .filter(|t| !self.threads[t.index()].ended)
            .collect();
        if blocked.is_empty() || self.failed.is_some() {
            return;
        }
        let main_ended = self.threads[0].ended;
        let blocked = blocked.into_iter().map(|t| self.describe(t)).collect();
        self.failed = Some(failing::waiting(blocked, main_ended));
    }

    /// The current thread panicked outside its closure: in a destructor of a thread-local, or of a
    /// result that no thread joined for.
    pub(crate) fn fail_in_destructor(&mut self) {
        let thread = &self.threads[self.current.index()];
        let panicked = thread.panicked.clone().unwrap_or_else(Panicked::unknown);
        let why = self.panicked(self.current, &panicked);
        let _ = self.stop(why);
    }

    pub(crate) fn fail_to_start(&mut self, thread: ThreadId, error: &std::io::Error) {
        let failure = Failure::NoStack { threads: thread.index() + 1, error: error.to_string() };
        let _ = self.stop(failing::without_place(Kind::Crash, failure));
    }

    // ---- events ----

    #[inline]
    pub(crate) fn place(&mut self, location: &'static Location<'static>) -> Place {
        self.sites.place(location, &mut self.symbols)
    }

    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.observed
    }

    #[inline]
    pub(crate) fn emit(&mut self, site: SiteId, op: Op) {
        self.distinguished(op);
        if self.observed {
            self.publish(&Event { thread: self.current, site, op });
        }
    }

    #[inline]
    fn publish(&mut self, event: &Event) {
        if self.noting {
            match event.op {
                Op::Read(_) | Op::Write(_) => {
                    self.contents.add(Needs::Accesses);
                    if self.threads[event.thread.index()].held > 0 {
                        self.contents.add(Needs::LockedAccesses);
                    }
                }
                Op::RegionEnter(_, RegionKind::Atomic) => self.contents.add(Needs::AtomicRegions),
                Op::RegionEnter(_, RegionKind::Deterministic) => {
                    self.contents.add(Needs::DeterministicRegions);
                }
                Op::Acquire(..) => {
                    let held = &mut self.threads[event.thread.index()].held;
                    *held += 1;
                    if *held > 1 {
                        self.contents.add(Needs::NestedLocks);
                    }
                }
                Op::Release(..) => {
                    let held = &mut self.threads[event.thread.index()].held;
                    *held = held.saturating_sub(1);
                }
                Op::Atomic(..)
                | Op::Fence(_)
                | threads!()
                | rendezvous!()
                | conditions!()
                | Op::RegionExit(_)
                | Op::RegionEnter(..)
                | Op::Flow(_)
                | Op::Focus(_)
                | allocation!() => {}
            }
            self.log.push(*event);
            if self.log.len() >= LONG_LOG && !self.keep {
                self.analyse(Contents::UNKNOWN);
            }
        }
        if self.follows
            && !event.is_plain_access()
            && let Some(strategy) = &mut self.strategy
        {
            strategy.get().observe(event);
        }
    }

    /// Shows what is in the log to the analyses that have something to say about such contents.
    #[cold]
    pub(crate) fn analyse(&mut self, contents: Contents) {
        if !self.pipeline.is_started() {
            self.pipeline.start(contents.relevant(&self.selected));
        }
        let Exec { pipeline, ownership, log, .. } = self;
        pipeline.each(|entry, analysis, findings| {
            if entry.name == fasttrack::ENTRY.name {
                ownership.analyse(analysis, log, findings);
            } else {
                analysis.on_events(log, findings);
            }
        });
        if !self.keep {
            self.analysed += self.log.len();
            self.log.clear();
        }
    }

    /// The execution is over: the analyses say what they have left to say.
    pub(crate) fn finish_analyses(&mut self) {
        self.analyse(self.contents);
        self.pipeline.finish();
        self.ownership.finish(self.pipeline.findings());
    }

    /// The current thread makes a plain access.
    #[inline]
    pub(crate) fn accessed(&mut self, site: SiteId, access: Access, write: bool) {
        if self.noting {
            self.ownership.contest(self.current, access, write, &self.pending);
        }
        self.emit(site, if write { Op::Write(access) } else { Op::Read(access) });
    }

    /// The current thread destroys a cell.
    pub(crate) fn destroyed(&mut self, cell: Access) {
        if self.noting && self.contents.has(Needs::Accesses) {
            self.ownership.end(self.current, cell, self.analysed + self.log.len());
        }
    }

    /// An object has been met that an execution of another generation has met before. If that one is
    /// still running, this one ends; the result says so.
    #[cold]
    pub(crate) fn ends_as_shared(&mut self, slot: &slot::Slot) -> bool {
        let theirs = slot.generation();
        let runs = |l: &Arc<AtomicU64>| l.load(Ordering::Relaxed) == theirs;
        let shared = theirs != self.generation && live().iter().any(runs);
        if shared {
            let made = match slot.made() {
                Some(location) => self.place(location).site,
                None => SiteId(self.symbols.sites.intern(Site::Label("a constant".into()))),
            };
            let _ = self.stop(failing::without_place(Kind::Crash, Failure::Shared(made)));
        }
        shared
    }

    /// A lock that cannot know where it was made is known by where it was first used.
    pub(crate) fn new_lock(&mut self, made: made::Place, here: &'static Location<'static>) -> u32 {
        self.locks.push(Lock::default());
        self.made.locks.push(made);
        let name = self.place(made.unwrap_or(here)).name;
        self.names.0.borrow_mut().locks.push(hash([name, 1, 0]));
        (self.locks.len() - 1) as u32
    }

    pub(crate) fn new_memory(&mut self, made: made::Place) -> u32 {
        self.made.memory.push(made);
        self.made.memory.len() as u32
    }
}

fn hash(words: [u64; 3]) -> u64 {
    words.into_iter().fold(0x5e1f, selvedge_explore::rng::derive)
}
