//! The runtime inside the program under test: it replaces ThreadSanitizer's, finds data races inline,
//! and tells the host about synchronization through shared memory.
//!
//! It must work inside any C, C++ or Rust program, at any moment of its life. So it has no standard
//! library, never allocates from the program, takes none of the program's locks, makes system calls by
//! itself, and keeps its state at fixed places ([`layout`]). All of it needs unsafe code; each file opens
//! with its ground rules.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`wire`] | the memory shared with the host: the only part that the host sees |
//! | [`abi`] | the entry points the compilers call |
//! | [`arch`] | what depends on the processor: assembly, the filter of accesses, system calls, structures of the C library |
//! | [`shadow`], [`places`], [`fasttrack`] | what is remembered of each granule, and the race check |
//! | [`clock`], [`sync`], [`atomics`] | what orders threads |
//! | [`thread`] | threads, their slots, thread-local words |
//! | [`regions`] | marked regions, and functions that are regions |
//! | [`values`] | what the program hands over in deterministic blocks |
//! | [`judges`] | where predicates that are functions of the program run |
//! | [`primitives`] | what locks, conditions, barriers and the like do, observed or controlled |
//! | [`misuse`] | what no schedule allows, of synchronization objects, signal handlers and threads |
//! | [`control`] | controlled executions: one thread at a time |
//! | [`custom`] | fibers, external objects and unaligned accesses that the program announces itself |
//! | [`interpose`] | functions of the C library that synchronize, allocate or copy |
//! | [`spmd`], [`sampling`] | loads and stores for the library for MPI programs |
//! | [`run`] | an access to many bytes, told as one |
//! | [`spmd`] | loads and stores for the library for MPI programs |
//! | [`rings`], [`report`] | events and races on their way to the host |
//! | [`init`], [`sys`], [`layout`] | start-up, system calls, addresses |

#![cfg_attr(not(test), no_std)]

pub mod abi;
pub mod annotate;
pub mod arch;
pub mod atomics;
pub mod clock;
pub mod control;
pub mod custom;
pub mod errno;
pub mod fasttrack;
pub mod init;
pub mod interpose;
pub mod judges;
pub mod layout;
pub mod misuse;
pub mod owners;
pub mod places;
pub mod primitives;
pub mod regions;
pub mod report;
pub mod rings;
pub mod run;
pub mod sampling;
pub mod server;
pub mod shadow;
pub mod spmd;
pub mod sync;
pub mod sys;
pub mod thread;
pub mod values;
pub mod wire;
pub mod word;

#[cfg(selvedge_injected)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::fatal(b"selvedge: internal error in the runtime\n")
}
