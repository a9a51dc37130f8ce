//! `atomicity`: conflict serializability of atomic regions, with clocks. The default engine.
//!
//! Reports an atomic region that the analysed execution did not execute atomically: it lies on a cycle
//! of transactions, each of which did something that conflicts with and comes before something of the
//! next ([`conflicts`](crate::common::conflicts)). A transaction is an outermost atomic region or a single
//! operation outside of any. If regions are nested, the ones that the cycle leaves and enters are reported.
//!
//! Source: AeroDrome (Mathur and Viswanathan, ASPLOS 2020): every object carries a clock that says
//! after which transactions its last operation comes, and an operation closes a cycle exactly when the
//! clock that it takes in knows of the beginning of its own transaction.
//!
//! Deviations. (1) The clock of an object is compared with the beginnings of *open* transactions only,
//! because the operation that closes a cycle belongs to one. So a clock is a set of open transactions:
//! a bit for each. The bit of a transaction that has ended is given to the next one. (2) When an open
//! transaction comes after something new, so does everything that comes after the transaction, even if
//! it was recorded earlier. The paper updates all objects when the transaction ends. We store in an
//! object only the *number* of a set; a set is completed when it is used, and when a transaction ends
//! only the few sets that contain it are changed, not the objects (this takes the place of the paper's
//! lazy clocks, stale flags and update sets). (3) Therefore a cycle is found at
//! the operation that closes it, also while other transactions on it are still open, where the paper
//! waits for their ends. (4) A cycle is reported and its last edge left out, and the analysis goes on;
//! a region is reported once for each time it is entered.
//!
//! **Guarantee**: reports the first operation that makes the execution not conflict-serializable, and
//! never reports one that does not (with the conflicts of that table). After a violation, the further
//! ones that do not depend on the edges left out are found; regions nested in a reported one that are
//! violated later may be left out. Names the region whose operation closes the cycle; the bug may be in
//! another region on the cycle, see [`velodrome`](crate::velodrome). Behind a race-free filter, as in
//! native runs, violations that need an access to racy memory from before its first race are missed;
//! [`singletrack`](crate::singletrack) says what happens to repeated accesses.
//!
//! Cost: O(1) for an operation while no region is open and for an access that an earlier one of the same
//! region covers; O(open regions / 64) otherwise, times the threads that read for a write after shared
//! reads, times the open regions when an open region comes after something new. Memory follows the
//! memory that the program touches and the open regions, not the length of the execution.

use rustc_hash::FxHashMap;
use selvedge_model::{
    Event, Finding, Findings, Kind, Op, Place, RegionId, RegionKind, Role, SiteId, Status, Subject,
    ThreadId,
};

use crate::Analysis;
use crate::common::bits::Bits;
use crate::common::conflicts::{Conflicts, Mark};
use crate::common::role::role_of;
use crate::entry::{self, Accesses, Needs, Purpose};
use crate::lockregions::LockRegions;

const NAME: &str = "atomicity";

/// The analysis.
#[derive(Debug)]
pub struct AeroDrome {
    kind: RegionKind,
    conflicts: Conflicts<Touch>,
    engine: Engine,
    /// When the table of sets has this many entries, unused ones are dropped.
    sweep_at: usize,
}

/// An operation as it is remembered: the open transactions that it comes after, and who and where.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Touch {
    after: SetId,
    /// The thread, shifted, and whether the operation was atomic.
    who: u32,
    site: SiteId,
}

impl Default for Touch {
    fn default() -> Touch {
        Touch { after: SetId::EMPTY, who: 0, site: SiteId(0) }
    }
}

impl Touch {
    #[inline]
    fn new(after: SetId, event: &Event) -> Touch {
        let atomic = u32::from(matches!(event.op, Op::Atomic(..)));
        Touch { after, who: event.thread.0 << 1 | atomic, site: event.site }
    }

    fn place(&self, role: Role) -> Place {
        let role = match role {
            Role::Read if self.who & 1 != 0 => Role::AtomicRead,
            Role::Write if self.who & 1 != 0 => Role::AtomicWrite,
            role => role,
        };
        Place { thread: self.thread(), site: self.site, role, held: Vec::new() }
    }
}

impl Mark for Touch {
    #[inline]
    fn is_none(&self) -> bool {
        self.after == SetId::EMPTY
    }

    #[inline]
    fn thread(&self) -> ThreadId {
        ThreadId(self.who >> 1)
    }

    #[inline]
    fn covers(&self, newer: &Touch) -> bool {
        self.after == newer.after && self.thread() == newer.thread()
    }
}

/// What is known of the transactions.
#[derive(Debug, Default)]
struct Engine {
    sets: Sets,
    threads: Vec<Thread>,
    /// Threads that are in a region.
    inside: Vec<ThreadId>,
    /// For each bit the thread whose open region it stands for; bits not in use are in `free`.
    owners: Vec<ThreadId>,
    free: Vec<u32>,
    violations: Vec<Violation>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The regions it is in, outermost first.
    open: Vec<Open>,
    /// The open transactions that its own comes after; empty outside of regions.
    // invariant: with a transaction it contains all that this one comes after.
    before: Bits,
    /// After what its next operation comes: in a region, the bits of the regions it is in; otherwise
    /// the open transactions that its last operation came after.
    now: SetId,
    /// Its forker, until it does something itself.
    idle: Option<ThreadId>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    region: RegionId,
    bit: u32,
    site: SiteId,
    reported: bool,
}

/// A region that is not atomic, because its thread now comes after `earlier`.
#[derive(Debug)]
struct Violation {
    region: Open,
    earlier: Place,
}

impl Default for AeroDrome {
    fn default() -> AeroDrome {
        AeroDrome::new()
    }
}

impl AeroDrome {
    /// Checks the regions that are meant to be atomic.
    pub fn new() -> AeroDrome {
        AeroDrome::of(RegionKind::Atomic)
    }

    /// Checks regions of a kind, as if they were meant to be atomic.
    pub fn of(kind: RegionKind) -> AeroDrome {
        AeroDrome {
            kind,
            conflicts: Conflicts::default(),
            engine: Engine::default(),
            sweep_at: SWEEP_AT_LEAST,
        }
    }

    /// How many pages of the program's memory and how many sets of transactions are remembered.
    pub fn size(&self) -> (usize, usize) {
        (self.conflicts.shadow_pages(), self.engine.sets.entries.len())
    }

    fn on_thread(&mut self, event: &Event) {
        let me = event.thread;
        match event.op {
            Op::RegionEnter(region, kind) if kind == self.kind => {
                self.engine.enter(me, region, event.site);
                if self.engine.sets.entries.len() >= self.sweep_at {
                    self.sweep();
                }
            }
            Op::RegionExit(region) => {
                let open = &self.engine.thread(me).open;
                if open.last().is_some_and(|o| o.region == region) {
                    self.engine.exit(me);
                }
            }
            Op::Fork(child) => {
                // A set with the bits of the region, if the thread is in one: it completes itself.
                let now = self.engine.thread(me).now;
                let child = self.engine.thread(child);
                (child.now, child.idle) = (now, Some(me));
            }
            Op::Join(child) => {
                self.engine.end(child);
                let &mut Thread { now, idle, .. } = self.engine.thread(child);
                if idle != Some(me) {
                    let ended = Touch::new(now, &Event { thread: child, ..*event });
                    self.engine.comes_after(event, &ended, Role::Join(child));
                }
            }
            Op::End => self.engine.end(me),
            Op::RegionEnter(..)
            | Op::Flow(_)
            | Op::Focus(_)
            | Op::Begin
            | Op::Fence(_)
            | accesses!()
            | locks!()
            | rendezvous!()
            | conditions!()
            | allocation!() => {}
        }
    }

    fn sweep(&mut self) {
        let Engine { sets, threads, .. } = &mut self.engine;
        let mut sweep = Sweep::default();
        let mut marks = 0;
        self.conflicts.each_mark(|mark| {
            marks += 1;
            mark.after = sweep.keep(sets, mark.after);
        });
        for thread in threads {
            thread.now = sweep.keep(sets, thread.now);
        }
        *sets = sweep.kept;
        self.sweep_at = sets.entries.len() + SWEEP_AT_LEAST.max(marks / 4);
    }

    #[cold]
    fn report(&mut self, event: &Event, out: &mut Findings) {
        for Violation { region, earlier } in self.engine.violations.drain(..) {
            let place = |site, role| Place { thread: event.thread, site, role, held: Vec::new() };
            out.report(Finding {
                kind: Kind::AtomicityViolation,
                status: Status::Observed,
                verdict: None,
                analyses: vec![NAME],
                subject: Subject::Region(region.region),
                places: vec![
                    place(region.site, Role::Enter(region.region)),
                    earlier,
                    place(event.site, role_of(&event.op)),
                ],
                target: None,
                occurrences: 1,
            });
        }
    }
}

impl Analysis for AeroDrome {
    #[inline]
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        let engine = &mut self.engine;
        match event.op {
            // While no region is open everything is after nothing, whatever is remembered.
            accesses!() | locks!() | Op::Post(_) | Op::Wait(_) if engine.inside.is_empty() => {
                return;
            }
            Op::Read(_) | Op::Write(_) if engine.is_inside(event.thread) => {
                let mark = engine.touch(event);
                self.conflicts.access(event, &mark, |from, role| {
                    engine.comes_after(event, from, role);
                });
            }
            accesses!()
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {
                engine.thread(event.thread).idle = None;
                self.conflicts.sources(event, |from, role| engine.comes_after(event, from, role));
                let mark = engine.touch(event);
                self.conflicts.record(event, &mark);
                self.on_thread(event);
            }
        }
        if !self.engine.violations.is_empty() {
            self.report(event, out);
        }
    }

    fn restart(&mut self) {
        self.conflicts.clear();
        self.engine.clear();
        self.sweep_at = SWEEP_AT_LEAST;
    }
}

impl Engine {
    #[inline]
    fn is_inside(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.index()).is_some_and(|t| !t.open.is_empty())
    }

    fn thread(&mut self, id: ThreadId) -> &mut Thread {
        if id.index() >= self.threads.len() {
            self.threads.resize_with(id.index() + 1, Thread::default);
        }
        &mut self.threads[id.index()]
    }

    fn clear(&mut self) {
        self.sets.clear();
        self.threads.clear();
        self.inside.clear();
        self.owners.clear();
        self.free.clear();
        self.violations.clear();
    }

    fn touch(&mut self, event: &Event) -> Touch {
        let after = self.thread(event.thread).now;
        Touch::new(after, event)
    }

    /// The set of `id` with all that its members come after.
    fn complete(&mut self, id: SetId) -> Bits {
        let mut bits = self.sets.resolve(id).clone();
        for bit in self.sets.resolve(id).iter() {
            bits.join(&self.threads[self.owners[bit as usize].index()].before);
        }
        bits
    }

    /// The thread of `event` now comes after the operation `from`.
    fn comes_after(&mut self, event: &Event, from: &Touch, role: Role) {
        let from_set = self.sets.find(from.after);
        if from_set == SetId::EMPTY {
            return;
        }
        let bits = self.complete(from_set);
        let me = event.thread;
        let thread = self.thread(me);
        if thread.open.is_empty() {
            let now = thread.now;
            let known = self.sets.resolve(now);
            if !known.contains_all(&bits) {
                let mut both = known.clone();
                both.join(&bits);
                self.threads[me.index()].now = self.sets.number(both);
            }
            return;
        }
        if bits.contains(thread.open[0].bit) {
            let earlier = from.place(role);
            let mut violations = Vec::new();
            for open in thread.open.iter_mut().filter(|o| !o.reported && bits.contains(o.bit)) {
                open.reported = true;
                violations.push(Violation { region: *open, earlier: earlier.clone() });
            }
            self.violations.extend(violations);
        } else if !thread.before.contains_all(&bits) {
            thread.before.join(&bits);
            self.spread(me);
        }
    }

    /// The open transaction of `me` comes after more than before, and so do those that come after it.
    fn spread(&mut self, me: ThreadId) {
        let before = std::mem::take(&mut self.threads[me.index()].before);
        let outermost = self.threads[me.index()].open[0].bit;
        for &other in &self.inside {
            let other = &mut self.threads[other.index()];
            if other.before.contains(outermost) {
                other.before.join(&before);
            }
        }
        self.threads[me.index()].before = before;
    }

    fn enter(&mut self, me: ThreadId, region: RegionId, site: SiteId) {
        let bit = self.free.pop().unwrap_or_else(|| {
            self.owners.push(me);
            (self.owners.len() - 1) as u32
        });
        self.owners[bit as usize] = me;
        if self.thread(me).open.is_empty() {
            self.inside.push(me);
            let now = self.threads[me.index()].now;
            self.threads[me.index()].before = self.complete(now);
        }
        self.threads[me.index()].open.push(Open { region, bit, site, reported: false });
        self.number_open(me);
    }

    fn exit(&mut self, me: ThreadId) {
        let Some(Open { bit, .. }) = self.threads[me.index()].open.pop() else { return };
        let before = std::mem::take(&mut self.threads[me.index()].before);
        self.sets.replace(bit, &before);
        for &other in &self.inside {
            self.threads[other.index()].before.remove(bit);
        }
        self.free.push(bit);
        if self.threads[me.index()].open.is_empty() {
            self.inside.retain(|&t| t != me);
            self.threads[me.index()].now = self.sets.number(before);
        } else {
            self.threads[me.index()].before = before;
            self.number_open(me);
        }
    }

    fn end(&mut self, thread: ThreadId) {
        while !self.thread(thread).open.is_empty() {
            self.exit(thread);
        }
    }

    fn number_open(&mut self, me: ThreadId) {
        let thread = &mut self.threads[me.index()];
        thread.now = self.sets.number(thread.open.iter().map(|o| o.bit).collect());
    }
}

/// The number of a set of open transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct SetId(u32);

impl SetId {
    const EMPTY: SetId = SetId(0);
}

impl Default for SetId {
    fn default() -> SetId {
        SetId::EMPTY
    }
}

/// Sets by number. Numbers are stored in objects that are not visited when a set changes.
#[derive(Debug)]
struct Sets {
    entries: Vec<Entry>,
    // invariant: exactly the entries that are sets.
    numbers: FxHashMap<Bits, SetId>,
    /// Memory for those that are being changed.
    // invariant: empty otherwise.
    changed: Vec<(SetId, Bits)>,
}

#[derive(Clone, Debug)]
enum Entry {
    Set(Bits),
    /// Has become equal to another one.
    Same(SetId),
}

/// Unused numbers are swept only when there are at least this many.
const SWEEP_AT_LEAST: usize = 1 << 12;

impl Default for Sets {
    fn default() -> Sets {
        let mut sets =
            Sets { entries: Vec::new(), numbers: FxHashMap::default(), changed: Vec::new() };
        sets.clear();
        sets
    }
}

impl Sets {
    fn clear(&mut self) {
        self.entries.clear();
        self.numbers.clear();
        self.number(Bits::default());
    }

    fn number(&mut self, bits: Bits) -> SetId {
        if let Some(&id) = self.numbers.get(&bits) {
            return id;
        }
        let id = SetId(self.entries.len() as u32);
        self.entries.push(Entry::Set(bits.clone()));
        self.numbers.insert(bits, id);
        id
    }

    fn find(&mut self, id: SetId) -> SetId {
        let mut last = id;
        while let Entry::Same(other) = self.entries[last.0 as usize] {
            last = other;
        }
        let mut at = id;
        while let Entry::Same(other) = self.entries[at.0 as usize] {
            self.entries[at.0 as usize] = Entry::Same(last);
            at = other;
        }
        last
    }

    fn resolve(&self, mut id: SetId) -> &Bits {
        loop {
            match &self.entries[id.0 as usize] {
                Entry::Set(bits) => return bits,
                Entry::Same(other) => id = *other,
            }
        }
    }

    /// The transaction of `bit` has ended: what came after it comes after `before`.
    fn replace(&mut self, bit: u32, before: &Bits) {
        let mut changed = std::mem::take(&mut self.changed);
        let extracted = self.numbers.extract_if(|bits, _| bits.contains(bit));
        changed.extend(extracted.map(|(bits, id)| (id, bits)));
        // The order of a hash table must not decide which number stays.
        changed.sort_unstable_by_key(|&(id, _)| id);
        for (id, mut bits) in changed.drain(..) {
            bits.remove(bit);
            bits.join(before);
            self.entries[id.0 as usize] = match self.numbers.get(&bits) {
                Some(&other) => Entry::Same(other),
                None => {
                    self.numbers.insert(bits.clone(), id);
                    Entry::Set(bits)
                }
            };
        }
        self.changed = changed;
    }
}

/// Copies the sets that are still in use.
#[derive(Default)]
struct Sweep {
    kept: Sets,
}

impl Sweep {
    fn keep(&mut self, sets: &Sets, id: SetId) -> SetId {
        let bits = sets.resolve(id);
        match self.kept.numbers.get(bits) {
            Some(&id) => id,
            None => self.kept.number(bits.clone()),
        }
    }
}

/// AeroDrome.
pub const ENTRY: entry::Entry = entry::Entry {
    default_in: &[Purpose::Check, Purpose::Crate],
    accesses: Accesses::Racy,
    needs: Needs::AtomicRegions,
    locked: Some(|| Box::new(LockRegions::new(AeroDrome::new()))),
    ..entry::Entry::of(NAME, "atomic regions that were not executed atomically (AeroDrome)", || {
        Box::new(AeroDrome::new())
    })
};
