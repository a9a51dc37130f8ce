//! `selvedge mpicc` and its like: the user's own compiler of MPI, which calls `selvedge cc` instead of the C compiler.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, ExitCode};

use super::code;
use crate::exit::Failure;
use crate::program::toolbox::Toolbox;

/// The compilers of MPI and OpenSHMEM that `selvedge` stands before. Debian has `mpicc.openmpi` and `mpicc.mpich`, too.
const COMPILERS: [&str; 4] = ["mpicc", "mpicxx", "oshcc", "oshcxx"];

/// The variables by which Open MPI, its OpenSHMEM, MPICH and Intel MPI are told which compiler to call.
const C: [&str; 4] = ["OMPI_CC", "OSHMEM_CC", "MPICH_CC", "I_MPI_CC"];
const CXX: [&str; 4] = ["OMPI_CXX", "OSHMEM_CXX", "MPICH_CXX", "I_MPI_CXX"];

/// Whether a command is a compiler of MPI or OpenSHMEM.
pub(crate) fn is_compiler(name: &str) -> bool {
    COMPILERS.iter().any(|known| variant(name, known).is_some())
}

/// What distinguishes a command from others of its kind: `.mpich` of `mpirun.mpich`.
fn variant<'a>(name: &'a str, known: &str) -> Option<&'a str> {
    name.strip_prefix(known).filter(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The user's choice of a compiler of MPI (`mpicc`) or OpenSHMEM (`oshcc`).
fn chosen(kind: &str) -> Option<String> {
    match kind {
        "mpicc" => std::env::var("SELVEDGE_MPICC").ok(),
        "oshcc" => std::env::var("SELVEDGE_OSHCC").ok(),
        _ => None,
    }
}

/// The compiler of MPI where nothing is known of the launcher.
pub(crate) fn mpicc() -> String {
    chosen("mpicc").unwrap_or_else(|| "mpicc".to_owned())
}

/// The compiler that compiles the layer for the MPI of a launcher: the user's choice, or `mpicc` of the same variant,
/// or the one that is beside the launcher, or the one on the path.
pub(crate) fn for_launcher(launcher: &Path, kind: &str) -> String {
    if let Some(chosen) = chosen(kind) {
        return chosen;
    }
    let name = launcher.file_name().unwrap_or_default().to_string_lossy();
    let variant = name.find('.').map_or("", |dot| &name[dot..]);
    let beside = [format!("{kind}{variant}"), kind.to_owned()];
    let beside = beside.iter().map(|name| launcher.with_file_name(name)).find(|p| p.is_file());
    beside.map_or_else(|| kind.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Compiles or links. The exit code is the compiler's own.
pub(crate) fn run(name: &str, args: &[OsString]) -> Result<ExitCode, Failure> {
    let toolbox = Toolbox::unpack()?;
    let program = chosen(name).unwrap_or_else(|| name.to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_their_names() {
        assert!(is_compiler("mpicc") && is_compiler("mpicc.mpich") && is_compiler("oshcxx"));
        assert!(!is_compiler("mpiccx") && !is_compiler("cc") && !is_compiler(""));
    }

    #[test]
    fn the_compiler_is_the_one_beside_the_launcher() {
        let directory =
            std::env::temp_dir().join(format!("selvedge-beside-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("the temporary directory is writable");
        let beside = |name: &str| directory.join(name).to_string_lossy().into_owned();
        let compiler = |launcher: &str| for_launcher(&directory.join(launcher), "mpicc");
        assert_eq!(compiler("mpirun.mpich"), "mpicc", "there is none");
        std::fs::write(directory.join("mpicc"), "").expect("a file");
        assert_eq!(compiler("mpirun.mpich"), beside("mpicc"));
        std::fs::write(directory.join("mpicc.mpich"), "").expect("a file");
        assert_eq!(compiler("mpirun.mpich"), beside("mpicc.mpich"));
        assert_eq!(compiler("mpirun"), beside("mpicc"));
        std::fs::remove_dir_all(&directory).expect("the directory was made here");
    }
}
