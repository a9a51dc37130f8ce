//! Executions to infer determinism from: of a program under control, or in the store.

use std::ffi::OsString;
use std::sync::Arc;

use selvedge_engine::executor::execute;
use selvedge_engine::{Ask, Blocks};
use selvedge_explore::rng::derive;
use selvedge_explore::{RandomWalk, Rng};
use selvedge_model::Site;
use selvedge_specs::BlockExecution;
use selvedge_specs::determin::{Row, Table};

use crate::args::InferDeterminism;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::progress::Schedules;
use crate::store::{self, Store};

/// Executions of one content that are looked at; more would only add to the evidence.
const OF_A_CONTENT: u64 = 1000;

/// The tables of the blocks in the store, of the last build of each.
pub(super) fn stored() -> Result<Vec<Table>, Failure> {
    let store = Store::open(&store::directory(&std::env::current_dir()?))?;
    let mut tables = Vec::new();
    for block in store.blocks()? {
        for content in store.contents_of_last_build(&block.block)? {
            for _ in 0..content.executions.min(OF_A_CONTENT) {
                add(&mut tables, &content.execution)?;
            }
        }
    }
    some(tables, "no states of blocks are stored; SELVEDGE_STATE records them")
}

/// The tables of the blocks that a program executes.
pub(super) fn executed(args: &InferDeterminism) -> Result<Vec<Table>, Failure> {
    let deadline = Deadline::new(None)?;
    let alone = [String::new()];
    let inputs = if args.inputs.is_empty() { &alone[..] } else { &args.inputs };
    let mut tables = Vec::new();
    let mut progress = Schedules::new("infer", args.runs * inputs.len() as u64);
    for (number, input) in (0..).zip(inputs) {
        let mut command = args.command.clone();
        command.extend(words(input)?.into_iter().map(OsString::from));
        let program = ControlledProgram::find(&command, args.patience)?;
        let mut executor = Native::new(&program, &deadline).executor()?;
        for run in 0..args.runs {
            progress.advance(number * args.runs + run, 0, &deadline);
            let rng = Rng::new(derive(derive(args.seed, number), run));
            let ask = Ask { seed: args.seed, ..Ask::default() };
            let execution = execute(&mut executor, &mut RandomWalk::default(), rng, &ask)?;
            let blocks: Arc<Blocks> = execution.map(|e| e.blocks).unwrap_or_default();
            if let Some(wrong) = &blocks.wrong {
                return Err(Failure::Usage(wrong.to_string()));
            }
            blocks.executions.iter().try_for_each(|execution| add(&mut tables, execution))?;
        }
    }
    progress.clear();
    some(tables, "no block of the program recorded a state; SELVEDGE_STATE records one")
}

fn some(tables: Vec<Table>, otherwise: &str) -> Result<Vec<Table>, Failure> {
    if tables.is_empty() { Err(Failure::Undecided(otherwise.to_owned())) } else { Ok(tables) }
}

fn add(tables: &mut Vec<Table>, execution: &BlockExecution<Site>) -> Result<(), Failure> {
    let row = Row::of(execution);
    if row.pre.is_empty() && row.post.is_empty() {
        return Ok(());
    }
    match tables.iter_mut().find(|t| t.block() == &*row.block) {
        Some(table) => table.push(row).map_err(|e| Failure::Usage(e.to_string())),
        None => {
            tables.push(Table::new(row));
            Ok(())
        }
    }
}

/// The words of a line, as a shell would split it: quotes and backslashes keep spaces.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                word.get_or_insert_default().extend(letters.next());
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(Failure::Usage(format!("--input {line:?}: a quote is not closed")));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_line_is_split_as_by_a_shell() {
        let of = |line: &str| words(line).unwrap();
        assert_eq!(of(" -n  4 "), ["-n", "4"]);
        assert_eq!(of(r#"'a b' "c\"d" e\ f '' "#), ["a b", "c\"d", "e f", ""]);
        assert!(words("'open").is_err());
        assert!(of("").is_empty());
    }
}
