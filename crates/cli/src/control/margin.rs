//! `--margin`: how likely a finding is from each row of its interleaving on.

use std::path::PathBuf;

use selvedge_engine::margin::{Share, jump, margin};
use selvedge_engine::{Ask, Noted, Replayed};
use selvedge_report::explain::Row;
use selvedge_report::{Case, Chance, How, Interleaving};

use crate::control::again::Prepared;
use crate::control::cases;
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::progress::Schedules;
use crate::store::{RunId, Store};

/// Runs executions that begin like `replayed`, `samples` of them for each beginning, and gives the rows
/// of the interleaving the share that shows the finding.
pub(crate) fn measure(
    ready: &mut Prepared,
    replayed: &Replayed,
    samples: u64,
    deadline: &Deadline,
) -> Result<Interleaving, Failure> {
    let sought = ready.sought();
    let ask = Ask { noted: Noted::default(), ..ready.ask.clone() };
    let most = samples * (ready.schedule.segments.len() as u64 + 8);
    let mut progress = Schedules::new("margin", most);
    let shares = margin(&mut ready.executor, &ready.schedule, &sought, &ask, samples, |so_far| {
        let shown = so_far.iter().map(|s| s.shown).sum::<u64>();
        let executions = so_far.iter().map(|s| s.of).sum();
        progress.advance(executions, usize::try_from(shown).unwrap_or(usize::MAX), deadline);
        deadline.stopped().is_none()
    })?;
    progress.clear();
    let explanation = cases::explained(replayed, &ready.critical());
    let stops = replayed.execution.stops.len();
    let mut rows = Interleaving::new(&explanation, stops, &replayed.symbols);
    let times = &replayed.execution.times;
    // The choices that were made when a row happens.
    let choices = |row: &Row| match row {
        Row::Does { at, .. } => Some(times.partition_point(|&t| t <= *at)),
        Row::Stopped { at, .. } => Some(times.partition_point(|&t| t < *at)),
        Row::Waits(_) | Row::Ends { .. } => Some(times.len()),
        Row::Elided(_) => None,
    };
    let chances = explanation.rows.iter().map(|row| chance(&shares, choices(row)?));
    rows.margin = chances.collect();
    tell(&shares);
    Ok(rows)
}

fn chance(shares: &[Share], choices: usize) -> Option<Chance> {
    let share = shares.iter().rev().find(|s| s.choices <= choices)?;
    let percent = |of: f64| (of * 100.0).round() as u8;
    let (low, high) = share.interval();
    Some(Chance { percent: percent(share.share()), low: percent(low), high: percent(high) })
}

fn tell(shares: &[Share]) {
    let executions: u64 = shares.iter().map(|s| s.of).sum();
    match jump(shares) {
        Some((before, after)) => anstream::eprintln!(
            "the moment of no return: {:.0}% of executions fail that begin like this one up to choice {}, {:.0}% up to choice {} ({executions} executions)",
            before.share() * 100.0,
            before.choices,
            after.share() * 100.0,
            after.choices,
        ),
        None => anstream::eprintln!(
            "no choice changes the chance of the failure by more than luck explains ({executions} executions)"
        ),
    }
}

/// Keeps the shares with the stored finding, for later reports.
pub(crate) fn keep(
    rows: &Interleaving,
    case: Option<&Case>,
    stored: Option<&(PathBuf, RunId)>,
) -> Result<(), Failure> {
    let (Some(case), Some((directory, run))) = (case, stored) else { return Ok(()) };
    let mut case = case.clone();
    if let Some(control) = &mut case.control {
        control.how = Some(How::Rows(rows.clone()));
    }
    Store::open(directory)?.add(*run, &case)?;
    Ok(())
}
