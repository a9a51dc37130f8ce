//! Controlled executions of C, C++ and Rust programs.

mod common;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use selvedge_analyses::Analysis;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_engine::replay::unforced;
use selvedge_engine::{Ask, Difference, Execution, Executor, Limit, Noted, Outcome};
use selvedge_explore::{
    Abstraction, Budget, DeadlockFuzzer, Pct, Pos, RaceFuzzer, RandomWalk, Replay, RoundRobin,
    STRATEGIES, Strategy,
};
use selvedge_model::{
    Cause, Descriptor, Failure, Finding, Findings, LockId, Misuse, Op, Role, Schedule, Site,
    Subject, Target, ThreadId, Uncontrolled, Waiter,
};
use selvedge_runtime::control::CodePlace;
use selvedge_runtime::{Controlled, Form, Settings};

use common::{
    Built, build, control, control_with, libraries, next, observe, run, settings, workspace,
};

/// The same seed gives the same events, in processes that are loaded elsewhere each time; others do not.
fn same_seed_same_events(source: &str, code: i32) {
    let built = build(source, false);
    let mut forked = control(&built, true);
    let first = run(&mut forked, 1);
    assert_eq!(first.outcome, Outcome::Exited(code), "{first:?}");
    assert!(first.events.len() > 20);
    for _ in 0..70 {
        let again = run(&mut forked, 1);
        assert_eq!(Difference::between(&first.events, &again.events), None);
        assert_eq!((&again.outcome, &again.output), (&first.outcome, &first.output));
        assert_eq!(again.schedule, first.schedule);
    }
    let mut started = control(&built, false);
    let other = run(&mut started, 1);
    for _ in 0..29 {
        assert_eq!(Difference::between(&other.events, &run(&mut started, 1).events), None);
    }
    assert_eq!(other.schedule, first.schedule, "a fork is like a start");
    let schedules: BTreeSet<String> =
        (0..20).map(|seed| run(&mut forked, seed).schedule.to_string()).collect();
    assert!(schedules.len() > 10, "{schedules:?}");
}

#[test]
fn the_same_seed_gives_the_same_events_in_c() {
    same_seed_same_events("queue.c", 7);
}

#[test]
fn the_same_seed_gives_the_same_events_in_cpp() {
    same_seed_same_events("primitives.cpp", 0);
}

#[test]
fn the_same_seed_gives_the_same_events_in_rust() {
    same_seed_same_events("standard.rs", 0);
}

#[test]
fn different_seeds_give_different_output() {
    for source in ["queue.c", "standard.rs"] {
        let mut program = control(&build(source, false), true);
        let outputs: BTreeSet<Vec<u8>> =
            (0..40).map(|seed| run(&mut program, seed).output).collect();
        assert!(outputs.len() > 3, "{source}: {outputs:?}");
        assert!(outputs.iter().all(|o| o.ends_with(b"\n")));
    }
}

#[test]
fn primitives_work_under_every_schedule() {
    let mut program = control(&build("primitives.cpp", false), true);
    for seed in 0..60 {
        let execution = run(&mut program, seed);
        assert_eq!(execution.outcome, Outcome::Exited(0), "seed {seed}: {execution:?}");
        assert_eq!(execution.uncontrolled, []);
    }
}

#[test]
fn a_schedule_replays_a_hundred_times() {
    for source in ["queue.c", "primitives.cpp", "standard.rs"] {
        let built = build(source, false);
        let mut program = control(&built, true);
        let recorded = run(&mut program, 3);
        let text = recorded.schedule.to_string();
        let schedule = text.parse().expect("its text is a schedule");
        for _ in 0..100 {
            let (again, divergence) = program.replay(&schedule).expect("it is controlled");
            assert_eq!(divergence, None);
            assert_eq!(Difference::between(&recorded.events, &again.events), None);
            assert_eq!(again.output, recorded.output);
        }
    }
}

/// The first of so many random schedules that deadlocks.
fn deadlock(program: &mut Controlled, schedules: u64) -> Option<Execution> {
    let (mut walk, mut budget) = (RandomWalk::default(), Budget::new(11, schedules));
    while let Some(execution) = next(program, &mut budget, &mut walk) {
        if !common::blocked(&execution).is_empty() {
            return Some(execution);
        }
        assert_eq!(execution.outcome, Outcome::Exited(0), "{execution:?}");
    }
    None
}

#[test]
fn a_deadlock_of_two_locks_is_found_and_told_exactly() {
    let mut program = control(&build("abba.c", false), true);
    let execution = deadlock(&mut program, 200).expect("one of two schedules deadlocks");
    let blocked = common::blocked(&execution);
    let [main, one, two] = &blocked[..] else { panic!("{blocked:?}") };
    assert!(matches!(main.wants, Role::Join(t) if Some(t) == main.waits_for));
    assert_eq!((one.waits_for, two.waits_for), (Some(two.thread), Some(one.thread)));
    for (waiter, holder) in [(one, two), (two, one)] {
        let [held] = holder.holds[..] else { panic!("{holder:?}") };
        assert_eq!(waiter.lock(), Some(held.lock));
    }
    let (again, divergence) = program.replay(&execution.schedule).expect("it is controlled");
    assert_eq!((again.outcome, divergence), (execution.outcome, None));
    let mut fixed = control(&build("abba.c", true), true);
    assert!(deadlock(&mut fixed, 200).is_none());
}

#[test]
fn a_deadlock_of_standard_mutexes_is_found() {
    let mut program = control(&build("philosophers.rs", false), true);
    let execution = deadlock(&mut program, 500).expect("some schedule deadlocks");
    let blocked = common::blocked(&execution);
    assert_eq!(blocked.len(), 2, "{blocked:?}");
    let mut fixed = control(&build("philosophers.rs", true), true);
    assert!(deadlock(&mut fixed, 200).is_none());
}

#[test]
fn a_lost_wake_up_is_found() {
    let mut program = control(&build("lost_wakeup.c", false), true);
    let execution = deadlock(&mut program, 500).expect("some schedule loses the notification");
    let blocked = common::blocked(&execution);
    assert!(blocked.iter().any(|b| b.wants == Role::Sleep), "{blocked:?}");
    let mut fixed = control(&build("lost_wakeup.c", true), true);
    assert!(deadlock(&mut fixed, 300).is_none());
}

/// The places of the races that an uncontrolled run shows, two for each.
fn racing_places(built: &Built) -> Vec<[CodePlace; 2]> {
    // Which of the pairs an uncontrolled run shows depends on luck.
    let mut pairs = Vec::new();
    for _ in 0..20 {
        let outcome = observe(&built.program, Form::Linked).expect("it runs");
        for race in &outcome.races {
            let sides = [race.earlier.as_ref().unwrap().pc, race.later.pc]
                .map(|pc| CodePlace::of(pc, &outcome.modules));
            if let [Some(a), Some(b)] = sides
                && !pairs.contains(&[a.clone(), b.clone()])
            {
                pairs.push([a, b]);
            }
        }
    }
    pairs
}

#[test]
fn watching_the_accesses_of_a_race_loses_an_update() {
    let built = build("increments.c", false);
    let mut program = control(&built, true);
    let unwatched =
        (0..100).filter(|&s| run(&mut program, s).outcome == Outcome::Exited(1)).count();
    assert_eq!(unwatched, 0, "threads are stopped at scheduling points only");
    let places: Vec<CodePlace> = racing_places(&built).into_iter().flatten().collect();
    assert!(!places.is_empty(), "the race is seen");
    program.watch(&places).expect("it is controlled");
    let lost =
        (0..200).map(|seed| run(&mut program, seed)).find(|e| e.outcome == Outcome::Exited(1));
    let lost = lost.expect("an update is lost");
    assert_eq!(lost.output, b"1\n");
    let (again, _) = program.replay(&lost.schedule).expect("it is controlled");
    assert_eq!(Difference::between(&lost.events, &again.events), None);
}

#[test]
fn a_race_is_confirmed_and_its_fixed_twin_is_not() {
    let built = build("increments.c", false);
    let mut program = control(&built, true);
    let pairs = racing_places(&built);
    let mut confirmed = 0;
    for pair in &pairs {
        let sites = program.watch(pair).expect("it is controlled");
        let mut fuzzer = RaceFuzzer::new(sites[0], sites[1]);
        let mut budget = Budget::new(1, 20);
        while next(&mut program, &mut budget, &mut fuzzer).is_some() {
            confirmed += usize::from(fuzzer.reached().is_some());
        }
    }
    assert!(confirmed > 0, "{pairs:?}");
    // The fixed twin has accesses at the same lines; all of them, in pairs.
    let built = build("increments.c", true);
    assert_eq!(racing_places(&built), Vec::<[CodePlace; 2]>::new());
    let mut program = control(&built, true);
    let accesses = accesses_of(&built);
    assert!(accesses.len() >= 2, "the accesses of the counter are seen");
    let sites = program.watch(&accesses).expect("it is controlled");
    for &first in &sites {
        for &second in &sites {
            let mut fuzzer = RaceFuzzer::new(first, second);
            let mut budget = Budget::new(1, 10);
            while next(&mut program, &mut budget, &mut fuzzer).is_some() {
                assert_eq!(fuzzer.reached(), None);
            }
        }
    }
}

/// Where instrumented code reads or writes while it holds a lock.
fn accesses_of(built: &Built) -> Vec<CodePlace> {
    let none: [&str; 0] = [];
    let settings = Settings { accesses: true, ..settings(true) };
    let mut program =
        Controlled::new(&built.program, none, libraries(), settings).expect("there is memory");
    let execution = run(&mut program, 0);
    let mut places: Vec<CodePlace> = Vec::new();
    let mut held = 0;
    for event in &execution.events {
        match event.op {
            Op::Acquire(..) => held += 1,
            Op::Release(..) => held -= 1,
            Op::Read(_) | Op::Write(_) if held > 0 => {
                let label = program.symbols.site(event.site).to_string();
                let (_, offset) = label.rsplit_once("+0x").expect("sites are module and offset");
                let offset = u64::from_str_radix(offset, 16).expect("hexadecimal");
                let place = CodePlace { module: built.program.clone(), offset };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            _ => {}
        }
    }
    places
}

/// The cycles that an execution without a deadlock lets one expect.
fn predicted_deadlocks(execution: &Execution) -> Vec<Vec<Waiter>> {
    let (mut goodlock, mut findings) = (Goodlock::default(), Findings::default());
    for event in &execution.events {
        goodlock.on_event(event, &mut findings);
    }
    goodlock.finish(&mut findings);
    let targets = findings.iter().filter_map(|f| f.target.clone());
    targets
        .filter_map(|t| match t {
            Target::Deadlock(cycle) => Some(cycle),
            _ => None,
        })
        .collect()
}

#[test]
fn a_predicted_deadlock_is_confirmed_and_its_fixed_twin_is_not() {
    let mut program = control(&build("abba.c", false), true);
    let passed = (0..50).map(|s| run(&mut program, s)).find(|e| e.outcome == Outcome::Exited(0));
    let passed = passed.expect("some schedule passes");
    let names = program.names().snapshot();
    let cycles = predicted_deadlocks(&passed);
    assert_eq!(cycles.len(), 1, "{cycles:?}");
    let mut fuzzer = DeadlockFuzzer::new(&cycles[0], &names, program.names());
    let mut budget = Budget::new(1, 20);
    let mut confirmed = 0;
    while let Some(execution) = next(&mut program, &mut budget, &mut fuzzer) {
        let reached = fuzzer.reached().len() == 2;
        assert_eq!(reached, !common::blocked(&execution).is_empty());
        confirmed += usize::from(reached);
    }
    assert!(confirmed >= 18, "{confirmed} of 20");
    let mut fixed = control(&build("abba.c", true), true);
    let passed = run(&mut fixed, 0);
    assert_eq!(predicted_deadlocks(&passed), Vec::<Vec<Waiter>>::new());
    // Aiming at the other program's cycle, whose sites are here other places, confirms nothing.
    let mut fuzzer = DeadlockFuzzer::new(&cycles[0], &names, fixed.names());
    let mut budget = Budget::new(1, 20);
    while let Some(execution) = next(&mut fixed, &mut budget, &mut fuzzer) {
        assert_eq!((execution.outcome, fuzzer.reached()), (Outcome::Exited(0), &[][..]));
    }
}

#[test]
fn what_is_outside_the_program_does_not_stop_it() {
    let mut program = control(&build("outside.c", false), true);
    let mut outputs = BTreeSet::new();
    for seed in 0..10 {
        let execution = run(&mut program, seed);
        assert_eq!(execution.outcome, Outcome::Exited(0), "{execution:?}");
        let text = String::from_utf8_lossy(&execution.output).into_owned();
        assert!(text.ends_with(" 1 9 x\n"), "{text}");
        outputs.insert(text);
        // Reading the empty pipe is what a thread waits for here, unless the writer was first.
        for uncontrolled in &execution.uncontrolled {
            let Uncontrolled::SystemCall { thread, .. } = uncontrolled;
            assert_eq!(thread.0, 0);
        }
    }
    assert_eq!(outputs.len(), 1, "time and random numbers are the same: {outputs:?}");
    program.seed = 5;
    assert!(!outputs.contains(&String::from_utf8_lossy(&run(&mut program, 0).output).into_owned()));
}

#[test]
fn signals_cancellation_and_an_early_end_of_main_are_no_deadlock() {
    for source in ["handler.c", "main_leaves.c", "cancel.c"] {
        let mut program = control(&build(source, false), true);
        for seed in 0..20 {
            let execution = run(&mut program, seed);
            assert_eq!(execution.outcome, Outcome::Exited(0), "{source}: {execution:?}");
        }
    }
}

/// What makes a program do something else under the same schedule.
fn nondeterminism(source: &str) -> Option<Cause> {
    let mut program = control(&build(source, false), true);
    let ask = Ask { noted: Noted::Events, ..Ask::default() };
    let recorded = unforced(&mut program, &ask).expect("it is controlled");
    let mut repeat = || program.repeat(&recorded, &ask).expect("it is controlled");
    let found = (0..5).find_map(|_| repeat())?;
    assert_ne!(found.difference.expected, found.difference.found);
    assert!(found.difference.index >= 2, "the first lock is always taken: {found:?}");
    Some(found.cause)
}

#[test]
fn nondeterminism_is_noticed_and_named() {
    assert_eq!(nondeterminism("whim.c"), Some(Cause::Process));
    assert_eq!(nondeterminism("addresses.c"), Some(Cause::Addresses));
    for repeatable in ["queue.c", "primitives.cpp", "standard.rs"] {
        assert_eq!(nondeterminism(repeatable), None);
    }
}

#[test]
fn random_numbers_come_from_the_seed_wherever_they_are_asked_for() {
    let mut program = control(&build("random.cpp", false), true);
    let first = run(&mut program, 0);
    assert_eq!(first.outcome, Outcome::Exited(0), "{first:?}");
    for seed in 1..5 {
        assert_eq!(run(&mut program, seed).output, first.output, "schedules do not matter");
    }
    program.seed = 5;
    let other = run(&mut program, 0).output;
    let numbers = |text: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(text).split_whitespace().map(str::to_owned).collect()
    };
    let (a, b) = (numbers(&first.output), numbers(&other));
    assert!(a.len() == 3 && a.iter().zip(&b).all(|(x, y)| x != y), "{a:?} {b:?}");
}

#[test]
fn a_system_call_that_waits_is_named() {
    let mut program = control(&build("outside.c", false), true);
    let waited = (0..30).flat_map(|seed| run(&mut program, seed).uncontrolled).next();
    let waited = waited.expect("some schedule reads the pipe before anybody writes");
    let (thread, on) = (ThreadId(0), Some(Descriptor::Pipe));
    assert_eq!(waited, Uncontrolled::SystemCall { thread, number: Some(0), on });
}

/// The execution was stuck in loops.
fn is_livelock(outcome: &Outcome) -> bool {
    let stuck = |f: &Finding| matches!(f.subject, Subject::Program(Failure::Steps(_)));
    matches!(outcome, Outcome::Failed(finding) if stuck(finding))
}

fn is_too_long(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Undecided(Limit::Steps(_)))
}

#[test]
fn programs_that_never_end_are_ended() {
    let built = build("forever.c", false);
    let none: [&str; 0] = [];
    let long = Settings { records: 10_000, ..settings(true) };
    let mut steps = Controlled::new(&built.program, none, libraries(), long).expect("memory");
    assert!(is_livelock(&run(&mut steps, 0).outcome));
    assert!(is_livelock(&run(&mut steps, 1).outcome), "the server lives on");
    let short = Settings { time: Duration::from_secs(1), ..settings(true) };
    let mut time = Controlled::new(&built.program, ["x"], libraries(), short).expect("memory");
    let outcome = run(&mut time, 0).outcome;
    assert!(matches!(outcome, Outcome::Undecided(_)), "{outcome:?}");
}

#[test]
fn spinning_threads_do_not_starve_others() {
    let mut program = control(&build("spin.c", false), true);
    let (mut pct, mut budget) = (Pct::new(3), Budget::new(1, 50));
    while let Some(execution) = next(&mut program, &mut budget, &mut pct) {
        assert_eq!(execution.outcome, Outcome::Exited(0));
    }
    let mut fair = RoundRobin::new(1);
    let execution = next(&mut program, &mut Budget::new(0, 1), &mut fair).expect("one is wanted");
    assert_eq!(execution.outcome, Outcome::Exited(0));
}

#[test]
fn threads_that_poll_do_not_starve_others() {
    for (source, fixed) in [("polling.c", true), ("busy_poller.c", false)] {
        let mut program = control(&build(source, fixed), true);
        let mut strategies: Vec<Box<dyn Strategy + Send>> =
            STRATEGIES.iter().map(|entry| (entry.new)([None; 3])).collect();
        // In this one threads run until they block.
        strategies.push(Box::new(Replay::new(&Schedule::default())));
        for mut strategy in strategies {
            let mut budget = Budget::new(1, 4);
            while let Some(execution) = next(&mut program, &mut budget, &mut *strategy) {
                assert_eq!(execution.outcome, Outcome::Exited(0), "{source}");
                assert!(execution.steps < 100_000, "{source}: {} steps", execution.steps);
            }
        }
    }
}

#[test]
fn correct_programs_that_poll_end_under_every_strategy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/correct");
    let sources = std::fs::read_dir(folder).expect("it is part of the repository");
    let mut sources: Vec<_> = sources.filter_map(|e| Some(e.ok()?.path())).collect();
    sources.sort();
    assert!(sources.len() >= 10);
    for source in sources {
        let built = Built::new(&source, common::Compiler::Gcc, false, &workspace("control"))
            .expect("it compiles");
        let mut program = control(&built, true);
        for (entry, seed) in STRATEGIES.iter().zip(0..) {
            let (mut strategy, mut budget) = ((entry.new)([None; 3]), Budget::new(seed, 4));
            while let Some(execution) = next(&mut program, &mut budget, &mut *strategy) {
                let what = format!("{} {}", source.display(), entry.name);
                assert_eq!(execution.outcome, Outcome::Exited(0), "{what}");
            }
        }
    }
}

#[test]
fn memory_that_must_not_be_used_is_kept_and_its_use_is_seen() {
    for (source, misuse) in [
        ("closing.c", Misuse::UsedFreed),
        ("closed_twice.c", Misuse::FreedTwice),
        ("overrun.c", Misuse::BeyondBlock),
    ] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(source);
        for fixed in [false, true] {
            let built = Built::new(&source, common::Compiler::Gcc, fixed, &workspace("control"))
                .expect("it compiles");
            let mut program = control(&built, true);
            let (mut pos, mut budget) = (Pos::default(), Budget::new(1, 60));
            let mut seen = 0;
            while let Some(execution) = next(&mut program, &mut budget, &mut pos) {
                let found = match execution.outcome {
                    Outcome::Failed(finding) => Some(finding.subject),
                    outcome => {
                        assert_eq!(outcome, Outcome::Exited(0));
                        None
                    }
                };
                seen += usize::from(match &found {
                    Some(Subject::Misused(how, _)) => *how == misuse,
                    _ => false,
                });
                assert!(!fixed || found.is_none(), "{found:?}");
            }
            assert_eq!(seen > 0, !fixed, "{}", source.display());
        }
    }
}

#[test]
fn every_byte_of_a_block_may_be_written() {
    let mut program = control(&build("whole_blocks.c", false), true);
    for seed in 0..3 {
        let execution = run(&mut program, seed);
        assert_eq!(execution.outcome, Outcome::Exited(0));
    }
}

#[test]
fn a_loop_that_waits_for_what_never_comes_is_a_hang() {
    let settings = Settings { records: 50_000, ..settings(true) };
    let mut program = control_with(&build("polling.c", false), settings);
    let outcomes: Vec<Outcome> = (0..20).map(|seed| run(&mut program, seed).outcome).collect();
    assert!(outcomes.iter().any(is_livelock), "{outcomes:?}");
    assert!(!outcomes.iter().any(is_too_long), "{outcomes:?}");
}

#[test]
fn a_program_that_is_too_long_is_not_decided() {
    let settings = Settings { records: 1_000, ..settings(true) };
    let mut program = control_with(&build("busy_poller.c", false), settings);
    for seed in 0..5 {
        assert!(is_too_long(&run(&mut program, seed).outcome));
    }
}

#[test]
fn a_program_without_the_runtime_is_refused() {
    let none: [&str; 0] = [];
    let mut program =
        Controlled::new("/bin/true", none, libraries(), settings(true)).expect("memory");
    assert!(program.run(&mut RandomWalk::default()).is_err());
}

#[test]
fn a_plain_binary_is_controlled_at_its_synchronization() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlled/abba.c");
    let plain = workspace("control").join("abba.plain");
    let mut compile = std::process::Command::new("gcc");
    common::succeed(compile.arg(&source).arg("-o").arg(&plain)).expect("it compiles");
    let none: [&str; 0] = [];
    let preloaded = Settings { form: Form::Preloaded, ..settings(true) };
    let mut program = Controlled::new(&plain, none, libraries(), preloaded).expect("memory");
    assert!(deadlock(&mut program, 200).is_some());
}

/// What the host sets for the C library is gone before the program looks, and what the user sets is not.
#[test]
fn the_environment_is_the_users() {
    let built = build("environment.c", false);
    // More than once: what an execution has looked up in libraries is there in the next.
    let said = |program: &Path, arguments: &[&OsStr]| {
        let mut program =
            Controlled::new(program, arguments, libraries(), settings(true)).expect("it starts");
        let outputs: BTreeSet<Vec<u8>> =
            (0..4).map(|seed| run(&mut program, seed).output).collect();
        assert_eq!(outputs.len(), 1);
        outputs.into_iter().next().and_then(|o| String::from_utf8(o).ok()).expect("text")
    };
    assert_eq!(said(&built.program, &[]), "none, 1 after it\n");
    let own = OsStr::new("GLIBC_TUNABLES=glibc.malloc.check=0");
    let through = [own, built.program.as_os_str()];
    assert_eq!(said(Path::new("/usr/bin/env"), &through), "glibc.malloc.check=0, 1 after it\n");
}

#[test]
fn no_process_is_left_behind() {
    let mut program = control(&build("abba.c", false), true);
    deadlock(&mut program, 200).expect("one of two schedules deadlocks");
    let child = program.child_process();
    let server = program.server_process().expect("it waits for the next execution");
    let exists = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    assert!(!exists(child) && exists(server));
    drop(program);
    assert!(!exists(server));
}

/// Prints how fast both ways are; that they do the same is what is tested.
#[test]
fn the_fork_server_does_what_one_exec_per_schedule_does() {
    const SEEDS: u64 = 60;
    let built = build("queue.c", false);
    let mut executions = [true, false].map(|fork| {
        let mut program = control(&built, fork);
        run(&mut program, 0);
        let begin = Instant::now();
        let list: Vec<Execution> = (1..=SEEDS).map(|seed| run(&mut program, seed)).collect();
        let rate = SEEDS as f64 / begin.elapsed().as_secs_f64();
        println!(
            "{rate:.0} schedules per second, {}",
            if fork { "forked" } else { "one exec each" }
        );
        list.into_iter().map(|e| (e.schedule, e.events, e.output))
    });
    let [forked, started] = &mut executions;
    assert!(forked.by_ref().eq(started.by_ref()));
}

#[test]
fn names_of_threads_and_locks_agree_between_executors() {
    let built = build("queue.c", false);
    let names = |others: usize| {
        let mut program = control(&built, true);
        // The ids of sites are those of one executor.
        for i in 0..others {
            program.site(&Site::Label(format!("elsewhere {i}").into()));
        }
        unforced(&mut program, &Ask::default()).expect("it is controlled");
        let names = Executor::names(&program);
        let threads = (0..3).map(|t| names.thread(ThreadId(t)));
        threads.chain([names.lock(LockId(0))]).collect::<Vec<u64>>()
    };
    let first = names(0);
    assert_eq!(names(7), first);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), first.len(), "all are told apart");
}
