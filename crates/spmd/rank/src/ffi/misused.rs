//! Wrong use of windows, for the C layer. The rules are those of `ffi`.

use std::ffi::{c_char, c_int};

use super::{State, text, with};
use crate::findings::{self, Misuse, Object};
use crate::gather::epochs::Wrong;
use crate::rules::Bytes;

/// A fence; `opens`: accesses may follow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_fenced(window: u64, opens: c_int) {
    with(|state, _, _| state.rank.gather.epochs.fence(window, opens != 0));
}

/// Looks whether a one-sided call is allowed, before it is made: MPI may end the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_check(
    name: *const c_char,
    window: u64,
    target: u32,
    start: i64,
    end: i64,
    limit: i64,
) {
    with(|state, now, pc| {
        let limit = (limit >= 0).then_some(limit);
        let bytes = (start, end);
        if let Some(wrong) = state.rank.gather.wrong_access(window, target, bytes, limit) {
            let start = start.max(0);
            let bytes = Bytes { start: start as u64, len: (end - start).max(0) as u64 };
            // SAFETY: rule 2.
            let name = unsafe { text(name) };
            tell_misuse(state, (now.slot, pc), wrong, &name, (window, target, bytes));
        }
    });
}

/// The window is about to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_check_free(window: u64) {
    with(|state, now, pc| {
        if state.rank.gather.is_in_epoch(window) {
            let rank = state.rank.gather.rank;
            let len = state.rank.gather.windows.get(&window).map_or(0, |w| w.len);
            let memory = (window, rank, Bytes { start: 0, len });
            tell_misuse(state, (now.slot, pc), Wrong::FreedInEpoch, "MPI_Win_free", memory);
        }
    });
}

fn tell_misuse(
    state: &mut State,
    (slot, pc): (u32, u64),
    wrong: Wrong,
    call: &str,
    (window, owner, bytes): (u64, u32, Bytes),
) {
    let gather = &mut state.rank.gather;
    if !gather.epochs.is_new(pc, wrong) {
        return;
    }
    let named = gather.windows.get(&window).map(|w| (window, w.name.clone()));
    let object = Object { owner, window: named, offset: bytes.start, len: bytes.len, place: None };
    let place = state.outside.place(pc);
    let of = Misuse { wrong, rank: state.outside.rank, slot, call, place };
    state.outside.tell_of_rank(&findings::misuse(&of, &object));
}
