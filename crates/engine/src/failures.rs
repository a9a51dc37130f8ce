//! Which endings are findings.
//!
//! A crash, a failed assertion or a hang that happens under every schedule is not a concurrency bug; threads that
//! wait for each other for ever are one under any schedule. An exit code other than 0 may be the program's normal
//! result: it is a failure only if another schedule exits with 0 or, if none does, if the first execution exited
//! with another code. An execution that was cut off says nothing.

use std::collections::BTreeMap;

use selvedge_model::{FindingId, Kind, Schedule};

use crate::ending::{Ending, Key};
use crate::executor::{Limit, Outcome};

/// The endings of executions, added in the order of their numbers.
#[derive(Debug)]
pub struct Failures<P> {
    executions: u64,
    exits: BTreeMap<i32, Times<P>>,
    /// The exit code of the first execution that did not fail.
    first_exit: Option<i32>,
    failures: Vec<(Ending, Times<P>)>,
    /// How many executions were cut off at each limit.
    undecided: BTreeMap<Limit, u64>,
}

/// When something was first seen, and how often.
#[derive(Clone, Debug)]
pub struct Times<P> {
    /// The number of executions.
    pub count: u64,
    /// The number of the first execution, from 1.
    pub first: u64,
    /// The schedule of the first execution.
    pub schedule: Schedule,
    /// The accesses that were scheduling points in it.
    pub points: P,
}

/// A failure that is a finding.
#[derive(Clone, Debug)]
pub struct Found<P> {
    /// How it fails.
    pub ending: Ending,
    /// Its identity.
    pub id: FindingId,
    /// When and how often.
    pub times: Times<P>,
    /// The number of all executions.
    pub of: u64,
}

impl<P> Default for Failures<P> {
    fn default() -> Failures<P> {
        Failures {
            executions: 0,
            exits: BTreeMap::new(),
            first_exit: None,
            failures: Vec::new(),
            undecided: BTreeMap::new(),
        }
    }
}

impl<P: Clone> Failures<P> {
    /// Adds the ending of execution `number`.
    pub fn add(&mut self, number: u64, ending: &Ending, schedule: &Schedule, points: &P) {
        self.executions += 1;
        let times = || Times {
            count: 0,
            first: number,
            schedule: schedule.clone(),
            points: points.clone(),
        };
        match ending.key {
            Key::Exited(code) => {
                self.first_exit.get_or_insert(code);
                self.exits.entry(code).or_insert_with(times).count += 1;
            }
            Key::Failed(_) => match self.failures.iter_mut().find(|(e, _)| e.key == ending.key) {
                Some((_, times)) => times.count += 1,
                None => self.failures.push((ending.clone(), Times { count: 1, ..times() })),
            },
            Key::Undecided => {
                if let Outcome::Undecided(limit) = ending.outcome {
                    *self.undecided.entry(limit).or_default() += 1;
                }
            }
        }
    }

    /// How many executions there were.
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// How many executions were cut off, by the limit.
    pub fn undecided(&self) -> &BTreeMap<Limit, u64> {
        &self.undecided
    }

    /// Whether no execution ended.
    pub fn never_ends(&self) -> bool {
        self.exits.is_empty() && self.failures.iter().all(|(e, _)| e.is_endless())
    }

    /// How many executions were not cut off.
    fn decided(&self) -> u64 {
        self.executions - self.undecided.values().sum::<u64>()
    }

    /// Whether a failure is a concurrency bug.
    fn is_found(&self, ending: &Ending, times: &Times<P>) -> bool {
        let is_deadlock = ending.finding().is_some_and(|f| f.kind == Kind::Deadlock);
        is_deadlock || times.count < self.decided()
    }

    /// The exit code of a normal execution: 0 if any execution exited with 0, else the first exit code.
    pub fn usual_exit(&self) -> Option<i32> {
        if self.exits.contains_key(&0) { Some(0) } else { self.first_exit }
    }

    /// The failures that are findings, in the order in which they were first seen.
    pub fn found(&self) -> Vec<Found<P>> {
        let of = self.executions;
        let failures = self.failures.iter().filter(|(e, t)| self.is_found(e, t)).cloned();
        let usual = self.usual_exit();
        let exits = self.exits.iter().filter_map(|(&code, times)| {
            let usual = usual.filter(|&usual| usual != code)?;
            Some((Ending::odd_exit(code, usual), times.clone()))
        });
        let mut found: Vec<Found<P>> = failures
            .chain(exits)
            .filter_map(|(ending, times)| match ending.key {
                Key::Failed(id) => Some(Found { ending, id, times, of }),
                Key::Exited(_) | Key::Undecided => None,
            })
            .collect();
        found.sort_by_key(|f| f.times.first);
        found
    }

    /// The failure that all executions ended with and that is not a finding, if there is one.
    pub fn always(&self) -> Option<&Ending> {
        self.failures.iter().find(|(e, t)| !self.is_found(e, t)).map(|(e, _)| e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exits(codes: &[i32]) -> Failures<()> {
        let mut failures = Failures::default();
        for (number, &code) in (1..).zip(codes) {
            failures.add(number, &Ending::exited(code), &Schedule::default(), &());
        }
        failures
    }

    fn found(failures: &Failures<()>) -> Vec<(u64, u64, Key)> {
        failures.found().iter().map(|f| (f.times.first, f.times.count, f.ending.key)).collect()
    }

    #[test]
    fn a_code_is_a_failure_only_where_another_schedule_succeeds() {
        assert_eq!(found(&exits(&[3, 3, 3])), []);
        let one = Ending::odd_exit(1, 0).key;
        assert_eq!(found(&exits(&[0, 1, 0, 1])), [(2, 2, one)]);
        assert_eq!(found(&exits(&[1, 1, 0])), [(1, 2, one)], "also if the first one fails");
        assert_eq!(found(&exits(&[3, 4, 3])), [(2, 1, Ending::odd_exit(4, 3).key)]);
    }

    #[test]
    fn what_happens_always_is_not_a_finding() {
        let failure = Ending::odd_exit(9, 0);
        let mut failures = Failures::default();
        for number in 1..4 {
            failures.add(number, &failure, &Schedule::default(), &());
        }
        assert!(failures.found().is_empty());
        assert_eq!(failures.always().map(|e| e.key), Some(failure.key));
        failures.add(4, &Ending::exited(0), &Schedule::default(), &());
        assert_eq!(failures.found().len(), 1);
        assert!(failures.always().is_none());
    }
}
