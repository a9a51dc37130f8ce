//! The place inside a controlled object where the execution keeps its number for it.
//!
//! An object gets a number when an execution first meets it, in the order of meeting, which is the same
//! in every execution with the same schedule. The number is stored in the object together with the
//! generation of the execution; an object that lives longer than one execution, such as a static, is
//! met anew by the next one.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// Identity of a controlled object.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Generation above, index below; zero if no execution has met the object.
    // ordering: relaxed. An execution reads only what its own OS thread wrote, or a foreign
    // generation, which it compares with its own.
    number: AtomicU64,
    made: Option<&'static Location<'static>>,
}

impl Slot {
    #[track_caller]
    pub(crate) const fn new() -> Slot {
        Slot { number: AtomicU64::new(0), made: Some(Location::caller()) }
    }

    /// Of an object that is made by a constant, which does not know where it is used.
    #[cfg(feature = "parking_lot")]
    pub(crate) const fn anonymous() -> Slot {
        Slot { number: AtomicU64::new(0), made: None }
    }

    /// Where the object was made.
    pub(crate) fn made(&self) -> Option<&'static Location<'static>> {
        self.made
    }

    /// The object's number in the execution of this generation, if it has been met.
    #[inline]
    pub(crate) fn get(&self, generation: u64) -> Option<u32> {
        let number = self.number.load(Ordering::Relaxed);
        (number >> INDEX_BITS == generation).then_some((number & INDEX_MASK) as u32)
    }

    /// The generation of the execution that met the object last; zero if none did.
    pub(crate) fn generation(&self) -> u64 {
        self.number.load(Ordering::Relaxed) >> INDEX_BITS
    }

    pub(crate) fn set(&self, generation: u64, index: u32) {
        assert!(u64::from(index) <= INDEX_MASK, "more than 16 million objects in one execution");
        self.number.store(generation << INDEX_BITS | u64::from(index), Ordering::Relaxed);
    }
}
