//! `setjmp` and `longjmp`: a jump leaves functions without their exits, so the call stack is put back
//! to where it was.
//!
//! The saving half must not have a frame of its own when the real function looks at its caller, so it
//! notes the buffer and jumps on.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;
use core::sync::atomic::AtomicUsize;

use super::{look_up, real};
use crate::arch::noted_first;
use crate::misuse;
use crate::regions;
use crate::thread;

/// Remembers the call stack for a buffer and returns the real function.
fn note(buffer: usize, known: &AtomicUsize, name: &'static str) -> usize {
    if let Some(t) = thread::me() {
        let height = regions::height(t);
        let at = match t.jumps.iter().position(|j| j.0 == buffer) {
            Some(at) => at,
            None => {
                t.next_jump = (t.next_jump + 1) % t.jumps.len();
                t.next_jump
            }
        };
        t.jumps[at] = (buffer, height);
    }
    look_up(known, name, None)
}

fn restore(buffer: usize) {
    let Some(t) = thread::me() else { return };
    misuse::jumps(t);
    if let Some(&(_, height)) = t.jumps.iter().find(|j| j.0 == buffer) {
        regions::jump_to(t, height);
    }
}

macro_rules! saving {
    ($($name:ident $noter:ident;)*) => {$(
        unsafe extern "C" fn $noter(buffer: usize) -> usize {
            static KNOWN: AtomicUsize = AtomicUsize::new(0);
            note(buffer, &KNOWN, concat!(stringify!($name), "\0"))
        }

        noted_first! { $name => $noter; }
    )*};
}

saving! {
    setjmp note_setjmp;
    _setjmp note_underscore;
    __sigsetjmp note_sigsetjmp;
}

macro_rules! jumping {
    ($($name:ident)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(buffer: usize, value: c_int) {
            restore(buffer);
            real!($name(buffer, value) as fn(usize, c_int) -> ());
        }
    )*};
}

jumping! { longjmp _longjmp siglongjmp __longjmp_chk }
