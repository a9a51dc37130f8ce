//! `selvedge infer discipline`: how a program keeps each of its variables free of races.
//!
//! Executions come from trace files, from native runs and from controlled ones. Each gives instances of
//! variables; `program::names` calls them as the source does, and instances of one name become one line.

mod annotate;
mod attribute;
mod controlled;
mod naming;
mod native;
mod show;
mod text;
mod traces;
mod verify;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_report::{Case, Report};
use selvedge_specs::discipline::merge::{Line, Merger};
use selvedge_specs::discipline::{Rule, Specification};

use self::annotate::Annotations;
use self::attribute::{Guard, MemberForm};
use self::verify::Checker;
use crate::args::{InferDiscipline, Output};
use crate::exit::{Exit, Failure};
use crate::program::elf::Program;
use crate::program::pattern::Pattern;
use crate::program::symbolize::Declarations;

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
    let all = seen.merger.lines();
    let lines: Vec<Line> = all.iter().filter(|line| is_wanted(line, args)).cloned().collect();
    if let Some(path) = &args.emit {
        let text = format!("{}", specification(&lines));
        let wrong = |error| Failure::Write { path: path.clone(), error };
        fs::write(path, text).map_err(wrong)?;
    }
    let annotated = Annotated::new(&all, &source, args)?;
    seen.remarks.extend(annotated.remarks);
    let mut report = seen.report;
    report.stats.analyses = vec!["races".to_owned()];
    annotated.cases.into_iter().for_each(|case| report.add(case));
    let variable = |line: &Line| show::variable(line, annotated.clang.get(&line.variable).cloned());
    report.variables = Some(lines.iter().map(variable).collect());
    let output = Output { format: args.format, fail_on: args.fail_on, all: false, source };
    show::print(&lines, &report, &output)?;
    for remark in &seen.remarks {
        anstream::eprintln!("{remark}");
    }
    let failed = report.cases.iter().any(|f| args.fail_on.fails(f.status));
    Ok(match (failed, annotated.complete) {
        (true, _) => Exit::Findings,
        (false, true) => Exit::Clean,
        (false, false) => Exit::NotRun,
    })
}

/// What was written into sources, and what clang says of it.
#[derive(Default)]
struct Annotated {
    /// The attributes by variable.
    clang: BTreeMap<String, String>,
    cases: Vec<Case>,
    remarks: Vec<String>,
    /// Whether all that was asked for could be checked.
    complete: bool,
}

impl Annotated {
    fn new(
        lines: &[Line],
        roots: &[PathBuf],
        args: &InferDiscipline,
    ) -> Result<Annotated, Failure> {
        let mut result = Annotated { complete: true, ..Annotated::default() };
        let Some(words) = args.command.first() else {
            result.attributes(lines, None, MemberForm::default());
            return Ok(result);
        };
        let program = Program::find(Path::new(words)).map_err(Failure::Program)?;
        let checker = args
            .verify
            .then(|| Checker::new(&program.path, args.compile_commands.as_deref()))
            .transpose()?;
        let form = checker.as_ref().map_or(MemberForm::default(), Checker::form);
        result.attributes(lines, Some(&Declarations::open(&program.path)), form);
        if args.annotate.is_none() && args.patch.is_none() && checker.is_none() {
            return Ok(result);
        }
        let attributes = (args.clang || args.verify).then_some(form);
        let wanted = |line: &Line| is_wanted(line, args);
        let mut annotations = Annotations::new(&program.path, roots, lines, wanted, attributes);
        match &checker {
            Some(checker) => {
                let verdict = checker.check(&mut annotations, lines, &program.path, roots)?;
                result.clang.retain(|variable, _| annotations.attribute(variable).is_some());
                (result.cases, result.complete) = (verdict.cases, verdict.complete);
                result.remarks = verdict.remarks;
            }
            None => annotations.apply(),
        }
        if let Some(directory) = &args.annotate {
            annotations.copy(directory)?;
        }
        if let Some(path) = &args.patch {
            annotations.patch(path)?;
        }
        result.remarks.splice(0..0, annotations.remarks);
        Ok(result)
    }

    fn attributes(&mut self, lines: &[Line], of: Option<&Declarations>, form: MemberForm) {
        let guards = lines.iter().filter_map(|line| Some((line, Guard::of(line, of, form)?)));
        self.clang = guards.map(|(line, g)| (line.variable.clone(), g.attribute())).collect();
    }
}

/// Whether the user wants a line.
fn is_wanted(line: &Line, args: &InferDiscipline) -> bool {
    let mut patterns = args.variable.iter().map(|p| Pattern::whole(p));
    let named = args.variable.is_empty() || patterns.any(|p| p.matches(&line.variable));
    named && (args.all || line.threads > 1 || line.race.is_some())
}

/// What was inferred, as a specification.
fn specification(lines: &[Line]) -> Specification {
    let rule = |line: &Line| {
        let discipline = line.all()?;
        Some(Rule { variable: line.variable.clone(), discipline })
    };
    Specification { rules: lines.iter().filter_map(rule).collect() }
}
