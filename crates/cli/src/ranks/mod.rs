//! Jobs of ranks: a launcher starts them, the library that is preloaded into them observes them and makes their
//! accesses meet (`selvedge_spmd`), and what they leave in files becomes cases.

pub(crate) mod cases;
pub(crate) mod directed;
pub(crate) mod replay;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use selvedge_spmd::findings::{self, Told};
use selvedge_spmd::layer::{self, Interface};
use selvedge_spmd::{Plan, launcher};

use crate::args::RankOptions;
use crate::control::program::build;
use crate::exit::{Failure, ProgramError};
use crate::program::compiler::mpi;
use crate::program::elf::{self, Program};
use crate::program::toolbox::{self, Toolbox};

/// A job that can be executed many times.
pub(crate) struct Job {
    pub(crate) launcher: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The directory in which it runs.
    pub(crate) directory: PathBuf,
    /// The directory of the store, below which ranks leave what they find.
    store: PathBuf,
    library: PathBuf,
    toolbox: Toolbox,
    /// What ranks look at, in the environment's words.
    sampling: Vec<(&'static str, String)>,
}

/// How an execution of a job ended, and what its ranks told.
pub(crate) struct Executed {
    /// `None` if it was ended because it took too long.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) output: Vec<u8>,
    pub(crate) told: Told,
}

impl Job {
    /// The job of a command line: a launcher and its arguments.
    pub(crate) fn new(
        command: &[OsString],
        directory: PathBuf,
        store: PathBuf,
    ) -> Result<Job, Failure> {
        let launcher = find(Path::new(&command[0]))?;
        let toolbox = Toolbox::unpack()?;
        let arguments = command[1..].to_vec();
        let (kind, interface) = match uses_shmem(&command[0], &arguments, &directory) {
            true => ("oshcc", Interface::Shmem),
            false => ("mpicc", Interface::Mpi),
        };
        let compiler = mpi::for_launcher(&launcher, kind);
        let library =
            layer::library(&toolbox::cache(), &compiler, interface).map_err(Failure::Mpi)?;
        let programs = arguments.iter().map(|argument| directory.join(argument));
        programs.filter(|p| p.is_file()).try_for_each(|p| fits(p, &library, &compiler))?;
        let sampling = Vec::new();
        Ok(Job { launcher, arguments, directory, store, library, toolbox, sampling })
    }

    /// The same job, in which ranks look at as much as these options say, except where races are tested.
    pub(crate) fn sampled(mut self, options: &RankOptions) -> Job {
        self.sampling.push(("SELVEDGE_SPMD_SAMPLE", options.sample.to_string()));
        if options.alias_once {
            self.sampling.push(("SELVEDGE_SPMD_ALIAS_ONCE", "1".to_owned()));
        }
        self
    }

    fn command(&self, lines: &Lines) -> Command {
        let mut command = Command::new(&self.launcher);
        command.args(&self.arguments).current_dir(&self.directory);
        prepare(&mut command, &self.library, &self.toolbox, lines);
        command.envs(self.sampling.iter().map(|(name, value)| (name, value)));
        command
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, Failure> {
        command.spawn().map_err(|error| Failure::Open { path: self.launcher.clone(), error })
    }

    /// Runs it at the terminal. `started` learns the launcher's process; `quiet`: the output goes to standard error.
    pub(crate) fn run(
        &self,
        quiet: bool,
        started: impl FnOnce(u32),
    ) -> Result<(ExitStatus, Told), Failure> {
        let lines = Lines::new(&self.store)?;
        let mut command = self.command(&lines);
        if quiet {
            command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        }
        let mut child = self.spawn(&mut command)?;
        started(child.id());
        let status = child.wait().map_err(Failure::Output)?;
        Ok((status, lines.read()?))
    }

    /// Executes it with its output captured, under a plan if there is one. It is ended after `limit`, or when
    /// `stops` says so.
    pub(crate) fn execute(
        &self,
        plan: Option<&Plan>,
        limit: Duration,
        stops: &dyn Fn() -> bool,
    ) -> Result<Executed, Failure> {
        let lines = Lines::new(&self.store)?;
        let mut command = self.command(&lines);
        if let Some(plan) = plan {
            let path = lines.plan(plan)?;
            command.env("SELVEDGE_SPMD_PLAN", &path);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn(&mut command)?;
        let read = |pipe: Option<Box<dyn Read + Send>>| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                // What was read before an error is what there is.
                pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
                bytes
            })
        };
        let output = read(child.stdout.take().map(|p| Box::new(p) as Box<dyn Read + Send>));
        let errors = read(child.stderr.take().map(|p| Box::new(p) as Box<dyn Read + Send>));
        let status = wait(&mut child, limit, stops)?;
        let output = output.join().unwrap_or_default();
        let _ = errors.join();
        let told = lines.read()?;
        Ok(Executed { status, output, told })
    }
}

/// A program that was linked with one MPI cannot be observed with the layer for another one.
fn fits(program: PathBuf, layer: &Path, compiler: &str) -> Result<(), Failure> {
    let of = |path: &Path| -> Vec<String> {
        let is_mpi =
            |name: &String| name.starts_with("libmpi.so") || name.starts_with("libmpich.so");
        elf::libraries(path).into_iter().filter(is_mpi).collect()
    };
    let (theirs, ours) = (of(&program), of(layer));
    if theirs.is_empty() || ours.is_empty() || theirs.iter().any(|name| ours.contains(name)) {
        return Ok(());
    }
    let (theirs, ours) = (theirs.join(", "), ours.join(", "));
    Err(Failure::OtherMpi { program, theirs, compiler: compiler.to_owned(), ours })
}

/// Whether the program uses OpenSHMEM: the launcher is one for that, or the program needs its library.
fn uses_shmem(command: &OsStr, arguments: &[OsString], directory: &Path) -> bool {
    let needs = |argument: &OsString| needs(&directory.join(argument), b"liboshmem.so");
    launcher::is_for_shmem(command) || arguments.iter().any(needs)
}

/// Whether a file is a program that names the library.
fn needs(path: &Path, library: &[u8]) -> bool {
    path.is_file()
        && fs::read(path).is_ok_and(|bytes| {
            bytes.starts_with(b"\x7fELF") && bytes.windows(library.len()).any(|w| w == library)
        })
}

/// Says that a command has started ranks although it is no known launcher.
pub(crate) fn unknown_launcher(command: &OsStr) -> String {
    let command = Path::new(command);
    format!(
        "{} has started a program that uses MPI, whose communication was not observed; if it starts ranks, say so: \
         --launcher {}",
        command.display(),
        Path::new(command.file_name().unwrap_or_default()).display(),
    )
}

/// Waits for the launcher, and ends it if it takes too long: then it ends its ranks.
fn wait(
    child: &mut Child,
    limit: Duration,
    stops: &dyn Fn() -> bool,
) -> Result<Option<ExitStatus>, Failure> {
    const LOOK: Duration = Duration::from_millis(5);
    /// A launcher has this long to end its ranks.
    const GRACE: Duration = Duration::from_secs(5);
    let begun = Instant::now();
    let mut told = None;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::Output)? {
            return Ok(told.is_none().then_some(status));
        }
        match told {
            None if begun.elapsed() > limit || stops() => {
                if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    // It may have ended in the meantime, and that is what is wanted.
                    let _ = kill_process(pid, Signal::TERM);
                }
                told = Some(Instant::now());
            }
            Some(since) if since.elapsed() > GRACE => {
                let _ = child.kill();
            }
            _ => thread::sleep(LOOK),
        }
    }
}

/// The launcher's file. It may be a script.
fn find(name: &Path) -> Result<PathBuf, Failure> {
    match Program::find(name) {
        Ok(program) => Ok(program.path),
        Err(ProgramError::Script { path, .. }) => Ok(path),
        Err(error) => Err(Failure::Program(error)),
    }
}

/// What ranks inherit from the launcher.
fn prepare(command: &mut Command, library: &Path, toolbox: &Toolbox, lines: &Lines) {
    let before = |variable: &str, first: &Path| {
        let mut all = first.as_os_str().to_owned();
        if let Some(rest) = std::env::var_os(variable).filter(|v| !v.is_empty()) {
            all.push(":");
            all.push(rest);
        }
        all
    };
    command.env("LD_PRELOAD", before("LD_PRELOAD", library));
    // For programs that were built for a shared libtsan.
    command.env("LD_LIBRARY_PATH", before("LD_LIBRARY_PATH", &toolbox.libraries.directory));
    command.env("SELVEDGE_SPMD_DIR", &lines.stored);
    command.env("SELVEDGE_SPMD_ELSEWHERE", &lines.elsewhere);
    // Open MPI would patch functions of the C library that the runtime interposes.
    command.env("OMPI_MCA_memory", "^patcher");
}

/// The directories in which ranks leave what they find; they are deleted when that was read.
struct Lines {
    /// Beside the store: ranks on other machines share that with us, if they share anything.
    stored: PathBuf,
    /// For ranks that cannot write there, because the disk is full.
    elsewhere: PathBuf,
}

impl Lines {
    fn new(store: &Path) -> Result<Lines, Failure> {
        let name = format!("ranks-{}", std::process::id());
        let elsewhere = empty(&std::env::temp_dir().join(format!("selvedge-{name}")))?;
        // A store that cannot be written to loses no finding of this run.
        let stored = empty(&store.join(name)).unwrap_or_else(|_| elsewhere.clone());
        Ok(Lines { stored, elsewhere })
    }

    /// Writes what ranks are to test.
    fn plan(&self, plan: &Plan) -> Result<PathBuf, Failure> {
        let write = |directory: &Path| {
            let path = directory.with_extension("plan");
            fs::write(&path, plan.text()).map(|()| path)
        };
        write(&self.stored)
            .or_else(|_| write(&self.elsewhere))
            .map_err(|error| Failure::Write { path: self.elsewhere.clone(), error })
    }

    fn read(&self) -> Result<Told, Failure> {
        let both = [self.stored.as_path(), self.elsewhere.as_path()];
        let directories = if self.stored == self.elsewhere { &both[..1] } else { &both };
        findings::read(directories)
            .map_err(|error| Failure::Open { path: self.stored.clone(), error })
    }
}

/// An empty directory at a path.
fn empty(path: &Path) -> Result<PathBuf, Failure> {
    let failed = |error| Failure::Write { path: path.to_owned(), error };
    // What an earlier process of this number left was read, or its reader was killed.
    let _ = fs::remove_dir_all(path);
    fs::create_dir_all(path).map_err(failed)?;
    path.canonicalize().map_err(failed)
}

impl Drop for Lines {
    fn drop(&mut self) {
        for directory in [&self.stored, &self.elsewhere] {
            let _ = fs::remove_dir_all(directory);
            let _ = fs::remove_file(directory.with_extension("plan"));
        }
    }
}

/// Identifies the files that the launcher is called with: the program is one of them.
pub(crate) fn builds(arguments: &[OsString], directory: &Path) -> String {
    let files = arguments.iter().map(|a| directory.join(a)).filter(|path| path.is_file());
    files.map(|path| build(&path)).collect::<Vec<String>>().join(",")
}
