//! Data structures in C that others wrote: is each operation as if it ran alone? `selvedge test` on small harnesses whose
//! operations are atomic blocks and whose results are observed.
//!
//! The stack of Concurrency Kit for unique producers is linearizable as long as no element is pushed again that another
//! thread may still pop; its harness does both.

use std::path::Path;

use serde_json::Value;

use super::determinism::tested;
use super::source::{self, With};
use super::{Result, Row, Workshop};

/// `ck_stack` used as its documentation demands, and with an element that is pushed again.
pub(super) fn ck_stack(workshop: &Workshop) -> Result<Vec<Row>> {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("atomicity/ck_stack.c");
    let script = format!(
        "./configure >/dev/null; cp '{}' .; \
         for use in fresh REUSE; do \
         $CC -g -O1 -D$use -DCK_USE_CC_BUILTINS=1 -Iinclude ck_stack.c -pthread -o ck_stack.$use; done",
        harness.display()
    );
    let built = source::build(workshop, "ck", With::Selvedge, &script)?;
    let used = |used: &str, violates: bool| -> Result<Row> {
        let directory = workshop.fresh(&format!("ck_stack-{used}"))?;
        let program = built.join(format!("ck_stack.{used}"));
        let command = [&*program.to_string_lossy()];
        let report = tested(workshop, &directory, &["--schedules", "300"], &command)?;
        Ok(row(&format!("ck_stack, {used}"), &report, violates))
    };
    Ok(vec![used("fresh", false)?, used("REUSE", true)?])
}

fn row(program: &str, report: &Value, violates: bool) -> Row {
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let violation = findings.iter().find(|f| f["kind"] == "linearizability-violation");
    let confirmed = violation.is_some_and(|f| f["status"] == "confirmed");
    let schedules = report["stats"]["schedules"].as_u64().unwrap_or(0);
    let after = violation.and_then(|f| f["after"].as_u64()).unwrap_or(0);
    Row {
        program: program.to_owned(),
        form: "from source",
        works: schedules > 0 && violation.is_some() == violates && confirmed == violates,
        findings: match violation {
            Some(_) => format!("not linearizable, {after}"),
            None => format!("linearizable in {schedules}"),
        },
        tsan: "-".into(),
        remarks: Vec::new(),
    }
}
