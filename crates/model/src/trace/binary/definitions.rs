//! The names and sites that a block adds to the ones before it.

use super::MAX_ENTRIES;
use super::codec::Highest;
use super::varint::{Bytes, put, put_str};
use crate::symbols::{Names, Table};
use crate::{Frame, Range, Region, RegionKind, Site, Symbols};

/// How much of each table has been written.
#[derive(Default)]
pub(super) struct Written {
    names: [usize; 6],
    variables: usize,
    regions: usize,
    sites: usize,
}

impl Written {
    /// Appends what is new in `symbols`, and nameless entries for ids that events use without one.
    pub(super) fn put_new(&mut self, symbols: &Symbols, used: Highest, out: &mut Vec<u8>) {
        let names: [(&Names, u32); 6] = [
            (&symbols.threads, used.threads),
            (&symbols.locks, used.locks),
            (&symbols.barriers, used.barriers),
            (&symbols.semaphores, used.semaphores),
            (&symbols.conds, used.conds),
            (&symbols.locals, used.locals),
        ];
        for ((table, used), written) in names.into_iter().zip(&mut self.names) {
            put_entries(written, table.entries(), used, out, |name, out| {
                put_str(out, name.map_or("", |n| n));
            });
        }
        put(out, (symbols.variables.iter().len() - self.variables) as u64);
        for (name, range) in symbols.variables.iter().skip(self.variables) {
            put_str(out, name);
            put(out, range.start);
            put(out, range.len);
        }
        self.variables = symbols.variables.iter().len();
        let regions = symbols.regions.entries();
        put_entries(&mut self.regions, regions, used.regions, out, |region, out| {
            out.push(region.map_or(0, |r| r.kind as u8));
            put_str(out, region.map_or("", |r| &r.name));
        });
        let sites = symbols.sites.entries();
        put_entries(&mut self.sites, sites, used.sites, out, put_site);
    }
}

fn put_entries<T>(
    written: &mut usize,
    entries: &[T],
    used: u32,
    out: &mut Vec<u8>,
    put_entry: impl Fn(Option<&T>, &mut Vec<u8>),
) {
    let wanted = entries.len().max(used as usize).max(*written);
    put(out, (wanted - *written) as u64);
    for i in *written..wanted {
        put_entry(entries.get(i), out);
    }
    *written = wanted;
}

fn put_site(site: Option<&Site>, out: &mut Vec<u8>) {
    match site {
        None => {
            put(out, 0);
            put_str(out, "");
        }
        Some(Site::Label(text)) => {
            put(out, 0);
            put_str(out, text);
        }
        Some(Site::Source(frame, inlined_into)) => {
            put(out, 1 + inlined_into.len() as u64);
            for frame in std::iter::once(frame).chain(inlined_into) {
                put_str(out, &frame.function);
                put_str(out, &frame.file);
                put(out, u64::from(frame.line));
                put(out, u64::from(frame.column));
            }
        }
    }
}

/// Takes the definitions of a block into `symbols`; nothing if they make no sense. Version 1 has no locals.
pub(super) fn read(version: u8, bytes: &mut Bytes<'_>, symbols: &mut Symbols) -> Option<()> {
    for table in [
        &mut symbols.threads,
        &mut symbols.locks,
        &mut symbols.barriers,
        &mut symbols.semaphores,
        &mut symbols.conds,
    ] {
        read_entries(bytes, table, |bytes| Some(bytes.str()?.into()))?;
    }
    if version > 1 {
        read_entries(bytes, &mut symbols.locals, |bytes| Some(bytes.str()?.into()))?;
    }
    for _ in 0..bytes.number()? {
        if symbols.variables.iter().len() >= MAX_ENTRIES {
            return None;
        }
        let name = bytes.str()?;
        let range = Range { start: bytes.number()?, len: bytes.number()? };
        range.start.checked_add(range.len)?;
        symbols.variables.define(name, range);
    }
    read_entries(bytes, &mut symbols.regions, |bytes| {
        let (kind, _) = *RegionKind::LABELS.get(usize::from(bytes.byte()?))?;
        Some(Region { kind, name: bytes.str()?.into() })
    })?;
    read_entries(bytes, &mut symbols.sites, read_site)
}

fn read_entries<T: Clone + Eq + std::hash::Hash>(
    bytes: &mut Bytes<'_>,
    table: &mut Table<T>,
    read_entry: impl Fn(&mut Bytes<'_>) -> Option<T>,
) -> Option<()> {
    for _ in 0..bytes.number()? {
        if table.entries().len() >= MAX_ENTRIES {
            return None;
        }
        table.push(read_entry(bytes)?);
    }
    Some(())
}

fn read_site(bytes: &mut Bytes<'_>) -> Option<Site> {
    let frames = bytes.number()?;
    if frames == 0 {
        return Some(Site::Label(bytes.str()?.into()));
    }
    let frame = read_frame(bytes)?;
    let inlined_into = (1..frames).map(|_| read_frame(bytes)).collect::<Option<_>>()?;
    Some(Site::Source(frame, inlined_into))
}

fn read_frame(bytes: &mut Bytes<'_>) -> Option<Frame> {
    Some(Frame {
        function: bytes.str()?.into(),
        file: bytes.str()?.into(),
        line: bytes.number_u32()?,
        column: bytes.number_u32()?,
    })
}
