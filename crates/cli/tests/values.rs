//! What accesses find and leave, and executions beside each other, in the reports of controlled executions.

mod common;

use std::collections::BTreeSet;

use common::{Project, json, stderr, stdout};
use serde_json::Value;

fn steps(interleaving: &Value) -> Vec<&str> {
    let steps = interleaving["steps"].as_array();
    steps.into_iter().flatten().filter_map(|s| s["text"].as_str()).collect()
}

#[test]
fn interleavings_show_values_by_their_types() {
    let project = Project::new("values-types");
    for compiler in ["gcc", "clang-19"] {
        project.build("values.c", &[&format!("--selvedge-compiler={compiler}")]);
        let args = ["test", "--format", "json", "--schedules", "1000", "--", "./program"];
        let document = json(&project.selvedge(&args));
        let findings = document["findings"].as_array().unwrap();
        let told: BTreeSet<&str> =
            findings.iter().flat_map(|f| steps(&f["interleaving"])).collect();
        for expected in [
            "read queues[1].length = 0",
            "write queues[1].length 0 → -3",
            "write queues[1].load 0 → 0.5",
            "write queues[1].state IDLE → BUSY",
            "write queues[1].next null → &queues",
            "write queues[1].full false → true",
            "write letter 'a' → 'b'",
        ] {
            assert!(
                told.iter().any(|t| t.starts_with(expected)),
                "{compiler}: no {expected:?} in {told:#?}"
            );
        }
        // Either thread may be the first.
        let texts = ["\"a worker wit…\"", "\"short\""];
        let owner = |t: &&&str| t.starts_with("write queues[1].owner null → \"");
        let owned = told.iter().find(owner).expect("a write of a text");
        assert!(texts.iter().any(|text| owned.ends_with(text)), "{owned}");
        let race = findings.iter().find(|f| f["summary"] == "data race on `letter`").unwrap();
        let write = race["interleaving"]["steps"].as_array().unwrap();
        let write = write.iter().find(|s| s["does"] == "write").unwrap();
        assert_eq!((&write["found"], &write["left"]), (&"'a'".into(), &"'b'".into()));
    }
}

#[test]
fn both_orders_of_a_race_and_a_passing_execution_are_there_to_compare() {
    let project = Project::new("values-compared");
    project.build("lost_update.c", &[]);
    let args = ["test", "--format", "json", "--schedules", "300", "--", "./program"];
    let document = json(&project.selvedge(&args));
    let findings = document["findings"].as_array().unwrap();
    let race = findings.iter().find(|f| f["kind"] == "data-race").unwrap();
    // The update that is lost: both read 0 and write 1. In the other order the second one reads 1.
    let lost = steps(&race["interleaving"]);
    assert_eq!(lost.iter().filter(|s| **s == "write counter 0 → 1").count(), 1, "{lost:?}");
    assert!(lost.contains(&"write counter 1 → 1"), "{lost:?}");
    let execution = race["compared"]["execution"].as_str().unwrap();
    assert!(execution.ends_with("exit code 0"), "{execution}");
    let kept = steps(&race["compared"]["interleaving"]);
    assert!(kept.contains(&"write counter 1 → 2"), "{kept:?}");

    let assertion = findings.iter().find(|f| f["kind"] == "assertion").unwrap();
    let execution = assertion["compared"]["execution"].as_str().unwrap();
    assert_eq!(execution, "no thread is stopped: exit code 0");

    let sarif = json(&project.selvedge(&["report", "--format", "sarif"]));
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let race = results.iter().find(|r| r["ruleId"] == "data-race").unwrap();
    assert_eq!(race["codeFlows"].as_array().unwrap().len(), 2);
    let text = stdout(&project.selvedge(&["report"]));
    assert!(text.contains("write counter 1 → 1"), "{text}");
}

/// Pointers have other values each time, in processes that lie elsewhere in memory.
#[test]
fn the_same_values_are_shown_every_time() {
    let project = Project::new("values-again");
    project.build("values.c", &[]);
    let args = ["test", "--format", "json", "--schedules", "1000", "--", "./program"];
    let document = json(&project.selvedge(&args));
    let findings = document["findings"].as_array().unwrap();
    let with = |f: &&Value| {
        f["summary"] == "data race on `queues[1].owner`" && f["interleaving"] != Value::Null
    };
    let id = findings.iter().find(with).expect("a confirmed race")["id"].as_str().unwrap();
    let seen = || stderr(&project.selvedge(&["replay", id]));
    let first = seen();
    assert!(first.contains("write queues[1].owner null → \""), "{first}");
    assert_eq!(first, seen());
}
