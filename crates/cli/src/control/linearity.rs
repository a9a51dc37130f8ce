//! Atomic blocks of controlled executions: those that no serial execution explains, as cases.

use clap::Args;
use selvedge_engine::linearity::{Settled, Shown, Undecided, Violation};
use selvedge_engine::{Campaign, Criterion, Witness, Wrong};
use selvedge_report::{Case, Control, Diverged, How, NotReplayed, Note, Remark, Serial};
use selvedge_runtime::control::WatchList;
use selvedge_specs::ThreadName;
use selvedge_specs::atomic::Interleavings;

use super::cases::{accesses, effort, interleaving, outcome};
use super::program::Native;
use crate::deadline::Deadline;
use crate::exit::{Failure, unless_interrupted};
use crate::store::Journal;

/// Options about serial executions of atomic blocks.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SerialOptions {
    /// Which serial executions explain what atomic blocks show: linearizable, serializable or
    /// atomic
    #[arg(long, default_value = "linearizable")]
    witness: Witness,
}

impl SerialOptions {
    /// What decides about what a program observes.
    pub(crate) fn criterion(self) -> Criterion {
        Criterion { witness: self.witness, model: None }
    }
}

/// What is wrong with the program's use of atomic blocks, as the reason why there is no verdict.
pub(crate) fn refuse(campaign: &Campaign<Native>) -> Result<(), Failure> {
    let linearity = &campaign.linearity;
    let wrong = linearity.wrong.clone().or_else(|| linearity.misuse().map(Wrong::Atomic));
    wrong.map_or(Ok(()), |wrong| Err(Failure::Usage(wrong.to_string())))
}

/// How interleavings were judged, if anything was observed.
pub(crate) fn interleavings(campaign: &Campaign<Native>) -> Option<Interleavings> {
    let linearity = &campaign.linearity;
    linearity.observed.as_ref().map(|_| linearity.interleavings)
}

/// What is not known about atomic blocks although something is observed.
pub(crate) fn undecided(campaign: &Campaign<Native>) -> Option<Remark> {
    campaign.linearity.undecided().map(|why| match why {
        Undecided::NothingOverlapped => Remark::NothingOverlapped,
        Undecided::Unforced { interleavings, of } => Remark::Unforced { interleavings, of },
        Undecided::TooMany { interleavings, of } => Remark::TooManyOrders { interleavings, of },
    })
}

/// The cases of the violations that a campaign has seen. One is confirmed if its schedule shows it again.
pub(crate) fn violations(
    campaign: &Campaign<Native>,
    criterion: &Criterion,
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<Vec<Case>, Failure> {
    let violations = &campaign.linearity.violations;
    let mut executor = match (&violations[..], deadline.signal()) {
        ([], _) | (_, Some(_)) => None,
        _ => unless_interrupted(campaign.executor())?,
    };
    let mut cases = Vec::new();
    for (i, violation) in violations.iter().enumerate() {
        let settled = match (&mut executor, effort(deadline, 1.0, violations.len() - i)) {
            (Some(executor), Some(effort)) => {
                let how = (criterion, campaign.budget.schedules);
                unless_interrupted(violation.settle(executor, how, effort))?
            }
            _ => None,
        };
        let case = match settled {
            Some(Settled::Shown(shown)) => case(violation, criterion.witness, Some(&shown)),
            Some(Settled::Otherwise(ending, divergence)) => {
                let (outcome, diverged) = (outcome(&ending), divergence.map(Diverged::At));
                noted(
                    case(violation, criterion.witness, None),
                    NotReplayed::Otherwise { outcome, diverged },
                )
            }
            None => noted(case(violation, criterion.witness, None), NotReplayed::Interrupted),
        };
        journal.add(&case);
        cases.push(case);
    }
    Ok(cases)
}

fn noted(mut case: Case, why: NotReplayed) -> Case {
    case.notes.push(Note::NotReplayed(why));
    case
}

/// The case of a violation, with its schedule and the serial orders that were tried.
fn case(violation: &Violation<WatchList>, witness: Witness, shown: Option<&Shown>) -> Case {
    let (finding, symbols) = violation.finding(shown);
    let mut case = Case::new(&finding, &symbols);
    let judged = shown.map_or(&violation.judged, |shown| &shown.judged);
    let thread = |name: ThreadName| {
        let known = shown.and_then(|s| s.threads.iter().find(|t| t.0 == name));
        known.map_or_else(|| "a thread".to_owned(), |(_, id)| symbols.thread(*id))
    };
    case.serial = Some(Serial::new(witness, &judged.tried, thread));
    let schedule = shown.map_or(&violation.schedule, |s| &s.replayed.execution.schedule);
    let critical = case.critical();
    case.control = Some(Control {
        schedule: Some(schedule.to_string()),
        after: Some(violation.number),
        watched: accesses(&violation.points),
        how: shown.map(|shown| How::Rows(interleaving(&shown.replayed, &critical))),
        ..Control::default()
    });
    case
}
