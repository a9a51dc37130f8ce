//! Programs built with `selvedge cc --selvedge-flow`: is each execution as if sequential?

mod common;

use std::process::Output;

use common::{Project, json, stderr};
use serde_json::Value;

/// Builds a program of `programs/flow` for data flow.
fn build(project: &Project, source: &str, options: &[&str]) {
    let source = format!("flow/{source}");
    project.build(&source, &[&["--selvedge-flow"][..], options].concat());
}

fn tested(project: &Project, options: &[&str]) -> Output {
    let start = ["test", "--ndseq", "--format", "json"];
    let some = if options.contains(&"--schedules") { &[][..] } else { &["--schedules", "100"] };
    project.selvedge(&[&start[..], some, options, &["--", "./program"]].concat())
}

fn violations(document: &Value) -> Vec<&Value> {
    let findings = document["findings"].as_array().expect("a report has findings");
    findings.iter().filter(|f| f["kind"] == "parallelism-violation").collect()
}

#[test]
fn a_lost_update_has_no_sequential_twin() {
    let project = Project::new("flow-lost");
    build(&project, "lost_update.c", &[]);
    let output = tested(&project, &[]);
    let document = json(&output);
    let [violation] = violations(&document)[..] else {
        panic!("{document:#}\n{}", stderr(&output))
    };
    assert_eq!(violation["status"], "observed", "{violation:#}");
    assert_eq!(violation["verdict"], "harmful");
    assert_eq!(output.status.code(), Some(1));
    let id = violation["id"].as_str().expect("findings have ids");
    let again = project.selvedge(&["replay", id]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    assert!(stderr(&again).contains("sequential executions shows the same"), "{}", stderr(&again));
    let none = project.selvedge(&["replay", id, "--sequential"]);
    assert_eq!(none.status.code(), Some(3), "{}", stderr(&none));
    assert!(stderr(&none).contains("there is no sequential execution"), "{}", stderr(&none));
}

#[test]
fn the_locked_twin_is_as_if_sequential() {
    let project = Project::new("flow-locked");
    build(&project, "lost_update.c", &["-DFIXED"]);
    for options in [&[][..], &["--focus", "number"]] {
        let output = tested(&project, options);
        let document = json(&output);
        assert!(violations(&document).is_empty(), "{document:#}");
        assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    }
}

#[test]
fn the_focus_is_what_counts() {
    let project = Project::new("flow-focus");
    build(&project, "lost_update.c", &[]);
    let output = tested(&project, &["--focus", "number"]);
    assert_eq!(violations(&json(&output)).len(), 1, "{}", stderr(&output));
    let wrong = tested(&project, &["--focus", "numbr"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("the nearest names are: number"), "{}", stderr(&wrong));
}

#[test]
fn a_pruned_search_conforms_with_and_without_its_star() {
    let project = Project::new("flow-search");
    for options in [&["-DSTAR"][..], &[]] {
        build(&project, "search.c", options);
        let output = tested(&project, &[]);
        let document = json(&output);
        assert!(violations(&document).is_empty(), "{document:#}");
        assert_eq!(output.status.code(), Some(0), "{options:?} {document:#}\n{}", stderr(&output));
    }
}

#[test]
fn a_lock_free_stack_conforms_and_its_wrong_twin_does_not() {
    let project = Project::new("flow-stack");
    build(&project, "stack.c", &["-DSTAR", "-DTASKS=2"]);
    let output = tested(&project, &[]);
    let document = json(&output);
    assert!(violations(&document).is_empty(), "{document:#}");
    assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    build(&project, "stack.c", &["-DSTAR", "-DTASKS=2", "-DWRONG"]);
    let output = tested(&project, &[]);
    let document = json(&output);
    assert!(!violations(&document).is_empty(), "{document:#}\n{}", stderr(&output));
    assert!(violations(&document).iter().all(|v| v["status"] == "observed"), "{document:#}");
}

#[test]
fn what_cannot_be_decided_is_not_green() {
    let project = Project::new("flow-undecided");
    build(&project, "alone.c", &[]);
    let output = tested(&project, &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing ran in parallel"), "{}", stderr(&output));
    project.build("flow/alone.c", &[]);
    let output = tested(&project, &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("selvedge cc --selvedge-flow"), "{}", stderr(&output));
}

#[test]
fn a_failure_is_explained_by_the_same_failure_only() {
    let project = Project::new("flow-two-assertions");
    build(&project, "two_assertions.c", &[]);
    let output = tested(&project, &[]);
    let document = json(&output);
    let findings = document["findings"].as_array().expect("a report has findings");
    let [failure] = &findings[..] else { panic!("{document:#}\n{}", stderr(&output)) };
    assert_eq!(failure["summary"], "failed assertion: number == 2", "{failure:#}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn predictions_alone_are_no_answer() {
    let project = Project::new("flow-alternate");
    build(&project, "alternate.c", &[]);
    let options = ["--schedules", "5", "--sequential", "1"];
    let output = tested(&project, &options);
    let document = json(&output);
    assert!(!violations(&document).is_empty(), "{document:#}");
    assert!(violations(&document).iter().all(|v| v["status"] == "predicted"), "{document:#}");
    assert_eq!(output.status.code(), Some(3), "{document:#}\n{}", stderr(&output));
}

/// All that is printed, but for how long it took and how many executions a second that was.
fn untimed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(output);
    let without = |line: &str| match line.contains(" per second") {
        true => {
            line.split(" in ").next().unwrap_or_default().to_owned()
                + line.split(" per second").nth(1).unwrap_or_default()
        }
        false => line.to_owned(),
    };
    text.lines().map(without).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let project = Project::new("flow-seed");
    for source in ["lost_update.c", "search.c", "by_name.c"] {
        build(&project, source, &[]);
        let seed = ["--seed", "7", "--schedules", "50"];
        let test = [&["test", "--ndseq"][..], &seed, &["--", "./program"]].concat();
        let infer = [&["infer", "ndseq"][..], &seed, &["--", "./program"]].concat();
        for command in [test, infer] {
            let [first, second] = [0, 1].map(|_| untimed(&project.selvedge(&command)));
            assert!(!first.trim().is_empty(), "{source}");
            assert_eq!(first, second, "{source} {command:?}");
        }
    }
}

fn read(project: &Project, name: &str) -> String {
    std::fs::read_to_string(project.0.join(name)).expect("the file was written")
}

/// What each build of a program gives: options of the compiler, and whether it conforms.
fn judged(project: &Project, source: &str, builds: &[(&[&str], bool)]) {
    for (options, conforms) in builds {
        build(project, source, options);
        let output = tested(project, &[]);
        let document = json(&output);
        let code = if *conforms { 0 } else { 1 };
        let shown = format!("{source} {options:?} {document:#}\n{}", stderr(&output));
        assert_eq!(violations(&document).is_empty(), *conforms, "{shown}");
        assert_eq!(output.status.code(), Some(code), "{shown}");
        assert!(violations(&document).iter().all(|v| v["status"] == "observed"), "{shown}");
    }
}

#[test]
fn the_examples_of_chapter_6_conform_and_their_wrong_twins_do_not() {
    let project = Project::new("flow-chapter-6");
    judged(&project, "figure_6_1.c", &[(&["-DSTAR"], true), (&["-DSTAR", "-DBUG"], false)]);
    judged(&project, "figure_6_6.c", &[(&["-DSTAR"], true), (&["-DSTAR", "-DWRONG"], false)]);
    judged(&project, "figure_6_9b.c", &[(&[], true), (&["-DBUG"], false)]);
}

#[test]
fn the_stack_of_figure_6_7_conforms_and_its_wrong_twin_does_not() {
    let project = Project::new("flow-figure-6-7");
    let recycled = (&["-DSTAR", "-DRECYCLE"][..], true);
    judged(&project, "figure_6_7.c", &[(&["-DSTAR"], true), recycled]);
    build(&project, "figure_6_7.c", &["-DSTAR", "-DRECYCLE", "-DWRONG"]);
    let output = tested(&project, &["--schedules", "1000"]);
    let document = json(&output);
    assert!(!violations(&document).is_empty(), "{document:#}\n{}", stderr(&output));
    assert!(violations(&document).iter().all(|v| v["status"] == "observed"), "{document:#}");
}

#[test]
fn tasks_of_one_thread_can_have_tasks_of_others_between_them() {
    let project = Project::new("flow-tasks-apart");
    judged(&project, "tasks_apart.c", &[(&[], true), (&["-DSPLIT"], false)]);
}

#[test]
fn calls_of_functions_can_be_tasks() {
    let project = Project::new("flow-by-name");
    build(&project, "by_name.c", &[]);
    let named = ["--tasks", "app*"];
    let output = tested(&project, &named);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = json(&output);
    assert!(violations(&document).is_empty());
    assert_ne!(document["stats"]["parallelism"]["outside"], 0, "the workers call");
    let by_thread = tested(&project, &[]);
    assert_eq!(violations(&json(&by_thread)).len(), 1, "a thread's two numbers can be apart");
    std::fs::write(project.0.join("list.ndseq"), "tasks app*\n").expect("the directory is ours");
    let output = tested(&project, &["--spec", "list.ndseq"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    usage(&project, &["--tasks", "apend"], 2, "the nearest names are: append");
    build(&project, "by_name.c", &["-DSPLIT"]);
    let document = json(&tested(&project, &named));
    let found = violations(&document);
    assert!(!found.is_empty() && found.iter().all(|v| v["status"] == "observed"), "{document:#}");
    let id = found[0]["id"].as_str().expect("findings have ids");
    let again = project.selvedge(&["replay", id]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
}

#[test]
fn updates_commute() {
    let project = Project::new("flow-commute");
    for options in [&[][..], &["-DATOMIC"], &["-DASSEMBLY"]] {
        build(&project, "commute.c", options);
        assert_eq!(counted(&project, &[]), (100, 0), "{options:?}");
    }
    build(&project, "commute.c", &["-DFLOATS"]);
    assert!(counted(&project, &[]).1 > 0, "rounding depends on the order");
    assert_eq!(counted(&project, &["--commute-floats"]), (100, 0));
    build(&project, "commute.c", &["-DDECLARED"]);
    let document = json(&tested(&project, &[]));
    assert_eq!(document["stats"]["parallelism"]["twins"], 0, "{document:#}");
    assert!(document["stats"].to_string().contains("says so: addition"), "{document:#}");
    build(&project, "commute.c", &["-DOWN_LOCKS"]);
    let document = json(&tested(&project, &[]));
    assert!(!violations(&document).is_empty(), "updates are lost: {document:#}");
}

#[test]
fn what_is_made_once_is_nobodys() {
    let project = Project::new("flow-once");
    build(&project, "once.c", &[]);
    assert_eq!(counted(&project, &[]), (100, 0));
    build(&project, "once.c", &["-DFLOWS"]);
    let document = json(&tested(&project, &[]));
    assert!(!violations(&document).is_empty(), "who came first is seen: {document:#}");
}

#[test]
fn what_a_guard_of_cpp_protects_is_nobodys() {
    let project = Project::new("flow-guarded");
    project.source("flow/guarded.cc");
    let ours = env!("CARGO_BIN_EXE_selvedge");
    let build = ["c++", "--selvedge-flow", "-g", "guarded.cc", "-pthread", "-o", "program"];
    project.call(ours, &build);
    assert_eq!(counted(&project, &[]), (100, 0));
}

#[test]
fn assembly_with_a_lock_prefix_is_understood() {
    let project = Project::new("flow-assembly");
    build(&project, "assembly.c", &[]);
    let output = tested(&project, &[]);
    let document = json(&output);
    assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    assert!(!document["stats"].to_string().contains("assembly"), "{document:#}");
    build(&project, "assembly.c", &["-DOPAQUE"]);
    let document = json(&tested(&project, &["--schedules", "5"]));
    assert!(document["stats"].to_string().contains("assembly `rdtsc`"), "{document:#}");
    build(&project, "assembly.c", &["-DWRONG"]);
    let document = json(&tested(&project, &[]));
    assert!(!violations(&document).is_empty(), "{document:#}");
}

#[test]
fn work_that_is_taken_from_a_counter_needs_no_stars() {
    let project = Project::new("flow-counter");
    build(&project, "counter.c", &[]);
    let output = inferred(&project, &["--format", "json"]);
    assert!(stars(&output).is_empty(), "{}", stderr(&output));
    assert!(stderr(&output).contains("a sequential execution has the same result"));
    build(&project, "counter.c", &["-DBUG"]);
    let output = inferred(&project, &["--format", "json"]);
    assert_eq!(json(&output)["satisfiable"], false, "{}", stderr(&output));
    assert!(stderr(&output).contains("sequential executions (all) has"), "{}", stderr(&output));
}

#[test]
fn code_that_was_built_without_data_flow_is_named() {
    let project = Project::new("flow-mixed");
    project.source("flow/mixed.c");
    project.source("flow/unseen.c");
    let ours = env!("CARGO_BIN_EXE_selvedge");
    project.call(ours, &["cc", "--selvedge-flow", "-g", "-c", "mixed.c"]);
    project.call("cc", &["-g", "-c", "unseen.c"]);
    let link = ["cc", "--selvedge-flow", "mixed.o", "unseen.o", "-pthread", "-o", "program"];
    project.call(ours, &link);
    let output = tested(&project, &["--schedules", "20"]);
    let said = format!("{:#}", json(&output)["stats"]);
    for name in ["twice", "unseen_worker"] {
        assert!(said.contains(name), "{said}\n{}", stderr(&output));
    }
}

#[test]
fn lazy_initialisation_conforms() {
    let project = Project::new("flow-lazy");
    judged(&project, "lazy.c", &[(&["-DSTAR", "-DLAZY"], true), (&["-DSTAR", "-DBUG"], false)]);
}

/// How many executions conform by their data flow alone, and how many because a sequential one shows the same.
fn counted(project: &Project, options: &[&str]) -> (u64, u64) {
    let document = json(&tested(project, options));
    let counts = &document["stats"]["parallelism"];
    let count = |name: &str| counts[name].as_u64().unwrap_or_else(|| panic!("{document:#}"));
    (count("serializable"), count("twins"))
}

/// Figure 6.2: with its star the execution is serializable, without it is not, and has a sequential twin all the same.
#[test]
fn stars_and_lazy_blocks_spare_the_search_for_twins() {
    let project = Project::new("flow-stars");
    for (source, with) in [
        ("figure_6_1.c", &["-DSTAR"][..]),
        ("figure_6_6.c", &["-DSTAR"]),
        ("lazy.c", &["-DSTAR", "-DLAZY"]),
    ] {
        build(&project, source, with);
        assert_eq!(counted(&project, &[]).1, 0, "{source} with stars");
        build(&project, source, &[]);
        assert!(counted(&project, &[]).1 > 0, "{source} without");
    }
}

fn inferred(project: &Project, options: &[&str]) -> Output {
    project.selvedge(&[&["infer", "ndseq"][..], options, &["--", "./program"]].concat())
}

fn stars(output: &Output) -> Vec<(u64, u64, String)> {
    let document = json(output);
    assert_eq!(document["satisfiable"], true, "{document:#}");
    let stars = document["stars"].as_array().expect("a list").iter();
    let line = |star: &Value, name: &str| star[name].as_u64().expect("a line");
    let function = |star: &Value| star["function"].as_str().expect("a function").to_owned();
    stars.map(|s| (line(s, "first_line"), line(s, "last_line"), function(s))).collect()
}

#[test]
fn figure_7_1_needs_one_star_around_the_attempt() {
    let project = Project::new("flow-figure-7-1");
    build(&project, "figure_7_1.c", &[]);
    let output = inferred(&project, &["--format", "json", "--emit", "reduce.ndseq"]);
    assert_eq!(stars(&output), [(5, 10, "reduce".to_owned())], "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0));
    let spec = read(&project, "reduce.ndseq");
    assert!(spec.ends_with("figure_7_1.c:5-10 in reduce\n"), "{spec}");
    let output = tested(&project, &["--spec", "reduce.ndseq"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let place = spec.lines().last().and_then(|l| l.strip_prefix("star ")).expect("a star");
    let place = place.split(" in ").next().expect("a place");
    let next = stars(&inferred(&project, &["--format", "json", "--not", place]));
    assert!(!next.is_empty() && next != [(5, 10, "reduce".to_owned())], "{next:?}");
}

#[test]
fn inferred_stars_can_be_put_into_the_source() {
    let project = Project::new("flow-annotate");
    build(&project, "figure_7_1.c", &[]);
    let output = inferred(&project, &["--annotate"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let diff = String::from_utf8(output.stdout).expect("text");
    for line in [
        "+#include <selvedge.h>",
        "+    SELVEDGE_STAR_BLOCK(\"reduce:5\") {",
        "     int prev = x;",
        "+    }",
    ] {
        assert!(diff.lines().any(|l| l == line), "{line:?} is missing in {diff}");
    }
}

#[test]
fn no_stars_help_a_lost_update() {
    let project = Project::new("flow-unsatisfiable");
    build(&project, "lost_update.c", &[]);
    let output = inferred(&project, &["--format", "json"]);
    assert_eq!(json(&output)["satisfiable"], false);
    assert_eq!(output.status.code(), Some(1));
    build(&project, "lost_update.c", &["-DFIXED"]);
    assert!(stars(&inferred(&project, &["--format", "json"])).is_empty());
}

#[test]
fn specifications_that_do_not_fit_are_refused() {
    let project = Project::new("flow-spec");
    build(&project, "figure_7_1.c", &[]);
    assert_eq!(inferred(&project, &["--emit", "good.ndseq"]).status.code(), Some(0));
    let good = read(&project, "good.ndseq");
    let file = good.lines().last().and_then(|l| l.strip_prefix("star ")).expect("a star");
    let file = file.split(":5-10").next().expect("a file");
    for (text, expected) in [
        ("focus x\nstern a.c:1-2 in f\n".to_owned(), "line 2, column 1: `stern` is not known"),
        (format!("star {file}:5-10 in expand\n"), "the program has no function expand"),
        (format!("star {file}:5-9 in reduce\n"), "not the lines of whole statements"),
        ("# selvedge ndseq 2\n".to_owned(), "line 1, column 18: the file has version 2"),
        ("focus y\n".to_owned(), "the program has no global of that name"),
    ] {
        std::fs::write(project.0.join("bad.ndseq"), &text).expect("the directory is ours");
        let output = tested(&project, &["--spec", "bad.ndseq"]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(stderr(&output).contains(expected), "{text}{}", stderr(&output));
    }
    let output = tested(&project, &["--spec", "none.ndseq"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

/// A thread that changes nothing for a while is taken to poll, and gives way; a sequential execution must not do that.
#[test]
fn long_tasks_are_not_interrupted() {
    let project = Project::new("flow-long");
    build(&project, "long_task.c", &[]);
    let output = tested(&project, &["--schedules", "10"]);
    let document = json(&output);
    assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    assert!(violations(&document).is_empty(), "{document:#}");
}

/// What the threads do in between is more than is read at once, and so much that they have to give way: also in the replay,
/// which records something else.
#[test]
fn accesses_may_be_far_apart() {
    let project = Project::new("flow-far-apart");
    let options = ["--schedules", "2", "--patience", "120s", "--time", "300s"];
    build(&project, "far_apart.c", &[]);
    let output = tested(&project, &options);
    let document = json(&output);
    let [violation] = violations(&document)[..] else {
        panic!("{document:#}\n{}", stderr(&output))
    };
    assert_eq!(violation["status"], "observed", "{violation:#}");
    let again = project.selvedge(&["replay", violation["id"].as_str().expect("findings have ids")]);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    build(&project, "far_apart.c", &["-DFIXED"]);
    let document = json(&tested(&project, &options));
    assert_eq!(document["stats"]["parallelism"]["serializable"], 2, "{document:#}");
}

/// The other process has the same memory for words, and writes none.
#[test]
fn processes_that_a_program_starts_are_not_followed() {
    let project = Project::new("flow-forks");
    build(&project, "forks.c", &[]);
    assert_eq!(counted(&project, &["--schedules", "20"]), (20, 0));
}

fn usage(project: &Project, options: &[&str], code: i32, expected: &str) {
    let output = tested(project, options);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn bad_use_says_what_to_do() {
    let project = Project::new("flow-bad-use");
    build(&project, "bad_use.c", &["-DSTAR_AROUND_THREADS"]);
    usage(&project, &[], 2, "a star is around code that starts threads");
    build(&project, "bad_use.c", &["-DNEVER_ENDS"]);
    usage(&project, &[], 2, "the task \"open\" (bad_use.c:24:5) never ends");
    build(&project, "bad_use.c", &["-DSTRAY_END"]);
    usage(&project, &[], 2, "bad_use.c:27:5");
    build(&project, "bad_use.c", &["-DTASK_IN_TASK"]);
    usage(&project, &[], 2, "the task \"inner\" (bad_use.c:16:5) begins inside the task \"outer\"");
    build(&project, "bad_use.c", &["-DENDLESS"]);
    usage(&project, &["--patience", "300ms", "--schedules", "3"], 3, "--patience");
}

#[test]
fn a_hundred_thousand_tasks_are_judged_and_a_million_are_too_many() {
    let project = Project::new("flow-many");
    let one = ["--schedules", "1", "--patience", "120s", "--time", "300s"];
    build(&project, "bad_use.c", &["-DMANY=100000"]);
    let output = tested(&project, &one);
    let document = json(&output);
    assert_eq!(output.status.code(), Some(0), "{document:#}\n{}", stderr(&output));
    assert_eq!(document["stats"]["parallelism"]["tasks"], 100_000, "{document:#}");
    build(&project, "bad_use.c", &["-DMANY=1000000"]);
    usage(&project, &one, 3, "fewer tasks");
}

/// Few records, but more events than the memory of this process should hold.
#[test]
fn a_task_of_many_steps_is_cut_off() {
    let project = Project::new("flow-steps");
    build(&project, "bad_use.c", &["-DLONG=20000000"]);
    let options = ["--schedules", "1", "--patience", "120s", "--time", "300s"];
    usage(&project, &options, 3, "no execution ended within 33554432 steps");
}
