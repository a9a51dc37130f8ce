//! The deterministic blocks of one execution, from its events and the records of values.

use std::collections::BTreeMap;

use selvedge_engine::blocks as engine;
use selvedge_model::{
    Event, Op, RegionKind, SiteId, Symbols, ThreadId, accesses, conditions, locks, rendezvous,
};
use selvedge_specs::{
    BlockExecution, Misuse, Predicate, Recorder, Said, ThreadName, Token, Unclosed,
};

use crate::judges::Judges;
use crate::values::Handed;
use crate::wire::{Record, RecordKind};

/// What the blocks of an execution left.
#[derive(Clone, Debug, Default)]
pub struct BlocksSeen {
    /// The blocks that have ended, in that order.
    pub executions: Vec<BlockExecution<SiteId>>,
    /// The blocks that have not.
    pub unclosed: Vec<Unclosed<SiteId>>,
    /// Where the program uses blocks as it must not.
    pub misuses: Vec<Misuse<SiteId>>,
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
        let unclosed = |u: Unclosed<SiteId>| Unclosed { block: u.block, site: place(u.site) };
        engine::Blocks {
            executions: self.executions.into_iter().map(|e| e.map(place)).collect(),
            unclosed: self.unclosed.into_iter().map(unclosed).collect(),
            wrong: misuse.or(lost),
            conflicts: 0,
        }
    }
}

/// Collects the blocks of an execution.
#[derive(Debug, Default)]
pub struct Blocks {
    recorder: Recorder<SiteId>,
    /// What the program's tokens stand for.
    tokens: BTreeMap<u64, Token>,
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

    /// An event of the execution.
    pub fn event(&mut self, event: &Event, symbols: &Symbols) {
        match event.op {
            Op::Fork(child) => self.recorder.start(event.thread, child),
            Op::RegionEnter(region, RegionKind::Deterministic) => {
                let name = symbols.region(region).map_or("", |r| &r.name);
                self.recorder.begin(event.thread, name, event.site);
            }
            Op::RegionExit(region) => {
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
            accesses!()
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
        use RecordKind::{BlockJoin, BlockToken, Judge, StrayExit, Value};
        matches!(record.kind(), Some(Value | BlockToken | BlockJoin | Judge | StrayExit))
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
        self.recorder.call(thread, across, said, site)
    }

    /// The blocks that have ended since this was last called.
    pub fn take_ended(&mut self) -> Vec<BlockExecution<SiteId>> {
        std::mem::take(&mut self.seen.executions)
    }

    /// The execution has ended.
    pub fn finish(self) -> BlocksSeen {
        let Blocks { recorder, seen, .. } = self;
        BlocksSeen { unclosed: recorder.finish(), ..seen }
    }
}
