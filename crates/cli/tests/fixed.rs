//! `selvedge fixed` tells bugs from their fixes, and wrong fixes from right ones; `replay --margin` says when a
//! bug can no longer be avoided.

mod common;

use std::path::{Path, PathBuf};

use common::{Project, json, stderr, stdout};

/// Tests `program`, and the id of the finding of this kind, or of the first one that a user would look at.
fn found(project: &Project, kind: Option<&str>) -> String {
    let args = ["test", "--seed", "1", "--schedules", "600", "--format", "json", "--", "./program"];
    let report = json(&project.selvedge(&args));
    let findings = report["findings"].as_array().expect("findings");
    let of = |kind: &str| {
        let confirmed = findings.iter().filter(|f| f["status"] == "confirmed");
        confirmed.filter(|f| f["kind"] == kind).find_map(|f| f["id"].as_str()).map(str::to_owned)
    };
    let kinds = ["assertion", "crash", "deadlock", "hang", "misuse", "data-race"];
    let id = match kind {
        Some(kind) => of(kind),
        None => kinds.into_iter().find_map(of),
    };
    id.unwrap_or_else(|| panic!("nothing confirmed: {report}"))
}

fn built(project: &Project, source: &Path, options: &[&str], output: &str) {
    if source.extension().is_some_and(|e| e == "rs") {
        let flags = if options.contains(&"-DFIXED") { "--cfg fixed" } else { "" };
        return project.build_crate(source, flags, output);
    }
    let driver = if source.extension().is_some_and(|e| e == "cpp") { "c++" } else { "cc" };
    let mut args = vec![driver, "-g", "-O1", source.to_str().unwrap(), "-o", output, "-lpthread"];
    args.extend(options);
    project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
}

/// The exit code of `fixed`, and what it says.
fn asked(project: &Project, id: &str, program: &str) -> (Option<i32>, String) {
    let output = project.selvedge(&["fixed", id, "--seed", "3", "--", program]);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

fn bundled() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let all = std::env::var_os("SELVEDGE_ALL").is_some();
    let some = [
        "account.c",
        "barrier_count.c",
        "bluetooth.c",
        "ring.rs",
        "string_buffer.cpp",
        "three_locks.c",
    ];
    let entries = std::fs::read_dir(folder).expect("the folder is part of the repository");
    let mut sources: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "c" || e == "cpp" || e == "rs"))
        .filter(|p| all || some.iter().any(|name| p.ends_with(name)))
        .collect();
    sources.sort();
    sources
}

/// Some of the bundled programs; all of them if `SELVEDGE_ALL` is set.
#[test]
fn bundled_bugs_are_still_there_and_gone_in_their_twins() {
    for source in bundled() {
        let project = Project::new("fixed-bundled");
        built(&project, &source, &[], "program");
        built(&project, &source, &["-DFIXED"], "twin");
        let id = found(&project, None);
        let (code, told) = asked(&project, &id, "./program");
        assert_eq!(code, Some(1), "{}: {told}", source.display());
        assert!(told.starts_with("still there: "), "{told}");
        let (code, told) = asked(&project, &id, "./twin");
        assert_eq!(code, Some(0), "{}: {told}", source.display());
        let bound = told.lines().find(|l| l.starts_with("not seen in ")).unwrap_or_default();
        assert!(
            bound.contains(" executions: at most ")
                && bound.ends_with("% per execution with 95% confidence"),
            "{told}"
        );
    }
}

#[test]
fn a_fix_that_only_moves_the_bug_is_not_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/wrong");
    for (source, kind, wrong) in [
        ("update.c", "assertion", "1"),
        ("update.c", "data-race", "2"),
        ("order.c", "deadlock", "3"),
    ] {
        let project = Project::new("fixed-wrong");
        let source = folder.join(source);
        built(&project, &source, &[], "program");
        built(&project, &source, &[&format!("-DFIX={wrong}")], "wrong");
        built(&project, &source, &["-DFIX=9"], "right");
        let id = found(&project, Some(kind));
        let (code, told) = asked(&project, &id, "./wrong");
        assert_eq!(code, Some(1), "FIX {wrong}: {told}");
        let (code, told) = asked(&project, &id, "./right");
        assert_eq!(code, Some(0), "FIX {wrong}: {told}");
    }
}

#[test]
fn the_margin_rises_to_certainty_and_is_kept_for_reports() {
    let project = Project::new("margin");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/wrong");
    built(&project, &folder.join("update.c"), &[], "program");
    let id = found(&project, Some("assertion"));
    let output = project.selvedge(&["replay", &id, "--margin", "50"]);
    let told = stderr(&output);
    assert!(told.contains("the moment of no return: "), "{told}");
    let shares: Vec<u8> =
        told.lines().filter_map(|l| l.trim_start().split_once('%')?.0.parse().ok()).collect();
    assert!(shares.len() > 4 && shares[0] < 60, "{told}");
    assert_eq!(shares.last(), Some(&100), "{told}");
    let page = project.selvedge(&["report", "--format", "html"]);
    assert!(stdout(&page).contains("class=\"chance\""), "the page shows the margin");
}
