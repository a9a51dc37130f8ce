//! The simulated system of the strategies' tests as an [`Executor`].

use std::collections::HashMap;
use std::sync::Arc;

use selvedge_engine::executor::{
    Ask, Execution, Executor, Factory, Heartbeat, Limit, Nondeterminism, Outcome,
};
use selvedge_explore::{Driver, Replay, Rng, Step, Strategy, Trivial};
use selvedge_model::{
    Blocked, Failure, Finding, Kind, LockId, Mode, Op, Role, Site, SiteId, Symbols, ThreadId,
};

use selvedge_engine::Blocks;
use selvedge_specs::{BlockExecution, Call, Key, Predicate, ThreadName, Value, Word};

use crate::system::{self, Program};

/// Runs one program.
pub(crate) struct Simulated {
    program: Arc<Program>,
    ensured: Option<u64>,
    heartbeat: Heartbeat,
    /// Which sites have become places that the tests of the engine can name.
    symbols: Symbols,
    ids: HashMap<SiteId, SiteId>,
}

/// A program, and the variable whose value it ensures at its end, if any.
pub(crate) struct Programs(pub(crate) Arc<Program>, pub(crate) Option<u64>);

impl Factory for Programs {
    type Executor = Simulated;

    fn make(&self, heartbeat: Heartbeat) -> Result<Simulated, String> {
        let program = Arc::clone(&self.0);
        let mut symbols = Symbols::default();
        let mut ids = HashMap::new();
        // Each executor has ids of its own, as the real ones do.
        let order: Vec<SiteId> = (0..program.len())
            .flat_map(|t| (0..=program[t].len()).map(move |at| system::site(t, at)))
            .collect();
        let skip = std::ptr::from_ref(&heartbeat) as usize / 64 % order.len().max(1);
        for &site in order.iter().cycle().skip(skip).take(order.len()) {
            let label = format!("{}.c:{}", site.0 / 1000, site.0 % 1000 + 1);
            ids.insert(site, SiteId(symbols.sites.intern(Site::parse(&label))));
        }
        Ok(Simulated { program, ensured: self.1, heartbeat, symbols, ids })
    }

    fn interrupt(&self, _on: bool) {}
}

/// Gives a strategy the ids of this executor.
struct Translated<'a> {
    strategy: &'a mut dyn Strategy,
    ids: &'a HashMap<SiteId, SiteId>,
}

impl Translated<'_> {
    fn pending(&self, pending: &[selvedge_explore::Pending]) -> Vec<selvedge_explore::Pending> {
        let id = |s: SiteId| self.ids.get(&s).copied().unwrap_or(s);
        pending.iter().map(|p| selvedge_explore::Pending { site: id(p.site), ..*p }).collect()
    }
}

impl Strategy for Translated<'_> {
    fn begin(&mut self, _rng: Rng) -> bool {
        true
    }
    fn choose(&mut self, choice: &selvedge_explore::Choice<'_>) -> ThreadId {
        let pending = self.pending(choice.pending);
        self.strategy.choose(&selvedge_explore::Choice { pending: &pending, ..*choice })
    }
    fn follows_steps(&self) -> bool {
        self.strategy.follows_steps()
    }
    fn step(&mut self, thread: ThreadId, pending: &[selvedge_explore::Pending]) {
        let pending = self.pending(pending);
        self.strategy.step(thread, &pending);
    }
    fn observe(&mut self, event: &selvedge_model::Event) {
        let site = self.ids.get(&event.site).copied().unwrap_or(event.site);
        self.strategy.observe(&selvedge_model::Event { site, ..*event });
    }
    fn end(&mut self, pending: &[selvedge_explore::Pending]) {
        let pending = self.pending(pending);
        self.strategy.end(&pending);
    }
}

impl Executor for Simulated {
    type Error = String;
    type Names = Trivial;
    type NamesNow = Trivial;
    type Points = ();

    fn run(&mut self, strategy: &mut dyn Strategy, ask: &Ask<()>) -> Result<Execution, String> {
        self.heartbeat.beat();
        let mut driver = Driver::default();
        let mut translated = Translated { strategy, ids: &self.ids };
        let end = system::execute(&self.program, &mut translated, &mut driver);
        let mut schedule = driver.schedule;
        (schedule.seed, schedule.releases) = (ask.seed, ask.releases);
        let id = |site: SiteId| self.ids.get(&site).copied().unwrap_or(site);
        let outcome = if end.deadlock {
            Outcome::Failed(Box::new(deadlock(&end, &id)))
        } else if end.cut {
            Outcome::Undecided(Limit::Steps(20_000))
        } else {
            Outcome::Exited(i32::from(end.failed))
        };
        let events: Vec<_> =
            end.events.iter().map(|e| selvedge_model::Event { site: id(e.site), ..*e }).collect();
        Ok(Execution {
            outcome,
            choices: schedule.len(),
            steps: end.trace.len(),
            schedule,
            events,
            stops: driver.stops,
            times: driver.times,
            last: ThreadId(end.trace.last().copied().unwrap_or(0)),
            findings: Vec::new(),
            analyses: Vec::new(),
            output: format!("{:?}", end.vars).into_bytes(),
            errors: Vec::new(),
            releases_matter: false,
            cut_off: end.cut,
            uncontrolled: Vec::new(),
            blocks: Arc::new(self.blocks(&end)),
        })
    }

    fn named(&mut self, _execution: &Execution) -> Arc<Symbols> {
        Arc::new(self.symbols.clone())
    }

    fn names(&self) -> Trivial {
        Trivial
    }

    fn names_now(&self) -> Trivial {
        Trivial
    }

    fn site(&mut self, site: &Site) -> SiteId {
        SiteId(self.symbols.sites.intern(site.clone()))
    }

    fn place(&self, site: SiteId) -> Site {
        self.symbols.site(site)
    }

    fn points(&self) -> HashMap<Site, ()> {
        self.symbols.sites.entries().iter().map(|s| (s.clone(), ())).collect()
    }

    fn repeat(
        &mut self,
        execution: &Execution,
        ask: &Ask<()>,
    ) -> Result<Option<Nondeterminism>, String> {
        let mut replay = Replay::new(&execution.schedule);
        replay.begin(Rng::new(0));
        let again = self.run(&mut replay, ask)?;
        assert_eq!(again.difference(execution), None, "the simulation is deterministic");
        Ok(None)
    }
}

impl Simulated {
    /// The whole program is a block, which ensures the variable.
    fn blocks(&self, end: &system::Outcome) -> Blocks {
        let Some(variable) = self.ensured.filter(|_| !end.deadlock && !end.cut) else {
            return Blocks::default();
        };
        let value = end.vars.iter().find(|(x, _)| *x == variable).map_or(0, |(_, v)| *v);
        let key = Key { word: Word::Ensure, name: "v".into(), thread: ThreadName(0), nth: 0 };
        let site = Site::parse("ensure.c:1");
        let (predicate, value) = (Predicate::Exact, Value::from(value).into());
        let calls = vec![Call { key, predicate, value, site: site.clone() }];
        let executions = vec![BlockExecution { block: "program".into(), site, calls }];
        Blocks { executions, ..Blocks::default() }
    }
}

fn deadlock(end: &system::Outcome, id: &impl Fn(SiteId) -> SiteId) -> Finding {
    let wants = |step: Step| match step {
        Step::Do(Op::Acquire(lock, _)) => Some(lock),
        _ => None,
    };
    let mut holders: HashMap<LockId, u32> = HashMap::new();
    for event in &end.events {
        match event.op {
            Op::Acquire(lock, _) => drop(holders.insert(lock, event.thread.0)),
            Op::Release(lock, _) => drop(holders.remove(&lock)),
            _ => {}
        }
    }
    // Who waits for whom; a thread is part of it if it waits for itself in the end.
    let next = |t: u32| holders.get(&wants(end.pending[t as usize].step)?).copied();
    let is_part = |t: u32| {
        let mut at = next(t);
        for _ in &end.pending {
            at = at.filter(|&other| other != t).and_then(next).or(at.filter(|&other| other == t));
        }
        at == Some(t)
    };
    let waits = (0..).zip(&end.pending).filter_map(|(t, p)| Some((t, p, wants(p.step)?)));
    let part: Vec<Blocked> = waits
        .filter(|(thread, ..)| is_part(*thread))
        .map(|(thread, pending, lock)| Blocked {
            thread: ThreadId(thread),
            site: id(pending.site),
            wants: Role::Acquire(lock),
            mode: Mode::Exclusive,
            holds: Vec::new(),
            waits_for: None,
        })
        .collect();
    let places = part.iter().map(Blocked::place).collect();
    Finding::failure(Kind::Deadlock, Failure::Stuck { part, others: Vec::new() }, places)
}
