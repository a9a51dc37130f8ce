//! The history that a controlled program writes becomes steps and events.
//!
//! This module holds what only control needs: what threads are about to do, what they hold, and the names
//! by which other executions recognise threads and locks. The [`Decoder`] says what records mean.

use std::sync::atomic::Ordering::Relaxed;

use selvedge_explore::{Abstraction, Fairness, Pending, Step, Strategy};
use selvedge_model::{
    Event, Held, Op, RegionKind, SiteId, ThreadId, accesses, allocation, conditions, regions,
    rendezvous,
};
use selvedge_specs::ThreadName;

use super::wire::{self, Control, Frames};
use crate::blocks::Blocks;
use crate::decode::Decoder;
use crate::flow::{Flow, Tables, Writing};
use crate::judges::Judges;
use crate::names::{Names as Recognised, origin};
use crate::places::{Callers, Names};
use crate::stacks::Stacks;
use crate::values::Handed;
use crate::wire::{Phase, Record, RecordKind};

/// What is needed to place records in the program.
pub struct Lookup<'a> {
    /// Names of addresses.
    pub names: Names<'a>,
    /// A number for a place in static memory that is the same wherever it is loaded; none for others.
    pub statics: &'a dyn Fn(u64) -> Option<u64>,
    /// Finds the value that a record names.
    pub value: &'a dyn Fn(&Record) -> Option<Handed>,
    /// Finds the bytes that a record names.
    pub bytes: &'a dyn Fn(&Record) -> Option<Vec<u8>>,
    /// What the program's code does to values, if it was compiled for that.
    pub tables: Option<&'a Tables>,
}

/// What the ids of one execution stand for.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) decoder: Decoder,
    /// The first line of each thread's function.
    pub(super) begins: Vec<SiteId>,
    /// How threads came to places.
    pub(super) stacks: Stacks,
}

/// One execution so far.
#[derive(Debug)]
pub struct History {
    read: usize,
    pub(super) objects: Objects,
    /// The next step of every thread.
    pub pending: Vec<Pending>,
    /// What has happened.
    pub events: Vec<Event>,
    /// The locks that each thread holds, outermost first.
    pub held: Vec<Vec<Held>>,
    /// How many steps there were.
    pub steps: u64,
    /// The deterministic blocks.
    pub blocks: Blocks,
    /// The events whose values were kept, each with their number in [`Control::seen`].
    pub(super) seen: Vec<(usize, usize)>,
    /// How data flows.
    pub(super) flow: Flow,
    /// What is part of the result, each with its place.
    pub focus: Vec<(SiteId, Vec<u8>)>,
    /// A step of which it is not known yet whether it changed something, and the line behind it.
    open_step: Option<(ThreadId, usize)>,
    names: Recognised,
}

/// The callers of a line that say where it was made: as many as an observed program records, so that a place is the same
/// whether a program is observed or controlled.
fn callers(frames: &Frames) -> Callers {
    std::array::from_fn(|i| frames[i])
}

impl History {
    /// The history of a new execution, whose names go to `names`.
    pub fn new(names: &Recognised, judges: &Judges) -> History {
        names.begin();
        let objects = Objects { decoder: Decoder::numbering(), ..Objects::default() };
        History {
            read: 0,
            objects,
            pending: Vec::new(),
            events: Vec::new(),
            held: Vec::new(),
            steps: 0,
            blocks: Blocks::new(judges),
            seen: Vec::new(),
            flow: Flow::default(),
            focus: Vec::new(),
            open_step: None,
            names: names.clone(),
        }
    }

    /// Reads what is new, and passes it on to a strategy that follows steps. `fairness` gets to know which
    /// steps changed something; of the last one that is known only if it is over.
    pub fn read(
        &mut self,
        c: &Control,
        lookup: &mut Lookup<'_>,
        strategy: &mut dyn Strategy,
        (fairness, is_over): (&mut Fairness, bool),
    ) {
        let follows = strategy.follows_steps();
        let len = (c.log_len.load(Relaxed) as usize).min(wire::LOG);
        while self.read < len {
            let (line, frames) = (&c.log[self.read], c.frames(self.read));
            let callers = callers(&frames);
            self.read += 1;
            let Some((phase, thread)) = line.head() else { continue };
            let (thread, record) = (ThreadId(thread as u32), line.record());
            match phase {
                Phase::Step => {
                    self.close_step(c, fairness);
                    self.open_step = Some((thread, self.read));
                    self.step(thread, strategy, follows);
                }
                Phase::Pending => {
                    self.state(thread, &record, callers, lookup);
                    let site = self.pending[thread.index()].site;
                    self.objects.stacks.came(thread, site, record.pc(), &frames);
                }
                Phase::Event if record.kind() == Some(RecordKind::Flow) => {
                    let first = self.events.len();
                    self.flowed(thread, &record, lookup);
                    if follows {
                        self.tell_tasks(first, lookup, strategy);
                    }
                }
                Phase::Event if record.kind() == Some(RecordKind::Focus) => {
                    let (site, _) = lookup.names.site((record.pc(), callers));
                    self.focus.push((site, (lookup.bytes)(&record).unwrap_or_default()));
                }
                // The words of the flow say the same.
                Phase::Event
                    if matches!(record.kind(), Some(RecordKind::Read | RecordKind::Write))
                        && lookup.tables.is_some_and(|t| t.is_place(record.pc())) => {}
                Phase::Event if Blocks::is_about(&record) => {
                    self.about_blocks(thread, &record, callers, lookup);
                }
                Phase::Event => {
                    let first = self.events.len();
                    self.happened(thread, &record, callers, lookup);
                    // Atomic operations of a lock become events without values.
                    if let (Some(number), [event]) = (line.seen(), &self.events[first..])
                        && matches!(event.op, Op::Read(_) | Op::Write(_) | Op::Atomic(..))
                    {
                        self.seen.push((first, number));
                    }
                    for at in first..self.events.len() {
                        let event = self.events[at];
                        self.objects.stacks.came(thread, event.site, record.pc(), &frames);
                        self.note(&event);
                        let across = ThreadName(self.names.thread(event.thread));
                        self.blocks.event(&event, across, lookup.names.symbols);
                        if follows && !event.is_plain_access() {
                            strategy.observe(&event);
                        }
                    }
                }
            }
        }
        if is_over {
            self.close_step(c, fairness);
        }
    }

    /// Tells whether the last step changed something.
    fn close_step(&mut self, c: &Control, fairness: &mut Fairness) {
        if let Some((thread, line)) = self.open_step.take() {
            let changed = c.slots[thread.index()].changed.load(Relaxed) as usize;
            fairness.stepped(thread, changed >= line);
        }
    }

    /// The thread says how data has flowed.
    fn flowed(&mut self, thread: ThreadId, record: &Record, lookup: &mut Lookup<'_>) {
        let Some(tables) = lookup.tables else { return };
        let bytes = (lookup.bytes)(record).unwrap_or_default();
        let words =
            bytes.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap_or([0; 8])));
        let History { flow, objects, events, .. } = self;
        let Names { symbols, .. } = &mut lookup.names;
        flow.read(
            thread,
            words,
            Writing { tables, symbols, decoder: &mut objects.decoder, events },
        );
    }

    /// Tells a strategy of tasks that are calls of functions, among the events from `first` on.
    fn tell_tasks(&self, first: usize, lookup: &Lookup<'_>, strategy: &mut dyn Strategy) {
        for event in &self.events[first..] {
            let (Op::RegionEnter(region, _) | Op::RegionExit(region)) = event.op else { continue };
            let known = lookup.names.symbols.region(region);
            if known.is_some_and(|r| r.kind == RegionKind::Task) {
                strategy.observe(event);
            }
        }
    }

    /// The thread does what it was about to do.
    fn step(&mut self, thread: ThreadId, strategy: &mut dyn Strategy, follows: bool) {
        self.steps += 1;
        let step = self.pending.get(thread.index()).map_or(Step::Busy, |p| p.step);
        self.blocks.step((thread, ThreadName(self.names.thread(thread))), step);
        if follows {
            strategy.step(thread, &self.pending);
        }
        // What comes next is not known before the thread says so.
        if let Some(pending) = self.pending.get_mut(thread.index()) {
            pending.step = Step::Busy;
        }
    }

    fn state(
        &mut self,
        thread: ThreadId,
        record: &Record,
        callers: Callers,
        lookup: &mut Lookup<'_>,
    ) {
        let locks = self.objects.decoder.locks.all().len();
        let pending = self.objects.decoder.pending(thread.0, record, callers, &mut lookup.names);
        self.name_locks(locks, thread, (record.pc(), callers), lookup);
        self.know(thread, pending);
        self.pending[thread.index()] = pending;
        if record.kind() == Some(RecordKind::Begin) {
            let begins = &mut self.objects.begins;
            begins.resize(begins.len().max(thread.index() + 1), pending.site);
            begins[thread.index()] = pending.site;
        }
    }

    fn happened(
        &mut self,
        thread: ThreadId,
        record: &Record,
        callers: Callers,
        lookup: &mut Lookup<'_>,
    ) {
        let locks = self.objects.decoder.locks.all().len();
        let History { objects, events, .. } = self;
        objects.decoder.event(thread.0, record, callers, &mut lookup.names, events);
        let code = (record.pc(), callers);
        self.name_locks(locks, thread, code, lookup);
        if record.kind() == Some(RecordKind::Fork) {
            let origin = origin(code, lookup.statics);
            self.names.thread_made(ThreadId(record.a as u32), thread, &origin);
        }
        let (site, landmark) = lookup.names.site(code);
        self.know(thread, Pending { site, landmark, step: Step::Busy });
    }

    /// A value is handed over, or a thread enters or leaves a block.
    fn about_blocks(
        &mut self,
        thread: ThreadId,
        record: &Record,
        callers: Callers,
        lookup: &mut Lookup<'_>,
    ) {
        let (site, _) = lookup.names.site((record.pc(), callers));
        let across = ThreadName(self.names.thread(thread));
        let Lookup { names, value, .. } = lookup;
        let handed = value(record);
        let function = |at| names.function_name(at);
        self.blocks.record((thread, across), record, site, handed, function);
    }

    /// Adds a thread of which nothing is known but that it exists.
    fn know(&mut self, thread: ThreadId, first: Pending) {
        let threads = thread.index() + 1;
        if self.pending.len() < threads {
            self.pending.resize(threads, Pending { step: Step::Ended, ..first });
            self.held.resize_with(threads, Vec::new);
        }
    }

    fn note(&mut self, event: &Event) {
        let at = event.thread.index();
        match event.op {
            Op::Acquire(lock, mode) => self.held[at].push(Held { lock, mode, site: event.site }),
            Op::Release(lock, _) => {
                if let Some(i) = self.held[at].iter().rposition(|h| h.lock == lock) {
                    self.held[at].remove(i);
                }
            }
            Op::End => self.pending[at].step = Step::Ended,
            accesses!()
            | Op::Fence(_)
            | Op::Fork(_)
            | Op::Join(_)
            | Op::Begin
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
    }

    /// Locks that are new since there were `before` get their names from where they come from.
    fn name_locks(
        &mut self,
        before: usize,
        maker: ThreadId,
        code: (u64, Callers),
        lookup: &mut Lookup<'_>,
    ) {
        for &(addr, _) in &self.objects.decoder.locks.all()[before..] {
            let origin = origin(code, lookup.statics);
            self.names.lock_made(maker, &origin, (lookup.statics)(addr));
        }
    }

    /// The thread that a thread waits for, if it is known: the holder of a lock, or the thread to join.
    pub(super) fn waits_for(&self, thread: usize) -> Option<ThreadId> {
        match self.pending[thread].step {
            Step::Do(Op::Join(other)) => Some(other),
            Step::Do(Op::Acquire(lock, mode)) | Step::TryAcquire(lock, mode) => {
                let keeps = |h: &Held| h.lock == lock && h.mode.excludes(mode);
                let holder = self.held.iter().position(|held| held.iter().any(keeps))?;
                Some(ThreadId(holder as u32))
            }
            _ => None,
        }
    }
}
