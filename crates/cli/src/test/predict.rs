//! Native runs and controlled executions become predictions.

use std::sync::Arc;

use selvedge_analyses::registry::{self, Purpose, Settings};
use selvedge_model::{
    Finding, Held, Kind, LockId, Mode, Range, Site, SiteId, Status, Subject as About, Symbols,
    Target, ThreadId, Waiter,
};

use crate::args::Test;
use crate::control::halt::Halt;
use crate::control::observe::{Observation, Prediction, observe};
use crate::control::stage::{Subject, in_order};
use crate::exit::Failure;
use crate::report::{Report, ReportedFinding};
use crate::run::quiet;
use crate::suppress::Suppressions;

/// Controlled executions that are observed.
const OBSERVED: u64 = 3;

/// Observes. What has a target is in the observation, everything else in the report.
pub(super) fn predict(
    subject: &Subject,
    args: &Test,
    suppressions: &Suppressions,
    halt: &Halt,
) -> Result<(Observation, Report), Failure> {
    let mut native = Report::default();
    for _ in 0..args.observe {
        let seen = quiet::observe(subject, suppressions.clone(), halt)?;
        native.stats.events += seen.stats.events;
        native.stats.threads = native.stats.threads.max(seen.stats.threads);
        seen.stats.bounds.into_iter().for_each(|b| native.stats.bounds.push(b));
        seen.findings.into_iter().for_each(|f| native.add(f));
    }
    // Races that happened are for the native runs to tell: what precompiled code of Rust's standard
    // library orders is not among the events of a controlled execution.
    let analyses = registry::defaults(Purpose::Test);
    let settings = Settings { lock_regions: args.lock_regions, ..Settings::default() };
    let (seed, interrupt) = (args.budget.seed, &halt.interrupt);
    let mut observation = observe(subject, seed, OBSERVED, interrupt, &analyses, settings)?;
    observation.predictions.retain(|p| !suppressions.match_finding(&p.reported, &[]));
    let mut report = Report { stats: native.stats, ..Report::default() };
    report.stats.analyses = analyses.iter().map(|e| e.name.to_owned()).collect();
    report.stats.events += observation.events;
    report.stats.threads = report.stats.threads.max(observation.threads);
    report.stats.bounds.extend(observation.bounds.iter().cloned());
    for finding in native.findings {
        match target(&finding, &mut observation.symbols) {
            Some(target) => adopt(finding, target, &mut observation),
            None => report.add(finding),
        }
    }
    for prediction in &observation.predictions {
        if prediction.finding.target.is_none() {
            report.add(prediction.reported.clone());
        }
    }
    observation.predictions.retain(|p| p.finding.target.is_some());
    Ok((observation, report))
}

/// A native finding becomes a prediction for controlled executions.
fn adopt(reported: ReportedFinding, target: Target, observation: &mut Observation) {
    let sites: Vec<&Site> = match reported.kind {
        Kind::DataRace => reported.places.iter().map(|p| &p.site).collect(),
        _ => Vec::new(),
    };
    let code = sites.iter().filter_map(|s| observation.code.get(*s)).flatten().cloned().collect();
    let known = observation.predictions.iter_mut().find(|p| p.reported.id == reported.id);
    if let Some(known) = known {
        // A native run knows names and stacks that a controlled one does not; its counts are its own.
        let status = known.reported.status.max(reported.status);
        let mut analyses = reported.analyses.clone();
        for analysis in std::mem::take(&mut known.reported.analyses) {
            if !analyses.contains(&analysis) {
                analyses.push(analysis);
            }
        }
        let held: Vec<_> =
            known.reported.places.iter().map(|p| (p.held.clone(), p.held_unknown)).collect();
        known.reported = ReportedFinding { status, analyses, ..reported };
        for (place, (held, unknown)) in known.reported.places.iter_mut().zip(held) {
            if place.held_unknown {
                (place.held, place.held_unknown) = (held, unknown);
            }
        }
        return;
    }
    let finding = Finding {
        kind: reported.kind,
        status: reported.status,
        verdict: None,
        analyses: vec!["run"],
        subject: About::Memory(Range { start: 0, len: 0 }),
        places: Vec::new(),
        target: Some(target),
        occurrences: reported.occurrences,
    };
    let watched = Arc::new(in_order(code));
    observation.predictions.push(Prediction { finding, reported, names: None, watched });
}

/// What to aim at to make a native finding happen, by its sites.
fn target(finding: &ReportedFinding, symbols: &mut Symbols) -> Option<Target> {
    if finding.status < Status::Predicted {
        return None;
    }
    let mut id = |site: &Site| SiteId(symbols.sites.intern(site.clone()));
    match (finding.kind, finding.places.as_slice()) {
        (Kind::DataRace, [a, b]) => Some(Target::Race { first: id(&a.site), second: id(&b.site) }),
        (Kind::Deadlock, places) if places.iter().all(|p| p.role.name == "acquire") => {
            let mut locks: Vec<String> = Vec::new();
            let mut lock = |name: &str| {
                let at = locks.iter().position(|l| l == name).unwrap_or(locks.len());
                if at == locks.len() {
                    locks.push(name.to_owned());
                }
                LockId(at as u32)
            };
            let waiter = |(i, p): (usize, &crate::report::ReportedPlace)| {
                let wanted = p.role.object.as_deref().unwrap_or_default();
                let holds = p
                    .held
                    .iter()
                    .map(|h| Held { lock: lock(&h.name), mode: h.mode, site: id(&h.site) })
                    .collect();
                let wants = Held { lock: lock(wanted), mode: Mode::Exclusive, site: id(&p.site) };
                Waiter { thread: ThreadId(i as u32), holds, wants }
            };
            Some(Target::Deadlock(places.iter().enumerate().map(waiter).collect()))
        }
        _ => None,
    }
}
