//! Is what an execution with atomic blocks observed as in some serial execution?
//!
//! Source: Burnim, *Specifying and testing parallelism*, algorithm 5 (§5.3) and definition 15 (§5.2). All orders of the
//! top-level blocks that keep the order of blocks which did not overlap are forced, one after the other and the
//! likeliest first ([`linearizations`]), until one observes the same. Serial executions are remembered by their order:
//! many interleavings share them.
//!
//! Deviation: what is outside of blocks is in blocks of one step each, and their orders are not all tried. A step that
//! came before a block comes before it in the serial execution, if its thread can take it then; one that came while
//! the block was open is tried after the block, and if no order agrees, before it.
//!
//! Guarantee: [`Verdict::Differs`] is said only if every order was tried, at least one could be forced, and none of
//! those observed the same. An order that could not be forced is one that has no serial execution: its block has to
//! wait, or its thread comes to another block. [`Verdict::Absent`] is said only if that holds for every order and no
//! step outside of blocks was taken while a block was open, so that nothing is left to try. By condition (2) of
//! definition 15 such an execution is not linearizable; if other interleavings of the program have serial executions,
//! it is a violation (see [`Linearity`](crate::linearity::Linearity)).
//!
//! Cost: one execution per order that is not remembered; at most [`ORDERS`] orders per interleaving.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use selvedge_explore::{Rng, Serial, Strategy, Turn, Unforced};
use selvedge_model::{Schedule, Site};
use selvedge_specs::atomic::{
    AtomicBlock, AtomicBlocks, Tried, Unable, disagreements, linearizations,
};
pub use selvedge_specs::atomic::{UnknownWitness, Witness};
use selvedge_specs::{Call, Judge};

use crate::blocks::Wrong;
use crate::executor::{Ask, Executor, Outcome};

/// At most so many orders are tried for one interleaving.
pub const ORDERS: usize = 5_000;

/// What decides about an execution with atomic blocks.
#[derive(Clone, Debug, Default)]
pub struct Criterion {
    /// Which serial executions count.
    pub witness: Witness,
    /// A specification that decides instead of serial executions.
    pub model: Option<Specified>,
}

/// What a specification says of an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Modelled {
    /// It is as specified.
    Fits,
    /// It is not, from the block of this name on.
    Misfit(Box<str>),
    /// That would take too long to decide.
    Undecided,
}

type Decides = dyn Fn(&AtomicBlocks<Site>) -> Modelled + Send + Sync;

/// A specification of what atomic blocks do.
#[derive(Clone)]
pub struct Specified(Arc<Decides>);

impl Specified {
    /// A specification that decides by a function.
    pub fn new(
        decides: impl Fn(&AtomicBlocks<Site>) -> Modelled + Send + Sync + 'static,
    ) -> Specified {
        Specified(Arc::new(decides))
    }
}

impl fmt::Debug for Specified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Specified")
    }
}

/// What a serial execution observed, or why its order could not be forced.
type Outcomes = Result<Vec<Call<Site>>, Unable>;

/// Serial executions that have been run.
#[derive(Clone, Debug, Default)]
pub struct Serials {
    known: HashMap<(u64, Vec<u32>, Vec<Turn>), Arc<Outcomes>>,
    /// Serial executions of whichever blocks.
    any: Vec<Arc<Outcomes>>,
}

/// What the search for a witness came to.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Verdict {
    /// A serial execution observed the same.
    Same,
    /// None of those that could be forced did.
    Differs,
    /// No serial execution has the same blocks.
    Absent,
    /// No order could be forced, and it is not known that there is none.
    Unforced,
    /// There are more orders than are tried.
    TooMany,
    /// A predicate cannot judge what it was given.
    Wrong(Box<Wrong>),
}

impl Verdict {
    /// Whether no serial execution explains the interleaving.
    pub fn violates(&self) -> bool {
        match self {
            Verdict::Differs | Verdict::Absent => true,
            Verdict::Same | Verdict::Unforced | Verdict::TooMany | Verdict::Wrong(_) => false,
        }
    }
}

/// An interleaving that was judged.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Judged {
    /// Whether it is as some serial execution.
    pub verdict: Verdict,
    /// The orders that were looked at and did not observe the same, in turn.
    pub tried: Vec<Tried<Site>>,
    /// How many orders were looked at.
    pub orders: u64,
    /// How many of them had to be executed.
    pub executions: u64,
    /// The block from which on a specification does not allow the execution, if that decided.
    pub misfit: Option<Box<str>>,
}

impl Judged {
    fn new(verdict: Verdict) -> Judged {
        Judged { verdict, tried: Vec::new(), orders: 0, executions: 0, misfit: None }
    }

    fn modelled(by: Modelled) -> Judged {
        match by {
            Modelled::Fits => Judged { orders: 1, ..Judged::new(Verdict::Same) },
            Modelled::Misfit(name) => {
                Judged { misfit: Some(name), ..Judged::new(Verdict::Differs) }
            }
            Modelled::Undecided => Judged::new(Verdict::TooMany),
        }
    }
}

/// How to judge an interleaving.
#[derive(Clone, Debug)]
pub struct Question<P> {
    /// What decides.
    pub criterion: Criterion,
    /// How many serial executions of other blocks may be run.
    pub left: u64,
    /// The accesses that are scheduling points.
    pub points: P,
}

/// Looks for a serial execution that observes the same as an execution with this schedule.
pub fn judge<X: Executor>(
    executor: &mut X,
    (said, schedule): (&AtomicBlocks<Site>, &Schedule),
    question: &Question<X::Points>,
    serials: &mut Serials,
) -> Result<Judged, X::Error> {
    let Criterion { witness, model } = &question.criterion;
    if let Some(Specified(decides)) = model {
        return Ok(Judged::modelled(decides(said)));
    }
    if said.is_serial() {
        return Ok(Judged::new(Verdict::Same));
    }
    let mut judged = Judged::new(Verdict::Unforced);
    let mut by = executor.judge();
    let ask = Ask { points: question.points.clone(), ..Ask::default() }.following(schedule);
    let keep = witness.keep();
    let eagerly = said.blocks.iter().any(|block| block.outside.0 != block.outside.1);
    for eager in [false, true].into_iter().take(1 + usize::from(eagerly)) {
        for order in linearizations(&said.blocks, keep) {
            if judged.orders as usize >= ORDERS {
                judged.verdict = Verdict::TooMany;
                return Ok(judged);
            }
            let blocks: Vec<&AtomicBlock<Site>> = order.iter().map(|&i| &said.blocks[i]).collect();
            let turns = turns(&blocks, said, eager);
            let key = (schedule.seed, schedule.numbers.clone(), turns);
            let found = match serials.known.get(&key) {
                Some(known) => Arc::clone(known),
                None => {
                    judged.executions += 1;
                    let found = Arc::new(forced(executor, &blocks, (&key.2, &key.1), &ask)?);
                    serials.known.insert(key, Arc::clone(&found));
                    found
                }
            };
            let blocks = blocks.iter().map(|b| b.id.clone()).collect();
            if judged.take(said, &found, blocks, &mut *by) {
                return Ok(judged);
            }
        }
    }
    // Steps outside of blocks have other places in other orders, of which only two are tried.
    let all_tried = match witness {
        Witness::Linearizable => !eagerly,
        Witness::Serializable => said.outside.is_empty(),
        Witness::Atomic => {
            others(executor, said, question, (serials, &mut judged), &ask)?;
            false
        }
    };
    if judged.verdict == Verdict::Unforced && all_tried && judged.has_no_order() {
        judged.verdict = Verdict::Absent;
    }
    Ok(judged)
}

impl Judged {
    /// Compares with a serial execution: whether that decides.
    fn take(
        &mut self,
        said: &AtomicBlocks<Site>,
        found: &Outcomes,
        blocks: Vec<selvedge_specs::atomic::BlockName>,
        judge: &mut dyn Judge,
    ) -> bool {
        self.orders += 1;
        let outcome = match found {
            Err(unable) => Err(unable.clone()),
            Ok(calls) => match disagreements(&said.observed, calls, judge) {
                Ok(differing) => Ok(differing),
                Err(trouble) => {
                    self.verdict = Verdict::Wrong(Box::new(Wrong::Predicate(trouble)));
                    return true;
                }
            },
        };
        match &outcome {
            Ok(differing) if differing.is_empty() => {
                self.verdict = Verdict::Same;
                return true;
            }
            Ok(_) => self.verdict = Verdict::Differs,
            Err(_) => {}
        }
        // Steps outside of blocks may have been tried in two ways: one order all the same.
        let tried = Tried { blocks, outcome };
        if !self.tried.contains(&tried) {
            self.tried.push(tried);
        }
        false
    }

    /// Whether every order failed because its serial execution has other blocks, or has to wait.
    fn has_no_order(&self) -> bool {
        let is_known = |tried: &Tried<Site>| match &tried.outcome {
            Err(Unable::Waits(_) | Unable::Missed(_) | Unable::Other { .. }) => true,
            Err(Unable::Failed | Unable::CutOff) | Ok(_) => false,
        };
        !self.tried.is_empty() && self.tried.iter().all(is_known)
    }

    /// The names of what no serial execution observes: those that differ in every one of them or, if each is right
    /// in one of them, those that differ in the first. If there is no serial execution, all.
    pub fn names(&self, observed: &[Call<Site>]) -> Vec<Box<str>> {
        if let Some(name) = &self.misfit {
            return vec![name.clone()];
        }
        if self.verdict == Verdict::Absent {
            let names: BTreeSet<Box<str>> = observed.iter().map(|c| c.key.name.clone()).collect();
            return names.into_iter().collect();
        }
        let differing = || self.tried.iter().filter_map(|t| t.outcome.as_ref().ok());
        let names = |of: &Vec<selvedge_specs::Difference<Site>>| {
            let mut names: Vec<Box<str>> = of.iter().map(|d| d.key.name.clone()).collect();
            names.sort();
            names.dedup();
            names
        };
        let Some(first) = differing().next().map(names) else { return Vec::new() };
        let always = |name: &str| differing().all(|of| of.iter().any(|d| *d.key.name == *name));
        let every: Vec<Box<str>> = first.iter().filter(|name| always(name)).cloned().collect();
        if every.is_empty() { first } else { every }
    }
}

/// The blocks in this order, and the steps outside of them as they were.
fn turns(blocks: &[&AtomicBlock<Site>], said: &AtomicBlocks<Site>, eager: bool) -> Vec<Turn> {
    let mut turns = Vec::with_capacity(blocks.len());
    let mut outside = 0;
    for block in blocks {
        let before = if eager { block.outside.1 } else { block.outside.0 };
        let steps = said.outside.get(outside..before).unwrap_or_default();
        turns.extend(steps.iter().map(|thread| Turn::Step(thread.0)));
        outside = outside.max(before);
        turns.push(Turn::Block(block.id.thread.0));
    }
    turns
}

/// Executes blocks alone, in this order.
fn forced<X: Executor>(
    executor: &mut X,
    blocks: &[&AtomicBlock<Site>],
    (turns, numbers): (&[Turn], &[u32]),
    ask: &Ask<X::Points>,
) -> Result<Outcomes, X::Error> {
    let mut serial = Serial::new(turns.to_vec(), numbers.to_vec(), executor.names_now());
    serial.begin(Rng::new(ask.seed));
    let execution = executor.run(&mut serial, ask)?;
    let name = |n: usize| blocks[n.min(blocks.len() - 1)].id.clone();
    Ok(match (serial.unforced(), &execution.outcome) {
        (Some(Unforced::Waits(n)), _) => Err(Unable::Waits(name(n))),
        (_, Outcome::Undecided(_)) => Err(Unable::CutOff),
        (_, Outcome::Failed(_)) => Err(Unable::Failed),
        (Some(Unforced::Missed(n)), _) => Err(Unable::Missed(name(n))),
        (None, Outcome::Exited(_)) => {
            let atomic = &execution.blocks.atomic;
            let differs =
                |i: &usize| blocks.get(*i).map(|b| &b.id) != atomic.blocks.get(*i).map(|b| &b.id);
            let other = (0..blocks.len().max(atomic.blocks.len())).find(differs).map(|i| {
                let expected = blocks.get(i).map(|b| b.id.clone());
                Unable::Other { expected, found: atomic.blocks.get(i).map(|b| b.id.clone()) }
            });
            other.map_or_else(|| Ok(atomic.observed.clone()), Err)
        }
    })
}

/// Serial executions of whichever blocks.
fn others<X: Executor>(
    executor: &mut X,
    said: &AtomicBlocks<Site>,
    question: &Question<X::Points>,
    (serials, judged): (&mut Serials, &mut Judged),
    ask: &Ask<X::Points>,
) -> Result<(), X::Error> {
    let mut by = executor.judge();
    for i in 0..question.left {
        if serials.any.len() as u64 <= i {
            let mut serial = Serial::any(executor.names_now());
            serial.begin(Rng::of_execution(ask.seed, i));
            let execution = executor.run(&mut serial, ask)?;
            judged.executions += 1;
            let found = match (serial.unforced(), &execution.outcome) {
                (None, Outcome::Exited(_)) => Ok(execution.blocks.atomic.observed.clone()),
                _ => Err(Unable::CutOff),
            };
            serials.any.push(Arc::new(found));
        }
        let found = Arc::clone(&serials.any[i as usize]);
        if found.is_ok() && judged.take(said, &found, Vec::new(), &mut *by) {
            return Ok(());
        }
    }
    Ok(())
}

/// That an execution must be as no serial one, for replays.
#[derive(Debug)]
pub struct Unserial {
    criterion: Criterion,
    /// How many serial executions of other blocks may be run.
    left: u64,
    serials: Mutex<Serials>,
}

impl Unserial {
    /// Nothing has been executed yet.
    pub fn new(criterion: Criterion, left: u64) -> Unserial {
        Unserial { criterion, left, serials: Mutex::default() }
    }

    /// Judges an execution.
    pub fn judge<X: Executor>(
        &self,
        executor: &mut X,
        of: (&AtomicBlocks<Site>, &Schedule),
        points: &X::Points,
    ) -> Result<Judged, X::Error> {
        let question =
            Question { criterion: self.criterion.clone(), left: self.left, points: points.clone() };
        let mut serials = self.serials.lock().unwrap_or_else(PoisonError::into_inner);
        judge(executor, of, &question, &mut serials)
    }
}
