//! What the threads of an execution say of their deterministic and atomic blocks.

use std::panic::Location;
use std::sync::Arc;
use std::thread::panicking;

use selvedge_engine::{Blocks, Wrong};
use selvedge_explore::Step;
use selvedge_model::{
    AtomicOp, Failure, Finding, Kind, Op, RegionId, RegionKind, Site, SiteId, Subject, ThreadId,
    allocation, conditions, locks, regions, rendezvous, threads,
};
use selvedge_specs::atomic;
use selvedge_specs::value::Unserializable;
use selvedge_specs::{Misuse, Predicate, Recorder, Said, ThreadName, Value, Word};

use super::fiber::{switch, with};
use super::{Exec, Go, failing};

type Here = &'static Location<'static>;

/// The blocks of an execution.
#[derive(Default)]
pub(crate) struct Speech {
    recorder: Recorder<Site>,
    atomic: atomic::Recorder<Site>,
    blocks: Blocks,
    /// A block has been begun, or something was observed.
    begun: bool,
    /// What an execution without blocks says.
    nothing: Arc<Blocks>,
}

impl Speech {
    /// Forgets the execution before.
    pub(crate) fn clear(&mut self) {
        if self.begun || self.blocks.wrong.is_some() {
            let nothing = Arc::clone(&self.nothing);
            *self = Speech { nothing, ..Speech::default() };
        } else {
            self.atomic = atomic::Recorder::default();
        }
    }
}

/// The block that a thread is in, and the execution that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    token: selvedge_specs::Token,
    generation: u64,
}

impl Exec {
    pub(crate) fn begin_block(
        &mut self,
        region: RegionId,
        name: &str,
        kind: RegionKind,
        site: SiteId,
    ) {
        let site = self.symbols.site(site);
        self.speech.begun = true;
        let thread = (self.current, self.across());
        self.speech.atomic.enter(thread, (region, kind, name), site.clone());
        if kind == RegionKind::Deterministic {
            self.speech.recorder.begin(self.current, name, site);
        }
    }

    /// The name of the current thread across executions.
    fn across(&self) -> ThreadName {
        ThreadName(self.threads[self.current.index()].abstraction)
    }

    /// A thread takes its next step.
    #[inline]
    pub(crate) fn steps(&mut self, thread: ThreadId) {
        let matters = self.pending[thread.index()].step.matters();
        let across = ThreadName(self.threads[thread.index()].abstraction);
        self.speech.atomic.step((thread, across), matters);
    }

    /// The current thread has accessed a variable. A compare-exchange that failed is no distinguished access.
    #[inline]
    pub(crate) fn distinguished(&mut self, op: Op) {
        if !self.speech.atomic.distinguishes() {
            return;
        }
        let (access, writes) = match op {
            Op::Read(access) => (access, false),
            Op::Write(access) => (access, true),
            Op::Atomic(access, op) => {
                let wanted = self.pending[self.current.index()].step;
                let failed = matches!(wanted, Step::Do(Op::Atomic(_, AtomicOp::Update(_))));
                if failed && !op.writes() {
                    return;
                }
                (access, op.writes())
            }
            Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => return,
        };
        self.speech.atomic.access(self.current, access.addr, writes);
    }

    /// A block that its thread leaves by unwinding has not ended: it has no results.
    pub(crate) fn end_block(&mut self, kind: RegionKind, site: SiteId) {
        self.speech.atomic.exit(self.current);
        if kind != RegionKind::Deterministic {
            return;
        }
        let site = self.symbols.site(site);
        if let Ok(execution) = self.speech.recorder.end(self.current, site)
            && !panicking()
        {
            self.speech.blocks.executions.push(execution);
        }
    }

    /// The current thread starts another one.
    pub(crate) fn inherit_block(&mut self, child: ThreadId) {
        if self.speech.begun {
            self.speech.recorder.start(self.current, child);
        }
    }

    /// The execution is over: what its threads have said. Conflicts in blocks that ensure something are no
    /// findings: what these blocks ensure says whether the conflicts matter.
    pub(crate) fn take_speech(&mut self, findings: &mut Vec<Finding>) -> Arc<Blocks> {
        if !self.speech.begun && self.speech.blocks.wrong.is_none() {
            return Arc::clone(&self.speech.nothing);
        }
        let recorder = std::mem::take(&mut self.speech.recorder);
        let mut blocks = std::mem::take(&mut self.speech.blocks);
        blocks.unclosed = recorder.finish();
        blocks.atomic = std::mem::take(&mut self.speech.atomic).finish();
        self.serial_conflicts(&mut blocks, findings);
        let before = findings.len();
        findings.retain(|finding| match finding.subject {
            Subject::Region(region) if finding.kind == Kind::DeterminismViolation => {
                let name = self.symbols.region(region).map(|r| &*r.name);
                let ensures = |b: &selvedge_specs::BlockExecution<Site>| {
                    Some(&*b.block) == name && b.ensures()
                };
                !blocks.executions.iter().any(ensures)
            }
            _ => true,
        });
        blocks.conflicts = (before - findings.len()) as u64;
        Arc::new(blocks)
    }

    /// Where something is observed, that decides about atomic blocks, and not their conflicts.
    fn serial_conflicts(&self, blocks: &mut Blocks, findings: &mut Vec<Finding>) {
        if !blocks.observes() {
            return;
        }
        findings.retain(|finding| match finding.subject {
            Subject::Region(region) if finding.kind == Kind::AtomicityViolation => {
                let marked = self.symbols.region(region).filter(|r| r.kind == RegionKind::Atomic);
                blocks.serial_conflicts.extend(marked.map(|r| r.name.clone()));
                marked.is_none()
            }
            _ => true,
        });
    }

    fn wrong(&mut self, wrong: Wrong) -> Go {
        let failure =
            Failure::Message { text: wrong.to_string(), thread: None, ended: None, before: None };
        self.speech.blocks.wrong.get_or_insert(wrong);
        self.stop(failing::without_place(Kind::Crash, failure))
    }

    fn say(
        &mut self,
        (word, name): (Word, &str),
        predicate: Predicate,
        value: Result<Value, Unserializable>,
        here: Here,
    ) -> Go {
        let place = self.place(here);
        let site = self.symbols.site(place.site);
        let value = match value {
            Ok(value) => value,
            Err(why) => {
                let why = why.to_string();
                return self.wrong(Wrong::Value { name: name.into(), site, why });
            }
        };
        let across = self.across();
        let said = Said { word, name, predicate, value };
        if word == Word::Observe {
            self.speech.begun = true;
            self.speech.atomic.observe(across, said, site);
            return Go::On;
        }
        match self.speech.recorder.call(self.current, across, said, site) {
            Ok(()) => Go::On,
            Err(misuse) => self.wrong(Wrong::Misuse(misuse)),
        }
    }
}

/// Whether an execution runs here and a thread may say something. One that unwinds has no results.
pub(crate) fn listens() -> bool {
    with(|_| ()).is_some() && !panicking()
}

/// The current thread hands over a value.
pub(crate) fn say(
    word: Word,
    name: &str,
    predicate: Predicate,
    value: Result<Value, Unserializable>,
    here: Here,
) {
    let go = with(|e| e.say((word, name), predicate, value, here));
    if go == Some(Go::Switch) {
        switch();
    }
}

/// The current thread reaches its linearization point. Whether a check runs here.
#[track_caller]
pub(crate) fn point() -> bool {
    let here = Location::caller();
    let go = with(|e| {
        let place = e.place(here);
        let site = e.symbols.site(place.site);
        match e.speech.atomic.point(e.current, site) {
            Ok(()) => Go::On,
            Err(misuse) => e.wrong(Wrong::Atomic(misuse)),
        }
    });
    if go == Some(Go::Switch) {
        switch();
    }
    go.is_some()
}

/// The accesses that the current thread makes are distinguished from now on, or no longer. Whether a check runs here.
pub(crate) fn distinguish(on: bool) -> bool {
    with(|e| e.speech.atomic.distinguish(e.current, on)).is_some()
}

/// The innermost block of the current thread, if a check runs here.
pub(crate) fn token() -> Option<Token> {
    with(|e| Token { token: e.speech.recorder.token(e.current), generation: e.generation })
}

/// The current thread enters the block of the token.
#[track_caller]
pub(crate) fn join(token: Token) {
    let here = Location::caller();
    let go = with(|e| {
        let place = e.place(here);
        let site = e.symbols.site(place.site);
        if token.generation != e.generation {
            return e.wrong(Wrong::Misuse(Misuse::JoinAfterEnd { site }));
        }
        match e.speech.recorder.join(e.current, token.token, site) {
            Ok(()) => Go::On,
            Err(misuse) => e.wrong(Wrong::Misuse(misuse)),
        }
    });
    if go == Some(Go::Switch) {
        switch();
    }
}

/// The current thread leaves the block that it has joined. Whether a check runs here.
pub(crate) fn leave() -> bool {
    with(|e| {
        let nowhere = Site::Label("".into());
        let none = selvedge_specs::Token::from_number(0);
        let _ = e.speech.recorder.join(e.current, none, nowhere);
    })
    .is_some()
}
