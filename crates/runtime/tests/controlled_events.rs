//! What a controlled execution tells is what an observed run tells: the same events, by the same names.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_engine::{Difference, Execution, Outcome};
use selvedge_explore::deadlocks::Trivial;
use selvedge_explore::{Budget, DeadlockFuzzer, Step};
use selvedge_model::{
    AtomicOp, Event, Findings, LoadOrder, Mode, Op, RegionKind, Site, Target, UpdateOrder,
};
use selvedge_runtime::{
    ByModule, Controlled, FunctionRegion, LockPart, LockStep, Modules, Resolve, Settings,
};

use common::{Built, build, control, control_with, next, run, settings};

/// Knows Rust's mutexes and functions by the debug information of one program.
struct Symbols(addr2line::Loader);

impl Symbols {
    fn new(program: &Path) -> Box<Symbols> {
        Box::new(Symbols(addr2line::Loader::new(program).expect("it has debug information")))
    }

    /// Function, file and line of the frames at a return address, innermost first.
    fn frames(&self, pc: u64, modules: &Modules) -> Vec<(String, String, u32)> {
        let Some(module) = modules.find(pc) else { return Vec::new() };
        let mut found = Vec::new();
        if let Ok(mut frames) = self.0.find_frames(pc - module.base - 1) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|f| f.demangle().ok());
                let place = frame.location.as_ref();
                found.push((
                    name.unwrap_or_default().into_owned(),
                    place.and_then(|l| l.file).unwrap_or_default().to_owned(),
                    place.and_then(|l| l.line).unwrap_or(0),
                ));
            }
        }
        found
    }
}

impl Resolve for Symbols {
    fn site(&mut self, pc: u64, modules: &Modules) -> Site {
        ByModule.site(pc, modules)
    }

    fn function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        let module = modules.find(pc)?;
        Some(self.0.find_symbol(pc - module.base)?.to_owned())
    }

    fn regions(&mut self, _: &Modules) -> Vec<FunctionRegion> {
        vec![FunctionRegion { code: 0..u64::MAX, kinds: vec![RegionKind::Atomic] }]
    }

    fn lock_step(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Option<LockPart<Site>> {
        const STEPS: [(&str, &str, LockStep); 6] = [
            ("mutex/futex.rs", "lock", LockStep::Take(Mode::Exclusive)),
            ("mutex/futex.rs", "unlock", LockStep::Give(Mode::Exclusive)),
            ("rwlock/futex.rs", "write", LockStep::Take(Mode::Exclusive)),
            ("rwlock/futex.rs", "write_unlock", LockStep::Give(Mode::Exclusive)),
            ("rwlock/futex.rs", "read", LockStep::Take(Mode::Shared)),
            ("rwlock/futex.rs", "read_unlock", LockStep::Give(Mode::Shared)),
        ];
        let calls = std::iter::once(&pc).chain(callers);
        let frames: Vec<_> = calls.flat_map(|&pc| self.frames(pc, modules)).collect();
        let step_of = |(name, file, _): &(String, String, u32)| {
            let last = name.rsplit("::").next();
            let known = |s: &&(&str, &str, LockStep)| file.ends_with(s.0) && last == Some(s.1);
            STEPS.iter().find(known).map(|s| s.2)
        };
        let at = frames.iter().position(|f| step_of(f).is_some())?;
        let user = frames[at..].iter().find(|f| !f.1.starts_with("/rustc/"));
        let line = user.unwrap_or(&frames[at]).2;
        let site = Site::Label(format!("line {line}").into());
        Some(LockPart { step: step_of(&frames[at])?, site, complete: true })
    }
}

fn all_accesses() -> Settings {
    Settings { accesses: true, ..settings(true) }
}

fn aware(built: &Built, settings: Settings) -> Controlled {
    let mut program = control_with(built, settings);
    program.resolve_with(Symbols::new(&built.program));
    program
}

fn findings(mut analysis: impl Analysis, execution: &Execution) -> Findings {
    let mut findings = Findings::default();
    analysis.on_events(&execution.events, &mut findings);
    analysis.finish(&mut findings);
    findings
}

/// Whether the events of any of some executions show a race.
fn races(program: &mut Controlled) -> bool {
    (0..10).any(|seed| {
        let execution = run(program, seed);
        assert_eq!(execution.outcome, Outcome::Exited(0), "seed {seed}: {execution:?}");
        let found = findings(FastTrack::new(), &execution);
        !found.is_empty()
    })
}

#[test]
fn what_orders_threads_is_among_the_events() {
    // Fences, annotations, release sequences, futexes, one-time initialisation, parking, and memory that
    // is used again.
    let corpus =
        ["fence.c", "annotate.c", "release_sequence.c", "once.c", "semaphore.c", "reuse.c"];
    let rust = ["mutex.rs", "once.rs", "park.rs", "rwlock.rs"];
    for source in corpus.iter().chain(&rust) {
        let twin =
            |fixed| control_with(&build(&format!("../corpus/{source}"), fixed), all_accesses());
        assert!(races(&mut twin(false)), "{source}: the race is not seen");
        assert!(!races(&mut twin(true)), "{source}: a race that is none");
    }
}

#[test]
fn fences_are_events_and_no_scheduling_points() {
    let mut program = control(&build("../corpus/fence.c", true), true);
    let execution = run(&mut program, 1);
    let fences: Vec<UpdateOrder> = execution
        .events
        .iter()
        .filter_map(|e| if let Op::Fence(order) = e.op { Some(order) } else { None })
        .collect();
    assert_eq!(fences, [UpdateOrder::Release, UpdateOrder::Acquire]);
    let fence = |step: Step| matches!(step, Step::Do(Op::Fence(_)));
    assert!(!execution.stops.iter().any(|stop| fence(stop.next.step)));
}

#[test]
fn memory_that_is_used_again_is_other_memory() {
    let mut program = control_with(&build("memory.c", false), all_accesses());
    let execution = run(&mut program, 1);
    assert_eq!(execution.outcome, Outcome::Exited(0), "it is used again");
    let of_main = |e: &&Event| program.symbols.site(e.site).to_string().starts_with("memory.");
    let ops: Vec<Op> = execution.events.iter().filter(of_main).map(|e| e.op).collect();
    // As far as races go, freeing writes to the whole block.
    let [
        Op::Alloc(a),
        Op::Write(x),
        Op::Write(_),
        Op::Free(b),
        Op::Alloc(c),
        Op::Write(y),
        Op::Write(_),
        Op::Free(d),
    ] = ops[..]
    else {
        panic!("{ops:?}")
    };
    assert_eq!((a, c), (b, d));
    assert!(a.overlaps(x.range()) && c.overlaps(y.range()) && !a.overlaps(c));
    let mut program = control(&build("memory.c", false), true);
    let quiet = run(&mut program, 1);
    assert!(quiet.events.iter().all(|e| !matches!(e.op, Op::Alloc(_) | Op::Free(_))));
}

#[test]
fn memory_is_read_as_far_as_it_is_compared() {
    let mut program = control_with(&build("compare.c", false), all_accesses());
    let execution = run(&mut program, 1);
    assert_eq!(execution.outcome, Outcome::Exited(0));
    let longest = execution.events.iter().filter_map(|e| match e.op {
        Op::Read(access) if access.len != 8 => Some(access.len),
        _ => None,
    });
    assert_eq!(
        longest.collect::<Vec<u32>>(),
        [3, 3],
        "and the length, of 8 bytes, is read as well"
    );
}

#[test]
fn descriptors_order_threads() {
    let handed = |execution: &Execution| {
        let released = |e: &Event| match e.op {
            Op::Atomic(access, AtomicOp::Update(UpdateOrder::Release)) => Some(access),
            _ => None,
        };
        let acquired = |e: &Event| match e.op {
            Op::Atomic(access, AtomicOp::Load(LoadOrder::Acquire)) => Some(access),
            _ => None,
        };
        let given: BTreeSet<_> = execution.events.iter().filter_map(released).collect();
        execution.events.iter().filter_map(acquired).any(|access| given.contains(&access))
    };
    let mut fixed = control_with(&build("handed_over.c", true), all_accesses());
    assert!(handed(&run(&mut fixed, 1)));
    assert!(!races(&mut fixed));
    assert!(races(&mut control_with(&build("handed_over.c", false), all_accesses())));
    let first = run(&mut fixed, 3);
    for _ in 0..10 {
        assert_eq!(
            Difference::between(&first.events, &run(&mut fixed, 3).events),
            None,
            "whatever the inodes are"
        );
    }
}

#[test]
fn functions_are_regions_under_control() {
    let built = build("increments.c", true);
    let settings = Settings { function_regions: true, ..all_accesses() };
    let mut program = aware(&built, settings);
    for seed in 0..5 {
        let execution = run(&mut program, seed);
        let mut open = vec![Vec::new(); 3];
        let mut counted = 0;
        for event in &execution.events {
            let open: &mut Vec<String> = &mut open[event.thread.index()];
            match event.op {
                Op::RegionEnter(id, RegionKind::Atomic) => {
                    let region = program.symbols.region(id).expect("regions have names");
                    open.push(region.name.to_string());
                }
                Op::RegionExit(_) => assert!(open.pop().is_some()),
                Op::Acquire(..) => {
                    assert_eq!(open, &["increment"]);
                    counted += 1;
                }
                Op::End => assert!(open.is_empty(), "{open:?} outlive their thread"),
                _ => {}
            }
        }
        assert_eq!(counted, 2, "{execution:?}");
    }
    let mut plain = aware(&built, all_accesses());
    let execution = run(&mut plain, 0);
    assert!(execution.events.iter().all(|e| !matches!(e.op, Op::RegionEnter(..))));
}

#[test]
fn locks_of_rust_protect_what_they_protect() {
    let built = build("guarded.rs", false);
    let (mut aware, mut unaware) =
        (aware(&built, all_accesses()), control_with(&built, all_accesses()));
    let suspected = |program: &mut Controlled| {
        (0..10).map(|s| findings(Hybrid::default(), &run(program, s)).len()).sum::<usize>()
    };
    assert_eq!(suspected(&mut aware), 0);
    assert!(suspected(&mut unaware) > 0, "without the locks it looks unprotected");
    for seed in 0..20 {
        let execution = run(&mut aware, seed);
        assert_eq!(execution.outcome, Outcome::Exited(0));
        let mut held: Vec<Vec<_>> = vec![Vec::new(); 2];
        for event in &execution.events {
            let held = &mut held[event.thread.index()];
            match event.op {
                Op::Acquire(lock, _) => held.push(lock),
                Op::Release(lock, _) => {
                    let at = held.iter().rposition(|&h| h == lock);
                    held.remove(at.expect("only what is held is released"));
                }
                _ => {}
            }
        }
        assert_eq!(held, [[], []], "seed {seed}: everything is given back");
    }
}

#[test]
fn a_deadlock_of_rust_is_predicted_steered_to_and_told_like_one_of_c() {
    let mut program = aware(&build("philosophers.rs", false), settings(true));
    let passed = (0..50).map(|s| run(&mut program, s)).find(|e| e.outcome == Outcome::Exited(0));
    let predicted = findings(Goodlock::default(), &passed.expect("some schedule passes"));
    let cycles: Vec<_> = predicted.iter().filter_map(|f| f.target.clone()).collect();
    let [Target::Deadlock(cycle)] = &cycles[..] else { panic!("{cycles:?}") };
    // Locks on the heap have no names that are the same in every execution; sites have to do.
    let mut fuzzer = DeadlockFuzzer::new(cycle, &Trivial, Trivial);
    let mut budget = Budget::new(1, 20);
    let mut confirmed = 0;
    while let Some(execution) = next(&mut program, &mut budget, &mut fuzzer) {
        let blocked = common::blocked(&execution);
        if blocked.is_empty() {
            continue;
        }
        assert_eq!(fuzzer.reached().len(), 2);
        confirmed += 1;
        let [one, two] = &blocked[..] else { panic!("{blocked:?}") };
        for (waiter, holder) in [(one, two), (two, one)] {
            assert_eq!(waiter.waits_for, Some(holder.thread));
            let [held] = holder.holds[..] else { panic!("{holder:?}") };
            assert_eq!((waiter.lock(), waiter.mode), (Some(held.lock), Mode::Exclusive));
        }
    }
    assert!(confirmed >= 18, "{confirmed} of 20");
    let mut fixed = aware(&build("philosophers.rs", true), settings(true));
    assert_eq!(findings(Goodlock::default(), &run(&mut fixed, 0)).len(), 0);
}

#[test]
fn schedules_in_which_a_lock_of_rust_is_an_atomic_still_replay() {
    let built = build("guarded.rs", false);
    let (mut before, mut now) = (control(&built, true), aware(&built, settings(true)));
    let mut preemptions = 0;
    for seed in 0..20 {
        let recorded = run(&mut before, seed);
        let (again, divergence) = now.replay(&recorded.schedule).expect("it is controlled");
        assert_eq!((divergence, &again.outcome), (None, &recorded.outcome), "seed {seed}");
        let segments = again.schedule.segments.iter().zip(&recorded.schedule.segments);
        assert!(segments.clone().all(|(a, b)| (a.thread, a.steps) == (b.thread, b.steps)));
        preemptions += segments.filter(|(a, b)| a.until != b.until).count();
    }
    assert!(preemptions > 0, "threads are preempted before steps that have another name now");
}
