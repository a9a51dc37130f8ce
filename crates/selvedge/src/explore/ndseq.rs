//! Parallel as if sequential: whatever a body returns under some schedule, a sequential execution must return.
//!
//! Every started thread is a task. Each execution is judged by the sequential ones (definition 17 of the source of
//! [`selvedge_engine::twins`]): there is no data flow in which to look for a reason first.

use std::fmt::Debug;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use selvedge_engine::{Ask, Execution, Executor, Noted, Outcome, Twin, Twins};
use selvedge_explore::sequential::Tasks;
use selvedge_explore::{Coverage, Rng};
use selvedge_model::{
    Failure as Failing, Finding, FindingId, Kind, Schedule, Status, Symbols, Verdict,
};
use selvedge_report::words;

use super::{Check, Explore, Summary, Undecided};
use crate::exec::worker::Worker;
use crate::failure::Failure;
use crate::report::{self, Report};

/// What an execution returned, or how it failed.
type Returned<R> = Result<R, (Kind, FindingId)>;

/// Where a body leaves what it returns.
type Slot<R> = Arc<Mutex<Option<R>>>;

/// An execution that returns what no sequential one does.
struct Found {
    number: u64,
    execution: Execution,
    symbols: std::sync::Arc<Symbols>,
    text: String,
}

/// What was seen.
struct Seen {
    found: Option<Found>,
    executions: u64,
    /// Executions for whose result the sequential executions did not suffice.
    unknown: u64,
    sequential: u64,
    complete: bool,
    longest: usize,
    steps: u64,
}

impl Explore {
    /// Runs the body under many schedules. What it returns under each of them must be what it returns in some
    /// sequential execution: one started thread after the other, in any order, with any [stars](crate::star) left out.
    ///
    /// # Panics
    /// If an execution returns what no sequential one returns, or if there are more sequential executions than
    /// [`Explore::sequential`] allows and none of those returned it.
    #[track_caller]
    pub fn ndseq<R, F>(self, body: F)
    where
        R: PartialEq + Debug + Send + 'static,
        F: Fn() -> R + Send + Sync + 'static,
    {
        match self.ndseq_at(body, Location::caller()) {
            Ok(summary) => {
                if let Some(undecided) = summary.undecided.first() {
                    panic!("selvedge: {undecided}");
                }
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    /// The same, and returns a summary or the failure.
    #[track_caller]
    pub fn run_ndseq<R, F>(self, body: F) -> Result<Summary, Box<Failure>>
    where
        R: PartialEq + Debug + Send + 'static,
        F: Fn() -> R + Send + Sync + 'static,
    {
        self.ndseq_at(body, Location::caller())
    }

    fn ndseq_at<R, F>(
        self,
        body: F,
        here: &'static Location<'static>,
    ) -> Result<Summary, Box<Failure>>
    where
        R: PartialEq + Debug + Send + 'static,
        F: Fn() -> R + Send + Sync + 'static,
    {
        let slot: Slot<R> = Arc::default();
        let left = Arc::clone(&slot);
        let body = move || {
            let returned = body();
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(returned);
        };
        let check = Explore { analyses: Vec::new(), ..self }.check_of(Arc::new(body), here);
        let seen = check.as_if_sequential(slot);
        let mut summary = Summary {
            executions: seen.executions + seen.sequential,
            complete: seen.complete,
            longest: seen.longest,
            steps: seen.steps,
            ..Summary::default()
        };
        match seen.found {
            Some(found) => Err(check.no_twin(found)),
            None => {
                if seen.unknown > 0 {
                    summary.undecided.push(Undecided::Sequential {
                        executions: seen.unknown,
                        tried: seen.sequential,
                    });
                }
                Ok(summary)
            }
        }
    }
}

/// What an execution returned; nothing if it was cut off.
fn returned<R>(slot: &Slot<R>, worker: &mut Worker, execution: &Execution) -> Option<Returned<R>> {
    let left = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    match &execution.outcome {
        Outcome::Undecided(_) => None,
        Outcome::Failed(finding) => Some(Err((finding.kind, finding.id(&worker.named(execution))))),
        Outcome::Exited(_) => left.map(Ok),
    }
}

impl Check {
    fn as_if_sequential<R: PartialEq + Debug + Send + 'static>(&self, slot: Slot<R>) -> Seen {
        let Explore { plan, schedules, seed, time, sequential, .. } = self.options;
        let begun = Instant::now();
        self.on_a_thread(move |worker| {
            let mut strategy = plan.strategy();
            let mut twins: Twins<Returned<R>> = Twins::new(Tasks::Threads, sequential);
            let mut seen = Seen {
                found: None,
                executions: 0,
                unknown: 0,
                sequential: 0,
                complete: false,
                longest: 0,
                steps: 0,
            };
            let ask = Ask { seed, noted: Noted::Events, ..Ask::default() };
            let expired = || time.is_some_and(|t| begun.elapsed() >= t);
            while seen.executions < schedules && !expired() {
                if !strategy.begin(Rng::of_execution(seed, seen.executions)) {
                    break;
                }
                let Ok(execution) = worker.run(&mut *strategy, &ask);
                seen.executions += 1;
                seen.longest = seen.longest.max(execution.choices);
                seen.steps += execution.steps as u64;
                let Some(result) = returned(&slot, worker, &execution) else { continue };
                let symbols = worker.named(&execution);
                let shown =
                    |worker: &mut Worker, execution: &Execution| returned(&slot, worker, execution);
                let quick = Ask { noted: Noted::Ending, stars: true, ..ask.clone() };
                let Ok(twin) = twins.find(worker, &result, &quick, shown, expired);
                match twin {
                    Twin::Found(_) => {}
                    Twin::Unknown => seen.unknown += 1,
                    Twin::None => {
                        let text = text(&result, &twins);
                        let number = seen.executions;
                        seen.found = Some(Found { number, execution, symbols, text });
                        break;
                    }
                }
            }
            seen.sequential = twins.executions;
            seen.complete = strategy.coverage() == Coverage::Complete;
            seen
        })
    }

    fn no_twin(&self, found: Found) -> Box<Failure> {
        let Found { number, execution, symbols, text } = found;
        let failing =
            Failing::Message { text: text.clone(), thread: None, ended: None, before: None };
        let finding = Finding {
            status: Status::Observed,
            verdict: Some(Verdict::Harmful),
            ..Finding::failure(Kind::ParallelismViolation, failing, Vec::new())
        };
        let schedule: Schedule = execution.schedule.clone();
        let rendered = report::render(&Report {
            test: self.test.as_deref(),
            execution: number,
            how: &format!("strategy {}, seed {}", self.options.plan, self.options.seed),
            words: &text,
            schedules: std::slice::from_ref(&schedule),
            shown: Vec::new(),
            critical: &[],
            note: None,
        });
        let schedules = vec![schedule.clone()];
        let case = report::case(&finding, &symbols);
        Box::new(Failure { case, execution: number, schedule, schedules, text: rendered })
    }
}

fn text<R: PartialEq + Debug>(result: &Returned<R>, twins: &Twins<Returned<R>>) -> String {
    const MOST: usize = 5;
    let shown = |r: &Returned<R>| match r {
        Ok(value) => format!("{value:?}"),
        Err((kind, _)) => format!("a failure ({})", words::kind(*kind)),
    };
    let mut others: Vec<String> =
        twins.ran.iter().take(MOST).map(|ran| shown(&ran.shown)).collect();
    if twins.ran.len() > MOST {
        others.push(format!("{} more", twins.ran.len() - MOST));
    }
    format!(
        "the result is {}, which no sequential execution has: all {} of them were run, with {}",
        shown(result),
        twins.executions,
        others.join(", ")
    )
}

/// Checks that a body is parallel as if sequential, with the settings of the environment: see [`Explore::ndseq`].
///
/// # Panics
/// If an execution returns what no sequential one returns.
#[track_caller]
pub fn ndseq<R, F>(body: F)
where
    R: PartialEq + Debug + Send + 'static,
    F: Fn() -> R + Send + Sync + 'static,
{
    Explore::from_env().ndseq(body);
}
