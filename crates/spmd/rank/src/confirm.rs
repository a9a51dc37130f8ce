//! Phase II: makes two accesses that were predicted to race happen at once, and in both orders.
//!
//! Paper: Park, *Active Testing*, algorithm 7.4. A rank that comes to one of the two statements announces the access
//! at the owner of the memory ([`board`](crate::board)) and waits there for a while, with a probability that falls
//! by 0.9 each time it waits in vain; a rank that comes to the other statement and finds an announcement that
//! conflicts with its own has confirmed the race.
//!
//! Deviations: an access of a one-sided or nonblocking call is announced when it is made and until it may be
//! complete, and its rank waits *before the call that completes it*, not before the access: that is how long the
//! access is in flight. Several pairs are tested in one execution. In a further execution an order is forced
//! ([`Plan::first`]): the rank whose turn it is makes its access while the other one waits for it.
//!
//! Guarantee: confirms a pair only if one access of each statement is about to be made or in flight at the same time,
//! at common bytes, one of them writes, and no common lock keeps them apart. All waiting is bounded.
//!
//! Cost: per access from a statement of a pair, one visit of a board, and at most one pause.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::board::{Announced, Board, LOCKS, PIECES, State, Who};
use crate::gather::{Lock, Space};
use crate::owner::Place;
use crate::rules::{self, Act, Bytes, CALLS, Completion, Reach, Side};

/// What the `selvedge` process wants of an execution. [`Plan::parse`] reads what [`Plan::text`] writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The statements of each pair.
    pub pairs: Vec<[Place; 2]>,
    /// Decides who waits.
    pub seed: u64,
    /// The longest wait, in microseconds.
    pub pause: u64,
    /// Which statement of the only pair goes first, if an order is to be forced.
    pub first: Option<u32>,
    /// Every statement is tested with every other one. No two accesses of a program without races meet, so this
    /// checks phase II itself, and the twins of the corpus.
    pub all: bool,
}

impl Plan {
    /// The plan as lines of words that tabs separate.
    pub fn text(&self) -> String {
        let mut text = format!("seed\t{}\npause\t{}\n", self.seed, self.pause);
        if let Some(first) = self.first {
            text.push_str(&format!("first\t{first}\n"));
        }
        if self.all {
            text.push_str("all\n");
        }
        for [a, b] in &self.pairs {
            text.push_str(&format!(
                "pair\t{}\t{}\t{}\t{}\n",
                a.module, a.offset, b.module, b.offset
            ));
        }
        text
    }

    /// Reads a plan; `None` if it is none.
    pub fn parse(text: &str) -> Option<Plan> {
        let mut plan = Plan::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            match words.as_slice() {
                ["seed", n] => plan.seed = n.parse().ok()?,
                ["pause", n] => plan.pause = n.parse().ok()?,
                ["first", n] => plan.first = Some(n.parse().ok()?),
                ["all"] => plan.all = true,
                ["pair", a, i, b, j] => {
                    let place = |module: &str, offset: &str| {
                        Some(Place { module: module.into(), offset: offset.parse().ok()? })
                    };
                    plan.pairs.push([place(a, i)?, place(b, j)?]);
                }
                _ => return None,
            }
        }
        Some(plan)
    }
}

/// What phase II needs of the world around it.
pub trait Around {
    /// Looks at the board of a rank while nobody else does.
    fn visit(&mut self, owner: u32, f: &mut dyn FnMut(&mut Board<'_>));
    /// Lets this many microseconds pass, in which messages get on.
    fn pass(&mut self, micros: u64);
    /// Writes a line for the `selvedge` process.
    fn tell(&mut self, line: &str);
}

/// A statement of a pair that an access belongs to.
pub type Aim = (u32, u32);

/// An access of the program, about to be made or in flight.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Access {
    pub thread: u32,
    pub call: u64,
    pub space: Space,
    pub bytes: Vec<Bytes>,
    pub act: Act,
    pub from: u64,
    pub locks: Vec<Lock>,
}

/// What ends an access that is in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Flight {
    pub call: u8,
    pub side: Side,
    pub window: u64,
    pub target: u32,
    pub request: u64,
}

/// What is about to be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Accesses in a window, at one target or at all.
    Window(Completion, u64, Option<u32>),
    /// Accesses of a request.
    Request(u64),
}

impl Ending {
    fn ends(self, flight: &Flight) -> bool {
        let reaches =
            |what| rules::completes(what, &CALLS[flight.call as usize], flight.side) != Reach::Open;
        match self {
            Ending::Window(what, window, target) => {
                flight.window == window
                    && target.is_none_or(|t| t == flight.target)
                    && CALLS[flight.call as usize].is_remote()
                    && reaches(what)
            }
            Ending::Request(request) => flight.request == request && reaches(Completion::Request),
        }
    }
}

/// Whose turn it is when an order is forced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Nothing is to be done.
    Free,
    /// The access goes first; [`Confirm::made`] says when it was made.
    First(u32, Who),
}

/// In an execution that forces an order, ranks wait so many times longer: there is one pair only, and it is known
/// that the two can meet.
const PATIENCE: u64 = 40;
/// A pause is cut into so many looks at the board.
const LOOKS: u64 = 8;
/// After so many announcements in vain a statement is announced only when its rank would wait as well.
const ANNOUNCED: u32 = 1000;

/// Phase II in one rank.
#[derive(Debug)]
pub struct Confirm {
    plan: Plan,
    rank: u32,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The statements that a program counter belongs to.
    aims: HashMap<u64, Vec<Aim>>,
    pairs: Vec<Tried>,
    flying: Vec<(Flight, u32, u32, Who)>,
    numbers: u64,
}

/// What was done for a pair in this rank.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    settled: bool,
    waits: u32,
    announced: u32,
    decisions: u64,
}

impl Confirm {
    /// In this rank.
    pub fn new(plan: Plan, rank: u32) -> Confirm {
        let pairs = vec![Tried::default(); plan.pairs.len().max(1)];
        Confirm { plan, rank, inner: Mutex::new(Inner { pairs, ..Inner::default() }) }
    }

    /// Whether an order is forced.
    pub fn orders(&self) -> bool {
        self.plan.first.is_some()
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The statements that a program counter belongs to and that are not settled. `place` finds its place.
    pub fn aims(&self, pc: u64, place: impl FnOnce(u64) -> Place) -> Vec<Aim> {
        if self.plan.all {
            return vec![(0, 0)];
        }
        let mut inner = self.inner();
        let Inner { aims, pairs, .. } = &mut *inner;
        let all = aims.entry(pc).or_insert_with(|| {
            let place = place(pc);
            let both = (0..).zip(&self.plan.pairs);
            let sides = both.filter_map(|(i, pair)| {
                pair.iter().position(|p| *p == place).map(|side| (i, side as u32))
            });
            sides.collect()
        });
        all.iter().copied().filter(|aim| !pairs[aim.0 as usize].settled).collect()
    }

    fn is_one_statement(&self, pair: u32) -> bool {
        self.plan.pairs.get(pair as usize).is_none_or(|[a, b]| a == b)
    }

    fn number(&self) -> Who {
        let mut inner = self.inner();
        inner.numbers += 1;
        (self.rank, inner.numbers)
    }

    fn settle(&self, pair: u32) {
        self.inner().pairs[pair as usize].settled = true;
    }

    /// Whether to wait this time: a decision of the seed, with a probability that falls with every wait.
    fn decide(&self, pair: u32) -> bool {
        let mut inner = self.inner();
        let tried = &mut inner.pairs[pair as usize];
        tried.decisions += 1;
        let key = [self.plan.seed, u64::from(self.rank), u64::from(pair), tried.decisions];
        let chance =
            (key.into_iter().fold(0, |h, k| mixed(h ^ k)) >> 11) as f64 / (1u64 << 53) as f64;
        let waits = chance < 0.9_f64.powi(tried.waits.min(1000) as i32);
        tried.waits += u32::from(waits);
        waits
    }

    /// Whether to announce at all.
    fn announces(&self, pair: u32) -> bool {
        let mut inner = self.inner();
        let tried = &mut inner.pairs[pair as usize];
        tried.announced += 1;
        tried.announced <= ANNOUNCED
    }

    /// Announces an access; `Some(true)` if another one that conflicts is there, `None` if it cannot be announced.
    fn announce(
        &self,
        around: &mut impl Around,
        who: Who,
        aim: Aim,
        access: &Access,
    ) -> Option<bool> {
        if access.locks.len() > LOCKS {
            return None;
        }
        let same = self.is_one_statement(aim.0);
        let mut told = None;
        let mut is_there = false;
        around.visit(access.space.owner, &mut |board| {
            let base = access.space.window.map_or(Some(0), |w| board.base(w));
            let Some(base) = base else { return };
            let others = board.all();
            for &bytes in access.bytes.iter().take(PIECES) {
                let bytes = Bytes { start: bytes.start.wrapping_add(base), ..bytes };
                let mut mine = Announced {
                    who,
                    thread: access.thread,
                    call: access.call,
                    pair: aim.0,
                    side: aim.1,
                    bytes,
                    act: access.act,
                    from: access.from.wrapping_add(base),
                    state: State::Here,
                    with: None,
                    locks: access.locks.clone(),
                };
                let met = others.iter().find(|o| o.state == State::Here && mine.races(o, same));
                if let Some(other) = met.filter(|_| told.is_none()) {
                    // Of a statement that races with itself, who was there first is the first side.
                    mine.side = if same { 1 } else { mine.side };
                    (mine.state, mine.with) = (State::Met, Some(other.who));
                    board.change(other.who, |o| {
                        o.side = if same { 0 } else { o.side };
                        (o.state, o.with) = (State::Met, Some(who));
                    });
                    told = Some(crate::findings::met(aim.0, other, &mine));
                }
                is_there |= board.put(&mine);
            }
        });
        match told {
            Some(line) => {
                around.tell(&line);
                Some(true)
            }
            None => is_there.then_some(false),
        }
    }

    /// Waits until an announcement reaches a state, at most for some microseconds.
    fn wait(
        &self,
        around: &mut impl Around,
        owner: u32,
        micros: u64,
        mut is_over: impl FnMut(&Board<'_>) -> bool,
    ) -> bool {
        for _ in 0..LOOKS {
            let mut over = false;
            around.visit(owner, &mut |board| over = is_over(board));
            if over {
                return true;
            }
            around.pass((micros / LOOKS).max(1));
        }
        let mut over = false;
        around.visit(owner, &mut |board| over = is_over(board));
        over
    }

    fn is_met(board: &Board<'_>, who: Who) -> bool {
        board.state(who).is_some_and(|(state, _)| state != State::Here)
    }

    /// An access that is made at once, such as a load, is about to be made.
    pub fn pass(&self, around: &mut impl Around, aims: &[Aim], access: &Access) {
        for &aim in aims {
            let waits = self.decide(aim.0);
            if !waits && !self.announces(aim.0) {
                continue;
            }
            let who = self.number();
            let owner = access.space.owner;
            let Some(met) = self.announce(around, who, aim, access) else { continue };
            let met = met
                || waits
                    && self
                        .wait(around, owner, self.plan.pause, |board| Confirm::is_met(board, who));
            if met {
                self.settle(aim.0);
            }
            around.visit(owner, &mut |board| board.take_down(who));
        }
    }

    /// An access of a call has been made and is in flight.
    pub fn fly(&self, around: &mut impl Around, aims: &[Aim], access: &Access, flight: Flight) {
        for &aim in aims {
            if !self.announces(aim.0) {
                continue;
            }
            let who = self.number();
            match self.announce(around, who, aim, access) {
                Some(true) => self.settle(aim.0),
                Some(false) => {}
                None => continue,
            }
            self.inner().flying.push((flight, access.space.owner, aim.0, who));
        }
    }

    /// Accesses are about to be completed: they are held open for a while, and then taken down.
    pub fn end(&self, around: &mut impl Around, ending: Ending) {
        let ended: Vec<(u32, u32, Who)> = {
            let mut inner = self.inner();
            let (ended, open) = std::mem::take(&mut inner.flying)
                .into_iter()
                .partition(|(flight, ..)| ending.ends(flight));
            inner.flying = open;
            let ended: Vec<(Flight, u32, u32, Who)> = ended;
            ended.into_iter().map(|(_, owner, pair, who)| (owner, pair, who)).collect()
        };
        let mut waited = false;
        for &(owner, pair, who) in &ended {
            let settled = self.inner().pairs[pair as usize].settled;
            if settled || waited || !self.decide(pair) {
                continue;
            }
            waited = true;
            if self.wait(around, owner, self.plan.pause, |board| Confirm::is_met(board, who)) {
                self.settle(pair);
            }
        }
        for (owner, pair, who) in ended {
            around.visit(owner, &mut |board| {
                if Confirm::is_met(board, who) {
                    self.settle(pair);
                }
                board.take_down(who);
            });
        }
    }

    /// Forces the order of the only pair: an access is about to be made, and this returns when it may be.
    pub fn turn(&self, around: &mut impl Around, aims: &[Aim], access: &Access) -> Turn {
        let (Some(first), Some(&aim)) = (self.plan.first, aims.first()) else { return Turn::Free };
        let patience = self.plan.pause * PATIENCE;
        let (who, owner) = (self.number(), access.space.owner);
        let Some(met) = self.announce(around, who, aim, access) else { return Turn::Free };
        let met = met || self.wait(around, owner, patience, |board| Confirm::is_met(board, who));
        if !met {
            around.visit(owner, &mut |board| board.take_down(who));
            return Turn::Free;
        }
        self.settle(aim.0);
        let mut mine = None;
        around.visit(owner, &mut |board| {
            mine = board.all().into_iter().find(|a| a.who == who && a.with.is_some())
        });
        let Some(mine) = mine else { return Turn::Free };
        if mine.side == first {
            return Turn::First(owner, who);
        }
        let other = mine.with.unwrap_or(who);
        let done = |board: &Board<'_>| board.state(other).is_none_or(|(s, _)| s == State::Done);
        if self.wait(around, owner, patience, done) {
            around.tell(&crate::findings::ordered(aim.0, first));
        }
        around.visit(owner, &mut |board| {
            board.take_down(who);
            board.take_down(other);
        });
        Turn::Free
    }

    /// An access that went first was made.
    pub fn made(&self, around: &mut impl Around, owner: u32, who: Who) {
        around.visit(owner, &mut |board| board.change(who, |a| a.state = State::Done));
    }
}

/// A step of SplitMix64.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests;
