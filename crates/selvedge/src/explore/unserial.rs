//! An execution that no serial one explains: replayed, made shorter and shown.

use std::time::Duration;

use selvedge_engine::Effort;
use selvedge_engine::linearity::{self, Linearity, Settled, Shown, Violation};
use selvedge_model::{Site, Symbols, ThreadId};
use selvedge_report::{Serial, told, words};
use selvedge_specs::ThreadName;

use super::violation::Undecided;
use super::{Check, Explore, Summary};
use crate::failure::Failure;
use crate::report::{self, Report};

impl Summary {
    /// What is not known about atomic blocks although something is observed.
    pub(super) fn unserial(&mut self, linearity: &Linearity<()>) {
        self.conflicts = linearity.conflicts.len() as u64;
        self.conflicting.clone_from(&linearity.conflicts);
        self.interleavings = linearity.interleavings;
        self.undecided.extend(linearity.undecided().map(|why| match why {
            linearity::Undecided::NothingOverlapped => Undecided::NothingOverlapped,
            linearity::Undecided::Unforced { interleavings, of } => {
                Undecided::Unforced { interleavings, of }
            }
            linearity::Undecided::TooMany { interleavings, of } => {
                Undecided::TooMany { interleavings, of }
            }
        }));
    }
}

impl Check {
    /// Replays the execution, makes its schedule shorter, and looks for serial executions again.
    pub(super) fn unexplained(&self, violation: &Violation<()>) -> Box<Failure> {
        let Explore { minimise, plan, seed, schedules, .. } = &self.options;
        let effort = Effort { executions: minimise / 2, time: Duration::from_secs(30) };
        let theirs = violation.clone();
        let (criterion, left) = (self.options.criterion.clone(), *schedules);
        let settled = self.on_a_thread(move |worker| {
            let Ok(settled) = theirs.settle(worker, (&criterion, left), effort);
            settled
        });
        let how = format!("strategy {}, seed {seed}", self.phase.unwrap_or(*plan));
        match settled {
            Settled::Shown(shown) => self.unserial(violation, Some(&shown), &how, None),
            Settled::Otherwise(..) => {
                let note = "The same schedule did not show it again: the test has uncontrolled \
                            nondeterminism, such as state kept in statics";
                self.unserial(violation, None, &how, Some(note))
            }
        }
    }

    fn unserial(
        &self,
        violation: &Violation<()>,
        shown: Option<&Shown>,
        how: &str,
        note: Option<&str>,
    ) -> Box<Failure> {
        let (finding, symbols) = violation.finding(shown);
        let mut case = report::case(&finding, &symbols);
        let judged = shown.map_or(&violation.judged, |shown| &shown.judged);
        let witness = self.options.criterion.witness;
        case.serial =
            Some(Serial::new(witness, &judged.tried, |name| thread(name, shown, &symbols)));
        let schedule = match shown {
            Some(shown) => shown.replayed.execution.schedule.clone(),
            None => violation.schedule.clone(),
        };
        let critical: Vec<Site> = case.critical();
        let serial = case.serial.iter().flat_map(words::serial);
        let orders: String = serial.map(|line| format!("\n  {line}")).collect();
        let text = report::render(&Report {
            test: self.test.as_deref(),
            execution: violation.number,
            how,
            words: &format!("{}\nThe serial orders:{orders}", told::case(&case)),
            schedules: std::slice::from_ref(&schedule),
            shown: shown.map(|s| &s.replayed).into_iter().collect(),
            critical: &critical,
            note,
        });
        let schedules = vec![schedule.clone()];
        Box::new(Failure { case, execution: violation.number, schedule, schedules, text })
    }
}

fn thread(name: ThreadName, shown: Option<&Shown>, symbols: &Symbols) -> String {
    let known = |s: &Shown| s.threads.iter().find(|t| t.0 == name).map(|t: &(_, ThreadId)| t.1);
    shown.and_then(known).map_or_else(|| "a thread".to_owned(), |id| symbols.thread(id))
}
