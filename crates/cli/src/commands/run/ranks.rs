//! `selvedge run -- mpirun …`: observes one execution of an MPI program.
//!
//! The analysis runs inside the ranks (`selvedge_spmd`). We wait for the launcher, and make cases of what the ranks
//! have written, also of those that were killed.

use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use selvedge_report::{FORMATS, Report, Stats, words as say};

use super::{ending, signals, words};
use crate::args::{Output, Run};
use crate::exit::{Exit, Failure};
use crate::program::suppress::Suppressions;
use crate::ranks::Job;
use crate::ranks::cases::{Namer, bounds, report_misuses};
use crate::store::{self, Journal};
use crate::terminal;

/// Runs the job and reports. The exit code is 1 if there are findings, else the launcher's own.
pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    let suppressions = Suppressions::load(&args.options.suppressions)?;
    let here = std::env::current_dir()?;
    let directory = store::directory(&here);
    let root = directory.parent().unwrap_or(&here).to_owned();
    let job = Job::new(&args.command, here, directory.clone())?.sampled(&args.ranks);
    let sight = "calls of MPI, and loads and stores of instrumented code";
    let mut journal =
        Journal::begin(store::open(&directory), &words(&args.command), "ranks", sight);

    let is_text = args.options.format.name == FORMATS[0].name;
    let held = signals::hold().map_err(Failure::Output)?;
    // Standard output carries only the report.
    let (status, told) = job.run(!is_text, |launcher| held.forward_to(launcher))?;
    let Some(job) = &told.job else {
        journal.finish("could not be observed", &Stats::default());
        return Err(Failure::NoRanks(say::program_ended(ending::ended(status))));
    };
    let mut report = Report::default();
    report.stats.traces = 1;
    report.stats.threads = job.ranks as usize;
    report.stats.analyses = vec!["ranks".to_owned()];
    report.stats.bounds = bounds(&told);
    let mut namer = Namer::new(&root, &told);
    for race in &told.races {
        let case = namer.case(race);
        if let Some(case) = suppressions.pass(case, &mut report.stats) {
            report.add(case);
        }
    }
    report_misuses(&mut namer, &told, &suppressions, &mut report);
    report.cases.iter().for_each(|case| journal.add(case));
    journal.finish(&say::ended(ending::ended(status)), &report.stats);
    show(args, &report, root, status)
}

fn show(
    args: &Run,
    report: &Report,
    root: PathBuf,
    status: ExitStatus,
) -> Result<ExitCode, Failure> {
    let mut source = args.options.source.clone();
    source.push(root);
    let (format, fail_on, all) = (args.options.format, args.options.fail_on, args.options.all);
    let output = Output { format, fail_on, all, source };
    if format.name == FORMATS[0].name {
        anstream::eprint!("{}", terminal::rendered(report, &output));
    } else {
        terminal::print(report, &output)?;
    }
    if !status.success() {
        anstream::eprintln!("{}", say::program_ended(ending::ended(status)));
    }
    let failed = report.cases.iter().any(|case| fail_on.fails(case.status));
    Ok(if failed { Exit::Findings.into() } else { ending::code(status) })
}
