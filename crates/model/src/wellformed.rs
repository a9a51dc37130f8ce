//! Which sequences of events are executions.
//!
//! Analyses rely on it, so readers check it: a trace that releases a lock that no thread holds, or in
//! which a joined thread goes on, was recorded or edited wrongly, and findings in it would mean nothing.

use crate::{Event, LockId, Mode, Op, RegionId, Symbols, ThreadId};

/// How many threads may be alive at one time. Clocks are quadratic in it at worst.
pub const MAX_LIVE_THREADS: usize = 8_192;

/// How many bytes one access may touch; front ends split what is longer. It bounds the memory that a
/// single event can make an analysis allocate.
pub const MAX_ACCESS: u32 = 1 << 24;

/// Why an event cannot come next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// The thread has been joined or has ended.
    AfterEnd(ThreadId),
    /// The thread to fork has already done something.
    ForkOfStarted(ThreadId),
    /// A second join of the thread, or of the thread itself.
    JoinTwice(ThreadId),
    /// A thread forks or joins itself.
    Itself(ThreadId),
    /// The second thread acquires what the first holds.
    AcquireHeld(LockId, ThreadId, ThreadId),
    /// The thread releases what it does not hold in this way.
    ReleaseNotHeld(LockId, ThreadId),
    /// The thread leaves a region that is not the one it entered last.
    ExitNotInnermost(RegionId, ThreadId),
    /// The access touches more than [`MAX_ACCESS`] bytes.
    LongAccess(u32),
    /// More threads than [`MAX_LIVE_THREADS`] are alive.
    TooManyThreads,
}

impl Malformed {
    /// A sentence for people.
    pub fn describe(self, symbols: &Symbols) -> String {
        match self {
            Malformed::AfterEnd(t) => {
                format!("thread {} goes on after it was joined or ended", symbols.thread(t))
            }
            Malformed::ForkOfStarted(t) => {
                format!("thread {} is forked but has started before", symbols.thread(t))
            }
            Malformed::JoinTwice(t) => {
                format!("thread {} is joined but was joined before", symbols.thread(t))
            }
            Malformed::Itself(t) => {
                format!("thread {} cannot fork or join itself", symbols.thread(t))
            }
            Malformed::AcquireHeld(l, holder, t) => format!(
                "thread {} acquires {}, which thread {} holds",
                symbols.thread(t),
                symbols.lock(l),
                symbols.thread(holder)
            ),
            Malformed::ReleaseNotHeld(l, t) => format!(
                "thread {} releases {}, which it does not hold",
                symbols.thread(t),
                symbols.lock(l)
            ),
            Malformed::ExitNotInnermost(r, t) => format!(
                "thread {} leaves region {:?}, which is not the one it entered last",
                symbols.thread(t),
                symbols.region(r).map_or("?", |r| &r.name)
            ),
            Malformed::LongAccess(len) => {
                format!("an access of {len} bytes is longer than {MAX_ACCESS}: split it")
            }
            Malformed::TooManyThreads => format!(
                "more than {MAX_LIVE_THREADS} threads are alive at once (threads that are never joined stay alive)"
            ),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Life {
    #[default]
    Unseen,
    Forked,
    Running,
    Ended,
    Joined,
}

#[derive(Default, Debug)]
struct Thread {
    life: Life,
    regions: Vec<RegionId>,
}

/// One thread's hold on a lock, counting re-acquisitions.
#[derive(Debug)]
struct Hold {
    thread: ThreadId,
    mode: Mode,
    times: u32,
}

/// Follows an execution and refuses what cannot come next.
#[derive(Default, Debug)]
pub struct Checker {
    threads: Vec<Thread>,
    alive: usize,
    holds: Vec<Vec<Hold>>,
}

impl Checker {
    /// Takes in the next event, or says why it cannot be the next.
    #[inline]
    pub fn check(&mut self, event: &Event) -> Result<(), Malformed> {
        let running =
            self.threads.get(event.thread.index()).is_some_and(|t| t.life == Life::Running);
        if !running {
            self.start(event.thread)?;
        }
        if let Op::Read(a) | Op::Write(a) = event.op
            && a.len <= MAX_ACCESS
        {
            return Ok(());
        }
        self.check_other(event)
    }

    fn check_other(&mut self, event: &Event) -> Result<(), Malformed> {
        let me = event.thread;
        match event.op {
            Op::Acquire(lock, mode) => self.acquire(me, lock, mode),
            Op::Release(lock, mode) => self.release(me, lock, mode),
            Op::Fork(child) if child == me => Err(Malformed::Itself(me)),
            Op::Fork(child) => match self.thread(child).life {
                Life::Unseen => self.enliven(child, Life::Forked),
                _ => Err(Malformed::ForkOfStarted(child)),
            },
            Op::Join(child) if child == me => Err(Malformed::Itself(me)),
            Op::Join(child) => {
                let was = std::mem::replace(&mut self.thread(child).life, Life::Joined);
                match was {
                    Life::Joined => return Err(Malformed::JoinTwice(child)),
                    Life::Forked | Life::Running => self.alive -= 1,
                    Life::Unseen | Life::Ended => {}
                }
                Ok(())
            }
            Op::End => {
                self.thread(me).life = Life::Ended;
                self.alive -= 1;
                Ok(())
            }
            Op::RegionEnter(region, _) => {
                self.thread(me).regions.push(region);
                Ok(())
            }
            Op::RegionExit(region) => match self.thread(me).regions.pop() {
                Some(innermost) if innermost == region => Ok(()),
                _ => Err(Malformed::ExitNotInnermost(region, me)),
            },
            Op::Read(a) | Op::Write(a) | Op::Atomic(a, _) if a.len > MAX_ACCESS => {
                Err(Malformed::LongAccess(a.len))
            }
            accesses!()
            | Op::Fence(_)
            | Op::Begin
            | rendezvous!()
            | conditions!()
            | allocation!()
            | Op::Flow(_)
            | Op::Focus(_) => Ok(()),
        }
    }

    fn thread(&mut self, id: ThreadId) -> &mut Thread {
        if id.index() >= self.threads.len() {
            self.threads.resize_with(id.index() + 1, Thread::default);
        }
        &mut self.threads[id.index()]
    }

    #[cold]
    fn start(&mut self, id: ThreadId) -> Result<(), Malformed> {
        match self.thread(id).life {
            Life::Unseen => self.enliven(id, Life::Running),
            Life::Forked | Life::Running => {
                self.thread(id).life = Life::Running;
                Ok(())
            }
            Life::Ended | Life::Joined => Err(Malformed::AfterEnd(id)),
        }
    }

    fn enliven(&mut self, id: ThreadId, life: Life) -> Result<(), Malformed> {
        if self.alive == MAX_LIVE_THREADS {
            return Err(Malformed::TooManyThreads);
        }
        self.thread(id).life = life;
        self.alive += 1;
        Ok(())
    }

    fn acquire(&mut self, me: ThreadId, lock: LockId, mode: Mode) -> Result<(), Malformed> {
        if lock.index() >= self.holds.len() {
            self.holds.resize_with(lock.index() + 1, Vec::new);
        }
        let holds = &mut self.holds[lock.index()];
        if let Some(other) = holds.iter().find(|h| h.thread != me && h.mode.excludes(mode)) {
            return Err(Malformed::AcquireHeld(lock, other.thread, me));
        }
        match holds.iter_mut().find(|h| h.thread == me && h.mode == mode) {
            Some(mine) => mine.times += 1,
            None => holds.push(Hold { thread: me, mode, times: 1 }),
        }
        Ok(())
    }

    fn release(&mut self, me: ThreadId, lock: LockId, mode: Mode) -> Result<(), Malformed> {
        let not_held = Malformed::ReleaseNotHeld(lock, me);
        let holds = self.holds.get_mut(lock.index()).ok_or(not_held)?;
        let i = holds.iter().position(|h| h.thread == me && h.mode == mode).ok_or(not_held)?;
        holds[i].times -= 1;
        if holds[i].times == 0 {
            holds.swap_remove(i);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::parse;

    /// The complaint about the last line of `text`, or "fine".
    fn complaint(text: &str) -> String {
        match parse(text) {
            Ok(_) => "fine".into(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn executions_pass() {
        for text in [
            "T0|acq(l)|1\nT0|acq(l)|2\nT0|rel(l)|3\nT0|rel(l)|4",
            "T0|racq(l)|1\nT1|racq(l)|2\nT0|rrel(l)|3\nT1|rrel(l)|4\nT0|acq(l)|5",
            "T0|fork(T1)|1\nT1|stop()|2\nT0|join(T1)|3",
            "T0|fork(T1)|1\nT0|join(T1)|2",
            "T0|begin(a)|1\nT0|begin(det:b)|2\nT0|end(det:b)|3\nT0|end(a)|4",
        ] {
            assert_eq!(complaint(text), "fine", "{text}");
        }
    }

    #[test]
    fn what_cannot_happen_is_refused_with_its_line() {
        for (text, expected) in [
            ("T0|rel(l)|1", "line 1: thread T0 releases l, which it does not hold"),
            (
                "T0|acq(l)|1\nT0|rel(l)|2\nT0|rel(l)|3",
                "line 3: thread T0 releases l, which it does not hold",
            ),
            ("T0|racq(l)|1\nT0|rel(l)|2", "line 2: thread T0 releases l, which it does not hold"),
            ("T0|acq(l)|1\nT1|acq(l)|2", "line 2: thread T1 acquires l, which thread T0 holds"),
            ("T0|acq(l)|1\nT1|racq(l)|2", "line 2: thread T1 acquires l, which thread T0 holds"),
            ("T0|join(T1)|1\nT1|r(x)|2", "line 2: thread T1 goes on after it was joined or ended"),
            ("T0|stop()|1\nT0|r(x)|2", "line 2: thread T0 goes on after it was joined or ended"),
            ("T1|r(x)|1\nT0|fork(T1)|2", "line 2: thread T1 is forked but has started before"),
            ("T0|join(T1)|1\nT0|join(T1)|2", "line 2: thread T1 is joined but was joined before"),
            (
                "T0|w(0x10:20000000)|1",
                "line 1: an access of 20000000 bytes is longer than 16777216: split it",
            ),
            ("T0|fork(T0)|1", "line 1: thread T0 cannot fork or join itself"),
            (
                "T0|begin(a)|1\nT0|end(b)|2",
                "line 2: thread T0 leaves region \"b\", which is not the one it entered last",
            ),
        ] {
            assert_eq!(complaint(text), expected, "{text}");
        }
    }

    #[test]
    fn threads_that_are_joined_do_not_count_as_alive() {
        use std::fmt::Write;
        let mut joined = String::new();
        let mut piled = String::new();
        for t in 1..=super::MAX_LIVE_THREADS + 1 {
            writeln!(joined, "T0|fork(T{t})|1\nT{t}|r(x)|2\nT0|join(T{t})|3").unwrap();
            writeln!(piled, "T{t}|r(x)|1").unwrap();
        }
        assert_eq!(complaint(&joined), "fine");
        assert!(complaint(&piled).starts_with("line 8193: more than 8192 threads"));
    }
}
