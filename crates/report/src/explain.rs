//! Explains an execution: selects the events that matter to a finding.
//!
//! What matters: the events on the objects that the finding is about, where threads were stopped
//! although they could have gone on, and where the threads that appear were started and joined. The
//! *critical* events are the ones that make the finding: the shortest stretch of the execution in which
//! all its places occur, or the threads that wait at the end. All other events are only counted.
//!
//! Without places (a crash, an assertion), the objects are those of the steps before which threads were
//! stopped: in a schedule with few preemptions these decided the outcome. If none was stopped, they are
//! those of the last events.
//!
//! [`explain`] selects, [`Interleaving`](crate::Interleaving) gives names, [`layout()`](crate::layout())
//! makes lines of styled text.
//!
//! Guarantee: every critical event and every stop that concerns one of the objects is shown, up to
//! [`ROWS`] rows; beyond that, rows in the middle are replaced by their number.
//!
//! Cost: O(events × objects).

use std::collections::BTreeSet;

use selvedge_model::{
    BarrierId, Blocked, CondId, Ended, Event, Failure, Finding, LockId, Op, Pending, Range, Role,
    SemaphoreId, Site, SiteId, Step, Stop, Subject, Symbols, ThreadId, regions,
};

use crate::End;

/// The largest number of rows of an explanation.
pub const ROWS: usize = 60;
/// The number of last events that count as relevant if nothing else is known. Up to this many stops are all
/// shown.
const LAST: usize = 3;

/// An execution, and what is to be explained of it.
#[derive(Clone, Copy, Debug)]
pub struct Story<'a> {
    /// What happened.
    pub events: &'a [Event],
    /// Where threads were stopped.
    pub stops: &'a [Stop],
    /// The threads that still wait at the end, and what they wait for.
    pub blocked: &'a [Blocked],
    /// The places of the finding, each as often as it takes part.
    pub places: &'a [SiteId],
    /// Further places whose events are shown.
    pub like: &'a [SiteId],
    /// How it ended, if that gets a row, and the thread that ran last.
    pub ending: Option<(ThreadId, End)>,
}

/// One execution, as the executor returns it.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// What happened.
    pub events: &'a [Event],
    /// Where threads were stopped.
    pub stops: &'a [Stop],
    /// The thread that ran last.
    pub last: ThreadId,
    /// How it failed, if it did.
    pub failed: Option<&'a Finding>,
    /// The exit code, if it did not fail.
    pub exited: Option<i32>,
    /// Places whose events are shown although they do not make the finding: those of an execution that this
    /// one is compared with.
    pub like: &'a [Site],
}

/// Selects what matters of an execution that shows a finding at the places `critical`.
pub fn explain_execution(
    executed: &Executed<'_>,
    critical: &[Site],
    symbols: &Symbols,
) -> Explanation {
    let places: Vec<SiteId> = critical.iter().filter_map(|site| id(site, symbols)).collect();
    let like: Vec<SiteId> = executed.like.iter().filter_map(|site| id(site, symbols)).collect();
    let failure = match executed.failed.map(|f| &f.subject) {
        Some(Subject::Program(failure)) => Some(failure),
        _ => None,
    };
    let exited = executed.exited.filter(|&code| code != 0);
    let end = match exited {
        Some(code) => Some(End::Process(Ended::Code(code))),
        None => failure.and_then(End::of),
    };
    explain(&Story {
        events: executed.events,
        stops: executed.stops,
        blocked: &failure.map(Failure::blocked).unwrap_or_default(),
        places: &places,
        like: &like,
        ending: end.map(|end| (executed.last, end)),
    })
}

/// The id of a site. If the program was edited since, the id of the place to which the site has moved.
fn id(site: &Site, symbols: &Symbols) -> Option<SiteId> {
    let sites = symbols.sites.entries();
    let now = site.relocated(sites)?;
    let found = sites.iter().position(|s| s == now)?;
    Some(SiteId(u32::try_from(found).ok()?))
}

/// One row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// A thread does something.
    Does {
        /// The number of the event in the execution.
        at: usize,
        /// The event.
        event: Event,
        /// Whether it is one of the events that make the finding.
        critical: bool,
    },
    /// A thread is stopped although it could go on.
    Stopped {
        /// How many events had happened.
        at: usize,
        /// The thread.
        thread: ThreadId,
        /// The step before which it is stopped.
        next: Pending,
    },
    /// A thread waits until the end of the execution.
    Waits(Blocked),
    /// The execution ends.
    Ends {
        /// The thread that ran last.
        thread: ThreadId,
        /// How it ends.
        how: End,
    },
    /// Events that do not matter.
    Elided(Vec<Row>),
}

impl Row {
    /// The thread of the row.
    pub fn thread(&self) -> Option<ThreadId> {
        match self {
            Row::Does { event, .. } => Some(event.thread),
            Row::Stopped { thread, .. } | Row::Ends { thread, .. } => Some(*thread),
            Row::Waits(blocked) => Some(blocked.thread),
            Row::Elided(_) => None,
        }
    }
}

/// What to show.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explanation {
    /// The threads that appear, in the order of their numbers.
    pub threads: Vec<ThreadId>,
    /// What they do, in the order in which it happened.
    pub rows: Vec<Row>,
}

/// What a step or event is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Thing {
    Memory(Range),
    Lock(LockId),
    Cond(CondId),
    Semaphore(SemaphoreId),
    Barrier(BarrierId),
    Thread(ThreadId),
}

impl Thing {
    fn of(op: Op) -> Option<Thing> {
        Some(match op {
            Op::Read(a) | Op::Write(a) | Op::Atomic(a, _) => Thing::Memory(a.range()),
            Op::Alloc(range) | Op::Free(range) => Thing::Memory(range),
            Op::Acquire(lock, _) | Op::Release(lock, _) => Thing::Lock(lock),
            Op::Notify(cond, _) | Op::Wake(cond) => Thing::Cond(cond),
            Op::Post(semaphore) | Op::Wait(semaphore) => Thing::Semaphore(semaphore),
            Op::Arrive(barrier, _) | Op::Leave(barrier, _) => Thing::Barrier(barrier),
            Op::Fork(thread) | Op::Join(thread) => Thing::Thread(thread),
            Op::Begin | Op::End | Op::Fence(_) | regions!() => {
                return None;
            }
        })
    }

    fn of_step(step: Step) -> Option<Thing> {
        match step {
            Step::Do(op) => Thing::of(op),
            Step::TryAcquire(lock, _) => Some(Thing::Lock(lock)),
            Step::Enroll(cond, _) => Some(Thing::Cond(cond)),
            Step::Yield | Step::Busy | Step::Ended => None,
        }
    }

    fn of_role(role: Role) -> Option<Thing> {
        match role {
            Role::Acquire(lock) | Role::Release(lock) => Some(Thing::Lock(lock)),
            Role::Join(thread) | Role::Fork(thread) => Some(Thing::Thread(thread)),
            Role::Await(cond) => Some(Thing::Cond(cond)),
            Role::Wait(semaphore) | Role::Post(semaphore) => Some(Thing::Semaphore(semaphore)),
            Role::Arrive(barrier) | Role::Leave(barrier) => Some(Thing::Barrier(barrier)),
            Role::Read | Role::Write | Role::AtomicRead | Role::AtomicWrite | Role::Free => None,
            Role::Enter(_) | Role::Sleep | Role::Fail => None,
            Role::Ensure | Role::Observe | Role::Part(_) => None,
        }
    }

    fn is_same(self, other: Thing) -> bool {
        match (self, other) {
            (Thing::Memory(a), Thing::Memory(b)) => a.overlaps(b),
            (a, b) => a == b,
        }
    }
}

/// Selects what matters.
pub fn explain(story: &Story<'_>) -> Explanation {
    let critical = window(story.events, story.places);
    let things = things(story, &critical);
    let mut shown: BTreeSet<usize> = critical.iter().copied().collect();
    let about =
        |thing: Option<Thing>| thing.is_some_and(|t| things.iter().any(|&other| other.is_same(t)));
    shown.extend((0..story.events.len()).filter(|&i| about(Thing::of(story.events[i].op))));
    shown.extend((0..story.events.len()).filter(|&i| story.like.contains(&story.events[i].site)));
    let stops: Vec<&Stop> = story
        .stops
        .iter()
        .filter(|s| story.stops.len() <= LAST || about(Thing::of_step(s.next.step)))
        .collect();
    add_lives(story, &stops, &mut shown);
    let mut rows = rows(story, &shown, &critical, &stops);
    shorten(&mut rows);
    let threads: BTreeSet<ThreadId> = rows.iter().filter_map(Row::thread).collect();
    Explanation { threads: threads.into_iter().collect(), rows }
}

/// The shortest stretch of events in which all places occur, each as often as it is named, the last of
/// equally short ones: of each occurrence its index. Accesses of several places must be to one object,
/// or they have nothing to do with each other.
fn window(events: &[Event], places: &[SiteId]) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::new();
    // What releases a lock, or ends a region, may stand at the same place as what acquired it or began it, but
    // then it is no part of the finding.
    let ends = |e: &Event| matches!(e.op, Op::Release(..) | Op::RegionExit(_));
    let begun: BTreeSet<SiteId> = events.iter().filter(|e| !ends(e)).map(|e| e.site).collect();
    let is_one = |e: &Event| places.contains(&e.site) && !(ends(e) && begun.contains(&e.site));
    let at: Vec<usize> = (0..events.len()).filter(|&i| is_one(&events[i])).collect();
    for (n, &end) in at.iter().enumerate() {
        let mut missing = places.to_vec();
        let mut found: Vec<usize> = Vec::new();
        let thing = Thing::of(events[end].op);
        for &i in at[..=n].iter().rev() {
            let related = match (thing, Thing::of(events[i].op)) {
                (Some(a @ Thing::Memory(_)), Some(b @ Thing::Memory(_))) => a.is_same(b),
                _ => true,
            };
            let again = found.len() == 1
                && places.len() == 2
                && events[i].thread == events[found[0]].thread;
            if let Some(place) = missing.iter().position(|&p| p == events[i].site)
                && related
                && !again
            {
                missing.swap_remove(place);
                found.push(i);
            }
            if missing.is_empty() {
                break;
            }
        }
        let length = |list: &[usize]| list[0] - list[list.len() - 1];
        if missing.is_empty() && (best.is_empty() || length(&found) <= length(&best)) {
            best = found;
        }
    }
    best.reverse();
    best
}

/// What the finding is about.
fn things(story: &Story<'_>, critical: &[usize]) -> Vec<Thing> {
    let mut things: Vec<Thing> = Vec::new();
    let mut add = |thing: Option<Thing>| {
        if let Some(thing) = thing
            && !things.contains(&thing)
        {
            things.push(thing);
        }
    };
    critical.iter().for_each(|&i| add(Thing::of(story.events[i].op)));
    story.blocked.iter().for_each(|b| add(Thing::of_role(b.wants)));
    if critical.is_empty() && story.blocked.is_empty() {
        story.stops.iter().for_each(|stop| add(Thing::of_step(stop.next.step)));
        if story.stops.is_empty() {
            let last = story.events.iter().rev().filter(|e| Thing::of(e.op).is_some());
            last.take(LAST).for_each(|e| add(Thing::of(e.op)));
        }
    }
    things
}

/// Where the threads that appear were started, and where another thread waited for their end.
fn add_lives(story: &Story<'_>, stops: &[&Stop], shown: &mut BTreeSet<usize>) {
    let mut alive: BTreeSet<ThreadId> = shown.iter().map(|&i| story.events[i].thread).collect();
    alive.extend(story.blocked.iter().map(|b| b.thread));
    alive.extend(stops.iter().map(|s| s.thread));
    for (i, event) in story.events.iter().enumerate() {
        if let Op::Fork(thread) | Op::Join(thread) = event.op
            && alive.contains(&thread)
        {
            shown.insert(i);
        }
    }
}

fn rows(
    story: &Story<'_>,
    shown: &BTreeSet<usize>,
    critical: &[usize],
    stops: &[&Stop],
) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut next_stop = stops.iter().peekable();
    let mut hidden: Vec<usize> = Vec::new();
    let flush = |rows: &mut Vec<Row>, hidden: &mut Vec<usize>| {
        let mut plain: Vec<Row> = hidden
            .drain(..)
            .map(|at| Row::Does { at, event: story.events[at], critical: false })
            .collect();
        match plain.len() {
            0 => {}
            // A single event takes no more room than a row that says that one event is left out.
            1 => rows.append(&mut plain),
            _ => rows.push(Row::Elided(plain)),
        }
    };
    for i in 0..=story.events.len() {
        while let Some(stop) = next_stop.next_if(|s| s.at <= i) {
            flush(&mut rows, &mut hidden);
            rows.push(Row::Stopped { at: stop.at, thread: stop.thread, next: stop.next });
        }
        let Some(event) = story.events.get(i) else { break };
        if shown.contains(&i) {
            flush(&mut rows, &mut hidden);
            rows.push(Row::Does { at: i, event: *event, critical: critical.contains(&i) });
        } else if !matches!(event.op, Op::Begin | Op::End) {
            hidden.push(i);
        }
    }
    flush(&mut rows, &mut hidden);
    rows.extend(story.blocked.iter().cloned().map(Row::Waits));
    rows.extend(story.ending.map(|(thread, how)| Row::Ends { thread, how }));
    rows
}

/// Leaves out rows in the middle if there are too many, but no critical ones.
fn shorten(rows: &mut Vec<Row>) {
    if rows.len() <= ROWS {
        return;
    }
    const FIRST: usize = 10;
    let spare = rows.len() - ROWS;
    let mut kept: Vec<Row> = Vec::new();
    let mut left_out: Vec<Row> = Vec::new();
    for (i, row) in std::mem::take(rows).into_iter().enumerate() {
        let spare = i >= FIRST && i <= FIRST + spare;
        match row {
            Row::Elided(hidden) if spare => left_out.extend(hidden),
            Row::Does { critical: false, .. } if spare => left_out.push(row),
            row => {
                if !left_out.is_empty() {
                    kept.push(Row::Elided(std::mem::take(&mut left_out)));
                }
                kept.push(row);
            }
        }
    }
    *rows = kept;
}
