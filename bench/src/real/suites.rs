//! Programs and test suites of others, built from Debian's sources by gcc three times: as they are, with Selvedge and
//! with ThreadSanitizer. They must give the results that they give natively; what is found stands beside what
//! ThreadSanitizer says, and beside both is the time of processors that they took, over native.

use std::path::Path;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::source::{self, With};
use super::{Result, Row, Workshop, compare, pairs_of_tsan};

/// What is built and run.
#[derive(Clone, Copy)]
pub(super) struct Suite {
    pub(super) name: &'static str,
    package: &'static str,
    /// Builds it, see [`source::build`].
    build: &'static str,
    /// Runs it, in the directory in which it was built. What it prints are its results.
    run: &'static str,
}

pub(super) const SUITES: [Suite; 1] = [Suite {
    name: "fasttree",
    package: "fasttree",
    build: "$CC -O2 -g -DOPENMP -fopenmp -funroll-loops $SANITIZE fasttree.c -lm -o fasttree",
    // Two hundred related sequences, the same on every machine.
    run: "awk 'BEGIN { srand(7); for (i = 0; i < 300; i++) base[i] = int(rand() * 4); \
        for (s = 0; s < 200; s++) { print \">s\" s; line = \"\"; for (i = 0; i < 300; i++) { \
        if (rand() < 0.02) base[i] = int(rand() * 4); line = line substr(\"ACGT\", base[i] + 1, 1) } print line } }' \
        > sequences; OMP_NUM_THREADS=2 ./fasttree -quiet -nt sequences 2>&1 | grep -v ThreadSanitizer",
}];

/// Seconds that processors have spent for all that was run so far.
fn spent() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| e.to_string())?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

/// One run in the directory of a build: what it printed, how it ended, and its time.
fn timed(command: &mut Command, directory: &Path) -> Result<(String, String, f64)> {
    let before = spent()?;
    let output =
        command.current_dir(directory).output().map_err(|e| format!("{command:?}: {e}"))?;
    let results = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), output.status);
    Ok((results, String::from_utf8_lossy(&output.stderr).into_owned(), spent()? - before))
}

pub(super) fn measure(workshop: &Workshop, suite: Suite) -> Result<Vec<Row>> {
    let [native, ours, tsan] = [With::Nothing, With::Selvedge, With::Tsan]
        .map(|with| source::build(workshop, suite.package, with, suite.build));
    let (native, ours, tsan) = (native?, ours?, tsan?);
    let shell = ["sh", "-c", suite.run];
    let (expected, _, alone) = timed(Command::new(shell[0]).args(&shell[1..]), &native)?;
    let store = ours.join(".selvedge");
    std::fs::create_dir_all(store).map_err(|e| e.to_string())?;
    let mut observed = workshop.selvedge(&ours, &["run", "--fail-on", "never", "--"]);
    let (results, _, with_ours) = timed(observed.args(shell), &ours)?;
    let log = tsan.join("tsan.log");
    let mut sanitized = Command::new(shell[0]);
    sanitized
        .args(&shell[1..])
        .env("TSAN_OPTIONS", format!("exitcode=0 log_path={}", log.display()));
    let (theirs, _, with_tsan) = timed(&mut sanitized, &tsan)?;
    let (findings, reported, mut remarks) =
        compare(&workshop.found(&ours)?, &pairs_of_tsan(&logs(&tsan)?, &tsan));
    remarks.push(format!(
        "processors: {alone:.2} s natively, {:.1} times that with Selvedge, {:.1} with ThreadSanitizer{}",
        with_ours / alone,
        with_tsan / alone,
        if theirs == expected { "" } else { ", whose results differ" }
    ));
    Ok(vec![Row {
        program: suite.name.into(),
        form: "from source",
        works: results == expected,
        findings,
        tsan: reported,
        remarks,
    }])
}

/// All that ThreadSanitizer wrote into files in the directory.
fn logs(directory: &Path) -> Result<String> {
    let entries = std::fs::read_dir(directory).map_err(|e| e.to_string())?;
    let files = entries.filter_map(|e| Some(e.ok()?.path()));
    let logs = files.filter(|p| p.to_string_lossy().contains("tsan.log"));
    Ok(logs.filter_map(|p| std::fs::read_to_string(p).ok()).collect())
}
