//! What programs hand over in deterministic blocks arrives, observed and controlled, with both compilers.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::{Built, Compiler, control, libraries, run, workspace};
use selvedge_engine::{Blocks, Wrong};
use selvedge_model::{Event, Site, SiteId, Symbols};
use selvedge_runtime::{
    BlocksSeen, ByModule, Controlled, Form, Observe, Options, Session, Settings,
};
use selvedge_specs::{BlockExecution, Call, Misuse, Predicate, Value, Word};

const COMPILERS: [Compiler; 2] = [Compiler::Gcc, Compiler::Clang];

fn built(source: &str, compiler: Compiler) -> Built {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blocks").join(source);
    let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
    let folder = workspace("blocks").join(test);
    std::fs::create_dir_all(&folder).expect("the target directory is writable");
    Built::new(&path, compiler, false, &folder).expect("it compiles")
}

#[derive(Default)]
struct Collect(Vec<BlockExecution<SiteId>>);

impl Observe for Collect {
    fn event(&mut self, _: &Event, _: &Symbols) {}

    fn block(&mut self, execution: BlockExecution<SiteId>, _: &Symbols) {
        self.0.push(execution);
    }
}

fn observed_in(built: &Built, arguments: &[&str], symbols: &mut Symbols) -> BlocksSeen {
    let mut command = Command::new(&built.program);
    command.args(arguments);
    let session =
        Session::start(command, Form::Linked, libraries(), Options::default()).expect("it starts");
    let mut collect = Collect::default();
    let outcome = session.finish(symbols, &mut ByModule, &mut collect).expect("it is observed");
    assert_eq!(outcome.lost, 0);
    BlocksSeen { executions: collect.0, ..outcome.blocks }
}

fn observed(built: &Built) -> Blocks {
    let mut symbols = Symbols::default();
    observed_in(built, &[], &mut symbols).placed(&symbols)
}

fn controlled(built: &Built, seed: u64) -> Arc<Blocks> {
    run(&mut control(built, true), seed).blocks
}

fn block<'a>(seen: &'a Blocks, name: &str) -> &'a [Call<Site>] {
    let mut with_name = seen.executions.iter().filter(|e| &*e.block == name);
    let only = with_name.next().unwrap_or_else(|| panic!("there is a block {name}: {seen:?}"));
    assert!(with_name.next().is_none(), "{name} was executed once");
    &only.calls
}

fn said(call: &Call<Site>) -> (Word, &str, &Predicate, &Value) {
    let value = call.value.value.as_ref().expect("values arrive in full");
    (call.key.word, &call.key.name, &call.predicate, value)
}

/// Every kind of value, as `values.c` hands them over.
fn check_scalars(calls: &[Call<Site>], callback: &Predicate) {
    let near = Predicate::Within(1e-3);
    let list = Value::from(vec![1.5, 2.5]);
    let bytes = Value::from(&b"ab"[..]);
    let expected: [(Word, &str, &Predicate, &Value); 10] = [
        (Word::Assume, "flag", &Predicate::Exact, &true.into()),
        (Word::Assume, "text", &Predicate::Exact, &"tree".into()),
        (Word::Ensure, "char", &Predicate::Exact, &(-1i8).into()),
        (Word::Ensure, "short", &Predicate::Exact, &65535u16.into()),
        (Word::Ensure, "long", &Predicate::Exact, &(-5i64).into()),
        (Word::Ensure, "float", &Predicate::Exact, &0.25f32.into()),
        (Word::Ensure, "wide", &Predicate::Exact, &0.5f64.into()),
        (Word::Ensure, "near", &near, &1.0f64.into()),
        (Word::Ensure, "array", &Predicate::Multiset, &list),
        (Word::Ensure, "bytes", callback, &bytes),
    ];
    let found: Vec<_> = calls.iter().map(said).collect();
    assert_eq!(found, expected);
}

fn check(seen: &Blocks) {
    let scalars = block(seen, "scalars");
    let callback = &scalars.last().expect("it has calls").predicate;
    assert!(matches!(callback, Predicate::Callback(_)), "{callback:?}");
    check_scalars(scalars, callback);

    let states: Vec<_> = block(seen, "states").iter().map(said).collect();
    let lists = [Value::from(vec![1i64, 2]), Value::from(vec![1i64, 7])];
    let expected: [(Word, &str, &Predicate, &Value); 4] = [
        (Word::Before, "count", &Predicate::Exact, &1.into()),
        (Word::Before, "list", &Predicate::Exact, &lists[0]),
        (Word::After, "count", &Predicate::Exact, &2.into()),
        (Word::After, "list", &Predicate::Exact, &lists[1]),
    ];
    assert_eq!(states, expected);

    let large = block(seen, "large");
    let last = |call: &Call<Site>| match said(call).3 {
        Value::List(list) => (list.len(), list.last().cloned()),
        other => panic!("{other} is a list"),
    };
    let lasts: Vec<_> = large.iter().map(last).collect();
    let expected = [0.0, 1.0, 2.0].map(|x| (1 << 18, Some(Value::F64(x))));
    assert_eq!(lasts, expected, "6 megabytes in one block");
    assert_eq!(large.iter().map(|c| c.key.nth).collect::<Vec<_>>(), [0, 1, 2]);

    let threads = block(seen, "threads");
    let names: BTreeSet<(&str, String)> =
        threads.iter().map(|c| (&*c.key.name, said(c).3.to_string())).collect();
    let expected = [("by a child", "10"), ("by a child", "20"), ("by the pool", "1")];
    assert_eq!(names, expected.map(|(name, value)| (name, value.to_owned())).into());
    let threads: BTreeSet<_> = threads.iter().map(|c| c.key.thread).collect();
    assert_eq!(threads.len(), 3, "each thread has its own name");
}

#[test]
fn values_arrive_from_observed_programs() {
    for compiler in COMPILERS {
        let seen = observed(&built("values.c", compiler));
        check(&seen);
        let [only] = block(&seen, "chosen") else { panic!("one call: {seen:?}") };
        assert_eq!(said(only).3, &Value::Int(0), "nothing controls it");
        assert!(seen.wrong.is_none() && seen.unclosed.is_empty());
    }
}

#[test]
fn values_arrive_from_controlled_programs() {
    for compiler in COMPILERS {
        let built = built("values.c", compiler);
        let seen = controlled(&built, 1);
        check(&seen);
        assert!(seen.wrong.is_none() && seen.unclosed.is_empty());
    }
}

#[test]
fn observed_and_controlled_executions_name_threads_alike() {
    let built = built("values.c", Compiler::Gcc);
    let keys = |seen: &Blocks| {
        let calls = block(seen, "threads").iter();
        calls.map(|c| c.key.clone()).collect::<BTreeSet<_>>()
    };
    let observed = keys(&observed(&built));
    for seed in 0..5 {
        assert_eq!(keys(&controlled(&built, seed)), observed);
    }
}

#[test]
fn chosen_numbers_are_part_of_the_schedule() {
    let built = built("values.c", Compiler::Gcc);
    let mut program = control(&built, true);
    let number = |seen: &Blocks| said(&block(seen, "chosen")[0]).3.to_string();
    let mut numbers = BTreeSet::new();
    for seed in 0..12 {
        let execution = run(&mut program, seed);
        let chosen = number(&execution.blocks);
        let text = execution.schedule.to_string();
        let schedule = text.parse().expect("its text is a schedule");
        let (again, divergence) = program.replay(&schedule).expect("it is controlled");
        assert_eq!((number(&again.blocks), divergence), (chosen.clone(), None), "{text}");
        numbers.insert(chosen);
    }
    assert!(numbers.len() > 4, "{numbers:?}");
}

#[test]
fn values_arrive_from_cpp() {
    for compiler in COMPILERS {
        let seen = observed(&built("values.cpp", compiler));
        let found: Vec<_> = block(&seen, "vectors").iter().map(said).collect();
        let (near, set) = (Predicate::Within(0.5), Predicate::Set);
        let lists = [Value::from(vec![1.5, 2.5]), Value::from(vec!["a", "bc"])];
        let flags = Value::from(vec![true, false]);
        let expected: [(Word, &str, &Predicate, &Value); 5] = [
            (Word::Assume, "name", &Predicate::Exact, &"tree".into()),
            (Word::Ensure, "count", &Predicate::Exact, &3.into()),
            (Word::Ensure, "numbers", &near, &lists[0]),
            (Word::Ensure, "names", &set, &lists[1]),
            (Word::Ensure, "flags", &Predicate::Exact, &flags),
        ];
        assert_eq!(found, expected, "{compiler:?}");
    }
}

#[test]
fn misuse_is_told_and_open_blocks_leave_nothing() {
    let built = built("values.c", Compiler::Gcc);
    let settings = Settings { time: std::time::Duration::from_secs(60), ..Settings::default() };
    let mut program = Controlled::new(&built.program, ["misuse"], libraries(), settings)
        .expect("there is memory");
    let mut symbols = Symbols::default();
    let observed = observed_in(&built, &["misuse"], &mut symbols);
    let [_, late, end] = &observed.misuses[..] else { panic!("{:?}", observed.misuses) };
    assert!(matches!(late, Misuse::AssumeAfterEnsure { name, .. } if &**name == "second"));
    assert!(matches!(end, Misuse::EndWithoutBegin { .. }));
    for seen in [Arc::new(observed.placed(&symbols)), run(&mut program, 1).blocks] {
        let Some(Wrong::Misuse(first)) = &seen.wrong else { panic!("{:?}", seen.wrong) };
        assert!(matches!(first, Misuse::Outside { name, .. } if &**name == "outside"));
        let [open] = &seen.unclosed[..] else { panic!("{:?}", seen.unclosed) };
        assert_eq!(&*open.block, "open");
        assert!(!seen.executions.iter().any(|e| &*e.block == "open"));
    }
}
