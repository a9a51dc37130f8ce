//! Programs built with `selvedge cc --selvedge-flow`: is each execution as if sequential?

mod common;

use std::process::Output;

use common::{Project, json, stderr};
use serde_json::Value;

/// Builds a program of `programs/flow` for data flow.
fn build(project: &Project, source: &str, options: &[&str]) {
    let source = format!("flow/{source}");
    project.build(&source, &[&["--selvedge-flow"][..], options].concat());
}

fn tested(project: &Project, options: &[&str]) -> Output {
    let start = ["test", "--ndseq", "--format", "json", "--schedules", "60"];
    project.selvedge(&[&start[..], options, &["--", "./program"]].concat())
}

fn violations(document: &Value) -> Vec<&Value> {
    let findings = document["findings"].as_array().expect("a report has findings");
    findings.iter().filter(|f| f["kind"] == "parallelism-violation").collect()
}

#[test]
fn a_lost_update_has_no_sequential_twin() {
    let project = Project::new("flow-lost");
    build(&project, "lost_update.c", &[]);
    let output = tested(&project, &[]);
    let document = json(&output);
    let [violation] = violations(&document)[..] else {
        panic!("{document:#}\n{}", stderr(&output))
    };
    assert_eq!(violation["status"], "observed", "{violation:#}");
    assert_eq!(violation["verdict"], "harmful");
    assert_eq!(output.status.code(), Some(1));
    let id = violation["id"].as_str().expect("findings have ids");
    let again = project.selvedge(&["replay", id]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    assert!(stderr(&again).contains("sequential executions shows the same"), "{}", stderr(&again));
    let none = project.selvedge(&["replay", id, "--sequential"]);
    assert_eq!(none.status.code(), Some(3), "{}", stderr(&none));
    assert!(stderr(&none).contains("there is no sequential execution"), "{}", stderr(&none));
}

#[test]
fn the_locked_twin_is_as_if_sequential() {
    let project = Project::new("flow-locked");
    build(&project, "lost_update.c", &["-DFIXED"]);
    for options in [&[][..], &["--focus", "number"]] {
        let output = tested(&project, options);
        let document = json(&output);
        assert!(violations(&document).is_empty(), "{document:#}");
        assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    }
}

#[test]
fn the_focus_is_what_counts() {
    let project = Project::new("flow-focus");
    build(&project, "lost_update.c", &[]);
    let output = tested(&project, &["--focus", "number"]);
    assert_eq!(violations(&json(&output)).len(), 1, "{}", stderr(&output));
    let wrong = tested(&project, &["--focus", "numbr"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("the nearest names are: number"), "{}", stderr(&wrong));
}

#[test]
fn a_pruned_search_conforms_with_and_without_its_star() {
    let project = Project::new("flow-search");
    for options in [&["-DSTAR"][..], &[]] {
        build(&project, "search.c", options);
        let output = tested(&project, &[]);
        let document = json(&output);
        assert!(violations(&document).is_empty(), "{document:#}");
        assert_eq!(output.status.code(), Some(0), "{options:?} {document:#}\n{}", stderr(&output));
    }
}

#[test]
fn a_lock_free_stack_conforms_and_its_wrong_twin_does_not() {
    let project = Project::new("flow-stack");
    build(&project, "stack.c", &["-DSTAR", "-DTASKS=2"]);
    let output = tested(&project, &[]);
    let document = json(&output);
    assert!(violations(&document).is_empty(), "{document:#}");
    assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    build(&project, "stack.c", &["-DSTAR", "-DTASKS=2", "-DWRONG"]);
    let output = tested(&project, &[]);
    let document = json(&output);
    assert!(!violations(&document).is_empty(), "{document:#}\n{}", stderr(&output));
    assert!(violations(&document).iter().all(|v| v["status"] == "observed"), "{document:#}");
}

#[test]
fn what_cannot_be_decided_is_not_green() {
    let project = Project::new("flow-undecided");
    build(&project, "alone.c", &[]);
    let output = tested(&project, &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing ran in parallel"), "{}", stderr(&output));
    project.build("flow/alone.c", &[]);
    let output = tested(&project, &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("selvedge cc --selvedge-flow"), "{}", stderr(&output));
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let project = Project::new("flow-seed");
    build(&project, "lost_update.c", &[]);
    let findings = |_| json(&tested(&project, &["--seed", "7"]))["findings"].clone();
    let [first, second] = [0, 1].map(findings);
    assert_eq!(first, second);
}
