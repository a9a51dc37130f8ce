//! What users see of `selvedge test`.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use common::{Project, json, stderr, stdout};
use serde_json::json as object;

fn test(project: &Project, more: &[&str]) -> serde_json::Value {
    let args = [&["test", "--format", "json", "--schedules", "300"], more, &["--", "./program"]];
    json(&project.selvedge(&args.concat()))
}

/// Kind, status and verdict of the findings.
fn told(document: &serde_json::Value) -> BTreeSet<(String, String, String)> {
    let text = |v: &serde_json::Value| v.as_str().unwrap_or("none").to_owned();
    let findings = document["findings"].as_array().unwrap();
    findings.iter().map(|f| (text(&f["kind"]), text(&f["status"]), text(&f["verdict"]))).collect()
}

fn triple(kind: &str, status: &str, verdict: &str) -> (String, String, String) {
    (kind.into(), status.into(), verdict.into())
}

#[test]
fn predictions_are_confirmed_and_judged() {
    let project = Project::new("test-judged");
    project.build("lost_update.c", &[]);
    let document = test(&project, &[]);
    let harmful = triple("data-race", "confirmed", "harmful");
    assert_eq!(
        told(&document),
        BTreeSet::from([harmful, triple("assertion", "confirmed", "none")]),
        "{document:#}"
    );
    let race = &document["findings"][0];
    let outcomes: Vec<&str> =
        race["orders"].as_array().unwrap().iter().map(|o| o["outcome"].as_str().unwrap()).collect();
    assert!(outcomes.iter().any(|o| o.starts_with("failed assertion")), "{outcomes:?}");
    assert!(outcomes.iter().any(|o| o.starts_with("nothing wrong")), "{outcomes:?}");
    assert!(race["attempts"].as_u64().unwrap() >= 1 && race["after"].as_u64().unwrap() >= 1);

    project.build("benign.c", &[]);
    assert_eq!(
        told(&test(&project, &[])),
        BTreeSet::from([triple("data-race", "confirmed", "benign")])
    );
    project.build("abba.c", &[]);
    assert_eq!(
        told(&test(&project, &[])),
        BTreeSet::from([triple("deadlock", "confirmed", "harmful")])
    );
    project.build("lost_wakeup.c", &[]);
    assert_eq!(
        told(&test(&project, &[])),
        BTreeSet::from([triple("deadlock", "confirmed", "none")]),
        "no analysis predicts it"
    );
}

#[test]
fn a_deadlock_under_every_schedule_is_a_finding() {
    let project = Project::new("test-always");
    project.build("both_block.c", &[]);
    for command in ["test", "explore"] {
        let args = [command, "--format", "json", "--schedules", "20", "--", "./program"];
        let output = project.selvedge(&args);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let kinds: BTreeSet<(String, String)> =
            told(&json(&output)).into_iter().map(|(kind, status, _)| (kind, status)).collect();
        assert_eq!(kinds, BTreeSet::from([("deadlock".into(), "confirmed".into())]), "{command}");
    }
    project.build("both_block.c", &["-DFIXED"]);
    assert_eq!(told(&test(&project, &[])), BTreeSet::new());
}

/// The ids of the deadlocks that a command reports, each once.
fn deadlocks(output: &Output) -> BTreeSet<String> {
    let document = json(output);
    let findings = document["findings"].as_array().expect("a list");
    let deadlocks = findings.iter().filter(|f| f["kind"] == "deadlock");
    deadlocks.map(|f| f["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_deadlock_of_a_lock_and_a_join_is_the_same_for_every_command() {
    let project = Project::new("test-join");
    project.build("join_holding.c", &[]);
    let mut ids = BTreeSet::new();
    for command in ["run", "test", "explore"] {
        let mut args = vec![command, "--format", "json", "--", "./program"];
        args.extend((command == "run").then_some("1"));
        let output = project.selvedge(&args);
        assert_eq!(output.status.code(), Some(1), "{command}: {}", stderr(&output));
        ids.extend(deadlocks(&output));
    }
    assert_eq!(ids.len(), 1, "{ids:?}");
    project.build("join_holding.c", &["-DFIXED"]);
    assert_eq!(told(&test(&project, &[])), BTreeSet::new());
}

#[test]
fn the_time_limit_is_kept_however_much_there_is_to_explain() {
    let project = Project::new("test-time");
    project.source("registry.cpp");
    let args = ["c++", "-g", "-O1", "-pthread", "registry.cpp", "-o", "program"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
    let begin = std::time::Instant::now();
    let args =
        ["test", "--format", "json", "--schedules", "100000", "--time", "5s", "--", "./program"];
    let document = json(&project.selvedge(&args));
    let taken = begin.elapsed();
    // Without the limit these schedules take minutes.
    assert!(taken < std::time::Duration::from_secs(40), "{taken:?}");
    assert!(told(&document).iter().any(|(_, status, _)| status == "confirmed"), "{document:#}");
}

#[test]
fn what_could_not_be_confirmed_is_counted_and_not_listed() {
    let project = Project::new("test-counted");
    project.build("fooling.c", &[]);
    let args = ["test", "--schedules", "300", "--", "./program"];
    let text = stdout(&project.selvedge(&args));
    assert!(text.contains("could not be confirmed (--all lists them)"), "{text}");
    assert!(text.contains("nothing found") && !text.contains("(unconfirmed"), "{text}");
    let all = [&["test", "--all"], &args[1..]].concat();
    assert!(stdout(&project.selvedge(&all)).contains("(unconfirmed"));
}

#[test]
fn nothing_of_a_fixed_twin_or_of_what_only_looks_like_a_race_is_confirmed() {
    let project = Project::new("test-fixed");
    for (source, options) in [
        ("lost_update.c", &["-DFIXED"][..]),
        ("abba.c", &["-DFIXED"]),
        ("lost_wakeup.c", &["-DFIXED"]),
        ("fooling.c", &[]),
    ] {
        project.build(source, options);
        for seed in ["0", "1", "2"] {
            let document = test(&project, &["--seed", seed, "--fail-on", "predicted"]);
            let sure =
                told(&document).into_iter().filter(|(_, s, _)| s == "confirmed" || s == "observed");
            assert_eq!(sure.count(), 0, "{source}: {document:#}");
        }
    }
}

#[test]
fn a_write_behind_a_block_is_found_with_the_place_of_the_allocation_and_ends_the_test_if_wanted() {
    let project = Project::new("test-overrun");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    let source = programs.join("overrun.c").to_string_lossy().into_owned();
    let include = format!("-I{}", programs.join("../crates/runtime/include").display());
    let build = |fixed: &str| {
        let args = ["cc", "-g", "-O1", "-pthread", fixed, &include, &source, "-o", "program"];
        assert!(project.selvedge(&args).status.success());
    };
    build("-DBUGGY");
    let document = test(&project, &["--until-failure", "--observe", "0"]);
    let [finding] = &document["findings"].as_array().unwrap()[..] else { panic!("{document:#}") };
    assert_eq!((&finding["kind"], &finding["status"]), (&"misuse".into(), &"confirmed".into()));
    let places = finding["sites"].as_array().unwrap();
    let roles: Vec<&str> = places.iter().filter_map(|p| p["role"].as_str()).collect();
    assert_eq!(roles, ["allocate", "write"], "{document:#}");
    let line = |at: usize| places[at]["line"].as_u64().unwrap() as usize - 1;
    let text = std::fs::read_to_string(programs.join("overrun.c")).unwrap();
    assert!(text.lines().nth(line(0)).unwrap().contains("calloc("), "{document:#}");
    assert!(text.lines().nth(line(1)).unwrap().contains("slots[mine] ="), "{document:#}");
    let executions = |document: &serde_json::Value| document["stats"]["traces"].as_u64().unwrap();
    assert!(executions(&document) < 100, "{document:#}");
    build("-DFIXED");
    let document = test(&project, &["--until-failure", "--observe", "0"]);
    assert_eq!(told(&document).into_iter().filter(|(_, s, _)| s == "confirmed").count(), 0);
    assert!(executions(&document) > 250, "nothing stops it: {document:#}");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let project = Project::new("test-same");
    project.build("lost_update.c", &[]);
    let report = || {
        // What a native run shows depends on the day.
        let mut document = test(&project, &["--observe", "0", "--seed", "3", "--fresh"]);
        document["stats"]["seconds"] = 0.into();
        document.to_string()
    };
    let first = report();
    assert!((0..3).all(|_| report() == first));
}

#[test]
fn what_was_confirmed_replays_and_is_reported_again() {
    let project = Project::new("test-replay");
    for source in ["lost_update.c", "abba.c"] {
        project.build(source, &[]);
        let document = test(&project, &[]);
        for finding in document["findings"].as_array().unwrap() {
            let id = finding["id"].as_str().unwrap();
            let output = project.selvedge(&["replay", id, "--times", "20"]);
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert!(stderr(&output).contains("in 20 of 20 executions"), "{}", stderr(&output));
        }
        let again = json(&project.selvedge(&["report", "--json"]));
        assert_eq!(again["findings"], document["findings"]);
        let text = stdout(&project.selvedge(&["report"]));
        assert!(text.contains("confirmed, harmful") && text.contains("selvedge replay"), "{text}");
    }
}

#[test]
fn a_plain_program_is_tested_at_its_synchronization_and_the_user_told() {
    let project = Project::new("test-plain");
    project.source("abba.c");
    project.call("gcc", &["-g", "abba.c", "-o", "program", "-pthread"]);
    let output = project.selvedge(&["test", "--schedules", "200", "--", "./program"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("(confirmed, harmful)"), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("Selvedge saw only its synchronization"),
        "{}",
        stderr(&output)
    );
    project.call("gcc", &["-g", "-static", "abba.c", "-o", "program"]);
    let output = project.selvedge(&["test", "--", "./program"]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(stderr(&output).contains("selvedge cc"), "{}", stderr(&output));
}

#[test]
fn a_race_that_only_a_missing_fence_allows_is_seen_in_controlled_executions() {
    let project = Project::new("test-fence");
    let surest = |document: &serde_json::Value| {
        let told = told(document);
        told.into_iter().filter(|f| f.1 == "observed" || f.1 == "confirmed").collect::<Vec<_>>()
    };
    project.build("fence.c", &[]);
    let document = test(&project, &["--observe", "0"]);
    assert_eq!(surest(&document), [triple("data-race", "observed", "none")], "{document:#}");
    project.build("fence.c", &["-DFIXED"]);
    assert_eq!(surest(&test(&project, &[])), []);
}

#[test]
fn functions_that_are_meant_to_be_atomic_are_named_to_test_as_to_run() {
    let project = Project::new("test-methods");
    project.build("withdraw.c", &[]);
    let named = test(&project, &["--atomic-methods", "withdraw"]);
    let violation = triple("atomicity-violation", "confirmed", "benign");
    assert_eq!(told(&named), BTreeSet::from([violation]), "{named:#}");
    assert_eq!(named["findings"][0]["subject"], serde_json::json!(["withdraw"]));
    assert_eq!(told(&test(&project, &[])), BTreeSet::new(), "nothing is claimed without it");
}

#[test]
fn a_pattern_that_matches_nothing_is_told() {
    let project = Project::new("test-pattern");
    project.build("withdraw.c", &[]);
    for command in ["run", "test"] {
        let args = [command, "--atomic-methods", "nosuch*,withdraw", "--", "./program"];
        let output = project.selvedge(&args);
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains("`--atomic-methods nosuch*` matches no function"), "{text}");
        assert!(!text.contains("`--atomic-methods withdraw`"), "{text}");
    }
}

#[test]
fn an_unknown_option_is_not_taken_for_the_program() {
    let project = Project::new("test-options");
    project.build("benign.c", &[]);
    for (command, option, nearest) in [
        ("test", "--shedules", "--schedules"),
        ("run", "--fromat", "--format"),
        ("explore", "--sed", "--seed"),
    ] {
        let output = project.selvedge(&[command, option, "./program"]);
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(text.contains(option) && text.contains(nearest), "{text}");
    }
    // The program's own options are its own.
    let output = project.selvedge(&["run", "./program", "--format"]);
    assert!(!stderr(&output).contains("error:"), "{}", stderr(&output));
}

#[test]
fn colours_are_used_where_they_are_wanted() {
    let project = Project::new("test-colours");
    let trace = project.0.join("race.std");
    std::fs::write(&trace, "T1|w(x)|a.c:1\nT2|w(x)|a.c:2\n").unwrap();
    let coloured = |args: &[&str], variable: (&str, &str)| {
        let args = [args, &["check", "race.std"]].concat();
        let mut command = project.command(env!("CARGO_BIN_EXE_selvedge"), &args);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let output = command.env(variable.0, variable.1).output().unwrap();
        assert!(stdout(&output).contains("data race"), "{output:?}");
        stdout(&output).contains('\u{1b}')
    };
    let none = ("UNUSED", "1");
    assert!(!coloured(&[], none), "not a terminal");
    assert!(coloured(&["--color", "always"], none));
    assert!(coloured(&["--color", "always"], ("NO_COLOR", "1")), "an option counts more");
    assert!(coloured(&[], ("CLICOLOR_FORCE", "1")));
    assert!(!coloured(&["--color", "never"], ("CLICOLOR_FORCE", "1")));
}

/// Kind, status and verdict of each finding, in order.
fn each(document: &serde_json::Value) -> Vec<(String, String, String)> {
    let findings = document["findings"].as_array().unwrap();
    let mut each: Vec<_> =
        findings.iter().flat_map(|f| told(&object!({ "findings": [f] }))).collect();
    each.sort();
    each
}

#[test]
fn twins_in_c_and_rust_have_the_same_findings() {
    for (name, options, expected) in [
        ("abba", &[][..], triple("deadlock", "confirmed", "harmful")),
        (
            "withdraw",
            &["--atomic-methods", "withdraw", "--atomic-methods", "program::withdraw"],
            triple("atomicity-violation", "confirmed", "benign"),
        ),
        ("fence", &["--observe", "0"], triple("data-race", "observed", "none")),
    ] {
        let (c, rust) = (Project::new(&format!("c-{name}")), Project::new(&format!("rust-{name}")));
        c.build(&format!("{name}.c"), &[]);
        rust.build_rust(&format!("{name}.rs"));
        let [c, rust] = [c, rust].map(|project| test(&project, options));
        assert_eq!(each(&c), [expected], "{name}.c: {c:#}");
        assert_eq!(each(&rust), each(&c), "{name}.rs: {rust:#}");
    }
}

#[test]
fn what_a_caller_suppresses_is_not_reported_by_controlled_executions() {
    let project = Project::new("test-suppressed");
    project.build("called.c", &[]);
    let kinds = |rules: &str| {
        std::fs::write(project.0.join("rules"), rules).unwrap();
        let options = ["--observe", "0", "--suppressions", "rules"];
        let document = test(&project, &options);
        each(&document).into_iter().map(|(kind, ..)| kind).collect::<BTreeSet<_>>()
    };
    let all = BTreeSet::from(["data-race".to_owned(), "deadlock".to_owned()]);
    assert_eq!(kinds(""), all);
    assert_eq!(kinds("race:^no_such_caller$\n"), all);
    // Six calls lie between this function and the access.
    assert_eq!(kinds("race:^outermost$\n"), BTreeSet::from(["deadlock".to_owned()]));
    assert_eq!(kinds("deadlock:^locks_first$\n"), BTreeSet::from(["data-race".to_owned()]));
    assert_eq!(kinds("race:^one_of_two$\n"), all, "the access is also reached otherwise");
    assert_eq!(kinds("called_from_lib:^no_such_library\n"), all);
    assert_eq!(kinds("called_from_lib:program$\n"), BTreeSet::new());
}

#[test]
fn data_behind_the_locks_of_rust_is_not_suspected() {
    let project = Project::new("test-cache");
    project.build_rust("cache.rs");
    let races = |arguments: &[&str]| {
        let command = ["test", "--all", "--schedules", "60", "--format", "json", "--", "./program"];
        let document = json(&project.selvedge(&[&command[..], arguments].concat()));
        let list = document["findings"].as_array().unwrap().clone();
        list.into_iter().filter(|f| f["kind"] == "data-race").collect::<Vec<_>>()
    };
    assert_eq!(races(&[]), Vec::<serde_json::Value>::new());
    assert!(races(&["racy"]).iter().any(|f| f["status"] == "confirmed"));
}

#[test]
fn an_access_in_the_code_of_a_library_has_one_place_whoever_sees_it() {
    let project = Project::new("test-push-back");
    project.source("push_back.cpp");
    let args = ["c++", "-g", "-O0", "push_back.cpp", "-o", "program", "-pthread"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
    let document = test(&project, &["--all"]);
    let findings = document["findings"].as_array().unwrap();
    let races: Vec<_> = findings.iter().filter(|f| f["kind"] == "data-race").collect();
    assert!(!races.is_empty(), "{document:#}");
    for race in races {
        for place in race["sites"].as_array().unwrap() {
            let file = place["file"].as_str().unwrap();
            assert_ne!(file, "push_back.cpp", "the caller stands for the access: {race:#}");
        }
    }
}

#[test]
fn a_program_with_one_thread_has_one_schedule() {
    let project = Project::new("test-one-thread");
    project.build("alone.c", &[]);
    let output = project.selvedge(&["test", "--", "./program"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("only one thread ran"), "{}", stdout(&output));
    let stats = &test(&project, &[])["stats"];
    assert!(stats["schedules"].as_u64().is_some_and(|n| n < 10), "{stats:#}");
    assert_eq!(stats["complete"], true);
}

#[test]
fn a_program_of_this_directory_needs_its_directory() {
    let project = Project::new("test-no-path");
    project.build("lost_update.c", &[]);
    let output = project.selvedge(&["test", "--", "program"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("to run the one in this directory: ./program"),
        "{}",
        stderr(&output)
    );
}
