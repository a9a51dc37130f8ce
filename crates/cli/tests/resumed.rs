//! What one `selvedge test` leaves to the next.

mod common;

use std::path::Path;
use std::process::Output;

use common::{Project, json, stderr, stdout};

/// Builds one of the bundled programs, whose bug the first schedules of seed 1 do not show. An edit moves its lines.
fn build(project: &Project, edited: bool, options: &[&str]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(here.join("../../programs/work_stealing.c")).unwrap();
    let text = if edited { format!("// An edit.\n\n{text}") } else { text };
    std::fs::write(project.0.join("program.c"), text).unwrap();
    std::fs::copy(here.join("../../programs/shape.h"), project.0.join("shape.h")).unwrap();
    let mut args = vec!["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"];
    args.extend(options);
    project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
}

fn test(project: &Project, schedules: &str, more: &[&str]) -> Output {
    let fixed = ["test", "--observe", "0", "--seed", "1", "--format", "json", "--schedules"];
    let args = [&fixed[..], &[schedules], more, &["--", "./program", "1"]];
    project.selvedge(&args.concat())
}

/// After how many schedules of the last test the assertion failed, if it did.
fn failed(output: &Output) -> Option<u64> {
    let document = json(output);
    let findings = document["findings"].as_array().unwrap();
    let failure = findings.iter().find(|f| f["kind"] == "assertion")?;
    assert_eq!((&failure["status"], output.status.code()), (&"confirmed".into(), Some(1)));
    failure["after"].as_u64()
}

#[test]
fn a_test_goes_on_where_the_last_one_stopped() {
    let project = Project::new("resumed-same");
    build(&project, false, &[]);
    let few = |more: &[&str]| failed(&test(&project, "8", more));
    assert!(
        (0..3).all(|_| few(&["--fresh"]).is_none()),
        "the same eight schedules, again and again"
    );
    let found = (0..40).any(|_| few(&[]).is_some());
    assert!(found, "40 tests of eight schedules are more than one of eight");
    // What was found is found again at once: after the executions that observe.
    assert_eq!(few(&[]), Some(3));
    assert_eq!(few(&["--fresh"]), None);
}

#[test]
fn after_an_edit_a_test_begins_with_what_failed_before() {
    let project = Project::new("resumed-edited");
    build(&project, false, &[]);
    let first = failed(&test(&project, "500", &[])).expect("so many schedules show it");
    assert!(first > 4, "it is not shown at once: {first}");
    build(&project, true, &[]);
    assert_eq!(failed(&test(&project, "4", &["--fresh"])), None);
    assert_eq!(failed(&test(&project, "4", &[])), Some(3));
    build(&project, true, &["-DFIXED"]);
    let output = test(&project, "20", &[]);
    assert_eq!((failed(&output), output.status.code()), (None, Some(0)), "{}", stderr(&output));
}

#[test]
fn a_user_is_told_that_a_test_goes_on() {
    let project = Project::new("resumed-told");
    build(&project, false, &[]);
    let text = |more: &[&str]| {
        let args = [&["test", "--schedules", "10"][..], more, &["--", "./program", "1"]].concat();
        stdout(&project.selvedge(&args))
    };
    assert!(!text(&[]).contains("went on"));
    assert!(
        text(&[]).contains(" schedules of earlier tests (`--fresh` starts again)"),
        "{}",
        text(&[])
    );
    assert!(!text(&["--fresh"]).contains("went on"));
    build(&project, true, &[]);
    assert!(!text(&[]).contains("went on"), "another build is searched anew");
}

#[test]
fn a_test_that_the_time_limit_stopped_is_gone_on_with() {
    let project = Project::new("resumed-time");
    build(&project, false, &[]);
    let endless = ["test", "--schedules", "100000000", "--time", "3s", "--", "./program", "1"];
    let text = stdout(&project.selvedge(&endless));
    assert!(text.contains("stopped after 3 s"), "{text}");
    let text = stdout(&project.selvedge(&["test", "--schedules", "9", "--", "./program", "1"]));
    assert!(text.contains("went on after"), "{text}");
}
