use super::*;
use crate::store::FILE;
use selvedge_specs::NoCallbacks;

use std::path::{Path, PathBuf};

/// A directory of its own for each test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("selvedge-states-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }

    fn store(&self) -> Store {
        Store::create(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn call(word: Word, name: &str, predicate: Predicate, value: Value) -> Call<Site> {
    Call {
        key: Key { word, name: name.into(), thread: ThreadName(u64::MAX), nth: 0 },
        predicate,
        value: value.into(),
        site: Site::parse("a.c:3:4"),
    }
}

fn execution(block: &str, calls: Vec<Call<Site>>) -> BlockExecution<Site> {
    BlockExecution { block: block.into(), site: Site::parse("a.c:1:2"), calls }
}

fn simple(input: i32, result: f64) -> BlockExecution<Site> {
    let assumed = call(Word::Assume, "n", Predicate::Exact, input.into());
    let ensured = call(Word::Ensure, "sum", Predicate::Within(0.5), result.into());
    execution("solve", vec![assumed, ensured])
}

fn about(build: &str) -> About {
    About { build: build.into(), ..About::default() }
}

fn add(store: &mut Store, build: &str, input: i32, result: f64) -> Option<u64> {
    let (_, checked) =
        store.check_block(&simple(input, result), &about(build), &mut NoCallbacks).unwrap();
    checked.violation.map(|v| v.earlier.0)
}

#[test]
fn executions_that_assume_the_same_are_compared() {
    let scratch = Scratch::new("compared");
    let mut store = scratch.store();
    assert_eq!(add(&mut store, "b1", 1, 10.0), None);
    assert_eq!(add(&mut store, "b1", 1, 10.4), None, "near enough");
    assert_eq!(add(&mut store, "b1", 2, 20.0), None, "another input");
    assert_eq!(add(&mut store, "b1", 1, 10.8), Some(1), "too far from the first");
    drop(store);
    let mut store = scratch.store();
    assert_eq!(add(&mut store, "b1", 2, 30.0), Some(3), "also after the store was closed");
    let summary = &store.blocks().unwrap()[0];
    let BlockSummary { executions, inputs, results, builds, .. } = *summary;
    assert_eq!((executions, inputs, results, builds), (5, 2, 5, 1));
}

#[test]
fn builds_are_compared_only_on_demand() {
    let scratch = Scratch::new("builds");
    let mut store = scratch.store();
    assert_eq!(add(&mut store, "old", 1, 10.0), None);
    assert_eq!(add(&mut store, "new", 1, 20.0), None);
    let across = About { across_builds: true, ..about("newest") };
    let (_, checked) = store.check_block(&simple(1, 10.1), &across, &mut NoCallbacks).unwrap();
    let earlier = checked.violation.expect("it differs from the build before").earlier;
    assert_eq!(store.block_execution(earlier).unwrap().unwrap().build, "new");
}

#[test]
fn contents_come_back_as_they_were() {
    let scratch = Scratch::new("contents");
    let mut store = scratch.store();
    let long = "x".repeat(SHORT + 1);
    let calls = vec![
        call(Word::Assume, "short", Predicate::Exact, "tree".into()),
        call(Word::Assume, "long", Predicate::Exact, long.as_str().into()),
        call(Word::Before, "state", Predicate::Exact, long.as_str().into()),
        call(Word::Ensure, "list", Predicate::Multiset, vec![1i32, 2].into()),
    ];
    let one = execution("b", calls);
    let setup = About { schedule: Some("1/0/".into()), ..about("build") };
    let (id, _) = store.check_block(&one, &setup, &mut NoCallbacks).unwrap();
    let mut kept = one.clone();
    kept.calls[1].value.value = None;
    let stored = store.block_execution(id).unwrap().unwrap();
    assert_eq!(stored.execution, kept, "of a long value that is compared exactly, the digest");
    assert_eq!((&*stored.build, stored.schedule.as_deref()), ("build", Some("1/0/")));
    store.check_block(&one, &setup, &mut NoCallbacks).unwrap();
    let [content] = &store.contents("b").unwrap()[..] else { panic!("one content") };
    assert_eq!((content.executions, content.first), (2, id));
}

#[test]
fn pruning_keeps_what_can_still_be_compared() {
    let scratch = Scratch::new("prune");
    let mut store = scratch.store();
    for (build, result) in [("old", 10.0), ("new", 10.2), ("new", 10.3)] {
        assert_eq!(add(&mut store, build, 1, result), None);
    }
    let old = Pruned { build: Some("old".into()), ..Pruned::default() };
    assert_eq!(store.prune(&old).unwrap(), 1);
    assert_eq!(add(&mut store, "new", 1, 11.0), Some(2));
    let young = Pruned { older_than: Some(Duration::from_secs(3600)), ..Pruned::default() };
    assert_eq!(store.prune(&young).unwrap(), 0);
    let all = Pruned { block: Some("solve".into()), ..Pruned::default() };
    assert_eq!(store.prune(&all).unwrap(), 3);
    assert!(store.blocks().unwrap().is_empty());
    assert_eq!(add(&mut store, "new", 1, 12.0), None);
}

/// Says that numbers with the same last digit are the same.
struct LastDigit;

impl Judge for LastDigit {
    fn same(&mut self, callback: &str, a: &Value, b: &Value) -> Result<bool, String> {
        assert_eq!(callback, "last_digit");
        let digit = |v: &Value| v.number().map(|n| n % 10.0);
        Ok(digit(a) == digit(b))
    }
}

#[test]
fn what_a_predicate_of_the_program_judges_is_compared_after_pruning_too() {
    let scratch = Scratch::new("callbacks");
    let mut store = scratch.store();
    let add = |store: &mut Store, build: &str, result: f64| {
        let same = Predicate::Callback("last_digit".into());
        let one = execution("solve", vec![call(Word::Ensure, "sum", same, result.into())]);
        let (_, checked) = store.check_block(&one, &about(build), &mut LastDigit).unwrap();
        (checked.compared, checked.violation.map(|v| v.earlier.0))
    };
    add(&mut store, "old", 1.0);
    assert_eq!(add(&mut store, "new", 11.0), (0, None));
    assert_eq!(add(&mut store, "new", 11.0), (1, None));
    let old = Pruned { build: Some("old".into()), ..Pruned::default() };
    assert_eq!(store.prune(&old).unwrap(), 1);
    assert_eq!(add(&mut store, "new", 21.0), (2, None), "both are still there");
    assert_eq!(add(&mut store, "new", 22.0), (3, Some(2)));
}

#[test]
fn two_processes_may_write_at_once() {
    let scratch = Scratch::new("two");
    drop(scratch.store());
    let write = |directory: PathBuf, from: i32| {
        let mut store = Store::create(&directory).unwrap();
        for i in 0..50 {
            add(&mut store, "b", from + i, 1.0);
        }
    };
    std::thread::scope(|scope| {
        for from in [0, 50] {
            let directory = scratch.0.clone();
            scope.spawn(move || write(directory, from));
        }
    });
    let summary = &scratch.store().blocks().unwrap()[0];
    assert_eq!((summary.executions, summary.inputs), (100, 100));
}

#[test]
fn a_store_of_version_3_gets_the_tables() {
    let scratch = Scratch::new("three");
    drop(scratch.store());
    let connection = Connection::open(scratch.0.join(FILE)).unwrap();
    for table in
        ["learnt", "promises", "state_groups", "executions", "content_values", "contents", "blocks"]
    {
        connection.execute_batch(&format!("DROP TABLE {table};")).unwrap();
    }
    connection.pragma_update(None, "user_version", 3).unwrap();
    drop(connection);
    let mut store = scratch.store();
    assert_eq!(add(&mut store, "b", 1, 1.0), None);
    assert_eq!(store.blocks().unwrap().len(), 1);
}

#[test]
fn a_store_that_cannot_be_written_is_a_clear_error() {
    let scratch = Scratch::new("read-only");
    let mut store = scratch.store();
    add(&mut store, "b", 1, 1.0);
    store.connection.pragma_update(None, "query_only", true).unwrap();
    let refused = store.check_block(&simple(1, 1.0), &about("b"), &mut NoCallbacks);
    let Err(obstacle) = refused else { panic!("{refused:?}") };
    let Obstacle::Storage(error) = *obstacle else { panic!("{obstacle:?}") };
    assert!(error.to_string().contains("permission denied"), "{error}");
    let shown = |directory: &Path| Store::open(directory).unwrap().blocks().unwrap().len();
    assert_eq!(shown(&scratch.0), 1, "what is there can be read");
}
