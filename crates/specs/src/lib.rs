//! Specifications of parallelism: what a program promises beyond "no data race".
//!
//! *Guarantee*: everything here is pure: no I/O, no threads, no clock. Results depend only on the arguments.

#![forbid(unsafe_code)]

pub mod discipline;
