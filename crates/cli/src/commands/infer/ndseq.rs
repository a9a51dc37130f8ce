//! `selvedge infer ndseq`: the fewest stars with which recorded executions have sequential twins.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use selvedge_model::{Op, Symbols};
use selvedge_report::escape;
use selvedge_specs::ndseq::graph::Reason;
use selvedge_specs::ndseq::infer::{Inferred, Placement, Study};
use selvedge_specs::ndseq::runs::Statement;
use selvedge_specs::ndseq::{Circle, Execution, Recorder};
use serde::Serialize;

use crate::args::{InferFormat, InferNdseq};
use crate::exit::{Exit, Failure};
use crate::input::Input;

/// What was inferred, for programs.
#[derive(Serialize)]
struct Json<'a> {
    satisfiable: bool,
    executions: usize,
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

/// Everything that was read.
#[derive(Default)]
struct Traces {
    study: Study,
    symbols: Vec<Symbols>,
    focus: BTreeSet<String>,
    events: u64,
}

/// Infers and prints.
pub(crate) fn run(args: &InferNdseq) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let not = args.not.iter().map(|text| excluded(text)).collect::<Result<Vec<_>, _>>()?;
    let mut traces = Traces::default();
    for path in &args.traces {
        traces.read(path)?;
    }
    let Traces { study, symbols, focus, events } = traces;
    let executions = study.executions().len();
    let sites: Vec<Vec<String>> =
        study.executions().zip(&symbols).map(|(e, s)| sites(e, s)).collect();
    let inferred = study.infer(&not);
    let stars: &[Placement] = inferred.stars.as_deref().unwrap_or_default();
    if let Some(path) = &args.emit {
        let wrong = |error| Failure::Write { path: path.clone(), error };
        fs::write(path, specification(&focus, stars)).map_err(wrong)?;
    }
    let mut out = io::stdout().lock();
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
            let conflicts = |found: &Option<(usize, Circle)>| {
                found.as_ref().map(|(number, circle)| conflicts(circle, &sites[*number]))
            };
            show(&mut out, &inferred, executions, conflicts)?;
        }
    }
    Ok(if inferred.stars.is_some() { Exit::Clean } else { Exit::Findings })
}

impl Traces {
    fn read(&mut self, path: &Path) -> Result<(), Failure> {
        let mut input = Input::open(path)?;
        let (mut recorder, mut batch) = (Recorder::default(), Vec::new());
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
        self.symbols.push(symbols);
        Ok(())
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

fn specification(focus: &BTreeSet<String>, stars: &[Placement]) -> String {
    let focus = focus.iter().map(|name| format!("focus {name}\n"));
    let stars = stars.iter().map(|placement| {
        let Star { file, first_line, last_line, function } = star(placement);
        format!("star {file}:{first_line}-{last_line} in {function}\n")
    });
    focus.chain(stars).collect()
}

fn show(
    out: &mut impl Write,
    inferred: &Inferred,
    executions: usize,
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
