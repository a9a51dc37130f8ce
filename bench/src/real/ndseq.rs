//! Programs that must be as if sequential: `selvedge test --ndseq` (docs/ndseq.md).
//!
//! Structures of libraries run under harnesses of four tasks, and must conform. A whole program is built by its own
//! makefile, and must print what a native build prints; whether it conforms stands in its row.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::determinism::tested;
use super::source::{self, With};
use super::{Result, Row, Workshop, succeed};

/// A structure of a library, under `bench/ndseq/NAME.c`.
#[derive(Clone, Copy)]
pub(super) struct Harness {
    pub(super) name: &'static str,
    package: &'static str,
}

pub(super) const HARNESSES: [Harness; 4] = [
    Harness { name: "ck_stack", package: "ck" },
    Harness { name: "ck_fifo", package: "ck" },
    Harness { name: "ck_ring", package: "ck" },
    Harness { name: "urcu_lfstack", package: "liburcu" },
];

pub(super) fn harness(workshop: &Workshop, harness: Harness) -> Result<Vec<Row>> {
    let Harness { name, package } = harness;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("ndseq").join(name).with_extension("c");
    let script = format!(
        "tool=$CC; CC=gcc ./configure >/dev/null 2>&1; cp '{}' .; \
         $tool --selvedge-flow -g -Iinclude {name}.c -pthread -o {name}",
        source.display()
    );
    let built = source::build(workshop, package, With::Selvedge, &script)?;
    let directory = workshop.fresh(&format!("ndseq-{name}"))?;
    let program = built.join(name);
    let options = ["--ndseq", "--schedules", "200"];
    let report = tested(workshop, &directory, &options, &[&*program.to_string_lossy()])?;
    let (findings, conforms) = judged(&report);
    Ok(vec![row(name, findings, conforms)])
}

/// minimap2, which must map as a native build does.
pub(super) fn minimap2(workshop: &Workshop) -> Result<Vec<Row>> {
    const ARGUMENTS: [&str; 3] = ["-t2", "test/MT-human.fa", "test/MT-orang.fa"];
    let native = source::build(workshop, "minimap2", With::Nothing, "make CC=\"$CC\" minimap2")?;
    let script = "SELVEDGE_FLOW=1 make CC=\"$CC\" minimap2";
    let ours = source::build(workshop, "minimap2", With::Selvedge, script)?;
    let output = |built: &Path| {
        let mut command = Command::new(built.join("minimap2"));
        succeed(command.args(ARGUMENTS).current_dir(built)).map(|o| o.stdout)
    };
    let same = output(&native)? == output(&ours)?;
    let options = ["--ndseq", "--schedules", "3", "--sequential", "20"];
    let command = [&["./minimap2"][..], &ARGUMENTS].concat();
    let report = tested(workshop, &ours, &options, &command)?;
    Ok(vec![row("minimap2", judged(&report).0, same)])
}

/// How executions were judged, and whether all conform.
fn judged(report: &Value) -> (String, bool) {
    let counts = &report["stats"]["parallelism"];
    let count = |name: &str| counts[name].as_u64().unwrap_or(0);
    let findings = report["findings"].as_array().map_or(0, Vec::len);
    let (by_flow, by_twins) = (count("serializable"), count("twins"));
    let text = match findings {
        0 => format!("conform: {by_flow} + {by_twins}"),
        n => format!("{n}, conform: {by_flow} + {by_twins}"),
    };
    (text, findings == 0 && by_flow + by_twins > 0)
}

fn row(name: &str, findings: String, works: bool) -> Row {
    Row {
        program: format!("{name}, as if sequential"),
        form: "from source",
        works,
        findings,
        tsan: "-".into(),
        remarks: Vec::new(),
    }
}
