//! Worked examples of the papers, and a fixed twin for each bug.

use std::path::Path;

use selvedge_analyses::Analysis;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockset::Lockset;
use selvedge_model::{Event, Finding, Held, Role, Symbols, Target, trace};

use crate::findings;

fn load(name: &str) -> (Vec<Event>, Symbols) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/traces/{name}.std"));
    let text = std::fs::read_to_string(path).expect("the trace is there");
    trace::parse(&text).expect("the trace is well-formed")
}

/// What `analysis` finds in a trace, one line for each finding.
fn check(name: &str, analysis: impl Analysis, expected: &[&str]) {
    let (events, symbols) = load(name);
    let found = findings(analysis, &events);
    let lines: Vec<String> = found.iter().map(|f| line(f, &symbols)).collect();
    assert_eq!(lines, expected, "{name}");
}

/// `T1 reads x at 9 holding l@8, T2 …`
fn line(finding: &Finding, symbols: &Symbols) -> String {
    let places: Vec<String> = finding
        .places
        .iter()
        .map(|p| {
            let memory = match &finding.subject {
                selvedge_model::Subject::Memory(range) => symbols.variable(*range),
                _ => String::new(),
            };
            let act = match p.role {
                Role::Read => format!("reads {memory}"),
                Role::Write => format!("writes {memory}"),
                Role::Acquire(lock) => format!("wants {}", symbols.lock(lock)),
                _ => unreachable!("these analyses know no other role"),
            };
            let held: Vec<String> = p.held.iter().map(|h| held(h, symbols)).collect();
            let holding = if held.is_empty() {
                String::new()
            } else {
                format!(" holding {}", held.join(" "))
            };
            format!("{} {act} at {}{holding}", symbols.thread(p.thread), symbols.site(p.site))
        })
        .collect();
    places.join(", ")
}

fn held(held: &Held, symbols: &Symbols) -> String {
    format!("{}@{}", symbols.lock(held.lock), symbols.site(held.site))
}

#[test]
fn active_testing_program_2_1() {
    check("active-testing-figure-2.1", Lockset::default(), &[]);
    check("active-testing-figure-2.1", Hybrid::default(), &[]);
    // Figure 3.1: the pair (9, 12).
    check(
        "active-testing-figure-2.2",
        Lockset::default(),
        &["T1 reads 0x2008 at 9, T2 writes 0x2008 at 12"],
    );
    check(
        "active-testing-figure-2.2",
        Hybrid::default(),
        &["T1 writes 0x2000 at 12, T2 reads 0x2000 at 9"],
    );
}

#[test]
fn a_barrier_orders_for_hybrid_but_not_for_lockset() {
    check("active-testing-figure-2.2-barrier", Hybrid::default(), &[]);
    check(
        "active-testing-figure-2.2-barrier",
        Lockset::default(),
        &["T2 reads 0x2000 at 9, T1 writes 0x2000 at 12"],
    );
}

/// Reads after the writer's initialisation are what lockset's states are blind to.
#[test]
fn active_testing_program_4_1() {
    check("active-testing-program-4.1", Lockset::default(), &[]);
    check(
        "active-testing-program-4.1",
        Hybrid::default(),
        &[
            "T1 writes 0x1000 at 16, T2 reads 0x1000 at 4",
            "T1 writes 0x2000 at 17, T2 reads 0x2000 at 5",
        ],
    );
}

#[test]
fn hominy_figure_2_1() {
    check(
        "hominy-figure-2.1",
        Lockset::default(),
        &[
            "T2 reads transactions at 2, T1 writes transactions at 3",
            "T1 writes transactions at 3, T2 writes transactions at 4",
            "T1 writes checking at 6, T2 writes checking at 8",
        ],
    );
    check(
        "hominy-figure-2.1",
        Hybrid::default(),
        &[
            "T2 reads transactions at 2, T1 writes transactions at 3",
            "T1 reads transactions at 1, T2 writes transactions at 4",
            "T1 writes transactions at 3, T2 writes transactions at 4",
            "T1 writes checking at 6, T2 reads checking at 8",
        ],
    );
}

#[test]
fn active_testing_program_2_2() {
    check(
        "active-testing-program-2.2",
        Goodlock::default(),
        &["T1 wants l2 at 2 holding l1@1, T2 wants l1 at 7 holding l2@6"],
    );
}

#[test]
fn the_target_of_a_deadlock_names_threads_locks_and_contexts() {
    let (events, symbols) = load("active-testing-program-5.2");
    let found = findings(Goodlock::default(), &events);
    let [finding] = found.iter().as_slice() else { panic!("one deadlock") };
    let Some(Target::Deadlock(waiters)) = &finding.target else { panic!("a target") };
    let shown: Vec<_> = waiters
        .iter()
        .map(|w| {
            let context: Vec<String> = w.context().map(|s| symbols.site(s).to_string()).collect();
            (symbols.thread(w.thread), context, held(&w.wants, &symbols))
        })
        .collect();
    let context = |sites: [&str; 2]| sites.map(str::to_owned).to_vec();
    assert_eq!(
        shown,
        [
            ("T1".to_owned(), context(["2", "3"]), "l2@3".to_owned()),
            ("T2".to_owned(), context(["12", "13"]), "l1@13".to_owned()),
        ]
    );
}

#[test]
fn active_testing_program_2_3() {
    check(
        "active-testing-program-2.3",
        Goodlock::default(),
        &["httpd wants csList at 8 holding factory@7, \
           SocketClient wants factory at 6 holding csList@4"],
    );
}

#[test]
fn contexts_tell_deadlocks_on_the_same_locks_apart() {
    check(
        "active-testing-jigsaw-contexts",
        Goodlock::default(),
        &[
            "httpd wants csList at 8 holding factory@7, \
             SocketClient wants factory at 6 holding csList@4",
            "httpd wants csList at 8 holding factory@7, \
             SocketClient wants factory at killIdle:2 holding csList@killIdle:1",
        ],
    );
}

#[test]
fn a_thread_does_not_wait_before_it_is_started() {
    check("active-testing-jigsaw-not-started", Goodlock::default(), &[]);
    check(
        "active-testing-jigsaw-started",
        Goodlock::default(),
        &["starter wants runner at start:2 holding pool@start:1, \
           CachedThread wants pool at waitForRunner:2 holding runner@waitForRunner:1"],
    );
    check("joined-between", Goodlock::default(), &[]);
}

#[test]
fn philosophers() {
    check(
        "philosophers",
        Goodlock::default(),
        &["P1 wants f2 at 12 holding f1@11, P2 wants f3 at 22 holding f2@21, \
           P3 wants f1 at 32 holding f3@31"],
    );
    check("philosophers-ordered", Goodlock::default(), &[]);
    check("philosophers-waiter", Goodlock::default(), &[]);
}

#[test]
fn readers_share() {
    check("rwlocks-readers", Goodlock::default(), &[]);
    check("rwlocks-one-writer", Goodlock::default(), &[]);
    check(
        "rwlocks-writers",
        Goodlock::default(),
        &["T1 wants b at 11 holding a@10, T2 wants a at 21 holding b@20"],
    );
    check(
        "rwlocks-read-guard",
        Goodlock::default(),
        &["T1 wants b at 12 holding g@10 a@11, T2 wants a at 22 holding g@20 b@21"],
    );
    check("rwlocks-write-guard", Goodlock::default(), &[]);
}

#[test]
fn a_lock_that_is_held_is_not_waited_for() {
    check("reacquired", Goodlock::default(), &[]);
    check("upgraded", Goodlock::default(), &[]);
}

#[test]
fn the_same_acquisition_counts_in_every_stretch_of_a_life() {
    check(
        "several-moments",
        Goodlock::default(),
        &[
            "T0 wants b at 2 holding a@1, T1 wants a at 12 holding b@11",
            "T0 wants b at 2 holding a@1, T2 wants a at 22 holding b@21",
        ],
    );
}
