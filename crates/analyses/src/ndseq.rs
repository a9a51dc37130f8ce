//! `ndseq`: parallel as if sequential.
//!
//! Reports an execution whose result, as far as its data flow shows, no sequential execution of the same tasks
//! has, with the circle of conflicts that cannot be undone. Tasks are regions marked `task`, or started threads;
//! regions marked `star` may be left out; the result is what is in focus, or all memory at the end. It says nothing
//! about a trace without data flow; `check` refuses to decide one.
//!
//! Source: Burnim, "Specifying and Checking Correctness of Parallel Programs" (2012), chapter 6; the algorithm is
//! [`selvedge_specs::ndseq`].
//!
//! Deviations: those of that module. A finding is predicted only: whether a sequential execution with another
//! control flow has the same result can only be told by running it.
//!
//! **Guarantee**: an execution without finding has a sequential twin, if its data flow was recorded completely and
//! what is marked to commute does. May report executions that have one.
//!
//! Cost: about 40 bytes and O(log w) for each event, w being the writes to one location.

use rustc_hash::FxHashSet;
use selvedge_model::{Event, Finding, Findings, Kind, Place, Range, Role, SiteId, Status, Subject};
use selvedge_specs::ndseq::graph::Reason;
use selvedge_specs::ndseq::{self, Act, Circle, Execution, NodeId, Recorder};

use crate::entry::{Entry, Needs};
use crate::{Analysis, Bound};

const NAME: &str = "ndseq";

/// How many circles of one execution are reported.
const MAX_FINDINGS: usize = 100;

/// The analysis.
#[derive(Default, Debug)]
pub struct NdSeq {
    recorder: Recorder,
    unreported: u64,
}

impl Analysis for NdSeq {
    fn on_event(&mut self, event: &Event, _: &mut Findings) {
        self.recorder.on_event(event);
    }

    fn finish(&mut self, out: &mut Findings) {
        if !self.recorder.has_flow() {
            return;
        }
        let execution = std::mem::take(&mut self.recorder).finish();
        let check = ndseq::check(&execution);
        let mut sites: FxHashSet<Vec<SiteId>> = FxHashSet::default();
        for circle in &check.circles {
            let places = places(&execution, circle);
            if !sites.insert(places.iter().map(|p| p.site).collect()) {
                continue;
            }
            if sites.len() > MAX_FINDINGS {
                self.unreported += 1;
                continue;
            }
            out.report(finding(&execution, circle));
        }
    }

    fn restart(&mut self) {
        self.recorder = Recorder::default();
        self.unreported = 0;
    }

    fn bound(&self) -> Option<Bound> {
        (self.unreported > 0).then_some(Bound {
            what: "circles of conflicts are reported",
            limit: MAX_FINDINGS as u64,
            exceeded: self.unreported,
        })
    }
}

/// The finding of a circle, predicted.
pub fn finding(execution: &Execution, circle: &Circle) -> Finding {
    Finding {
        kind: Kind::ParallelismViolation,
        status: Status::Predicted,
        verdict: None,
        analyses: vec![NAME],
        subject: Subject::Memory(memory(execution, circle)),
        places: places(execution, circle),
        target: None,
        occurrences: 1,
    }
}

/// Both sides of each conflict.
fn places(execution: &Execution, circle: &Circle) -> Vec<Place> {
    let place = |node: NodeId| Place {
        thread: execution.thread(node),
        site: execution.nodes()[node as usize].site,
        role: match execution.nodes()[node as usize].act {
            Act::Write => Role::Write,
            Act::Read | Act::Focus | Act::Let | Act::Branch => Role::Read,
        },
        held: Vec::new(),
    };
    let sides = circle.edges.iter().flat_map(|edge| match edge.reason {
        Reason::Conflict(first, second) => vec![place(first), place(second)],
        Reason::Order => Vec::new(),
    });
    sides.collect()
}

/// The memory of the first conflict that is about memory.
fn memory(execution: &Execution, circle: &Circle) -> Range {
    let memory = circle.edges.iter().find_map(|edge| match edge.reason {
        Reason::Conflict(first, _) => execution.memory(first),
        Reason::Order => None,
    });
    memory.unwrap_or(Range { start: 0, len: 0 })
}

/// NDSeq.
pub const ENTRY: Entry = Entry {
    needs: Needs::DataFlow,
    ..Entry::of(NAME, "executions whose result no sequential execution has (NDSeq)", || {
        Box::new(NdSeq::default())
    })
};
