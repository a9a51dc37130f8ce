//! Words of a [`RecordKind::Flow`](crate::wire::RecordKind::Flow): a tag in the top byte, below it a number, an address,
//! or the address of a place (`crates/instrument`).
//!
//! Changing anything here: raise [`VERSION`](crate::wire::VERSION).

#![allow(missing_docs)]

pub const SHIFT: u32 = 56;
pub const PAYLOAD: u64 = (1 << SHIFT) - 1;
/// A function begins; its place.
pub const ENTER: u64 = 1;
/// A block begins; its place.
pub const BLOCK: u64 = 2;
/// The address that the next operation accesses.
pub const ADDRESS: u64 = 3;
/// A length, or a flag.
pub const NUMBER: u64 = 4;
/// A call leaves; its place.
pub const LEAVE: u64 = 5;
/// It has come back.
pub const BACK: u64 = 6;
/// Code that is not followed reads memory: address, and then a length.
pub const READS: u64 = 7;
pub const WRITES: u64 = 8;
/// Memory is part of the result: address, and then a length.
pub const FOCUS: u64 = 9;
