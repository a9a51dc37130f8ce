//! `selvedge::linearizable`: structures with and without errors, shrinking, models, groups, weak and waiting operations.

use std::panic::catch_unwind;

use selvedge::events::Kind;
use selvedge::linearizable::{Linearizable, Model, Scenario, check};
use selvedge::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use selvedge::sync::{Condvar, Mutex};

/// A stack behind a lock; `top` reads the last element, and `Pop` is right or not.
struct Stack<const RIGHT: bool>(Mutex<Vec<u32>>);

#[derive(Clone, Debug)]
enum StackOp {
    Push(u32),
    Pop,
}
use StackOp::{Pop, Push};

impl<const RIGHT: bool> Linearizable for Stack<RIGHT> {
    type Op = StackOp;
    type Ret = Option<u32>;

    fn new() -> Self {
        Stack(Mutex::default())
    }

    fn ops() -> Vec<StackOp> {
        vec![Push(1), Push(2), Push(3), Pop]
    }

    fn apply(&self, op: &StackOp) -> Option<u32> {
        match op {
            Push(value) => {
                self.0.lock().unwrap().push(*value);
                None
            }
            Pop if RIGHT => self.0.lock().unwrap().pop(),
            Pop => {
                // Looks in one critical section and removes in another.
                let top = self.0.lock().unwrap().last().copied();
                self.0.lock().unwrap().pop();
                top
            }
        }
    }

    fn state(&self) -> String {
        format!("{:?}", self.0.lock().unwrap())
    }
}

#[test]
fn a_locked_stack_is_linearizable_under_every_strategy() {
    for strategy in ["interrupt", "interrupt:2", "mix", "dpor", "random", "pos", "surw"] {
        let check = check::<Stack<true>>().scenarios(8).schedules(60).strategy(strategy);
        let summary = check.run().unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((summary.scenarios, summary.conflicts), (8, 0));
        assert!(summary.executions > 0);
    }
    let small = check::<Stack<true>>().threads(2).ops(1).scenarios(5).run();
    assert!(small.unwrap_or_else(|failure| panic!("{failure}")).complete, "dpor sees everything");
}

#[test]
fn a_stack_that_looks_before_it_pops_is_not_and_the_scenario_is_shrunk() {
    let failure = check::<Stack<false>>().scenarios(50).schedules(200).run().expect_err("wrong");
    let text = failure.to_string();
    eprintln!("{text}");
    assert_eq!(failure.kind(), Kind::LinearizabilityViolation);
    let scenario = text.split("The scenario:").nth(1).expect("it is shown");
    let ops = scenario.split("As a test:").next().expect("lines before the test");
    assert!(ops.matches("Push").count() + ops.matches("Pop").count() <= 3, "{ops}");
    assert!(ops.contains("Pop"), "{ops}");
    assert!(text.contains("selvedge::linearizable::check::<structures::Stack<false>>()"), "{text}");
    // The scenario alone fails as well.
    let parallel = vec![vec![Pop], vec![Pop]];
    let scenario = Scenario { before: vec![Push(1), Push(2)], parallel, after: vec![] };
    check::<Stack<false>>().scenario(scenario.clone()).run().expect_err("two pops");
    check::<Stack<true>>().scenario(scenario).check();
}

/// A counter whose increments may be lost, with a model.
struct Counter<const RIGHT: bool>(AtomicU32);

#[derive(Clone, Debug)]
struct Increment;

impl<const RIGHT: bool> Linearizable for Counter<RIGHT> {
    type Op = Increment;
    type Ret = u32;

    fn new() -> Self {
        Counter(AtomicU32::new(0))
    }

    fn ops() -> Vec<Increment> {
        vec![Increment]
    }

    fn apply(&self, _: &Increment) -> u32 {
        if RIGHT {
            return self.0.fetch_add(1, SeqCst) + 1;
        }
        let next = self.0.load(SeqCst) + 1;
        self.0.store(next, SeqCst);
        next
    }
}

/// Counts by one, or skips a number: two next states, of which the result decides.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Skipping(u32);

impl Model for Skipping {
    type Op = Increment;
    type Ret = u32;

    fn new() -> Self {
        Skipping(0)
    }

    fn step(&self, _: &Increment, ret: &u32) -> Vec<Self> {
        let next = [self.0 + 1, self.0 + 2].into_iter().filter(|next| next == ret);
        next.map(Skipping).collect()
    }
}

/// Counts by two: no execution fits.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ByTwo(u32);

impl Model for ByTwo {
    type Op = Increment;
    type Ret = u32;

    fn new() -> Self {
        ByTwo(0)
    }

    fn step(&self, _: &Increment, ret: &u32) -> Vec<Self> {
        (*ret == self.0 + 2).then_some(ByTwo(*ret)).into_iter().collect()
    }
}

#[test]
fn a_model_decides_instead_of_the_structure() {
    check::<Counter<true>>().model::<Skipping>().scenarios(10).schedules(50).check();
    let lost = check::<Counter<false>>().model::<Skipping>().scenarios(10).schedules(100).run();
    let failure = lost.expect_err("an increment is lost");
    assert_eq!(failure.kind(), Kind::LinearizabilityViolation);
    assert!(failure.to_string().contains("no serial order gives `Increment`"), "{failure}");
    let other = check::<Counter<true>>().model::<ByTwo>().scenarios(5).schedules(20).run();
    other.expect_err("the model is another one");
    check::<Counter<true>>().scenarios(10).schedules(50).check();
    check::<Counter<false>>().scenarios(10).schedules(100).run().expect_err("an increment is lost");
}

/// A ring for one producer and one consumer; its length is an estimate.
struct Ring {
    items: [AtomicU32; 2],
    head: AtomicUsize,
    tail: AtomicUsize,
}

#[derive(Clone, Debug)]
enum RingOp {
    Put(u32),
    Take,
    Len,
}

struct Grouped;
struct Ungrouped;

/// The same ring, with and without saying that it has one producer and one consumer.
struct SpScRing<G>(Ring, std::marker::PhantomData<fn() -> G>);

trait Says: 'static {
    const GROUPS: bool;
}
impl Says for Grouped {
    const GROUPS: bool = true;
}
impl Says for Ungrouped {
    const GROUPS: bool = false;
}

impl<G: Says> Linearizable for SpScRing<G> {
    type Op = RingOp;
    type Ret = Option<u32>;

    fn new() -> Self {
        let ring = Ring {
            items: [0; 2].map(AtomicU32::new),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
        };
        SpScRing(ring, std::marker::PhantomData)
    }

    fn ops() -> Vec<RingOp> {
        vec![RingOp::Put(1), RingOp::Put(2), RingOp::Take, RingOp::Len]
    }

    fn group(op: &RingOp) -> Option<u32> {
        match op {
            _ if !G::GROUPS => None,
            RingOp::Put(_) => Some(0),
            RingOp::Take => Some(1),
            RingOp::Len => None,
        }
    }

    fn weak(op: &RingOp) -> bool {
        matches!(op, RingOp::Len)
    }

    fn apply(&self, op: &RingOp) -> Option<u32> {
        let Ring { items, head, tail } = &self.0;
        match op {
            RingOp::Put(value) => {
                let at = tail.load(SeqCst);
                if at - head.load(SeqCst) == items.len() {
                    return None;
                }
                items[at % items.len()].store(*value, SeqCst);
                tail.store(at + 1, SeqCst);
                Some(*value)
            }
            RingOp::Take => {
                let at = head.load(SeqCst);
                if at == tail.load(SeqCst) {
                    return None;
                }
                let value = items[at % items.len()].load(SeqCst);
                head.store(at + 1, SeqCst);
                Some(value)
            }
            RingOp::Len => {
                let end = tail.load(SeqCst);
                Some((end - head.load(SeqCst).min(end)) as u32)
            }
        }
    }
}

#[test]
fn operations_of_one_group_do_not_overlap_and_weak_ones_are_not_compared() {
    let grouped = check::<SpScRing<Grouped>>().scenarios(40).schedules(100).run();
    grouped.unwrap_or_else(|failure| panic!("{failure}"));
    let ungrouped = check::<SpScRing<Ungrouped>>().scenarios(40).schedules(200).run();
    ungrouped.expect_err("two producers write the same place");
}

/// A slot in which an element waits for its taker; the operations wait for each other.
struct Handoff {
    slot: Mutex<Option<u32>>,
    changed: Condvar,
}

#[derive(Clone, Debug)]
enum HandoffOp {
    Give(u32),
    Take,
}

impl Linearizable for Handoff {
    type Op = HandoffOp;
    type Ret = u32;

    fn new() -> Self {
        Handoff { slot: Mutex::default(), changed: Condvar::new() }
    }

    fn ops() -> Vec<HandoffOp> {
        vec![HandoffOp::Give(1), HandoffOp::Give(2), HandoffOp::Take]
    }

    fn waits(_: &HandoffOp) -> bool {
        true
    }

    fn apply(&self, op: &HandoffOp) -> u32 {
        let mut slot = self.slot.lock().unwrap();
        match op {
            HandoffOp::Give(value) => {
                while slot.is_some() {
                    slot = self.changed.wait(slot).unwrap();
                }
                *slot = Some(*value);
                self.changed.notify_all();
                *value
            }
            HandoffOp::Take => loop {
                if let Some(value) = slot.take() {
                    self.changed.notify_all();
                    return value;
                }
                slot = self.changed.wait(slot).unwrap();
            },
        }
    }
}

#[test]
fn operations_that_wait_are_no_false_alarm() {
    let summary = check::<Handoff>().scenarios(30).schedules(60).run();
    let summary = summary.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(summary.scenarios, 30);
}

/// Panics are results; a broken structure fails by itself.
struct Fragile(AtomicU32);

#[derive(Clone, Debug)]
enum FragileOp {
    Fill,
    Break,
}

impl Linearizable for Fragile {
    type Op = FragileOp;
    type Ret = u32;

    fn new() -> Self {
        Fragile(AtomicU32::new(0))
    }

    fn ops() -> Vec<FragileOp> {
        vec![FragileOp::Fill]
    }

    fn apply(&self, op: &FragileOp) -> u32 {
        match op {
            FragileOp::Fill => {
                assert_eq!(self.0.fetch_add(1, SeqCst), 0, "it is full");
                1
            }
            FragileOp::Break => self.0.swap(9, SeqCst),
        }
    }

    fn validate(&self) {
        assert_ne!(self.0.load(SeqCst), 9, "it is broken");
    }
}

#[test]
fn a_panic_is_a_result_and_a_broken_structure_is_an_error() {
    let full = check::<Fragile>().scenarios(10).schedules(50).run();
    full.unwrap_or_else(|failure| panic!("{failure}"));
    let parallel = vec![vec![FragileOp::Break], vec![FragileOp::Fill]];
    let broken = Scenario { before: vec![], parallel, after: vec![] };
    let failure = check::<Fragile>().scenario(broken).run().expect_err("broken");
    assert_eq!(failure.kind(), Kind::Assertion);
    assert!(failure.to_string().contains("it is broken"), "{failure}");
}

/// A counter whose lock is held while its thread takes steps.
struct Locked(Mutex<()>, AtomicU32);

impl Linearizable for Locked {
    type Op = Increment;
    type Ret = u32;

    fn new() -> Self {
        Locked(Mutex::default(), AtomicU32::new(0))
    }

    fn ops() -> Vec<Increment> {
        vec![Increment]
    }

    fn apply(&self, _: &Increment) -> u32 {
        let _guard = self.0.lock().unwrap();
        let next = self.1.load(SeqCst) + 1;
        self.1.store(next, SeqCst);
        next
    }
}

#[test]
fn a_lock_obstructs_and_a_compare_exchange_does_not() {
    let failure = check::<Locked>().obstruction_free().scenarios(10).schedules(100).run();
    let failure = failure.expect_err("a thread that stands still may hold the lock");
    check::<Locked>().scenarios(10).schedules(100).check();
    assert_eq!(failure.kind(), Kind::Hang);
    assert!(failure.to_string().contains("when it is left alone"), "{failure}");
    check::<Counter<true>>().obstruction_free().scenarios(10).schedules(100).check();
}

struct Nothing;

impl Linearizable for Nothing {
    type Op = ();
    type Ret = ();
    fn new() -> Self {
        Nothing
    }
    fn ops() -> Vec<()> {
        Vec::new()
    }
    fn apply(&self, (): &()) {}
}

#[test]
fn a_structure_without_operations_is_refused() {
    let refused = catch_unwind(|| check::<Nothing>().run()).expect_err("there is nothing to do");
    let text = refused.downcast_ref::<String>().expect("a message");
    assert!(text.contains("`ops()` of structures::Nothing is empty, at crates"), "{text}");
}
