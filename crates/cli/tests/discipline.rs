//! `selvedge infer discipline` and `--discipline`: what users see.

mod common;

use std::fs;
use std::path::Path;

use common::{Project, json, stderr, stdout};
use serde_json::Value;

/// The discipline of a variable in a document.
fn of<'a>(document: &'a Value, variable: &str) -> &'a Value {
    let all = document["variables"].as_array().expect("variables");
    all.iter().find(|v| v["variable"] == variable).unwrap_or_else(|| panic!("{variable}: {all:#?}"))
}

fn infer(project: &Project, options: &[&str]) -> Value {
    let mut args = vec!["infer", "discipline", "--format", "json"];
    args.extend(options);
    args.extend(["--", "./program"]);
    json(&project.selvedge(&args))
}

/// Builds one of the programs with both compilers, and infers.
#[track_caller]
fn check(source: &str, options: &[&str], expected: &[(&str, &str)]) {
    for compiler in ["gcc", "clang-19"] {
        let project = Project::new(&format!("discipline-{source}-{compiler}"));
        project.build(
            &format!("discipline/{source}.c"),
            &["-pthread", &format!("--selvedge-compiler={compiler}")],
        );
        let document = infer(&project, options);
        for (variable, discipline) in expected {
            assert_eq!(of(&document, variable)["discipline"], *discipline, "{compiler}");
        }
        assert_eq!(document["findings"], Value::Array(vec![]), "{compiler}");
        let offset = |v: &Value| v["variable"].as_str().is_some_and(|name| name.contains('+'));
        let all = document["variables"].as_array().expect("variables");
        assert!(!all.iter().any(offset), "{compiler}: a variable without a name: {all:#?}");
    }
}

#[test]
fn change_locks() {
    let expected = "thread-local; fork; guarded-by m; via atomic barrier; guarded-by n";
    check("change_locks", &["--schedules", "50"], &[("field", expected)]);
}

#[test]
fn fork_lock() {
    check("fork_lock", &[], &[("field", "thread-local; fork; guarded-by lock; join")]);
}

#[test]
fn sync_object() {
    check("sync_object", &[], &[("object.i", "guarded-by this.lock")]);
}

#[test]
fn read_shared() {
    check("read_shared", &[], &[("constant", "thread-local; fork; read-shared; join")]);
}

#[test]
fn elements_of_arrays_have_members_also_where_a_pointer_has_no_place() {
    check(
        "constant_pointer",
        &[],
        &[
            ("classes[].count", "guarded-by lock"),
            ("classes[].size", "guarded-by lock"),
            ("classes[].slots", "guarded-by lock"),
            ("classes[].used", "guarded-by lock"),
        ],
    );
}

#[test]
fn locks_on_the_heap_have_the_names_of_what_points_to_them() {
    check(
        "pointed_locks",
        &[],
        &[
            ("queue.count", "thread-local; fork; guarded-by this.mut"),
            ("in_row", "guarded-by row[]"),
            ("in_scattered", "guarded-by scattered[]"),
            ("in_two", "guarded-by two[]"),
            ("worker.stats.hits", "guarded-by this.stats.mutex"),
            ("under_a_worker", "guarded-by worker.stats.mutex"),
        ],
    );
}

#[test]
fn members_arrays_and_queues_have_names() {
    check(
        "members",
        &[],
        &[
            ("account.balance", "guarded-by this.lock"),
            ("stats.hits", "guarded-by stats.lock"),
            ("stats.misses", "guarded-by stats.lock"),
            ("table", "guarded-by stripes[]"),
            ("queue", "guarded-by queue_lock"),
            ("buffer.data", "thread-local; via lock queue_lock"),
        ],
    );
}

#[test]
fn a_trace_is_inferred_and_checked_against_what_was_inferred() {
    let project = Project::new("discipline-trace");
    let trace = "t|w(x)|a.c:1\nt|fork(u)|a.c:2\nu|acq(m)|a.c:3\nu|w(x)|a.c:4\nu|rel(m)|a.c:5\n\
                 t|acq(m)|a.c:6\nt|w(x)|a.c:7\nt|rel(m)|a.c:8\n";
    fs::write(project.0.join("right.std"), trace).unwrap();
    let output = project.selvedge(&["infer", "discipline", "--emit", "spec", "right.std"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let line = "x = thread-local; fork; guarded-by m\n";
    assert!(stdout(&output).starts_with(line), "{}", stdout(&output));
    assert_eq!(fs::read_to_string(project.0.join("spec")).unwrap(), line);

    let checked = project.selvedge(&["check", "--discipline", "spec", "right.std"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stdout(&checked));

    // The same without the lock, which a semaphore replaces: no race, but another contract.
    let wrong = trace.replace("t|acq(m)|a.c:6\n", "u|post(s)|a.c:5\nt|wait(s)|a.c:6\n");
    let wrong = wrong.replace("t|rel(m)|a.c:8\n", "");
    fs::write(project.0.join("wrong.std"), wrong).unwrap();
    let checked = project.selvedge(&["check", "--discipline", "spec", "wrong.std"]);
    let text = stdout(&checked);
    assert_eq!(checked.status.code(), Some(1), "{text}");
    assert!(text.contains("discipline violation on `x`"), "{text}");
    assert!(text.contains("thread t does not hold `m`, which `guarded-by m` demands"), "{text}");
    let document = json(&project.selvedge(&[
        "check",
        "--format",
        "json",
        "--discipline",
        "spec",
        "wrong.std",
    ]));
    let finding = &document["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["status"]),
        (&"discipline-violation".into(), &"observed".into())
    );
    assert_eq!(finding["sites"][0]["site"], "a.c:7");
}

#[test]
fn a_wrong_specification_is_refused_with_its_place() {
    let project = Project::new("discipline-wrong");
    fs::write(project.0.join("t.std"), "t|w(x)|1\n").unwrap();
    for (text, expected) in [
        ("x = guarded m", "spec:1:5: found `guarded`; `thread-local`,"),
        ("x = fork\nx = join\n", "spec:2:1: `x` has a discipline already, on line 1"),
    ] {
        fs::write(project.0.join("spec"), text).unwrap();
        let output = project.selvedge(&["check", "--discipline", "spec", "t.std"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    fs::write(project.0.join("spec"), "y = fork\n").unwrap();
    let output = project.selvedge(&["check", "--discipline", "spec", "t.std"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("spec: none of its variables was seen"),
        "{}",
        stderr(&output)
    );
    let output = project.selvedge(&["infer", "discipline"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_native_run_is_checked() {
    let project = Project::new("discipline-native");
    project.build("discipline/fork_lock.c", &["-pthread"]);
    fs::write(project.0.join("spec"), "field = guarded-by lock\n").unwrap();
    let output = project.selvedge(&["run", "--discipline", "spec", "--", "./program"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("thread main does not hold `lock`"), "{text}");
    let right = "field = thread-local; fork; guarded-by lock; join\n";
    fs::write(project.0.join("spec"), right).unwrap();
    let output = project.selvedge(&["run", "--discipline", "spec", "--", "./program"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn rust_programs_have_the_same_disciplines() {
    let project = Project::new("discipline-rust");
    let manifest =
        "[package]\nname = \"thesis\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(project.0.join("Cargo.toml"), manifest).unwrap();
    fs::create_dir_all(project.0.join("src")).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/discipline/thesis.rs");
    fs::copy(source, project.0.join("src/main.rs")).unwrap();
    project.call(env!("CARGO_BIN_EXE_cargo-selvedge"), &["selvedge", "build", "--offline"]);
    let program = find(&project.0.join("target")).expect("a program");
    let inferred = |which: &str, variable: &str, options: &[&str]| {
        let mut args = vec!["infer", "discipline", "--format", "json"];
        args.extend(options);
        args.extend(["--", &program, which]);
        let document = json(&project.selvedge(&args));
        of(&document, variable)["discipline"].as_str().unwrap_or("none").to_owned()
    };
    assert_eq!(
        inferred("fork-lock", "thesis::FIELD", &[]),
        "thread-local; fork; guarded-by thesis::LOCK; join"
    );
    assert_eq!(inferred("sync-object", "thesis::OBJECT", &[]), "guarded-by thesis::OBJECT");
    assert_eq!(
        inferred("read-shared", "thesis::CONSTANT", &[]),
        "thread-local; fork; read-shared; join"
    );
    assert_eq!(
        inferred("change-locks", "thesis::FIELD", &["--schedules", "50"]),
        "thread-local; fork; guarded-by thesis::M; via atomic thesis::BARRIER; guarded-by thesis::N"
    );
    // What a thread does again to its own memory, between locks, stays in the program.
    const ROW: u64 = 64;
    let events = |rounds: u64| {
        let args = ["infer", "discipline", "--format", "json", "--", &program, "again"];
        let rounds = rounds.to_string();
        let args: Vec<&str> = args.into_iter().chain([&*rounds]).collect();
        json(&project.selvedge(&args))["stats"]["events"].as_u64().expect("a number")
    };
    let (few, many) = (50, 450);
    let more = events(many).saturating_sub(events(few)) / (many - few);
    assert!(more >= 2, "{more}: each round has a lock");
    assert!(more < ROW, "{more} in each round");
}

/// The program that was built.
fn find(directory: &Path) -> Option<String> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut directories = Vec::new();
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            directories.push(path);
        } else if path.file_name().is_some_and(|n| n == "thesis") {
            return Some(path.to_string_lossy().into_owned());
        }
    }
    directories.iter().filter(|d| !d.ends_with("deps")).find_map(|d| find(d))
}

#[test]
fn of_a_branch_and_bound_search_only_the_bound_races() {
    let project = Project::new("discipline-tsp");
    project.build("discipline/tsp.c", &["-pthread"]);
    let output = project.selvedge(&[
        "infer",
        "discipline",
        "--format",
        "json",
        "--schedules",
        "20",
        "--",
        "./program",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let document = json(&output);
    let bound = of(&document, "bound");
    assert_eq!(bound["discipline"], Value::Null);
    let race = bound["race"].as_str().expect("a finding");
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.iter().any(|f| f["id"] == race), "{findings:#?}");
    for finding in findings {
        assert_eq!(finding["subject"], serde_json::json!(["bound"]), "{finding:#}");
    }
    assert_eq!(of(&document, "top")["discipline"], "guarded-by stack_lock");
    assert_eq!(of(&document, "stack[].length")["discipline"], "guarded-by stack_lock");
}

#[test]
fn elements_with_locks_of_their_own() {
    check(
        "elevator",
        &["--schedules", "10"],
        &[
            ("floors[].up", "thread-local; fork; guarded-by this.lock"),
            ("served", "guarded-by count_lock; join"),
        ],
    );
}

/// All disciplines of a variable, the most frequent first.
fn disciplines(document: &Value, variable: &str) -> Vec<String> {
    let line = of(document, variable);
    let others = line["others"].as_array().unwrap().iter().map(|o| &o["discipline"]);
    let all = std::iter::once(&line["discipline"]).chain(others);
    all.map(|d| d.as_str().unwrap_or("a race").to_owned()).collect()
}

#[test]
fn boundary_rows_repeat_a_pattern_with_the_barrier() {
    let project = Project::new("discipline-sor");
    project.build("discipline/sor.c", &["-pthread"]);
    let document = infer(&project, &["--all", "--schedules", "10"]);
    assert_eq!(document["findings"], Value::Array(vec![]));
    let boundary = disciplines(&document, "boundary");
    for discipline in &boundary {
        let rest = discipline.strip_prefix("thread-local; fork; ").expect(discipline);
        assert!(rest.contains("via barrier phase"), "{discipline}");
    }
    let repeats = |d: &String| d.contains("via barrier phase") && d.contains(")+");
    assert!(boundary.iter().any(repeats), "{boundary:#?}");
    for interior in ["upper", "lower"] {
        for discipline in disciplines(&document, interior) {
            assert!(!discipline.contains("barrier"), "{interior}: {discipline}");
        }
    }
    assert_eq!(disciplines(&document, "omega"), ["thread-local; fork; read-shared"]);
}

#[test]
fn accesses_that_are_held_back_decide_what_ordered() {
    let project = Project::new("discipline-handed-late");
    project.build("discipline/handed_late.c", &["-pthread"]);
    let document = infer(&project, &[]);
    let expected = "thread-local; via semaphore late; join";
    assert_eq!(of(&document, "shared")["discipline"], expected);
}

/// Of the accesses to a row that one thread has for itself, the same number is sent in few and in many iterations, to
/// inference and to checking alike.
#[test]
fn what_a_thread_does_again_stays_in_the_program() {
    const SIDE: u64 = 40;
    let commands: [&[&str]; 2] = [&["infer", "discipline"], &["run", "--discipline", "spec"]];
    let events = |iterations: u64| {
        let project = Project::new(&format!("discipline-sor-{iterations}"));
        let sizes = [("ROWS", SIDE), ("COLUMNS", SIDE), ("ITERATIONS", iterations)];
        let sizes = sizes.map(|(name, size)| format!("-D{name}={size}"));
        let options: Vec<&str> =
            ["-pthread"].into_iter().chain(sizes.iter().map(|s| &**s)).collect();
        project.build("discipline/sor.c", &options);
        let rules = "omega = thread-local; fork; read-shared\nupper = thread-local; fork\n";
        fs::write(project.0.join("spec"), rules).unwrap();
        commands.map(|command| {
            let args = [command, &["--format", "json", "--", "./program"]].concat();
            let document = json(&project.selvedge(&args));
            assert_eq!(document["findings"], Value::Array(vec![]));
            document["stats"]["events"].as_u64().expect("a number")
        })
    };
    let (few, many) = (10, 60);
    let steps = 2 * (many - few);
    for (many, few) in events(many).into_iter().zip(events(few)) {
        let more = many.saturating_sub(few);
        assert!(more > steps, "{more}: each step has a barrier");
        assert!(more / steps < SIDE * SIDE / 2, "{more} in {steps} steps");
    }
}

#[test]
fn without_debug_information_it_is_said_once() {
    let project = Project::new("discipline-without-debug");
    project.build("discipline/fork_lock.c", &["-pthread", "-g0"]);
    let args = ["infer", "discipline", "--runs", "2", "--format", "json", "--", "./program"];
    let output = project.selvedge(&args);
    let expected = "thread-local; fork; guarded-by lock; join";
    assert_eq!(of(&json(&output), "field")["discipline"], expected);
    let said = stderr(&output);
    assert_eq!(said.matches("no debug information").count(), 1, "{said}");
}

#[test]
fn every_variable_that_was_touched_has_a_line() {
    let project = Project::new("discipline-monte-carlo");
    project.build("discipline/monte_carlo.c", &["-pthread"]);
    let document = infer(&project, &["--all", "--schedules", "10"]);
    assert_eq!(document["findings"], Value::Array(vec![]));
    for (variable, discipline) in [
        ("drift", "thread-local; fork; read-shared"),
        ("volatility", "thread-local; fork; read-shared"),
        ("tasks[].seed", "thread-local; fork"),
        ("tasks[].steps", "thread-local; fork"),
        ("next_task", "guarded-by task_lock"),
        ("results", "guarded-by result_lock; join"),
        ("finished", "guarded-by result_lock; join"),
        ("expected", "thread-local"),
        ("result.path", "thread-local; join"),
        ("result.task", "thread-local; join"),
        ("result.next", "guarded-by result_lock; join"),
    ] {
        assert_eq!(of(&document, variable)["discipline"], discipline, "{variable}");
    }
}

#[test]
fn declarations_are_annotated_in_copies_and_patches() {
    let project = Project::new("discipline-annotate");
    project.build("discipline/fork_lock.c", &["-pthread"]);
    let before = fs::read_to_string(project.0.join("fork_lock.c")).unwrap();
    let annotate = |options: &[&str]| {
        let mut args = vec!["infer", "discipline", "--annotate", "out", "--patch", "out.diff"];
        args.extend(options);
        args.extend(["--", "./program"]);
        let output = project.selvedge(&args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (fs::read_to_string(project.0.join("out/fork_lock.c")).unwrap_or_default(), stderr(&output))
    };
    let (text, _) = annotate(&[]);
    let comment = "int field; /* field: thread-local; fork; guarded-by lock; join */\n";
    assert!(text.contains(comment), "{text}");
    let (text, _) = annotate(&["--clang"]);
    assert!(text.contains("int field SELVEDGE_GUARDED_BY(lock);\n"), "{text}");
    assert!(text.contains("#include <selvedge.h>\n"), "{text}");
    project.call("patch", &["-p1", "--dry-run", "-i", "out.diff"]);
    assert_eq!(fs::read_to_string(project.0.join("fork_lock.c")).unwrap(), before);

    for wrong in [["--annotate", "."], ["--patch", "fork_lock.c"]] {
        let args = [&["infer", "discipline"][..], &wrong, &["--", "./program"]].concat();
        let output = project.selvedge(&args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
    assert_eq!(fs::read_to_string(project.0.join("fork_lock.c")).unwrap(), before);

    fs::remove_dir_all(project.0.join("out")).unwrap();
    fs::write(project.0.join("fork_lock.c"), &before).unwrap();
    let (text, said) = annotate(&[]);
    assert_eq!(text, "");
    assert!(said.contains("it has changed since the program was built"), "{said}");
}
