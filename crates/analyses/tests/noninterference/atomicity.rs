//! AeroDrome and Velodrome against each other and against serializability by definition.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::velodrome::Velodrome;
use selvedge_model::{Event, Finding, Findings, RegionKind, Role};

use crate::generate::{Mix, Random, execution, wishes};
use crate::oracle::{
    depends, first_violation, serializable_by_permutation, transactions, violated_regions,
};
use crate::{cases, findings_by_event};

const KIND: RegionKind = RegionKind::Atomic;

/// Which regions, by the event that entered them, were first found violated at which event. AeroDrome
/// does not look again at an access that an earlier one covers, so that it may leave out a nested region
/// after the outermost one has been reported.
fn verdicts(found: &[(usize, Vec<Finding>)]) -> BTreeMap<usize, usize> {
    let mut first = BTreeMap::new();
    for (event, findings) in found {
        for finding in findings {
            first.entry(finding.places[0].site.index()).or_insert(*event);
        }
    }
    first
}

/// Regions that the finding names as entered.
fn named(finding: &Finding) -> usize {
    finding.places.iter().filter(|p| matches!(p.role, Role::Enter(_))).count()
}

/// Whether the last event comes after an event of its own transaction by way of another thread's.
fn not_atomic_alone(events: &[Event], of: &[usize]) -> bool {
    let last = events.len() - 1;
    let mine = |i: usize| of[i] == of[last];
    let mut after = vec![false; events.len()];
    let mut left = vec![false; events.len()];
    for j in 0..events.len() {
        after[j] = mine(j) || (0..j).any(|i| after[i] && depends(events, i, j));
        left[j] = (!mine(j) && after[j]) || (0..j).any(|i| left[i] && depends(events, i, j));
    }
    left[last]
}

fn check(events: &[Event]) -> Result<(), TestCaseError> {
    let aero = findings_by_event(AeroDrome::new(), events);
    let velo = findings_by_event(Velodrome::new(), events);
    let of = transactions(events, KIND);
    let outermost = |found: &[(usize, Vec<Finding>)]| {
        let mut all = verdicts(found);
        all.retain(|enter, _| of[*enter] == *enter);
        all
    };
    prop_assert_eq!(outermost(&aero), outermost(&velo), "{}", crate::shown(events));
    let expected = first_violation(events, &of);
    prop_assert_eq!(aero.first().map(|(i, _)| *i), expected, "{}", crate::shown(events));
    let Some(at) = expected else { return Ok(()) };
    let (events, of) = (&events[..=at], &of[..=at]);
    let regions: BTreeSet<usize> = violated_regions(events, of).into_iter().collect();
    let found: BTreeSet<usize> = verdicts(&aero[..1]).into_keys().collect();
    prop_assert_eq!(&verdicts(&aero[..1]), &verdicts(&velo[..1]));
    prop_assert_eq!(&found, &regions, "{}", crate::shown(events));
    for finding in &velo[0].1 {
        if named(finding) == 1 {
            prop_assert!(not_atomic_alone(events, of), "blame must be certain");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn both_engines_agree_with_the_definition(w in wishes(60)) {
        check(&execution(&w, Mix { kind: KIND, early: 3, everything: false }))?;
    }

    #[test]
    fn both_engines_agree_with_the_definition_on_all_operations(w in wishes(60)) {
        check(&execution(&w, Mix { kind: KIND, early: 3, everything: true }))?;
    }

    #[test]
    fn cycles_are_what_no_order_of_transactions_can_explain(w in wishes(24)) {
        let events = execution(&w, Mix { kind: KIND, early: 3, everything: true });
        let mut of = transactions(&events, KIND);
        let mut n = events.len();
        while of[..n].iter().collect::<BTreeSet<_>>().len() > 6 {
            n -= 1;
        }
        of.truncate(n);
        prop_assert_eq!(
            first_violation(&events[..n], &of).is_none(),
            serializable_by_permutation(&events[..n], &of)
        );
    }
}

/// A million random traces: `SELVEDGE_RANDOM_TRACES=1000000`. Without it, a few thousand.
#[test]
fn random_traces() {
    let n: u64 =
        std::env::var("SELVEDGE_RANDOM_TRACES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let mut random = Random(0x5e1_7ed6e);
    let (mut violations, mut blamed) = (0u64, 0u64);
    for i in 0..n {
        let mix = Mix { kind: KIND, early: 3, everything: i % 2 == 1 };
        let events = execution(&random.wishes(90), mix);
        check(&events).unwrap_or_else(|e| panic!("trace {i}: {e}\n{}", crate::shown(&events)));
        let found = findings_by_event(Velodrome::new(), &events);
        violations += found.len() as u64;
        blamed += found.iter().filter(|(_, f)| f.iter().any(|f| named(f) == 1)).count() as u64;
    }
    println!("{n} traces, {violations} violations, {blamed} with blame");
    assert!(violations > n / 10 && blamed > 0 && blamed < violations, "the traces are too tame");
}

/// Long enough for the tables of AeroDrome to be swept many times; too long for the definition.
#[test]
fn both_engines_agree_on_long_traces() {
    for seed in 1..=4 {
        let mut random = Random(seed);
        let wishes: Vec<_> =
            std::iter::repeat_with(|| random.wishes(500)).take(300).flatten().collect();
        let events = execution(&wishes, Mix { kind: KIND, early: 3, everything: seed % 2 == 0 });
        let of = transactions(&events, KIND);
        let outermost = |found: &[(usize, Vec<Finding>)]| {
            let mut all = verdicts(found);
            all.retain(|enter, _| of[*enter] == *enter);
            all
        };
        let aero = outermost(&findings_by_event(AeroDrome::new(), &events));
        let velo = outermost(&findings_by_event(Velodrome::new(), &events));
        assert!(events.len() > 15_000 && aero.len() > 100, "{} {}", events.len(), aero.len());
        assert_eq!(aero, velo);
    }
}

/// Threads that take turns with a lock in regions of their own, `times` times, while a region that comes
/// before all of them stays open if `within` says so.
fn turns(times: u32, within: bool) -> Vec<Event> {
    let mut text = String::from("T0|fork(T1)|1\nT0|fork(T2)|2\n");
    if within {
        text.push_str("T0|begin(whole)|3\nT0|w(start)|4\nT1|r(start)|5\nT2|r(start)|6\n");
    }
    for i in 0..times {
        let t = 1 + i % 2;
        text.push_str(&format!(
            "T{t}|begin(turn)|7\nT{t}|acq(m)|8\nT{t}|w(x)|9\nT{t}|rel(m)|10\nT{t}|end(turn)|11\n"
        ));
    }
    selvedge_model::trace::parse(&text).expect("a valid trace").0
}

#[test]
fn memory_follows_what_is_open() {
    let run = |events: &[Event]| {
        let (mut aero, mut velo) = (AeroDrome::new(), Velodrome::new());
        let mut out = Findings::default();
        aero.on_events(events, &mut out);
        velo.on_events(events, &mut out);
        assert!(out.is_empty());
        (aero.size().1, velo.transactions())
    };
    let (sets, transactions) = run(&turns(50_000, false));
    assert!(sets < 10_000 && transactions < 10, "{sets} {transactions}");
    let (sets, _) = run(&turns(50_000, true));
    assert!(sets < 10_000, "a region that stays open must not keep what has ended: {sets}");
}
