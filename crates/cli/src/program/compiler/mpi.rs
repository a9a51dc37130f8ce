//! `selvedge mpicc` and its like: the user's own compiler of MPI, which calls `selvedge cc` instead of the C compiler.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

use super::code;
use crate::exit::Failure;
use crate::program::toolbox::Toolbox;

/// The compilers of MPI and OpenSHMEM that `selvedge` stands before.
pub(crate) const COMPILERS: [&str; 4] = ["mpicc", "mpicxx", "oshcc", "oshcxx"];

/// The variables by which Open MPI, its OpenSHMEM, MPICH and Intel MPI are told which compiler to call.
const C: [&str; 4] = ["OMPI_CC", "OSHMEM_CC", "MPICH_CC", "I_MPI_CC"];
const CXX: [&str; 4] = ["OMPI_CXX", "OSHMEM_CXX", "MPICH_CXX", "I_MPI_CXX"];

/// The compiler that compiles the layer for the user's MPI.
pub(crate) fn mpicc() -> String {
    std::env::var("SELVEDGE_MPICC").unwrap_or_else(|_| "mpicc".to_owned())
}

/// The same for programs that use OpenSHMEM.
pub(crate) fn oshcc() -> String {
    std::env::var("SELVEDGE_OSHCC").unwrap_or_else(|_| "oshcc".to_owned())
}

/// Compiles or links. The exit code is the compiler's own.
pub(crate) fn run(name: &'static str, args: &[OsString]) -> Result<ExitCode, Failure> {
    let toolbox = Toolbox::unpack()?;
    let program = match name {
        "mpicc" => mpicc(),
        "oshcc" => oshcc(),
        _ => name.to_owned(),
    };
    let mut command = Command::new(&program);
    command.args(args);
    command.envs(C.map(|variable| (variable, &toolbox.cc)));
    command.envs(CXX.map(|variable| (variable, &toolbox.cxx)));
    match command.status() {
        Ok(status) => Ok(code(status)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::NoMpi(program)),
        Err(error) => Err(Failure::Open { path: program.into(), error }),
    }
}
