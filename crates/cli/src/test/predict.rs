//! Native runs and controlled executions become predictions.

use std::sync::Arc;

use selvedge_analyses::Analysis;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockregions::LockRegions;
use selvedge_analyses::views::Views;
use selvedge_model::{
    Finding, Kind, Range, Site, SiteId, Status, Subject as About, Symbols, Target,
};
use selvedge_report::{Case, Report};

use crate::args::Test;
use crate::control::halt::Halt;
use crate::control::observe::{Observation, Prediction, observe};
use crate::control::stage::{Subject, in_order};
use crate::exit::Failure;
use crate::run::quiet;
use crate::suppress::Suppressions;

/// Controlled executions that are observed.
const OBSERVED: u64 = 3;

/// Races that happened are for the native runs to tell: what precompiled code of Rust's standard library
/// orders is not among the events of a controlled execution, so there they are no more than predictions.
/// Which code is taken for atomic besides marked regions is the user's to say.
fn analyses(lock_regions: bool) -> Vec<Box<dyn Analysis>> {
    let reduction: Box<dyn Analysis> = match lock_regions {
        true => Box::new(LockRegions::new(Atomizer::new())),
        false => Box::new(Atomizer::new()),
    };
    vec![
        Box::new(Hybrid::default()),
        Box::new(Goodlock::default()),
        reduction,
        Box::new(Views::new()),
    ]
}

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
        seen.cases.into_iter().for_each(|f| native.add(f));
    }
    let mut observation = observe(subject, args.budget.seed, OBSERVED, &halt.interrupt, || {
        analyses(args.lock_regions)
    })?;
    observation.predictions.retain(|p| !suppressions.match_finding(&p.reported, &[]));
    let mut report = Report { stats: native.stats, ..Report::default() };
    report.stats.analyses =
        analyses(args.lock_regions).iter().map(|a| a.name().to_owned()).collect();
    report.stats.events += observation.events;
    report.stats.threads = report.stats.threads.max(observation.threads);
    report.stats.bounds.extend(observation.bounds.iter().cloned());
    for finding in native.cases {
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
fn adopt(reported: Case, target: Target, observation: &mut Observation) {
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
        let held: Vec<_> = known.reported.places.iter().map(|p| p.held.clone()).collect();
        let target = known.reported.target.take();
        known.reported = Case { status, analyses, target, ..reported };
        for (place, held) in known.reported.places.iter_mut().zip(held) {
            place.held = place.held.take().or(held);
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
fn target(finding: &Case, symbols: &mut Symbols) -> Option<Target> {
    let aim = finding.target.as_ref().filter(|_| finding.status >= Status::Predicted)?;
    Some(aim.map(|site| SiteId(symbols.sites.intern(site.clone()))))
}
