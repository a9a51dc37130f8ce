//! How data flows: the words of a program that was compiled with `selvedge cc --selvedge-flow` become events.
//!
//! The program says which blocks it executes, which addresses it accesses and where calls leave; the [tables] in its
//! file say what blocks do to values. [`Flow`] follows every thread through its functions and writes the events of a
//! trace with data flow: what reads, writes and branches depend on.
//!
//! An address, a divisor and the target of a call decide which way the program goes: they are branches. A call of code
//! that is not followed reads and writes what the runtime saw of it ([`calls`]); if it is code that nothing is known
//! of, its arguments are branches as well, and it is counted and named.
//!
//! If statements are asked for, they are regions: `begin(stmt:FILE:FIRST-LAST FUNCTION)` of a trace ([`statements`]).
//! Stars that the program marks are left out then.
//!
//! Source: Burnim, "Specifying and Checking Correctness of Parallel Programs" (2012), sections 6.4 and 6.5.
//!
//! *Guarantee*: every read and write of followed code is an event, in the order of the execution, with all values that
//! flow into it. If words and tables do not fit, [`Flow::broken`] says so, and nothing may be concluded.
//!
//! Cost: a few events for each operation.

pub mod calls;
pub mod statements;
mod stream;
pub mod tables;

pub use stream::{Flow, Writing};
pub use tables::Tables;
