//! Minimisation: a schedule with fewer preemptions that still fails.
//!
//! What makes an interleaving hard to read is how often a thread is stopped although it could go on.
//! Candidates leave the schedule earlier (after it, threads run until they block), or leave out one
//! stop: the stopped thread goes on at once and what the others did in between comes later, or it does
//! not begin before. Which candidates
//! fail is for an oracle to say, who runs the program; what it returns is the schedule as it really went.
//!
//! Related: Jalbert and Sen, *A trace simplification technique for effective debugging of concurrent
//! programs*, FSE 2010, which moves and merges segments greedily too.
//!
//! Guarantee: the result failed when the oracle ran it, and has no more preemptions than the schedule
//! given. It is minimal in that no single candidate of it fails with fewer, provided that the budget
//! sufficed; a schedule with fewer that differs in several places at once may exist.
//!
//! Cost: at most `budget` calls of the oracle.

use selvedge_model::{Schedule, Segment};

/// The result of [`minimise`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Minimised {
    /// The schedule.
    pub schedule: Schedule,
    /// How often the oracle was asked.
    pub tried: usize,
}

/// Looks for a schedule that fails like `schedule` with fewer preemptions, or as many and fewer
/// switches. `fails` runs a candidate and returns the schedule that was really followed if it fails in
/// the same way.
pub fn minimise(
    schedule: Schedule,
    budget: usize,
    mut fails: impl FnMut(&Schedule) -> Option<Schedule>,
) -> Minimised {
    let mut best = schedule;
    let mut tried = 0;
    loop {
        let better = candidates(&best).take(budget - tried).find_map(|candidate| {
            tried += 1;
            fails(&candidate).filter(|followed| size(followed) < size(&best))
        });
        match better {
            Some(better) => best = better,
            None => return Minimised { schedule: best, tried },
        }
    }
}

/// What is to become small, most important first.
fn size(schedule: &Schedule) -> (usize, usize, usize) {
    (schedule.preemptions(), schedule.segments.len(), schedule.len())
}

/// Shorter schedules, boldest first: prefixes by bisection from the empty one, then one stop less.
fn candidates(schedule: &Schedule) -> impl Iterator<Item = Schedule> + '_ {
    let segments = &schedule.segments;
    let with = |segments: Vec<Segment>| Schedule { segments, ..*schedule };
    let n = segments.len();
    let mut cuts: Vec<usize> = Vec::new();
    let mut keep = 0;
    while keep < n {
        cuts.push(keep);
        keep += (n - keep).div_ceil(2);
    }
    let prefixes = cuts.into_iter().map(move |keep| with(segments[..keep].to_vec()));
    let without_stop = (0..n).rev().filter(|&i| segments[i].until.is_some()).flat_map(move |i| {
        let resumed = segments[i + 1..].iter().position(|s| s.thread == segments[i].thread);
        let merged = resumed.map(|r| {
            let again = segments[i + 1 + r];
            let mut list = segments.clone();
            list.remove(i + 1 + r);
            list[i].steps += again.steps;
            list[i].until = again.until;
            with(list)
        });
        let dropped = {
            let mut list = segments.clone();
            list.remove(i);
            with(list)
        };
        let postponed = resumed.map(|r| {
            let mut list = segments.clone();
            list[i + 1 + r].steps += list[i].steps;
            list.remove(i);
            with(list)
        });
        merged.into_iter().chain(postponed).chain([dropped])
    });
    prefixes.chain(without_stop)
}
