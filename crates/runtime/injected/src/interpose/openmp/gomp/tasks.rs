//! Tasks and loops of tasks. The library copies a task's argument, by a function of the program if there is one, and
//! calls the task's function with the copy. We put a [`Head`] before the argument and pass functions of ours.
//!
//! The library writes into the argument as the program's compiler expects it: the event of a detached task into the
//! first word, the bounds of a loop into the first two; and it finds the reductions of a loop in the third. So the
//! head begins with these words, and they are handed on when the task runs.
//!
//! A loop is cut into tasks inside the library, and all get the same head. So each gets its number when it begins,
//! and the loop's own number is held until its tasks have covered it.

#![allow(missing_docs)] // The names are the library's own.

use core::ffi::c_int;

use super::{Code, RAN, Within, back, current, enter, follows};
use crate::arch::with_pc;
use crate::interpose::openmp::nodes::dependences::{self, Dependence, kind};
use crate::interpose::openmp::nodes::{self, NONE, Part};
use crate::interpose::openmp::{
    after, begin_group, end_group, end_task, make_part, make_task, publish_task, run_task,
    waited_for_children, waited_for_dependences,
};
use crate::interpose::real;
use crate::primitives::{happens_after, happens_before};
use crate::sync::{self, ANNOTATED};
use crate::thread;

/// The library's flags of tasks.
mod flag {
    pub const DEPEND: u32 = 1 << 3;
    /// A loop of unsigned numbers counts upwards.
    pub const UP: u32 = 1 << 8;
    pub const NO_GROUP: u32 = 1 << 11;
    pub const REDUCTION: u32 = 1 << 12;
    pub const DETACH: u32 = 1 << 13;
}

type Copy = unsafe extern "C" fn(usize, usize);

/// What stands before a task's argument.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    /// What the library writes and reads: see the module.
    words: [usize; 3],
    /// The task's function.
    code: usize,
    /// The program's argument, its length, and the function that copies it, if there is one.
    data: usize,
    len: usize,
    copy: usize,
    /// From the head to the argument.
    offset: usize,
    /// The length of a loop.
    length: u64,
    /// The number of the task, or of the loop.
    number: u32,
    flags: u32,
}

/// A head with its argument behind it, if that is not too long. The head alone is enough for the library to copy both,
/// by [`copy`]; but tasks that were copied by a function of the program run although they are cancelled.
#[repr(C, align(64))]
struct Whole {
    head: Head,
    argument: [u8; 512],
}

/// The library copies a task's argument, in the place of the program's function.
unsafe extern "C" fn copy(to: usize, from: usize) {
    // SAFETY: `pass` passes a head as the argument, and has asked for enough room for the copy.
    unsafe {
        let head = *(from as *const Head);
        (to as *mut Head).write(head);
        if head.has_event() {
            (head.data as *mut usize).write(head.words[0]);
        }
        let argument = to + head.offset;
        if head.copy != 0 {
            core::mem::transmute::<usize, Copy>(head.copy)(argument, head.data);
        } else {
            core::ptr::copy_nonoverlapping(head.data as *const u8, argument as *mut u8, head.len);
        }
        publish_task(head.number, 0);
    }
}

/// What to pass to the library in the place of the program's argument, copying function, length and alignment.
struct Passed {
    data: usize,
    copy: usize,
    len: usize,
    alignment: usize,
}

/// Prepares what to pass; `whole` stays until the library has returned.
unsafe fn pass(whole: &mut Whole, head: Head, alignment: usize) -> Passed {
    let alignment = alignment.max(align_of::<Head>());
    let offset = size_of::<Head>().next_multiple_of(alignment);
    whole.head = Head { offset, ..head };
    let fits = alignment <= align_of::<Whole>() && offset + head.len <= size_of::<Whole>();
    let data = &raw mut *whole as usize;
    if head.copy != 0 || !fits {
        return Passed {
            data,
            copy: copy as *const () as usize,
            len: offset + head.len,
            alignment,
        };
    }
    // SAFETY: the program's argument, and room for it behind the head.
    unsafe {
        core::ptr::copy_nonoverlapping(
            head.data as *const u8,
            (data + offset) as *mut u8,
            head.len,
        );
    }
    Passed { data, copy: 0, len: offset + head.len, alignment }
}

/// Runs a task, in the place of the program's function.
unsafe extern "C" fn task(data: usize) {
    // SAFETY: a copy of a head that `pass` made, or that head itself.
    let head = unsafe { *(data as *const Head) };
    let event = head.has_event().then_some(head.words[0]);
    run_task(head.number);
    let before = enter(head.number);
    let is_undeferred = before.making == head.number && head.number != NONE;
    if let Some(event) = event {
        begins(event, head.number, is_undeferred);
        // SAFETY: the first word of the argument is for the event.
        unsafe { ((data + head.offset) as *mut usize).write(event) };
    }
    // SAFETY: the program's function and its argument.
    unsafe { core::mem::transmute::<usize, Code>(head.code)(data + head.offset) };
    back(if is_undeferred { Within { making: RAN, ..before } } else { before });
    match event {
        Some(event) => passes(event, event::LEFT),
        None => end_task(head.number),
    }
}

/// What an event's object says has happened.
mod event {
    pub const LEFT: u32 = 1;
    pub const FULFILLED: u32 = 2;
}

/// A detached task begins. Its event may be fulfilled already, unless the task is undeferred: then the event is on the
/// stack of this thread, and the object may be that of an earlier one at the same place.
fn begins(event: usize, number: u32, is_undeferred: bool) {
    if let Some(t) = thread::me() {
        sync::with(t, event | ANNOTATED, |_, object| {
            object.parties = number;
            if is_undeferred {
                object.arrived = 0;
            }
        });
    }
}

/// A detached task was left, or its event fulfilled. When both have happened, the task has ended.
fn passes(event: usize, what: u32) {
    happens_before(event | ANNOTATED, 0);
    let Some(t) = thread::me() else { return };
    let (all, number) = sync::with(t, event | ANNOTATED, |_, object| {
        object.arrived |= what;
        (object.arrived, object.parties)
    });
    if all == event::LEFT | event::FULFILLED {
        happens_after(event | ANNOTATED, 0);
        end_task(number);
    }
}

unsafe extern "C" fn fulfill(event: usize, _pc: usize) {
    if follows() {
        passes(event, event::FULFILLED);
    }
    real!(omp_fulfill_event(event) as fn(usize) -> ());
}

/// The library's list of dependences: how many of which kind, then the variables, then objects that name a variable
/// and a kind.
unsafe fn listed(list: *const usize) -> impl Iterator<Item = Dependence> + Clone {
    /// The library's kinds in objects, where they differ from the interface's.
    const MEMBER: usize = 5;
    // SAFETY: the program's list.
    let (first, counts) = unsafe {
        let at = |i: usize| list.add(i).read();
        match at(0) {
            0 => (5, [at(2), at(3), at(4), at(1)]),
            all => (2, [at(1), 0, all - at(1), all]),
        }
    };
    let [out, mutex, r#in, all] = counts;
    (0..all).map(move |i| {
        // SAFETY: as many as the counts say.
        let entry = unsafe { list.add(first + i).read() };
        let (variable, kind) = match i {
            _ if i < out => (entry, kind::INOUT),
            _ if i < out + mutex => (entry, kind::MUTEX),
            _ if i < out + mutex + r#in => (entry, kind::IN),
            // SAFETY: the program's object.
            _ => match unsafe { *(entry as *const [usize; 2]) } {
                [variable, MEMBER] => (variable, kind::MEMBER),
                [variable, kind] => (variable, kind as u32),
            },
        };
        // No variable stands for all memory.
        let kind = if variable == 0 && kind != kind::IN { kind::ALL_MEMORY[0] } else { kind };
        Dependence { variable: variable as u64, kind }
    })
}

#[allow(clippy::too_many_arguments)] // The library's.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn GOMP_task(
    code: usize,
    data: usize,
    copy: usize,
    len: usize,
    alignment: usize,
    if_clause: usize,
    flags: u32,
    depend: *const usize,
    priority: c_int,
    detach: *const usize,
) {
    let call = |code: usize, data, copy, len, alignment| {
        real!(GOMP_task(
            code, data, copy, len, alignment, if_clause, flags, depend, priority, detach
        )
            as fn(
                usize,
                usize,
                usize,
                usize,
                usize,
                usize,
                u32,
                *const usize,
                c_int,
                *const usize,
            ) -> ())
    };
    if !follows() {
        return call(code, data, copy, len, alignment);
    }
    let number = make_task(current());
    if flags & flag::DEPEND != 0 {
        // SAFETY: the program's list.
        dependences::declare(number, unsafe { listed(depend) });
    }
    publish_task(number, code + 1);
    let head = Head { code, data, len, copy, number, flags, ..Head::NONE };
    let mut whole = Whole::EMPTY;
    // SAFETY: the program's argument.
    let passed = unsafe { pass(&mut whole, head, alignment) };
    let around = makes(number);
    call(task as *const () as usize, passed.data, passed.copy, passed.len, passed.alignment);
    // The library has waited until the event of an undeferred task was fulfilled.
    if makes(around) == RAN && flags & flag::DETACH != 0 {
        // SAFETY: the program's variable for the event, which the library has written.
        happens_after(unsafe { detach.read() } | ANNOTATED, 0);
    }
}

/// The thread is making this task now; what it was making.
fn makes(number: u32) -> u32 {
    thread::me().map_or(NONE, |t| core::mem::replace(&mut t.openmp.making, number))
}

impl Head {
    const NONE: Head = Head {
        words: [0; 3],
        code: 0,
        data: 0,
        len: 0,
        copy: 0,
        offset: 0,
        length: 0,
        number: NONE,
        flags: 0,
    };

    /// Whether the first word of the argument is for an event.
    fn has_event(&self) -> bool {
        self.flags & flag::DETACH != 0 && self.len >= size_of::<usize>()
    }
}

impl Whole {
    const EMPTY: Whole = Whole { head: Head::NONE, argument: [0; 512] };
}

/// Runs a task of a loop, in the place of the program's function.
unsafe extern "C" fn part_of_loop(data: usize) {
    // SAFETY: as in `task`.
    let head = unsafe { *(data as *const Head) };
    let number = make_part(head.number);
    after(head.number, nodes::key(head.number, Part::Start), 0);
    let [from, to, _] = head.words;
    // SAFETY: the first two words of the argument are for the bounds.
    unsafe { ((data + head.offset) as *mut [usize; 2]).write([from, to]) };
    let before = enter(number);
    // SAFETY: the program's function and its argument.
    unsafe { core::mem::transmute::<usize, Code>(head.code)(data + head.offset) };
    back(before);
    end_task(number);
    covered(&head, distance(from, to));
}

/// How far it is from one bound to another, in either direction.
fn distance(a: usize, b: usize) -> u64 {
    a.wrapping_sub(b).min(b.wrapping_sub(a)) as u64
}

/// A part of a loop is over. When all are, the loop's number is given back.
fn covered(head: &Head, len: u64) {
    let Some(t) = thread::me().filter(|_| head.number != NONE) else { return };
    let key = nodes::key(head.number, Part::Children);
    let all = sync::with(t, key, |_, object| {
        let [low, high] = object.inside;
        let covered = (u64::from(high) << 32 | u64::from(low)) + len;
        object.inside = [covered as u32, (covered >> 32) as u32];
        covered
    });
    if all >= head.length {
        nodes::let_go(head.number);
    }
}

macro_rules! loops {
    ($($name:ident $signed:literal)*) => {$(
        #[allow(clippy::too_many_arguments)] // The library's.
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            code: usize,
            data: usize,
            copy: usize,
            len: usize,
            alignment: usize,
            flags: u32,
            tasks: usize,
            priority: c_int,
            start: usize,
            end: usize,
            step: usize,
        ) {
            let call = |code: usize, data, copy, len, alignment| {
                real!($name(code, data, copy, len, alignment, flags, tasks, priority, start, end, step)
                    as fn(usize, usize, usize, usize, usize, u32, usize, c_int, usize, usize, usize) -> ())
            };
            if !follows() {
                return call(code, data, copy, len, alignment);
            }
            let (is_up, sign) = if $signed {
                (step as isize > 0, 1 << 63)
            } else {
                (flags & flag::UP != 0, 0)
            };
            let (from, to) = (start ^ sign, end ^ sign);
            let is_empty = if is_up { from >= to } else { from <= to };
            let l = Loop { code, data, copy, len, alignment, flags, start, end, is_empty };
            // SAFETY: the program's own call.
            unsafe { taskloop(call, l) };
        }
    )*};
}

loops! { GOMP_taskloop true GOMP_taskloop_ull false }

/// A loop of tasks, as the program passes it.
struct Loop {
    code: usize,
    data: usize,
    copy: usize,
    len: usize,
    alignment: usize,
    flags: u32,
    start: usize,
    end: usize,
    is_empty: bool,
}

/// Runs a loop of tasks by `call`.
unsafe fn taskloop(call: impl FnOnce(usize, usize, usize, usize, usize), l: Loop) {
    let own = current();
    let group = l.flags & flag::NO_GROUP == 0;
    if group {
        begin_group(own);
    }
    let number = make_task(own);
    publish_task(number, l.code + 1);
    let reductions = if l.flags & flag::REDUCTION != 0 && l.len >= 24 {
        // SAFETY: the argument of such a loop names its reductions in the third word.
        unsafe { (l.data as *const usize).add(2).read() }
    } else {
        0
    };
    let head = Head {
        words: [0, 0, reductions],
        code: l.code,
        data: l.data,
        len: l.len,
        copy: l.copy,
        length: distance(l.start, l.end),
        number,
        flags: 0,
        ..Head::NONE
    };
    let mut whole = Whole::EMPTY;
    // SAFETY: the program's argument.
    let passed = unsafe { pass(&mut whole, head, l.alignment) };
    call(
        part_of_loop as *const () as usize,
        passed.data,
        passed.copy,
        passed.len,
        passed.alignment,
    );
    if l.is_empty {
        nodes::let_go(number);
    }
    if group {
        end_group(own, l.code + 1);
    }
}

unsafe extern "C" fn wait(pc: usize) {
    real!(GOMP_taskwait() as fn() -> ());
    if follows() {
        waited_for_children(current(), pc);
    }
}

unsafe extern "C" fn wait_depend(list: *const usize, _pc: usize) {
    if !follows() {
        return real!(GOMP_taskwait_depend(list) as fn(*const usize) -> ());
    }
    let empty = make_task(current());
    // SAFETY: the program's list.
    dependences::declare(empty, unsafe { listed(list) });
    real!(GOMP_taskwait_depend(list) as fn(*const usize) -> ());
    waited_for_dependences(empty);
}

with_pc! {
    GOMP_taskwait => wait, 0;
    GOMP_taskwait_depend => wait_depend, 1;
    omp_fulfill_event => fulfill, 1;
}

/// An empty task with dependences, which orders its successors after its predecessors. We wait for it.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn GOMP_taskwait_depend_nowait(list: *const usize) {
    if follows() {
        // SAFETY: the program's own call.
        return unsafe { wait_depend(list, 0) };
    }
    real!(GOMP_taskwait_depend_nowait(list) as fn(*const usize) -> ());
}

/// Runs code for a device by `real`, which gets the flags to pass. Without a device, the host runs it; the library
/// would make a task of its own of it if the program does not wait.
unsafe fn target(flags: usize, depend: *const usize, real: impl FnOnce(usize)) {
    const NO_WAIT: usize = 1;
    if !follows() {
        return real(flags);
    }
    if !depend.is_null() {
        // SAFETY: the program's list. Who has waited for all that the code depends on is ordered as the code would
        // be, and whatever depends on the code is made later by this task.
        unsafe { wait_depend(depend, 0) };
    }
    real(flags & !NO_WAIT);
}

#[allow(clippy::too_many_arguments)] // The library's.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn GOMP_target_ext(
    device: c_int,
    code: usize,
    count: usize,
    addresses: usize,
    sizes: usize,
    kinds: usize,
    flags: usize,
    depend: *const usize,
    arguments: usize,
) {
    let real = |flags| {
        real!(GOMP_target_ext(
            device, code, count, addresses, sizes, kinds, flags, depend, arguments
        )
            as fn(c_int, usize, usize, usize, usize, usize, usize, *const usize, usize) -> ())
    };
    // SAFETY: the program's own call.
    unsafe { target(flags, depend, real) };
}

macro_rules! transfers {
    ($($name:ident)*) => {$(
        #[allow(clippy::too_many_arguments)] // The library's.
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            device: c_int,
            count: usize,
            addresses: usize,
            sizes: usize,
            kinds: usize,
            flags: usize,
            depend: *const usize,
        ) {
            let real = |flags| {
                real!($name(device, count, addresses, sizes, kinds, flags, depend)
                    as fn(c_int, usize, usize, usize, usize, usize, *const usize) -> ())
            };
            // SAFETY: the program's own call.
            unsafe { target(flags, depend, real) };
        }
    )*};
}

transfers! { GOMP_target_update_ext GOMP_target_enter_exit_data }
