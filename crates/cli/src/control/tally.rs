//! Which endings depend on the schedule, and so are findings.
//!
//! A program that fails in the same way under every schedule has a bug, but none of concurrency. An exit
//! code other than 0 may be what the program always says: it is a failure only where other schedules
//! exit with 0, or if none does, otherwise than the first one.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_model::{Schedule, Status};

use selvedge_report::{Case, Control, Watched};

use super::ending::{self, Ending};

/// The endings of executions, told in the order of their numbers.
#[derive(Default, Debug)]
pub(crate) struct Tally {
    executions: u64,
    exits: BTreeMap<i32, Times>,
    /// The code of the first execution that ended by itself.
    first_exit: Option<i32>,
    faults: Vec<(Case, Times)>,
}

/// When something was first seen, and how often.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Times {
    pub(crate) count: u64,
    /// The number of the execution, from 1.
    pub(crate) first: u64,
    pub(crate) schedule: Schedule,
    /// The accesses that were scheduling points.
    pub(crate) watched: Arc<Vec<Watched>>,
}

/// A failure that depends on the schedule.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Found {
    pub(crate) fault: Case,
    pub(crate) times: Times,
    /// Of so many executions.
    pub(crate) of: u64,
}

impl Tally {
    /// Execution `number` ended so.
    pub(crate) fn add(
        &mut self,
        number: u64,
        ending: Ending,
        schedule: &Schedule,
        watched: &Arc<Vec<Watched>>,
    ) {
        self.executions += 1;
        let times = || Times {
            count: 0,
            first: number,
            schedule: schedule.clone(),
            watched: Arc::clone(watched),
        };
        match ending {
            Ending::Exit(code) => {
                self.first_exit.get_or_insert(code);
                self.exits.entry(code).or_insert_with(times).count += 1;
            }
            Ending::Failed(fault) => match self.faults.iter_mut().find(|(f, _)| f.id == fault.id) {
                Some((_, times)) => times.count += 1,
                None => self.faults.push((*fault, Times { count: 1, ..times() })),
            },
        }
    }

    /// How many executions there were.
    pub(crate) fn executions(&self) -> u64 {
        self.executions
    }

    /// Whether every execution was cut off.
    pub(crate) fn never_ends(&self) -> bool {
        self.exits.is_empty() && self.faults.iter().all(|(f, _)| f.subject.is_limit())
    }

    /// The exit code of an execution in which nothing went wrong, so far as that can be known.
    pub(crate) fn usual_exit(&self) -> Option<i32> {
        if self.exits.contains_key(&0) { Some(0) } else { self.first_exit }
    }

    /// The failures that depend on the schedule, in the order in which they were first seen.
    pub(crate) fn found(&self) -> Vec<Found> {
        let of = self.executions;
        let faults = self.faults.iter().filter(|(_, t)| t.count < of).cloned();
        let usual = self.usual_exit();
        let exits = self.exits.iter().filter_map(|(&code, times)| {
            let usual = usual.filter(|&usual| usual != code)?;
            Some((ending::exit(code, usual), times.clone()))
        });
        let mut found: Vec<Found> =
            faults.chain(exits).map(|(fault, times)| Found { fault, times, of }).collect();
        found.sort_by_key(|f| f.times.first);
        found
    }

    /// How the program fails under every schedule, if it does.
    pub(crate) fn always(&self) -> Option<&Case> {
        self.faults.iter().find(|(_, t)| t.count == self.executions).map(|(f, _)| f)
    }
}

impl Found {
    /// As a finding that has happened; that its schedule replays it is for others to say.
    pub(crate) fn finding(&self, by: &str) -> Case {
        let mut finding = ending::found(&self.fault, Status::Observed, by);
        finding.occurrences = self.times.count;
        finding.control = Some(Control {
            schedule: Some(self.times.schedule.to_string()),
            after: Some(self.times.first),
            attempts: 0,
            of: Some(self.of),
            watched: self.times.watched.to_vec(),
            ..Control::default()
        });
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exits(codes: &[i32]) -> Tally {
        let mut tally = Tally::default();
        for (i, &code) in codes.iter().enumerate() {
            tally.add(i as u64 + 1, Ending::Exit(code), &Schedule::default(), &Arc::default());
        }
        tally
    }

    fn subjects(tally: &Tally) -> Vec<(u64, u64, String)> {
        let found = tally.found();
        let subject = |f: &Found| selvedge_report::words::names(&f.fault.subject).remove(0);
        found.iter().map(|f| (f.times.first, f.times.count, subject(f))).collect()
    }

    #[test]
    fn a_code_is_a_failure_only_where_another_schedule_succeeds() {
        assert_eq!(subjects(&exits(&[3, 3, 3])), []);
        let told = "exit code 1, where other schedules exit with 0".to_owned();
        assert_eq!(subjects(&exits(&[0, 1, 0, 1])), [(2, 2, told.clone())]);
        assert_eq!(subjects(&exits(&[1, 1, 0])), [(1, 2, told)], "also if the first one fails");
        let other = "exit code 4, where other schedules exit with 3".to_owned();
        assert_eq!(subjects(&exits(&[3, 4, 3])), [(2, 1, other)]);
    }

    #[test]
    fn what_happens_always_is_no_finding() {
        let fault = ending::exit(9, 0);
        let mut tally = Tally::default();
        for number in 1..4 {
            let ending = Ending::Failed(Box::new(fault.clone()));
            tally.add(number, ending, &Schedule::default(), &Arc::default());
        }
        assert_eq!((tally.found(), tally.always()), (Vec::new(), Some(&fault)));
        tally.add(4, Ending::Exit(0), &Schedule::default(), &Arc::default());
        assert_eq!((tally.found().len(), tally.always()), (1, None));
    }
}
