//! Updates that commute: `x = x op e`.
//!
//! Two updates of the same memory by the same operator can change places, if nothing but the update itself sees what it
//! read. That takes three things: the value that is read flows into nothing else; each update is one step, because it is
//! atomic or because all of them hold a common lock from their read to their write; and they update the same bytes.
//! Conflicts with all other accesses stay.
//!
//! Source: section 6.5 of Burnim's thesis has it on its list of what is missing; the rules are ours. Sums and products of
//! floating point numbers depend on their order by rounding, so they count only if that is asked for.

use rustc_hash::FxHashMap;
use selvedge_model::{LockId, Operator};

use super::execution::{Act, Node, NodeId, ONCE};

/// The class of the first operator; those of the others follow.
pub(super) const FIRST_CLASS: u16 = ONCE - Operator::ALL.len() as u16;

/// What keeps an update in one piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Keeps {
    /// It is one atomic operation.
    Atomic,
    /// These locks are held from its read to its write.
    Locks(Vec<LockId>),
}

impl Keeps {
    /// What keeps both in one piece; nothing if they could interleave.
    fn with(&self, other: &Keeps) -> Option<Keeps> {
        match (self, other) {
            (Keeps::Atomic, Keeps::Atomic) => Some(Keeps::Atomic),
            (Keeps::Locks(a), Keeps::Locks(b)) => {
                let common: Vec<LockId> = a.iter().copied().filter(|l| b.contains(l)).collect();
                (!common.is_empty()).then_some(Keeps::Locks(common))
            }
            (Keeps::Atomic, Keeps::Locks(_)) | (Keeps::Locks(_), Keeps::Atomic) => None,
        }
    }
}

#[derive(Debug)]
struct Update {
    write: NodeId,
    read: NodeId,
    operator: Operator,
    keeps: u32,
}

/// The updates of an execution.
#[derive(Debug, Default)]
pub(super) struct Updates {
    list: Vec<Update>,
    keeps: Vec<Keeps>,
}

impl Updates {
    /// A write updates what a read found.
    pub(super) fn add(&mut self, write: NodeId, read: NodeId, operator: Operator, keeps: Keeps) {
        // Threads hold few different sets of locks; the last one is the most likely.
        let known = self.keeps.iter().rposition(|k| *k == keeps);
        let keeps = known.unwrap_or_else(|| {
            self.keeps.push(keeps);
            self.keeps.len() - 1
        }) as u32;
        self.list.push(Update { write, read, operator, keeps });
    }

    /// Gives the updates that commute the class of their operator. `cells` are those of places, from where `starts` says.
    pub(super) fn settle(
        mut self,
        nodes: &mut [Node],
        uses: &[NodeId],
        (cells, starts): (&[u32], &[u32]),
    ) {
        if self.list.is_empty() {
            return;
        }
        let used = used(nodes, uses);
        self.list.retain(|u| used[u.read as usize] == 1 && nodes[u.write as usize].class == 0);
        let cells_of = |place: u32| {
            let place = place as usize;
            &cells[starts[place] as usize..starts[place + 1] as usize]
        };
        // By cell and operator: the place that all update, and what keeps them all in one piece.
        let mut agreed: FxHashMap<(u32, Operator), Option<(u32, Keeps)>> = FxHashMap::default();
        for update in &self.list {
            let place = nodes[update.write as usize].place;
            let keeps = &self.keeps[update.keeps as usize];
            for &cell in cells_of(place) {
                let first = || keeps.with(keeps).map(|keeps| (place, keeps));
                let known = agreed.entry((cell, update.operator)).or_insert_with(first);
                let same = known.as_ref().filter(|(all, _)| *all == place);
                *known = same.and_then(|(_, k)| k.with(keeps)).map(|keeps| (place, keeps));
            }
        }
        for update in &self.list {
            let place = nodes[update.write as usize].place;
            let is_agreed = |&cell: &u32| agreed[&(cell, update.operator)].is_some();
            if cells_of(place).iter().all(is_agreed) {
                let class = FIRST_CLASS + update.operator as u16;
                nodes[update.write as usize].class = class;
                nodes[update.read as usize].class = class;
            }
        }
    }
}

/// How often each node is used, up to 255 times, not counting definitions of locals that are not used themselves.
fn used(nodes: &[Node], uses: &[NodeId]) -> Vec<u8> {
    let mut used = vec![0u8; nodes.len()];
    let mut end = uses.len();
    for (i, node) in nodes.iter().enumerate().rev() {
        let start = node.uses as usize;
        if node.act != Act::Let || used[i] > 0 {
            for &value in &uses[start..end] {
                used[value as usize] = used[value as usize].saturating_add(1);
            }
        }
        end = start;
    }
    used
}
