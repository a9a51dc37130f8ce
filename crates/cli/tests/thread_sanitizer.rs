//! What users of ThreadSanitizer expect, and the rest of `selvedge run`'s options: the end of `main`, the program's own
//! suppressions, ignore lists, and traces for `selvedge check`.

mod common;

use std::fs;

use common::{Project, json, stderr, stdout};

fn kinds(project: &Project, options: &[&str]) -> Vec<String> {
    let args = [&["run", "--format", "json"], options, &["--", "./program"]].concat();
    let report = json(&project.selvedge(&args));
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|f| f["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_end_of_main_waits_for_threads_that_still_run() {
    let project = Project::new("linger");
    project.build("late.c", &[]);
    assert_eq!(kinds(&project, &["--linger", "60s"]), ["data-race"]);
    assert_eq!(kinds(&project, &["--linger", "0"]), Vec::<String>::new());
}

#[test]
fn a_program_has_suppressions_and_options_of_its_own() {
    let project = Project::new("own-rules");
    project.build("own_rules.c", &[]);
    assert_eq!(kinds(&project, &["--linger", "60s"]), Vec::<String>::new());
    project.build("own_rules.c", &["-DPLAIN"]);
    let mut plain = kinds(&project, &["--linger", "60s"]);
    plain.sort();
    assert_eq!(plain, ["data-race", "data-race", "misuse"]);
    // clang takes the list at build time.
    fs::write(project.0.join("list"), "fun:expected_race\nfun:unseen_race\n").unwrap();
    project.build(
        "own_rules.c",
        &["-DPLAIN", "--selvedge-compiler=clang-19", "-fsanitize-ignorelist=list"],
    );
    assert_eq!(kinds(&project, &["--linger", "60s"]), ["misuse"]);
}

#[test]
fn a_recorded_run_is_a_trace() {
    let project = Project::new("record");
    project.build("own_rules.c", &["-DPLAIN"]);
    for file in ["run.std", "run.svt"] {
        let output = project.selvedge(&["run", "--record", file, "--", "./program"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let args = ["check", "--analyses", "races", "--format", "json", file];
        let report = json(&project.selvedge(&args));
        let found = report["findings"].as_array().unwrap();
        let lines: Vec<_> = found.iter().map(|f| f["sites"][0]["line"].as_u64()).collect();
        assert_eq!(lines.len(), 2, "{file}: {report:#}");
        assert!(found.iter().all(|f| f["status"] == "observed" && f["kind"] == "data-race"));
    }
    let runs = stdout(&project.selvedge(&["report", "--runs"]));
    let first = runs.lines().next().unwrap();
    assert!(first.starts_with("run 2: ./program (") && first.contains(" UTC: "), "{runs}");
    assert!(first.ends_with(" findings"), "{runs}");
}

#[test]
fn the_headers_can_be_used_with_a_plain_compiler() {
    let project = Project::new("print-include");
    let directory = stdout(&project.selvedge(&["cc", "--print-include"]));
    fs::write(project.0.join("plain.c"), "#include <selvedge.h>\nint main(void) { return 0; }\n")
        .unwrap();
    project.call("cc", &["-I", directory.trim(), "-c", "plain.c"]);
}
