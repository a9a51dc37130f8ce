//! A simulated concurrent system: threads of straight-line instructions over variables and locks. It
//! shares nothing with the executors.

use selvedge_explore::{Budget, Choice, Driver, Pending, Step, Strategy};
use selvedge_model::{
    Access, AtomicOp, Event, LoadOrder, LockId, Mode, Op, RegionId, RegionKind, Schedule, SiteId,
    StoreOrder, ThreadId, UpdateOrder,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Instr {
    /// Atomically adds one.
    Inc(u64),
    /// Loads into the thread's register.
    Load(u64),
    /// Stores the value.
    Store(u64, i64),
    /// Stores the register plus one.
    StoreNext(u64),
    /// Plain accesses.
    Read(u64),
    Write(u64),
    /// Plain accesses with an effect: reads into the register, writes the value.
    Get(u64),
    Put(u64, i64),
    Acquire(u32),
    Release(u32),
    /// Acquires a lock if it is free, and goes on either way.
    Try(u32),
    /// Waits for a lock, but not for ever: goes on without it when nobody else can go on.
    Timed(u32),
    /// Acquires a lock that the thread may hold already.
    Again(u32),
    /// Releases a lock that anybody holds.
    ReleaseTheirs(u32),
    /// Atomically replaces a value, if it is the one given.
    Exchange(u64, i64, i64),
    Enter,
    Exit,
    /// Fails the execution if the variable has the value.
    FailIf(u64, i64),
    /// Loads until the variable has the value, yielding in between.
    Await(u64, i64),
    /// The same without yielding.
    Spin(u64, i64),
}

pub(crate) type Program = Vec<Vec<Instr>>;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    /// Who took each step, also where there was no choice.
    pub trace: Vec<u32>,
    pub failed: bool,
    pub deadlock: bool,
    /// The final variables.
    pub vars: Vec<(u64, i64)>,
    pub cut: bool,
    /// What happened.
    pub events: Vec<Event>,
    /// What each thread would do next at the end.
    pub pending: Vec<Pending>,
}

struct Thread {
    at: usize,
    register: i64,
    yielded: bool,
}

pub(crate) struct System<'a> {
    program: &'a Program,
    threads: Vec<Thread>,
    vars: std::collections::BTreeMap<u64, i64>,
    /// Who holds each lock, and how often.
    owner: std::collections::BTreeMap<u32, (usize, u32)>,
}

/// A strategy with the executions that it may use.
pub(crate) struct Search<S> {
    pub strategy: S,
    budget: Budget,
    driver: Driver,
}

/// A search of at most `limit` executions.
pub(crate) fn search<S: Strategy>(strategy: S, seed: u64, limit: u64) -> Search<S> {
    Search { strategy, budget: Budget::new(seed, limit), driver: Driver::default() }
}

/// A search of one execution.
pub(crate) fn once<S: Strategy>(strategy: S) -> Search<S> {
    search(strategy, 0, 1)
}

impl<S> Search<S> {
    /// The choices of the execution that began last.
    pub(crate) fn schedule(&self) -> &Schedule {
        &self.driver.schedule
    }
}

impl<S> std::ops::Deref for Search<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.strategy
    }
}

/// Runs one execution; none if the search is over.
pub(crate) fn run<S: Strategy>(program: &Program, search: &mut Search<S>) -> Option<Outcome> {
    search.budget.begin(&mut search.strategy).then(|| {
        search.driver.clear();
        execute(program, &mut search.strategy, &mut search.driver)
    })
}

/// Runs one execution under a strategy that has begun.
pub(crate) fn execute(
    program: &Program,
    strategy: &mut dyn Strategy,
    driver: &mut Driver,
) -> Outcome {
    let threads = program.iter().map(|_| Thread { at: 0, register: 0, yielded: false }).collect();
    let mut system =
        System { program, threads, vars: Default::default(), owner: Default::default() };
    system.run(strategy, driver)
}

/// Runs all executions of a search.
pub(crate) fn run_all<S: Strategy>(program: &Program, search: &mut Search<S>) -> Vec<Outcome> {
    std::iter::from_fn(|| run(program, search)).collect()
}

impl System<'_> {
    fn run(&mut self, strategy: &mut dyn Strategy, driver: &mut Driver) -> Outcome {
        let mut outcome = Outcome::default();
        let mut running = None;
        loop {
            let pending: Vec<Pending> = (0..self.threads.len()).map(|t| self.pending(t)).collect();
            let enabled: Vec<ThreadId> = (0..self.threads.len())
                .filter(|&t| self.enabled(t))
                .map(|t| ThreadId(t as u32))
                .collect();
            let yielding = running.is_some_and(|r: ThreadId| self.threads[r.index()].yielded);
            let thread = match enabled[..] {
                [] => {
                    strategy.end(&pending);
                    outcome.deadlock = pending.iter().any(|p| p.step != Step::Ended);
                    outcome.pending = pending;
                    break;
                }
                [only] => only,
                _ => {
                    let choice = Choice {
                        step: driver.choices(),
                        enabled: &enabled,
                        running,
                        yielding,
                        pending: &pending,
                    };
                    let chosen = driver.choose(strategy, &choice, None);
                    assert!(enabled.contains(&chosen), "{chosen:?} cannot run");
                    chosen
                }
            };
            strategy.step(thread, &pending);
            outcome.trace.push(thread.0);
            let op = self.event(thread.index(), pending[thread.index()].step);
            let before = self.vars.clone();
            self.execute(thread.index(), &mut outcome);
            driver.fairness.stepped(thread, self.vars != before);
            if let Some(op) = op {
                let site = pending[thread.index()].site;
                let event = Event { thread, site, op };
                strategy.observe(&event);
                outcome.events.push(event);
            }
            running = Some(thread);
            if outcome.trace.len() > 20_000 {
                outcome.cut = true;
                break;
            }
        }
        outcome.vars = self.vars.iter().map(|(&k, &v)| (k, v)).collect();
        outcome
    }

    fn instr(&self, t: usize) -> Option<Instr> {
        self.program[t].get(self.threads[t].at).copied()
    }

    fn enabled(&self, t: usize) -> bool {
        match self.instr(t) {
            None => false,
            Some(Instr::Acquire(l)) => !self.owner.contains_key(&l),
            Some(Instr::Again(l)) => self.owner.get(&l).is_none_or(|&(owner, _)| owner == t),
            Some(Instr::Timed(l)) => !self.owner.contains_key(&l) || self.nobody_else(t),
            Some(_) => true,
        }
    }

    /// Whether no other thread can go on, so that time passes.
    fn nobody_else(&self, t: usize) -> bool {
        let timed = |i: usize| matches!(self.instr(i), Some(Instr::Timed(_)));
        (0..self.threads.len()).all(|i| i == t || timed(i) || !self.enabled(i))
    }

    /// What happens if the thread takes its step.
    fn event(&self, t: usize, step: Step) -> Option<Op> {
        match (self.instr(t)?, step) {
            (Instr::Try(l) | Instr::Timed(l), _) => {
                (!self.owner.contains_key(&l)).then_some(Op::Acquire(LockId(l), Mode::Exclusive))
            }
            (Instr::Exchange(x, old, _), Step::Do(Op::Atomic(access, _)))
                if self.vars.get(&x).copied().unwrap_or(0) != old =>
            {
                Some(Op::Atomic(access, AtomicOp::Load(LoadOrder::SeqCst)))
            }
            (_, Step::Do(op)) => Some(op),
            _ => None,
        }
    }

    fn pending(&self, t: usize) -> Pending {
        let access = |x: u64| Access { addr: x * 8, len: 8 };
        let step = match self.instr(t) {
            None => Step::Ended,
            Some(Instr::Try(l) | Instr::Timed(l)) => Step::TryAcquire(LockId(l), Mode::Exclusive),
            Some(instr) => Step::Do(match instr {
                Instr::Try(_) | Instr::Timed(_) => unreachable!("told above"),
                Instr::Inc(x) | Instr::Exchange(x, ..) => {
                    Op::Atomic(access(x), AtomicOp::Update(UpdateOrder::SeqCst))
                }
                Instr::Load(x) | Instr::FailIf(x, _) | Instr::Await(x, _) | Instr::Spin(x, _) => {
                    Op::Atomic(access(x), AtomicOp::Load(LoadOrder::SeqCst))
                }
                Instr::Store(x, _) | Instr::StoreNext(x) => {
                    Op::Atomic(access(x), AtomicOp::Store(StoreOrder::SeqCst))
                }
                Instr::Read(x) | Instr::Get(x) => Op::Read(access(x)),
                Instr::Write(x) | Instr::Put(x, _) => Op::Write(access(x)),
                Instr::Acquire(l) | Instr::Again(l) => Op::Acquire(LockId(l), Mode::Exclusive),
                Instr::Release(l) | Instr::ReleaseTheirs(l) => {
                    Op::Release(LockId(l), Mode::Exclusive)
                }
                Instr::Enter => Op::RegionEnter(RegionId(0), RegionKind::Atomic),
                Instr::Exit => Op::RegionExit(RegionId(0)),
            }),
        };
        let site = site(t, self.threads[t].at);
        // Like a column, which does not change when a line is added above.
        let landmark = self.instr(t).map_or(0, |i| {
            format!("{i:?}").bytes().fold(7u16, |h, b| h.wrapping_mul(31).wrapping_add(b.into()))
        });
        Pending { site, landmark, step }
    }

    fn execute(&mut self, t: usize, outcome: &mut Outcome) {
        let instr = self.instr(t).expect("enabled");
        let var =
            |vars: &std::collections::BTreeMap<u64, i64>, x| vars.get(&x).copied().unwrap_or(0);
        let thread = &mut self.threads[t];
        thread.yielded = false;
        match instr {
            Instr::Inc(x) => *self.vars.entry(x).or_default() += 1,
            Instr::Load(x) | Instr::Get(x) => thread.register = var(&self.vars, x),
            Instr::Store(x, v) | Instr::Put(x, v) => drop(self.vars.insert(x, v)),
            Instr::StoreNext(x) => drop(self.vars.insert(x, thread.register + 1)),
            Instr::Read(_) | Instr::Write(_) | Instr::Enter | Instr::Exit => {}
            Instr::Acquire(l) => assert!(self.owner.insert(l, (t, 1)).is_none()),
            Instr::Again(l) => self.owner.entry(l).or_insert((t, 0)).1 += 1,
            Instr::Try(l) | Instr::Timed(l) => drop(self.owner.entry(l).or_insert((t, 1))),
            Instr::Release(l) => {
                let (owner, depth) = self.owner.remove(&l).expect("held");
                assert_eq!(owner, t);
                if depth > 1 {
                    self.owner.insert(l, (t, depth - 1));
                }
            }
            Instr::ReleaseTheirs(l) => drop(self.owner.remove(&l)),
            Instr::Exchange(x, old, new) => {
                if var(&self.vars, x) == old {
                    self.vars.insert(x, new);
                }
            }
            Instr::FailIf(x, v) => outcome.failed |= var(&self.vars, x) == v,
            Instr::Await(x, v) | Instr::Spin(x, v) => {
                if var(&self.vars, x) != v {
                    thread.yielded = matches!(instr, Instr::Await(..));
                    return;
                }
            }
        }
        thread.at += 1;
    }
}

/// The site of an instruction.
pub(crate) fn site(thread: usize, at: usize) -> SiteId {
    SiteId((thread * 1000 + at) as u32)
}
