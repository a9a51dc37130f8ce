//! Native runs and controlled executions become predictions.

use selvedge_analyses::registry::{self, Purpose, Settings};
use selvedge_engine::observe::observe;
use selvedge_engine::{Before, Observation, Prediction};
use selvedge_model::{Keep, Status};
use selvedge_report::{Bound, Case, Report};
use selvedge_runtime::Controlled;

use crate::args::Test;
use crate::checking::Checking;
use crate::commands::run::observe::observe_run;
use crate::commands::{check, explore};
use crate::control::cases::Predicted;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;

/// The number of controlled executions to observe.
const OBSERVED: u64 = 2;

/// Observes native runs of the program.
pub(super) fn native(
    program: &ControlledProgram,
    args: &Test,
    suppressions: &Suppressions,
    deadline: &Deadline,
) -> Result<Report, Failure> {
    let mut seen = Report::default();
    let mut progress = Schedules::new("observe", args.observe + OBSERVED);
    for number in 0..args.observe {
        progress.advance(number, seen.cases.len(), deadline);
        let checking = args.discipline.as_deref().map(Checking::load).transpose()?;
        let one = observe_run(program, suppressions.clone(), deadline, checking)?;
        seen.stats.events += one.stats.events;
        seen.stats.threads = seen.stats.threads.max(one.stats.threads);
        seen.stats.bounds.extend(one.stats.bounds);
        one.stats.suppressed.into_iter().for_each(|s| seen.stats.suppress(s));
        one.cases.into_iter().for_each(|case| seen.add(case));
    }
    progress.clear();
    Ok(seen)
}

/// Observes the program under control, after native runs. Findings with a target become predictions; the others go into
/// the report.
pub(super) fn predict(
    program: &ControlledProgram,
    native: &Native,
    (args, seen): (&Test, Report),
    suppressions: &Suppressions,
    deadline: &Deadline,
    before: &Before,
) -> Result<(Observation<Controlled>, Vec<Predicted>, Report), Failure> {
    let mut progress = Schedules::new("observe", args.observe + OBSERVED);
    progress.advance(args.observe, seen.cases.len(), deadline);
    let mut analyses = registry::defaults(Purpose::Test);
    analyses.extend(args.regions.checked_by(&analyses));
    let settings = Settings { lock_regions: args.regions.lock_regions, ..Settings::default() };
    let mut executor = native.executor()?;
    let analysed = (&analyses[..], settings);
    let observed = observe(&mut executor, args.budget.seed, OBSERVED, analysed, before);
    let observation = match explore::in_time(observed, program, deadline) {
        // What the native runs have shown is known, whatever comes after.
        Err(Failure::Interrupted) if !seen.cases.is_empty() => Observation::default(),
        observed => observed?,
    };
    progress.advance(args.observe + OBSERVED, seen.cases.len() + observation.seen.len(), deadline);
    progress.clear();
    let mut report = Report { stats: seen.stats, ..Report::default() };
    report.stats.analyses = analyses.iter().map(|a| a.name.to_owned()).collect();
    report.stats.events += observation.events;
    report.stats.threads = report.stats.threads.max(observation.threads);
    report.stats.bounds.extend(bounds(&observation));
    let mut predicted = Vec::new();
    for seen in observation.seen.iter().filter(|s| !s.finding.is_avoided(&s.symbols)) {
        let case = Case::new(&seen.finding, &seen.symbols);
        let Some(case) = suppressions.pass(case, &mut report.stats) else { continue };
        match &seen.prediction {
            Some(prediction) => predicted.push(Predicted { case, prediction: prediction.clone() }),
            None => report.add(case),
        }
    }
    for case in seen.cases {
        if let Some(case) = adopt(case, &observation, &mut predicted) {
            report.add(case);
        }
    }
    Ok((observation, predicted, report))
}

/// Makes a finding of a native run a prediction for controlled executions. Returns it if controlled executions
/// have nothing to aim at.
fn adopt(
    case: Case,
    observation: &Observation<Controlled>,
    predicted: &mut Vec<Predicted>,
) -> Option<Case> {
    let id = case.id;
    let target = case.target.clone().filter(|_| case.status >= Status::Predicted);
    let known = predicted.iter_mut().find(|p| p.prediction.id == id);
    match (known, target) {
        // A native run knows names and stacks that a controlled run does not.
        (Some(known), Some(_)) => known.case.merge(case, Keep::Second),
        // A deadlock in which the native run itself ended.
        (Some(known), None) => known.case.merge(case, Keep::First),
        (None, Some(target)) => {
            let points = observation.points_at(target.accesses());
            let prediction =
                Prediction { id, kind: case.kind, target, names: None, points, lead: None };
            predicted.push(Predicted { case, prediction });
        }
        (None, None) => return Some(case),
    }
    None
}

/// The limits that the observation reached.
fn bounds(observation: &Observation<Controlled>) -> Vec<Bound> {
    let mut bounds: Vec<Bound> =
        observation.bounds.iter().map(|&b| check::bound(b, None)).collect();
    bounds.extend(observation.cut_off.map(|events| Bound::Beginning(events as u64)));
    bounds
}
