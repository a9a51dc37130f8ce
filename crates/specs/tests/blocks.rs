//! Executions of blocks: how calls find their block, what is wrong use, and how two executions compare.

use selvedge_model::ThreadId;
use selvedge_specs::block::Said;
use selvedge_specs::{
    BlockExecution, Comparison, Misuse, NoCallbacks, Predicate, Recorder, ThreadName, Token, Unfit,
    Value, Word, compare,
};

const MAIN: ThreadId = ThreadId(0);
const WORKER: ThreadId = ThreadId(1);
const POOL: ThreadId = ThreadId(2);

/// A recorder in which sites are lines, and threads have their numbers for names.
struct Program(Recorder<u32>);

impl Program {
    fn new() -> Program {
        Program(Recorder::new())
    }

    fn says(
        &mut self,
        thread: ThreadId,
        word: Word,
        name: &str,
        value: impl Into<Value>,
    ) -> Result<(), Misuse<u32>> {
        self.says_by(thread, word, name, value, Predicate::Exact)
    }

    fn says_by(
        &mut self,
        thread: ThreadId,
        word: Word,
        name: &str,
        value: impl Into<Value>,
        predicate: Predicate,
    ) -> Result<(), Misuse<u32>> {
        let said = Said { word, name, predicate, value: value.into() };
        self.0.call(thread, ThreadName(thread.0.into()), said, 7)
    }
}

#[test]
fn a_call_belongs_to_the_innermost_block_of_its_thread_or_of_the_one_that_started_it() {
    let mut program = Program::new();
    program.0.begin(MAIN, "outer", 1);
    program.0.start(MAIN, WORKER);
    program.0.begin(MAIN, "inner", 2);
    program.says(MAIN, Word::Ensure, "a", 1).unwrap();
    program.says(WORKER, Word::Ensure, "b", 1).unwrap();
    let token = Token::from_number(program.0.token(MAIN).number());
    program.0.join(POOL, token, 3).unwrap();
    program.says(POOL, Word::Ensure, "c", 1).unwrap();
    let names = |e: &BlockExecution<u32>| {
        e.calls.iter().map(|c| c.key.name.to_string()).collect::<Vec<_>>()
    };
    let inner = program.0.end(MAIN, 4).unwrap();
    assert_eq!((&*inner.block, names(&inner)), ("inner", vec!["a".into(), "c".into()]));
    let outer = program.0.end(MAIN, 5).unwrap();
    assert_eq!((&*outer.block, names(&outer)), ("outer", vec!["b".to_owned()]));
    assert!(program.0.finish().is_empty());
}

#[test]
fn wrong_use_is_told_with_its_places() {
    let mut program = Program::new();
    let outside = program.says(MAIN, Word::Ensure, "a", 1).unwrap_err();
    assert_eq!(outside, Misuse::Outside { word: Word::Ensure, name: "a".into(), site: 7 });
    assert_eq!(program.0.end(MAIN, 3).unwrap_err(), Misuse::EndWithoutBegin { site: 3 });

    program.0.begin(MAIN, "block", 1);
    program.0.start(MAIN, WORKER);
    program.says(WORKER, Word::Ensure, "early", 1).unwrap();
    assert!(matches!(
        program.says(MAIN, Word::Assume, "late", 1).unwrap_err(),
        Misuse::AssumeAfterEnsure { name, ensured, .. } if &*name == "late" && &*ensured == "early"
    ));
    assert_eq!(program.0.end(WORKER, 4).unwrap_err(), Misuse::EndWithoutBegin { site: 4 });

    let token = program.0.token(WORKER);
    program.0.end(MAIN, 5).unwrap();
    assert!(matches!(
        program.says(WORKER, Word::Ensure, "x", 1).unwrap_err(),
        Misuse::AfterEnd { .. }
    ));
    assert_eq!(program.0.join(POOL, token, 6).unwrap_err(), Misuse::JoinAfterEnd { site: 6 });
    assert_eq!(
        program.0.join(POOL, Token::from_number(99), 6).unwrap_err(),
        Misuse::JoinAfterEnd { site: 6 }
    );
}

#[test]
fn a_block_that_is_not_ended_leaves_only_its_name() {
    let mut program = Program::new();
    program.0.begin(MAIN, "open", 1);
    program.says(MAIN, Word::Ensure, "a", 1).unwrap();
    let unclosed = program.0.finish();
    assert_eq!((&*unclosed[0].block, unclosed[0].site), ("open", 1));
}

/// An execution of one block by two threads, whose calls come in the order given.
fn execution(calls: &[(ThreadId, Word, &str, i32)]) -> BlockExecution<u32> {
    let mut program = Program::new();
    program.0.begin(MAIN, "block", 1);
    program.0.start(MAIN, WORKER);
    calls
        .iter()
        .for_each(|&(thread, word, name, value)| program.says(thread, word, name, value).unwrap());
    program.0.end(MAIN, 9).unwrap()
}

fn compared(a: &BlockExecution<u32>, b: &BlockExecution<u32>) -> Comparison<u32> {
    compare(a, b, &mut NoCallbacks).unwrap()
}

#[test]
fn the_order_of_threads_is_no_difference_but_that_of_a_thread_is() {
    use Word::Ensure;
    let a =
        execution(&[(MAIN, Ensure, "x", 1), (WORKER, Ensure, "x", 2), (WORKER, Ensure, "x", 3)]);
    let b =
        execution(&[(WORKER, Ensure, "x", 2), (WORKER, Ensure, "x", 3), (MAIN, Ensure, "x", 1)]);
    assert_eq!(compared(&a, &b), Comparison::Same);
    let c =
        execution(&[(MAIN, Ensure, "x", 1), (WORKER, Ensure, "x", 3), (WORKER, Ensure, "x", 2)]);
    let Comparison::Differs { first, later } = compared(&a, &c) else { panic!() };
    assert_eq!((first.key.nth, first.key.thread, later.len()), (0, ThreadName(1), 1));
    assert_eq!(later[0].key.nth, 1);
}

#[test]
fn only_executions_that_assume_the_same_are_compared() {
    use Word::{Assume, Ensure};
    let a = execution(&[(MAIN, Assume, "n", 1), (MAIN, Ensure, "x", 1)]);
    let b = execution(&[(MAIN, Assume, "n", 2), (MAIN, Ensure, "x", 2)]);
    assert!(matches!(compared(&a, &b), Comparison::Incomparable(d) if &*d.key.name == "n"));
    let c = execution(&[(MAIN, Ensure, "x", 2)]);
    assert!(matches!(compared(&c, &b), Comparison::Incomparable(d) if d.first.is_none()));
}

#[test]
fn a_call_that_only_one_execution_makes_is_a_difference() {
    use Word::Ensure;
    let a = execution(&[(MAIN, Ensure, "x", 1), (MAIN, Ensure, "y", 1)]);
    let b = execution(&[(MAIN, Ensure, "y", 1)]);
    for (a, b, in_first) in [(&a, &b, true), (&b, &a, false)] {
        let Comparison::Differs { first, later } = compared(a, b) else { panic!() };
        assert_eq!((&*first.key.name, first.first.is_some(), later.len()), ("x", in_first, 0));
    }
}

#[test]
fn states_to_infer_about_are_not_compared() {
    let a = execution(&[(MAIN, Word::Before, "x", 1), (MAIN, Word::After, "x", 2)]);
    let b = execution(&[(MAIN, Word::Before, "x", 3)]);
    assert_eq!(compared(&a, &b), Comparison::Same);
}

#[test]
fn what_cannot_be_judged_is_no_verdict() {
    let by = |value: &str, predicate: &str| {
        let mut program = Program::new();
        program.0.begin(MAIN, "block", 1);
        program.says_by(MAIN, Word::Ensure, "x", value, predicate.parse().unwrap()).unwrap();
        program.0.end(MAIN, 2).unwrap()
    };
    let unfit = |a: &BlockExecution<u32>, b: &BlockExecution<u32>| {
        compare(a, b, &mut NoCallbacks).unwrap_err().unfit
    };
    assert!(matches!(unfit(&by("a", "equal"), &by("a", "set")), Unfit::Predicates { .. }));
    assert!(matches!(unfit(&by("a", "set"), &by("b", "set")), Unfit::Kind { .. }));
    assert!(matches!(unfit(&by("a", "same:f"), &by("b", "same:f")), Unfit::NoAnswer { .. }));
    let mut digests = by("b", "set");
    digests.calls.iter_mut().for_each(|c| c.value = c.value.digest_only());
    assert!(matches!(unfit(&by("a", "set"), &digests), Unfit::OnlyDigest { .. }));
    let lone = by("a", "set");
    assert!(
        matches!(lone.reflexive(&mut NoCallbacks), Err((call, Unfit::Kind { .. })) if &*call.key.name == "x")
    );
}
