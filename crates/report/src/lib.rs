//! Reports of findings, for people and for programs.
//!
//! A [`Case`] is a finding with names and places instead of the ids of an execution, and otherwise with the same
//! types. Sentences are made only in this crate, when a format shows a case; no code parses a sentence.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`case`] | [`Case`] and its parts |
//! | `resolve` | turns a finding and its symbols into a case |
//! | [`words`], [`advice`] | every sentence about a case: what, why, what helps |
//! | [`told`] | a case as plain lines, for the output of a test |
//! | [`mod@explain`] | which events of an execution matter to a finding |
//! | [`interleaving`] | these events as rows with names, which can be stored |
//! | `arrows` | which row hands something to a row of another thread |
//! | [`mod@layout`] | rows as columns of text, for a width |
//! | [`sources`] | lines of source, from files that the caller reads |
//! | [`escape`] | text of the program under test, made safe to show |
//! | [`summary`] | [`Report`]: all cases of a command, and what was analysed |
//! | `format` | `FORMATS`: one file and one line each; feature `formats` |
//! | [`serial`] | serial executions that do not explain what was observed |
//! | `old` | cases in the form of the previous store version; feature `serde` |
//!
//! This crate does no I/O: the caller provides source files and the width of the terminal.

#![forbid(unsafe_code)]

pub mod advice;
mod arrows;
mod baseline;
pub mod case;
mod compared;
pub mod escape;
pub mod explain;
#[cfg(feature = "formats")]
pub mod format;
pub mod interleaving;
pub mod layout;
#[cfg(feature = "serde")]
pub mod old;
#[cfg(feature = "serde")]
pub mod path;
mod resolve;
pub mod serial;
pub mod sources;
pub mod summary;
pub mod told;
mod variable;
pub mod words;

pub use baseline::{Baseline, Known, Since};
pub use case::{
    Case, Compared, Control, Diverged, Failure, Given, Happened, Harm, Holder, How, Lacks, Lock,
    Memory, NotReplayed, Note, Order, Outcome, Place, Region, Role, State, Subject, Watched, Which,
};
pub use explain::{Executed, Explanation, Story, explain, explain_execution};
#[cfg(feature = "formats")]
pub use format::{FORMATS, Format, View};
pub use interleaving::{Act, Chance, Elided, End, Interleaving, Row, Verb};
pub use layout::{Line, Span, Style, beside, layout};
pub use serial::Serial;
pub use sources::Sources;
pub use summary::{Bound, CutOff, Effort, Parallelism, Remark, Report, Stats, Stopped, Suppressed};
pub use variable::{Exception, Other, Variable};
