//! The library that is preloaded into ranks: the embedded part in Rust, and the layer in C, compiled by the user's own
//! `mpicc` so that it fits the user's MPI. Likewise the program that carries messages between the processes of a campaign.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use thiserror::Error;

static RANK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libselvedge_rank.so"));

const SOURCES: [(&str, &str); 7] = [
    ("layer.h", include_str!("../c/layer.h")),
    ("common.h", include_str!("../c/common.h")),
    ("setup.c", include_str!("../c/setup.c")),
    ("types.c", include_str!("../c/types.c")),
    ("board.c", include_str!("../c/board.c")),
    ("rma.c", include_str!("../c/rma.c")),
    ("messages.c", include_str!("../c/messages.c")),
];

/// Why there is no library.
#[derive(Debug, Error)]
pub enum LayerError {
    /// The compiler of MPI is missing.
    #[error(
        "there is no {compiler}, which compiles the part of Selvedge that runs inside ranks; on Debian or Ubuntu: sudo apt-get install openmpi-bin libopenmpi-dev (or mpich libmpich-dev)"
    )]
    NoCompiler {
        /// Its name.
        compiler: String,
    },
    /// It refused.
    #[error("{compiler} could not compile the part of Selvedge that runs inside ranks:\n{output}")]
    Refused {
        /// Its name.
        compiler: String,
        /// What it said.
        output: String,
    },
    /// A file could not be written.
    #[error("{}: cannot write: {error}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// For programs that use OpenSHMEM.
const SHMEM: (&str, &str) = ("shmem.c", include_str!("../c/shmem.c"));

/// Which interface a program uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// MPI alone.
    Mpi,
    /// OpenSHMEM, and perhaps MPI as well.
    Shmem,
}

/// The library for the MPI of a compiler (`mpicc`, `oshcc`, or what the user names), below a cache directory.
pub fn library(cache: &Path, compiler: &str, interface: Interface) -> Result<PathBuf, LayerError> {
    let flags = flags(compiler)?;
    let mut sources = SOURCES.to_vec();
    if interface == Interface::Shmem {
        sources.push(SHMEM);
    }
    let mut hasher = DefaultHasher::new();
    (RANK, &sources, &flags, compiler).hash(&mut hasher);
    let directory = cache.join(format!("mpi-{:016x}", hasher.finish()));
    let library = directory.join("libselvedge_mpi.so");
    if library.is_file() {
        return Ok(library);
    }
    let write = |path: PathBuf, content: &[u8]| {
        fs::write(&path, content).map_err(|error| LayerError::Write { path, error })
    };
    in_place(cache, &directory, &library, |own| {
        write(own.join("libselvedge_rank.so"), RANK)?;
        for (name, content) in &sources {
            write(own.join(name), content.as_bytes())?;
        }
        let mut arguments =
            vec!["-shared", "-fPIC", "-O2", "-g1", "-w", "-Wl,-z,now", "-Wl,-rpath,$ORIGIN"];
        arguments.extend(["-o", "libselvedge_mpi.so"]);
        arguments.extend(sources.iter().map(|(name, _)| *name).filter(|n| n.ends_with(".c")));
        arguments.push("libselvedge_rank.so");
        compile(compiler, own, &arguments)
    })?;
    Ok(library)
}

const EXCHANGE: &str = include_str!("../c/exchange.c");

/// The program that carries messages between the processes of a campaign, for the MPI of a compiler.
pub fn exchange(cache: &Path, compiler: &str) -> Result<PathBuf, LayerError> {
    let flags = flags(compiler)?;
    let mut hasher = DefaultHasher::new();
    (EXCHANGE, &flags, compiler).hash(&mut hasher);
    let directory = cache.join(format!("exchange-{:016x}", hasher.finish()));
    let program = directory.join("selvedge-exchange");
    if program.is_file() {
        return Ok(program);
    }
    in_place(cache, &directory, &program, |own| {
        let path = own.join("exchange.c");
        fs::write(&path, EXCHANGE).map_err(|error| LayerError::Write { path, error })?;
        compile(compiler, own, &["-O2", "-w", "-o", "selvedge-exchange", "exchange.c"])
    })?;
    Ok(program)
}

/// Builds something in a directory of its own and moves it into place, because several processes may do so at once,
/// on several machines.
fn in_place(
    cache: &Path,
    directory: &Path,
    result: &Path,
    build: impl FnOnce(&Path) -> Result<(), LayerError>,
) -> Result<(), LayerError> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let machine = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let own = cache.join(format!("{name}-{}-{}.tmp", machine.trim(), std::process::id()));
    fs::create_dir_all(&own).map_err(|error| LayerError::Write { path: own.clone(), error })?;
    if let Err(error) = build(&own) {
        let _ = fs::remove_dir_all(&own);
        return Err(error);
    }
    if let Err(error) = fs::rename(&own, directory) {
        let _ = fs::remove_dir_all(&own);
        if !result.is_file() {
            return Err(LayerError::Write { path: directory.to_owned(), error });
        }
    }
    Ok(())
}

/// What the compiler adds to a command line; a change of it means another MPI.
fn flags(compiler: &str) -> Result<String, LayerError> {
    let missing = |_| LayerError::NoCompiler { compiler: compiler.to_owned() };
    // Open MPI and MPICH have different options for the same question.
    let asked = Command::new(compiler).arg("-show").output().map_err(missing)?;
    Ok(String::from_utf8_lossy(&asked.stdout).into_owned())
}

fn compile(compiler: &str, directory: &Path, arguments: &[&str]) -> Result<(), LayerError> {
    let mut command = Command::new(compiler);
    command.current_dir(directory).args(arguments);
    // The user's settings for programs, such as OMPI_CC="selvedge cc", are not for this.
    for variable in ["OMPI_CC", "OMPI_CFLAGS", "OSHMEM_CC", "OSHMEM_CFLAGS", "MPICH_CC", "I_MPI_CC"]
    {
        command.env_remove(variable);
    }
    let output =
        command.output().map_err(|_| LayerError::NoCompiler { compiler: compiler.to_owned() })?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(LayerError::Refused { compiler: compiler.to_owned(), output })
}
