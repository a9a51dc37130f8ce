//! Controlled executions of native programs: one thread at a time, and a
//! [`Strategy`] says which.
//!
//! The program carries the injected runtime, which stops it before `main`. For each execution a fresh
//! process is forked there ([`Settings::fork`]), or a new one is started. The program keeps the model of
//! what blocks; this side decides wherever more than one thread can go on, and watches over threads that
//! do not come back from system calls.
//!
//! Guarantee: the same program with the same input, schedule and seed makes the same events, unless an
//! [`Uncontrolled`] says why not, or it depends on what is not modelled (other processes, files that
//! change, code that is not instrumented and synchronizes without the C library). A
//! deadlock is reported only if no thread can ever go on, as far as signals and other processes leave it alone. Timeouts expire only when no other thread can run.
//!
//! Threads of OpenMP are not controlled: an execution that starts some ends with [`Error::Team`].
//!
//! Cost: about two context switches per choice, a few hundred nanoseconds per other step.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use selvedge_engine::Execution;
use selvedge_explore::{Divergence, Replay, Rng, Strategy};
use selvedge_model::{Finding, Misuse, Schedule, SiteId, Symbols, Uncontrolled};

use crate::crash::{self, Crash};
use crate::earlier::Restored;
use crate::flow::Tables;
use crate::flow::tables::Placed;
use crate::judges::Judges;
use crate::libraries::{Form, Libraries};
use crate::modules::{ByModule, Modules, Resolve};
use crate::places::{Names as CodeNames, Places};
use crate::process;
use crate::races;
use crate::session::{Error, refusal};
use crate::shm::{MapsState, RegionTable, Shm};

mod contents;
mod ending;
mod executor;
mod gdb;
pub mod history;
pub mod memory;

mod naming;
pub mod output;
mod outside;
mod run;

pub use crate::modules::CodePlace;
pub use crate::names::{NameTable, Names, Scheme};
pub use executor::{WatchList, Watched};
pub use output::{Written, WrittenFile};
pub use selvedge_injected::control::wire;

use contents::Contents;
use history::Objects;
use memory::{Memory, OneProcessor};

/// Bytes of values whose memory is kept for the next execution.
const KEPT_VALUES: u64 = 1 << 24;

/// How to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the runtime gets into the program.
    pub form: Form,
    /// Whether executions are forked from one process that stopped before `main`.
    pub fork: bool,
    /// Records after which an execution is too long; a step makes two or three.
    pub records: u32,
    /// Time after which an execution is too long.
    pub time: Duration,
    /// Whether plain accesses of instrumented code become events, and memory that is allocated and freed.
    pub accesses: bool,
    /// Whether what accesses find and leave in memory is kept.
    pub values: bool,
    /// Whether how data flows is recorded, of a program that was compiled for that.
    pub flow: bool,
    /// Whether the strategy chooses which stars are executed.
    pub stars: bool,
    /// Globals that are part of the result when the program ends.
    pub focus: Vec<Global>,
    /// Whether functions are regions: those that [`Resolve::regions`] names.
    pub function_regions: bool,
    /// Runs the program under gdb, which has the terminal. Then there is one execution, and no limit of
    /// time should be set.
    pub debugger: Option<Debugger>,
    /// What of its output must be the same in every execution.
    pub ensured: Vec<Written>,
    /// The directory in which the program runs; that of this process if there is none.
    pub directory: Option<PathBuf>,
    /// Variables of our environment that the program does not get.
    pub hidden: Vec<OsString>,
    /// Calls the predicates that are functions of the program.
    pub judges: Judges,
    /// An execution ends early, with [`Error::Interrupted`], once one of these is true.
    pub interrupts: Vec<Arc<AtomicBool>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            form: Form::Linked,
            fork: true,
            records: 1_000_000,
            time: Duration::from_secs(10),
            accesses: false,
            values: false,
            flow: false,
            stars: false,
            focus: Vec::new(),
            function_regions: false,
            debugger: None,
            ensured: Vec::new(),
            directory: None,
            hidden: Vec::new(),
            judges: Judges::default(),
            interrupts: Vec::new(),
        }
    }
}

impl Settings {
    fn is_interrupted(&self) -> bool {
        self.interrupts.iter().any(|i| i.load(Ordering::Relaxed))
    }
}

/// A global of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Global {
    /// Where it lies.
    pub place: CodePlace,
    /// How many bytes it has.
    pub len: u64,
}

/// What is known of the data flow of an execution, beside its events.
#[derive(Clone, Debug, Default)]
pub struct Flowed {
    /// Calls of code of which nothing is known, by what was called, and how often.
    pub unknown: std::collections::BTreeMap<String, u64>,
    /// The records do not fit the program; where that was noticed.
    pub broken: Option<String>,
    /// Words of the program.
    pub words: u64,
    /// What is part of the result, each with its place.
    pub focus: Vec<(SiteId, Vec<u8>)>,
}

/// How to run gdb.
#[derive(Clone, Debug, Default)]
pub struct Debugger {
    /// Commands before the program starts, such as breakpoints.
    pub before: Vec<String>,
    /// Commands after it has stopped.
    pub after: Vec<String>,
    /// Whether gdb ends after the last command instead of asking for more.
    pub batch: bool,
}

/// A program to be run under control, again and again.
pub struct Controlled {
    program: PathBuf,
    arguments: Vec<OsString>,
    libraries: Libraries,
    settings: Settings,
    memory: Memory,
    shm: Option<Shm>,
    process: Option<Child>,
    runs: u32,
    processor: Option<usize>,
    stdout: File,
    stderr: File,
    /// What sites are called.
    pub symbols: Symbols,
    /// Seed of the program's random numbers.
    pub seed: u64,
    /// Whether releasing a lock is a step. That makes executions longer, and is needed only if
    /// [a thread could notice](Execution::releases_matter).
    pub releases: bool,
    modules: Modules,
    maps: MapsState,
    maps_before_main: u32,
    texts_before_main: u32,
    values_before_main: u64,
    races_before_main: u32,
    places: Places,
    region_table: RegionTable,
    resolver: Box<dyn Resolve>,
    watched: Vec<CodePlace>,
    /// The accesses that the last execution of the engine had as scheduling points.
    points: WatchList,
    /// What the last execution of the engine asked for outside.
    asked: (Vec<Uncontrolled>, u32),
    names: Names,
    /// What the ids of the execution that ran last stand for.
    last: Objects,
    /// The names of everything in that execution, once they were asked for.
    named: Option<Arc<Symbols>>,
    /// What the accesses of that execution found and left.
    contents: Vec<Contents>,
    /// What the program's code does to values, if it was compiled for that.
    tables: Option<Tables>,
    flowed: Flowed,
}

impl Controlled {
    /// A program with its arguments.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        libraries: &Libraries,
        settings: Settings,
    ) -> Result<Controlled, Error> {
        let file = || memory::anonymous_file().map(File::from).map_err(Error::Memory);
        Ok(Controlled {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            libraries: libraries.clone(),
            settings,
            memory: Memory::new().map_err(Error::Memory)?,
            shm: None,
            process: None,
            runs: 0,
            processor: None,
            stdout: file()?,
            stderr: file()?,
            symbols: Symbols::default(),
            seed: 0,
            releases: false,
            modules: Modules::default(),
            maps: MapsState::default(),
            maps_before_main: 0,
            texts_before_main: 0,
            values_before_main: 0,
            races_before_main: 0,
            places: Places::default(),
            region_table: RegionTable::default(),
            resolver: Box::new(ByModule),
            watched: Vec::new(),
            points: WatchList::default(),
            asked: Default::default(),
            names: Names::default(),
            last: Objects::default(),
            named: None,
            contents: Vec::new(),
            tables: None,
            flowed: Flowed::default(),
        })
    }

    /// Turns return addresses into sites by `resolver` instead of by module and offset.
    pub fn resolve_with(&mut self, resolver: Box<dyn Resolve>) {
        self.resolver = resolver;
        self.places.clear();
    }

    /// The program's code does this to values.
    pub fn follow_flow(&mut self, tables: Tables) {
        self.tables = Some(tables);
        self.maps = MapsState::default();
        self.read_maps();
    }

    /// What is known of the data flow of the execution that ran last.
    pub fn flowed(&self) -> &Flowed {
        &self.flowed
    }

    /// Tells the program which globals are part of the result.
    fn publish_focus(&self) {
        let c = self.memory.control();
        let parts: Vec<(u64, u64)> = self
            .settings
            .focus
            .iter()
            .take(wire::FOCUS)
            .map(|global| (self.address(&global.place), global.len))
            .filter(|part| part.0 != 0)
            .collect();
        for ((address, len), part) in parts.iter().zip(&c.focus) {
            part.0.store(*address, Ordering::Relaxed);
            part.1.store(*len, Ordering::Relaxed);
        }
        c.focus_len.store(parts.len() as u32, Ordering::Relaxed);
    }

    /// Names of threads and locks in the execution that runs, or ran last.
    pub fn names(&self) -> Names {
        self.names.clone()
    }

    /// The time after which an execution is too long.
    pub fn time_limit(&self) -> Duration {
        self.settings.time
    }

    /// Sets the time after which an execution is too long.
    pub fn limit_time(&mut self, time: Duration) {
        self.settings.time = time;
    }

    /// The process that executions are forked from, or that is about to be one.
    pub fn server_process(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// The process of the execution that runs, or ran last.
    pub fn child_process(&self) -> u32 {
        self.memory.control().child.load(Ordering::Acquire)
    }

    /// Makes accesses at these places scheduling points, instead of those named before. Returns their
    /// sites.
    pub fn watch(&mut self, places: &[CodePlace]) -> Result<Vec<SiteId>, Error> {
        self.watched = places.iter().take(wire::WATCHED).cloned().collect();
        self.prepare()?;
        self.publish_watched();
        self.places.clear();
        let pcs: Vec<u64> = self.watched.iter().map(|p| self.address(p)).collect();
        Ok(pcs.into_iter().map(|pc| self.site(pc).0).collect())
    }

    /// One execution under a strategy, which has begun, with what the settings say and not what an [`Ask`] does.
    ///
    /// [`Ask`]: selvedge_engine::Ask
    pub fn run(&mut self, strategy: &mut dyn Strategy) -> Result<Execution, Error> {
        self.prepare()?;
        self.publish_watched();
        let _stay = self.processor.and_then(OneProcessor::stay);
        run::execute(self, strategy)
    }

    /// The execution of a schedule, and where it could not be followed.
    pub fn replay(
        &mut self,
        schedule: &Schedule,
    ) -> Result<(Execution, Option<Divergence>), Error> {
        let former = (self.seed, self.releases);
        (self.seed, self.releases) = (schedule.seed, schedule.releases);
        let mut replay = Replay::new(schedule);
        replay.begin(Rng::default());
        let result = self.run(&mut replay);
        (self.seed, self.releases) = former;
        Ok((result?, replay.divergence()))
    }

    fn site(&mut self, pc: u64) -> (SiteId, u16) {
        let Controlled { places, symbols, modules, resolver, tables, .. } = self;
        let mut placed = Placed { tables: tables.as_ref(), inner: resolver.as_mut() };
        let (resolver, text, race) = (&mut placed, &|_, _| None, &|_| None);
        let mut names = CodeNames { symbols, modules, resolver, text, race, places };
        names.site((pc, [0; crate::wire::CALLERS]))
    }

    /// Where the last execution was when that signal ended it.
    fn crash(&mut self, signal: i32) -> Option<Crash> {
        let Controlled { shm, symbols, modules, resolver, .. } = self;
        crash::read(shm.as_ref()?, signal, symbols, modules, resolver.as_mut())
    }

    /// What the last execution did to memory that it must not, if it did that.
    fn misused_memory(&mut self) -> Option<Finding> {
        let Controlled { shm, symbols, modules, resolver, .. } = self;
        let shm = shm.as_ref()?;
        let all = self.races_before_main as usize..shm.races();
        // Each process has a table of its own.
        let mut restored = Restored::default();
        all.filter_map(|n| races::one(shm, modules, resolver.as_mut(), &mut restored, n))
            .find(|race| race.misuse.as_ref().is_some_and(Misuse::is_of_memory))
            .map(|race| race.finding(symbols, modules, resolver.as_mut()))
    }

    fn address(&self, place: &CodePlace) -> u64 {
        self.modules.base_of(&place.module).map_or(0, |base| base + place.offset)
    }

    fn publish_watched(&mut self) {
        let addresses: Vec<u64> = self.watched.iter().map(|place| self.address(place)).collect();
        let c = self.memory.control();
        for (&address, word) in addresses.iter().zip(&c.watched) {
            word.store(address, Ordering::Relaxed);
        }
        c.watched_len.store(addresses.len() as u32, Ordering::Relaxed);
        let places = self.tables.iter().flat_map(Tables::ranges).chain([(0, 0)]);
        for ((start, end), words) in places.zip(&c.places) {
            words.0.store(start, Ordering::Relaxed);
            words.1.store(end, Ordering::Relaxed);
        }
    }

    /// Starts a process that waits before `main`, unless there is one.
    fn prepare(&mut self) -> Result<(), Error> {
        if self.process.is_some() {
            return Ok(());
        }
        self.settings.fork &= self.settings.debugger.is_none();
        self.runs = 0;
        let c = self.memory.control();
        for word in [&c.program, &c.ready, &c.go, &c.ended, &c.child, &c.looked_up_len] {
            word.store(0, Ordering::Relaxed);
        }
        c.flags.store(0, Ordering::Relaxed);
        c.limit.store(wire::LOG as u32, Ordering::Relaxed);
        let process = self.start()?;
        self.process = Some(process);
        self.await_main()?;
        self.maps = MapsState::default();
        self.read_maps();
        self.maps_before_main = self.maps.len;
        let Controlled { shm, modules, resolver, .. } = self;
        if let Some(shm) = shm {
            shm.set_globals(&resolver.globals(modules));
        }
        let texts = self.shm.as_ref().map(|s| s.shared().header.texts_len.load(Ordering::Acquire));
        self.texts_before_main = texts.unwrap_or(0);
        let values =
            self.shm.as_ref().map(|s| s.shared().header.values_len.load(Ordering::Acquire));
        self.values_before_main = values.unwrap_or(0);
        let races = self.shm.as_ref().map(|s| s.shared().header.races.load(Ordering::Acquire));
        self.races_before_main = races.unwrap_or(0);
        Ok(())
    }

    fn start(&mut self) -> Result<Child, Error> {
        let mut command = match &self.settings.debugger {
            Some(debugger) => self.under(debugger),
            None => {
                let mut command = Command::new(&self.program);
                command.args(&self.arguments).stdin(Stdio::null());
                command.stdout(self.stdout.try_clone().map_err(Error::Memory)?);
                command.stderr(self.stderr.try_clone().map_err(Error::Memory)?);
                self.settings.form.put_into(&mut command, &self.libraries);
                // So that it and its children can be killed together.
                command.process_group(0);
                let (name, value) = wire::TUNABLES;
                if std::env::var_os(name).is_none() {
                    command.env(name, value);
                }
                for name in &self.settings.hidden {
                    command.env_remove(name);
                }
                command
            }
        };
        let name = command.get_program().to_string_lossy().into_owned();
        if let Some(directory) = &self.settings.directory {
            command.current_dir(directory);
        }
        let regions = self.settings.function_regions;
        let flags = if regions { crate::wire::FUNCTION_REGIONS } else { 0 };
        let shm = Shm::new(crate::wire::NO_RACES | flags).map_err(Error::Memory)?;
        self.region_table = RegionTable::default();
        shm.pass_to(&mut command);
        // The program must not see that it has one processor only.
        let choice = OneProcessor::choose();
        for (word, mask) in
            self.memory.control().processors.iter().zip(choice.map_or([0; 16], |c| c.1))
        {
            word.store(mask, Ordering::Relaxed);
        }
        self.processor = choice.map(|c| c.0);
        self.memory.pass_to(&mut command, self.processor);
        self.shm = Some(shm);
        memory::spawn(command).map_err(|source| Error::Start { program: name, source })
    }

    fn await_main(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        loop {
            let c = self.memory.control();
            let wakeups = c.wakeups.load(Ordering::SeqCst);
            match c.ready.load(Ordering::Acquire) {
                0 => {}
                1 => return Ok(()),
                // Threads are not copied by a fork.
                _ => {
                    self.settings.fork = false;
                    return Ok(());
                }
            }
            memory::wait(&c.wakeups, wakeups, Duration::from_millis(2));
            self.tell_regions();
            if self.settings.is_interrupted() {
                self.stop();
                return Err(Error::Interrupted);
            }
            let ended = self.process.as_mut().map(Child::try_wait);
            let gone = !matches!(ended, Some(Ok(None)));
            let late = begin.elapsed() > self.settings.time;
            if gone || late {
                self.stop();
                let time = self.settings.time;
                let why = if gone { Error::NotControlled } else { Error::NoMain(time) };
                return Err(self.refusal().unwrap_or(why));
            }
        }
    }

    /// The reason that the runtime in the program gives for not going on, if it gave one.
    fn refusal(&self) -> Option<Error> {
        self.shm.as_ref().and_then(|shm| refusal(&shm.shared().header))
    }

    /// Says that words of the data flow are missing, if there was no room for them.
    fn too_many_words(&self) -> Option<String> {
        let used = self.shm.as_ref()?.shared().header.values_len.load(Ordering::Acquire);
        let full = used >= crate::wire::VALUES as u64;
        full.then(|| "an execution has more steps than there is room for".to_owned())
    }

    /// What the values of this execution say is known: their memory can be used again.
    fn reuse_values(&self) {
        if let Some(shm) = &self.shm {
            shm.shared().header.values_len.store(self.values_before_main, Ordering::Release);
        }
    }

    /// Forgets the libraries that the last execution loaded, and how it ended: the next one begins without
    /// them.
    fn reset_maps(&mut self) {
        if let Some(shm) = &self.shm {
            let header = &shm.shared().header;
            header.maps_len.store(self.maps_before_main, Ordering::Release);
            header.texts_len.store(self.texts_before_main, Ordering::Release);
            let values = header.values_len.swap(self.values_before_main, Ordering::AcqRel);
            if values > self.values_before_main + KEPT_VALUES {
                shm.forget_values(self.values_before_main, values);
            }
            shm.shared().crash.reset();
            shm.forget_races(self.races_before_main as usize);
            self.region_table.forget_after(shm, self.maps_before_main);
        }
        self.read_maps();
        self.tell_regions();
    }

    fn read_maps(&mut self) {
        let Some(shm) = &self.shm else { return };
        let maps = shm.maps_state();
        if maps != self.maps {
            self.maps = maps;
            self.modules = Modules::parse(&shm.maps());
            if let Some(tables) = &mut self.tables {
                tables.load(&self.modules);
            }
            self.places.clear();
        }
    }

    /// Tells the program which of its functions are regions, if it asks.
    fn tell_regions(&mut self) {
        if self.settings.function_regions {
            self.read_maps();
            let Controlled { region_table, shm, modules, maps, resolver, .. } = self;
            if let Some(shm) = shm {
                region_table.answer(shm, modules, maps.len, resolver.as_mut());
            }
        }
    }

    /// Ends the process that waits before `main`, and all that it started.
    fn stop(&mut self) -> Option<ExitStatus> {
        let mut process = self.process.take()?;
        let child = self.memory.control().child.load(Ordering::Acquire) as i32;
        let pid = process.id() as i32;
        if child != 0 && child != pid {
            process::kill(child);
        }
        // gdb has no process group of its own: it needs the terminal.
        if self.settings.debugger.is_none() {
            process::kill(-pid);
        }
        let _ = process.kill();
        let status = process.wait().ok();
        if child != 0 && child != pid {
            process::kill(-child);
        }
        status
    }

    fn take_output(&mut self) -> (Vec<u8>, Vec<u8>) {
        let take = |file: &mut File| {
            let mut text = Vec::new();
            // What was written so far; reading a file in memory does not fail.
            let _ = file.rewind().and_then(|()| file.read_to_end(&mut text));
            text
        };
        (take(&mut self.stdout), take(&mut self.stderr))
    }

    fn clear_output(&mut self) -> io::Result<()> {
        for file in [&mut self.stdout, &mut self.stderr] {
            file.set_len(0)?;
            file.rewind()?;
        }
        Ok(())
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        self.stop();
    }
}
