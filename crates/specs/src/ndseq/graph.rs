//! Which piece of the work must come before which.
//!
//! Two relevant accesses of different pieces to the same cell conflict unless both read or both commute by the
//! same declaration; the piece of the first then comes before the piece of the second. A piece with all that is
//! inside of it is one: a conflict is between the two pieces directly inside of the innermost piece that
//! contains both accesses, and there is none between a piece and what it contains.
//!
//! Source: definitions 18 and 19 of the source of [`ndseq`](super). Only accesses since the last ones that they
//! conflict with are compared, which gives the same circles: a cell goes through *phases* of accesses that do
//! not conflict with each other, and each access comes after those of the phase before.
//!
//! Cost: O(1) for each access, if no cell has many pieces in two phases one after the other in which accesses
//! commute.

use rustc_hash::FxHashMap;

use super::execution::{Act, Execution, NONE, NodeId, ONCE, PieceId, PieceKind};
use super::relevance::Relevance;

/// Why a piece comes before another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The first access happened before the second.
    Conflict(NodeId, NodeId),
    /// Starting, joining, a barrier, or a value that a thread carries from one task to the next.
    Order,
}

/// The graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// By piece, the pieces that come after it and why, in the order in which they were found.
    pub after: Vec<Vec<(PieceId, Reason)>>,
}

/// What accesses of a phase have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mode {
    #[default]
    Read,
    Write,
    /// They commute by declaration.
    Class(u16),
}

/// The accesses to one cell that several pieces use.
#[derive(Clone, Debug, Default)]
struct Cell {
    mode: Mode,
    phase: u32,
    now: Vec<(PieceId, NodeId)>,
    before: Vec<(PieceId, NodeId)>,
}

impl Graph {
    /// Of the relevant nodes of an execution; of all nodes, if that is what is relevant.
    pub fn of(execution: &Execution, relevance: Option<&Relevance>) -> Graph {
        let mut tied: Vec<bool> = execution.pieces.iter().map(|p| p.tied).collect();
        loop {
            let mut builder = Builder {
                execution,
                seen: FxHashMap::default(),
                graph: Graph { after: vec![Vec::new(); execution.pieces.len()] },
                tied: &tied,
                newly_tied: Vec::new(),
                members: FxHashMap::default(),
            };
            builder.orders();
            builder.conflicts(relevance);
            let (graph, newly) = (builder.graph, builder.newly_tied);
            if newly.is_empty() {
                return graph;
            }
            newly.into_iter().for_each(|piece| tied[piece as usize] = true);
        }
    }
}

struct Builder<'a> {
    execution: &'a Execution,
    seen: FxHashMap<(PieceId, PieceId), ()>,
    graph: Graph,
    /// Lazy initialisations that are part of their task.
    tied: &'a [bool],
    newly_tied: Vec<PieceId>,
    /// By cell and piece, the last large phase that it was in.
    members: FxHashMap<(u32, PieceId), u32>,
}

/// A phase with more accesses has its pieces in a table.
const FEW: usize = 8;

impl Builder<'_> {
    fn orders(&mut self) {
        for &(from, to) in &self.execution.orders {
            self.edge(from, to, Reason::Order);
        }
    }

    fn conflicts(&mut self, relevance: Option<&Relevance>) {
        let (shared, count) = self.shared_cells(relevance);
        let mut cells = vec![Cell::default(); count];
        let any_tied = self.tied.contains(&true);
        for (i, node) in self.execution.nodes.iter().enumerate() {
            let id = i as NodeId;
            // Who does a lazy initialisation matters only if it is part of a task.
            if node.class == ONCE && !any_tied {
                continue;
            }
            let mode = match node.act {
                Act::Let | Act::Branch => continue,
                Act::Read | Act::Focus if matches!(node.class, 0 | ONCE) => Mode::Read,
                Act::Write if matches!(node.class, 0 | ONCE) => Mode::Write,
                Act::Read | Act::Focus | Act::Write => Mode::Class(node.class),
            };
            let piece = self.piece(id);
            if piece == NONE || relevance.is_some_and(|r| !r.has(id)) {
                continue;
            }
            for &cell in self.execution.cells(id) {
                let state = shared[cell as usize];
                if state != NONE {
                    self.access((state, &mut cells[state as usize]), mode, piece, id);
                }
            }
        }
    }

    /// Numbers the cells that more than one piece uses, and says how many they are.
    fn shared_cells(&self, relevance: Option<&Relevance>) -> (Vec<u32>, usize) {
        const SEVERAL: u32 = NONE - 1;
        let mut users = vec![NONE; self.execution.cell_count()];
        for id in 0..self.execution.nodes.len() as NodeId {
            let cells = self.execution.cells(id);
            if cells.is_empty() || relevance.is_some_and(|r| !r.has(id)) {
                continue;
            }
            let piece = self.piece(id);
            for &cell in cells {
                let user = &mut users[cell as usize];
                *user = if *user == NONE || *user == piece { piece } else { SEVERAL };
            }
        }
        let mut count = 0;
        for user in &mut users {
            if *user == SEVERAL {
                *user = count;
                count += 1;
            } else {
                *user = NONE;
            }
        }
        (users, count as usize)
    }

    /// The piece of a node, where a lazy initialisation may be part of its task.
    fn piece(&self, node: NodeId) -> PieceId {
        let piece = self.execution.piece(node);
        match self.execution.pieces.get(piece as usize).map(|p| p.kind) {
            Some(PieceKind::Lazy(task)) if self.tied[piece as usize] => task,
            _ => piece,
        }
    }

    fn access(
        &mut self,
        (number, cell): (u32, &mut Cell),
        mode: Mode,
        piece: PieceId,
        node: NodeId,
    ) {
        if mode != cell.mode || mode == Mode::Write {
            // A piece that accesses alone goes on alone, without a new phase for each access.
            let alone = matches!(cell.now[..], [(p, _)] if p == piece);
            if alone && mode == Mode::Write && cell.mode == Mode::Write {
                return;
            }
            std::mem::swap(&mut cell.before, &mut cell.now);
            cell.now.clear();
            (cell.mode, cell.phase) = (mode, cell.phase + 1);
        }
        let known = if cell.now.len() < FEW {
            cell.now.iter().any(|(p, _)| *p == piece)
        } else {
            let phase = cell.phase + 1;
            self.members.insert((number, piece), phase) == Some(phase)
        };
        if known {
            return;
        }
        for i in 0..cell.before.len() {
            let (from, at) = cell.before[i];
            if from != piece {
                self.edge(from, piece, Reason::Conflict(at, node));
            }
        }
        cell.now.push((piece, node));
    }

    /// One piece comes before another, and so does what contains the one before what contains the other.
    fn edge(&mut self, from: PieceId, to: PieceId, reason: Reason) {
        let Some((from, to)) = self.apart(from, to) else { return };
        if let (Reason::Conflict(..), PieceKind::Lazy(task)) =
            (reason, self.execution.pieces[to as usize].kind)
            && self.ancestor(task, self.execution.pieces[to as usize].depth) == from
        {
            self.newly_tied.push(to);
        }
        if self.seen.insert((from, to), ()).is_none() {
            self.graph.after[from as usize].push((to, reason));
        }
    }

    /// The pieces around two, directly inside of the same; nothing if one contains the other.
    fn apart(&self, mut a: PieceId, mut b: PieceId) -> Option<(PieceId, PieceId)> {
        let pieces = &self.execution.pieces;
        let depth = pieces[a as usize].depth.min(pieces[b as usize].depth);
        (a, b) = (self.ancestor(a, depth), self.ancestor(b, depth));
        while pieces[a as usize].parent != pieces[b as usize].parent {
            (a, b) = (pieces[a as usize].parent, pieces[b as usize].parent);
        }
        (a != b).then_some((a, b))
    }

    fn ancestor(&self, mut piece: PieceId, depth: u32) -> PieceId {
        while self.execution.pieces[piece as usize].depth > depth {
            piece = self.execution.pieces[piece as usize].parent;
        }
        piece
    }
}
