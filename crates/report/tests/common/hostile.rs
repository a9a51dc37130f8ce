//! A finding of which every text tries to act on the reader's terminal, page or parser.

use selvedge_model::{Frame, Kind, Scalar, Site};
use selvedge_report::{
    Baseline, Case, Compared, Failure, Format, How, Known, Memory, Order, Outcome, Report, Row,
    Sources, Subject, View, Which,
};

use super::cases;

/// A tag, a terminal's escapes, a mark that turns the direction of text, what markup of several kinds and commands of
/// GitHub begin with, and bytes that were no UTF-8 when they were read.
pub(crate) const EVIL: &str = "<script>owned = 1</script>\u{1b}[2J\u{9b}31m\u{202e}`|*[x](y)]]>%0A::error::\"'&lt;\u{fffe}\u{fffd}\r\u{7}";

/// As [`EVIL`], a megabyte long.
pub(crate) fn long() -> String {
    EVIL.to_owned() + &"x".repeat(1 << 20)
}

/// A race between threads, in a file, on a variable, in a program, with a failed assertion of such texts.
pub(crate) fn report() -> Report {
    let mut case = cases().remove(0);
    let frame =
        |file: String| Frame { file: file.into(), line: 4, column: 5, function: EVIL.into() };
    let site = Site::Source(frame(format!("{EVIL}.c")), vec![frame("bank.c".into())]);
    case.subject = Subject::Memory(Memory::Named(long()));
    case.places[0].thread = long();
    case.places[1].site = site.clone();
    let control = case.control.as_mut().expect("it is confirmed");
    let which = Which::First { thread: EVIL.into(), site: site.clone() };
    if let Some(How::Rows(rows)) = &mut control.how {
        rows.threads[0] = long();
        let Row::Does { act, site: at, values, .. } = &mut rows.rows[0] else {
            panic!("the first row is a step")
        };
        act.object = long();
        *at = site;
        values.found = Some(Scalar::Text(EVIL.into(), true));
        values.left = Some(Scalar::Constant(long().into()));
    }
    let rows = control.rows().expect("an interleaving").clone();
    let subject = Subject::Program(Failure::Message(long()));
    let assertion = Outcome::Failed { kind: Kind::Assertion, subject };
    let mut order: Order = control.orders[0].clone();
    order.which = which.clone();
    order.outcome = assertion.clone();
    control.orders.push(order);
    let against = Outcome::Exit(1);
    control.compared =
        Some(Box::new(Compared { which: Some(which), outcome: assertion, against, rows }));
    let known = Known { id: cases()[1].id, kind: cases()[1].kind, summary: long() };
    let mut failed = of_kind(Kind::Assertion);
    failed.subject = Subject::Program(Failure::Message(long()));
    let mut crashed = of_kind(Kind::Crash);
    crashed.subject = Subject::Program(Failure::Signal { number: 11, program: Some(long()) });
    Report {
        cases: vec![case, failed, crashed],
        baseline: Some(Baseline { findings: vec![known] }),
        ..Report::default()
    }
}

fn of_kind(kind: Kind) -> Case {
    cases().into_iter().find(|c| c.kind == kind).expect("there is a case of every kind")
}

/// The report in a format, with a line of source of the same sort.
pub(crate) fn shown(format: &str) -> String {
    let source = format!("\n\n\nint x; /* {} */\n", long().replace(['\r', '\n'], " "));
    let sources = Sources::new(|_| Some(source.clone()));
    let mut view = View { sources, width: 100, wraps: false, all: true };
    Format::named(format).expect("a format").show(&report(), &mut view)
}
