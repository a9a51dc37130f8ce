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
/// Of all schedules, the part that every scenario gets before one gets all.
const SWEEP: u64 = 10;
/// So many simpler scenarios are tried.
const SHRINKING: usize = 300;
/// Each under so many times the schedules that it took to find the failure, but at least [`LEAST`]: most simpler scenarios
/// do not fail, and would use up all schedules.
const PATIENCE: u64 = 4;
const LEAST: u64 = 50;

/// How much to try with a scenario.
#[derive(Clone, Copy)]
enum Effort {
    /// So many schedules; a failure is made shorter and explained.
    Full(u64),
    /// So many schedules, and only whether it fails.
    Shrinking(u64),
}

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
        let given = self.scenario.is_some();
        let count = if given { 1 } else { self.scenarios };
        let mut done: BTreeSet<u64> = BTreeSet::new();
        // An error that some scenario shows soon is found before another scenario has used up all its schedules.
        let first = self.schedules.div_ceil(SWEEP);
        let at_once = given || first == self.schedules;
        let sweeps = if at_once { vec![self.schedules] } else { vec![first, self.schedules] };
        let sweeps =
            sweeps.into_iter().flat_map(|schedules| (0..count).map(move |n| (schedules, n)));
        for (schedules, number) in sweeps {
            if done.contains(&number) {
                continue;
            }
            let is_last = schedules == self.schedules;
            let mut rng = Rng::of_execution(self.seed, number);
            let scenario = match &self.scenario {
                Some(scenario) => scenario.clone(),
                None => random::<T>(&size, &ops, &mut rng),
            };
            let plan = self.plan(&scenario, number);
            // The one of a scenario that is given is that of the check that found it.
            let seed = if given { self.seed } else { derive(self.seed, number) };
            match self.tried(&scenario, (plan, seed), here, Effort::Full(schedules)) {
                Ok(seen) => {
                    summary.executions += seen.executions;
                    if !seen.complete && !is_last {
                        continue;
                    }
                    done.insert(number);
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
                    done.insert(number);
                }
                Err(failure) => {
                    return Err(self.shrunk(scenario, (plan, seed), failure, (&ops, here)));
                }
            }
        }
        if let Some(undecided) = undecided.filter(|_| !decided) {
            panic!("selvedge: {undecided}");
        }
        summary.scenarios = count;
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
        effort: Effort,
    ) -> Result<explore::Summary, Box<Failure>> {
        let results = Arc::new(Results::<T>::new(here));
        let specified = self.model.map(|model| model(Arc::clone(&results)));
        let body = results.body(scenario);
        let (Effort::Full(schedules) | Effort::Shrinking(schedules)) = effort;
        let explore = Explore::new().strategy(plan).schedules(schedules).seed(seed);
        let criterion = Criterion { witness: self.witness, model: specified };
        let explore = explore.criterion(criterion);
        let explore = match effort {
            Effort::Full(_) => explore,
            Effort::Shrinking(_) => explore.minimise(0),
        };
        let body: Body = Arc::new(body);
        let seen = explore.clone().run_body(Arc::clone(&body), here)?;
        // An operation that waits for another one need not end alone.
        if self.obstruction_free && !scenario.all().any(T::waits) {
            let executions = schedules.div_ceil(4);
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
        let patience = (PATIENCE * failure.execution).max(LEAST);
        let effort = Effort::Shrinking(patience.min(self.schedules));
        'simpler: loop {
            for candidate in scenario.simpler(ops, place) {
                if left == 0 {
                    break 'simpler;
                }
                left -= 1;
                if let Err(other) = self.tried(&candidate, (plan, seed), here, effort)
                    && other.kind() == kind
                    && !(is_stuck(&other) && candidate.all().any(T::waits))
                {
                    scenario = candidate;
                    continue 'simpler;
                }
            }
            break;
        }
        if let Err(shortest) =
            self.tried(&scenario, (plan, seed), here, Effort::Full(self.schedules))
        {
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
