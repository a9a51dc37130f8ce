//! Deterministic blocks of native programs: compared, stored, inferred about.

mod common;

use common::{Project, json, stderr, stdout};

const TEST: [&str; 5] = ["test", "--format", "json", "--schedules", "200"];

/// The findings that are about a difference.
fn violations(document: &serde_json::Value) -> Vec<&serde_json::Value> {
    let findings = document["findings"].as_array().expect("a report has findings");
    findings.iter().filter(|f| f["kind"] == "determinism-violation").collect()
}

#[test]
fn an_ensured_value_that_depends_on_the_schedule_is_confirmed() {
    let project = Project::new("blocks-confirmed");
    project.build("blocks.c", &["-DWRONG"]);
    let output = project.selvedge(&[&TEST[..], &["--", "./program"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document = json(&output);
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(
        (&violation["status"], &violation["verdict"]),
        (&"confirmed".into(), &"harmful".into())
    );
    assert_eq!(violation["subject"], serde_json::json!(["solve", "sum"]));
    let state = &violation["states"][0];
    let mut values = [&state["first"], &state["second"]].map(|v| v.as_i64().expect("a number"));
    values.sort_unstable();
    assert_eq!((state["name"].as_str(), values), (Some("sum"), [11, 12]), "{state}");
    assert_eq!(violation["schedules"].as_array().map(Vec::len), Some(2));

    let id = violation["id"].as_str().expect("findings have ids");
    let again = project.selvedge(&["replay", id]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    assert!(stderr(&again).contains("happened again"), "{}", stderr(&again));
}

#[test]
fn only_the_race_that_changes_the_value_is_harmful() {
    let project = Project::new("blocks-harm");
    project.build("blocks.c", &["-DWRONG"]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    let races: Vec<(&str, &str)> = document["findings"]
        .as_array()
        .expect("a report has findings")
        .iter()
        .filter(|f| f["kind"] == "data-race" && f["status"] == "confirmed")
        .map(|f| (f["subject"][0].as_str().unwrap_or(""), f["verdict"].as_str().unwrap_or("")))
        .collect();
    assert!(races.contains(&("printed", "benign")), "{races:?}");
    assert!(races.contains(&("sum", "harmful")), "{races:?}");
}

#[test]
fn the_fixed_twin_is_deterministic() {
    let project = Project::new("blocks-fixed");
    project.build("blocks.c", &[]);
    for strategy in ["test", "explore"] {
        let output = project.selvedge(&[
            strategy,
            "--format",
            "json",
            "--schedules",
            "100",
            "--",
            "./program",
        ]);
        let document = json(&output);
        assert!(violations(&document).is_empty(), "{document:#}");
    }
    let list = project.selvedge(&["states", "list", "--json"]);
    let block = &json(&list)["blocks"][0];
    assert_eq!(
        (&block["block"], &block["inputs"], &block["results"]),
        (&"solve".into(), &1.into(), &1.into())
    );
    assert!(block["executions"].as_u64().expect("a number") > 100, "{block}");
}

#[test]
fn output_is_ensured_without_touching_the_program() {
    let project = Project::new("blocks-output");
    project.build("blocks.c", &["-DWRONG", "-DSELVEDGE_DISABLE"]);
    let ensured = [&TEST[..], &["--ensure", "stdout", "--", "./program"]].concat();
    let document = json(&project.selvedge(&ensured));
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(violation["subject"], serde_json::json!(["program", "stdout"]));
    assert_eq!(violation["status"], "confirmed");

    project.build("blocks.c", &["-DWRONG", "-DSELVEDGE_DISABLE", "-DWRITES"]);
    let ensured = [&TEST[..], &["--ensure", "file:result", "--", "./program"]].concat();
    let document = json(&project.selvedge(&ensured));
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(violation["subject"], serde_json::json!(["program", "file:result"]));

    project.build("blocks.c", &["-DSELVEDGE_DISABLE"]);
    let ensured = [&TEST[..], &["--ensure", "stdout", "--", "./program"]].concat();
    let fixed = json(&project.selvedge(&ensured));
    assert!(violations(&fixed).is_empty(), "{fixed:#}");
}

#[test]
fn misuse_and_open_blocks_are_never_green() {
    let project = Project::new("blocks-misuse");
    for (option, code, word) in [
        ("-DMISUSE", 2, "\"late\" is assumed after \"sum\" was ensured"),
        ("-DOPEN", 3, "the deterministic block \"solve\", begun at blocks.c:"),
    ] {
        project.build("blocks.c", &[option, "-DQUIET"]);
        for command in
            [&["test", "--schedules", "20"][..], &["explore", "--schedules", "20"], &["run"]]
        {
            let output = project.selvedge(&[command, &["--", "./program"]].concat());
            let text = stderr(&output) + &stdout(&output);
            assert_eq!(output.status.code(), Some(code), "{command:?}: {text}");
            assert!(text.contains(word), "{command:?}: {text}");
        }
    }
}

#[test]
fn runs_are_compared_with_stored_executions() {
    let project = Project::new("blocks-run");
    project.build("blocks.c", &[]);
    let run = |input: &str, more: &[&str]| {
        project.selvedge(
            &[&["run"][..], more, &["--format", "json", "--", "./program", input]].concat(),
        )
    };
    let first = run("10", &[]);
    assert_eq!(first.status.code(), Some(1), "the race on `printed` is there");
    assert!(stderr(&first).contains("was executed once"), "{}", stderr(&first));
    assert!(violations(&json(&run("10", &[]))).is_empty());

    project.build("blocks.c", &["-DSTEP=2"]);
    assert!(violations(&json(&run("10", &[]))).is_empty(), "another build");
    let document = json(&run("10", &["--across-builds"]));
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(violation["status"], "observed");
    assert!(violation["notes"].to_string().contains("build"), "{violation:#}");

    let show = stdout(&project.selvedge(&["states", "show", "solve"]));
    assert!(
        show.contains("input 1: n = 10") && show.contains("sum = 12 | 14  <- differs"),
        "{show}"
    );
    let diff = project.selvedge(&["states", "diff", "1", "3"]);
    assert_eq!(diff.status.code(), Some(1));
    assert!(stdout(&diff).contains("ensured sum: 12 | 14"), "{}", stdout(&diff));
    let pruned = project.selvedge(&["states", "prune", "--block", "solve"]);
    assert_eq!(stdout(&pruned), "deleted 4 executions\n");
    assert_eq!(project.selvedge(&["states", "prune"]).status.code(), Some(2));
}

#[test]
fn determinism_is_inferred_from_a_program_and_from_the_store() {
    let project = Project::new("blocks-infer");
    project.build("blocks.c", &[]);
    let inputs = ["--input", "10", "--input", "20"];
    let infer =
        [&["infer", "determinism", "--format", "json", "--runs", "4"][..], &inputs].concat();
    let output = project.selvedge(&[&infer[..], &["--", "./program"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let block = &json(&output)["blocks"][0];
    assert_eq!((&block["executions"], &block["inputs"]), (&8.into(), &2.into()), "{block:#}");
    let names = |condition: &str| {
        let list = block[condition].as_array().expect("a list").clone();
        list.iter().map(|c| c["name"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("precondition"), names("postcondition")),
        (vec!["n".into()], vec!["sum".into()])
    );

    let nothing = project.selvedge(&["infer", "determinism", "--store"]);
    assert_eq!(nothing.status.code(), Some(2), "there is no store: {nothing:?}");
    for input in ["10", "10", "20"] {
        project.selvedge(&["run", "--", "./program", input]);
    }
    let stored = project.selvedge(&["infer", "determinism", "--store", "--format", "json"]);
    assert_eq!(json(&stored)["blocks"][0]["executions"], 3, "{stored:?}");
}

#[test]
fn a_predicate_of_the_program_runs_in_the_program() {
    let project = Project::new("blocks-same");
    project.build("same.c", &[]);
    let sums = project.selvedge(&[&TEST[..], &["--", "./program"]].concat());
    assert_eq!(sums.status.code(), Some(0), "{sums:?}");
    assert!(violations(&json(&sums)).is_empty(), "{sums:?}");
    for _ in 0..2 {
        let run = project.selvedge(&["run", "--", "./program"]);
        assert_eq!(run.status.code(), Some(0), "{run:?}");
    }

    project.build("same.c", &["-DSAME=same_order"]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(violation["status"], "confirmed");
    assert_eq!(violation["subject"], serde_json::json!(["fill", "list"]));
}

#[test]
fn a_predicate_that_does_not_judge_is_no_verdict() {
    let project = Project::new("blocks-unjudged");
    for (predicate, word) in [
        ("never", "the predicate never is not reflexive"),
        ("smaller", "the predicate smaller is not symmetric"),
        ("crash", "the predicate crash gave no answer: it crashed"),
        ("loop", "the predicate loop gave no answer: it took longer than 2s (--patience)"),
    ] {
        project.build("same.c", &[&format!("-DSAME={predicate}")]);
        let test = ["test", "--schedules", "50", "--patience", "2s", "--", "./program"];
        let output = project.selvedge(&test);
        assert_eq!(output.status.code(), Some(2), "{predicate}: {output:?}");
        let text = stderr(&output);
        assert!(text.contains(word), "{predicate}: {text}");
        assert!(text.contains("at same.c:"), "{predicate}: {text}");
    }
}
