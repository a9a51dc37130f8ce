//! Executions to infer determinism from: of a program under control, or in the store.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use selvedge_engine::executor::execute;
use selvedge_engine::{Ask, Blocks};
use selvedge_explore::rng::derive;
use selvedge_explore::{RandomWalk, Rng};
use selvedge_model::Site;
use selvedge_specs::BlockExecution;
use selvedge_specs::determin::{Promise, Row, Specification, Table};

use crate::args::InferDeterminism;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::progress::Schedules;
use crate::store::{self, Store};

/// Executions of one content that are looked at; more would only add to the evidence.
const OF_A_CONTENT: u64 = 1000;

/// Executions to infer from, by block, and the build of the program that they are of.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) tables: Vec<Table>,
    executions: Vec<BlockExecution<Site>>,
    builds: BTreeMap<Box<str>, String>,
}

impl Observed {
    /// Executions of no program that is known.
    pub(super) fn unnamed(tables: Vec<Table>) -> Observed {
        Observed { tables, ..Observed::default() }
    }

    /// Stores what was inferred, so that later executions can be compared with it. Without a store nothing is kept.
    pub(super) fn keep(&self, specification: &Specification) -> Result<(), Failure> {
        let promise = Promise::from(specification);
        let Some(build) = self.builds.get(&promise.block) else { return Ok(()) };
        let of_block = |e: &&BlockExecution<Site>| e.block == promise.block;
        let executions: Vec<_> = self.executions.iter().filter(of_block).cloned().collect();
        let directory = store::directory(&std::env::current_dir()?);
        if let Some(mut store) = store::open(&directory) {
            store.keep_promise(&promise, build, &executions)?;
        }
        Ok(())
    }

    fn add(&mut self, execution: &BlockExecution<Site>, build: &str) -> Result<(), Failure> {
        add(&mut self.tables, execution)?;
        self.builds.insert(execution.block.clone(), build.to_owned());
        if !self.executions.contains(execution) {
            self.executions.push(execution.clone());
        }
        Ok(())
    }

    fn some(self, otherwise: &str) -> Result<Observed, Failure> {
        match self.tables.is_empty() {
            true => Err(Failure::Undecided(otherwise.to_owned())),
            false => Ok(self),
        }
    }
}

/// The blocks in the store, of the last build of each.
pub(super) fn stored() -> Result<Observed, Failure> {
    let store = Store::open(&store::directory(&std::env::current_dir()?))?;
    let mut observed = Observed::default();
    for block in store.blocks()? {
        for content in store.contents_of_last_build(&block.block)? {
            let build = content.builds.first().map_or("", String::as_str);
            for _ in 0..content.executions.min(OF_A_CONTENT) {
                observed.add(&content.execution, build)?;
            }
        }
    }
    observed.some("no states of blocks are stored; SELVEDGE_STATE records them")
}

/// The blocks that a program executes.
pub(super) fn executed(args: &InferDeterminism) -> Result<Observed, Failure> {
    let deadline = Deadline::new(None)?;
    let alone = [String::new()];
    let inputs = if args.inputs.is_empty() { &alone[..] } else { &args.inputs };
    let claims = args.unmarked.claims();
    let mut observed = Observed::default();
    let mut progress = Schedules::new("infer", args.runs * inputs.len() as u64);
    for (number, input) in (0..).zip(inputs) {
        let mut command = args.command.clone();
        command.extend(words(input)?.into_iter().map(OsString::from));
        let program = ControlledProgram::find(&command, args.patience)?;
        let native = Native::new(&program, &deadline).claiming(claims.clone());
        let mut executor = native.with_globals(args.unmarked.depth()).executor()?;
        for run in 0..args.runs {
            progress.advance(number * args.runs + run, 0, &deadline);
            let rng = Rng::new(derive(derive(args.seed, number), run));
            let ask = Ask { seed: args.seed, ..Ask::default() };
            let execution = execute(&mut executor, &mut RandomWalk::default(), rng, &ask)?;
            let blocks: Arc<Blocks> = execution.map(|e| e.blocks).unwrap_or_default();
            if let Some(wrong) = &blocks.wrong {
                return Err(Failure::Usage(wrong.to_string()));
            }
            let build = &program.setup.build;
            blocks.executions.iter().try_for_each(|e| observed.add(e, build))?;
        }
    }
    progress.clear();
    observed.some(
        "no block of the program recorded a state; SELVEDGE_STATE records one, and --globals all globals",
    )
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
