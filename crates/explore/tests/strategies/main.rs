//! Every strategy on a simulated system: replay round trip, determinism, and its guarantee.

mod directed;
mod fooled;
mod interrupted;
mod reads_from;
mod sequential;
mod serial;
mod system;
mod systematic;
mod uniform;

use selvedge_explore::*;
use selvedge_model::{Reason, Schedule, ThreadId};
use system::Instr::*;
use system::{Outcome, Program, Search, once, run, run_all, search, site};

/// Three threads that lock, load and store, with different lengths.
fn busy() -> Program {
    vec![
        vec![Acquire(0), Load(1), StoreNext(1), Release(0), Inc(2)],
        vec![Load(1), StoreNext(1), Inc(2), Inc(3)],
        vec![Acquire(0), Inc(3), Await(2, 2), Release(0)],
    ]
}

struct Boxed(Box<dyn Strategy>);

impl Wraps for Boxed {
    fn wrapped(&self) -> &dyn Strategy {
        &*self.0
    }
    fn wrapped_mut(&mut self) -> &mut dyn Strategy {
        &mut *self.0
    }
}

fn every_strategy(seed: u64, limit: u64) -> Vec<(&'static str, Search<Boxed>)> {
    let plan = |entry| Plan::new(entry, None).strategy();
    let mut all: Vec<(&'static str, Box<dyn Strategy + Send>)> =
        STRATEGIES.iter().map(|entry| (entry.name, plan(entry))).collect();
    let places = vec![vec![site(0, 1)], vec![site(1, 2)]];
    all.push(("races", Box::new(RaceFuzzer::new(site(0, 1), site(1, 1)))));
    all.push(("deadlocks", Box::new(DeadlockFuzzer::new(&[], &Trivial, Trivial))));
    all.push(("atomicity", Box::new(AtomFuzzer::new())));
    all.push(("meet", Box::new(Meet::new(places))));
    all.into_iter().map(|(name, s)| (name, search(Boxed(s), seed, limit))).collect()
}

#[test]
fn every_schedule_replays_exactly_and_through_its_text() {
    let program = busy();
    for seed in 0..4 {
        for (name, mut recorder) in every_strategy(seed, 12) {
            let mut executions = 0;
            while let Some(outcome) = run(&program, &mut recorder) {
                executions += 1;
                let text = recorder.schedule().to_string();
                let schedule: Schedule = text.parse().expect("what we print we read");
                let mut replay = search(Replay::new(&schedule), 0, 2);
                assert_eq!(run(&program, &mut replay).as_ref(), Some(&outcome), "{name} {text}");
                assert_eq!(replay.strategy.divergence(), None, "{name} {text}");
                assert!(!replay.strategy.unfinished());
                assert_eq!(replay.schedule(), &schedule, "a replay records what it replays");
                assert_eq!(run(&program, &mut replay), None, "one is all there is to replay");
            }
            assert!(executions > 0 && executions <= 12, "{name}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_executions_and_another_seed_gives_others() {
    let program = busy();
    for ((name, mut a), (_, mut b)) in every_strategy(7, 12).into_iter().zip(every_strategy(7, 12))
    {
        assert_eq!(run_all(&program, &mut a), run_all(&program, &mut b), "{name}");
    }
    for ((name, mut a), (_, mut b)) in every_strategy(7, 12).into_iter().zip(every_strategy(9, 12))
    {
        let (a, b) = (run_all(&program, &mut a), run_all(&program, &mut b));
        // These enumerate executions in an order of their own, or know one only.
        if !STRATEGIES.iter().any(|e| e.name == name && e.systematic) && a.len() > 1 {
            assert_ne!(a, b, "{name}");
        }
    }
}

#[test]
fn a_spin_loop_starves_nobody() {
    let yielding = vec![vec![Await(0, 1)], vec![Inc(1), Inc(1), Store(0, 1)], vec![Await(0, 1)]];
    let spinning = vec![vec![Spin(0, 1)], vec![Inc(1), Inc(1), Store(0, 1)], vec![Spin(0, 1)]];
    for seed in 0..10 {
        for (name, mut strategy) in every_strategy(seed, 10) {
            for outcome in run_all(&yielding, &mut strategy) {
                assert!(!outcome.cut && !outcome.deadlock, "{name}");
            }
        }
        for (name, mut strategy) in every_strategy(seed, 10) {
            for outcome in run_all(&spinning, &mut strategy) {
                assert!(!outcome.cut && !outcome.deadlock, "{name}");
            }
        }
    }
}

#[test]
fn random_walk_is_uniform_at_each_step() {
    // The first choice among three threads; 3000 samples, five standard deviations.
    let program = vec![vec![Inc(0)], vec![Inc(0)], vec![Inc(0)]];
    let mut first = [0usize; 3];
    for outcome in run_all(&program, &mut search(RandomWalk::default(), 1, 3_000)) {
        first[outcome.trace[0] as usize] += 1;
    }
    assert!(first.iter().all(|n| n.abs_diff(1_000) < 130), "{first:?}");
}

/// Thread 1 must store between two given neighbouring steps of thread 0: depth 2 (one preemption).
fn depth_two(steps: usize) -> Program {
    let mut long = vec![Inc(9); steps];
    long.extend([Store(0, 1), FailIf(1, 1), Store(0, 0)]);
    // Fails if thread 1 sees 0 == 1, which holds only between the two stores.
    vec![long, vec![FailIf(0, 1)]]
}

#[test]
fn pct_keeps_its_bound() {
    let steps = 20;
    let program = depth_two(steps);
    let k = steps + 4;
    let n = 2;
    let executions = 4_000;
    let found = run_all(&program, &mut search(Pct::new(2), 3, executions))
        .iter()
        .filter(|o| o.failed)
        .count();
    let bound = executions as usize / (n * k);
    assert!(found >= bound, "{found} of {executions}, at least {bound} promised");
    // A bug of depth 2 needs a change point: without one it is never found.
    let shallow =
        run_all(&program, &mut search(Pct::new(1), 3, 500)).iter().filter(|o| o.failed).count();
    assert_eq!(shallow, 0);
}

#[test]
fn pct_finds_order_bugs_of_depth_one_with_one_in_n() {
    // Thread 3 must come before all of the others: priority alone decides.
    let mut program: Program = (0..3).map(|_| vec![Inc(0); 10]).collect();
    program.push(vec![FailIf(0, 0)]);
    let found =
        run_all(&program, &mut search(Pct::new(1), 5, 2_000)).iter().filter(|o| o.failed).count();
    assert!(found >= 2_000 / 4 - 100, "{found}");
}

#[test]
fn pos_orders_independent_steps_uniformly() {
    // Three threads of one independent step each: six orders.
    let program = vec![vec![Inc(0)], vec![Inc(1)], vec![Inc(2)]];
    let mut seen = std::collections::BTreeMap::new();
    for outcome in run_all(&program, &mut search(Pos::default(), 2, 6_000)) {
        *seen.entry(outcome.trace).or_insert(0usize) += 1;
    }
    assert_eq!(seen.len(), 6);
    assert!(seen.values().all(|n| n.abs_diff(1_000) < 150), "{seen:?}");
}

#[test]
fn pos_beats_random_walk_where_one_thread_must_lag() {
    // Thread 1's first step must come after all of thread 0's: a random walk needs luck each time.
    let program: Program = vec![(0..12).map(Inc).collect(), vec![FailIf(11, 1)]];
    let count = |outcomes: Vec<Outcome>| outcomes.iter().filter(|o| o.failed).count();
    let pos = count(run_all(&program, &mut search(Pos::default(), 1, 4_000)));
    let random = count(run_all(&program, &mut search(RandomWalk::default(), 1, 4_000)));
    // 1/13 of the orders of thirteen independent priorities against 1/2^12.
    assert!(pos > 200, "{pos}");
    assert!(random < 15, "{random}");
}

#[test]
fn uniform_walk_is_uniform_over_interleavings() {
    // Two threads of 6 and 2 steps on one variable: C(8, 2) = 28 interleavings. A random walk gives
    // the one in which the short thread comes last 1/64 … 1/4; uniform is 1/28.
    let program = vec![vec![Inc(0); 6], vec![Inc(0); 2]];
    for strategy in [search(Surw::uniform(), 1, 28_001), search(Surw::default(), 2, 28_001)] {
        let mut strategy = strategy;
        let mut seen = std::collections::BTreeMap::new();
        // The first execution only counts.
        for outcome in run_all(&program, &mut strategy).into_iter().skip(1) {
            *seen.entry(outcome.trace).or_insert(0usize) += 1;
        }
        assert_eq!(seen.len(), 28);
        assert!(seen.values().all(|n| n.abs_diff(1_000) < 170), "{seen:?}");
    }
}

#[test]
fn selecting_leaves_other_steps_out_of_the_sample_space() {
    // The two steps on variable 0 are behind forty others; uniform over all interleavings, the order
    // in which thread 1 wins is rare, uniform over the two it is every second one that selects it.
    let mut long = vec![Inc(1); 40];
    long.push(Store(0, 1));
    let program = vec![vec![FailIf(0, 1)], long];
    let found = |mut s: Search<Surw>| run_all(&program, &mut s).iter().filter(|o| o.failed).count();
    assert!(found(search(Surw::default(), 4, 1_000)) > 400);
    assert!(found(search(Surw::uniform(), 4, 1_000)) < 60);
}

#[test]
fn round_robin_takes_turns() {
    let program = vec![vec![Inc(0); 3], vec![Inc(0); 3], vec![Inc(0); 3]];
    let outcomes = run_all(&program, &mut search(RoundRobin::new(1), 0, 2));
    assert_eq!(outcomes.len(), 1, "there is one schedule");
    assert_eq!(outcomes[0].trace, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    let outcome = run(&program, &mut once(RoundRobin::new(2))).expect("one is wanted");
    assert_eq!(outcome.trace[..6], [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_replay_survives_steps_added_elsewhere_and_says_where_it_noticed() {
    let before = vec![vec![Inc(5), Store(0, 1), Store(0, 0)], vec![FailIf(0, 1)]];
    let mut recorder = search(RandomWalk::default(), 0, 1_000);
    while !run(&before, &mut recorder).expect("found within a thousand").failed {}
    let schedule = recorder.schedule().clone();
    let after = vec![vec![Inc(6), Inc(6), Inc(5), Store(0, 1), Store(0, 0)], vec![FailIf(0, 1)]];
    let mut replay = once(Replay::new(&schedule));
    assert!(run(&after, &mut replay).is_some_and(|o| o.failed), "{schedule}");
    let divergence = replay.divergence().expect("the program is another");
    assert_eq!(divergence.thread, ThreadId(0), "{divergence:?}");
    assert!(matches!(divergence.reason, Reason::OtherStep { .. }), "{divergence:?}");
}

#[test]
fn a_replay_says_that_a_thread_is_missing() {
    let mut recorder = once(RoundRobin::new(1));
    run(&vec![vec![Inc(0); 2], vec![Inc(0); 2], vec![Inc(0); 2]], &mut recorder);
    let mut replay = once(Replay::new(recorder.schedule()));
    run(&vec![vec![Inc(0); 2], vec![Inc(0); 2]], &mut replay);
    let divergence = replay.divergence().expect("thread 2 is not there");
    assert_eq!((divergence.thread, divergence.reason), (ThreadId(2), Reason::NotEnabled));
}

#[test]
fn minimisation_leaves_the_preemptions_that_matter() {
    let program = vec![
        vec![Inc(9), Inc(9), Store(0, 1), Inc(9), Store(0, 0), Inc(9)],
        vec![Inc(9), Inc(9), FailIf(0, 1), Inc(9), Inc(9)],
        vec![Inc(8), Inc(8), Inc(8), Inc(8)],
    ];
    for seed in 0..20 {
        let mut recorder = search(RandomWalk::default(), seed, 10_000);
        while !run(&program, &mut recorder).expect("found").failed {}
        let found = recorder.schedule().clone();
        let result = minimise(found.clone(), 500, |candidate| {
            let mut replay = once(Replay::new(candidate));
            let failed = run(&program, &mut replay)?.failed;
            failed.then(|| replay.schedule().clone())
        });
        let least = result.schedule;
        assert!(least.preemptions() <= found.preemptions());
        // Thread 0 must be stopped between its stores, and nobody else anywhere.
        assert_eq!(least.preemptions(), 1, "{found} became {least}");
        assert!(run(&program, &mut once(Replay::new(&least))).is_some_and(|o| o.failed));
    }
}

#[test]
fn minimisation_keeps_to_its_budget() {
    let mut asked = 0;
    let schedule: Schedule = "1/0/0:001.1:002.0:003.1".parse().expect("well-formed");
    let result = minimise(schedule.clone(), 3, |_| {
        asked += 1;
        None
    });
    assert_eq!((asked, result.tried, result.schedule), (3, 3, schedule));
}

#[test]
fn a_strategy_is_found_by_what_it_prints_of_itself() {
    for entry in STRATEGIES {
        let plan: Plan = entry.name.parse().expect("registered");
        assert_eq!(plan.to_string().parse(), Ok(plan));
        assert!(registry::help().contains(entry.about), "{}", entry.name);
    }
    let names: std::collections::BTreeSet<_> = STRATEGIES.iter().map(|e| e.name).collect();
    assert_eq!(names.len(), STRATEGIES.len(), "names are distinct");
}

#[test]
fn an_argument_that_the_user_gives_is_kept() {
    let pct = strategies::pct::ENTRY;
    assert_eq!(Plan::from("pct:5").or_argument(&pct, 4).to_string(), "pct:5");
    assert_eq!(Plan::from("pct").or_argument(&pct, 4).to_string(), "pct:4");
    assert_eq!(Plan::from("pct").to_string(), "pct:3");
    assert_eq!(Plan::from("rr:2"), Plan::from("round-robin:2"));
    assert_eq!(Plan::from("dfs").or_argument(&pct, 4).to_string(), "dfs");
    assert_eq!(Plan::from("interrupt:2").to_string(), "interrupt:2:4:4");
    assert_eq!(Plan::from("interrupt:2:3:1").to_string(), "interrupt:2:3:1");
    assert_eq!(Plan::from("interrupt"), Plan::from("interrupt:1:4:4"));
}

#[test]
fn what_is_not_a_strategy_is_answered_with_the_list() {
    for text in ["", "bogus", "random:3", "pct:deep", "pct:", "pct:3:4", "interrupt:1:4:4:4"] {
        let error = text.parse::<Plan>().expect_err(text).to_string();
        assert!(error.contains(&format!("`{text}`")) && error.contains("pct[:DEPTH]"), "{error}");
    }
}

/// The names in backticks, without arguments.
fn named(text: &str) -> std::collections::BTreeSet<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|name| !name.starts_with('-')).map(|n| n.split(':').next().unwrap_or(n)).collect()
}

#[test]
fn reference_and_guide_name_every_strategy_and_no_other() {
    let registered: std::collections::BTreeSet<_> = STRATEGIES.iter().map(|e| e.name).collect();
    let reference = include_str!("../../../../docs/analyses.md");
    let (_, list) = reference
        .split_once("`--strategy` chooses the schedules: ")
        .expect("the reference lists strategies");
    assert_eq!(named(list.split_once(".\n").expect("a sentence").0), registered);
    let guide = include_str!("../../../../docs/guide.md");
    let (_, table) = guide.split_once("| strategy | use it |\n").expect("the guide has a table");
    let rows = table.split_once("\n\n").expect("the table ends").0.lines().skip(1);
    let listed = rows.flat_map(|row| named(row.split('|').nth(1).expect("a column")));
    assert_eq!(listed.collect::<std::collections::BTreeSet<_>>(), registered);
}
