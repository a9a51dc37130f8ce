//! Findings as people and programs get them.
//!
//! A [`Case`] is a finding that has left its execution behind: names and places instead of ids, but
//! otherwise as typed as the finding was. Everything that is said about it is said here, once, when a
//! format makes words of it; nothing is ever read back out of a sentence.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`case`] | [`Case`] and its parts |
//! | `resolve` | from a finding and its symbols to a case |
//! | [`words`], [`advice`] | every sentence about a case: what, why, what helps |
//! | [`mod@explain`] | which events of an execution matter to a finding |
//! | [`interleaving`] | these as rows with names, which can be stored |
//! | [`mod@layout`] | rows as columns of text, for a width |
//! | [`sources`] | lines of source, from files that others read |
//! | [`summary`] | [`Report`]: all cases of a command, and what was looked at |
//! | `format` | `FORMATS`: one file and one line each; feature `formats` |
//! | `old` | cases as the store of the version before has them; feature `serde` |
//!
//! This crate does no I/O: it is given source files, and the width of a terminal.

#![forbid(unsafe_code)]

pub mod advice;
pub mod case;
pub mod explain;
#[cfg(feature = "formats")]
pub mod format;
pub mod interleaving;
pub mod layout;
#[cfg(feature = "serde")]
pub mod old;
mod resolve;
pub mod sources;
pub mod summary;
pub mod words;

pub use case::{
    Case, Control, Failure, Happened, Harm, Holder, How, Lock, Memory, NotReplayed, Note, Order,
    Outcome, Place, Region, Role, Subject, Watched, Which,
};
pub use explain::{Executed, Explanation, Story, explain, explain_execution};
#[cfg(feature = "formats")]
pub use format::{FORMATS, Format, View};
pub use interleaving::{Act, End, Interleaving, Row, Verb};
pub use layout::{Line, Span, Style, layout};
pub use sources::Sources;
pub use summary::{Bound, Effort, Report, Stats};
