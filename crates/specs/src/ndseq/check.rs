//! Does an execution have a sequential twin?
//!
//! It has, if the pieces of the work can be put into an order that keeps the order of all relevant conflicts: the
//! graph has no circle. The order and the stars that are left out then make the sequential execution.
//!
//! Source: algorithm CheckCycle of figure 6.8 and theorem 22. Strongly connected components after Tarjan, with a
//! stack of our own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::execution::{Execution, NONE, NodeId, PieceId};
use super::graph::{Graph, Reason};
use super::relevance::{Relevance, relevance};
use super::stars::Stars;

/// How many circles of one strongly connected part are looked for.
const MAX_CIRCLES: usize = 64;

/// What the check found.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is relevant.
    pub relevance: Relevance,
    /// The circles: none if the execution conforms.
    pub circles: Vec<Circle>,
    /// The pieces in an order that keeps the order of conflicts: all of them, if there is no circle.
    pub order: Vec<PieceId>,
}

impl Check {
    /// Whether the execution conforms.
    pub fn conforms(&self) -> bool {
        self.circles.is_empty()
    }
}

/// Pieces each of which comes before the next, and the last before the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circle {
    /// In the order of the circle, beginning with the conflict that happened first.
    pub edges: Vec<Edge>,
}

/// One piece comes before another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Edge {
    pub from: PieceId,
    pub to: PieceId,
    pub reason: Reason,
}

/// Checks an execution with the stars that the program marks.
pub fn check(execution: &Execution) -> Check {
    check_with(execution, &Stars::marked(execution))
}

/// Checks an execution with the given stars.
pub fn check_with(execution: &Execution, stars: &Stars) -> Check {
    let relevance = relevance(execution, stars);
    let graph = Graph::of(execution, Some(&relevance));
    let parts = Parts::of(&graph);
    Check { circles: circles(&graph, &parts), order: order(&graph), relevance }
}

/// The circles if every node counts: strict conflict serializability.
pub fn strict(execution: &Execution) -> Vec<Circle> {
    let graph = Graph::of(execution, None);
    let parts = Parts::of(&graph);
    circles(&graph, &parts)
}

/// Whether an execution conforms, without saying why not.
pub fn conforms_with(execution: &Execution, stars: &Stars) -> bool {
    let relevance = relevance(execution, stars);
    let graph = Graph::of(execution, Some(&relevance));
    !Parts::of(&graph).any_circle()
}

/// The strongly connected parts, numbered so that edges lead to lower or equal numbers.
struct Parts {
    of: Vec<u32>,
    sizes: Vec<u32>,
}

impl Parts {
    fn of(graph: &Graph) -> Parts {
        let n = graph.after.len();
        let mut parts = Parts { of: vec![NONE; n], sizes: Vec::new() };
        let (mut number, mut low) = (vec![NONE; n], vec![0; n]);
        let (mut open, mut path): (Vec<PieceId>, Vec<(PieceId, usize)>) = (Vec::new(), Vec::new());
        let mut next = 0;
        for root in 0..n as PieceId {
            if number[root as usize] != NONE {
                continue;
            }
            path.push((root, 0));
            while let Some((piece, child)) = path.pop() {
                let at = piece as usize;
                if child == 0 {
                    (number[at], low[at]) = (next, next);
                    next += 1;
                    open.push(piece);
                }
                match graph.after[at].get(child) {
                    Some(&(to, _)) => {
                        path.push((piece, child + 1));
                        if number[to as usize] == NONE {
                            path.push((to, 0));
                        }
                    }
                    None => {
                        for &(to, _) in &graph.after[at] {
                            if parts.of[to as usize] == NONE {
                                low[at] = low[at].min(low[to as usize]);
                            }
                        }
                        if low[at] == number[at] {
                            parts.close(piece, &mut open);
                        }
                    }
                }
            }
        }
        parts
    }

    fn close(&mut self, root: PieceId, open: &mut Vec<PieceId>) {
        let mut size = 0;
        while let Some(piece) = open.pop() {
            self.of[piece as usize] = self.sizes.len() as u32;
            size += 1;
            if piece == root {
                break;
            }
        }
        self.sizes.push(size);
    }

    fn any_circle(&self) -> bool {
        self.sizes.iter().any(|&s| s > 1)
    }
}

/// An order that keeps all edges, and otherwise the numbers of the pieces; without those on circles.
fn order(graph: &Graph) -> Vec<PieceId> {
    let mut waits = vec![0; graph.after.len()];
    for (to, _) in graph.after.iter().flatten() {
        waits[*to as usize] += 1;
    }
    let free = (0..waits.len() as PieceId).filter(|&p| waits[p as usize] == 0);
    let mut free: BinaryHeap<Reverse<PieceId>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse(piece)) = free.pop() {
        order.push(piece);
        for &(to, _) in &graph.after[piece as usize] {
            waits[to as usize] -= 1;
            if waits[to as usize] == 0 {
                free.push(Reverse(to));
            }
        }
    }
    order
}

/// A shortest circle through each of the first edges of each part that has one, each circle once.
fn circles(graph: &Graph, parts: &Parts) -> Vec<Circle> {
    let mut found: Vec<Circle> = Vec::new();
    let mut searched = vec![0; parts.sizes.len()];
    for from in 0..graph.after.len() as PieceId {
        let part = parts.of[from as usize];
        if parts.sizes[part as usize] < 2 {
            continue;
        }
        for &(to, reason) in &graph.after[from as usize] {
            let inside = parts.of[to as usize] == part;
            if !inside || reason == Reason::Order || searched[part as usize] == MAX_CIRCLES {
                continue;
            }
            searched[part as usize] += 1;
            let mut edges = vec![Edge { from, to, reason }];
            edges.extend(path(graph, parts, to, from));
            let first = |e: &Edge| match e.reason {
                Reason::Conflict(at, _) => at,
                Reason::Order => NodeId::MAX,
            };
            let begin = (0..edges.len()).min_by_key(|&i| first(&edges[i])).unwrap_or(0);
            edges.rotate_left(begin);
            let circle = Circle { edges };
            if !found.contains(&circle) {
                found.push(circle);
            }
        }
    }
    found
}

/// A shortest path inside of one part.
fn path(graph: &Graph, parts: &Parts, from: PieceId, to: PieceId) -> Vec<Edge> {
    let mut came: rustc_hash::FxHashMap<PieceId, Edge> = rustc_hash::FxHashMap::default();
    let mut queue = VecDeque::from([from]);
    while let Some(piece) = queue.pop_front() {
        if piece == to {
            break;
        }
        for &(next, reason) in &graph.after[piece as usize] {
            let inside = parts.of[next as usize] == parts.of[from as usize];
            if inside && next != from && !came.contains_key(&next) {
                came.insert(next, Edge { from: piece, to: next, reason });
                queue.push_back(next);
            }
        }
    }
    let mut edges = Vec::new();
    let mut at = to;
    while at != from {
        let edge = came[&at];
        edges.push(edge);
        at = edge.from;
    }
    edges.reverse();
    edges
}
