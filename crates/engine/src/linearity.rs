//! What a campaign knows of a program's atomic blocks: interleavings that were judged, and those that no serial
//! execution explains.
//!
//! Guarantee: a violation is an execution that ended, and that [`judge`](crate::witness::judge) found no witness for.
//! An interleaving whose blocks no serial execution has is one by definition 15 (Burnim, §5.2), but only in a program
//! whose blocks can be executed alone at all, which another interleaving shows: otherwise nothing is known.
//! [`Violation::settle`] says that it happened only if its schedule was replayed and judged in the same way again.

use std::collections::BTreeSet;
use std::sync::Arc;

use selvedge_explore::{Abstraction, Divergence};
use selvedge_model::{
    Finding, FindingId, Kind, Place, Role, Schedule, Site, SiteId, Status, Subject, Symbols,
    ThreadId, Verdict as Harmful,
};
use selvedge_specs::atomic::{Interleavings, Looked, Misuse};
use selvedge_specs::{Call, ThreadName};

use crate::blocks::{Blocks, Wrong};
use crate::ending::{Ending, Key};
use crate::executor::{Ask, Executor, Noted};
use crate::replay::{Effort, Replayed, Sought, follow, shortened};
use crate::witness::{Criterion, Judged, Unserial, Verdict};

/// An execution that no serial one explains.
#[derive(Clone, Debug)]
pub struct Violation<P> {
    /// Its identity: the places where the values are observed that no serial execution gives.
    pub id: FindingId,
    /// The names of these values.
    pub names: Vec<Box<str>>,
    /// The calls that observe them.
    pub calls: Vec<Call<Site>>,
    /// The orders that were tried.
    pub judged: Judged,
    /// Its schedule.
    pub schedule: Schedule,
    /// The number of the campaign's execution that showed it.
    pub number: u64,
    /// The accesses that were scheduling points.
    pub points: P,
}

/// The atomic blocks of a campaign.
#[derive(Clone, Debug)]
pub struct Linearity<P> {
    /// The first value that was observed, with its place.
    pub observed: Option<(Box<str>, Site)>,
    /// An execution entered an atomic block.
    pub entered: bool,
    /// Executions in which two threads were in blocks at a time, if only to wait for each other.
    pub met: u64,
    /// How they were judged.
    pub interleavings: Interleavings,
    /// Interleavings whose blocks no serial execution has, while no order could be forced for any interleaving.
    absent: Looked,
    /// The violations that they are if one can.
    withheld: Vec<Violation<P>>,
    /// The blocks that are not conflict-serializable, by name.
    pub conflicts: BTreeSet<Box<str>>,
    /// Blocks that an execution entered and, although it ended normally, did not leave.
    pub unclosed: Option<(Box<str>, Site)>,
    /// What is wrong with the program's use of blocks, if anything: then there is no verdict.
    pub wrong: Option<Wrong>,
    /// The violations, each once.
    pub violations: Vec<Violation<P>>,
}

impl<P> Default for Linearity<P> {
    fn default() -> Linearity<P> {
        Linearity {
            observed: None,
            entered: false,
            met: 0,
            interleavings: Interleavings::default(),
            absent: Looked::default(),
            withheld: Vec::new(),
            conflicts: BTreeSet::new(),
            unclosed: None,
            wrong: None,
            violations: Vec::new(),
        }
    }
}

impl<P: Clone> Linearity<P> {
    /// Takes in what execution `number` of the program says of its atomic blocks, and how it was judged, if it was.
    pub fn add(
        &mut self,
        number: u64,
        (blocks, ended): (&Blocks, Key),
        judged: Option<Judged>,
        (schedule, points): (&Schedule, &P),
    ) {
        let said = &blocks.atomic;
        self.conflicts.extend(blocks.serial_conflicts.iter().cloned());
        self.entered |= said.entered;
        self.know(blocks);
        if matches!(ended, Key::Exited(_)) && self.unclosed.is_none() {
            self.unclosed = said.unclosed.first().cloned();
        }
        let Some(judged) = judged else { return };
        self.met += u64::from(said.met());
        let looked = Looked { interleavings: 1, orders: judged.orders };
        let counts = &mut self.interleavings;
        counts.executions += judged.executions;
        match &judged.verdict {
            Verdict::Same if judged.orders == 0 => counts.serial += 1,
            Verdict::Same => counts.explained.add(looked),
            Verdict::Unforced => counts.unforced += 1,
            Verdict::TooMany => counts.too_many += 1,
            Verdict::Wrong(wrong) => self.wrong = Some((**wrong).clone()),
            Verdict::Differs => counts.unexplained.add(looked),
            Verdict::Absent => self.absent.add(looked),
        }
        if judged.verdict.violates() {
            let names = judged.names(&said.observed);
            let calls = calls(&names, &said.observed);
            let id = identity(&calls);
            let known = if judged.verdict == Verdict::Differs {
                &mut self.violations
            } else {
                &mut self.withheld
            };
            if known.iter().all(|known| known.id != id) {
                let (schedule, points) = (schedule.clone(), points.clone());
                known.push(Violation { id, names, calls, judged, schedule, number, points });
            }
        }
        self.accept_absent();
    }

    /// If a serial order was executed for some interleaving, one whose blocks no serial execution has is a violation.
    fn accept_absent(&mut self) {
        if self.interleavings.decided() == 0 {
            return;
        }
        self.interleavings.unexplained.add(std::mem::take(&mut self.absent));
        for violation in std::mem::take(&mut self.withheld) {
            if self.violations.iter().all(|known| known.id != violation.id) {
                self.violations.push(violation);
            }
        }
    }

    /// Takes in what an execution says that is counted elsewhere: whether anything is observed.
    pub fn know(&mut self, blocks: &Blocks) {
        if let (None, Some(call)) = (&self.observed, blocks.atomic.observed.first()) {
            self.observed = Some((call.key.name.clone(), call.site.clone()));
        }
    }

    /// How the program uses atomic blocks wrongly, as far as only all executions together show it.
    pub fn misuse(&self) -> Option<Misuse<Site>> {
        let (name, site) = self.observed.clone()?;
        if !self.entered {
            return Some(Misuse::NoBlock { name, site });
        }
        let (block, site) = self.unclosed.clone()?;
        Some(Misuse::Unclosed { block, site })
    }

    /// The violation that one replayed execution is.
    pub fn replayed(mut self) -> Option<Violation<P>> {
        self.violations.pop().or_else(|| self.withheld.pop())
    }

    /// Whether something is observed and it is not known of every interleaving whether a serial execution explains it.
    pub fn undecided(&self) -> Option<Undecided> {
        self.observed.as_ref()?;
        let Interleavings { unforced, too_many, .. } = self.interleavings;
        let of = self.interleavings.overlapping() + self.absent.interleavings;
        match unforced + self.absent.interleavings {
            0 if too_many > 0 => Some(Undecided::TooMany { interleavings: too_many, of }),
            0 if of == 0 && self.met == 0 => Some(Undecided::NothingOverlapped),
            0 => None,
            interleavings => Some(Undecided::Unforced { interleavings, of }),
        }
    }
}

/// What is not known about a program's atomic blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undecided {
    /// No thread ran while a block was open, in any execution.
    NothingOverlapped,
    /// No serial order could be forced.
    Unforced {
        /// Of so many interleavings.
        interleavings: u64,
        /// Of all in which blocks overlapped.
        of: u64,
    },
    /// There are more orders than are tried.
    TooMany {
        /// Of so many interleavings.
        interleavings: u64,
        /// Of all in which blocks overlapped.
        of: u64,
    },
}

/// The calls that observe the named values, one for each place.
fn calls(names: &[Box<str>], observed: &[Call<Site>]) -> Vec<Call<Site>> {
    let mut found: Vec<Call<Site>> = Vec::new();
    for call in observed.iter().filter(|c| names.contains(&c.key.name)) {
        if found.iter().all(|known| known.site != call.site) {
            found.push(call.clone());
        }
    }
    found
}

/// The identity of a violation whose values are observed by these calls.
pub fn identity(calls: &[Call<Site>]) -> FindingId {
    let places = calls.iter().map(|call| call.site.to_string());
    FindingId::new(Kind::LinearizabilityViolation, places)
}

/// A violation that its schedule shows again.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The execution.
    pub replayed: Replayed,
    /// How it was judged.
    pub judged: Judged,
    /// The names of threads, as users know them.
    pub threads: Vec<(ThreadName, ThreadId)>,
}

/// What replaying the schedule of a violation led to.
#[derive(Debug)]
pub enum Settled {
    /// It was as no serial execution again.
    Shown(Box<Shown>),
    /// It was not: how the replay ended, and where it left its schedule.
    Otherwise(Box<Ending>, Option<Divergence>),
}

impl<P: crate::executor::Points> Violation<P> {
    /// Replays the schedule and judges the execution again. If it is a violation again, looks for a shorter one.
    pub fn settle<X: Executor<Points = P>>(
        &self,
        executor: &mut X,
        (criterion, left): (&Criterion, u64),
        effort: Effort,
    ) -> Result<Settled, X::Error> {
        let unserial = Arc::new(Unserial::new(criterion.clone(), left));
        let sought = Sought { unserial: Some(Arc::clone(&unserial)), ..Sought::default() };
        let ask = Ask { noted: Noted::Events, points: self.points.clone(), ..Ask::default() };
        let Some(shown) = shortened(executor, &self.schedule, &sought, effort, &ask)? else {
            let again = follow(executor, &self.schedule, &sought, &ask)?;
            return Ok(Settled::Otherwise(Box::new(again.ending), again.divergence));
        };
        // The executor knows the names of the execution that ran last only.
        let replayed = follow(executor, &shown.execution.schedule, &Sought::default(), &ask)?;
        let names = executor.names();
        let threads = (0..replayed.symbols.threads.entries().len() as u32).map(ThreadId);
        let threads = threads.map(|t| (ThreadName(names.thread(t)), t)).collect();
        let of = (&replayed.execution.blocks.atomic, &replayed.execution.schedule);
        let judged = unserial.judge(executor, of, &self.points)?;
        if !judged.verdict.violates() {
            return Ok(Settled::Otherwise(Box::new(replayed.ending), replayed.divergence));
        }
        Ok(Settled::Shown(Box::new(Shown { replayed, judged, threads })))
    }

    /// The finding, with the names in it. Confirmed if it was shown again.
    pub fn finding(&self, shown: Option<&Shown>) -> (Finding, Arc<Symbols>) {
        let mut symbols = shown.map_or_else(Symbols::default, |s| (*s.replayed.symbols).clone());
        let (names, calls) = match shown {
            Some(shown) => {
                let observed = &shown.replayed.execution.blocks.atomic.observed;
                let names = shown.judged.names(observed);
                let calls = calls(&names, observed);
                (names, calls)
            }
            None => (self.names.clone(), self.calls.clone()),
        };
        let place = |call: &Call<Site>| {
            let known = |s: &Shown| s.threads.iter().find(|t| t.0 == call.key.thread).map(|t| t.1);
            let thread = shown.and_then(known).unwrap_or(ThreadId(0));
            let site = SiteId(symbols.sites.intern(call.site.clone()));
            Place { thread, site, role: Role::Observe, held: Vec::new() }
        };
        let places = calls.iter().map(place).collect();
        let finding = Finding {
            kind: Kind::LinearizabilityViolation,
            status: if shown.is_some() { Status::Confirmed } else { Status::Observed },
            verdict: Some(Harmful::Harmful),
            analyses: vec!["witness"],
            subject: Subject::Observed(names),
            places,
            target: None,
            occurrences: 1,
        };
        (finding, Arc::new(symbols))
    }
}
