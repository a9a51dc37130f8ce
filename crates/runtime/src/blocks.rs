//! The deterministic and atomic blocks of one execution, from its events and the records of values.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_engine::blocks as engine;
use selvedge_model::{
    AtomicOp, Event, Op, RegionKind, SiteId, Step, Symbols, ThreadId, conditions, locks, rendezvous,
};
use selvedge_specs::atomic::{self, AtomicBlocks};
use selvedge_specs::{
    BlockExecution, Misuse, Predicate, Recorder, Said, ThreadName, Token, Unclosed, Word,
};

use crate::judges::Judges;
use crate::values::{Handed, Mark};
use crate::wire::{Record, RecordKind};

/// What the blocks of an execution left.
#[derive(Clone, Debug, Default)]
pub struct BlocksSeen {
    /// The blocks that have ended, in that order.
    pub executions: Vec<BlockExecution<SiteId>>,
    /// The blocks that have not.
    pub unclosed: Vec<Unclosed<SiteId>>,
    /// The tasks in which threads have ended.
    pub open_tasks: Vec<Unclosed<SiteId>>,
    /// Where the program uses blocks as it must not.
    pub misuses: Vec<Misuse<SiteId>>,
    /// The atomic blocks, and what was observed.
    pub atomic: AtomicBlocks<SiteId>,
    /// How the program uses atomic blocks as it must not.
    pub atomic_misuse: Option<atomic::Misuse<SiteId>>,
    /// Where a value was handed over for which there was no room, or which makes no sense.
    pub lost: Option<SiteId>,
}

impl BlocksSeen {
    /// The same with places instead of their ids.
    pub fn placed(self, symbols: &Symbols) -> engine::Blocks {
        let place = |site: SiteId| symbols.site(site);
        let lost = self.lost.map(|site| engine::Wrong::Value {
            name: "?".into(),
            site: place(site),
            why: format!("an execution has room for {} GiB of values", crate::wire::VALUES >> 30),
        });
        let misuse = self.misuses.into_iter().next().map(|m| engine::Wrong::Misuse(m.map(place)));
        let atomic = self.atomic_misuse.map(|m| engine::Wrong::Atomic(m.map(place)));
        let unclosed = |u: Unclosed<SiteId>| Unclosed { block: u.block, site: place(u.site) };
        engine::Blocks {
            executions: self.executions.into_iter().map(|e| e.map(place)).collect(),
            unclosed: self.unclosed.into_iter().map(unclosed).collect(),
            open_tasks: self.open_tasks.into_iter().map(unclosed).collect(),
            wrong: misuse.or(atomic).or(lost),
            atomic: self.atomic.map(place),
            ..engine::Blocks::default()
        }
    }
}

/// Collects the blocks of an execution.
#[derive(Debug, Default)]
pub struct Blocks {
    recorder: Recorder<SiteId>,
    /// What the program's tokens stand for.
    tokens: BTreeMap<u64, Token>,
    atomic: atomic::Recorder<SiteId>,
    /// The threads whose last step may change what it reads: an event that only reads is then an update that failed.
    updating: BTreeSet<ThreadId>,
    /// The threads that end in a region: the runtime leaves it for them.
    abandoning: BTreeSet<ThreadId>,
    seen: BlocksSeen,
    judges: Judges,
    /// Processes that call a function, by the function.
    offers: BTreeMap<u64, u32>,
}

impl Blocks {
    /// No block has begun. Predicates of the program are asked by way of `judges`.
    pub fn new(judges: &Judges) -> Blocks {
        Blocks { judges: judges.clone(), ..Blocks::default() }
    }

    /// A thread, with its name across executions, takes the step that it was about to take.
    pub fn step(&mut self, (thread, across): (ThreadId, ThreadName), step: Step) {
        match step {
            Step::Do(Op::Atomic(_, AtomicOp::Update(_))) => self.updating.insert(thread),
            _ => self.updating.remove(&thread),
        };
        self.atomic.step((thread, across), step.matters());
    }

    /// An event of the execution, by a thread with its name across executions.
    pub fn event(&mut self, event: &Event, across: ThreadName, symbols: &Symbols) {
        if let Op::RegionEnter(region, kind) = event.op {
            let name = symbols.region(region).map_or("", |r| &r.name);
            self.atomic.enter((event.thread, across), (region, kind, name), event.site);
        }
        match event.op {
            Op::Read(access) => self.atomic.access(event.thread, access.addr, false),
            Op::Write(access) => self.atomic.access(event.thread, access.addr, true),
            Op::Atomic(access, op) if op.writes() || !self.updating.contains(&event.thread) => {
                self.atomic.access(event.thread, access.addr, op.writes());
            }
            Op::Fork(child) => self.recorder.start(event.thread, child),
            Op::RegionEnter(region, RegionKind::Deterministic) => {
                let name = symbols.region(region).map_or("", |r| &r.name);
                self.recorder.begin(event.thread, name, event.site);
            }
            Op::RegionExit(region) if self.abandoning.remove(&event.thread) => {
                self.atomic.abandon(event.thread);
                let region = symbols.region(region);
                let kind = region.map(|r| r.kind);
                if kind == Some(RegionKind::Deterministic) {
                    self.recorder.abandon(event.thread);
                } else if kind == Some(RegionKind::Task) {
                    let block = region.map_or("", |r| &r.name).into();
                    self.seen.open_tasks.push(Unclosed { block, site: event.site });
                }
            }
            Op::RegionExit(region) => {
                self.atomic.exit(event.thread);
                let kind = symbols.region(region).map(|r| r.kind);
                if kind == Some(RegionKind::Deterministic) {
                    let ended = self.recorder.end(event.thread, event.site);
                    match ended {
                        // A region without values is no block.
                        Ok(execution) if execution.calls.is_empty() => {}
                        Ok(execution) => self.seen.executions.push(execution),
                        Err(misuse) => self.seen.misuses.push(misuse),
                    }
                }
            }
            Op::Atomic(..)
            | Op::Fence(_)
            | locks!()
            | Op::Join(_)
            | Op::Begin
            | Op::End
            | rendezvous!()
            | conditions!()
            | Op::RegionEnter(..)
            | Op::Flow(_)
            | Op::Focus(_)
            | Op::Alloc(_)
            | Op::Free(_) => {}
        }
    }

    /// Whether a record is about blocks and not an event.
    pub fn is_about(record: &Record) -> bool {
        use RecordKind::{Abandoned, BlockJoin, BlockToken, Judge, StrayExit, Value};
        let kind = record.kind();
        matches!(kind, Some(Abandoned | Value | BlockToken | BlockJoin | Judge | StrayExit))
    }

    /// A record about blocks, of a thread with its name across executions. `handed` is the value that it names;
    /// `function` names a function of the program.
    pub fn record(
        &mut self,
        (thread, across): (ThreadId, ThreadName),
        record: &Record,
        site: SiteId,
        handed: Option<Handed>,
        function: impl FnOnce(u64) -> String,
    ) {
        let used = match record.kind() {
            Some(RecordKind::BlockToken) => {
                self.tokens.insert(record.a, self.recorder.token(thread));
                Ok(())
            }
            Some(RecordKind::BlockJoin) => {
                let token = self.tokens.get(&record.a).copied().unwrap_or(Token::from_number(0));
                self.recorder.join(thread, token, site)
            }
            Some(RecordKind::Judge) => {
                self.offers.insert(record.a, record.b as u32);
                Ok(())
            }
            Some(RecordKind::StrayExit) => Err(Misuse::EndWithoutBegin { site }),
            Some(RecordKind::Abandoned) => {
                self.abandoning.insert(thread);
                Ok(())
            }
            _ => self.value((thread, across), site, handed, function),
        };
        if let Err(misuse) = used
            && !self.seen.misuses.contains(&misuse)
        {
            self.seen.misuses.push(misuse);
        }
    }

    fn value(
        &mut self,
        (thread, across): (ThreadId, ThreadName),
        site: SiteId,
        handed: Option<Handed>,
        function: impl FnOnce(u64) -> String,
    ) -> Result<(), Misuse<SiteId>> {
        let Some(mut handed) = handed else {
            self.seen.lost.get_or_insert(site);
            return Ok(());
        };
        if let Some(mark) = handed.mark() {
            let marked = match mark {
                Mark::Point => self.atomic.point(thread, site),
                Mark::Distinguish | Mark::Indistinct => {
                    self.atomic.distinguish(thread, mark == Mark::Distinguish);
                    Ok(())
                }
            };
            if let Err(misuse) = marked {
                self.seen.atomic_misuse.get_or_insert(misuse);
            }
            return Ok(());
        }
        let (Some(word), Some(predicate)) = (handed.word(), handed.predicate(function)) else {
            self.seen.lost.get_or_insert(site);
            return Ok(());
        };
        if let Predicate::Callback(name) = &predicate
            && let Some(process) = self.offers.remove(&handed.chunk.same)
        {
            self.judges.offer(name, process, handed.is_encoded());
        }
        let name = std::mem::take(&mut handed.name);
        let said = Said { word, name: &name, predicate, value: handed.value() };
        if word == Word::Observe {
            self.atomic.observe(across, said, site);
            return Ok(());
        }
        self.recorder.call(thread, across, said, site)
    }

    /// The blocks that have ended since this was last called.
    pub fn take_ended(&mut self) -> Vec<BlockExecution<SiteId>> {
        std::mem::take(&mut self.seen.executions)
    }

    /// The execution has ended.
    pub fn finish(self) -> BlocksSeen {
        let Blocks { recorder, atomic, seen, .. } = self;
        BlocksSeen { unclosed: recorder.finish(), atomic: atomic.finish(), ..seen }
    }
}
