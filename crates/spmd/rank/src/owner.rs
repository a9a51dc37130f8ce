//! The owner of memory looks for pairs of accesses to it: the *computation* of communication-avoiding dynamic
//! analysis (section 7.1 of the thesis).
//!
//! Every rank sends its accesses of a phase to the owners of the memory ([`Bucket`]). Two accesses of different
//! threads race if they conflict ([`rules`]), no barrier orders them ([`phases`](crate::phases)), no
//! common lock keeps them apart, and no message orders them ([`order`](crate::order)). The last is asked only for
//! pairs that the others leave open, because it needs the logs of all ranks.
//!
//! Guarantee: never reports accesses that are ordered or kept apart by synchronization that was seen. May miss:
//! accesses beyond the bounds of [`gather`](crate::gather), a thread of a rank that falls two barriers behind another
//! one, and a race of two places of which 64 other pairs are open in the same phase and are all ordered by messages.
//!
//! Cost: a comparison for each two accesses to the same bytes, and 64 questions about messages for each two places.

use std::sync::Arc;

use crate::gather::{Gather, Lock, Space, end_of};
use crate::hash::{Map, Set};
use crate::order::{Graph, Point, Strength};
use crate::phases::{NEVER, Span};
use crate::rules::{self, Act, Bytes, Side};
use crate::segments::SEQUENCES;
use crate::store::Store;

/// A place in code, wherever that is loaded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub struct Place {
    pub module: Arc<str>,
    pub offset: u64,
}

/// Accesses that are alike, as the owner sees them.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Record {
    pub rank: u32,
    pub slot: u32,
    pub call: u8,
    pub side: Side,
    pub act: Act,
    pub from: u64,
    pub place: Place,
    pub begin: u32,
    /// Where it ended, if it has: of a put under post and start, that is at the target.
    pub end: Option<Point>,
    /// The number of the access epoch that the target has to wait for, if that ends it.
    pub waits: Option<u32>,
    /// The segment of a `shmem_fence` after it.
    pub fenced: Option<u32>,
    pub spans: [Span; SEQUENCES],
    pub locks: Vec<Lock>,
    pub window: u64,
    pub began: u64,
    pub ended: u64,
    /// Of several, when the last one began.
    pub last: u64,
    pub local_only: bool,
    pub barrier: Option<Place>,
}

impl Record {
    fn begins(&self) -> Point {
        Point { rank: self.rank, slot: self.slot, segment: self.begin }
    }

    /// Whether a barrier or a common lock keeps the two apart.
    fn is_apart(&self, other: &Record) -> bool {
        let barrier = self.spans.iter().zip(other.spans).any(|(a, b)| !a.meets(b));
        let locked = |a: &Lock| other.locks.iter().any(|b| a.excludes(b));
        barrier || self.rank != other.rank && self.locks.iter().any(locked)
    }
}

/// The accesses of one rank to the memory of another one, in one phase.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs)]
pub struct Bucket {
    pub rank: u32,
    pub records: Vec<Record>,
    /// Window (or address, if there is none), bytes, and indices of records.
    pub pieces: Vec<(Option<u64>, Bytes, Vec<u32>)>,
    /// Whether the rank has several threads.
    pub threaded: bool,
}

/// The buckets of a rank, by owner. `place` finds the place of a program counter.
pub fn buckets(gather: &Gather, mut place: impl FnMut(u64) -> Place) -> Map<u32, Bucket> {
    let mut buckets: Map<u32, Bucket> = Map::default();
    let mut renamed: Map<(u32, u32), u32> = Map::default();
    for (&Space { owner, window }, store) in &gather.stores {
        let bucket = buckets.entry(owner).or_default();
        bucket.rank = gather.rank;
        bucket.threaded = gather.segments.is_threaded();
        for (bytes, ids) in store.iter() {
            let ids = ids.iter().map(|&id| {
                *renamed.entry((owner, id)).or_insert_with(|| {
                    bucket.records.push(record(gather, id, &mut place));
                    bucket.records.len() as u32 - 1
                })
            });
            let ids = ids.collect();
            bucket.pieces.push((window, bytes, ids));
        }
    }
    buckets
}

/// An entry of the gathering as a record.
pub fn record(gather: &Gather, id: u32, place: impl FnMut(u64) -> Place) -> Record {
    described(gather, &gather.attributes[id as usize], place)
}

/// The same for an entry that is not stored.
pub fn described(
    gather: &Gather,
    access: &crate::gather::Attributes,
    mut place: impl FnMut(u64) -> Place,
) -> Record {
    let slot = gather.segments.slot(access.begin);
    let end = end_of(access).map(|segment| Point {
        rank: gather.rank,
        slot: gather.segments.slot(segment),
        segment,
    });
    Record {
        rank: gather.rank,
        slot,
        call: access.call,
        side: access.side,
        act: access.act,
        from: access.from,
        place: place(access.pc),
        begin: access.begin,
        end,
        waits: match access.end {
            crate::gather::End::Waits(k) => Some(k),
            _ => None,
        },
        fenced: access.fenced,
        spans: gather.segments.spans(access.begin, end_of(access)),
        locks: access.locks.to_vec(),
        window: access.window,
        began: access.began,
        ended: access.ended,
        last: access.last,
        local_only: access.local_only,
        barrier: (access.barrier != 0).then(|| place(access.barrier)),
    }
}

/// Two accesses that may race.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Pair {
    pub bytes: Bytes,
    pub a: Record,
    pub b: Record,
}

/// How two accesses of different threads stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Ordered in every execution.
    Ordered,
    /// Not ordered, but locks or atomics may have ordered them this time.
    Predicted,
    /// Nothing ordered them.
    Observed,
}

/// The owner's part of the analysis.
#[derive(Debug, Default)]
pub struct Owner {
    /// Pieces of the last phase that accesses of the next phase may meet.
    kept: Vec<(Bytes, Record)>,
    reported: Set<(Place, Place)>,
}

/// At most this many open pairs of two places are looked at in a phase: more of the same say nothing new.
const PAIRS_OF_PLACES: usize = 64;

impl Owner {
    /// The pairs among these buckets that barriers and locks leave open.
    pub fn pairs(&mut self, gather: &Gather, buckets: Vec<Bucket>) -> Vec<Pair> {
        let mut phase = Phase::default();
        for (bytes, mut record) in std::mem::take(&mut self.kept) {
            wait(gather, &mut record);
            phase.add(bytes, record);
        }
        let old = phase.records.len();
        for bucket in buckets {
            for (bytes, id) in phase.take(gather, bucket) {
                phase.meet(bytes, id, &self.reported);
                phase.store.insert(bytes, id, |_, _| false);
            }
        }
        let open = std::mem::take(&mut phase.open);
        let Phase { records, pieces, .. } = phase;
        let new = pieces.into_iter().filter(|&(_, id)| {
            // What was kept before is kept no longer, unless this rank still has to wait for it.
            id as usize >= old || is_awaited(&records[id as usize])
        });
        self.kept = new.map(|(bytes, id)| (bytes, records[id as usize].clone())).collect();
        open
    }

    /// Keeps the accesses of this phase for the next one, all of them or only those that this rank has to wait for.
    pub fn keep(&mut self, all: bool) {
        if !all {
            self.kept.retain(|(_, record)| is_awaited(record));
        }
    }

    /// Whether a pair of these places has not been reported before; from now on it has.
    pub fn is_new(&mut self, a: &Record, b: &Record) -> bool {
        self.reported.insert(sites(a, b))
    }
}

/// The accesses of a phase to the memory of one rank.
#[derive(Default)]
struct Phase {
    records: Vec<Record>,
    pieces: Vec<(Bytes, u32)>,
    store: Store,
    /// Records of one class stand alike to all others, as far as barriers and locks tell.
    classes: Vec<u32>,
    numbers: Map<Class, u32>,
    /// Pairs of classes, and the number of their places among `counts` if they may race.
    stand: Map<(u32, u32), Option<usize>>,
    places: Map<(Place, Place), usize>,
    /// How many pairs of two places were found.
    counts: Vec<usize>,
    compared: Set<(u32, u32)>,
    open: Vec<Pair>,
}

/// What [`may_race`] looks at, and the place.
#[derive(PartialEq, Eq, Hash)]
struct Class {
    thread: (u32, u32),
    act: Act,
    phase: u64,
    place: Place,
    spans: [Span; SEQUENCES],
    locks: Vec<(u64, Option<u32>, bool)>,
}

impl Class {
    fn of(record: &Record) -> Class {
        Class {
            thread: (record.rank, record.slot),
            act: record.act,
            phase: rules::phase(record.act, record.from),
            place: record.place.clone(),
            spans: record.spans,
            locks: record.locks.iter().map(|l| (l.window, l.target, l.exclusive)).collect(),
        }
    }
}

impl Phase {
    fn add(&mut self, bytes: Bytes, record: Record) {
        let id = self.records.len() as u32;
        self.classify(&record);
        self.records.push(record);
        self.pieces.push((bytes, id));
        self.store.insert(bytes, id, |_, _| false);
    }

    fn classify(&mut self, record: &Record) {
        let next = self.numbers.len() as u32;
        self.classes.push(*self.numbers.entry(Class::of(record)).or_insert(next));
    }

    /// Takes the records of a bucket, and returns its pieces by address.
    fn take(&mut self, gather: &Gather, bucket: Bucket) -> Vec<(Bytes, u32)> {
        let first = self.records.len();
        self.records.extend(bucket.records);
        self.records[first..].iter_mut().for_each(|record| wait(gather, record));
        let mut shifted = Set::default();
        let mut pieces = Vec::new();
        for (window, bytes, ids) in bucket.pieces {
            let base = window.map_or(Some(0), |w| gather.windows.get(&w).map(|w| w.base));
            let Some(base) = base else { continue };
            let bytes = Bytes { start: base.wrapping_add(bytes.start), ..bytes };
            for id in ids.into_iter().map(|id| first as u32 + id) {
                if shifted.insert(id) {
                    let from = &mut self.records[id as usize].from;
                    *from = from.wrapping_add(base);
                }
                pieces.push((bytes, id));
            }
        }
        self.pieces.extend(&pieces);
        for i in first..self.records.len() {
            let record = self.records[i].clone();
            self.classify(&record);
        }
        pieces
    }

    /// Finds the accesses to these bytes so far that may race with one, at places that were not reported.
    fn meet(&mut self, bytes: Bytes, id: u32, reported: &Set<(Place, Place)>) {
        let class = self.classes[id as usize];
        for (common, others) in self.store.touching(bytes) {
            for &other in others.iter().filter(|&&other| other != id) {
                let (a, b) = (&self.records[other as usize], &self.records[id as usize]);
                let (places, counts) = (&mut self.places, &mut self.counts);
                let stand = self.stand.entry((self.classes[other as usize], class));
                let number = *stand.or_insert_with(|| {
                    let sites = sites(a, b);
                    (may_race(a, b) && !reported.contains(&sites)).then(|| {
                        *places.entry(sites).or_insert_with(|| {
                            counts.push(0);
                            counts.len() - 1
                        })
                    })
                });
                let Some(number) = number.filter(|&n| counts[n] < PAIRS_OF_PLACES) else {
                    continue;
                };
                if self.compared.insert((other, id)) {
                    counts[number] += 1;
                    self.open.push(Pair { bytes: common, a: a.clone(), b: b.clone() });
                }
            }
        }
    }
}

/// Whether this rank still has to wait for the end of an access.
fn is_awaited(record: &Record) -> bool {
    record.waits.is_some() && record.end.is_none()
}

/// An access that ends when this rank waits has ended, if it has waited.
fn wait(gather: &Gather, record: &mut Record) {
    let Some(k) = record.waits else { return };
    if let Some(&segment) = gather.waited.get(&(record.window, record.rank, k)) {
        let slot = gather.segments.slot(segment);
        record.end = Some(Point { rank: gather.rank, slot, segment });
        let here = gather.segments.spans(segment, Some(segment));
        for (span, here) in record.spans.iter_mut().zip(here) {
            span.entered = here.entered;
        }
    } else {
        record.spans.iter_mut().for_each(|span| span.entered = NEVER);
    }
}

fn sites(a: &Record, b: &Record) -> (Place, Place) {
    let (a, b) = (a.place.clone(), b.place.clone());
    if a <= b { (a, b) } else { (b, a) }
}

/// Whether two accesses to common bytes conflict, and barriers and locks leave them unordered. Accesses of one
/// thread are compared where they are made.
fn may_race(a: &Record, b: &Record) -> bool {
    (a.rank, a.slot) != (b.rank, b.slot)
        && rules::conflict(a.act, a.from, b.act, b.from)
        && !a.is_apart(b)
}

/// What the logs say of a pair of accesses to the memory of this rank.
pub fn judge(graph: &Graph, gather: &Gather, pair: &Pair) -> Verdict {
    let Pair { bytes, a, b } = pair;
    let flag = gather.offset(bytes.start).map(|(window, at)| (window, gather.rank, at));
    let before = |a: &Record, b: &Record, strength| {
        let fence = a.fenced.map(|segment| Point { segment, ..a.begins() });
        a.end.is_some_and(|end| graph.reaches(end, b.begins(), strength))
            || fence.is_some_and(|at| graph.reaches_by_flags(at, gather.rank, b.begins(), strength))
            || a.act.writes()
                && flag.is_some_and(|f| {
                    graph.reaches_by_its_value(a.begins(), f, b.begins(), strength)
                })
    };
    let either = |strength| before(a, b, strength) || before(b, a, strength);
    if either(Strength::Strong) {
        Verdict::Ordered
    } else if either(Strength::Weak) {
        Verdict::Predicted
    } else {
        Verdict::Observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::NEVER;
    use crate::rules::Basic;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn record() -> impl Strategy<Value = Record> {
        let kind = (0u32..3, 0u64..4, 0usize..4, 0u64..3);
        let order = (0u32..3, prop::option::of(0u32..3), prop::option::of(any::<bool>()));
        (kind, order).prop_map(|((rank, place, act, from), (left, entered, lock))| {
            let basic = Basic { number: 1, size: 2 };
            let acts = [Act::Read, Act::Write, Act::AtomicRead(basic), Act::AtomicWrite(basic)];
            let entered = entered.map_or(NEVER, |after| left + after);
            let locks =
                lock.map(|exclusive| Lock { window: 1, target: None, exclusive, acquired: 0 });
            Record {
                rank,
                slot: 0,
                call: 0,
                side: Side::Target,
                act: acts[act],
                from,
                place: Place { module: "".into(), offset: place },
                begin: 0,
                end: None,
                waits: None,
                fenced: None,
                spans: [Span { left, entered }, Span { left: 0, entered: NEVER }],
                locks: locks.into_iter().collect(),
                window: 0,
                began: 0,
                ended: 0,
                last: 0,
                local_only: false,
                barrier: None,
            }
        })
    }

    proptest! {
        /// Against all records with all others, byte by byte.
        #[test]
        fn pairs_are_those_of_brute_force(
            all in prop::collection::vec((record(), 0u64..12, 1u64..5), 0..24),
        ) {
            let mut expected = BTreeSet::new();
            for (i, (a, at, len)) in all.iter().enumerate() {
                for (b, other, its) in &all[i + 1..] {
                    if (*at..at + len).any(|byte| (*other..other + its).contains(&byte)) && may_race(a, b) {
                        expected.insert(sites(a, b));
                    }
                }
            }
            let bucket = |rank: u32| {
                let of_rank = all.iter().filter(|(r, ..)| r.rank == rank);
                let pieces = (0..).zip(of_rank.clone()).map(|(id, (_, start, len))| {
                    (None, Bytes { start: *start, len: *len }, vec![id])
                });
                let pieces = pieces.collect();
                Bucket { rank, records: of_rank.map(|(r, ..)| r.clone()).collect(), pieces, threaded: false }
            };
            let open = Owner::default().pairs(&Gather::new(0), (0..3).map(bucket).collect());
            let found: BTreeSet<(Place, Place)> = open.iter().map(|p| sites(&p.a, &p.b)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
