//! A case of every kind, and how formats show them.
#![allow(dead_code)]

pub(crate) mod hostile;

use selvedge_model::{
    Blocked, CondId, Ended, Failure, Finding, Held, Kind, LockId, Mode, Object, Panic, Place,
    Range, Region, RegionId, RegionKind, Role, Scalar, SemaphoreId, Site, SiteId, Status, Subject,
    Symbols, Target, ThreadId, Values, Verdict, Waiter,
};
use selvedge_report::{
    Act, Bound, Case, Control, Diverged, Effort, Elided, End, Format, Given, Harm, Holder, How,
    Interleaving, NotReplayed, Note, Order, Outcome, Remark, Report, Row, Sources, State, Stats,
    Stopped, Verb, View, Watched, Which,
};

pub(crate) const SOURCE: &str = "long balance;\n\nvoid *deposit(void *amount) {\n    balance += (long)amount;\n    return 0;\n}\n\nlong audit(void) { return balance; }\n";

pub(crate) fn symbols() -> Symbols {
    let mut symbols = Symbols::default();
    for place in ["bank.c:4:5", "bank.c:8:20", "bank.c:3"] {
        symbols.sites.intern(Site::parse(place));
    }
    for (name, function) in [("main", ""), ("T1", "deposit")] {
        symbols.threads.push(name.into());
        symbols.functions.push(function.into());
    }
    symbols.locks.push("vault".into());
    symbols.locks.push("door".into());
    symbols.conds.push("news".into());
    symbols.conds.push("".into());
    symbols.semaphores.push("free".into());
    symbols.variables.define("balance", Range { start: 16, len: 8 });
    symbols.regions.push(Region { kind: RegionKind::Atomic, name: "transfer".into() });
    symbols
}

pub(crate) fn place(thread: u32, site: u32, role: Role) -> Place {
    Place { thread: ThreadId(thread), site: SiteId(site), role, held: Vec::new() }
}

pub(crate) fn held(lock: u32, site: u32) -> Held {
    Held { lock: LockId(lock), mode: Mode::Exclusive, site: SiteId(site) }
}

pub(crate) fn finding(kind: Kind, subject: Subject, places: Vec<Place>) -> Finding {
    Finding {
        kind,
        status: Status::Observed,
        verdict: None,
        analyses: vec!["races"],
        subject,
        places,
        target: None,
        occurrences: 1,
    }
}

pub(crate) fn race() -> Finding {
    let mut writes = place(1, 0, Role::Write);
    writes.held.push(held(0, 2));
    Finding {
        target: Some(Target::Race { first: SiteId(0), second: SiteId(1) }),
        ..finding(
            Kind::DataRace,
            Subject::Memory(Range { start: 16, len: 8 }),
            vec![writes, place(0, 1, Role::Read)],
        )
    }
}

pub(crate) fn deadlock() -> Finding {
    let waits = |thread: u32, lock: u32| Place {
        held: vec![held(1 - lock, 2)],
        ..place(thread, thread, Role::Acquire(LockId(lock)))
    };
    let waiter = |thread: u32, lock: u32| Waiter {
        thread: ThreadId(thread),
        holds: vec![held(1 - lock, 2)],
        wants: held(lock, thread),
    };
    Finding {
        status: Status::Predicted,
        target: Some(Target::Deadlock(vec![waiter(0, 0), waiter(1, 1)])),
        ..finding(
            Kind::Deadlock,
            Subject::Locks(vec![LockId(0), LockId(1)]),
            vec![waits(0, 0), waits(1, 1)],
        )
    }
}

pub(crate) fn split() -> Finding {
    Finding {
        verdict: Some(Verdict::Harmful),
        target: Some(Target::Split {
            region: Some(RegionId(0)),
            first: SiteId(0),
            second: SiteId(1),
            between: Some(SiteId(2)),
            object: Object::Lock(LockId(0)),
        }),
        ..finding(
            Kind::AtomicityViolation,
            Subject::Region(RegionId(0)),
            vec![place(0, 0, Role::Enter(RegionId::locked_at(SiteId(2))))],
        )
    }
}

pub(crate) fn blocked(thread: u32, wants: Role, waits_for: Option<u32>) -> Blocked {
    Blocked {
        thread: ThreadId(thread),
        site: SiteId(thread),
        wants,
        mode: Mode::Exclusive,
        holds: Vec::new(),
        waits_for: waits_for.map(ThreadId),
    }
}

/// One failure of every kind.
pub(crate) fn failures() -> Vec<(Kind, Failure)> {
    let part = vec![blocked(1, Role::Await(CondId(0)), None)];
    let others = vec![
        blocked(0, Role::Join(ThreadId(1)), Some(1)),
        blocked(0, Role::Acquire(LockId(0)), Some(0)),
        blocked(0, Role::Acquire(LockId(0)), Some(1)),
        blocked(0, Role::Wait(SemaphoreId(0)), None),
        blocked(0, Role::Await(CondId(1)), None),
    ];
    let before = Panic {
        thread: ThreadId(1),
        site: Some(SiteId(0)),
        text: "the ledger does not balance".into(),
    };
    let message = |ended: Option<Ended>| Failure::Message {
        text: "x == 2".into(),
        thread: Some("worker".into()),
        before: ended.is_none().then(|| Box::new(before.clone())),
        ended,
    };
    vec![
        (
            Kind::Crash,
            Failure::Signal {
                number: 11,
                address: Some(8),
                said: Some("oops".into()),
                approximate: true,
            },
        ),
        (Kind::Assertion, message(Some(Ended::Code(101)))),
        (Kind::Assertion, message(Some(Ended::Signal(6)))),
        (Kind::Assertion, message(None)),
        (Kind::Assertion, Failure::Exit { code: 1, usual: 0 }),
        (Kind::Deadlock, Failure::Stuck { part: part.clone(), others }),
        (Kind::Hang, Failure::Left(part)),
        (Kind::Assertion, Failure::Unwinding("a bomb".into())),
        (Kind::Hang, Failure::Steps(1000)),
        (Kind::Hang, Failure::Stall(60)),
        (Kind::Crash, Failure::NoStack { threads: 9, error: "out of memory".into() }),
        (Kind::Crash, Failure::Shared(SiteId(0))),
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    let symbols = symbols();
    let failed = |(kind, failure): (Kind, Failure)| {
        let places = match &failure {
            Failure::Stuck { part, .. } => part.iter().map(Blocked::place).collect(),
            Failure::Message { .. } => vec![place(1, 0, Role::Fail)],
            _ => Vec::new(),
        };
        finding(kind, Subject::Program(failure), places)
    };
    let findings =
        [race(), deadlock(), split()].into_iter().chain(failures().into_iter().map(failed));
    let mut cases: Vec<Case> = findings.map(|f| Case::new(&f, &symbols)).collect();
    cases[0].control = Some(control());
    cases[0].status = Status::Confirmed;
    cases[1].notes = notes();
    cases[2].places[0].stack = vec![Site::parse("main.c:7")];
    cases[2].places[0].held = None;
    cases.push(violation(&symbols));
    cases
}

/// Two executions of a block that differ.
fn violation(symbols: &Symbols) -> Case {
    let subject = Subject::Value { block: "audit".into(), name: "total".into() };
    let places = vec![place(0, 1, Role::Ensure)];
    let mut case = Case::new(&finding(Kind::DeterminismViolation, subject, places), symbols);
    case.status = Status::Confirmed;
    case.verdict = Some(Verdict::Harmful);
    let state = |name: &str, nth, first, second| State { name: name.into(), nth, first, second };
    case.states = vec![
        state("total", 0, Given::Value(100.into()), Given::Value(90.into())),
        state("total", 1, Given::Value(vec![1.5, 2.0].into()), Given::Nothing),
        state("page", 10, Given::Digest("0a1b".into()), Given::Value("text".into())),
    ];
    let (first, mut second) = (interleaving(), interleaving());
    second.rows.swap(1, 2);
    case.control = Some(Control {
        schedule: Some("1/0/1.0".into()),
        schedules: vec!["1/0/0.1".into(), "1/0/1.0".into()],
        other: Some(first),
        how: Some(How::Rows(second)),
        ..Control::default()
    });
    case
}

pub(crate) fn notes() -> Vec<Note> {
    let at = || Some(Site::parse("bank.c:3"));
    let outcome = Outcome::Exit(3);
    let reason = selvedge_model::Reason::NotEnabled;
    let divergence =
        selvedge_model::Divergence { step: 3, segment: 1, thread: ThreadId(2), reason };
    [
        Note::HeapBlock { byte: 8, thread: "main".into(), at: at() },
        Note::StartedBy { thread: "T1".into(), by: "main".into(), at: None },
        Note::NoEffect,
        Note::CausedBy {
            kind: Kind::HighLevelRace,
            subject: selvedge_report::Subject::Locks(vec!["vault".into()]),
            sites: vec![Site::parse("bank.c:8:20"), Site::parse("bank.c:9")],
        },
        Note::OtherBuild("0f3a".into()),
        Note::Told("what an earlier version said".into()),
    ]
    .into_iter()
    .chain(
        [
            NotReplayed::Interrupted,
            NotReplayed::Failed("it is gone".into()),
            NotReplayed::Otherwise { outcome, diverged: Some(Diverged::At(divergence)) },
            NotReplayed::Once { diverged: Some(Diverged::Told("at choice 3".into())) },
        ]
        .map(Note::NotReplayed),
    )
    .collect()
}

pub(crate) fn control() -> Control {
    let order = |which, harm, outcome| Order { which, harm, outcome, schedule: "1/0/1".into() };
    let first = Which::First { thread: "main".into(), site: Site::parse("bank.c:8:20") };
    let failed = Outcome::Failed {
        kind: Kind::Assertion,
        subject: selvedge_report::Subject::Program(selvedge_report::Failure::Message("no".into())),
    };
    Control {
        schedule: Some("1/0/1".into()),
        attempts: 2,
        after: Some(5),
        of: None,
        watched: vec![Watched { module: "bank".into(), offset: 7, site: Site::parse("bank.c:3") }],
        orders: vec![
            order(first, Harm::Nothing, Outcome::Exit(0)),
            order(Which::Only, Harm::Failure, failed),
            order(Which::Told("then".into()), Harm::Output, Outcome::Told("now".into())),
        ],
        how: Some(How::Rows(interleaving())),
        ..Control::default()
    }
}

pub(crate) fn interleaving() -> Interleaving {
    let write = || Act { verb: Verb::Write, object: "balance".into() };
    let site = || Site::parse("bank.c:4:5");
    let lock = Act { verb: Verb::Lock, object: "vault".into() };
    let holder = Some(Holder::Thread("T1".into()));
    Interleaving {
        preemptions: 1,
        threads: vec!["main".into(), "T1 (deposit)".into()],
        rows: vec![
            Row::Does {
                thread: 0,
                act: write(),
                site: site(),
                critical: true,
                values: Values { found: Some(Scalar::Signed(0)), left: Some(Scalar::Signed(10)) },
            },
            Row::Stopped { thread: 1, before: write(), site: site() },
            Row::Elided(Elided::Count(7)),
            Row::Waits { thread: 0, to: lock, site: site(), holder },
            Row::Ends { thread: 1, how: End::Process(Ended::Signal(6)) },
        ],
        margin: Vec::new(),
    }
}

pub(crate) fn remarks() -> Vec<Remark> {
    use selvedge_model::{Cause, Descriptor, Uncontrolled};
    let waited = |number, on| Uncontrolled::SystemCall { thread: ThreadId(1), number, on };
    let differs = |cause| {
        let happened =
            selvedge_report::Failure::Unrepeatable { event: 4, expected: None, found: None, cause };
        Remark::Unrepeatable(Box::new(happened))
    };
    vec![
        Remark::Points { all: 9, most: 8 },
        Remark::Met(3),
        Remark::GoesOn { schedules: 40 },
        Remark::Uncontrolled(waited(Some(0), Some(Descriptor::Pipe))),
        Remark::Uncontrolled(waited(Some(999), Some(Descriptor::Kernel("eventfd".into())))),
        Remark::Uncontrolled(waited(None, None)),
        differs(Cause::Waited(waited(Some(73), Some(Descriptor::File("/tmp/lock".into()))))),
        differs(Cause::Process),
        differs(Cause::Told("what an earlier version said".into())),
        Remark::AlwaysFails { schedules: 7, outcome: Box::new(Outcome::Exit(3)) },
        Remark::AlwaysExits(2),
        Remark::OneThread,
        Remark::Stopped(Stopped::Signal(2)),
        Remark::Stopped(Stopped::Time(1.5)),
        Remark::Told("what an earlier version said".into()),
    ]
}

pub(crate) fn bounds() -> Vec<Bound> {
    let (analysis, what) = ("hybrid".to_owned(), "past accesses are remembered".to_owned());
    vec![
        Bound::Analysis { trace: None, analysis, what, limit: 256, exceeded: 3 },
        Bound::Events(7),
        Bound::Functions(12),
        Bound::Races { seen: 10, kept: 8 },
        Bound::Beginning(1000),
        Bound::Told("what an earlier version said".into()),
    ]
}

pub(crate) fn shown(format: &str, width: usize) -> String {
    let control = Effort { schedules: 10, seconds: 2.0, remarks: remarks(), ..Effort::default() };
    let stats = Stats { bounds: bounds(), control: Some(control), ..Stats::default() };
    let report = Report { cases: cases(), stats, ..Report::default() };
    let sources = Sources::new(|file| (file == "bank.c").then(|| SOURCE.to_owned()));
    let mut view = View { sources, width, wraps: false, all: true };
    let format = Format::named(format).expect("a format");
    let text = format.show(&report, &mut view);
    strip(&text)
}

/// Without colours.
pub(crate) fn strip(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' {
            rest.by_ref().find(|c| *c == 'm');
        } else {
            plain.push(c);
        }
    }
    plain
}
