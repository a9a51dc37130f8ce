//! The families of `printf` and `scanf`: what they read and write is what their format says.
//!
//! Their entries put the arguments together as the ABI's list of variable arguments (System V ABI for x86-64, section
//! 3.5.7) and call the functions of the C library that take one, so that what the list has is known before the
//! call and after it.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::memory::{length, reads, writes};
use super::{instrumented, real};
use crate::arch::{variable, with_pc};
use crate::misuse;

/// `va_list`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Arguments {
    integers: u32,
    floats: u32,
    stack: usize,
    registers: usize,
}

impl Arguments {
    /// The next integer or pointer.
    ///
    /// # Safety
    /// The list is of a call that has one more.
    pub unsafe fn integer(&mut self) -> usize {
        const LAST: u32 = 48;
        // SAFETY: the caller's.
        unsafe {
            if self.integers < LAST {
                let at = self.registers + self.integers as usize;
                self.integers += 8;
                return (at as *const usize).read();
            }
            let at = self.stack;
            self.stack += 8;
            (at as *const usize).read()
        }
    }

    /// Passes over a `double`.
    fn float(&mut self) {
        const LAST: u32 = 176;
        if self.floats < LAST {
            self.floats += 16;
        } else {
            self.stack += 8;
        }
    }

    /// Passes over a `long double`, which is on the stack.
    fn long_float(&mut self) {
        self.stack = ((self.stack + 15) & !15) + 16;
    }
}

/// One conversion of a format.
struct Conversion {
    letter: u8,
    /// `*` in front of it: arguments for `printf`, no argument for `scanf`.
    stars: usize,
    /// The digits in front of it, the last number.
    width: usize,
    /// The number behind a dot, or that an argument says it.
    precision: Option<usize>,
    precision_is_argument: bool,
    /// Bytes of an integer: `hh`, `h`, none, `l`.
    size: usize,
    long_double: bool,
    /// `%ms`: the function allocates.
    allocates: bool,
    /// `%ls`, `%S`.
    wide: bool,
}

/// The conversions of a format, one after the other. Ends at a form that is not understood (`%1$d`).
struct Format(usize);

impl Format {
    fn byte(&self) -> u8 {
        // SAFETY: within the program's string, whose end stops it.
        unsafe { (self.0 as *const u8).read() }
    }

    fn next(&mut self) -> u8 {
        let byte = self.byte();
        if byte != 0 {
            self.0 += 1;
        }
        byte
    }

    /// The set in brackets.
    fn skip_set(&mut self) {
        if self.byte() == b'^' {
            self.next();
        }
        if self.byte() == b']' {
            self.next();
        }
        while !matches!(self.next(), b']' | 0) {}
    }
}

impl Iterator for Format {
    type Item = Conversion;

    fn next(&mut self) -> Option<Conversion> {
        loop {
            match Format::next(self) {
                0 => return None,
                b'%' if self.byte() == b'%' => {
                    Format::next(self);
                }
                b'%' => break,
                _ => {}
            }
        }
        let mut found = Conversion {
            letter: 0,
            stars: 0,
            width: 0,
            precision: None,
            precision_is_argument: false,
            size: 4,
            long_double: false,
            allocates: false,
            wide: false,
        };
        loop {
            match Format::next(self) {
                0 | b'$' => return None,
                digit @ b'0'..=b'9' => {
                    let number = found.precision.as_mut().unwrap_or(&mut found.width);
                    *number = number.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
                }
                b'.' => found.precision = Some(0),
                b'*' => {
                    found.stars += 1;
                    found.precision_is_argument = found.precision.is_some();
                }
                b'h' => found.size = if found.size == 2 { 1 } else { 2 },
                b'l' => (found.size, found.wide) = (8, true),
                b'q' | b'j' | b'z' | b't' => found.size = 8,
                b'L' => (found.size, found.long_double) = (8, true),
                b'm' if found.letter == 0 && !matches!(self.byte(), 0 | b' ') => {
                    found.allocates = true
                }
                b'-' | b'+' | b' ' | b'#' | b'\'' | b'I' => {}
                letter => {
                    found.letter = letter;
                    if letter == b'[' {
                        self.skip_set();
                    }
                    return Some(found);
                }
            }
        }
    }
}

/// What a call of the `printf` family reads.
unsafe fn printed(format: usize, mut list: Arguments, pc: usize) {
    if !instrumented(pc) {
        return;
    }
    reads(format, length(format) + 1, pc);
    for found in Format(format) {
        let mut precision = found.precision;
        for _ in 0..found.stars {
            // SAFETY: the format says that there is one more, here and below.
            let given = unsafe { list.integer() };
            if found.precision_is_argument {
                precision = Some(given as u32 as usize);
            }
        }
        match found.letter {
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' if found.long_double => {
                list.long_float()
            }
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => list.float(),
            b's' if !found.wide => {
                // SAFETY: the format says that the next argument is a pointer, and so it is there.
                let s = unsafe { list.integer() };
                if s != 0 {
                    let n =
                        real!(strnlen(s, precision.unwrap_or(usize::MAX))
                            as fn(usize, usize) -> usize);
                    reads(s, (n + 1).min(precision.unwrap_or(usize::MAX)), pc);
                }
            }
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b'C' | b's' | b'S' | b'p' | b'n' => {
                // SAFETY: the format says that there is one more argument.
                unsafe { list.integer() };
            }
            b'm' => {}
            _ => return,
        }
    }
}

/// What a call of the `scanf` family has written, of which `assigned` conversions were.
unsafe fn scanned(format: usize, mut list: Arguments, assigned: c_int, pc: usize) {
    if !instrumented(pc) {
        return;
    }
    let mut left = assigned.max(0);
    for found in Format(format).filter(|found| found.stars == 0) {
        if left == 0 {
            return;
        }
        // SAFETY: the format says that there is one more, and it was assigned.
        let to = unsafe { list.integer() };
        left -= c_int::from(found.letter != b'n');
        match found.letter {
            _ if found.allocates => writes(to, 8, pc),
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'n' => writes(to, found.size, pc),
            b'p' => writes(to, 8, pc),
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => {
                writes(to, if found.long_double { 16 } else { found.size }, pc);
            }
            b's' | b'[' if !found.wide => writes(to, length(to) + 1, pc),
            b'c' if !found.wide => writes(to, found.width.max(1), pc),
            _ => return,
        }
    }
}

/// The number of `printf` among what handlers must not call.
const PRINTF: u32 = 7;

macro_rules! prints {
    ($($imp:ident $real:ident($($arg:ident),*) of $format:ident, |$pc:ident, $n:ident| $after:expr;)*) => {$(
        unsafe extern "C" fn $imp($($arg: usize,)* list: *mut Arguments, $pc: usize) -> c_int {
            misuse::calls_unsafe(PRINTF, $pc);
            // SAFETY: the program's format and what it names.
            unsafe { printed($format, *list, $pc) };
            let $n = real!($real($($arg,)* list) as fn($(prints!(@ $arg),)* *mut Arguments) -> c_int);
            let _errno = super::Errno::keep();
            let () = $after;
            $n
        }
    )*};
    (@ $arg:ident) => { usize };
}

prints! {
    print vprintf(format) of format, |pc, n| ();
    fprint vfprintf(stream, format) of format, |pc, n| ();
    dprint vdprintf(fd, format) of format, |pc, n| ();
    sprint vsprintf(to, format) of format, |pc, n| if n >= 0 {
        writes(to, n as usize + 1, pc);
    };
    snprint vsnprintf(to, limit, format) of format, |pc, n| if n >= 0 && limit != 0 {
        writes(to, (n as usize + 1).min(limit), pc);
    };
}

macro_rules! scans {
    ($($imp:ident $real:ident($($arg:ident),*) of $format:ident, |$pc:ident| $before:expr;)*) => {$(
        unsafe extern "C" fn $imp($($arg: usize,)* list: *mut Arguments, $pc: usize) -> c_int {
            let () = $before;
            // SAFETY: the list that the entry has made, or the program's.
            let before = unsafe { *list };
            let n = real!($real($($arg,)* list) as fn($(scans!(@ $arg),)* *mut Arguments) -> c_int);
            let _errno = super::Errno::keep();
            // SAFETY: the program's format and what it names.
            unsafe { scanned($format, before, n, $pc) };
            n
        }
    )*};
    (@ $arg:ident) => { usize };
}

fn whole(s: usize, pc: usize) {
    if instrumented(pc) {
        reads(s, length(s) + 1, pc);
    }
}

scans! {
    scan __isoc99_vscanf(format) of format, |pc| ();
    fscan __isoc99_vfscanf(stream, format) of format, |pc| ();
    sscan __isoc99_vsscanf(from, format) of format, |pc| whole(from, pc);
    old_scan vscanf(format) of format, |pc| ();
    old_fscan vfscanf(stream, format) of format, |pc| ();
    old_sscan vsscanf(from, format) of format, |pc| whole(from, pc);
}

variable! {
    printf => print, 1, 1, 2;
    fprintf => fprint, 2, 2, 3;
    dprintf => dprint, 2, 2, 3;
    sprintf => sprint, 2, 2, 3;
    snprintf => snprint, 3, 3, 4;
    __isoc99_scanf => scan, 1, 1, 2;
    __isoc99_fscanf => fscan, 2, 2, 3;
    __isoc99_sscanf => sscan, 2, 2, 3;
    scanf => old_scan, 1, 1, 2;
    fscanf => old_fscan, 2, 2, 3;
    sscanf => old_sscan, 2, 2, 3;
}

with_pc! {
    vprintf => print, 2;
    vfprintf => fprint, 3;
    vdprintf => dprint, 3;
    vsprintf => sprint, 3;
    vsnprintf => snprint, 4;
    __isoc99_vscanf => scan, 2;
    __isoc99_vfscanf => fscan, 3;
    __isoc99_vsscanf => sscan, 3;
    vscanf => old_scan, 2;
    vfscanf => old_fscan, 3;
    vsscanf => old_sscan, 3;
}
