//! Strategies by name.

use std::fmt;
use std::str::FromStr;

use selvedge_model::{Event, ThreadId};

use crate::dfs::Bounds;
use crate::rng::derive;
use crate::{Choice, Dfs, Dpor, Pct, Pending, Pos, RandomWalk, RoundRobin, Shared, Strategy, Surw};

/// How schedules are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Plan {
    /// PCT, POS, SURW, uniform sampling and random walk in turn.
    Mix,
    /// Every thread equally likely at each step.
    Random,
    /// Random priorities that change at a few points: bugs of the given depth.
    Pct(usize),
    /// Random priorities for steps.
    Pos,
    /// Uniform over the interleavings of the steps on one object.
    Surw,
    /// Uniform over all interleavings.
    Uniform,
    /// All schedules, or all with at most so many preemptions.
    Dfs(Option<usize>),
    /// One schedule of each class that differs only in the order of independent steps.
    Dpor,
    /// Every thread in turn, so many steps each.
    RoundRobin(u32),
}

/// A name of a strategy that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownStrategy(String);

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a strategy; there are mix, random, pct:DEPTH, pos, surw, uniform, dfs, \
             dfs:PREEMPTIONS, dpor and round-robin:STEPS",
            self.0
        )
    }
}

impl std::error::Error for UnknownStrategy {}

impl FromStr for Plan {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Plan, UnknownStrategy> {
        let unknown = || UnknownStrategy(text.to_owned());
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => {
                (name, Some(argument.parse::<usize>().map_err(|_| unknown())?))
            }
            None => (text, None),
        };
        Ok(match (name, argument) {
            ("mix", None) => Plan::Mix,
            ("random", None) => Plan::Random,
            ("pct", depth) => Plan::Pct(depth.unwrap_or(3)),
            ("pos", None) => Plan::Pos,
            ("surw", None) => Plan::Surw,
            ("uniform", None) => Plan::Uniform,
            ("dfs", preemptions) => Plan::Dfs(preemptions),
            ("dpor", None) => Plan::Dpor,
            ("round-robin", steps) => Plan::RoundRobin(steps.unwrap_or(1) as u32),
            _ => return Err(unknown()),
        })
    }
}

/// As [`Plan::from_str`] reads it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Mix => f.write_str("mix"),
            Plan::Random => f.write_str("random"),
            Plan::Pct(depth) => write!(f, "pct:{depth}"),
            Plan::Pos => f.write_str("pos"),
            Plan::Surw => f.write_str("surw"),
            Plan::Uniform => f.write_str("uniform"),
            Plan::Dfs(None) => f.write_str("dfs"),
            Plan::Dfs(Some(preemptions)) => write!(f, "dfs:{preemptions}"),
            Plan::Dpor => f.write_str("dpor"),
            Plan::RoundRobin(steps) => write!(f, "round-robin:{steps}"),
        }
    }
}

impl From<&str> for Plan {
    /// # Panics
    /// If the name is not known; [`Plan::from_str`] does not.
    fn from(text: &str) -> Plan {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// A strategy, and what it can say about how much of the space it has seen.
#[allow(missing_debug_implementations)]
pub struct Planned {
    /// The strategy.
    pub strategy: Box<dyn Strategy>,
    systematic: Systematic,
}

enum Systematic {
    No,
    Dfs(Shared<Dfs>),
    Dpor(Shared<Dpor>),
}

impl Planned {
    /// A strategy that cannot say how much it has seen.
    pub fn aimless(strategy: Box<dyn Strategy>) -> Planned {
        Planned { strategy, systematic: Systematic::No }
    }

    /// Whether every schedule (or class of schedules) has been seen.
    pub fn complete(&self) -> bool {
        match &self.systematic {
            Systematic::No => false,
            Systematic::Dfs(dfs) => dfs.0.borrow().complete(),
            Systematic::Dpor(dpor) => dpor.0.borrow().complete(),
        }
    }

    /// How many classes have been seen by a search that tells them apart.
    pub fn classes(&self) -> Option<u64> {
        match &self.systematic {
            Systematic::Dpor(dpor) => Some(dpor.0.borrow().classes()),
            _ => None,
        }
    }
}

impl Plan {
    /// Whether the search goes through schedules one by one, so that it cannot be shared out.
    pub fn is_systematic(self) -> bool {
        matches!(self, Plan::Dfs(_) | Plan::Dpor | Plan::RoundRobin(_))
    }

    /// The strategy, for at most `limit` executions.
    pub fn strategy(self, seed: u64, limit: u64) -> Planned {
        let mut systematic = Systematic::No;
        let strategy: Box<dyn Strategy> = match self {
            Plan::Mix => Box::new(Mix::new(seed, limit)),
            Plan::Random => Box::new(RandomWalk::new(seed, limit)),
            Plan::Pct(depth) => Box::new(Pct::new(seed, depth, limit)),
            Plan::Pos => Box::new(Pos::new(seed, limit)),
            Plan::Surw => Box::new(Surw::new(seed, limit)),
            Plan::Uniform => Box::new(Surw::uniform(seed, limit)),
            Plan::RoundRobin(steps) => Box::new(RoundRobin::new(steps, limit.min(1))),
            Plan::Dfs(preemptions) => {
                let preemptions = preemptions.unwrap_or(usize::MAX);
                let bounds = Bounds { executions: limit, preemptions, ..Bounds::default() };
                let dfs = Shared::new(Dfs::new(bounds));
                systematic = Systematic::Dfs(dfs.clone());
                Box::new(dfs)
            }
            Plan::Dpor => {
                let bounds = Bounds { executions: limit, ..Bounds::default() };
                let dpor = Shared::new(Dpor::new(bounds));
                systematic = Systematic::Dpor(dpor.clone());
                Box::new(dpor)
            }
        };
        Planned { strategy, systematic }
    }
}

/// Several strategies in turn: what one of them finds in a few executions may take another thousands.
/// No one of them is the best on all of the bundled programs. Random walk rarely is, and so is less often
/// its turn than the others'.
struct Mix {
    strategies: [Box<dyn Strategy>; 5],
    /// Executions begun.
    begun: u64,
    at: usize,
    left: u64,
}

impl Mix {
    /// Whose turn it is: random walk is 0, the others are as in [`Mix::new`].
    const TURNS: [usize; 8] = [1, 2, 3, 4, 1, 2, 3, 0];

    fn new(seed: u64, limit: u64) -> Mix {
        let strategies: [Box<dyn Strategy>; 5] = [
            Box::new(RandomWalk::new(derive(seed, 1), u64::MAX)),
            Box::new(Pct::new(derive(seed, 2), 3, u64::MAX)),
            Box::new(Pos::new(derive(seed, 3), u64::MAX)),
            Box::new(Surw::new(derive(seed, 4), u64::MAX)),
            Box::new(Surw::uniform(derive(seed, 5), u64::MAX)),
        ];
        // Searches side by side begin with different ones.
        Mix { strategies, begun: derive(seed, 0) % 8, at: 0, left: limit }
    }
}

impl Strategy for Mix {
    fn begin(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.at = Mix::TURNS[(self.begun % Mix::TURNS.len() as u64) as usize];
        self.begun += 1;
        self.strategies[self.at].begin()
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.strategies[self.at].choose(choice)
    }
    fn follows_steps(&self) -> bool {
        self.strategies[self.at].follows_steps()
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.strategies[self.at].step(thread, pending);
    }
    fn observe(&mut self, event: &Event) {
        self.strategies[self.at].observe(event);
    }
    fn end(&mut self, pending: &[Pending]) {
        self.strategies[self.at].end(pending);
    }
}
