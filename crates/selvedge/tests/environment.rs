//! What the environment says. A test runs this program again, on one test of it, with variables set.

use std::process::{Command, Output};

use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering};
use selvedge::{Explore, thread};

fn lost_update() {
    let n = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&n);
    let other = thread::spawn(move || {
        let seen = theirs.load(Ordering::SeqCst);
        theirs.store(seen + 1, Ordering::SeqCst);
    });
    let seen = n.load(Ordering::SeqCst);
    n.store(seen + 1, Ordering::SeqCst);
    other.join().unwrap();
    assert_eq!(n.load(Ordering::SeqCst), 2, "an update was lost");
}

/// What is run again. On its own it looks at one schedule only, which does not fail.
#[selvedge::test(schedules = 1, strategy = "round-robin:1000", jobs = 1)]
fn subject() {
    lost_update();
}

/// The same with nothing said but by the environment. It fails if it is really looked at.
#[test]
fn subject_of_the_environment() {
    if std::env::var_os("SELVEDGE_SCHEDULES").is_some() {
        selvedge::check(lost_update);
    }
}

fn again(test: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let exe = std::env::current_exe().expect("we run");
    let mut command = Command::new(exe);
    command.args(["--exact", test, "--nocapture"]).envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output().expect("we run again");
    let text = [stdout, stderr].concat();
    (status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_printed_schedule_replays_in_another_process() {
    let failure = Explore::new().run(lost_update).expect_err("found");
    let schedule = failure.schedule.to_string();
    let (passed, text) = again("subject", &[("SELVEDGE_REPLAY", &schedule)]);
    assert!(!passed && text.contains("an update was lost"), "{text}");
    assert!(text.contains("(replayed)") && text.contains(&schedule), "{text}");
    assert!(again("subject", &[]).0, "without the variable it passes");
    let (passed, text) = again("subject", &[("SELVEDGE_REPLAY", "nonsense")]);
    assert!(!passed && text.contains("schedule version"), "{text}");
}

#[test]
fn seed_schedules_and_strategy_are_heeded() {
    let run = |variables: &[(&str, &str)]| again("subject_of_the_environment", variables);
    let (passed, text) = run(&[("SELVEDGE_SCHEDULES", "1_000"), ("SELVEDGE_SEED", "0x2a")]);
    assert!(!passed && text.contains("strategy mix, seed 42"), "{text}");
    let (passed, text) = run(&[("SELVEDGE_SCHEDULES", "1000"), ("SELVEDGE_STRATEGY", "dfs")]);
    assert!(!passed && text.contains("strategy dfs"), "{text}");
    let one = [("SELVEDGE_SCHEDULES", "1"), ("SELVEDGE_STRATEGY", "round-robin:1000")];
    assert!(run(&one).0);
    let (passed, text) = run(&[("SELVEDGE_SCHEDULES", "1"), ("SELVEDGE_STRATEGY", "luck")]);
    assert!(!passed && text.contains("`luck` is not a strategy"), "{text}");
    let (passed, text) = run(&[("SELVEDGE_SCHEDULES", "many")]);
    assert!(!passed && text.contains("`many` is not a number"), "{text}");
}
