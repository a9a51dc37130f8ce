//! What ranks send each other, as bytes: numbers of seven bits a byte, so that small ones are short.

use std::sync::Arc;

use crate::gather::Lock;
use crate::hash::Map;
use crate::order::{Event, Key, Known, Log, Point};
use crate::owner::{Bucket, Place, Record};
use crate::phases::Span;
use crate::rules::{Act, Basic, Bytes, CALLS, Side};
use crate::segments::SEQUENCES;

/// Ranks of one job must agree on this.
pub const VERSION: u64 = 3;

/// The names of modules that one rank has sent to another one. Messages between two ranks are not lost and keep their
/// order, so both have the same list, and a name is sent once.
pub type Names = Vec<Arc<str>>;

/// Writes numbers, and names and windows only once.
struct Writer<'a> {
    bytes: Vec<u8>,
    names: &'a mut Names,
    windows: Vec<u64>,
}

impl Writer<'_> {
    fn new(names: &mut Names) -> Writer<'_> {
        Writer { bytes: Vec::new(), names, windows: Vec::new() }
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn numbers(&mut self, values: impl IntoIterator<Item = u64>) {
        values.into_iter().for_each(|v| self.number(v));
    }

    fn place(&mut self, place: &Place) {
        let known = self.names.iter().position(|n| *n == place.module);
        match known {
            Some(i) => self.number(i as u64 + 1),
            None => {
                self.number(0);
                self.number(place.module.len() as u64);
                self.bytes.extend_from_slice(place.module.as_bytes());
                self.names.push(place.module.clone());
            }
        }
        self.number(place.offset);
    }

    /// The number of a window: its place among those of the message, which is shorter.
    fn window(&mut self, window: u64) {
        match self.windows.iter().position(|&w| w == window) {
            Some(i) => self.number(i as u64 + 1),
            None => {
                self.numbers([0, window]);
                self.windows.push(window);
            }
        }
    }
}

/// Reads what a [`Writer`] wrote. After the first error everything is `None`.
struct Reader<'a> {
    bytes: &'a [u8],
    names: &'a mut Names,
    windows: Vec<u64>,
}

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// The length of a list, each element of which takes at least a byte.
    fn len(&mut self) -> Option<usize> {
        let len = usize::try_from(self.number()?).ok()?;
        (len <= self.bytes.len()).then_some(len)
    }

    fn place(&mut self) -> Option<Place> {
        let name = self.number()?;
        let module = match name.checked_sub(1) {
            Some(i) => self.names.get(usize::try_from(i).ok()?)?.clone(),
            None => {
                let len = self.len()?;
                let (text, rest) = self.bytes.split_at(len);
                self.bytes = rest;
                let name: Arc<str> = String::from_utf8_lossy(text).into();
                self.names.push(name.clone());
                name
            }
        };
        Some(Place { module, offset: self.number()? })
    }

    fn window(&mut self) -> Option<u64> {
        match self.number()?.checked_sub(1) {
            Some(i) => self.windows.get(usize::try_from(i).ok()?).copied(),
            None => {
                let window = self.number()?;
                self.windows.push(window);
                Some(window)
            }
        }
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.len()?;
        (0..len).map(|_| one(self)).collect()
    }
}

/// A bucket as bytes, for a rank that knows these names.
pub fn bucket_to_bytes(bucket: &Bucket, names: &mut Names) -> Vec<u8> {
    let mut w = Writer::new(names);
    w.numbers([VERSION, u64::from(bucket.rank), u64::from(bucket.threaded)]);
    w.number(bucket.records.len() as u64);
    bucket.records.iter().for_each(|r| write_record(&mut w, r));
    w.number(bucket.pieces.len() as u64);
    let mut last = 0u64;
    for (window, bytes, ids) in &bucket.pieces {
        w.number(u64::from(window.is_some()));
        window.iter().for_each(|&window| w.window(window));
        w.numbers([bytes.start.wrapping_sub(last), bytes.len, ids.len() as u64]);
        w.numbers(ids.iter().map(|&id| u64::from(id)));
        last = bytes.start;
    }
    w.bytes
}

/// The bucket in bytes; `None` if they are not one of this version. `names` are those that ranks have sent.
pub fn bucket_from_bytes(bytes: &[u8], names: &mut Map<u32, Names>) -> Option<Bucket> {
    let mut none = Names::new();
    let mut r = Reader { bytes, names: &mut none, windows: Vec::new() };
    if r.number()? != VERSION {
        return None;
    }
    let rank = r.small()?;
    let mut r = Reader { bytes: r.bytes, names: names.entry(rank).or_default(), ..r };
    let threaded = r.number()? != 0;
    let records = r.list(|r| read_record(r, rank))?;
    let mut last = 0u64;
    let pieces = r.list(|r| {
        let window = if r.number()? != 0 { Some(r.window()?) } else { None };
        let bytes = Bytes { start: last.wrapping_add(r.number()?), len: r.number()? };
        last = bytes.start;
        let ids = r.list(|r| r.small().filter(|&id| (id as usize) < records.len()))?;
        Some((window, bytes, ids))
    })?;
    Some(Bucket { rank, records, pieces, threaded })
}

const SIDES: [Side; 3] = [Side::Target, Side::Origin, Side::Result];

fn write_record(w: &mut Writer<'_>, r: &Record) {
    let side = SIDES.iter().position(|&side| side == r.side).unwrap_or(0) as u64;
    let (act, basic) = match r.act {
        Act::Read => (0, None),
        Act::Write => (1, None),
        Act::AtomicRead(basic) => (2, Some(basic)),
        Act::AtomicWrite(basic) => (3, Some(basic)),
    };
    w.numbers([u64::from(r.slot), u64::from(r.call), side << 2 | act]);
    // How the elements of other accesses are laid out does not matter.
    if let Some(basic) = basic {
        w.numbers([u64::from(basic.number), u64::from(basic.size), r.from]);
    }
    w.place(&r.place);
    w.number(u64::from(r.begin));
    w.number(u64::from(r.end.is_some()));
    if let Some(end) = r.end {
        w.numbers([u64::from(end.slot), u64::from(end.segment.wrapping_sub(r.begin))]);
    }
    w.number(r.waits.map_or(0, |k| u64::from(k) + 1));
    w.number(r.fenced.map_or(0, |segment| u64::from(segment) + 1));
    for span in r.spans {
        // What has not been entered yet is the largest number; with one more it becomes the smallest.
        w.numbers([u64::from(span.left), u64::from(span.entered.wrapping_add(1))]);
    }
    w.number(r.locks.len() as u64);
    for lock in &r.locks {
        w.window(lock.window);
        w.numbers([lock.target.map_or(0, |t| u64::from(t) + 1), u64::from(lock.exclusive)]);
        w.number(u64::from(lock.acquired));
    }
    w.window(r.window);
    w.numbers([r.began, r.ended - r.began.min(r.ended), r.last - r.began.min(r.last)]);
    w.number(u64::from(r.local_only));
    w.number(u64::from(r.barrier.is_some()));
    if let Some(place) = &r.barrier {
        w.place(place);
    }
}

fn read_record(r: &mut Reader<'_>, rank: u32) -> Option<Record> {
    let slot = r.small()?;
    let call = u8::try_from(r.number()?).ok().filter(|&c| usize::from(c) < CALLS.len())?;
    let kind = r.number()?;
    let side = SIDES.get((kind >> 2) as usize).copied()?;
    let (act, from) = match kind & 3 {
        0 => (Act::Read, 0),
        1 => (Act::Write, 0),
        atomic => {
            let number = u8::try_from(r.number()?).ok()?;
            let basic = Basic { number, size: u16::try_from(r.number()?).ok()? };
            (
                if atomic == 2 { Act::AtomicRead(basic) } else { Act::AtomicWrite(basic) },
                r.number()?,
            )
        }
    };
    let place = r.place()?;
    let begin = r.small()?;
    let end = match r.number()? {
        0 => None,
        _ => Some(Point { rank, slot: r.small()?, segment: begin.wrapping_add(r.small()?) }),
    };
    let waits = r.small()?.checked_sub(1);
    let fenced = r.small()?.checked_sub(1);
    let mut spans = [Span { left: 0, entered: 0 }; SEQUENCES];
    for span in &mut spans {
        *span = Span { left: r.small()?, entered: r.small()?.wrapping_sub(1) };
    }
    let locks = r.list(|r| {
        Some(Lock {
            window: r.window()?,
            target: r.small()?.checked_sub(1),
            exclusive: r.number()? != 0,
            acquired: r.small()?,
        })
    })?;
    let (window, began) = (r.window()?, r.number()?);
    let ended = began.wrapping_add(r.number()?);
    let last = began.wrapping_add(r.number()?);
    let local_only = r.number()? != 0;
    let barrier = if r.number()? != 0 { Some(r.place()?) } else { None };
    Some(Record {
        rank,
        slot,
        call,
        side,
        act,
        from,
        place,
        begin,
        end,
        waits,
        fenced,
        spans,
        locks,
        window,
        began,
        ended,
        last,
        local_only,
        barrier,
    })
}

fn write_key(w: &mut Writer<'_>, key: Key) {
    let n = u64::from;
    match key {
        Key::Message { comm, from, to, tag, k } => {
            w.numbers([0, comm, n(from), n(to), n(tag as u32), n(k)]);
        }
        Key::Collective { comm, k } => w.numbers([1, comm, n(k)]),
        Key::Post { window, from, to, k } => w.numbers([2, window, n(from), n(to), n(k)]),
        Key::Complete { window, from, to, k } => w.numbers([3, window, n(from), n(to), n(k)]),
        Key::Lock { window, target, exclusive } => {
            w.numbers([4, window, target.map_or(0, |t| n(t) + 1), u64::from(exclusive)]);
        }
        Key::Atomic { window, target, at, basic } => {
            w.numbers([5, window, n(target), at, n(basic)]);
        }
        Key::Flag { window, target, at, value } => {
            w.numbers([6, window, n(target), at, u64::from(value.is_some()), value.unwrap_or(0)]);
        }
    }
}

fn read_key(r: &mut Reader<'_>) -> Option<Key> {
    Some(match r.number()? {
        0 => Key::Message {
            comm: r.number()?,
            from: r.small()?,
            to: r.small()?,
            tag: r.small()? as i32,
            k: r.small()?,
        },
        1 => Key::Collective { comm: r.number()?, k: r.small()? },
        2 => Key::Post { window: r.number()?, from: r.small()?, to: r.small()?, k: r.small()? },
        3 => Key::Complete { window: r.number()?, from: r.small()?, to: r.small()?, k: r.small()? },
        4 => Key::Lock {
            window: r.number()?,
            target: r.small()?.checked_sub(1),
            exclusive: r.number()? != 0,
        },
        5 => Key::Atomic {
            window: r.number()?,
            target: r.small()?,
            at: r.number()?,
            basic: r.small()?,
        },
        6 => Key::Flag {
            window: r.number()?,
            target: r.small()?,
            at: r.number()?,
            value: (r.number()? != 0).then_some(()).zip(r.number()).map(|((), value)| value),
        },
        _ => return None,
    })
}

/// A log as bytes.
pub fn log_to_bytes(log: &Log) -> Vec<u8> {
    let mut names = Names::new();
    let mut w = Writer::new(&mut names);
    w.numbers([VERSION, u64::from(log.unfollowed), log.events.len() as u64]);
    for event in &log.events {
        w.numbers([u64::from(event.slot), u64::from(event.segment), event.takes.len() as u64]);
        event.takes.iter().for_each(|&key| write_key(&mut w, key));
        w.number(event.gives.len() as u64);
        event.gives.iter().for_each(|&key| write_key(&mut w, key));
    }
    w.number(log.known.len() as u64);
    for known in &log.known {
        w.numbers([known.segment, known.slot, known.tick].map(u64::from));
        w.number(known.clock.len() as u64);
        w.numbers(known.clock.iter().map(|&c| u64::from(c)));
    }
    w.bytes
}

/// The log in bytes; `None` if they are not one of this version.
pub fn log_from_bytes(bytes: &[u8]) -> Option<Log> {
    let mut names = Names::new();
    let mut r = Reader { bytes, names: &mut names, windows: Vec::new() };
    if r.number()? != VERSION {
        return None;
    }
    let unfollowed = r.number()? != 0;
    let events = r.list(|r| {
        Some(Event {
            slot: r.small()?,
            segment: r.small()?,
            takes: r.list(read_key)?,
            gives: r.list(read_key)?,
        })
    })?;
    let known = r.list(|r| {
        Some(Known {
            segment: r.small()?,
            slot: r.small()?,
            tick: r.small()?,
            clock: r.list(Reader::small)?,
        })
    })?;
    Some(Log { events, known, unfollowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::NEVER;

    fn record() -> Record {
        Record {
            rank: 3,
            slot: 1,
            call: 2,
            side: Side::Target,
            act: Act::AtomicWrite(Basic { number: 7, size: 8 }),
            from: 1 << 40,
            place: Place { module: "/bin/prog".into(), offset: 0x1234 },
            begin: 300,
            end: Some(Point { rank: 3, slot: 0, segment: 301 }),
            waits: Some(0),
            fenced: Some(3),
            spans: [Span { left: 7, entered: NEVER }, Span { left: 0, entered: 1 }],
            locks: vec![Lock { window: 9, target: Some(0), exclusive: true, acquired: 4 }],
            window: 9,
            began: 5,
            ended: 900,
            last: 33,
            local_only: true,
            barrier: Some(Place { module: "/bin/prog".into(), offset: 5 }),
        }
    }

    #[test]
    fn a_bucket_survives_the_wire_and_no_cut_of_it_does() {
        let pieces = vec![
            (Some(9), Bytes { start: 80, len: 8 }, vec![0, 1]),
            (None, Bytes { start: 16, len: 1 << 33 }, vec![1]),
        ];
        let mut plain = record();
        (plain.end, plain.waits, plain.barrier) = (None, None, None);
        (plain.act, plain.from) = (Act::Read, 0);
        let bucket = Bucket { rank: 3, records: vec![record(), plain], pieces, threaded: true };
        let bytes = bucket_to_bytes(&bucket, &mut Names::new());
        let read = |bytes: &[u8]| bucket_from_bytes(bytes, &mut Map::default());
        assert_eq!(read(&bytes), Some(bucket));
        (0..bytes.len()).for_each(|cut| assert_eq!(read(&bytes[..cut]), None, "{cut}"));
    }

    #[test]
    fn a_name_is_sent_once_to_a_rank() {
        let bucket = Bucket { rank: 3, records: vec![record()], ..Bucket::default() };
        let (mut known, mut told) = (Names::new(), Map::default());
        let first = bucket_to_bytes(&bucket, &mut known);
        let second = bucket_to_bytes(&bucket, &mut known);
        assert_eq!(second.len() + "/bin/prog".len() + 1, first.len());
        for bytes in [&first, &second] {
            assert_eq!(bucket_from_bytes(bytes, &mut told).as_ref(), Some(&bucket));
        }
        let of_another_rank = bucket_to_bytes(&Bucket { rank: 4, ..bucket.clone() }, &mut known);
        assert_eq!(bucket_from_bytes(&of_another_rank, &mut told), None, "its names are not known");
    }

    #[test]
    fn a_log_survives_the_wire() {
        let keys = vec![
            Key::Message { comm: 1, from: 2, to: 3, tag: -7, k: 4 },
            Key::Collective { comm: 1, k: 2 },
            Key::Post { window: 1, from: 0, to: 1, k: 1 },
            Key::Complete { window: 1, from: 1, to: 0, k: 1 },
            Key::Lock { window: 5, target: Some(3), exclusive: true },
            Key::Atomic { window: 5, target: 1, at: 1 << 50, basic: 4 },
        ];
        let events = vec![Event { slot: 0, segment: 4, takes: keys.clone(), gives: keys }];
        let known = vec![Known { segment: 4, slot: 0, tick: 9, clock: vec![9, 0, 2] }];
        let log = Log { events, known, unfollowed: true };
        let bytes = log_to_bytes(&log);
        assert_eq!(log_from_bytes(&bytes), Some(log));
    }
}
