//! Loops whose iterations wait for each other (`depend(sink)`), by vectors of numbers.

#![allow(missing_docs)] // The names are the library's own.

use super::follows;
use crate::arch::variable;
use crate::interpose::format::Arguments;
use crate::interpose::openmp::nodes::dependences::iteration;
use crate::interpose::real;
use crate::primitives::{happens_after, happens_before};
use crate::thread;

/// The vectors of the thread's loop have so many numbers.
pub fn have(dimensions: usize) {
    if let Some(t) = thread::me() {
        t.openmp.dimensions = dimensions as u32;
    }
}

fn dimensions() -> usize {
    thread::me().map_or(0, |t| t.openmp.dimensions as usize)
}

/// The key of an iteration of the thread's team.
unsafe fn key(vector: *const usize) -> Option<usize> {
    let team = super::team().filter(|_| follows())?;
    // SAFETY: the program passes a vector of the loop that its thread is in.
    Some(iteration(team, (0..dimensions()).map(|i| unsafe { vector.add(i).read() })))
}

macro_rules! starts {
    ($($name:ident)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(count: usize, b: usize, c: usize, d: usize, e: usize) -> usize {
            let result = real!($name(count, b, c, d, e)
                as fn(usize, usize, usize, usize, usize) -> usize);
            have(count);
            result
        }
    )*};
}

starts! {
    GOMP_loop_doacross_static_start
    GOMP_loop_doacross_dynamic_start
    GOMP_loop_doacross_guided_start
    GOMP_loop_doacross_runtime_start
    GOMP_loop_ull_doacross_static_start
    GOMP_loop_ull_doacross_dynamic_start
    GOMP_loop_ull_doacross_guided_start
    GOMP_loop_ull_doacross_runtime_start
}

/// How many numbers of a vector are passed on as arguments.
const MOST: usize = 32;

/// `depend(source)`, with the vector in memory, and `depend(sink)`, with the vector as arguments.
macro_rules! vectors {
    ($($source:ident, $sink:ident $wait:ident;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $source(vector: *const usize) {
            // SAFETY: the program's vector.
            if let Some(key) = unsafe { key(vector) } {
                happens_before(key, 0);
            }
            real!($source(vector) as fn(*const usize) -> ());
        }

        unsafe extern "C" fn $wait(first: usize, rest: *mut Arguments, pc: usize) {
            let mut all = [0; MOST];
            all[0] = first;
            // What a thread that is not known passes is in these words, too.
            let count = if dimensions() == 0 { MOST } else { dimensions() };
            for n in all.iter_mut().take(count).skip(1) {
                // SAFETY: the list of the program's call; behind it are words of the caller's frame.
                *n = unsafe { (*rest).integer() };
            }
            // SAFETY: a copy of the program's vector.
            let key = unsafe { key(all.as_ptr()) };
            pass!($sink all);
            if let Some(key) = key {
                happens_after(key, pc);
            }
        }

        variable! { $sink => $wait, 1, 1, 2; }
    )*};
}

/// Calls the library's function with all of them; it looks at as many as its loop has.
macro_rules! pass {
    ($name:ident $v:ident) => {
        pass!(@ $name $v [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31])
    };
    (@ $name:ident $v:ident [$($i:literal)*]) => {
        real!($name($($v[$i]),*) as fn($(pass!(word $i)),*) -> ())
    };
    (word $i:literal) => { usize };
}

vectors! {
    GOMP_doacross_post, GOMP_doacross_wait wait;
    GOMP_doacross_ull_post, GOMP_doacross_ull_wait wait_unsigned;
}
