//! Atomic blocks with observed values: small programs get the verdict that Burnim's chapter 5 has for them, right twins
//! pass, hints save serial executions, and bad use is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};

use selvedge::cases::Subject;
use selvedge::cases::serial::SerialOutcome;
use selvedge::events::{Kind, Status, Verdict};
use selvedge::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use selvedge::sync::{Arc, Condvar, Mutex};
use selvedge::{
    AtomicBlock, Explore, Failure, Summary, Undecided, atomic, distinguished, linearization_point,
    observe, observe_by, same, thread,
};

fn explore() -> Explore {
    Explore::new().schedules(1_000)
}

/// The violation that the body shows, with the names of what no serial order gives.
fn violation(
    explore: Explore,
    body: impl Fn() + Send + Sync + 'static,
) -> (Box<Failure>, Vec<String>) {
    let failure = explore.run(body).expect_err("the blocks are not linearizable");
    eprintln!("{failure}\n");
    assert_eq!(failure.kind(), Kind::LinearizabilityViolation, "{failure}");
    assert_eq!(failure.case.status, Status::Confirmed);
    assert_eq!(failure.case.verdict, Some(Verdict::Harmful));
    let Subject::Observed(names) = failure.case.subject.clone() else { panic!("{failure}") };
    (failure, names)
}

fn passes(explore: Explore, body: impl Fn() + Send + Sync + 'static) -> Summary {
    match explore.run(body) {
        Ok(summary) => {
            assert_eq!(summary.undecided, []);
            summary
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// Two threads do something at the same time.
fn both(one: impl FnOnce() + Send + 'static, two: impl FnOnce() + Send + 'static) {
    let threads = [thread::spawn(one), thread::spawn(two)];
    threads.into_iter().for_each(|t| t.join().unwrap());
}

// ---- section 5.1: deposits ----

#[derive(Clone, Copy, PartialEq)]
enum Deposit {
    Locked,
    CompareExchange,
    Counting,
    Unlocked,
}

fn deposits(how: Deposit, observe_conflicts: bool) {
    struct Account {
        balance: AtomicU32,
        conflicts: AtomicU32,
        lock: Mutex<()>,
    }
    let account = Arc::new(Account {
        balance: AtomicU32::new(0),
        conflicts: AtomicU32::new(0),
        lock: Mutex::new(()),
    });
    let deposit = move |account: &Account| {
        atomic("deposit", || match how {
            Deposit::Locked => {
                let _guard = account.lock.lock().unwrap();
                account.balance.store(account.balance.load(SeqCst) + 100, SeqCst);
            }
            Deposit::Unlocked => {
                account.balance.store(account.balance.load(SeqCst) + 100, SeqCst);
            }
            Deposit::CompareExchange | Deposit::Counting => loop {
                let old = account.balance.load(SeqCst);
                if account.balance.compare_exchange(old, old + 100, SeqCst, SeqCst).is_ok() {
                    break;
                }
                if how == Deposit::Counting {
                    account.conflicts.fetch_add(1, SeqCst);
                }
            },
        });
    };
    let theirs = [Arc::clone(&account), Arc::clone(&account)];
    let [a, b] = theirs;
    both(move || deposit(&a), move || deposit(&b));
    observe("balance", &account.balance.load(SeqCst));
    if observe_conflicts {
        observe("conflicts", &account.conflicts.load(SeqCst));
    }
}

#[test]
fn deposits_are_atomic_by_their_balance_and_not_by_their_conflicts() {
    assert_eq!(passes(explore(), || deposits(Deposit::Locked, true)).conflicts, 0);
    let summary = passes(explore(), || deposits(Deposit::CompareExchange, true));
    assert_eq!(summary.conflicts, 1, "a retry is a conflict, and no error");
    passes(explore(), || deposits(Deposit::Counting, false));
    let (_, names) = violation(explore(), || deposits(Deposit::Counting, true));
    assert_eq!(names, ["conflicts"]);
    let (failure, names) = violation(explore(), || deposits(Deposit::Unlocked, true));
    assert_eq!(names, ["balance"]);
    let serial = failure.case.serial.as_ref().expect("orders were tried");
    assert_eq!(serial.orders.len(), 2, "{serial:?}");
    for order in &serial.orders {
        let SerialOutcome::Differs(states) = &order.outcome else { panic!("{order:?}") };
        assert_eq!(states.len(), 1);
        assert!(order.blocks.iter().all(|block| block.name == "deposit"));
    }
    let text = failure.to_string();
    assert!(text.contains("no serial order gives `balance`"), "{text}");
    assert!(text.contains("`balance` is 200, not 100"), "{text}");
}

#[test]
fn a_violation_replays_from_its_schedule() {
    let (failure, _) = violation(explore(), || deposits(Deposit::Unlocked, false));
    let schedule = failure.schedule.to_string();
    let again = Explore::new().replay(&schedule).run(|| deposits(Deposit::Unlocked, false));
    let again = again.expect_err("it is replayed");
    assert_eq!((again.kind(), again.case.id), (failure.kind(), failure.case.id));
    Explore::new().replay(&schedule).run(|| deposits(Deposit::Locked, false)).expect("mended");
}

// ---- figures 5.1 and 5.8, and poll against remove: a linked queue with lazy deletion ----

/// Nodes in the order of their insertion; a value of 0 is deleted. As `ConcurrentLinkedQueue` of JDK 6.
struct Lazy {
    values: Vec<AtomicU32>,
    next: Vec<AtomicUsize>,
    head: AtomicUsize,
    tail: AtomicUsize,
    used: AtomicUsize,
}

const NONE: usize = usize::MAX;

impl Lazy {
    /// A queue with a node at its head that has no value.
    fn new(values: &[u32]) -> Lazy {
        let room = values.len() + 4;
        let queue = Lazy {
            values: (0..room).map(|_| AtomicU32::new(0)).collect(),
            next: (0..room).map(|_| AtomicUsize::new(NONE)).collect(),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            used: AtomicUsize::new(1),
        };
        values.iter().for_each(|&value| queue.add(value));
        queue
    }

    fn add(&self, value: u32) {
        let node = self.used.fetch_add(1, SeqCst);
        self.values[node].store(value, SeqCst);
        let mut last = self.tail.load(SeqCst);
        while let Err(next) = self.next[last].compare_exchange(NONE, node, SeqCst, SeqCst) {
            last = next;
        }
        self.tail.store(node, SeqCst);
    }

    /// The first node with a value, after unlinking those without.
    fn first(&self) -> Option<usize> {
        loop {
            let head = self.head.load(SeqCst);
            let first = self.next[head].load(SeqCst);
            if first == NONE {
                return None;
            }
            if self.values[first].load(SeqCst) != 0 {
                return Some(first);
            }
            let _ = self.head.compare_exchange(head, first, SeqCst, SeqCst);
        }
    }

    fn remove(&self, value: u32) -> bool {
        let mut node = self.first();
        while let Some(at) = node {
            if self.values[at].load(SeqCst) == value
                && self.values[at].compare_exchange(value, 0, SeqCst, SeqCst).is_ok()
            {
                return true;
            }
            node = Some(self.next[at].load(SeqCst)).filter(|&n| n != NONE);
        }
        false
    }

    fn poll(&self) -> Option<u32> {
        loop {
            let head = self.head.load(SeqCst);
            let first = self.next[head].load(SeqCst);
            if first == NONE {
                return None;
            }
            if self.head.compare_exchange(head, first, SeqCst, SeqCst).is_ok() {
                let value = self.values[first].load(SeqCst);
                if value != 0 {
                    // Not atomic: a `remove` may come between.
                    self.values[first].store(0, SeqCst);
                    return Some(value);
                }
            }
        }
    }

    fn poll_mended(&self) -> Option<u32> {
        while let Some(first) = self.first() {
            let value = self.values[first].load(SeqCst);
            if value != 0 && self.values[first].compare_exchange(value, 0, SeqCst, SeqCst).is_ok() {
                return Some(value);
            }
        }
        None
    }

    fn size(&self) -> usize {
        self.to_vec().len()
    }

    fn to_vec(&self) -> Vec<u32> {
        let mut values = Vec::new();
        let mut node = self.first();
        while let Some(at) = node {
            values.extend(Some(self.values[at].load(SeqCst)).filter(|&v| v != 0));
            node = Some(self.next[at].load(SeqCst)).filter(|&n| n != NONE);
        }
        values
    }

    /// How many nodes are linked, with a value or without.
    fn nodes(&self) -> usize {
        let mut count = 0;
        let mut at = self.head.load(SeqCst);
        while at != NONE {
            count += 1;
            at = self.next[at].load(SeqCst);
        }
        count
    }
}

fn figure_5_1(nodes: bool) {
    let queue = Arc::new(Lazy::new(&[1, 1]));
    let [a, b] = [Arc::clone(&queue), Arc::clone(&queue)];
    both(
        move || assert!(atomic("remove", || a.remove(1))),
        move || assert!(atomic("remove", || b.remove(1))),
    );
    if nodes {
        observe("nodes", &queue.nodes());
    } else {
        observe("elements", &queue.to_vec());
    }
}

#[test]
fn the_lazy_queue_is_right_by_its_elements_and_wrong_by_its_nodes() {
    let summary = passes(explore(), || figure_5_1(false));
    assert_eq!(summary.conflicts, 1, "conflict serializability gives a false alarm");
    let (_, names) = violation(explore(), || figure_5_1(true));
    assert_eq!(names, ["nodes"]);
}

fn figure_5_8(array: bool) {
    let queue = Arc::new(Lazy::new(&[1, 2]));
    let [a, b] = [Arc::clone(&queue), Arc::clone(&queue)];
    both(
        move || {
            atomic("remove", || a.remove(1));
            atomic("add", || a.add(3));
        },
        move || match array {
            false => observe("size", &atomic("size", || b.size())),
            true => observe("array", &atomic("toArray", || b.to_vec())),
        },
    );
    observe("queue", &queue.to_vec());
}

#[test]
fn the_size_of_a_queue_of_two_is_never_three() {
    let (failure, names) = violation(explore(), || figure_5_8(false));
    assert_eq!(names, ["size"]);
    assert!(failure.to_string().contains("not 3"), "{failure}");
    let (failure, names) = violation(explore(), || figure_5_8(true));
    assert_eq!(names, ["array"]);
    assert!(failure.to_string().contains("not [1, 2, 3]"), "{failure}");
}

fn poll_against_remove(poll: fn(&Lazy) -> Option<u32>) {
    let queue = Arc::new(Lazy::new(&[7]));
    let [a, b] = [Arc::clone(&queue), Arc::clone(&queue)];
    both(
        move || observe("poll", &atomic("poll", || poll(&a))),
        move || observe("remove", &atomic("remove", || b.remove(7))),
    );
}

#[test]
fn poll_against_remove_needs_two_interruptions() {
    let body = || poll_against_remove(Lazy::poll);
    for seed in 0..10 {
        let once = passes(explore().strategy("interrupt:1").seed(seed), body);
        assert!(once.complete, "it ended by itself");
    }
    let (failure, _) = violation(explore().schedules(10_000).strategy("interrupt:2"), body);
    assert!(failure.to_string().contains("poll"), "{failure}");
    let mended = explore().schedules(10_000).strategy("interrupt:2");
    assert!(passes(mended, || poll_against_remove(Lazy::poll_mended)).complete);
}

// ---- figure 5.6: a list, or a multiset ----

fn figure_5_6(multiset: bool) {
    let list = Arc::new(Mutex::new(Vec::new()));
    let add = |values: [u32; 2], list: Arc<Mutex<Vec<u32>>>| {
        move || {
            let _block = AtomicBlock::enter("add");
            values.into_iter().for_each(|v| list.lock().unwrap().push(v));
        }
    };
    both(add([1, 2], Arc::clone(&list)), add([3, 4], Arc::clone(&list)));
    let list = list.lock().unwrap();
    if multiset {
        observe_by("list", &*list, same::multiset());
    } else {
        observe("list", &*list);
    }
}

#[test]
fn a_list_is_atomic_as_a_multiset_only() {
    let (_, names) = violation(explore(), || figure_5_6(false));
    assert_eq!(names, ["list"]);
    assert_eq!(passes(explore(), || figure_5_6(true)).conflicts, 1);
}

// ---- the lock-free list whose two removes both succeed ----

fn removes(mark: fn(&AtomicU32) -> bool) {
    let marked = Arc::new(AtomicU32::new(0));
    let remove = move |marked: &AtomicU32| marked.load(SeqCst) == 0 && mark(marked);
    let [a, b] = [Arc::clone(&marked), marked];
    both(
        move || observe("removed", &atomic("remove", || remove(&a))),
        move || observe("removed", &atomic("remove", || remove(&b))),
    );
}

#[test]
fn two_removes_of_one_element_do_not_both_succeed() {
    let store = |marked: &AtomicU32| {
        marked.store(1, SeqCst);
        true
    };
    let (_, names) = violation(explore(), move || removes(store));
    assert_eq!(names, ["removed"]);
    passes(explore(), || removes(|m| m.compare_exchange(0, 1, SeqCst, SeqCst).is_ok()));
}

// ---- figure 5.9: phylogeny ----

fn figure_5_9(mended: bool) {
    let best = Arc::new((Mutex::new(u32::MAX), AtomicU32::new(0)));
    let search = |tree: u32, cost: u32| {
        let best = Arc::clone(&best);
        move || {
            atomic("tree", || {
                let (least, tree_of) = &*best;
                let mut guard = least.lock().unwrap();
                *guard = cost.min(*guard);
                if mended {
                    if cost == *guard {
                        tree_of.store(tree, SeqCst);
                    }
                    return;
                }
                drop(guard);
                if cost == *least.lock().unwrap() {
                    tree_of.store(tree, SeqCst);
                }
            });
        }
    };
    // Trees 2 and 3 cost the same: which one is found depends on the schedule, and both are right.
    let threads = [search(1, 9), search(2, 5), search(3, 5)].map(thread::spawn);
    threads.into_iter().for_each(|t| t.join().unwrap());
    observe("min_cost", &*best.0.lock().unwrap());
    observe("min_tree", &best.1.load(SeqCst));
}

#[test]
fn the_tree_of_phylogeny_may_differ_and_must_be_one_of_least_cost() {
    let (_, names) = violation(explore(), || figure_5_9(false));
    assert_eq!(names, ["min_tree"]);
    passes(explore(), || figure_5_9(true));
}

// ---- what counts as a witness ----

/// A read that began after a write ended sees the old value: serializable, not linearizable.
fn stale(observed: &'static str) {
    let copies = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let [a, b] = [Arc::clone(&copies), Arc::clone(&copies)];
    both(
        move || {
            atomic("write", || a[0].store(1, SeqCst));
            // Published late, outside of the block.
            a[1].store(1, SeqCst);
        },
        move || {
            let first = atomic("read new", || b[0].load(SeqCst));
            let second = atomic("read old", || b[1].load(SeqCst));
            if observed == "both" {
                observe("reads", &(first, second));
            }
        },
    );
    observe("end", &copies[1].load(SeqCst));
}

#[test]
fn steps_outside_of_blocks_are_blocks_of_their_own() {
    // A late store is a step of its own, so reads between the two are explained.
    for witness in ["linearizable", "serializable", "atomic"] {
        passes(explore().witness(witness), || stale("both"));
    }
}

/// Blocks whose number depends on the schedule: `extra` runs only if the other thread came first.
fn other_blocks() {
    let turn = Arc::new(AtomicU32::new(0));
    let [a, b] = [Arc::clone(&turn), Arc::clone(&turn)];
    both(
        move || {
            atomic("set", || {
                a.fetch_add(1, SeqCst);
                a.fetch_add(1, SeqCst);
            });
        },
        move || {
            let seen = atomic("look", || b.load(SeqCst));
            if seen == 1 {
                atomic("extra", || b.load(SeqCst));
            }
        },
    );
    observe("end", &turn.load(SeqCst));
}

#[test]
fn other_blocks_explain_what_is_observed_only_if_any_execution_counts() {
    // Seeing 1 leads to a block that no serial execution has.
    let run = |witness: &str| explore().witness(witness).run(other_blocks);
    for witness in ["linearizable", "serializable"] {
        match run(witness) {
            Ok(Summary { undecided, .. }) => {
                assert!(matches!(undecided[..], [Undecided::Unforced { .. }]), "{undecided:?}");
            }
            Err(failure) => {
                panic!("no order has the same blocks, so there is no verdict: {failure}")
            }
        }
    }
    assert_eq!(run("atomic").expect("every end is the same").undecided, []);
}

/// As `other_blocks`, but the first thread can also be interrupted where the other one sees nothing of it.
fn sometimes_other_blocks() {
    let turn = Arc::new(AtomicU32::new(0));
    let [a, b] = [Arc::clone(&turn), Arc::clone(&turn)];
    both(
        move || {
            atomic("set", || {
                a.load(SeqCst);
                a.fetch_add(1, SeqCst);
                a.fetch_add(1, SeqCst);
            });
        },
        move || {
            let seen = atomic("look", || b.load(SeqCst));
            if seen == 1 {
                atomic("extra", || b.load(SeqCst));
            }
        },
    );
    observe("end", &turn.load(SeqCst));
}

#[test]
fn blocks_that_no_serial_execution_has_violate_definition_15() {
    let (failure, names) = violation(explore(), sometimes_other_blocks);
    assert_eq!(names, ["end"]);
    let serial = failure.case.serial.as_ref().expect("orders were tried");
    let has_other =
        |o: &SerialOutcome| matches!(o, SerialOutcome::Other { .. } | SerialOutcome::Missed(_));
    assert!(serial.orders.iter().all(|order| has_other(&order.outcome)), "{serial:?}");
    let schedule = failure.schedule.to_string();
    let again = Explore::new().replay(&schedule).run(sometimes_other_blocks);
    assert_eq!(again.expect_err("it is replayed").case.id, failure.case.id);
    // Where steps outside of blocks could be placed otherwise it is not certain, and said.
    let summary = explore().witness("serializable").run(sometimes_other_blocks);
    let undecided = summary.expect("nothing is certain").undecided;
    let [Undecided::Unforced { interleavings, of }] = undecided[..] else {
        panic!("{undecided:?}")
    };
    assert!(interleavings < of, "others were decided: {undecided:?}");
    assert_eq!(passes(explore().witness("atomic"), sometimes_other_blocks).undecided, []);
}

#[test]
fn a_survey_counts_what_is_not_linearizable_and_goes_on() {
    let survey = explore().strategy("interrupt").survey(|| deposits(Deposit::Unlocked, false));
    let counts = survey.interleavings;
    assert!(survey.complete && survey.conflicts == ["deposit"], "{survey:?}");
    assert_eq!(survey.violations, [["balance"]]);
    assert!(counts.unexplained.interleavings > 0 && counts.explained.interleavings > 0);
    assert_eq!(counts.unexplained.average(), Some(2.0), "two blocks have two orders: {counts:?}");
    let survey = explore().strategy("interrupt").survey(|| deposits(Deposit::Locked, false));
    assert!(survey.violations.is_empty());
    assert_eq!(survey.interleavings.unexplained.interleavings, 0);
}

// ---- hints ----

/// Appends by an atomic counter: where the append happens decides the order, not which block ends first.
fn appends(hint: bool) {
    let (next, log) = (AtomicUsize::new(0), [0; 3].map(AtomicU32::new));
    let shared = Arc::new((next, log));
    let append = |value: u32| {
        let shared = Arc::clone(&shared);
        move || {
            atomic("append", || {
                let (next, log) = &*shared;
                let place = if hint {
                    distinguished(|| next.fetch_add(1, SeqCst))
                } else {
                    next.fetch_add(1, SeqCst)
                };
                log[place].store(value, SeqCst);
                log[place].load(SeqCst);
            });
        }
    };
    let threads = [append(1), append(2), append(3)].map(thread::spawn);
    threads.into_iter().for_each(|t| t.join().unwrap());
    let log: Vec<u32> = shared.1.iter().map(|v| v.load(SeqCst)).collect();
    observe("log", &log);
}

#[test]
fn hints_save_serial_executions_and_change_no_verdict() {
    let count = |hint| passes(explore().strategy("interrupt"), move || appends(hint)).executions;
    let (with, without) = (count(true), count(false));
    assert!(with < without, "{with} executions with hints, {without} without");
}

#[test]
fn a_wrong_hint_changes_no_verdict() {
    let body = |at_the_end: bool| {
        let count = Arc::new(AtomicU32::new(0));
        let add = |name: &'static str| {
            let count = Arc::clone(&count);
            move || {
                let seen = atomic("add", || {
                    if !at_the_end {
                        linearization_point();
                    }
                    count.load(SeqCst);
                    let seen = count.fetch_add(1, SeqCst);
                    count.load(SeqCst);
                    if at_the_end {
                        linearization_point();
                    }
                    seen
                });
                observe(name, &seen);
            }
        };
        both(add("a"), add("b"));
    };
    for at_the_end in [true, false] {
        passes(explore(), move || body(at_the_end));
    }
}

// ---- no false alarms ----

/// A bounded queue whose operations wait.
struct Bounded {
    items: Mutex<Vec<u32>>,
    changed: Condvar,
}

impl Bounded {
    fn push(&self, value: u32) {
        let mut items = self.items.lock().unwrap();
        while !items.is_empty() {
            items = self.changed.wait(items).unwrap();
        }
        items.push(value);
        self.changed.notify_all();
    }

    fn pop(&self) -> u32 {
        let mut items = self.items.lock().unwrap();
        while items.is_empty() {
            items = self.changed.wait(items).unwrap();
        }
        let value = items.remove(0);
        self.changed.notify_all();
        value
    }
}

#[test]
fn blocks_that_wait_are_no_false_alarm() {
    for strategy in ["interrupt", "interrupt:2", "mix", "random", "pct", "dfs:2"] {
        passes(explore().schedules(300).strategy(strategy), || {
            let queue = Arc::new(Bounded { items: Mutex::default(), changed: Condvar::new() });
            let [a, b] = [Arc::clone(&queue), queue];
            both(
                move || (1..4).for_each(|v| atomic("push", || a.push(v))),
                move || {
                    (0..3).for_each(|_| observe("popped", &atomic("pop", || b.pop())));
                },
            );
        });
    }
}

// ---- bad use ----

/// The message of the panic that refuses the body.
fn refused(body: impl Fn() + Send + Sync + 'static) -> String {
    let check = AssertUnwindSafe(|| explore().schedules(20).run(body));
    let payload = catch_unwind(check).expect_err("the body misuses blocks");
    let text = payload.downcast_ref::<String>().expect("a message").clone();
    assert!(text.contains("linearizability.rs:"), "it has the place: {text}");
    text
}

#[test]
fn bad_use_is_told() {
    let text = refused(|| observe("value", &1));
    assert!(
        text.contains("\"value\" is observed, but the program enters no atomic block"),
        "{text}"
    );
    let text = refused(|| atomic("twice", || (0..2).for_each(|_| linearization_point())));
    assert!(text.contains("\"twice\" reaches a second linearization point"), "{text}");
    let text = refused(|| linearization_point());
    assert!(text.contains("outside of every atomic block"), "{text}");
    let text = refused(|| {
        std::mem::forget(AtomicBlock::enter("open"));
        observe("value", &1);
    });
    assert!(text.contains("\"open\" was never left"), "{text}");
    let unknown = catch_unwind(|| Explore::new().witness("sequential")).expect_err("no witness");
    let text = unknown.downcast_ref::<String>().expect("a message").clone();
    assert!(text.contains("`sequential` is not a witness; there are linearizable"), "{text}");
}

#[test]
fn where_nothing_overlaps_nothing_is_green() {
    let summary = explore().run(|| {
        let count = Arc::new(AtomicU32::new(0));
        for _ in 0..2 {
            let count = Arc::clone(&count);
            thread::spawn(move || atomic("add", || count.fetch_add(1, SeqCst))).join().unwrap();
        }
        observe("count", &count.load(SeqCst));
    });
    assert_eq!(summary.expect("nothing failed").undecided, [Undecided::NothingOverlapped]);
    // Two blocks that wait for each other have no serial order.
    let summary = explore().schedules(100).run(|| {
        let flags = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let meet = |mine: usize| {
            let flags = Arc::clone(&flags);
            move || {
                atomic("meet", || {
                    flags[mine].store(1, SeqCst);
                    while flags[1 - mine].load(SeqCst) == 0 {
                        thread::yield_now();
                    }
                });
            }
        };
        both(meet(0), meet(1));
        observe("done", &true);
    });
    let undecided = summary.expect("nothing failed").undecided;
    assert!(matches!(undecided[..], [Undecided::Unforced { .. }]), "{undecided:?}");
}
