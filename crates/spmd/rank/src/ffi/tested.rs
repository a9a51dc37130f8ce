//! Phase II for the C layer: what is announced when, and who waits. The rules are those of `ffi`.
//!
//! The state is not locked while a thread waits or visits a board: other threads of the rank go on.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use super::{HERE, Table, slice, some, state, text, with};
use crate::board::{Board, WORDS, Who};
use crate::confirm::{Access, Aim, Around, Confirm, Ending, Flight, Plan, Turn};
use crate::gather::{Gather, Made, Space};
use crate::rules::{self, Basic, Bytes, CALLS, COMPLETIONS, Side};

static CONFIRM: OnceLock<Confirm> = OnceLock::new();

thread_local! {
    /// Accesses of this thread that went first, and are made when the thread is seen again.
    static RELEASED: RefCell<Vec<(u32, Who)>> = const { RefCell::new(Vec::new()) };
}

/// Reads the plan that the host left for this execution, if there is one.
pub(super) fn start(rank: u32) {
    let plan = std::env::var_os("SELVEDGE_SPMD_PLAN").and_then(|p| std::fs::read_to_string(p).ok());
    if let Some(plan) = plan.and_then(|text| Plan::parse(&text)) {
        let _ = CONFIRM.set(Confirm::new(plan, rank));
    }
}

fn confirm() -> Option<&'static Confirm> {
    CONFIRM.get()
}

struct Outside(Table);

unsafe extern "C" fn look(into: *mut c_void, words: *mut u64) {
    // SAFETY: `into` is the closure that `visit` passes, which outlives the call; a board has that many words.
    unsafe {
        let f = &mut *into.cast::<&mut dyn FnMut(&mut Board<'_>)>();
        f(&mut Board(std::slice::from_raw_parts_mut(words, WORDS)));
    }
}

impl Around for Outside {
    fn visit(&mut self, owner: u32, f: &mut dyn FnMut(&mut Board<'_>)) {
        let mut f = f;
        // SAFETY: the closure lives until the call returns.
        unsafe { (self.0.visit)(owner, look, (&raw mut f).cast()) };
    }

    fn pass(&mut self, micros: u64) {
        // SAFETY: no memory involved.
        unsafe { (self.0.pass)(u32::try_from(micros).unwrap_or(u32::MAX)) };
    }

    fn tell(&mut self, line: &str) {
        if let Some(state) = state().as_ref() {
            state.outside.tell_of_rank(line);
        }
    }
}

/// Phase II, and the world around it, if this thread may call MPI now.
fn ready() -> Option<(&'static Confirm, Outside)> {
    let confirm = confirm()?;
    let table = state().as_ref()?.table;
    // SAFETY: no memory involved.
    (unsafe { (table.talks)() } != 0).then_some((confirm, Outside(table)))
}

/// One of the memories of a call, as phase II sees it.
struct Seen {
    aims: Vec<Aim>,
    access: Access,
    side: Side,
}

/// The accesses of a call that belong to statements that are tested.
fn seen(
    confirm: &Confirm,
    made: Made,
    thread: u32,
    sides: &[(Side, Space, Vec<(Bytes, u32)>)],
) -> Vec<Seen> {
    let mut guard = state();
    let Some(state) = guard.as_mut() else { return Vec::new() };
    let aims = confirm.aims(made.pc, |pc| state.outside.place(pc));
    if aims.is_empty() {
        return Vec::new();
    }
    state.calls += 1;
    let mut all = Vec::new();
    for (side, space, pieces) in sides {
        let Some(&(first, basic)) = pieces.first() else { continue };
        let basic = Basic { number: (basic >> 16) as u8, size: (basic & 0xffff) as u16 };
        let Some(act) = CALLS[made.call as usize].act(*side, basic, made.no_op) else { continue };
        let access = Access {
            thread,
            call: state.calls,
            space: *space,
            bytes: pieces.iter().map(|p| p.0).collect(),
            act,
            from: first.start,
            locks: state.rank.gather.locks().to_vec(),
        };
        all.push(Seen { aims: aims.clone(), access, side: *side });
    }
    all
}

fn thread() -> u32 {
    HERE.with_borrow(|here| here.clock.slot().unwrap_or(0))
}

/// The memories of a one-sided call.
unsafe fn memories(
    gather: &Gather,
    window: u64,
    target: u32,
    lists: &[*const super::Piece],
    counts: &[usize],
) -> Vec<(Side, Space, Vec<(Bytes, u32)>)> {
    let local = Space { owner: gather.rank, window: None };
    let sides = [Side::Target, Side::Origin, Side::Result];
    let of = |(side, (&list, &count)): (Side, (&*const super::Piece, &usize))| {
        let space = match side {
            Side::Target => Space { owner: target, window: Some(window) },
            Side::Origin | Side::Result => local,
        };
        // SAFETY: rule 2.
        let pieces = unsafe { slice(list, count) };
        let piece = |p: &super::Piece| (Bytes { start: p.start, len: p.len }, p.basic as u32);
        (side, space, pieces.iter().filter(|p| p.len > 0).map(piece).collect())
    };
    sides.into_iter().zip(lists.iter().zip(counts)).map(of).collect()
}

/// A one-sided call was made.
pub(super) unsafe fn flies(made: Made, lists: &[*const super::Piece], counts: &[usize]) {
    let Some((confirm, mut outside)) = ready().filter(|(c, _)| !c.orders()) else { return };
    let sides = with(|state, _, _| {
        // SAFETY: rule 2.
        unsafe { memories(&state.rank.gather, made.window, made.target, lists, counts) }
    });
    fly(confirm, &mut outside, made, &sides);
}

/// The same for a call whose memories are known.
pub(super) fn made_flies(made: Made, sides: &[(Side, Space, Vec<(Bytes, u32)>)]) {
    if let Some((confirm, mut outside)) = ready().filter(|(c, _)| !c.orders()) {
        fly(confirm, &mut outside, made, sides);
    }
}

/// A call is about to be made: what is over when it returns waits now, and so does everything if an order is forced.
/// Returns whether it has to be made and completed before anything else.
pub(super) fn before(made: Made, sides: &[(Side, Space, Vec<(Bytes, u32)>)]) -> bool {
    let Some((confirm, mut outside)) = ready() else { return false };
    for seen in seen(confirm, made, thread(), sides) {
        if !confirm.orders() {
            if CALLS[made.call as usize].ends_at_once(seen.side) {
                confirm.pass(&mut outside, &seen.aims, &seen.access);
            }
        } else if let Turn::First(owner, who) = confirm.turn(&mut outside, &seen.aims, &seen.access)
        {
            RELEASED.with_borrow_mut(|released| released.push((owner, who)));
            return true;
        }
    }
    false
}

fn fly(
    confirm: &Confirm,
    outside: &mut Outside,
    made: Made,
    sides: &[(Side, Space, Vec<(Bytes, u32)>)],
) {
    let call = &CALLS[made.call as usize];
    for seen in seen(confirm, made, thread(), sides) {
        if made.request == 0 && call.ends_at_once(seen.side) {
            continue;
        }
        let flight = Flight {
            call: made.call,
            side: seen.side,
            window: made.window,
            target: made.target,
            request: made.request,
        };
        confirm.fly(outside, &seen.aims, &seen.access, flight);
    }
}

/// The buffer of a call that goes on until its request is complete.
pub(super) fn buffer_flies(made: Made, pieces: Vec<(Bytes, u32)>) {
    let Some((confirm, mut outside)) = ready().filter(|(c, _)| !c.orders()) else { return };
    let local = Space { owner: made.target, window: None };
    fly(confirm, &mut outside, made, &[(Side::Origin, local, pieces)]);
}

/// An access that is over when its call or instruction is.
fn passes(made: Made, space: Space, pieces: Vec<(Bytes, u32)>) {
    let Some((confirm, mut outside)) = ready() else { return };
    for seen in seen(confirm, made, thread(), &[(Side::Origin, space, pieces)]) {
        if !confirm.orders() {
            confirm.pass(&mut outside, &seen.aims, &seen.access);
        } else if let Turn::First(owner, who) = confirm.turn(&mut outside, &seen.aims, &seen.access)
        {
            RELEASED.with_borrow_mut(|released| released.push((owner, who)));
        }
    }
}

/// A load or a store is about to be made.
pub(super) fn local(pc: u64, writes: bool, bytes: Bytes) {
    if confirm().is_none() {
        return;
    }
    is_made();
    let found = with(|state, _, _| {
        let gather = &state.rank.gather;
        Some((gather.rank, gather.owned(bytes)))
    });
    let Some((rank, (space, bytes))) = found else { return };
    let call = if writes { rules::STORE } else { rules::LOAD };
    let made = Made { call, pc, window: 0, target: rank, request: 0, no_op: false };
    passes(made, space, vec![(bytes, 0)]);
}

/// The thread has gone on: what it was let go first for is done.
pub(super) fn is_made() {
    if confirm().is_none() {
        return;
    }
    let released = RELEASED.take();
    if released.is_empty() {
        return;
    }
    if let Some((confirm, mut outside)) = ready() {
        for (owner, who) in released {
            confirm.made(&mut outside, owner, who);
        }
    }
}

/// Whether this execution tests pairs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_confirms() -> c_int {
    c_int::from(confirm().is_some())
}

/// The number of words of a board.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_board_words() -> usize {
    WORDS
}

/// Tells others where the windows of this rank are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_publish() {
    let Some((_, mut outside)) = ready() else { return };
    let own = with(|state, _, _| {
        let gather = &state.rank.gather;
        let windows: Vec<(u64, u64)> = gather.windows.iter().map(|(&n, w)| (n, w.base)).collect();
        Some((gather.rank, windows))
    });
    if let Some((rank, windows)) = own {
        // The newest are the ones in use.
        outside.visit(rank, &mut |board| board.publish(windows.iter().rev().copied()));
    }
}

/// A one-sided call is about to be made. Returns 0, or 1 if it has to be made now, and brought to its target as far
/// as that is possible, before `sv_made`; 2 if a flush can do that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_before(
    name: *const c_char,
    window: u64,
    target: u32,
    no_op: c_int,
    lists: *const *const super::Piece,
    counts: *const usize,
) -> c_int {
    let Some((confirm, mut outside)) = ready().filter(|(c, _)| c.orders()) else { return 0 };
    // SAFETY: rule 2; three lists and three counts.
    let (name, lists, counts) = unsafe { (text(name), slice(lists, 3), slice(counts, 3)) };
    let Some(call) = rules::number(&name) else { return 0 };
    let found = with(|state, _, pc| {
        let gather = &state.rank.gather;
        // SAFETY: rule 2.
        let sides = unsafe { memories(gather, window, target, lists, counts) };
        let locked =
            |l: &&crate::gather::Lock| l.window == window && l.target.is_none_or(|t| t == target);
        Some((pc, sides, gather.locks().iter().find(locked).is_some()))
    });
    let Some((pc, sides, passive)) = found else { return 0 };
    let made = Made { call, pc, window, target, request: 0, no_op: no_op != 0 };
    for seen in seen(confirm, made, thread(), &sides) {
        if let Turn::First(owner, who) = confirm.turn(&mut outside, &seen.aims, &seen.access) {
            RELEASED.with_borrow_mut(|released| released.push((owner, who)));
            return if passive { 2 } else { 1 };
        }
    }
    0
}

/// What went first was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_made() {
    is_made();
}

/// A blocking call is about to use a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_before_buffer(
    name: *const c_char,
    pieces: *const super::Piece,
    count: usize,
) {
    if confirm().is_none() {
        return;
    }
    // SAFETY: rule 2.
    let (name, pieces) = unsafe { (text(name), slice(pieces, count)) };
    let Some(call) = rules::number(&name) else { return };
    let Some((rank, pc)) = with(|state, _, pc| Some((state.rank.gather.rank, pc))) else { return };
    let made = Made { call, pc, window: 0, target: rank, request: 0, no_op: false };
    let piece = |p: &super::Piece| (Bytes { start: p.start, len: p.len }, p.basic as u32);
    let pieces = pieces.iter().filter(|p| p.len > 0).map(piece).collect();
    passes(made, Space { owner: rank, window: None }, pieces);
}

/// Calls in a window are about to be completed, at one target or at all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_hold(what: u8, window: u64, target: c_int) {
    let Some((confirm, mut outside)) = ready() else { return };
    if let Some(&what) = COMPLETIONS.get(usize::from(what)) {
        confirm.end(&mut outside, Ending::Window(what, window, some(target)));
    }
}

/// A request is about to be completed, or was found to be complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sv_hold_request(request: u64) {
    if let Some((confirm, mut outside)) = ready().filter(|_| request != 0) {
        confirm.end(&mut outside, Ending::Request(request));
    }
}
