//! How a finding happens: its schedule with as few preemptions as can be, and the interleaving in words.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use selvedge_explore::minimise;
use selvedge_model::{Schedule, Site, Status, Symbols};
use selvedge_runtime::Execution;

use super::ending::Ending;
use super::stage::Stage;
use crate::exit::Failure;
use crate::replay::follow;
use crate::report::interleaving;
use crate::report::sources::Sources;
use crate::report::{Aim, ReportedFinding};
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
pub(crate) fn complete(
    stage: &mut Stage,
    finding: &mut ReportedFinding,
    root: &Path,
) -> Result<(), Failure> {
    let Some((schedule, ending)) = worst(stage, finding)? else { return Ok(()) };
    let schedule = shortened(stage, finding, schedule, &ending)?;
    let shown = follow(stage, &schedule, Some(finding))?;
    if !shown.again {
        return Ok(());
    }
    let text = account(&shown.execution, &shown.symbols, Some(finding), root);
    if let Some(control) = &mut finding.control {
        control.schedule = Some(schedule.to_string());
        control.interleaving = text;
    }
    Ok(())
}

/// A schedule that shows the finding, and how it ends: in a failure, if one of its orders does.
fn worst(
    stage: &mut Stage,
    finding: &ReportedFinding,
) -> Result<Option<(Schedule, String)>, Failure> {
    let Some(control) = &finding.control else { return Ok(None) };
    let known = control.orders.iter().map(|o| &o.schedule).chain(&control.schedule);
    let mut first = None;
    for schedule in known.filter_map(|s| s.parse::<Schedule>().ok()) {
        let replayed = follow(stage, &schedule, Some(finding))?;
        if !replayed.again {
            continue;
        }
        let fails = !matches!(replayed.ending, Ending::Exit(0));
        let found = (schedule, replayed.ending.words());
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
    findings: &mut [ReportedFinding],
    root: &Path,
    journal: &mut Journal,
) -> Result<(), Failure> {
    let confirmed = findings.iter_mut().filter(|f| f.status == Status::Confirmed);
    for finding in confirmed.take(EXPLAINED) {
        let watched = finding.control.as_ref().map(|c| c.watched.clone()).unwrap_or_default();
        stage.watch(&watched)?;
        complete(stage, finding, root)?;
        journal.add(finding);
    }
    Ok(())
}

/// The schedule with as few preemptions as the budget lets one find, that still shows the finding and
/// ends in the same way.
fn shortened(
    stage: &mut Stage,
    finding: &ReportedFinding,
    schedule: Schedule,
    ending: &str,
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
                let same = replayed.again && replayed.ending.words() == ending;
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
pub(crate) fn account(
    execution: &Execution,
    symbols: &Symbols,
    finding: Option<&ReportedFinding>,
    root: &Path,
) -> String {
    let places = finding.map(places).unwrap_or_default();
    let preemptions = match execution.stops.len() {
        0 => "threads run until they have to wait".to_owned(),
        1 => "1 preemption".to_owned(),
        n => format!("{n} preemptions"),
    };
    let mut sources = Sources::new(std::slice::from_ref(&root.to_owned()));
    let mut text = String::new();
    let _ = writeln!(text, "how it happens ({preemptions}):");
    text.push_str(&interleaving::text(execution, symbols, &places, &mut sources, None));
    text
}

/// The places that make the finding.
pub(crate) fn places(finding: &ReportedFinding) -> Vec<Site> {
    match finding.control.as_ref().and_then(|c| c.aim.as_ref()) {
        Some(Aim::Race { first, second }) => vec![first.clone(), second.clone()],
        Some(Aim::Split { first, second, between }) => {
            [first].into_iter().chain(between).chain([second]).cloned().collect()
        }
        None => finding.places.iter().map(|p| p.site.clone()).collect(),
    }
}
