//! Critical sections, atomic updates that need a lock, and the locks of OpenMP's own functions.

#![allow(missing_docs)] // The names are the library's own.

use core::ffi::c_int;

use super::follows;
use crate::arch::with_pc;
use crate::interpose::openmp::ompt;
use crate::interpose::real;
use crate::primitives::{acquired, blocks, destroying, made, releasing};
use crate::sync;
use crate::thread;

/// Stands for the lock of critical sections without a name. Reports show its name.
#[allow(non_upper_case_globals)]
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub static omp_critical: [u64; 1] = [0];
/// Stands for the lock of atomic updates that no instruction does.
#[allow(non_upper_case_globals)]
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub static omp_atomic: [u64; 1] = [0];

/// Whether what is known of a lock comes from here.
fn tells() -> bool {
    follows() && !ompt::speaks()
}

/// Sections that exclude each other, under a lock of the library's: the functions that begin and end them.
macro_rules! sections {
    ($($begin_imp:ident $begin:ident, $end_imp:ident $end:ident: $lock:ident;)*) => {$(
        unsafe extern "C" fn $begin_imp(pc: usize) {
            real!($begin() as fn() -> ());
            if tells() {
                acquired(&raw const $lock as usize, pc);
            }
        }

        unsafe extern "C" fn $end_imp(pc: usize) {
            if tells() {
                releasing(&raw const $lock as usize, pc);
            }
            real!($end() as fn() -> ());
        }

        with_pc! { $begin => $begin_imp, 0; $end => $end_imp, 0; }
    )*};
}

sections! {
    critical_start GOMP_critical_start, critical_end GOMP_critical_end: omp_critical;
    atomic_start GOMP_atomic_start, atomic_end GOMP_atomic_end: omp_atomic;
}

unsafe extern "C" fn named_start(name: usize, pc: usize) {
    real!(GOMP_critical_name_start(name) as fn(usize) -> ());
    if tells() {
        acquired(name, pc);
    }
}

unsafe extern "C" fn named_end(name: usize, pc: usize) {
    if tells() {
        releasing(name, pc);
    }
    real!(GOMP_critical_name_end(name) as fn(usize) -> ());
}

with_pc! {
    GOMP_critical_name_start => named_start, 1;
    GOMP_critical_name_end => named_end, 1;
}

/// Changes how often the thread holds a lock that it may acquire again; how often it did before. Only a thread that
/// holds the lock calls it.
fn held(lock: usize, change: i32) -> u32 {
    let Some(t) = thread::me() else { return 0 };
    sync::with(t, lock | sync::ANNOTATED, |_, object| {
        let before = object.parties;
        object.parties = before.saturating_add_signed(change);
        before
    })
}

fn locked(lock: usize, nests: bool, pc: usize) {
    if tells() && !(nests && held(lock, 1) > 0) {
        acquired(lock, pc);
    }
}

fn unlocking(lock: usize, nests: bool, pc: usize) {
    if tells() && !(nests && held(lock, -1) > 1) {
        releasing(lock, pc);
    }
}

fn gone(lock: usize, pc: usize) {
    if tells() {
        destroying(lock, pc);
        destroying(lock | sync::ANNOTATED, pc);
    }
}

/// The functions of a kind of lock, in C and in Fortran.
macro_rules! locks {
    ($($nests:literal $module:ident: $init:ident $destroy:ident $set:ident $unset:ident $test:ident;)*) => {$(
        pub mod $module {
            use super::*;

            pub unsafe extern "C" fn init(lock: usize, pc: usize) {
                real!($init(lock) as fn(usize) -> ());
                if tells() {
                    made(lock, pc);
                }
            }

            pub unsafe extern "C" fn destroy(lock: usize, pc: usize) {
                gone(lock, pc);
                real!($destroy(lock) as fn(usize) -> ());
            }

            pub unsafe extern "C" fn set(lock: usize, pc: usize) {
                if !tells() {
                    return real!($set(lock) as fn(usize) -> ());
                }
                if real!($test(lock) as fn(usize) -> c_int) == 0 {
                    blocks(lock, false, pc);
                    real!($set(lock) as fn(usize) -> ());
                }
                locked(lock, $nests, pc);
            }

            pub unsafe extern "C" fn unset(lock: usize, pc: usize) {
                unlocking(lock, $nests, pc);
                real!($unset(lock) as fn(usize) -> ());
            }

            pub unsafe extern "C" fn test(lock: usize, pc: usize) -> c_int {
                let result = real!($test(lock) as fn(usize) -> c_int);
                if result != 0 {
                    locked(lock, $nests, pc);
                }
                result
            }

            with_pc! {
                $init => init, 1;
                $destroy => destroy, 1;
                $set => set, 1;
                $unset => unset, 1;
                $test => test, 1;
            }
        }
    )*};
}

locks! {
    false simple: omp_init_lock omp_destroy_lock omp_set_lock omp_unset_lock omp_test_lock;
    true nested: omp_init_nest_lock omp_destroy_nest_lock omp_set_nest_lock omp_unset_nest_lock omp_test_nest_lock;
    false simple_fortran: omp_init_lock_ omp_destroy_lock_ omp_set_lock_ omp_unset_lock_ omp_test_lock_;
    true nested_fortran: omp_init_nest_lock_ omp_destroy_nest_lock_ omp_set_nest_lock_ omp_unset_nest_lock_ omp_test_nest_lock_;
}
