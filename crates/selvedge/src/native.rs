//! What blocks hand over in a program that `cargo selvedge` has built: to the runtime that is linked into it.
//!
//! A value goes there in its stored form. A predicate that is code of the program becomes a function with C's calling
//! convention, one for each type and closure. When the runtime is given a function for the first time, it keeps a copy
//! of the process, in which this thread has just set [`HANDED`]: there the function finds its closure. So nothing
//! is shared between threads, which would order them.

use std::any::TypeId;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};

use selvedge_specs::{Predicate, Value as Kept, Word};

use crate::values::{Callback, Rule, Same};

/// `struct selvedge_predicate` and `struct selvedge_value` of `selvedge.h`.
#[repr(C)]
struct SamePredicate {
    kind: u32,
    bound: f64,
    same: Option<Same>,
}

#[repr(C)]
struct HandedValue {
    name: *const c_char,
    data: *const c_void,
    count: usize,
    place: *const c_void,
    call: u32,
    kind: u32,
    same: SamePredicate,
}

unsafe extern "C" {
    fn selvedge_hand_over(value: *const HandedValue);
    fn selvedge_block_token() -> u64;
    fn selvedge_block_join(token: u64);
    fn selvedge_block_leave();
}

/// The stored form of a value, see `runtime::values`.
const ENCODED: u32 = 18;
/// The state of a block that ends.
const AFTER: u32 = 32;
/// The numbers of `selvedge.h`.
const ROWS: u32 = 7;
const OWN: u32 = 6;

thread_local! {
    /// The predicate of the value that is being handed over.
    static HANDED: RefCell<Option<Callback>> = const { RefCell::new(None) };
}

/// The function that calls the predicate of this thread, for each type of value and each closure its own.
pub(crate) unsafe extern "C" fn same_of<T: 'static, F: 'static>(
    a: *const c_void,
    a_size: usize,
    b: *const c_void,
    b_size: usize,
) -> c_int {
    // Functions with the same code may become one function; this is not the same code.
    std::hint::black_box(TypeId::of::<(T, F)>());
    // SAFETY: the runtime passes the bytes of two values, which live until this returns.
    let of = |at: *const c_void, size| unsafe { std::slice::from_raw_parts(at.cast::<u8>(), size) };
    let [a, b] = [of(a, a_size), of(b, b_size)].map(Kept::decode);
    let callback = HANDED.with_borrow(Clone::clone);
    match (callback, a, b) {
        (Some(callback), Ok(a), Ok(b)) => match callback(&a, &b) {
            Ok(same) => c_int::from(same),
            // There is no answer: this process, which is there for answers only, ends.
            Err(_) => std::process::abort(),
        },
        _ => std::process::abort(),
    }
}

/// What a value is handed over as: its predicate's number and bound, its function, and the bytes.
struct Form {
    kind: u32,
    bound: f64,
    same: Option<Same>,
    bytes: Vec<u8>,
}

fn form(rule: Rule, value: &Kept) -> Form {
    let given = |kind, bound| Form { kind, bound, same: None, bytes: value.encode() };
    match rule {
        Rule::Own { name, callback, native } => {
            HANDED.set(Some(callback));
            let len = (name.len() as u64).to_le_bytes();
            let bytes = [&len, name.as_bytes(), &value.encode()].concat();
            Form { kind: OWN, bound: 0.0, same: Some(native), bytes }
        }
        Rule::Predicate(predicate) => match predicate {
            Predicate::Exact | Predicate::Callback(_) => given(0, 0.0),
            Predicate::Within(e) => given(1, e),
            Predicate::Relative(e) => given(2, e),
            Predicate::Ulps(n) => given(3, n as f64),
            Predicate::Set => given(4, 0.0),
            Predicate::Multiset => given(5, 0.0),
            Predicate::Rows => given(ROWS, 0.0),
        },
    }
}

/// Hands a value over. Inlined, so that the call is in the function that says it and has its place.
///
/// # Panics
/// If the value cannot be turned into one that can be stored.
#[inline(always)]
pub(crate) fn say<T: crate::Value>(word: Word, name: &str, value: &T, rule: impl FnOnce() -> Rule) {
    let said = prepared(word, name, Kept::of(value), rule());
    // SAFETY: the runtime is linked into every program that is built with the flag that this module asks for. The
    // structure is that of its header, and what it points to lives as long as `said`.
    unsafe { selvedge_hand_over(&said.value) };
    drop(said);
}

/// A value with what it points to.
struct Said {
    value: HandedValue,
    _name: CString,
    _bytes: Vec<u8>,
}

fn prepared(
    word: Word,
    name: &str,
    value: Result<Kept, selvedge_specs::value::Unserializable>,
    rule: Rule,
) -> Said {
    let value = value.unwrap_or_else(|why| panic!("{name:?} cannot be handed over: {why}"));
    let Form { kind, bound, same, bytes } = form(rule, &value);
    let name = CString::new(name.replace('\0', "")).unwrap_or_default();
    let call = match word {
        Word::Assume => 1,
        Word::Ensure => 2,
        Word::Before => 3,
        Word::After => 3 | AFTER,
        Word::Observe => 4,
    };
    let value = HandedValue {
        name: name.as_ptr(),
        data: bytes.as_ptr().cast(),
        count: bytes.len(),
        place: std::ptr::null(),
        call,
        kind: ENCODED,
        same: SamePredicate { kind, bound, same },
    };
    Said { value, _name: name, _bytes: bytes }
}

/// What a program says of an atomic block without a value, by the numbers of `selvedge.h`.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// The block takes effect.
    Point = 5,
    /// Accesses are distinguished from here …
    Distinguish = 6,
    /// … to here.
    Indistinct = 7,
}

/// Says it. Inlined, as `say` is.
#[inline(always)]
pub(crate) fn mark(mark: Mark) {
    let value = HandedValue {
        name: c"".as_ptr(),
        data: c"".as_ptr().cast(),
        count: 0,
        place: std::ptr::null(),
        call: mark as u32,
        kind: ENCODED,
        same: SamePredicate { kind: 0, bound: 0.0, same: None },
    };
    // SAFETY: as in `say`; the name is a literal, and there are no bytes.
    unsafe { selvedge_hand_over(&value) };
}

/// A token for the block that the thread is in.
pub(crate) fn token() -> u64 {
    // SAFETY: as in `say`; there are no arguments.
    unsafe { selvedge_block_token() }
}

/// The thread enters the block of a token.
#[inline(always)]
pub(crate) fn join(token: u64) {
    // SAFETY: as in `say`; any number will do.
    unsafe { selvedge_block_join(token) };
}

/// The thread leaves the block that it has joined.
pub(crate) fn leave() {
    // SAFETY: as in `say`; there are no arguments.
    unsafe { selvedge_block_leave() };
}
