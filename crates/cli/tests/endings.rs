//! How a program ends is one finding, whichever command saw it.

mod common;

use common::{Project, json, stderr};

/// The id, the kind and the first place of the finding that the program failed.
fn failure(project: &Project, command: &[&str], how: &str) -> Option<(String, String, u64)> {
    let mut args = command.to_vec();
    args.extend(["--format", "json", "--", "./program", how]);
    let report = json(&project.selvedge(&args));
    let of = |f: &serde_json::Value| {
        let place = f["sites"].get(0)?;
        let text = |v: &serde_json::Value| v.as_str().map(str::to_owned);
        Some((text(&f["id"])?, text(&f["kind"])?, place["line"].as_u64()?))
    };
    let findings = report["findings"].as_array()?;
    findings.iter().find(|f| f["kind"] == "crash" || f["kind"] == "assertion").and_then(of)
}

#[test]
fn a_crash_has_one_identity_and_its_place_under_run_and_under_control() {
    let project = Project::new("endings");
    project.build("dies.c", &[]);
    let source = include_str!("programs/dies.c");
    for (how, kind) in [("null", "crash"), ("abort", "crash"), ("assert", "assertion")] {
        // Running freely, the main thread may come first on a busy machine.
        let seen = (0..20).find_map(|_| failure(&project, &["run"], how)).expect("it crashes");
        let line = source.lines().position(|l| l.contains(&format!("/* {how} */")));
        assert_eq!((seen.1.as_str(), Some(seen.2)), (kind, line.map(|l| l as u64 + 1)), "{how}");
        let controlled = failure(&project, &["explore", "--schedules", "200"], how);
        assert_eq!(controlled, Some(seen), "{how}");
    }
    project.build("dies.c", &["-DFIXED"]);
    for command in [&["run"][..], &["explore", "--schedules", "50"]] {
        assert_eq!(failure(&project, command, "null"), None);
    }
}

#[test]
fn a_program_that_is_late_for_main_is_told_from_one_without_the_runtime() {
    let project = Project::new("slow-start");
    project.build("slow_start.c", &[]);
    let output = project.selvedge(&["test", "--patience", "300ms", "--", "./program"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let expected = "did not come to main within 0.3 s (--patience)";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}
