//! Reads-from fuzzing: what any schedule shows, some abstract schedule reaches.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selvedge_explore::dfs::Bounds;
use selvedge_explore::{Choice, Dfs, Pending, ReadsFrom, Rng};
use selvedge_model::{Event, Op, SiteId, ThreadId};

use crate::system::Instr::{self, *};
use crate::system::{Outcome, Program, run, run_all, search, site};

/// A read or an acquisition, and the write or acquisition before it.
type Pair = (SiteId, Option<SiteId>);

/// The pairs of an execution, from its events alone.
fn pairs(outcome: &Outcome) -> BTreeSet<Pair> {
    let mut last: BTreeMap<(bool, u64), SiteId> = BTreeMap::new();
    let mut pairs = BTreeSet::new();
    for event in &outcome.events {
        let (object, reads, writes) = match event.op {
            Op::Read(a) => ((true, a.addr), true, false),
            Op::Write(a) => ((true, a.addr), false, true),
            Op::Atomic(a, op) => ((true, a.addr), op.reads(), op.writes()),
            Op::Acquire(lock, _) => ((false, u64::from(lock.0)), true, true),
            _ => continue,
        };
        if reads {
            pairs.insert((event.site, last.get(&object).copied()));
        }
        if writes {
            last.insert(object, event.site);
        }
    }
    pairs
}

/// The pairs that any schedule shows.
fn all_pairs(program: &Program) -> BTreeSet<Pair> {
    let mut dfs = search(Dfs::new(Bounds::default()), 0, u64::MAX);
    run_all(program, &mut dfs).iter().flat_map(pairs).collect()
}

fn instruction() -> impl Strategy<Value = Vec<Instr>> {
    prop_oneof![
        (0..2u64).prop_map(|v| vec![Load(v)]),
        (0..2u64).prop_map(|v| vec![Store(v, 1)]),
        (0..2u64).prop_map(|v| vec![Inc(v)]),
        (0..2u64).prop_map(|v| vec![Exchange(v, 0, 1)]),
        (0..2u64).prop_map(|v| vec![Acquire(0), StoreNext(v), Release(0)]),
        (0..2u64).prop_map(|v| vec![Acquire(0), Load(v), Release(0)]),
    ]
}

fn programs() -> impl Strategy<Value = Program> {
    let thread = prop::collection::vec(instruction(), 1..3).prop_map(|parts| parts.concat());
    prop::collection::vec(thread, 2..4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    })]

    /// Each pair that some schedule shows is shown by an execution that follows an abstract schedule. Where no
    /// step decides by a value whether it writes, an execution that aims at nothing but the pair shows it.
    #[test]
    fn every_pair_of_any_schedule_is_reached(program in programs()) {
        let possible = all_pairs(&program);
        let decides = program.iter().flatten().any(|i| matches!(i, Exchange(..)));
        let mut fuzzer = search(ReadsFrom::default(), 1, 10_000);
        let (mut seen, mut reached) = (BTreeSet::new(), BTreeSet::new());
        while let Some(outcome) = run(&program, &mut fuzzer) {
            let shown = pairs(&outcome);
            prop_assert!(shown.is_subset(&possible), "dfs has seen every schedule");
            let aimed: Vec<Pair> = fuzzer.strategy.aimed().collect();
            if let [pair] = aimed[..]
                && shown.contains(&pair)
            {
                reached.insert(pair);
            }
            if !aimed.is_empty() || fuzzer.strategy.flips().is_empty() {
                seen.extend(shown);
            }
            if seen.len() == possible.len()
                && fuzzer.strategy.flips().iter().all(|f| {
                    let pair = (f.read, f.write);
                    decides || reached.contains(&pair) || !possible.contains(&pair)
                })
            {
                return Ok(());
            }
        }
        let known: BTreeSet<Pair> =
            fuzzer.strategy.flips().iter().map(|f| (f.read, f.write)).collect();
        let missed: Vec<_> = possible.difference(&seen).collect();
        let not_reached: Vec<_> =
            possible.intersection(&known).filter(|p| !reached.contains(*p)).collect();
        prop_assert!(false, "never seen: {missed:?}, not reached by itself: {not_reached:?}");
    }
}

/// A strategy that takes the first threads, so many, for threads that run the same code.
struct Alike(ReadsFrom, usize);

impl Alike {
    fn place(&self, site: SiteId) -> SiteId {
        if (site.0 as usize) < self.1 * 1000 { SiteId(site.0 % 1000) } else { site }
    }

    fn places(&self, pending: &[Pending]) -> Vec<Pending> {
        pending.iter().map(|p| Pending { site: self.place(p.site), ..*p }).collect()
    }
}

impl selvedge_explore::Strategy for Alike {
    fn begin(&mut self, rng: Rng) -> bool {
        self.0.begin(rng)
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        let pending = self.places(choice.pending);
        self.0.choose(&Choice { pending: &pending, ..*choice })
    }
    fn follows_steps(&self) -> bool {
        true
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.0.step(thread, &self.places(pending));
    }
    fn observe(&mut self, event: &Event) {
        self.0.observe(&Event { site: self.place(event.site), ..*event });
    }
    fn end(&mut self, pending: &[Pending]) {
        self.0.end(&self.places(pending));
    }
}

/// Setters write a pair; the checker must come between the two stores of the first of them.
fn reorder(setters: usize) -> Program {
    let mut program: Program = vec![vec![Store(1, 1), Store(2, 1)]; setters];
    program.push(vec![Load(1), Load(2)]);
    program
}

#[test]
fn the_number_of_like_threads_does_not_matter() {
    for setters in [2, 10, 40, 100] {
        let program = reorder(setters);
        for seed in 0..20 {
            let mut fuzzer = search(Alike(ReadsFrom::default(), setters), seed, 40);
            let found = std::iter::from_fn(|| run(&program, &mut fuzzer)).any(|outcome| {
                let shown = pairs(&outcome);
                let sees = |at| {
                    let pair = shown.iter().find(|p| p.0 == site(setters, at));
                    pair.expect("the checker reads").1.is_some()
                };
                sees(0) && !sees(1)
            });
            assert!(found, "{setters} setters, seed {seed}");
        }
    }
}

/// Threads that look before they leap: all have to look before any leaps, and the pair of a look and the beginning is the
/// first that is tried, for all of them.
#[test]
fn the_reads_of_like_threads_are_aimed_at_together() {
    for like in [2, 5, 20] {
        let program: Program = vec![vec![Load(1), Store(1, 1)]; like];
        let all_look = |outcome: &Outcome| {
            let shown = pairs(outcome);
            let sees = |i| shown.contains(&(site(i, 0), None));
            (0..like).all(sees)
        };
        for seed in 0..20 {
            let mut fuzzer = search(Alike(ReadsFrom::default(), like), seed, 3);
            let found = std::iter::from_fn(|| run(&program, &mut fuzzer)).any(|o| all_look(&o));
            assert!(found, "{like} threads, seed {seed}");
        }
    }
}

#[test]
fn a_held_thread_is_let_go_if_nobody_else_can_run() {
    // What thread 0 shall read is written behind the lock that it holds.
    let program =
        vec![vec![Acquire(0), Load(1), Release(0)], vec![Acquire(0), Store(1, 1), Release(0)]];
    for seed in 0..20 {
        for outcome in run_all(&program, &mut search(ReadsFrom::default(), seed, 20)) {
            assert!(!outcome.deadlock && !outcome.cut);
        }
    }
}
