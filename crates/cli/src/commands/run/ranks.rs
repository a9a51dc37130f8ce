//! `selvedge run -- mpirun …`: observes one execution of an MPI program.
//!
//! The analysis runs inside the ranks (`selvedge_spmd`). We preload it, wait for the launcher, and make cases of
//! what the ranks have written, also of those that were killed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use selvedge_model::{FindingId, Kind, Mode, Site, Status};
use selvedge_report::{
    Bound, Case, FORMATS, Lock, Memory, Note, Place, Report, Role, Stats, Subject, words as say,
};
use selvedge_runtime::Modules;
use selvedge_spmd::findings::{self, Race, RaceStatus, Side, Told};
use selvedge_spmd::layer;

use super::{ending, signals, words};
use crate::args::{Output, Run};
use crate::exit::{Exit, Failure};
use crate::program::compiler::mpi::mpicc;
use crate::program::elf::Program;
use crate::program::suppress::Suppressions;
use crate::program::symbolize::Symbolizer;
use crate::program::toolbox::{self, Toolbox};
use crate::store::{self, Journal};
use crate::terminal;

/// Runs the job and reports. The exit code is 1 if there are findings, else the launcher's own.
pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    let suppressions = Suppressions::load(&args.options.suppressions)?;
    let launcher = find(Path::new(&args.command[0]))?;
    let here = std::env::current_dir()?;
    let directory = store::directory(&here);
    let root = directory.parent().unwrap_or(&here).to_owned();
    let toolbox = Toolbox::unpack()?;
    let library = layer::library(&toolbox::cache(), &mpicc()).map_err(Failure::Mpi)?;
    let sight = "calls of MPI, and loads and stores of instrumented code";
    let mut journal =
        Journal::begin(store::open(&directory), &words(&args.command), "ranks", sight);
    let lines = Lines::new(&directory)?;

    let mut command = Command::new(&launcher);
    command.args(&args.command[1..]);
    let is_text = args.options.format.name == FORMATS[0].name;
    if !is_text {
        // Standard output carries only the report.
        command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
    }
    prepare(&mut command, &library, &toolbox, &lines.0);
    let held = signals::hold().map_err(Failure::Output)?;
    let mut job =
        command.spawn().map_err(|error| Failure::Open { path: launcher.clone(), error })?;
    held.forward_to(job.id());
    let status = job.wait().map_err(Failure::Output)?;

    let told =
        findings::read(&lines.0).map_err(|error| Failure::Open { path: lines.0.clone(), error })?;
    drop(lines);
    let Some(job) = &told.job else {
        journal.finish("could not be observed", &Stats::default());
        return Err(Failure::NoRanks(status_words(status)));
    };
    let mut report = Report::default();
    report.stats.traces = 1;
    report.stats.threads = job.ranks as usize;
    report.stats.analyses = vec!["ranks".to_owned()];
    report.stats.bounds = bounds(&told);
    let mut namer = Namer::new(&root, &told);
    for race in &told.races {
        let case = namer.case(race);
        let modules: Vec<String> = race.sides.iter().map(|s| s.place.module.clone()).collect();
        if let Some(case) = suppressions.pass(case, &modules, &mut report.stats) {
            report.add(case);
        }
    }
    report.cases.iter().for_each(|case| journal.add(case));
    journal.finish(&say::ended(ending::ended(status)), &report.stats);
    show(args, &report, root, status)
}

fn show(
    args: &Run,
    report: &Report,
    root: PathBuf,
    status: ExitStatus,
) -> Result<ExitCode, Failure> {
    let mut source = args.options.source.clone();
    source.push(root);
    let (format, fail_on, all) = (args.options.format, args.options.fail_on, args.options.all);
    let output = Output { format, fail_on, all, source };
    if format.name == FORMATS[0].name {
        anstream::eprint!("{}", terminal::rendered(report, &output));
    } else {
        terminal::print(report, &output)?;
    }
    if !status.success() {
        anstream::eprintln!("{}", say::program_ended(ending::ended(status)));
    }
    let failed = report.cases.iter().any(|case| fail_on.fails(case.status));
    Ok(if failed { Exit::Findings.into() } else { ending::code(status) })
}

/// The launcher's file. It may be a script.
fn find(name: &Path) -> Result<PathBuf, Failure> {
    use crate::exit::ProgramError;
    match Program::find(name) {
        Ok(program) => Ok(program.path),
        Err(ProgramError::Script { path, .. }) => Ok(path),
        Err(error) => Err(Failure::Program(error)),
    }
}

/// What ranks inherit from the launcher.
fn prepare(command: &mut Command, library: &Path, toolbox: &Toolbox, lines: &Path) {
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
    command.env("SELVEDGE_SPMD_DIR", lines);
    // Open MPI would patch functions of the C library that the runtime interposes.
    command.env("OMPI_MCA_memory", "^patcher");
}

/// The directory in which ranks leave what they find; it is deleted when that is in the store.
struct Lines(PathBuf);

impl Lines {
    fn new(store: &Path) -> Result<Lines, Failure> {
        let path = store.join(format!("ranks-{}", std::process::id()));
        let failed = |error| Failure::Write { path: path.clone(), error };
        // What an earlier process of this number left was read, or its reader was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(failed)?;
        Ok(Lines(path.canonicalize().map_err(failed)?))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bounds(told: &Told) -> Vec<Bound> {
    let Some(job) = &told.job else { return Vec::new() };
    let mut bounds = Vec::new();
    if !job.finalized {
        bounds.push(Bound::LastPhase);
    }
    if !job.instrumented {
        bounds.push(Bound::CallsOnly);
    }
    if job.dropped > 0 {
        bounds.push(Bound::Accesses(job.dropped));
    }
    if told.broken > 0 {
        bounds.push(Bound::Events(told.broken as u64));
    }
    bounds
}

fn status_words(status: ExitStatus) -> String {
    say::program_ended(ending::ended(status))
}

/// Puts names to what ranks say.
struct Namer {
    symbolizer: Symbolizer,
    modules: Modules,
    bases: BTreeMap<String, u64>,
    /// The number of each window among all that were named.
    windows: BTreeMap<u64, usize>,
}

impl Namer {
    fn new(root: &Path, told: &Told) -> Namer {
        let sides = told.races.iter().flat_map(|race| &race.sides);
        let code = sides.flat_map(|s| [Some(&s.place), s.barrier.as_ref()]).flatten();
        let places = code.chain(told.races.iter().filter_map(|race| race.data.as_ref()));
        let mut bases: BTreeMap<String, u64> = BTreeMap::new();
        let mut map = String::new();
        for place in places.filter(|p| !p.module.is_empty()) {
            let next = (bases.len() as u64 + 1) << 36;
            bases.entry(place.module.clone()).or_insert_with(|| {
                // Ranks load a module at different addresses, so we make up one for all.
                let _ = writeln!(
                    map,
                    "{next:x}-{:x} r-xp 00000000 00:00 0 {}",
                    next + (1 << 35),
                    place.module
                );
                next
            });
        }
        let numbers = told.races.iter().filter_map(|r| r.window.as_ref()).map(|w| w.number);
        let mut windows: Vec<u64> = numbers.collect();
        windows.sort_unstable();
        windows.dedup();
        let windows = windows.into_iter().zip(1..).collect();
        let modules = Modules::parse(map.as_bytes());
        Namer { symbolizer: Symbolizer::new(root), modules, bases, windows }
    }

    fn address(&self, place: &findings::Place) -> Option<u64> {
        self.bases.get(&place.module).map(|base| base + place.offset)
    }

    fn site(&mut self, place: &findings::Place) -> Site {
        match self.address(place) {
            Some(address) => self.symbolizer.call(address, &self.modules),
            None => Site::Label("unknown code".into()),
        }
    }

    /// The name of a window: the program's, or a number if there are several.
    fn window(&self, window: &findings::Window) -> Option<String> {
        if !window.name.is_empty() {
            return Some(window.name.clone());
        }
        let number = self.windows.get(&window.number).filter(|_| self.windows.len() > 1)?;
        Some(format!("window {number}"))
    }

    fn case(&mut self, race: &Race) -> Case {
        let places: Vec<Place> = race.sides.iter().map(|side| self.place(side)).collect();
        let sites = places.iter().map(|p| p.site.to_string());
        Case {
            id: FindingId::new(Kind::DataRace, sites),
            kind: Kind::DataRace,
            status: match race.status {
                RaceStatus::Observed => Status::Observed,
                RaceStatus::Predicted => Status::Predicted,
            },
            verdict: None,
            analyses: vec!["ranks".to_owned()],
            subject: Subject::Memory(self.memory(race)),
            notes: self.notes(race),
            states: Vec::new(),
            serial: None,
            places,
            occurrences: 1,
            target: None,
            control: None,
        }
    }

    fn memory(&mut self, race: &Race) -> Memory {
        let address = race.data.as_ref().and_then(|data| self.address(data));
        let variable = address.and_then(|a| self.symbolizer.variable(a, &self.modules));
        match &race.window {
            Some(window) => Memory::Window {
                name: self.window(window).or(variable),
                owner: race.owner,
                byte: race.offset,
                len: race.len,
            },
            None => Memory::Buffer { name: variable, owner: race.owner },
        }
    }

    fn place(&mut self, side: &Side) -> Place {
        let thread = match side.slot {
            0 => format!("rank {}", side.rank),
            slot => format!("rank {}, T{slot}", side.rank),
        };
        let role = match side.call.as_str() {
            "load" => Role::Load,
            "store" => Role::Store,
            // `MPI_Sendrecv (sends)`: what it does, the role says.
            call => Role::Called {
                function: call.split(' ').next().unwrap_or(call).to_owned(),
                writes: side.writes,
            },
        };
        let site = self.site(&side.place);
        let lock = |lock: &findings::Lock| Lock {
            name: match lock.target {
                Some(target) => format!("the lock of the window at rank {target}"),
                None => "the locks of the window at all ranks".to_owned(),
            },
            mode: if lock.exclusive { Mode::Exclusive } else { Mode::Shared },
            site: site.clone(),
        };
        // Locks that all ranks share exclude no rank.
        let held =
            side.locks.iter().filter(|l| l.exclusive || l.target.is_some()).map(lock).collect();
        Place { held: Some(held), ..Place::bare(thread, site, role) }
    }

    /// What was missing.
    fn notes(&mut self, race: &Race) -> Vec<Note> {
        let window = race.window.as_ref().and_then(|w| self.window(w));
        let mut notes = Vec::new();
        for side in race.sides.iter().filter(|s| s.side == findings::Memory::Target) {
            let (call, rank) = (side.call.clone(), side.rank);
            if let Some(barrier) = &side.barrier {
                let (at, barrier) = (self.site(&side.place), self.site(barrier));
                let window = window.clone();
                notes.push(Note::InFlight { call: call.clone(), rank, window, at, barrier });
            }
            if side.local_only {
                notes.push(Note::LocalOnly { call, rank });
            }
        }
        notes
    }
}
