//! What users see of `selvedge replay`.

mod common;

use std::fs;

use common::{Project, json, stderr, stdout};

/// A project with a program whose failure has been found, and the id of that.
fn found(name: &str, source: &str) -> (Project, String, String) {
    let project = Project::new(name);
    project.build(source, &[]);
    let output = project.selvedge(&["explore", "--format", "json", "--", "./program"]);
    let finding = &json(&output)["findings"][0];
    let text = |key: &str| finding[key].as_str().expect("a finding").to_owned();
    let (id, schedule) = (text("id"), text("schedule"));
    (project, id, schedule)
}

#[test]
fn a_finding_happens_again_a_hundred_times_and_from_anywhere() {
    for source in ["lost_update.c", "abba.c", "lost_wakeup.c"] {
        let (project, id, _) = found("replay-again", source);
        let elsewhere = Project::new("replay-elsewhere");
        let store = project.0.join(".selvedge");
        let args = ["replay", &id, "--times", "100", "--store", store.to_str().unwrap()];
        let output = elsewhere.selvedge(&args);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("in 100 of 100 executions"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("diverged"), "{}", stderr(&output));
    }
}

#[test]
fn a_schedule_can_be_replayed_without_a_store() {
    let (project, _, schedule) = found("replay-literal", "lost_update.c");
    fs::remove_dir_all(project.0.join(".selvedge")).unwrap();
    let output = project.selvedge(&["replay", "--schedule", &schedule, "--", "./program"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("Assertion `counter == 2' failed"), "{}", stderr(&output));
    let wrong = project.selvedge(&["replay", "--schedule", "9/0/1", "--", "./program"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    // Without anything forced, nothing is lost, and the output is the program's.
    let plain = project.selvedge(&["replay", "--schedule", "1/0/", "--", "./program"]);
    assert_eq!((plain.status.code(), stdout(&plain).as_str()), (Some(0), "2\n"));
}

#[test]
fn a_finding_happens_again_after_an_edit_elsewhere() {
    let (project, id, _) = found("replay-edited", "lost_update.c");
    let source = fs::read_to_string(project.0.join("lost_update.c")).unwrap();
    let edited = source.replace(
        "static int counter;",
        "static int others;\nint unrelated(int n) {\n    return others += n;\n}\nstatic int counter;",
    );
    assert_ne!(source, edited);
    fs::write(project.0.join("edited.c"), edited).unwrap();
    fs::rename(project.0.join("edited.c"), project.0.join("lost_update.c")).unwrap();
    let args = ["cc", "-g", "-O1", "lost_update.c", "-o", "program"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
    let output = project.selvedge(&["replay", &id, "--times", "20"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("has changed since") && text.contains("in 20 of 20"), "{text}");
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let (project, id, _) = found("replay-cannot", "abba.c");
    let text = |args: &[&str], code: i32| {
        let output = project.selvedge(args);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(text(&["replay", "crash-0"], 2).contains("there is no finding crash-0"));
    // Another finding that begins like it.
    project.build("lost_wakeup.c", &["-o", "other"]);
    project.selvedge(&["explore", "--", "./other"]);
    let several = text(&["replay", "deadlock"], 2);
    assert!(several.contains("several ids") && several.contains(&id), "{several}");
    fs::remove_file(project.0.join("program")).unwrap();
    assert!(text(&["replay", &id], 3).contains("cannot read"));
}

/// What is shown and replayed of a harmful race is what does harm, not a shorter execution in which the race does none.
#[test]
fn the_replay_of_a_harmful_race_does_the_harm() {
    let project = Project::new("replay-harm");
    project.build("lost_visit.c", &[]);
    for seed in ["0", "1", "2"] {
        let args = ["test", "--fresh", "--seed", seed, "--schedules", "60", "--format", "json"];
        let found = json(&project.selvedge(&[&args[..], &["--", "./program"]].concat()));
        let race = &found["findings"][0];
        assert_eq!((&race["kind"], &race["verdict"]), (&"data-race".into(), &"harmful".into()));
        let replayed =
            project.selvedge(&["replay", race["id"].as_str().expect("findings have ids")]);
        let both = format!("{}{}", stdout(&replayed), stderr(&replayed));
        assert!(both.contains("visits 1"), "seed {seed}: {both}");
    }
}
