//! `selvedge history`.

mod common;

use std::fs;

use common::{Project, json, stderr, stdout};

/// A queue whose second element leaves first, although the first was put before.
const WRONG: &str = r#"{"process":0,"op":"enq","arg":1,"call":1,"return":2}
{"process":0,"op":"enq","arg":2,"call":3,"return":4}

{"process":1,"op":"deq","ret":2,"call":5,"return":7}
{"process":0,"op":"deq","ret":1,"call":8,"return":9}
"#;

fn project(name: &str, history: &str) -> Project {
    let project = Project::new(name);
    fs::write(project.0.join("history"), history).unwrap();
    project
}

#[test]
fn a_history_is_judged_with_the_operation_at_which_it_fails() {
    let project = project("history-wrong", WRONG);
    let output = project.selvedge(&["history", "--model", "queue", "history"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    insta::assert_snapshot!(stdout(&output));
    let output = project.selvedge(&["history", "--model", "queue", "--format", "json", "history"]);
    let judged = &json(&output)["histories"][0];
    assert_eq!(
        (&judged["verdict"], &judged["operations"]),
        (&"not-linearizable".into(), &4.into())
    );
    assert_eq!(
        (&judged["prefix"]["returned"], &judged["prefix"]["operation"]["line"]),
        (&2.into(), &4.into())
    );
}

#[test]
fn overlapping_operations_may_take_effect_in_any_order() {
    let right = WRONG.replace(r#""call":3,"return":4"#, r#""call":1,"return":4"#).replacen(
        r#""process":0"#,
        r#""process":2"#,
        1,
    );
    let project = project("history-right", &right);
    let output = project.selvedge(&["history", "--model", "queue", "history", "history"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        stdout(&output)
            .starts_with("history: linearizable as a queue (4 operations, 3 processes)\n")
    );
}

#[test]
fn malformed_histories_are_refused_with_their_line() {
    for (name, bad, word) in [
        ("json", "{", "EOF"),
        ("field", r#"{"process":1,"op":"deq","when":1}"#, "unknown field `when`"),
        ("op", r#"{"process":1,"op":"pop","call":1,"return":2}"#, "has no operation \"pop\""),
        ("time", r#"{"process":1,"op":"deq","call":2,"return":1}"#, "returns before it is called"),
        ("busy", r#"{"process":0,"op":"deq","call":1,"return":9}"#, "has returned"),
    ] {
        let project = project(&format!("history-bad-{name}"), &format!("{WRONG}{bad}\n"));
        let output = project.selvedge(&["history", "--model", "queue", "history"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let message = stderr(&output);
        assert!(message.contains("history, line ") && message.contains(word), "{message}");
    }
    let project = project("history-usage", WRONG);
    for arguments in [
        &["history", "--model", "heap", "history"][..],
        &["history", "--model", "queue", "--initial", "1", "history"],
        &["history", "--model", "queue", "--initial", "{", "history"],
        &["history", "--model", "queue", "--memory", "much", "history"],
        &["history", "--model", "queue", "nowhere"],
    ] {
        assert_eq!(project.selvedge(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn what_is_not_decided_in_time_is_said() {
    // Registers are hard where many writes overlap and are read in some order.
    let lines: Vec<String> = (0..2_000)
        .map(|i| {
            let call = i / 8 * 10;
            format!(
                r#"{{"process":{},"op":"write","arg":{i},"call":{call},"return":{}}}"#,
                i % 8,
                call + 9
            )
        })
        .collect();
    let project = project("history-time", &lines.join("\n"));
    let output = project.selvedge(&["history", "--model", "register", "--time", "0s", "history"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stdout(&output).contains("not decided"), "{}", stdout(&output));
}
