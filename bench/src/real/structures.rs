//! Concurrent structures of crates that people use: is each operation as if it ran alone? `selvedge explore` on scenarios
//! of a harness (bench/atomicity/structures.rs) that `cargo selvedge` builds with the crates as they are.
//!
//! Errors that their users reported are found again, and are gone where they are mended: by a later version, or, where no
//! version has the fix, by the edits of [`MENDS`]. What is documented as not atomic is not compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::crates::vendored;
use super::{Result, Row, Workshop, succeed};

/// Schedules of a scenario.
const SCHEDULES: &str = "400";
/// Random scenarios of each structure of today, and schedules of each.
const SCENARIOS: u64 = 8;
const FEWER: &str = "150";

/// In which file of which crate which text becomes which other.
pub(super) struct Edit {
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    pub(super) file: &'static str,
    pub(super) texts: &'static [(&'static str, &'static str)],
}

pub(super) const MENDS: [Edit; 2] = [
    // Only who marks a node has removed it (pull request 1143), and a node is replaced by one that is already linked
    // (pull request 1101).
    Edit {
        package: "crossbeam-skiplist",
        version: "0.1.3",
        file: "src/base.rs",
        texts: &[
            // Only dependencies from a registry may do what a lint denies.
            (
                "//! A lock-free skip list. See [`SkipList`].\n",
                "//! A lock-free skip list. See [`SkipList`].\n#![allow(dangerous_implicit_autorefs)]\n",
            ),
            (
                "                }\n                return Some(entry);\n",
                "                    return Some(entry);\n                }\n                entry.release(guard);\n",
            ),
            (
                "                    if r.mark_tower() {\n                        \
                 self.hot_data.len.fetch_sub(1, Ordering::Relaxed);\n                    }\n",
                "                    break;\n",
            ),
            (
                "                        if r.mark_tower() {\n                            \
                 self.hot_data.len.fetch_sub(1, Ordering::Relaxed);\n                        }\n",
                "",
            ),
            (
                "                {\n                    break;\n                }\n\n                // We failed.",
                "                {\n                    if let Some(r) = search.found {\n                        \
                 if r.mark_tower() {\n                            \
                 self.hot_data.len.fetch_sub(1, Ordering::Relaxed);\n                        }\n                        \
                 self.search_bound(Bound::Included(&n.key), false, guard);\n                    }\n                    \
                 break;\n                }\n\n                // We failed.",
            ),
        ],
    },
    // A place that is taken but not yet left free is waited for (issue 583 has no fix in any version).
    Edit {
        package: "heapless",
        version: "0.9.3",
        file: "src/mpmc.rs",
        texts: &[
            ("&self.dequeue_pos, self.mask()", "&self.dequeue_pos, &self.enqueue_pos, self.mask()"),
            (
                "                &self.enqueue_pos,\n                self.mask(),\n",
                "                &self.enqueue_pos,\n                &self.dequeue_pos,\n                self.mask(),\n",
            ),
            (
                "    mask: UintSize,\n) -> Option<T> {",
                "    enqueue_pos: &AtomicTargetSize,\n    mask: UintSize,\n) -> Option<T> {",
            ),
            (
                "    mask: UintSize,\n    item: T,",
                "    dequeue_pos: &AtomicTargetSize,\n    mask: UintSize,\n    item: T,",
            ),
            (
                "                return None;\n",
                "                let end = enqueue_pos.load(Ordering::SeqCst);\n                \
                 let now = dequeue_pos.load(Ordering::SeqCst);\n                \
                 if now == pos && end == pos {\n                    return None;\n                }\n                \
                 core::hint::spin_loop();\n                pos = now;\n",
            ),
            (
                "                return Err(item);\n",
                "                let begin = dequeue_pos.load(Ordering::SeqCst);\n                \
                 let now = enqueue_pos.load(Ordering::SeqCst);\n                \
                 if now == pos && begin.wrapping_add(mask).wrapping_add(1) == pos {\n                    \
                 return Err(item);\n                }\n                core::hint::spin_loop();\n                \
                 pos = now;\n",
            ),
        ],
    },
];

/// Operations that are not atomic, by the scenario that shows it.
pub(super) struct Known {
    pub(super) what: &'static str,
    /// The structure with the error.
    pub(super) wrong: &'static str,
    /// Without it, if anything was mended.
    pub(super) mended: Option<&'static str>,
    strategy: &'static str,
    pub(super) scenario: &'static [&'static str],
    /// The operation whose result no serial order gives.
    operation: &'static str,
}

/// Errors that users found.
pub(super) const KNOWN: [Known; 4] = [
    Known {
        what: "skiplist 1143: both removes",
        wrong: "skiplist",
        mended: Some("skiplist-mended"),
        strategy: "interrupt",
        scenario: &["i1=1", "r1", "r1"],
        operation: "remove",
    },
    Known {
        what: "skiplist 1023: get while replaced",
        wrong: "skiplist",
        mended: Some("skiplist-mended"),
        strategy: "interrupt",
        scenario: &["i1=1", "i1=2", "g1"],
        operation: "get",
    },
    Known {
        what: "heapless 583: full, but is not",
        wrong: "heapless",
        mended: Some("heapless-mended"),
        strategy: "interrupt",
        scenario: &["p1 p2", "o p3", "o p4"],
        operation: "push",
    },
    Known {
        what: "crossbeam-queue 523: len",
        wrong: "segqueue-0.2.1",
        mended: Some("segqueue"),
        strategy: "interrupt:2",
        scenario: &["30p0 30o", "p1", "o", "l"],
        operation: "len",
    },
];

/// Operations of today that are neither atomic nor documented as not atomic; docs/structures.md describes them.
const OPEN: [Known; 3] = [
    Known {
        what: "dashmap: len, shard by shard",
        wrong: "dashmap",
        mended: None,
        strategy: "interrupt",
        scenario: &["i3=1", "r3 i1=3", "l"],
        operation: "len",
    },
    Known {
        what: "skiplist: iteration sees a key twice",
        wrong: "skiplist-mended",
        mended: None,
        strategy: "interrupt",
        scenario: &["i1=2", "i1=1", "c"],
        operation: "content",
    },
    Known {
        what: "skiplist: an old value comes back",
        wrong: "skiplist-mended",
        mended: None,
        strategy: "interrupt",
        scenario: &["i1=2", "i1=1", "r1 g1"],
        operation: "get",
    },
];

/// A structure of today.
struct Today {
    name: &'static str,
    /// The operations to choose from.
    ops: &'static str,
    /// Operations that are not compared, each with the sentence of its documentation that says why, or with where it is
    /// written up.
    weak: &'static [(&'static str, &'static str)],
}

const MAP: &str = "i1=1 i1=2 i2=3 g1 g2 r1 r2 l c";
const DASHMAP: &str = "not documented: docs/structures.md, and issue 358 of dashmap";

const TODAY: [Today; 8] = [
    Today { name: "segqueue", ops: "p1 p2 o l", weak: &[] },
    Today { name: "arrayqueue", ops: "p1 p2 o l f", weak: &[] },
    Today { name: "concurrent-queue", ops: "p1 p2 o l", weak: &[] },
    Today { name: "concurrent-queue-bounded", ops: "p1 p2 o l f", weak: &[] },
    Today { name: "dashmap", ops: MAP, weak: &[("len", DASHMAP)] },
    Today {
        name: "scc",
        ops: MAP,
        weak: &[(
            "len",
            "it may overcount entries if an old bucket array has not yet been dropped",
        )],
    },
    Today {
        name: "scc-tree",
        ops: MAP,
        weak: &[(
            "content",
            "`TreeIndex` methods are linearizable. However, its iterator methods are not",
        )],
    },
    Today {
        name: "flurry",
        ops: MAP,
        weak: &[
            (
                "len",
                "Aggregate status methods like `len` are typically useful only when a map is not undergoing concurrent \
                 updates in other threads.",
            ),
            (
                "content",
                "iterators return elements reflecting the state of the hash table at some point at or since the creation \
                 of the iterator",
            ),
        ],
    },
];

/// The harness, with the crates as they are and mended.
fn harness(workshop: &Workshop) -> Result<PathBuf> {
    let text = |e: std::io::Error| e.to_string();
    let directory = workshop.directory.join("structures");
    for mend in &MENDS {
        let of = (mend.package, mend.version);
        edited(workshop, of, [mend], &directory.join(mend.package))?;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let selvedge = here.join("../crates/selvedge").canonicalize().map_err(text)?;
    let manifest = format!(
        "[package]\nname = \"structures\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         concurrent-queue = \"=2.5.0\"\ncrossbeam-queue = \"=0.3.12\"\n\
         crossbeam-queue-0-2 = {{ package = \"crossbeam-queue\", version = \"=0.2.1\" }}\n\
         crossbeam-skiplist = \"=0.1.3\"\n\
         crossbeam-skiplist-mended = {{ package = \"crossbeam-skiplist\", path = \"crossbeam-skiplist\" }}\n\
         dashmap = \"=6.2.1\"\nflurry = \"=0.5.2\"\nheapless = \"=0.9.3\"\n\
         heapless-mended = {{ package = \"heapless\", path = \"heapless\" }}\nscc = \"=3.8.8\"\n\
         selvedge = {{ path = {selvedge:?}, default-features = false }}\n\n[profile.dev]\nopt-level = 1\n\n\
         [workspace]\n"
    );
    fs::create_dir_all(directory.join("src")).map_err(text)?;
    fs::write(directory.join("Cargo.toml"), manifest).map_err(text)?;
    for (from, to) in [("structures.rs", "main.rs"), ("operations.rs", "operations.rs")] {
        let from = here.join("atomicity").join(from);
        fs::copy(from, directory.join("src").join(to)).map_err(text)?;
    }
    let mut cargo = Command::new(workshop.selvedge.with_file_name("cargo-selvedge"));
    cargo.args(["selvedge", "build", "--quiet"]).current_dir(&directory);
    succeed(cargo.env_remove("CARGO").env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS"))?;
    Ok(directory.join("target/selvedge/x86_64-unknown-linux-gnu/debug/structures"))
}

/// A copy of a crate's source in which some texts are others.
pub(super) fn edited<'a>(
    workshop: &Workshop,
    (package, version): (&str, &str),
    edits: impl IntoIterator<Item = &'a Edit>,
    to: &Path,
) -> Result<()> {
    let text = |e: std::io::Error| e.to_string();
    let original = vendored(workshop, package, version)?;
    if to.exists() {
        fs::remove_dir_all(to).map_err(text)?;
    }
    fs::create_dir_all(to.parent().ok_or("no directory")?).map_err(text)?;
    succeed(Command::new("cp").arg("-r").arg(&original).arg(to))?;
    for edit in edits {
        let file = to.join(edit.file);
        let mut source = fs::read_to_string(&file).map_err(text)?;
        for (before, after) in edit.texts {
            if !source.contains(before) {
                return Err(format!("{}: `{before}` does not occur", file.display()));
            }
            source = source.replace(before, after);
        }
        fs::write(&file, source).map_err(text)?;
    }
    Ok(())
}

/// What `selvedge explore` reports of a scenario.
fn explored(
    workshop: &Workshop,
    (strategy, schedules): (&str, &str),
    command: &[&str],
) -> Result<Value> {
    let directory = workshop.fresh("structures-run")?;
    let options =
        ["explore", "--format", "json", "--schedules", schedules, "--strategy", strategy, "--"];
    let mut explore = workshop.selvedge(&directory, &options);
    let output = explore.args(command).output().map_err(|e| e.to_string())?;
    let told = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).map_err(|e| format!("{command:?}: {e}: {told}"))
}

/// The operations whose results no serial order gives, and after how many executions.
fn violation(report: &Value) -> Option<(Vec<String>, u64)> {
    let findings = report["findings"].as_array()?;
    let found = findings.iter().find(|f| f["kind"] == "linearizability-violation")?;
    let subject = found["subject"].as_array()?.iter();
    let names = subject.filter_map(Value::as_str).map(str::to_owned).collect();
    (found["status"] == "confirmed").then(|| (names, found["after"].as_u64().unwrap_or(0)))
}

/// Other findings, and what could not be decided.
fn trouble(report: &Value) -> Option<String> {
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let other = findings.iter().find(|f| f["kind"] != "linearizability-violation");
    let other = other.and_then(|f| f["summary"].as_str());
    let counts = &report["stats"]["interleavings"];
    let undecided = counts["undecided"].as_u64().filter(|&n| n > 0);
    other.map(str::to_owned).or_else(|| undecided.map(|n| format!("{n} interleavings undecided")))
}

/// The columns of table 5.1 that reports of a structure fill.
#[derive(Default)]
struct Columns {
    interleavings: u64,
    linearizable: u64,
    not_linearizable: u64,
    /// Serial orders that were looked at for each of both.
    orders: [u64; 2],
}

impl Columns {
    fn add(&mut self, report: &Value) {
        let counts = &report["stats"]["interleavings"];
        let number = |of: &Value| of.as_u64().unwrap_or(0);
        self.interleavings += number(&counts["overlapping"]);
        self.linearizable += number(&counts["linearizable"]);
        self.not_linearizable += number(&counts["not_linearizable"]);
        self.orders[0] += number(&counts["orders"]["linearizable"]);
        self.orders[1] += number(&counts["orders"]["not_linearizable"]);
    }

    fn line(&self) -> String {
        let average = |orders: u64, of: u64| match of {
            0 => "-".to_owned(),
            of => format!("{:.2}", orders as f64 / of as f64),
        };
        format!(
            "interleavings {}, not linearizable {}, serial executions: linearizable {}, not {}",
            self.interleavings,
            self.not_linearizable,
            average(self.orders[0], self.linearizable),
            average(self.orders[1], self.not_linearizable)
        )
    }
}

/// Errors that users found: there, and gone where they are mended.
pub(super) fn known(workshop: &Workshop) -> Result<Vec<Row>> {
    shown(workshop, &KNOWN)
}

/// Operations of today that are not atomic.
pub(super) fn open(workshop: &Workshop) -> Result<Vec<Row>> {
    shown(workshop, &OPEN)
}

/// Scenarios that show something, and show nothing where it is mended.
fn shown(workshop: &Workshop, all: &[Known]) -> Result<Vec<Row>> {
    let harness = harness(workshop)?;
    let harness = harness.to_string_lossy();
    let mut rows = Vec::new();
    for known in all {
        for (structure, is_wrong) in
            std::iter::once((known.wrong, true)).chain(known.mended.map(|mended| (mended, false)))
        {
            let command = [&[&*harness, structure][..], known.scenario].concat();
            let report = explored(workshop, (known.strategy, SCHEDULES), &command)?;
            let found = violation(&report);
            let right = match &found {
                Some((names, _)) => is_wrong && names.iter().any(|name| name == known.operation),
                None => !is_wrong && trouble(&report).is_none(),
            };
            let schedules = report["stats"]["schedules"].as_u64().unwrap_or(0);
            let mut columns = Columns::default();
            columns.add(&report);
            rows.push(Row {
                program: known.what.to_owned(),
                form: structure,
                works: right,
                findings: match found {
                    Some((names, after)) => format!("{}, after {after}", names.join(", ")),
                    None => format!("linearizable in {schedules}"),
                },
                tsan: "-".into(),
                remarks: std::iter::once(columns.line()).chain(trouble(&report)).collect(),
            });
        }
    }
    Ok(rows)
}

/// Structures of today under random scenarios.
pub(super) fn today(workshop: &Workshop) -> Result<Vec<Row>> {
    let harness = harness(workshop)?;
    let harness = harness.to_string_lossy();
    let mut rows = Vec::new();
    for today in &TODAY {
        let weak: Vec<&str> = today.weak.iter().map(|(operation, _)| *operation).collect();
        let weak = weak.join(",");
        let (mut remarks, mut columns) = (Vec::new(), Columns::default());
        for number in 0..SCENARIOS {
            let scenario = scenario(today, number);
            let scenario: Vec<&str> = scenario.iter().map(String::as_str).collect();
            let command = [&[&*harness, today.name, "--weak", &weak][..], &scenario[..]].concat();
            let strategy = if number % 2 == 0 { "interrupt" } else { "mix" };
            let report = explored(workshop, (strategy, FEWER), &command)?;
            columns.add(&report);
            if let Some((names, _)) = violation(&report) {
                remarks.push(format!("not linearizable: {} in {scenario:?}", names.join(", ")));
            } else if let Some(trouble) = trouble(&report) {
                remarks.push(format!("{trouble} in {scenario:?}"));
            }
        }
        let works = remarks.is_empty() && columns.interleavings > 0;
        remarks.push(columns.line());
        remarks
            .extend(today.weak.iter().map(|(operation, why)| format!("weak: {operation}: {why}")));
        rows.push(Row {
            program: today.name.to_owned(),
            form: "today's",
            works,
            findings: format!("{SCENARIOS} scenarios"),
            tsan: "-".into(),
            remarks,
        });
    }
    Ok(rows)
}

/// Operations to begin with, and of two threads.
fn scenario(today: &Today, number: u64) -> Vec<String> {
    let ops: Vec<&str> = today.ops.split(' ').collect();
    let mut state = number * 2 + 1;
    let mut below = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let changes = ops.iter().filter(|op| op.starts_with(['p', 'i'])).count();
    let before: Vec<&str> = (0..below(3)).map(|_| ops[below(changes)]).collect();
    let mut lists = vec![before.join(" ")];
    for _ in 0..2 {
        let list: Vec<&str> = (0..2 + below(2)).map(|_| ops[below(ops.len())]).collect();
        lists.push(list.join(" "));
    }
    lists
}
