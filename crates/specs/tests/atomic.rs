//! Orders of atomic blocks: against brute force, theorem 16, and hints.

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_model::{RegionId, RegionKind, ThreadId};
use selvedge_specs::ThreadName;
use selvedge_specs::atomic::{AtomicBlock, AtomicBlocks, Keep, Misuse, Recorder, linearizations};

/// What a thread does next in a random execution.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Act {
    Step,
    /// A block of so many steps.
    Block(u8),
}

fn across(thread: usize) -> (ThreadId, ThreadName) {
    (ThreadId(thread as u32), ThreadName(thread as u64))
}

const REGION: (RegionId, RegionKind, &str) = (RegionId(0), RegionKind::Atomic, "block");

/// An execution: its blocks, and who took each step in which of them.
struct Executed {
    said: AtomicBlocks<u32>,
    steps: Vec<(usize, Option<(usize, u32)>)>,
}

/// Executes threads in an order that `picks` chooses.
fn execute(threads: &[Vec<Act>], picks: &[usize]) -> Executed {
    let mut recorder = Recorder::<u32>::default();
    let mut steps = Vec::new();
    let mut at = vec![(0, 0); threads.len()];
    let mut nth = vec![0; threads.len()];
    for pick in 0.. {
        let ready: Vec<usize> =
            (0..threads.len()).filter(|&t| at[t].0 < threads[t].len()).collect();
        let Some(&t) = ready.get(picks.get(pick).map_or(0, |p| p % ready.len().max(1))) else {
            break;
        };
        let (i, taken) = &mut at[t];
        match threads[t][*i] {
            Act::Step => {
                recorder.step(across(t), true);
                steps.push((t, None));
                *i += 1;
            }
            Act::Block(len) => {
                if *taken == 0 {
                    recorder.enter(across(t), REGION, 0);
                }
                recorder.step(across(t), true);
                steps.push((t, Some((t, nth[t]))));
                *taken += 1;
                if *taken == len {
                    recorder.exit(across(t).0);
                    nth[t] += 1;
                    (*i, *taken) = (*i + 1, 0);
                }
            }
        }
    }
    Executed { said: recorder.finish(), steps }
}

fn threads() -> impl Strategy<Value = Vec<Vec<Act>>> {
    let act = prop_oneof![1 => Just(Act::Step), 3 => (1u8..4).prop_map(Act::Block)];
    proptest::collection::vec(proptest::collection::vec(act, 0..4), 2..4)
}

/// All permutations of the blocks that keep an order, by the definition.
fn brute<S>(blocks: &[AtomicBlock<S>], keep: Keep) -> BTreeSet<Vec<usize>> {
    fn go(left: &[usize], done: &mut Vec<usize>, all: &mut BTreeSet<Vec<usize>>) {
        if left.is_empty() {
            all.insert(done.clone());
        }
        for &next in left {
            done.push(next);
            let rest: Vec<usize> = left.iter().copied().filter(|&i| i != next).collect();
            go(&rest, done, all);
            done.pop();
        }
    }
    let mut all = BTreeSet::new();
    go(&(0..blocks.len()).collect::<Vec<_>>(), &mut Vec::new(), &mut all);
    let kept = |a: usize, b: usize| match keep {
        Keep::RealTime => blocks[a].precedes(&blocks[b]),
        Keep::Threads => {
            blocks[a].id.thread == blocks[b].id.thread && blocks[a].id.nth < blocks[b].id.nth
        }
    };
    all.retain(|order| (0..order.len()).all(|j| (0..j).all(|i| !kept(order[j], order[i]))));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn linearizations_agree_with_brute_force(
        threads in threads(), picks in proptest::collection::vec(0usize..6, 40), real_time in any::<bool>(),
    ) {
        let said = execute(&threads, &picks).said;
        prop_assume!(said.blocks.len() <= 7);
        let keep = if real_time { Keep::RealTime } else { Keep::Threads };
        let all: Vec<Vec<usize>> = linearizations(&said.blocks, keep).collect();
        let distinct: BTreeSet<Vec<usize>> = all.iter().cloned().collect();
        prop_assert_eq!(all.len(), distinct.len(), "each once");
        prop_assert_eq!(&distinct, &brute(&said.blocks, keep));
        let ends: Vec<u32> = all[0].iter().map(|&i| said.blocks[i].end).collect();
        prop_assert!(ends.is_sorted(), "without hints, the order of the ends comes first");
        let overlap = (0..said.blocks.len())
            .any(|j| (0..j).any(|i| said.blocks[i].overlaps(&said.blocks[j])));
        prop_assert!(!said.is_serial() || !overlap);
        prop_assert!(!real_time || overlap == (all.len() > 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Theorem 16, with interrupted and interrupting blocks counted from the steps.
    #[test]
    fn there_are_at_most_k_plus_one_to_the_r_orders(
        threads in threads(), picks in proptest::collection::vec(0usize..6, 40),
    ) {
        let Executed { said, steps } = execute(&threads, &picks);
        prop_assume!(said.blocks.len() <= 8);
        let mut interrupted = BTreeSet::new();
        let mut interrupting = BTreeSet::new();
        for (i, (thread, block)) in steps.iter().enumerate() {
            let Some(block) = block else { continue };
            let Some(last) = steps.iter().rposition(|s| s.1 == Some(*block)) else { continue };
            for (other, inner) in &steps[i..last] {
                if other != thread && let Some(inner) = inner {
                    interrupted.insert(*block);
                    interrupting.insert(*inner);
                }
            }
        }
        let bound = (interrupting.len() as u64 + 1).pow(interrupted.len() as u32);
        prop_assert!(linearizations(&said.blocks, Keep::RealTime).count() as u64 <= bound);
    }
}

/// Three blocks that all overlap, in the order of their begins; they end in the same order.
fn three(mut during: impl FnMut(&mut Recorder<u32>, usize)) -> AtomicBlocks<u32> {
    let mut recorder = Recorder::default();
    for t in 0..3 {
        recorder.enter(across(t), REGION, 0);
        recorder.step(across(t), true);
    }
    for t in [0, 1, 2] {
        during(&mut recorder, t);
    }
    for t in 0..3 {
        recorder.step(across(t), true);
        recorder.exit(across(t).0);
    }
    recorder.finish()
}

fn first(said: &AtomicBlocks<u32>) -> Vec<usize> {
    linearizations(&said.blocks, Keep::RealTime).next().expect("there is an order")
}

#[test]
fn points_come_before_accesses_and_accesses_before_ends() {
    assert_eq!(first(&three(|_, _| {})), [0, 1, 2]);
    // Thread 2 reaches its point first.
    let points = three(|recorder, t| {
        if t == 0 {
            recorder.point(ThreadId(2), 0).unwrap();
            recorder.point(ThreadId(0), 0).unwrap();
        }
    });
    assert_eq!(first(&points)[..2], [1, 2], "block 1 has no point and ends before block 2");
    assert_eq!(linearizations(&points.blocks, Keep::RealTime).count(), 6, "hints exclude nothing");
    // Thread 1 writes what thread 0 read before; the last read of thread 2 comes before the write.
    let access = |recorder: &mut Recorder<u32>, t: u32, writes| {
        recorder.distinguish(ThreadId(t), true);
        recorder.access(ThreadId(t), 7, writes);
        recorder.distinguish(ThreadId(t), false);
    };
    let accesses = three(|recorder, t| {
        if t == 0 {
            access(recorder, 1, false);
            access(recorder, 2, true);
            access(recorder, 0, false);
            access(recorder, 1, false);
        }
    });
    assert_eq!(first(&accesses), [2, 0, 1], "only the last read of block 1 counts");
    // Two writes each, in turn: no hint.
    let contradicting = three(|recorder, t| {
        if t == 0 {
            [1, 0, 1, 0].into_iter().for_each(|t| access(recorder, t, true));
        }
    });
    assert_eq!(first(&contradicting), [0, 1, 2]);
}

#[test]
fn where_accesses_and_points_have_no_order_points_alone_decide() {
    let access = |recorder: &mut Recorder<u32>, t: u32, variable| {
        recorder.distinguish(ThreadId(t), true);
        recorder.access(ThreadId(t), variable, true);
        recorder.distinguish(ThreadId(t), false);
    };
    // Points: 2 before 1. Accesses: 1 before 0 and 0 before 2.
    let said = three(|recorder, t| {
        if t == 0 {
            recorder.point(ThreadId(2), 0).unwrap();
            recorder.point(ThreadId(1), 0).unwrap();
            access(recorder, 1, 1);
            access(recorder, 0, 1);
            access(recorder, 0, 2);
            access(recorder, 2, 2);
        }
    });
    assert_eq!(first(&said), [0, 2, 1]);
}

#[test]
fn points_are_reached_once_and_in_blocks() {
    let mut recorder = Recorder::<u32>::default();
    assert_eq!(recorder.point(ThreadId(0), 3), Err(Misuse::PointOutside { site: 3 }));
    recorder.enter(across(0), REGION, 1);
    assert_eq!(recorder.point(ThreadId(0), 4), Ok(()));
    assert_eq!(
        recorder.point(ThreadId(0), 5),
        Err(Misuse::SecondPoint { block: "block".into(), site: 5 })
    );
    let said = recorder.finish();
    assert_eq!(said.unclosed, [("block".into(), 1)]);
    assert!(said.entered && said.blocks.is_empty());
}
