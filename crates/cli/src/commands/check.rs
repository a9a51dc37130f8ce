//! `selvedge check`: runs all chosen analyses over each recorded trace, in one pass.

use std::path::Path;

use selvedge_analyses::pipeline::Reached;
use selvedge_model::Op;
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
    findings.into_iter().for_each(|f| report.add(Case::new(&f, symbols)));
    outcome?;
    if args.analyses.iter().any(|name| name == selvedge_analyses::ndseq::ENTRY.name) {
        sequential_twin_is_decided(path, flow, symbols.threads.entries().len())?;
    }
    Ok(())
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
