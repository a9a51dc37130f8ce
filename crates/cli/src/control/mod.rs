//! What `selvedge explore`, `selvedge test` and `selvedge replay` share.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`program`] | a program that can run under control |
//! | [`cases`] | turns the engine's results into cases of a report |
//! | [`determinism`] | deterministic blocks: compared with what is stored, and differences as cases |
//! | [`host`] | stores findings and shows progress while a campaign runs |
//! | [`meeting`] | `--meet`: makes threads meet at lines of the source |
//! | [`debug`] | `--gdb`: the interleaving of a finding under gdb |

pub(crate) mod cases;
pub(crate) mod debug;
pub(crate) mod determinism;
pub(crate) mod host;
pub(crate) mod meeting;
pub(crate) mod program;
#[cfg(test)]
mod replays;
