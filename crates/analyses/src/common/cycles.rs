//! Circles of threads that hold locks and want more.
//!
//! The closure of the lock dependency relation, algorithm 4.4 of Park's *Active testing*, for all analyses of
//! deadlocks: when an acquisition occurred, and what can occur at the same time, is theirs to say ([`Moment`]).
//!
//! A cycle runs through locks that lead to each other, so the search is confined to the strongly
//! connected components of the lock graph, which has an arc from each held to each wanted lock. From
//! a first dependency it follows, from every lock wanted to the dependencies that hold it, only ways
//! on which enough of the permitted length is left to come back.

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_model::{
    Finding, Held, Kind, LockId, Place, Role, Status, Subject, Target, ThreadId, Waiter,
};

use crate::common::held::{HeldLocks, LockSet, exclude_each_other};

/// When a thread wanted a lock.
pub(crate) trait Moment {
    /// Whether two threads can be there at the same time. Not, if it is one thread.
    fn concurrent(&self, other: &Self) -> bool;
}

/// An element of the lock dependency relation.
#[derive(Debug)]
pub(crate) struct Dependency<M> {
    pub(crate) thread: ThreadId,
    /// The locks held, with the sites of their acquisition.
    pub(crate) holds: LockSet,
    pub(crate) wants: Held,
    /// When it occurred; occurrences that are ordered with more than another one is are left out.
    // invariant: not empty, in the order of the thread.
    pub(crate) moments: Vec<M>,
}

/// What to report of a circle.
pub(crate) fn finding<M>(
    analysis: &'static str,
    cycle: &[&Dependency<M>],
    held: &HeldLocks,
) -> Finding {
    let waiters: Vec<Waiter> = cycle
        .iter()
        .map(|d| Waiter { thread: d.thread, holds: held.locks(d.holds).to_vec(), wants: d.wants })
        .collect();
    let place = |w: &Waiter| Place {
        thread: w.thread,
        site: w.wants.site,
        role: Role::Acquire(w.wants.lock),
        held: w.holds.clone(),
    };
    Finding {
        kind: Kind::Deadlock,
        status: Status::Predicted,
        verdict: None,
        analyses: vec![analysis],
        subject: Subject::Locks(waiters.iter().map(|w| w.wants.lock).collect()),
        places: waiters.iter().map(place).collect(),
        target: Some(Target::Deadlock(waiters)),
        occurrences: 1,
    }
}

/// Calls `report` with every cycle, once and shortest first. False if `max_steps` kept it from seeing
/// them all.
pub(crate) fn search<M: Moment>(
    dependencies: &[Dependency<M>],
    held: &HeldLocks,
    max_steps: u64,
    mut report: impl FnMut(&[&Dependency<M>]),
) -> bool {
    let graph = Graph::new(dependencies, held);
    if graph.nodes.is_empty() {
        return true;
    }
    let mut starts = graph.starts();
    let mut search = Search {
        graph: &graph,
        steps_left: max_steps,
        length: 0,
        next_length: None,
        seen: FxHashSet::default(),
    };
    while let Some(length) = starts.iter().filter_map(|s| s.length).min() {
        search.length = length;
        for start in starts.iter_mut().filter(|s| s.length == Some(length)) {
            if !search.start(&start.nodes, &mut report) {
                return false;
            }
            start.length = search.next_length.take();
        }
    }
    true
}

/// Occurrences of one thread under the same locks: they have the same way back.
struct Start {
    nodes: Vec<usize>,
    /// The least length of the cycles from here that have not been looked for.
    length: Option<usize>,
}

/// One occurrence of a dependency.
struct Node<'a, M> {
    number: usize,
    dependency: &'a Dependency<M>,
    holds: &'a [Held],
    moment: &'a M,
    /// The vertex of the wanted lock.
    wants: usize,
}

impl<M: Moment> Node<'_, M> {
    /// Whether this one would wait for `holder`.
    fn waits_for(&self, holder: &Node<'_, M>) -> bool {
        let wants = self.dependency.wants;
        holder.holds.iter().any(|h| h.lock == wants.lock && h.mode.excludes(wants.mode))
    }

    /// Whether both can wait at the same time. A thread is ordered with itself, so they are two threads.
    fn compatible(&self, other: &Node<'_, M>) -> bool {
        self.moment.concurrent(other.moment) && !exclude_each_other(self.holds, other.holds)
    }
}

struct Graph<'a, M> {
    nodes: Vec<Node<'a, M>>,
    /// By vertex, the nodes that hold the lock.
    holders: Vec<Vec<usize>>,
    /// By vertex, the vertices of the locks under which it is wanted, each with the greatest thread
    /// that does so.
    arrivals: Vec<Vec<(usize, ThreadId)>>,
    vertices: FxHashMap<LockId, usize>,
}

impl<'a, M: Moment> Graph<'a, M> {
    /// The dependencies that have an arc inside a strongly connected component.
    fn new(dependencies: &'a [Dependency<M>], held: &'a HeldLocks) -> Graph<'a, M> {
        let mut vertices: FxHashMap<LockId, usize> = FxHashMap::default();
        let mut vertex = |lock| {
            let next = vertices.len();
            *vertices.entry(lock).or_insert(next)
        };
        let mut arcs: Vec<FxHashMap<usize, ThreadId>> = Vec::new();
        for d in dependencies {
            let wants = vertex(d.wants.lock);
            for h in held.locks(d.holds) {
                let holds = vertex(h.lock);
                let size = arcs.len().max(holds.max(wants) + 1);
                arcs.resize_with(size, FxHashMap::default);
                let greatest = arcs[holds].entry(wants).or_insert(d.thread);
                *greatest = d.thread.max(*greatest);
            }
        }
        let arcs: Vec<Vec<(usize, ThreadId)>> =
            arcs.into_iter().map(|to| to.into_iter().collect()).collect();
        let component = components(&arcs);
        let mut graph = Graph {
            nodes: Vec::new(),
            holders: vec![Vec::new(); arcs.len()],
            arrivals: vec![Vec::new(); arcs.len()],
            vertices,
        };
        for (from, list) in arcs.iter().enumerate() {
            for &(to, thread) in list.iter().filter(|(to, _)| component[from] == component[*to]) {
                graph.arrivals[to].push((from, thread));
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

    /// The places to start from, with cycles of two to be looked for first.
    fn starts(&self) -> Vec<Start> {
        let mut nodes: Vec<usize> = (0..self.nodes.len()).collect();
        let key = |n: usize| (self.nodes[n].dependency.thread, self.nodes[n].dependency.holds);
        nodes.sort_by_key(|&n| key(n));
        nodes
            .chunk_by(|&a, &b| key(a) == key(b))
            .map(|same| Start { nodes: same.to_vec(), length: Some(2) })
            .collect()
    }

    /// For every vertex the least number of further dependencies, of threads greater than that of
    /// `node`, that lead from a thread that wants its lock to one that wants a lock which `node` holds;
    /// `None` if none lead there. And how many arcs it took to find out.
    fn distances(&self, node: &Node<'_, M>) -> (Vec<Option<usize>>, u64) {
        let mut distance = vec![None; self.holders.len()];
        let mut queue: Vec<usize> = node.holds.iter().map(|h| self.vertices[&h.lock]).collect();
        queue.iter().for_each(|&v| distance[v] = Some(0));
        let (mut next, mut steps) = (0, 0);
        while let Some(&v) = queue.get(next) {
            next += 1;
            steps += self.arrivals[v].len() as u64;
            for &(from, thread) in &self.arrivals[v] {
                if distance[from].is_none() && thread > node.dependency.thread {
                    distance[from] = distance[v].map(|d| d + 1);
                    queue.push(from);
                }
            }
        }
        (distance, steps)
    }
}

struct Search<'a, M> {
    graph: &'a Graph<'a, M>,
    steps_left: u64,
    /// How long the cycles are that are looked for now.
    length: usize,
    /// The least length of a longer cycle that there may be from the current start.
    next_length: Option<usize>,
    /// The cycles reported: occurrences of the same dependencies at other moments are not news.
    seen: FxHashSet<Vec<usize>>,
}

impl<'a, M: Moment> Search<'a, M> {
    /// Looks for the cycles that start at one of `nodes`. False if it ran out of steps.
    fn start(&mut self, nodes: &[usize], report: &mut impl FnMut(&[&Dependency<M>])) -> bool {
        let (distance, steps) = self.graph.distances(&self.graph.nodes[nodes[0]]);
        self.steps_left = self.steps_left.saturating_sub(steps);
        nodes.iter().all(|&first| self.from(first, &distance, report))
    }

    fn from(
        &mut self,
        first: usize,
        distance: &[Option<usize>],
        report: &mut impl FnMut(&[&Dependency<M>]),
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
            self.steps_left = self.steps_left.saturating_sub(chain.len() as u64);
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
        chain: &[&Node<'a, M>],
        distance: &[Option<usize>],
        report: &mut impl FnMut(&[&Dependency<M>]),
    ) -> bool {
        let last = chain[chain.len() - 1];
        if last.waits_for(chain[0]) {
            if chain.len() == self.length
                && self.seen.insert(chain.iter().map(|n| n.number).collect())
            {
                let cycle: Vec<&Dependency<M>> = chain.iter().map(|n| n.dependency).collect();
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
fn extends<M: Moment>(chain: &[&Node<'_, M>], next: &Node<'_, M>) -> bool {
    let (last, earlier) = chain.split_last().expect("a chain has a first node");
    next.dependency.thread > chain[0].dependency.thread
        && last.waits_for(next)
        && chain.iter().all(|n| n.compatible(next))
        && !earlier.iter().any(|n| n.waits_for(next))
        && !chain[1..].iter().any(|n| next.waits_for(n))
}

/// The strongly connected component of every vertex, by Tarjan's algorithm without recursion.
fn components(arcs: &[Vec<(usize, ThreadId)>]) -> Vec<usize> {
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
            if let Some(&(to, _)) = arcs[v].get(*arc) {
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
