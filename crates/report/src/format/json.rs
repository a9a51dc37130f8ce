//! Findings for programs, as JSON. The format is versioned; a field keeps its meaning within a version.

use serde::Serialize;

use selvedge_model::{FindingId, Frame, Mode, Site, Verdict};
use selvedge_specs::Value;

mod interleaving;

use super::{Format, View};
use crate::{Bound, Case, Known, Lock, Report, Since, escape, words};

/// One document.
pub(super) const FORMAT: Format = Format {
    name: "json",
    about: "For programs; docs/formats.md lists the fields",
    exact: true,
    render,
};

const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    tool: &'static str,
    findings: Vec<Finding<'a>>,
    /// Findings of the baseline that are gone, if there is a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone: Option<Vec<Gone<'a>>>,
    /// Findings that are not to be reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressed: Vec<Suppressed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variables: Option<Vec<Variable<'a>>>,
    stats: Stats<'a>,
}

/// A finding that is not to be reported, and the rule that says so.
#[derive(Serialize)]
struct Suppressed<'a> {
    id: FindingId,
    kind: &'static str,
    summary: String,
    rule: &'a str,
}

/// A finding of the baseline.
#[derive(Serialize)]
struct Gone<'a> {
    id: FindingId,
    kind: &'static str,
    summary: &'a str,
}

#[derive(Serialize)]
struct Finding<'a> {
    id: FindingId,
    kind: &'static str,
    status: &'static str,
    /// `new` or `unchanged`, if there is a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<&'static str>,
    verdict: Option<&'static str>,
    summary: String,
    analysis: &'a str,
    analyses: &'a [String],
    subject: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    occurrences: u64,
    sites: Vec<Place<'a>>,
    /// The values that differ between two executions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    states: Vec<State<'a>>,
    /// The serial executions that were tried and do not explain what was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<Serial<'a>>,
    schedule: Option<&'a str>,
    /// The schedules of both executions.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    schedules: &'a [String],
    /// Directed executions spent on it, if it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u64>,
    /// Controlled executions of the command when it was first seen or confirmed, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    orders: Vec<Order<'a>>,
    /// The interleaving in which it happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    interleaving: Option<interleaving::Shown<'a>>,
    /// An execution that went otherwise: the other order of a race, or one that passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Compared<'a>>,
}

/// An execution to compare with the one that shows the finding.
#[derive(Serialize)]
struct Compared<'a> {
    execution: String,
    interleaving: interleaving::Shown<'a>,
}

/// A variable and its inferred discipline.
#[derive(Serialize)]
struct Variable<'a> {
    variable: &'a str,
    discipline: Option<&'a str>,
    instances: u64,
    accesses: u64,
    threads: usize,
    locks: &'a [String],
    clang: Option<&'a str>,
    race: Option<&'a str>,
    others: &'a [crate::Other],
    exceptions: Vec<Exception<'a>>,
    sites: Vec<At<'a>>,
}

/// A place without a lock that nearly all others hold.
#[derive(Serialize)]
struct Exception<'a> {
    lock: &'a str,
    #[serde(flatten)]
    at: At<'a>,
}

/// A place alone.
#[derive(Serialize)]
struct At<'a> {
    site: String,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<&'a str>,
}

/// A value that differs; null where an execution did not come to it.
#[derive(Serialize)]
struct State<'a> {
    name: &'a str,
    first: Option<Given<'a>>,
    second: Option<Given<'a>>,
}

/// Orders of atomic blocks: the first ones, and how many more there were.
#[derive(Serialize)]
struct Serial<'a> {
    witness: &'static str,
    orders: Vec<SerialOrder<'a>>,
    more_differ: u64,
    more_unable: u64,
}

/// Blocks that were executed alone in this order; what they observed, if that is how it differs.
#[derive(Serialize)]
struct SerialOrder<'a> {
    blocks: Vec<SerialBlock<'a>>,
    outcome: String,
    states: Vec<State<'a>>,
}

#[derive(Serialize)]
struct SerialBlock<'a> {
    thread: &'a str,
    name: &'a str,
    nth: u32,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Given<'a> {
    Value(&'a Value),
    Digest { digest: &'a str },
}

/// One order of the parts of a confirmed finding, and what came of it.
#[derive(Serialize)]
struct Order<'a> {
    order: String,
    outcome: String,
    schedule: &'a str,
}

#[derive(Serialize)]
struct Place<'a> {
    /// The site as text: `file:line:column`, or the label where that is all there is.
    site: String,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<&'a str>,
    thread: &'a str,
    role: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    /// Absent if the locks are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Vec<Held<'a>>>,
    /// The site is the most likely one of several.
    #[serde(skip_serializing_if = "is_false")]
    approximate: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<StackFrame<'a>>,
    /// The calls led to the site, but perhaps at another time than the access.
    #[serde(skip_serializing_if = "is_false")]
    stack_likely: bool,
}

/// A function that was active, innermost first.
#[derive(Serialize)]
struct StackFrame<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<&'a str>,
}

#[derive(Serialize)]
struct Held<'a> {
    lock: &'a str,
    mode: &'static str,
    site: String,
}

#[derive(Serialize)]
struct Stats<'a> {
    traces: usize,
    events: u64,
    threads: usize,
    analyses: &'a [String],
    bounds: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interleavings: Option<Interleavings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallelism: Option<Parallelism>,
    #[serde(flatten)]
    control: Option<Effort>,
}

/// Executions with atomic blocks where something is observed.
#[derive(Serialize)]
struct Interleavings {
    /// In which blocks overlapped.
    overlapping: u64,
    linearizable: u64,
    not_linearizable: u64,
    undecided: u64,
    /// Serial orders that were looked at, in all.
    orders: Orders,
    /// Serial executions that this took.
    serial_executions: u64,
}

#[derive(Serialize)]
struct Orders {
    linearizable: u64,
    not_linearizable: u64,
}

#[derive(Serialize)]
struct Parallelism {
    tasks: u64,
    serializable: u64,
    twins: u64,
    sequential_executions: u64,
    all: bool,
    nodes: u64,
    irrelevant: u64,
    outside: u64,
    strict_circles: u64,
    circles: u64,
}

#[derive(Serialize)]
struct Effort {
    schedules: u64,
    seconds: f64,
    seed: u64,
    complete: bool,
    remarks: Vec<String>,
}

/// The report as one JSON document and a line end.
fn render(report: &Report, _: &mut View<'_>) -> String {
    let document = Document {
        version: VERSION,
        tool: "selvedge",
        findings: report
            .sorted()
            .into_iter()
            .map(|case| Finding { baseline: report.since(case).map(Since::name), ..finding(case) })
            .collect(),
        gone: report.baseline.as_ref().map(|_| report.gone().into_iter().map(gone).collect()),
        suppressed: report.stats.suppressed.iter().map(suppressed).collect(),
        variables: report.variables.as_ref().map(|all| all.iter().map(variable).collect()),
        stats: Stats {
            traces: report.stats.traces,
            events: report.stats.events,
            threads: report.stats.threads,
            analyses: &report.stats.analyses,
            bounds: report.stats.bounds.iter().map(Bound::words).collect(),
            conflicts: Some(report.stats.conflicts).filter(|&n| n > 0),
            interleavings: report.stats.interleavings.map(|i| Interleavings {
                overlapping: i.overlapping(),
                linearizable: i.explained.interleavings,
                not_linearizable: i.unexplained.interleavings,
                undecided: i.unforced + i.too_many,
                orders: Orders {
                    linearizable: i.explained.orders,
                    not_linearizable: i.unexplained.orders,
                },
                serial_executions: i.executions,
            }),
            parallelism: report.stats.parallelism.map(|p| Parallelism {
                tasks: p.tasks,
                serializable: p.serializable,
                twins: p.twins,
                sequential_executions: p.sequential,
                all: p.all,
                nodes: p.nodes,
                irrelevant: p.irrelevant,
                outside: p.outside,
                strict_circles: p.strict,
                circles: p.circles,
            }),
            control: report.stats.control.as_ref().map(|c| Effort {
                schedules: c.schedules,
                seconds: c.seconds,
                seed: c.seed,
                complete: c.complete,
                remarks: c.remarks.iter().map(words::remark).collect(),
            }),
        },
    };
    let text = serde_json::to_string_pretty(&document).expect("strings and numbers serialise");
    escape::json(&text) + "\n"
}

fn gone(known: &Known) -> Gone<'_> {
    Gone { id: known.id, kind: known.kind.name(), summary: &known.summary }
}

fn suppressed(of: &crate::Suppressed) -> Suppressed<'_> {
    let (id, kind) = (of.case.id, of.case.kind.name());
    Suppressed { id, kind, summary: words::summary(&of.case), rule: &of.rule }
}

fn variable(of: &crate::Variable) -> Variable<'_> {
    Variable {
        variable: &of.variable,
        discipline: of.discipline.as_deref(),
        instances: of.instances,
        accesses: of.accesses,
        threads: of.threads,
        locks: &of.locks,
        clang: of.clang.as_deref(),
        race: of.race.as_deref(),
        others: &of.others,
        exceptions: of
            .exceptions
            .iter()
            .map(|e| Exception { lock: &e.lock, at: at(&e.site) })
            .collect(),
        sites: of.sites.iter().map(at).collect(),
    }
}

fn at(site: &Site) -> At<'_> {
    let frame = site.frame();
    let number = |n: u32| Some(n).filter(|&n| n > 0);
    At {
        site: site.to_string(),
        file: frame.map(|f| &*f.file),
        line: frame.and_then(|f| number(f.line)),
        column: frame.and_then(|f| number(f.column)),
        function: frame.map(|f| &*f.function).filter(|f| !f.is_empty()),
    }
}

fn finding(case: &Case) -> Finding<'_> {
    let control = case.control.as_ref();
    let orders = control.map_or(&[][..], |c| &c.orders).iter().map(|o| Order {
        order: words::order(o),
        outcome: words::led_to(o),
        schedule: &o.schedule,
    });
    Finding {
        id: case.id,
        kind: case.kind.name(),
        status: case.status.name(),
        baseline: None,
        verdict: case.verdict.map(Verdict::name),
        summary: words::summary(case),
        analysis: case.analyses.first().map_or("", String::as_str),
        analyses: &case.analyses,
        subject: words::names(&case.subject),
        notes: case.notes.iter().map(words::note).collect(),
        occurrences: case.occurrences,
        sites: case.places.iter().map(|p| place(p, case)).collect(),
        states: case.states.iter().map(state).collect(),
        serial: case.serial.as_ref().map(serial),
        schedules: control.map_or(&[][..], |c| &c.schedules),
        schedule: control.and_then(|c| c.schedule.as_deref()),
        attempts: control.map(|c| c.attempts),
        after: control.and_then(|c| c.after),
        orders: orders.collect(),
        interleaving: control.and_then(|c| c.rows()).map(interleaving::shown),
        compared: control.and_then(|c| c.beside()).map(|[(execution, rows), _]| Compared {
            execution,
            interleaving: interleaving::shown(rows),
        }),
    }
}

fn serial(of: &crate::Serial) -> Serial<'_> {
    Serial {
        witness: of.witness.name(),
        orders: of.orders.iter().map(serial_order).collect(),
        more_differ: of.more_differ,
        more_unable: of.more_unable,
    }
}

fn serial_order(of: &crate::serial::SerialOrder) -> SerialOrder<'_> {
    fn block(of: &crate::serial::Block) -> SerialBlock<'_> {
        SerialBlock { thread: &of.thread, name: &of.name, nth: of.nth }
    }
    let states = match &of.outcome {
        crate::serial::SerialOutcome::Differs(states) => states.iter().map(state).collect(),
        _ => Vec::new(),
    };
    let outcome = words::serial_outcome(&of.outcome);
    SerialOrder { blocks: of.blocks.iter().map(block).collect(), outcome, states }
}

fn state(of: &crate::State) -> State<'_> {
    fn given(of: &crate::Given) -> Option<Given<'_>> {
        match of {
            crate::Given::Value(value) => Some(Given::Value(value)),
            crate::Given::Digest(digest) => Some(Given::Digest { digest }),
            crate::Given::Nothing => None,
        }
    }
    State { name: &of.name, first: given(&of.first), second: given(&of.second) }
}

fn place<'a>(p: &'a crate::Place, case: &Case) -> Place<'a> {
    let frame = p.site.frame();
    // What ranks access is worth naming: it may belong to another rank.
    let object = match p.role.is_of_rank() {
        true => words::names(&case.subject).pop(),
        false => words::object(&p.role),
    };
    Place {
        site: p.site.to_string(),
        file: frame.map(|f| &*f.file).filter(|n| !n.is_empty()),
        line: frame.map(|f| f.line).filter(|&n| n > 0),
        column: frame.map(|f| f.column).filter(|&n| n > 0),
        function: frame.map(|f| &*f.function).filter(|n| !n.is_empty()),
        thread: &p.thread,
        role: words::role(&p.role),
        object,
        held: p.held.as_ref().map(|held| held.iter().map(lock).collect()),
        approximate: p.approximate,
        stack: stack(p),
        stack_likely: p.stack_likely,
    }
}

/// The whole stack, the place itself first; empty if the stack is only the place.
fn stack(p: &crate::Place) -> Vec<StackFrame<'_>> {
    let frames = p.frames();
    if frames.len() < 2 {
        return Vec::new();
    }
    frames.into_iter().map(stack_frame).collect()
}

fn stack_frame(f: &Frame) -> StackFrame<'_> {
    StackFrame {
        file: Some(&*f.file).filter(|t| !t.is_empty()),
        line: Some(f.line).filter(|&n| n > 0),
        column: Some(f.column).filter(|&n| n > 0),
        function: Some(&*f.function).filter(|t| !t.is_empty()),
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn lock(h: &Lock) -> Held<'_> {
    let mode = match h.mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
    };
    Held { lock: &h.name, mode, site: h.site.to_string() }
}
