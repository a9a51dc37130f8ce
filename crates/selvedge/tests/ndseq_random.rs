//! Random programs of the language of figure 6.4, run as threads: every verdict of `Explore::ndseq` is true of an
//! enumeration of all sequential executions, which shares no code with it.

#[allow(dead_code)]
#[path = "../../specs/tests/ndseq/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex as Std};

use program::{Block, GLOBALS, LOCALS, Program, Rng, Stmt};
use proptest::prelude::*;
use selvedge::sync::Mutex;
use selvedge::sync::atomic::{AtomicI64, Ordering};
use selvedge::{Explore, star_block, thread};

const VALUES: i64 = 4;

struct Shared {
    globals: [AtomicI64; GLOBALS],
    lock: Mutex<()>,
}

fn execute(block: &Block, shared: &Shared, locals: &mut [i64; LOCALS], locked: bool) {
    for statement in &block.stmts {
        match statement {
            Stmt::Let(l, used, constant) => {
                locals[*l] = (used.iter().map(|&u| locals[u]).sum::<i64>() + constant) % VALUES;
            }
            Stmt::Get(l, g) => locals[*l] = shared.globals[*g].load(Ordering::SeqCst),
            Stmt::Set(g, l) => shared.globals[*g].store(locals[*l], Ordering::SeqCst),
            Stmt::If(l, then, other) => {
                let taken = if locals[*l] > 0 { then } else { other };
                execute(taken, shared, locals, locked);
            }
            Stmt::Atomic(body) => {
                let _guard = (!locked).then(|| shared.lock.lock().unwrap());
                execute(body, shared, locals, true);
            }
            Stmt::Star(body) => {
                star_block(|| execute(body, shared, locals, locked));
            }
            Stmt::Update(..) | Stmt::Find(_) | Stmt::Combine(..) | Stmt::Lazy(_) => {
                unreachable!("only programs that were changed have it: {statement:?}")
            }
        }
    }
}

fn run(program: &Arc<Program>) -> Vec<i64> {
    let globals = program.initial.map(AtomicI64::new);
    let shared = Arc::new(Shared { globals, lock: Mutex::new(()) });
    let start = |task: usize| {
        let (program, shared) = (Arc::clone(program), Arc::clone(&shared));
        thread::spawn(move || execute(&program.tasks[task], &shared, &mut [0; LOCALS], false))
    };
    let threads: Vec<_> = (0..program.tasks.len()).map(start).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    program.focus.iter().map(|&g| shared.globals[g].load(Ordering::SeqCst)).collect()
}

/// Whether an execution was called harmful, or nothing if it could not be decided.
fn judged(seed: u64) -> Option<bool> {
    let mut program = Program::random(&mut Rng(seed), true, 5);
    program.tasks.truncate(2);
    let expected = program.sequential();
    let program = Arc::new(program);
    let returned: Arc<Std<BTreeSet<Vec<i64>>>> = Arc::default();
    let body = {
        let (program, returned) = (Arc::clone(&program), Arc::clone(&returned));
        move || {
            let result = run(&program);
            returned.lock().unwrap().insert(result.clone());
            result
        }
    };
    let explore = Explore::new().schedules(40).seed(seed).sequential(2000);
    match explore.run_ndseq(body) {
        Err(failure) => {
            let text = failure.to_string();
            let result =
                text.split("the result is ").nth(1).and_then(|t| t.split(", which").next());
            let result = result.unwrap_or_else(|| panic!("{text}"));
            let known = expected.iter().any(|e| format!("{e:?}") == result);
            assert!(!known, "{result} is called harmful, and sequential: {program:?}");
            Some(true)
        }
        Ok(summary) if summary.undecided.is_empty() => {
            for result in &*returned.lock().unwrap() {
                assert!(expected.contains(result), "{result:?} was passed: {program:?}");
            }
            Some(false)
        }
        Ok(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_verdict_is_true_of_the_enumeration(seed: u64) {
        judged(seed);
    }
}

/// The property above is not empty.
#[test]
fn the_random_programs_have_both_verdicts() {
    let verdicts: Vec<Option<bool>> = (0..600).map(judged).collect();
    let count = |v| verdicts.iter().filter(|x| **x == v).count();
    let (harmful, passed) = (count(Some(true)), count(Some(false)));
    assert!(harmful > 3 && passed > 300, "{harmful} harmful, {passed} passed");
}

/// Five stars of one task, all left out.
#[test]
fn a_program_with_many_stars_in_a_row() {
    judged(11_694_397_691_455_243_928);
}
