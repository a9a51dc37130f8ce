//! An execution as nodes of data flow.
//!
//! A node is a read or write of shared memory, the computation of a local, or a branch. Nodes are numbered in
//! the order in which they happened; each knows the nodes whose values it uses (dependence D1). Locations are
//! *cells*: the largest stretches of bytes that no access touches in part.

use selvedge_model::{Range, RegionId, SiteId, ThreadId};

/// A node, numbered from 0 in the order of the execution.
pub type NodeId = u32;

/// A piece of the work, numbered from 0.
pub type PieceId = u32;

/// The class of nodes that do or pass a lazy initialisation.
pub(super) const ONCE: u16 = SIGNALS - 1;

/// The class of steps that signal: they commute with each other.
pub(super) const SIGNALS: u16 = u16::MAX;

/// No node, star, piece or place.
pub const NONE: u32 = u32::MAX;

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Act {
    Read,
    Write,
    /// A local is computed from others.
    Let,
    /// The way that the thread goes depends on the values used.
    Branch,
    /// A read whose value is part of the result.
    Focus,
}

/// One step of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// What it does.
    pub act: Act,
    /// The declaration by which it commutes with its like; 0 if it does not.
    pub class: u16,
    /// The stretch of its thread.
    pub stretch: u32,
    /// The execution of a star that it is directly in, or [`NONE`].
    pub star: u32,
    /// The execution of a statement that it is directly in, or [`NONE`].
    pub statement: u32,
    /// Where in the source.
    pub site: SiteId,
    /// What it accesses, or [`NONE`].
    pub place: u32,
    /// Where its uses begin in the list of all uses.
    pub(super) uses: u32,
    /// Of a read of one cell, how many writes to that came before.
    pub(super) gap: u32,
}

/// Nodes of one thread that are in the same piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    pub(super) thread: ThreadId,
    /// Its piece if threads are the tasks, and if marked regions are: [`NONE`] outside of all.
    pub(super) by_thread: PieceId,
    pub(super) by_mark: PieceId,
    /// No other thread is alive.
    pub(super) alone: bool,
}

/// What a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieceKind {
    /// All that a started thread does, up to a barrier.
    Thread,
    /// A marked task.
    Task(RegionId),
    /// What a thread does itself between starting and joining others.
    Stretch,
    /// A lazy initialisation, of the task that is given.
    Lazy(PieceId),
    /// A barrier: pieces before it come before pieces after it.
    Barrier,
}

/// A piece of the work that a sequential execution does without interruption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// The thread that does it, or begins it.
    pub thread: ThreadId,
    /// The piece that it is a part of, or [`NONE`].
    pub parent: PieceId,
    /// How many pieces it is inside of.
    pub depth: u32,
    /// Something of its task flows into this lazy initialisation, so that it is part of the task.
    pub(super) tied: bool,
}

/// One execution of a star or of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The region that marks it.
    pub region: RegionId,
    /// The execution of another that it is directly in, or [`NONE`].
    pub outer: u32,
    /// The thread.
    pub thread: ThreadId,
    /// Where it was entered.
    pub site: SiteId,
    /// How many nodes had happened when it was entered, and when it was left.
    pub span: (NodeId, NodeId),
}

/// What counts as a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tasks {
    /// Every started thread.
    Threads,
    /// Regions that are marked as tasks.
    Marked,
}

/// An execution.
#[derive(Clone, Debug)]
pub struct Execution {
    pub(super) nodes: Vec<Node>,
    pub(super) uses: Vec<NodeId>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) pieces: Vec<Piece>,
    /// Pieces that come before others for another reason than a conflict.
    pub(super) orders: Vec<(PieceId, PieceId)>,
    pub(super) stars: Vec<Instance>,
    pub(super) statements: Vec<Instance>,
    /// The memory of each place; nothing for places that are other objects.
    pub(super) places: Vec<Option<Range>>,
    /// The cells of each place: one, mostly.
    pub(super) cells: Vec<u32>,
    pub(super) cells_of: Vec<u32>,
    /// The writes to each cell, in order.
    pub(super) writes: Vec<NodeId>,
    pub(super) writes_of: Vec<u32>,
    /// By cell, whether several write it, each of which may move by itself.
    pub(super) contended: Vec<bool>,
    pub(super) tasks: Tasks,
    pub(super) has_focus: bool,
}

impl Execution {
    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.nodes[..])
            + size_of_val(&self.uses[..])
            + size_of_val(&self.stretches[..])
            + size_of_val(&self.pieces[..])
            + size_of_val(&self.orders[..])
            + size_of_val(&self.stars[..])
            + size_of_val(&self.statements[..])
            + size_of_val(&self.places[..])
            + size_of_val(&self.cells[..])
            + size_of_val(&self.cells_of[..])
            + size_of_val(&self.writes[..])
            + size_of_val(&self.writes_of[..])
            + size_of_val(&self.contended[..])
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes whose values a node uses.
    #[inline]
    pub fn uses(&self, node: NodeId) -> &[NodeId] {
        let start = self.nodes[node as usize].uses as usize;
        let next = self.nodes.get(node as usize + 1);
        &self.uses[start..next.map_or(self.uses.len(), |n| n.uses as usize)]
    }

    /// The cells that a node accesses.
    #[inline]
    pub fn cells(&self, node: NodeId) -> &[u32] {
        let place = self.nodes[node as usize].place;
        if place == NONE {
            return &[];
        }
        let place = place as usize;
        &self.cells[self.cells_of[place] as usize..self.cells_of[place + 1] as usize]
    }

    /// How many cells there are.
    pub fn cell_count(&self) -> usize {
        self.writes_of.len() - 1
    }

    /// The writes to a cell, in order.
    #[inline]
    pub fn writes(&self, cell: u32) -> &[NodeId] {
        let cell = cell as usize;
        &self.writes[self.writes_of[cell] as usize..self.writes_of[cell + 1] as usize]
    }

    /// The thread of a node.
    #[inline]
    pub fn thread(&self, node: NodeId) -> ThreadId {
        self.stretches[self.nodes[node as usize].stretch as usize].thread
    }

    /// Whose write a write is, for dependence D2: of its marked task or lazy initialisation, which may move by
    /// itself, or else of its thread.
    #[inline]
    pub(super) fn writer(&self, node: NodeId) -> usize {
        let stretch = self.stretches[self.nodes[node as usize].stretch as usize];
        let piece = self.piece(node);
        let by_itself = match self.pieces.get(piece as usize).map(|p| p.kind) {
            Some(PieceKind::Task(_) | PieceKind::Lazy(_)) => true,
            Some(PieceKind::Thread | PieceKind::Stretch | PieceKind::Barrier) | None => false,
        };
        if by_itself { 2 * piece as usize + 1 } else { 2 * stretch.thread.index() }
    }

    /// The piece of a node, or [`NONE`] outside of all tasks.
    #[inline]
    pub fn piece(&self, node: NodeId) -> PieceId {
        let stretch = self.stretches[self.nodes[node as usize].stretch as usize];
        match self.tasks {
            Tasks::Threads => stretch.by_thread,
            Tasks::Marked => stretch.by_mark,
        }
    }

    /// All pieces, of threads and of marked tasks.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The memory that a node accesses, if it is memory.
    pub fn memory(&self, node: NodeId) -> Option<Range> {
        self.places.get(self.nodes[node as usize].place as usize).copied().flatten()
    }

    /// Executions of stars, in the order in which they began.
    pub fn stars(&self) -> &[Instance] {
        &self.stars
    }

    /// Executions of statements, in the order in which they began.
    pub fn statements(&self) -> &[Instance] {
        &self.statements
    }

    /// What the tasks are.
    pub fn tasks(&self) -> Tasks {
        self.tasks
    }

    /// How many tasks there are.
    pub fn task_count(&self) -> usize {
        let is_task = |piece: &&Piece| match self.tasks {
            Tasks::Threads => piece.kind == PieceKind::Thread,
            Tasks::Marked => matches!(piece.kind, PieceKind::Task(_)),
        };
        self.pieces.iter().filter(is_task).count()
    }

    /// How many nodes belong to no task.
    pub fn outside(&self) -> usize {
        (0..self.nodes.len() as u32).filter(|&n| self.piece(n) == NONE).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stay_small() {
        assert!(size_of::<Node>() <= 32);
    }
}
