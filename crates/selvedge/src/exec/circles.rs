//! Deadlocks of readers that wait behind a writer.
//!
//! Whether a reader is let in while a writer waits depends on the lock. The standard library leaves it to
//! the system, and on Linux, as with `parking_lot`, a reader waits. The executor lets readers
//! in, which loses no order of the acquisitions: a writer that has not come yet excludes no thread. What
//! it would lose are deadlocks, such as that of a thread that reads twice with a writer coming in
//! between. So whenever a thread is about to acquire, the executor checks whether it closes a circle of
//! threads each of which would wait for the next if writers were preferred.
//!
//! **Guarantee**: every circle reported is a deadlock of a lock that prefers writers: its threads are all
//! about to acquire or join, and come to wait if the writers among them do so first. Attempts that
//! may give up, by a timeout or at once, and recursive reads of `parking_lot` are not part of a circle.
//! May miss: what needs a thread that has been let in to have waited elsewhere.
//!
//! Cost: nothing in executions without readers; else a look at the threads waited for, per acquisition.

use selvedge_explore::{Pending, Step};
use selvedge_model::{Op, ThreadId};

use super::failing;
use super::objects::Hold;
use super::sites::Place;
use super::{Exec, Go};
use selvedge_model::Blocked;

/// What a thread waits for.
struct Wait {
    who: ThreadId,
    /// It waits for a thread that waits to write, not for one that holds the lock.
    behind: bool,
}

impl Exec {
    /// The current thread is about to take a step. If that closes a circle, the execution ends.
    #[cold]
    pub(super) fn circle(&mut self, place: Place, step: Step) -> Option<Go> {
        let me = self.current;
        let Place { site, landmark, .. } = place;
        self.pending[me.index()] = Pending { site, landmark, step };
        let circle = self.circle_through(me)?;
        let blocked = circle.iter().enumerate().map(|(i, &thread)| {
            let whom = circle[(i + 1) % circle.len()];
            Blocked { waits_for: Some(whom), ..self.describe(thread) }
        });
        let why = failing::waiting(blocked.collect(), false);
        Some(self.stop(why))
    }

    /// The threads of a circle in which some reader waits behind a writer, from `me` on.
    fn circle_through(&self, me: ThreadId) -> Option<Vec<ThreadId>> {
        // A thread may be come to twice: with such a reader on the way and without.
        let mut seen = vec![[false; 2]; self.pending.len()];
        let mut ways = vec![(vec![me], false)];
        while let Some((way, behind)) = ways.pop() {
            let last = *way.last().expect("a way has a beginning");
            for wait in self.waits(last) {
                let behind = behind || wait.behind;
                if wait.who == me && behind {
                    return Some(way);
                }
                let seen = &mut seen[wait.who.index()][usize::from(behind)];
                if wait.who != me && !std::mem::replace(seen, true) {
                    ways.push(([&way[..], &[wait.who]].concat(), behind));
                }
            }
        }
        None
    }

    /// For whom a thread waits if it takes its step.
    fn waits(&self, thread: ThreadId) -> Vec<Wait> {
        match self.pending[thread.index()].step {
            Step::Do(Op::Join(other)) if !self.has_ended(other) => {
                vec![Wait { who: other, behind: false }]
            }
            Step::Do(Op::Acquire(lock, _)) => {
                let lock = &self.locks[lock.index()];
                let hold = lock.wanted_by(thread);
                let held_by = hold.into_iter().flat_map(|hold| lock.in_the_way_of(hold));
                let mut waits: Vec<Wait> = held_by.map(|who| Wait { who, behind: false }).collect();
                if waits.is_empty() && matches!(hold, Some(Hold::Shared | Hold::Upgradable)) {
                    let waiting = |t: &ThreadId| {
                        matches!(self.pending[t.index()].step, Step::Do(Op::Acquire(..)))
                    };
                    let writers = lock.waiting_writers().filter(waiting);
                    waits.extend(writers.map(|who| Wait { who, behind: true }));
                }
                waits
            }
            _ => Vec::new(),
        }
    }
}
