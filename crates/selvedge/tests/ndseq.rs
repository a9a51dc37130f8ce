//! Parallel as if sequential: what no sequential execution returns is found, and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;

use selvedge::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use selvedge::sync::{Mutex, RwLock};
use selvedge::{Explore, star, star_block, thread};

fn explore() -> Explore {
    Explore::new().schedules(300).seed(1)
}

/// Adds one in each of two threads; with a lock around it or not.
fn lost_update(locked: bool) -> usize {
    let (number, lock) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(())));
    let add = |_| {
        let (number, lock) = (Arc::clone(&number), Arc::clone(&lock));
        thread::spawn(move || {
            let _guard = locked.then(|| lock.lock().unwrap());
            let old = number.load(Ordering::SeqCst);
            number.store(old + 1, Ordering::SeqCst);
        })
    };
    let threads: Vec<_> = (0..2).map(add).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    number.load(Ordering::SeqCst)
}

#[test]
fn a_lost_update_is_what_no_sequential_execution_returns() {
    let failure = explore().run_ndseq(|| lost_update(false)).unwrap_err().to_string();
    assert!(failure.contains("the result is 1, which no sequential execution has"), "{failure}");
    assert!(failure.contains("with 2"), "{failure}");
    explore().ndseq(|| lost_update(true));
}

/// Fails if the second thread runs first, which a sequential execution shows as well; and otherwise if they overlap.
fn two_assertions() {
    let (number, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let task = |first: bool| {
        let (number, begun) = (Arc::clone(&number), Arc::clone(&begun));
        thread::spawn(move || {
            if first {
                begun.store(true, Ordering::SeqCst);
            } else {
                assert!(begun.load(Ordering::SeqCst), "the first has not begun");
            }
            let old = number.load(Ordering::SeqCst);
            number.store(old + 1, Ordering::SeqCst);
        })
    };
    let threads = [task(true), task(false)];
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(number.load(Ordering::SeqCst), 2, "one was lost");
}

#[test]
fn a_failure_is_explained_by_the_same_failure_only() {
    let failure = explore().run_ndseq(two_assertions).unwrap_err().to_string();
    assert!(failure.contains("the result is a failure (failed assertion)"), "{failure}");
    assert!(failure.contains("which no sequential execution has"), "{failure}");
}

/// The best of three costs, which are equal; a bound that is read without the lock saves work. How often work was done is no part of
/// the result if `counted` is false.
fn search(starred: bool, counted: bool) -> (usize, usize) {
    const COSTS: [usize; 3] = [5, 5, 5];
    let best = Arc::new(AtomicUsize::new(100));
    let lock = Arc::new(Mutex::new(0));
    let expand = |i: usize| {
        let (best, lock) = (Arc::clone(&best), Arc::clone(&lock));
        thread::spawn(move || {
            let pruned = || COSTS[i] >= best.load(Ordering::SeqCst);
            let skip = if starred { star(pruned) } else { pruned() };
            if skip {
                return;
            }
            let mut done = lock.lock().unwrap();
            *done += 1;
            if COSTS[i] < best.load(Ordering::SeqCst) {
                best.store(COSTS[i], Ordering::SeqCst);
            }
        })
    };
    let threads: Vec<_> = (0..3).map(expand).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let done = *lock.lock().unwrap();
    (best.load(Ordering::SeqCst), if counted { done } else { 0 })
}

#[test]
fn a_pruned_search_conforms_and_with_a_star_even_the_work_does() {
    explore().ndseq(|| search(false, false));
    explore().ndseq(|| search(true, true));
    // One after the other, only the first is expanded.
    let failure = explore().run_ndseq(|| search(false, true)).unwrap_err().to_string();
    assert!(failure.contains("no sequential execution has"), "{failure}");
}

/// Each of two threads puts 1 into a list unless it is there.
fn check_then_act(together: bool) -> Vec<i32> {
    let list = Arc::new(RwLock::new(Vec::new()));
    let put = |_| {
        let list = Arc::clone(&list);
        thread::spawn(move || {
            if together {
                let mut list = list.write().unwrap();
                if !list.contains(&1) {
                    list.push(1);
                }
            } else if !list.read().unwrap().contains(&1) {
                list.write().unwrap().push(1);
            }
        })
    };
    let threads: Vec<_> = (0..2).map(put).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let list = list.read().unwrap();
    list.clone()
}

#[test]
fn a_check_that_is_apart_from_its_act_does_not_conform() {
    let failure = explore().run_ndseq(|| check_then_act(false)).unwrap_err().to_string();
    assert!(failure.contains("the result is [1, 1]"), "{failure}");
    explore().ndseq(|| check_then_act(true));
}

struct Element {
    value: usize,
    next: *mut Element,
}

/// Two threads push on a Treiber stack; what is on it, in order.
fn treiber(compares: bool) -> Vec<usize> {
    let top: Arc<AtomicPtr<Element>> = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
    let push = |value: usize| {
        let top = Arc::clone(&top);
        thread::spawn(move || {
            let element = Box::into_raw(Box::new(Element { value, next: std::ptr::null_mut() }));
            loop {
                let pushed = star_block(|| {
                    let old = top.load(Ordering::SeqCst);
                    // SAFETY: the element is this thread's own until it is on the stack.
                    unsafe { (*element).next = old };
                    if !compares {
                        top.store(element, Ordering::SeqCst);
                        return true;
                    }
                    let order = Ordering::SeqCst;
                    top.compare_exchange(old, element, order, order).is_ok()
                });
                if pushed == Some(true) {
                    break;
                }
            }
        })
    };
    let threads: Vec<_> = (1..=2).map(push).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let mut values = Vec::new();
    let mut at = top.load(Ordering::SeqCst);
    while !at.is_null() {
        // SAFETY: the threads have ended; every element was made by a box and is on the stack once.
        let element = unsafe { Box::from_raw(at) };
        values.push(element.value);
        at = element.next;
    }
    values
}

#[test]
fn a_treiber_stack_conforms_and_one_that_does_not_compare_does_not() {
    explore().ndseq(|| treiber(true));
    let failure = explore().run_ndseq(|| treiber(false)).unwrap_err().to_string();
    assert!(failure.contains("no sequential execution has"), "{failure}");
}

/// Two threads each put a number into a pool and take one out; what is left, and the sum of what was taken.
fn pool(together: bool) -> (usize, usize) {
    let pool = Arc::new(Mutex::new(VecDeque::new()));
    let work = |number: usize| {
        let pool = Arc::clone(&pool);
        thread::spawn(move || {
            if together {
                let mut pool = pool.lock().unwrap();
                pool.push_back(number);
                pool.pop_front().unwrap_or(0)
            } else {
                let empty = pool.lock().unwrap().is_empty();
                if empty {
                    pool.lock().unwrap().push_back(number);
                }
                pool.lock().unwrap().pop_front().unwrap_or(0)
            }
        })
    };
    let threads: Vec<_> = [1, 2].map(work).into_iter().collect();
    let sum = threads.into_iter().map(|t| t.join().unwrap()).sum();
    (pool.lock().unwrap().len(), sum)
}

#[test]
fn a_pool_whose_steps_are_apart_loses_work() {
    explore().ndseq(|| pool(true));
    let failure = explore().run_ndseq(|| pool(false)).unwrap_err().to_string();
    assert!(failure.contains("no sequential execution has"), "{failure}");
}

#[test]
fn too_few_sequential_executions_decide_nothing() {
    let summary = explore().sequential(1).run_ndseq(|| lost_update(false)).unwrap();
    assert_eq!(summary.undecided.len(), 1, "{summary:?}");
}

#[test]
fn outside_of_checks_stars_are_executed() {
    assert!(star(|| true) && !star(|| false));
    assert_eq!(star_block(|| 3), Some(3));
}

/// A search that leaves a star out three times in a row at most would call this execution harmful.
#[test]
fn all_stars_of_one_place_may_be_left_out() {
    fn perhaps(add: impl FnOnce()) {
        star_block(add);
    }
    let sums: &'static std::sync::Mutex<Vec<usize>> = Box::leak(Box::default());
    let body = || {
        let (closed, sum) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5 {
                    perhaps(|| {
                        if !closed.load(Ordering::SeqCst) {
                            sum.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
            });
            scope.spawn(|| {
                closed.store(true, Ordering::SeqCst);
                closed.store(false, Ordering::SeqCst);
            });
        });
        let sum = sum.load(Ordering::SeqCst);
        sums.lock().unwrap().push(sum);
        sum
    };
    let summary = Explore::new().schedules(500).run_ndseq(body).expect("every execution conforms");
    assert!(summary.undecided.is_empty());
    assert!(sums.lock().unwrap().contains(&0), "no execution has the sum 0");
}
