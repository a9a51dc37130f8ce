//! Events become an [`Execution`].
//!
//! Locks are atomic steps and no nodes. Semaphores and condition variables are objects that are written and read,
//! with a branch. A read whose value no local takes flows into a branch, because nothing is known of it.

use rustc_hash::FxHashMap;
use selvedge_model::{
    AtomicOp, Event, Flow, LocalId, LockId, Mode, Op, Operator, Range, RegionId, RegionKind,
    SiteId, ThreadId,
};

use super::execution::{
    Act, Execution, Instance, NONE, Node, NodeId, ONCE, Piece, PieceId, PieceKind, SIGNALS,
    Stretch, Tasks,
};
use super::memory::{Memory, Object};
use super::updates::{FIRST_CLASS, Keeps, Updates};

/// Follows an execution.
#[derive(Default, Debug)]
pub struct Recorder {
    nodes: Vec<Node>,
    uses: Vec<NodeId>,
    stretches: Vec<Stretch>,
    pieces: Vec<Piece>,
    orders: Vec<(PieceId, PieceId)>,
    stars: Vec<Instance>,
    statements: Vec<Instance>,
    memory: Memory,
    threads: Vec<Thread>,
    /// By barrier and round, the pieces that stand for it.
    barriers: FxHashMap<(u32, u32), (PieceId, PieceId)>,
    classes: FxHashMap<RegionId, u16>,
    updates: Updates,
    /// Sums and products of floating point numbers commute.
    with_floats: bool,
    any_task: bool,
    /// How many threads were started and not joined.
    alive: usize,
    has_focus: bool,
    has_flow: bool,
}

#[derive(Debug)]
struct Thread {
    /// The piece that is all of the thread; [`NONE`] for the first thread, whose stretches stand for themselves.
    whole: PieceId,
    /// The piece of what the thread does itself now.
    own: PieceId,
    /// The marked tasks that it is in, innermost last. The first is that of the thread that started it.
    marks: Vec<PieceId>,
    /// The regions that it is in, except statements.
    open: Vec<Open>,
    /// The statements that it is in, each with the one outside: a task may begin in one and end in another.
    statements: Vec<(RegionId, u32)>,
    star: u32,
    statement: u32,
    class: u16,
    lazy: Option<Lazy>,
    /// The current stretch, or [`NONE`] if the next node begins one.
    stretch: u32,
    /// By local, the node that defined it.
    locals: Vec<NodeId>,
    /// The values that flow into the next write, definition or branch.
    pending: Vec<NodeId>,
    /// A read whose value may be taken by the next event.
    untaken: Option<NodeId>,
    /// What it wrote last, and whether by an atomic operation.
    written: Option<(NodeId, bool)>,
    /// The locks that it holds alone, each with how many nodes there were when it was acquired.
    held: Vec<(LockId, NodeId)>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    region: RegionId,
    kind: RegionKind,
    /// What was current outside.
    star: u32,
    class: u16,
}

#[derive(Clone, Copy, Debug)]
struct Lazy {
    first: NodeId,
    by_thread: PieceId,
    by_mark: PieceId,
}

impl Recorder {
    /// The same, where sums and products of floating point numbers commute, although rounding depends on their order.
    #[must_use]
    pub fn with_floats(self) -> Recorder {
        Recorder { with_floats: true, ..self }
    }

    /// The next event of the execution.
    pub fn on_event(&mut self, event: &Event) {
        if event.thread.index() >= self.threads.len() {
            self.appear(event.thread);
        }
        self.has_flow |= matches!(event.op, Op::Flow(_) | Op::Focus(_));
        if let Op::Flow(Flow::Take(local)) = event.op {
            return self.take(event.thread, local);
        }
        if let Op::Flow(Flow::Updates(operator)) = event.op {
            return self.updates(event.thread, operator);
        }
        self.settle(event.thread, event.site);
        let (me, site) = (event.thread, event.site);
        match event.op {
            Op::Read(a) => _ = self.read(me, site, a.range()),
            Op::Write(a) => _ = self.write(me, site, a.range(), None),
            Op::Atomic(a, op) => self.atomic(me, site, a.range(), op),
            Op::Flow(flow) => self.flow(me, site, flow),
            Op::Focus(range) => {
                self.has_focus = true;
                let place = self.memory.place(range);
                self.node(me, site, Act::Focus, place, &[]);
            }
            Op::RegionEnter(region, kind) => self.enter(me, site, region, kind),
            Op::RegionExit(region) => self.exit(me, region),
            Op::Fork(child) => self.fork(me, child),
            Op::Join(child) => self.join(me, child),
            Op::Arrive(barrier, round) => self.arrive(me, (barrier.0, round)),
            Op::Leave(barrier, round) => self.leave(me, (barrier.0, round)),
            Op::Post(s) => self.signal(me, site, Object::Semaphore(s)),
            Op::Wait(s) => self.await_signal(me, site, Object::Semaphore(s)),
            Op::Notify(c, _) => self.signal(me, site, Object::Cond(c)),
            Op::Wake(c) => self.await_signal(me, site, Object::Cond(c)),
            Op::Alloc(range) | Op::Free(range) => self.memory.renew(range),
            Op::Acquire(lock, Mode::Exclusive) => {
                let now = self.nodes.len() as NodeId;
                self.me(me).held.push((lock, now));
            }
            Op::Release(lock, Mode::Exclusive) => {
                let held = &mut self.me(me).held;
                if let Some(at) = held.iter().rposition(|h| h.0 == lock) {
                    held.remove(at);
                }
            }
            Op::Begin | Op::End | Op::Fence(_) => {}
            Op::Acquire(_, Mode::Shared) | Op::Release(_, Mode::Shared) => {}
        }
    }

    /// The execution is over.
    pub fn finish(mut self) -> Execution {
        for thread in 0..self.threads.len() {
            let site = self.threads[thread].untaken.map(|n| self.nodes[n as usize].site);
            self.settle(ThreadId(thread as u32), site.unwrap_or(SiteId(0)));
        }
        let (places, cells, cells_of) = self.memory.cells();
        self.updates.settle(&mut self.nodes, &self.uses, (&cells, &cells_of));
        let (writes, writes_of) = writes(&mut self.nodes, &cells, &cells_of);
        let mut execution = Execution {
            nodes: self.nodes,
            uses: self.uses,
            stretches: self.stretches,
            pieces: self.pieces,
            orders: self.orders,
            stars: self.stars,
            statements: self.statements,
            places,
            cells,
            cells_of,
            writes,
            writes_of,
            contended: Vec::new(),
            tasks: if self.any_task { Tasks::Marked } else { Tasks::Threads },
            has_focus: self.has_focus,
        };
        execution.contended = contended(&execution);
        tie(&mut execution);
        execution
    }

    /// Whether the events say how data flows; a specification of parallelism cannot be checked otherwise.
    pub fn has_flow(&self) -> bool {
        self.has_flow
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn appear(&mut self, thread: ThreadId) {
        let first = self.threads.is_empty();
        while self.threads.len() <= thread.index() {
            let number = ThreadId(self.threads.len() as u32);
            // Only the first thread is nobody's task: the program begins with it.
            let whole = if first && number == thread {
                NONE
            } else {
                self.piece(PieceKind::Thread, number, NONE)
            };
            let own = self.piece(PieceKind::Stretch, number, whole);
            self.threads.push(Thread {
                whole,
                own,
                marks: Vec::new(),
                open: Vec::new(),
                statements: Vec::new(),
                star: NONE,
                statement: NONE,
                class: 0,
                lazy: None,
                stretch: NONE,
                locals: Vec::new(),
                pending: Vec::new(),
                untaken: None,
                written: None,
                held: Vec::new(),
            });
        }
    }

    fn piece(&mut self, kind: PieceKind, thread: ThreadId, parent: PieceId) -> PieceId {
        let depth = self.pieces.get(parent as usize).map_or(0, |p| p.depth + 1);
        self.pieces.push(Piece { kind, thread, parent, depth, tied: false });
        self.pieces.len() as PieceId - 1
    }

    fn me(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.threads[thread.index()]
    }

    fn node(
        &mut self,
        thread: ThreadId,
        site: SiteId,
        act: Act,
        place: u32,
        used: &[NodeId],
    ) -> NodeId {
        let stretch = self.stretch(thread);
        let me = &mut self.threads[thread.index()];
        let (star, statement, class) = (me.star, me.statement, me.class);
        let start = self.uses.len() as u32;
        if matches!(act, Act::Write | Act::Let | Act::Branch) {
            self.uses.append(&mut me.pending);
        }
        self.uses.extend_from_slice(used);
        let node = Node { act, class, stretch, star, statement, site, place, uses: start, gap: 0 };
        self.nodes.push(node);
        self.nodes.len() as NodeId - 1
    }

    fn stretch(&mut self, thread: ThreadId) -> u32 {
        let me = &mut self.threads[thread.index()];
        if me.stretch == NONE {
            let mark = me.marks.last().copied().unwrap_or(NONE);
            let lazy = me.lazy;
            me.stretch = self.stretches.len() as u32;
            self.stretches.push(Stretch {
                alone: self.alive == 0,
                thread,
                by_thread: lazy.map_or(me.own, |l| l.by_thread),
                by_mark: lazy.map_or(mark, |l| l.by_mark),
            });
        }
        me.stretch
    }

    fn read(&mut self, thread: ThreadId, site: SiteId, range: Range) -> NodeId {
        let place = self.memory.place(range);
        let node = self.node(thread, site, Act::Read, place, &[]);
        self.me(thread).untaken = Some(node);
        node
    }

    fn write(
        &mut self,
        thread: ThreadId,
        site: SiteId,
        range: Range,
        used: Option<NodeId>,
    ) -> NodeId {
        let place = self.memory.place(range);
        let node = self.node(thread, site, Act::Write, place, used.as_slice());
        self.me(thread).written = Some((node, used.is_some()));
        node
    }

    /// What the thread wrote last updates what it read there.
    fn updates(&mut self, thread: ThreadId, operator: Operator) {
        let Some((write, atomic)) = self.me(thread).written else { return };
        if operator.rounds() && !self.with_floats {
            return;
        }
        let Node { place, stretch, uses: start, .. } = self.nodes[write as usize];
        let next = self.nodes.get(write as usize + 1);
        let uses = &self.uses[start as usize..next.map_or(self.uses.len(), |n| n.uses as usize)];
        let is_read = |&&used: &&NodeId| {
            let node = self.nodes[used as usize];
            node.act == Act::Read && node.place == place && node.stretch == stretch
        };
        let mut reads = uses.iter().filter(is_read);
        let (Some(&read), None) = (reads.next(), reads.next()) else { return };
        let me = &mut self.threads[thread.index()];
        // Nothing else sees what it read.
        me.untaken.take_if(|untaken| *untaken == read);
        let since = |held: &&(LockId, NodeId)| held.1 <= read;
        let locks = || me.held.iter().filter(since).map(|h| h.0).collect();
        let keeps = if atomic { Keeps::Atomic } else { Keeps::Locks(locks()) };
        self.updates.add(write, read, operator, keeps);
    }

    fn atomic(&mut self, thread: ThreadId, site: SiteId, range: Range, op: AtomicOp) {
        let read = op.reads().then(|| self.read(thread, site, range));
        if op.writes() {
            self.write(thread, site, range, read);
        }
    }

    fn flow(&mut self, thread: ThreadId, site: SiteId, flow: Flow) {
        match flow {
            Flow::Use(local) => self.use_local(thread, local),
            Flow::Define(local) => {
                let node = self.node(thread, site, Act::Let, NONE, &[]);
                self.define(thread, local, node);
            }
            Flow::Take(local) => self.take(thread, local),
            Flow::Branch => _ = self.node(thread, site, Act::Branch, NONE, &[]),
            Flow::Updates(operator) => self.updates(thread, operator),
        }
    }

    fn use_local(&mut self, thread: ThreadId, local: LocalId) {
        let defined = self.me(thread).locals.get(local.index()).copied().unwrap_or(NONE);
        if defined == NONE {
            // What the local was from the beginning is the task's own as well.
            let into = self.threads[thread.index()].lazy;
            return self.ties(into.map_or([NONE; 2], |lazy| [lazy.by_thread, lazy.by_mark]));
        }
        self.me(thread).pending.push(defined);
        let (from, to) = (self.nodes[defined as usize].stretch, self.stretch(thread));
        if from == to {
            return;
        }
        // A value that a thread carries from one marked task to another, or out of a lazy initialisation, orders
        // the two.
        let (from, to) = (self.stretches[from as usize], self.stretches[to as usize]);
        let carried = [(from.by_thread, to.by_thread), (from.by_mark, to.by_mark)];
        for (from, to) in carried {
            let piece = self.pieces.get(from as usize).map(|p| p.kind);
            let unordered = matches!(piece, Some(PieceKind::Task(_) | PieceKind::Lazy(_)));
            if from != to && to != NONE && unordered {
                self.orders.push((from, to));
            }
        }
        // What flows into a lazy initialisation, or out of one, would be missing if another task did it.
        let into = self.threads[thread.index()].lazy.filter(|lazy| defined < lazy.first);
        let into = into.map_or([NONE; 2], |lazy| [lazy.by_thread, lazy.by_mark]);
        self.ties(into);
        self.ties([from.by_thread, from.by_mark]);
    }

    /// Those of these that are lazy initialisations are part of their task.
    fn ties(&mut self, pieces: [PieceId; 2]) {
        for piece in pieces {
            if let Some(piece) = self.pieces.get_mut(piece as usize) {
                piece.tied |= matches!(piece.kind, PieceKind::Lazy(_));
            }
        }
    }

    fn define(&mut self, thread: ThreadId, local: LocalId, node: NodeId) {
        let locals = &mut self.me(thread).locals;
        if local.index() >= locals.len() {
            locals.resize(local.index() + 1, NONE);
        }
        locals[local.index()] = node;
    }

    fn take(&mut self, thread: ThreadId, local: LocalId) {
        if let Some(read) = self.me(thread).untaken.take() {
            self.define(thread, local, read);
        }
    }

    /// No local has taken what was read last: it may have decided anything.
    fn settle(&mut self, thread: ThreadId, site: SiteId) {
        if let Some(read) = self.me(thread).untaken.take() {
            let pending = std::mem::take(&mut self.me(thread).pending);
            self.node(thread, site, Act::Branch, NONE, &[read]);
            self.me(thread).pending = pending;
        }
    }

    fn signal(&mut self, thread: ThreadId, site: SiteId, object: Object) {
        let place = self.memory.object(object);
        let node = self.node(thread, site, Act::Write, place, &[]);
        self.nodes[node as usize].class = SIGNALS;
    }

    fn await_signal(&mut self, thread: ThreadId, site: SiteId, object: Object) {
        let place = self.memory.object(object);
        let read = self.node(thread, site, Act::Read, place, &[]);
        self.node(thread, site, Act::Branch, NONE, &[read]);
    }

    fn enter(&mut self, thread: ThreadId, site: SiteId, region: RegionId, kind: RegionKind) {
        let at = self.nodes.len() as NodeId;
        let me = &mut self.threads[thread.index()];
        let (star, statement, class) = (me.star, me.statement, me.class);
        if kind != RegionKind::Statement {
            me.open.push(Open { region, kind, star, class });
        }
        let instance = |outer| Instance { region, outer, thread, site, span: (at, NONE) };
        match kind {
            RegionKind::Star => {
                me.star = self.stars.len() as u32;
                self.stars.push(instance(star));
            }
            RegionKind::Statement => {
                me.statements.push((region, statement));
                me.statement = self.statements.len() as u32;
                self.statements.push(instance(statement));
            }
            RegionKind::Commutes => {
                let next = u16::try_from(self.classes.len() + 1).unwrap_or(0);
                let next = if next >= FIRST_CLASS { 0 } else { next };
                me.class = *self.classes.entry(region).or_insert(next);
            }
            RegionKind::Task => {
                self.any_task = true;
                let outer = me.marks.last().copied().unwrap_or(NONE);
                let piece = self.piece(PieceKind::Task(region), thread, outer);
                let me = self.me(thread);
                me.marks.push(piece);
                me.stretch = NONE;
            }
            RegionKind::Lazy => self.enter_lazy(thread),
            RegionKind::Atomic | RegionKind::Deterministic => {}
        }
    }

    fn enter_lazy(&mut self, thread: ThreadId) {
        let me = &self.threads[thread.index()];
        if me.lazy.is_some() {
            return;
        }
        let (own, mark) = (me.own, me.marks.last().copied());
        let task = if me.whole == NONE { own } else { me.whole };
        let parent = self.pieces[task as usize].parent;
        let by_thread = self.piece(PieceKind::Lazy(own), thread, parent);
        let by_mark = mark.map_or(NONE, |mark| {
            let parent = self.pieces[mark as usize].parent;
            self.piece(PieceKind::Lazy(mark), thread, parent)
        });
        let first = self.nodes.len() as NodeId;
        let me = self.me(thread);
        me.lazy = Some(Lazy { first, by_thread, by_mark });
        me.stretch = NONE;
    }

    fn exit(&mut self, thread: ThreadId, region: RegionId) {
        let at = self.nodes.len() as NodeId;
        let me = &mut self.threads[thread.index()];
        if let Some((_, outer)) = me.statements.pop_if(|s| s.0 == region) {
            if let Some(instance) = self.statements.get_mut(me.statement as usize) {
                instance.span.1 = at;
            }
            me.statement = outer;
            return;
        }
        let Some(open) = me.open.pop_if(|o| o.region == region) else { return };
        let left = match open.kind {
            RegionKind::Star => self.stars.get_mut(me.star as usize),
            RegionKind::Task => {
                me.marks.pop();
                me.stretch = NONE;
                None
            }
            RegionKind::Lazy => {
                self.exit_lazy(thread, region);
                return;
            }
            RegionKind::Statement
            | RegionKind::Commutes
            | RegionKind::Atomic
            | RegionKind::Deterministic => None,
        };
        if let Some(instance) = left {
            instance.span.1 = at;
        }
        (me.star, me.class) = (open.star, open.class);
    }

    /// A lazy initialisation was done or, if nothing happened in it, passed because it had been done.
    fn exit_lazy(&mut self, thread: ThreadId, region: RegionId) {
        let me = self.me(thread);
        if me.open.iter().any(|o| o.kind == RegionKind::Lazy) {
            return;
        }
        let did = me.lazy.is_some() && me.stretch != NONE;
        let pending = std::mem::take(&mut me.pending);
        let place = self.memory.object(Object::Once(region));
        let site = self.nodes.last().map_or(SiteId(0), |n| n.site);
        if did {
            let write = self.node(thread, site, Act::Write, place, &[]);
            self.nodes[write as usize].class = ONCE;
        }
        let me = self.me(thread);
        (me.lazy, me.stretch) = (None, NONE);
        if !did {
            let read = self.node(thread, site, Act::Read, place, &[]);
            self.nodes[read as usize].class = ONCE;
            self.node(thread, site, Act::Branch, NONE, &[read]);
        }
        self.me(thread).pending = pending;
    }

    fn fork(&mut self, thread: ThreadId, child: ThreadId) {
        self.appear(child);
        self.alive += 1;
        let me = &self.threads[thread.index()];
        let (own, parent, star) = (me.own, me.whole, me.star);
        let mark = me.marks.last().copied();
        let depth = self.pieces.get(parent as usize).map_or(0, |p| p.depth + 1);
        let started = self.me(child);
        started.star = star;
        started.marks = mark.into_iter().collect();
        let (whole, first) = (started.whole, started.own);
        // Threads that start are known only from here on.
        let Some(piece) = self.pieces.get_mut(whole as usize) else { return };
        (piece.parent, piece.depth) = (parent, depth);
        self.pieces[first as usize].depth = depth + 1;
        self.orders.push((own, whole));
        self.go_on(thread);
    }

    fn join(&mut self, thread: ThreadId, child: ThreadId) {
        self.appear(child);
        self.alive = self.alive.saturating_sub(1);
        self.go_on(thread);
        let (ended, now) = (&self.threads[child.index()], &self.threads[thread.index()]);
        let ended = if ended.whole == NONE { ended.own } else { ended.whole };
        self.orders.push((ended, now.own));
    }

    /// The thread goes on in another stretch of its own.
    fn go_on(&mut self, thread: ThreadId) {
        let (before, whole) = (self.me(thread).own, self.me(thread).whole);
        let own = self.piece(PieceKind::Stretch, thread, whole);
        self.orders.push((before, own));
        let me = self.me(thread);
        (me.own, me.stretch) = (own, NONE);
    }

    fn arrive(&mut self, thread: ThreadId, crossing: (u32, u32)) {
        let me = &self.threads[thread.index()];
        let whole = if me.whole == NONE { me.own } else { me.whole };
        let mark = me.marks.last().copied();
        if !self.barriers.contains_key(&crossing) {
            let parent = self.pieces[whole as usize].parent;
            let by_thread = self.piece(PieceKind::Barrier, thread, parent);
            let by_mark = self.piece(PieceKind::Barrier, thread, NONE);
            self.barriers.insert(crossing, (by_thread, by_mark));
        }
        let (by_thread, by_mark) = self.barriers[&crossing];
        self.orders.push((whole, by_thread));
        self.orders.extend(mark.map(|mark| (mark, by_mark)));
    }

    fn leave(&mut self, thread: ThreadId, crossing: (u32, u32)) {
        let Some(&(by_thread, by_mark)) = self.barriers.get(&crossing) else { return };
        let whole = self.me(thread).whole;
        let now = if whole == NONE {
            NONE
        } else {
            let parent = self.pieces[whole as usize].parent;
            self.piece(PieceKind::Thread, thread, parent)
        };
        let own = self.piece(PieceKind::Stretch, thread, now);
        self.orders.push((by_thread, if now == NONE { own } else { now }));
        let mut marks = std::mem::take(&mut self.me(thread).marks);
        let mut outer = NONE;
        for mark in &mut marks {
            let Piece { kind, .. } = self.pieces[*mark as usize];
            *mark = self.piece(kind, thread, outer);
            outer = *mark;
        }
        self.orders.extend(marks.last().map(|mark| (by_mark, *mark)));
        let me = self.me(thread);
        (me.whole, me.own, me.marks, me.stretch) = (now, own, marks, NONE);
    }
}

/// The writes to each cell, in order, and where they begin. Reads of one cell get to know how many came before.
fn writes(nodes: &mut [Node], cells: &[u32], cells_of: &[u32]) -> (Vec<NodeId>, Vec<u32>) {
    let touched = |node: &Node| {
        let place = node.place as usize;
        &cells[cells_of[place] as usize..cells_of[place + 1] as usize]
    };
    let count = cells.iter().max().map_or(0, |&c| c as usize + 1);
    let mut starts = vec![0; count + 1];
    for node in nodes.iter().filter(|n| n.act == Act::Write) {
        touched(node).iter().for_each(|&cell| starts[cell as usize + 1] += 1);
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut list = vec![0; starts[count] as usize];
    for (i, node) in nodes.iter_mut().enumerate() {
        match node.act {
            Act::Write => {
                for &cell in touched(node) {
                    let next = &mut next[cell as usize];
                    list[*next as usize] = i as NodeId;
                    *next += 1;
                }
            }
            Act::Read | Act::Focus => {
                if let [cell] = *touched(node) {
                    node.gap = next[cell as usize] - starts[cell as usize];
                }
            }
            Act::Let | Act::Branch => {}
        }
    }
    (list, starts)
}

/// A lazy initialisation that reads what a task writes is part of its task: it matters when it is done.
fn tie(execution: &mut Execution) {
    let is_lazy = |p: PieceId| {
        execution.pieces.get(p as usize).is_some_and(|p| matches!(p.kind, PieceKind::Lazy(_)))
    };
    if !(0..execution.pieces.len() as PieceId).any(is_lazy) {
        return;
    }
    let nodes = 0..execution.nodes.len() as NodeId;
    let act = |n: NodeId| execution.nodes[n as usize].act;
    let mut readers: FxHashMap<u32, Vec<PieceId>> = FxHashMap::default();
    for node in nodes.clone().filter(|&n| act(n) == Act::Read && is_lazy(execution.piece(n))) {
        for &cell in execution.cells(node) {
            readers.entry(cell).or_default().push(execution.piece(node));
        }
    }
    let alone = |n: NodeId| execution.stretches[execution.nodes[n as usize].stretch as usize].alone;
    let mut tied = Vec::new();
    for node in nodes.filter(|&n| act(n) == Act::Write && !alone(n)) {
        let writer = execution.piece(node);
        let read = execution.cells(node).iter().filter_map(|cell| readers.get(cell));
        tied.extend(read.flatten().copied().filter(|&reader| reader != writer));
    }
    tied.into_iter().for_each(|piece| execution.pieces[piece as usize].tied = true);
}

/// By cell, whether several write it.
fn contended(execution: &Execution) -> Vec<bool> {
    let count = execution.cell_count();
    let (mut writer, mut several) = (vec![usize::MAX; count], vec![false; count]);
    for (i, node) in execution.nodes.iter().enumerate() {
        if node.act != Act::Write {
            continue;
        }
        let now = execution.writer(i as NodeId);
        for &cell in execution.cells(i as NodeId) {
            let before = std::mem::replace(&mut writer[cell as usize], now);
            several[cell as usize] |= before != usize::MAX && before != now;
        }
    }
    several
}
