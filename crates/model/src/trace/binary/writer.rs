//! Writing binary traces.

use std::io::{self, Write};

use super::codec::Encoder;
use super::definitions::Written;
use super::{BLOCK_EVENTS, BlockHeader, BlockKind, FILE_HEADER, MAGIC, MAX_RAW, VERSION};
use crate::{Event, Symbols};

/// zstd's fastest level is within a few percent of the next ones: the columns are regular already.
const LEVEL: i32 = 1;

/// Writes a binary trace. A block goes out when it is full; [`BinaryWriter::finish`] writes the last
/// one and the mark that the trace is whole. Dropped without it, the trace reads as cut off.
pub struct BinaryWriter<W> {
    output: W,
    encoder: Encoder,
    written: Written,
    compressor: zstd::bulk::Compressor<'static>,
    raw: Vec<u8>,
    events: u64,
}

impl<W: Write> BinaryWriter<W> {
    /// Writes the header to `output`.
    pub fn new(mut output: W) -> io::Result<BinaryWriter<W>> {
        let mut header = [0; FILE_HEADER];
        header[..4].copy_from_slice(&MAGIC);
        header[4] = VERSION;
        output.write_all(&header)?;
        Ok(BinaryWriter {
            output,
            encoder: Encoder::new(),
            written: Written::default(),
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            raw: Vec::new(),
            events: 0,
        })
    }

    /// Appends an event. `symbols` must always be the same, growing, tables; an id that has no name
    /// there when its block is full stays without one.
    pub fn write(&mut self, event: &Event, symbols: &Symbols) -> io::Result<()> {
        self.encoder.push(event);
        if self.encoder.events() == BLOCK_EVENTS { self.flush(symbols) } else { Ok(()) }
    }

    /// Writes what has not been written yet as a block of its own, so that it survives a crash.
    pub fn flush(&mut self, symbols: &Symbols) -> io::Result<()> {
        let events = self.encoder.events();
        self.raw.clear();
        self.written.put_new(symbols, self.encoder.highest(), &mut self.raw);
        self.encoder.finish_block(&mut self.raw);
        self.events += events as u64;
        if self.raw.len() > MAX_RAW {
            return Err(io::Error::other("more new names and sites at once than a trace can hold"));
        }
        let payload = self.compressor.compress(&self.raw)?;
        self.block(BlockKind::Events, &payload, self.raw.len(), events)
    }

    /// Writes the rest and the end, flushes, and gives the output back.
    pub fn finish(mut self, symbols: &Symbols) -> io::Result<W> {
        self.flush(symbols)?;
        let total = self.events.to_le_bytes();
        self.block(BlockKind::End, &total, total.len(), 0)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn block(
        &mut self,
        kind: BlockKind,
        payload: &[u8],
        raw: usize,
        events: usize,
    ) -> io::Result<()> {
        let header = BlockHeader {
            kind,
            stored: payload.len() as u32,
            raw: raw as u32,
            events: events as u32,
            payload_crc: crc32fast::hash(payload),
        };
        // One write for the whole block: a kill in between leaves at worst a cut-off end.
        let mut bytes = Vec::with_capacity(BlockHeader::SIZE + payload.len());
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(payload);
        self.output.write_all(&bytes)
    }
}
