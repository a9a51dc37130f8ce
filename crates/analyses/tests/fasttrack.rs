//! FastTrack against the definition of a data race, and on the primitives one by one.

mod common;

use std::collections::BTreeSet;

use common::{Shape, executions};
use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_model::trace::parse;
use selvedge_model::{Access, AtomicOp, Event, Findings, Mode, Op, Range, Role, Subject, ThreadId};

fn races(events: &[Event]) -> Findings {
    let mut findings = Findings::default();
    let mut analysis = FastTrack::new();
    events.iter().for_each(|e| analysis.on_event(e, &mut findings));
    analysis.finish(&mut findings);
    findings
}

/// The racing pairs of sites in a text trace, and what they do: `3w-5r`.
fn check(text: &str) -> Vec<String> {
    let (events, symbols) = parse(text).expect("a valid trace");
    let role = |role| match role {
        Role::Read => "r",
        Role::Write => "w",
        Role::AtomicRead => "ar",
        Role::AtomicWrite => "aw",
        Role::Free => "free",
        other => panic!("{other:?} is no access"),
    };
    races(&events)
        .iter()
        .map(|f| {
            let part = |i: usize| {
                let p = &f.places[i];
                format!("{}{}", symbols.site(p.site), role(p.role))
            };
            format!("{}-{}", part(0), part(1))
        })
        .collect()
}

#[track_caller]
fn racy(text: &str, expected: &[&str]) {
    assert_eq!(check(text), expected, "{text}");
}

#[track_caller]
fn safe(text: &str) {
    racy(text, &[]);
}

#[test]
fn unsynchronized_accesses_race_unless_both_read() {
    racy("A|w(x)|1\nB|w(x)|2", &["1w-2w"]);
    racy("A|w(x)|1\nB|r(x)|2", &["1w-2r"]);
    racy("A|r(x)|1\nB|w(x)|2", &["1r-2w"]);
    safe("A|r(x)|1\nB|r(x)|2");
    safe("A|w(x)|1\nA|w(x)|2");
    safe("A|w(x)|1\nB|w(y)|2");
}

#[test]
fn of_several_unordered_readers_each_can_race() {
    racy("A|r(x)|1\nB|r(x)|2\nA|fork(C)|3\nC|w(x)|4", &["2r-4w"]);
    racy("A|r(x)|1\nB|r(x)|2\nB|fork(C)|3\nC|w(x)|4", &["1r-4w"]);
    safe("A|fork(B)|1\nB|r(x)|2\nA|r(x)|3\nA|join(B)|4\nA|w(x)|5");
}

#[test]
fn locks_order_and_different_locks_do_not() {
    safe("A|acq(l)|1\nA|w(x)|2\nA|rel(l)|3\nB|acq(l)|4\nB|w(x)|5\nB|rel(l)|6");
    racy("A|acq(l)|1\nA|w(x)|2\nA|rel(l)|3\nB|acq(m)|4\nB|w(x)|5\nB|rel(m)|6", &["2w-5w"]);
    racy("A|acq(l)|1\nA|rel(l)|2\nA|w(x)|3\nB|acq(l)|4\nB|w(x)|5", &["3w-5w"]);
}

#[test]
fn readers_of_a_lock_are_not_ordered_among_each_other() {
    racy("A|racq(l)|1\nA|w(x)|2\nA|rrel(l)|3\nB|racq(l)|4\nB|w(x)|5\nB|rrel(l)|6", &["2w-5w"]);
    safe("A|racq(l)|1\nA|r(x)|2\nA|rrel(l)|3\nB|acq(l)|4\nB|w(x)|5\nB|rel(l)|6");
    safe("A|acq(l)|1\nA|w(x)|2\nA|rel(l)|3\nB|racq(l)|4\nB|r(x)|5\nB|rrel(l)|6");
    safe(
        "A|racq(l)|1\nB|racq(l)|2\nA|r(x)|3\nA|rrel(l)|4\nB|r(x)|5\nB|rrel(l)|6\nC|acq(l)|7\nC|w(x)|8",
    );
}

#[test]
fn fork_and_join_order() {
    safe("A|w(x)|1\nA|fork(B)|2\nB|w(x)|3\nA|join(B)|4\nA|w(x)|5");
    racy("A|fork(B)|1\nA|w(x)|2\nB|w(x)|3", &["2w-3w"]);
    racy("A|fork(B)|1\nA|fork(C)|1\nA|join(B)|2\nA|w(x)|3\nC|w(x)|4", &["3w-4w"]);
}

#[test]
fn a_barrier_orders_before_and_after_but_not_what_is_on_one_side() {
    safe("A|w(x)|1\nA|bar(b)|2\nB|bar(b)|3\nB|w(x)|4");
    safe("B|w(x)|1\nA|bar(b)|2\nB|bar(b)|3\nA|w(x)|4");
    racy("A|bar(b)|1\nB|bar(b)|2\nA|w(x)|3\nB|w(x)|4", &["3w-4w"]);
    safe("A|bar(b)|1\nB|bar(b)|2\nA|w(x)|3\nA|bar(b)|4\nB|bar(b)|5\nB|r(x)|6");
    safe("A|w(x)|1\nA|bar(b)|2\nA|r(y)|3\nB|bar(b)|4\nB|r(x)|5");
}

#[test]
fn a_semaphore_orders_posts_before_waits() {
    safe("A|w(x)|1\nA|post(s)|2\nB|wait(s)|3\nB|w(x)|4");
    racy("A|post(s)|1\nA|w(x)|2\nB|wait(s)|3\nB|w(x)|4", &["2w-4w"]);
}

#[test]
fn a_notification_alone_does_not_order_because_wake_ups_may_be_spurious() {
    racy("A|w(x)|1\nA|notify(c)|2\nB|wake(c)|3\nB|r(x)|4", &["1w-4r"]);
    safe(
        "B|acq(l)|1\nB|rel(l)|2\nA|acq(l)|3\nA|w(x)|4\nA|notify(c)|5\nA|rel(l)|6\nB|wake(c)|7\nB|acq(l)|8\nB|r(x)|9\nB|rel(l)|10",
    );
}

#[test]
fn atomics_synchronize_by_their_memory_order() {
    let flag = |store: &str, load: &str| {
        check(&format!("A|w(x)|1\nA|aw(f,{store})|2\nB|ar(f,{load})|3\nB|r(x)|4"))
    };
    assert!(flag("release", "acquire").is_empty());
    assert!(flag("seqcst", "seqcst").is_empty());
    assert_eq!(flag("relaxed", "acquire"), ["1w-4r"]);
    assert_eq!(flag("release", "relaxed"), ["1w-4r"]);
}

#[test]
fn a_release_sequence_goes_on_through_updates_and_ends_at_a_store() {
    safe("A|w(x)|1\nA|aw(f,release)|2\nC|au(f,relaxed)|3\nB|ar(f,acquire)|4\nB|r(x)|5");
    racy("A|w(x)|1\nA|aw(f,release)|2\nC|aw(f,relaxed)|3\nB|ar(f,acquire)|4\nB|r(x)|5", &["1w-5r"]);
    safe(
        "A|w(x)|1\nA|au(f,release)|2\nC|w(y)|3\nC|au(f,release)|4\nB|ar(f,acquire)|5\nB|r(x)|6\nB|r(y)|7",
    );
    racy(
        "A|w(x)|1\nA|aw(f,release)|2\nC|w(y)|3\nC|aw(f,release)|4\nB|ar(f,acquire)|5\nB|r(x)|6\nB|r(y)|7",
        &["1w-6r"],
    );
}

#[test]
fn fences_synchronize_through_relaxed_accesses() {
    safe(
        "A|w(x)|1\nA|fence(release)|2\nA|aw(f,relaxed)|3\nB|ar(f,relaxed)|4\nB|fence(acquire)|5\nB|r(x)|6",
    );
    racy(
        "A|fence(release)|1\nA|w(x)|2\nA|aw(f,relaxed)|3\nB|ar(f,relaxed)|4\nB|fence(acquire)|5\nB|r(x)|6",
        &["2w-6r"],
    );
    racy(
        "A|w(x)|1\nA|fence(release)|2\nA|aw(f,relaxed)|3\nB|fence(acquire)|4\nB|ar(f,relaxed)|5\nB|r(x)|6",
        &["1w-6r"],
    );
    safe("A|w(x)|1\nA|aw(f,release)|2\nB|ar(f,relaxed)|3\nB|fence(acquire)|4\nB|r(x)|5");
}

#[test]
fn atomic_accesses_race_with_plain_ones_only() {
    safe("A|aw(x,relaxed)|1\nB|aw(x,relaxed)|2\nC|au(x,relaxed)|3\nD|ar(x,relaxed)|4");
    racy("A|aw(x,relaxed)|1\nB|r(x)|2", &["1aw-2r"]);
    racy("A|ar(x,relaxed)|1\nB|w(x)|2", &["1ar-2w"]);
    racy("A|w(x)|1\nB|ar(x)|2", &["1w-2ar"]);
    racy("A|r(x)|1\nB|au(x)|2", &["1r-2aw"]);
    safe("A|ar(x,relaxed)|1\nB|r(x)|2");
}

#[test]
fn freed_memory_is_forgotten_and_freeing_it_is_a_write() {
    racy("A|w(x)|1\nB|free(x)|2", &["1w-2free"]);
    safe("A|w(x)|1\nA|free(x)|2\nB|alloc(x)|3\nB|w(x)|4");
    safe("A|aw(f,release)|1\nA|free(f)|2\nB|w(f)|3");
    safe("A|free(x)|1\nB|free(y)|2");
}

#[test]
fn sizes_may_differ_and_only_common_bytes_race() {
    racy("A|w(0x100:8)|1\nB|w(0x104:4)|2", &["1w-2w"]);
    safe("A|w(0x100:4)|1\nB|w(0x104:4)|2");
    racy("A|w(0x107:2)|1\nB|r(0x108:8)|2", &["1w-2r"]);
    racy("A|w(0xfffffffffffffff8:7)|1\nB|w(0xfffffffffffffffe:1)|2", &["1w-2w"]);
}

#[test]
fn a_slot_that_is_used_again_confuses_nobody() {
    // B's slot goes to C, which is forked by one who knows B's end; D still races with B.
    let text = "A|fork(B)|1\nA|fork(D)|2\nB|w(x)|3\nA|join(B)|4\nA|fork(C)|5\nC|w(x)|6\nD|r(x)|7";
    racy(text, &["6w-7r"]);
    let text = "A|fork(B)|1\nA|fork(D)|2\nB|w(x)|3\nA|join(B)|4\nA|fork(C)|5\nC|r(y)|6\nD|r(x)|7";
    let (events, symbols) = parse(text).unwrap();
    let findings = races(&events);
    let earlier = &findings.iter().next().expect("a race").places[0];
    assert_eq!(symbols.thread(earlier.thread), "B");
}

#[test]
fn a_finding_names_the_locks_of_both_sides() {
    let (events, symbols) =
        parse("A|acq(l)|1\nA|racq(m)|2\nA|w(x)|3\nB|acq(n)|4\nB|r(x)|5").unwrap();
    let findings = races(&events);
    let held: Vec<Vec<String>> = findings
        .iter()
        .next()
        .unwrap()
        .places
        .iter()
        .map(|p| p.held.iter().map(|h| symbols.lock(h.lock)).collect())
        .collect();
    assert_eq!(held, [vec!["l", "m"], vec!["n"]]);
}

/// Figure 2.1 of Hominy Grits: which accesses are racy and which are safe.
#[test]
fn hominy_figure_2_1() {
    racy(
        "t1|r(transactions)|1\nt2|r(transactions)|2\nt1|w(transactions)|3\nt2|w(transactions)|4\n\
         t2|ar(setupBarrier)|5\nt1|w(checking)|6\nt1|aw(setupBarrier)|7\nt2|ar(setupBarrier)|5\n\
         t2|r(checking)|8\nt2|w(checking)|8\nt1|acq(account)|9\nt1|r(savings)|10\nt1|w(savings)|10\n\
         t1|rel(account)|11\nt2|acq(account)|12\nt2|r(savings)|13\nt2|w(savings)|13\nt2|rel(account)|14",
        &["2r-3w", "3w-4w"],
    );
}

/// Figure 2.2 of Active Testing: program 2.1 with B and C aliased; statement 9 races with 12.
#[test]
fn active_testing_figure_2_2() {
    let text = "\
T1|r(0x1000:8)|9
T1|r(0x2000:8)|9
T1|r(0x1008:8)|9
T1|r(0x2008:8)|9
T1|w(0x2000:8)|12
T2|r(0x1010:8)|9
T2|r(0x2000:8)|9
T2|r(0x1018:8)|9
T2|r(0x2008:8)|9
T2|w(0x2008:8)|12
";
    racy(text, &["12w-9r"]);
}

// ---- the oracle ----

/// Which events are ordered before which, from the definitions: edges, then reachability.
struct HappensBefore(Vec<Vec<bool>>);

#[allow(clippy::needless_range_loop)] // Matrices are indexed.
impl HappensBefore {
    fn of(events: &[Event]) -> HappensBefore {
        let n = events.len();
        let mut before = vec![vec![false; n]; n];
        for j in 0..n {
            for i in 0..j {
                before[i][j] = synchronizes(events, i, j);
            }
        }
        for k in 0..n {
            for i in 0..n {
                if before[i][k] {
                    for j in 0..n {
                        before[i][j] |= before[k][j];
                    }
                }
            }
        }
        HappensBefore(before)
    }
}

/// Whether there is an edge from event i to the later event j.
fn synchronizes(events: &[Event], i: usize, j: usize) -> bool {
    let (a, b) = (&events[i], &events[j]);
    if a.thread == b.thread {
        return true;
    }
    match (a.op, b.op) {
        (Op::Fork(child), _) if child == b.thread => true,
        (_, Op::Join(child)) if child == a.thread => true,
        (Op::Release(l, m), Op::Acquire(k, n)) => {
            l == k && (m == Mode::Exclusive || n == Mode::Exclusive)
        }
        (Op::Arrive(p, r), Op::Leave(q, s)) => (p, r) == (q, s),
        (Op::Post(p), Op::Wait(q)) => p == q,
        _ => released(events, i, j),
    }
}

/// The store that the atomic read at j reads from, followed by those before it in the same chain of
/// read-modify-writes: a value released by any of them is acquired. Empty if j reads no atomic store.
fn chain_read_by(events: &[Event], j: usize) -> Vec<usize> {
    let Op::Atomic(access, op) = events[j].op else { return vec![] };
    if !op.reads() {
        return vec![];
    }
    let mut chain = vec![];
    for k in (0..j).rev() {
        match events[k].op {
            Op::Atomic(a, op) if a == access && op.writes() => {
                chain.push(k);
                if !matches!(op, AtomicOp::Update(_)) {
                    break;
                }
            }
            Op::Alloc(r) | Op::Free(r) if r.overlaps(access.range()) => break,
            _ => {}
        }
    }
    chain
}

/// Whether event i releases to j: as a release operation or a release fence, through an atomic store
/// that j, or a relaxed load before the acquire fence j, reads.
fn released(events: &[Event], i: usize, j: usize) -> bool {
    let acquiring_reads: Vec<usize> = match events[j].op {
        Op::Atomic(_, AtomicOp::Load(o)) if o.acquires() => vec![j],
        Op::Atomic(_, AtomicOp::Update(o)) if o.acquires() => vec![j],
        Op::Fence(o) if o.acquires() => {
            (0..j).filter(|&k| events[k].thread == events[j].thread).collect()
        }
        _ => return false,
    };
    acquiring_reads.iter().flat_map(|&r| chain_read_by(events, r)).any(|store| match events[i].op {
        Op::Atomic(_, AtomicOp::Store(o)) => i == store && o.releases(),
        Op::Atomic(_, AtomicOp::Update(o)) => i == store && o.releases(),
        Op::Fence(o) => o.releases() && i < store && events[i].thread == events[store].thread,
        _ => false,
    })
}

/// An event's access to memory: the bytes, whether it writes, whether it is atomic.
fn touches(op: Op) -> Option<(Range, bool, bool)> {
    let plain = |a: Access, write| Some((a.range(), write, false));
    match op {
        Op::Read(a) => plain(a, false),
        Op::Write(a) => plain(a, true),
        Op::Atomic(a, op) => Some((a.range(), op.writes(), true)),
        Op::Free(range) => Some((range, true, false)),
        _ => None,
    }
}

/// All racing pairs on a byte.
fn racing_pairs(events: &[Event], hb: &HappensBefore, byte: u64) -> BTreeSet<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    let one = Range { start: byte, len: 1 };
    for j in 0..events.len() {
        let Some((range, writes, atomic)) = touches(events[j].op) else { continue };
        if !range.overlaps(one) {
            continue;
        }
        for i in (0..j).rev() {
            match events[i].op {
                Op::Alloc(r) | Op::Free(r) if r.overlaps(one) => break,
                _ => {}
            }
            let Some((other, other_writes, other_atomic)) = touches(events[i].op) else { continue };
            let conflict =
                other.overlaps(one) && (writes || other_writes) && !(atomic && other_atomic);
            if conflict && events[i].thread != events[j].thread && !hb.0[i][j] {
                pairs.insert((i, j));
            }
        }
    }
    pairs
}

const SHAPE: Shape = Shape {
    steps: 110,
    threads: 4,
    locks: 2,
    rwlocks: true,
    variables: 3,
    mixed_sizes: false,
    atomics: true,
    rendezvous: true,
    conditions: true,
    allocation: true,
};

fn agree(events: &[Event]) -> Result<(), TestCaseError> {
    let hb = HappensBefore::of(events);
    let findings = races(events);
    for finding in &findings {
        let Subject::Memory(bytes) = finding.subject else { panic!("a race is about memory") };
        let (i, j) = (finding.places[0].site.index(), finding.places[1].site.index());
        prop_assert_eq!(finding.places[0].thread, events[i].thread);
        prop_assert!(
            racing_pairs(events, &hb, bytes.start).contains(&(i, j)),
            "reported {} and {} do not race",
            i,
            j
        );
    }
    let reported: BTreeSet<usize> = findings.iter().map(|f| f.places[1].site.index()).collect();
    for byte in 0xf8..0x140 {
        if let Some(first) = racing_pairs(events, &hb, byte).iter().map(|p| p.1).min() {
            prop_assert!(
                reported.contains(&first),
                "event {} races on {:#x} and was missed",
                first,
                byte
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn it_agrees_with_the_definition(events in executions(SHAPE)) {
        agree(&events)?;
    }

    #[test]
    fn it_agrees_with_the_definition_when_sizes_differ(
        events in executions(Shape { mixed_sizes: true, atomics: false, variables: 2, ..SHAPE })
    ) {
        agree(&events)?;
    }

    #[test]
    fn it_agrees_with_the_definition_on_atomics(
        events in executions(Shape { rwlocks: false, locks: 1, rendezvous: false, conditions: false, allocation: false, ..SHAPE })
    ) {
        agree(&events)?;
    }
}

#[test]
fn memory_follows_what_is_touched_and_not_how_long_it_takes() {
    let mut analysis = FastTrack::new();
    let mut findings = Findings::default();
    let mut pages = Vec::new();
    for round in 0..200u64 {
        for thread in 0..2 {
            let start = 0x10000 + u64::from(thread) * 0x8000;
            let mut emit = |op| {
                let event = Event { thread: ThreadId(thread), site: selvedge_model::SiteId(1), op };
                analysis.on_event(&event, &mut findings);
            };
            emit(Op::Alloc(Range { start, len: 0x4000 }));
            for i in 0..64 {
                emit(Op::Write(Access { addr: start + i * 0x100 + round % 8 * 8, len: 8 }));
            }
            emit(Op::Free(Range { start, len: 0x4000 }));
        }
        pages.push(analysis.shadow_pages());
    }
    assert_eq!(pages[10], pages[199]);
    assert!(findings.is_empty());
}
