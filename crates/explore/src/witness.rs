//! Watches an execution that another strategy decides, and tells whether it was in the state that a
//! target describes. So the schedule of a confirmed finding can be replayed, shortened and replayed
//! after an edit, and each time it is known, not assumed, that the finding is still there.
//!
//! | target | seen when |
//! | --- | --- |
//! | race | two threads that can both go on are about to make conflicting accesses at the two sites |
//! | deadlock | at the end, threads wait in a cycle, at the sites of the target's cycle |
//! | split | another thread's step has come between the two steps, as [`AtomFuzzer`] has it |
//!
//! Guarantee: never says that a target was reached in an execution that was not in its state. May miss
//! a race between two choices, if neither of the accesses is a scheduling point.
//!
//! Cost: O(n²) for a race's choices, with n threads that can go on; as the fuzzers otherwise.

use selvedge_model::{Event, SiteId, Target, ThreadId};

use crate::races::race;
use crate::{AtomFuzzer, Choice, DeadlockFuzzer, Pending, Strategy, deadlocks};

/// Lets another strategy decide, and watches for a target.
#[derive(Debug)]
pub struct Witness<S> {
    /// Who decides.
    pub strategy: S,
    watch: Watch,
    threads: Vec<ThreadId>,
}

enum Watch {
    Race(SiteId, SiteId),
    Deadlock(Vec<SiteId>, DeadlockFuzzer<deadlocks::Trivial>),
    Split(AtomFuzzer),
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Watch::Race(..) => "Race",
            Watch::Deadlock(..) => "Deadlock",
            Watch::Split(_) => "Split",
        })
    }
}

impl<S: Strategy> Witness<S> {
    /// Watches for `target` while `strategy` decides.
    pub fn new(strategy: S, target: &Target) -> Witness<S> {
        let watch = match target {
            Target::Race { first, second } => Watch::Race(*first, *second),
            Target::Deadlock(cycle) => {
                let trivial = deadlocks::Trivial;
                let fuzzer = DeadlockFuzzer::new(cycle, &trivial, trivial, 0, u64::MAX);
                Watch::Deadlock(sorted(cycle.iter().map(|w| w.wants.site)), fuzzer)
            }
            Target::Split { first, second, between, .. } => {
                Watch::Split(AtomFuzzer::aimed([*first, *second], *between, 0, u64::MAX))
            }
        };
        Witness { strategy, watch, threads: Vec::new() }
    }

    /// The threads that were in the target's state in this execution; none if it was not reached.
    pub fn reached(&self) -> &[ThreadId] {
        &self.threads
    }

    fn look(&mut self, choice: &Choice<'_>) {
        let Watch::Race(first, second) = self.watch else { return };
        if !self.threads.is_empty() {
            return;
        }
        let at = |t: ThreadId, site| choice.next(t).site == site;
        for &a in choice.enabled.iter().filter(|&&a| at(a, first)) {
            for &b in choice.enabled.iter().filter(|&&b| b != a && at(b, second)) {
                if race(choice.next(a).step, choice.next(b).step) {
                    self.threads = vec![a, b];
                    return;
                }
            }
        }
    }
}

fn sorted(sites: impl Iterator<Item = SiteId>) -> Vec<SiteId> {
    let mut sites: Vec<SiteId> = sites.collect();
    sites.sort_unstable();
    sites
}

impl<S: Strategy> Strategy for Witness<S> {
    fn begin(&mut self) -> bool {
        self.threads.clear();
        match &mut self.watch {
            Watch::Race(..) => {}
            Watch::Deadlock(_, fuzzer) => drop(fuzzer.begin()),
            Watch::Split(fuzzer) => drop(fuzzer.begin()),
        }
        self.strategy.begin()
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.look(choice);
        self.strategy.choose(choice)
    }

    fn follows_steps(&self) -> bool {
        !matches!(self.watch, Watch::Race(..)) || self.strategy.follows_steps()
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.strategy.step(thread, pending);
        match &mut self.watch {
            Watch::Race(..) => {}
            Watch::Deadlock(_, fuzzer) => fuzzer.step(thread, pending),
            Watch::Split(fuzzer) => {
                fuzzer.step(thread, pending);
                if let Some(violation) = fuzzer.violations().first() {
                    self.threads = vec![violation.victim, violation.intruder];
                }
            }
        }
    }

    fn observe(&mut self, event: &Event) {
        self.strategy.observe(event);
        match &mut self.watch {
            Watch::Race(..) => {}
            Watch::Deadlock(_, fuzzer) => fuzzer.observe(event),
            Watch::Split(fuzzer) => fuzzer.observe(event),
        }
    }

    fn end(&mut self, pending: &[Pending]) {
        self.strategy.end(pending);
        if let Watch::Deadlock(sites, fuzzer) = &mut self.watch {
            fuzzer.end(pending);
            let cycle = fuzzer.reached();
            if sorted(cycle.iter().map(|t| pending[t.index()].site)) == *sites {
                self.threads = cycle.to_vec();
            }
        }
    }
}
