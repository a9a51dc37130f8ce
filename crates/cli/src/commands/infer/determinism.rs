//! `selvedge infer determinism`: what deterministic blocks promise, from executions of them.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use selvedge_specs::determin::{
    self, Condition, Conjunct, Dropped, Remark, Row, Specification, Supported, Table, Weakest, Why,
};
use serde::Serialize;

use super::observed::{self, Observed};
use super::paste;
use crate::args::{InferDeterminism, InferFormat, Precondition};
use crate::exit::{Exit, Failure};
use crate::input::for_each_line;
use crate::messages::error_label;

/// Infers a specification for each block and prints it. A block of which nothing can be inferred is named, and the exit
/// code says so.
pub(crate) fn run(args: &InferDeterminism) -> Result<Exit, Failure> {
    let mut observed = match &args.executions {
        Some(file) => Observed::unnamed(read(file)?),
        None if args.store => observed::stored()?,
        None => observed::executed(args)?,
    };
    let tables = selected(std::mem::take(&mut observed.tables), args)?;
    let weakest = match args.precondition {
        Precondition::Wlop => Weakest::Occurring,
        Precondition::Wlp => Weakest::Any,
    };
    let mut exit = Exit::Clean;
    let mut inferred = Vec::new();
    for table in &tables {
        match determin::infer(table, weakest) {
            Ok(specification) => {
                observed.keep(&specification)?;
                inferred.push((specification, table));
            }
            Err(why) => {
                anstream::eprintln!(
                    "{}: nothing can be inferred about the block {:?}: {why}",
                    error_label(),
                    table.block()
                );
                exit = Exit::NotRun;
            }
        }
    }
    let text = match (args.format, args.paste) {
        (_, Some(language)) => {
            inferred.iter().map(|(s, table)| paste::pasted(s, table, language)).collect()
        }
        (InferFormat::Json, None) => json(inferred.into_iter().map(|(s, _)| s).collect()),
        (InferFormat::Text, None) => {
            let blocks: Vec<String> = inferred.iter().map(|(s, _)| shown(s)).collect();
            blocks.join("\n")
        }
    };
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(exit)
}

/// Reads executions, one JSON object a line, into one table for each block in the order of their first appearance.
fn read(path: &Path) -> Result<Vec<Table>, Failure> {
    let mut tables: Vec<Table> = Vec::new();
    for_each_line(path, |row: Row| {
        match tables.iter_mut().find(|t| t.block() == &*row.block) {
            Some(table) => table.push(row).map_err(|e| e.to_string())?,
            None => tables.push(Table::new(row)),
        }
        Ok(())
    })?;
    if tables.is_empty() {
        return Err(Failure::Usage(format!("{}: there are no executions in it", path.display())));
    }
    Ok(tables)
}

fn selected(mut tables: Vec<Table>, args: &InferDeterminism) -> Result<Vec<Table>, Failure> {
    let Some(block) = &args.block else {
        return Ok(tables);
    };
    let known: Vec<String> = tables.iter().map(|t| t.block().to_owned()).collect();
    tables.retain(|t| t.block() == block);
    if tables.is_empty() {
        let known = known.join(", ");
        return Err(Failure::Usage(format!("there is no block {block:?}; there are: {known}")));
    }
    Ok(tables)
}

#[derive(Serialize)]
struct Document {
    version: u32,
    tool: &'static str,
    blocks: Vec<Specification>,
}

fn json(blocks: Vec<Specification>) -> String {
    let document = Document { version: 1, tool: "selvedge", blocks };
    let mut text = serde_json::to_string_pretty(&document).expect("keys are text");
    text.push('\n');
    text
}

fn shown(specification: &Specification) -> String {
    let Specification { block, executions, inputs, precondition, postcondition, .. } =
        specification;
    let mut text =
        format!("block {block}: {executions} executions, {}\n", counted(*inputs, "input"));
    let conjunct = |c: &Conjunct| format!("{} {}", c.name, c.predicate);
    let width = precondition.iter().chain(postcondition);
    let width = width.map(|s| conjunct(&s.conjunct).chars().count()).max().unwrap_or(0);
    let mut lines = |word: &str, conjuncts: &[Supported], why: &str| {
        for Supported { conjunct: c, pairs } in conjuncts {
            let pairs = counted(usize::try_from(*pairs).unwrap_or(usize::MAX), "pair");
            let _ = writeln!(text, "  {word}  {:width$}  {pairs} of executions {why}", conjunct(c));
        }
    };
    lines("assume", precondition, "could have shown that it is not needed");
    lines("ensure", postcondition, "could have refuted it");
    if precondition.is_empty() {
        text += "  assume nothing: what is ensured holds for every two executions\n";
    }
    if postcondition.is_empty() {
        text += "  ensure nothing: no result is the same whenever the input is\n";
    }
    for alternative in &specification.alternatives {
        let words: Vec<String> = alternative.iter().map(conjunct).collect();
        let words = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        let _ = writeln!(text, "  or assume {words}");
    }
    for Dropped { condition, conjunct: c, why } in &specification.dropped {
        let word = match condition {
            Condition::Precondition => "assume",
            Condition::Postcondition => "ensure",
        };
        let _ = writeln!(text, "  left out: {word} {}: {}", conjunct(c), reason(*why));
    }
    for remark in &specification.remarks {
        let _ = writeln!(text, "  note: {}", remarked(remark));
    }
    text
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::NeverChanged => "the block never changes it",
        Why::AlwaysHolds => "it holds for every two executions",
        Why::Implied => "another line implies it",
    }
}

fn remarked(remark: &Remark) -> String {
    match remark {
        Remark::NeverVaried { names } => {
            let (same, it) = match names.len() {
                1 => ("has the same value", "it"),
                _ => ("have the same values", "them"),
            };
            format!(
                "{} {same} in all executions, so they do not show whether the result depends on {it}",
                names.join(", ")
            )
        }
        Remark::NeverApart { names } => format!(
            "{} only change together, so the executions do not show which of them matters",
            names.join(", ")
        ),
        Remark::CutShort => {
            "the search for preconditions was cut short; there may be weaker or other ones"
                .to_owned()
        }
    }
}
