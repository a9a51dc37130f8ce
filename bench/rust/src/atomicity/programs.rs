//! The programs of table 5.1: each calls a few operations of one structure in parallel and observes what they return and
//! what they leave. The applications at the end are the parallel loops of those of the Parallel Java library.

use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use selvedge::{Value, atomic, observe, observe_by, same, thread};

use super::structures::Hint;
use super::structures::ours::{Best, CopyOnWrite, LazyList, Points, Queue, Sorted};

/// A row of table 5.1.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// The paper's row, from its static blocks to its conflicts.
    pub(super) theirs: &'static str,
    /// Static atomic blocks.
    pub(super) blocks: u32,
    /// Whether there are hints.
    pub(super) has_hints: bool,
    /// What is observed and not linearizable: an error each.
    pub(super) errors: &'static [&'static str],
    pub(super) body: fn(Hint),
}

pub(super) const PROGRAMS: [Program; 11] = [
    Program {
        name: "ConcurrentLinkedQueue",
        theirs: "6 | 241 | 7 | 2 | 2.96 / 1.20 / 4.29 | 4",
        blocks: 6,
        has_hints: true,
        errors: &["size", "to array"],
        body: linked_queue,
    },
    Program {
        name: "ConcurrentSkipListMap",
        theirs: "6 | 487 | 6 | 2 | 2.54 / - / 4.83 | 4",
        blocks: 6,
        has_hints: false,
        errors: &["size", "entries"],
        body: |_| sorted("entries", Sorted::entries),
    },
    Program {
        name: "ConcurrentSkipListSet",
        theirs: "6 | 463 | 5 | 2 | 2.57 / - / 4.60 | 4",
        blocks: 6,
        has_hints: false,
        errors: &["size", "keys"],
        body: |_| {
            sorted("keys", |list| list.entries().into_iter().map(|e| e.0).collect::<Vec<_>>());
        },
    },
    Program {
        name: "CopyOnWriteArrayList",
        theirs: "6 | 222 | 0 | 0 | 6.23 / 1.00 / - | 0",
        blocks: 6,
        has_hints: true,
        errors: &[],
        body: copied_list,
    },
    Program {
        name: "CopyOnWriteArraySet",
        theirs: "6 | 221 | 0 | 0 | 4.39 / 1.00 / - | 0",
        blocks: 6,
        has_hints: true,
        errors: &[],
        body: copied_set,
    },
    Program {
        name: "LockFreeList",
        theirs: "6 | 319 | 57 | 1 | 2.08 / - / 3.46 | 2",
        blocks: 6,
        has_hints: false,
        errors: &["removed"],
        body: lock_free_list,
    },
    Program {
        name: "LazyList",
        theirs: "8 | 231 | 0 | 0 | 2.46 / 1.02 / - | 2",
        blocks: 8,
        has_hints: true,
        errors: &[],
        body: lazy_list,
    },
    Program {
        name: "pi",
        theirs: "1 | 20 | 5 | 1 | 1.00 / - / 4.80 | 1",
        blocks: 1,
        has_hints: false,
        errors: &["inside"],
        body: |_| pi(),
    },
    Program {
        name: "keysearch",
        theirs: "1 | 904 | 0 | 0 | 1.00 / - / - | 0",
        blocks: 1,
        has_hints: false,
        errors: &[],
        body: |_| keysearch(),
    },
    Program {
        name: "mandelbrot",
        theirs: "1 | 73 | 0 | 0 | 1.00 / - / - | 0",
        blocks: 1,
        has_hints: false,
        errors: &[],
        body: |_| mandelbrot(),
    },
    Program {
        name: "phylogeny",
        theirs: "2 | 605 | 27 | 1 | 1.00 / - / 125.56 | 2",
        blocks: 2,
        has_hints: false,
        errors: &["tree of least cost"],
        body: |_| phylogeny(),
    },
];

type Task = Box<dyn FnOnce() + Send>;

fn together(tasks: Vec<Task>) {
    let threads: Vec<_> = tasks.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// A block whose result is observed under its own name.
#[track_caller]
fn seen<R: Value + PartialEq>(name: &'static str, f: impl FnOnce() -> R) {
    let result = atomic(name, f);
    observe(name, &result);
}

fn linked_queue(hint: Hint) {
    let queue = Arc::new(Queue::new(&[1, 2], hint));
    let [a, b, c] = [0; 3].map(|_| Arc::clone(&queue));
    together(vec![
        Box::new(move || {
            seen("remove first", || a.remove(1));
            atomic("add", || a.add(3));
        }),
        Box::new(move || {
            seen("size", || b.size());
            atomic("add another", || b.add(4));
        }),
        Box::new(move || {
            seen("to array", || c.to_vec());
            seen("remove second", || c.remove(2));
        }),
    ]);
    observe("queue", &queue.to_vec());
}

/// Two insertions, two deletions, the size, and the whole content. One insertion and one deletion change nothing, so that
/// they cannot make up for what the others do.
fn sorted<R: Value + PartialEq>(name: &'static str, content: fn(&Sorted) -> R) {
    let list = Arc::new(Sorted::new(&[2, 4], false));
    let [a, b, c] = [0; 3].map(|_| Arc::clone(&list));
    together(vec![
        Box::new(move || {
            seen("remove", || a.remove(2));
            seen("insert", || a.insert(5, 50));
        }),
        Box::new(move || {
            seen("size", || b.entries().len());
            seen("insert again", || b.insert(4, 10));
        }),
        Box::new(move || {
            seen(name, || content(&c));
            seen("remove absent", || c.remove(9));
        }),
    ]);
    observe("end", &list.entries());
}

fn copied_list(hint: Hint) {
    let list = Arc::new(CopyOnWrite::new(&[1, 2], hint));
    let [a, b, c] = [0; 3].map(|_| Arc::clone(&list));
    together(vec![
        Box::new(move || {
            atomic("add", || a.add(3));
            seen("remove", || a.remove(1));
        }),
        Box::new(move || {
            seen("size", || b.snapshot().len());
            atomic("add another", || b.add(4));
        }),
        Box::new(move || {
            seen("to array", || c.snapshot().to_vec());
            seen("contains", || c.snapshot().contains(&3));
        }),
    ]);
    observe("list", &list.snapshot().to_vec());
}

fn copied_set(hint: Hint) {
    let set = Arc::new(CopyOnWrite::new(&[1, 2], hint));
    let [a, b, c] = [0; 3].map(|_| Arc::clone(&set));
    together(vec![
        Box::new(move || {
            seen("add", || a.add_if_absent(3));
            seen("remove", || a.remove(1));
        }),
        Box::new(move || {
            seen("size", || b.snapshot().len());
            seen("add again", || b.add_if_absent(3));
        }),
        Box::new(move || {
            seen("to array", || c.snapshot().to_vec());
            seen("contains", || c.snapshot().contains(&3));
        }),
    ]);
    observe_by("set", &set.snapshot().to_vec(), same::set());
}

fn lock_free_list(_: Hint) {
    let list = Arc::new(Sorted::new(&[1, 2], true));
    let [a, b, c] = [0; 3].map(|_| Arc::clone(&list));
    let remove = |list: Arc<Sorted>| {
        // One place, so that both are one error.
        move |name: &'static str, key| {
            let removed = atomic(name, || list.remove(key));
            observe("removed", &removed);
        }
    };
    let [first, second] = [remove(Arc::clone(&a)), remove(Arc::clone(&b))];
    together(vec![
        Box::new(move || {
            first("remove", 1);
            seen("insert", || a.insert(3, 0));
        }),
        Box::new(move || {
            second("remove too", 1);
            seen("insert too", || b.insert(4, 0));
        }),
        Box::new(move || {
            seen("contains", || c.contains(1));
            seen("contains new", || c.contains(3));
        }),
    ]);
    observe("end", &list.entries());
}

fn lazy_list(hint: Hint) {
    let list = Arc::new(LazyList::new(&[1, 2], hint));
    let [a, b, c, d] = [0; 4].map(|_| Arc::clone(&list));
    together(vec![
        Box::new(move || {
            seen("remove", || a.remove(1));
            seen("add", || a.add(3));
        }),
        Box::new(move || {
            seen("remove too", || b.remove(1));
            seen("add again", || b.add(1));
        }),
        Box::new(move || {
            seen("contains", || c.contains(1));
            seen("add twice", || c.add(3));
        }),
        Box::new(move || {
            seen("contains new", || d.contains(3));
            seen("remove last", || d.remove(2));
        }),
    ]);
    observe("list", &list.keys());
}

/// Points of which those inside a circle are counted.
fn pi() {
    let state = Arc::new((Points::new(), AtomicU32::new(0)));
    let sample = |state: Arc<(Points, AtomicU32)>| -> Task {
        Box::new(move || {
            for _ in 0..2 {
                atomic("sample", || {
                    if state.0.sample() {
                        state.1.fetch_add(1, SeqCst);
                    }
                });
            }
        })
    };
    together(vec![sample(Arc::clone(&state)), sample(Arc::clone(&state))]);
    observe("inside", &state.1.load(SeqCst));
}

/// One of a few keys is right. Who has found it tells the others, which then leave the rest out.
fn keysearch() {
    let state = Arc::new((AtomicUsize::new(0), AtomicUsize::new(usize::MAX)));
    let search = |state: Arc<(AtomicUsize, AtomicUsize)>| -> Task {
        Box::new(move || {
            // Both take two keys: which is whose is not part of the result.
            for _ in 0..2 {
                let key = state.0.fetch_add(1, SeqCst);
                atomic("try", || {
                    let found = state.1.load(SeqCst);
                    if found == usize::MAX && (key * 40_503) % 16 == 14 {
                        state.1.store(key, SeqCst);
                    }
                });
            }
        })
    };
    together(vec![search(Arc::clone(&state)), search(Arc::clone(&state))]);
    observe("key", &state.1.load(SeqCst));
}

/// Rows of a picture, each written by the thread that computes it.
fn mandelbrot() {
    const ROWS: usize = 4;
    let rows: Arc<Vec<AtomicU32>> = Arc::new((0..ROWS).map(|_| AtomicU32::new(0)).collect());
    let done = Arc::new(AtomicU32::new(0));
    let paint = |part: usize| -> Task {
        let (rows, done) = (Arc::clone(&rows), Arc::clone(&done));
        Box::new(move || {
            for row in (part..ROWS).step_by(2) {
                atomic("row", || {
                    let (mut x, mut y, mut count) = (0.0_f64, 0.0_f64, 0);
                    while x * x + y * y < 4.0 && count < 50 {
                        (x, y) = (x * x - y * y - 0.7, 2.0 * x * y + row as f64 * 0.1);
                        count += 1;
                    }
                    rows[row].store(count, SeqCst);
                    done.fetch_add(1, SeqCst);
                });
            }
        })
    };
    together(vec![paint(0), paint(1)]);
    let picture: Vec<u32> = rows.iter().map(|row| row.load(SeqCst)).collect();
    observe("picture", &picture);
    observe("rows", &done.load(SeqCst));
}

/// Each thread looks for the tree of least cost in its half.
fn phylogeny() {
    let best = Arc::new(Best::new());
    let evaluate = |trees: [(u32, u32); 2], name: &'static str| -> Task {
        let best = Arc::clone(&best);
        Box::new(move || {
            for (tree, cost) in trees {
                atomic(name, || best.evaluate(tree, cost));
            }
        })
    };
    together(vec![
        evaluate([(1, 9), (2, 6)], "left half"),
        evaluate([(3, 8), (4, 5)], "right half"),
    ]);
    observe("least cost", &best.cost());
    observe("tree of least cost", &best.tree());
}
