//! Whether the accesses to a variable follow a discipline.
//!
//! They do if they can be cut into its phases, in order, perhaps without the last ones, and each cut is
//! ordered: the first access of the phase that must follow accesses of other threads is ordered behind them
//! by program order and the transitions at that cut together, or by the lock of the `guarded-by` that
//! begins there, or, where some are from before the cut and some are not, by both. After a transition one
//! thread may have the variable before the next step; a transition may happen again after that.
//!
//! The steps are the states of an automaton (Glushkov's construction: one state for each step that is written),
//! and all ways to cut are followed at the same time.
//!
//! *Guarantee*: a breach is reported at the first access at which no way to cut is left, and only there.
//!
//! Cost: O(steps) for an access, and the questions about order that these ask.

use super::{Discipline, Sequence, Step};

/// An access, and what is known of the order of things.
pub trait Observed<N> {
    /// The thread, by any number of its own.
    fn thread(&self) -> u32;
    /// Whether it writes.
    fn writes(&self) -> bool;
    /// Whether the thread holds the lock in a mode that guards the access.
    fn holds(&mut self, lock: &N) -> bool;
    /// Whether program order and the edges of these transitions together order the access after all
    /// that it must follow. Without transitions, program order alone.
    fn ordered_by(&mut self, transitions: &[&Step<N>]) -> bool;
}

/// A discipline, ready to be followed.
#[derive(Clone, Debug)]
pub struct Automaton<N = String> {
    /// The steps other than repetitions.
    steps: Vec<Step<N>>,
    first: Vec<usize>,
    /// Which steps may come after each.
    follow: Vec<Vec<usize>>,
}

/// How far the accesses to one instance have come, in each way to cut them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    // invariant: sorted, without duplicates; empty only before the first access and after a breach.
    states: Vec<State>,
}

impl Progress {
    /// The accesses may also have come as far as `other` says. Whether that is new.
    pub fn join(&mut self, other: Progress) -> bool {
        let before = self.states.len();
        self.states.extend(other.states);
        self.states.sort_unstable();
        self.states.dedup();
        self.states.len() > before
    }
}

/// The step of the last access, and its thread where that matters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    step: usize,
    thread: u32,
    /// The transitions before the step, as long as no access had to follow others.
    open: Option<Vec<usize>>,
}

/// Why an access does not follow a discipline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach<N = String> {
    /// The step that it breaks.
    pub step: Step<N>,
    /// What is missing.
    pub missing: Missing<N>,
}

/// What an access lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing<N = String> {
    /// The thread does not hold the lock in a mode that guards the access.
    Lock(N),
    /// The access writes where threads only read.
    OnlyReads,
    /// Another thread has the variable, and the next step does not allow the access.
    Ownership,
    /// None of these transitions orders the access after those that it must follow.
    Order(Vec<Step<N>>),
}

/// A way from one access to the next.
struct Way {
    to: usize,
    /// The transitions on the way.
    through: Vec<usize>,
}

impl<N: Clone + PartialEq> Automaton<N> {
    /// For a discipline.
    pub fn new(discipline: &Discipline<N>) -> Automaton<N> {
        let mut automaton = Automaton { steps: Vec::new(), first: Vec::new(), follow: Vec::new() };
        for sequence in &discipline.alternatives {
            let (first, _) = automaton.add(sequence);
            automaton.first.extend(first);
        }
        automaton
    }

    /// Adds a sequence, and returns the steps that it may begin and end with.
    fn add(&mut self, sequence: &[Step<N>]) -> (Vec<usize>, Vec<usize>) {
        let (mut first, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for step in sequence {
            let (begin, end) = match step {
                Step::Repeat(block) => {
                    let (begin, end) = self.add(block);
                    end.iter().for_each(|&e| self.follow[e].extend(&begin));
                    (begin, end)
                }
                step => {
                    let number = self.steps.len();
                    self.steps.push(step.clone());
                    // A transition may happen again.
                    self.follow.push(if step.is_transition() { vec![number] } else { vec![] });
                    (vec![number], vec![number])
                }
            };
            last.iter().for_each(|&l| self.follow[l].extend(&begin));
            if first.is_empty() {
                first = begin;
            }
            last = end;
        }
        (first, last)
    }

    /// Takes in the next access. After a breach the instance must not be followed further.
    pub fn follow(
        &self,
        progress: &mut Progress,
        access: &mut dyn Observed<N>,
    ) -> Result<(), Breach<N>> {
        let ordered = access.ordered_by(&[]);
        let mut next: Vec<State> = Vec::new();
        let mut unordered: Option<Way> = None;
        let states: Vec<Option<&State>> = match &*progress.states {
            [] => vec![None],
            states => states.iter().map(Some).collect(),
        };
        for state in states {
            let stays = state.filter(|state| self.stays(state, access));
            let same =
                stays.map(|s| (Way { to: s.step, through: s.open.clone().unwrap_or_default() }, s));
            if let Some((way, state)) = same {
                if ordered || state.open.is_none() {
                    next.push(state.clone());
                } else if self.is_ordered(&way, access) {
                    next.push(State { open: None, ..state.clone() });
                } else {
                    unordered = Some(way);
                }
            }
            for way in self.ways(state.map(|s| s.step)) {
                if !self.begins(way.to, access) {
                    continue;
                }
                if ordered || self.is_ordered(&way, access) {
                    let thread = if self.is_local(way.to) { access.thread() } else { 0 };
                    let open = ordered.then_some(way.through);
                    next.push(State { step: way.to, thread, open });
                } else if unordered.as_ref().is_none_or(|u| u.through.len() < way.through.len()) {
                    unordered = Some(way);
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        if next.is_empty() {
            let states: Vec<State> = std::mem::take(&mut progress.states);
            return Err(self.breach(&states, unordered, access));
        }
        progress.states = next;
        Ok(())
    }

    /// Whether one thread has the variable at a step.
    fn is_local(&self, step: usize) -> bool {
        self.steps[step] == Step::ThreadLocal || self.steps[step].is_transition()
    }

    fn stays(&self, state: &State, access: &mut dyn Observed<N>) -> bool {
        if self.is_local(state.step) {
            return state.thread == access.thread();
        }
        self.begins(state.step, access)
    }

    /// Whether the access may be the first of a phase, apart from order.
    fn begins(&self, step: usize, access: &mut dyn Observed<N>) -> bool {
        match &self.steps[step] {
            Step::ReadShared => !access.writes(),
            Step::GuardedBy(lock) => access.holds(lock),
            Step::ThreadLocal | Step::Fork | Step::Join | Step::Via(..) | Step::Repeat(_) => true,
        }
    }

    fn is_ordered(&self, way: &Way, access: &mut dyn Observed<N>) -> bool {
        let through: Vec<&Step<N>> = way.through.iter().map(|&i| &self.steps[i]).collect();
        if !through.is_empty() && access.ordered_by(&through) {
            return true;
        }
        let Step::GuardedBy(lock) = &self.steps[way.to] else { return false };
        let lock = Step::Via(super::DeviceKind::Lock, lock.clone());
        access.ordered_by(&[&lock])
            || !through.is_empty() && access.ordered_by(&[&through[..], &[&lock]].concat())
    }

    /// All ways from a step, or from the beginning, to a step at which accesses may be.
    fn ways(&self, from: Option<usize>) -> Vec<Way> {
        let next = |at: Option<usize>| match at {
            Some(step) => &self.follow[step],
            None => &self.first,
        };
        let mut ways = Vec::new();
        let mut open: Vec<Way> =
            next(from).iter().map(|&to| Way { to, through: Vec::new() }).collect();
        while let Some(Way { to, mut through }) = open.pop() {
            if self.steps[to].is_transition() && !through.contains(&to) {
                through.push(to);
                let further = next(Some(to)).iter().filter(|n| !through.contains(n));
                open.extend(further.map(|&to| Way { to, through: through.clone() }));
            }
            ways.push(Way { to, through });
        }
        ways
    }

    /// Says what is wrong: if the access fits the next phase, the order is missing; otherwise, what the
    /// phase of the access before demands.
    fn breach(
        &self,
        states: &[State],
        unordered: Option<Way>,
        access: &mut dyn Observed<N>,
    ) -> Breach<N> {
        let here: Vec<usize> = if states.is_empty() {
            self.first.clone()
        } else {
            states.iter().map(|s| s.step).collect()
        };
        // Where one thread has the variable, any access fits, but the next phase says more.
        let unguarded = here
            .iter()
            .flat_map(|&step| {
                std::iter::once(step).chain(self.ways(Some(step)).into_iter().map(|w| w.to))
            })
            .find(
                |&step| matches!(&self.steps[step], Step::GuardedBy(lock) if !access.holds(lock)),
            );
        let fits_phase = |way: &Way| !self.is_local(way.to);
        match (unordered, unguarded) {
            (Some(way), guard) if guard.is_none() || fits_phase(&way) => Breach {
                step: self.steps[way.to].clone(),
                missing: match (way.through.is_empty(), &self.steps[way.to]) {
                    (true, Step::GuardedBy(lock)) => {
                        Missing::Order(vec![Step::Via(super::DeviceKind::Lock, lock.clone())])
                    }
                    (true, _) => Missing::Ownership,
                    (false, _) => {
                        Missing::Order(way.through.iter().map(|&i| self.steps[i].clone()).collect())
                    }
                },
            },
            (_, Some(step)) => {
                let missing = match &self.steps[step] {
                    Step::GuardedBy(lock) => Missing::Lock(lock.clone()),
                    _ => Missing::Ownership,
                };
                Breach { step: self.steps[step].clone(), missing }
            }
            (_, None) => {
                let step = here.last().copied().unwrap_or(0);
                let missing = match &self.steps[step] {
                    Step::ReadShared => Missing::OnlyReads,
                    _ => Missing::Ownership,
                };
                Breach { step: self.steps[step].clone(), missing }
            }
        }
    }

    /// Whether every execution of the shape of `sequence` follows the discipline: it has the same phases,
    /// perhaps not the last ones, and no transition that the discipline has not.
    pub fn implied_by(&self, sequence: &Sequence<N>) -> bool {
        let mut unrolled = Vec::new();
        unroll(sequence, 2, &mut unrolled);
        let mut at: Vec<Option<usize>> = vec![None];
        let mut transitions: Vec<&Step<N>> = Vec::new();
        for (i, step) in unrolled.iter().enumerate() {
            let local = unrolled.get(i + 1).is_none_or(|next| next.is_transition());
            if step.is_transition() {
                transitions.push(step);
                if !local {
                    continue;
                }
            }
            let mut next = Vec::new();
            for way in at.iter().flat_map(|&from| self.ways(from)) {
                let has = |t: &&Step<N>| way.through.iter().any(|&i| self.steps[i] == **t);
                let same = if step.is_transition() || **step == Step::ThreadLocal {
                    self.is_local(way.to)
                } else {
                    self.steps[way.to] == **step
                };
                if same && transitions.iter().all(has) && !next.contains(&Some(way.to)) {
                    next.push(Some(way.to));
                }
            }
            if next.is_empty() {
                return false;
            }
            transitions.clear();
            at = next;
        }
        true
    }
}

/// The steps with each repetition so often; those inside repetitions once, or the steps could be too many.
fn unroll<'a, N>(sequence: &'a [Step<N>], times: usize, into: &mut Vec<&'a Step<N>>) {
    for step in sequence {
        match step {
            Step::Repeat(block) => (0..times).for_each(|_| unroll(block, 1, into)),
            step => into.push(step),
        }
    }
}
