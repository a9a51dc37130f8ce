//! What users see of `selvedge check` and `selvedge trace`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of its own for each test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("selvedge-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn selvedge(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.current_dir(directory).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(directory: &Path, args: &[&str]) -> Output {
    selvedge(directory).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The code and everything printed, as one text.
fn shown(output: &Output) -> String {
    format!("{}{}exit {}", stdout(output), stderr(output), output.status.code().unwrap())
}

fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name)
}

const RACE: &str = "A|w(x)|1\nB|r(x)|2\n";
const DEADLOCK: &str = "\
A|acq(l)|1\nA|acq(m)|2\nA|rel(m)|3\nA|rel(l)|4\nB|acq(m)|5\nB|acq(l)|6\nB|rel(l)|7\nB|rel(m)|8\n";

#[test]
fn a_race_with_source() {
    let directory = demo("");
    insta::assert_snapshot!(shown(&run(&directory, &["check", "account.std"])));
}

#[test]
fn a_deadlock_with_source_is_only_predicted_and_does_not_fail() {
    let directory = demo("");
    insta::assert_snapshot!(shown(&run(&directory, &["check", "transfer.std"])));
}

#[test]
fn fixed_twins_are_clean() {
    for name in ["account_fixed.std", "transfer_fixed.std"] {
        let output = run(&demo(""), &["check", "--analyses", "races,hybrid,deadlocks", name]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).starts_with("nothing found"));
    }
}

#[test]
fn places_without_source_are_listed_and_alike_findings_folded() {
    let scratch = Scratch::new("folded");
    let mut trace = String::from("M|fork(A)|0\nM|fork(B)|0\n");
    for i in 0..8 {
        trace +=
            &format!("A|acq(l)|a\nA|w(x)|w{i}\nA|rel(l)|a\nB|acq(m)|b\nB|r(x)|r{i}\nB|rel(m)|b\n");
    }
    scratch.file("t.std", trace);
    insta::assert_snapshot!(shown(&run(&scratch.0, &["check", "--analyses", "races", "t.std"])));
    let all = run(&scratch.0, &["check", "--analyses", "races", "--all", "t.std"]);
    assert_eq!(stdout(&all).matches("error[data-race-").count(), 15);
}

#[test]
fn json_has_the_documented_form() {
    let scratch = Scratch::new("json");
    scratch.file("t.std", format!("{RACE}{DEADLOCK}"));
    insta::assert_snapshot!(shown(&run(&scratch.0, &["check", "--format", "json", "t.std"])));
}

#[test]
fn several_traces_and_standard_input_make_one_report() {
    let scratch = Scratch::new("several");
    scratch.file("race.std", RACE);
    scratch.file("deadlock.std", DEADLOCK);
    let mut child = selvedge(&scratch.0)
        .args(["check", "race.std", "deadlock.std", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(RACE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output);
    assert!(text.contains("found by races, hybrid, 2 times"), "{text}");
    assert!(text.ends_with("2 findings: 1 observed, 1 predicted (12 events in 6 threads, by races, hybrid, deadlocks, atomicity, determinism)\n"), "{text}");
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let scratch = Scratch::new("same");
    scratch.file("t.std", format!("{RACE}{DEADLOCK}"));
    let first = run(&scratch.0, &["check", "--analyses", "all", "t.std"]);
    for _ in 0..5 {
        assert_eq!(run(&scratch.0, &["check", "--analyses", "all", "t.std"]).stdout, first.stdout);
    }
}

#[test]
fn fail_on_decides_the_exit_code() {
    let scratch = Scratch::new("fail-on");
    scratch.file("race.std", RACE);
    scratch.file("deadlock.std", DEADLOCK);
    let code =
        |trace, fail_on| run(&scratch.0, &["check", "--fail-on", fail_on, trace]).status.code();
    assert_eq!(code("race.std", "observed"), Some(1));
    assert_eq!(code("race.std", "confirmed"), Some(0));
    assert_eq!(code("race.std", "never"), Some(0));
    assert_eq!(code("deadlock.std", "observed"), Some(0));
    assert_eq!(code("deadlock.std", "predicted"), Some(1));
}

#[test]
fn wrong_usage_is_2_and_says_what_is_right() {
    let scratch = Scratch::new("usage");
    scratch.file("race.std", RACE);
    let output = run(&scratch.0, &["check", "--analyses", "racy", "race.std"]);
    let names: Vec<&str> = selvedge_analyses::registry::ANALYSES.iter().map(|e| e.name).collect();
    let names = names.join(", ");
    assert_eq!(
        shown(&output),
        format!("error: `racy` is not an analysis; there are {names}\nexit 2")
    );
    assert_eq!(run(&scratch.0, &["check"]).status.code(), Some(2));
    assert_eq!(run(&scratch.0, &["chekc"]).status.code(), Some(2));
    assert_eq!(run(&scratch.0, &["--help"]).status.code(), Some(0));
}

#[test]
fn bad_input_is_2_with_file_and_place() {
    let scratch = Scratch::new("bad");
    fs::create_dir(scratch.0.join("directory")).unwrap();
    scratch.file("empty.std", "");
    scratch.file("garbage", [0xde, 0xad, 0xbe, 0xef, 0x00]);
    scratch.file(
        "svt-garbage.svt",
        [
            0x93, 0x53, 0x56, 0x54, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
            9, 9, 9, 9, 9, 9, 9,
        ],
    );
    scratch.file("unbalanced.std", "T|r(x)|1\nT|rel(l)|2\n");
    scratch.file("undead.std", "T|fork(U)|1\nT|join(U)|2\nU|r(x)|3\n");
    scratch.file("newer.svt", [0x93, 0x53, 0x56, 0x54, 9, 0, 0, 0]);
    for (file, message) in [
        ("directory", "directory: this is a directory; name the trace files in it"),
        ("missing.std", "missing.std: cannot open: no such file"),
        ("empty.std", "empty.std: the trace is empty"),
        ("garbage", "garbage: line 1: this is neither text nor a binary Selvedge trace"),
        (
            "svt-garbage.svt",
            "svt-garbage.svt: offset 8: the block header is damaged (its checksum does not match)",
        ),
        ("unbalanced.std", "unbalanced.std: line 2: thread T releases l, which it does not hold"),
        ("undead.std", "undead.std: line 3: thread U goes on after it was joined or ended"),
        (
            "newer.svt",
            "newer.svt: the trace has format version 9, this build reads versions up to 3: use a newer selvedge",
        ),
    ] {
        assert_eq!(shown(&run(&scratch.0, &["check", file])), format!("error: {message}\nexit 2"));
    }
}

#[test]
fn a_hundred_thousand_threads_are_refused_if_they_live_together_and_fine_otherwise() {
    let scratch = Scratch::new("threads");
    let together: String = (0..100_000).map(|t| format!("T{t}|w(x{t})|1\n")).collect();
    scratch.file("together.std", together);
    let output = run(&scratch.0, &["check", "together.std"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with(
            "error: together.std: line 8193: more than 8192 threads are alive at once"
        )
    );
    let in_turn: String =
        (1..=100_000).map(|t| format!("T0|fork(T{t})|1\nT{t}|w(x)|2\nT0|join(T{t})|3\n")).collect();
    scratch.file("in-turn.std", in_turn);
    let output = run(&scratch.0, &["check", "in-turn.std"]);
    assert_eq!(
        shown(&output),
        "nothing found: 300000 events in 100001 threads, by races, hybrid, deadlocks, atomicity, determinism\nexit 0"
    );
}

#[test]
fn findings_before_a_damaged_place_are_not_lost() {
    let scratch = Scratch::new("half");
    scratch.file("half.std", format!("{RACE}nonsense\n"));
    let output = run(&scratch.0, &["check", "half.std"]);
    assert!(stdout(&output).contains("1 finding: 1 observed"));
    assert_eq!(
        stderr(&output),
        "error: half.std: line 3: expected thread|op|site, found \"nonsense\"\n"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_cut_off_trace_is_read_and_the_user_told() {
    let scratch = Scratch::new("cut");
    scratch.file("t.std", RACE);
    assert_eq!(shown(&run(&scratch.0, &["trace", "convert", "t.std", "t.svt"])), "exit 0");
    let bytes = fs::read(scratch.0.join("t.svt")).unwrap();
    // Only the mark of the end is missing.
    scratch.file("t.svt", &bytes[..bytes.len() - 3]);
    let output = run(&scratch.0, &["check", "t.svt"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the trace is cut off at offset"), "{}", stderr(&output));
    // Not even the first block is whole.
    scratch.file("t.svt", &bytes[..20]);
    let output = run(&scratch.0, &["check", "t.svt"]);
    assert_eq!(output.status.code(), Some(2));
    let expected = "t.svt: the trace is cut off before its first event";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn traces_convert_there_and_back() {
    let scratch = Scratch::new("convert");
    scratch.file("t.std", DEADLOCK);
    run(&scratch.0, &["trace", "convert", "t.std", "t.svt"]);
    assert_eq!(stdout(&run(&scratch.0, &["trace", "cat", "t.svt"])), DEADLOCK);
    assert_eq!(
        stdout(&run(&scratch.0, &["trace", "cat", "--limit", "2", "t.svt"])),
        "A|acq(l)|1\nA|acq(m)|2\n"
    );
    run(&scratch.0, &["trace", "convert", "t.svt", "back.std"]);
    assert_eq!(fs::read_to_string(scratch.0.join("back.std")).unwrap(), DEADLOCK);
    insta::assert_snapshot!(shown(&run(&scratch.0, &["trace", "stats", "t.svt"])));
}

#[test]
fn converting_from_a_file_that_is_not_there_leaves_nothing_behind() {
    let scratch = Scratch::new("leaves");
    let output = run(&scratch.0, &["trace", "convert", "no.std", "out.svt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!scratch.0.join("out.svt").exists());
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let scratch = Scratch::new("pipe");
    let many: String = (0..200_000).map(|i| format!("T|r(x{i})|{i}\n")).collect();
    scratch.file("t.std", many);
    let mut child = selvedge(&scratch.0)
        .args(["trace", "cat", "t.std"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn the_demo_shows_what_it_says() {
    let scratch = Scratch::new("demo");
    let output = run(&scratch.0, &["demo", "--keep", "examples"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(scratch.0.join("examples/account.c").exists());
    let tour = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    // One replay at each stop: a race, an atomicity violation, deadlocks in C and in Rust, a parallelism violation.
    assert_eq!(tour.matches("the finding happened again: ").count(), 5, "{tour}");
}

/// A trace whose regions are methods, as other tools record them: nothing is said of them there.
const METHODS: &str = "\
main|fork(other)|a.c:1
main|begin(transfer)|a.c:2
main|acq(l)|a.c:3
main|r(x)|a.c:3
main|rel(l)|a.c:3
other|acq(l)|a.c:9
other|w(x)|a.c:9
other|rel(l)|a.c:9
main|acq(l)|a.c:4
main|w(x)|a.c:4
main|rel(l)|a.c:4
main|end(transfer)|a.c:5
main|join(other)|a.c:6
";

#[test]
fn claims_of_regions_go_by_name() {
    let scratch = Scratch::new("claims");
    scratch.file("methods.std", METHODS);
    let kinds = |options: &[&str]| {
        let output = run(&scratch.0, &[&["check", "methods.std"], options].concat());
        let text = stdout(&output);
        let kinds = ["atomicity violation", "determinism violation"].map(|k| text.contains(k));
        assert_eq!(output.status.code(), Some(i32::from(kinds.contains(&true))), "{text}");
        kinds
    };
    assert_eq!(kinds(&[]), [true, false], "a bare name means atomic");
    assert_eq!(kinds(&["--deterministic", "trans*"]), [false, true]);
    assert_eq!(kinds(&["--deterministic", "trans"]), [true, false], "whole names");
    assert_eq!(kinds(&["--analyses", "races", "--atomic-methods", "*"]), [true, false]);
    assert_eq!(kinds(&["--analyses", "races"]), [false, false]);
}

#[test]
fn locked_code_may_be_taken_for_atomic() {
    let scratch = Scratch::new("locked");
    let trace = METHODS.replace("begin(transfer)", "acq(m)").replace("end(transfer)", "rel(m)");
    scratch.file("locked.std", trace);
    let text = |options: &[&str]| {
        stdout(&run(
            &scratch.0,
            &[&["check", "locked.std", "--analyses", "races"], options].concat(),
        ))
    };
    assert!(text(&[]).contains("nothing found"));
    let found = text(&["--lock-regions"]);
    assert!(found.contains("atomicity violation in `code locked at a.c:2`"), "{found}");
}

#[test]
fn a_deadlock_is_proved_by_an_order_that_shows_it() {
    let scratch = Scratch::new("proved");
    let start = "T0|fork(T1)|m:1\nT0|fork(T2)|m:2\n";
    let first = "T1|acq(a)|x:1\nT1|acq(b)|x:2\nT1|rel(b)|x:3\nT1|rel(a)|x:4\n";
    let second = "T2|acq(b)|x:5\nT2|acq(a)|x:6\nT2|rel(a)|x:7\nT2|rel(b)|x:8\n";
    scratch.file("t.std", format!("{start}{first}{second}"));
    insta::assert_snapshot!(shown(&run(
        &scratch.0,
        &["check", "--analyses", "predictive", "t.std"]
    )));
    // Here one thread reads what the other one wrote after it had released the locks.
    let between = "T1|w(v)|x:9\nT2|r(v)|x:10\n";
    scratch.file("ordered.std", format!("{start}{first}{between}{second}"));
    let clean = run(&scratch.0, &["check", "--analyses", "predictive", "ordered.std"]);
    assert!(!stdout(&clean).contains("deadlock"), "{}", stdout(&clean));
    let guessed = run(&scratch.0, &["check", "--analyses", "deadlocks", "ordered.std"]);
    assert!(stdout(&guessed).contains("deadlock"), "{}", stdout(&guessed));
}
