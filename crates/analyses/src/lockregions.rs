//! A heuristic: every stretch of code that holds a lock is meant to be atomic.
//!
//! Marks, for the analysis behind it, an atomic region from an acquisition by a thread that holds no
//! lock until it holds none again. Most code that locks means to be atomic as long as it holds the
//! lock; where it takes others inside, or touches what the lock does not protect, it may not be. A wait
//! on a condition variable gives the lock up, so it ends one region and begins another.
//!
//! Source: the heuristic is that of Atomizer (Flanagan and Freund, POPL 2004, section 5), whose
//! synchronized blocks are the outermost ones here.
//!
//! **Guarantee**: that of the analysis, for these regions and those that are marked. A region is a
//! guess, so that a finding says what was not atomic and not that it should have been.
//!
//! Cost: a counter per thread.

use selvedge_model::{Event, Findings, FirstRace, Op, RegionId, RegionKind, SiteId, Target};

use crate::{Analysis, Bound};

/// An analysis to which locked code is atomic.
#[derive(Debug, Default)]
pub struct LockRegions<A> {
    analysis: A,
    threads: Vec<Holding>,
    found: Findings,
}

/// What a thread holds: how many acquisitions, and where the first was.
#[derive(Clone, Copy, Debug)]
struct Holding {
    locks: u32,
    since: SiteId,
}

impl<A: Analysis> LockRegions<A> {
    /// Nothing has happened yet.
    pub fn new(analysis: A) -> LockRegions<A> {
        LockRegions { analysis, threads: Vec::new(), found: Findings::default() }
    }

    fn pass(&mut self, event: &Event, out: &mut Findings) {
        self.analysis.on_event(event, &mut self.found);
        if !self.found.is_empty() {
            self.hand_over(out);
        }
    }

    /// The regions exist only here, so a strategy cannot aim at something inside of them.
    #[cold]
    fn hand_over(&mut self, out: &mut Findings) {
        for mut finding in std::mem::take(&mut self.found) {
            if let Some(Target::Split { region, .. }) = &mut finding.target {
                *region = region.filter(|r| r.acquisition().is_none());
            }
            out.report(finding);
        }
    }

    fn holding(&mut self, event: &Event) -> &mut Holding {
        let index = event.thread.index();
        if index >= self.threads.len() {
            self.threads.resize(index + 1, Holding { locks: 0, since: SiteId(0) });
        }
        &mut self.threads[index]
    }
}

impl<A: Analysis> Analysis for LockRegions<A> {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        match event.op {
            Op::Acquire(..) => {
                let holding = self.holding(event);
                holding.locks += 1;
                if holding.locks == 1 {
                    holding.since = event.site;
                    let enter =
                        Op::RegionEnter(RegionId::locked_at(event.site), RegionKind::Atomic);
                    self.pass(&Event { op: enter, ..*event }, out);
                }
                self.pass(event, out);
            }
            Op::Release(..) => {
                self.pass(event, out);
                let holding = self.holding(event);
                holding.locks = holding.locks.saturating_sub(1);
                if holding.locks == 0 {
                    let exit = Op::RegionExit(RegionId::locked_at(holding.since));
                    self.pass(&Event { op: exit, ..*event }, out);
                }
            }
            Op::End => {
                self.holding(event).locks = 0;
                self.pass(event, out);
            }
            accesses!()
            | Op::Fence(_)
            | Op::Fork(_)
            | Op::Join(_)
            | Op::Begin
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => self.pass(event, out),
        }
    }

    fn on_first_race(&mut self, race: &FirstRace, out: &mut Findings) {
        self.analysis.on_first_race(race, out);
    }

    fn finish(&mut self, out: &mut Findings) {
        self.analysis.finish(&mut self.found);
        self.hand_over(out);
    }

    fn restart(&mut self) {
        self.analysis.restart();
        self.threads.clear();
        self.found = Findings::default();
    }

    fn bound(&self) -> Option<Bound> {
        self.analysis.bound()
    }
}
