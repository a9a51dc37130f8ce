//! The check and the inference of NDSeq specifications against naive ones and against running the program.

mod constraints;
mod naive;
mod program;

use naive::{relevant, serializable};
use program::{Program, Rng, Run};
use proptest::prelude::*;
use selvedge_model::{Event, Flow, Op, RegionId, RegionKind};
use selvedge_specs::ndseq::check::check_with;
use selvedge_specs::ndseq::execution::{Act, NONE};
use selvedge_specs::ndseq::relevance::relevance;
use selvedge_specs::ndseq::{Execution, Recorder, Stars, check};

fn record(events: &[Event]) -> Execution {
    let mut recorder = Recorder::default();
    events.iter().for_each(|e| recorder.on_event(e));
    recorder.finish()
}

fn execution(seed: u64) -> (Program, Run, Execution) {
    let mut rng = Rng(seed);
    let program = Program::random(&mut rng, true, 5);
    let run = program.run(&mut rng);
    let execution = record(&run.events);
    (program, run, execution)
}

fn around(run: &Run) -> naive::Around {
    run.steps.iter().map(|s| s.stars.clone()).collect()
}

/// The nodes of tasks: the first thread initialises and shows the result.
fn of_tasks(execution: &Execution) -> Vec<u32> {
    let all = 0..execution.nodes().len() as u32;
    all.filter(|&n| execution.thread(n).0 > 0).collect()
}

/// An execution of a program with updates.
fn updating(seed: u64) -> (Program, Run) {
    let mut rng = Rng(seed);
    let program = Program::random(&mut rng, true, 4).with_updates(&mut rng);
    let run = program.run(&mut rng);
    (program, run)
}

/// An execution of a program with an initialisation.
fn initialising(seed: u64) -> (Program, Run) {
    let mut rng = Rng(seed);
    let program = Program::random(&mut rng, true, 4).with_initialisation(&mut rng);
    let run = program.run(&mut rng);
    (program, run)
}

fn without(events: &[Event], left_out: impl Fn(&Op) -> bool) -> Execution {
    record(&events.iter().copied().filter(|e| !left_out(&e.op)).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_passes_has_a_sequential_twin(seed: u64) {
        let (program, run, execution) = execution(seed);
        if check(&execution).conforms() {
            prop_assert!(program.sequential().contains(&run.focus), "{program:?}");
        }
    }

    #[test]
    fn updates_that_commute_have_a_sequential_twin(seed: u64) {
        let (program, run) = updating(seed);
        if check(&record(&run.events)).conforms() {
            prop_assert!(program.sequential().contains(&run.focus), "{program:?}");
        }
    }

    #[test]
    fn an_initialisation_has_a_sequential_twin(seed: u64) {
        let (program, run) = initialising(seed);
        if check(&record(&run.events)).conforms() {
            prop_assert!(program.sequential().contains(&run.focus), "{program:?}");
        }
    }

    #[test]
    fn relevance_and_verdict_are_those_of_the_definition(seed: u64) {
        let (program, run, execution) = execution(seed);
        let found = check(&execution);
        let expected = relevant(&run, &program.focus, &around(&run));
        let nodes = of_tasks(&execution);
        prop_assert_eq!(nodes.len(), expected.len());
        for (node, expected) in nodes.iter().zip(&expected) {
            prop_assert_eq!(found.relevance.has(*node), *expected, "node {} of {:?}", node, run.steps);
        }
        prop_assert_eq!(found.conforms(), serializable(&run, &expected));
    }

    #[test]
    fn more_stars_make_less_relevant(seed: u64, kept: u32) {
        let (_, _, execution) = execution(seed);
        let all = Stars::marked(&execution);
        let mut fewer = all.clone();
        let keep = |star: u32| kept >> (star % 32) & 1 == 1;
        let outermost_kept = |mut star: u32| {
            while star != NONE && !keep(star) {
                star = execution.stars()[star as usize].outer;
            }
            star
        };
        fewer.of.iter_mut().for_each(|star| *star = outermost_kept(*star));
        fewer.outer.iter_mut().for_each(|star| *star = outermost_kept(*star));
        let (more, less) = (relevance(&execution, &fewer), relevance(&execution, &all));
        for node in 0..execution.nodes().len() as u32 {
            prop_assert!(!less.has(node) || more.has(node), "node {node}");
        }
        prop_assert!(!check_with(&execution, &fewer).conforms() || check(&execution).conforms());
    }

    #[test]
    fn every_relevant_node_says_why(seed: u64) {
        let (_, _, execution) = execution(seed);
        let found = check(&execution).relevance;
        for node in of_tasks(&execution) {
            if found.has(node) {
                let last = *found.why(node).last().unwrap();
                let act = execution.nodes()[last as usize].act;
                prop_assert!(matches!(act, Act::Focus | Act::Branch), "{act:?}");
            }
        }
    }
}

/// The numbers say that the properties above are not empty: some executions pass, some alarms are real, and strict
/// serializability has more alarms.
#[test]
fn the_random_programs_tell_the_checks_apart() {
    let (mut passes, mut alarms, mut real, mut strict) = (0, 0, 0, 0);
    for seed in 0..2000 {
        let (program, run, execution) = execution(seed);
        if check(&execution).conforms() {
            passes += 1;
        } else {
            alarms += 1;
            real += usize::from(!program.sequential().contains(&run.focus));
        }
        strict += usize::from(!serializable(&run, &vec![true; run.steps.len()]));
    }
    assert!(passes > 200 && alarms > 50 && real > 5, "{passes} {alarms} {real}");
    assert!(strict > alarms, "{strict} {alarms}");
}

/// Knowing of updates and initialisations spares alarms, and not all of them.
#[test]
fn updates_and_initialisations_spare_alarms() {
    let is_update = |op: &Op| matches!(op, Op::Flow(Flow::Updates(_)));
    let is_lazy = |op: &Op| {
        matches!(op, Op::RegionEnter(_, RegionKind::Lazy) | Op::RegionExit(RegionId(0x10_0000)))
    };
    type Make = fn(u64) -> (Program, Run);
    type Mark<'a> = &'a dyn Fn(&Op) -> bool;
    // One initialisation of a program is rarely a part of the only circle.
    let both: [(Make, Mark<'_>, usize); 2] =
        [(updating, &is_update, 25), (initialising, &is_lazy, 3)];
    for (make, mark, least) in both {
        let (mut spared, mut alarms) = (0, 0);
        for seed in 0..6000 {
            let (_, run) = make(seed);
            let knowing = check(&record(&run.events)).conforms();
            let ignorant = check(&without(&run.events, mark)).conforms();
            spared += usize::from(knowing && !ignorant);
            alarms += usize::from(!knowing);
        }
        assert!(spared >= least && alarms > 100, "{spared} {alarms}");
    }
}

/// What a lock makes one step commutes; without it, or if what was read is used, it does not.
#[test]
fn updates_commute_under_a_common_lock_only() {
    let trace = |lock: &str, more: &str| {
        let update = |thread: &str, x: &str| {
            format!(
                "{thread}|acq({lock})|1\n{thread}|get(l,{x})|1\n{thread}|set({x},l)|1\n{thread}|updates(+)|1\n{more}{thread}|rel({lock})|1\n"
            )
            .replace("THREAD", thread)
        };
        let work = [("a", "x"), ("b", "y"), ("b", "x"), ("a", "y")].map(|(t, x)| update(t, x));
        let text = format!(
            "main|set(x)|0\nmain|set(y)|0\nmain|fork(a)|0\nmain|fork(b)|0\n{}main|join(a)|2\nmain|join(b)|2\nmain|focus(x)|3\nmain|focus(y)|3\n",
            work.concat()
        );
        let (events, _) = selvedge_model::trace::parse(&text).unwrap();
        check(&record(&events)).conforms()
    };
    assert!(trace("m", ""));
    assert!(!trace("m", "THREAD|if(l)|1\n"), "what was read decides something");
    let own = "m_THREAD";
    assert!(!trace(own, ""), "each has a lock of its own");
}

#[test]
fn sums_of_floating_point_numbers_commute_only_if_that_is_asked_for() {
    let text = "\
main|fork(a)|0\nmain|fork(b)|0\n\
a|au(x)|1\na|updates(f+)|1\nb|au(y)|1\nb|updates(f+)|1\n\
b|au(x)|1\nb|updates(f+)|1\na|au(y)|1\na|updates(f+)|1\n\
main|join(a)|2\nmain|join(b)|2\nmain|focus(x)|3\nmain|focus(y)|3\n";
    let (events, _) = selvedge_model::trace::parse(text).unwrap();
    assert!(!check(&record(&events)).conforms());
    let mut recorder = Recorder::default().with_floats();
    events.iter().for_each(|e| recorder.on_event(e));
    assert!(check(&recorder.finish()).conforms());
    let (integers, _) = selvedge_model::trace::parse(&text.replace("f+", "+")).unwrap();
    assert!(check(&record(&integers)).conforms());
}

#[test]
fn barriers_separate_tasks() {
    let text = "\
main|fork(a)|1\nmain|fork(b)|1\n\
a|set(x)|2\nb|set(y)|2\na|bar(q)|3\nb|bar(q)|3\n\
a|get(l,y)|4\nb|get(l,x)|4\na|set(p,l)|5\nb|set(r,l)|5\n\
main|join(a)|6\nmain|join(b)|6\nmain|focus(p)|7\nmain|focus(r)|7\n";
    let checked = |text: &str| {
        let (events, _) = selvedge_model::trace::parse(text).unwrap();
        check(&record(&events)).conforms()
    };
    assert!(checked(text));
    let without: Vec<&str> = text.lines().filter(|l| !l.contains("bar(")).collect();
    assert!(!checked(&without.join("\n")));
}

#[test]
fn what_a_thread_does_beside_the_ones_it_started_is_checked() {
    let text = "\
main|set(n)|0\nmain|fork(a)|1\nmain|get(l,n)|2\na|get(l,n)|2\na|let(m,l)|3\na|set(n,m)|4\n\
main|let(m,l)|3\nmain|set(n,m)|4\nmain|join(a)|5\nmain|focus(n)|6\n";
    let (events, _) = selvedge_model::trace::parse(text).unwrap();
    assert!(!check(&record(&events)).conforms());
    let after: Vec<Event> = {
        let (join, rest): (Vec<Event>, Vec<Event>) =
            events.iter().partition(|e| matches!(e.op, Op::Join(_)));
        let (main, task): (Vec<Event>, Vec<Event>) =
            rest[2..].iter().partition(|e| e.thread.0 == 0);
        [&rest[..2], &task[..], &join[..], &main[..]].concat()
    };
    assert!(check(&record(&after)).conforms());
}

#[test]
fn memory_that_is_used_again_is_other_memory() {
    let text = "\
main|fork(a)|1\nmain|fork(b)|1\n\
a|set(0x100:8)|2\na|get(l,0x100:8)|2\na|free(0x100:8)|2\n\
b|alloc(0x100:8)|2\nb|set(0x100:8)|2\nb|get(l,0x100:8)|2\nb|set(r,l)|2\nb|free(0x100:8)|2\n\
a|alloc(0x100:8)|2\na|set(0x100:8)|2\na|get(l,0x100:8)|2\na|set(p,l)|3\n";
    let (events, _) = selvedge_model::trace::parse(text).unwrap();
    assert!(check(&record(&events)).conforms());
    let same: Vec<Event> =
        events.into_iter().filter(|e| !matches!(e.op, Op::Alloc(_) | Op::Free(_))).collect();
    assert!(!check(&record(&same)).conforms());
}

mod inference {
    use super::*;
    use selvedge_model::{Region, RegionKind, Symbols};
    use selvedge_specs::ndseq::infer::Study;
    use std::collections::BTreeSet;

    use crate::constraints::{self, Candidate};

    fn overlap(a: Candidate, b: Candidate) -> bool {
        let meet = a.0 == b.0 && a.1 <= b.2 && b.1 <= a.2;
        meet && !(a.1 <= b.1 && b.2 <= a.2) && !(b.1 <= a.1 && a.2 <= b.2)
    }

    /// The stars that a set of runs puts around each step, innermost last.
    fn around(run: &Run, set: &[Candidate]) -> naive::Around {
        let mut numbers: Vec<(u32, Candidate)> = Vec::new();
        let mut all = Vec::new();
        for step in &run.steps {
            let mut stars = Vec::new();
            for &(execution, block, index) in &step.path {
                let mut inside: Vec<Candidate> = set
                    .iter()
                    .copied()
                    .filter(|c| c.0 == block && (c.1..=c.2).contains(&index))
                    .collect();
                inside.sort_by_key(|c| std::cmp::Reverse(c.2 - c.1));
                for candidate in inside {
                    let key = (execution, candidate);
                    let known = numbers.iter().position(|k| *k == key);
                    stars.push(known.unwrap_or_else(|| {
                        numbers.push(key);
                        numbers.len() - 1
                    }) as u32);
                }
            }
            all.push(stars);
        }
        all
    }

    fn conforms(program: &Program, run: &Run, set: &[Candidate]) -> bool {
        serializable(run, &relevant(run, &program.focus, &around(run, set)))
    }

    /// All runs of statements that were executed.
    fn candidates(executions: &[Run]) -> Vec<Candidate> {
        let mut blocks: BTreeSet<(u32, usize)> = BTreeSet::new();
        for run in executions {
            blocks.extend(run.steps.iter().flat_map(|s| &s.path).map(|&(_, b, i)| (b, i)));
        }
        let from = |&(b, i): &(u32, usize)| {
            blocks.iter().filter(move |s| s.0 == b && s.1 >= i).map(move |s| (b, i, s.1))
        };
        blocks.iter().flat_map(from).collect()
    }

    /// The size of a smallest set of runs with which all executions conform, by trying all.
    fn fewest(program: &Program, executions: &[Run]) -> Option<usize> {
        let candidates = candidates(executions);
        let all = |set: &[Candidate]| executions.iter().all(|run| conforms(program, run, set));
        let mut sets: Vec<Vec<Candidate>> = vec![Vec::new()];
        for size in 0..=3 {
            if sets.iter().any(|set| all(set)) {
                return Some(size);
            }
            sets = sets
                .iter()
                .flat_map(|set| {
                    let last = set.last().copied();
                    let fits = move |c: &&Candidate| {
                        last.is_none_or(|l| **c > l) && !set.iter().any(|s| overlap(*s, **c))
                    };
                    candidates.iter().filter(fits).map(move |c| [&set[..], &[*c]].concat())
                })
                .collect();
        }
        let singles: Vec<Candidate> = candidates.into_iter().filter(|c| c.1 == c.2).collect();
        all(&singles).then_some(usize::MAX)
    }

    /// How many stars the inference takes.
    fn inferred(executions: &[Run]) -> Option<usize> {
        let mut study = Study::default();
        for run in executions {
            let mut symbols = Symbols::default();
            let mut region =
                |kind, name: String| symbols.regions.push(Region { kind, name: name.into() });
            region(RegionKind::Star, String::new());
            for (block, index) in &run.statements {
                let line = 1 + 100 * block + *index as u32;
                region(RegionKind::Statement, format!("p.c:{line}-{line} f"));
            }
            study.add(record(&run.events), &symbols).unwrap();
        }
        study.infer(&[]).stars.map(|stars| stars.len())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_number_of_stars_is_that_of_brute_force(seed: u64) {
            let mut rng = Rng(seed);
            let program = Program::random(&mut rng, false, 4);
            let executions: Vec<Run> = (0..2).map(|_| program.run(&mut rng)).collect();
            let (expected, found) = (fewest(&program, &executions), inferred(&executions));
            match expected {
                Some(usize::MAX) => prop_assert!(found.is_some_and(|n| n > 3)),
                _ => prop_assert_eq!(found, expected, "{:?}", program),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_number_of_stars_is_that_of_constraints_7_1_to_7_10(seed: u64) {
            let mut rng = Rng(seed);
            let program = Program::random(&mut rng, false, 5);
            let executions: Vec<Run> = (0..3).map(|_| program.run(&mut rng)).collect();
            let all = candidates(&executions);
            let expected = constraints::fewest(&executions, &program.focus, &all, overlap);
            prop_assert_eq!(inferred(&executions), expected, "{:?}", program);
        }
    }

    #[test]
    fn the_random_programs_need_different_numbers_of_stars() {
        let mut seen = BTreeSet::new();
        for seed in 0..600 {
            let mut rng = Rng(seed);
            let program = Program::random(&mut rng, false, 6);
            seen.insert(inferred(&[program.run(&mut rng), program.run(&mut rng)]));
        }
        assert!(seen.is_superset(&[None, Some(0), Some(1)].into()), "{seen:?}");
    }
}
