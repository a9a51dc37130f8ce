//! `selvedge infer discipline`: how a program keeps each of its variables free of races.
//!
//! Executions come from trace files, from native runs and from controlled ones. Each gives instances of
//! variables; `program::names` calls them as the source does, and instances of one name become one line.

mod annotate;
mod controlled;
mod native;
mod show;
mod traces;

use std::fs;

use selvedge_report::Report;
use selvedge_specs::discipline::merge::{Line, Merger};
use selvedge_specs::discipline::{Rule, Specification};

use crate::args::{InferDiscipline, Output};
use crate::exit::{Exit, Failure};
use crate::program::pattern::Pattern;

/// What executions have shown so far.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) merger: Merger,
    pub(super) report: Report,
    /// What the user should know of the names.
    pub(super) remarks: Vec<String>,
}

/// Infers and prints. Races that are found on the way are findings.
pub(crate) fn run(args: &InferDiscipline) -> Result<Exit, Failure> {
    let mut seen = Seen::default();
    if args.command.is_empty() && args.traces.is_empty() {
        return Err(Failure::Usage("name traces, or a program after `--`".to_owned()));
    }
    for path in &args.traces {
        traces::infer(path, &mut seen)?;
    }
    let mut source = args.source.clone();
    if !args.command.is_empty() {
        source.push(native::root()?);
        for _ in 0..args.runs {
            native::infer(&args.command, &source, args.format.name != "text", &mut seen)?;
        }
        controlled::infer(&args.command, args.schedules, &mut seen)?;
    }
    let lines = chosen(seen.merger.lines(), args);
    if let Some(path) = &args.emit {
        let text = format!("{}", specification(&lines));
        let wrong = |error| Failure::Write { path: path.clone(), error };
        fs::write(path, text).map_err(wrong)?;
    }
    if args.annotate.is_some() || args.patch.is_some() {
        seen.remarks.extend(annotate::write(&lines, args)?);
    }
    let mut report = seen.report;
    report.stats.analyses = vec!["races".to_owned()];
    report.variables = Some(lines.iter().map(show::variable).collect());
    let output = Output { format: args.format, fail_on: args.fail_on, all: false, source };
    show::print(&lines, &report, &output)?;
    for remark in &seen.remarks {
        anstream::eprintln!("{remark}");
    }
    let failed = report.cases.iter().any(|f| args.fail_on.fails(f.status));
    Ok(if failed { Exit::Findings } else { Exit::Clean })
}

/// The lines that the user wants.
fn chosen(lines: Vec<Line>, args: &InferDiscipline) -> Vec<Line> {
    let patterns: Vec<Pattern> = args.variable.iter().map(|p| Pattern::whole(p)).collect();
    let wanted = |line: &Line| {
        let named = patterns.is_empty() || patterns.iter().any(|p| p.matches(&line.variable));
        named && (args.all || line.threads > 1 || line.race.is_some())
    };
    lines.into_iter().filter(wanted).collect()
}

/// What was inferred, as a specification.
fn specification(lines: &[Line]) -> Specification {
    let rule = |line: &Line| {
        let discipline = line.all()?;
        Some(Rule { variable: line.variable.clone(), discipline })
    };
    Specification { rules: lines.iter().filter_map(rule).collect() }
}
