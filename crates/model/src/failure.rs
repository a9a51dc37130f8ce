//! How an execution of a program fails, with any executor: the subject of a finding that shows by itself.

use crate::{
    Cause, Event, Finding, FindingId, Held, Kind, LockId, Mode, Place, Role, SiteId, ThreadId,
};

/// How an execution failed. What it leaves behind is in ids and numbers; words are for a renderer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Failure {
    /// A signal ended the program.
    Signal {
        /// The number of the signal.
        number: i32,
        /// The address that the instruction could not access, if that caused the signal.
        address: Option<u64>,
        /// The last line that the program wrote to standard error.
        said: Option<String>,
        /// Whether the place is that of a call into a library, concluded from the words on the stack.
        approximate: bool,
    },
    /// An assertion failed, a thread panicked or an exception was not caught.
    Message {
        /// What it said.
        text: String,
        /// The name of the thread, if the message has it.
        thread: Option<String>,
        /// How the program ended after it.
        ended: Option<Ended>,
        /// A panic of another thread that came before, if another thread took it by joining: perhaps the cause.
        before: Option<Box<Panic>>,
    },
    /// The program exited with a code that other schedules do not lead to.
    Exit {
        /// This one.
        code: i32,
        /// The code under other schedules.
        usual: i32,
    },
    /// Every thread is waiting, and no thread can wake them; or some wait for each other for ever.
    Stuck {
        /// The threads that make it a failure, in the order of the finding's places.
        part: Vec<Blocked>,
        /// Threads that wait as a consequence.
        others: Vec<Blocked>,
    },
    /// The program is over and these threads wait for ever.
    Left(Vec<Blocked>),
    /// A destructor had to wait for another thread while its thread was unwinding from this.
    Unwinding(String),
    /// It is stuck in loops: so many steps, in which every thread that could run did, led to no change.
    Steps(u64),
    /// A thread did not come to a scheduling point for so many seconds.
    Stall(u64),
    /// There was no memory for the stack of a thread.
    NoStack {
        /// How many threads there were.
        threads: usize,
        /// What the system said.
        error: String,
    },
    /// An object, made at this place, is used by two executions at a time.
    Shared(SiteId),
    /// The same schedule did not always do the same.
    Unrepeatable {
        /// The first event that differs, from 0.
        index: usize,
        /// What happened the first time; nothing if it was over by then.
        expected: Option<Event>,
        /// What happened the second time.
        found: Option<Event>,
        /// The most probable cause.
        cause: Cause,
    },
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Ended {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// A panic of one thread that did not end the program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Panic {
    /// Which thread.
    pub thread: ThreadId,
    /// Where, if that is known.
    pub site: Option<SiteId>,
    /// What it said.
    pub text: String,
}

/// A thread that waits for something that never comes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Blocked {
    /// The thread.
    pub thread: ThreadId,
    /// The place in the source where it waits.
    pub site: SiteId,
    /// What it cannot do.
    pub wants: Role,
    /// In which mode, if it is a lock.
    pub mode: Mode,
    /// What it holds, outermost first.
    pub holds: Vec<Held>,
    /// The thread that it waits for, if it is known: the holder of a lock, or the thread to join.
    pub waits_for: Option<ThreadId>,
}

impl Blocked {
    /// The lock that it waits for, if it is one.
    pub fn lock(&self) -> Option<LockId> {
        match self.wants {
            Role::Acquire(lock) => Some(lock),
            _ => None,
        }
    }

    /// Its part in a finding.
    pub fn place(&self) -> Place {
        Place { thread: self.thread, site: self.site, role: self.wants, held: self.holds.clone() }
    }
}

impl Failure {
    /// A signal that ended the program, of which nothing else is known.
    pub fn crash(number: i32) -> Failure {
        Failure::Signal { number, address: None, said: None, approximate: false }
    }

    /// The identity of the failure where it has no place in the source.
    pub fn id(&self, kind: Kind) -> FindingId {
        FindingId::new(kind, [self.signature()])
    }

    /// What tells the failure from others of its kind where it has no place in the source. It is part of
    /// identities, and so must not change.
    pub fn signature(&self) -> String {
        match self {
            Failure::Signal { number, .. } => format!("signal {number}"),
            Failure::Message { text, .. } | Failure::Unwinding(text) => text.clone(),
            Failure::Exit { code, .. } => format!("exit code {code}"),
            Failure::Stuck { .. } | Failure::Left(_) => "nobody".to_owned(),
            Failure::Steps(_) | Failure::Stall(_) => "limit".to_owned(),
            Failure::NoStack { .. } => "no stack".to_owned(),
            Failure::Shared(_) => "shared".to_owned(),
            Failure::Unrepeatable { .. } => "unrepeatable".to_owned(),
        }
    }

    /// Whether the execution went on without an end.
    pub fn is_endless(&self) -> bool {
        matches!(self, Failure::Steps(_) | Failure::Stall(_))
    }

    /// Whether a shorter schedule could show the same failure.
    pub fn depends_on_schedule(&self) -> bool {
        !matches!(
            self,
            Failure::Stall(_)
                | Failure::NoStack { .. }
                | Failure::Shared(_)
                | Failure::Unrepeatable { .. }
        )
    }

    /// The threads that wait for ever, in the order of their numbers.
    pub fn blocked(&self) -> Vec<Blocked> {
        let mut all: Vec<Blocked> = match self {
            Failure::Stuck { part, others } => part.iter().chain(others).cloned().collect(),
            Failure::Left(threads) => threads.clone(),
            _ => Vec::new(),
        };
        all.sort_by_key(|b| b.thread);
        all
    }
}

impl Finding {
    /// That threads wait for ever. They make the failure if each of them waits for the next one: for a lock that it
    /// holds, or for its end. If there is no such circle, all do except those that wait for the end of a thread or
    /// inside a library. The others wait as a consequence.
    pub fn stuck(blocked: &[Blocked], is_library: impl Fn(SiteId) -> bool) -> Finding {
        let matters = |b: &Blocked| !matches!(b.wants, Role::Join(_)) && !is_library(b.site);
        let part: Vec<ThreadId> = match circle(blocked) {
            circle if !circle.is_empty() => circle,
            _ if blocked.iter().any(matters) => {
                blocked.iter().filter(|b| matters(b)).map(|b| b.thread).collect()
            }
            _ => blocked.iter().map(|b| b.thread).collect(),
        };
        let others = blocked.iter().filter(|b| !part.contains(&b.thread)).cloned().collect();
        let of = |&thread: &ThreadId| blocked.iter().find(|b| b.thread == thread).cloned();
        let part: Vec<Blocked> = part.iter().filter_map(of).collect();
        let places = part.iter().map(Blocked::place).collect();
        Finding::failure(Kind::Deadlock, Failure::Stuck { part, others }, places)
    }
}

/// Threads each of which waits for the next one, if there are any, the one with the least number first.
fn circle(blocked: &[Blocked]) -> Vec<ThreadId> {
    let of = |thread: ThreadId| blocked.iter().find(|b| b.thread == thread);
    for start in blocked {
        let mut members = vec![start.thread];
        let mut at = start;
        while let Some(next) = at.waits_for.and_then(of) {
            if next.thread == start.thread {
                return members;
            }
            if members.contains(&next.thread) {
                break;
            }
            members.push(next.thread);
            at = next;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(thread: u32, wants: Role, waits_for: Option<u32>) -> Blocked {
        Blocked {
            thread: ThreadId(thread),
            site: SiteId(thread),
            wants,
            mode: Mode::Exclusive,
            holds: Vec::new(),
            waits_for: waits_for.map(ThreadId),
        }
    }

    fn part(blocked: &[Blocked]) -> Vec<u32> {
        Finding::stuck(blocked, |_| false).places.iter().map(|p| p.thread.0).collect()
    }

    const A: Role = Role::Acquire(LockId(0));
    const B: Role = Role::Acquire(LockId(1));

    #[test]
    fn threads_outside_the_circle_wait_as_a_consequence() {
        let joins = waits(0, Role::Join(ThreadId(1)), Some(1));
        assert_eq!(part(&[joins, waits(1, A, Some(2)), waits(2, B, Some(1))]), [1, 2]);
    }

    #[test]
    fn a_thread_that_is_joined_may_wait_for_the_one_that_joins_it() {
        let joins = waits(0, Role::Join(ThreadId(1)), Some(1));
        assert_eq!(part(&[joins, waits(1, A, Some(0)), waits(2, A, Some(0))]), [0, 1]);
    }

    #[test]
    fn without_a_circle_the_thread_that_only_joins_is_not_to_blame() {
        let joins = waits(0, Role::Join(ThreadId(1)), Some(1));
        assert_eq!(part(&[joins, waits(1, Role::Sleep, None)]), [1]);
    }
}
