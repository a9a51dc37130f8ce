//! Gives a finding a second execution to read beside the one that shows it: the other order of its parts, or an
//! execution that passes.

use selvedge_engine::replay::follow;
use selvedge_engine::{Ask, Confirmed, Executor, Noted, Outcome, Prediction, Replayed, Sought};
use selvedge_model::{Schedule, Site, ThreadId};
use selvedge_report::{Case, Compared, Explanation, Interleaving, Row, Which, explain};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{NameTable, WatchList};

use super::{explained, explained_like, outcome};

type Error = <Controlled as Executor>::Error;

/// The thread and place of each event that makes the finding, in order.
fn parts(explanation: &Explanation, replayed: &Replayed) -> Vec<(ThreadId, Site)> {
    let part = |row: &explain::Row| match row {
        explain::Row::Does { event, critical: true, .. } => {
            Some((event.thread, replayed.symbols.site(event.site)))
        }
        explain::Row::Does { .. }
        | explain::Row::Stopped { .. }
        | explain::Row::Waits(_)
        | explain::Row::Ends { .. }
        | explain::Row::Elided(_) => None,
    };
    explanation.rows.iter().filter_map(part).collect()
}

/// The places of the steps that a case shows.
fn places(case: &Case) -> Vec<Site> {
    let rows = case.control.as_ref().and_then(|c| c.rows()).map_or(&[][..], |r| &r.rows);
    let mut sites = Vec::new();
    for row in rows {
        if let Row::Does { site, .. } | Row::Stopped { site, .. } = row
            && !sites.contains(site)
        {
            sites.push(site.clone());
        }
    }
    sites
}

fn keep(case: &mut Case, shown: &Replayed, other: &Replayed, which: Option<Which>) {
    let explanation = explained_like(other, &case.critical(), &places(case));
    let rows = Interleaving::new(&explanation, other.execution.stops.len(), &other.symbols);
    let (outcome, against) = (outcome(&other.ending), outcome(&shown.ending));
    if let Some(control) = &mut case.control {
        control.compared = Some(Box::new(Compared { which, outcome, against, rows }));
    }
}

/// Follows the other order of a confirmed finding's parts: the first schedule that ends otherwise. If all that are known end
/// alike, an execution in which no thread is stopped says more, if it passes; else it is the first in which the parts come in
/// another order.
pub(super) fn with_other_order(
    executor: &mut Controlled,
    prediction: &Prediction<NameTable, WatchList>,
    confirmed: &Confirmed,
    case: &mut Case,
    shown: &Replayed,
) -> Result<(), Error> {
    let critical = case.critical();
    let ask = Ask { noted: Noted::Events, points: prediction.points.clone(), ..Ask::default() };
    let order = parts(&explained(shown, &critical), shown);
    let orders = case.control.as_ref().map_or(&[][..], |c| &c.orders);
    let which: Vec<Which> = orders.iter().map(|o| o.which.clone()).collect();
    let mut turned = None;
    for (one, which) in confirmed.orders.iter().zip(which) {
        let other = follow(executor, &one.schedule, &Sought::default(), &ask)?;
        // A schedule that leads elsewhere today shows nothing that the report speaks of.
        if other.ending.key != one.ending.key {
            continue;
        }
        if other.ending.key != shown.ending.key {
            keep(case, shown, &other, Some(which));
            return Ok(());
        }
        if turned.is_none() && parts(&explained(&other, &critical), &other) != order {
            turned = Some((other, which));
        }
    }
    let passes = matches!(shown.execution.outcome, Outcome::Exited(_));
    if !passes && with_undisturbed(executor, &prediction.points, case, shown)? {
        return Ok(());
    }
    if let Some((other, which)) = turned {
        keep(case, shown, &other, Some(which));
    }
    Ok(())
}

/// Runs the execution in which no thread is stopped, and keeps it if it passes; whether it does.
pub(super) fn with_undisturbed(
    executor: &mut Controlled,
    points: &WatchList,
    case: &mut Case,
    shown: &Replayed,
) -> Result<bool, Error> {
    let ask = Ask { noted: Noted::Events, points: points.clone(), ..Ask::default() };
    let Schedule { seed, releases, .. } = shown.execution.schedule;
    let schedule = Schedule { seed, releases, ..Schedule::default() };
    let other = follow(executor, &schedule, &Sought::default(), &ask)?;
    let passes = matches!(other.execution.outcome, Outcome::Exited(_));
    let is_kept = passes && other.ending.key != shown.ending.key;
    if is_kept {
        keep(case, shown, &other, None);
    }
    Ok(is_kept)
}
