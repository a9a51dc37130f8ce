//! One rank: gathers, distributes at barriers, and computes for its own memory.
//!
//! Everything that is sent is sent in [`Rank::exchange`], which all ranks call after the same barriers: buckets from
//! each rank to the owners of the memory that it accessed, two bits from all to all (does any owner have open pairs, does
//! any rank have threads?), and, only if there are open pairs, the logs.

use crate::findings::{self, Object};
use crate::gather::{Attributes, Gather, Space};
use crate::hash::Map;
use crate::order::{Graph, Log};
use crate::owner::{self, Bucket, Owner, Pair, Place, Record, Verdict};
use crate::rules::Bytes;
use crate::wire::{self, Names};

/// What a rank needs of the world around it.
pub trait World {
    /// Sends each rank its bytes, and returns what others have sent to this one.
    fn sparse(&mut self, to: Vec<(u32, Vec<u8>)>) -> Vec<Vec<u8>>;
    /// The bits that any rank sets.
    fn any(&mut self, mine: u32) -> u32;
    /// What all ranks say, by rank.
    fn all(&mut self, mine: &[u8]) -> Vec<Vec<u8>>;
    /// The place of a program counter, or of static data.
    fn place(&mut self, address: u64) -> Place;
    /// Writes a line for the `selvedge` process.
    fn tell(&mut self, line: &str);
    /// A statement of this rank was found to race.
    fn raced(&mut self, _place: &Place) {}
}

/// A rank has open pairs.
const OPEN: u32 = 1;
/// A rank has several threads.
const THREADED: u32 = 2;

/// One rank.
#[derive(Debug, Default)]
pub struct Rank {
    /// What it knows of itself.
    pub gather: Gather,
    owner: Owner,
    exchanges: u32,
    /// The names that each rank knows from this one, and this one from others.
    told: Map<u32, Names>,
    known: Map<u32, Names>,
}

impl Rank {
    /// A rank that has done nothing.
    pub fn new(rank: u32) -> Rank {
        Rank { gather: Gather::new(rank), ..Rank::default() }
    }

    /// The number of exchanges so far.
    pub fn exchanges(&self) -> u32 {
        self.exchanges
    }

    /// Distributes what was gathered since the last exchange, and looks for races in the memory of this rank. All
    /// ranks call this together.
    pub fn exchange(&mut self, world: &mut impl World) {
        self.exchanges += 1;
        self.tell_own_pairs(world);
        let mine = self.distribute(world);
        let open = self.owner.pairs(&self.gather, mine);
        let threaded = self.gather.segments.is_threaded();
        let bits = if open.is_empty() { 0 } else { OPEN } | if threaded { THREADED } else { 0 };
        let bits = world.any(bits);
        self.owner.keep(bits & THREADED != 0);
        if bits & OPEN != 0 {
            self.judge(world, open);
        }
        self.gather.distributed();
    }

    /// Sends the accesses of the phase to the owners of the memory; returns what this rank owns of all.
    fn distribute(&mut self, world: &mut impl World) -> Vec<Bucket> {
        self.gather.compact();
        let mut buckets = owner::buckets(&self.gather, |pc| world.place(pc));
        let figures = &mut self.gather.figures;
        let entries =
            |bucket: &Bucket| bucket.pieces.iter().map(|(.., ids)| ids.len()).sum::<usize>();
        figures.distributed += buckets.values().map(|b| entries(b) as u64).sum::<u64>();
        let mut mine: Vec<Bucket> = buckets.remove(&self.gather.rank).into_iter().collect();
        let to_bytes =
            |(to, bucket)| (to, wire::bucket_to_bytes(&bucket, self.told.entry(to).or_default()));
        let mut out: Vec<(u32, Vec<u8>)> = buckets.into_iter().map(to_bytes).collect();
        out.sort_unstable_by_key(|(to, _)| *to);
        let bytes = |all: &mut dyn Iterator<Item = usize>| all.sum::<usize>() as u64;
        let sent = bytes(&mut out.iter().map(|(_, bytes)| bytes.len()));
        figures.messages += out.len() as u64;
        figures.sent += sent;
        figures.most_sent = figures.most_sent.max(sent);
        let got = world.sparse(out);
        figures.received_messages += got.len() as u64;
        figures.received += bytes(&mut got.iter().map(Vec::len));
        let got = got.iter().filter_map(|bytes| wire::bucket_from_bytes(bytes, &mut self.known));
        mine.extend(got);
        // In the order of ranks, so that the same execution gives the same findings; one's own are the first.
        mine.sort_by_key(|b| (b.rank != self.gather.rank, b.rank));
        mine
    }

    /// Exchanges the logs, and tells the pairs that these leave unordered.
    fn judge(&mut self, world: &mut impl World, open: Vec<Pair>) {
        let log = Log {
            events: self.gather.log.clone(),
            known: self.gather.segments.known(),
            unfollowed: self.gather.unfollowed,
        };
        let log = wire::log_to_bytes(&log);
        let logs = world.all(&log);
        let figures = &mut self.gather.figures;
        figures.logs += 1;
        figures.logs_sent += log.len() as u64;
        figures.logs_received += logs.iter().map(Vec::len).sum::<usize>() as u64;
        let logs: Vec<Log> =
            logs.iter().map(|l| wire::log_from_bytes(l).unwrap_or_default()).collect();
        let unfollowed = logs.iter().any(|log| log.unfollowed);
        let graph = Graph::new(logs);
        let judged = open.into_iter().map(|pair| (owner::judge(&graph, &self.gather, &pair), pair));
        let mut races: Vec<(Verdict, Pair)> =
            judged.filter(|(verdict, _)| *verdict != Verdict::Ordered).collect();
        // Of several pairs of the same places the surest is told.
        races.sort_by_key(|(verdict, _)| *verdict != Verdict::Observed);
        for (verdict, pair) in races {
            let is_sure = verdict == Verdict::Observed && !unfollowed;
            let status = if is_sure { "observed" } else { "predicted" };
            if self.owner.is_new(&pair.a, &pair.b) {
                let space = Space { owner: self.gather.rank, window: None };
                self.tell(world, status, space, pair.bytes, [&pair.a, &pair.b]);
            }
        }
    }

    /// Tells pairs of one thread. They are told when they are found, before their rank can crash.
    pub fn tell_own_pairs(&mut self, world: &mut impl World) {
        for pair in std::mem::take(&mut self.gather.pairs) {
            let mut record =
                |of: &Attributes| owner::described(&self.gather, of, |pc| world.place(pc));
            let (a, b) = (record(&pair.first), record(&pair.second));
            if self.owner.is_new(&a, &b) {
                self.tell(world, "observed", pair.space, pair.bytes, [&a, &b]);
            }
        }
    }

    fn tell(
        &self,
        world: &mut impl World,
        status: &str,
        space: Space,
        bytes: Bytes,
        sides: [&Record; 2],
    ) {
        let object = self.object(world, space, bytes, sides);
        world.tell(&findings::race(status, self.exchanges, &object, sides));
        sides.iter().filter(|s| s.rank == self.gather.rank).for_each(|s| world.raced(&s.place));
    }

    /// The memory of a race. Windows may overlap: one that an access used is named.
    fn object(
        &self,
        world: &mut impl World,
        space: Space,
        bytes: Bytes,
        sides: [&Record; 2],
    ) -> Object {
        let owner = space.owner;
        let named =
            |number: u64| self.gather.windows.get(&number).map(|w| (number, w.name.clone()));
        if let Some(number) = space.window {
            let (offset, len) = (bytes.start, bytes.len);
            return Object { owner, window: named(number), offset, len, place: None };
        }
        let contains = |number: &u64| {
            let window = self.gather.windows.get(number);
            window.is_some_and(|w| w.base <= bytes.start && bytes.end() <= w.base + w.len)
        };
        let used = sides.into_iter().map(|r| r.window).filter(|&w| w != 0);
        let all = self.gather.windows.keys().copied();
        let window = used.chain(all).find(contains);
        let base = window.and_then(|w| self.gather.windows.get(&w)).map_or(bytes.start, |w| w.base);
        let place = world.place(bytes.start);
        Object {
            owner,
            window: window.and_then(named),
            offset: bytes.start - base,
            len: bytes.len,
            place: (!place.module.is_empty()).then_some(place),
        }
    }
}

#[cfg(test)]
mod tests;
