//! Ranks in one process: the whole analysis without MPI.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::gather::{Made, Window};
use crate::rules::{Completion, Side, number};
use crate::segments::{BLOCKING, Now};

const WIN: u64 = 7;
const NOW: Now<'_> = Now { slot: 0, tick: 1, releases: 0, clock: &[1] };

/// A job whose ranks are called one after the other; exchanges happen in [`Job::exchange`].
struct Job {
    ranks: Vec<Rank>,
    lines: Rc<RefCell<Vec<String>>>,
    names: Map<(u32, u32), Names>,
}

/// The world of one rank in one exchange: the answers are prepared.
struct Prepared {
    incoming: Vec<Vec<u8>>,
    outgoing: Vec<(u32, Vec<u8>)>,
    logs: Vec<Vec<u8>>,
    lines: Rc<RefCell<Vec<String>>>,
}

impl World for Prepared {
    fn sparse(&mut self, to: Vec<(u32, Vec<u8>)>) -> Vec<Vec<u8>> {
        self.outgoing = to;
        std::mem::take(&mut self.incoming)
    }
    fn any(&mut self, mine: u32) -> u32 {
        mine
    }
    fn all(&mut self, _mine: &[u8]) -> Vec<Vec<u8>> {
        self.logs.clone()
    }
    fn place(&mut self, address: u64) -> Place {
        Place { module: "".into(), offset: address }
    }
    fn tell(&mut self, line: &str) {
        self.lines.borrow_mut().push(line.to_owned());
    }
}

impl Job {
    fn new(size: u32) -> Job {
        let mut ranks: Vec<Rank> = (0..size).map(Rank::new).collect();
        for rank in &mut ranks {
            let window = Window { base: 1000, len: 100, name: "w".into() };
            rank.gather.open_window(WIN, window, &[]);
        }
        Job { ranks, lines: Rc::default(), names: Map::default() }
    }

    fn rma(&mut self, rank: usize, name: &str, line: u64, target: u32, start: u64, len: u64) {
        let call = number(name).expect("a call");
        let made = Made { call, pc: line, window: WIN, target, request: 0, no_op: false };
        let (space, start) = if target as usize == rank {
            (Space { owner: target, window: None }, start + 1000)
        } else {
            (Space { owner: target, window: Some(WIN) }, start)
        };
        let int = 1 << 16 | 4;
        self.ranks[rank].gather.access(
            NOW,
            made,
            Side::Target,
            space,
            [(Bytes { start, len }, int)],
        );
    }

    fn local(&mut self, rank: usize, line: u64, writes: bool, start: u64, len: u64) {
        let bytes = Bytes { start: 1000 + start, len };
        self.ranks[rank].gather.local(NOW, line, writes, bytes);
    }

    fn flush(&mut self, rank: usize, target: u32) {
        self.ranks[rank].gather.complete(NOW, Completion::Flush, WIN, Some(target));
    }

    fn barrier(&mut self) {
        for rank in &mut self.ranks {
            rank.gather.passes(99);
            let barrier = rank.gather.segments.enter(NOW, BLOCKING);
            rank.gather.segments.leave(NOW, BLOCKING, barrier);
        }
        self.exchange();
    }

    fn exchange(&mut self) {
        self.ranks.iter_mut().for_each(|rank| rank.gather.compact());
        let logs: Vec<Vec<u8>> = self
            .ranks
            .iter()
            .map(|r| {
                wire::log_to_bytes(&Log {
                    events: r.gather.log.clone(),
                    known: vec![],
                    unfollowed: r.gather.unfollowed,
                })
            })
            .collect();
        let mut mail: Vec<Vec<Vec<u8>>> = vec![Vec::new(); self.ranks.len()];
        for rank in &self.ranks {
            for (to, bucket) in
                owner::buckets(&rank.gather, |pc| Place { module: "".into(), offset: pc })
            {
                if to != rank.gather.rank {
                    let names = self.names.entry((bucket.rank, to)).or_default();
                    mail[to as usize].push(wire::bucket_to_bytes(&bucket, names));
                }
            }
        }
        for (rank, incoming) in self.ranks.iter_mut().zip(mail) {
            let (lines, logs) = (self.lines.clone(), logs.clone());
            rank.exchange(&mut Prepared { incoming, outgoing: Vec::new(), logs, lines });
        }
    }

    /// Status and lines of the races so far.
    fn races(&self) -> Vec<String> {
        let lines = self.lines.borrow();
        let field = |line: &str, name: &str, nth: usize| {
            let after = line.split(&format!("\"{name}\":")).nth(nth + 1).unwrap_or("").to_owned();
            after.trim_start_matches('"').split(['"', ',', '}']).next().unwrap_or("").to_owned()
        };
        let mut races: Vec<String> = lines
            .iter()
            .map(|l| {
                let places: Vec<&str> =
                    l.split("\"place\":{\"module\":\"\",\"offset\":").skip(1).collect();
                let mut at: Vec<u64> = places
                    .iter()
                    .map(|p| p.split('}').next().and_then(|n| n.parse().ok()).unwrap_or(0))
                    .collect();
                at.sort_unstable();
                format!("{} {at:?}", field(l, "status", 0))
            })
            .collect();
        races.sort();
        races
    }
}

#[test]
fn a_put_that_is_not_flushed_races_with_a_load_behind_the_barrier() {
    let mut job = Job::new(3);
    job.rma(0, "MPI_Put", 10, 1, 8, 4);
    job.barrier();
    job.local(1, 20, false, 8, 4);
    job.local(1, 21, false, 12, 4);
    job.barrier();
    assert_eq!(job.races(), ["observed [10, 20]"]);
}

#[test]
fn a_flush_before_the_barrier_mends_it() {
    let mut job = Job::new(3);
    job.rma(0, "MPI_Put", 10, 1, 8, 4);
    job.flush(0, 1);
    job.barrier();
    job.local(1, 20, false, 8, 4);
    job.barrier();
    assert_eq!(job.races(), [""; 0]);
}

#[test]
fn a_flush_of_another_target_does_not() {
    let mut job = Job::new(3);
    job.rma(0, "MPI_Put", 10, 1, 8, 4);
    job.flush(0, 2);
    job.barrier();
    job.local(1, 20, false, 8, 4);
    job.barrier();
    assert_eq!(job.races(), ["observed [10, 20]"]);
}

#[test]
fn two_puts_of_one_thread_race_until_the_first_is_complete() {
    let mut job = Job::new(2);
    job.rma(0, "MPI_Put", 10, 1, 8, 4);
    job.flush(0, 1);
    job.rma(0, "MPI_Put", 11, 1, 8, 4);
    job.rma(0, "MPI_Put", 12, 1, 10, 4);
    job.barrier();
    assert_eq!(job.races(), ["observed [11, 12]"]);
}

#[test]
fn locks_of_one_target_exclude_each_other_and_others_do_not() {
    for (targets, exclusive, races) in [([1, 1], true, 0), ([1, 0], true, 1), ([1, 1], false, 1)] {
        let mut job = Job::new(3);
        for (rank, target) in [0, 2].into_iter().zip(targets) {
            job.ranks[rank].gather.lock(NOW, WIN, Some(target), exclusive);
            job.rma(rank, "MPI_Put", 10 + rank as u64, 1, 8, 4);
            job.flush(rank, 1);
            job.ranks[rank].gather.unlock(NOW, WIN, Some(target));
        }
        job.barrier();
        let expected = vec!["observed [10, 12]".to_owned(); races];
        assert_eq!(job.races(), expected, "{targets:?} {exclusive}");
    }
}

#[test]
fn a_lock_that_was_released_may_have_ordered_what_follows_it() {
    let mut job = Job::new(3);
    job.ranks[0].gather.lock(NOW, WIN, Some(1), true);
    job.rma(0, "MPI_Put", 10, 1, 8, 4);
    job.ranks[0].gather.unlock(NOW, WIN, Some(1));
    job.ranks[1].gather.lock(NOW, WIN, Some(1), true);
    job.ranks[1].gather.unlock(NOW, WIN, Some(1));
    job.local(1, 20, false, 8, 4);
    job.barrier();
    assert_eq!(job.races(), ["predicted [10, 20]"]);
}

#[test]
fn a_chain_of_messages_orders_and_a_broken_one_does_not() {
    for (receives, races) in [(true, 0), (false, 1)] {
        let mut job = Job::new(3);
        job.rma(0, "MPI_Put", 10, 1, 8, 4);
        job.flush(0, 1);
        job.ranks[0].gather.send(NOW, 0, 2, 5);
        if receives {
            job.ranks[2].gather.receive(NOW, 0, 0, 5);
        }
        job.ranks[2].gather.send(NOW, 0, 1, 6);
        job.ranks[1].gather.receive(NOW, 0, 2, 6);
        job.local(1, 20, false, 8, 4);
        job.barrier();
        assert_eq!(job.races().len(), races, "{receives}");
    }
}

#[test]
fn a_put_under_start_ends_when_the_target_waits() {
    for (waits, races) in [(true, 0), (false, 1)] {
        let mut job = Job::new(3);
        job.local(1, 9, true, 8, 4);
        job.ranks[1].gather.post(NOW, WIN, &[0]);
        job.ranks[0].gather.start(NOW, WIN, &[1]);
        job.rma(0, "MPI_Put", 10, 1, 8, 4);
        job.ranks[0].gather.complete_epoch(NOW, WIN, &[1]);
        if waits {
            job.ranks[1].gather.wait_epoch(NOW, WIN, &[0]);
        }
        job.barrier();
        job.local(1, 20, false, 8, 4);
        job.barrier();
        assert_eq!(job.races().len(), races, "{waits}");
    }
}

/// Rank 0 puts at rank 1 (line 1), does something, and raises a flag at a rank, which has waited for it when rank 1
/// loads (line 2) or rank 2 gets (line 3).
fn flagged(between: impl Fn(&mut Gather), at: u32, values: &[u64]) -> Vec<String> {
    let mut job = Job::new(3);
    job.rma(0, "shmem_put", 1, 1, 8, 4);
    between(&mut job.ranks[0].gather);
    for &value in values {
        job.ranks[0].gather.raise(NOW, WIN, at, 40, Some(value));
    }
    job.ranks[at as usize].gather.waited_for(NOW, WIN, 40, 1);
    match at {
        1 => job.local(1, 2, false, 8, 4),
        _ => job.rma(2, "shmem_get", 3, 1, 8, 4),
    }
    job.barrier();
    job.races()
}

#[test]
fn a_flag_comes_after_what_a_fence_put_before_it() {
    let fence = |gather: &mut Gather| gather.fence(NOW, WIN);
    let quiet = |gather: &mut Gather| {
        gather.complete(NOW, Completion::Flush, WIN, None);
        gather.event(NOW, Vec::new(), Vec::new());
    };
    assert_eq!(flagged(|_| (), 1, &[1]), ["observed [1, 2]"]);
    assert!(flagged(fence, 1, &[1]).is_empty(), "a fence orders puts to one rank");
    assert_eq!(flagged(fence, 2, &[1]), ["observed [1, 3]"], "and not to different ones");
    assert!(flagged(quiet, 1, &[1]).is_empty() && flagged(quiet, 2, &[1]).is_empty());
    assert_eq!(flagged(fence, 1, &[2]), ["observed [1, 2]"], "another value");
    assert!(flagged(fence, 1, &[1, 1]).is_empty(), "the first of two that are alike");
    let fence_other = |gather: &mut Gather| gather.fence(NOW, WIN + 1);
    assert_eq!(flagged(fence_other, 1, &[1]), ["observed [1, 2]"], "another context");
}

#[test]
fn a_flag_that_several_ranks_raise_may_have_ordered_what_came_before_it() {
    let mut job = Job::new(3);
    job.rma(0, "shmem_put", 1, 1, 8, 4);
    job.ranks[0].gather.fence(NOW, WIN);
    for rank in [0, 2] {
        job.ranks[rank].gather.raise(NOW, WIN, 1, 40, Some(1));
    }
    job.ranks[1].gather.waited_for(NOW, WIN, 40, 1);
    job.local(1, 2, false, 8, 4);
    job.barrier();
    assert_eq!(job.races(), ["predicted [1, 2]"]);
}

#[test]
fn a_fence_orders_puts_of_one_rank_and_no_gets() {
    for (second, races) in [("shmem_put", false), ("shmem_get", true)] {
        let mut job = Job::new(2);
        job.rma(0, "shmem_put", 1, 1, 8, 4);
        job.ranks[0].gather.fence(NOW, WIN);
        job.rma(0, second, 2, 1, 8, 4);
        job.barrier();
        assert_eq!(!job.races().is_empty(), races, "{second}");
    }
}

#[test]
fn accumulates_race_with_puts_and_not_with_each_other() {
    let mut job = Job::new(3);
    job.rma(0, "MPI_Accumulate", 10, 1, 8, 4);
    job.rma(2, "MPI_Fetch_and_op", 11, 1, 8, 4);
    job.rma(1, "MPI_Put", 12, 1, 8, 4);
    job.barrier();
    assert_eq!(job.races(), ["observed [10, 12]", "observed [11, 12]"]);
}

/// Many accesses in one phase that may race are soon enough known: of two places, 64 pairs are looked at.
#[test]
fn of_two_places_a_few_pairs_are_looked_at() {
    let mut job = Job::new(2);
    for i in 0..200 {
        job.rma(0, "MPI_Fetch_and_op", 1, 1, 0, 4);
        job.flush(0, 1);
        job.local(1, 2, i % 2 == 0, 0, 4);
        // Each of them is in a segment of its own.
        job.ranks.iter_mut().for_each(|rank| _ = rank.gather.segments.begin(NOW));
    }
    let rank = &job.ranks[0];
    let buckets = owner::buckets(&rank.gather, |at| Place { module: "".into(), offset: at });
    let own = owner::buckets(&job.ranks[1].gather, |at| Place { module: "".into(), offset: at });
    let all = buckets.into_values().chain(own.into_values()).collect();
    let pairs = Owner::default().pairs(&job.ranks[1].gather, all);
    assert_eq!(pairs.len(), 64);
}

#[test]
fn a_store_into_a_buffer_of_a_send_that_is_not_complete_races() {
    let mut job = Job::new(2);
    let made = Made {
        call: number("MPI_Isend").unwrap_or(0),
        pc: 10,
        window: 0,
        target: 0,
        request: 5,
        no_op: false,
    };
    let space = Space { owner: 0, window: None };
    job.ranks[0].gather.access(
        NOW,
        made,
        Side::Origin,
        space,
        [(Bytes { start: 4000, len: 8 }, 0)],
    );
    job.ranks[0].gather.local(NOW, 11, false, Bytes { start: 4000, len: 8 });
    job.ranks[0].gather.local(NOW, 12, true, Bytes { start: 4004, len: 4 });
    job.ranks[0].gather.request_done(NOW, 5, 0, 0);
    job.ranks[0].gather.local(NOW, 13, true, Bytes { start: 4004, len: 4 });
    job.barrier();
    assert_eq!(job.races(), ["observed [10, 12]"]);
}

/// What ranks do in a random program; every access is to one of few elements.
#[derive(Clone, Debug)]
enum Done {
    Local { rank: usize, writes: bool, at: u64 },
    Remote { rank: usize, call: usize, target: u32, at: u64 },
    Flush { rank: usize, target: u32 },
    Send { from: usize, to: usize },
    Lock { rank: usize, exclusive: bool },
    Unlock { rank: usize },
    Barrier,
}

const REMOTE: [&str; 4] = ["MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op"];

fn done() -> impl proptest::strategy::Strategy<Value = Done> {
    use proptest::prelude::*;
    let (rank, at) = (0usize..3, 0u64..3);
    prop_oneof![
        4 => (rank.clone(), any::<bool>(), at.clone())
            .prop_map(|(rank, writes, at)| Done::Local { rank, writes, at }),
        4 => (rank.clone(), 0usize..4, 0u32..3, at)
            .prop_map(|(rank, call, target, at)| Done::Remote { rank, call, target, at }),
        2 => (rank.clone(), 0u32..3).prop_map(|(rank, target)| Done::Flush { rank, target }),
        1 => (rank.clone(), rank.clone()).prop_map(|(from, to)| Done::Send { from, to }),
        1 => (rank.clone(), any::<bool>()).prop_map(|(rank, exclusive)| Done::Lock { rank, exclusive }),
        1 => rank.prop_map(|rank| Done::Unlock { rank }),
        1 => Just(Done::Barrier),
    ]
}

/// The elements on which races were found, by owner and by the ranks that take part. `keep_all`: nothing is pruned.
fn racing_elements(
    program: &[Done],
    keep_all: bool,
) -> std::collections::BTreeSet<(u64, u64, Vec<u64>)> {
    elements(&after(program, keep_all, u64::MAX))
}

/// The elements of the races that were told, by owner and by the ranks that take part.
fn elements(job: &Job) -> std::collections::BTreeSet<(u64, u64, Vec<u64>)> {
    let lines = job.lines.borrow();
    let number = |line: &str, name: &str, nth: usize| {
        let rest = line.split(&format!("\"{name}\":")).nth(nth + 1).unwrap_or("");
        rest.split([',', '}']).next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(u64::MAX)
    };
    let mut elements = std::collections::BTreeSet::new();
    for line in lines.iter() {
        let mut ranks = vec![number(line, "rank", 0), number(line, "rank", 1)];
        ranks.sort_unstable();
        elements.insert((number(line, "owner", 0), number(line, "offset", 0), ranks));
    }
    elements
}

/// The job after a program, in which every so many lines a place comes again. Places tell who accesses what, because
/// a race of two places is told once.
fn after(program: &[Done], keep_all: bool, places: u64) -> Job {
    let mut job = Job::new(3);
    for rank in &mut job.ranks {
        rank.gather.keeps_all = keep_all;
        rank.gather.exact = 0;
    }
    for (line, what) in (1..).zip(program) {
        let place = |rank: usize, owner: u32, at: u64| {
            (line % places) * 1000 + rank as u64 * 100 + u64::from(owner) * 10 + at
        };
        match *what {
            Done::Local { rank, writes, at } => {
                job.local(rank, place(rank, rank as u32, at), writes, 4 * at, 4);
            }
            Done::Remote { rank, call, target, at } => {
                job.rma(rank, REMOTE[call], place(rank, target, at), target, 4 * at, 4);
            }
            Done::Flush { rank, target } => job.flush(rank, target),
            Done::Send { from, to } => {
                job.ranks[from].gather.send(NOW, 0, to as u32, 1);
                job.ranks[to].gather.receive(NOW, 0, from as u32, 1);
            }
            Done::Lock { rank, exclusive } => {
                job.ranks[rank].gather.lock(NOW, WIN, Some(1), exclusive)
            }
            Done::Unlock { rank } => job.ranks[rank].gather.unlock(NOW, WIN, Some(1)),
            Done::Barrier => job.barrier(),
        }
    }
    job.barrier();
    job
}

proptest::proptest! {
    /// Every line of the program is a place of its own, so that all pairs are told.
    #[test]
    fn pruning_loses_no_racing_element(program in proptest::collection::vec(done(), 0..30)) {
        let all = racing_elements(&program, true);
        let pruned = racing_elements(&program, false);
        proptest::prop_assert_eq!(pruned, all);
    }

    /// Places come again, as in a loop, so that accesses are merged: the same elements race.
    #[test]
    fn merging_loses_no_racing_element(program in proptest::collection::vec(done(), 0..60)) {
        let again = |keep_all| elements(&after(&program, keep_all, 3));
        proptest::prop_assert_eq!(again(false), again(true));
    }
}

#[test]
fn a_loop_of_calls_needs_no_more_memory_with_every_round() {
    let mut job = Job::new(2);
    for i in 0..20_000 {
        job.rma(0, "MPI_Put", 10, 1, 4 * (i % 16), 4);
        job.flush(0, 1);
        job.rma(0, "MPI_Get", 11, 1, 4 * (i % 16), 4);
        job.flush(0, 1);
        job.local(1, 12, false, 4 * (i % 16), 4);
    }
    assert!(job.ranks[0].gather.attributes.len() < 5_000);
    job.ranks[0].gather.compact();
    assert!(job.ranks[0].gather.attributes.len() <= 10, "the first and the rest of each");
    job.barrier();
    assert_eq!(job.races(), ["observed [10, 12]"]);
}
