//! What programs announce that schedule, share or access by means that the compiler does not see: fibers, external
//! objects and unaligned accesses, by ThreadSanitizer's interface (`sanitizer/tsan_interface.h`,
//! `sanitizer/common_interface_defs.h`).
//!
//! A fiber is a thread as far as the race check goes: it has a block, a slot and a clock of its own, and a ring. A
//! switch makes its block the current one. Unless the program says otherwise, what the fiber that is left did comes
//! before what the other one does next.
//!
//! Under control fibers are not told apart: all that an operating-system thread does is that thread's.

#![allow(missing_docs)] // The names are the interface's own.

use core::ffi::{c_char, c_void};

use crate::arch::with_pc;
use crate::arch::words;
use crate::control;
use crate::fasttrack;
use crate::primitives;
use crate::rings;
use crate::thread::{self, Thread, state};
use crate::wire::RecordKind;

/// What is released by switching to a fiber, found by address; the program has no memory at these addresses.
const FIBERS: usize = 0x4350_0000_0000;
/// How far apart they are, as for descriptors.
const KEY: usize = 16;
/// Flag of `__tsan_switch_to_fiber`: the switch orders nothing.
const NO_ORDER: u32 = 1;

#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn __tsan_get_current_fiber() -> *mut c_void {
    thread::current().cast()
}

unsafe extern "C" fn create_fiber(_flags: u32, pc: usize) -> *mut c_void {
    let Some(t) = thread::me().filter(|_| !control::is_on()) else {
        return thread::current().cast();
    };
    let Some(fiber) = thread::create(t.clock.known()) else { return core::ptr::null_mut() };
    fiber.tid = t.tid;
    fiber.started_at = pc;
    fiber.start = (0, 0, 0);
    fiber.detached.store(1, core::sync::atomic::Ordering::Release);
    fiber.saved_top = fiber.stack_base();
    let number = fiber.number;
    fiber.ring.open(number);
    fiber.record_as_wanted();
    primitives::forking(t, fiber, pc);
    (&raw mut *fiber).cast()
}

unsafe extern "C" fn destroy_fiber(fiber: *mut Thread, _pc: usize) {
    if fiber.is_null() || fiber == thread::current() || control::is_on() {
        return;
    }
    // SAFETY: a block that `create_fiber` has made, and that no thread uses any more.
    let fiber = unsafe { &mut *fiber };
    rings::record(fiber, RecordKind::End, 0, 0, 0, 0);
    fiber.ring.close();
    fiber.retire();
    fiber.state.store(state::FREE, core::sync::atomic::Ordering::Release);
}

unsafe extern "C" fn switch_to_fiber(fiber: *mut Thread, flags: u32, pc: usize) {
    let Some(t) = thread::me() else { return };
    if fiber.is_null() || fiber == &raw mut *t || control::is_on() {
        return;
    }
    // SAFETY: a block that `create_fiber` has made, or that of the thread itself, which does not run.
    let next = unsafe { &mut *fiber };
    let key = FIBERS + next.index as usize * KEY;
    if flags & NO_ORDER == 0 {
        primitives::happens_before(key, pc);
    }
    t.saved_top = words::stack_top();
    next.tid = t.tid;
    next.resume();
    if flags & NO_ORDER == 0 {
        primitives::happens_after(key, pc);
    }
}

unsafe extern "C" fn fiber_name(fiber: *mut Thread, name: *const u8, pc: usize) {
    if fiber == thread::current() && !fiber.is_null() {
        // SAFETY: the program's string.
        unsafe { crate::interpose::pthread::named(name, pc) };
    }
}

with_pc! {
    __tsan_create_fiber => create_fiber, 1;
    __tsan_destroy_fiber => destroy_fiber, 1;
    __tsan_switch_to_fiber => switch_to_fiber, 2;
    __tsan_set_fiber_name => fiber_name, 2;
}

/// A kind of external objects. What it is called is not shown: a race names the object by its address.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn __tsan_external_register_tag(name: *const c_char) -> *mut c_void {
    name.cast_mut().cast()
}

#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn __tsan_external_register_header(_tag: *mut c_void, _header: *const c_char) {}

#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn __tsan_external_assign_tag(_addr: *mut c_void, _tag: *mut c_void) {}

/// A library reads an object for its caller, which is on the call stack.
unsafe extern "C" fn external_read(addr: usize, _caller: usize, _tag: usize, pc: usize) {
    if let Some(t) = thread::me() {
        fasttrack::range(t, addr, 1, false, pc);
    }
}

/// It changes an object.
unsafe extern "C" fn external_write(addr: usize, _caller: usize, _tag: usize, pc: usize) {
    if let Some(t) = thread::me() {
        fasttrack::range(t, addr, 1, true, pc);
    }
}

with_pc! {
    __tsan_external_read => external_read, 3;
    __tsan_external_write => external_write, 3;
}

macro_rules! unaligned {
    ($($load:ident $do_load:ident $store:ident $do_store:ident $type:ty;)*) => {$(
        unsafe extern "C" fn $do_load(addr: usize, pc: usize) -> $type {
            if let Some(t) = thread::me() {
                fasttrack::range(t, addr, size_of::<$type>(), false, pc);
            }
            // SAFETY: the program's own access.
            unsafe { (addr as *const $type).read_unaligned() }
        }

        unsafe extern "C" fn $do_store(addr: usize, value: $type, pc: usize) {
            if let Some(t) = thread::me() {
                fasttrack::range(t, addr, size_of::<$type>(), true, pc);
            }
            // SAFETY: the program's own access.
            unsafe { (addr as *mut $type).write_unaligned(value) };
        }

        with_pc! {
            $load => $do_load, 1;
            $store => $do_store, 2;
        }
    )*};
}

unaligned! {
    __sanitizer_unaligned_load16 load16 __sanitizer_unaligned_store16 store16 u16;
    __sanitizer_unaligned_load32 load32 __sanitizer_unaligned_store32 store32 u32;
    __sanitizer_unaligned_load64 load64 __sanitizer_unaligned_store64 store64 u64;
}
