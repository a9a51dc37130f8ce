//! The directed strategy for a target of any kind.
//!
//! Guarantee: [`Directed::reached`] only if the execution that began last was in the target's state, which
//! the strategy itself has seen: [`RaceFuzzer::reached`], [`DeadlockFuzzer::reached`],
//! [`AtomFuzzer::violations`]. Nothing else confirms a finding.

use selvedge_model::{Event, SiteId, Target, ThreadId};

use crate::{
    Abstraction, AtomFuzzer, Choice, DeadlockFuzzer, Pending, RaceFuzzer, Rng, Strategy, Turned,
    Wraps,
};

/// How many directed executions try to confirm a prediction, by default.
pub const ATTEMPTS: u64 = 20;

/// Aims at a target.
#[allow(missing_debug_implementations)]
pub enum Directed<A> {
    /// At two accesses, or two uses of a lock or an atomic.
    Race(RaceFuzzer),
    /// At a cycle of waiting threads.
    Deadlock(DeadlockFuzzer<A>),
    /// At a step between two others.
    Split(AtomFuzzer),
}

impl<A: Abstraction> Directed<A> {
    /// Aims at `target`. `names` are those of the execution that the target comes from, `now` those of
    /// the one that runs.
    pub fn new(target: &Target, names: &dyn Abstraction, now: A) -> Directed<A> {
        match target {
            Target::Race { first, second } => Directed::Race(RaceFuzzer::new(*first, *second)),
            Target::Contention { first, second } => {
                Directed::Race(RaceFuzzer::high_level(*first, *second))
            }
            Target::Deadlock(cycle) => Directed::Deadlock(DeadlockFuzzer::new(cycle, names, now)),
            Target::Split { first, second, between, region, .. } => {
                let split = AtomFuzzer::aimed([*first, *second], *between);
                // What is claimed of a region is claimed of each execution of it.
                Directed::Split(if region.is_some() { split.inside_region() } else { split })
            }
        }
    }

    /// Whether the execution has been in the target's state.
    pub fn reached(&self) -> bool {
        match self {
            Directed::Race(race) => race.reached().is_some(),
            Directed::Deadlock(deadlock) => !deadlock.reached().is_empty(),
            Directed::Split(split) => !split.violations().is_empty(),
        }
    }

    /// For a race: the two threads and their sites, the one that went first first.
    pub fn order(&self) -> Option<[(ThreadId, SiteId); 2]> {
        match self {
            Directed::Race(race) => race.order(),
            Directed::Deadlock(_) | Directed::Split(_) => None,
        }
    }

    /// Whether the execution was in the target's state, whichever strategy chose its steps.
    pub fn witnessed(&self) -> bool {
        match self {
            Directed::Race(race) => race.witnessed().is_some(),
            Directed::Deadlock(_) | Directed::Split(_) => self.reached(),
        }
    }

    /// For a race that was reached: repeats the execution with the two sides swapped.
    pub fn turned(&self) -> Option<Turned> {
        match self {
            Directed::Race(race) => race.turned(),
            Directed::Deadlock(_) | Directed::Split(_) => None,
        }
    }

    /// How many threads of this execution were paused and did not reach the target.
    pub fn thrashes(&self) -> u64 {
        match self {
            Directed::Race(race) => race.thrashes(),
            Directed::Deadlock(deadlock) => deadlock.thrashes(),
            Directed::Split(split) => split.thrashes(),
        }
    }
}

impl<A: Abstraction> Wraps for Directed<A> {
    fn wrapped(&self) -> &dyn Strategy {
        match self {
            Directed::Race(race) => race,
            Directed::Deadlock(deadlock) => deadlock,
            Directed::Split(split) => split,
        }
    }

    fn wrapped_mut(&mut self) -> &mut dyn Strategy {
        match self {
            Directed::Race(race) => race,
            Directed::Deadlock(deadlock) => deadlock,
            Directed::Split(split) => split,
        }
    }
}

/// Lets one strategy choose, and watches whether a target is reached.
#[allow(missing_debug_implementations)]
pub struct Witness<S, A> {
    /// The strategy that chooses.
    pub strategy: S,
    watcher: Directed<A>,
}

impl<S: Strategy, A: Abstraction> Witness<S, A> {
    /// Watches for what `target` aims at, with `names` and `now` as in [`Directed::new`].
    pub fn new(strategy: S, target: &Target, names: &dyn Abstraction, now: A) -> Witness<S, A> {
        Witness { strategy, watcher: Directed::new(target, names, now) }
    }

    /// Whether the execution has been in the target's state.
    pub fn witnessed(&self) -> bool {
        self.watcher.witnessed()
    }
}

impl<S: Strategy, A: Abstraction> Strategy for Witness<S, A> {
    fn begin(&mut self, rng: Rng) -> bool {
        self.watcher.begin(Rng::default()) && self.strategy.begin(rng)
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.strategy.choose(choice)
    }
    fn number(&mut self, below: u32) -> u32 {
        self.strategy.number(below)
    }
    fn follows_steps(&self) -> bool {
        true
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.watcher.step(thread, pending);
        if self.strategy.follows_steps() {
            self.strategy.step(thread, pending);
        }
    }
    fn observe(&mut self, event: &Event) {
        self.watcher.observe(event);
        if self.strategy.follows_steps() {
            self.strategy.observe(event);
        }
    }
    fn end(&mut self, pending: &[Pending]) {
        self.watcher.end(pending);
        self.strategy.end(pending);
    }
}
