//! What users see of `selvedge explore`.

mod common;

use common::{Project, json, stdout};

/// The kind, status, `after` and sites of each finding.
fn findings(document: &serde_json::Value) -> Vec<(String, String)> {
    let list = document["findings"].as_array().unwrap();
    list.iter()
        .map(|f| {
            assert!(f["after"].as_u64().unwrap() >= 1);
            assert!(f["schedule"].as_str().unwrap().starts_with('1'));
            (f["kind"].as_str().unwrap().to_owned(), f["status"].as_str().unwrap().to_owned())
        })
        .collect()
}

const BROKEN: [(&str, &str); 3] =
    [("lost_update.c", "assertion"), ("abba.c", "deadlock"), ("lost_wakeup.c", "deadlock")];

#[test]
fn failures_that_depend_on_the_schedule_are_confirmed_and_their_fixed_twins_have_none() {
    for (source, kind) in BROKEN {
        let project = Project::new("explore-broken");
        project.build(source, &[]);
        let output = project.selvedge(&["explore", "--format", "json", "--", "./program"]);
        assert_eq!(output.status.code(), Some(1), "{source}: {output:?}");
        let document = json(&output);
        assert_eq!(findings(&document), [(kind.to_owned(), "confirmed".to_owned())], "{source}");
        assert_eq!(document["stats"]["seed"], 0);
        assert!(document["stats"]["schedules"].as_u64().unwrap() >= 2);
        project.build(source, &["-DFIXED"]);
        let fixed = project.selvedge(&["explore", "--schedules", "300", "--", "./program"]);
        assert_eq!(fixed.status.code(), Some(0), "{}", stdout(&fixed));
        assert!(stdout(&fixed).starts_with("nothing found: 300 schedules"), "{}", stdout(&fixed));
    }
}

#[test]
fn the_same_seed_finds_the_same_whatever_the_cores_do() {
    let project = Project::new("explore-same");
    project.build("lost_update.c", &[]);
    let report = |seed: &str, jobs: &str| {
        let args =
            ["explore", "--keep-going", "--schedules", "60", "--seed", seed, "--format", "json"];
        let output = project.selvedge(&[&args[..], &["--jobs", jobs, "--", "./program"]].concat());
        let mut document = json(&output);
        document["stats"]["seconds"] = 0.into();
        document.to_string()
    };
    let first = report("7", "1");
    assert!(["1", "2", "3", "64"].iter().all(|jobs| report("7", jobs) == first));
    assert_ne!(report("8", "1"), first);
}

#[test]
fn every_strategy_explores() {
    let project = Project::new("explore-strategies");
    project.build("abba.c", &[]);
    for strategy in ["mix", "random", "pct", "pos", "surw", "dfs", "dpor"] {
        let args = ["explore", "--strategy", strategy, "--schedules", "200", "--", "./program"];
        let output = project.selvedge(&args);
        assert_eq!(output.status.code(), Some(1), "{strategy}: {output:?}");
    }
    let one = project.selvedge(&["explore", "--strategy", "rr", "--", "./program"]);
    assert!(matches!(one.status.code(), Some(0 | 1)), "{one:?}");
    let none = project.selvedge(&["explore", "--strategy", "luck", "--", "./program"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn crashes_at_different_places_are_different_findings() {
    let project = Project::new("explore-crashes");
    project.build("crashes.c", &[]);
    let explore = |args: &[&str]| {
        let options = ["explore", "--keep-going", "--schedules", "100", "--format", "json"];
        project.selvedge(&[&options[..], &["--", "./program"], args].concat())
    };
    let document = json(&explore(&[]));
    let place = |f: &serde_json::Value| {
        assert_eq!((f["kind"].as_str(), f["status"].as_str()), (Some("crash"), Some("confirmed")));
        let place = &f["sites"][0];
        assert_eq!(place["thread"], "T2 (use)", "{f}");
        (place["line"].as_u64().unwrap(), place["approximate"].as_bool().unwrap_or(false))
    };
    let mut places: Vec<_> = document["findings"].as_array().unwrap().iter().map(place).collect();
    places.sort_unstable();
    let source = include_str!("programs/crashes.c");
    let line = |text: &str| source.lines().position(|l| l.contains(text)).unwrap() as u64 + 1;
    assert_eq!(places, [(line("*p += 1"), false), (line("strlen(t)"), false)], "{document}");
    // Its own handler is the program's, and is called.
    let handled = explore(&["handled"]);
    assert_eq!(handled.status.code(), Some(0), "{}", stdout(&handled));
    project.build("crashes.c", &["-DFIXED"]);
    assert_eq!(explore(&[]).status.code(), Some(0));
}

#[test]
fn a_program_that_always_fails_has_no_concurrency_bug() {
    let project = Project::new("explore-always");
    project.build("ending.c", &[]);
    for (ending, says) in [("crash", "not a concurrency bug"), ("five", "exits with 5")] {
        let output = project.selvedge(&["explore", "--schedules", "20", "--", "./program", ending]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.contains(says) && text.contains("nothing found"), "{ending}: {text}");
    }
}

#[test]
fn a_program_of_the_system_is_explored_at_its_synchronization() {
    let project = Project::new("explore-plain");
    let numbers: String = (0..300_000u64).map(|i| format!("{}\n", i * 7919 % 300_007)).collect();
    std::fs::write(project.0.join("numbers"), numbers).unwrap();
    let sort = ["sort", "--parallel=2", "-n", "numbers", "-o", "sorted"];
    let args = [&["explore", "--schedules", "12", "--format", "json", "--"], &sort[..]].concat();
    let output = project.selvedge(&args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        common::stderr(&output).contains("Selvedge saw only its synchronization"),
        "{output:?}"
    );
    let document = json(&output);
    assert_eq!(document["stats"]["schedules"], 12);
    let sorted = std::fs::read_to_string(project.0.join("sorted")).unwrap();
    let numbers: Vec<u64> = sorted.lines().map(|l| l.parse().unwrap()).collect();
    assert!(numbers.len() == 300_000 && numbers.is_sorted());
}
