//! How a rank synchronizes with others: what it logs, and what it completes by that.

use super::{ATOMICS, Gather, Lock, Receive};
use crate::order::{Event, Key};
use crate::rules::{Completion, Side};
use crate::segments::Now;

impl Gather {
    /// `MPI_Win_post`: this rank exposes its part of the window to others.
    pub fn post(&mut self, now: Now<'_>, window: u64, origins: &[u32]) {
        let from = self.rank;
        let gives = origins.iter().map(|&to| {
            let k = self.count(Key::Post { window, from, to, k: 0 });
            Key::Post { window, from, to, k }
        });
        let gives = gives.collect();
        self.event(now, Vec::new(), gives);
    }

    /// `MPI_Win_start`: what follows comes after the targets have exposed their parts.
    pub fn start(&mut self, now: Now<'_>, window: u64, targets: &[u32]) {
        let to = self.rank;
        self.epochs.start(window, targets);
        let takes = targets.iter().map(|&from| {
            let k = self.count(Key::Post { window, from, to, k: 0 });
            Key::Post { window, from, to, k }
        });
        let takes = takes.collect();
        self.event(now, takes, Vec::new());
    }

    /// `MPI_Win_complete`: the access epoch ends for this rank.
    pub fn complete_epoch(&mut self, now: Now<'_>, window: u64, targets: &[u32]) {
        let (from, here) = (self.rank, self.segments.current(now));
        self.epochs.complete(window);
        self.serial += 1;
        let mut gives = Vec::new();
        for &to in targets {
            let k = self.count(Key::Complete { window, from, to, k: 0 });
            self.end_all((window, to), Completion::Complete, here, k);
            gives.push(Key::Complete { window, from, to, k });
        }
        self.event(now, Vec::new(), gives);
    }

    /// `MPI_Win_wait`: the access epochs of the origins have ended, here as well.
    pub fn wait_epoch(&mut self, now: Now<'_>, window: u64, origins: &[u32]) {
        let (to, here) = (self.rank, self.segments.current(now));
        let mut takes = Vec::new();
        for &from in origins {
            let k = self.count(Key::Complete { window, from, to, k: 0 });
            self.waited.insert((window, from, k), here);
            takes.push(Key::Complete { window, from, to, k });
        }
        self.event(now, takes, Vec::new());
    }

    /// A request is complete; of a receive, with its source and tag.
    pub fn request_done(&mut self, now: Now<'_>, request: u64, from: u32, tag: i32) {
        let Some(done) = self.requests.remove(&request) else { return };
        let here = self.segments.current(now);
        self.serial += 1;
        for id in done.accesses {
            self.end(id, Completion::Request, here, 0);
        }
        let mut takes = done.takes;
        takes.extend(done.receive.map(|receive| self.received_key(receive, from, tag)));
        if !takes.is_empty() {
            self.event(now, takes, Vec::new());
        }
        if let Some(barrier) = done.barrier {
            self.segments.leave(now, crate::segments::SPLIT, barrier);
        }
    }

    /// A request is given up: when its call is complete cannot be seen, so it counts as complete.
    pub fn request_freed(&mut self, now: Now<'_>, request: u64) {
        let here = self.segments.current(now);
        for id in self.requests.remove(&request).unwrap_or_default().accesses {
            self.end(id, Completion::Request, here, 0);
        }
    }

    /// The communicator of the receive that a request stands for.
    pub fn request_comm(&self, request: u64) -> Option<u64> {
        self.requests.get(&request)?.receive.map(|r| r.comm)
    }

    /// The request completes a collective operation, too: then what it takes has been given.
    pub fn request_takes(&mut self, request: u64, key: Key) {
        self.requests.entry(request).or_default().takes.push(key);
    }

    /// The request completes a split barrier of all ranks.
    pub fn request_leaves(&mut self, request: u64, barrier: u32) {
        self.requests.entry(request).or_default().barrier = Some(barrier);
    }

    /// This rank holds a lock from now on.
    pub fn lock(&mut self, now: Now<'_>, window: u64, target: Option<u32>, exclusive: bool) {
        self.acquisitions += 1;
        let acquired = self.acquisitions;
        let lock = Lock { window, target, exclusive, acquired };
        self.held = self.held.iter().copied().chain([lock]).collect();
        // An exclusive acquisition waits for all releases, a shared one for exclusive releases.
        let key = |target, exclusive| Key::Lock { window, target, exclusive };
        let mut takes = vec![key(target, true)];
        if exclusive {
            takes.extend([key(target, false), key(None, false)]);
        }
        self.event(now, takes, Vec::new());
    }

    /// This rank gives a lock back; what it did under the lock is complete.
    pub fn unlock(&mut self, now: Now<'_>, window: u64, target: Option<u32>) {
        self.complete(now, Completion::Unlock, window, target);
        let is_this = |lock: &Lock| lock.window == window && lock.target == target;
        let exclusive = self.held.iter().any(|lock| is_this(lock) && lock.exclusive);
        self.release(is_this);
        let key = |target| Key::Lock { window, target, exclusive };
        let mut gives = vec![key(target)];
        if exclusive {
            gives.push(key(None));
        }
        self.event(now, Vec::new(), gives);
    }

    /// The thread synchronizes with other ranks.
    pub fn event(&mut self, now: Now<'_>, takes: Vec<Key>, gives: Vec<Key>) {
        self.segments.current(now);
        let segment = self.segments.begin(now);
        self.log.push(Event { slot: now.slot, segment, takes, gives });
    }

    /// An atomic access, which may order others.
    pub fn atomic(&mut self, now: Now<'_>, window: u64, target: u32, at: u64, basic: u32) {
        let segment = self.segments.current(now);
        let key = Key::Atomic { window, target, at, basic };
        if self.atomics.len() >= ATOMICS {
            self.unfollowed = true;
            return;
        }
        if !self.atomics.insert((segment, key)) {
            return;
        }
        self.log.push(Event { slot: now.slot, segment, takes: vec![key], gives: vec![key] });
    }

    /// `shmem_fence`: what was put in a context before comes before what is put to the same rank after.
    pub fn fence(&mut self, now: Now<'_>, context: u64) {
        let here = self.segments.current(now);
        let keys = self.in_flight.iter().filter(|((of, _), _)| *of == context);
        for &id in keys.flat_map(|(_, ids)| ids) {
            let access = &mut self.attributes[id as usize];
            if access.side == Side::Target && access.act.writes() {
                access.fenced.get_or_insert(here);
            }
        }
        self.event(now, Vec::new(), Vec::new());
    }

    /// A value is put, or updated if it is `None`, at an offset in a window of another rank, which may wait for it.
    pub fn raise(&mut self, now: Now<'_>, window: u64, target: u32, at: u64, value: Option<u64>) {
        if self.atomics.len() >= ATOMICS {
            self.unfollowed = true;
            return;
        }
        self.segments.current(now);
        let segment = self.segments.begin(now);
        let key = Key::Flag { window, target, at, value };
        self.atomics.insert((segment, key));
        self.log.push(Event { slot: now.slot, segment, takes: Vec::new(), gives: vec![key] });
    }

    /// This rank has waited until a flag of its own had a value.
    pub fn waited_for(&mut self, now: Now<'_>, window: u64, at: u64, value: u64) {
        let target = self.rank;
        let key = |value| Key::Flag { window, target, at, value };
        self.event(now, vec![key(Some(value)), key(None)], Vec::new());
    }

    /// How many times something has happened before, counting this time.
    pub fn count(&mut self, key: Key) -> u32 {
        let count = self.counts.entry(key).or_default();
        *count += 1;
        *count
    }

    /// A message is sent.
    pub fn send(&mut self, now: Now<'_>, comm: u64, to: u32, tag: i32) {
        let from = self.rank;
        let k = self.count(Key::Message { comm, from, to, tag, k: 0 });
        self.event(now, Vec::new(), vec![Key::Message { comm, from, to, tag, k }]);
    }

    /// A receive is posted. If source and tag are given, it takes the next message of these.
    pub fn post_receive(&mut self, request: u64, comm: u64, from: Option<u32>, tag: Option<i32>) {
        let k = from.zip(tag).map(|(from, tag)| (from, tag, self.next_message(comm, from, tag)));
        self.requests.entry(request).or_default().receive = Some(Receive { comm, k });
    }

    /// A message has been received, without a request.
    pub fn receive(&mut self, now: Now<'_>, comm: u64, from: u32, tag: i32) {
        let key = self.received_key(Receive { comm, k: None }, from, tag);
        self.event(now, vec![key], Vec::new());
    }

    fn received_key(&mut self, receive: Receive, from: u32, tag: i32) -> Key {
        let (from, tag, k) =
            receive.k.unwrap_or_else(|| (from, tag, self.next_message(receive.comm, from, tag)));
        Key::Message { comm: receive.comm, from, to: self.rank, tag, k }
    }

    fn next_message(&mut self, comm: u64, from: u32, tag: i32) -> u32 {
        self.count(Key::Message { comm, from, to: self.rank, tag, k: 0 })
    }
}
