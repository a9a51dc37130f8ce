//! Misuse is told with both places; in a process that the program starts, at least with its own. The programs are those of the runtime's corpus, where their fixed twins are tested
//! with both compilers.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{Project, json};

/// The findings of a program: the name that stands at its places in the source, and its summary.
const EXPECTED: &[(&str, &[(&str, &str)])] = &[
    (
        "misuse_mutex.c",
        &[
            ("foreign", "the mutex `foreign` is unlocked by a thread that does not hold it"),
            ("twice", "the mutex `twice` is unlocked although no thread holds it"),
            ("gone", "the mutex `gone` is used after it was destroyed"),
            ("held", "the mutex `held` is destroyed while it is locked"),
        ],
    ),
    (
        "misuse_objects.c",
        &[
            ("held", "the reader-writer lock `held` is destroyed while it is locked"),
            (
                "foreign",
                "the reader-writer lock `foreign` is unlocked by a thread that does not hold it",
            ),
            ("spins", "the spinlock `spins` is destroyed while it is locked"),
            ("barrier", "the barrier `barrier` is used after it was destroyed"),
            ("condition", "the condition variable `condition` is used after it was destroyed"),
            ("fresh", "the semaphore `fresh` is used before it is initialised"),
            ("old", "the semaphore `old` is used after it was destroyed"),
        ],
    ),
    (
        "misuse_waited.c",
        &[("semaphore", "the semaphore `s` is destroyed while a thread waits for it")],
    ),
    (
        "misuse_condition.c",
        &[("condition", "the condition variable `c` is destroyed while a thread waits for it")],
    ),
    (
        "misuse_descriptor.c",
        &[
            ("in_use", "is closed by one thread while another one uses it"),
            ("stale", "is used after it was closed and the number given out again"),
        ],
    ),
    (
        "misuse_memory.c",
        &[
            ("write", "is used after it was freed"),
            ("atomic", "is used after it was freed"),
            ("read", "is used after it was freed"),
            ("twice", "is freed twice"),
        ],
    ),
    (
        "misuse_signal.c",
        &[
            ("errno", "the handler of SIGALRM changes errno"),
            ("malloc", "the handler of SIGALRM calls `malloc`, which is not async-signal-safe"),
            (
                "lock",
                "the handler of SIGALRM calls `pthread_mutex_lock`, which is not async-signal-safe",
            ),
        ],
    ),
    ("misuse_thread.c", &[("thread", "a thread was neither joined nor detached")]),
];

/// The lines at which a name stands.
fn lines(source: &str, name: &str) -> BTreeSet<u64> {
    let marks = [format!("race({name})"), format!("other({name})")];
    let marked = |line: &str| marks.iter().any(|mark| line.contains(mark));
    (1..).zip(source.lines()).filter(|(_, line)| marked(line)).map(|(n, _)| n).collect()
}

#[test]
fn misuse_is_told_with_both_places() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/tests/corpus");
    let project = Project::new("misuse");
    fs::copy(corpus.join("corpus.h"), project.0.join("corpus.h")).unwrap();
    for (program, expected) in EXPECTED {
        let source = fs::read_to_string(corpus.join(program)).unwrap();
        fs::write(project.0.join(program), &source).unwrap();
        let args = ["cc", "-g", "-O1", program, "-o", "program"];
        project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
        for command in [&["./program"][..], &["sh", "-c", "./program; true"]] {
            let args = [&["run", "--format", "json", "--"], command].concat();
            // In a process that the program starts, an access right behind the free looks like one before it.
            let is_child = command.len() > 1;
            let seen = |(name, _): &&(&str, &str)| !is_child || !["write", "atomic"].contains(name);
            let expected: Vec<_> = expected.iter().filter(seen).copied().collect();
            let report = json(&project.selvedge(&args));
            told(program, &expected, &source, &report, is_child);
        }
    }
}

/// What is expected of a program was reported. Who held an object before is known of the first process only.
fn told(
    program: &str,
    expected: &[(&str, &str)],
    source: &str,
    report: &serde_json::Value,
    is_child: bool,
) {
    let findings = report["findings"].as_array().unwrap();
    for (name, summary) in expected {
        let lines = lines(source, name);
        let at = |f: &&serde_json::Value| {
            let sites = f["sites"].as_array().unwrap().iter();
            let here: BTreeSet<u64> = sites.filter_map(|s| s["line"].as_u64()).collect();
            let some = is_child && !here.is_empty() && here.is_subset(&lines);
            f["kind"] == "misuse" && (here == lines || some)
        };
        let found = findings.iter().find(at);
        let found = found.unwrap_or_else(|| panic!("{program}: {name} at {lines:?}: {report:#}"));
        let told = found["summary"].as_str().unwrap();
        assert!(told.starts_with("misuse: ") && told.contains(summary), "{program}: {told}");
    }
}

#[test]
fn misuse_can_be_suppressed_as_for_thread_sanitizer() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/tests/corpus");
    let project = Project::new("misuse-suppressed");
    fs::copy(corpus.join("corpus.h"), project.0.join("corpus.h")).unwrap();
    for (program, rule) in
        [("misuse_mutex.c", "mutex:main\nmutex:unlocks"), ("misuse_thread.c", "thread:main")]
    {
        fs::copy(corpus.join(program), project.0.join(program)).unwrap();
        fs::write(project.0.join("rules"), rule).unwrap();
        let args = ["cc", "-g", "-O1", program, "-o", "program"];
        project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
        let run = |rules: &[&str]| {
            let mut args = vec!["run", "--format", "json"];
            args.extend(rules);
            args.extend(["--", "./program"]);
            json(&project.selvedge(&args))["findings"].as_array().unwrap().len()
        };
        assert!(run(&[]) > 0, "{program}");
        assert_eq!(run(&["--suppressions", "rules"]), 0, "{program}");
    }
}
