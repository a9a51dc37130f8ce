//! Turns the engine's results into cases of a report.

mod compare;

use std::time::Duration;

use selvedge_engine::campaign::{self, Campaign, Settled};
use selvedge_engine::{
    Attempted, Effort, Ending, Found, Nondeterminism, Outcome, Prediction, Replayed,
};
use selvedge_model::{FindingId, Site, Status};
use selvedge_report::{
    Case, Control, Diverged, Executed, Explanation, Happened, How, Interleaving, NotReplayed, Note,
    Order, Remark, Watched as ReportedAccess, Which, case, explain_execution,
};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{NameTable, WatchList};

use super::program::Native;
use crate::deadline::{self, Deadline};
use crate::exit::{Failure, unless_interrupted};
use crate::store::Journal;

/// The limits for making one of `cases` schedules shorter before a part of the time limit is used up. `None` if
/// it is used up already.
pub(super) fn effort(deadline: &Deadline, part: f64, cases: usize) -> Option<Effort> {
    const LONGEST: Duration = Duration::from_secs(5);
    let time = LONGEST.min(deadline.until(part) / u32::try_from(cases).unwrap_or(1).max(1));
    (!time.is_zero()).then_some(Effort { executions: 100, time })
}

/// A command shows the interleaving of at most this many findings. The others have only a schedule.
const EXPLAINED: usize = 10;

/// A prediction with its case.
pub(crate) struct Predicted {
    pub(crate) case: Case,
    pub(crate) prediction: Prediction<NameTable, WatchList>,
}

impl Predicted {
    /// The case after attempts to confirm it. A predicted case whose attempts failed is unconfirmed; an
    /// observed case stays observed.
    pub(crate) fn after(&self, attempted: &Attempted) -> Case {
        let mut case = self.case.clone();
        let status = attempted.status(&self.prediction, case.status);
        if attempted.confirmed.is_some() && status == Status::Unconfirmed {
            case.notes.push(Note::NoEffect);
        }
        case.status = status;
        case.verdict = attempted.verdict();
        if let Some(divergence) = &attempted.unstable {
            let diverged = divergence.map(Diverged::At);
            case.notes.push(Note::NotReplayed(NotReplayed::Once { diverged }));
        }
        let confirmed = attempted.confirmed.as_ref();
        case.control = Some(Control {
            schedule: confirmed.map(|c| c.schedule.to_string()),
            attempts: attempted.attempts,
            after: attempted.after,
            of: None,
            watched: accesses(&self.prediction.points),
            orders: confirmed.map(|c| c.orders.iter().map(order).collect()).unwrap_or_default(),
            ..Control::default()
        });
        label_orders(&mut case);
        case
    }
}

/// The accesses that are scheduling points, in the form that a case stores.
pub(crate) fn accesses(points: &WatchList) -> Vec<ReportedAccess> {
    let access = |w: &selvedge_runtime::control::Watched| ReportedAccess {
        module: w.code.module.clone(),
        offset: w.code.offset,
        site: w.site.clone(),
    };
    points.list().iter().map(access).collect()
}

fn order(of: &selvedge_engine::Order) -> Order {
    let which = match &of.first {
        Some((thread, site)) => Which::First { thread: thread.clone(), site: site.clone() },
        None => Which::Only,
    };
    let schedule = of.schedule.to_string();
    Order { which, harm: of.harm, outcome: outcome(&of.ending), schedule }
}

/// Calls the threads of orders what the places of the case call them: in another execution the thread that comes to
/// a place may be another one.
fn label_orders(case: &mut Case) {
    let Some(control) = &mut case.control else { return };
    // What a place calls `T1` is `T1 (worker)` elsewhere.
    let short = |thread: &str| thread.split(" (").next().unwrap_or(thread).to_owned();
    let mut labels: Vec<(Site, String, String)> = Vec::new();
    let mut firsts: Vec<(Site, String)> = Vec::new();
    for order in &control.orders {
        let Which::First { thread, site } = &order.which else { continue };
        let first = (site.clone(), thread.clone());
        if !firsts.contains(&first) {
            firsts.push(first);
        }
    }
    let (same, others): (Vec<_>, Vec<_>) = firsts.into_iter().partition(|(site, thread)| {
        case.places.iter().any(|p| p.site == *site && p.thread == short(thread))
    });
    labels.extend(same.into_iter().map(|(site, thread)| (site, thread.clone(), short(&thread))));
    for (site, thread) in others {
        let is_free = |l: &&String| !labels.iter().any(|(s, _, label)| *s == site && label == *l);
        let mut there = case.places.iter().filter(|p| p.site == site).map(|p| &p.thread);
        let label = there.find(is_free).cloned().unwrap_or_else(|| short(&thread));
        labels.push((site, thread, label));
    }
    for order in &mut control.orders {
        let Which::First { thread, site } = &mut order.which else { continue };
        if let Some((.., label)) = labels.iter().find(|(s, name, _)| s == site && name == thread) {
            thread.clone_from(label);
        }
    }
}

/// How an execution ended, in the form that a case stores.
pub(crate) fn outcome(ending: &Ending) -> case::Outcome {
    match &ending.outcome {
        Outcome::Exited(code) => case::Outcome::Exit(*code),
        Outcome::Failed(finding) => {
            let case = Case::new(finding, &ending.symbols);
            case::Outcome::Failed { kind: case.kind, subject: case.subject }
        }
        Outcome::Undecided(_) => case::Outcome::Undecided,
    }
}

/// The case of a failure that depends on the schedule. Its schedule has not been replayed yet.
pub(crate) fn failure(found: &Found<WatchList>, by: &str) -> Case {
    let finding = found.ending.finding().expect("a found failure has a finding");
    let mut case = Case::new(finding, &found.ending.symbols);
    case.analyses = vec![by.to_owned()];
    case.occurrences = found.times.count;
    case.control = Some(Control {
        schedule: Some(found.times.schedule.to_string()),
        after: Some(found.times.first),
        of: Some(found.of),
        watched: accesses(&found.times.points),
        ..Control::default()
    });
    case
}

/// The events that matter in an execution that shows a finding at the places `critical`.
pub(crate) fn explained(replayed: &Replayed, critical: &[Site]) -> Explanation {
    explained_like(replayed, critical, &[])
}

/// The same, with the events at further places.
fn explained_like(replayed: &Replayed, critical: &[Site], like: &[Site]) -> Explanation {
    let execution = &replayed.execution;
    let executed = Executed {
        events: &execution.events,
        stops: &execution.stops,
        last: execution.last,
        failed: replayed.ending.finding(),
        exited: match execution.outcome {
            Outcome::Exited(code) => Some(code),
            Outcome::Failed(_) | Outcome::Undecided(_) => None,
        },
        like,
    };
    explain_execution(&executed, critical, &replayed.symbols)
}

/// The interleaving of such an execution, as rows.
pub(crate) fn interleaving(replayed: &Replayed, critical: &[Site]) -> Interleaving {
    let explanation = explained(replayed, critical);
    Interleaving::new(&explanation, replayed.execution.stops.len(), &replayed.symbols)
}

/// That the program is not deterministic, and where that shows first.
pub(crate) fn differs(found: &Nondeterminism) -> Remark {
    let Nondeterminism { difference, cause, symbols } = found;
    Remark::Unrepeatable(Box::new(case::Failure::Unrepeatable {
        event: difference.index + 1,
        expected: difference.expected.map(|e| Box::new(Happened::new(&e, symbols))),
        found: difference.found.map(|e| Box::new(Happened::new(&e, symbols))),
        cause: cause.clone(),
    }))
}

fn show(case: &mut Case, replayed: &Replayed) {
    let rows = interleaving(replayed, &case.critical());
    if let Some(control) = &mut case.control {
        control.schedule = Some(replayed.execution.schedule.to_string());
        control.how = Some(How::Rows(rows));
    }
}

/// Gives confirmed predictions a shorter schedule and the interleaving.
pub(crate) fn explain_all(
    executor: &mut Controlled,
    predicted: &[Predicted],
    attempted: &[Attempted],
    cases: &mut [Case],
    (deadline, journal): (&Deadline, &mut Journal),
) -> Result<(), Failure> {
    let mut explained = 0;
    let all = cases.iter().filter(|c| c.status == Status::Confirmed).count();
    for ((predicted, attempted), case) in predicted.iter().zip(attempted).zip(cases) {
        let Some(confirmed) = &attempted.confirmed else { continue };
        if case.status != Status::Confirmed {
            continue;
        }
        let left = all.min(EXPLAINED).saturating_sub(explained);
        let Some(effort) = effort(deadline, deadline::EXPLAINED, left).filter(|_| left > 0) else {
            break;
        };
        explained += 1;
        if let Some(shown) = campaign::explain(executor, &predicted.prediction, confirmed, effort)?
        {
            show(case, &shown);
            compare::with_other_order(executor, &predicted.prediction, confirmed, case, &shown)?;
            journal.add(case);
        }
    }
    Ok(())
}

/// The cases of the campaign's failures. A failure is confirmed if its schedule shows it again.
pub(crate) fn failures(
    campaign: &Campaign<Native>,
    known: &[FindingId],
    by: &str,
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<Vec<Case>, Failure> {
    let found = campaign.found(known);
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut executor = match deadline.signal() {
        None => unless_interrupted(campaign.executor())?,
        Some(_) => None,
    };
    let mut cases = Vec::new();
    for (i, one) in found.iter().enumerate() {
        let mut case = failure(one, by);
        let settled = match (&mut executor, effort(deadline, 1.0, found.len() - i)) {
            (Some(executor), Some(effort)) => {
                unless_interrupted(campaign.settle(executor, one, effort))?
            }
            (None, _) | (_, None) => None,
        };
        match settled {
            Some(Settled::Shown(shown)) => {
                case.status = Status::Confirmed;
                show(&mut case, &shown);
                if let Some(executor) = &mut executor {
                    let points = &one.times.points;
                    unless_interrupted(compare::with_undisturbed(
                        executor, points, &mut case, &shown,
                    ))?;
                }
            }
            Some(Settled::Otherwise(ending, divergence)) => {
                let diverged = divergence.map(Diverged::At);
                let otherwise = NotReplayed::Otherwise { outcome: outcome(&ending), diverged };
                case.notes.push(Note::NotReplayed(otherwise));
            }
            None => case.notes.push(Note::NotReplayed(NotReplayed::Interrupted)),
        }
        journal.add(&case);
        cases.push(case);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::{Finding, Kind, Place, Range, Role, SiteId, Subject, Symbols, ThreadId};

    #[test]
    fn orders_call_threads_what_the_places_call_them() {
        let mut symbols = Symbols::default();
        for name in ["main", "T1", "T2"] {
            symbols.threads.push(name.into());
        }
        let at = |symbols: &mut Symbols, place| SiteId(symbols.sites.intern(Site::parse(place)));
        let (a, b) = (at(&mut symbols, "a.c:1"), at(&mut symbols, "a.c:2"));
        let place = |thread, site| Place {
            thread: ThreadId(thread),
            site,
            role: Role::Write,
            held: Vec::new(),
        };
        let mut finding = Finding {
            kind: Kind::DataRace,
            status: Status::Confirmed,
            verdict: None,
            analyses: vec!["races"],
            subject: Subject::Memory(Range { start: 8, len: 8 }),
            places: vec![place(1, a), place(2, b)],
            target: None,
            occurrences: 1,
        };
        let labels = |finding: &Finding, firsts: &[(&str, &str)]| -> Vec<String> {
            let order = |&(thread, site): &(&str, &str)| Order {
                which: Which::First { thread: thread.into(), site: Site::parse(site) },
                harm: case::Harm::Nothing,
                outcome: case::Outcome::Exit(0),
                schedule: String::new(),
            };
            let mut case = Case::new(finding, &symbols);
            let orders = firsts.iter().map(order).collect();
            case.control = Some(Control { orders, ..Control::default() });
            label_orders(&mut case);
            let control = case.control.unwrap_or_default();
            let name = |order: Order| match order.which {
                Which::First { thread, .. } => thread,
                Which::FirstRank { .. } | Which::Only | Which::Told(_) => String::new(),
            };
            control.orders.into_iter().map(name).collect()
        };
        assert_eq!(labels(&finding, &[("T1", "a.c:1"), ("T3", "a.c:2")]), ["T1", "T2"]);
        assert_eq!(labels(&finding, &[("T7", "a.c:9")]), ["T7"], "another place");
        finding.places[1].site = a;
        assert_eq!(labels(&finding, &[("T1", "a.c:1"), ("T3", "a.c:1")]), ["T1", "T2"]);
        assert_eq!(labels(&finding, &[("T3", "a.c:1"), ("T3", "a.c:1")]), ["T1", "T1"]);
        let all = [("T3 (f)", "a.c:1"), ("T1 (f)", "a.c:1"), ("T2 (f)", "a.c:1")];
        assert_eq!(labels(&finding, &all), ["T3", "T1", "T2"], "three threads at one place");
    }
}
