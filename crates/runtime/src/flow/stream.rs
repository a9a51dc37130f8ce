//! Follows threads through their functions.

use std::collections::BTreeMap;

use selvedge_injected::word;
use selvedge_instrument::ir::Loc;
use selvedge_instrument::statements::NONE;
use selvedge_instrument::table::{Callee, Op as Operation, Place};
use selvedge_model::{
    Access, AtomicOp, Event, Flow as Flows, LoadOrder, LocalId, Op, Range, Region, RegionId,
    RegionKind, SiteId, StoreOrder, Symbols, ThreadId, UpdateOrder,
};

use super::calls::{Known, known};
use super::statements::Within;
use super::tables::{FunctionId, Tables};
use crate::decode::Decoder;

/// Locals of a thread that belong to no function: what a call has read, parts of what is read, what it reads next, what
/// is copied, the flag of a star or of statements that are left by a jump.
const READ: u32 = 0;
const PART: u32 = 1;
const NEXT: u32 = 2;
const COPIED: u32 = 3;
const JUMPED: u32 = 4;
const OWN: u32 = 5;

/// A copy of at most so many bytes is followed by words.
const SHORT: u64 = 4096;

/// Where events go, and what they are made with.
#[allow(missing_docs)]
pub struct Writing<'a> {
    pub tables: &'a Tables,
    pub symbols: &'a mut Symbols,
    pub decoder: &'a mut Decoder,
    pub events: &'a mut Vec<Event>,
}

/// The threads of an execution.
#[derive(Debug, Default)]
pub struct Flow {
    threads: Vec<Thread>,
    /// Calls of code of which nothing is known, by what was called, and how often.
    pub unknown: BTreeMap<String, u64>,
    /// The words of the program do not fit its tables; where that was noticed.
    pub broken: Option<String>,
    /// Words that were read.
    pub words: u64,
}

#[derive(Debug)]
struct Thread {
    /// It came to a function that is followed.
    entered: bool,
    frames: Vec<Frame>,
    /// Numbers that the next operation needs.
    have: Vec<u64>,
    /// A range whose length comes next: what happens to it, and where.
    range: Option<(u64, u64)>,
    /// The first local that no function uses.
    next: u32,
    /// Where the last operation was.
    site: SiteId,
}

impl Default for Thread {
    fn default() -> Thread {
        Thread {
            entered: false,
            frames: Vec::new(),
            have: Vec::new(),
            range: None,
            next: OWN,
            site: SiteId(0),
        }
    }
}

#[derive(Debug)]
struct Frame {
    id: FunctionId,
    base: u32,
    block: u32,
    /// The block that control came from.
    before: u32,
    op: usize,
    /// The stars that control is in.
    stars: Vec<(u32, RegionId)>,
    /// Loads that a store may update, each with its address.
    updated: Vec<(u32, u64)>,
    /// The statements that control is in.
    within: Within,
    left: Option<Left>,
    /// This call is a task.
    task: Option<RegionId>,
    /// The one that called is followed, and waits for the result.
    returns: bool,
}

/// A call that has left what is followed.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    /// It came to a followed function that it names.
    followed: bool,
    /// It has been looked at what is known of it.
    counted: bool,
    /// It has read memory.
    read: bool,
}

impl Flow {
    /// Whether a thread came to a function that is followed.
    pub fn has_entered(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.index()).is_some_and(|t| t.entered)
    }

    /// The next words of a thread.
    pub fn read(&mut self, thread: ThreadId, words: impl Iterator<Item = u64>, out: Writing<'_>) {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Thread::default);
        }
        let Flow { threads, unknown, broken, words: count } = self;
        let mut following =
            Following { id: thread, thread: &mut threads[thread.index()], unknown, out };
        for word in words {
            *count += 1;
            if broken.is_some() {
                return;
            }
            *broken = following.word(word >> word::SHIFT, word & word::PAYLOAD).err();
        }
    }
}

struct Following<'a, 'o> {
    id: ThreadId,
    thread: &'a mut Thread,
    unknown: &'a mut BTreeMap<String, u64>,
    out: Writing<'o>,
}

type Step = Result<(), String>;

impl Following<'_, '_> {
    fn word(&mut self, tag: u64, payload: u64) -> Step {
        match tag {
            word::ENTER => self.enter(payload)?,
            word::BLOCK => self.block(payload)?,
            word::LEAVE => {
                self.top()?.left = Some(Left::default());
                return Ok(());
            }
            word::BACK => self.back()?,
            word::READS | word::WRITES | word::FOCUS => {
                self.thread.range = Some((tag, payload));
                return Ok(());
            }
            word::NUMBER if self.thread.range.is_some() => {
                let (what, start) = self.thread.range.take().unwrap_or_default();
                return self.range(what, Range { start, len: payload });
            }
            word::ADDRESS | word::NUMBER => self.thread.have.push(payload),
            _ => return Err(format!("a word of kind {tag}")),
        }
        self.run()
    }

    fn top(&mut self) -> Result<&mut Frame, String> {
        self.thread.frames.last_mut().ok_or_else(|| "outside of all functions".to_owned())
    }

    fn place(&self, addr: u64) -> Result<(FunctionId, Place), String> {
        self.out.tables.place(addr).ok_or_else(|| format!("{addr:#x} is no place"))
    }

    fn enter(&mut self, addr: u64) -> Step {
        let (id, _) = self.place(addr)?;
        let function = self.out.tables.function(id);
        self.thread.entered = true;
        let base = self.thread.next;
        self.thread.next += function.locals;
        let task = self.begin_task(id);
        let returns = self.bind(id, base);
        self.thread.frames.push(Frame {
            id,
            base,
            block: 0,
            before: 0,
            op: 0,
            stars: Vec::new(),
            updated: Vec::new(),
            within: Within::default(),
            left: None,
            task,
            returns,
        });
        Ok(())
    }

    /// The call is a task, unless the thread is in one already.
    fn begin_task(&mut self, id: FunctionId) -> Option<RegionId> {
        let tables = self.out.tables;
        if !tables.is_task(id) || self.thread.frames.iter().any(|f| f.task.is_some()) {
            return None;
        }
        let function = tables.function(id);
        let region = Region { kind: RegionKind::Task, name: function.name.as_str().into() };
        let region = RegionId(self.out.symbols.regions.intern(region));
        let site = self.site(id, function.loc);
        self.event(site, Op::RegionEnter(region, RegionKind::Task));
        Some(region)
    }

    /// Parameters are what the call passes, if the function is the one that is called.
    fn bind(&mut self, id: FunctionId, base: u32) -> bool {
        let tables = self.out.tables;
        let function = tables.function(id);
        let Some(caller) = self.thread.frames.last_mut() else { return false };
        let ops = &tables.function(caller.id).blocks[caller.block as usize];
        let Some((loc, Operation::Call { callee, arguments, .. })) = ops.get(caller.op) else {
            return false;
        };
        let called = match callee {
            Callee::Named(name) => *name == function.name,
            Callee::Computed => true,
            Callee::Assembly(_) => false,
        };
        if let Some(left) = &mut caller.left {
            left.followed |= called;
        }
        let (caller_base, loc, caller_id) = (caller.base, *loc, caller.id);
        let site = self.site(caller_id, loc);
        for parameter in 0..function.parameters {
            // Of a function that is called back, every argument of the call may be in every parameter.
            let uses: Vec<u32> = if called {
                arguments.get(parameter as usize).cloned().unwrap_or_default()
            } else {
                arguments.concat()
            };
            self.uses(site, caller_base, &uses);
            self.flow(site, Flows::Define(LocalId(base + parameter)));
        }
        called
    }

    fn block(&mut self, addr: u64) -> Step {
        let (id, place) = self.place(addr)?;
        // Functions that a jump or an exception has left do not return.
        while self.thread.frames.last().is_some_and(|f| f.id != id) {
            self.pop();
        }
        self.go(place.block)
    }

    /// Control comes to a block of the current function.
    fn go(&mut self, block: u32) -> Step {
        let frame = self.top()?;
        (frame.before, frame.block, frame.op, frame.left) = (frame.block, block, 0, None);
        self.thread.have.clear();
        self.stars(block);
        Ok(())
    }

    /// Control comes to a block: leaves stars, and perhaps enters one.
    fn stars(&mut self, block: u32) {
        let tables = self.out.tables;
        if self.thread.frames.last().is_some_and(|f| tables.layout(f.id).is_some()) {
            return;
        }
        loop {
            let Some(frame) = self.thread.frames.last() else { return };
            let function = tables.function(frame.id);
            let Some(&(star, region)) = frame.stars.last() else { break };
            let known = &function.stars[star as usize];
            if known.inside.binary_search(&block).is_ok() {
                break;
            }
            let site = self.site_of(known.loc);
            self.leave_star(region, site, block == known.end);
        }
        let Some(frame) = self.thread.frames.last() else { return };
        let function = tables.function(frame.id);
        let last = function.blocks[frame.before as usize].last();
        if let Some((loc, Operation::Choose { star })) = last
            && function.stars[*star as usize].enter == block
        {
            let site = self.site_of(*loc);
            let name = self.out.symbols.site(site).to_string().into();
            let region = Region { kind: RegionKind::Star, name };
            let region = RegionId(self.out.symbols.regions.intern(region));
            self.event(site, Op::RegionEnter(region, RegionKind::Star));
            if let Some(frame) = self.thread.frames.last_mut() {
                frame.stars.push((*star, region));
            }
        }
    }

    /// The code around a star that is left by a jump notices that: as if a flag were set inside and tested behind.
    fn leave_star(&mut self, region: RegionId, site: SiteId, normal: bool) {
        if !normal {
            self.flow(site, Flows::Define(LocalId(JUMPED)));
        }
        self.event(site, Op::RegionExit(region));
        if !normal {
            self.uses(site, 0, &[JUMPED]);
            self.flow(site, Flows::Branch);
        }
        if let Some(frame) = self.thread.frames.last_mut() {
            frame.stars.pop();
        }
    }

    /// Control comes to a line of a function: it leaves statements, and enters others.
    fn at(&mut self, id: FunctionId, loc: Loc) {
        let tables = self.out.tables;
        if loc.line > 0
            && loc.file == tables.function(id).loc.file
            && let Some(layout) = tables.layout(id)
        {
            self.go_to(id, loc, layout.innermost((loc.line, loc.column)));
        }
    }

    fn go_to(&mut self, id: FunctionId, loc: Loc, to: u32) {
        let Some(layout) = self.out.tables.layout(id) else { return };
        let site = self.site(id, loc);
        let Some(frame) = self.thread.frames.last() else { return };
        if frame.within.at == to {
            return;
        }
        if let Some(kept) = frame.within.kept(&layout, to) {
            self.flow(site, Flows::Define(LocalId(JUMPED)));
            self.leave_statements(site, kept);
            self.uses(site, 0, &[JUMPED]);
            self.flow(site, Flows::Branch);
        }
        let path = layout.path(to);
        let Some(frame) = self.thread.frames.last() else { return };
        let common = frame.within.common(&path);
        self.leave_statements(site, common);
        for &statement in &path[common..] {
            let region = layout.label(statement).map(|name| {
                let region = Region { kind: RegionKind::Statement, name: name.into() };
                RegionId(self.out.symbols.regions.intern(region))
            });
            if let Some(region) = region {
                self.event(site, Op::RegionEnter(region, RegionKind::Statement));
            }
            if let Some(frame) = self.thread.frames.last_mut() {
                frame.within.open.push((statement, region));
            }
        }
        if let Some(frame) = self.thread.frames.last_mut() {
            frame.within.at = to;
        }
    }

    fn leave_statements(&mut self, site: SiteId, kept: usize) {
        let Some(frame) = self.thread.frames.last_mut() else { return };
        let left: Vec<_> = frame.within.open.drain(kept.min(frame.within.open.len())..).collect();
        for region in left.into_iter().rev().filter_map(|(_, region)| region) {
            self.event(site, Op::RegionExit(region));
        }
    }

    /// The function is left.
    fn pop(&mut self) {
        if let Some(id) = self.thread.frames.last().map(|f| f.id) {
            self.go_to(id, self.out.tables.function(id).loc, NONE);
        }
        while let Some(&(star, region)) = self.thread.frames.last().and_then(|f| f.stars.last()) {
            let frame = self.thread.frames.last().map(|f| f.id);
            let loc = frame.map(|id| self.out.tables.function(id).stars[star as usize].loc);
            let site = self.site_of(loc.unwrap_or_default());
            self.leave_star(region, site, false);
        }
        if let Some(frame) = self.thread.frames.pop() {
            self.thread.next = frame.base;
            if let Some(task) = frame.task {
                let site = self.site(frame.id, self.out.tables.function(frame.id).loc);
                self.event(site, Op::RegionExit(task));
            }
        }
    }

    fn back(&mut self) -> Step {
        let frame = self.top()?;
        let (id, base, block, op) = (frame.id, frame.base, frame.block, frame.op);
        let left = frame.left.unwrap_or_default();
        let ops = &self.out.tables.function(id).blocks[block as usize];
        let Some((loc, Operation::Call { to, callee, arguments, .. })) = ops.get(op) else {
            return Err("a call comes back that was not made".to_owned());
        };
        let site = self.site(id, *loc);
        if !left.followed {
            let known = self.unfollowed(site, callee, arguments);
            let read = self.top()?.left.is_some_and(|l| l.read);
            if known != Known::Recorded {
                self.uses(site, base, &arguments.concat());
                if read {
                    self.uses(site, 0, &[READ]);
                }
            }
            self.flow(site, Flows::Define(LocalId(base + to)));
        }
        let frame = self.top()?;
        frame.left = None;
        frame.op += 1;
        Ok(())
    }

    /// Looks at what is known of a call that is not followed, once.
    fn unfollowed(&mut self, site: SiteId, callee: &Callee, arguments: &[Vec<u32>]) -> Known {
        let (name, known) = match callee {
            Callee::Named(name) => (name.clone(), known(name)),
            Callee::Computed => ("a function by its address".to_owned(), Known::Nothing),
            Callee::Assembly(text) => (format!("assembly `{}`", text.trim()), Known::Nothing),
        };
        let Some(frame) = self.thread.frames.last_mut() else { return known };
        let base = frame.base;
        let left = frame.left.get_or_insert_default();
        if std::mem::replace(&mut left.counted, true) {
            return known;
        }
        if known == Known::Nothing {
            *self.unknown.entry(name).or_default() += 1;
        }
        let decides = matches!(known, Known::Nothing | Known::Shows | Known::CallsBack);
        let uses = arguments.concat();
        if decides && !uses.is_empty() {
            self.uses(site, base, &uses);
            self.flow(site, Flows::Branch);
        }
        known
    }

    /// Code that is not followed accesses memory, or memory is part of the result.
    fn range(&mut self, what: u64, range: Range) -> Step {
        if what == word::FOCUS {
            // What needs no words was done already: the function may have been left.
            let site = self.thread.site;
            for piece in self.out.decoder.pieces(range) {
                self.event(site, Op::Focus(piece.range()));
            }
            return Ok(());
        }
        let Some(frame) = self.thread.frames.last() else { return Ok(()) };
        let (id, block, op) = (frame.id, frame.block, frame.op);
        let ops = &self.out.tables.function(id).blocks[block as usize];
        let loc = ops.get(op).or(ops.last()).map_or(Loc::default(), |o| o.0);
        let site = self.site(id, loc);
        let (mut known, mut base, mut uses) = (Known::Nothing, 0, Vec::new());
        if let Some((_, Operation::Call { callee, arguments, .. })) = ops.get(op) {
            known = self.unfollowed(site, callee, arguments);
            base = self.top()?.base;
            uses = arguments.concat();
        }
        if what == word::READS {
            let left = self.top()?.left.get_or_insert_default();
            if std::mem::replace(&mut left.read, true) {
                self.read(site, range, NEXT);
                self.define(site, 0, READ, &[READ, NEXT]);
            } else {
                self.read(site, range, READ);
            }
            if known == Known::Shows {
                for piece in self.out.decoder.pieces(range) {
                    self.event(site, Op::Focus(piece.range()));
                }
            }
            return Ok(());
        }
        let read = self.top()?.left.is_some_and(|l| l.read);
        for piece in self.out.decoder.pieces(range) {
            self.uses(site, base, &uses);
            if read {
                self.uses(site, 0, &[READ]);
            }
            self.event(site, Op::Write(piece));
        }
        Ok(())
    }

    /// Does what needs no more words.
    fn run(&mut self) -> Step {
        loop {
            let Some(frame) = self.thread.frames.last() else { return Ok(()) };
            let (id, base, before) = (frame.id, frame.base, frame.before);
            let ops = &self.out.tables.function(id).blocks[frame.block as usize];
            let Some((loc, does)) = ops.get(frame.op) else { return Ok(()) };
            if let Operation::Jump { to } = does {
                self.go(*to)?;
                continue;
            }
            self.at(id, *loc);
            if self.thread.have.len() < needed(does) || matches!(does, Operation::Call { .. }) {
                return Ok(());
            }
            let site = self.site(id, *loc);
            self.thread.site = site;
            if let Operation::Return { uses } = does {
                self.returned(site, uses);
                continue;
            }
            let have = std::mem::take(&mut self.thread.have);
            self.operation(site, base, before, does, &have);
            self.top()?.op += 1;
        }
    }

    fn operation(&mut self, site: SiteId, base: u32, before: u32, does: &Operation, have: &[u64]) {
        match does {
            Operation::Compute { to, uses } => self.define(site, base, *to, uses),
            Operation::Phi { to, from } => {
                let uses = from.iter().find(|f| f.0 == before).map_or(&[][..], |f| &f.1[..]);
                self.define(site, base, *to, uses);
            }
            Operation::Load { to, at, len, atomic, updated } => {
                self.decide(site, base, at);
                if let (true, Some(frame)) = (*updated, self.thread.frames.last_mut()) {
                    frame.updated.retain(|u| u.0 != *to);
                    frame.updated.push((*to, have[0]));
                }
                let range = Range { start: have[0], len: u64::from(*len) };
                if *atomic {
                    let access = self.whole(range);
                    self.event(site, Op::Atomic(access, AtomicOp::Load(LoadOrder::SeqCst)));
                    self.flow(site, Flows::Take(LocalId(base + to)));
                } else {
                    self.read(site, range, base + to);
                }
            }
            Operation::Store { value, at, len, atomic, updates } => {
                self.decide(site, base, at);
                let range = Range { start: have[0], len: u64::from(*len) };
                let pieces = self.store(site, base, value, range, *atomic);
                let same = |load: u32| {
                    let frame = self.thread.frames.last();
                    frame.is_some_and(|f| f.updated.contains(&(load, have[0])))
                };
                let whole = pieces == 1 && !atomic;
                if let Some((_, operator)) = updates.filter(|&(load, _)| whole && same(load)) {
                    self.flow(site, Flows::Updates(operator));
                }
            }
            Operation::Update { to, value, at, len, operator } => {
                self.decide(site, base, at);
                self.uses(site, base, value);
                let access = self.whole(Range { start: have[0], len: u64::from(*len) });
                self.event(site, Op::Atomic(access, AtomicOp::Update(UpdateOrder::SeqCst)));
                self.flow(site, Flows::Take(LocalId(base + to)));
                if let Some(operator) = operator {
                    self.flow(site, Flows::Updates(*operator));
                }
            }
            Operation::CompareExchange { to, expected, new, at, len } => {
                self.decide(site, base, at);
                let access = self.whole(Range { start: have[0], len: u64::from(*len) });
                self.event(site, Op::Atomic(access, AtomicOp::Load(LoadOrder::SeqCst)));
                self.flow(site, Flows::Take(LocalId(base + to)));
                self.uses(site, base, &[*to]);
                self.uses(site, base, expected);
                self.flow(site, Flows::Branch);
                if have[1] != 0 {
                    self.uses(site, base, new);
                    self.event(site, Op::Atomic(access, AtomicOp::Store(StoreOrder::SeqCst)));
                }
            }
            Operation::Copy { at } => {
                self.decide(site, base, at);
                self.copy(site, have[0], have[1], have[2]);
            }
            Operation::Fill { value, at } => {
                self.decide(site, base, at);
                for piece in self.out.decoder.pieces(Range { start: have[0], len: have[1] }) {
                    self.uses(site, base, value);
                    self.event(site, Op::Write(piece));
                }
            }
            Operation::Decide { uses } => self.decide(site, base, uses),
            Operation::StarValue { to, uses } => {
                let uses = if have[0] != 0 { &uses[..] } else { &[] };
                self.define(site, base, *to, uses);
            }
            Operation::Choose { .. }
            | Operation::Call { .. }
            | Operation::Return { .. }
            | Operation::Jump { .. } => {}
        }
    }

    /// Writes to memory, in as many events as is returned.
    fn store(
        &mut self,
        site: SiteId,
        base: u32,
        value: &[u32],
        range: Range,
        atomic: bool,
    ) -> usize {
        let writes = match atomic {
            true => {
                vec![Op::Atomic(self.whole(range), AtomicOp::Store(StoreOrder::SeqCst))]
            }
            false => self.out.decoder.pieces(range).into_iter().map(Op::Write).collect(),
        };
        let pieces = writes.len();
        for write in writes {
            self.uses(site, base, value);
            self.event(site, write);
        }
        pieces
    }

    fn returned(&mut self, site: SiteId, uses: &[u32]) {
        let Some(frame) = self.thread.frames.last() else { return };
        let (base, returns) = (frame.base, frame.returns);
        let caller = self.thread.frames.len().checked_sub(2).map(|i| &self.thread.frames[i]);
        let to = caller.and_then(|caller| {
            let ops = &self.out.tables.function(caller.id).blocks[caller.block as usize];
            match ops.get(caller.op) {
                Some((_, Operation::Call { to, .. })) => Some(caller.base + to),
                _ => None,
            }
        });
        self.uses(site, base, uses);
        match to.filter(|_| returns) {
            Some(to) => self.flow(site, Flows::Define(LocalId(to))),
            // What is returned to code that is not followed may decide anything; so does the exit code.
            None => self.flow(site, Flows::Branch),
        }
        self.pop();
        if returns
            && let Some(caller) = self.thread.frames.last_mut()
            && caller.left.is_none()
        {
            caller.op += 1;
        }
    }

    fn copy(&mut self, site: SiteId, to: u64, from: u64, len: u64) {
        const WORD: u64 = 8;
        let step = if len <= SHORT { WORD } else { len.max(1) };
        let mut at = 0;
        while at < len {
            let part = step.min(len - at);
            self.read(site, Range { start: from + at, len: part }, COPIED);
            for piece in self.out.decoder.pieces(Range { start: to + at, len: part }) {
                self.uses(site, 0, &[COPIED]);
                self.event(site, Op::Write(piece));
            }
            at += part;
        }
    }

    /// Reads memory into a local.
    fn read(&mut self, site: SiteId, range: Range, local: u32) {
        let pieces = self.out.decoder.pieces(range);
        let several = pieces.len() > 1;
        for (i, piece) in pieces.into_iter().enumerate() {
            self.event(site, Op::Read(piece));
            if !several {
                self.flow(site, Flows::Take(LocalId(local)));
                continue;
            }
            self.flow(site, Flows::Take(LocalId(PART)));
            self.uses(site, 0, &[PART]);
            if i > 0 {
                self.uses(site, 0, &[local]);
            }
            self.flow(site, Flows::Define(LocalId(local)));
        }
    }

    /// Memory that one instruction accesses as a whole.
    fn whole(&mut self, range: Range) -> Access {
        let pieces = self.out.decoder.pieces(range);
        pieces.first().copied().unwrap_or(Access { addr: range.start, len: range.len as u32 })
    }

    fn site(&mut self, id: FunctionId, loc: Loc) -> SiteId {
        self.out.tables.site(id, loc, self.out.symbols)
    }

    /// The site of a line of the current function.
    fn site_of(&mut self, loc: Loc) -> SiteId {
        match self.thread.frames.last().map(|f| f.id) {
            Some(id) => self.site(id, loc),
            None => SiteId(0),
        }
    }

    fn event(&mut self, site: SiteId, op: Op) {
        self.out.events.push(Event { thread: self.id, site, op });
    }

    fn flow(&mut self, site: SiteId, flow: Flows) {
        self.event(site, Op::Flow(flow));
    }

    fn uses(&mut self, site: SiteId, base: u32, locals: &[u32]) {
        for local in locals {
            self.flow(site, Flows::Use(LocalId(base + local)));
        }
    }

    fn define(&mut self, site: SiteId, base: u32, to: u32, uses: &[u32]) {
        self.uses(site, base, uses);
        self.flow(site, Flows::Define(LocalId(base + to)));
    }

    /// Which way the program goes depends on these.
    fn decide(&mut self, site: SiteId, base: u32, uses: &[u32]) {
        if !uses.is_empty() {
            self.uses(site, base, uses);
            self.flow(site, Flows::Branch);
        }
    }
}

/// How many numbers of the program an operation needs.
fn needed(does: &Operation) -> usize {
    match does {
        Operation::Load { .. }
        | Operation::Store { .. }
        | Operation::Update { .. }
        | Operation::StarValue { .. } => 1,
        Operation::CompareExchange { .. } | Operation::Fill { .. } => 2,
        Operation::Copy { .. } => 3,
        Operation::Compute { .. }
        | Operation::Phi { .. }
        | Operation::Decide { .. }
        | Operation::Choose { .. }
        | Operation::Call { .. }
        | Operation::Return { .. }
        | Operation::Jump { .. } => 0,
    }
}
