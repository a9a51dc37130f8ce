//! The commands, one module each. A command parses nothing and decides no exit code of a failure: it takes its
//! arguments, does its work and returns an [`Exit`](crate::exit::Exit) or a [`Failure`](crate::exit::Failure).

pub(crate) mod cargo;
pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod explore;
pub(crate) mod fixed;
pub(crate) mod history;
pub(crate) mod infer;
pub(crate) mod manual;
pub(crate) mod mcp;
pub(crate) mod merge;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod states;
pub(crate) mod test;
pub(crate) mod trace;
