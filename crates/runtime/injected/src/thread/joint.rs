//! What became of accesses to cells that had other places: see [`places`](crate::places).

use core::sync::atomic::AtomicU64;

use crate::shadow::{ATOMIC, EPOCH, PC_SHIFT};

/// Entries of [`Thread::joints`](super::Thread::joints).
pub const JOINTS: usize = 512;

/// A cell's bytes and place, those of an access, and what becomes of them.
///
/// A signal's handler may change an entry while it is looked at, but never while it is written: what
/// stands between two looks at the same key belongs to it.
#[repr(C)]
pub struct Joint {
    /// Of a cell and an access; 0 if there is none.
    // invariant: 0, or what `Joint::key` says; that is never 0, because an access has bytes.
    pub key: AtomicU64,
    /// What becomes of them.
    pub result: AtomicU64,
}

impl Joint {
    /// Both of a cell and an access but their epoch, which is the same.
    #[inline(always)]
    pub fn key(old: u64, cell: u64) -> u64 {
        (old & !(EPOCH | ATOMIC)) | (cell >> PC_SHIFT) << 8 | (cell & 0xff) << 31
    }

    /// Where a key stands in the table.
    #[inline(always)]
    pub fn place(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - JOINTS.trailing_zeros())) as usize
    }
}
