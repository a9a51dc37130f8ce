//! What `selvedge explore`, `selvedge test` and `selvedge replay` share.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`program`] | a program that can run under control |
//! | [`again`] | a stored finding, and the program in which to make it happen again |
//! | [`cases`] | turns the engine's results into cases of a report |
//! | [`determinism`] | deterministic blocks: compared with what is stored, and differences as cases |
//! | [`flow`] | programs that say how their data flows |
//! | [`host`] | stores findings and shows progress while a campaign runs |
//! | [`margin`] | `--margin`: how likely a finding is from each row of its interleaving on |
//! | [`meeting`] | `--meet`: makes threads meet at lines of the source |
//! | [`sharing`] | which plain accesses are scheduling points of programs that say how their data flows |
//! | [`twins`] | the sequential executions of such programs |
//! | [`debug`] | `--gdb`: the interleaving of a finding under gdb |

pub(crate) mod again;
pub(crate) mod cases;
pub(crate) mod debug;
pub(crate) mod determinism;
pub(crate) mod flow;
pub(crate) mod host;
pub(crate) mod linearity;
pub(crate) mod margin;
pub(crate) mod meeting;
pub(crate) mod program;
#[cfg(test)]
mod replays;
pub(crate) mod sharing;
pub(crate) mod twins;
