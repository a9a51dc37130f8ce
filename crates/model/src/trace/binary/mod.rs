//! Binary traces (`.svt`): compressed, checksummed blocks.
//!
//! ```text
//! file   = magic(4) version(1) zero(3)  block*  end-block
//! block  = kind(1) zero(3) stored(4) raw(4) events(4) payload-crc(4) header-crc(4)  payload(stored)
//! payload of an events block = zstd( definitions columns )
//! payload of the end block   = events(8), not compressed
//! ```
//!
//! Numbers are little-endian; inside a payload they are LEB128. An events block first defines the
//! names and sites that are new since the last block, then holds its events by columns: a tag byte
//! for each event, and only what the predictor (see `codec`) did not foresee in the others.
//!
//! A block is written whole, so a writer that is killed leaves every earlier block readable. The end
//! block tells a finished trace from one that was cut off.
//!
//! # Changing the format
//! 1. Raise [`VERSION`] and say here what changed.
//! 2. Keep reading every older version, or refuse it by name.
//! 3. Add a trace of the old version to the tests.
//! 4. The first five bytes never change.
//!
//! Version 1: the first.
//! Version 2: data flow ([`Flow`](crate::Flow)) with the names of locals, and regions of more kinds.
//! Version 3: updates ([`Operator`](crate::Operator)).

mod codec;
mod definitions;
mod reader;
mod varint;
mod writer;

pub use reader::BinaryReader;
pub use writer::BinaryWriter;

/// The first bytes of a binary trace. The first of them is in no text.
pub const MAGIC: [u8; 4] = [0x93, b'S', b'V', b'T'];

/// The version that is written, and the newest that is read.
pub const VERSION: u8 = 3;

const FILE_HEADER: usize = 8;

/// How many events a block holds at most.
const BLOCK_EVENTS: usize = 1 << 16;

/// How many bytes a block may have before compression: a bound on what a reader allocates.
const MAX_RAW: usize = 1 << 26;

/// How many entries a table may have: a bound on what a few compressed bytes can make a reader and
/// the analyses allocate.
const MAX_ENTRIES: usize = 1 << 22;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BlockKind {
    Events = 1,
    End = 2,
}

/// The fixed part of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BlockHeader {
    kind: BlockKind,
    stored: u32,
    raw: u32,
    events: u32,
    payload_crc: u32,
}

impl BlockHeader {
    const SIZE: usize = 24;

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0] = self.kind as u8;
        let fields = [self.stored, self.raw, self.events, self.payload_crc];
        for (field, slot) in fields.iter().zip(bytes[4..20].chunks_exact_mut(4)) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[..20]);
        bytes[20..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Nothing if the header is damaged.
    fn from_bytes(bytes: &[u8; Self::SIZE]) -> Option<BlockHeader> {
        let field = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if crc32fast::hash(&bytes[..20]) != field(20) {
            return None;
        }
        let kind = match bytes[0] {
            1 => BlockKind::Events,
            2 => BlockKind::End,
            _ => return None,
        };
        let header = BlockHeader {
            kind,
            stored: field(4),
            raw: field(8),
            events: field(12),
            payload_crc: field(16),
        };
        let plausible = header.stored as usize <= MAX_RAW + MAX_RAW / 8
            && header.raw as usize <= MAX_RAW
            && header.events as usize <= BLOCK_EVENTS;
        plausible.then_some(header)
    }
}

/// A file with one block of the given contents, valid but for what the contents are. For trying the
/// reader on nonsense that its checksums would otherwise keep out.
#[doc(hidden)]
pub fn file_of_raw_block(raw: &[u8], events: u32) -> Vec<u8> {
    let payload = zstd::bulk::compress(raw, 1).expect("compressing into memory works");
    let header = BlockHeader {
        kind: BlockKind::Events,
        stored: payload.len() as u32,
        raw: raw.len() as u32,
        events,
        payload_crc: crc32fast::hash(&payload),
    };
    let mut file = [0; FILE_HEADER].to_vec();
    file[..4].copy_from_slice(&MAGIC);
    file[4] = VERSION;
    file.extend(header.to_bytes());
    file.extend(payload);
    file
}

#[cfg(test)]
mod tests;
