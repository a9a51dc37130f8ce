//! The graph of transactions: which come before which, while it can still matter.
//!
//! A node is a transaction, an edge an operation of one that comes before and conflicts with an
//! operation of another. An edge that would close a cycle is not added but reported as a [`Cycle`].
//!
//! Source: the transactional happens-before graph of Velodrome (Flanagan, Freund and Yi, PLDI 2008) and
//! SingleTrack (figure 5), with Velodrome's garbage collection: a transaction that has ended and has no
//! incoming edge will never lie on a cycle, because it gets no more incoming edges. It is collected,
//! with its outgoing edges. Marks in objects refer to nodes weakly, by number and generation.
//! Single operations outside of regions get no node if nothing comes before them, and share the node
//! of the last single operation before them if everything else comes before that anyway.
//!
//! Between two nodes there are at most two edges for each thread that they leave: the first and the
//! latest. The blame of a cycle ([`Cycle::blames_last`]) is therefore certain when given, but may be
//! withheld where a third edge would prove it.
//!
//! Cost: an edge costs a search through what comes after its target, which for a transaction that
//! nothing comes after yet, the usual case, is nothing. Memory follows the transactions that have ended
//! after something that is still open.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use selvedge_model::{Place, Role, SiteId, ThreadId};

use crate::common::conflicts::Mark;

/// A node of which it is known whether it is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeId {
    index: u32,
    generation: u32,
}

impl NodeId {
    /// No node; generations start at one.
    pub(crate) const NONE: NodeId = NodeId { index: 0, generation: 0 };
}

/// An operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Step {
    pub(crate) thread: ThreadId,
    pub(crate) site: SiteId,
    pub(crate) role: Role,
    /// The how manieth event of the execution.
    pub(crate) time: u64,
}

impl Step {
    pub(crate) fn place(&self) -> Place {
        Place { thread: self.thread, site: self.site, role: self.role, held: Vec::new() }
    }
}

/// An operation with its transaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Occurrence {
    pub(crate) node: NodeId,
    pub(crate) step: Step,
}

impl Default for Occurrence {
    fn default() -> Occurrence {
        let step = Step { thread: ThreadId(0), site: SiteId(0), role: Role::Read, time: 0 };
        Occurrence { node: NodeId::NONE, step }
    }
}

impl Mark for Occurrence {
    fn is_none(&self) -> bool {
        self.node == NodeId::NONE
    }

    fn thread(&self) -> ThreadId {
        self.step.thread
    }

    fn covers(&self, _: &Occurrence) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    tail: Step,
    head: Step,
}

#[derive(Debug, Default)]
struct Node {
    generation: u32,
    /// How many reasons there are for operations to come that belong to this transaction.
    open: u32,
    /// The beginning of a region; nothing for single operations, which may share a node.
    first: Option<Step>,
    incoming: u32,
    // invariant: targets are nodes that exist; sorted by target.
    outgoing: Vec<Edge>,
}

/// A cycle, from the transaction whose operation closes it back to that operation.
#[derive(Debug)]
pub(crate) struct Cycle {
    /// Operations that come one before the other, with their nodes; the first and the last belong to
    /// the same transaction, as do the second of each pair and the first of the next.
    pub(crate) edges: Vec<(Occurrence, Occurrence)>,
    /// Operations of the transaction from which a path leads to the operation that closes the cycle.
    pub(crate) exits: Vec<Step>,
    /// The beginnings of the other regions on the cycle.
    pub(crate) others: Vec<Step>,
    /// Whether the last operation comes after the first one of the cycle by operations alone, without
    /// any other transaction being taken for atomic: then the closing transaction is not atomic
    /// whatever the others are.
    pub(crate) blames_last: bool,
}

/// The graph.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    nodes: Vec<Node>,
    free: Vec<u32>,
    /// Nodes that the search under way has seen carry its number.
    seen: Vec<u64>,
    searches: u64,
}

impl Transactions {
    /// A new transaction with operations to come, after `previous`.
    pub(crate) fn begin(&mut self, previous: Occurrence, first: Step) -> NodeId {
        let node = self.new_node(Some(first));
        // A node without outgoing edges closes no cycle.
        let _ = self.add(previous, Occurrence { node, step: first });
        node
    }

    /// One more reason for operations to come.
    pub(crate) fn open(&mut self, node: NodeId) {
        if let Some(i) = self.index(node) {
            self.nodes[i].open += 1;
        }
    }

    /// One reason fewer; after the last one the transaction has ended.
    pub(crate) fn close(&mut self, node: NodeId) {
        if let Some(i) = self.index(node) {
            self.nodes[i].open = self.nodes[i].open.saturating_sub(1);
            self.collect(i);
        }
    }

    /// Whether there are operations to come.
    pub(crate) fn is_open(&self, node: NodeId) -> bool {
        self.index(node).is_some_and(|i| self.nodes[i].open > 0)
    }

    /// The transaction of a single operation after `previous`: no node if it comes after nothing that
    /// is still there.
    pub(crate) fn single(&mut self, previous: &[Occurrence], step: Step) -> NodeId {
        let mut sources: Vec<Occurrence> =
            previous.iter().copied().filter(|p| self.index(p.node).is_some()).collect();
        if sources.is_empty() {
            return NodeId::NONE;
        }
        sources.sort_by_key(|s| (s.node.index, Reverse(s.step.time)));
        sources.dedup_by_key(|s| s.node.index);
        let shared = sources.iter().copied().find(|&candidate| {
            self.nodes[candidate.node.index as usize].first.is_none()
                && sources.iter().all(|&s| self.adds_nothing(s, candidate.node.index))
        });
        if let Some(shared) = shared {
            return shared.node;
        }
        let node = self.new_node(None);
        for source in sources {
            let _ = self.add(source, Occurrence { node, step });
        }
        self.close(node);
        node
    }

    /// The transaction of `to`, with operations to come, comes after `from`; unless that closes a cycle,
    /// which is returned instead.
    pub(crate) fn add(&mut self, from: Occurrence, to: Occurrence) -> Option<Cycle> {
        let source = self.index(from.node)?;
        let target = self.index(to.node)?;
        if source == target {
            return None;
        }
        if self.reaches(target as u32, source as u32) {
            return Some(self.cycle(from, to));
        }
        let edge = Edge { to: target as u32, tail: from.step, head: to.step };
        let outgoing = &mut self.nodes[source].outgoing;
        let same = |e: &&mut Edge| e.to == edge.to && e.tail.thread == edge.tail.thread;
        let at = outgoing.partition_point(|e| e.to < edge.to);
        let mut known = outgoing[at..].iter_mut().take_while(|e| e.to == edge.to).filter(same);
        match (known.next(), known.next()) {
            (Some(_), Some(latest)) => {
                if latest.tail.time < edge.tail.time {
                    *latest = edge;
                }
            }
            (Some(first), None) if first.tail.time >= edge.tail.time => {}
            _ => {
                let end = outgoing.partition_point(|e| e.to <= edge.to);
                outgoing.insert(end, edge);
                self.nodes[target].incoming += 1;
            }
        }
        None
    }

    /// Forgets every transaction.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.free.clear();
        self.seen.clear();
        self.searches = 0;
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        let i = node.index as usize;
        (self.nodes.get(i)?.generation == node.generation).then_some(i)
    }

    fn new_node(&mut self, first: Option<Step>) -> NodeId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node { generation: 1, ..Node::default() });
            self.seen.push(0);
            (self.nodes.len() - 1) as u32
        });
        let node = &mut self.nodes[index as usize];
        node.open = 1;
        node.first = first;
        NodeId { index, generation: node.generation }
    }

    fn collect(&mut self, i: usize) {
        let mut dead = vec![i];
        while let Some(i) = dead.pop() {
            let node = &mut self.nodes[i];
            if node.open > 0 || node.incoming > 0 {
                continue;
            }
            node.generation += 1;
            self.free.push(i as u32);
            for edge in std::mem::take(&mut self.nodes[i].outgoing) {
                let target = &mut self.nodes[edge.to as usize];
                target.incoming -= 1;
                if target.incoming == 0 {
                    dead.push(edge.to as usize);
                }
            }
        }
    }

    fn reaches(&mut self, from: u32, to: u32) -> bool {
        if from == to {
            return true;
        }
        if self.nodes[from as usize].outgoing.is_empty() {
            return false;
        }
        self.searches += 1;
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            for edge in &self.nodes[at as usize].outgoing {
                if edge.to == to {
                    return true;
                }
                if self.seen[edge.to as usize] != self.searches {
                    self.seen[edge.to as usize] = self.searches;
                    stack.push(edge.to);
                }
            }
        }
        false
    }

    /// Whether the edge from `source` to a node is not needed, also not for finding out which of the
    /// nested regions of a transaction with operations to come a cycle leaves.
    fn adds_nothing(&mut self, source: Occurrence, to: u32) -> bool {
        let node = &self.nodes[source.node.index as usize];
        if node.open > 0 {
            let Step { thread, time, .. } = source.step;
            let as_late = |e: &Edge| e.to == to && e.tail.thread == thread && e.tail.time >= time;
            return node.outgoing.iter().any(as_late);
        }
        self.reaches(source.node.index, to)
    }

    /// The cycle that an edge would close.
    fn cycle(&mut self, from: Occurrence, to: Occurrence) -> Cycle {
        let by_operations = self.path(to.node.index, from.node.index, Some(from.step.time));
        let blames_last = by_operations.is_some();
        let path = by_operations
            .or_else(|| self.path(to.node.index, from.node.index, None))
            .expect("only called if there is a path");
        let occurrence = |index: u32, step: Step| {
            let generation = self.nodes[index as usize].generation;
            Occurrence { node: NodeId { index, generation }, step }
        };
        let mut at = to.node.index;
        let mut edges: Vec<(Occurrence, Occurrence)> = Vec::new();
        for edge in path {
            edges.push((occurrence(at, edge.tail), occurrence(edge.to, edge.head)));
            at = edge.to;
        }
        edges.push((from, to));
        let others = edges
            .iter()
            .filter(|(_, e)| e.node != to.node)
            .filter_map(|(_, e)| self.nodes[e.node.index as usize].first)
            .collect();
        let leaving = self.nodes[to.node.index as usize].outgoing.clone();
        let exits = leaving
            .into_iter()
            .filter(|edge| self.reaches(edge.to, from.node.index))
            .map(|edge| edge.tail)
            .collect();
        Cycle { edges, exits, others, blames_last }
    }

    /// A path with few edges. With a deadline, a path that leaves no node by an operation before the
    /// one it came in by, and arrives by the deadline.
    fn path(&self, from: u32, to: u32, deadline: Option<u64>) -> Option<Vec<Edge>> {
        // Ordered by arrival, which makes it the earliest at every node; without a deadline, by the
        // number of edges.
        let mut queue = BinaryHeap::from([Reverse((0u64, from))]);
        let mut came_by: Vec<Option<(u32, Edge)>> = vec![None; self.nodes.len()];
        let mut done = vec![false; self.nodes.len()];
        let mut reached = vec![u64::MAX; self.nodes.len()];
        while let Some(Reverse((cost, at))) = queue.pop() {
            if std::mem::replace(&mut done[at as usize], true) {
                continue;
            }
            if at == to {
                break;
            }
            for edge in &self.nodes[at as usize].outgoing {
                let next = match deadline {
                    Some(_) if edge.tail.time < cost => continue,
                    Some(_) => edge.head.time,
                    None => cost + 1,
                };
                if next < reached[edge.to as usize] {
                    reached[edge.to as usize] = next;
                    came_by[edge.to as usize] = Some((at, *edge));
                    queue.push(Reverse((next, edge.to)));
                }
            }
        }
        if deadline.is_some_and(|deadline| reached[to as usize] > deadline) {
            return None;
        }
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let (previous, edge) = came_by[at as usize]?;
            path.push(edge);
            at = previous;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(time: u64) -> Step {
        Step { thread: ThreadId(0), site: SiteId(0), role: Role::Write, time }
    }

    fn at(node: NodeId, time: u64) -> Occurrence {
        Occurrence { node, step: step(time) }
    }

    #[test]
    fn ended_transactions_that_nothing_comes_before_are_collected_with_what_follows() {
        let mut g = Transactions::default();
        let a = g.begin(Occurrence::default(), step(1));
        let b = g.begin(Occurrence::default(), step(2));
        assert!(g.add(at(a, 3), at(b, 4)).is_none());
        g.close(b);
        assert_eq!(g.len(), 2, "an open transaction comes before the ended one");
        assert_ne!(g.single(&[at(b, 4)], step(5)), NodeId::NONE);
        assert_eq!(g.len(), 3);
        g.close(a);
        assert_eq!(g.len(), 0);
        assert_eq!(g.single(&[at(b, 4)], step(6)), NodeId::NONE);
    }

    #[test]
    fn single_operations_share_a_node() {
        let mut g = Transactions::default();
        let a = g.begin(Occurrence::default(), step(1));
        let first = g.single(&[at(a, 2)], step(3));
        let second = g.single(&[at(a, 2), at(first, 3)], step(4));
        assert_eq!(first, second);
        let late = g.single(&[at(a, 4), at(first, 3)], step(5));
        assert_ne!(first, late, "a is left by a later operation, perhaps of a nested region");
        let b = g.begin(Occurrence::default(), step(5));
        let third = g.single(&[at(b, 6), at(first, 3)], step(7));
        assert_ne!(first, third, "b does not come before the first");
    }

    #[test]
    fn blame_needs_a_path_of_operations() {
        let mut g = Transactions::default();
        let a = g.begin(Occurrence::default(), step(1));
        let b = g.begin(Occurrence::default(), step(2));
        assert!(g.add(at(a, 3), at(b, 6)).is_none());
        let withheld = g.add(at(b, 5), at(a, 7)).expect("a cycle");
        assert!(!withheld.blames_last, "b was left before it was entered");
        let blamed = g.add(at(b, 8), at(a, 9)).expect("a cycle");
        assert!(blamed.blames_last);
        assert_eq!(blamed.edges.len(), 2);
        assert_eq!(blamed.exits.len(), 1);
    }
}
