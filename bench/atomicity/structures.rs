//! Data structures of others, one scenario at a time: `structures NAME [--weak OPERATIONS] BEFORE THREAD…`.
//!
//! A list of operations is one argument, such as `i1=2 r1 30p7`: insert key 1 with value 2, remove key 1, push 7 thirty
//! times. Every operation is an atomic block, its result is observed under its name unless it is `weak`, and so is what is
//! left at the end.

mod operations;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use operations::{Op, ops};

trait Structure: Send + Sync {
    fn apply(&self, op: Op) -> String;
    /// What is left, when no other thread uses it.
    fn end(&self) -> String;
}

/// A queue, by functions that push and pop.
macro_rules! queue {
    ($name:ident, $type:ty, |$q:ident, $v:ident| $push:expr, $pop:expr, $len:expr, $full:expr) => {
        struct $name($type);

        impl Structure for $name {
            fn apply(&self, op: Op) -> String {
                let $q = &self.0;
                match op {
                    Op::Push($v) => format!("{:?}", $push),
                    Op::Pop => format!("{:?}", $pop),
                    Op::Len => format!("{:?}", $len),
                    Op::IsFull => format!("{:?}", $full),
                    _ => panic!("a queue has no `{}`", op.name()),
                }
            }

            fn end(&self) -> String {
                let $q = &self.0;
                let mut left = Vec::new();
                while let Some(value) = $pop {
                    left.push(value);
                }
                format!("{left:?}")
            }
        }
    };
}

queue!(Seg, crossbeam_queue::SegQueue<u32>, |q, v| q.push(v), q.pop(), q.len(), q.is_empty());
queue!(OldSeg, crossbeam_queue_0_2::SegQueue<u32>, |q, v| q.push(v), q.pop().ok(), q.len(), q.is_empty());
queue!(Array, crossbeam_queue::ArrayQueue<u32>, |q, v| q.push(v), q.pop(), q.len(), q.is_full());
queue!(
    Concurrent,
    concurrent_queue::ConcurrentQueue<u32>,
    |q, v| q.push(v).is_ok(),
    q.pop().ok(),
    q.len(),
    q.is_full()
);
queue!(Heapless, heapless::mpmc::Queue<u32, 2>, |q, v| q.enqueue(v), q.dequeue(), "-", "-");
queue!(HeaplessMended, heapless_mended::mpmc::Queue<u32, 2>, |q, v| q.enqueue(v), q.dequeue(), "-", "-");

/// A map, by what its operations are called.
macro_rules! map {
    ($name:ident, $type:ty, |$m:ident, $k:ident, $v:ident| $insert:expr, $get:expr, $remove:expr, $len:expr, $content:expr, $first:expr) => {
        struct $name($type);

        impl Structure for $name {
            fn apply(&self, op: Op) -> String {
                let $m = &self.0;
                match op {
                    Op::Insert($k, $v) => format!("{:?}", $insert),
                    Op::Get($k) => format!("{:?}", $get),
                    Op::Remove($k) => format!("{:?}", $remove),
                    Op::Len => format!("{:?}", $len),
                    Op::PopFirst => format!("{:?}", $first),
                    Op::Content => self.end(),
                    Op::Push(_) | Op::Pop | Op::IsFull => panic!("a map has no `{}`", op.name()),
                }
            }

            fn end(&self) -> String {
                let $m = &self.0;
                let mut entries: Vec<(u32, u32)> = $content;
                entries.sort_unstable();
                format!("{entries:?}")
            }
        }
    };
}

macro_rules! skip_map {
    ($name:ident, $type:ty) => {
        map!(
            $name,
            $type,
            |m, k, v| *m.insert(k, v).value(),
            m.get(&k).map(|e| *e.value()),
            m.remove(&k).map(|e| *e.value()),
            m.len(),
            m.iter().map(|e| (*e.key(), *e.value())).collect(),
            m.pop_front().map(|e| *e.key())
        );
    };
}

skip_map!(Skip, crossbeam_skiplist::SkipMap<u32, u32>);
skip_map!(SkipMended, crossbeam_skiplist_mended::SkipMap<u32, u32>);
map!(
    Dash,
    dashmap::DashMap<u32, u32>,
    |m, k, v| m.insert(k, v),
    m.get(&k).map(|e| *e),
    m.remove(&k),
    m.len(),
    m.iter().map(|e| (*e.key(), *e.value())).collect(),
    "-"
);
map!(
    SccMap,
    scc::HashMap<u32, u32>,
    |m, k, v| m.upsert_sync(k, v),
    m.read_sync(&k, |_, v| *v),
    m.remove_sync(&k),
    m.len(),
    {
        let mut all = Vec::new();
        m.iter_sync(|k, v| {
            all.push((*k, *v));
            true
        });
        all
    },
    "-"
);
map!(
    SccTree,
    scc::TreeIndex<u32, u32>,
    |m, k, v| m.insert_sync(k, v).is_ok(),
    m.peek_with(&k, |_, v| *v),
    m.remove_sync(&k),
    m.len(),
    m.iter(&scc::Guard::new()).map(|(k, v)| (*k, *v)).collect(),
    "-"
);
map!(
    Flurry,
    flurry::HashMap<u32, u32>,
    |m, k, v| m.pin().insert(k, v).copied(),
    m.pin().get(&k).copied(),
    m.pin().remove(&k).copied(),
    m.len(),
    m.pin().iter().map(|(k, v)| (*k, *v)).collect(),
    "-"
);

fn made(name: &str) -> Arc<dyn Structure> {
    match name {
        "segqueue" => Arc::new(Seg(crossbeam_queue::SegQueue::new())),
        "segqueue-0.2.1" => Arc::new(OldSeg(crossbeam_queue_0_2::SegQueue::new())),
        "arrayqueue" => Arc::new(Array(crossbeam_queue::ArrayQueue::new(2))),
        "concurrent-queue" => Arc::new(Concurrent(concurrent_queue::ConcurrentQueue::unbounded())),
        "concurrent-queue-bounded" => {
            Arc::new(Concurrent(concurrent_queue::ConcurrentQueue::bounded(2)))
        }
        "heapless" => Arc::new(Heapless(heapless::mpmc::Queue::default())),
        "heapless-mended" => Arc::new(HeaplessMended(heapless_mended::mpmc::Queue::default())),
        "skiplist" => Arc::new(Skip(crossbeam_skiplist::SkipMap::new())),
        "skiplist-mended" => Arc::new(SkipMended(crossbeam_skiplist_mended::SkipMap::new())),
        "dashmap" => Arc::new(Dash(dashmap::DashMap::with_shard_amount(2))),
        "scc" => Arc::new(SccMap(scc::HashMap::new())),
        "scc-tree" => Arc::new(SccTree(scc::TreeIndex::new())),
        "flurry" => Arc::new(Flurry(flurry::HashMap::new())),
        _ => panic!("no structure is called `{name}`"),
    }
}

fn run(structure: &dyn Structure, ops: &[Op], weak: &str) {
    for &op in ops {
        let result = selvedge::atomic(op.name(), || {
            // A panic is a result like others.
            catch_unwind(AssertUnwindSafe(|| structure.apply(op))).unwrap_or_else(|_| "panic".into())
        });
        if weak.split(',').all(|name| name != op.name()) {
            selvedge::observe(op.name(), &result);
        }
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, mut rest) = args.split_first().expect("a structure");
    let mut weak = String::new();
    if let [option, names, others @ ..] = rest
        && option == "--weak"
    {
        weak.clone_from(names);
        rest = others;
    }
    let (before, threads) = rest.split_first().expect("operations to begin with");
    let structure = made(name);
    ops(before).into_iter().for_each(|op| drop(structure.apply(op)));
    let start = |list: &String| {
        let (structure, ops, weak) = (Arc::clone(&structure), ops(list), weak.clone());
        std::thread::spawn(move || run(&*structure, &ops, &weak))
    };
    let threads: Vec<_> = threads.iter().map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no operation ends its thread"));
    selvedge::observe("end", &structure.end());
}
