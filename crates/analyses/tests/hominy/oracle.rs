//! Disciplines by brute force over the happens-before graph, from the definitions.

use std::collections::BTreeSet;

use selvedge_model::{AtomicOp, Event, Mode, Op, ThreadId};

/// What an edge between threads is due to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Label {
    Fork,
    Join,
    Lock(u32),
    Atomic(u64),
    Barrier(u32),
    Semaphore(u32),
}

/// The events of an execution, and for each the edges that lead to it: from where, and why. Of edges that
/// could serve equally, later ones stand behind.
pub(crate) struct Graph<'a> {
    events: &'a [Event],
    into: Vec<Vec<(usize, Label)>>,
    /// For each event the event before of the same thread.
    before: Vec<Option<usize>>,
    /// For each event what its thread acquires there.
    acquires: Vec<Vec<Label>>,
}

impl<'a> Graph<'a> {
    pub(crate) fn new(events: &'a [Event]) -> Graph<'a> {
        let n = events.len();
        let mut graph = Graph {
            events,
            into: vec![vec![]; n],
            before: vec![None; n],
            acquires: vec![vec![]; n],
        };
        for j in 0..n {
            let earlier = |i: &usize| events[*i].thread == events[j].thread;
            graph.before[j] = (0..j).rev().find(earlier);
            graph.edges_of_locks_and_threads(j);
            graph.edges_of_atomics(j);
        }
        graph
    }

    fn edges_of_locks_and_threads(&mut self, j: usize) {
        let me = self.events[j].thread;
        for i in 0..j {
            let label = match (self.events[i].op, self.events[j].op) {
                (Op::Fork(child), _) if child == me && self.before[j].is_none() => Label::Fork,
                (_, Op::Join(child)) if self.events[i].thread == child => Label::Join,
                (Op::Release(a, m), Op::Acquire(b, w)) if a == b && m.excludes(w) => {
                    Label::Lock(a.0)
                }
                (Op::Post(a), Op::Wait(b)) if a == b => Label::Semaphore(a.0),
                (Op::Arrive(a, r), Op::Leave(b, s)) if (a, r) == (b, s) => Label::Barrier(a.0),
                _ => continue,
            };
            self.into[j].push((i, label));
        }
        // What the thread was started with, it had before it did anything.
        self.into[j].sort_by_key(|(_, label)| *label != Label::Fork);
        match self.events[j].op {
            Op::Acquire(lock, _) => self.acquires[j].push(Label::Lock(lock.0)),
            Op::Wait(semaphore) => self.acquires[j].push(Label::Semaphore(semaphore.0)),
            Op::Leave(barrier, _) => self.acquires[j].push(Label::Barrier(barrier.0)),
            _ => {}
        }
    }

    fn edges_of_atomics(&mut self, j: usize) {
        let me = self.events[j].thread;
        let acquires = |op: AtomicOp| match op {
            AtomicOp::Load(order) => order.acquires(),
            AtomicOp::Update(order) => order.acquires(),
            AtomicOp::Store(_) => false,
        };
        match self.events[j].op {
            Op::Atomic(access, op) if op.reads() && acquires(op) => {
                let label = Label::Atomic(access.addr);
                self.acquires[j].push(label);
                let heads = self.heads(j, access.addr);
                self.into[j].extend(heads.into_iter().map(|i| (i, label)));
            }
            Op::Fence(order) if order.acquires() => {
                // The relaxed loads of this thread since its last acquire fence.
                let fence = |i: &usize| {
                    let e = &self.events[*i];
                    e.thread == me && matches!(e.op, Op::Fence(o) if o.acquires())
                };
                let since = (0..j).rev().find(fence).map_or(0, |i| i + 1);
                for i in since..j {
                    let Op::Atomic(access, op) = self.events[i].op else { continue };
                    let heads = self.heads(i, access.addr);
                    let relaxed = op.reads() && !acquires(op);
                    if self.events[i].thread == me && relaxed && !heads.is_empty() {
                        let label = Label::Atomic(access.addr);
                        if !self.acquires[j].contains(&label) {
                            self.acquires[j].push(label);
                        }
                        self.into[j].extend(heads.into_iter().map(|h| (h, label)));
                    }
                }
            }
            _ => {}
        }
    }

    /// The releases that an atomic access at `j` reads from: release stores, or release fences before
    /// relaxed stores, of the release sequence.
    fn heads(&self, j: usize, addr: u64) -> Vec<usize> {
        let mut heads = Vec::new();
        for i in (0..j).rev() {
            let Op::Atomic(access, op) = self.events[i].op else { continue };
            if access.addr != addr || !op.writes() {
                continue;
            }
            let releases = match op {
                AtomicOp::Store(order) => order.releases(),
                AtomicOp::Update(order) => order.releases(),
                AtomicOp::Load(_) => false,
            };
            let fence = |f: &usize| {
                let e = &self.events[*f];
                e.thread == self.events[i].thread && matches!(e.op, Op::Fence(o) if o.releases())
            };
            heads.extend(if releases { Some(i) } else { (0..i).rev().find(fence) });
            if matches!(op, AtomicOp::Store(_)) {
                break;
            }
        }
        heads.reverse();
        heads
    }

    /// A way with fewest edges from `from` to `to`, if only edges of allowed labels may be used.
    pub(crate) fn way(
        &self,
        from: usize,
        to: usize,
        allowed: impl Fn(Label) -> bool,
    ) -> Option<Vec<Label>> {
        let mut ways: Vec<Option<Vec<Label>>> = vec![None; self.events.len()];
        ways[from] = Some(Vec::new());
        for j in from + 1..=to {
            let mut best = self.before[j].and_then(|i| ways[i].clone());
            for &(i, label) in self.into[j].iter().filter(|(_, label)| allowed(*label)) {
                if let Some(way) = &ways[i]
                    && best.as_ref().is_none_or(|best| way.len() < best.len())
                {
                    best = Some(way.iter().copied().chain([label]).collect());
                }
            }
            ways[j] = best;
        }
        ways[to].take()
    }

    pub(crate) fn ordered(&self, from: usize, to: usize) -> bool {
        self.way(from, to, |_| true).is_some()
    }

    fn alone(&self, from: &[usize], to: usize, label: Label) -> bool {
        from.iter().all(|&i| self.way(i, to, |l| l == label).is_some())
    }

    /// What orders all of `from` before `to`.
    fn orders(&self, from: &[usize], to: usize) -> Vec<Label> {
        for label in [Label::Fork, Label::Join] {
            if self.alone(from, to, label) {
                return vec![label];
            }
        }
        let mut at = Some(to);
        while let Some(j) = at {
            // Of what one fence acquires, the last.
            if let Some(&label) = self.acquires[j].iter().rev().find(|&&l| self.alone(from, to, l))
            {
                return vec![label];
            }
            at = self.before[j];
        }
        let mut together = Vec::new();
        for &i in from {
            for label in self.way(i, to, |_| true).expect("no race") {
                if !together.contains(&label) {
                    together.push(label);
                }
            }
        }
        together
    }

    fn is_access(&self, i: usize, addr: u64) -> Option<bool> {
        match self.events[i].op {
            Op::Read(access) if access.addr == addr => Some(false),
            Op::Write(access) if access.addr == addr => Some(true),
            _ => None,
        }
    }

    /// The plain accesses of a word, and whether they write.
    pub(crate) fn accesses(&self, addr: u64) -> Vec<(usize, bool)> {
        (0..self.events.len()).filter_map(|i| Some((i, self.is_access(i, addr)?))).collect()
    }

    /// Whether two events are accesses of one word that must be ordered.
    pub(crate) fn conflict(&self, i: usize, j: usize) -> bool {
        let access = |k: usize| match self.events[k].op {
            Op::Read(access) => Some((access.addr, false, false)),
            Op::Write(access) => Some((access.addr, true, false)),
            Op::Atomic(access, op) => Some((access.addr, op.writes(), true)),
            _ => None,
        };
        match (access(i), access(j)) {
            (Some((a, w, x)), Some((b, v, y))) => {
                a == b && (w || v) && !(x && y) && self.events[i].thread != self.events[j].thread
            }
            _ => false,
        }
    }

    /// The locks that guard an access.
    pub(crate) fn guards(&self, j: usize, write: bool) -> BTreeSet<u32> {
        let me = self.events[j].thread;
        let mut held: Vec<(u32, Mode)> = Vec::new();
        for event in self.events[..j].iter().filter(|e| e.thread == me) {
            match event.op {
                Op::Acquire(lock, mode) => held.push((lock.0, mode)),
                Op::Release(lock, mode) => {
                    let at = held.iter().rposition(|h| *h == (lock.0, mode)).expect("held");
                    held.remove(at);
                }
                _ => {}
            }
        }
        held.into_iter().filter(|(_, m)| !write || *m == Mode::Exclusive).map(|(l, _)| l).collect()
    }

    /// The accesses of other threads that an access must follow: the last write, then the last read of
    /// each thread since.
    pub(crate) fn must_follow(&self, accesses: &[(usize, bool)], k: usize) -> Vec<usize> {
        let (j, write) = accesses[k];
        let thread = |i: usize| self.events[i].thread;
        let last = accesses[..k].iter().rposition(|a| a.1);
        let mut from: Vec<usize> = last.map(|w| accesses[w].0).into_iter().collect();
        if write {
            let reads = &accesses[last.map_or(0, |w| w + 1)..k];
            let threads: BTreeSet<ThreadId> = reads.iter().map(|a| thread(a.0)).collect();
            let latest = |t: ThreadId| reads.iter().rev().find(|a| thread(a.0) == t).map(|a| a.0);
            from.extend(threads.into_iter().filter_map(latest));
        }
        from.retain(|&i| thread(i) != thread(j));
        from
    }

    /// The discipline of a word that was used without races, as text; `None` if it was not used.
    pub(crate) fn discipline(&self, addr: u64) -> Option<String> {
        let accesses = self.accesses(addr);
        if accesses.is_empty() {
            return None;
        }
        let mut steps: Vec<Open> = Vec::new();
        let mut k = 0;
        while k < accesses.len() {
            let thread = |a: &(usize, bool)| self.events[a.0].thread;
            let covered = |ok: &dyn Fn(&(usize, bool)) -> bool| {
                accesses[k..].iter().take_while(|a| ok(a)).count()
            };
            let local = covered(&|a| thread(a) == thread(&accesses[k]));
            let reads = covered(&|a| !a.1);
            let first = self.guards(accesses[k].0, accesses[k].1);
            let under = |lock: u32| covered(&|a| self.guards(a.0, a.1).contains(&lock));
            let most = first.iter().map(|&l| under(l)).max().unwrap_or(0).max(local).max(reads);
            let locks: BTreeSet<u32> = first.into_iter().filter(|&l| under(l) == most).collect();
            // The first access that must follow something of another thread from before the phase.
            let enters = (k..k + most).find_map(|m| {
                let mut from = self.must_follow(&accesses, m);
                from.retain(|&i| i < accesses[k].0);
                (!from.is_empty()).then_some((from, accesses[m].0))
            });
            if let Some((from, to)) = enters {
                let orders = |l: &&u32| self.alone(&from, to, Label::Lock(**l));
                let ordering: BTreeSet<u32> = locks.iter().filter(orders).copied().collect();
                if locks.is_empty() || ordering != locks {
                    let labels = self.orders(&from, to);
                    steps.extend(labels.into_iter().map(|l| Open::Transition(l, ordering.clone())));
                }
            }
            if !locks.is_empty() {
                steps.push(Open::Guarded(locks));
            } else if local == most {
                if !matches!(steps.last(), Some(Open::Transition(..))) {
                    steps.push(Open::ThreadLocal);
                }
            } else {
                steps.push(Open::ReadShared);
            }
            k += most;
        }
        Some(written(&steps))
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Open {
    ThreadLocal,
    ReadShared,
    Guarded(BTreeSet<u32>),
    Transition(Label, BTreeSet<u32>),
}

/// Rule 4 on the steps, then the first of several locks is chosen, then rule 4 again.
fn written(steps: &[Open]) -> String {
    let mut chosen: Vec<String> = Vec::new();
    let open: Vec<Open> = folded(steps)
        .into_iter()
        .flat_map(|block| if block.len() == 1 { block } else { [block.clone(), block].concat() })
        .collect();
    for (i, step) in open.iter().enumerate() {
        let text = match step {
            Open::ThreadLocal => "thread-local".to_owned(),
            Open::ReadShared => "read-shared".to_owned(),
            Open::Guarded(locks) => format!("guarded-by {}", locks.first().unwrap()),
            Open::Transition(label, unless) => {
                let phase = open[i..].iter().find(|s| !matches!(s, Open::Transition(..)));
                if let Some(Open::Guarded(locks)) = phase
                    && unless.contains(locks.first().unwrap())
                {
                    continue;
                }
                match label {
                    Label::Fork => "fork".to_owned(),
                    Label::Join => "join".to_owned(),
                    Label::Lock(n) => format!("via lock {n}"),
                    Label::Atomic(n) => format!("via atomic {n}"),
                    Label::Barrier(n) => format!("via barrier {n}"),
                    Label::Semaphore(n) => format!("via semaphore {n}"),
                }
            }
        };
        chosen.push(text);
    }
    let parts: Vec<String> = folded(&chosen)
        .into_iter()
        .map(|b| if b.len() == 1 { b[0].clone() } else { format!("({})+", b.join("; ")) })
        .collect();
    parts.join("; ")
}

/// Rule 4: blocks of one step stand once, longer ones repeat.
fn folded<T: Clone + PartialEq>(steps: &[T]) -> Vec<Vec<T>> {
    let mut steps = steps.to_vec();
    steps.dedup();
    let mut out: Vec<Vec<T>> = Vec::new();
    let mut i = 0;
    while i < steps.len() {
        // The end of the plain steps so far, with the next one, as a block twice.
        out.push(vec![steps[i].clone()]);
        i += 1;
        let plain = out.iter().rev().take_while(|b| b.len() == 1).count();
        let twice = |len: &usize| {
            let n = out.len();
            plain >= 2 * len && out[n - len..] == out[n - 2 * len..n - len]
        };
        if let Some(len) = (2..=4).find(twice) {
            let block: Vec<T> = out.split_off(out.len() - len).concat();
            out.truncate(out.len() - len);
            // All that goes on in the same way belongs to it, also a part at the very end.
            let mut next = i;
            while next < steps.len() && steps[next] == block[(next - i) % len] {
                next += 1;
            }
            let whole = (next - i) / len * len;
            out.push(block);
            i = if next == steps.len() { next } else { i + whole };
        }
    }
    out
}
