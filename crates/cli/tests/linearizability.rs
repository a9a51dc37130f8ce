//! Atomic blocks of native programs: what no serial execution explains is found, confirmed and replayed.

mod common;

use common::{Project, json, stderr};
use serde_json::Value;

const SCHEDULES: [&str; 4] = ["--format", "json", "--schedules", "300"];

fn violations(document: &Value) -> Vec<&Value> {
    let findings = document["findings"].as_array().expect("a report has findings");
    findings.iter().filter(|f| f["kind"] == "linearizability-violation").collect()
}

#[test]
fn two_removes_that_both_succeed_are_confirmed_and_replayed() {
    let project = Project::new("linearizability-wrong");
    project.build("lockfree_set.c", &["-DWRONG"]);
    for command in ["test", "explore"] {
        let output = project.selvedge(&[&[command][..], &SCHEDULES, &["--", "./program"]].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let document = json(&output);
        let [violation] = violations(&document)[..] else { panic!("{document:#}") };
        assert_eq!(violation["status"], "confirmed", "{violation:#}");
        assert_eq!(violation["verdict"], "harmful");
        assert_eq!(violation["subject"], serde_json::json!(["removed"]));
        assert_eq!(violation["serial"]["witness"], "linearizable");
        let orders = violation["serial"]["orders"].as_array().expect("orders were tried");
        assert_eq!(orders.len(), 2, "{violation:#}");
        assert_eq!(orders[0]["blocks"][0]["name"], "remove");
        assert_eq!(orders[0]["states"][0]["name"], "removed");
        let id = violation["id"].as_str().expect("findings have ids");
        let again = project.selvedge(&["replay", id]);
        assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    }
}

#[test]
fn the_fixed_twin_passes_by_every_witness() {
    let project = Project::new("linearizability-fixed");
    project.build("lockfree_set.c", &[]);
    for witness in ["linearizable", "serializable", "atomic"] {
        let options = ["test", "--witness", witness];
        let output = project.selvedge(&[&options[..], &SCHEDULES, &["--", "./program"]].concat());
        let document = json(&output);
        assert!(violations(&document).is_empty(), "{document:#}");
        assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    }
    let output = project.selvedge(&["test", "--witness", "sequential", "--", "./program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is not a witness"), "{}", stderr(&output));
}

#[test]
fn a_violation_is_replayed_by_the_witness_that_found_it() {
    let project = Project::new("linearizability-witness");
    project.build("lockfree_set.c", &["-DWRONG"]);
    let options = ["explore", "--witness", "serializable"];
    let output = project.selvedge(&[&options[..], &SCHEDULES, &["--", "./program"]].concat());
    let document = json(&output);
    let [violation] = violations(&document)[..] else { panic!("{document:#}") };
    assert_eq!(violation["serial"]["witness"], "serializable", "{violation:#}");
    let again = project.selvedge(&["replay", violation["id"].as_str().expect("an id")]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
}

#[test]
fn conflicts_are_counted_and_not_reported_where_something_is_observed() {
    let project = Project::new("linearizability-conflicts");
    project.build("lockfree_set.c", &[]);
    let output = project.selvedge(&[&["test"][..], &SCHEDULES, &["--", "./program"]].concat());
    let document = json(&output);
    assert_eq!(document["findings"], serde_json::json!([]), "{document:#}");
    assert_eq!(document["stats"]["conflicts"], 1, "a load and a compare-exchange: {document:#}");
}

#[test]
fn predicates_decide_what_is_the_same() {
    for (how, code) in [("-DLIST", 1), ("-DMULTISET", 0), ("-DSUM", 0)] {
        let project = Project::new(&format!("linearizability-list{how}"));
        project.source("atomic_list.cpp");
        let compiler = ["c++", "-g", "-O1", how, "atomic_list.cpp", "-o", "program"];
        project.call(env!("CARGO_BIN_EXE_selvedge"), &compiler);
        let output = project.selvedge(&[&["test"][..], &SCHEDULES, &["--", "./program"]].concat());
        let document = json(&output);
        assert_eq!(violations(&document).len(), code, "{how}: {document:#}");
        assert_eq!(output.status.code(), Some(code as i32), "{how}: {document:#}");
    }
}

#[test]
fn wrong_use_is_refused_and_blocks_that_never_meet_are_not_green() {
    for (how, code, told) in [
        ("-DNO_BLOCK", 2, "the program enters no atomic block"),
        ("-DTWICE", 2, "reaches a second linearization point"),
        ("-DUNCLOSED", 2, "the atomic block \"add\" was never left\n  at atomic_misuse.c:12"),
        ("-DUNOPENED", 2, "block ends that its thread has not begun\n  at atomic_misuse.c:23"),
        ("-DAPART", 3, "atomic blocks"),
    ] {
        let project = Project::new(&format!("linearizability-misuse{how}"));
        project.build("atomic_misuse.c", &[how]);
        let output = project.selvedge(&["explore", "--schedules", "20", "--", "./program"]);
        assert_eq!(output.status.code(), Some(code), "{how}: {output:?}");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(said.contains(told), "{how}: {said}");
    }
}

/// No false alarm: random scenarios, predicates coarser than equality, blocks that wait, every strategy.
#[test]
fn a_queue_behind_a_mutex_is_linearizable_whatever_is_asked() {
    let project = Project::new("linearizability-locked");
    project.build("locked_queue.c", &[]);
    let named = selvedge_explore::registry::STRATEGIES.iter().map(|strategy| strategy.name);
    let predicates = ["exact", "within", "set", "multiset"];
    for (number, strategy) in named.chain(["interrupt:2", "dfs:2"]).enumerate() {
        for (i, predicate) in predicates.into_iter().enumerate() {
            let seed = (number * predicates.len() + i).to_string();
            for waits in [&[][..], &["waits"]] {
                let options = ["explore", "--strategy", strategy, "--schedules", "40"];
                let program = ["--format", "json", "--", "./program", seed.as_str(), predicate];
                let command = [&options[..], &program[..], waits];
                let output = project.selvedge(&command.concat());
                let told = stderr(&output);
                let document = json(&output);
                assert!(violations(&document).is_empty(), "{command:?}: {document:#}\n{told}");
                let remarks = document["stats"]["remarks"].to_string();
                let unforced = remarks.contains("no serial order");
                assert!(!unforced, "{command:?}: {document:#}\n{told}");
            }
        }
    }
}

#[test]
fn a_free_run_refuses_the_same_uses() {
    for (how, told) in [("-DNO_BLOCK", "enters no atomic block"), ("-DUNCLOSED", "was never left")]
    {
        let project = Project::new(&format!("linearizability-run{how}"));
        project.build("atomic_misuse.c", &[how]);
        let output = project.selvedge(&["run", "--", "./program"]);
        assert_eq!(output.status.code(), Some(2), "{how}: {output:?}");
        assert!(stderr(&output).contains(told), "{how}: {}", stderr(&output));
    }
}

#[test]
fn a_free_run_reports_conflicts_only_where_nothing_is_observed() {
    let project = Project::new("linearizability-withheld");
    for (how, code) in [("-DSILENT", 1), ("-DOBSERVING", 0)] {
        project.build("interrupted_block.c", &[how]);
        let run = ["run", "--analyses", "atomicity", "--format", "json", "--", "./program"];
        let output = project.selvedge(&run);
        assert_eq!(output.status.code(), Some(code), "{how}: {}", stderr(&output));
        let document = json(&output);
        let kinds: Vec<&Value> =
            document["findings"].as_array().unwrap().iter().map(|f| &f["kind"]).collect();
        match how {
            "-DSILENT" => assert_eq!(kinds, ["atomicity-violation"], "{document:#}"),
            _ => {
                assert!(kinds.is_empty(), "{document:#}");
                assert_eq!(document["stats"]["conflicts"], 1, "{document:#}");
                let told = "what atomic blocks show was not checked";
                assert!(stderr(&output).contains(told), "{}", stderr(&output));
            }
        }
    }
}

#[test]
fn a_program_of_cargo_selvedge_is_judged_like_one_in_c() {
    let project = Project::new("linearizability-cargo");
    project.build_rust_with_blocks("lockfree_set.rs");
    for (how, code) in [("wrong", 1), ("right", 0)] {
        for command in ["test", "explore"] {
            let args = [&[command][..], &SCHEDULES, &["--", "./program", how]].concat();
            let output = project.selvedge(&args);
            let document = json(&output);
            assert_eq!(output.status.code(), Some(code), "{document:#}\n{}", stderr(&output));
            assert_eq!(violations(&document).len(), code as usize, "{document:#}");
            for violation in violations(&document) {
                assert_eq!(violation["subject"], serde_json::json!(["removed"]));
                assert_eq!(violation["status"], "confirmed");
                assert_eq!(violation["sites"][0]["line"], 23, "{violation:#}");
                let again = project.selvedge(&["replay", violation["id"].as_str().unwrap()]);
                assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
            }
            let counts = &document["stats"]["interleavings"];
            assert!(counts["overlapping"].as_u64() > Some(0), "{document:#}");
            assert_eq!(counts["not_linearizable"].as_u64() > Some(0), code == 1, "{document:#}");
        }
    }
}

#[test]
fn a_point_outside_of_every_block_is_told() {
    let project = Project::new("linearizability-point");
    project.build("lockfree_set.c", &["-DSTRAY"]);
    let output = project.selvedge(&["explore", "--schedules", "20", "--", "./program"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("outside of every atomic block"), "{}", stderr(&output));
}
