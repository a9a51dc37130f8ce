//! What one process of a campaign tells another one of its executions.
//!
//! The results of a shard are told in the order of its numbers. A result that leads to the same as an earlier one of the
//! shard is told by the place of that one, and a run of them by its length. So what is told grows with what was found,
//! and not with the number of executions that found nothing.
//!
//! Two results lead to the same if they end alike, say the same of blocks and teach the same. Their schedules differ,
//! but a campaign keeps the schedule of the first execution that ends in a way; the first of all is the first of its
//! shard, and that one is told in full.
//!
//! Guarantee: a campaign that hears of a result, instead of running it, comes to the same state.

use std::collections::HashMap;

use selvedge_explore::Flip;
use selvedge_model::{Site, Uncontrolled};
use selvedge_specs::Digest;
use serde::{Deserialize, Serialize};

use crate::blocks::Blocks;
use crate::confirm::{Attempt, Trial};
use crate::ending::Key;
use crate::executor::{Limit, Outcome};
use crate::run::Run;
use crate::search::Step;
use crate::turns::Turn;
use crate::witness::Judged;

/// The result of a number, as it is told.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) enum Told {
    Searched(Run, Option<Judged>, Vec<Pair>),
    Reached(usize, Run),
    Tried(usize, Number, Trial),
}

/// The number of an attempt.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    At(u64),
    /// One more than that of the last attempt at the prediction that the shard told of.
    Next,
}

/// A pair of a read and a write, and what is known of it.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Pair {
    read: Site,
    write: Option<Site>,
    began: Option<Site>,
    seen: bool,
    tried: u32,
    times: u32,
}

impl From<Flip<Site>> for Pair {
    fn from(Flip { read, write, began, seen, tried, times }: Flip<Site>) -> Pair {
        Pair { read, write, began, seen, tried, times }
    }
}

impl From<Pair> for Flip<Site> {
    fn from(Pair { read, write, began, seen, tried, times }: Pair) -> Flip<Site> {
        Flip { read, write, began, seen, tried, times }
    }
}

/// A part of what a shard tells.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) enum Entry {
    /// Something new.
    New(Box<Told>),
    /// The same as the new entry of this number, so many times.
    Same(usize, u64),
    /// The shard has no more results.
    Exhausted,
}

/// What decides whether two results lead to the same.
#[derive(Serialize)]
struct Essence<'a> {
    attempt: Option<(usize, Number)>,
    ending: (Key, Option<Limit>),
    uncontrolled: &'a [Uncontrolled],
    blocks: Option<&'a Blocks>,
    judged: Option<&'a Judged>,
}

impl<'a> Essence<'a> {
    fn of(run: &'a Run) -> Essence<'a> {
        let limit = match &run.ending.outcome {
            Outcome::Undecided(limit) => Some(*limit),
            Outcome::Exited(_) | Outcome::Failed(_) => None,
        };
        Essence {
            attempt: None,
            ending: (run.ending.key, limit),
            uncontrolled: &run.uncontrolled,
            blocks: (*run.blocks != Blocks::default()).then_some(&*run.blocks),
            judged: None,
        }
    }

    /// Equal for results that lead to the same, and almost surely different for others.
    fn digest(&self) -> Digest {
        let text = serde_json::to_vec(self).expect("names and numbers serialise");
        Digest::of([&text[..]])
    }
}

/// Tells the results of one shard.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// How many new entries there were.
    entries: usize,
    /// The entry of each kind of result that came before.
    known: HashMap<Digest, usize>,
    /// The number of the last attempt at each prediction.
    attempts: HashMap<usize, u64>,
    /// What was not yet taken.
    untold: Vec<Entry>,
    /// How many results there were, and how many of them were taken.
    results: (u64, u64),
}

impl Teller {
    /// Takes in the next result of the shard. True if it should be told soon.
    pub(crate) fn add(&mut self, turn: &Turn) -> bool {
        self.results.0 += 1;
        let (digest, soon) = match turn {
            Turn::Searched(step) => {
                let digest = step.learnt.is_empty().then(|| {
                    let judged = step.judged.as_ref();
                    Essence { judged, ..Essence::of(&step.run) }.digest()
                });
                (digest, matches!(step.run.ending.key, Key::Failed(_)))
            }
            Turn::Reached(..) => (None, true),
            Turn::Tried(index, number, trial) => match (&trial.attempt, &trial.runs[..]) {
                (Attempt::Missed, [run]) => {
                    let number = self.number(*index, *number);
                    let attempt = Some((*index, number));
                    (Some(Essence { attempt, ..Essence::of(run) }.digest()), false)
                }
                _ => (None, true),
            },
        };
        let known = digest.as_ref().and_then(|digest| self.known.get(digest)).copied();
        if let Some(entry) = known {
            match self.untold.last_mut() {
                Some(Entry::Same(same, times)) if *same == entry => *times += 1,
                _ => self.untold.push(Entry::Same(entry, 1)),
            }
        } else {
            let told = self.told(turn);
            self.untold.push(Entry::New(Box::new(told)));
            if let Some(digest) = digest {
                self.known.insert(digest, self.entries);
            }
            self.entries += 1;
        }
        if let Turn::Tried(index, number, _) = turn {
            self.attempts.insert(*index, *number);
        }
        soon && known.is_none()
    }

    fn number(&self, index: usize, number: u64) -> Number {
        match self.attempts.get(&index) {
            Some(last) if last + 1 == number => Number::Next,
            _ => Number::At(number),
        }
    }

    fn told(&self, turn: &Turn) -> Told {
        match turn {
            Turn::Searched(step) => {
                let learnt = step.learnt.iter().cloned().map(Pair::from).collect();
                Told::Searched(step.run.clone(), step.judged.clone(), learnt)
            }
            Turn::Reached(index, run) => Told::Reached(*index, (**run).clone()),
            Turn::Tried(index, number, trial) => {
                Told::Tried(*index, self.number(*index, *number), trial.clone())
            }
        }
    }

    /// There are no more results.
    pub(crate) fn exhaust(&mut self) {
        self.untold.push(Entry::Exhausted);
    }

    /// Whether something was not yet taken, and whether it is more than repetitions.
    pub(crate) fn has_untold(&self) -> (bool, bool) {
        let is_new = |entry: &Entry| !matches!(entry, Entry::Same(..));
        (!self.untold.is_empty(), self.untold.iter().any(is_new))
    }

    /// How many results were taken, and what was not yet taken.
    pub(crate) fn take(&mut self) -> (u64, Vec<Entry>) {
        let after = std::mem::replace(&mut self.results.1, self.results.0);
        (after, std::mem::take(&mut self.untold))
    }
}

/// Hears the results of one shard.
#[derive(Debug, Default)]
pub(crate) struct Hearer {
    entries: Vec<Told>,
    attempts: HashMap<usize, u64>,
}

impl Hearer {
    /// The results that an entry stands for; `None` if it says that there are no more. An error if it refers to
    /// something that was not told.
    pub(crate) fn hear(&mut self, entry: Entry) -> Result<Option<Vec<Turn>>, Unheard> {
        let (told, times) = match entry {
            Entry::Exhausted => return Ok(None),
            Entry::New(told) => {
                self.entries.push((*told).clone());
                (*told, 1)
            }
            Entry::Same(entry, times) => (self.entries.get(entry).ok_or(Unheard)?.clone(), times),
        };
        (0..times).map(|_| self.turn(&told)).collect::<Result<_, _>>().map(Some)
    }

    fn turn(&mut self, told: &Told) -> Result<Turn, Unheard> {
        Ok(match told.clone() {
            Told::Searched(run, judged, learnt) => {
                let learnt = learnt.into_iter().map(Flip::from).collect();
                let (nondeterminism, tried) = (None, Vec::new());
                Turn::Searched(Box::new(Step { run, nondeterminism, judged, tried, learnt }))
            }
            Told::Reached(index, run) => Turn::Reached(index, Box::new(run)),
            Told::Tried(index, number, trial) => {
                let number = match number {
                    Number::At(number) => number,
                    Number::Next => self.attempts.get(&index).ok_or(Unheard)? + 1,
                };
                self.attempts.insert(index, number);
                Turn::Tried(index, number, trial)
            }
        })
    }
}

/// An entry refers to something that was not told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unheard;
