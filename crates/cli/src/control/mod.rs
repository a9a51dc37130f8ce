//! What `selvedge explore`, `selvedge test` and `selvedge replay` have in common.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`program`] | a program that is ready to be run under control |
//! | [`cases`] | what the engine tells becomes cases of a report |
//! | [`host`] | who hears of a campaign while it runs |
//! | [`meeting`] | threads that are to come together at lines of the source |
//! | [`debug`] | the interleaving of a finding under gdb |

pub(crate) mod cases;
pub(crate) mod debug;
pub(crate) mod host;
pub(crate) mod meeting;
pub(crate) mod program;
#[cfg(test)]
mod replays;
