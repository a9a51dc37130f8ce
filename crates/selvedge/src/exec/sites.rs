//! Source places of operations, as small numbers.
//!
//! A place is known by the address of the compiler's `Location`; the same line may have several such
//! addresses, so a new address is looked up by its content once.

use std::panic::Location;

use rustc_hash::FxHashMap;
use selvedge_model::schedule::landmark;
use selvedge_model::{Frame, Site, SiteId, Symbols};

const RECENT: usize = 64;

/// A place as the executor uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) site: SiteId,
    pub(crate) landmark: u16,
    /// The same for every worker, which numbers sites by itself.
    pub(crate) name: u64,
}

/// All places met so far by one worker.
pub(crate) struct Sites {
    by_address: FxHashMap<usize, Place>,
    recent: [(usize, Place); RECENT],
}

impl Sites {
    pub(crate) fn new() -> Sites {
        let nowhere = Place { site: SiteId(0), landmark: 0, name: 0 };
        Sites { by_address: FxHashMap::default(), recent: [(0, nowhere); RECENT] }
    }

    #[inline]
    pub(crate) fn place(
        &mut self,
        location: &'static Location<'static>,
        symbols: &mut Symbols,
    ) -> Place {
        let address = std::ptr::from_ref(location) as usize;
        let cached = &self.recent[(address >> 3) % RECENT];
        if cached.0 == address {
            return cached.1;
        }
        self.look_up(location, address, symbols)
    }

    #[cold]
    fn look_up(
        &mut self,
        location: &'static Location<'static>,
        address: usize,
        symbols: &mut Symbols,
    ) -> Place {
        let place = *self.by_address.entry(address).or_insert_with(|| {
            let frame = Frame {
                file: location.file().into(),
                line: location.line(),
                column: location.column(),
                ..Frame::default()
            };
            let site = Site::Source(frame, Vec::new());
            let landmark = landmark(&site);
            let name = name(location);
            Place { site: SiteId(symbols.sites.intern(site)), landmark, name }
        });
        self.recent[(address >> 3) % RECENT] = (address, place);
        place
    }
}

/// A number for a place that does not depend on which places were met before.
fn name(location: &Location<'_>) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    location.file().bytes().for_each(&mut add);
    location.line().to_le_bytes().into_iter().for_each(&mut add);
    location.column().to_le_bytes().into_iter().for_each(&mut add);
    hash
}
