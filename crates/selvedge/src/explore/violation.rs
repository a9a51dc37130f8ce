//! Two executions of a deterministic block that differ: replayed, explained and shown.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use selvedge_engine::determinism::{Determinism, Settled, Shown, Violation};
use selvedge_engine::replay::follow;
use selvedge_engine::{
    Ask, Cause, Effort, InMemory, Noted, Replayed, Sought, States, Wrong, causes,
};
use selvedge_model::{Schedule, Site};
use selvedge_report::{Case, Note, State, told, words};

use super::kept::File;
use super::{Check, Explore, Summary};
use crate::failure::Failure;
use crate::report::{self, Report};
use crate::values::Callbacks;

/// What a check could not decide.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Undecided {
    /// Executions took all the steps that they may and were cut off, although threads still made progress.
    CutOff {
        /// How many executions.
        executions: u64,
        /// The limit, [`Explore::max_steps`](crate::Explore::max_steps).
        steps: usize,
    },
    /// An execution began the block and did not end it.
    Unclosed {
        /// The name of the block.
        block: String,
        /// Where it began.
        site: Site,
    },
    /// No two executions of the block could be compared.
    Incomparable {
        /// The name of the block.
        block: String,
        /// How many executions of it ended.
        executions: u64,
    },
    /// Something is observed, and in no execution were two threads in atomic blocks at a time.
    NothingOverlapped,
    /// Something is observed, and no serial order of atomic blocks could be executed.
    Unforced {
        /// For how many executions.
        interleavings: u64,
        /// Of how many in which blocks overlapped.
        of: u64,
    },
    /// Something is observed, and atomic blocks overlapped so much that there are too many serial orders.
    TooMany {
        /// In how many executions.
        interleavings: u64,
        /// Of how many in which blocks overlapped.
        of: u64,
    },
    /// There are more sequential executions than were run, and none of those returned what these executions did.
    Sequential {
        /// How many executions.
        executions: u64,
        /// How many sequential executions were run.
        tried: u64,
    },
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undecided::CutOff { executions, steps } => write!(
                f,
                "{} cut off after {steps} steps, so it is not known how they end. Raise `Explore::max_steps` if \
                 the test is just long; otherwise threads keep each other busy for ever",
                match executions {
                    1 => "1 execution was".to_owned(),
                    n => format!("{n} executions were"),
                }
            ),
            Undecided::Sequential { executions, tried } => write!(
                f,
                "what {executions} executions returned was not among the results of {tried} sequential executions, and there \
                 are more: set Explore::sequential higher"
            ),
            Undecided::Unclosed { block, site } => write!(
                f,
                "the deterministic block {block:?}, begun at {site}, was never left: its results were not compared"
            ),
            Undecided::NothingOverlapped => f.write_str(
                "something is observed, but no two threads were in atomic blocks at the same time, in any \
                 execution: nothing was checked",
            ),
            Undecided::Unforced { interleavings, of } => write!(
                f,
                "no serial order of atomic blocks could be executed for {interleavings} of {of} interleavings: \
                 blocks wait for each other, or executions have other blocks; whether they are atomic is not known"
            ),
            Undecided::TooMany { interleavings, of } => write!(
                f,
                "atomic blocks overlapped so much that not all serial orders were tried, in {interleavings} of \
                 {of} interleavings: use the strategy `interrupt`"
            ),
            Undecided::Incomparable { block, executions: 1 } => write!(
                f,
                "the deterministic block {block:?} was executed once: there was nothing to compare it with"
            ),
            Undecided::Incomparable { block, executions } => write!(
                f,
                "no two of the {executions} executions of the deterministic block {block:?} could be compared: \
                 each assumed something else"
            ),
        }
    }
}

/// Nothing compared yet, except with what is kept in a file, if there is one.
pub(super) fn determinism(kept: Option<&Path>) -> Determinism<()> {
    let states: Box<dyn States> = match kept.map(File::open) {
        Some(Ok(file)) => Box::new(file),
        Some(Err(wrong)) => panic!("selvedge: {wrong}"),
        None => Box::<InMemory>::default(),
    };
    Determinism::new(states, Box::new(Callbacks))
}

/// Panics if blocks were not used as they should be.
pub(super) fn refuse(wrong: Option<&Wrong>) {
    if let Some(wrong) = wrong {
        panic!("selvedge: {wrong}");
    }
}

impl Summary {
    /// What could not be decided. Where every schedule was seen, blocks need not be comparable.
    pub(super) fn undecided(&mut self, determinism: &Determinism<()>, max_steps: usize) {
        if self.cut_off > 0 {
            let (executions, steps) = (self.cut_off, max_steps);
            self.undecided.push(Undecided::CutOff { executions, steps });
        }
        let unclosed = determinism
            .unclosed
            .iter()
            .map(|u| Undecided::Unclosed { block: u.block.to_string(), site: u.site.clone() });
        self.undecided.extend(unclosed);
        if !self.complete {
            let incomparable = determinism.incomparable().map(|(block, known)| {
                Undecided::Incomparable { block: block.to_owned(), executions: known.executions }
            });
            self.undecided.extend(incomparable);
        }
    }
}

/// What is known after both schedules were replayed.
struct Explained {
    settled: Settled,
    causes: Vec<Cause>,
}

impl Check {
    /// Replays both executions, makes their schedules shorter, and looks for what they come from.
    pub(super) fn violated(&self, violation: &Violation<()>) -> Box<Failure> {
        let Explore { minimise, plan, seed, .. } = &self.options;
        let effort = Effort { executions: minimise / 2, time: Duration::from_secs(30) };
        let theirs = violation.clone();
        let Explained { settled, causes } = self.on_a_thread(move |worker| {
            let Ok(settled) = theirs.settle(worker, effort);
            let causes = match &settled {
                Settled::Shown(shown) => {
                    let Ok(causes) = causes(worker, &theirs, shown);
                    causes
                }
                Settled::Otherwise(..) | Settled::Elsewhere => Vec::new(),
            };
            Explained { settled, causes }
        });
        let how = format!("strategy {plan}, seed {seed}");
        match settled {
            Settled::Shown(shown) => self.differs(violation, Some(&shown), &causes, (&how, None)),
            Settled::Otherwise(..) => {
                let note = "The same schedules did not differ again: the test has uncontrolled \
                            nondeterminism, such as state kept in statics";
                self.differs(violation, None, &causes, (&how, Some(note)))
            }
            Settled::Elsewhere => self.differs(violation, None, &causes, (&how, None)),
        }
    }

    fn differs(
        &self,
        violation: &Violation<()>,
        shown: Option<&Shown>,
        causes: &[Cause],
        (how, note): (&str, Option<&str>),
    ) -> Box<Failure> {
        let (finding, symbols) = violation.finding(shown);
        let mut case = report::case(&finding, &symbols);
        let differing = shown.map_or(&violation.differing, |shown| &shown.differing);
        case.states =
            std::iter::once(&*differing.first).chain(&differing.later).map(State::of).collect();
        case.notes.extend(violation.earlier.build.clone().map(Note::OtherBuild));
        case.notes.extend(causes.iter().map(cause));
        let schedules: Vec<Schedule> = match shown {
            Some(shown) => shown.sides.iter().map(|s| s.execution.schedule.clone()).collect(),
            None => {
                let earlier = violation.earlier.schedule.clone();
                earlier.into_iter().chain([violation.schedule.clone()]).collect()
            }
        };
        let critical: Vec<Site> =
            causes.iter().flat_map(Cause::sites).chain([differing.site().clone()]).collect();
        let text = report::render(&Report {
            test: self.test.as_deref(),
            execution: violation.number,
            how,
            words: &told::case(&case),
            schedules: &schedules,
            shown: shown.map(|s| s.sides.iter().collect()).unwrap_or_default(),
            critical: &critical,
            note,
        });
        let schedule = schedules.last().cloned().unwrap_or_default();
        Box::new(Failure { case, execution: violation.number, schedule, schedules, text })
    }

    /// Replays two schedules and compares what their blocks ensure.
    pub(super) fn replay_two(
        &self,
        first: &Schedule,
        second: &Schedule,
    ) -> Result<Summary, Box<Failure>> {
        let schedules = [first.clone(), second.clone()];
        let replayed: Vec<Replayed> = self.on_a_thread(move |worker| {
            let ask = Ask { noted: Noted::Events, ..Ask::default() };
            let again = |schedule: &Schedule| {
                let Ok(again) = follow(worker, schedule, &Sought::default(), &ask);
                again
            };
            schedules.iter().map(again).collect()
        });
        let mut determinism = determinism(None);
        let mut summary = Summary::default();
        for (number, replayed) in (1..).zip(&replayed) {
            let Replayed { execution, ending, .. } = replayed;
            summary.executions += 1;
            summary.longest = summary.longest.max(execution.choices);
            summary.steps += execution.steps as u64;
            summary.cut_off += u64::from(execution.cut_off);
            let said = (&*execution.blocks, ending.key);
            determinism.add(number, said, (&execution.schedule, &()));
            if let Some(divergence) = replayed.divergence {
                let how = words::divergence(&divergence);
                eprintln!("selvedge: the replay of schedule {number} diverged {how}.");
            }
        }
        refuse(determinism.wrong.as_ref());
        match determinism.violations.pop() {
            Some(violation) => Err(self.violated(&violation)),
            None => {
                summary.undecided(&determinism, self.options.max_steps);
                Ok(summary)
            }
        }
    }
}

fn cause(of: &Cause) -> Note {
    let case: Case = report::case(&of.finding, &Arc::clone(&of.symbols));
    Note::CausedBy { kind: case.kind, subject: case.subject, sites: of.sites() }
}
