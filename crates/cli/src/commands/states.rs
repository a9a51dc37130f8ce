//! `selvedge states`: what deterministic blocks assumed and ensured in the executions that are stored.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use selvedge_model::Site;
use selvedge_specs::states::ExecutionId;
use selvedge_specs::{BlockExecution, Call, Kept, Key, Word};

use crate::args::{States, StatesCommand};
use crate::exit::{Exit, Failure};
use crate::store::states::{BlockSummary, Content, Pruned, StoredExecution};
use crate::store::{self, Store};
use crate::terminal;

/// The longest text of a value in a line.
const LONGEST: usize = 60;

/// Does what the arguments say.
pub(crate) fn run(args: &States) -> Result<Exit, Failure> {
    let directory = store::directory(&std::env::current_dir()?);
    match &args.command {
        StatesCommand::List { json } => list(&Store::open(&directory)?.blocks()?, *json),
        StatesCommand::Show { block } => show(block, &Store::open(&directory)?.contents(block)?),
        StatesCommand::Diff { first, second } => {
            let store = Store::open(&directory)?;
            diff(&found(&store, *first)?, &found(&store, *second)?)
        }
        StatesCommand::Prune { block, build, older_than } => {
            if block.is_none() && build.is_none() && older_than.is_none() {
                let why = "name what to delete: --block, --build or --older-than";
                return Err(Failure::Usage(why.to_owned()));
            }
            let which =
                Pruned { block: block.clone(), build: build.clone(), older_than: *older_than };
            // Opening finds a store; creating it also brings it up to date.
            drop(Store::open(&directory)?);
            let deleted = Store::create(&directory)?.prune(&which)?;
            terminal::text(&format!("deleted {}\n", counted(deleted as u64, "execution")))?;
            Ok(Exit::Clean)
        }
    }
}

fn found(store: &Store, number: u64) -> Result<StoredExecution, Failure> {
    store.block_execution(ExecutionId(number))?.ok_or_else(|| {
        Failure::Usage(format!(
            "there is no execution {number} in the store; `selvedge states show BLOCK` lists them"
        ))
    })
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn list(blocks: &[BlockSummary], json: bool) -> Result<Exit, Failure> {
    if json {
        let object = serde_json::json!({ "version": 1, "tool": "selvedge", "blocks": blocks });
        terminal::text(&format!("{object:#}\n"))?;
        return Ok(Exit::Clean);
    }
    if blocks.is_empty() {
        terminal::text("no states are stored; deterministic blocks with values leave them\n")?;
        return Ok(Exit::Clean);
    }
    let width = blocks.iter().map(|b| b.block.chars().count()).max().unwrap_or(0).max(5);
    let mut text = format!(
        "{:width$}  {:>10}  {:>6}  {:>7}  {:>6}\n",
        "block", "executions", "inputs", "results", "builds"
    );
    for b in blocks {
        let BlockSummary { block, executions, inputs, results, builds } = b;
        let _ = writeln!(
            text,
            "{block:width$}  {executions:>10}  {inputs:>6}  {results:>7}  {builds:>6}"
        );
    }
    terminal::text(&text)?;
    Ok(Exit::Clean)
}

/// A value in a line.
fn shown(kept: &Kept) -> String {
    let text = match &kept.value {
        Some(value) => value.to_string(),
        None => format!("#{}", &kept.digest.to_string()[..12]),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The name of a call, and which of that name it is.
fn called(key: &Key) -> String {
    match key.nth {
        0 => key.name.to_string(),
        n => format!("{} ({})", key.name, n + 1),
    }
}

fn show(block: &str, contents: &[Content]) -> Result<Exit, Failure> {
    if contents.is_empty() {
        return Err(Failure::Usage(format!(
            "there are no states of a block {block:?}; `selvedge states list` lists the blocks"
        )));
    }
    let mut inputs: Vec<(&[u8], Vec<&Content>)> = Vec::new();
    for content in contents {
        match inputs.iter_mut().find(|(assumed, _)| *assumed == content.assumed) {
            Some((_, list)) => list.push(content),
            None => inputs.push((&content.assumed, vec![content])),
        }
    }
    let mut text = String::new();
    for (number, (_, contents)) in inputs.iter().enumerate() {
        let assumed: Vec<String> = contents[0]
            .execution
            .calls_of(Word::Assume)
            .map(|c| format!("{} = {}", called(&c.key), shown(&c.value)))
            .collect();
        let assumed =
            if assumed.is_empty() { "nothing assumed".into() } else { assumed.join(", ") };
        let _ = writeln!(text, "input {}: {assumed}", number + 1);
        results(&mut text, contents);
    }
    terminal::text(&text)?;
    Ok(Exit::Clean)
}

/// The results of one input, those that differ beside each other.
fn results(text: &mut String, contents: &[&Content]) {
    for content in contents {
        let Content { first, executions, builds, .. } = content;
        let builds = builds.join(", ");
        let _ = writeln!(
            text,
            "  execution {}: {}, build {builds}",
            first.0,
            counted(*executions, "execution")
        );
    }
    for (key, values) in columns(contents.iter().map(|c| &c.execution), Word::Ensure) {
        let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
        let one_line = if differs { values.join(" | ") } else { values[0].clone() };
        let mark = if differs { "  <- differs" } else { "" };
        let _ = writeln!(text, "    {} = {one_line}{mark}", called(&key));
    }
}

/// The values of each call, execution by execution.
fn columns<'a>(
    executions: impl Iterator<Item = &'a BlockExecution<Site>> + Clone,
    word: Word,
) -> Vec<(Key, Vec<String>)> {
    let mut order: Vec<&Key> = Vec::new();
    for execution in executions.clone() {
        for call in execution.calls_of(word) {
            if !order.contains(&&call.key) {
                order.push(&call.key);
            }
        }
    }
    let column = |key: &&Key| {
        let of = |e: &BlockExecution<Site>| {
            let call = e.calls_of(word).find(|c| c.key == **key);
            call.map_or_else(|| "(not ensured)".to_owned(), |c| shown(&c.value))
        };
        ((*key).clone(), executions.clone().map(of).collect())
    };
    order.iter().map(column).collect()
}

fn diff(first: &StoredExecution, second: &StoredExecution) -> Result<Exit, Failure> {
    if first.execution.block != second.execution.block {
        return Err(Failure::Usage(format!(
            "execution {} is of the block {:?}, and execution {} of the block {:?}",
            first.id.0, first.execution.block, second.id.0, second.execution.block
        )));
    }
    let calls = |e: &'_ StoredExecution| -> BTreeMap<Key, Call<Site>> {
        e.execution.calls.iter().map(|c| (c.key.clone(), c.clone())).collect()
    };
    let (mine, theirs) = (calls(first), calls(second));
    let mut text = String::new();
    let mut row = |word: Word, what: &str| {
        let keys = first.execution.calls_of(word).chain(second.execution.calls_of(word));
        let mut told: Vec<&Key> = Vec::new();
        for key in keys.map(|c| &c.key) {
            let (a, b) = (mine.get(key), theirs.get(key));
            let digest = |c: Option<&Call<Site>>| c.map(|c| c.value.digest);
            if digest(a) != digest(b) && !told.contains(&key) {
                told.push(key);
                let of = |c: Option<&Call<Site>>| c.map_or("(missing)".into(), |c| shown(&c.value));
                let _ = writeln!(text, "{what} {}: {} | {}", called(key), of(a), of(b));
            }
        }
    };
    row(Word::Assume, "assumed");
    row(Word::Before, "before");
    row(Word::Ensure, "ensured");
    row(Word::After, "after");
    if first.build != second.build {
        let _ = writeln!(text, "builds: {} | {}", first.build, second.build);
    }
    for (execution, which) in [(first, "first"), (second, "second")] {
        if let Some(schedule) = &execution.schedule {
            let _ = writeln!(text, "schedule of the {which}: {schedule}");
        }
    }
    let same = mine.len() == theirs.len()
        && mine
            .iter()
            .all(|(key, a)| theirs.get(key).is_some_and(|b| a.value.digest == b.value.digest));
    if same {
        text.insert_str(0, "the two executions handed over the same values\n");
    }
    terminal::text(&text)?;
    Ok(if same { Exit::Clean } else { Exit::Findings })
}
