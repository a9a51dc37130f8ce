//! What users see of `ndseq`: traces with data flow.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyses/tests/ndseq").join(name)
}

/// The code and everything printed, as one text, for a file in a directory of its own.
fn shown(test: &str, text: &str, args: &[&str]) -> String {
    let scratch =
        std::env::temp_dir().join(format!("selvedge-ndseq-{test}-{}", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    fs::write(scratch.join("trace.std"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge"))
        .args(args)
        .arg("trace.std")
        .current_dir(&scratch)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    fs::remove_dir_all(&scratch).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    format!("{}{}exit {}", text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

fn check(test: &str, text: &str) -> String {
    shown(test, text, &["check", "--analyses", "ndseq", "--fail-on", "predicted"])
}

#[test]
fn a_lost_update_has_no_sequential_twin() {
    let text = fs::read_to_string(trace("lost_update.std")).unwrap();
    insta::assert_snapshot!(check("lost", &text));
}

#[test]
fn an_update_under_a_lock_conforms() {
    let text = fs::read_to_string(trace("locked_update.std")).unwrap();
    let shown = check("locked", &text);
    assert!(shown.starts_with("nothing found") && shown.ends_with("exit 0"), "{shown}");
}

#[test]
fn what_cannot_be_decided_is_not_green() {
    let shown = check("flowless", "a|r(x)|1\nb|w(x)|2\n");
    assert!(shown.contains("trace.std: the trace has no data flow"), "{shown}");
    assert!(shown.ends_with("exit 3"), "{shown}");
    let shown = check("alone", "a|get(l,x)|1\na|set(x,l)|2\n");
    assert!(shown.contains("trace.std: nothing ran in parallel"), "{shown}");
    assert!(shown.ends_with("exit 3"), "{shown}");
}

#[test]
fn bad_traces_are_refused_with_their_line() {
    for (text, expected) in [
        ("|get(l,x)|1\n", "line 1: the thread has no name"),
        ("a|get(x)|1\n", "line 1: expected get(local,variable), found \"get(x)\""),
        ("a|let(l,,b)|1\n", "line 1: a name is missing in \"let(l,,b)\""),
        ("a|if(l)|1\na|end(star:s)|2\n", "line 2: thread a leaves region \"s\""),
    ] {
        let shown = check("bad", text);
        assert!(shown.contains(expected) && shown.ends_with("exit 2"), "{shown}");
    }
}

fn infer(test: &str, text: &str, args: &[&str]) -> String {
    shown(test, text, &[&["infer", "ndseq"], args].concat())
}

#[test]
fn figure_7_3_needs_one_star_around_the_attempt() {
    let text = fs::read_to_string(trace("figure_7_3.std")).unwrap();
    insta::assert_snapshot!(infer("figure", &text, &[]));
    let json = infer("json", &text, &["--format", "json"]);
    let stars = r#""satisfiable":true,"executions":1,"events":"#;
    assert!(json.starts_with(&format!("{{{stars}")), "{json}");
    let star = r#""stars":[{"file":"fig71.c","first_line":5,"last_line":10,"function":"reduce"}],"seconds":"#;
    assert!(json.contains(star) && json.ends_with("exit 0"), "{json}");
}

#[test]
fn a_placement_can_be_ruled_out() {
    let text = fs::read_to_string(trace("figure_7_3.std")).unwrap();
    let next = infer("not", &text, &["--not", "fig71.c:5-10", "--format", "json"]);
    assert!(!next.contains(r#""first_line":5,"last_line":10"#), "{next}");
    assert!(next.contains(r#""satisfiable":true"#), "{next}");
}

#[test]
fn no_stars_help_a_lost_update() {
    let text = fs::read_to_string(trace("lost_update.std")).unwrap();
    let marked: String = text
        .lines()
        .map(|line| match line.split_once('|') {
            Some((thread, rest)) if rest.contains("add:") => {
                let number = rest.rsplit_once(':').unwrap().1;
                let label = format!("stmt:add.c:{number}-{number} add");
                format!("{thread}|begin({label})|s\n{line}\n{thread}|end({label})|s\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let shown = infer("lost", &marked, &[]);
    assert!(shown.starts_with("no specification: ") && shown.ends_with("exit 1"), "{shown}");
}

#[test]
fn inference_needs_statements_and_says_so() {
    let text = fs::read_to_string(trace("lost_update.std")).unwrap();
    let shown = infer("bare", &text, &[]);
    assert!(shown.contains("no statements are marked") && shown.ends_with("exit 3"), "{shown}");
    let wrong = "a|begin(stmt:here)|1\na|let(l)|1\na|end(stmt:here)|1\nb|let(l)|1\n";
    let shown = infer("label", wrong, &[]);
    assert!(shown.contains("`stmt:here` is not FILE:FIRST-LAST FUNCTION"), "{shown}");
    assert!(shown.ends_with("exit 2"), "{shown}");
}
