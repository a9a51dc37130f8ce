use super::*;
use selvedge_model::{Kind, Site, Status};

use crate::report::{ReportedPlace, ReportedRole};

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

fn finding(id: &str, status: Status) -> ReportedFinding {
    let place = |site: &str| ReportedPlace {
        thread: "T".into(),
        site: Site::parse(site),
        role: ReportedRole { name: "write".into(), object: None },
        held: Vec::new(),
        held_unknown: true,
        stack: vec![Site::parse("main.c:7")],
        stack_likely: true,
        approximate: true,
    };
    ReportedFinding {
        id: id.into(),
        kind: Kind::DataRace,
        status,
        verdict: None,
        analyses: vec!["races".into()],
        subject: vec!["x".into()],
        notes: Vec::new(),
        places: vec![place("a.c:1:2"), place("label")],
        occurrences: 3,
        control: None,
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
    assert_eq!(
        report.findings,
        [finding("one", Status::Observed), finding("two", Status::Observed)]
    );
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
    assert_eq!(reader.report(&run).unwrap().findings.len(), 1);
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
    large.notes = vec!["x".repeat(100_000)];
    assert!(matches!(store.add(run, &large), Err(StoreError::Full(_))));
    drop(store);
    let store = Store::open(&scratch.0).unwrap();
    let ids: Vec<String> = store
        .report(&store.run(None).unwrap())
        .unwrap()
        .findings
        .into_iter()
        .map(|f| f.id)
        .collect();
    assert_eq!(ids, ["one"]);
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

#[test]
fn a_store_of_the_first_version_is_brought_up_to_date() {
    let scratch = Scratch::new("first");
    std::fs::create_dir_all(&scratch.0).unwrap();
    let old = Connection::open(scratch.0.join(FILE)).unwrap();
    old.execute_batch(
        "CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, command TEXT NOT NULL,
             started INTEGER NOT NULL, mode TEXT NOT NULL, instrumented TEXT NOT NULL,
             ending TEXT, stats TEXT);
         CREATE TABLE findings (sequence INTEGER PRIMARY KEY,
             run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE, id TEXT NOT NULL,
             kind TEXT NOT NULL, status TEXT NOT NULL, verdict TEXT, body TEXT NOT NULL,
             UNIQUE (run, id));
         INSERT INTO runs VALUES (1, '[\"./a\"]', 7, 'linked', 'all', 'exited with 0', NULL);
         PRAGMA user_version = 1;",
    )
    .unwrap();
    let mut body = serde_json::to_value(finding("one", Status::Observed)).unwrap();
    body.as_object_mut().unwrap().remove("control");
    old.execute(
        "INSERT INTO findings VALUES (1, 1, 'one', 'data-race', 'observed', NULL, ?)",
        [body.to_string()],
    )
    .unwrap();
    drop(old);
    for _ in 0..2 {
        let store = Store::open(&scratch.0).unwrap();
        let run = store.run(None).unwrap();
        assert_eq!((run.id, run.setup.as_ref()), (1, None));
        assert_eq!(store.report(&run).unwrap().findings, [finding("one", Status::Observed)]);
        assert_eq!(store.find("on", None).unwrap().len(), 1);
    }
    let mut store = Store::create(&scratch.0).unwrap();
    let run = begin(&mut store, "./b");
    let mut new = finding("two", Status::Confirmed);
    let schedule = Some("1/0/1".to_owned());
    new.control = Some(crate::report::Control { schedule, attempts: 3, ..Default::default() });
    store.add(run, &new).unwrap();
    assert_eq!(store.find("two", None).unwrap(), [(run, new)]);
}
