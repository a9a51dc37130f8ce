//! Order inside a phase, on demand.
//!
//! Paper: the thesis knows only barriers and locks; peers send a vector clock with each message. Deviation from
//! both: messages, collectives of smaller communicators and post-start-complete-wait are *logged*, and nothing is
//! sent with them. If a pair of accesses is left open by barriers and locks, the logs of the phase are exchanged
//! and searched.
//!
//! A *segment* is a part of one thread's execution without synchronization: no event of the log, and no release
//! or acquisition among the threads of the rank. All accesses of a segment are ordered alike with respect to other
//! threads, so order is a relation of segments. Segments of a rank are numbered in the order in which they began;
//! an event has the number of the segment that it begins.
//!
//! Guarantee: [`Graph::reaches`] is happens-before of the events that the logs have (a test compares it with
//! vector clocks). Cost: linear in the events that the search passes.

use crate::hash::Map;

/// What an event gives and another one takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Key {
    /// The k-th message of a communicator, from a source to a destination, with a tag.
    Message { comm: u64, from: u32, to: u32, tag: i32, k: u32 },
    /// The k-th collective operation of a communicator.
    Collective { comm: u64, k: u32 },
    /// The k-th exposure of a window by `from` to `to`.
    Post { window: u64, from: u32, to: u32, k: u32 },
    /// The k-th access epoch of `from` at `to`, which `to` waits for.
    Complete { window: u64, from: u32, to: u32, k: u32 },
    /// Locks of a window at a target (or at all) that were held exclusively or shared: these may order accesses
    /// differently in another execution.
    Lock { window: u64, target: Option<u32>, exclusive: bool },
    /// An element of a basic type that is accessed atomically: so may this.
    Atomic { window: u64, target: u32, at: u64, basic: u32 },
    /// A value in the memory of a rank that it waits for (`shmem_wait_until`); `None` is any value that an update
    /// leaves.
    Flag { window: u64, target: u32, at: u64, value: Option<u64> },
}

/// An entry of the log of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The thread's slot.
    pub slot: u32,
    /// The segment that it begins; of an atomic access, the segment in which it is.
    pub segment: u32,
    /// What comes after this event comes after what it takes.
    pub takes: Vec<Key>,
    /// What takes this comes after everything before this event.
    pub gives: Vec<Key>,
}

/// A segment of a rank with several threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Its number.
    pub segment: u32,
    /// The thread's slot.
    pub slot: u32,
    /// The clock of the slot when it began.
    pub tick: u32,
    /// What the thread knew of all slots then.
    pub clock: Vec<u32>,
}

/// What a rank did in a phase.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Log {
    /// By segment.
    pub events: Vec<Event>,
    /// By segment; empty if the rank has one thread.
    pub known: Vec<Known>,
    /// The rank also synchronized in a way that the log does not have.
    pub unfollowed: bool,
}

/// A point of an execution: in which segment of which thread it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub struct Point {
    pub rank: u32,
    pub slot: u32,
    pub segment: u32,
}

/// The logs of all ranks.
#[derive(Debug, Default)]
pub struct Graph {
    threads: Map<(u32, u32), Thread>,
    takers: Map<Key, Vec<(u32, u32, u32)>>,
    /// The first event that raises a flag to a value, or `None` if several ranks do: then it is open which of them was
    /// waited for.
    raised: Map<Key, Option<(u32, u32)>>,
}

#[derive(Debug, Default)]
struct Thread {
    // invariant: both by segment.
    events: Vec<Event>,
    known: Vec<Known>,
}

/// Which order counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strength {
    /// What every execution has: messages, collectives, post and start, complete and wait.
    Strong,
    /// Also what locks and atomics may have ordered in this execution.
    Weak,
}

/// How far a search has come in one thread: the first segment all of which comes after the source, and the first
/// one whose end does.
#[derive(Clone, Copy, Debug)]
struct Reached {
    all_of: u32,
    end_of: u32,
}

impl Graph {
    /// Of the logs of ranks 0, 1, 2, …
    pub fn new(logs: Vec<Log>) -> Graph {
        let mut graph = Graph::default();
        for (rank, log) in logs.into_iter().enumerate() {
            let rank = rank as u32;
            for event in log.events {
                for &key in event.gives.iter().filter(|key| matches!(key, Key::Flag { .. })) {
                    let by = graph.raised.entry(key).or_insert(Some((rank, event.segment)));
                    *by = by.filter(|by| by.0 == rank);
                }
                for &key in &event.takes {
                    graph.takers.entry(key).or_default().push((rank, event.slot, event.segment));
                }
                graph.threads.entry((rank, event.slot)).or_default().events.push(event);
            }
            for known in log.known {
                graph.threads.entry((rank, known.slot)).or_default().known.push(known);
            }
        }
        graph
    }

    /// Whether what ends in the segment of `from` comes before what begins in the segment of `to`.
    pub fn reaches(&self, from: Point, to: Point, strength: Strength) -> bool {
        let mut reached: Map<(u32, u32), Reached> = Map::default();
        let start = Reached { all_of: from.segment + 1, end_of: from.segment };
        let mut work = vec![((from.rank, from.slot), start)];
        while let Some((thread, news)) = work.pop() {
            let old = reached.get(&thread).copied();
            if old.is_some_and(|old| old.all_of <= news.all_of && old.end_of <= news.end_of) {
                continue;
            }
            reached.insert(thread, news);
            if thread == (to.rank, to.slot) && to.segment >= news.all_of {
                return true;
            }
            self.follow(thread, news, old, strength, &mut work);
        }
        false
    }

    /// Whether what a fence put before a flag at `target` comes before `to`: `from` is the fence.
    pub fn reaches_by_flags(
        &self,
        from: Point,
        target: u32,
        to: Point,
        strength: Strength,
    ) -> bool {
        let events = self.events_from(from.rank, from.slot, from.segment + 1).iter();
        let flags = events.flat_map(|e| e.gives.iter().map(move |key| (e, key)));
        flags
            .filter(|(_, key)| matches!(key, Key::Flag { target: at, .. } if *at == target))
            .any(|(event, key)| self.takes_before(event, key, from, to, strength))
    }

    /// Whether what put a value into a flag comes before `to`, because it was waited for there: `from` is that access,
    /// and `flag` the window, the rank and the offset that it wrote to.
    pub fn reaches_by_its_value(
        &self,
        from: Point,
        flag: (u64, u32, u64),
        to: Point,
        strength: Strength,
    ) -> bool {
        // An access that raises a flag begins a segment.
        let event = self.events_from(from.rank, from.slot, from.segment).first();
        let Some(event) = event.filter(|event| event.segment == from.segment) else { return false };
        let raises = |key: &&Key| matches!(key, Key::Flag { window, target, at, .. } if (*window, *target, *at) == flag);
        event
            .gives
            .iter()
            .filter(raises)
            .any(|key| self.takes_before(event, key, from, to, strength))
    }

    /// The events of a thread from a segment on.
    fn events_from(&self, rank: u32, slot: u32, segment: u32) -> &[Event] {
        let Some(here) = self.threads.get(&(rank, slot)) else { return &[] };
        &here.events[here.events.partition_point(|e| e.segment < segment)..]
    }

    /// Whether something that takes what an event of `from`'s thread gives comes before `to`.
    fn takes_before(
        &self,
        event: &Event,
        key: &Key,
        from: Point,
        to: Point,
        strength: Strength,
    ) -> bool {
        if strength == Strength::Strong && self.is_weak(key, (from.rank, event.segment)) {
            return false;
        }
        self.takers.get(key).into_iter().flatten().any(|&(rank, slot, segment)| {
            let from = Point { rank, slot, segment };
            from.rank == to.rank && from.slot == to.slot && segment <= to.segment
                || self.reaches(from, to, strength)
        })
    }

    /// Whether what an event gives may have been taken from another one.
    fn is_weak(&self, key: &Key, event: (u32, u32)) -> bool {
        match key {
            Key::Lock { .. } | Key::Atomic { .. } => true,
            // An update may leave any value, and of several events with the same value the first one counts.
            Key::Flag { value, .. } => {
                value.is_none() || self.raised.get(key).copied().flatten() != Some(event)
            }
            Key::Message { .. }
            | Key::Collective { .. }
            | Key::Post { .. }
            | Key::Complete { .. } => false,
        }
    }

    /// What comes after `news` of a thread, as far as it does not come after `old`.
    fn follow(
        &self,
        thread: (u32, u32),
        news: Reached,
        old: Option<Reached>,
        strength: Strength,
        work: &mut Vec<((u32, u32), Reached)>,
    ) {
        let Some(here) = self.threads.get(&thread) else { return };
        let done = old.map_or(u32::MAX, |old| old.end_of);
        let first = here.events.partition_point(|e| e.segment < news.end_of);
        for event in here.events[first..].iter().take_while(|e| e.segment <= done) {
            for key in &event.gives {
                let weak = self.is_weak(key, (thread.0, event.segment));
                // An atomic access lies somewhere in its segment, every other event at the beginning of it.
                // What an event gives, it gives before it takes.
                let somewhere = matches!(key, Key::Lock { .. } | Key::Atomic { .. });
                if weak && strength == Strength::Strong
                    || !somewhere && event.segment <= news.end_of
                {
                    continue;
                }
                for &(rank, slot, segment) in self.takers.get(key).into_iter().flatten() {
                    if !somewhere || rank != thread.0 {
                        work.push(((rank, slot), Reached { all_of: segment, end_of: segment }));
                    }
                }
            }
        }
        self.tell_threads(thread, here, news, work);
    }

    /// The other threads of the rank, from where they know of what `news` says.
    fn tell_threads(
        &self,
        (rank, slot): (u32, u32),
        here: &Thread,
        news: Reached,
        work: &mut Vec<((u32, u32), Reached)>,
    ) {
        let first = here.known.partition_point(|k| k.segment < news.end_of);
        let Some(tick) = here.known.get(first).map(|k| k.tick) else { return };
        for (&other, thread) in self.threads.iter().filter(|(t, _)| t.0 == rank && t.1 != slot) {
            let knows = |k: &Known| k.clock.get(slot as usize).is_some_and(|&known| known >= tick);
            if let Some(at) = thread.known.iter().find(|k| knows(k)) {
                work.push((other, Reached { all_of: at.segment, end_of: at.segment }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A step of the simulated program: which thread does what.
    #[derive(Clone, Debug)]
    enum Step {
        Send {
            from: usize,
            to: usize,
            tag: i32,
        },
        Receive {
            at: usize,
        },
        Collective {
            members: [bool; 4],
        },
        /// Two threads of one rank: the first releases a lock that the second then acquires.
        Hand {
            rank: usize,
            first: bool,
        },
        Access {
            thread: usize,
        },
    }

    const RANKS: usize = 4;
    // Two threads a rank.
    const THREADS: usize = 2 * RANKS;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..THREADS, 0..RANKS, 0i32..2).prop_map(|(from, to, tag)| Step::Send {
                from,
                to,
                tag
            }),
            (0..THREADS).prop_map(|at| Step::Receive { at }),
            any::<[bool; 4]>().prop_map(|members| Step::Collective { members }),
            (0..RANKS, any::<bool>()).prop_map(|(rank, first)| Step::Hand { rank, first }),
            (0..THREADS).prop_map(|thread| Step::Access { thread }),
            (0..THREADS).prop_map(|thread| Step::Access { thread }),
        ]
    }

    /// Runs a program in process: full vector clocks of all threads beside what the runtime and the log know.
    #[derive(Default)]
    struct Simulation {
        logs: Vec<Log>,
        full: Vec<Vec<u32>>,
        inner: Vec<Vec<u32>>,
        segment: Vec<u32>,
        next: Vec<u32>,
        in_flight: Vec<(Key, Vec<u32>)>,
        sent: Map<(usize, usize, i32), u32>,
        accesses: Vec<(Point, usize, Vec<u32>)>,
        collectives: u32,
    }

    impl Simulation {
        fn new() -> Simulation {
            let mut s = Simulation {
                logs: vec![Log::default(); RANKS],
                full: (0..THREADS).map(|t| unit(t, THREADS)).collect(),
                inner: (0..THREADS).map(|t| unit(t % 2, 2)).collect(),
                segment: vec![0; THREADS],
                next: vec![0; RANKS],
                ..Simulation::default()
            };
            (0..THREADS).for_each(|t| s.begin_segment(t));
            s
        }

        fn begin_segment(&mut self, t: usize) {
            let rank = t / 2;
            self.segment[t] = self.next[rank];
            self.next[rank] += 1;
            let (slot, clock) = (t % 2, self.inner[t].clone());
            let known =
                Known { segment: self.segment[t], slot: slot as u32, tick: clock[slot], clock };
            self.logs[rank].known.push(known);
        }

        fn event(&mut self, t: usize, takes: Vec<Key>, gives: Vec<Key>) {
            self.begin_segment(t);
            let event = Event { slot: (t % 2) as u32, segment: self.segment[t], takes, gives };
            self.logs[t / 2].events.push(event);
        }

        fn tick(&mut self, t: usize) {
            self.full[t][t] += 1;
        }

        fn run(&mut self, step: &Step) {
            match *step {
                Step::Send { from, to, tag } => {
                    let k = self.sent.entry((from / 2, to, tag)).or_default();
                    let (from_rank, k) = ((from / 2) as u32, std::mem::replace(k, *k + 1));
                    let key = Key::Message { comm: 0, from: from_rank, to: to as u32, tag, k };
                    self.in_flight.push((key, self.full[from].clone()));
                    self.event(from, Vec::new(), vec![key]);
                    self.tick(from);
                }
                Step::Receive { at } => {
                    let mine = |key: &Key| matches!(key, Key::Message { to, .. } if *to as usize == at / 2);
                    let Some(i) = self.in_flight.iter().position(|(key, _)| mine(key)) else {
                        return;
                    };
                    let (key, clock) = self.in_flight.remove(i);
                    join(&mut self.full[at], &clock);
                    self.event(at, vec![key], Vec::new());
                }
                Step::Collective { members } => {
                    let threads: Vec<usize> =
                        (0..RANKS).filter(|&r| members[r]).map(|r| 2 * r).collect();
                    let mut all = vec![0; THREADS];
                    threads.iter().for_each(|&t| join(&mut all, &self.full[t]));
                    let key = Key::Collective { comm: 1, k: self.collectives };
                    self.collectives += 1;
                    for &t in &threads {
                        join(&mut self.full[t], &all);
                        self.event(t, vec![key], vec![key]);
                        self.tick(t);
                    }
                }
                Step::Hand { rank, first } => {
                    let (a, b) = (2 * rank + usize::from(!first), 2 * rank + usize::from(first));
                    let (full, inner) = (self.full[a].clone(), self.inner[a].clone());
                    self.tick(a);
                    self.inner[a][a % 2] += 1;
                    self.begin_segment(a);
                    join(&mut self.full[b], &full);
                    join(&mut self.inner[b], &inner);
                    self.begin_segment(b);
                }
                Step::Access { thread } => {
                    let (rank, slot) = ((thread / 2) as u32, (thread % 2) as u32);
                    let point = Point { rank, slot, segment: self.segment[thread] };
                    self.accesses.push((point, thread, self.full[thread].clone()));
                }
            }
        }
    }

    fn unit(at: usize, len: usize) -> Vec<u32> {
        (0..len).map(|i| u32::from(i == at)).collect()
    }

    fn join(into: &mut [u32], other: &[u32]) {
        into.iter_mut().zip(other).for_each(|(a, &b)| *a = b.max(*a));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn order_on_demand_is_that_of_full_vector_clocks(program in prop::collection::vec(step(), 0..40)) {
            let mut s = Simulation::new();
            program.iter().for_each(|step| s.run(step));
            let graph = Graph::new(std::mem::take(&mut s.logs));
            for (a, t, at) in &s.accesses {
                for (b, u, then) in s.accesses.iter().filter(|(_, u, _)| u != t) {
                    let ordered = then[*t] >= at[*t];
                    let found = graph.reaches(*a, *b, Strength::Strong);
                    prop_assert_eq!(found, ordered, "{:?} and {:?} ({})", a, b, u);
                }
            }
        }
    }

    #[test]
    fn locks_and_atomics_are_weak() {
        let lock = Key::Lock { window: 1, target: None, exclusive: true };
        let event = |segment, takes, gives| Event { slot: 0, segment, takes, gives };
        let logs = vec![
            Log { events: vec![event(1, vec![], vec![lock])], known: vec![], unfollowed: false },
            Log { events: vec![event(5, vec![lock], vec![])], known: vec![], unfollowed: false },
        ];
        let graph = Graph::new(logs);
        let point = |rank, segment| Point { rank, slot: 0, segment };
        assert!(!graph.reaches(point(0, 0), point(1, 5), Strength::Strong));
        assert!(graph.reaches(point(0, 0), point(1, 5), Strength::Weak));
        assert!(!graph.reaches(point(0, 2), point(1, 5), Strength::Weak), "it began later");
        assert!(!graph.reaches(point(0, 0), point(1, 4), Strength::Weak), "it was earlier");
    }
}
