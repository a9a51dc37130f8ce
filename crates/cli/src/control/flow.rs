//! Programs that say how their data flows: what `test --ndseq`, `infer ndseq` and `replay` share.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustc_hash::FxHashMap;
use selvedge_engine::{Execution, Executor, Outcome};
use selvedge_model::{
    Event, FindingId, Op, Range, RegionId, RegionKind, Site, SiteId, Symbols, ThreadId,
};
use selvedge_report::escape;
use selvedge_runtime::Controlled;
use selvedge_runtime::control::Global;
use selvedge_runtime::flow::Tables;
use selvedge_specs::ndseq::runs::Statement;
use selvedge_specs::ndseq::{self, Recorder, Specification};

use crate::control::program::ControlledProgram;
use crate::exit::Failure;
use crate::program::elf;
use crate::program::pattern::Pattern;

/// What an execution shows: its focus or, without one, what it prints and its exit code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Focus(BTreeMap<String, Vec<Vec<u8>>>),
    Output(Vec<u8>, i32),
    /// It failed, in this way.
    Failed(FindingId),
}

/// What the execution that ran last shows; nothing if it was cut off.
pub(crate) fn shown(executor: &mut Controlled, execution: &Execution) -> Option<Shown> {
    let code = match &execution.outcome {
        Outcome::Undecided(_) => return None,
        Outcome::Failed(failed) => {
            let symbols = Executor::named(executor, execution);
            return Some(Shown::Failed(failed.id(&symbols)));
        }
        Outcome::Exited(code) => *code,
    };
    let focus = executor.flowed().focus.clone();
    if focus.is_empty() {
        return Some(Shown::Output(execution.output.clone(), code));
    }
    let mut parts: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (site, bytes) in focus {
        parts.entry(executor.symbols.site(site).to_string()).or_default().push(bytes);
    }
    Some(Shown::Focus(parts))
}

/// No execution ended, because each took more steps than can be recorded.
pub(crate) fn too_long(program: &ControlledProgram, steps: u64) -> Failure {
    Failure::Undecided(format!(
        "{}: no execution ended within {steps} steps, the most that can be followed; let the program do less, with a smaller input or fewer tasks",
        program.setup.program.display()
    ))
}

/// The words of the program do not fit its tables.
pub(crate) fn broken(why: &str) -> Failure {
    Failure::Undecided(format!(
        "the data flow of the program could not be followed ({why}); functions that are left by longjmp or exceptions are not supported"
    ))
}

/// The tables of a program that was built for data flow, with the calls that are its tasks.
pub(crate) fn tables(program: &ControlledProgram) -> Result<Tables, Failure> {
    let tables = read(program)?;
    let mut patterns = Vec::new();
    for text in &program.setup.tasks {
        let pattern = Pattern::whole(text);
        if !tables.names().any(|name| pattern.matches(name)) {
            let near = nearest(text, tables.names());
            return Err(Failure::Usage(format!(
                "--tasks {text}: no function that was compiled with `--selvedge-flow` has such a name; the nearest names are: {}",
                near.join(", ")
            )));
        }
        patterns.push(pattern);
    }
    Ok(tables.with_tasks(|name| patterns.iter().any(|p| p.matches(name))))
}

/// The tables of a program that was built for data flow.
pub(crate) fn read(program: &ControlledProgram) -> Result<Tables, Failure> {
    let path = &program.setup.program;
    let wrong = |why: String| Failure::Undecided(format!("{}: {why}", path.display()));
    let tables = Tables::read(path, &program.root).map_err(|e| wrong(e.to_string()))?;
    tables.ok_or_else(|| {
        wrong("this program does not say how its data flows; build it with `selvedge cc --selvedge-flow`, or with `SELVEDGE_FLOW=1 make CC=\"selvedge cc\"`".to_owned())
    })
}

/// The specification in a file, if it is one of the program with these tables.
pub(crate) fn specification(path: &Path, tables: &Tables) -> Result<Specification, Failure> {
    let text =
        fs::read_to_string(path).map_err(|error| Failure::Open { path: path.to_owned(), error })?;
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let spec = Specification::parse(&text).map_err(|e| wrong(e.to_string()))?;
    for Statement { file, first_line, last_line, function } in &spec.stars {
        let star = format!("star {file}:{first_line}-{last_line} in {function}");
        if !tables.has_function(file, function) {
            return Err(wrong(format!(
                "`{star}`: the program has no function {function} in {file}; is this the specification of another program?"
            )));
        }
        if !tables.has_run(file, function, (*first_line, *last_line)) {
            return Err(wrong(format!(
                "`{star}`: these are not the lines of whole statements any more; the function has changed, so infer the specification again"
            )));
        }
    }
    Ok(spec)
}

/// The globals that are the result.
pub(crate) fn focus(program: &ControlledProgram) -> Result<Vec<Global>, Failure> {
    let names = &program.setup.focus;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let globals = elf::globals(&program.setup.program).map_err(Failure::Program)?;
    let find = |name: &String| match globals.get(name) {
        Some(global) => Ok(global.clone()),
        None => {
            let near = nearest(name, globals.keys());
            let near = if near.is_empty() { "there is none".to_owned() } else { near.join(", ") };
            Err(Failure::Usage(format!(
                "--focus {name}: the program has no global of that name; the nearest names are: {near}"
            )))
        }
    };
    names.iter().map(find).collect()
}

/// The three names that are most like one.
fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut all: Vec<(usize, &String)> = all
        .filter(|n| !n.starts_with("__") && !n.starts_with("selvedge"))
        .map(|n| (distance(name.as_bytes(), n.as_bytes()), n))
        .collect();
    all.sort();
    all.into_iter().take(3).map(|(_, n)| n.clone()).collect()
}

/// How many bytes have to be inserted, deleted or replaced to make one text of another.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The data flow of an execution. What it shows is in focus, and not all of its memory.
pub(crate) fn recorded(
    execution: &Execution,
    symbols: &Symbols,
    with_floats: bool,
) -> Result<ndseq::Execution, Failure> {
    let mut recorder = recorder(with_floats);
    let mut marks = Marks { symbols, threads: FxHashMap::default() };
    for event in &execution.events {
        marks.check(event)?;
        recorder.on_event(event);
    }
    if let Some(wrong) = &execution.blocks.wrong {
        return Err(Failure::Usage(wrong.to_string()));
    }
    if let Outcome::Exited(_) = execution.outcome {
        let left = execution.blocks.open_tasks.first();
        let left = left.map(|task| named(&task.block, &task.site));
        if let Some(task) = left.or_else(|| marks.left_open()) {
            return Err(Failure::Usage(format!(
                "{task} never ends; end it with SELVEDGE_REGION_END() on every way out of it, or let its function return"
            )));
        }
    }
    let shown = Op::Focus(Range { start: 0, len: 0 });
    recorder.on_event(&Event { thread: ThreadId(0), site: SiteId(0), op: shown });
    if recorder.threads() < 2 {
        return Err(Failure::Undecided(
            "nothing ran in parallel: the program started no threads".to_owned(),
        ));
    }
    Ok(recorder.finish())
}

/// Records data flow; sums and products of floating point numbers may commute.
pub(crate) fn recorder(with_floats: bool) -> Recorder {
    if with_floats { Recorder::default().with_floats() } else { Recorder::default() }
}

/// Whether the marks of stars and tasks are where they can be.
struct Marks<'a> {
    symbols: &'a Symbols,
    threads: FxHashMap<ThreadId, Marked>,
}

#[derive(Default)]
struct Marked {
    /// The stars and tasks that the thread is in.
    open: Vec<(RegionId, RegionKind, SiteId)>,
    /// The task in which another thread started it.
    inside: Option<(RegionId, SiteId)>,
}

impl Marked {
    fn task(&self) -> Option<(RegionId, SiteId)> {
        let own = self.open.iter().rev().find(|o| o.1 == RegionKind::Task);
        own.map(|o| (o.0, o.2)).or(self.inside)
    }
}

impl Marks<'_> {
    fn check(&mut self, event: &Event) -> Result<(), Failure> {
        let me = self.threads.entry(event.thread).or_default();
        if let Op::RegionEnter(region, kind @ (RegionKind::Star | RegionKind::Task)) = event.op {
            if let (RegionKind::Task, Some((outer, site))) = (kind, me.inside) {
                let inner = self.named(region, event.site);
                let outer = self.named(outer, site);
                return Err(Failure::Usage(format!(
                    "{inner} begins inside {outer} of another thread, with which it is one; mark only one of them"
                )));
            }
            me.open.push((region, kind, event.site));
        } else if let Op::RegionExit(region) = event.op {
            me.open.pop_if(|o| o.0 == region);
        } else if let Op::Fork(child) = event.op {
            if me.open.iter().any(|o| o.1 == RegionKind::Star) {
                return Err(Failure::Usage(
                    "a star is around code that starts threads; put it around less".to_owned(),
                ));
            }
            let inside = me.task();
            self.threads.entry(child).or_default().inside = inside;
        }
        Ok(())
    }

    /// A task that is still open: all that follows would be in it.
    fn left_open(&self) -> Option<String> {
        let mut open = self.threads.values().flat_map(|t| &t.open);
        let &(region, _, site) = open.find(|o| o.1 == RegionKind::Task)?;
        Some(self.named(region, site))
    }

    fn named(&self, region: RegionId, site: SiteId) -> String {
        let name = self.symbols.region(region).map_or("", |r| &*r.name);
        named(name, &self.symbols.site(site))
    }
}

fn named(task: &str, site: &Site) -> String {
    format!("the task {:?} ({site})", escape::visible(task))
}
