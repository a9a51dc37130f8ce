//! The errors of [`super::structures`] by the crate `lincheck`, which runs a scenario in loom: schedules until it reports
//! something, with the error and where it is mended.
//!
//! loom sees only its own atomics, so the crates are ported by [`PORTS`]: imports; atomics that were made of zeros; and a
//! yield where an operation is tried again, without which loom goes on with an execution in which a thread reads the same
//! old value for ever.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::structures::{Edit, KNOWN, MENDS, edited};
use super::{Result, Row, Workshop, succeed};

/// What a scenario may take, for `timeout`.
const LIMIT: &str = "60";

/// How loom searches: a name, and the most preemptions of an execution.
const SEARCHES: [(&str, Option<&str>); 2] =
    [("lincheck", None), ("lincheck, 2 preemptions", Some("2"))];

/// Which crate, in which version, under which name, and whether it is mended.
const CRATES: [(&str, &str, &str, bool); 7] = [
    ("crossbeam-queue", "0.2.1", "queue-old", false),
    ("crossbeam-queue", "0.3.12", "queue-new", false),
    ("crossbeam-skiplist", "0.1.3", "skiplist", false),
    ("crossbeam-skiplist", "0.1.3", "skiplist-mended", true),
    ("heapless", "0.9.3", "heapless", false),
    ("heapless", "0.9.3", "heapless-mended", true),
    ("lincheck", "0.2.1", "lincheck", false),
];

const PORTS: [Edit; 10] = [
    // crossbeam-epoch is for this loom.
    Edit {
        package: "lincheck",
        version: "0.2.1",
        file: "Cargo.toml",
        texts: &[(
            "[dependencies.loom]\nversion = \"0.6\"",
            "[dependencies.loom]\nversion = \"0.7\"",
        )],
    },
    Edit {
        package: "heapless",
        version: "0.9.3",
        file: "Cargo.toml",
        texts: &[(
            "[dependencies.hash32]",
            "[dependencies.loom]\nversion = \"0.7\"\n\n[dependencies.hash32]",
        )],
    },
    Edit {
        package: "heapless",
        version: "0.9.3",
        file: "src/mpmc.rs",
        texts: &[
            ("use core::sync::atomic;\n", "use loom::sync::atomic;\n"),
            ("    pub const fn new() -> Self {", "    pub fn new() -> Self {"),
            ("    const fn new(seq: usize)", "    fn new(seq: usize)"),
            ("[const { Cell::new(0) }; N]", "core::array::from_fn(|_| Cell::new(0))"),
            (
                "                    break;\n                }\n",
                concat!(
                    "                    break;\n                }\n",
                    "                loom::thread::yield_now();\n"
                ),
            ),
            (
                "Ordering::Greater => {\n",
                "Ordering::Greater => {\n                loom::thread::yield_now();\n",
            ),
        ],
    },
    Edit {
        package: "crossbeam-skiplist",
        version: "0.1.3",
        file: "Cargo.toml",
        texts: &[(
            "[dependencies.crossbeam-utils]",
            "[dependencies.loom]\nversion = \"0.7\"\n\n[dependencies.crossbeam-utils]",
        )],
    },
    Edit {
        package: "crossbeam-skiplist",
        version: "0.1.3",
        file: "src/base.rs",
        texts: &[
            ("use core::sync::atomic::{fence,", "use loom::sync::atomic::{fence,"),
            (
                "            ptr::addr_of_mut!((*ptr).tower.pointers)\n                \
                 .cast::<Atomic<Self>>()\n                .write_bytes(0, height);",
                "            let pointers = ptr::addr_of_mut!((*ptr).tower.pointers)\n                \
                 .cast::<Atomic<Self>>();\n            for level in 0..height {\n                \
                 pointers.add(level).write(Atomic::null());\n            }",
            ),
            ("continue 'search;", "{ loom::thread::yield_now(); continue 'search; }"),
            (
                "                // We failed. Let's search for the key and try again.\n",
                "                loom::thread::yield_now();\n",
            ),
            (
                "                    None => continue,\n                };\n",
                "                    None => { loom::thread::yield_now(); continue }\n                };\n",
            ),
            (
                "            return Some(e);\n        }\n    }\n",
                "            return Some(e);\n        }\n        loom::thread::yield_now();\n    }\n",
            ),
        ],
    },
    Edit {
        package: "crossbeam-queue",
        version: "0.2.1",
        file: "Cargo.toml",
        texts: &[
            (
                "[dependencies.crossbeam-utils]\nversion = \"0.7\"",
                "[dependencies.loom]\nversion = \"0.7\"\n\n[dependencies.crossbeam-utils]\nversion = \"0.8\"",
            ),
            ("alloc = [\"crossbeam-utils/alloc\"]", "alloc = []"),
        ],
    },
    Edit {
        package: "crossbeam-queue",
        version: "0.2.1",
        file: "src/lib.rs",
        texts: &[(
            "extern crate crossbeam_utils;",
            "extern crate crossbeam_utils;\nextern crate loom;",
        )],
    },
    Edit {
        package: "crossbeam-queue",
        version: "0.2.1",
        file: "src/seg_queue.rs",
        texts: &[
            ("use core::sync::atomic::{self,", "use loom::sync::atomic::{self,"),
            (
                "        unsafe { mem::zeroed() }",
                "        Block {\n            next: AtomicPtr::new(ptr::null_mut()),\n            \
                 slots: ::core::array::from_fn(|_| Slot {\n                \
                 value: UnsafeCell::new(unsafe { mem::zeroed() }),\n                \
                 state: AtomicUsize::new(0),\n            }),\n        }",
            ),
        ],
    },
    Edit {
        package: "crossbeam-queue",
        version: "0.3.12",
        file: "Cargo.toml",
        texts: &[(
            "[dependencies.crossbeam-utils]",
            "[dependencies.loom]\nversion = \"0.7\"\n\n[dependencies.crossbeam-utils]",
        )],
    },
    Edit {
        package: "crossbeam-queue",
        version: "0.3.12",
        file: "src/seg_queue.rs",
        texts: &[
            ("use core::sync::atomic::{self,", "use loom::sync::atomic::{self,"),
            ("    pub const fn new() -> SegQueue<T> {", "    pub fn new() -> SegQueue<T> {"),
            (
                "use crossbeam_utils::{Backoff, CachePadded};\n",
                "use crossbeam_utils::{Backoff, CachePadded};\n\n\
                 trait GetMut<T> {\n    fn get_mut(&mut self) -> &mut T;\n}\n\n\
                 impl GetMut<usize> for AtomicUsize {\n    fn get_mut(&mut self) -> &mut usize {\n        \
                 self.with_mut(|v| unsafe { &mut *ptr::from_mut(v) })\n    }\n}\n\n\
                 impl<T> GetMut<*mut T> for AtomicPtr<T> {\n    fn get_mut(&mut self) -> &mut *mut T {\n        \
                 self.with_mut(|v| unsafe { &mut *ptr::from_mut(v) })\n    }\n}\n",
            ),
            (
                "        unsafe { Box::from_raw(ptr.cast()) }\n    }\n\n    /// Waits until the next",
                "        let block = Block {\n            next: AtomicPtr::new(ptr::null_mut()),\n            \
                 slots: core::array::from_fn(|_| Slot {\n                \
                 value: UnsafeCell::new(MaybeUninit::uninit()),\n                \
                 state: AtomicUsize::new(0),\n            }),\n        };\n        \
                 unsafe { ptr.cast::<Self>().write(block) };\n        \
                 unsafe { Box::from_raw(ptr.cast()) }\n    }\n\n    /// Waits until the next",
            ),
        ],
    },
];

/// The harness, with the crates ported.
fn harness(workshop: &Workshop) -> Result<PathBuf> {
    let text = |e: std::io::Error| e.to_string();
    let directory = workshop.directory.join("lincheck-structures");
    let mut dependencies = String::new();
    for (package, version, name, is_mended) in CRATES {
        let of = |edit: &&Edit| edit.package == package && edit.version == version;
        let mends = MENDS.iter().filter(|edit| is_mended && of(edit));
        let edits = mends.chain(PORTS.iter().filter(of));
        let copy = directory.join(name);
        edited(workshop, (package, version), edits, &copy)?;
        // Two packages of one workspace have two names.
        let manifest = fs::read_to_string(copy.join("Cargo.toml")).map_err(text)?;
        let [before, after] =
            [package, &format!("ported-{name}")].map(|n| format!("name = \"{n}\""));
        let manifest = manifest.replacen(&before, &after, 1);
        fs::write(copy.join("Cargo.toml"), manifest).map_err(text)?;
        let dependency = format!("{name} = {{ package = \"ported-{name}\", path = \"{name}\" }}\n");
        dependencies.push_str(&dependency);
    }
    let manifest = format!(
        "[package]\nname = \"lincheck-structures\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         crossbeam-epoch = {{ version = \"0.9\", features = [\"loom\"] }}\nloom = \"0.7\"\n{dependencies}\n[workspace]\n"
    );
    fs::create_dir_all(directory.join("src")).map_err(text)?;
    fs::write(directory.join("Cargo.toml"), manifest).map_err(text)?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("atomicity");
    for (from, to) in [("lincheck.rs", "main.rs"), ("operations.rs", "operations.rs")] {
        fs::copy(here.join(from), directory.join("src").join(to)).map_err(text)?;
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet"]).current_dir(&directory);
    // Lints of today would refuse what was written before them.
    cargo.env("RUSTFLAGS", "--cfg crossbeam_loom --cap-lints warn");
    succeed(cargo.env_remove("CARGO_TARGET_DIR"))?;
    Ok(directory.join("target/release/lincheck-structures"))
}

/// What `lincheck` says of one scenario.
fn told(harness: &Path, structure: &str, scenario: &[&str], bound: Option<&str>) -> Result<String> {
    let mut command = Command::new("timeout");
    command.arg(LIMIT).arg(harness).arg(structure).args(scenario).env("LOOM_MAX_BRANCHES", "10000");
    if let Some(bound) = bound {
        command.env("LOOM_MAX_PREEMPTIONS", bound);
    }
    let output = command.output().map_err(|e| e.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    Ok(match (output.status.code(), printed.lines().collect::<Vec<_>>().as_slice()) {
        (Some(0), [found, counts]) => {
            let (schedules, seconds) = counts.split_once(' ').ok_or("two numbers")?;
            let seconds: f64 = seconds.parse().map_err(|_| "a number of seconds")?;
            match *found {
                "none" => format!("nothing in {schedules} schedules, {seconds:.2} s"),
                calls => format!("after {schedules} ({seconds:.2} s): {calls}"),
            }
        }
        (Some(124), _) => format!("not decided in {LIMIT} s"),
        _ if errors.contains("exceeded maximum number of branches") => {
            "loom gives up: an execution with more than 10,000 branches".to_owned()
        }
        _ => return Err(format!("{structure} {scenario:?}: {errors}")),
    })
}

/// The errors that users found, and their mended forms.
pub(super) fn known(workshop: &Workshop) -> Result<Vec<Row>> {
    let harness = harness(workshop)?;
    let mut rows = Vec::new();
    for known in &KNOWN {
        for (form, bound) in SEARCHES {
            let mut remarks = Vec::new();
            if let Some(mended) = known.mended {
                let told = told(&harness, mended, known.scenario, bound)?;
                remarks.push(format!("mended: {told}"));
            }
            rows.push(Row {
                program: known.what.to_owned(),
                form,
                works: true,
                findings: told(&harness, known.wrong, known.scenario, bound)?,
                tsan: "-".into(),
                remarks,
            });
        }
    }
    Ok(rows)
}
