//! Functions of the C library that synchronize, allocate, copy or otherwise matter, put before the
//! library's own.
//!
//! Ground rules:
//! - The effect is the library's: every function calls the real one and returns what it returned,
//!   with `errno` as it left it. What it means to threads is in [`primitives`](crate::primitives).
//! - A thread that the runtime does not know, or that is inside the runtime already, only passes
//!   through.
//! - Names in the library that have several versions are looked up with the current one: the default
//!   of an unversioned look-up is the oldest, and condition variables of that version are different.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

pub mod barrier;
pub mod c11;
pub mod channels;
pub mod cond;
pub mod fd;
pub mod format;
pub mod futex;
pub mod jump;
pub mod library;
pub mod malloc;
pub mod memory;
pub mod mutex;
pub mod once;
pub mod openmp;
pub mod process;
pub mod pthread;
pub mod rwlock;
pub mod semaphore;
pub mod signal;
pub mod stream;
pub mod time;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

/// The library's own function, looked up once. `name` and `version` end in a zero byte.
#[inline]
pub fn look_up(known: &AtomicUsize, name: &'static str, version: Option<&'static str>) -> usize {
    let at = known.load(Ordering::Acquire);
    if at != 0 {
        return at;
    }
    look_up_first(known, name, version)
}

#[cold]
fn look_up_first(known: &AtomicUsize, name: &'static str, version: Option<&'static str>) -> usize {
    // SAFETY: terminated strings; the loader's functions may be called at any time after start-up.
    let mut at = unsafe {
        match version {
            Some(v) => dlvsym(RTLD_NEXT, name.as_ptr().cast(), v.as_ptr().cast()),
            None => dlsym(RTLD_NEXT, name.as_ptr().cast()),
        }
    } as usize;
    if at == 0 && (name.starts_with("GOMP_") || name.starts_with("omp_")) {
        at = look_up_in_openmp(name);
    }
    if at == 0 {
        crate::sys::complain(b"selvedge: no library has a function ");
        crate::sys::complain(name.as_bytes());
        crate::sys::fatal(b"\n");
    }
    known.store(at, Ordering::Release);
    crate::control::looked_up(known, at);
    at
}

/// A linker that drops libraries of which nothing is used (`--as-needed`) may drop gcc's OpenMP, because our
/// functions are in its place.
fn look_up_in_openmp(name: &'static str) -> usize {
    const NOW: c_int = 2;
    const GLOBAL: c_int = 0x100;
    // SAFETY: terminated strings; the loader's functions may be called at any time after start-up.
    unsafe {
        let library = dlopen(c"libgomp.so.1".as_ptr(), NOW | GLOBAL);
        if library.is_null() { 0 } else { dlsym(library, name.as_ptr().cast()) as usize }
    }
}

/// Calls the library's own function.
macro_rules! real {
    ($name:ident($($arg:expr),* $(,)?) as fn($($ty:ty),* $(,)?) -> $ret:ty) => {
        $crate::interpose::real!(@ None, $name($($arg),*) as fn($($ty),*) -> $ret)
    };
    ($name:ident @ $version:literal ($($arg:expr),*) as fn($($ty:ty),*) -> $ret:ty) => {
        $crate::interpose::real!(@ Some(concat!($version, "\0")), $name($($arg),*) as fn($($ty),*) -> $ret)
    };
    (@ $version:expr, $name:ident($($arg:expr),*) as fn($($ty:ty),*) -> $ret:ty) => {{
        static KNOWN: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);
        let at = $crate::interpose::look_up(&KNOWN, concat!(stringify!($name), "\0"), $version);
        // SAFETY: the C library's function of that name has this type, and its arguments are the
        // program's own.
        unsafe { core::mem::transmute::<usize, unsafe extern "C" fn($($ty),*) -> $ret>(at)($($arg),*) }
    }};
}

pub(crate) use real;

pub use crate::errno::Errno;

/// Address ranges of instrumented modules. Copies and frees by others are not checked: what orders
/// their accesses may be out of sight.
static MODULES: [(AtomicUsize, AtomicUsize); 32] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 32];

#[repr(C)]
struct FoundObject {
    flags: u64,
    start: usize,
    end: usize,
    module: *const LoadedModule,
    rest: [usize; 8],
}

/// The beginning of the loader's `link_map`.
#[repr(C)]
struct LoadedModule {
    base: usize,
    name: *const c_char,
}

unsafe extern "C" {
    fn _dl_find_object(pc: *mut c_void, result: *mut FoundObject) -> c_int;
}

unsafe extern "C" {
    fn getauxval(kind: u64) -> usize;
    fn __libc_free(block: usize);
}

/// Whether a library has its code there, or the program.
pub fn is_code(at: usize) -> bool {
    module_of(at).is_some()
}

fn module_of(pc: usize) -> Option<FoundObject> {
    let mut found =
        FoundObject { flags: 0, start: 0, end: 0, module: core::ptr::null(), rest: [0; 8] };
    // SAFETY: the result is large enough for the C library's structure.
    let missing = unsafe { _dl_find_object(pc as *mut c_void, &raw mut found) } != 0;
    (!missing).then_some(found)
}

/// The file name of the module around `pc`, without its directory; empty for the program itself.
fn file_name_of(pc: usize) -> &'static [u8] {
    let Some(found) = module_of(pc) else { return &[] };
    // SAFETY: the loader's structure, and its terminated string; code of the module is running, so it stays.
    let path = unsafe {
        match found.module.as_ref().filter(|module| !module.name.is_null()) {
            Some(module) => CStr::from_ptr(module.name).to_bytes(),
            None => &[],
        }
    };
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The library around `pc` says itself what its synchronization means.
pub fn inform(pc: usize) {
    if let Some(found) = module_of(pc) {
        crate::primitives::is_informed(found.start, found.end);
    }
}

/// The module around `pc` is instrumented. A constructor that ends by jumping to us leaves an address
/// in the C library or the loader; then it is the program itself. Whether that was not known.
pub fn add_module(pc: usize) -> bool {
    const ENTRY: u64 = 9;
    let system = [__libc_free as *const () as usize, _dl_find_object as *const () as usize];
    let Some(mut found) = module_of(pc) else { return true };
    if system.iter().any(|&s| s >= found.start && s < found.end) {
        // SAFETY: no memory involved.
        let Some(program) = module_of(unsafe { getauxval(ENTRY) }) else { return true };
        found = program;
    }
    if instrumented(found.start) {
        return false;
    }
    if crate::sys::is_mixed() {
        return true;
    }
    for (start, end) in &MODULES {
        if end.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            start.store(found.start, Ordering::Release);
            end.store(found.end, Ordering::Release);
            return true;
        }
    }
    true
}

/// Whether the code at `pc` is instrumented.
#[inline]
pub fn instrumented(pc: usize) -> bool {
    for (start, end) in &MODULES {
        let end = end.load(Ordering::Acquire);
        if end == 0 {
            return false;
        }
        if pc < end && pc >= start.load(Ordering::Acquire) {
            return true;
        }
    }
    false
}

/// Before a function that waits for an object, until a time on a clock: what to return at once, if it is
/// not to be called. Only under control.
pub type Gate = fn(object: usize, time: [usize; 2], pc: usize) -> Result<(), c_int>;

/// Functions that wait for an object, which is their first argument, perhaps until a time, which is the last
/// one, perhaps on a clock, which is the one before: what finds its misuse, a [`Gate`], the real function, and what to do with its
/// result. Those that wait for as long as it takes may name a function that does not wait but returns `busy`,
/// and what to do before waiting then.
macro_rules! waits_for {
    ($($imp:ident $name:ident($($arg:ident),*) [$uses:expr] $gate:expr, $then:expr
        $(, unless $try:ident is $busy:literal, $blocks:expr)?;)*) => {$(
        unsafe extern "C" fn $imp(object: usize, $($arg: usize,)* pc: usize) -> core::ffi::c_int {
            let uses: fn(usize, usize) = $uses;
            uses(object, pc);
            let gate: $crate::interpose::Gate = $gate;
            let arguments: &[usize] = &[0, 0, $($arg),*];
            let time = [arguments[arguments.len() - 2], arguments[arguments.len() - 1]];
            if $crate::control::is_on()
                && let Err(result) = gate(object, time, pc)
            {
                return result;
            }
            $(
                let result = $crate::interpose::real!($try(object) as fn(usize) -> core::ffi::c_int);
                if result != $busy {
                    let then: fn(usize, core::ffi::c_int, usize) = $then;
                    then(object, result, pc);
                    return result;
                }
                let blocks: fn(usize, usize) = $blocks;
                blocks(object, pc);
            )?
            $crate::misuse::waits(object, pc);
            let result = $crate::interpose::real!($name(object $(, $arg)*)
                as fn(usize $(, $crate::interpose::waits_for!(@ $arg))*) -> core::ffi::c_int);
            $crate::misuse::waited();
            let then: fn(usize, core::ffi::c_int, usize) = $then;
            then(object, result, pc);
            result
        }
    )*};
    (@ $arg:ident) => { usize };
}

pub(crate) use waits_for;
