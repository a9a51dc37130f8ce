//! `selvedge infer`: what contract does a program keep? One file for each kind of contract.

pub(crate) mod determinism;
pub(crate) mod discipline;
mod edits;
pub(crate) mod ndseq;
mod observed;
mod paste;

use crate::args::{Infer, InferCommand};
use crate::exit::{Exit, Failure};

/// Infers a contract and prints it. The exit code does not depend on what the contract says.
pub(crate) fn run(args: &Infer) -> Result<Exit, Failure> {
    match &args.command {
        InferCommand::Determinism(args) => determinism::run(args),
        InferCommand::Discipline(args) => discipline::run(args),
        InferCommand::Ndseq(args) => ndseq::run(args),
    }
}
