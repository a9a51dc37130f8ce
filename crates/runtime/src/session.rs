//! Starting a program and watching it to its end.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

use selvedge_model::{Event, FirstRace, Symbols, ThreadId};

use crate::decode::Decoder;
use crate::epoch::Epoch;
use crate::libraries::{Form, Libraries};
use crate::merge::Merge;
use crate::modules::{Modules, Resolve};
use crate::places::{Names, Places};
use crate::races::{self, NativeRace};
use crate::shm::{RegionTable, Shm};
use crate::wire::{self, Failure, Header, RecordKind};

/// What to observe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Synchronization and atomics become events.
    pub synchronization: bool,
    /// Accesses that pass the filter become events too.
    pub accesses: bool,
    /// Accesses to memory on which a race has happened become events: analyses behind a race-free filter
    /// need no others.
    pub racy_accesses: bool,
    /// Functions are regions: those that [`Resolve::regions`] names.
    pub function_regions: bool,
    /// Data races are looked for inline.
    pub races: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            synchronization: true,
            accesses: false,
            racy_accesses: false,
            function_regions: false,
            races: true,
        }
    }
}

/// Why a program could not be observed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system has no shared memory for us.
    #[error("cannot create shared memory: {0}")]
    Memory(#[source] io::Error),
    /// The program did not start.
    #[error("cannot run {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why it did not start.
        source: io::Error,
    },
    /// The host cannot wait for its end.
    #[error("cannot wait for the program: {0}")]
    Wait(#[source] io::Error),
    /// There is no room for shadow memory.
    #[error("the program's address space is too small for shadow memory; raise `ulimit -v`")]
    NoAddressSpace,
    /// The program was built with another version.
    #[error("the program was built with another version of selvedge; build it again")]
    Version,
    /// The caller cancelled the execution.
    #[error("interrupted")]
    Interrupted,
    /// The program did not stop before `main`, as it does under control.
    #[error(
        "the program cannot be controlled: it is not linked with the runtime, or ends before main"
    )]
    NotControlled,
}

/// The reason for which the runtime in the program did not start, if it did not.
pub(crate) fn refusal(header: &Header) -> Option<Error> {
    let failure = header.failure.load(Ordering::Acquire);
    let is = |f: Failure| failure == f as u32;
    if is(Failure::NoAddressSpace) {
        return Some(Error::NoAddressSpace);
    }
    is(Failure::Version).then_some(Error::Version)
}

impl Form {
    /// Sets the environment that the form needs.
    pub fn put_into(self, command: &mut Command, libraries: &Libraries) {
        match self {
            Form::Linked => {}
            Form::Replaced => prepend(command, "LD_LIBRARY_PATH", &libraries.directory),
            Form::Preloaded => prepend(command, "LD_PRELOAD", &libraries.shared),
        }
    }
}

/// What a run left.
#[derive(Debug)]
pub struct Outcome {
    /// How the program ended.
    pub status: ExitStatus,
    /// Whether the runtime was in the program at all.
    pub attached: bool,
    /// Whether any code of it was instrumented.
    pub instrumented: bool,
    /// How many races were found inline, including those that were not kept because there were too many.
    pub races_seen: u32,
    /// The races that were kept.
    pub races: Vec<NativeRace>,
    /// Records that could not be written.
    pub lost: u64,
    /// How many functions were not tracked as regions because the table is full.
    pub lost_functions: usize,
    /// Where code was mapped.
    pub modules: Modules,
}

/// Takes the events of a run.
pub trait Observe {
    /// The next event. `symbols` knows its site.
    fn event(&mut self, event: &Event, symbols: &Symbols);

    /// The program has found a race in itself. Each is passed on once, soon after it was found.
    fn race(&mut self, race: &NativeRace, symbols: &mut Symbols, modules: &Modules) {
        let _ = (race, symbols, modules);
    }

    /// The next event is the later access of the first race on some bytes. Called only with
    /// [`Options::racy_accesses`].
    fn first_race(&mut self, race: &FirstRace, symbols: &Symbols) {
        let _ = (race, symbols);
    }

    /// The locks that a thread holds after the events so far, it holds from this epoch on.
    fn locks_changed(&mut self, thread: ThreadId, from: Epoch) {
        let _ = (thread, from);
    }

    /// A thread has given itself a name.
    fn named(&mut self, thread: ThreadId, name: &str) {
        let _ = (thread, name);
    }
}

impl<F: FnMut(&Event, &Symbols)> Observe for F {
    fn event(&mut self, event: &Event, symbols: &Symbols) {
        self(event, symbols);
    }
}

/// A program under observation.
#[derive(Debug)]
pub struct Session {
    shm: Shm,
    child: Child,
    /// Whether races are reported, and not only used to select accesses.
    races: bool,
}

impl Session {
    /// Starts the command with the runtime in it.
    pub fn start(
        mut command: Command,
        form: Form,
        libraries: &Libraries,
        options: Options,
    ) -> Result<Session, Error> {
        let mut flags = 0;
        let any = options.synchronization || options.accesses || options.racy_accesses;
        for (wanted, flag) in [
            (any, wire::RECORD_SYNC),
            (options.accesses, wire::RECORD_ACCESSES),
            (options.racy_accesses, wire::RECORD_RACY),
            (options.function_regions, wire::FUNCTION_REGIONS),
            (!options.races, wire::NO_RACES),
        ] {
            flags |= if wanted { flag } else { 0 };
        }
        let shm = Shm::new(flags).map_err(Error::Memory)?;
        shm.pass_to(&mut command);
        form.put_into(&mut command, libraries);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|source| Error::Start { program, source })?;
        Ok(Session { shm, child, races: options.races })
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops observing; the program goes on by itself. Waits for its end.
    pub fn abandon(self) -> Result<ExitStatus, Error> {
        let Session { shm, mut child, .. } = self;
        drop(shm);
        child.wait().map_err(Error::Wait)
    }

    /// Passes events on until the program has ended, and then collects what it left.
    pub fn finish(
        mut self,
        symbols: &mut Symbols,
        resolver: &mut dyn Resolve,
        observer: &mut dyn Observe,
    ) -> Result<Outcome, Error> {
        let mut reader = Reader::new(&self.shm, self.races);
        let mut idle = Duration::ZERO;
        let status = loop {
            let status = self.child.try_wait().map_err(Error::Wait)?;
            let news = reader.read(status.is_some(), resolver);
            reader.pass(status.is_some(), symbols, resolver, observer);
            if let Some(status) = status {
                break status;
            }
            // The pause between two looks grows while nothing happens.
            idle = if news { Duration::ZERO } else { next_pause(idle) };
            if !idle.is_zero() {
                std::thread::sleep(idle);
            }
        };
        let Reader { region_table, found: mut races, .. } = reader;
        races::count(&self.shm, &mut races);
        let outcome = self.outcome(status)?;
        Ok(Outcome { lost_functions: region_table.lost, races, ..outcome })
    }

    fn outcome(&self, status: ExitStatus) -> Result<Outcome, Error> {
        let header = &self.shm.shared().header;
        if let Some(error) = refusal(header) {
            return Err(error);
        }
        let races = if self.races { header.races.load(Ordering::Acquire) } else { 0 };
        Ok(Outcome {
            status,
            attached: header.program.load(Ordering::Acquire) != 0,
            instrumented: header.instrumented.load(Ordering::Acquire) != 0,
            races_seen: races,
            races: Vec::new(),
            lost: header.lost.load(Ordering::Acquire),
            lost_functions: 0,
            modules: Modules::parse(&self.shm.maps()),
        })
    }
}

/// Reads what a program leaves in shared memory, and passes it on in order.
struct Reader<'a> {
    shm: &'a Shm,
    /// Whether the program's table of races is read.
    races: bool,
    merge: Merge,
    decoder: Decoder,
    places: Places,
    modules: Modules,
    /// How long the memory map was from which `modules` was read.
    maps_len: u32,
    region_table: RegionTable,
    /// How many entries of the table of races have been read.
    races_read: usize,
    found: Vec<NativeRace>,
    /// Races whose place among the events has not come yet, the last one first.
    pending: Vec<NativeRace>,
}

impl<'a> Reader<'a> {
    fn new(shm: &'a Shm, races: bool) -> Reader<'a> {
        Reader {
            shm,
            races,
            merge: Merge::default(),
            decoder: Decoder::default(),
            places: Places::default(),
            modules: Modules::default(),
            maps_len: 0,
            region_table: RegionTable::default(),
            races_read: 0,
            found: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Reads what the program has left since the last time. Returns whether there were records or races.
    fn read(&mut self, ended: bool, resolver: &mut dyn Resolve) -> bool {
        self.read_maps();
        self.region_table.answer(self.shm, &self.modules, self.maps_len, resolver);
        let records = self.merge.take(self.shm);
        if ended {
            while self.merge.take(self.shm) > 0 {}
        }
        // The races come after the rings: a race is complete before its thread makes another record, so
        // that it is known here before that record is passed on.
        let races = self.read_races(ended, resolver);
        records > 0 || races
    }

    /// Reads the program's memory map if it has changed.
    fn read_maps(&mut self) {
        let len = self.shm.shared().header.maps_len.load(Ordering::Acquire);
        if len != self.maps_len {
            self.maps_len = len;
            self.modules = Modules::parse(&self.shm.maps());
        }
    }

    fn read_races(&mut self, ended: bool, resolver: &mut dyn Resolve) -> bool {
        let before = self.races_read;
        let found = self.shm.shared().header.races.load(Ordering::Acquire) as usize;
        if before < found {
            self.read_maps();
        }
        while self.races && self.races_read < found.min(wire::RACES) {
            match races::one(self.shm, &self.modules, resolver, self.races_read) {
                Some(race) => {
                    self.found.push(race.clone());
                    self.pending.push(race);
                }
                // The number is given out before the record is complete.
                None if !ended => break,
                None => {}
            }
            self.races_read += 1;
        }
        self.pending.sort_by_key(|race| std::cmp::Reverse(race.stamp));
        self.races_read > before
    }

    /// Passes on everything whose place in the order is known: all of it if the program has ended.
    fn pass(
        &mut self,
        ended: bool,
        symbols: &mut Symbols,
        resolver: &mut dyn Resolve,
        observer: &mut dyn Observe,
    ) {
        let Reader { shm, merge, decoder, places, modules, pending, .. } = self;
        let (text, race) = (|at, len| shm.text(at, len), |number| shm.race(number));
        let mut events = Vec::new();
        let mut pass = |thread: u32, record: &wire::Record| {
            while let Some(race) = pending.pop_if(|r| record.stamp > r.stamp) {
                observer.race(&race, symbols, modules);
            }
            let (resolver, modules, places) = (&mut *resolver, &*modules, &mut *places);
            let (text, race) = (&text, &race);
            let mut names = Names { symbols, modules, resolver, text, race, places };
            decoder.record(thread, record, &mut names, &mut events);
            name_locks(decoder, &mut names);
            for event in events.drain(..) {
                observer.event(&event, symbols);
            }
            if let Some(epoch) = decoder.lock_change() {
                observer.locks_changed(ThreadId(thread), epoch);
            }
            if let Some(race) = decoder.first_race() {
                observer.first_race(&race, symbols);
            }
            if record.kind() == Some(RecordKind::Name)
                && let Some(name) = decoder.thread_names().get(&thread)
            {
                observer.named(ThreadId(thread), name);
            }
        };
        merge.pass(&mut pass);
        if ended {
            merge.finish(&mut pass);
        }
        let last = merge.last();
        while let Some(race) = pending.pop_if(|r| ended || r.stamp <= last) {
            observer.race(&race, symbols, modules);
        }
    }
}

/// Names the locks that are new.
fn name_locks(decoder: &Decoder, names: &mut Names<'_>) {
    while let Some(&(addr, site)) = decoder.locks.all().get(names.symbols.locks.entries().len()) {
        let id = names.symbols.locks.entries().len();
        let name = names.object(addr);
        let unnamed = || format!("lock {id} ({})", names.symbols.site(site));
        let name = name.unwrap_or_else(unnamed).into();
        names.symbols.locks.push(name);
    }
}

fn next_pause(last: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_millis(2);
    (last * 2).clamp(Duration::from_micros(20), LONGEST)
}

fn prepend(command: &mut Command, variable: &str, path: &Path) {
    let value = match std::env::var_os(variable) {
        Some(old) if !old.is_empty() => {
            let mut value = path.as_os_str().to_owned();
            value.push(":");
            value.push(old);
            value
        }
        _ => path.as_os_str().to_owned(),
    };
    command.env(variable, value);
}
