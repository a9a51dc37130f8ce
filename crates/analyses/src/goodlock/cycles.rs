//! The closure of the lock dependency relation: Algorithm 4.4.
//!
//! A cycle runs through locks that lead to each other, so the search is confined to the strongly
//! connected components of the lock graph, which has an arc from each held to each wanted lock. From
//! a first dependency it follows, from every lock wanted to the dependencies that hold it, only ways
//! on which enough of the permitted length is left to come back.

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_model::{Held, LockId};

use super::{Dependency, Moment};
use crate::held::{HeldLocks, exclude_each_other};

/// Calls `report` with every cycle, once and shortest first. False if `max_steps` kept it from seeing
/// them all.
pub(super) fn search(
    dependencies: &[Dependency],
    held: &HeldLocks,
    max_steps: u64,
    mut report: impl FnMut(&[&Dependency]),
) -> bool {
    let graph = Graph::new(dependencies, held);
    if graph.nodes.is_empty() {
        return true;
    }
    let mut search = Search {
        graph: &graph,
        steps_left: max_steps,
        length: 2,
        next_length: None,
        seen: FxHashSet::default(),
    };
    // In the order of the held locks, so that those who hold the same share their distances.
    let mut firsts: Vec<usize> = (0..graph.nodes.len()).collect();
    firsts.sort_by_key(|&n| graph.nodes[n].dependency.holds);
    loop {
        for same in firsts
            .chunk_by(|&a, &b| graph.nodes[a].dependency.holds == graph.nodes[b].dependency.holds)
        {
            let distance = graph.distances(graph.nodes[same[0]].holds, &mut search.steps_left);
            for &first in same {
                if !search.from(first, &distance, &mut report) {
                    return false;
                }
            }
        }
        match search.next_length.take() {
            Some(length) => search.length = length,
            None => return true,
        }
    }
}

/// One occurrence of a dependency.
struct Node<'a> {
    number: usize,
    dependency: &'a Dependency,
    holds: &'a [Held],
    moment: &'a Moment,
    /// The vertex of the wanted lock.
    wants: usize,
}

impl Node<'_> {
    /// Whether this one would wait for `holder`.
    fn waits_for(&self, holder: &Node<'_>) -> bool {
        let wants = self.dependency.wants;
        holder.holds.iter().any(|h| h.lock == wants.lock && h.mode.excludes(wants.mode))
    }

    /// Whether both can wait at the same time.
    fn compatible(&self, other: &Node<'_>) -> bool {
        self.dependency.thread != other.dependency.thread
            && self.moment.concurrent(other.moment)
            && !exclude_each_other(self.holds, other.holds)
    }
}

struct Graph<'a> {
    nodes: Vec<Node<'a>>,
    /// By vertex, the nodes that hold the lock.
    holders: Vec<Vec<usize>>,
    /// By vertex, the vertices of locks under which it is wanted.
    arrivals: Vec<Vec<usize>>,
    vertices: FxHashMap<LockId, usize>,
}

impl<'a> Graph<'a> {
    /// The dependencies that have an arc inside a strongly connected component.
    fn new(dependencies: &'a [Dependency], held: &'a HeldLocks) -> Graph<'a> {
        let mut vertices: FxHashMap<LockId, usize> = FxHashMap::default();
        let mut vertex = |lock| {
            let next = vertices.len();
            *vertices.entry(lock).or_insert(next)
        };
        let mut arcs: Vec<Vec<usize>> = Vec::new();
        for d in dependencies {
            let wants = vertex(d.wants.lock);
            for h in held.locks(d.holds) {
                let holds = vertex(h.lock);
                let size = arcs.len().max(holds.max(wants) + 1);
                arcs.resize_with(size, Vec::new);
                arcs[holds].push(wants);
            }
        }
        for list in &mut arcs {
            list.sort_unstable();
            list.dedup();
        }
        let component = components(&arcs);
        let mut graph = Graph {
            nodes: Vec::new(),
            holders: vec![Vec::new(); arcs.len()],
            arrivals: vec![Vec::new(); arcs.len()],
            vertices,
        };
        for (from, list) in arcs.iter().enumerate() {
            for &to in list.iter().filter(|&&to| component[from] == component[to]) {
                graph.arrivals[to].push(from);
            }
        }
        for (number, dependency) in dependencies.iter().enumerate() {
            let holds = held.locks(dependency.holds);
            let wants = graph.vertices[&dependency.wants.lock];
            let inside: Vec<usize> = holds
                .iter()
                .map(|h| graph.vertices[&h.lock])
                .filter(|&v| component[v] == component[wants])
                .collect();
            if inside.is_empty() {
                continue;
            }
            for moment in &dependency.moments {
                for &v in &inside {
                    if graph.holders[v].last() != Some(&graph.nodes.len()) {
                        graph.holders[v].push(graph.nodes.len());
                    }
                }
                graph.nodes.push(Node { number, dependency, holds, moment, wants });
            }
        }
        graph
    }

    /// For every vertex the least number of further dependencies that lead from a thread that wants its
    /// lock to one that wants a lock of `holds`, or `None` if none lead there.
    fn distances(&self, holds: &[Held], steps_left: &mut u64) -> Vec<Option<usize>> {
        let mut distance = vec![None; self.holders.len()];
        let mut queue: Vec<usize> = holds.iter().map(|h| self.vertices[&h.lock]).collect();
        queue.iter().for_each(|&v| distance[v] = Some(0));
        let mut next = 0;
        while let Some(&v) = queue.get(next) {
            next += 1;
            *steps_left = steps_left.saturating_sub(self.arrivals[v].len() as u64);
            for &from in &self.arrivals[v] {
                if distance[from].is_none() {
                    distance[from] = distance[v].map(|d| d + 1);
                    queue.push(from);
                }
            }
        }
        distance
    }
}

struct Search<'a> {
    graph: &'a Graph<'a>,
    steps_left: u64,
    /// How long the cycles are that are looked for now.
    length: usize,
    /// The least length of a longer cycle that there may be.
    next_length: Option<usize>,
    /// The cycles reported: occurrences of the same dependencies at other moments are not news.
    seen: FxHashSet<Vec<usize>>,
}

impl<'a> Search<'a> {
    /// Looks for the cycles in which `first` has the least thread. False if it ran out of steps.
    fn from(
        &mut self,
        first: usize,
        distance: &[Option<usize>],
        report: &mut impl FnMut(&[&Dependency]),
    ) -> bool {
        let graph = self.graph;
        let mut chain = vec![&graph.nodes[first]];
        // How many of the holders of the lock that each node of the chain wants have been tried.
        let mut tried = Vec::new();
        if self.goes_on(&chain, distance, report) {
            tried.push(0);
        }
        while let Some(count) = tried.last_mut() {
            let last = chain[chain.len() - 1];
            let Some(&candidate) = graph.holders[last.wants].get(*count) else {
                tried.pop();
                chain.pop();
                continue;
            };
            *count += 1;
            if self.steps_left == 0 {
                return false;
            }
            self.steps_left -= 1;
            let candidate = &graph.nodes[candidate];
            if extends(&chain, candidate) {
                chain.push(candidate);
                if self.goes_on(&chain, distance, report) {
                    tried.push(0);
                } else {
                    chain.pop();
                }
            }
        }
        true
    }

    /// Reports the chain if it is a cycle of the current length, and otherwise says whether it may
    /// become one.
    fn goes_on(
        &mut self,
        chain: &[&Node<'a>],
        distance: &[Option<usize>],
        report: &mut impl FnMut(&[&Dependency]),
    ) -> bool {
        let last = chain[chain.len() - 1];
        if last.waits_for(chain[0]) {
            if chain.len() == self.length
                && self.seen.insert(chain.iter().map(|n| n.number).collect())
            {
                let cycle: Vec<&Dependency> = chain.iter().map(|n| n.dependency).collect();
                report(&cycle);
            }
            return false;
        }
        let Some(distance) = distance[last.wants] else { return false };
        let needed = chain.len() + distance.max(1);
        if needed > self.length {
            self.next_length = Some(self.next_length.map_or(needed, |n| n.min(needed)));
        }
        needed <= self.length
    }
}

/// Whether `chain` with `next` at its end is a lock dependency chain, Definition 4.4, that starts with
/// its least thread and contains no cycle, except possibly one that closes at its first node.
fn extends(chain: &[&Node<'_>], next: &Node<'_>) -> bool {
    let (last, earlier) = chain.split_last().expect("a chain has a first node");
    next.dependency.thread > chain[0].dependency.thread
        && last.waits_for(next)
        && chain.iter().all(|n| n.compatible(next))
        && !earlier.iter().any(|n| n.waits_for(next))
        && !chain[1..].iter().any(|n| next.waits_for(n))
}

/// The strongly connected component of every vertex, by Tarjan's algorithm without recursion.
fn components(arcs: &[Vec<usize>]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let mut index = vec![UNSEEN; arcs.len()];
    let mut low = vec![0; arcs.len()];
    let mut component = vec![UNSEEN; arcs.len()];
    let (mut seen, mut found) = (0, 0);
    let mut open: Vec<usize> = Vec::new();
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in 0..arcs.len() {
        if index[root] == UNSEEN {
            path.push((root, 0));
        }
        while let Some((v, arc)) = path.last_mut() {
            let v = *v;
            if *arc == 0 {
                index[v] = seen;
                low[v] = seen;
                seen += 1;
                open.push(v);
            }
            if let Some(&to) = arcs[v].get(*arc) {
                *arc += 1;
                if index[to] == UNSEEN {
                    path.push((to, 0));
                } else if component[to] == UNSEEN {
                    low[v] = low[v].min(index[to]);
                }
                continue;
            }
            if low[v] == index[v] {
                while let Some(member) = open.pop() {
                    component[member] = found;
                    if member == v {
                        break;
                    }
                }
                found += 1;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[v]);
            }
        }
    }
    component
}
