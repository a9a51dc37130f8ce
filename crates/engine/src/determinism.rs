//! Compares every execution of a deterministic block with those before it.
//!
//! Source: Burnim, *Specifying and testing parallelism*, chapter 3: a block ensures that executions which assume the
//! same come to the same results. Where the paper compares a few runs by a file, every controlled execution of a
//! campaign is compared with all others, by the index of [`selvedge_specs::states`].
//!
//! Guarantee: a violation is two executions of a block, both of which ended it, that agree in everything that is
//! assumed and differ in a value that is ensured. [`Violation::settle`] says that it happened only if both schedules
//! were replayed and the value differed again. A block that no two executions could be compared of is named.
//!
//! Cost: that of [`Index::add`] per execution of a block.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

use selvedge_explore::{Abstraction, Divergence};
use selvedge_model::{
    Finding, FindingId, Kind, Place, Role, Schedule, Site, SiteId, Status, Subject, Symbols,
    ThreadId, Verdict,
};
use selvedge_specs::states::{Checked, ExecutionId, Index, Memory, Obstacle};
use selvedge_specs::{BlockExecution, Judge, Unclosed};

use crate::blocks::{Blocks, Contrast, Differing, Wrong};
use crate::ending::{Ending, Key};
use crate::executor::{Ask, Executor, Noted};
use crate::replay::{Effort, Replayed, Sought, follow, shortened};

/// Where executions of blocks are remembered and compared.
pub trait States {
    /// Compares an execution with those before it, and remembers it with its schedule.
    fn add(
        &mut self,
        execution: &BlockExecution<Site>,
        schedule: &Schedule,
        judge: &mut dyn Judge,
    ) -> Result<Checked<Site>, Box<Wrong>>;

    /// Where an execution that was remembered comes from.
    fn origin(&mut self, id: ExecutionId) -> Origin;

    /// What broke what was inferred of a block, since this was last called.
    fn anomalies(&mut self) -> Vec<Anomaly> {
        Vec::new()
    }

    /// All executions have been added, and none differed.
    fn finish(&mut self) -> Result<(), Box<Wrong>> {
        Ok(())
    }
}

/// An execution of a block that differs in what was inferred of the block, and not asserted.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// The block.
    pub block: Box<str>,
    /// What differs.
    pub differing: Differing,
    /// The earlier execution.
    pub earlier: Origin,
    /// The schedule of this one, if it was controlled.
    pub schedule: Option<Schedule>,
}

/// Where an execution comes from.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Origin {
    /// Its schedule, if that is known.
    pub schedule: Option<Schedule>,
    /// The build of the program, if it is another one: then the schedule cannot be replayed.
    pub build: Option<String>,
}

/// Remembers executions as long as the campaign runs.
#[derive(Debug, Default)]
pub struct InMemory {
    index: Index<Memory<Site>>,
    schedules: HashMap<ExecutionId, Schedule>,
    added: u64,
}

impl States for InMemory {
    fn add(
        &mut self,
        execution: &BlockExecution<Site>,
        schedule: &Schedule,
        judge: &mut dyn Judge,
    ) -> Result<Checked<Site>, Box<Wrong>> {
        self.added += 1;
        let id = ExecutionId(self.added);
        let before = self.index.storage().witnesses();
        let checked = self.index.add(id, execution, "", &[], judge).map_err(wrong)?;
        if self.index.storage().witnesses() > before {
            self.schedules.insert(id, schedule.clone());
        }
        Ok(checked)
    }

    fn origin(&mut self, id: ExecutionId) -> Origin {
        Origin { schedule: self.schedules.get(&id).cloned(), build: None }
    }
}

fn wrong(obstacle: Obstacle<Site, Infallible>) -> Box<Wrong> {
    match obstacle {
        Obstacle::Trouble(trouble) => Box::new(Wrong::Predicate(trouble)),
        Obstacle::Storage(never) => match never {},
    }
}

/// What is known of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// How many executions of it ended.
    pub executions: u64,
    /// How many of these ensured something.
    pub ensuring: u64,
    /// How many of these could be compared with an earlier one.
    pub compared: u64,
}

/// Two executions of a block that differ.
#[derive(Clone, Debug)]
pub struct Violation<P> {
    /// Its identity: the place where the value is ensured.
    pub id: FindingId,
    /// The name of the block.
    pub block: Box<str>,
    /// What differs.
    pub differing: Differing,
    /// The earlier execution.
    pub earlier: Origin,
    /// The schedule of the later one.
    pub schedule: Schedule,
    /// The number of the campaign's execution that showed it.
    pub number: u64,
    /// The accesses that were scheduling points.
    pub points: P,
}

/// The deterministic blocks of a campaign.
#[allow(missing_debug_implementations)]
pub struct Determinism<P> {
    states: Box<dyn States>,
    judge: Box<dyn Judge>,
    /// The blocks by name.
    pub blocks: BTreeMap<Box<str>, Known>,
    /// The blocks that an execution began and, although it ended normally, did not end; each once.
    pub unclosed: Vec<Unclosed<Site>>,
    /// The blocks that an execution which failed was in; each once.
    broken_off: Vec<Unclosed<Site>>,
    /// What is wrong with the program's use of blocks, if anything: then there is no verdict.
    pub wrong: Option<Wrong>,
    /// The violations, each once.
    pub violations: Vec<Violation<P>>,
    /// How many conflicts `determinism` saw in blocks that ensure something.
    pub conflicts: u64,
}

impl<P: Clone> Determinism<P> {
    /// Nothing has been executed yet.
    pub fn new(states: Box<dyn States>, judge: Box<dyn Judge>) -> Determinism<P> {
        Determinism {
            states,
            judge,
            blocks: BTreeMap::new(),
            unclosed: Vec::new(),
            broken_off: Vec::new(),
            wrong: None,
            violations: Vec::new(),
            conflicts: 0,
        }
    }

    /// Takes in what execution `number` of the program says of its blocks, how it ended, and its schedule.
    pub fn add(&mut self, number: u64, (blocks, ended): (&Blocks, Key), at: (&Schedule, &P)) {
        let Blocks { executions, unclosed, wrong, conflicts, .. } = blocks;
        self.conflicts += conflicts;
        if self.wrong.is_none() {
            self.wrong.clone_from(wrong);
        }
        let open = match ended {
            Key::Exited(_) => &mut self.unclosed,
            Key::Failed(_) | Key::Undecided => &mut self.broken_off,
        };
        for block in unclosed {
            if !open.contains(block) {
                open.push(block.clone());
            }
        }
        for execution in executions {
            let known = self.blocks.entry(execution.block.clone()).or_default();
            known.executions += 1;
            // What ensures nothing is remembered for the sake of inference.
            if self.wrong.is_none() {
                known.ensuring += u64::from(execution.ensures());
                match self.states.add(execution, at.0, &mut *self.judge) {
                    Ok(checked) => {
                        known.compared += u64::from(checked.compared > 0);
                        self.violated(number, execution, checked, at);
                    }
                    Err(wrong) => self.wrong = Some(*wrong),
                }
            }
        }
    }

    fn violated(
        &mut self,
        number: u64,
        execution: &BlockExecution<Site>,
        checked: Checked<Site>,
        (schedule, points): (&Schedule, &P),
    ) {
        let Some(violation) = checked.violation else { return };
        let differing = Differing { first: violation.first, later: violation.later };
        let id = identity(differing.site());
        if self.violations.iter().all(|known| known.id != id) {
            self.violations.push(Violation {
                id,
                block: execution.block.clone(),
                differing,
                earlier: self.states.origin(violation.earlier),
                schedule: schedule.clone(),
                number,
                points: points.clone(),
            });
        }
    }

    /// All executions have been added. What does not differ is kept, if states are kept at all.
    pub fn finish(&mut self) {
        if self.violations.is_empty()
            && self.wrong.is_none()
            && let Err(wrong) = self.states.finish()
        {
            self.wrong = Some(*wrong);
        }
    }

    /// What broke what was inferred of a block.
    pub fn anomalies(&mut self) -> Vec<Anomaly> {
        self.states.anomalies()
    }

    /// Whether any block ensures anything.
    pub fn ensures(&self) -> bool {
        self.blocks.values().any(|known| known.ensuring > 0)
    }

    /// The blocks that no execution ended: because it failed, or although it did not.
    pub fn never_ended(&self) -> impl Iterator<Item = &Unclosed<Site>> {
        let ended = |block: &&Unclosed<Site>| self.blocks.contains_key(&block.block);
        let broken_off = self.broken_off.iter().filter(move |block| !ended(block));
        self.unclosed.iter().chain(broken_off)
    }

    /// The blocks that ensure something, and of which no two executions could be compared.
    pub fn incomparable(&self) -> impl Iterator<Item = (&str, Known)> {
        let is_lonely = |known: &Known| known.ensuring > 0 && known.compared == 0;
        self.blocks.iter().filter(move |(_, k)| is_lonely(k)).map(|(name, k)| (&**name, *k))
    }
}

/// The identity of a violation whose value is ensured here.
pub fn identity(site: &Site) -> FindingId {
    FindingId::new(Kind::DeterminismViolation, [site.to_string()])
}

/// A violation that both schedules show again.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What differs.
    pub differing: Differing,
    /// The two executions, the earlier one first.
    pub sides: [Replayed; 2],
    /// The thread that ensures the value, in the second execution.
    pub thread: ThreadId,
}

/// What replaying both schedules of a violation led to.
#[derive(Debug)]
pub enum Settled {
    /// The value differed again.
    Shown(Box<Shown>),
    /// It did not: how the replay that should have shown it ended, and where it left its schedule.
    Otherwise(Box<Ending>, Option<Divergence>),
    /// One of the two executions cannot be repeated: it comes from another build, or its schedule is not known.
    Elsewhere,
}

impl<P: Clone> Violation<P> {
    /// Replays both schedules. If the value differs again, looks for shorter ones.
    pub fn settle<X: Executor<Points = P>>(
        &self,
        executor: &mut X,
        effort: Effort,
    ) -> Result<Settled, X::Error> {
        let Origin { schedule: Some(earlier), build: None } = &self.earlier else {
            return Ok(Settled::Elsewhere);
        };
        let ask = Ask {
            seed: 0,
            releases: false,
            noted: Noted::Events,
            points: self.points.clone(),
            time: None,
            stars: false,
        };
        let first = follow(executor, earlier, &Sought::default(), &ask)?;
        let from_first = self.contrast(&first);
        let second = shortened(executor, &self.schedule, &from_first, effort, &ask)?;
        let Some(second) = second else {
            let again = follow(executor, &self.schedule, &from_first, &ask)?;
            return Ok(Settled::Otherwise(Box::new(again.ending), again.divergence));
        };
        // Shorten the first one as well, as long as it differs from what the second one has become.
        let from_second = self.contrast(&second);
        let shorter = shortened(executor, earlier, &from_second, effort, &ask)?;
        let first = shorter.unwrap_or(first);
        let second = follow(executor, &second.execution.schedule, &self.contrast(&first), &ask)?;
        let shown = Contrast { blocks: Arc::clone(&first.execution.blocks), ..self.place() }
            .shows(&second.execution.blocks, &mut *executor.judge());
        Ok(match shown {
            Some(differing) => {
                let names = executor.names();
                let threads = (0..second.symbols.threads.entries().len() as u32).map(ThreadId);
                let name = differing.first.key.thread.0;
                let thread = threads.clone().find(|&t| names.thread(t) == name);
                let thread = thread.unwrap_or(ThreadId(0));
                Settled::Shown(Box::new(Shown { differing, sides: [first, second], thread }))
            }
            None => Settled::Otherwise(Box::new(second.ending), second.divergence),
        })
    }

    fn place(&self) -> Contrast {
        let site = self.differing.site().clone();
        Contrast { block: self.block.clone(), site, blocks: Arc::default() }
    }

    fn contrast(&self, with: &Replayed) -> Sought {
        let blocks = Arc::clone(&with.execution.blocks);
        let contrast = Contrast { blocks, ..self.place() };
        Sought { contrast: Some(Arc::new(contrast)), ..Sought::default() }
    }

    /// The finding, with the names in it. Confirmed if it was shown again.
    pub fn finding(&self, shown: Option<&Shown>) -> (Finding, Arc<Symbols>) {
        let (mut symbols, thread) = match shown {
            Some(shown) => ((*shown.sides[1].symbols).clone(), shown.thread),
            None => (Symbols::default(), ThreadId(0)),
        };
        let differing = shown.map_or(&self.differing, |shown| &shown.differing);
        let site = SiteId(symbols.sites.intern(differing.site().clone()));
        let finding = Finding {
            kind: Kind::DeterminismViolation,
            status: if shown.is_some() { Status::Confirmed } else { Status::Observed },
            verdict: Some(Verdict::Harmful),
            analyses: vec!["blocks"],
            subject: Subject::Value {
                block: self.block.clone(),
                name: differing.first.key.name.clone(),
            },
            places: vec![Place { thread, site, role: Role::Ensure, held: Vec::new() }],
            target: None,
            occurrences: 1,
        };
        (finding, Arc::new(symbols))
    }
}
