//! Deterministic blocks of native programs: compared, stored, inferred about.

mod common;

use std::path::Path;

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
        ("-DOUTSIDE", 2, "\"after\" is used outside of every deterministic block\n  at blocks.c:"),
        ("-DSTRAY", 2, "a deterministic block ends that its thread has not begun\n  at blocks.c:"),
        ("-DOPEN", 3, "the deterministic block \"solve\", begun at blocks.c:"),
        ("-DABANDONED", 3, "the deterministic block \"add\", begun at blocks.c:"),
        ("-DLONELY", 3, "\"solve\""),
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
    assert_eq!(nothing.status.code(), Some(3), "no states are stored: {nothing:?}");
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
fn predicates_of_one_name_in_two_files_are_two() {
    let project = Project::new("blocks-namesakes");
    project.source("namesake.c");
    project.build("namesakes.c", &["namesake.c"]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(violation["subject"], serde_json::json!(["fill", "exact"]));
    assert_eq!(violation["states"].as_array().map(Vec::len), Some(1), "{violation:#}");
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

#[test]
fn globals_are_states_of_functions() {
    let project = Project::new("blocks-globals");
    project.build("globals.c", &[]);
    let infer = ["infer", "determinism", "--deterministic", "solve", "--globals", "--runs", "6"];
    let inputs = ["--format", "json", "--input", "10", "--input", "20", "--", "./program"];
    let output = project.selvedge(&[&infer[..], &inputs].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let block = &json(&output)["blocks"][0];
    assert_eq!((&block["block"], &block["executions"]), (&"solve".into(), &12.into()));
    let has = |condition: &str, name: &str, predicate: &str| {
        let list = block[condition].as_array().expect("a list").iter();
        list.clone().any(|c| c["name"] == name && c["predicate"] == predicate)
    };
    // The function overwrites `seed`: it is read before that.
    assert!(has("precondition", "seed", "equal"), "{block:#}");
    assert!(has("precondition", "box->n", "equal"), "{block:#}");
    assert!(has("postcondition", "result", "equal"), "{block:#}");
    assert!(has("postcondition", "box->inner->n", "equal"), "{block:#}");
    assert!(has("postcondition", "order", "multiset"), "{block:#}");
    assert!(!has("postcondition", "last", "equal") && !has("postcondition", "order", "equal"));

    let shallow = [&infer[..], &["--depth", "2"], &inputs].concat();
    let text = stdout(&project.selvedge(&shallow));
    assert!(text.contains("box->n") && !text.contains("box->inner->n"), "{text}");

    // `explore` stores the same states, from which `infer` infers the same.
    let explore = ["explore", "--deterministic", "solve", "--globals", "--schedules", "40"];
    for input in ["10", "20"] {
        project.selvedge(&[&explore[..], &["--", "./program", input]].concat());
    }
    let stored = project.selvedge(&["infer", "determinism", "--store", "--format", "json"]);
    let stored = &json(&stored)["blocks"][0];
    let inferred = |block: &serde_json::Value, condition: &str| -> Vec<_> {
        let list = block[condition].as_array().expect("a list").iter();
        list.map(|c| (c["name"].clone(), c["predicate"].clone())).collect()
    };
    for condition in ["precondition", "postcondition"] {
        assert_eq!(inferred(stored, condition), inferred(block, condition), "{stored:#}");
    }
}

#[test]
fn blocks_of_rust_programs_have_values() {
    let project = Project::new("blocks-rust");
    project.build_rust_with_blocks("blocks.rs");
    for (by, differs) in
        [("order", true), ("set", false), ("multiset", false), ("sum", false), ("first", true)]
    {
        let output = project.selvedge(&[&TEST[..], &["--", "./program", by]].concat());
        let document = json(&output);
        let found = violations(&document);
        assert_eq!(found.len(), usize::from(differs), "{by}: {document:#}");
        assert_eq!(output.status.code(), Some(i32::from(differs)), "{by}: {document:#}");
        for violation in found {
            assert_eq!(violation["status"], "confirmed", "{violation:#}");
            assert_eq!(violation["subject"], serde_json::json!(["fill", "list"]));
            let place = violation["sites"][0].to_string();
            assert!(place.contains("src/main.rs"), "the place of the ensure: {place}");
        }
    }
    for (by, word) in [("nothing", "is not reflexive"), ("panic", "gave no answer: it crashed")] {
        let output = project.selvedge(&["test", "--schedules", "20", "--", "./program", by]);
        assert_eq!(output.status.code(), Some(2), "{by}: {output:?}");
        let text = stderr(&output);
        assert!(text.contains(word) && text.contains("at src/main.rs:"), "{by}: {text}");
    }
}

#[test]
fn threads_of_openmp_join_blocks_by_themselves() {
    for compiler in ["--selvedge-compiler=gcc", "--selvedge-compiler=clang-19"] {
        threads_join_blocks(compiler);
    }
}

fn threads_join_blocks(compiler: &str) {
    let project = Project::new("blocks-openmp");
    let run =
        |output: &str| project.selvedge(&["run", "--format", "json", "--", "./program", output]);
    project.build("teams.c", &[compiler, "-fopenmp"]);
    let once = run("1");
    assert!(stderr(&once).contains("was executed once"), "{}", stderr(&once));
    let again = run("2");
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    let list = json(&project.selvedge(&["states", "list", "--json"]));
    let blocks: Vec<_> = list["blocks"].as_array().expect("a list").iter().collect();
    assert_eq!(blocks.len(), 3, "{list:#}");
    for block in blocks {
        assert_eq!((&block["executions"], &block["results"]), (&2.into(), &1.into()), "{list:#}");
    }
    let show = stdout(&project.selvedge(&["states", "show", "second"]));
    assert_eq!(show.matches("part").count(), 4, "every thread of the team is in the block: {show}");

    // The third block ensures what is another number in each run.
    project.build("teams.c", &[compiler, "-fopenmp", "-DWRONG"]);
    run("1");
    let differs = run("2");
    assert_eq!(differs.status.code(), Some(1), "{differs:?}");
    let document = json(&differs);
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(violation["subject"], serde_json::json!(["nested", "part"]));

    project.build("teams.c", &[compiler, "-fopenmp", "-DOUTSIDE"]);
    let outside = run("1");
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");
    let text = stderr(&outside);
    assert!(text.contains("\"after\" is used outside of every deterministic block"), "{text}");
}

#[test]
fn a_race_is_turned_round_with_the_same_numbers() {
    let project = Project::new("blocks-choice");
    project.build("blocks.c", &["-DCHOICE"]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    assert_eq!(violations(&document).len(), 1, "the numbers are not assumed: {document:#}");
    let findings = document["findings"].as_array().expect("a report has findings");
    let printed = findings.iter().find(|f| f["kind"] == "data-race").expect("it is there");
    assert_eq!(
        (&printed["subject"][0], &printed["verdict"]),
        (&"printed".into(), &"benign".into())
    );
}

#[test]
fn an_execution_that_breaks_what_was_inferred_is_an_anomaly() {
    let project = Project::new("blocks-anomaly");
    // An addition is lost for the input 7 only.
    project.build("blocks.c", &["-DQUIET", "-DLATER"]);
    let infer = ["infer", "determinism", "--runs", "3", "--input", "10", "--input", "20"];
    let output = project.selvedge(&[&infer[..], &["--", "./program"]].concat());
    assert!(stdout(&output).contains("ensure  sum equal"), "{output:?}");
    let test = ["test", "--format", "json", "--schedules", "300", "--fail-on", "observed"];
    let document = json(&project.selvedge(&[&test[..], &["--", "./program", "10"]].concat()));
    let anomalies: Vec<_> =
        violations(&document).into_iter().filter(|v| v["status"] == "predicted").collect();
    assert!(anomalies.is_empty(), "nothing breaks it: {document:#}");
    let document = json(&project.selvedge(&[&test[..], &["--", "./program", "7"]].concat()));
    let [anomaly] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!((&anomaly["status"], &anomaly["verdict"]), (&"predicted".into(), &().into()));
    assert_eq!(anomaly["subject"], serde_json::json!(["solve", "sum"]));
    assert!(anomaly["notes"].to_string().contains("anomaly"), "{anomaly:#}");
}

/// Builds `program` of a kernel of the benchmarks, as a block of small size.
fn kernel(project: &Project, source: &str, options: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench").join(source);
    let path = path.to_str().expect("paths are text");
    let args = ["cc", "-g", "-O1", "-DBLOCKS", "-DTINY", path, "-lm", "-o", "program"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &[&args[..], options].concat());
}

/// The kinds of what is confirmed, with subject and verdict.
fn confirmed(document: &serde_json::Value) -> Vec<(&str, &str, &str)> {
    fn text(value: &serde_json::Value) -> &str {
        value.as_str().unwrap_or("")
    }
    let findings = document["findings"].as_array().expect("a report has findings").iter();
    findings
        .filter(|f| f["status"] == "confirmed")
        .map(|f| (text(&f["kind"]), text(&f["subject"][0]), text(&f["verdict"])))
        .collect()
}

#[test]
fn the_race_of_raytracer_is_harmful_and_a_benign_one_beside_it_is_not() {
    let project = Project::new("blocks-raytracer");
    kernel(&project, "noninterference/raytracer.c", &["-DBUG"]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    let found = confirmed(&document);
    assert!(found.contains(&("data-race", "checksum", "harmful")), "{found:?}");
    assert!(found.contains(&("data-race", "rows_done", "benign")), "{found:?}");
    assert!(!found.contains(&("data-race", "rows_done", "harmful")), "{found:?}");
    assert!(found.contains(&("determinism-violation", "raytracer", "harmful")), "{found:?}");

    kernel(&project, "noninterference/raytracer.c", &[]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    let found = confirmed(&document);
    assert!(found.iter().all(|(_, _, verdict)| *verdict != "harmful"), "{found:?}");
}

#[test]
fn the_order_of_two_draws_in_pi_is_harmful() {
    let project = Project::new("blocks-pi");
    kernel(&project, "determinism/pi.c", &[]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    let found = confirmed(&document);
    let harmful = |kind| found.iter().any(|(k, _, verdict)| *k == kind && *verdict == "harmful");
    assert!(harmful("high-level-race") && harmful("determinism-violation"), "{found:?}");
    assert!(!harmful("data-race"), "{found:?}");

    kernel(&project, "determinism/pi.c", &["-DFIXED"]);
    let document = json(&project.selvedge(&[&TEST[..], &["--", "./program"]].concat()));
    assert!(confirmed(&document).iter().all(|f| f.2 != "harmful"), "{document:#}");
}

#[test]
fn a_planted_error_is_found_in_the_step_in_which_it_happens() {
    for source in ["sor", "moldyn", "lufact"] {
        let project = Project::new(&format!("blocks-steps-{source}"));
        let file = format!("noninterference/{source}.c");
        let test = ["test", "--schedules", "200", "--", "./program"];
        kernel(&project, &file, &["-DEACH_STEP", "-DPLANTED=2"]);
        let text = stdout(&project.selvedge(&test));
        assert!(text.contains("the 3rd `step` of its thread"), "{source}: {text}");
        kernel(&project, &file, &["-DEACH_STEP"]);
        let output = project.selvedge(&test);
        assert_eq!(output.status.code(), Some(0), "{source}: {output:?}");
    }
}

#[test]
fn a_type_that_cannot_be_compared_does_not_compile() {
    let project = Project::new("blocks-types");
    let compiles = |compiler: &str, file: &str, text: &str| {
        std::fs::write(project.0.join(file), text).expect("the project can be written");
        let output = project.selvedge(&[compiler, "-c", file, "-o", "types.o"]);
        output.status.success()
    };
    let c = |value: &str| {
        let text = "#include <selvedge.h>\nvoid f(struct pair { int a; } s, int n, int *p) {\n    ";
        compiles("cc", "types.c", &format!("{text}SELVEDGE_ENSURE(\"v\", {value});\n}}\n"))
    };
    assert!(c("n") && c("s.a") && c("*p"));
    assert!(!c("s") && !c("p") && !c("\"text\""));
    let cpp = |value: &str| {
        let text = "#include <selvedge.hpp>\n#include <list>\n#include <string>\n#include <vector>\n\
            void f(int n, std::string t, std::vector<double> v, std::list<int> l, int *p) {\n    ";
        compiles("c++", "types.cpp", &format!("{text}selvedge::ensure(\"v\", {value});\n}}\n"))
    };
    assert!(cpp("n") && cpp("t") && cpp("v"));
    assert!(!cpp("l") && !cpp("p"));
}

#[test]
fn without_a_store_a_run_compares_nothing_and_says_so() {
    let project = Project::new("blocks-unstored");
    project.build("blocks.c", &["-DQUIET"]);
    let run = || project.selvedge(&["run", "--", "./program"]);
    run();
    assert_eq!(run().status.code(), Some(0), "there is an execution to compare with");
    let store = project.0.join(".selvedge/store.db");
    let change = rusqlite::Connection::open(&store).expect("the store is there");
    change.pragma_update(None, "user_version", 99).expect("it can be changed");
    drop(change);
    let newer = "the store has version 99, but this build reads versions up to";
    let output = run();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = stderr(&output);
    assert!(text.contains(newer) && text.contains("\"solve\" was executed once"), "{text}");
    let list = project.selvedge(&["states", "list"]);
    assert_eq!(list.status.code(), Some(2), "{list:?}");
    assert!(stderr(&list).contains(newer), "{list:?}");
    // Under control executions are compared with each other.
    let output = project.selvedge(&["test", "--schedules", "20", "--", "./program"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    std::fs::remove_dir_all(project.0.join(".selvedge")).expect("it can be deleted");
    std::fs::write(project.0.join(".selvedge"), "").expect("the project can be written");
    let output = run();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("cannot create the directory"), "{output:?}");
}

#[test]
fn a_value_that_has_changed_between_builds_is_told() {
    let project = Project::new("blocks-shapes");
    let run =
        || project.selvedge(&["run", "--across-builds", "--format", "json", "--", "./program"]);
    project.build("blocks.c", &["-DQUIET"]);
    run();
    project.build("blocks.c", &["-DQUIET", "-DSHAPE"]);
    let document = json(&run());
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    let state = &violation["states"][0];
    assert_eq!((&state["first"], &state["second"]), (&12.into(), &serde_json::json!([12])));
    assert!(violation["notes"].to_string().contains("another build"), "{violation:#}");

    project.build("blocks.c", &["-DQUIET", "-DNEAR"]);
    let output = run();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = stderr(&output);
    assert!(text.contains("sum: one execution compares by equal, the other by within:1"), "{text}");
}

#[test]
fn a_process_that_is_killed_inside_a_block_leaves_nothing_of_it() {
    let project = Project::new("blocks-killed");
    project.build("blocks.c", &["-DQUIET", "-DKILLED"]);
    let killed = project.selvedge(&["run", "--", "./program"]);
    assert!(stderr(&killed).contains("the program was killed by SIGKILL"), "{killed:?}");
    let blocks = json(&project.selvedge(&["states", "list", "--json"]));
    assert_eq!(blocks["blocks"], serde_json::json!([]), "{blocks}");
    let test = project.selvedge(&["test", "--schedules", "20", "--", "./program"]);
    assert_eq!(test.status.code(), Some(3), "no execution ends the block: {test:?}");
    let text = stderr(&test) + &stdout(&test);
    assert!(text.contains("the deterministic block \"solve\", begun at blocks.c:"), "{text}");
}
