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
        // Many programs start others with no descriptors but those for input and output.
        &["bash", "-c", "eval \"exec $SELVEDGE_SHM_FD>&-\"; ./program; ./program"],
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

/// Each source file of a program announces itself, in each process. The places of all processes are known all the same.
#[test]
fn many_processes_of_many_files() {
    const FILES: usize = 60;
    const PROCESSES: usize = 90;
    let project = Project::new("many-children");
    project.source("wrapped.c");
    let mut args =
        ["cc", "-g", "-pthread", "wrapped.c", "-o", "program"].map(String::from).to_vec();
    for i in 0..FILES {
        std::fs::write(project.0.join(format!("file{i}.c")), format!("int variable{i};\n"))
            .unwrap();
        args.push(format!("file{i}.c"));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    assert!(project.selvedge(&args).status.success());
    let (direct, _) = findings(&project, &["./program"]);
    let line = format!("for i in $(seq {PROCESSES}); do ./program; done");
    assert_eq!(findings(&project, &["sh", "-c", &line]), (direct, Some(1)));
}

#[test]
fn a_process_that_is_killed_keeps_no_other_from_its_end() {
    let project = Project::new("killed-children");
    project.build("kills.c", &[]);
    let output = project.selvedge(&["run", "--", "timeout", "60", "./program"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
