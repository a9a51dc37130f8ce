//! Concurrent breakpoints: threads that a user wants to meet.
//!
//! Source: Park, *Active testing*, chapter 5 (an arbitrary set of statements where an active checker should
//! pause), and Park and Sen, *Concurrent breakpoints*, PPoPP 2012. A breakpoint is a list of places and
//! perhaps the condition that all are about the same object. A thread that comes to one of the places is
//! paused there until each place has a thread of its own; then they go on in a random order.
//!
//! Deviations: the paper's breakpoints wait for a time; here a thread waits for as long as others can
//! run, with the backoff and the livelock monitor that all directed strategies have.
//!
//! Guarantee: [`Meet::met`] only if, at one moment, so many different threads were each about to take a
//! step at one of the places, each place having one, and, if that was asked for, all steps were about
//! one lock or overlapping memory. May miss meetings after threads were paused that did not meet.
//!
//! Cost: O(n) per choice, and a search over the threads that are at a place when one more comes.

use selvedge_model::{Op, SiteId, ThreadId};

use crate::dependence::subjects_meet;
use crate::strategies::active::{Active, Verdict};
use crate::{Choice, Pending, Rng, Step, Strategy};

/// Steers threads to a meeting.
#[derive(Clone, Debug)]
pub struct Meet {
    active: Active,
    /// For each place, the sites that are it: one line of source is often several.
    places: Vec<Vec<SiteId>>,
    same_object: bool,
    met: Vec<ThreadId>,
}

impl Meet {
    /// Threads are to meet at `places`.
    pub fn new(places: Vec<Vec<SiteId>>) -> Meet {
        Meet { active: Active::default(), places, same_object: false, met: Vec::new() }
    }

    /// They only meet if they are about to use the same lock, or memory in common.
    pub fn at_one_object(mut self) -> Meet {
        self.same_object = true;
        self
    }

    /// The threads that met in this execution, in the order of the places; empty if they did not.
    pub fn met(&self) -> &[ThreadId] {
        &self.met
    }

    /// How many threads of this execution were paused and did not reach the target.
    pub fn thrashes(&self) -> u64 {
        self.active.thrashes()
    }
}

fn is_at(places: &[Vec<SiteId>], pending: &Pending) -> bool {
    let steps = !matches!(pending.step, Step::Busy | Step::Ended | Step::Do(Op::Begin));
    steps && places.iter().any(|sites| sites.contains(&pending.site))
}

/// Finds a thread for each place from the `chosen.len()`th on.
fn seat(
    places: &[Vec<SiteId>],
    same_object: bool,
    there: &[ThreadId],
    pending: &[Pending],
    chosen: &mut Vec<ThreadId>,
) -> bool {
    let Some(sites) = places.get(chosen.len()) else { return true };
    for &thread in there {
        let next = &pending[thread.index()];
        let fits = sites.contains(&next.site)
            && !chosen.contains(&thread)
            && (!same_object
                || chosen.iter().all(|t| subjects_meet(pending[t.index()].step, next.step)));
        if fits {
            chosen.push(thread);
            if seat(places, same_object, there, pending, chosen) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

impl Strategy for Meet {
    fn begin(&mut self, rng: Rng) -> bool {
        self.met.clear();
        self.active.begin(rng)
    }

    fn number(&mut self, below: u32) -> u32 {
        self.active.number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        let Meet { active, places, same_object, met } = self;
        active.choose(
            choice,
            |_| false,
            |thread, paused, rng| {
                if !is_at(places, choice.next(thread)) {
                    return Verdict::Irrelevant;
                }
                let mut there = paused.to_vec();
                there.push(thread);
                let mut chosen = Vec::new();
                if places.is_empty()
                    || !seat(places, *same_object, &there, choice.pending, &mut chosen)
                {
                    return Verdict::Partial;
                }
                *met = chosen;
                let able: Vec<ThreadId> =
                    met.iter().copied().filter(|&t| choice.is_enabled(t)).collect();
                // The thread that came last can go on, and may belong to the meeting or not.
                let first = if able.is_empty() { thread } else { able[rng.below(able.len())] };
                Verdict::Reached(first)
            },
        )
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.active.stepped(thread, is_at(&self.places, &pending[thread.index()]));
    }
}
