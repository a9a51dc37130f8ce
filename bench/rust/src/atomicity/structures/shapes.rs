//! The structures, in the types of whichever library the parent module names.

use std::sync::OnceLock;

use super::super::Hint;
use super::distinguished;
use super::sync::Mutex;
use super::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};

const NONE: usize = usize::MAX;
const ROOM: usize = 32;

fn effect<R>(hint: Hint, f: impl FnOnce() -> R) -> R {
    match hint {
        Hint::Given => distinguished(f),
        Hint::Withheld => f(),
    }
}

/// A linked queue with lazy deletion, as `ConcurrentLinkedQueue` of JDK 6; a value of 0 is deleted.
pub(crate) struct Queue {
    values: Vec<AtomicU32>,
    next: Vec<AtomicUsize>,
    head: AtomicUsize,
    tail: AtomicUsize,
    used: AtomicUsize,
    hint: Hint,
}

impl Queue {
    pub(crate) fn new(values: &[u32], hint: Hint) -> Queue {
        let queue = Queue {
            values: (0..ROOM).map(|_| AtomicU32::new(0)).collect(),
            next: (0..ROOM).map(|_| AtomicUsize::new(NONE)).collect(),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            used: AtomicUsize::new(1),
            hint,
        };
        values.iter().for_each(|&value| queue.add(value));
        queue
    }

    pub(crate) fn add(&self, value: u32) {
        let node = self.used.fetch_add(1, SeqCst);
        self.values[node].store(value, SeqCst);
        let mut last = self.tail.load(SeqCst);
        loop {
            let link = || self.next[last].compare_exchange(NONE, node, SeqCst, SeqCst);
            match effect(self.hint, link) {
                Ok(_) => break,
                Err(next) => last = next,
            }
        }
        self.tail.store(node, SeqCst);
    }

    /// The first node with a value, after unlinking those without.
    fn first(&self) -> Option<usize> {
        loop {
            let head = self.head.load(SeqCst);
            let first = effect(self.hint, || self.next[head].load(SeqCst));
            if first == NONE {
                return None;
            }
            if effect(self.hint, || self.values[first].load(SeqCst)) != 0 {
                return Some(first);
            }
            let _ = self.head.compare_exchange(head, first, SeqCst, SeqCst);
        }
    }

    pub(crate) fn remove(&self, value: u32) -> bool {
        let mut node = self.first();
        while let Some(at) = node {
            let found = || self.values[at].load(SeqCst) == value;
            let delete = || self.values[at].compare_exchange(value, 0, SeqCst, SeqCst);
            if effect(self.hint, found) && effect(self.hint, delete).is_ok() {
                return true;
            }
            let next = effect(self.hint, || self.next[at].load(SeqCst));
            node = Some(next).filter(|&n| n != NONE);
        }
        false
    }

    pub(crate) fn to_vec(&self) -> Vec<u32> {
        let mut values = Vec::new();
        let mut node = self.first();
        while let Some(at) = node {
            let value = effect(self.hint, || self.values[at].load(SeqCst));
            values.extend(Some(value).filter(|&v| v != 0));
            let next = effect(self.hint, || self.next[at].load(SeqCst));
            node = Some(next).filter(|&n| n != NONE);
        }
        values
    }

    pub(crate) fn size(&self) -> usize {
        self.to_vec().len()
    }

    /// As JDK 6 has it: a `remove` may come between.
    pub(crate) fn poll(&self) -> Option<u32> {
        loop {
            let head = self.head.load(SeqCst);
            let first = self.next[head].load(SeqCst);
            if first == NONE {
                return None;
            }
            if self.head.compare_exchange(head, first, SeqCst, SeqCst).is_ok() {
                let value = self.values[first].load(SeqCst);
                if value != 0 {
                    self.values[first].store(0, SeqCst);
                    return Some(value);
                }
            }
        }
    }
}

/// A sorted list whose nodes are marked before they are unlinked, with values for keys. The lowest bit of a
/// link is the mark of its node.
pub(crate) struct Sorted {
    keys: Vec<AtomicU32>,
    values: Vec<AtomicU32>,
    next: Vec<AtomicUsize>,
    used: AtomicUsize,
    /// Two threads can mark a node, as in the first print of Herlihy and Shavit's book.
    marks_twice: bool,
}

const END: usize = ROOM - 1;

impl Sorted {
    pub(crate) fn new(keys: &[u32], marks_twice: bool) -> Sorted {
        let list = Sorted {
            keys: (0..ROOM).map(|_| AtomicU32::new(0)).collect(),
            values: (0..ROOM).map(|_| AtomicU32::new(0)).collect(),
            next: (0..ROOM).map(|_| AtomicUsize::new(END << 1)).collect(),
            used: AtomicUsize::new(1),
            marks_twice,
        };
        for &key in keys {
            list.insert(key, key);
        }
        list
    }

    /// The last node before the key and the first one from it on, without marked ones between.
    fn find(&self, key: u32) -> (usize, usize) {
        'again: loop {
            let mut before = 0;
            let mut at = self.next[0].load(SeqCst) >> 1;
            loop {
                if at == END {
                    return (before, at);
                }
                let next = self.next[at].load(SeqCst);
                if next & 1 == 1 {
                    let unlink =
                        self.next[before].compare_exchange(at << 1, next & !1, SeqCst, SeqCst);
                    if unlink.is_err() {
                        continue 'again;
                    }
                    at = next >> 1;
                    continue;
                }
                if self.keys[at].load(SeqCst) >= key {
                    return (before, at);
                }
                (before, at) = (at, next >> 1);
            }
        }
    }

    fn is(&self, at: usize, key: u32) -> bool {
        at != END && self.keys[at].load(SeqCst) == key
    }

    /// Whether the key was not there.
    pub(crate) fn insert(&self, key: u32, value: u32) -> bool {
        let mut made = None;
        loop {
            let (before, at) = self.find(key);
            if self.is(at, key) {
                return false;
            }
            let node = *made.get_or_insert_with(|| self.used.fetch_add(1, SeqCst));
            self.keys[node].store(key, SeqCst);
            self.values[node].store(value, SeqCst);
            self.next[node].store(at << 1, SeqCst);
            let link = &self.next[before];
            if link.compare_exchange(at << 1, node << 1, SeqCst, SeqCst).is_ok() {
                return true;
            }
        }
    }

    /// Whether it was there.
    pub(crate) fn remove(&self, key: u32) -> bool {
        loop {
            let (before, at) = self.find(key);
            if !self.is(at, key) {
                return false;
            }
            let next = self.next[at].load(SeqCst) & !1;
            let marked = if self.marks_twice {
                self.next[at].fetch_or(1, SeqCst);
                true
            } else {
                self.next[at].compare_exchange(next, next | 1, SeqCst, SeqCst).is_ok()
            };
            if marked {
                let _ = self.next[before].compare_exchange(at << 1, next, SeqCst, SeqCst);
                return true;
            }
        }
    }

    pub(crate) fn contains(&self, key: u32) -> bool {
        let mut at = self.next[0].load(SeqCst) >> 1;
        while at != END && self.keys[at].load(SeqCst) < key {
            at = self.next[at].load(SeqCst) >> 1;
        }
        self.is(at, key) && self.next[at].load(SeqCst) & 1 == 0
    }

    pub(crate) fn entries(&self) -> Vec<(u32, u32)> {
        let mut entries = Vec::new();
        let mut at = self.next[0].load(SeqCst) >> 1;
        while at != END {
            let next = self.next[at].load(SeqCst);
            if next & 1 == 0 {
                entries.push((self.keys[at].load(SeqCst), self.values[at].load(SeqCst)));
            }
            at = next >> 1;
        }
        entries
    }
}

/// An array that is copied when it is changed. Readers load which one is the current one.
pub(crate) struct CopyOnWrite {
    lock: Mutex<()>,
    arrays: Vec<OnceLock<Vec<u32>>>,
    current: AtomicUsize,
    hint: Hint,
}

impl CopyOnWrite {
    pub(crate) fn new(values: &[u32], hint: Hint) -> CopyOnWrite {
        let arrays: Vec<_> = (0..ROOM).map(|_| OnceLock::new()).collect();
        let _ = arrays[0].set(values.to_vec());
        CopyOnWrite { lock: Mutex::new(()), arrays, current: AtomicUsize::new(0), hint }
    }

    pub(crate) fn snapshot(&self) -> &[u32] {
        let current = effect(self.hint, || self.current.load(SeqCst));
        self.arrays[current].get().expect("it was made before it became current")
    }

    fn publish(&self, values: Vec<u32>) {
        let next = self.current.load(SeqCst) + 1;
        let _ = self.arrays[next].set(values);
        effect(self.hint, || self.current.store(next, SeqCst));
    }

    pub(crate) fn add(&self, value: u32) {
        let _guard = self.lock.lock().unwrap();
        let mut values = self.snapshot().to_vec();
        values.push(value);
        self.publish(values);
    }

    /// For a set.
    pub(crate) fn add_if_absent(&self, value: u32) -> bool {
        let _guard = self.lock.lock().unwrap();
        let mut values = self.snapshot().to_vec();
        if values.contains(&value) {
            return false;
        }
        values.push(value);
        self.publish(values);
        true
    }

    pub(crate) fn remove(&self, value: u32) -> bool {
        let _guard = self.lock.lock().unwrap();
        let mut values = self.snapshot().to_vec();
        let Some(at) = values.iter().position(|&v| v == value) else { return false };
        values.remove(at);
        self.publish(values);
        true
    }
}

/// A sorted list with a lock in every node; deletion marks first. Readers take no lock.
pub(crate) struct LazyList {
    keys: Vec<AtomicU32>,
    next: Vec<AtomicUsize>,
    marked: Vec<AtomicBool>,
    locks: Vec<Mutex<()>>,
    used: AtomicUsize,
    hint: Hint,
}

impl LazyList {
    pub(crate) fn new(keys: &[u32], hint: Hint) -> LazyList {
        let list = LazyList {
            keys: (0..ROOM).map(|_| AtomicU32::new(0)).collect(),
            next: (0..ROOM).map(|_| AtomicUsize::new(END)).collect(),
            marked: (0..ROOM).map(|_| AtomicBool::new(false)).collect(),
            locks: (0..ROOM).map(|_| Mutex::new(())).collect(),
            used: AtomicUsize::new(1),
            hint,
        };
        for &key in keys {
            list.add(key);
        }
        list
    }

    fn find(&self, key: u32) -> (usize, usize) {
        let mut before = 0;
        let mut at = effect(self.hint, || self.next[0].load(SeqCst));
        while at != END && self.keys[at].load(SeqCst) < key {
            before = at;
            at = effect(self.hint, || self.next[at].load(SeqCst));
        }
        (before, at)
    }

    fn is_linked(&self, before: usize, at: usize) -> bool {
        let marked = |node: usize| self.marked[node].load(SeqCst);
        !marked(before) && !marked(at) && self.next[before].load(SeqCst) == at
    }

    fn is(&self, at: usize, key: u32) -> bool {
        at != END && self.keys[at].load(SeqCst) == key
    }

    pub(crate) fn add(&self, key: u32) -> bool {
        loop {
            let (before, at) = self.find(key);
            let _guards = (self.locks[before].lock(), self.locks[at].lock());
            if !self.is_linked(before, at) {
                continue;
            }
            if self.is(at, key) {
                return false;
            }
            let node = self.used.fetch_add(1, SeqCst);
            self.keys[node].store(key, SeqCst);
            self.next[node].store(at, SeqCst);
            effect(self.hint, || self.next[before].store(node, SeqCst));
            return true;
        }
    }

    pub(crate) fn remove(&self, key: u32) -> bool {
        loop {
            let (before, at) = self.find(key);
            let _guards = (self.locks[before].lock(), self.locks[at].lock());
            if !self.is_linked(before, at) {
                continue;
            }
            if !self.is(at, key) {
                return false;
            }
            effect(self.hint, || self.marked[at].store(true, SeqCst));
            let next = self.next[at].load(SeqCst);
            self.next[before].store(next, SeqCst);
            return true;
        }
    }

    pub(crate) fn contains(&self, key: u32) -> bool {
        let (_, at) = self.find(key);
        self.is(at, key) && !effect(self.hint, || self.marked[at].load(SeqCst))
    }

    pub(crate) fn keys(&self) -> Vec<u32> {
        let mut keys = Vec::new();
        let mut at = self.next[0].load(SeqCst);
        while at != END {
            if !self.marked[at].load(SeqCst) {
                keys.push(self.keys[at].load(SeqCst));
            }
            at = self.next[at].load(SeqCst);
        }
        keys
    }
}

/// A generator of points, by two calls of one generator of numbers, which another thread may come between. With this seed the
/// points of every such execution lie otherwise.
pub(crate) struct Points {
    seed: Mutex<u32>,
}

impl Points {
    pub(crate) fn new() -> Points {
        Points { seed: Mutex::new(8) }
    }

    fn next(&self) -> f64 {
        let mut seed = self.seed.lock().unwrap();
        *seed = seed.wrapping_mul(75).wrapping_add(74) % 65_537;
        f64::from(*seed) / 65_537.0
    }

    /// Whether the next point lies inside the circle.
    pub(crate) fn sample(&self) -> bool {
        let (x, y) = (self.next(), self.next());
        x * x + y * y < 1.0
    }
}

/// The tree of least cost. The cost is updated under a lock, the tree is not.
pub(crate) struct Best {
    cost: Mutex<u32>,
    tree: AtomicU32,
}

impl Best {
    pub(crate) fn new() -> Best {
        Best { cost: Mutex::new(u32::MAX), tree: AtomicU32::new(0) }
    }

    pub(crate) fn evaluate(&self, tree: u32, cost: u32) {
        let least = {
            let mut least = self.cost.lock().unwrap();
            *least = cost.min(*least);
            *least
        };
        if cost == least {
            self.tree.store(tree, SeqCst);
        }
    }

    pub(crate) fn cost(&self) -> u32 {
        *self.cost.lock().unwrap()
    }

    pub(crate) fn tree(&self) -> u32 {
        self.tree.load(SeqCst)
    }
}
