//! Which write each read of an execution saw, and which others it might have seen.
//!
//! Source: Wolff, Shi, Duck, Mathur and Roychoudhury, *Greybox fuzzing for concurrency testing*, ASPLOS 2024:
//! executions in which every read sees the same write are alike, so a search should go through the pairs of a
//! read and a write. A read or write is known by its place alone, so threads that run the same code are one
//! class, and their number does not matter.
//!
//! Deviations: an acquisition reads the acquisition before it and is one for the next; waiting on a condition
//! variable reads its notifications, and a semaphore is like an atomic. A pair is left out if starting and
//! joining threads forbids it: the read is before the write, another write is between them, or, if the read is
//! to see the beginning, a write is before it.
//!
//! Guarantee: [`Readings::seen`] are the pairs that the execution showed. A pair of [`Readings::open`] need not
//! be possible: what else orders the two is not looked at. Of like accesses to one object, the first
//! [`ALIKE`] are remembered.
//!
//! Cost: O(remembered accesses to the object) per step, O(threads) for starting and joining a thread.

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_model::{About, AtomicOp, Event, Mode, Op, SiteId, ThreadId};

use crate::{Pending, Step};

/// How many accesses to one object at one place are remembered.
pub const ALIKE: usize = 8;
/// How many accesses to one object are remembered.
const MOST: usize = 128;

/// What is read and written: the kind of object, and its address or number.
pub type Object = (u8, u64);

/// What a step does to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The object.
    pub object: Object,
    /// Whether the step depends on the last write.
    pub reads: bool,
    /// Whether later reads see this step.
    pub writes: bool,
}

impl Touch {
    /// What a step does that threads can see of each other.
    pub fn of(step: Step) -> Option<Touch> {
        let (about, reads, writes) = match step {
            Step::Do(op) => match op {
                Op::Read(_) => (op.about(), true, false),
                Op::Write(_) => (op.about(), false, true),
                Op::Atomic(_, atomic) => {
                    let reads = !matches!(atomic, AtomicOp::Store(_));
                    (op.about(), reads, atomic.writes())
                }
                Op::Acquire(_, mode) => (op.about(), true, mode == Mode::Exclusive),
                Op::Post(_) => (op.about(), false, true),
                Op::Wait(_) => (op.about(), true, true),
                Op::Notify(..) => (op.about(), false, true),
                Op::Release(..)
                | Op::Fence(_)
                | Op::Arrive(..)
                | Op::Leave(..)
                | Op::Wake(_)
                | threads!()
                | regions!()
                | allocation!() => return None,
            },
            Step::TryAcquire(lock, mode) => (About::Lock(lock, mode), true, true),
            Step::Enroll(cond, _) => (About::Cond(cond), true, false),
            Step::Yield | Step::Busy | Step::Ended => return None,
        };
        let object = match about {
            About::Memory(range, _) => (0, range.start),
            About::Lock(lock, _) => (1, u64::from(lock.0)),
            About::Semaphore(semaphore) => (2, u64::from(semaphore.0)),
            About::Cond(cond) => (3, u64::from(cond.0)),
            About::Barrier(_) | About::Thread(_) | About::Region(_) | About::Itself => return None,
        };
        Some(Touch { object, reads, writes })
    }
}

/// A read and the write that it sees; none if it sees the beginning.
pub type Pair = (SiteId, Option<SiteId>);

/// A pair that another schedule may show.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Open {
    /// The read and the write.
    pub pair: Pair,
    /// Where the thread was started that reads; none for the first thread.
    pub began: Option<SiteId>,
}

/// One access, or several of one thread with nothing in between that starts or joins a thread.
#[derive(Clone, Copy, Debug)]
struct Access {
    site: SiteId,
    part: usize,
    reads: bool,
    writes: bool,
}

/// What a thread does until it starts or joins a thread, or to its end.
#[derive(Clone, Debug)]
struct Part {
    thread: ThreadId,
    /// How many parts of the same thread come before.
    number: u32,
    /// Of each thread: how many of its parts come before this one.
    before: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    part: usize,
    began: Option<SiteId>,
}

/// What the reads of one execution saw.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    last: FxHashMap<Object, SiteId>,
    accesses: FxHashMap<Object, Vec<Access>>,
    /// The objects in the order of their first use, so that results do not depend on hashes.
    objects: Vec<Object>,
    parts: Vec<Part>,
    threads: Vec<Thread>,
    seen: Vec<Pair>,
    known: FxHashSet<Pair>,
    /// How often each place has read.
    times: FxHashMap<SiteId, u32>,
    /// An atomic update that may turn out not to write: the object, and what was written before.
    doubt: Option<(ThreadId, Object, Option<SiteId>)>,
}

impl Readings {
    /// Forgets the execution before.
    pub fn clear(&mut self) {
        *self = Readings::default();
    }

    /// The last write to an object; none if there was none.
    pub fn last(&self, object: Object) -> Option<SiteId> {
        self.last.get(&object).copied()
    }

    /// Where a thread was started; none for the first one.
    pub fn began(&self, thread: ThreadId) -> Option<SiteId> {
        self.threads.get(thread.index()).and_then(|t| t.began)
    }

    /// The pairs of this execution, in the order in which they were first seen.
    pub fn seen(&self) -> &[Pair] {
        &self.seen
    }

    /// How often the place has read in this execution.
    pub fn times(&self, read: SiteId) -> u32 {
        self.times.get(&read).copied().unwrap_or(0)
    }

    fn know(&mut self, threads: usize) {
        while self.threads.len() < threads {
            let thread = ThreadId(self.threads.len() as u32);
            self.threads.push(Thread { part: self.parts.len(), began: None });
            self.parts.push(Part { thread, number: 0, before: Vec::new() });
        }
    }

    /// A thread is about to take a step.
    pub fn step(&mut self, thread: ThreadId, pending: &Pending) {
        self.doubt = None;
        let Some(Touch { object, reads, writes }) = Touch::of(pending.step) else { return };
        self.know(thread.index() + 1);
        let before = self.last(object);
        if reads {
            *self.times.entry(pending.site).or_default() += 1;
            let pair = (pending.site, before);
            if self.known.insert(pair) {
                self.seen.push(pair);
            }
        }
        if writes {
            self.last.insert(object, pending.site);
            if reads {
                self.doubt = Some((thread, object, before));
            }
        }
        let part = self.threads[thread.index()].part;
        let accesses = self.accesses.entry(object).or_insert_with(|| {
            self.objects.push(object);
            Vec::new()
        });
        let alike = accesses.iter().filter(|a| a.site == pending.site).count();
        let is_known = |a: &Access| (a.site, a.part) == (pending.site, part);
        if alike < ALIKE && accesses.len() < MOST && !accesses.iter().any(is_known) {
            accesses.push(Access { site: pending.site, part, reads, writes });
        }
    }

    /// An event has happened.
    pub fn observe(&mut self, event: &Event) {
        match event.op {
            Op::Atomic(_, op) if !op.writes() => {
                // The update of the last step did not write.
                if let Some((_, object, before)) = self.doubt.take().filter(|d| d.0 == event.thread)
                {
                    match before {
                        Some(site) => self.last.insert(object, site),
                        None => self.last.remove(&object),
                    };
                }
            }
            Op::Fork(child) => self.forked(event, child),
            Op::Join(child) => self.joined(event.thread, child),
            Op::Begin | Op::End | accesses!() | Op::Fence(_) | regions!() => {}
            locks!() | rendezvous!() | conditions!() | allocation!() => {}
        }
    }

    fn forked(&mut self, event: &Event, child: ThreadId) {
        self.know(event.thread.index().max(child.index()) + 1);
        let parent = self.threads[event.thread.index()].part;
        let before = self.after(parent);
        let Thread { part, began } = &mut self.threads[child.index()];
        *began = Some(event.site);
        self.parts[*part].before = before;
        self.next(event.thread, &[]);
    }

    fn joined(&mut self, thread: ThreadId, child: ThreadId) {
        self.know(thread.index().max(child.index()) + 1);
        let ended = self.after(self.threads[child.index()].part);
        self.next(thread, &ended);
    }

    /// How many parts of each thread come before what comes after this part.
    fn after(&self, part: usize) -> Vec<u32> {
        let Part { thread, number, before } = &self.parts[part];
        let mut after = before.clone();
        after.resize(after.len().max(thread.index() + 1), 0);
        after[thread.index()] = number + 1;
        after
    }

    /// Begins the next part of a thread, after all that `also` says.
    fn next(&mut self, thread: ThreadId, also: &[u32]) {
        let part = self.threads[thread.index()].part;
        let mut before = self.after(part);
        before.resize(before.len().max(also.len()), 0);
        before.iter_mut().zip(also).for_each(|(mine, &theirs)| *mine = theirs.max(*mine));
        let number = self.parts[part].number + 1;
        self.threads[thread.index()].part = self.parts.len();
        self.parts.push(Part { thread, number, before });
    }

    /// Whether starting, joining and the code itself put one part before another.
    fn precedes(&self, first: usize, second: usize) -> bool {
        let Part { thread, number, .. } = &self.parts[first];
        self.parts[second].before.get(thread.index()).is_some_and(|&n| n > *number)
    }

    /// The pairs that this execution suggests, each once, in an order that depends on it alone.
    pub fn open(&self) -> Vec<Open> {
        let mut open = Vec::new();
        let mut known: FxHashSet<Pair> = FxHashSet::default();
        for object in &self.objects {
            let accesses = &self.accesses[object];
            for (at, read) in accesses.iter().enumerate().filter(|(_, a)| a.reads) {
                let reader = self.parts[read.part].thread;
                let foreign = |a: &&Access| a.writes && self.parts[a.part].thread != reader;
                let mut add = |write| {
                    let pair = (read.site, write);
                    if known.insert(pair) {
                        open.push(Open { pair, began: self.threads[reader.index()].began });
                    }
                };
                let mut any = false;
                for write in accesses.iter().filter(foreign) {
                    any = true;
                    if self.may_see(read, write, accesses) {
                        add(Some(write.site));
                    }
                }
                let mine = |a: &&Access| a.writes && self.parts[a.part].thread == reader;
                let own = accesses[..at].iter().rfind(mine);
                let mut earlier = accesses.iter().filter(foreign);
                let overwritten = earlier.any(|w| self.precedes(w.part, read.part));
                match own {
                    Some(own) if any => add(Some(own.site)),
                    None if any && !overwritten => add(None),
                    _ => {}
                }
            }
        }
        open
    }

    fn may_see(&self, read: &Access, write: &Access, accesses: &[Access]) -> bool {
        if self.precedes(read.part, write.part) {
            return false;
        }
        let between = |a: &Access| {
            a.writes && self.precedes(write.part, a.part) && self.precedes(a.part, read.part)
        };
        !self.precedes(write.part, read.part) || !accesses.iter().any(between)
    }
}
