//! Barriers: whoever leaves a round is ordered after all who arrived in it, and after nobody who has
//! already arrived in the next one.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::real;
use crate::abi::with_pc;
use crate::control::{self, ops};
use crate::rings;
use crate::sync::{self, Object};
use crate::thread::{self, Thread};
use crate::wire::RecordKind;

/// Even rounds use the first clock, odd rounds the second.
fn clock_of(object: &mut Object, round: u32) -> &mut crate::clock::Clock {
    if round.is_multiple_of(2) { &mut object.clock } else { &mut object.second }
}

fn arrive(t: &mut Thread, barrier: usize) -> u32 {
    sync::with(t, barrier, |t, object| {
        let parties = object.parties.max(1);
        let round = object.arrived / parties;
        let side = (round % 2) as usize;
        // The clock of the round before last is free as soon as everybody is out of that round.
        if object.arrived.is_multiple_of(parties) && object.inside[side] == 0 {
            clock_of(object, round).clear();
        }
        object.arrived += 1;
        object.inside[side] += 1;
        clock_of(object, round).join(t.clock.known());
        round
    })
}

fn leave(t: &mut Thread, barrier: usize, round: u32) {
    sync::with(t, barrier, |t, object| {
        let side = (round % 2) as usize;
        object.inside[side] = object.inside[side].saturating_sub(1);
        t.clock.join(clock_of(object, round).known());
    });
    sync::synchronized(t);
}

unsafe extern "C" fn wait(barrier: usize, pc: usize) -> c_int {
    const SERIAL: c_int = -1;
    const PARTIES: usize = 8;
    if control::is_on() {
        // SAFETY: the number of parties is the third int of the program's barrier.
        let parties = unsafe { ((barrier + PARTIES) as *const u32).read() };
        if let Some(last) = ops::barrier(barrier, parties, pc) {
            return if last { SERIAL } else { 0 };
        }
    }
    let mut round = 0;
    if let Some(t) = thread::me() {
        round = arrive(t, barrier);
        rings::record(t, RecordKind::Arrive, 0, pc, barrier, round as usize);
        t.tick();
    }
    let result = real!(pthread_barrier_wait(barrier) as fn(usize) -> c_int);
    if (result == 0 || result == SERIAL)
        && let Some(t) = thread::me()
    {
        leave(t, barrier, round);
        rings::record(t, RecordKind::Leave, 0, pc, barrier, round as usize);
    }
    result
}

unsafe extern "C" fn init(barrier: usize, attr: usize, count: u32, pc: usize) -> c_int {
    let result =
        real!(pthread_barrier_init(barrier, attr, count) as fn(usize, usize, u32) -> c_int);
    if result == 0
        && let Some(t) = thread::me()
    {
        super::mutex::destroying(barrier, pc);
        sync::with(t, barrier, |_, object| object.parties = count);
    }
    result
}

unsafe extern "C" fn destroy(barrier: usize, pc: usize) -> c_int {
    // The real call first: it waits until everybody is out.
    let result = real!(pthread_barrier_destroy(barrier) as fn(usize) -> c_int);
    super::mutex::destroying(barrier, pc);
    result
}

with_pc! {
    pthread_barrier_wait => wait, "rsi";
    pthread_barrier_init => init, "rcx";
    pthread_barrier_destroy => destroy, "rsi";
}
