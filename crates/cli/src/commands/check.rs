//! `selvedge check`: runs all chosen analyses over each recorded trace, in one pass.

use std::path::Path;

use selvedge_analyses::pipeline::Reached;
use selvedge_analyses::{Pipeline, Witness};
use selvedge_model::{Blocked, Event, Op, Role, SiteId, Status, Symbols};
use selvedge_report::case::{Control, How};
use selvedge_report::explain::{Story, explain};
use selvedge_report::interleaving::Interleaving;
use selvedge_report::{Bound, Case, Report};

use crate::args::Check;
use crate::catalogue;
use crate::checking::Checking;
use crate::exit::{Exit, Failure};
use crate::input::Input;
use crate::program::claims::Renamed;
use crate::terminal::print;

/// Analyses the traces and prints the findings. If a trace becomes unreadable half-way, the findings up to
/// there are printed before the failure.
pub(crate) fn run(args: &Check) -> Result<Exit, Failure> {
    let mut report = Report::default();
    let outcome = analyse_into(args, &mut report);
    if outcome.is_ok() || !report.cases.is_empty() {
        print(&report, &args.output)?;
    }
    outcome?;
    let failed = report.cases.iter().any(|f| args.output.fail_on.fails(f.status));
    Ok(if failed { Exit::Findings } else { Exit::Clean })
}

/// Analyses the traces.
pub(crate) fn analyse_all(args: &Check) -> Result<Report, Failure> {
    let mut report = Report::default();
    analyse_into(args, &mut report)?;
    Ok(report)
}

fn analyse_into(args: &Check, report: &mut Report) -> Result<(), Failure> {
    args.traces.iter().try_for_each(|path| analyse(path, args, report))
}

fn analyse(path: &Path, args: &Check, report: &mut Report) -> Result<(), Failure> {
    let mut pipeline = catalogue::select(&args.analyses, &args.regions)?;
    let mut checking = args.discipline.as_deref().map(Checking::load).transpose()?;
    let mut renamed = Renamed::new(args.regions.claims());
    let mut input = Input::open(path)?;
    let mut batch = Vec::new();
    let mut events = 0;
    let mut flow = false;
    let outcome = loop {
        let outcome = input.read(&mut batch);
        events += batch.len() as u64;
        flow |= batch.iter().any(|e| matches!(e.op, Op::Flow(_) | Op::Focus(_)));
        renamed.change(&mut batch, input.reader().symbols());
        pipeline.on_events(&batch);
        if let Some(checking) = &mut checking {
            batch.iter().for_each(|event| checking.on_trace(event, input.reader().symbols()));
        }
        if outcome.is_err() || batch.is_empty() {
            break outcome;
        }
    };
    pipeline.finish();
    let symbols = input.reader().symbols();
    report.stats.events += events;
    report.stats.threads += symbols.threads.entries().len();
    report.stats.traces += 1;
    report.stats.analyses = pipeline.names().map(ToOwned::to_owned).collect();
    if let Some(checking) = checking {
        report.stats.analyses.push(checking.name().to_owned());
        checking.finish().into_iter().for_each(|case| report.add(case));
    }
    let trace = path.display().to_string();
    report.stats.bounds.extend(pipeline.bounds().map(|b| bound(b, Some(trace.clone()))));
    report.stats.bounds.extend(renamed.unmatched());
    let findings = pipeline.take_findings();
    let shown = shown(path, &pipeline, symbols);
    for finding in findings {
        let mut case = Case::new(&finding, symbols);
        let sites = || finding.places.iter().map(|p| p.site);
        let rows = shown.iter().find(|(shown, _)| shown.iter().copied().eq(sites()));
        let rows = rows.map(|(_, rows)| rows);
        if let Some(rows) = rows.filter(|_| case.status == Status::Predicted) {
            case.control =
                Some(Control { how: Some(How::Rows(rows.clone())), ..Control::default() });
        }
        report.add(case);
    }
    outcome?;
    if args.analyses.iter().any(|name| name == selvedge_analyses::ndseq::ENTRY.name) {
        sequential_twin_is_decided(path, flow, symbols.threads.entries().len())?;
    }
    Ok(())
}

/// The orders of events that show races and deadlocks, by the places of each. They take a second look at the trace, which
/// standard input does not allow.
fn shown(path: &Path, pipeline: &Pipeline, symbols: &Symbols) -> Vec<(Vec<SiteId>, Interleaving)> {
    let mut witnesses = pipeline.witnesses().peekable();
    let mut events = Vec::new();
    if witnesses.peek().is_none() || path == Path::new("-") {
        return Vec::new();
    }
    let Ok(mut input) = Input::open(path) else { return Vec::new() };
    let mut batch = Vec::new();
    while input.read(&mut batch).is_ok() && !batch.is_empty() {
        events.append(&mut batch);
    }
    witnesses.map(|w| (w.sites.clone(), rows(w, &events, symbols))).collect()
}

fn rows(witness: &Witness, events: &[Event], symbols: &Symbols) -> Interleaving {
    let (before, next) = witness.order(events);
    let all = next.iter().filter_map(|&n| events.get(n));
    let blocked: Vec<Blocked> = all.zip(1..).filter_map(|(e, i)| waits(e, witness, i)).collect();
    // Accesses that race happen at the end, acquisitions of a deadlock do not.
    let last = next.into_iter().filter(|_| blocked.is_empty());
    let numbers = before.into_iter().chain(last);
    let order: Vec<Event> = numbers.filter_map(|n| events.get(n).copied()).collect();
    let explanation = explain(&Story {
        events: &order,
        stops: &[],
        blocked: &blocked,
        places: &witness.sites,
        like: &[],
        ending: None,
    });
    let goes_on = |at: usize| order[at + 1..].iter().any(|e| e.thread == order[at].thread);
    let is_stopped = |&at: &usize| order[at].thread != order[at + 1].thread && goes_on(at);
    let preemptions = (0..order.len().saturating_sub(1)).filter(is_stopped).count();
    Interleaving::new(&explanation, preemptions, symbols)
}

/// An acquisition of a deadlock, which waits for the thread with this number in the circle.
fn waits(event: &Event, witness: &Witness, next: usize) -> Option<Blocked> {
    let Op::Acquire(lock, mode) = event.op else { return None };
    Some(Blocked {
        thread: event.thread,
        site: event.site,
        wants: Role::Acquire(lock),
        mode,
        holds: Vec::new(),
        waits_for: Some(witness.threads[next % witness.threads.len()]),
    })
}

/// A trace without data flow or without parallelism must not pass for one that conforms.
fn sequential_twin_is_decided(path: &Path, flow: bool, threads: usize) -> Result<(), Failure> {
    let why = if threads < 2 {
        "nothing ran in parallel"
    } else if !flow {
        "the trace has no data flow, which `ndseq` needs: get, set, let, if and focus (docs/ndseq.md)"
    } else {
        return Ok(());
    };
    Err(Failure::Undecided(format!("{}: {why}", path.display())))
}

/// A limit that an analysis reached, for the report.
pub(crate) fn bound(reached: Reached, trace: Option<String>) -> Bound {
    let Reached { analysis, bound } = reached;
    Bound::Analysis {
        trace,
        analysis: analysis.to_owned(),
        what: bound.what.to_owned(),
        limit: bound.limit,
        exceeded: bound.exceeded,
    }
}
