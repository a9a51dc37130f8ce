//! `atomicity`: conflict serializability of atomic regions, with a graph. The engine that explains.
//!
//! Reports what [`aerodrome`](crate::aerodrome) reports, at the same operations and of the same
//! regions, with the whole cycle of transactions and with blame: if the operation that closes the cycle
//! comes after an earlier operation of its own transaction by way of the operations of others, that
//! transaction is not atomic, even if all others are, and only its regions are named as entered
//! ([`Role::Enter`](selvedge_model::Role::Enter)). Otherwise each transaction on the cycle is atomic by
//! itself but they are not together, and the regions of all are named.
//!
//! Source: Velodrome (Flanagan, Freund and Yi, PLDI 2008): one node for each outermost region and each
//! operation outside, edges for conflicts, collection of nodes, merging of single operations, blame by
//! increasing cycles, refutation of the nested blocks that the cycle leaves and enters. The graph is
//! `transactions`.
//!
//! Deviations. A cycle is reported and its last edge left out, and the analysis goes on; a region is
//! reported once for each time it is entered. Blame is given only if two edges between the same
//! transactions suffice to prove it.
//!
//! **Guarantee**: as for AeroDrome. Blame is never wrong; it may be withheld.
//!
//! Cost: O(threads) edges at most for each operation, each with a search through the transactions that
//! come after its target, usually none. Memory follows the memory that the program touches, and the
//! transactions that ended after something that is still open: a region that stays open for the whole
//! execution keeps all transactions that come after it. AeroDrome does not have this weakness.

use selvedge_model::{
    Event, Finding, Findings, Kind, Op, RegionId, RegionKind, Status, Subject, ThreadId,
};

use crate::Analysis;
use crate::common::conflicts::Conflicts;
use crate::common::role::role_of;
use crate::common::transactions::{Cycle, Occurrence, Step, Transactions};
use crate::entry::{Accesses, Entry, Needs};
use crate::lockregions::LockRegions;

const NAME: &str = "atomicity";

/// The analysis.
#[derive(Debug)]
pub struct Velodrome {
    kind: RegionKind,
    conflicts: Conflicts<Occurrence>,
    graph: Transactions,
    threads: Vec<Thread>,
    time: u64,
    sources: Vec<Occurrence>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The regions it is in, outermost first.
    open: Vec<Open>,
    /// Its last operation, or that of its forker. In a region it belongs to the node of the region.
    last: Occurrence,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    region: RegionId,
    enter: Step,
    reported: bool,
}

impl Default for Velodrome {
    fn default() -> Velodrome {
        Velodrome::new()
    }
}

impl Velodrome {
    /// Checks the regions that are meant to be atomic.
    pub fn new() -> Velodrome {
        Velodrome::of(RegionKind::Atomic)
    }

    /// Checks regions of a kind, as if they were meant to be atomic.
    pub fn of(kind: RegionKind) -> Velodrome {
        Velodrome {
            kind,
            conflicts: Conflicts::default(),
            graph: Transactions::default(),
            threads: Vec::new(),
            time: 0,
            sources: Vec::new(),
        }
    }

    /// How many transactions are remembered.
    pub fn transactions(&self) -> usize {
        self.graph.len()
    }

    fn thread(&mut self, id: ThreadId) -> &mut Thread {
        if id.index() >= self.threads.len() {
            self.threads.resize_with(id.index() + 1, Thread::default);
        }
        &mut self.threads[id.index()]
    }

    fn exit(&mut self, thread: ThreadId) {
        let thread = self.thread(thread);
        thread.open.pop();
        if thread.open.is_empty() {
            let node = thread.last.node;
            self.graph.close(node);
        }
    }

    fn end(&mut self, thread: ThreadId) {
        while !self.thread(thread).open.is_empty() {
            self.exit(thread);
        }
    }

    fn report(&mut self, event: &Event, cycle: &Cycle, out: &mut Findings) {
        let open = &mut self.threads[event.thread.index()].open;
        let latest_exit = cycle.exits.iter().map(|s| s.time).max().unwrap_or(0);
        for region in open.iter_mut().filter(|o| !o.reported && o.enter.time <= latest_exit) {
            region.reported = true;
            let mut places = vec![region.enter.place()];
            if !cycle.blames_last {
                places.extend(cycle.others.iter().map(Step::place));
            }
            for (tail, head) in &cycle.edges {
                places.extend([tail.step.place(), head.step.place()]);
            }
            out.report(Finding {
                kind: Kind::AtomicityViolation,
                status: Status::Observed,
                verdict: None,
                analyses: vec![NAME],
                subject: Subject::Region(region.region),
                places,
                target: None,
                occurrences: 1,
            });
        }
    }
}

impl Analysis for Velodrome {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        self.time += 1;
        let me = event.thread;
        let step = Step { thread: me, site: event.site, role: role_of(&event.op), time: self.time };
        let mut sources = std::mem::take(&mut self.sources);
        sources.clear();
        self.conflicts.sources(event, |from, _| sources.push(*from));
        if let Op::Join(child) = event.op {
            self.end(child);
            sources.push(self.thread(child).last);
        }
        let last = self.thread(me).last;
        let inside = !self.thread(me).open.is_empty();
        if let Op::RegionEnter(region, kind) = event.op
            && kind == self.kind
        {
            let node = if inside { last.node } else { self.graph.begin(last, step) };
            let thread = self.thread(me);
            thread.open.push(Open { region, enter: step, reported: false });
            thread.last = Occurrence { node, step };
        } else if inside {
            let now = Occurrence { node: last.node, step };
            self.thread(me).last = now;
            for &from in &sources {
                if let Some(cycle) = self.graph.add(from, now) {
                    self.report(event, &cycle, out);
                }
            }
        } else {
            sources.push(last);
            let node = self.graph.single(&sources, step);
            self.thread(me).last = Occurrence { node, step };
        }
        let now = self.thread(me).last;
        self.conflicts.record(event, &now);
        match event.op {
            Op::RegionExit(region)
                if self.thread(me).open.last().is_some_and(|o| o.region == region) =>
            {
                self.exit(me);
            }
            Op::Fork(child) => self.thread(child).last = now,
            Op::End => self.end(me),
            Op::Join(_)
            | Op::Begin
            | Op::Fence(_)
            | accesses!()
            | locks!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
        self.sources = sources;
    }

    fn restart(&mut self) {
        self.conflicts.clear();
        self.graph.clear();
        self.threads.clear();
        self.time = 0;
    }
}

/// Velodrome.
pub const ENTRY: Entry = Entry {
    accesses: Accesses::Racy,
    needs: Needs::AtomicRegions,
    engine_of: Some(NAME),
    locked: Some(|| Box::new(LockRegions::new(Velodrome::new()))),
    ..Entry::of(
        "velodrome",
        "as atomicity, but slower, and says which region is to blame (Velodrome)",
        || Box::new(Velodrome::new()),
    )
};
