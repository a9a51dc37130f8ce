//! What one process of a campaign tells another one of its executions.
//!
//! The results of a shard are told in the order of its numbers. A result that leads to the same as an earlier one of the
//! shard is told by the place of that one, and a run of them by its length. So what is told grows with what was found,
//! and not with the number of executions that found nothing.
//!
//! Two results lead to the same if they end alike and say the same of blocks; what they teach is told apart, and so is
//! little. Their schedules differ,
//! but a campaign keeps the schedule of the first execution that ends in a way; the first of all is the first of its
//! shard, and that one is told in full.
//!
//! Guarantee: a campaign that hears of a result, instead of running it, comes to the same state.

use std::collections::HashMap;
use std::sync::Arc;

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
    /// The same once, except that it taught this.
    Taught(usize, Vec<Pair>),
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

    /// The part of a run that counts if its atomic blocks were not judged: when they began and ended is then nothing to
    /// anybody.
    fn unjudged(run: &Run) -> Run {
        let mut run = run.clone();
        let atomic = &run.blocks.atomic;
        if !atomic.blocks.is_empty() || !atomic.outside.is_empty() {
            let blocks = Arc::make_mut(&mut run.blocks);
            (blocks.atomic.blocks, blocks.atomic.outside) = Default::default();
        }
        run
    }

    /// Equal for results that lead to the same, and almost surely different for others.
    fn digest(&self) -> Digest {
        let text = serde_json::to_vec(self).expect("names and numbers serialise");
        Digest::of([&text[..]])
    }
}

fn pairs(learnt: &[Flip<Site>]) -> Vec<Pair> {
    learnt.iter().cloned().map(Pair::from).collect()
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
                let judged = step.judged.as_ref();
                let digest = match judged {
                    Some(_) => Essence { judged, ..Essence::of(&step.run) }.digest(),
                    None => Essence::of(&Essence::unjudged(&step.run)).digest(),
                };
                (Some(digest), matches!(step.run.ending.key, Key::Failed(_)))
            }
            Turn::Reached(..) => (None, true),
            Turn::Tried(index, number, trial) => match (&trial.attempt, &trial.runs[..]) {
                (Attempt::Missed, [run]) => {
                    let attempt = Some((*index, self.number(*index, *number)));
                    let run = Essence::unjudged(run);
                    (Some(Essence { attempt, ..Essence::of(&run) }.digest()), false)
                }
                _ => (None, true),
            },
        };
        let known = digest.as_ref().and_then(|digest| self.known.get(digest)).copied();
        let taught = match turn {
            Turn::Searched(step) => &step.learnt[..],
            Turn::Reached(..) | Turn::Tried(..) => &[],
        };
        let entry = match (known, self.untold.last_mut()) {
            (Some(entry), Some(Entry::Same(same, times)))
                if *same == entry && taught.is_empty() =>
            {
                *times += 1;
                None
            }
            (Some(entry), _) if taught.is_empty() => Some(Entry::Same(entry, 1)),
            (Some(entry), _) => Some(Entry::Taught(entry, pairs(taught))),
            (None, _) => {
                self.known.extend(digest.map(|digest| (digest, self.entries)));
                self.entries += 1;
                Some(Entry::New(Box::new(self.told(turn))))
            }
        };
        self.untold.extend(entry);
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
                let run = match &step.judged {
                    Some(_) => step.run.clone(),
                    None => Essence::unjudged(&step.run),
                };
                Told::Searched(run, step.judged.clone(), pairs(&step.learnt))
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
                self.entries.push(match &*told {
                    // What was learnt once is not learnt again.
                    Told::Searched(run, judged, _) => {
                        Told::Searched(run.clone(), judged.clone(), Vec::new())
                    }
                    other => other.clone(),
                });
                (*told, 1)
            }
            Entry::Taught(entry, learnt) => match self.entries.get(entry) {
                Some(Told::Searched(run, judged, _)) => {
                    (Told::Searched(run.clone(), judged.clone(), learnt), 1)
                }
                _ => return Err(Unheard),
            },
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
