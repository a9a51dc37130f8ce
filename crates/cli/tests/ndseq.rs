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
