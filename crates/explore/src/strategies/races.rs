//! RaceFuzzer: makes a predicted race happen, and shows what its other order leads to.
//!
//! Source: Sen, *Race directed random testing of concurrent programs*, PLDI 2008; Park, *Active
//! testing*, algorithms 3.5–3.7. A thread that is about to access memory at one of the two sites is
//! paused. When another is about to access overlapping memory at the other site and one of them writes,
//! the race is real: neither access is ordered before the other. A random one goes first.
//!
//! A *high-level race* (Burnim and Sen, *Asserting and checking determinism for multithreaded programs*,
//! §3.3 of the collection) is one of synchronization: two threads about to acquire one lock, or about to use
//! one atomic that one of them writes. It is no bug by itself; its two orders may lead to different results.
//!
//! [`RaceFuzzer::turned`] gives the strategy that repeats the execution with the two sides swapped: see
//! [`Turned`].
//!
//! Deviations: of several paused threads that race with the chosen one, the first is taken. The
//! executor has to ask at accesses of the target's sites, which are not choices otherwise. The two
//! accesses are made one right after the other, so that no other thread comes between them. A
//! compare-exchange may turn out not to write; with a plain read it is a race only if it wrote, so the
//! strategy waits for the event that says so.
//!
//! [`RaceFuzzer::witnessed`] looks only at the steps that are taken, whichever strategy chose them, so
//! that a replay can be watched for the same state.
//!
//! Guarantee: [`RaceFuzzer::reached`] only if two threads were both about to make conflicting accesses at
//! the target's sites, at least one of them a write and at least one not atomic; of a high-level race, only
//! if both could acquire one lock, not both for reading, or use one atomic, not both to load it. May miss a
//! race whose second access comes only after the first one's thread has been released.
//!
//! Cost: O(n) per choice, and four bytes per step.

use selvedge_model::{Access, AtomicOp, Event, LockId, Mode, Op, SiteId, ThreadId};

use crate::strategies::active::{Active, Verdict};
use crate::strategies::turned::Turned;
use crate::{Choice, Pending, Rng, Step, Strategy};

/// Which steps of two threads race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    /// Accesses to memory, not both atomic.
    Data,
    /// Acquisitions of one lock, or uses of one atomic.
    Synchronization,
}

/// Steers towards two conflicting accesses at two sites.
#[derive(Clone, Debug)]
pub struct RaceFuzzer {
    active: Active,
    level: Level,
    sites: (SiteId, SiteId),
    reached: Option<[ThreadId; 2]>,
    /// The second of the two, until it has gone.
    due: Option<ThreadId>,
    /// A pair that is a race if the update that this thread is about to make writes.
    doubt: Option<(ThreadId, [ThreadId; 2])>,
    witnessed: Option<[ThreadId; 2]>,
    /// The two and where they are, the one that goes first first.
    order: Option<[(ThreadId, SiteId); 2]>,
    /// Which threads took the steps of this execution.
    taken: Vec<ThreadId>,
    /// Which threads asked for numbers, and what they got.
    numbers: Vec<(ThreadId, u32)>,
    /// How many steps came before the one that went first in `order`.
    before: usize,
    /// The same for `witnessed`.
    witness_doubt: Option<(ThreadId, [ThreadId; 2])>,
}

impl RaceFuzzer {
    /// Aims at accesses at `first` and `second`.
    pub fn new(first: SiteId, second: SiteId) -> RaceFuzzer {
        RaceFuzzer::of(Level::Data, first, second)
    }

    /// Aims at uses of a lock or an atomic at `first` and `second`.
    pub fn high_level(first: SiteId, second: SiteId) -> RaceFuzzer {
        RaceFuzzer::of(Level::Synchronization, first, second)
    }

    fn of(level: Level, first: SiteId, second: SiteId) -> RaceFuzzer {
        RaceFuzzer {
            active: Active::default(),
            level,
            sites: (first, second),
            reached: None,
            due: None,
            doubt: None,
            witness_doubt: None,
            witnessed: None,
            order: None,
            taken: Vec::new(),
            numbers: Vec::new(),
            before: 0,
        }
    }

    /// Repeats the execution in which the race was reached, with the two sides swapped.
    pub fn turned(&self) -> Option<Turned> {
        let [_, (second, _)] = self.order()?;
        Some(Turned::new(&self.taken, &self.numbers, self.before, second))
    }

    /// Two threads of this execution that were both about to make conflicting accesses at the two
    /// sites when the first of them made its own, whichever strategy chose it.
    pub fn witnessed(&self) -> Option<[ThreadId; 2]> {
        self.witnessed
    }

    /// The threads that raced in this execution, the one that went first first.
    pub fn reached(&self) -> Option<[ThreadId; 2]> {
        self.reached
    }

    /// As [`RaceFuzzer::reached`], with the site of each.
    pub fn order(&self) -> Option<[(ThreadId, SiteId); 2]> {
        self.order.filter(|_| self.reached.is_some())
    }

    /// How many threads of this execution were paused and did not reach the target.
    pub fn thrashes(&self) -> u64 {
        self.active.thrashes()
    }
}

/// The memory a step accesses, whether it writes, and whether it is a plain access.
fn access(step: Step) -> Option<(Access, bool, bool)> {
    match step {
        Step::Do(Op::Read(a)) => Some((a, false, true)),
        Step::Do(Op::Write(a)) => Some((a, true, true)),
        Step::Do(Op::Atomic(a, op)) => Some((a, !matches!(op, AtomicOp::Load(_)), false)),
        Step::Do(Op::Free(range)) => {
            let len = u32::try_from(range.len).unwrap_or(u32::MAX);
            Some((Access { addr: range.start, len }, true, true))
        }
        _ => None,
    }
}

/// Whether the first step is an atomic update and the second a plain read.
fn depends_on_update(update: Step, read: Step) -> bool {
    matches!(update, Step::Do(Op::Atomic(_, AtomicOp::Update(_))))
        && matches!(read, Step::Do(Op::Read(_)))
}

/// The lock that a step acquires or tries to acquire.
fn acquisition(step: Step) -> Option<(LockId, Mode)> {
    match step {
        Step::Do(Op::Acquire(lock, mode)) | Step::TryAcquire(lock, mode) => Some((lock, mode)),
        _ => None,
    }
}

impl Level {
    /// Whether a step can be part of such a race.
    fn concerns(self, step: Step) -> bool {
        match self {
            Level::Data => access(step).is_some(),
            Level::Synchronization => {
                acquisition(step).is_some() || matches!(access(step), Some((_, _, false)))
            }
        }
    }

    /// Whether two steps about to be taken race.
    fn race(self, a: Step, b: Step) -> bool {
        let is_data = self == Level::Data;
        if let (Some((x, wx, px)), Some((y, wy, py))) = (access(a), access(b)) {
            return (wx || wy) && (px || py) == is_data && x.range().overlaps(y.range());
        }
        match (acquisition(a), acquisition(b)) {
            (Some((x, mx)), Some((y, my))) => {
                !is_data && x == y && (mx, my) != (Mode::Shared, Mode::Shared)
            }
            _ => false,
        }
    }
}

impl Strategy for RaceFuzzer {
    fn begin(&mut self, rng: Rng) -> bool {
        (self.reached, self.due, self.doubt) = (None, None, None);
        (self.witnessed, self.witness_doubt, self.order) = (None, None, None);
        self.taken.clear();
        self.numbers.clear();
        match self.level {
            Level::Data => self.active.begin_by_priority(rng),
            Level::Synchronization => self.active.begin(rng),
        }
    }

    fn number(&mut self, below: u32) -> u32 {
        let number = self.active.number(below);
        // The thread that took the last step asks.
        let thread = self.taken.last().copied().unwrap_or(ThreadId(0));
        self.numbers.push((thread, number));
        number
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        if let Some(second) = self.due.take().filter(|&t| choice.is_enabled(t)) {
            return self.active.let_run(second);
        }
        let (level, (first, second)) = (self.level, self.sites);
        let RaceFuzzer { active, reached, due, doubt, order, taken, before, .. } = self;
        active.choose(
            choice,
            |_| false,
            |thread, paused, rng| {
                let mine = choice.next(thread);
                if !is_at(level, mine, first, second) {
                    return Verdict::Irrelevant;
                }
                let other = if mine.site == first { second } else { first };
                let partner = paused.iter().copied().find(|&p| {
                    let theirs = choice.next(p);
                    theirs.site == other
                        && level.race(mine.step, theirs.step)
                        && choice.is_enabled(p)
                });
                let Some(partner) = partner else { return Verdict::Partial };
                let pair = if rng.chance(0.5) { [thread, partner] } else { [partner, thread] };
                let theirs = choice.next(partner).step;
                if depends_on_update(mine.step, theirs) {
                    *doubt = Some((thread, pair));
                } else if depends_on_update(theirs, mine.step) {
                    *doubt = Some((partner, pair));
                } else {
                    *reached = Some(pair);
                }
                *due = Some(pair[1]);
                *before = taken.len();
                *order = Some(pair.map(|t| (t, choice.next(t).site)));
                Verdict::Reached(pair[0])
            },
        )
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.taken.push(thread);
        let (level, (first, second)) = (self.level, self.sites);
        self.active.stepped(thread, is_at(level, &pending[thread.index()], first, second));
        if self.due == Some(thread) {
            self.due = None;
        }
        if self.witnessed.is_some() || self.witness_doubt.is_some() {
            return;
        }
        let mine = &pending[thread.index()];
        let meets = |theirs: &Pending| {
            let sites = (mine.site, theirs.site);
            (sites == (first, second) || sites == (second, first))
                && level.race(mine.step, theirs.step)
        };
        let other = (0..pending.len()).find(|&i| i != thread.index() && meets(&pending[i]));
        let Some(other) = other else { return };
        let pair = [thread, ThreadId(other as u32)];
        let theirs = pending[other].step;
        if depends_on_update(mine.step, theirs) {
            self.witness_doubt = Some((pair[0], pair));
        } else if depends_on_update(theirs, mine.step) {
            self.witness_doubt = Some((pair[1], pair));
        } else {
            self.witnessed = Some(pair);
        }
    }

    fn observe(&mut self, event: &Event) {
        let Op::Atomic(_, op) = event.op else { return };
        if let Some((_, pair)) = self.doubt.filter(|(t, _)| *t == event.thread) {
            self.doubt = None;
            if op.writes() {
                self.reached = Some(pair);
            } else {
                self.active.resume();
            }
        }
        if let Some((_, pair)) = self.witness_doubt.filter(|(t, _)| *t == event.thread) {
            self.witness_doubt = None;
            self.witnessed = Some(pair).filter(|_| op.writes());
        }
    }
}

/// Whether a thread is about to take part in such a race at one of the sites.
fn is_at(level: Level, pending: &Pending, first: SiteId, second: SiteId) -> bool {
    (pending.site == first || pending.site == second) && level.concerns(pending.step)
}
