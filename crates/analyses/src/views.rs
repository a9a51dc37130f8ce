//! `views`: high-level data races by view consistency.
//!
//! A *view* is the set of bytes that a thread accesses in one region of a lock. Reports three lock
//! regions: one in which a thread uses some memory as a whole, and two of another thread that use parts
//! of the same memory, neither of the parts containing the other. The thread that splits may then see, or
//! leave behind, a state that the other thread takes for impossible, although every access is
//! protected. Nothing has to be annotated.
//!
//! Source: High-Level Data Races (Artho, Havelund and Biere, VVEIS 2003). V(t) is the set of the views of
//! thread t, M(t) those that no other view of t contains; t is *compatible* with a view m of another thread
//! if the sets { v ∩ m | v ∈ V(t) } that are not empty form a chain; consistency is compatibility of every
//! thread with the maximal views of all others. Of nested locks only the outermost counts (§3.2), which
//! avoids the spurious conflicts that §5 complains of.
//!
//! Deviations. (1) V and M are kept for each lock, and compared between regions of the same lock:
//! regions of different locks can overlap anyhow, which is a low-level race if it is one. (2) At least one
//! of the three regions writes to memory that it shares with the others: if all only read, nothing
//! can be seen half done. (3) Variables are bytes, so that a structure copied as a whole and its
//! fields used one by one are compared rightly. (4) Streamed: a view is compared when its region
//! ends, with all views of the other threads and not only with the maximal ones. What is inconsistent with
//! a view is inconsistent with every larger one, so that this adds nothing to the paper's verdicts, but
//! with (2) a smaller view may be the one that is written. V has to be kept as a whole in any case: a
//! thread with the views {x}, {y} and {x, y} is inconsistent with {x, y} of another. (5) Different
//! objects used by the same code make one report, where the paper's tool repeated itself: two findings
//! differ if they acquire locks at different places. (6) Atomic accesses are not part of a view; they need no lock.
//!
//! **Guarantee**: reports exactly the violations of view consistency among the views that are kept. It is a
//! guess about intentions, both ways (§3.3): a thread may hold a lock longer than it needs to, and code that
//! is split everywhere is consistent. May miss, and says so ([`Analysis::bound`]): views of more
//! than 1,024 pieces of memory, more than 64 views of one thread and lock, where the smallest goes first,
//! and more than 64 threads with different views of one lock, where the one that ended first goes first.
//!
//! Cost: O(log pieces) for an access under a lock; O(views) when a region ends whose view has been seen;
//! O(threads · views) comparisons of extents for a new view, and of sets where they overlap.

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_model::{
    Event, Finding, Findings, Kind, LockId, Object, Op, Place, Range, Role, SiteId, Status,
    Subject, Target, ThreadId,
};

use crate::entry::{Entry, Needs, Purpose};
use crate::{Analysis, Bound};

const NAME: &str = "views";
const MAX_PIECES: usize = 1024;
const MAX_VIEWS: usize = 64;
const MAX_THREADS: usize = 64;
const PAGE: u64 = 4096;

/// The analysis.
#[derive(Debug, Default)]
pub struct Views {
    threads: Vec<Thread>,
    locks: FxHashMap<LockId, Vec<OfThread>>,
    /// The locks that have views in a page of memory, so that freeing memory need not look at all.
    pages: FxHashMap<u64, Vec<LockId>>,
    reported: FxHashSet<(SiteId, SiteId, SiteId)>,
    dropped: u64,
}

#[derive(Debug, Default)]
struct Thread {
    /// Locks held, outermost first, and where each was acquired. A recursive lock appears repeatedly.
    held: Vec<(LockId, SiteId)>,
    /// What was accessed since the outermost one was acquired.
    touched: Pieces,
    written: Pieces,
    overflowed: bool,
    /// Locks of which there are views.
    used: Vec<LockId>,
}

/// The views of one thread and lock.
#[derive(Debug)]
struct OfThread {
    thread: ThreadId,
    ended: bool,
    views: Vec<View>,
}

#[derive(Clone, PartialEq, Debug)]
struct View {
    touched: Pieces,
    written: Pieces,
    site: SiteId,
}

impl Views {
    /// Nothing has happened yet.
    pub fn new() -> Views {
        Views::default()
    }

    fn thread(&mut self, id: ThreadId) -> &mut Thread {
        if id.index() >= self.threads.len() {
            self.threads.resize_with(id.index() + 1, Thread::default);
        }
        &mut self.threads[id.index()]
    }

    fn access(&mut self, id: ThreadId, range: Range, write: bool) {
        let thread = self.thread(id);
        if thread.held.is_empty() || thread.overflowed {
            return;
        }
        thread.touched.insert(range);
        if write {
            thread.written.insert(range);
        }
        thread.overflowed = thread.touched.0.len() > MAX_PIECES;
    }

    fn release(&mut self, id: ThreadId, lock: LockId, out: &mut Findings) {
        let thread = self.thread(id);
        let Some(at) = thread.held.iter().rposition(|(l, _)| *l == lock) else { return };
        let (_, site) = thread.held.remove(at);
        if at > 0 || thread.held.iter().any(|(l, _)| *l == lock) {
            return;
        }
        // If inner locks are still held, the next one is the outermost from now on.
        let mut view = View {
            touched: std::mem::take(&mut thread.touched),
            written: std::mem::take(&mut thread.written),
            site,
        };
        if std::mem::take(&mut thread.overflowed) {
            self.dropped += 1;
        } else if !view.touched.0.is_empty() {
            self.region_ended(id, lock, &view, out);
        }
        // The next region uses their memory.
        view.touched.0.clear();
        view.written.0.clear();
        let thread = self.thread(id);
        (thread.touched, thread.written) = (view.touched, view.written);
    }

    fn region_ended(&mut self, id: ThreadId, lock: LockId, view: &View, out: &mut Findings) {
        let of_lock = self.locks.entry(lock).or_default();
        let mine = match of_lock.iter().position(|o| o.thread == id) {
            Some(i) => i,
            None => {
                if of_lock.len() == MAX_THREADS {
                    self.dropped += 1;
                    of_lock.remove(of_lock.iter().position(|o| o.ended).unwrap_or(0));
                }
                of_lock.push(OfThread { thread: id, ended: false, views: Vec::new() });
                self.threads[id.index()].used.push(lock);
                of_lock.len() - 1
            }
        };
        let same = |v: &&mut View| v.site == view.site && v.touched == view.touched;
        if let Some(known) = of_lock[mine].views.iter_mut().find(same) {
            if known.written.contains_all(&view.written) {
                return;
            }
            known.written.join(&view.written);
        } else {
            self.dropped += u64::from(of_lock[mine].insert(view.clone()));
            for page in view.touched.0.iter().flat_map(|p| p.0 / PAGE..=(p.1 - 1) / PAGE) {
                let locks = self.pages.entry(page).or_default();
                if !locks.contains(&lock) {
                    locks.push(lock);
                }
            }
        }
        let of_lock = &self.locks[&lock];
        let mut found = Vec::new();
        for other in of_lock.iter().filter(|o| o.thread != id) {
            of_lock[mine].splits(view, other, &mut found);
            other.is_split_by(view, id, &mut found);
        }
        for split in found {
            let [a, b, whole] = split.sites();
            if self.reported.insert((a.min(b), a.max(b), whole)) {
                out.report(split.finding(lock));
            }
        }
    }

    fn ended(&mut self, id: ThreadId) {
        for lock in std::mem::take(&mut self.thread(id).used) {
            let Some(of_lock) = self.locks.get_mut(&lock) else { continue };
            let Some(mine) = of_lock.iter().position(|o| o.thread == id) else { continue };
            of_lock[mine].ended = true;
            let twin = |o: &OfThread| o.thread != id && o.ended && o.views == of_lock[mine].views;
            // A thread that did the same is compared with all that is to come.
            if of_lock.iter().any(twin) {
                of_lock.remove(mine);
            }
        }
    }
}

impl Analysis for Views {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        match event.op {
            Op::Read(access) => self.access(event.thread, access.range(), false),
            Op::Write(access) => self.access(event.thread, access.range(), true),
            Op::Acquire(lock, _) => self.thread(event.thread).held.push((lock, event.site)),
            Op::Release(lock, _) => self.release(event.thread, lock, out),
            Op::Join(child) => self.ended(child),
            Op::End => self.ended(event.thread),
            Op::Free(range) | Op::Alloc(range) => self.forget(range),
            Op::Atomic(..)
            | Op::Fence(_)
            | Op::Fork(_)
            | Op::Begin
            | rendezvous!()
            | conditions!()
            | regions!() => {}
        }
    }

    fn restart(&mut self) {
        self.threads.clear();
        self.locks.clear();
        self.pages.clear();
        self.reported.clear();
        self.dropped = 0;
    }

    fn bound(&self) -> Option<Bound> {
        (self.dropped > 0).then_some(Bound {
            what: "views of one thread and lock are remembered",
            limit: MAX_VIEWS as u64,
            exceeded: self.dropped,
        })
    }
}

impl Views {
    /// Memory that is freed and used again is other memory.
    fn forget(&mut self, range: Range) {
        for thread in &mut self.threads {
            thread.touched.remove(range);
            thread.written.remove(range);
        }
        if range.len == 0 {
            return;
        }
        let numbers = range.start / PAGE..=(range.end() - 1) / PAGE;
        let mut locks: Vec<LockId> = if numbers.end() - numbers.start() < self.pages.len() as u64 {
            numbers.flat_map(|n| self.pages.get(&n).into_iter().flatten()).copied().collect()
        } else {
            let inside = self.pages.iter().filter(|(n, _)| numbers.contains(n));
            inside.flat_map(|(_, locks)| locks).copied().collect()
        };
        locks.sort_unstable();
        locks.dedup();
        for lock in locks {
            for of_thread in self.locks.get_mut(&lock).into_iter().flatten() {
                for view in &mut of_thread.views {
                    view.touched.remove(range);
                    view.written.remove(range);
                }
                of_thread.views.retain(|v| !v.touched.0.is_empty());
            }
        }
    }
}

impl OfThread {
    /// Adds a view; true if there were too many and a smallest one had to go.
    fn insert(&mut self, view: View) -> bool {
        self.views.push(view);
        if self.views.len() <= MAX_VIEWS {
            return false;
        }
        let size = |v: &View| v.touched.0.iter().map(|(start, end)| end - start).sum::<u64>();
        let smallest = (0..self.views.len()).min_by_key(|&i| size(&self.views[i]));
        self.views.remove(smallest.expect("there are some"));
        true
    }

    /// Whether `view`, by this thread, and another one of its views split a view of `other`.
    fn splits(&self, view: &View, other: &OfThread, found: &mut Vec<Split>) {
        for whole in other.views.iter().filter(|w| w.touched.overlaps(&view.touched)) {
            let parts = self.views.iter().filter(|v| Split::is_one(v, view, whole));
            found.extend(parts.map(|v| Split::new(v, view, self.thread, whole, other.thread)));
        }
    }

    /// Whether two views of this thread split `whole`, by thread `suffers`.
    fn is_split_by(&self, whole: &View, suffers: ThreadId, found: &mut Vec<Split>) {
        let shared = |v: &&View| v.touched.overlaps(&whole.touched);
        let parts: Vec<&View> = self.views.iter().filter(shared).collect();
        for (i, second) in parts.iter().enumerate() {
            let first = parts[..i].iter().filter(|first| Split::is_one(first, second, whole));
            found.extend(first.map(|f| Split::new(f, second, self.thread, whole, suffers)));
        }
    }
}

/// Two lock regions of a thread that use parts of what another thread uses as a whole.
#[derive(Debug)]
struct Split {
    parts: [SiteId; 2],
    splits: ThreadId,
    whole: SiteId,
    suffers: ThreadId,
}

impl Split {
    fn new(a: &View, b: &View, splits: ThreadId, whole: &View, suffers: ThreadId) -> Split {
        Split { parts: [a.site, b.site], splits, whole: whole.site, suffers }
    }

    fn is_one(a: &View, b: &View, whole: &View) -> bool {
        if !a.touched.overlaps(&whole.touched) {
            return false;
        }
        let of_a = a.touched.common(&whole.touched);
        let of_b = b.touched.common(&whole.touched);
        if of_a.contains_all(&of_b) || of_b.contains_all(&of_a) {
            return false;
        }
        let mut parts = of_a;
        parts.join(&of_b);
        [a, b, whole].iter().any(|v| v.written.overlaps(&parts))
    }

    fn sites(&self) -> [SiteId; 3] {
        [self.parts[0], self.parts[1], self.whole]
    }

    fn finding(&self, lock: LockId) -> Finding {
        let place = |thread, site| Place { thread, site, role: Role::Acquire(lock), held: vec![] };
        let [first, second] = self.parts;
        Finding {
            kind: Kind::HighLevelRace,
            status: Status::Predicted,
            verdict: None,
            analyses: vec![NAME],
            subject: Subject::Locks(vec![lock]),
            places: vec![
                place(self.splits, first),
                place(self.suffers, self.whole),
                place(self.splits, second),
            ],
            target: Some(Target::Split {
                region: None,
                first,
                second,
                between: Some(self.whole),
                object: Object::Lock(lock),
            }),
            occurrences: 1,
        }
    }
}

/// A set of bytes as pieces of memory.
// invariant: ascending, with gaps between pieces, none empty.
#[derive(Clone, Default, PartialEq, Debug)]
struct Pieces(Vec<(u64, u64)>);

impl Pieces {
    fn insert(&mut self, range: Range) {
        let (mut start, mut end) = (range.start, range.end());
        if start == end {
            return;
        }
        let from = self.0.partition_point(|p| p.1 < start);
        let to = self.0.partition_point(|p| p.0 <= end);
        if let Some(first) = self.0[from..to].first() {
            if to - from == 1 && first.0 <= start && end <= first.1 {
                return;
            }
            start = start.min(first.0);
            end = end.max(self.0[to - 1].1);
        }
        self.0.splice(from..to, [(start, end)]);
    }

    fn remove(&mut self, range: Range) {
        let (start, end) = (range.start, range.end());
        let from = self.0.partition_point(|p| p.1 <= start);
        let to = self.0.partition_point(|p| p.0 < end);
        if from < to {
            let before = (self.0[from].0, start);
            let after = (end, self.0[to - 1].1);
            self.0.splice(from..to, [before, after].into_iter().filter(|p| p.0 < p.1));
        }
    }

    fn join(&mut self, other: &Pieces) {
        for &(start, end) in &other.0 {
            self.insert(Range { start, len: end - start });
        }
    }

    fn common(&self, other: &Pieces) -> Pieces {
        let mut result = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            let (start, end) = (a.0.max(b.0), a.1.min(b.1));
            if start < end {
                result.push((start, end));
            }
            if a.1 < b.1 { i += 1 } else { j += 1 }
        }
        Pieces(result)
    }

    /// From the first to the last byte.
    fn extent(&self) -> Option<(u64, u64)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }

    fn overlaps(&self, other: &Pieces) -> bool {
        match (self.extent(), other.extent()) {
            (Some(a), Some(b)) => a.0 < b.1 && b.0 < a.1 && !self.common(other).0.is_empty(),
            _ => false,
        }
    }

    fn contains_all(&self, other: &Pieces) -> bool {
        match (self.extent(), other.extent()) {
            (_, None) => true,
            _ if self == other => true,
            (Some(a), Some(b)) => a.0 <= b.0 && b.1 <= a.1 && self.common(other) == *other,
            (None, Some(_)) => false,
        }
    }
}

/// View consistency.
pub const ENTRY: Entry = Entry {
    default_in: &[Purpose::Test],
    needs: Needs::LockedAccesses,
    ..Entry::of(
        NAME,
        "variables that belong together but are locked separately (view consistency)",
        || Box::new(Views::new()),
    )
};
