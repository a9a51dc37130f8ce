//! The interface to C (`crates/spmd/c/layer.h`), to the injected runtime and to the loader.
//!
//! Ground rules:
//! 1. The C layer calls `sv_enter` first and `sv_leave` last in every wrapper, and nothing between them on another
//!    thread's behalf. Between them the injected runtime takes no notice of what the thread does.
//! 2. Pointers from C are valid for the call, and their lengths are right.
//! 3. The runtime calls `hook` for loads and stores, outside of wrappers. It must not allocate through the program:
//!    the runtime is busy then, and its interposers pass through.
//! 4. The state is behind one lock. No function of MPI is called while it is held, except in an exchange, which all
//!    ranks enter together.

#![allow(missing_docs, clippy::missing_safety_doc)] // The names are the interface's own; rule 2 is their contract.

mod misused;
mod symmetric;
mod tested;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crate::findings::{self, Seen};
use crate::gather::{Made, Space, Window};
use crate::order::Key;
use crate::owner::Place;
use crate::rank::{Rank, World};
use crate::rules::{self, Bytes, COMPLETIONS, Side};
use crate::segments::{BLOCKING, Now, SPLIT};

/// Functions of the C layer that carry bytes between ranks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    sparse:
        unsafe extern "C" fn(usize, *const u32, *const *const u8, *const usize, Sink, *mut c_void),
    any: unsafe extern "C" fn(u32) -> u32,
    all: unsafe extern "C" fn(*const u8, usize, Sink, *mut c_void),
    visit: unsafe extern "C" fn(u32, unsafe extern "C" fn(*mut c_void, *mut u64), *mut c_void),
    pass: unsafe extern "C" fn(u32),
    talks: unsafe extern "C" fn() -> c_int,
}

type Sink = unsafe extern "C" fn(*mut c_void, *const u8, usize);

/// Bytes of memory, and number and size of their basic type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Piece {
    start: u64,
    len: u64,
    basic: u64,
}

/// Memory of another rank that this one can load and store.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Part {
    start: u64,
    len: u64,
    owner: u64,
    offset: u64,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, info: *mut Info) -> c_int;
}

#[repr(C)]
struct Info {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    at: *mut c_void,
}

/// What the injected runtime offers, if it is in the program (`crates/runtime/injected/src/spmd.rs`).
#[derive(Clone, Copy)]
struct Runtime {
    enter: unsafe extern "C" fn(*mut u32, usize) -> usize,
    leave: unsafe extern "C" fn(),
    now: unsafe extern "C" fn(*mut u32, usize) -> usize,
    watch: unsafe extern "C" fn(*const [u64; 2], usize),
}

/// The version of the runtime's functions that this library calls: that of `crates/runtime/injected/src/spmd.rs`.
const RUNTIME_VERSION: u32 = 1;

static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    static HERE: RefCell<Here> = const { RefCell::new(Here { pc: 0, clock: Vec::new() }) };
}

/// The current call of a thread. The clock begins with slot and tick.
struct Here {
    pc: u64,
    clock: Vec<u32>,
}

struct State {
    rank: Rank,
    size: u32,
    seen: Seen,
    table: Table,
    outside: Outside,
    /// How many ticks of each slot were ours.
    ticks: HashMap<u32, u32>,
    watch: bool,
    /// Calls that phase II has looked at.
    calls: u64,
}

/// Where findings go, and the names of modules.
#[derive(Default)]
struct Outside {
    directory: Option<PathBuf>,
    /// Where they go if the first place is full.
    elsewhere: Option<PathBuf>,
    /// What the names of files end with: nothing, or the number of a job that another one has spawned.
    job: String,
    rank: u32,
    names: HashMap<usize, Arc<str>>,
    /// Places that were looked up: the loader takes longer.
    places: HashMap<u64, Place>,
}

impl Outside {
    /// Writes a line about the whole job.
    fn tell_of_job(&self, line: &str) {
        self.append(&format!("job{}.jsonl", self.job), line);
    }

    /// Writes a line about this rank.
    fn tell_of_rank(&self, line: &str) {
        self.append(&format!("rank{}-{}.jsonl", self.job, self.rank), line);
    }

    fn append(&self, file: &str, line: &str) {
        let write = |directory: &PathBuf| {
            let path = directory.join(file);
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            file.write_all(format!("{line}\n").as_bytes())
        };
        let Some(directory) = &self.directory else { return };
        let Err(error) = write(directory) else { return };
        if self.elsewhere.as_ref().is_none_or(|elsewhere| write(elsewhere).is_err()) {
            let rank = self.rank;
            eprintln!(
                "selvedge: rank {rank} cannot tell what it has found: {}: {error}",
                directory.display()
            );
        }
    }

    fn place(&mut self, address: u64) -> Place {
        if let Some(place) = self.places.get(&address) {
            return place.clone();
        }
        let place = self.look_up(address);
        self.places.insert(address, place.clone());
        place
    }

    fn look_up(&mut self, address: u64) -> Place {
        let mut info = Info {
            file: std::ptr::null(),
            base: std::ptr::null_mut(),
            symbol: std::ptr::null(),
            at: std::ptr::null_mut(),
        };
        // SAFETY: the loader looks the address up and does not use it; the result is ours.
        let found = unsafe { dladdr(address as *const c_void, &raw mut info) } != 0;
        if !found || info.file.is_null() {
            return Place { module: "".into(), offset: address };
        }
        let base = info.base as usize;
        let name = self.names.entry(base).or_insert_with(|| {
            // SAFETY: the loader's name of a module, which is loaded.
            let file = unsafe { CStr::from_ptr(info.file) }.to_string_lossy().into_owned();
            if file.starts_with('/') {
                return file.into();
            }
            // The program itself, by the name that it was called by.
            std::env::current_exe().map_or(file, |p| p.to_string_lossy().into_owned()).into()
        });
        Place { module: name.clone(), offset: address.wrapping_sub(base as u64) }
    }
}

struct Around<'a> {
    table: Table,
    outside: &'a mut Outside,
}

unsafe extern "C" fn collect(into: *mut c_void, bytes: *const u8, len: usize) {
    // SAFETY: `into` is the list that `sparse` and `all` pass, which outlives the call; rule 2.
    unsafe {
        let list = &mut *into.cast::<Vec<Vec<u8>>>();
        list.push(if len == 0 {
            Vec::new()
        } else {
            std::slice::from_raw_parts(bytes, len).to_vec()
        });
    }
}

impl World for Around<'_> {
    fn sparse(&mut self, to: Vec<(u32, Vec<u8>)>) -> Vec<Vec<u8>> {
        let ranks: Vec<u32> = to.iter().map(|(rank, _)| *rank).collect();
        let data: Vec<*const u8> = to.iter().map(|(_, bytes)| bytes.as_ptr()).collect();
        let lens: Vec<usize> = to.iter().map(|(_, bytes)| bytes.len()).collect();
        let mut got: Vec<Vec<u8>> = Vec::new();
        let into = (&raw mut got).cast();
        // SAFETY: three arrays of one length, whose bytes live until the call returns.
        unsafe {
            (self.table.sparse)(
                to.len(),
                ranks.as_ptr(),
                data.as_ptr(),
                lens.as_ptr(),
                collect,
                into,
            )
        };
        got
    }

    fn any(&mut self, mine: u32) -> u32 {
        // SAFETY: no memory involved.
        unsafe { (self.table.any)(mine) }
    }

    fn all(&mut self, mine: &[u8]) -> Vec<Vec<u8>> {
        let mut got: Vec<Vec<u8>> = Vec::new();
        // SAFETY: the bytes live until the call returns.
        unsafe { (self.table.all)(mine.as_ptr(), mine.len(), collect, (&raw mut got).cast()) };
        got
    }

    fn place(&mut self, address: u64) -> Place {
        self.outside.place(address)
    }

    fn tell(&mut self, line: &str) {
        self.outside.tell_of_rank(line);
    }
}

fn find(name: &CStr) -> *mut c_void {
    // SAFETY: a terminated name; the default handle looks in all modules.
    unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) }
}

/// The version of the runtime in this program, if there is one. Runtimes that do not tell theirs have version 0.
fn runtime_version() -> Option<u32> {
    if find(c"selvedge_spmd_attach").is_null() {
        return None;
    }
    let version = find(c"selvedge_spmd_version");
    if version.is_null() {
        return Some(0);
    }
    // SAFETY: a function of this type in all versions.
    Some(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u32>(version)() })
}

fn runtime() -> Option<Runtime> {
    *RUNTIME.get_or_init(|| {
        let names = [
            c"selvedge_spmd_attach",
            c"selvedge_spmd_enter",
            c"selvedge_spmd_leave",
            c"selvedge_spmd_now",
            c"selvedge_spmd_watch",
        ];
        let [attach, enter, leave, now, watch] = names.map(find);
        if [attach, enter, leave, now, watch].iter().any(|f| f.is_null())
            || runtime_version() != Some(RUNTIME_VERSION)
        {
            return None;
        }
        // SAFETY: the runtime's functions have these types in this version.
        unsafe {
            type Attach = unsafe extern "C" fn(unsafe extern "C" fn(usize, usize, c_int, usize));
            std::mem::transmute::<*mut c_void, Attach>(attach)(hook);
            Some(Runtime {
                enter: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut u32, usize) -> usize,
                >(enter),
                leave: std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(leave),
                now: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut u32, usize) -> usize,
                >(now),
                watch: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const [u64; 2], usize),
                >(watch),
            })
        }
    })
}

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The most components of a clock that are looked at.
const SLOTS: usize = 1026;

/// Reads slot, tick and clock into `here`.
fn read_clock(here: &mut Vec<u32>, read: Option<unsafe extern "C" fn(*mut u32, usize) -> usize>) {
    let Some(read) = read else {
        here.clear();
        here.extend([0, 1, 1]);
        return;
    };
    here.resize(SLOTS, 0);
    // SAFETY: the buffer has that many words.
    let len = unsafe { read(here.as_mut_ptr(), SLOTS) };
    here.truncate(len);
    if len < 3 {
        // A thread that the runtime does not know, such as a helper of the MPI library.
        here.clear();
        here.extend([0, 1, 1]);
    }
}

/// Does something with the state and the current point of the thread.
fn with<R: Default>(f: impl FnOnce(&mut State, Now<'_>, u64) -> R) -> R {
    HERE.with_borrow(|here| {
        let mut guard = state();
        let Some(state) = guard.as_mut() else { return R::default() };
        let [slot, tick, clock @ ..] = here.clock.as_slice() else { return R::default() };
        let ours = state.ticks.get(slot).copied().unwrap_or(0);
        let now = Now { slot: *slot, tick: *tick, releases: tick.wrapping_sub(ours), clock };
        f(state, now, here.pc)
    })
}

/// A load or a store of instrumented code to memory that is watched.
unsafe extern "C" fn hook(address: usize, len: usize, writes: c_int, pc: usize) {
    HERE.with_borrow_mut(|here| read_clock(&mut here.clock, runtime().map(|r| r.now)));
    with(|state, now, _| {
        let bytes = Bytes { start: address as u64, len: len as u64 };
        state.rank.gather.local(now, pc as u64, writes != 0, bytes);
        tell_own_pairs(state);
    });
    tested::local(pc as u64, writes != 0, Bytes { start: address as u64, len: len as u64 });
}

fn tell_own_pairs(state: &mut State) {
    if !state.rank.gather.pairs.is_empty() {
        let mut around = Around { table: state.table, outside: &mut state.outside };
        state.rank.tell_own_pairs(&mut around);
    }
}

/// Looks for the runtime, before the program starts threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_attach() {
    runtime();
}

/// Whose loads and stores are seen: all ranks call this together.
fn seen_by_all(table: &Table) -> Seen {
    const SOME: u32 = 1;
    const NOT_ALL: u32 = 2;
    const OTHER_VERSION: u32 = 4;
    let mine = match runtime_version() {
        Some(RUNTIME_VERSION) if runtime().is_some() => SOME,
        Some(_) => NOT_ALL | OTHER_VERSION,
        None => NOT_ALL,
    };
    // SAFETY: no memory involved.
    let bits = unsafe { (table.any)(mine) };
    Seen {
        some: bits & SOME != 0,
        all: bits & NOT_ALL == 0,
        other_version: bits & OTHER_VERSION != 0,
    }
}

/// `job` is 0, or the number of a job that another one has spawned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_start(rank: c_int, size: c_int, table: *const Table, job: u64) {
    let path = |variable| std::env::var_os(variable).map(PathBuf::from);
    let outside = Outside {
        places: HashMap::new(),
        directory: path("SELVEDGE_SPMD_DIR"),
        elsewhere: path("SELVEDGE_SPMD_ELSEWHERE"),
        job: if job == 0 { String::new() } else { format!("-of-{job}") },
        rank: rank as u32,
        names: HashMap::new(),
    };
    // SAFETY: rule 2; the table is static in the C layer.
    let table = unsafe { *table };
    let seen = seen_by_all(&table);
    if rank == 0 {
        outside.tell_of_job(&findings::job(size as u32, seen, None));
    }
    tested::start(rank as u32);
    let rank = Rank::new(rank as u32);
    let new = State {
        rank,
        size: size as u32,
        seen,
        table,
        outside,
        ticks: HashMap::new(),
        watch: true,
        calls: 0,
    };
    *state() = Some(new);
}

/// The last exchange; all ranks call it in `MPI_Finalize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_finish() {
    unsafe { sv_exchange() };
    let mut guard = state();
    if let Some(state) = guard.as_mut() {
        let dropped = state.rank.gather.dropped;
        if dropped > 0 {
            state.outside.tell_of_rank(&findings::dropped(dropped));
        }
        if state.rank.gather.rank == 0 {
            let done = Some(state.rank.exchanges());
            state.outside.tell_of_job(&findings::job(state.size, state.seen, done));
        }
        *guard = None;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_enter(pc: usize) {
    HERE.with_borrow_mut(|here| {
        here.pc = pc as u64;
        read_clock(&mut here.clock, runtime().map(|r| r.enter));
        let mut guard = state();
        if let (Some(state), Some(&slot), true) =
            (guard.as_mut(), here.clock.first(), runtime().is_some())
        {
            *state.ticks.entry(slot).or_default() += 1;
        }
    });
    tested::is_made();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_leave() {
    /// As many ranges as the runtime looks at.
    const RANGES: usize = 16;
    let Some(runtime) = runtime() else {
        return with(|state, _, _| tell_own_pairs(state));
    };
    let ranges = with(|state, _, _| {
        tell_own_pairs(state);
        std::mem::take(&mut state.watch).then(|| state.rank.gather.watched())
    });
    if let Some(ranges) = ranges {
        let ranges = hulls(ranges, RANGES);
        // SAFETY: the ranges live until the call returns.
        unsafe { (runtime.watch)(ranges.as_ptr(), ranges.len()) };
    }
    // SAFETY: rule 1.
    unsafe { (runtime.leave)() };
}

/// At most `most` ranges that contain the given ones, which are sorted: the smallest gaps are closed.
fn hulls(ranges: Vec<(u64, u64)>, most: usize) -> Vec<[u64; 2]> {
    let mut hulls: Vec<[u64; 2]> = Vec::new();
    for (start, end) in ranges {
        match hulls.last_mut() {
            Some(last) if start <= last[1] => last[1] = last[1].max(end),
            _ => hulls.push([start, end]),
        }
    }
    while hulls.len() > most {
        let gap = |i: usize| hulls[i + 1][0] - hulls[i][1];
        let Some(at) = (0..hulls.len() - 1).min_by_key(|&i| gap(i)) else { break };
        hulls[at][1] = hulls[at + 1][1];
        hulls.remove(at + 1);
    }
    hulls
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_exchange() {
    let mut guard = state();
    if let Some(state) = guard.as_mut() {
        let mut around = Around { table: state.table, outside: &mut state.outside };
        state.rank.exchange(&mut around);
        state.watch = true;
    }
}

unsafe fn text(name: *const c_char) -> String {
    // SAFETY: rule 2.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

unsafe fn slice<'a, T>(at: *const T, len: usize) -> &'a [T] {
    // SAFETY: rule 2.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, len) } }
}

/// The window of a number; `parts` is memory of other ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_window(
    number: u64,
    base: u64,
    len: u64,
    name: *const c_char,
    parts: *const Part,
    count: usize,
) {
    // SAFETY: rule 2.
    let (name, parts) = unsafe { (text(name), slice(parts, count)) };
    with(|state, _, _| {
        let parts: Vec<_> =
            parts.iter().map(|p| (p.start, p.len, p.owner as u32, p.offset)).collect();
        state.rank.gather.open_window(number, Window { base, len, name }, &parts);
        state.watch = true;
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_window_name(number: u64, name: *const c_char) {
    // SAFETY: rule 2.
    let name = unsafe { text(name) };
    with(|state, _, _| {
        if let Some(window) = state.rank.gather.windows.get_mut(&number) {
            window.name = name;
        }
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_window_map(number: u64, start: u64, len: u64) {
    with(|state, _, _| {
        let rank = state.rank.gather.rank;
        state.rank.gather.map(number, start, len, rank, start);
        state.watch = true;
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_window_free(number: u64) {
    with(|state, now, _| {
        state.rank.gather.close_window(now, number);
        state.watch = true;
    });
}

/// A one-sided call. `lists` are the pieces at the target, at the origin, and of the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_rma(
    name: *const c_char,
    window: u64,
    target: u32,
    request: u64,
    no_op: c_int,
    lists: *const *const Piece,
    counts: *const usize,
) {
    // SAFETY: rule 2; three lists and three counts.
    let (name, lists, counts) = unsafe { (text(name), slice(lists, 3), slice(counts, 3)) };
    let Some(call) = rules::number(&name) else { return };
    let made = with(|state, now, pc| {
        let gather = &mut state.rank.gather;
        let made = Made { call, pc, window, target, request, no_op: no_op != 0 };
        let local = Space { owner: gather.rank, window: None };
        let base = gather.windows.get(&window).map_or(0, |w| w.base);
        let is_own = target == gather.rank;
        for (side, (&list, &count)) in
            [Side::Target, Side::Origin, Side::Result].into_iter().zip(lists.iter().zip(counts))
        {
            // SAFETY: rule 2.
            let pieces = unsafe { slice(list, count) };
            let remote = side == Side::Target;
            let shift = if remote && is_own { base } else { 0 };
            let space = if remote && !is_own {
                Space { owner: target, window: Some(window) }
            } else {
                local
            };
            let pieces: Vec<(Bytes, u32)> = pieces
                .iter()
                .map(|p| (Bytes { start: p.start.wrapping_add(shift), len: p.len }, p.basic as u32))
                .collect();
            if remote
                && rules::CALLS[call as usize].is_atomic()
                && let Some(&(first, basic)) = pieces.first()
            {
                gather.atomic(now, window, target, first.start.wrapping_sub(shift), basic);
            }
            gather.access(now, made, side, space, &pieces);
        }
        state.watch = true;
        Some(made)
    });
    if let Some(made) = made {
        // SAFETY: rule 2.
        unsafe { tested::flies(made, lists, counts) };
    }
}

/// The buffer of a call: in use until the request is complete, or only during the call if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_buffer(
    name: *const c_char,
    request: u64,
    pieces: *const Piece,
    count: usize,
) {
    // SAFETY: rule 2.
    let (name, pieces) = unsafe { (text(name), slice(pieces, count)) };
    let Some(call) = rules::number(&name) else { return };
    let pieces: Vec<(Bytes, u32)> =
        pieces.iter().map(|p| (Bytes { start: p.start, len: p.len }, p.basic as u32)).collect();
    let made = with(|state, now, pc| {
        let gather = &mut state.rank.gather;
        let rank = gather.rank;
        let made = Made { call, pc, window: 0, target: rank, request, no_op: false };
        gather.access(now, made, Side::Origin, Space { owner: rank, window: None }, &pieces);
        state.watch |= request != 0;
        Some(made)
    });
    if let Some(made) = made.filter(|_| request != 0) {
        tested::buffer_flies(made, pieces);
    }
}

fn some(rank: c_int) -> Option<u32> {
    u32::try_from(rank).ok()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_complete(what: u8, window: u64, target: c_int) {
    with(|state, now, _| {
        let Some(&what) = COMPLETIONS.get(usize::from(what)) else { return };
        state.rank.gather.complete(now, what, window, some(target));
        state.watch = true;
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_lock(window: u64, target: c_int, exclusive: c_int) {
    with(|state, now, _| state.rank.gather.lock(now, window, some(target), exclusive != 0));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_unlock(window: u64, target: c_int) {
    with(|state, now, _| {
        state.rank.gather.unlock(now, window, some(target));
        state.watch = true;
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_send(comm: u64, to: u32, tag: c_int) {
    with(|state, now, _| state.rank.gather.send(now, comm, to, tag));
}

/// A receive is posted; a negative source or tag stands for any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_post_receive(request: u64, comm: u64, from: c_int, tag: c_int) {
    with(|state, _, _| {
        let tag = (tag >= 0).then_some(tag);
        state.rank.gather.post_receive(request, comm, some(from), tag);
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_receive(comm: u64, from: u32, tag: c_int) {
    with(|state, now, _| state.rank.gather.receive(now, comm, from, tag));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_request_done(request: u64, from: u32, tag: c_int) {
    with(|state, now, _| {
        state.rank.gather.request_done(now, request, from, tag);
        state.watch = true;
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_request_freed(request: u64) {
    with(|state, now, _| {
        state.rank.gather.request_freed(now, request);
        state.watch = true;
    });
}

/// The rank synchronizes in a way that is not followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_unfollowed() {
    with(|state, _, _| state.rank.gather.unfollowed = true);
}

/// The communicator whose messages a request receives, plus one; 0 if it is not a receive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_request_comm(request: u64) -> u64 {
    with(|state, _, _| state.rank.gather.request_comm(request).map_or(0, |comm| comm + 1))
}

/// Begins a collective operation; returns its number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_collective_enter(comm: u64, gives: c_int) -> u32 {
    with(|state, now, _| {
        let k = state.rank.gather.count(Key::Collective { comm, k: 0 });
        if gives != 0 {
            state.rank.gather.event(now, Vec::new(), vec![Key::Collective { comm, k }]);
        }
        k
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_collective_leave(comm: u64, k: u32) {
    with(|state, now, _| {
        state.rank.gather.event(now, vec![Key::Collective { comm, k }], Vec::new())
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_collective_request(request: u64, comm: u64, k: u32) {
    with(|state, _, _| state.rank.gather.request_takes(request, Key::Collective { comm, k }));
}

/// Begins a blocking operation of all ranks; returns its number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_barrier_enter() -> u32 {
    with(|state, now, pc| {
        state.rank.gather.passes(pc);
        state.rank.gather.segments.enter(now, BLOCKING)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_barrier_leave(barrier: u32) {
    with(|state, now, _| state.rank.gather.segments.leave(now, BLOCKING, barrier));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_split_enter() -> u32 {
    with(|state, now, pc| {
        state.rank.gather.passes(pc);
        state.rank.gather.segments.enter(now, SPLIT)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_split_request(request: u64, barrier: u32) {
    with(|state, _, _| state.rank.gather.request_leaves(request, barrier));
}

/// Post (0), start (1), complete (2) or wait (3) with a group of ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_epoch(what: c_int, window: u64, ranks: *const u32, count: usize) {
    // SAFETY: rule 2.
    let ranks = unsafe { slice(ranks, count) };
    with(|state, now, _| {
        let gather = &mut state.rank.gather;
        match what {
            0 => gather.post(now, window, ranks),
            1 => gather.start(now, window, ranks),
            2 => gather.complete_epoch(now, window, ranks),
            _ => gather.wait_epoch(now, window, ranks),
        }
        state.watch = true;
    });
}
