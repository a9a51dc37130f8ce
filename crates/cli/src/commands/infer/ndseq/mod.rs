//! `selvedge infer ndseq`: the fewest stars with which executions have sequential twins.

mod annotate;
mod executed;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use selvedge_model::{Op, Symbols};
use selvedge_report::{Remark, escape, words};
use selvedge_specs::ndseq::graph::Reason;
use selvedge_specs::ndseq::infer::{Inferred, Placement, Study};
use selvedge_specs::ndseq::runs::Statement;
use selvedge_specs::ndseq::{Circle, Execution, Specification};
use serde::Serialize;

use self::executed::Judged;
use crate::args::{InferFormat, InferNdseq};
use crate::control::flow;
use crate::exit::{Exit, Failure};
use crate::input::Input;

/// What was inferred, for programs.
#[derive(Serialize)]
struct Json<'a> {
    satisfiable: bool,
    executions: u64,
    events: u64,
    stars: Vec<Star<'a>>,
    seconds: f64,
}

#[derive(Serialize)]
struct Star<'a> {
    file: &'a str,
    first_line: u32,
    last_line: u32,
    function: &'a str,
}

/// The sites of both sides of each conflict of a circle.
type Conflicts = Vec<(String, String)>;

/// The executions to infer from.
#[derive(Default)]
struct Recorded {
    study: Study,
    /// Of each execution that is studied.
    symbols: Vec<Arc<Symbols>>,
    focus: BTreeSet<String>,
    executions: u64,
    /// Those that did not come to their result.
    cut_off: u64,
    events: u64,
    /// Code that was not followed, and how often it was called.
    unknown: BTreeMap<String, u64>,
    root: PathBuf,
    program: PathBuf,
}

/// Infers and prints.
pub(crate) fn run(args: &InferNdseq) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let not = args.not.iter().map(|text| excluded(text)).collect::<Result<Vec<_>, _>>()?;
    let mut recorded = Recorded::default();
    for path in &args.traces {
        recorded.read(path, args.commute_floats)?;
    }
    let executed =
        if args.command.is_empty() { None } else { Some(executed::observe(args, &mut recorded)?) };
    recorded.remark();
    let Recorded { study, symbols, focus, executions, events, root, program, .. } = recorded;
    let sites: Vec<Vec<String>> =
        study.executions().zip(&symbols).map(|(e, s)| sites(e, s)).collect();
    let mut settled = study.settle(&not);
    let judged = executed.map(|mut e| e.judge(&mut settled)).transpose()?.unwrap_or_default();
    remark_judged(judged);
    let inferred = settled.infer();
    let stars: &[Placement] = inferred.stars.as_deref().unwrap_or_default();
    if let Some(path) = &args.emit {
        let wrong = |error| Failure::Write { path: path.clone(), error };
        fs::write(path, specification(focus, &args.tasks, stars).to_string()).map_err(wrong)?;
    }
    let mut out = io::stdout().lock();
    let conflicts = |found: &Option<(usize, Circle)>| {
        found.as_ref().map(|(number, circle)| conflicts(circle, &sites[*number]))
    };
    if args.annotate {
        write!(out, "{}", annotate::diff(stars, &root, &program)?)?;
        show(&mut io::stderr().lock(), &inferred, executions, conflicts)?;
        return Ok(if inferred.stars.is_some() { Exit::Clean } else { Exit::Findings });
    }
    match args.format {
        InferFormat::Json => {
            let json = Json {
                satisfiable: inferred.stars.is_some(),
                executions,
                events,
                stars: stars.iter().map(star).collect(),
                seconds: begun.elapsed().as_secs_f64(),
            };
            writeln!(out, "{}", serde_json::to_string(&json).map_err(io::Error::other)?)?;
        }
        InferFormat::Text => {
            show(&mut out, &inferred, executions, conflicts)?;
        }
    }
    Ok(if inferred.stars.is_some() { Exit::Clean } else { Exit::Findings })
}

impl Recorded {
    /// Says what the answer does not know of.
    fn remark(&self) {
        if self.cut_off > 0 {
            anstream::eprintln!(
                "note: {} executions failed or were cut off, and say nothing",
                self.cut_off
            );
        }
        if !self.unknown.is_empty() {
            let calls = self.unknown.iter().map(|(name, times)| (name.clone(), *times));
            anstream::eprintln!("note: {}", words::remark(&Remark::NotFollowed(calls.collect())));
        }
    }

    fn read(&mut self, path: &Path, with_floats: bool) -> Result<(), Failure> {
        let mut input = Input::open(path)?;
        let (mut recorder, mut batch) = (flow::recorder(with_floats), Vec::new());
        loop {
            input.read(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            self.events += batch.len() as u64;
            for event in &batch {
                recorder.on_event(event);
                if let Op::Focus(range) = event.op {
                    self.focus.insert(input.reader().symbols().variable(range));
                }
            }
        }
        let undecided = |why: &str| Failure::Undecided(format!("{}: {why}", path.display()));
        if recorder.threads() < 2 {
            return Err(undecided("nothing ran in parallel"));
        }
        if !recorder.has_flow() {
            return Err(undecided("the trace has no data flow (docs/ndseq.md)"));
        }
        let execution = recorder.finish();
        if execution.statements().is_empty() {
            return Err(undecided(
                "no statements are marked, by begin(stmt:FILE:FIRST-LAST FUNCTION): there is no place for stars",
            ));
        }
        let symbols = input.reader().symbols().clone();
        self.study.add(execution, &symbols).map_err(|label| {
            let label = escape::visible(&label);
            Failure::Usage(format!(
                "{}: `stmt:{label}` is not FILE:FIRST-LAST FUNCTION",
                path.display()
            ))
        })?;
        self.symbols.push(Arc::new(symbols));
        self.executions += 1;
        Ok(())
    }
}

/// Says what sequential executions have shown.
fn remark_judged(judged: Judged) {
    let Judged { excused, left, sequential, all } = judged;
    if excused > 0 {
        anstream::eprintln!(
            "note: {excused} executions conform although their data flow does not show it: a sequential execution has the same result"
        );
    }
    if left > 0 {
        let all = if all { "all" } else { "there may be more" };
        anstream::eprintln!(
            "note: {left} executions have a result that none of {sequential} sequential executions ({all}) has"
        );
    }
}

/// By node, where it stands.
fn sites(execution: &Execution, symbols: &Symbols) -> Vec<String> {
    execution.nodes().iter().map(|n| symbols.site(n.site).to_string()).collect()
}

fn conflicts(circle: &Circle, sites: &[String]) -> Conflicts {
    let edge = |reason: Reason| match reason {
        Reason::Conflict(a, b) => Some((sites[a as usize].clone(), sites[b as usize].clone())),
        Reason::Order => None,
    };
    circle.edges.iter().filter_map(|e| edge(e.reason)).collect()
}

fn excluded(text: &str) -> Result<(String, u32, u32), Failure> {
    let statement = Statement::parse(text)
        .ok_or_else(|| Failure::Usage(format!("`--not {text}`: expected FILE:FIRST-LAST")))?;
    Ok((statement.file.into(), statement.first_line, statement.last_line))
}

fn star(placement: &Placement) -> Star<'_> {
    Star {
        file: &placement.first.file,
        first_line: placement.first.first_line,
        last_line: placement.last.last_line,
        function: &placement.first.function,
    }
}

fn specification(focus: BTreeSet<String>, tasks: &[String], stars: &[Placement]) -> Specification {
    let star = |placement: &Placement| Statement {
        last_line: placement.last.last_line,
        ..placement.first.clone()
    };
    Specification {
        focus: focus.into_iter().collect(),
        tasks: tasks.to_vec(),
        stars: stars.iter().map(star).collect(),
    }
}

fn show(
    out: &mut impl Write,
    inferred: &Inferred,
    executions: u64,
    conflicts: impl Fn(&Option<(usize, Circle)>) -> Option<Conflicts>,
) -> io::Result<()> {
    let explain = |out: &mut dyn Write, circle: Option<Conflicts>| {
        circle.into_iter().flatten().try_for_each(|(first, second)| {
            let (first, second) = (escape::visible(&first), escape::visible(&second));
            writeln!(out, "    {first} comes before {second}")
        })
    };
    match inferred.stars.as_deref() {
        None => {
            writeln!(
                out,
                "no specification: {executions} executions, and no stars break this circle"
            )?;
            explain(out, conflicts(&inferred.unbroken))
        }
        Some([]) => writeln!(out, "no stars are needed for {executions} executions"),
        Some(stars) => {
            for placement in stars {
                let Star { file, first_line, last_line, function } = star(placement);
                let (file, function) = (escape::visible(file), escape::visible(function));
                writeln!(out, "star {file}:{first_line}-{last_line} in {function}, which breaks")?;
                explain(out, conflicts(&placement.breaks))?;
            }
            writeln!(out, "{} needed for {executions} executions", stars.len())
        }
    }
}
