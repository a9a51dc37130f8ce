//! Starting a program and watching it to its end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::FxHashSet;
use selvedge_explore::Abstraction;
use selvedge_model::{
    BarrierId, Event, FirstRace, HeldBack, LockId, SemaphoreId, SiteId, Symbols, ThreadId,
};
use selvedge_specs::{BlockExecution, ThreadName};

use crate::blocks::{Blocks, BlocksSeen};
use crate::called;
use crate::crash::{self, Crash};
use crate::decode::{Decoder, Wait};
use crate::epoch::Epoch;
use crate::judges::Judges;
use crate::libraries::{Form, Libraries};
use crate::merge::Merge;
use crate::modules::{Modules, Resolve};
use crate::names::{Names as Recognised, origin, static_place};
use crate::places::{Names, Places};
use crate::races::{self, NativeRace};
use crate::shm::{Children, MapsState, RegionTable, Shm};
use crate::wire::{self, Failure, Header, RecordKind};

/// What to observe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Synchronization and atomics become events.
    pub synchronization: bool,
    /// Atomic operations and fences become events, and not only those that may be part of a lock.
    pub atomics: bool,
    /// Accesses that pass the filter become events too.
    pub accesses: bool,
    /// Of these, the ones of a thread that made the last one to the same memory, under the same locks, may be held back
    /// ([`Observe::held_back`]).
    pub hold_back: bool,
    /// Accesses to memory on which a race has happened become events: analyses behind a race-free filter
    /// need no others.
    pub racy_accesses: bool,
    /// Functions are regions: those that [`Resolve::regions`] names.
    pub function_regions: bool,
    /// Data races are looked for inline.
    pub races: bool,
    /// How long the end of `main` waits for threads that still do something.
    pub linger: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            synchronization: true,
            atomics: true,
            accesses: false,
            hold_back: false,
            racy_accesses: false,
            function_regions: false,
            races: true,
            linger: Duration::ZERO,
        }
    }
}

/// What helps if there is no memory.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::OutOfMemory => "; raise `ulimit -v`",
        _ => "",
    }
}

/// Why a program could not be observed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No shared memory.
    #[error("cannot create shared memory: {0}{advice}", advice = advice(.0))]
    Memory(#[source] io::Error),
    /// The program did not start.
    #[error("cannot run {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why it did not start.
        source: io::Error,
    },
    /// It could not be waited for.
    #[error("lost the program: {0}")]
    Wait(#[source] io::Error),
    /// The runtime gave up at once.
    #[error("the program's address space is too small for shadow memory; raise `ulimit -v`")]
    NoAddressSpace,
    /// Built with something else.
    #[error("the program was built with another version of selvedge; build it again")]
    Version,
    /// A file that the program writes could not be made what it was before.
    #[error("cannot restore a file that the program writes: {0}")]
    Restore(#[source] io::Error),
    /// The caller cancelled the execution.
    #[error("interrupted")]
    Interrupted,
    /// The program does not stop before `main`.
    #[error("the program cannot be controlled: it does not carry the runtime, or ends before main")]
    NotControlled,
    /// It did not come to `main` in the time that an execution may take.
    #[error("the program did not come to main within {} s (--patience), or does not carry the runtime", .0.as_secs_f64())]
    NoMain(Duration),
    /// The program starts a team of OpenMP.
    #[error(
        "the program starts threads of OpenMP, which Selvedge cannot control; `selvedge run` observes them, and with OMP_THREAD_LIMIT=1 the rest of the program can be controlled"
    )]
    Team,
    /// The program was compiled by a gcc whose OpenMP is not followed.
    #[error(
        "the program, or a library that it uses, begins teams of OpenMP as gcc before 4.9 does, and Selvedge does not know what orders their threads; compile it with a newer gcc"
    )]
    OldOpenMp,
}

/// The reason that the runtime in the program gives for not going on, if it gave one.
pub(crate) fn refusal(header: &Header) -> Option<Error> {
    let failure = header.failure.load(Ordering::Acquire);
    let is = |f: Failure| failure == f as u32;
    if is(Failure::NoAddressSpace) {
        return Some(Error::NoAddressSpace);
    }
    if is(Failure::Team) {
        return Some(Error::Team);
    }
    if is(Failure::OldOpenMp) {
        return Some(Error::OldOpenMp);
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
    /// What deterministic blocks left, besides the executions that were [passed on](Observe::block).
    pub blocks: BlocksSeen,
    /// Where code was mapped.
    pub modules: Modules,
    /// Where a signal ended it, if one did and that is known.
    pub crash: Option<Crash>,
    /// Other processes, which the program started.
    pub children: Children,
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

    /// All events of a thread up to this moment have been passed on, plain accesses apart. Moments of all threads are
    /// in one order.
    fn reached(&mut self, thread: ThreadId, moment: u64) {
        let _ = (thread, moment);
    }

    /// Accesses were held back, of which no event tells. Comes before the next event that needs to know. Called only
    /// with [`Options::hold_back`].
    fn held_back(&mut self, last: &HeldBack, symbols: &Symbols) {
        let _ = (last, symbols);
    }

    /// The locks that a thread holds after the events so far, it holds from this epoch on.
    fn locks_changed(&mut self, thread: ThreadId, from: Epoch) {
        let _ = (thread, from);
    }

    /// Something that synchronizes was used for the first time, at this place and address.
    fn object(&mut self, object: Object, addr: u64, site: SiteId) {
        let _ = (object, addr, site);
    }

    /// The object that synchronizes at this address was destroyed.
    fn destroyed(&mut self, addr: u64, thread: ThreadId, site: SiteId) {
        let _ = (addr, thread, site);
    }

    /// What is mapped into the program has changed.
    fn mapped(&mut self, modules: &Modules) {
        let _ = modules;
    }

    /// A thread begins to wait, for as long as it takes. Its next event comes when it has waited.
    fn waits(&mut self, wait: &Wait, symbols: &Symbols) {
        let _ = (wait, symbols);
    }

    /// The program has default options for ThreadSanitizer (`__tsan_default_options`).
    fn default_options(&mut self, options: &str) {
        let _ = options;
    }

    /// The program has default suppressions for ThreadSanitizer (`__tsan_default_suppressions`).
    fn default_suppressions(&mut self, suppressions: &str) {
        let _ = suppressions;
    }

    /// A deterministic block has ended.
    fn block(&mut self, execution: BlockExecution<SiteId>, symbols: &Symbols) {
        let _ = (execution, symbols);
    }
}

/// Something that synchronizes and lies at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Object {
    Lock(LockId),
    Barrier(BarrierId),
    Semaphore(SemaphoreId),
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
    judges: Judges,
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
            (options.atomics || options.accesses || options.racy_accesses, wire::RECORD_ATOMICS),
            (options.accesses, wire::RECORD_ACCESSES),
            (options.accesses && options.hold_back, wire::HOLD_BACK),
            (options.racy_accesses, wire::RECORD_RACY),
            (options.function_regions, wire::FUNCTION_REGIONS),
            (!options.races, wire::NO_RACES),
        ] {
            flags |= if wanted { flag } else { 0 };
        }
        let shm = Shm::new(flags).map_err(Error::Memory)?;
        shm.set_linger(options.linger);
        shm.pass_to(&mut command);
        form.put_into(&mut command, libraries);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|source| Error::Start { program, source })?;
        Ok(Session { shm, child, races: options.races, judges: Judges::default() })
    }

    /// Predicates that are functions of the program are asked by way of `judges`.
    pub fn judged(self, judges: Judges) -> Session {
        Session { judges, ..self }
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
        let mut merge = Merge::default();
        let mut host = Host::new(&self.shm, self.races, symbols, resolver, observer);
        host.blocks = Blocks::new(&self.judges);
        let mut idle = Duration::ZERO;
        let status = loop {
            let status = self.child.try_wait().map_err(Error::Wait)?;
            let ended = status.is_some();
            host.answer();
            let mut new = merge.take(&self.shm);
            while ended && merge.take(&self.shm) > 0 {}
            // Looked at after the rings: a race is complete before its thread makes another record,
            // so that it is known here before that record is passed on.
            new += host.take_races(ended);
            merge.pass(|thread, record| host.pass(thread, record));
            if ended {
                merge.finish(|thread, record| host.pass(thread, record));
            }
            host.pass_races(|stamp| ended || stamp <= merge.last());
            if let Some(status) = status {
                break status;
            }
            // Polling backs off while nothing happens and comes back when something does.
            idle = if new > 0 { Duration::ZERO } else { next_pause(idle) };
            if !idle.is_zero() {
                std::thread::sleep(idle);
            }
        };
        let crash = host.crash(status);
        let Host { mut races, region_table, blocks, .. } = host;
        races::count(&self.shm, &mut races);
        let outcome = self.outcome(status)?;
        let blocks = blocks.finish();
        Ok(Outcome { lost_functions: region_table.lost, races, blocks, crash, ..outcome })
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
            blocks: BlocksSeen::default(),
            modules: Modules::parse(&self.shm.maps()),
            crash: None,
            children: self.shm.children(),
        })
    }
}

/// What is known of a run while it goes on.
struct Host<'a> {
    shm: &'a Shm,
    /// Whether races are told.
    tells_races: bool,
    symbols: &'a mut Symbols,
    resolver: &'a mut dyn Resolve,
    observer: &'a mut dyn Observe,
    decoder: Decoder,
    places: Places,
    modules: Modules,
    maps: MapsState,
    region_table: RegionTable,
    /// Races so far, and how many numbers of races have been looked at.
    races: Vec<NativeRace>,
    next_race: usize,
    /// Races whose place among the events has not come yet, the last one first.
    pending: Vec<NativeRace>,
    events: Vec<Event>,
    /// How many locks, barriers and semaphores have been told.
    told: [usize; 3],
    blocks: Blocks,
    /// Which defaults of the program have been told.
    defaults: [bool; 2],
    /// The threads that have reached a moment.
    reached: FxHashSet<u32>,
    /// Names of threads that are the same in every execution.
    recognised: Recognised,
}

impl<'a> Host<'a> {
    fn new(
        shm: &'a Shm,
        tells_races: bool,
        symbols: &'a mut Symbols,
        resolver: &'a mut dyn Resolve,
        observer: &'a mut dyn Observe,
    ) -> Host<'a> {
        let recognised = Recognised::default();
        recognised.begin();
        Host {
            shm,
            tells_races,
            symbols,
            resolver,
            observer,
            decoder: Decoder::default(),
            places: Places::default(),
            modules: Modules::default(),
            maps: MapsState::default(),
            region_table: RegionTable::default(),
            races: Vec::new(),
            next_race: 0,
            pending: Vec::new(),
            events: Vec::new(),
            told: [0; 3],
            blocks: Blocks::default(),
            defaults: [false; 2],
            reached: FxHashSet::default(),
            recognised,
        }
    }

    fn read_maps(&mut self) {
        let maps = self.shm.maps_state();
        if maps != self.maps {
            self.maps = maps;
            self.modules = Modules::parse(&self.shm.maps());
            self.observer.mapped(&self.modules);
        }
    }

    /// Where the program was when a signal ended it.
    fn crash(&mut self, status: ExitStatus) -> Option<Crash> {
        self.read_maps();
        let Host { shm, symbols, modules, resolver, .. } = self;
        crash::read(shm, status.signal()?, symbols, modules, &mut **resolver)
    }

    /// Answers what the program asks.
    fn answer(&mut self) {
        self.read_maps();
        let [options, suppressions] = self.shm.defaults(&mut self.defaults);
        if let Some(options) = options {
            self.observer.default_options(&options);
        }
        if let Some(suppressions) = suppressions {
            self.observer.default_suppressions(&suppressions);
        }
        self.region_table.answer(self.shm, &self.modules, self.maps.len, self.resolver);
    }

    /// Takes new races. Returns how many there are.
    fn take_races(&mut self, ended: bool) -> usize {
        let before = self.next_race;
        let found = self.shm.shared().header.races.load(Ordering::Acquire) as usize;
        if !self.tells_races || found <= before {
            return 0;
        }
        self.read_maps();
        while self.next_race < found.min(wire::RACES) {
            let restored = &mut self.places.restored;
            match races::one(self.shm, &self.modules, self.resolver, restored, self.next_race) {
                Some(race) => {
                    self.races.push(race.clone());
                    self.pending.push(race);
                }
                // The number is given out before the record is complete.
                None if !ended => break,
                None => {}
            }
            self.next_race += 1;
        }
        self.pending.sort_by_key(|race| std::cmp::Reverse(race.stamp));
        self.next_race - before
    }

    /// Passes races on whose place among the events has come, by their stamps.
    fn pass_races(&mut self, come: impl Fn(u64) -> bool) {
        while let Some(race) = self.pending.pop_if(|race| come(race.stamp)) {
            self.observer.race(&race, self.symbols, &self.modules);
        }
    }

    /// Passes on what a record says.
    fn pass(&mut self, thread: u32, record: &wire::Record) {
        self.pass_races(|stamp| record.stamp > stamp);
        let Host { shm, symbols, resolver, modules, places, decoder, events, observer, .. } = self;
        let (blocks, recognised) = (&mut self.blocks, &self.recognised);
        let told = &mut self.told;
        let (text, race) = (&|at, len| shm.text(at, len), &|number| shm.race(number));
        let mut names = Names { symbols, modules, resolver: &mut **resolver, text, race, places };
        decoder.record(thread, record, &mut names, events);
        called::name_objects(decoder, names.symbols, names.resolver, names.modules);
        called::name_threads(ThreadId(thread), names.symbols);
        tell_objects(decoder, told, &mut **observer);
        let thread_id = ThreadId(thread);
        let code = (record.pc(), decoder.last_callers());
        if record.kind() == Some(RecordKind::Fork) {
            let origin = origin(code, &|addr| static_place(names.modules, addr));
            let made = ThreadId(record.a as u32);
            called::name_threads(made, names.symbols);
            recognised.thread_made(made, thread_id, &origin);
        }
        if record.kind() == Some(RecordKind::Destroy) {
            let (site, _) = names.site(code);
            observer.destroyed(record.a, thread_id, site);
        }
        if Blocks::is_about(record) {
            let (site, _) = names.site(code);
            let across = ThreadName(recognised.thread(thread_id));
            let function = |at| names.function_name(at);
            blocks.record((thread_id, across), record, site, shm.value(record), function);
            shm.forget_values(record.a, record.a.saturating_add(record.b));
        }
        for event in events.drain(..) {
            blocks.event(&event, ThreadName(recognised.thread(event.thread)), symbols);
            observer.event(&event, symbols);
        }
        for execution in blocks.take_ended() {
            observer.block(execution, symbols);
        }
        if let Some(epoch) = decoder.lock_change() {
            observer.locks_changed(thread_id, epoch);
        }
        if let Some(race) = decoder.first_race() {
            observer.first_race(&race, symbols);
        }
        if let Some(wait) = decoder.wait() {
            observer.waits(&wait, symbols);
        }
        if let Some(last) = decoder.take_held_back() {
            observer.held_back(&last, symbols);
        }
        let is_moment = |kind: RecordKind| kind.is_moment(!self.reached.contains(&thread));
        if record.stamp != 0 && record.kind().is_some_and(is_moment) {
            self.reached.insert(thread);
            observer.reached(thread_id, record.stamp);
        }
        if record.kind() == Some(RecordKind::Name)
            && let Some(name) = decoder.thread_names().get(&thread)
        {
            symbols.functions.rename(thread, name);
        }
    }
}

/// Passes on where new objects lie.
fn tell_objects(decoder: &Decoder, told: &mut [usize; 3], observer: &mut dyn Observe) {
    let makes: [fn(u32) -> Object; 3] = [
        |n| Object::Lock(LockId(n)),
        |n| Object::Barrier(BarrierId(n)),
        |n| Object::Semaphore(SemaphoreId(n)),
    ];
    let tables = [&decoder.locks, &decoder.barriers, &decoder.semaphores];
    for ((table, make), told) in tables.into_iter().zip(makes).zip(told) {
        for &(addr, site) in &table.all()[*told..] {
            observer.object(make(*told as u32), addr, site);
            *told += 1;
        }
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
