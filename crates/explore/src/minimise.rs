//! Minimisation: a schedule with fewer preemptions that still fails.
//!
//! What makes an interleaving hard to read is how often a thread is stopped although it could go on.
//! Candidates leave the schedule earlier (after it, threads run until they block), or leave out stops,
//! many at once and then one at a time: the stopped thread goes on at once and what the others did in
//! between comes later, or it does not begin before. An oracle runs the program with a
//! candidate and says whether it fails; it returns the schedule that the program then really had.
//!
//! Related: Jalbert and Sen, *A trace simplification technique for effective debugging of concurrent
//! programs*, FSE 2010, which moves and merges segments greedily too; Zeller and Hildebrandt, *Simplifying
//! and isolating failure-inducing input*, TSE 2002, for leaving out chunks of halving size.
//!
//! Guarantee: the result failed when the oracle ran it, and has no more preemptions than the schedule
//! given. It is minimal in that no single candidate of it fails with fewer, provided that the budget
//! sufficed; a schedule with fewer that differs in several places at once may exist.
//!
//! Cost: at most `budget` calls of the oracle.

use selvedge_model::{Schedule, Segment, ThreadId};

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

/// What minimisation makes smaller, most important first.
fn size(schedule: &Schedule) -> (usize, usize, usize) {
    // A schedule does not record that the first thread did not begin, but that is a stop as well.
    let first = usize::from(!begins_with_main(schedule));
    (schedule.preemptions() + first, schedule.segments.len(), schedule.len())
}

const MAIN: ThreadId = ThreadId(0);

fn begins_with_main(schedule: &Schedule) -> bool {
    schedule.segments.first().is_none_or(|s| s.thread == MAIN)
}

/// Shorter schedules, boldest first: prefixes by bisection from the empty one, many stops less at once,
/// then one stop less.
fn candidates(schedule: &Schedule) -> impl Iterator<Item = Schedule> + '_ {
    let segments = &schedule.segments;
    let with = |segments: Vec<Segment>| Schedule { segments, ..schedule.clone() };
    let prefixes =
        cuts(segments.len()).into_iter().map(move |keep| with(segments[..keep].to_vec()));
    let stops: Vec<usize> = (0..segments.len()).filter(|&i| segments[i].until.is_some()).collect();
    let chunks = chunks(stops.len()).into_iter().map({
        let stops = stops.clone();
        move |chunk| {
            // Later stops first: what comes before them stays where it is.
            let join = |list: Vec<Segment>, &i: &usize| merged(&list, i).unwrap_or(list);
            with(stops[chunk].iter().rev().fold(segments.clone(), join))
        }
    });
    let single = stops.into_iter().rev().flat_map(move |i| {
        let merged = merged(segments, i);
        let postponed = resumed(segments, i).map(|again| {
            let mut list = segments.clone();
            list[again].steps = list[again].steps.saturating_add(list[i].steps);
            list.remove(i);
            list
        });
        let mut dropped = segments.clone();
        dropped.remove(i);
        merged.into_iter().chain(postponed).chain([dropped]).map(with)
    });
    // Longer than any execution: until the first thread cannot run.
    let until_it_blocks = Segment { thread: MAIN, steps: u32::MAX, until: None };
    let main_first = (!begins_with_main(schedule))
        .then(|| with(std::iter::once(until_it_blocks).chain(segments.iter().copied()).collect()));
    prefixes.chain(main_first).chain(chunks).chain(single)
}

/// Lengths of prefixes, from nothing to almost everything.
fn cuts(n: usize) -> Vec<usize> {
    let mut cuts = Vec::new();
    let mut keep = 0;
    while keep < n {
        cuts.push(keep);
        keep += (n - keep).div_ceil(2);
    }
    cuts
}

/// Halves, quarters and so on of `n` things, down to two at a time.
fn chunks(n: usize) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    let mut size = n;
    while size >= 2 {
        all.extend((0..n).step_by(size).map(|from| from..(from + size).min(n)));
        size = size.div_ceil(2).min(size - 1);
    }
    all
}

/// The next segment of the thread of segment `i`.
fn resumed(segments: &[Segment], i: usize) -> Option<usize> {
    let thread = segments.get(i)?.thread;
    (i + 1..segments.len()).find(|&j| segments[j].thread == thread)
}

/// The thread stopped at the end of segment `i` goes on at once with what it did next.
fn merged(segments: &[Segment], i: usize) -> Option<Vec<Segment>> {
    let j = resumed(segments, i)?;
    let mut list = segments.to_vec();
    let again = list.remove(j);
    list[i].steps = list[i].steps.saturating_add(again.steps);
    list[i].until = again.until;
    Some(list)
}
