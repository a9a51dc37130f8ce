//! The native front end, seen from the `selvedge` process: starts C, C++ and Rust programs that carry
//! the injected runtime, and turns what they leave in shared memory into events and findings.
//!
//! The program runs at its own pace and finds data races by itself; this side drains what it records,
//! so that a crash or a kill of the program loses nothing.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`libraries`] | the injected runtime itself, as files to link, replace or preload |
//! | [`session`] | starting a program and watching it to its end |
//! | [`control`] | running a program one thread at a time, under a strategy |
//! | [`shm`] | the shared memory |
//! | [`merge`] | the rings of all threads in one order |
//! | [`decode`] | records become [`Event`](selvedge_model::Event)s, and pending steps under control |
//! | [`flow`] | how data flows in programs that were compiled for that |
//! | [`values`], [`blocks`] | what the program hands over in deterministic blocks |
//! | [`places`] | what addresses of code mean |
//! | [`names`] | names of threads and locks that are the same in every execution |
//! | `called` | what threads and objects are called in reports |
//! | `numbering` | numbers for memory that do not depend on where it lies |
//! | [`modules`] | what a program counter belongs to |
//! | [`epoch`] | when a thread did something |
//! | [`races`], `misuse` | records of races and of misuse become findings |
//! | `earlier` | the place of a race's earlier access |
//! | [`crash`], `last_words` | where a signal ended a program, and what it said |
//! | `rust_locks` | which locks of Rust a thread is known to hold |
//! | [`rust_std`] | stubs for the parts of Rust's standard library that are not instrumented |

pub mod blocks;
mod called;
pub mod control;
pub mod crash;
pub mod decode;
mod earlier;
pub mod epoch;
pub mod flow;
pub mod judges;
mod last_words;
pub mod libraries;
pub mod merge;
mod misuse;
pub mod modules;
pub mod names;
mod numbering;
pub mod places;
mod process;
pub mod races;
mod rust_locks;
pub mod rust_std;
pub mod session;
pub mod shm;
mod stacks;
pub mod values;

pub use blocks::{Blocks, BlocksSeen};
pub use control::{Controlled, Settings};
pub use crash::Crash;
pub use epoch::{Epoch, Past};
pub use judges::Judges;
pub use libraries::{Form, Libraries};
pub use modules::{
    ByModule, Call as CallBefore, FunctionRegion, Location, LockPart, LockStep, Module, Modules,
    Registers, Resolve, Shape,
};
pub use races::{Call, NativeRace, RaceSide};
pub use selvedge_injected::wire;
pub use session::{Error, Object, Observe, Options, Outcome, Session};
pub use shm::Children;
