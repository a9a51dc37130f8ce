//! The registry, and the pipeline that runs what it lists.

use std::collections::BTreeSet;

use selvedge_analyses::registry::{self, Contents, Needs, Purpose, Settings};
use selvedge_analyses::{ANALYSES, Pipeline};
use selvedge_model::{Access, Event, Finding, Findings, LockId, Mode, Op, SiteId, ThreadId};

fn registered() -> BTreeSet<&'static str> {
    ANALYSES.iter().map(|e| e.name).collect()
}

/// The names in backticks.
fn named(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).expect("it is there");
    rest.split_once(to).expect("it ends").0
}

#[test]
fn the_reference_names_every_analysis_and_no_other() {
    let reference = include_str!("../../../docs/analyses.md");
    let table = between(reference, "| analysis | finds | promise |\n", "\n\n");
    let first = |row: &'static str| row.split('|').nth(1).expect("a column");
    let listed = table.lines().skip(1).flat_map(|row| named(first(row)));
    assert_eq!(listed.collect::<BTreeSet<_>>(), registered());
    let defaults: BTreeSet<_> = registry::defaults(Purpose::Check).iter().map(|e| e.name).collect();
    assert_eq!(named(between(reference, "The default is ", "; ")), defaults);
}

#[test]
fn the_guide_names_every_analysis_and_the_defaults_of_the_crate() {
    let guide = include_str!("../../../docs/guide.md");
    let defaults = between(guide, "By default the analyses ", " run on every execution");
    let others = between(guide, "The other analyses are ", ".");
    let expected: BTreeSet<_> = registry::defaults(Purpose::Crate).iter().map(|e| e.name).collect();
    assert_eq!(named(defaults), expected);
    let all: BTreeSet<_> = named(defaults).union(&named(others)).copied().collect();
    assert_eq!(all, registered());
}

#[test]
fn names_are_distinct_and_told_in_the_help() {
    assert_eq!(registered().len(), ANALYSES.len());
    let help = registry::help(Purpose::Run);
    for entry in ANALYSES {
        assert!(help.contains(entry.about), "{}", entry.name);
        let mark = if entry.default_in.contains(&Purpose::Run) { "*" } else { " " };
        assert!(help.contains(&format!("\n{mark} {} ", entry.name)), "{help}");
    }
}

#[test]
fn names_select_and_what_is_no_name_is_answered_with_the_list() {
    let names = |names: &[&str]| {
        let entries = registry::select(names)?;
        Ok::<_, registry::UnknownAnalysis>(entries.iter().map(|e| e.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&["views", "races", "views"]), Ok(vec!["races", "views"]));
    assert_eq!(names(&[]), Ok(vec![]));
    let all = names(&["all"]).expect("known");
    assert!(!all.contains(&"velodrome"), "an engine of `atomicity`");
    assert_eq!(all.len(), ANALYSES.len() - 1);
    assert!(names(&["all", "velodrome"]).expect("known").contains(&"velodrome"));
    let error = names(&["racy"]).expect_err("not a name").to_string();
    assert!(error.contains("`racy`") && error.contains("races, hybrid"), "{error}");
}

fn event(thread: u32, site: u32, op: Op) -> Event {
    Event { thread: ThreadId(thread), site: SiteId(site), op }
}

/// Two threads that write without a lock, and take two locks in opposite order.
fn racy() -> Vec<Event> {
    let access = Access { addr: 64, len: 8 };
    let acquire = |l| Op::Acquire(LockId(l), Mode::Exclusive);
    let release = |l| Op::Release(LockId(l), Mode::Exclusive);
    let side = |t: u32, a: u32, b: u32| {
        [Op::Write(access), acquire(a), acquire(b), release(b), release(a)]
            .into_iter()
            .enumerate()
            .map(move |(i, op)| event(t, 10 * t + i as u32, op))
    };
    let start = [event(0, 1, Op::Fork(ThreadId(1))), event(0, 2, Op::Fork(ThreadId(2)))];
    start.into_iter().chain(side(1, 0, 1)).chain(side(2, 1, 0)).collect()
}

fn alone(name: &str, events: &[Event]) -> Vec<Finding> {
    let mut analysis = registry::select(&[name]).expect("known")[0].make(Settings::default());
    let mut findings = Findings::default();
    analysis.on_events(events, &mut findings);
    analysis.finish(&mut findings);
    findings.into_iter().collect()
}

#[test]
fn a_pipeline_finds_what_its_analyses_find_alone_in_every_execution() {
    let names = ["races", "deadlocks"];
    let entries = registry::select(&names).expect("known");
    let events = racy();
    let expected: Vec<Finding> = names.iter().flat_map(|n| alone(n, &events)).collect();
    assert_eq!(expected.len(), 2, "a race and a deadlock: {expected:?}");
    let mut pipeline = Pipeline::new(Settings::default());
    for _ in 0..3 {
        pipeline.start(entries.iter().copied());
        assert_eq!(pipeline.names().collect::<Vec<_>>(), names);
        let mut news = 0;
        for event in &events {
            pipeline.on_event(event);
            assert_eq!(pipeline.has_news(), pipeline.news().inspect(|_| news += 1).count() > 0);
        }
        pipeline.finish();
        news += pipeline.news().count();
        assert_eq!(news, expected.len(), "each is news once");
        assert!(!pipeline.has_news());
        assert_eq!(pipeline.take_findings().into_iter().collect::<Vec<_>>(), expected);
        pipeline.restart();
        assert!(!pipeline.is_started() && pipeline.findings().is_empty());
    }
}

#[test]
fn what_an_execution_lacks_keeps_analyses_out() {
    let mut all = registry::select(&["all"]).expect("known");
    all.retain(|e| e.needs != Needs::Nothing);
    let names = |c: Contents| c.relevant(&all).map(|e| e.name).collect::<Vec<_>>();
    let mut contents = Contents::default();
    assert_eq!(names(contents), Vec::<&str>::new());
    let with = |needs: &[Needs]| {
        let wanted = all.iter().filter(|e| needs.contains(&e.needs));
        wanted.map(|e| e.name).collect::<Vec<_>>()
    };
    contents.add(Needs::NestedLocks);
    assert_eq!(names(contents), with(&[Needs::NestedLocks]));
    assert!(names(contents).contains(&"deadlocks"));
    let mut other = Contents::default();
    other.add(Needs::AtomicRegions);
    let both = names(contents.union(other));
    assert_eq!(both, with(&[Needs::NestedLocks, Needs::AtomicRegions]));
    assert!(both.contains(&"deadlocks") && both.contains(&"atomicity"));
    assert_eq!(names(Contents::UNKNOWN).len(), all.len());
}

#[test]
fn locked_code_is_a_region_only_if_that_is_asked_for() {
    // Thread 1 reads, and thread 2 writes before thread 1 writes, within one lock of thread 1's own.
    let access = Access { addr: 64, len: 8 };
    let lock = |l| Op::Acquire(LockId(l), Mode::Exclusive);
    let events = [
        event(0, 1, Op::Fork(ThreadId(1))),
        event(0, 2, Op::Fork(ThreadId(2))),
        event(1, 3, lock(0)),
        event(1, 4, Op::Read(access)),
        event(2, 5, Op::Write(access)),
        event(1, 6, Op::Write(access)),
        event(1, 7, Op::Release(LockId(0), Mode::Exclusive)),
    ];
    for (lock_regions, expected) in [(false, 0), (true, 1)] {
        let mut pipeline = Pipeline::new(Settings { lock_regions, ..Settings::default() });
        pipeline.start(registry::select(&["atomicity"]).expect("known"));
        pipeline.on_events(&events);
        pipeline.finish();
        assert_eq!(pipeline.take_findings().len(), expected, "lock regions {lock_regions}");
    }
}
