//! Reading binary traces.

use std::io::{self, Read};

use super::super::{Ending, Position, TraceError};
use super::codec::Decoder;
use super::varint::Bytes;
use super::{BlockHeader, BlockKind, FILE_HEADER, MAGIC, VERSION, definitions};
use crate::{Event, Symbols};

/// Reads a binary trace, a block at a time.
pub struct BinaryReader<R> {
    input: R,
    version: u8,
    symbols: Symbols,
    decoder: Decoder,
    decompressor: zstd::bulk::Decompressor<'static>,
    stored: Vec<u8>,
    raw: Vec<u8>,
    /// Where the block of the last batch starts, and where the next one does.
    block: u64,
    offset: u64,
    /// Events before the last batch, and up to its end.
    before: u64,
    events: u64,
    ending: Option<Ending>,
}

impl<R: Read> BinaryReader<R> {
    /// Reads and checks the header.
    pub fn new(mut input: R) -> Result<BinaryReader<R>, TraceError> {
        let mut header = [0; FILE_HEADER];
        let got = read_up_to(&mut input, &mut header)?;
        let start = Position::Offset(0);
        if got < 5 || header[..4] != MAGIC {
            return Err(TraceError::invalid(
                start,
                "this is neither text nor a binary Selvedge trace",
            ));
        }
        if header[4] > VERSION {
            return Err(TraceError::Version { found: header[4], supported: VERSION });
        }
        if got < FILE_HEADER || header[4] == 0 {
            return Err(TraceError::invalid(start, "the header is damaged"));
        }
        Ok(BinaryReader {
            input,
            version: header[4],
            symbols: Symbols::default(),
            decoder: Decoder::new(),
            decompressor: zstd::bulk::Decompressor::new()?,
            stored: Vec::new(),
            raw: Vec::new(),
            block: 0,
            offset: FILE_HEADER as u64,
            before: 0,
            events: 0,
            ending: None,
        })
    }

    /// The names and sites of everything read so far.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// How the trace ended, once [`BinaryReader::read`] has come to its end.
    pub fn ending(&self) -> Ending {
        self.ending.unwrap_or(Ending::CutOff { offset: self.offset })
    }

    /// Where an event of the last batch stands.
    pub fn position_of(&self, index: usize) -> Position {
        Position::Event { number: self.before + index as u64 + 1, block: self.block }
    }

    /// Appends the events of the next block to `batch`; none at the end.
    pub fn read(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        while self.ending.is_none() && batch.is_empty() {
            match self.next_block()? {
                None => self.ending = Some(Ending::CutOff { offset: self.block }),
                Some(header) => match header.kind {
                    BlockKind::Events => self.decode(header, batch)?,
                    BlockKind::End => self.end()?,
                },
            }
        }
        self.before = self.events;
        self.events += batch.len() as u64;
        Ok(())
    }

    /// Decompresses the next block without decoding its events, and says how many bytes that gave;
    /// nothing at the end. What reading costs at least.
    pub fn skim(&mut self) -> Result<Option<usize>, TraceError> {
        match self.next_block()? {
            Some(header) if header.kind == BlockKind::Events => {
                self.decompress(header)?;
                Ok(Some(self.raw.len()))
            }
            _ => Ok(None),
        }
    }

    fn decompress(&mut self, header: BlockHeader) -> Result<(), TraceError> {
        self.raw.clear();
        self.raw.reserve(header.raw as usize);
        match self.decompressor.decompress_to_buffer(&self.stored, &mut self.raw) {
            Ok(n) if n == header.raw as usize => Ok(()),
            _ => Err(self.damaged("the block is damaged (it cannot be decompressed)")),
        }
    }

    /// Reads a block into `self.stored`; nothing if the file ends before it does.
    fn next_block(&mut self) -> Result<Option<BlockHeader>, TraceError> {
        self.block = self.offset;
        let mut bytes = [0; BlockHeader::SIZE];
        if read_up_to(&mut self.input, &mut bytes)? < bytes.len() {
            return Ok(None);
        }
        let header = BlockHeader::from_bytes(&bytes).ok_or_else(|| {
            self.damaged("the block header is damaged (its checksum does not match)")
        })?;
        self.stored.resize(header.stored as usize, 0);
        if read_up_to(&mut self.input, &mut self.stored)? < self.stored.len() {
            return Ok(None);
        }
        if crc32fast::hash(&self.stored) != header.payload_crc {
            return Err(self.damaged("the block is damaged (its checksum does not match)"));
        }
        self.offset += (BlockHeader::SIZE + self.stored.len()) as u64;
        Ok(Some(header))
    }

    fn decode(&mut self, header: BlockHeader, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        self.decompress(header)?;
        let raw = std::mem::take(&mut self.raw);
        let mut decode = || {
            let mut bytes = Bytes(&raw);
            definitions::read(self.version, &mut bytes, &mut self.symbols)?;
            let count = header.events as usize;
            self.decoder.read_block(&mut bytes, count, &self.symbols, batch)?;
            bytes.0.is_empty().then_some(())
        };
        let sound = decode().is_some();
        self.raw = raw;
        if !sound {
            batch.clear();
            return Err(self.damaged("the block is damaged (its contents are invalid)"));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), TraceError> {
        let total = <[u8; 8]>::try_from(&self.stored[..]).map(u64::from_le_bytes);
        if total.ok() != Some(self.events) {
            return Err(self.damaged("the end of the trace does not match its blocks"));
        }
        let mut rest = [0];
        if read_up_to(&mut self.input, &mut rest)? > 0 {
            self.block = self.offset;
            return Err(self.damaged("something follows the end of the trace"));
        }
        self.ending = Some(Ending::Whole);
        Ok(())
    }

    fn damaged(&self, problem: &str) -> TraceError {
        TraceError::invalid(Position::Offset(self.block), problem)
    }
}

/// Fills `buffer` as far as the input goes.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
