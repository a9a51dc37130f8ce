//! Which nodes matter.
//!
//! Relevant is what is in focus, every branch outside of stars, what these depend on, a star with anything
//! relevant in it, and every branch whose innermost star is relevant; to the fixpoint. What is not relevant could
//! have gone differently, and what is in a star that is not relevant could have been left out, without another
//! result.
//!
//! Source: algorithm ComputeRelevant of figure 6.8, definition 23, dependences D1 and D2 of section 6.4. D2: a
//! read depends, for each thread, on its last write before and on its first write after. A write is in one of
//! these sets of a read exactly if the read stands between the writes of the same thread around it; so the writes
//! of a cell are intervals, and a read takes out all intervals that it stabs, from trees of maxima. Every write is
//! taken out once. A cell that only one writes needs no tree: these are the writes right before and after the read.
//!
//! Nodes are looked at from the last to the first, because most of what a node depends on lies shortly before it; a list
//! has those that become relevant behind. Without a focus, all memory is in focus as it is at the end.
//!
//! *Guarantee*: the least fixpoint. More stars never make more relevant.
//!
//! Cost: O(1) for each relevant node and use; where several write a cell, O(log w) for each relevant read and write, w
//! being the writes to it.

use super::execution::{Act, Execution, NONE, Node, NodeId};
use super::stars::{Lists, Stars};

/// What is relevant, and why.
#[derive(Clone, Debug)]
pub struct Relevance {
    /// By node: [`NONE`] if it is not relevant; the node itself if it is by itself; otherwise a node that
    /// depends on it or, for a branch, one for which its star is relevant.
    because: Vec<NodeId>,
    stars: Vec<bool>,
}

impl Relevance {
    /// Whether a node is relevant.
    #[inline]
    pub fn has(&self, node: NodeId) -> bool {
        self.because[node as usize] != NONE
    }

    /// Whether an execution of a star is relevant; another could have been left out.
    pub fn has_star(&self, star: u32) -> bool {
        self.stars[star as usize]
    }

    /// How many nodes are relevant.
    pub fn count(&self) -> usize {
        self.because.iter().filter(|&&b| b != NONE).count()
    }

    /// The nodes by which a relevant node matters: it, one that depends on it, and so on to one that matters by
    /// itself.
    pub fn why(&self, node: NodeId) -> Vec<NodeId> {
        let mut chain = vec![node];
        let mut at = node;
        while self.because[at as usize] != at && self.because[at as usize] != NONE {
            at = self.because[at as usize];
            chain.push(at);
        }
        chain
    }
}

/// Computes it.
pub fn relevance(execution: &Execution, stars: &Stars) -> Relevance {
    let mut work = Work {
        execution,
        stars,
        branches: branches(execution, stars),
        groups: groups(stars),
        left: (0..stars.around.len() as u32).map(|g| stars.around.get(g).len() as u32).collect(),
        open: Vec::new(),
        found: Relevance {
            because: vec![NONE; execution.nodes.len()],
            stars: vec![false; stars.outer.len()],
        },
        intervals: Intervals::of(execution),
        at: execution.nodes.len() as NodeId,
        list: Vec::new(),
    };
    work.seed();
    while work.at > 0 {
        work.at -= 1;
        if work.found.has(work.at) {
            work.depend(work.at);
        }
        while let Some(behind) = work.list.pop() {
            work.depend(behind);
        }
    }
    work.found
}

struct Work<'a> {
    execution: &'a Execution,
    stars: &'a Stars,
    /// By group, its branches.
    branches: Lists,
    /// By star, the groups that it is directly around.
    groups: Lists,
    /// By group, how many stars around it are not relevant.
    left: Vec<u32>,
    /// Stars that have become relevant.
    open: Vec<u32>,
    found: Relevance,
    intervals: Intervals,
    /// The node that is looked at.
    at: NodeId,
    /// Nodes behind it that have become relevant.
    list: Vec<NodeId>,
}

impl Work<'_> {
    fn seed(&mut self) {
        for (i, node) in self.execution.nodes.iter().enumerate() {
            let outside = node.act == Act::Branch && self.stars.around_node(i as NodeId).is_empty();
            if outside || node.act == Act::Focus {
                self.mark(i as NodeId, i as NodeId);
            }
        }
        if !self.execution.has_focus {
            for cell in 0..self.execution.cell_count() as u32 {
                let writes = self.execution.writes(cell);
                let end = writes.len() as u32;
                if !self.execution.contended[cell as usize] {
                    writes.last().into_iter().for_each(|&write| self.mark(write, write));
                    continue;
                }
                while let Some(write) = self.intervals.before(cell, end) {
                    let write = writes[write as usize];
                    self.mark(write, write);
                }
            }
        }
    }

    #[inline]
    fn mark(&mut self, node: NodeId, because: NodeId) {
        if self.found.has(node) {
            return;
        }
        self.found.because[node as usize] = because;
        if node > self.at {
            self.list.push(node);
        }
        let group = self.stars.of[node as usize];
        if group != NONE && self.left[group as usize] > 0 {
            self.enter(group, node);
        }
    }

    /// All stars around a group are relevant because of a node, and so are the branches of groups in which no other
    /// star is left.
    fn enter(&mut self, group: u32, node: NodeId) {
        self.open.extend_from_slice(self.stars.around_group(group));
        while let Some(star) = self.open.pop() {
            if std::mem::replace(&mut self.found.stars[star as usize], true) {
                continue;
            }
            for &group in self.groups.get(star) {
                self.left[group as usize] -= 1;
                if self.left[group as usize] > 0 {
                    continue;
                }
                for &branch in self.branches.get(group) {
                    if self.found.has(branch) {
                        continue;
                    }
                    self.found.because[branch as usize] = node;
                    if branch > self.at {
                        self.list.push(branch);
                    }
                }
            }
            let outer = self.stars.outer[star as usize];
            self.open.extend_from_slice(self.stars.around_group(outer));
        }
    }

    /// What a relevant node depends on is relevant.
    fn depend(&mut self, node: NodeId) {
        let execution = self.execution;
        for &used in execution.uses(node) {
            self.mark(used, node);
        }
        let Node { act, gap, .. } = execution.nodes[node as usize];
        if !matches!(act, Act::Read | Act::Focus) {
            return;
        }
        let cells = execution.cells(node);
        for &cell in cells {
            let writes = execution.writes(cell);
            let search = || writes.partition_point(|&w| w < node) as u32;
            let gap = if cells.len() == 1 { gap } else { search() };
            if !execution.contended[cell as usize] {
                let around = gap.saturating_sub(1) as usize..writes.len().min(gap as usize + 1);
                writes[around].iter().for_each(|&write| self.mark(write, node));
                continue;
            }
            while let Some(write) = self.intervals.before(cell, gap) {
                self.mark(writes[write as usize], node);
            }
            while let Some(write) = self.intervals.after(cell, gap) {
                self.mark(writes[write as usize], node);
            }
        }
    }
}

/// The branches of each group.
fn branches(execution: &Execution, stars: &Stars) -> Lists {
    Lists::of(stars.around.len(), || {
        let nodes = execution.nodes.iter().zip(&stars.of).enumerate();
        let inside = nodes.filter(|(_, (node, group))| node.act == Act::Branch && **group != NONE);
        inside.map(|(i, (_, group))| (*group, i as NodeId))
    })
}

/// The groups that each star is directly around.
fn groups(stars: &Stars) -> Lists {
    Lists::of(stars.outer.len(), || {
        let groups = 0..stars.around.len() as u32;
        groups.flat_map(|group| stars.around.get(group).iter().map(move |&star| (star, group)))
    })
}

/// The writes to each cell that no read has taken out, as trees of maxima over their positions.
///
/// In a cell with writes 0 to n - 1, gap g is between writes g - 1 and g. Write i is the last of its thread
/// before gap g if i < g <= the next write of the thread, and the first after it if the last write of the thread
/// before i is < g <= i.
struct Intervals {
    /// By cell, where its trees begin; cells that only one writes have none.
    starts: Vec<u32>,
    /// The next write of the same thread; n if there is none, 0 if the write has been taken out.
    next: Vec<u32>,
    /// n less one more than the position of the write of the same thread before; 0 if it has been taken out.
    last: Vec<u32>,
}

impl Intervals {
    fn of(execution: &Execution) -> Intervals {
        let mut starts = vec![0];
        for (cell, &contended) in execution.contended.iter().enumerate() {
            let writes = if contended { execution.writes(cell as u32).len() as u32 } else { 0 };
            starts.push(starts[cell] + 2 * writes);
        }
        let total = starts[execution.contended.len()] as usize;
        let mut all = Intervals { starts, next: vec![0; total], last: vec![0; total] };
        let mut latest: Vec<u32> = Vec::new();
        let contended = |cell: &usize| execution.contended[*cell];
        for cell in (0..execution.cell_count()).filter(contended) {
            let writes = execution.writes(cell as u32);
            let n = writes.len();
            let start = all.starts[cell] as usize;
            let (next, last) = (&mut all.next[start..], &mut all.last[start..]);
            for (i, &write) in writes.iter().enumerate() {
                let writer = execution.writer(write);
                if writer >= latest.len() {
                    latest.resize(writer + 1, NONE);
                }
                let before = std::mem::replace(&mut latest[writer], i as u32);
                next[n + i] = n as u32;
                last[n + i] = n as u32;
                if before != NONE {
                    next[n + before as usize] = i as u32;
                    last[n + i] = n as u32 - (before + 1);
                }
            }
            for &write in writes {
                latest[execution.writer(write)] = NONE;
            }
            for i in (1..n).rev() {
                next[i] = next[2 * i].max(next[2 * i + 1]);
                last[i] = last[2 * i].max(last[2 * i + 1]);
            }
        }
        all
    }

    /// Takes out a write that is the last of its thread before a gap.
    fn before(&mut self, cell: u32, gap: u32) -> Option<u32> {
        let tree = tree(&self.starts, &mut self.next, cell);
        take(tree, 0, gap as usize, gap)
    }

    /// Takes out a write that is the first of its thread after a gap.
    fn after(&mut self, cell: u32, gap: u32) -> Option<u32> {
        let tree = tree(&self.starts, &mut self.last, cell);
        let n = tree.len() / 2;
        take(tree, gap as usize, n, n as u32 - gap)
    }
}

fn tree<'a>(starts: &[u32], all: &'a mut [u32], cell: u32) -> &'a mut [u32] {
    &mut all[starts[cell as usize] as usize..starts[cell as usize + 1] as usize]
}

/// Takes a leaf from `from` up to `to` out of a tree of maxima whose number is at least `least`, which is not 0
/// unless the range is empty.
fn take(tree: &mut [u32], from: usize, to: usize, least: u32) -> Option<u32> {
    let n = tree.len() / 2;
    let (mut l, mut r) = (from + n, to + n);
    let mut found = 0;
    while l < r && found == 0 {
        if l & 1 == 1 {
            if tree[l] >= least {
                found = l;
            }
            l += 1;
        }
        if r & 1 == 1 {
            r -= 1;
            if tree[r] >= least {
                found = r;
            }
        }
        l /= 2;
        r /= 2;
    }
    if found == 0 {
        return None;
    }
    while found < n {
        found = if tree[2 * found] >= least { 2 * found } else { 2 * found + 1 };
    }
    let leaf = found - n;
    tree[found] = 0;
    while found > 1 {
        found /= 2;
        tree[found] = tree[2 * found].max(tree[2 * found + 1]);
    }
    Some(leaf as u32)
}
