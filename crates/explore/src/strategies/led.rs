//! Follows a witness: threads take their steps in a known order, and then another strategy decides.
//!
//! A witness of a race or a deadlock (`selvedge_analyses::Witness`) is a part of an earlier execution, in the order of
//! that execution, after which all that the target needs is next. The steps that it is made of are *cues*. A thread is
//! recognised by who started it; a step by its place and by what kind of step it is.
//!
//! How: the thread of the first cue that has not been taken runs. An event of the earlier execution need not be a
//! step of this one: if a thread is about to take a step of a later cue, those before it are over. A step that is no cue
//! is taken, unless it is at a place of the target.
//!
//! When the cues are over, the threads at the places of the target are the first that the other strategy may choose.
//!
//! Guarantee: if the program decides by what its reads see alone, every thread is before its part of the target when the
//! cues are over. If a thread cannot take its cue, the other strategy decides from there on.
//!
//! Cost: O(1) per choice, and a look at `AHEAD` cues at most per step.

use selvedge_model::{Event, Op, SiteId, ThreadId};

use crate::{Choice, Pending, Rng, Step, Strategy};

/// How many cues of a thread are compared with a step of it.
const AHEAD: usize = 64;
/// How many steps that are no cues are taken for cues.
const UNKNOWN: usize = 1_000;

/// A step of an earlier execution. `S` is a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cue<S = SiteId> {
    /// The thread, as the earlier execution numbered it.
    pub thread: ThreadId,
    /// Where it takes the step.
    pub site: S,
    kind: Kind,
    /// The thread that it starts, as the earlier execution numbered it.
    child: Option<ThreadId>,
}

/// Kinds of steps, as far as an event tells them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Access,
    Acquire,
    Release,
    Thread,
    Rendezvous,
    Condition,
}

impl Kind {
    /// None if no event tells of the step, or if it never is one.
    fn of(step: Step) -> Option<Kind> {
        match step {
            Step::Do(op) => match op {
                accesses!() => Some(Kind::Access),
                Op::Acquire(..) => Some(Kind::Acquire),
                Op::Release(..) => Some(Kind::Release),
                threads!() => Some(Kind::Thread),
                rendezvous!() => Some(Kind::Rendezvous),
                conditions!() => Some(Kind::Condition),
                Op::Fence(_) | regions!() | allocation!() => None,
            },
            Step::TryAcquire(..) => Some(Kind::Acquire),
            Step::Enroll(..) | Step::Yield | Step::Busy | Step::Ended => None,
        }
    }
}

impl<S> Cue<S> {
    /// The step that an event was, if events of its kind are steps; `site` is its place.
    pub fn of(event: &Event, site: S) -> Option<Cue<S>> {
        let child = if let Op::Fork(child) = event.op { Some(child) } else { None };
        Some(Cue { thread: event.thread, site, kind: Kind::of(Step::Do(event.op))?, child })
    }

    /// The same with its place in other terms.
    pub fn map<T>(&self, place: impl FnOnce(&S) -> T) -> Cue<T> {
        let Cue { thread, kind, child, .. } = *self;
        Cue { thread, site: place(&self.site), kind, child }
    }
}

/// A thread of the earlier execution.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Its number in this execution.
    now: Option<ThreadId>,
    /// Its cues.
    cues: Vec<usize>,
    /// How many of them are over.
    over: usize,
}

/// Takes the steps of a witness, and lets another strategy decide after them.
#[allow(missing_debug_implementations)]
pub struct Led<S> {
    /// The other strategy.
    pub then: S,
    cues: Vec<Cue>,
    /// The places of the target.
    ends: Vec<SiteId>,
    parts: Vec<Part>,
    /// The first cue that may not be over.
    at: usize,
    /// A thread that starts the given one of the earlier execution.
    starting: Option<(ThreadId, ThreadId)>,
    unknown: usize,
    /// Whether the cues are still followed.
    open: bool,
}

impl<S: Strategy> Led<S> {
    /// Follows `cues` to a target at the places `ends`.
    pub fn new(then: S, cues: Vec<Cue>, ends: Vec<SiteId>) -> Led<S> {
        let ids = cues.iter().flat_map(|c| [Some(c.thread), c.child]).flatten();
        let threads = ids.map(|t| t.index() + 1).max().unwrap_or(0).max(1);
        let mut parts = vec![Part::default(); threads];
        for (number, cue) in cues.iter().enumerate() {
            parts[cue.thread.index()].cues.push(number);
        }
        let open = !cues.is_empty();
        Led { then, cues, ends, parts, at: 0, starting: None, unknown: 0, open }
    }

    /// How many of a part's cues are over when its thread is about to take this step, if that is one of its cues.
    fn find(&self, part: usize, next: &Pending) -> Option<usize> {
        let kind = Kind::of(next.step)?;
        let Part { cues, over, .. } = &self.parts[part];
        let is_it = |&&number: &&usize| {
            self.cues[number].site == next.site && self.cues[number].kind == kind
        };
        cues.iter().skip(*over).take(AHEAD).position(|number| is_it(&number)).map(|n| over + n)
    }

    /// The thread whose cue is next, if it can be followed.
    fn lead(&mut self, choice: &Choice<'_>) -> Option<ThreadId> {
        while let Some(cue) = self.cues.get(self.at) {
            let part = cue.thread.index();
            let Part { now, cues, over } = &self.parts[part];
            if cues.get(*over).is_none_or(|&first| self.at < first) {
                self.at += 1;
                continue;
            }
            let now = now.filter(|&t| choice.is_enabled(t))?;
            let (next, over) = (choice.next(now), *over);
            match self.find(part, next) {
                Some(found) if found == over => return Some(now),
                Some(found) => self.parts[part].over = found,
                None if self.is_unknown(next) && self.unknown < UNKNOWN => {
                    self.unknown += 1;
                    return Some(now);
                }
                None => self.parts[part].over = self.parts[part].cues.len(),
            }
        }
        None
    }

    /// Whether a step that is no cue may come before the next cue of its thread.
    fn is_unknown(&self, next: &Pending) -> bool {
        let kind = Kind::of(next.step);
        next.step != Step::Ended
            && kind.is_none_or(|kind| kind == Kind::Access && !self.ends.contains(&next.site))
    }
}

impl<S: Strategy> Strategy for Led<S> {
    fn begin(&mut self, rng: Rng) -> bool {
        for (id, part) in (0..).map(ThreadId).zip(&mut self.parts) {
            // A thread that no cue starts is there from the beginning.
            let is_started = self.cues.iter().any(|cue| cue.child == Some(id));
            (part.now, part.over) = ((!is_started).then_some(id), 0);
        }
        (self.at, self.starting, self.unknown) = (0, None, 0);
        self.open = !self.cues.is_empty();
        self.then.begin(rng)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        if self.open {
            match self.lead(choice) {
                Some(thread) => return thread,
                None => self.open = false,
            }
            // Those that are before their parts of the target go first, before another thread can do anything.
            let is_there = |t: &&ThreadId| {
                let next = choice.next(**t);
                self.ends.contains(&next.site) && Kind::of(next.step) == Some(Kind::Access)
            };
            let there: Vec<ThreadId> = choice.enabled.iter().filter(is_there).copied().collect();
            if there.len() > 1 && self.at == self.cues.len() {
                return self.then.choose(&Choice { enabled: &there, ..*choice });
            }
        }
        self.then.choose(choice)
    }

    fn number(&mut self, below: u32) -> u32 {
        self.then.number(below)
    }

    fn number_at(&mut self, below: u32, place: u64) -> u32 {
        self.then.number_at(below, place)
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        let part = self.parts.iter().position(|part| part.now == Some(thread));
        if let Some(part) = part.filter(|_| self.open)
            && let Some(found) = self.find(part, &pending[thread.index()])
        {
            let cue = self.cues[self.parts[part].cues[found]];
            self.parts[part].over = found + 1;
            self.starting = cue.child.map(|child| (thread, child)).or(self.starting);
        }
        if self.then.follows_steps() {
            self.then.step(thread, pending);
        }
    }

    fn observe(&mut self, event: &Event) {
        if let Op::Fork(child) = event.op
            && let Some((_, then)) = self.starting.take_if(|(parent, _)| *parent == event.thread)
        {
            self.parts[then.index()].now = Some(child);
        }
        if self.then.follows_steps() {
            self.then.observe(event);
        }
    }

    fn end(&mut self, pending: &[Pending]) {
        self.then.end(pending);
    }
}
