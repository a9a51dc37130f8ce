//! Where the runtime's own memory lies in the address space of the program.
//!
//! All places are fixed, so that an address becomes a shadow address by arithmetic without loading a
//! base. A shadow address keeps the lowest [`SPACE_BITS`] bits of the application's: code and heap of
//! position-independent programs (0x55…), libraries, stacks and mappings (0x7e…, 0x7f…) and fixed
//! programs (0x0040…) differ in those.

/// Bits of an application address that matter.
pub const SPACE_BITS: u32 = 44;
/// 16 bytes of shadow for every 8 bytes of the program.
pub const SHADOW: usize = 0x1000_0000_0000;
/// Size of the shadow.
pub const SHADOW_LEN: usize = 2 << SPACE_BITS;
/// 4 bytes for every 8 of the program: number of the first synchronization object there.
pub const META: usize = 0x3000_0000_0000;
/// Size of the above.
pub const META_LEN: usize = 1 << (SPACE_BITS - 1);
/// One byte for every page of the program: whether it has had a synchronization object.
pub const PAGES: usize = 0x3800_0000_0000;
/// Size of the above.
pub const PAGES_LEN: usize = 1 << (SPACE_BITS - 12);
/// Call stack of threads that the runtime does not know: written, never read.
pub const NOBODYS_STACK: usize = 0x4000_0000_0000;
/// A page whose first word says that a runtime is in the process.
pub const PRESENCE: usize = 0x4000_0080_0000;
/// Size of the above.
pub const PRESENCE_LEN: usize = 4096;
/// Code places of cells whose bytes were accessed from several, see `places`.
pub const MOSAICS: usize = 0x4000_0100_0000;
/// Size of the above.
pub const MOSAICS_LEN: usize = 1 << 20;
/// Thread blocks.
pub const THREADS: usize = 0x4000_1000_0000;
/// Bytes of one thread block.
pub const THREAD_LEN: usize = 1 << 20;
/// Number of thread blocks, one per thread that is alive or not joined yet.
pub const MAX_THREADS: usize = 1 << 14;
/// Synchronization objects.
pub const OBJECTS: usize = 0x4100_0000_0000;
/// Size of the above.
pub const OBJECTS_LEN: usize = 1 << 34;
/// Vector clocks of synchronization objects.
pub const CLOCKS: usize = 0x4200_0000_0000;
/// Size of the above.
pub const CLOCKS_LEN: usize = 1 << 36;

/// Who accessed memory last, where accesses are held back (see `owners`): 16 bytes for every 8 of the program, in each
/// of two tables.
pub const OWNERS: [usize; 2] = [0x4400_0000_0000, 0x4800_0000_0000];
/// Bits of an application address that they are indexed with.
pub const OWNERS_BITS: u32 = 40;
/// Size of each.
pub const OWNERS_LEN: usize = 2 << OWNERS_BITS;

/// One byte for every page of the program, indexed likewise: whether memory in it has had an owner.
pub const OWNED: usize = 0x4a80_0000_0000;
/// Size of the above.
pub const OWNED_LEN: usize = 1 << (OWNERS_BITS - 12);

/// Numbers of descriptors, by which they are found as synchronization objects and in the shadow. No memory is there.
pub const DESCRIPTORS: usize = 0x4300_0000_0000;
/// Size of the above.
pub const DESCRIPTORS_LEN: usize = KEY << 16;
/// How far apart they are.
pub const KEY: usize = 16;

/// Bytes of one entry of a call stack: the return address of a function and a place in it.
pub const ENTRY: usize = 16;
/// Entries of `Thread::known`.
pub const KNOWN: usize = 32;

/// The descriptor of an address, if the address stands for one.
pub fn descriptor_at(addr: usize) -> Option<u32> {
    let is_one = (DESCRIPTORS..DESCRIPTORS + DESCRIPTORS_LEN).contains(&addr);
    is_one.then(|| ((addr - DESCRIPTORS) / KEY) as u32)
}

/// The part of an address that the tables are indexed with.
#[inline(always)]
pub fn index(addr: usize) -> usize {
    addr & ((1 << SPACE_BITS) - 1)
}

/// Everything that must be mapped before the first access.
pub const RESERVED: [(usize, usize); 9] = [
    (PRESENCE, PRESENCE_LEN),
    (SHADOW, SHADOW_LEN),
    (META, META_LEN),
    (PAGES, PAGES_LEN),
    (NOBODYS_STACK, 1 << 16),
    (MOSAICS, MOSAICS_LEN),
    (THREADS, MAX_THREADS * THREAD_LEN),
    (OBJECTS, OBJECTS_LEN),
    (CLOCKS, CLOCKS_LEN),
];
