//! How a finding happens: its schedule with as few preemptions as can be, and the interleaving.

use std::time::{Duration, Instant};

use selvedge_explore::minimise;
use selvedge_model::schedule::landmark;
use selvedge_model::{Ended, Schedule, Site, SiteId, Status, Symbols};
use selvedge_report::{Case, End, Explanation, How, Interleaving, Outcome, Story, explain};
use selvedge_runtime::Execution;
use selvedge_runtime::control::Outcome as Ran;

use super::ending::{Ending, blocked};
use super::stage::Stage;
use crate::exit::Failure;
use crate::replay::follow;
use crate::store::Journal;

/// The most executions that making a schedule shorter is worth.
pub(crate) const BUDGET: usize = 100;
/// And the most time.
const TIME: Duration = Duration::from_secs(5);
/// Of so many findings of a test an account is given; the others have a schedule all the same.
const EXPLAINED: usize = 10;
/// A candidate may take this much longer than the execution that it is to replace, and at least this.
const PATIENCE: (u32, Duration) = (20, Duration::from_millis(500));

/// Gives a finding whose schedule replays it a shorter one, and an account of how it happens. If the
/// schedule does not replay it, the finding stays as it is.
pub(crate) fn complete(stage: &mut Stage, finding: &mut Case) -> Result<(), Failure> {
    let Some((schedule, ending)) = worst(stage, finding)? else { return Ok(()) };
    let schedule = shortened(stage, finding, schedule, &ending)?;
    let shown = follow(stage, &schedule, Some(finding))?;
    if !shown.again {
        return Ok(());
    }
    let rows = interleaving(&shown.execution, &shown.symbols, Some(finding));
    if let Some(control) = &mut finding.control {
        control.schedule = Some(schedule.to_string());
        control.how = Some(How::Rows(rows));
    }
    Ok(())
}

/// A schedule that shows the finding, and how it ends: in a failure, if one of its orders does.
fn worst(stage: &mut Stage, finding: &Case) -> Result<Option<(Schedule, Outcome)>, Failure> {
    let Some(control) = &finding.control else { return Ok(None) };
    let known = control.orders.iter().map(|o| &o.schedule).chain(&control.schedule);
    let mut first = None;
    for schedule in known.filter_map(|s| s.parse::<Schedule>().ok()) {
        let replayed = follow(stage, &schedule, Some(finding))?;
        if !replayed.again {
            continue;
        }
        let fails = !matches!(replayed.ending, Ending::Exit(0));
        let found = (schedule, replayed.ending.outcome());
        if fails {
            return Ok(Some(found));
        }
        // The one that confirmed it comes last.
        first = Some(found);
    }
    Ok(first)
}

/// The same for those of many that are confirmed, up to [`EXPLAINED`] of them; what is stored changes
/// too.
pub(crate) fn complete_all(
    stage: &mut Stage,
    findings: &mut [Case],
    journal: &mut Journal,
) -> Result<(), Failure> {
    let confirmed = findings.iter_mut().filter(|f| f.status == Status::Confirmed);
    for finding in confirmed.take(EXPLAINED) {
        let watched = finding.control.as_ref().map(|c| c.watched.clone()).unwrap_or_default();
        stage.watch(&watched)?;
        complete(stage, finding)?;
        journal.add(finding);
    }
    Ok(())
}

/// The schedule with as few preemptions as the budget lets one find, that still shows the finding and
/// ends in the same way.
fn shortened(
    stage: &mut Stage,
    finding: &Case,
    schedule: Schedule,
    ending: &Outcome,
) -> Result<Schedule, Failure> {
    let begin = Instant::now();
    follow(stage, &schedule, Some(finding))?;
    let least = (begin.elapsed() * PATIENCE.0).max(PATIENCE.1);
    let whole = stage.controlled.time_limit();
    stage.controlled.limit_time(whole.min(least));
    let mut failed = None;
    let shorter = minimise(schedule, BUDGET, |candidate| {
        if failed.is_some() || begin.elapsed() > TIME {
            return None;
        }
        match follow(stage, candidate, Some(finding)) {
            Ok(replayed) => {
                let same = replayed.again && replayed.ending.outcome() == *ending;
                same.then_some(replayed.execution.schedule)
            }
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    stage.controlled.limit_time(whole);
    failed.map_or(Ok(shorter.schedule), Err)
}

/// The interleaving of an execution that shows a finding, or just ended as it did.
pub(crate) fn interleaving(
    execution: &Execution,
    symbols: &Symbols,
    finding: Option<&Case>,
) -> Interleaving {
    let explanation = explained(execution, symbols, finding);
    Interleaving::new(&explanation, execution.stops.len(), symbols)
}

/// What matters of such an execution.
pub(crate) fn explained(
    execution: &Execution,
    symbols: &Symbols,
    finding: Option<&Case>,
) -> Explanation {
    let critical = finding.map(Case::critical).unwrap_or_default();
    let places: Vec<SiteId> = critical.iter().filter_map(|site| id(site, symbols)).collect();
    let waiting = match &execution.outcome {
        Ran::Deadlock(waiting) => blocked(waiting),
        _ => Vec::new(),
    };
    let ending = match execution.outcome {
        Ran::Exited(0) | Ran::Deadlock(_) => None,
        Ran::Exited(code) => Some(End::Process(Ended::Code(code))),
        Ran::Signaled(signal) => Some(End::Process(Ended::Signal(signal))),
        Ran::StepLimit => Some(End::Endless),
        Ran::TimeLimit => Some(End::Late),
    };
    explain(&Story {
        events: &execution.events,
        stops: &execution.stops,
        blocked: &waiting,
        places: &places,
        ending: ending.map(|how| (execution.last, how)),
    })
}

/// The id of a site; in a program that was edited since, of the place that it has become.
fn id(site: &Site, symbols: &Symbols) -> Option<SiteId> {
    let sites = symbols.sites.entries();
    let function = |s: &Site| s.frame().map(|f| f.function.clone());
    let moved = |s: &Site| landmark(s) == landmark(site) && function(s) == function(site);
    let found = sites.iter().position(|s| s == site).or_else(|| {
        let mut alike = (0..sites.len()).filter(|&i| moved(&sites[i]));
        alike.next().filter(|_| alike.next().is_none())
    })?;
    Some(SiteId(u32::try_from(found).ok()?))
}
