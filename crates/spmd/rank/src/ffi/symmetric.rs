//! OpenSHMEM for the C layer: symmetric memory, contexts, fences, locks and flags. The rules are those of `ffi`.
//!
//! Static variables of the program and every allocation of the symmetric heap are windows. A context takes the place
//! of the window that completions are about.

use std::ffi::{c_char, c_int};

use super::{some, tested, text, with};
use crate::gather::{Gather, Made, Space, Window};
use crate::rules::{self, Bytes, CALLS, Completion, Side};

/// A value that a rank may wait for.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    is: u64,
    bits: u64,
}

/// A call, as `layer.h` has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Call {
    name: *const c_char,
    context: u64,
    pe: u64,
    basic: u64,
    remote: u64,
    size: u64,
    count: u64,
    stride: i64,
    local: u64,
    local_stride: i64,
    value: Value,
}

/// Windows of symmetric memory have numbers of their own.
const SYMMETRIC: u64 = 1 << 61;
/// So have locks.
const LOCKS: u64 = 1 << 63;

/// The elements of a strided access; neighbours are one piece.
fn pieces(start: u64, call: &Call, stride: i64) -> Vec<(Bytes, u32)> {
    let basic = call.basic as u32;
    if stride == 1 {
        return vec![(Bytes { start, len: call.size * call.count }, basic)];
    }
    let step = stride.wrapping_mul(call.size as i64) as u64;
    let at = |i: u64| start.wrapping_add(i.wrapping_mul(step));
    (0..call.count).map(|i| (Bytes { start: at(i), len: call.size }, basic)).collect()
}

/// One of the memories of a call.
type Memory = (Side, Space, Vec<(Bytes, u32)>);

/// The memories of a call, and the window and the offset of the first element at the target; `None` if that is not
/// symmetric.
fn memories(gather: &Gather, call: &Call) -> Option<(Vec<Memory>, u64, u64)> {
    let (window, offset) = gather.offset(call.remote)?;
    let pe = call.pe as u32;
    let local = Space { owner: gather.rank, window: None };
    let target = if pe == gather.rank {
        (Side::Target, local, pieces(call.remote, call, call.stride))
    } else {
        let space = Space { owner: pe, window: Some(window) };
        (Side::Target, space, pieces(offset, call, call.stride))
    };
    let mut all = vec![target];
    if call.local != 0 {
        all.push((Side::Origin, local, pieces(call.local, call, call.local_stride)));
    }
    Some((all, window, offset))
}

/// The call, and what it accesses; `None` if it accesses nothing that is known.
unsafe fn made(call: *const Call) -> Option<(Call, Made, Vec<Memory>, u64, u64)> {
    // SAFETY: rule 2.
    let (call, name) = unsafe { (*call, text((*call).name)) };
    let number = rules::number(&name)?;
    with(|state, _, pc| {
        let (memories, window, offset) = memories(&state.rank.gather, &call)?;
        let made = Made {
            call: number,
            pc,
            window: call.context,
            target: call.pe as u32,
            request: 0,
            no_op: false,
        };
        Some((call, made, memories, window, offset))
    })
}

/// Memory that every rank has becomes symmetric.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_symmetric(number: u64, base: u64, len: u64) {
    with(|state, _, _| {
        let window = Window { base, len, name: String::new() };
        state.rank.gather.open_window(SYMMETRIC | number, window, &[]);
        state.watch = true;
    });
    // SAFETY: a function of this library.
    unsafe { tested::sv_publish() };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_asymmetric(base: u64) {
    with(|state, now, _| {
        let gather = &mut state.rank.gather;
        let number = gather.windows.iter().find(|(_, w)| w.base == base).map(|(&number, _)| number);
        if let Some(number) = number {
            gather.close_window(now, number);
            state.watch = true;
        }
    });
}

/// A call is about to be made. Returns 1 if it has to be made and completed before `sv_made`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_shmem_before(call: *const Call) -> c_int {
    // SAFETY: no memory involved.
    if unsafe { tested::sv_confirms() } == 0 {
        return 0;
    }
    // SAFETY: rule 2.
    let Some((_, made, memories, ..)) = (unsafe { made(call) }) else { return 0 };
    c_int::from(tested::before(made, &memories))
}

/// A call was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_shmem(call: *const Call) {
    // SAFETY: rule 2.
    let Some((call, made, memories, window, offset)) = (unsafe { made(call) }) else { return };
    with(|state, now, pc| {
        let is_wanted = state.sampler.wants(pc);
        let gather = &mut state.rank.gather;
        let rules = &CALLS[made.call as usize];
        if rules.is_atomic() {
            gather.atomic(now, window, made.target, offset, call.basic as u32);
        }
        if call.value.is != 0 {
            let value = (call.value.is == 1).then_some(call.value.bits);
            gather.raise(now, window, made.target, offset, value);
        }
        for (side, space, pieces) in memories.iter().filter(|_| is_wanted) {
            gather.access(now, made, *side, *space, pieces.iter().copied());
        }
        state.watch = true;
    });
    tested::made_flies(made, &memories);
}

/// Everything in a context is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_quiet(context: u64) {
    with(|state, now, _| {
        let gather = &mut state.rank.gather;
        gather.complete(now, Completion::Flush, context, None);
        gather.event(now, Vec::new(), Vec::new());
        state.watch = true;
    });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fence(context: u64) {
    with(|state, now, _| state.rank.gather.fence(now, context));
}

/// A lock is held from now on, or not any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_shmem_lock(lock: u64, held: c_int) {
    with(|state, now, _| {
        let gather = &mut state.rank.gather;
        let Some((window, offset)) = gather.offset(lock) else { return };
        let (lock, at) = (LOCKS | window, some((offset & 0x7fff_ffff) as c_int));
        match held {
            0 => gather.unlock(now, lock, at),
            _ => gather.lock(now, lock, at, true),
        }
    });
}

/// This rank has waited until a flag of its own had a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_waited_for(flag: u64, value: u64) {
    with(|state, now, _| {
        let gather = &mut state.rank.gather;
        if let Some((window, offset)) = gather.offset(flag) {
            gather.waited_for(now, window, offset, value);
        }
    });
}
