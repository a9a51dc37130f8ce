//! The board of a rank: where others announce what they are about to do, or have in flight, in its memory.
//!
//! A board is a fixed number of words in a window of ours, one board at each rank. Whoever looks at it or changes it
//! holds its lock, so all that happens on one board happens in one order. Its first part has the windows of its
//! owner, by which others turn displacements into addresses: windows may overlap.
//!
//! Guarantee: two announcements that are on a board at the same time are of accesses that are both about to be made,
//! or in flight, at that moment. Whoever announces takes the announcement down before the access may be complete.

use crate::gather::Lock;
use crate::rules::{self, Act, Basic, Bytes};

/// Words of a board.
pub const WORDS: usize = HEAD + SLOTS * SLOT;

/// Windows of the owner that have room.
const WINDOWS: usize = 24;
const HEAD: usize = 1 + 2 * WINDOWS;
/// Announcements that have room.
const SLOTS: usize = 32;
/// Locks of an announcement that have room. An access under more locks is not announced.
pub const LOCKS: usize = 3;
const SLOT: usize = 14 + 3 * LOCKS;

/// Pieces of one access that are announced; the others are not looked at.
pub const PIECES: usize = 8;

/// What an announced access waits for or has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is about to be made, or in flight.
    Here,
    /// The same, and another one conflicts with it.
    Met,
    /// It was made; the other one may go on.
    Done,
}

/// Who announces: rank, and the number of the announcement in it.
pub type Who = (u32, u64);

/// One announced piece of an access.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Announced {
    pub who: Who,
    pub thread: u32,
    /// The call that it belongs to: two accesses of one call do not race.
    pub call: u64,
    pub pair: u32,
    /// Which of the two statements of the pair.
    pub side: u32,
    pub bytes: Bytes,
    pub act: Act,
    pub from: u64,
    pub state: State,
    /// The announcement that it has met.
    pub with: Option<Who>,
    pub locks: Vec<Lock>,
}

impl Announced {
    /// Whether two accesses that are both in flight race: they are of one pair and conflict, and no lock that both
    /// hold keeps them apart. MPI may acquire locks late, so two ranks that are past their calls of `MPI_Win_lock`
    /// need not hold the lock at the same time. `same`: both statements of the pair are one.
    pub fn races(&self, other: &Announced, same: bool) -> bool {
        let one_thread = self.who.0 == other.who.0 && self.thread == other.thread;
        let atomic = |act| matches!(act, Act::AtomicRead(_) | Act::AtomicWrite(_));
        let locked = |a: &Lock| other.locks.iter().any(|b| a.excludes(b));
        self.pair == other.pair
            && (same || self.side != other.side)
            && self.who != other.who
            && !(self.who.0 == other.who.0 && self.call == other.call)
            // Accumulates of one origin are ordered.
            && !(one_thread && atomic(self.act) && atomic(other.act))
            && self.bytes.common(other.bytes).is_some()
            && rules::conflict(self.act, self.from, other.act, other.from)
            && !(self.who.0 != other.who.0 && self.locks.iter().any(locked))
    }
}

/// A board, while its lock is held.
#[derive(Debug)]
pub struct Board<'a>(pub &'a mut [u64]);

impl Board<'_> {
    /// The address of the owner's part of a window.
    pub fn base(&self, window: u64) -> Option<u64> {
        let windows = self.0.get(1..HEAD)?.chunks_exact(2);
        windows.take(self.0[0] as usize).find(|w| w[0] == window).map(|w| w[1])
    }

    /// The owner's windows, from now on; those that have no room are left out.
    pub fn publish(&mut self, windows: impl Iterator<Item = (u64, u64)>) {
        let mut count = 0;
        for (number, base) in windows.take(WINDOWS) {
            self.0[1 + 2 * count] = number;
            self.0[2 + 2 * count] = base;
            count += 1;
        }
        self.0[0] = count as u64;
    }

    fn slots() -> impl Iterator<Item = usize> {
        (0..SLOTS).map(|i| HEAD + i * SLOT)
    }

    /// Everything that is announced.
    pub fn all(&self) -> Vec<Announced> {
        Self::slots().filter_map(|at| decode(&self.0[at..at + SLOT])).collect()
    }

    /// Announces; false if there is no room.
    pub fn put(&mut self, announced: &Announced) -> bool {
        let Some(at) = Self::slots().find(|&at| self.0[at] == 0) else { return false };
        encode(announced, &mut self.0[at..at + SLOT]);
        true
    }

    /// Takes down what was announced under a number.
    pub fn take_down(&mut self, who: Who) {
        for at in Self::slots() {
            if (self.0[at], self.0[at + 1]) == (u64::from(who.0) + 1, who.1) {
                self.0[at] = 0;
            }
        }
    }

    /// Changes what was announced under a number.
    pub fn change(&mut self, who: Who, f: impl Fn(&mut Announced)) {
        for at in Self::slots() {
            if let Some(mut announced) = decode(&self.0[at..at + SLOT]).filter(|a| a.who == who) {
                f(&mut announced);
                encode(&announced, &mut self.0[at..at + SLOT]);
            }
        }
    }

    /// The state of what was announced under a number, and what it has met.
    pub fn state(&self, who: Who) -> Option<(State, Option<Who>)> {
        let mine: Vec<Announced> = self.all().into_iter().filter(|a| a.who == who).collect();
        let met = mine.iter().find(|a| a.state != State::Here);
        met.or(mine.first()).map(|a| (a.state, a.with))
    }
}

fn encode(a: &Announced, into: &mut [u64]) {
    let basic = |b: Basic| u64::from(b.number) << 16 | u64::from(b.size);
    let act = match a.act {
        Act::Read => 0,
        Act::Write => 1,
        Act::AtomicRead(b) => 2 | basic(b) << 8,
        Act::AtomicWrite(b) => 3 | basic(b) << 8,
    };
    let state = match a.state {
        State::Here => 0,
        State::Met => 1,
        State::Done => 2,
    };
    let (with, met) = a.with.map_or((0, 0), |(rank, number)| (u64::from(rank) + 1, number));
    let words = [
        u64::from(a.who.0) + 1,
        a.who.1,
        u64::from(a.thread),
        a.call,
        u64::from(a.pair),
        u64::from(a.side),
        a.bytes.start,
        a.bytes.len,
        act,
        a.from,
        state,
        with,
        met,
        a.locks.len() as u64,
    ];
    into[..14].copy_from_slice(&words);
    for (lock, at) in a.locks.iter().zip(into[14..].chunks_exact_mut(3)) {
        at[0] = lock.window;
        at[1] = lock.target.map_or(0, |t| u64::from(t) + 1);
        at[2] = u64::from(lock.exclusive);
    }
}

fn decode(from: &[u64]) -> Option<Announced> {
    if from[0] == 0 {
        return None;
    }
    let basic = |word: u64| Basic { number: (word >> 24) as u8, size: (word >> 8 & 0xffff) as u16 };
    let lock = |words: &[u64]| Lock {
        window: words[0],
        target: words[1].checked_sub(1).map(|t| t as u32),
        exclusive: words[2] != 0,
        acquired: 0,
    };
    Some(Announced {
        who: (from[0] as u32 - 1, from[1]),
        thread: from[2] as u32,
        call: from[3],
        pair: from[4] as u32,
        side: from[5] as u32,
        bytes: Bytes { start: from[6], len: from[7] },
        act: match from[8] & 0xff {
            0 => Act::Read,
            1 => Act::Write,
            2 => Act::AtomicRead(basic(from[8])),
            _ => Act::AtomicWrite(basic(from[8])),
        },
        from: from[9],
        state: match from[10] {
            0 => State::Here,
            1 => State::Met,
            _ => State::Done,
        },
        with: from[11].checked_sub(1).map(|rank| (rank as u32, from[12])),
        locks: from[14..].chunks_exact(3).take(from[13] as usize).map(lock).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Basic = Basic { number: 1, size: 4 };

    pub(crate) fn announced(rank: u32, number: u64, side: u32, act: Act) -> Announced {
        Announced {
            who: (rank, number),
            thread: 0,
            call: number,
            pair: 0,
            side,
            bytes: Bytes { start: 64, len: 8 },
            act,
            from: 64,
            state: State::Here,
            with: None,
            locks: Vec::new(),
        }
    }

    #[test]
    fn what_is_put_is_what_is_there_until_it_is_taken_down() {
        let mut words = vec![0; WORDS];
        let mut board = Board(&mut words);
        board.publish([(7, 4096), (9, 0)].into_iter());
        assert_eq!((board.base(7), board.base(9), board.base(8)), (Some(4096), Some(0), None));
        let mut a = announced(3, 5, 1, Act::AtomicRead(INT));
        a.with = Some((0, 9));
        a.locks = vec![
            Lock { window: 7, target: None, exclusive: false, acquired: 0 },
            Lock { window: 9, target: Some(0), exclusive: true, acquired: 0 },
        ];
        assert!(board.put(&a) && board.put(&Announced { who: (3, 6), ..a.clone() }));
        assert_eq!(board.all()[0], a);
        board.change((3, 5), |a| a.state = State::Done);
        assert_eq!(board.state((3, 5)), Some((State::Done, Some((0, 9)))));
        board.take_down((3, 5));
        assert_eq!((board.state((3, 5)), board.all().len()), (None, 1));
    }

    #[test]
    fn a_full_board_says_so() {
        let mut words = vec![0; WORDS];
        let mut board = Board(&mut words);
        let some = announced(0, 1, 0, Act::Write);
        assert!((0..SLOTS).all(|_| board.put(&some)));
        assert!(!board.put(&some));
    }

    #[test]
    fn accesses_race_if_they_conflict_and_no_lock_keeps_them_apart() {
        let a = announced(0, 1, 0, Act::Write);
        let b = announced(1, 1, 1, Act::Read);
        assert!(a.races(&b, false) && b.races(&a, false));
        assert!(!a.races(&Announced { pair: 1, ..b.clone() }, false), "another pair");
        assert!(!a.races(&Announced { side: 0, ..b.clone() }, false), "the same statement");
        assert!(a.races(&Announced { side: 0, ..b.clone() }, true), "a statement with itself");
        let elsewhere = Bytes { start: 72, len: 8 };
        assert!(!a.races(&Announced { bytes: elsewhere, ..b.clone() }, false), "other bytes");
        let read = Announced { act: Act::Read, ..a.clone() };
        assert!(!read.races(&b, false), "neither writes");
        let lock = |exclusive| Lock { window: 7, target: Some(2), exclusive, acquired: 0 };
        let locked =
            |a: &Announced, exclusive| Announced { locks: vec![lock(exclusive)], ..a.clone() };
        assert!(!locked(&a, true).races(&locked(&b, false), false), "one lock, one exclusive");
        assert!(locked(&a, false).races(&locked(&b, false), false), "a shared lock");
        assert!(locked(&a, true).races(&b, false), "only one holds it");
        let own = Announced { who: (0, 2), ..b.clone() };
        assert!(a.races(&Announced { call: 2, ..own.clone() }, false), "in flight in one thread");
        assert!(!a.races(&Announced { call: 1, ..own }, false), "one call");
        let add = |rank, number| announced(rank, number, number as u32, Act::AtomicWrite(INT));
        assert!(!add(0, 0).races(&add(0, 1), false), "accumulates of one origin");
    }
}
