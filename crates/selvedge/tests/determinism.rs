//! Deterministic blocks with values: what differs is found, replayed and explained; the fixed twin passes; bad use
//! is refused and never becomes a verdict.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use selvedge::cases::{Given, Note, Subject};
use selvedge::events::{Kind, Status, Verdict};
use selvedge::sync::atomic::{AtomicU64, Ordering};
use selvedge::sync::{Arc, Mutex, mpsc};
use selvedge::{
    DeterministicBlock, Explore, Failure, Undecided, block_token, cell::UnsafeCell, deterministic,
    deterministic_with, rand, same, thread,
};

fn explore() -> Explore {
    Explore::new().schedules(300)
}

/// The violation that the body shows.
fn violation(explore: Explore, body: impl Fn() + Send + Sync + 'static) -> Box<Failure> {
    let failure = explore.run(body).expect_err("the block is not deterministic");
    eprintln!("{failure}\n");
    assert_eq!(failure.kind(), Kind::DeterminismViolation, "{failure}");
    assert_eq!(failure.case.status, Status::Confirmed);
    assert_eq!(failure.case.verdict, Some(Verdict::Harmful));
    failure
}

fn passes(explore: Explore, body: impl Fn() + Send + Sync + 'static) {
    match explore.run(body) {
        Ok(summary) => assert_eq!(summary.undecided, []),
        Err(failure) => panic!("{failure}"),
    }
}

/// The message of the panic that refuses the body.
fn refused(body: impl Fn() + Send + Sync + 'static) -> String {
    let check = AssertUnwindSafe(|| explore().schedules(20).run(body));
    let payload = catch_unwind(check).expect_err("the body misuses blocks");
    payload.downcast_ref::<String>().expect("a message").clone()
}

/// Two threads do something at the same time.
fn both(one: impl FnOnce() + Send + 'static, two: impl FnOnce()) {
    let thread = thread::spawn(one);
    two();
    thread.join().unwrap();
}

/// Two threads push to a list; `finish` may make the result independent of their order.
fn pushes(finish: fn(&mut Vec<u32>)) {
    deterministic("list", || {
        let list = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&list);
        both(move || theirs.lock().unwrap().push(1), || list.lock().unwrap().push(2));
        let mut list = list.lock().unwrap();
        finish(&mut list);
        selvedge::ensure("order", &*list);
    });
}

#[test]
fn a_result_that_depends_on_the_schedule_is_found_and_its_twin_passes() {
    let failure = violation(explore(), || pushes(|_| {}));
    let subject = Subject::Value { block: "list".into(), name: "order".into() };
    assert_eq!(failure.case.subject, subject);
    let state = &failure.case.states[0];
    assert_eq!(state.name, "order");
    let mut values = [&state.first, &state.second].map(|given| match given {
        Given::Value(value) => value.to_string(),
        other => panic!("{other:?}"),
    });
    values.sort();
    assert_eq!(values, ["[1, 2]", "[2, 1]"]);
    let text = failure.to_string();
    assert!(text.contains("`order` is ["), "{text}");
    assert!(text.contains("here the two executions part"), "{text}");
    passes(explore(), || pushes(|list| list.sort_unstable()));
}

#[test]
fn both_schedules_replay_the_difference_and_one_alone_passes() {
    let failure = violation(explore(), || pushes(|_| {}));
    let [first, second] = &failure.schedules[..] else { panic!("{failure}") };
    let both = format!("{first} {second}");
    let again = Explore::new().replay(&both).run(|| pushes(|_| {})).expect_err("it differs");
    assert_eq!(again.case.id, failure.case.id);
    Explore::new().replay(&second.to_string()).run(|| pushes(|_| {})).expect("nothing to compare");
    Explore::new().replay(&both).run(|| pushes(|l| l.sort_unstable())).expect("mended");
}

#[test]
fn the_lock_order_that_decides_is_named() {
    let failure = violation(explore(), || pushes(|_| {}));
    let causes: Vec<&Note> =
        failure.case.notes.iter().filter(|n| matches!(n, Note::CausedBy { .. })).collect();
    let [Note::CausedBy { kind, subject, sites }] = causes[..] else { panic!("{failure}") };
    assert_eq!(*kind, Kind::HighLevelRace);
    assert!(matches!(subject, Subject::Locks(locks) if locks.len() == 1), "{subject:?}");
    assert_eq!(sites.len(), 2);
}

/// As the raytracer of the paper: each thread locks a lock of its own around the sum that all share, so that updates
/// are lost; and all threads note the same time in a cell, which is a race as well, but shows nowhere.
fn raytracer(fixed: bool) {
    struct Shared {
        sum: UnsafeCell<u64>,
        seen: UnsafeCell<u64>,
    }
    // SAFETY: the cells are accessed without synchronization on purpose; a check runs one thread at a time.
    unsafe impl Sync for Shared {}
    let shared = Arc::new(Shared { sum: UnsafeCell::new(0), seen: UnsafeCell::new(0) });
    let lock = Arc::new(Mutex::new(()));
    let render = |rows: u64, lock: Arc<Mutex<()>>| {
        let shared = Arc::clone(&shared);
        move || {
            // SAFETY: a check runs one thread at a time.
            shared.seen.with_mut(|seen| unsafe { *seen = 7 });
            let _guard = lock.lock().unwrap();
            // SAFETY: a check runs one thread at a time.
            let sum = shared.sum.with(|sum| unsafe { *sum });
            // SAFETY: a check runs one thread at a time.
            shared.sum.with_mut(|place| unsafe { *place = sum + rows });
        }
    };
    deterministic("render", || {
        let own = if fixed { Arc::clone(&lock) } else { Arc::new(Mutex::new(())) };
        both(render(10, own), render(1, lock));
        // SAFETY: all threads have ended.
        selvedge::ensure("checksum", &shared.sum.with(|sum| unsafe { *sum }));
    });
}

#[test]
fn a_harmful_race_and_a_benign_one_in_the_same_program_are_told_apart() {
    let failure = violation(explore().analyses("none"), || raytracer(false));
    let line = |site: &selvedge::events::Site| {
        let frame = site.frame().expect("a line of this file");
        include_str!("determinism.rs").lines().nth(frame.line as usize - 1).unwrap().to_owned()
    };
    let mut causes = 0;
    for note in &failure.case.notes {
        let Note::CausedBy { kind, sites, .. } = note else { continue };
        causes += 1;
        assert_eq!(*kind, Kind::DataRace, "the locks differ, so their order decides nothing");
        for site in sites {
            assert!(line(site).contains("shared.sum"), "{site}: {}", line(site));
        }
    }
    assert!(causes > 0, "{failure}");
    passes(explore().analyses("none"), || raytracer(true));
}

#[test]
fn a_sum_of_floats_needs_a_predicate() {
    fn sum(ensure: fn(&f64)) {
        deterministic("sum", || {
            let sum = Arc::new(Mutex::new(0.3));
            let theirs = Arc::clone(&sum);
            both(move || *theirs.lock().unwrap() += 0.2, || *sum.lock().unwrap() += 0.1);
            ensure(&sum.lock().unwrap());
        });
    }
    violation(explore(), || sum(|s| selvedge::ensure("sum", s)));
    passes(explore(), || sum(|s| selvedge::ensure_by("sum", s, same::relative(1e-12))));
    passes(explore(), || sum(|s| selvedge::ensure_by("sum", s, same::within(1e-9))));
    passes(explore(), || sum(|s| selvedge::ensure_by("sum", s, same::ulps(4))));
    violation(explore(), || sum(|s| selvedge::ensure_by("sum", s, same::within(1e-20))));
}

#[test]
fn collections_are_compared_as_the_predicate_says() {
    fn pushed(ensure: fn(&Vec<u32>)) {
        deterministic("list", || {
            let list = Arc::new(Mutex::new(Vec::new()));
            let theirs = Arc::clone(&list);
            both(
                move || theirs.lock().unwrap().extend([1, 1]),
                || list.lock().unwrap().extend([2, 3]),
            );
            ensure(&list.lock().unwrap());
        });
    }
    violation(explore(), || pushed(|l| selvedge::ensure("list", l)));
    passes(explore(), || pushed(|l| selvedge::ensure_by("list", l, same::multiset())));
    passes(explore(), || pushed(|l| selvedge::ensure_by("list", l, same::set())));
    passes(explore(), || {
        pushed(|l| selvedge::ensure("set", &l.iter().copied().collect::<HashSet<u32>>()));
    });
    passes(explore(), || {
        pushed(|l| selvedge::ensure_by("sum", l, same::on(|l: &Vec<u32>| l.iter().sum::<u32>())));
    });
    passes(explore(), || {
        pushed(|l| selvedge::ensure_by("len", l, same::by(|a: &Vec<u32>, b| a.len() == b.len())));
    });
    violation(explore(), || {
        pushed(|l| selvedge::ensure_by("first", l, same::by(|a: &Vec<u32>, b| a[0] == b[0])));
    });
    passes(explore(), || {
        pushed(|l| selvedge::ensure_by("rows", &vec![l.clone()], same::rows()));
    });
}

#[test]
fn executions_that_assume_different_things_are_not_compared() {
    passes(explore(), || {
        deterministic("coin", || {
            let input = rand::coin();
            selvedge::assume("input", &input);
            selvedge::ensure("output", &!input);
        });
    });
    violation(explore(), || {
        deterministic("coin", || selvedge::ensure("output", &rand::coin()));
    });
}

#[test]
fn a_call_that_only_one_execution_makes_is_a_difference() {
    let failure = violation(explore(), || {
        deterministic("first", || {
            let first = Arc::new(AtomicU64::new(0));
            let theirs = Arc::clone(&first);
            let set =
                |n: &AtomicU64, to| n.compare_exchange(0, to, Ordering::SeqCst, Ordering::SeqCst);
            both(move || _ = set(&theirs, 1), || _ = set(&first, 2));
            if first.load(Ordering::SeqCst) == 1 {
                selvedge::ensure("winner", &1);
            }
            selvedge::ensure("done", &true);
        });
    });
    let states = &failure.case.states;
    let absent = |given: &Given| *given == Given::Nothing;
    assert!(absent(&states[0].first) != absent(&states[0].second), "{states:?}");
}

#[test]
fn threads_started_inside_belong_to_the_block_and_pools_enter_it_by_a_token() {
    let failure = violation(explore(), || {
        let counter = Arc::new(AtomicU64::new(0));
        deterministic("outer", || {
            let theirs = Arc::clone(&counter);
            both(
                move || selvedge::ensure("ticket", &theirs.fetch_add(1, Ordering::SeqCst)),
                || _ = counter.fetch_add(1, Ordering::SeqCst),
            );
        });
    });
    assert!(matches!(&failure.case.subject, Subject::Value { block, .. } if block == "outer"));
    // A pool is older than the block.
    passes(explore(), || {
        let (jobs, queue) = mpsc::channel::<(selvedge::BlockToken, u32)>();
        let (results, done) = mpsc::channel();
        let pool = thread::spawn(move || {
            for (token, job) in queue {
                let _block = token.join();
                selvedge::ensure("square", &(job * job));
                results.send(()).unwrap();
            }
        });
        deterministic("squares", || {
            for job in 1..3 {
                jobs.send((block_token(), job)).unwrap();
            }
            (1..3).for_each(|_| done.recv().unwrap());
        });
        drop(jobs);
        pool.join().unwrap();
    });
}

#[test]
fn a_call_belongs_to_the_innermost_block() {
    let failure = violation(explore(), || {
        deterministic("outer", || {
            let _inner = DeterministicBlock::enter("inner");
            selvedge::ensure("coin", &rand::coin());
        });
    });
    assert!(matches!(&failure.case.subject, Subject::Value { block, .. } if block == "inner"));
}

#[test]
fn a_state_is_recorded_and_not_compared() {
    passes(explore(), || {
        let mut state = 1;
        let result = deterministic_with("toss", &mut state, |state| {
            *state += i32::from(rand::coin());
            selvedge::ensure("fixed", &7);
            *state
        });
        assert_eq!(result, state);
    });
}

#[test]
fn an_execution_that_fails_inside_a_block_fails_and_leaves_no_values() {
    let failure = explore().run(|| {
        deterministic("half", || {
            selvedge::ensure("coin", &rand::coin());
            panic!("in the middle");
        });
    });
    let failure = failure.expect_err("it panics");
    assert_eq!(failure.kind(), Kind::Assertion, "{failure}");
}

#[test]
fn bad_use_is_refused_with_the_places() {
    let late = refused(|| {
        deterministic("late", || {
            selvedge::ensure("result", &1);
            selvedge::assume("input", &1);
        });
    });
    assert!(late.contains("\"input\" is assumed after \"result\" was ensured"), "{late}");
    assert_eq!(late.matches("tests/determinism.rs:").count(), 2, "{late}");
    let outside = refused(|| selvedge::ensure("result", &1));
    assert!(outside.contains("outside of every deterministic block"), "{outside}");
    assert!(outside.contains("tests/determinism.rs:"), "{outside}");
    let after = refused(|| {
        let (go, wait) = mpsc::channel::<()>();
        let thread = deterministic("short", || {
            thread::spawn(move || {
                let _ = wait.recv();
                selvedge::ensure("late", &1);
            })
        });
        drop(go);
        thread.join().unwrap();
    });
    assert!(after.contains("after the block has ended"), "{after}");
    let joined = refused(|| {
        let token = deterministic("short", block_token);
        let _block = token.join();
    });
    assert!(joined.contains("joins a deterministic block that has ended"), "{joined}");
}

#[test]
fn a_predicate_that_is_none_is_refused_with_the_place() {
    fn tossed(ensure: fn(&u64)) -> String {
        refused(move || deterministic("toss", || ensure(&rand::next_u64())))
    }
    let reflexive = tossed(|n| selvedge::ensure_by("n", n, same::by(|_: &u64, _: &u64| false)));
    assert!(reflexive.contains("is not reflexive"), "{reflexive}");
    assert!(reflexive.contains("tests/determinism.rs:"), "{reflexive}");
    let symmetric = tossed(|n| selvedge::ensure_by("n", n, same::by(|a: &u64, b: &u64| a <= b)));
    assert!(symmetric.contains("is not symmetric"), "{symmetric}");
    let panics = tossed(|n| {
        selvedge::ensure_by("n", n, same::by(|a: &u64, b: &u64| a == b || panic!("oh no")));
    });
    assert!(panics.contains("it panicked: oh no"), "{panics}");
    let kind = refused(|| {
        deterministic("kind", || selvedge::ensure_by("n", &"text".to_owned(), same::within(1.0)));
    });
    assert!(kind.contains("does not apply to a value of kind text"), "{kind}");
}

#[test]
fn what_could_not_be_compared_is_named() {
    let body = || {
        deterministic("unique", || {
            selvedge::assume("input", &rand::next_u64());
            selvedge::ensure("output", &1);
        });
    };
    let summary = explore().schedules(20).run(body).expect("nothing differs");
    assert!(
        matches!(&summary.undecided[..], [Undecided::Incomparable { block, executions: 20 }] if block == "unique"),
        "{:?}",
        summary.undecided
    );
    let check = AssertUnwindSafe(|| explore().schedules(20).check(body));
    let payload = catch_unwind(check).expect_err("never silently green");
    let text = payload.downcast_ref::<String>().expect("a message");
    assert!(text.contains("no two of the 20 executions"), "{text}");
    let body = || std::mem::forget(DeterministicBlock::enter("open"));
    let summary = explore().schedules(20).run(body).expect("nothing differs");
    assert!(
        matches!(&summary.undecided[..], [Undecided::Unclosed { block, .. }] if block == "open"),
        "{:?}",
        summary.undecided
    );
}

#[test]
fn the_number_of_cores_changes_nothing() {
    let text = |jobs| violation(explore().jobs(jobs), || pushes(|_| {})).to_string();
    assert_eq!(text(1), text(3));
}

#[test]
fn states_in_a_file_make_a_block_a_regression_test() {
    fn body(answer: u32) -> impl Fn() + Send + Sync + 'static {
        move || {
            deterministic("answer", || {
                selvedge::assume("question", &6);
                selvedge::ensure("answer", &answer);
                selvedge::ensure("set", &HashSet::from([answer, 7]));
            });
        }
    }
    let directory = std::env::temp_dir().join(format!("selvedge-states-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("answers");
    let explore = || explore().schedules(5).states(&path);
    passes(explore(), body(42));
    passes(explore(), body(42));
    let before = std::fs::read(&path).unwrap();
    let failure = explore().run(body(43)).expect_err("the answer has changed");
    assert_eq!(failure.case.status, Status::Observed, "the other build cannot be replayed");
    assert_eq!(failure.case.states[0].first, Given::Value(42.into()));
    assert!(failure.to_string().contains("kept in "), "{failure}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "the file keeps what was right");
    let refused = |text: &[u8]| {
        std::fs::write(&path, text).unwrap();
        let check = AssertUnwindSafe(|| explore().run(body(42)));
        let payload = catch_unwind(check).expect_err("the file is not one of states");
        payload.downcast_ref::<String>().expect("a message").clone()
    };
    let newer = refused(b"selvedge states 2\n");
    assert!(newer.contains("the first line must be `selvedge states 1`"), "{newer}");
    let damaged = refused(b"selvedge states 1\n01ff\n");
    assert!(damaged.contains("answers"), "{damaged}");
    std::fs::remove_dir_all(&directory).unwrap();
}
