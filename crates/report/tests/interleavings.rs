//! What an explanation shows, on executions written by hand.

use selvedge_model::{
    Access, Blocked, Ended, Event, LockId, Mode, Op, Pending, Range, Role, Site, SiteId, Step,
    Stop, Symbols, ThreadId,
};
use selvedge_report::explain::{ROWS, Row};
use selvedge_report::{End, Interleaving, Sources, Span, Story, explain, layout};

const SOURCE: [(&str, &str); 8] = [
    ("bank.c:30:5", "pthread_create(&one, 0, deposit, 0);"),
    ("bank.c:31:5", "pthread_create(&two, 0, withdraw, 0);"),
    ("bank.c:12:5", "int old = balance;"),
    ("bank.c:13:5", "balance = old + 10;"),
    ("bank.c:20:5", "pthread_mutex_lock(&audit);"),
    ("bank.c:21:5", "pthread_mutex_lock(&ledger);"),
    ("bank.c:22:5", "pthread_mutex_unlock(&audit);"),
    ("bank.c:33:5", "pthread_join(one, 0);"),
];

fn site(line: &str) -> SiteId {
    SiteId(SOURCE.iter().position(|(s, _)| s.starts_with(line)).expect("a known line") as u32)
}

fn symbols() -> Symbols {
    let mut symbols = Symbols::default();
    for (place, _) in SOURCE {
        symbols.sites.intern(Site::parse(place));
    }
    for (name, function) in [("main", ""), ("T1", "deposit"), ("T2", "withdraw")] {
        symbols.threads.push(name.into());
        symbols.functions.push(function.into());
    }
    symbols.locks.push("audit".into());
    symbols.locks.push("ledger".into());
    symbols.variables.define("balance", Range { start: 16, len: 4 });
    symbols
}

fn event(thread: u32, line: &str, op: Op) -> Event {
    Event { thread: ThreadId(thread), site: site(line), op }
}

fn pending(line: &str, op: Op) -> Pending {
    Pending { site: site(line), landmark: 0, step: Step::Do(op) }
}

const BALANCE: Access = Access { addr: 16, len: 4 };
const OTHER: Access = Access { addr: 64, len: 4 };

fn lock(id: u32) -> Op {
    Op::Acquire(LockId(id), Mode::Exclusive)
}

fn unlock(id: u32) -> Op {
    Op::Release(LockId(id), Mode::Exclusive)
}

fn shown(story: &Story<'_>, width: usize) -> String {
    // A file in which the lines are where the sites say.
    let mut lines = vec![""; 40];
    for (place, line) in SOURCE {
        let number = Site::parse(place).frame().expect("a line").line;
        lines[number as usize - 1] = line;
    }
    let file = lines.join("\n");
    let rows = Interleaving::new(&explain(story), story.stops.len(), &symbols());
    let stored = serde_json::to_string(&rows).expect("rows serialise");
    let rows: Interleaving = serde_json::from_str(&stored).expect("what was stored is read");
    let lines = layout(&rows, &mut Sources::new(|_| Some(file.clone())), width);
    let text = |line: &Vec<Span>| {
        let text: String = line.iter().map(|s| s.text.as_str()).collect();
        assert!(text.chars().count() <= width, "{text}");
        text
    };
    lines.iter().map(text).collect::<Vec<_>>().join("\n")
}
const EMPTY: Story<'_> =
    Story { events: &[], stops: &[], blocked: &[], places: &[], like: &[], ending: None };

/// A lost update, with work in between that has nothing to do with it.
fn race() -> (Vec<Event>, Vec<Stop>) {
    let mut events = vec![
        event(0, "bank.c:30", Op::Fork(ThreadId(1))),
        event(0, "bank.c:31", Op::Fork(ThreadId(2))),
    ];
    events.extend((0..20).map(|_| event(1, "bank.c:22", Op::Write(OTHER))));
    events.push(event(1, "bank.c:12", Op::Read(BALANCE)));
    let stops = vec![Stop {
        at: events.len(),
        thread: ThreadId(1),
        next: pending("bank.c:13", Op::Write(BALANCE)),
    }];
    events.push(event(2, "bank.c:12", Op::Read(BALANCE)));
    events.push(event(2, "bank.c:13", Op::Write(BALANCE)));
    events.push(event(2, "bank.c:22", Op::Write(OTHER)));
    events.push(event(1, "bank.c:13", Op::Write(BALANCE)));
    events.push(event(0, "bank.c:33", Op::Join(ThreadId(1))));
    (events, stops)
}

#[test]
fn a_race_is_shown_with_the_two_accesses_marked() {
    let (events, stops) = race();
    let places = [site("bank.c:13"), site("bank.c:13")];
    let story = Story {
        events: &events,
        stops: &stops,
        places: &places,
        ending: Some((ThreadId(0), End::Process(Ended::Code(1)))),
        ..EMPTY
    };
    insta::assert_snapshot!("race", shown(&story, 120));
    insta::assert_snapshot!("race_in_80_columns", shown(&story, 80));
    insta::assert_snapshot!("race_in_40_columns", shown(&story, 40));
}

#[test]
fn a_deadlock_is_shown_with_who_waits_for_whom() {
    let events = [
        event(0, "bank.c:30", Op::Fork(ThreadId(1))),
        event(0, "bank.c:31", Op::Fork(ThreadId(2))),
        event(1, "bank.c:20", lock(0)),
        event(2, "bank.c:21", lock(1)),
    ];
    let stops = [Stop { at: 3, thread: ThreadId(1), next: pending("bank.c:21", lock(1)) }];
    let waits = |thread, line, wants, other| Blocked {
        thread: ThreadId(thread),
        site: site(line),
        wants,
        mode: Mode::Exclusive,
        holds: Vec::new(),
        waits_for: Some(ThreadId(other)),
    };
    let blocked = [
        waits(0, "bank.c:33", Role::Join(ThreadId(1)), 1),
        waits(1, "bank.c:21", Role::Acquire(LockId(1)), 2),
        waits(2, "bank.c:20", Role::Acquire(LockId(0)), 1),
    ];
    let story = Story { events: &events, stops: &stops, blocked: &blocked, ..EMPTY };
    insta::assert_snapshot!("deadlock", shown(&story, 120));
}

#[test]
fn what_was_critical_is_never_left_out() {
    let mut events = vec![event(0, "bank.c:30", Op::Fork(ThreadId(1)))];
    for _ in 0..200 {
        events.push(event(1, "bank.c:20", lock(0)));
        events.push(event(1, "bank.c:22", unlock(0)));
    }
    events.push(event(0, "bank.c:20", lock(0)));
    let places = [site("bank.c:22"), site("bank.c:20")];
    let story = Story { events: &events, places: &places, ..EMPTY };
    let explanation = explain(&story);
    assert!(explanation.rows.len() <= ROWS + 1);
    let critical: Vec<_> = explanation
        .rows
        .iter()
        .filter_map(|r| match r {
            Row::Does { event, critical: true, .. } => Some(event.thread.0),
            _ => None,
        })
        .collect();
    assert_eq!(critical, [1, 0]);
    let left_out: usize = explanation
        .rows
        .iter()
        .map(|r| if let Row::Elided(hidden) = r { hidden.len() } else { 0 })
        .sum();
    let told: usize = explanation.rows.iter().filter(|r| matches!(r, Row::Does { .. })).count();
    assert_eq!(left_out + told, events.len(), "every event is shown or counted");
}

#[test]
fn the_release_at_the_place_of_an_acquisition_is_not_marked_for_it() {
    // A guard acquires and releases where it is declared.
    let events = [
        event(0, "bank.c:30", Op::Fork(ThreadId(1))),
        event(1, "bank.c:20", lock(0)),
        event(1, "bank.c:20", unlock(0)),
        event(0, "bank.c:21", lock(0)),
        event(0, "bank.c:21", unlock(0)),
    ];
    let places = [site("bank.c:20"), site("bank.c:21")];
    let story = Story { events: &events, places: &places, ..EMPTY };
    let marked = |r: &Row| match r {
        Row::Does { event, critical: true, .. } => Some(event.op),
        _ => None,
    };
    let marked: Vec<Op> = explain(&story).rows.iter().filter_map(marked).collect();
    assert_eq!(marked, [lock(0), lock(0)]);
}

#[test]
fn without_a_finding_the_stops_tell_what_matters() {
    let (events, stops) = race();
    let story = Story { events: &events, stops: &stops, ..EMPTY };
    let explanation = explain(&story);
    let accesses = explanation
        .rows
        .iter()
        .filter(|r| matches!(r, Row::Does { event, .. } if matches!(event.op, Op::Read(BALANCE) | Op::Write(BALANCE))))
        .count();
    assert_eq!(accesses, 4, "{explanation:?}");
    assert!(
        explanation.rows.iter().any(|r| matches!(r, Row::Elided(hidden) if hidden.len() == 20)),
        "{explanation:?}"
    );
}

#[test]
fn nothing_is_shown_of_nothing() {
    assert_eq!(explain(&EMPTY).rows, []);
    assert_eq!(shown(&EMPTY, 80), "");
}
