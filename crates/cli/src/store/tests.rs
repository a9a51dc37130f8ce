use super::*;
use selvedge_model::{FindingId, Kind, Site, Status};

use selvedge_report::{Control, Memory, Note, Place, Role, Subject};

/// A directory of its own for each test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("selvedge-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An id of a finding that is called so in a test.
fn id(name: &str) -> FindingId {
    name.parse().unwrap_or_else(|_| FindingId::new(Kind::DataRace, [name.to_owned()]))
}

fn finding(name: &str, status: Status) -> Case {
    let place = |site: &str| Place {
        stack: vec![Site::parse("main.c:7")],
        stack_likely: true,
        approximate: true,
        ..Place::bare("T".into(), Site::parse(site), Role::Write)
    };
    let subject = Subject::Memory(Memory::Named("x".into()));
    Case {
        analyses: vec!["races".into()],
        places: vec![place("a.c:1:2"), place("label")],
        occurrences: 3,
        ..Case::bare(id(name), Kind::DataRace, status, subject)
    }
}

fn begin(store: &mut Store, program: &str) -> RunId {
    store.begin(&[program.to_owned()], "static", "the program").unwrap()
}

#[test]
fn findings_come_back_as_they_were() {
    let scratch = Scratch::new("back");
    let mut store = Store::create(&scratch.0).unwrap();
    let run = begin(&mut store, "./a");
    store.add(run, &finding("one", Status::Predicted)).unwrap();
    store.add(run, &finding("two", Status::Observed)).unwrap();
    store.add(run, &finding("one", Status::Observed)).unwrap();
    let stats = Stats { events: 7, analyses: vec!["races".into()], ..Stats::default() };
    store.finish(run, "exited with 0", &stats).unwrap();
    let other = begin(&mut store, "./b");
    drop(store);

    let store = Store::open(&scratch.0).unwrap();
    assert_eq!(store.run(None).unwrap().id, other);
    let first = store.run(Some(run)).unwrap();
    assert_eq!(
        (first.command.as_slice(), first.ending.as_deref()),
        (&["./a".to_owned()][..], Some("exited with 0"))
    );
    let report = store.report(&first).unwrap();
    assert_eq!(report.cases, [finding("one", Status::Observed), finding("two", Status::Observed)]);
    assert_eq!(report.stats.events, 7);
    assert!(matches!(store.run(Some(99)), Err(StoreError::NoRun(99))));
}

#[test]
fn a_finding_is_readable_before_the_run_is_finished() {
    let scratch = Scratch::new("early");
    let mut store = Store::create(&scratch.0).unwrap();
    let run = begin(&mut store, "./a");
    store.add(run, &finding("one", Status::Observed)).unwrap();
    let reader = Store::open(&scratch.0).unwrap();
    let run = reader.run(None).unwrap();
    assert_eq!(run.ending, None);
    assert_eq!(reader.report(&run).unwrap().cases.len(), 1);
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let scratch = Scratch::new("newer");
    let store = Store::create(&scratch.0).unwrap();
    store.connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
    drop(store);
    for outcome in [Store::create(&scratch.0), Store::open(&scratch.0)] {
        let error = outcome.err().unwrap();
        assert!(matches!(error, StoreError::Newer { found, .. } if found == VERSION + 1));
    }
}

#[test]
fn what_is_no_store_is_named() {
    let scratch = Scratch::new("damaged");
    assert!(matches!(Store::open(&scratch.0), Err(StoreError::None(_))));
    std::fs::create_dir_all(&scratch.0).unwrap();
    std::fs::write(scratch.0.join(FILE), "this is a text, and a long enough one at that").unwrap();
    assert!(matches!(Store::open(&scratch.0), Err(StoreError::Damaged { .. })));
    assert!(matches!(Store::create(&scratch.0), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_full_store_is_an_error_and_keeps_what_it_has() {
    let scratch = Scratch::new("full");
    let mut store = Store::create(&scratch.0).unwrap();
    let run = begin(&mut store, "./a");
    store.add(run, &finding("one", Status::Observed)).unwrap();
    // The database's own limit on its size fails in the same way as a disk that is full.
    let pages: i64 = store.connection.pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
    store.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let mut large = finding("large", Status::Observed);
    large.notes = vec![Note::Said("x".repeat(100_000))];
    assert!(matches!(store.add(run, &large), Err(StoreError::Full(_))));
    drop(store);
    let store = Store::open(&scratch.0).unwrap();
    let ids: Vec<FindingId> =
        store.report(&store.run(None).unwrap()).unwrap().cases.into_iter().map(|f| f.id).collect();
    assert_eq!(ids, [id("one")]);
}

#[test]
fn only_so_many_runs_are_kept() {
    let scratch = Scratch::new("kept");
    let mut store = Store::create(&scratch.0).unwrap();
    let first = begin(&mut store, "./a");
    store.add(first, &finding("one", Status::Observed)).unwrap();
    store
        .connection
        .execute("UPDATE sqlite_sequence SET seq = ?", [first + KEPT_RUNS - 1])
        .unwrap();
    begin(&mut store, "./b");
    let findings: i64 =
        store.connection.query_row("SELECT count(*) FROM findings", [], |r| r.get(0)).unwrap();
    assert_eq!((store.runs().unwrap().len(), findings), (1, 0));
}

/// Findings as version 2 stored them: a race, a broken region, a deadlock and a crash.
const OLD: &str = include_str!("../../../report/tests/fixtures/store-2.json");

/// A store of an earlier version, with these columns more than the first one had.
fn earlier(scratch: &Scratch, version: u32, more: &str) -> Vec<String> {
    std::fs::create_dir_all(&scratch.0).unwrap();
    let old = Connection::open(scratch.0.join(FILE)).unwrap();
    old.execute_batch(&format!(
        "CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL,
             started INTEGER NOT NULL, mode TEXT NOT NULL, instrumented TEXT NOT NULL,
             ending TEXT, stats TEXT);
         CREATE TABLE findings (sequence INTEGER PRIMARY KEY,
             run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, id TEXT NOT NULL,
             kind TEXT NOT NULL, status TEXT NOT NULL, verdict TEXT, body TEXT NOT NULL,
             UNIQUE (run, id));
         {more}
         INSERT INTO runs (command, started, mode, instrumented, ending)
             VALUES ('[\"./a\"]', 7, 'linked', 'all', 'exited with 0');
         PRAGMA user_version = {version};",
    ))
    .unwrap();
    let bodies: Vec<serde_json::Value> = serde_json::from_str(OLD).unwrap();
    let mut ids = Vec::new();
    for body in bodies {
        let text = |key: &str| body[key].as_str().unwrap().to_owned();
        old.execute(
            "INSERT INTO findings (run, id, kind, status, body) VALUES (1, ?, ?, ?, ?)",
            params![text("id"), text("kind"), text("status"), body.to_string()],
        )
        .unwrap();
        ids.push(text("id"));
    }
    ids
}

#[test]
fn stores_of_earlier_versions_are_brought_up_to_date() {
    let second = "ALTER TABLE runs ADD COLUMN setup TEXT;
         ALTER TABLE findings ADD COLUMN schedule TEXT;
         ALTER TABLE findings ADD COLUMN attempts INTEGER;
         ALTER TABLE findings ADD COLUMN after INTEGER;";
    for (version, more) in [(1, ""), (2, second)] {
        let scratch = Scratch::new(&format!("version-{version}"));
        let ids = earlier(&scratch, version, more);
        for _ in 0..2 {
            let store = Store::open(&scratch.0).unwrap();
            let run = store.run(None).unwrap();
            assert_eq!((run.id, run.setup.as_ref()), (1, None));
            let report = store.report(&run).unwrap();
            let found: Vec<String> = report.cases.iter().map(|c| c.id.to_string()).collect();
            assert_eq!(found, ids);
            assert_eq!(store.find("data-race", None).unwrap()[0].1, report.cases[0]);
        }
        let mut store = Store::create(&scratch.0).unwrap();
        let run = begin(&mut store, "./b");
        let new = scheduled("two");
        store.add(run, &new).unwrap();
        assert_eq!(store.find(&new.id.to_string(), None).unwrap(), [(run, new)]);
    }
}

fn scheduled(name: &str) -> Case {
    let schedule = Some("1/0/1".to_owned());
    let control = Some(Control { schedule, attempts: 3, ..Control::default() });
    Case { control, ..finding(name, Status::Confirmed) }
}

#[test]
fn a_finding_is_found_by_the_beginning_of_its_id_in_the_best_run() {
    let scratch = Scratch::new("find");
    let mut store = Store::create(&scratch.0).unwrap();
    let runs: Vec<RunId> = (0..3).map(|_| begin(&mut store, "./a")).collect();
    let (first, second) = ("data-race-0000000001", "data-race-0000000002");
    store.add(runs[0], &scheduled(first)).unwrap();
    store.add(runs[1], &scheduled(first)).unwrap();
    store.add(runs[2], &finding(first, Status::Observed)).unwrap();
    store.add(runs[0], &finding(second, Status::Observed)).unwrap();
    store.add(runs[1], &finding(second, Status::Observed)).unwrap();
    store.add(runs[1], &finding("crash-0000000001", Status::Observed)).unwrap();
    store.add(runs[1], &finding("data-race-0000000010", Status::Observed)).unwrap();
    let found = |prefix: &str, run| -> Vec<(RunId, FindingId)> {
        store.find(prefix, run).unwrap().into_iter().map(|(run, c)| (run, c.id)).collect()
    };
    let named = |run: usize, name: &str| (runs[run], id(name));
    assert_eq!(found("data-race-000000000", None), [named(1, first), named(1, second)]);
    assert_eq!(found(first, Some(runs[2])), [named(2, first)]);
    assert_eq!(found("data-race-3", None), []);
    let plan: String = store
        .connection
        .query_row(
            "EXPLAIN QUERY PLAN SELECT sequence, id, run FROM findings
             WHERE id >= 'r' AND id < 's' ORDER BY id, schedule IS NULL, run DESC",
            [],
            |row| row.get("detail"),
        )
        .unwrap();
    assert!(plan.contains("COVERING INDEX findings_by_id"), "not every finding is read: {plan}");
}

/// A program that can run again.
fn setup(build: &str, argument: &str) -> Setup {
    Setup {
        program: "/tmp/program".into(),
        arguments: vec![argument.into()],
        directory: "/tmp".into(),
        form: "static".into(),
        patience: 10,
        build: build.into(),
        ensure: Vec::new(),
        focus: Vec::new(),
        tasks: Vec::new(),
    }
}

#[test]
fn what_was_learnt_of_a_build_comes_back_for_that_build_alone() {
    let scratch = Scratch::new("learnt");
    let mut store = Store::create(&scratch.0).unwrap();
    let flip = selvedge_explore::Flip {
        read: Site::parse("a.c:1:2"),
        write: Some(Site::parse("a.c:9")),
        began: None,
        seen: true,
        tried: 3,
        times: 2,
    };
    let past = selvedge_engine::Past { made: 4, confirmed: Some(2) };
    let learnt = Learnt { executions: 70, flips: vec![flip], attempts: vec![(id("race"), past)] };
    store.learn(&setup("one", "x"), &learnt).unwrap();
    assert_eq!(store.learnt(&setup("one", "x")).unwrap(), learnt);
    assert_eq!(store.learnt(&setup("two", "x")).unwrap(), Learnt::default(), "another build");
    assert_eq!(store.learnt(&setup("one", "y")).unwrap(), Learnt::default(), "other arguments");
    store.learn(&setup("two", "x"), &Learnt::default()).unwrap();
    assert_eq!(store.learnt(&setup("one", "x")).unwrap(), Learnt::default(), "it is gone");
}

#[test]
fn what_failed_before_is_what_did_harm_in_runs_of_any_build() {
    let scratch = Scratch::new("failed");
    let mut store = Store::create(&scratch.0).unwrap();
    let control = || Control { schedule: Some("s".into()), ..Control::default() };
    let mut add = |build: &str, argument: &str, name: &str, verdict, scheduled: bool| {
        let run = begin(&mut store, "program");
        store.remember(run, &setup(build, argument)).unwrap();
        let mut case = finding(name, Status::Confirmed);
        case.verdict = verdict;
        case.control = scheduled.then(control);
        store.add(run, &case).unwrap();
    };
    use selvedge_model::Verdict::{Benign, Harmful};
    add("one", "x", "first", Some(Harmful), true);
    add("two", "x", "second", Some(Harmful), true);
    add("two", "x", "second", Some(Harmful), true);
    add("two", "x", "benign", Some(Benign), true);
    add("two", "x", "unscheduled", Some(Harmful), false);
    add("two", "y", "elsewhere", Some(Harmful), true);
    let failed = store.failed_before(&setup("three", "x")).unwrap();
    let ids: Vec<FindingId> = failed.iter().map(|case| case.id).collect();
    assert_eq!(ids, [id("second"), id("first")]);
}
