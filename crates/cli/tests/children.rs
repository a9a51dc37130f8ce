//! Programs that are started by others: by tools that become them, and by tools and tests that fork.

mod common;

use common::{Project, json, stderr};

/// The ids of the findings of a command, and its exit code.
fn findings(project: &Project, command: &[&str]) -> (Vec<String>, Option<i32>) {
    let mut args = vec!["run", "--format", "json", "--"];
    args.extend(command);
    let output = project.selvedge(&args);
    let report = json(&output);
    let ids = report["findings"].as_array().unwrap().iter().map(|f| f["id"].to_string()).collect();
    (ids, output.status.code())
}

#[test]
fn a_program_is_observed_whatever_starts_it() {
    let project = Project::new("children");
    project.build("wrapped.c", &[]);
    std::fs::write(project.0.join("Makefile"), "check:\n\t./program\n\t./program\n").unwrap();
    let (direct, code) = findings(&project, &["./program"]);
    assert_eq!((direct.len(), code), (1, Some(1)));
    for command in [
        &["env", "X=1", "./program"][..],
        &["nice", "./program"],
        &["timeout", "60", "./program"],
        &["sh", "-c", "./program"],
        &["bash", "-c", "./program; ./program"],
        &["make", "check"],
    ] {
        assert_eq!(findings(&project, command), (direct.clone(), Some(1)), "{command:?}");
    }
    project.build("wrapped.c", &["-DFIXED"]);
    for command in [&["env", "X=1", "./program"][..], &["bash", "-c", "./program; ./program"]] {
        assert_eq!(findings(&project, command), (vec![], Some(0)), "{command:?}");
    }
}

#[test]
fn a_process_that_goes_on_was_not_observed() {
    let project = Project::new("daemon");
    project.build("daemon.c", &[]);
    let output = project.selvedge(&["run", "--", "./program"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 child process was still running when the program ended"));
}
