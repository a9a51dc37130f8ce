//! The whole campaign on the simulated system: what is confirmed happens, what cannot happen is not
//! confirmed, and the number of cores changes nothing.

#![allow(missing_docs)]

mod led;
mod margins;
mod ranks;
mod simulated;
#[path = "../../../explore/tests/strategies/system.rs"]
#[allow(dead_code)] // The strategies' own tests use more of it.
mod system;
mod ways;

use std::sync::Arc;

use proptest::prelude::*;
use selvedge_analyses::registry::{self, Settings};
use selvedge_engine::campaign::{Problem, Settled, Undirected, explain};
use selvedge_engine::determinism;
use selvedge_engine::observe::observe;
use selvedge_engine::ranks::Crew;
use selvedge_engine::{
    Aims, Ask, Attempted, Before, Budget, Campaign, Cause, Confirmed, Confirmer, Effort, Found,
    Harm, Heartbeat, Host, Key, Left, Prediction, Run, Search, Sought, causes, executor::Factory,
    replay,
};
use selvedge_explore::{Mix, Plan, Trivial};
use selvedge_model::{FindingId, Kind, Site};
use selvedge_specs::{Kept, NoCallbacks};
use simulated::{Programs, Simulated};
use system::{Instr, Program};

struct Quiet;

impl Host<()> for Quiet {
    fn is_over(&self) -> bool {
        false
    }
    fn attempted(&mut self, _index: usize, _attempted: &Attempted) {}
    fn found(&mut self, _found: &Found<()>) {}
    fn progress(&mut self, _executions: u64, _found: usize) {}
}

/// Of a violation: both values, and the kinds and places of its causes.
type Violated = (String, Vec<(Kind, Vec<String>)>);
/// Of a prediction: attempts, after how many executions, harm, schedule.
type Tried = (u64, Option<u64>, Option<Harm>, Option<String>);

/// What a campaign tells.
#[derive(PartialEq, Debug, Default)]
struct Told {
    predictions: Vec<(FindingId, Kind)>,
    attempted: Vec<Tried>,
    failures: Vec<(FindingId, u64, u64, String)>,
    executions: u64,
    /// The values that differ, and the places of the races that decide them.
    violations: Vec<Violated>,
}

const EFFORT: Effort = Effort { executions: 50, time: std::time::Duration::from_secs(60) };

/// What was confirmed can be shown, in a schedule that is not longer, and with the harm that it did.
fn shows(executor: &mut Simulated, prediction: &Prediction<Trivial, ()>, confirmed: &Confirmed) {
    let shown = explain(executor, prediction, confirmed, EFFORT).expect("a simulation");
    let shown = shown.expect("what was confirmed can be shown");
    assert!(shown.shown);
    assert!(shown.execution.schedule.preemptions() <= confirmed.schedule.preemptions());
    let sought = prediction.sought();
    let most = replay::follow(executor, &confirmed.schedule, &sought, &Ask::default());
    let most = most.expect("a simulation");
    if confirmed.harm > Harm::Nothing && most.shown {
        let left = |of: &replay::Replayed| {
            Left::new(of.ending.clone(), &of.execution.output, &of.execution.blocks)
        };
        assert_eq!(left(&shown).differs(&left(&most), &mut NoCallbacks), Harm::Nothing);
    }
}

fn campaign(program: &Program, seed: u64, jobs: usize) -> Told {
    ensuring(program, None, seed, jobs)
}

/// The campaign on a program that ensures the value of a variable at its end.
fn ensuring(program: &Program, variable: Option<u64>, seed: u64, jobs: usize) -> Told {
    headed(begun(program, variable, seed, jobs)).0
}

/// A campaign before its search.
struct Begun {
    campaign: Campaign<Programs>,
    executor: Simulated,
    aims: Aims<Trivial, ()>,
    undirected: Undirected<()>,
}

fn begun(program: &Program, variable: Option<u64>, seed: u64, jobs: usize) -> Begun {
    begun_with(program, variable, (seed, 160), jobs)
}

/// The same with a budget.
fn begun_with(
    program: &Program,
    variable: Option<u64>,
    (seed, schedules): (u64, u64),
    jobs: usize,
) -> Begun {
    let factory = Arc::new(Programs(Arc::new(program.clone()), variable));
    let budget = Budget { seed, schedules, jobs, attempts: 12 };
    let mut campaign = Campaign::new(Arc::clone(&factory), budget);
    let mut executor = campaign.executor().expect("a simulation");
    let analyses = registry::select(&["hybrid", "deadlocks", "reduction"]).expect("they exist");
    let analyses = (&analyses[..], Settings::default());
    let observation =
        observe(&mut executor, seed, 3, analyses, &Before::default()).expect("a simulation");
    let (usual, _) = observation.baseline.clone().expect("an execution was observed");
    campaign.count_observed(&observation);
    let predictions: Vec<Prediction<Trivial, ()>> =
        observation.seen.iter().filter_map(|s| s.prediction.clone()).collect();
    let predictions = Arc::new(predictions);
    let releases = observation.releases;
    let confirmer = Confirmer { seed, input: seed, releases, usual: Some(usual), judged: 0 };
    let flips = observation.flips.clone();
    let undirected = Undirected {
        search: Search {
            strategy: Arc::new(move |site, share| {
                let known: Vec<_> = flips.iter().map(|f| f.map(&mut *site)).collect();
                Box::new(Mix::knowing(known, share))
            }),
            systematic: false,
            seed,
            vary_input: false,
            schedules: budget.schedules.saturating_sub(campaign.executions() + 1),
            jobs,
            points: (),
            releases: observation.releases,
            attempts: 0,
            repeat: false,
            stall: None,
            witness: None,
        },
        until_failure: false,
        known: Vec::new(),
    };
    let aims = Aims { predictions, confirmer, past: Vec::new() };
    Begun { campaign, executor, aims, undirected }
}

/// The results of a campaign that this process holds.
fn headed(begun: Begun) -> (Told, Crew) {
    let Begun { mut campaign, mut executor, aims, undirected } = begun;
    let predictions = Arc::clone(&aims.predictions);
    let mut attempted = Vec::new();
    match campaign.hunt(aims, &mut attempted, undirected, &mut Quiet) {
        Ok(_) | Err(Problem::Endless) => {}
        Err(Problem::Halt(halt)) => panic!("{halt:?}"),
    }
    if let Crew::Head(head) = &mut campaign.crew {
        head.end();
    }
    for (prediction, attempted) in predictions.iter().zip(&attempted) {
        if let Some(confirmed) = &attempted.confirmed {
            shows(&mut executor, prediction, confirmed);
        }
    }
    let found = campaign.found(&[]);
    for failure in &found {
        let settled = campaign.settle(&mut executor, failure, EFFORT).expect("a simulation");
        assert!(matches!(settled, Settled::Shown(_)), "{failure:?} does not replay");
    }
    let violations = violations(&campaign, &mut executor);
    let told = Told {
        violations,
        predictions: predictions.iter().map(|p| (p.id, p.kind)).collect(),
        attempted: attempted
            .iter()
            .map(|a| {
                let c = a.confirmed.as_ref();
                let schedule = c.map(|c| c.schedule.to_string());
                (a.attempts, a.after, c.map(|c| c.harm), schedule)
            })
            .collect(),
        failures: found
            .iter()
            .map(|f| (f.id, f.times.first, f.times.count, f.times.schedule.to_string()))
            .collect(),
        executions: campaign.executions(),
    };
    (told, campaign.crew)
}

/// What the violations differ in, and what they come from. Each of them replays.
fn violations(campaign: &Campaign<Programs>, executor: &mut Simulated) -> Vec<Violated> {
    let mut violations = Vec::new();
    for violation in &campaign.determinism.violations {
        let settled = violation.settle(executor, EFFORT).expect("a simulation");
        let determinism::Settled::Shown(shown) = settled else {
            panic!("{violation:?} does not replay: {settled:?}")
        };
        let value = |side: &Option<(Kept, Site)>| {
            let kept = side.as_ref().expect("both ensure it").0.clone();
            kept.value.expect("it is kept").to_string()
        };
        let mut values =
            [value(&shown.differing.first.first), value(&shown.differing.first.second)];
        assert_ne!(values[0], values[1]);
        values.sort();
        let causes = causes(executor, violation, &shown).expect("a simulation");
        let cause = |c: &Cause| (c.finding.kind, c.sites().iter().map(Site::to_string).collect());
        violations.push((values.join(" "), causes.iter().map(cause).collect()));
    }
    violations
}

use Instr::{Acquire, FailIf, Get, Inc, Load, Put, Read, Release, Store, StoreNext, Write};

fn opposite() -> Program {
    let thread = |a, b| vec![Acquire(a), Acquire(b), Inc(0), Release(b), Release(a)];
    vec![thread(1, 2), thread(2, 1)]
}

fn same_order() -> Program {
    let thread = || vec![Acquire(1), Acquire(2), Inc(0), Release(2), Release(1)];
    vec![thread(), thread()]
}

#[test]
fn a_deadlock_is_predicted_confirmed_and_harmful_and_its_twin_is_not() {
    let told = campaign(&opposite(), 1, 2);
    let at = told.predictions.iter().position(|p| p.1 == Kind::Deadlock).expect("predicted");
    assert_eq!(told.attempted[at].2, Some(Harm::Failure));
    let twin = campaign(&same_order(), 1, 2);
    assert!(twin.predictions.iter().all(|p| p.1 != Kind::Deadlock));
    assert_eq!(twin.failures, []);
}

/// The harm of each data race, by the variable of the program that they are about.
fn harms(told: &Told) -> Vec<Option<Harm>> {
    let races = told.predictions.iter().zip(&told.attempted);
    races.filter(|(p, _)| p.1 == Kind::DataRace).map(|(_, a)| a.2).collect()
}

#[test]
fn a_race_is_judged_by_what_its_orders_lead_to() {
    // Two plain accesses whose order shows nowhere, and two whose order shows in the output.
    let benign: Program = vec![vec![Write(3), Inc(0)], vec![Read(3), Inc(1)]];
    assert_eq!(harms(&campaign(&benign, 1, 1)), [Some(Harm::Nothing)]);
    let harmful: Program = vec![vec![Put(3, 1)], vec![Get(3), StoreNext(0)]];
    assert_eq!(harms(&campaign(&harmful, 1, 1)), [Some(Harm::Output)]);
    // Wherever the two meet, both orders fail: that says nothing of the race.
    let fails: Program = vec![vec![Write(3), FailIf(0, 1)], vec![Store(0, 1), Read(3)]];
    assert_eq!(harms(&campaign(&fails, 1, 1)), [Some(Harm::Unknown)]);
}

#[test]
fn a_benign_race_stays_benign_in_a_program_whose_result_depends_on_the_schedule() {
    // The order of the atomics decides the exit code, and the race on 3 has no part in it.
    let program: Program = vec![vec![Write(3), Store(0, 1)], vec![Read(3), FailIf(0, 0)]];
    for seed in 0..20 {
        assert_eq!(harms(&campaign(&program, seed, 1)), [Some(Harm::Nothing)], "seed {seed}");
    }
    // Likewise beside a race that is harmful.
    let both: Program =
        vec![vec![Write(4), Put(3, 1), Write(5)], vec![Read(4), Get(3), StoreNext(0), Read(5)]];
    for seed in 0..20 {
        let mut harms = harms(&campaign(&both, seed, 1));
        harms.sort_unstable();
        let expected = [Some(Harm::Nothing), Some(Harm::Nothing), Some(Harm::Output)];
        assert_eq!(harms, expected, "seed {seed}");
    }
}

#[test]
fn an_update_that_is_lost_under_some_schedules_is_a_failure_with_a_schedule() {
    let mut lost: Program = vec![vec![Load(0), StoreNext(0)], vec![Load(0), StoreNext(0)]];
    lost[0].push(Instr::Await(1, 1));
    lost[0].push(FailIf(0, 1));
    lost[1].push(Store(1, 1));
    let told = campaign(&lost, 3, 2);
    assert_eq!(told.failures.len(), 1, "{told:?}");
}

#[test]
fn the_number_of_cores_changes_nothing() {
    for program in [opposite(), same_order()] {
        let one = campaign(&program, 7, 1);
        for jobs in [2, 3, 8] {
            assert_eq!(campaign(&program, 7, jobs), one);
        }
    }
}

#[test]
fn a_value_that_depends_on_the_schedule_is_found_with_the_order_that_decides_it() {
    let racy: Program = vec![vec![Inc(8), Store(0, 1)], vec![Inc(8), Store(0, 2)]];
    let told = ensuring(&racy, Some(0), 1, 2);
    let [(values, causes)] = &told.violations[..] else { panic!("{told:?}") };
    assert_eq!(values, "1 2");
    let [(kind, sites)] = &causes[..] else { panic!("{causes:?}") };
    assert_eq!((*kind, sites.len()), (Kind::HighLevelRace, 2), "the counter 8 is no cause");
    // The directed part of the campaign finds the same order, and no other.
    let tried = told.predictions.iter().zip(&told.attempted);
    let orders: Vec<Option<Harm>> =
        tried.filter(|(p, _)| p.1 == Kind::HighLevelRace).map(|(_, a)| a.2).collect();
    assert!(
        orders.contains(&Some(Harm::State)) && orders.contains(&Some(Harm::Nothing)),
        "{told:?}"
    );
    assert_eq!(ensuring(&racy, Some(0), 1, 1), told, "the number of cores decides");
    let twin: Program = vec![vec![Inc(8), Inc(0)], vec![Inc(8), Inc(0)]];
    assert_eq!(ensuring(&twin, Some(0), 1, 2).violations, []);
}

#[test]
fn a_program_without_two_results_ensures_them_whatever_its_output() {
    // The output has the variable 1 as well, which depends on the schedule.
    let program: Program = vec![vec![Put(3, 1), Inc(0)], vec![Get(3), StoreNext(1), Inc(0)]];
    assert_eq!(harms(&ensuring(&program, None, 1, 1)), [Some(Harm::Output)]);
    let told = ensuring(&program, Some(0), 1, 1);
    assert_eq!((harms(&told), told.violations), (vec![Some(Harm::Nothing)], vec![]));
}

fn instr() -> impl Strategy<Value = Vec<Instr>> {
    prop_oneof![
        (0..3u64).prop_map(|x| vec![Inc(x)]),
        (0..3u64).prop_map(|x| vec![Read(x)]),
        (0..3u64).prop_map(|x| vec![Write(x)]),
        (0..2u32, 0..3u64).prop_map(|(l, x)| vec![Acquire(l), Write(x), Release(l)]),
        (0..3u32, 0..3u32, 0..3u64)
            .prop_filter("two locks", |(a, b, _)| a != b)
            .prop_map(|(a, b, x)| vec![Acquire(a), Acquire(b), Inc(x), Release(b), Release(a)]),
        (0..3u64, 0..3i64).prop_map(|(x, v)| vec![FailIf(x, v)]),
        (0..3u64).prop_map(|x| vec![Load(x), StoreNext(x)]),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let thread = proptest::collection::vec(instr(), 1..4).prop_map(|parts| parts.concat());
    proptest::collection::vec(thread, 2..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// What a campaign confirms, a fresh executor shows again by the schedule alone; failures likewise;
    /// and no deadlock is confirmed in a program none of whose schedules deadlocks.
    #[test]
    fn what_is_confirmed_happens(program in program(), seed in 0..1000u64) {
        let told = campaign(&program, seed, 2);
        prop_assert_eq!(&campaign(&program, seed, 3), &told, "the number of cores decides");
        let all = every_ending(&program);
        let factory = Programs(Arc::new(program.clone()), None);
        let mut fresh = factory.make(Heartbeat::default()).expect("a simulation");
        for ((id, kind), (_, _, harm, schedule)) in told.predictions.iter().zip(&told.attempted) {
            let Some(schedule) = schedule else { continue };
            let schedule = schedule.parse().expect("a schedule");
            if *kind == Kind::Deadlock {
                prop_assert_eq!(*harm, Some(Harm::Failure));
                prop_assert!(all.contains(&Key::Failed(*id)));
                let sought = Sought { failure: Some(*id), ..Sought::default() };
                let again = replay::follow(&mut fresh, &schedule, &sought, &Default::default());
                prop_assert!(again.expect("a simulation").shown);
            }
        }
        for (id, .., schedule) in &told.failures {
            let schedule = schedule.parse().expect("a schedule");
            let sought = Sought { failure: Some(*id), usual_exit: Some(0), ..Sought::default() };
            let again = replay::follow(&mut fresh, &schedule, &sought, &Default::default());
            let again = again.expect("a simulation");
            prop_assert!(all.contains(&again.ending.key));
        }
    }
}

/// The schedule of another order may fail too and need more preemptions; the simplest one is shown.
#[test]
fn of_schedules_that_fail_the_simplest_is_shown() {
    let update = || vec![Load(2), StoreNext(2)];
    ensuring(&vec![update(), update(), vec![FailIf(2, 1)]], Some(0), 192, 2);
    let checks: Program = vec![vec![FailIf(0, 0), Write(1)], vec![Load(0), StoreNext(0)]];
    ensuring(&checks, Some(0), 69, 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// A difference is confirmed only if the program has two results, and each side is one of them; and where it has
    /// one result only, no race or order is harmful for a value.
    #[test]
    fn values_differ_only_where_the_program_has_two_results(
        program in program(), seed in 0..1000u64, variable in 0..3u64
    ) {
        let told = ensuring(&program, Some(variable), seed, 2);
        let mut values: Vec<String> = Vec::new();
        every_execution(&program, Some(variable), |run| {
            for call in run.blocks.executions.iter().flat_map(|b| &b.calls) {
                let value = call.value.value.as_ref().expect("it is kept").to_string();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        });
        for (differing, _) in &told.violations {
            prop_assert!(differing.split(' ').all(|v| values.iter().any(|known| known == v)));
        }
        if values.len() < 2 {
            prop_assert_eq!(&told.violations, &vec![]);
            prop_assert!(told.attempted.iter().all(|a| a.2 != Some(Harm::State)));
        }
    }
}

/// How the program can end, by trying every schedule.
fn every_ending(program: &Program) -> Vec<Key> {
    let mut keys = Vec::new();
    every_execution(program, None, |run| {
        if !keys.contains(&run.ending.key) {
            keys.push(run.ending.key);
        }
    });
    keys
}

fn every_execution(program: &Program, variable: Option<u64>, mut each: impl FnMut(&Run)) {
    let factory = Arc::new(Programs(Arc::new(program.clone()), variable));
    let plan: Plan = "dpor".parse().expect("a strategy");
    let search = Search {
        strategy: Arc::new(move |_, _| plan.strategy()),
        systematic: true,
        seed: 0,
        vary_input: false,
        schedules: 100_000,
        jobs: 1,
        points: (),
        releases: false,
        attempts: 0,
        repeat: false,
        stall: None,
        witness: None,
    };
    let each = |_, step: selvedge_engine::search::Step| {
        each(&step.run);
        std::ops::ControlFlow::Continue(())
    };
    let searched = search.run(&factory, || false, each).expect("a simulation");
    assert_eq!(searched.coverage, selvedge_explore::Coverage::Complete);
}
