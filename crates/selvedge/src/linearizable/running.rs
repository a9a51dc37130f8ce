//! How a check of a data structure runs: scenario after scenario, and if one fails, simpler ones.

use std::any::type_name;
use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::Arc;

use selvedge_engine::Criterion;
use selvedge_explore::rng::derive;
use selvedge_explore::{Plan, Rng};
use selvedge_model::Kind;

use super::results::Results;
use super::scenario::{Size, random};
use super::{Check, Linearizable, Scenario, Summary};
use crate::Explore;
use crate::exec::worker::Body;
use crate::explore;
use crate::explore::Undecided;
use crate::failure::Failure;

/// How scenarios run that are not small.
const STRATEGIES: [&str; 4] = ["interrupt", "mix", "interrupt:2", "pct"];
/// So many simpler scenarios are tried.
const SHRINKING: usize = 300;

impl<T: Linearizable> Check<T> {
    pub(super) fn run_at(self, here: &'static Location<'static>) -> Result<Summary, Box<Failure>> {
        let ops = T::ops();
        assert!(!ops.is_empty(), "`ops()` of {} is empty, at {here}", type_name::<T>());
        let mut summary = Summary { complete: true, ..Summary::default() };
        let mut conflicts: BTreeSet<Box<str>> = BTreeSet::new();
        let mut undecided = None;
        let mut decided = false;
        let size =
            Size { threads: self.threads, ops: self.ops, before: self.before, after: self.after };
        let count = if self.scenario.is_some() { 1 } else { self.scenarios };
        for number in 0..count {
            let mut rng = Rng::of_execution(self.seed, number);
            let scenario = match &self.scenario {
                Some(scenario) => scenario.clone(),
                None => random::<T>(&size, &ops, &mut rng),
            };
            let plan = self.plan(&scenario, number);
            // The one of a scenario that is given is that of the check that found it.
            let given = self.scenario.is_some();
            let seed = if given { self.seed } else { derive(self.seed, number) };
            summary.scenarios += 1;
            match self.tried(&scenario, (plan, seed), here, true) {
                Ok(seen) => {
                    summary.executions += seen.executions;
                    summary.complete &= seen.complete;
                    conflicts.extend(seen.conflicting);
                    decided |= seen.undecided.is_empty();
                    for why in seen.undecided {
                        match why {
                            Undecided::Unforced { .. } => panic!("selvedge: {why}"),
                            _ => summary.complete = false,
                        }
                        undecided.get_or_insert(why);
                    }
                }
                // Operations that wait may wait for ever: for one that the scenario does not have.
                Err(failure) if is_stuck(&failure) && scenario.all().any(T::waits) => {
                    summary.complete = false;
                }
                Err(failure) => {
                    return Err(self.shrunk(scenario, (plan, seed), failure, (&ops, here)));
                }
            }
        }
        if let Some(undecided) = undecided.filter(|_| !decided) {
            panic!("selvedge: {undecided}");
        }
        summary.conflicts = conflicts.len() as u64;
        Ok(summary)
    }

    /// The strategy of a scenario.
    fn plan(&self, scenario: &Scenario<T::Op>, number: u64) -> Plan {
        let is_small = scenario.parallel.len() <= 2 && scenario.overlapping() <= 2;
        let in_turn = STRATEGIES[number as usize % STRATEGIES.len()];
        self.strategy.unwrap_or_else(|| Plan::from(if is_small { "dpor" } else { in_turn }))
    }

    /// Runs a scenario under many schedules.
    fn tried(
        &self,
        scenario: &Scenario<T::Op>,
        (plan, seed): (Plan, u64),
        here: &'static Location<'static>,
        explains: bool,
    ) -> Result<explore::Summary, Box<Failure>> {
        let results = Arc::new(Results::<T>::new(here));
        let specified = self.model.map(|model| model(Arc::clone(&results)));
        let body = results.body(scenario);
        let explore = Explore::new().strategy(plan).schedules(self.schedules).seed(seed);
        let criterion = Criterion { witness: self.witness, model: specified };
        let explore = explore.criterion(criterion);
        let explore = if explains { explore } else { explore.minimise(0) };
        let body: Body = Arc::new(body);
        let seen = explore.clone().run_body(Arc::clone(&body), here)?;
        // An operation that waits for another one need not end alone.
        if self.obstruction_free && !scenario.all().any(T::waits) {
            let executions = self.schedules.div_ceil(4);
            if let Some(failure) = explore.obstructed(body, here, executions) {
                return Err(failure);
            }
        }
        Ok(seen)
    }

    /// Looks for a simpler scenario that fails in the same way, and shows it.
    fn shrunk(
        &self,
        mut scenario: Scenario<T::Op>,
        (plan, seed): (Plan, u64),
        mut failure: Box<Failure>,
        (ops, here): (&[T::Op], &'static Location<'static>),
    ) -> Box<Failure> {
        let names: Vec<String> = ops.iter().map(|op| format!("{op:?}")).collect();
        let place = |op: &T::Op| {
            let name = format!("{op:?}");
            names.iter().position(|n| *n == name).unwrap_or(names.len())
        };
        let mut left = if self.scenario.is_some() { 0 } else { SHRINKING };
        let kind = failure.kind();
        'simpler: loop {
            for candidate in scenario.simpler(ops, place) {
                if left == 0 {
                    break 'simpler;
                }
                left -= 1;
                if let Err(other) = self.tried(&candidate, (plan, seed), here, false)
                    && other.kind() == kind
                    && !(is_stuck(&other) && candidate.all().any(T::waits))
                {
                    scenario = candidate;
                    continue 'simpler;
                }
            }
            break;
        }
        if let Err(shortest) = self.tried(&scenario, (plan, seed), here, true) {
            failure = shortest;
        }
        let lines: String = scenario.lines().iter().map(|line| format!("\n  {line}")).collect();
        failure.text = format!(
            "{}\n\nThe scenario:{lines}\nAs a test:\n    selvedge::linearizable::check::<{}>()\n        \
             .scenario({})\n        .strategy(\"{plan}\").schedules({}).seed({})\n        .check();",
            failure.text,
            type_name::<T>(),
            scenario.expression(),
            self.schedules,
            seed,
        );
        failure
    }
}

/// Whether threads wait for ever.
fn is_stuck(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::Deadlock | Kind::Hang)
}
