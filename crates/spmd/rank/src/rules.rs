//! The rules of one-sided communication: what each call does to memory, what completes it, and which accesses
//! conflict.
//!
//! Source: MPI 3.1, chapter 11 (sections 11.3, 11.5, 11.7). An access has a *beginning*, its call, and an *end*,
//! what completes it. It comes before what its end comes before, and not before what follows its call. A call
//! has up to three accesses: to the memory of the *target*, to the *origin* buffer, and to the *result* buffer,
//! which the call fills at the origin.
//!
//! OpenSHMEM (1.4, chapter 9) has the same shape: a context takes the place of the window that completions are about, and
//! `shmem_quiet` completes everything in it. Blocking puts have read their source when they return, blocking gets and
//! fetching atomics are over when they return. `shmem_fence` completes nothing; what it orders is in
//! [`order`](crate::order).
//!
//! Deviation: operations of accumulates are not compared. MPI lets different operations on one element conflict
//! unless the window says otherwise, but all implementations that we know make each of them atomic.

/// What an access does to memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Act {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads elements of a basic type atomically.
    AtomicRead(Basic),
    /// Reads and writes elements of a basic type atomically.
    AtomicWrite(Basic),
}

/// A basic type of MPI: a number that the C layer gives it, and its size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Basic {
    /// Differs for types that are different to MPI, such as `MPI_INT` and `MPI_FLOAT`.
    pub number: u8,
    /// Bytes of one element; never 0.
    pub size: u16,
}

impl Act {
    /// Whether memory changes.
    pub fn writes(self) -> bool {
        matches!(self, Act::Write | Act::AtomicWrite(_))
    }

    /// Whether everything that conflicts with `other` at some bytes conflicts with this at the same bytes.
    /// Definition 7.1 of the thesis, extended to atomics.
    pub fn covers(self, other: Act) -> bool {
        match (self, other) {
            (Act::Write, _) => true,
            (Act::AtomicWrite(a), Act::AtomicWrite(b) | Act::AtomicRead(b)) => a == b,
            (a, b) => a == b,
        }
    }
}

/// A piece of memory: its first byte, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[allow(missing_docs)]
pub struct Bytes {
    pub start: u64,
    pub len: u64,
}

impl Bytes {
    /// The first byte after it.
    pub fn end(self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// The bytes that both have.
    pub fn common(self, other: Bytes) -> Option<Bytes> {
        let start = self.start.max(other.start);
        let end = self.end().min(other.end());
        (start < end).then(|| Bytes { start, len: end - start })
    }
}

/// Whether two accesses whose bytes overlap conflict: one of them writes, and they are not atomic on the same
/// elements. `a_from` and `b_from` are addresses at which an element of each begins.
pub fn conflict(a: Act, a_from: u64, b: Act, b_from: u64) -> bool {
    if !a.writes() && !b.writes() {
        return false;
    }
    match (a, b) {
        (Act::AtomicRead(x) | Act::AtomicWrite(x), Act::AtomicRead(y) | Act::AtomicWrite(y)) => {
            x != y || !a_from.abs_diff(b_from).is_multiple_of(u64::from(x.size.max(1)))
        }
        _ => true,
    }
}

/// How far the elements of an atomic access are shifted against multiples of their size.
pub fn phase(act: Act, from: u64) -> u64 {
    match act {
        Act::AtomicRead(basic) | Act::AtomicWrite(basic) => from % u64::from(basic.size.max(1)),
        Act::Read | Act::Write => 0,
    }
}

/// Which memory of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Side {
    Target,
    Origin,
    Result,
}

/// What a call does to each of its memories. `atomic` calls access the target element by element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// Whether it reads and writes the target, if it has one.
    target: Option<(bool, bool)>,
    atomic: bool,
    origin: Option<bool>,
    result: bool,
    blocks: Blocks,
}

/// Which of its memories a call is done with when it returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blocks {
    /// None of them.
    Nothing,
    /// Those at the origin.
    Origin,
    /// All.
    Everything,
}

impl Call {
    /// Whether the access to one of its memories is over when the call returns, if no request completes it.
    pub fn ends_at_once(&self, side: Side) -> bool {
        match self.blocks {
            Blocks::Nothing => false,
            Blocks::Origin => side != Side::Target,
            Blocks::Everything => true,
        }
    }

    /// What it does to one of its memories; `no_op` means that the operation is `MPI_NO_OP`.
    pub fn act(&self, side: Side, basic: Basic, no_op: bool) -> Option<Act> {
        match side {
            Side::Target => self.target.map(|(_, writes)| match (self.atomic, writes && !no_op) {
                (true, true) => Act::AtomicWrite(basic),
                (true, false) => Act::AtomicRead(basic),
                (false, true) => Act::Write,
                (false, false) => Act::Read,
            }),
            Side::Origin => self.origin.map(|writes| if writes { Act::Write } else { Act::Read }),
            Side::Result => self.result.then_some(Act::Write),
        }
    }

    /// Whether a value of the target comes back: once it is there, the target has been read.
    fn fetches(&self) -> bool {
        self.target.is_some_and(|(reads, _)| reads)
    }

    /// Whether it accesses the target element by element, each atomically.
    pub fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// Whether it is a call of the one-sided interface.
    pub fn is_remote(&self) -> bool {
        self.target.is_some()
    }
}

const fn put(name: &'static str) -> Call {
    Call {
        name,
        target: Some((false, true)),
        atomic: false,
        origin: Some(false),
        result: false,
        blocks: Blocks::Nothing,
    }
}

const fn get(name: &'static str) -> Call {
    Call {
        name,
        target: Some((true, false)),
        atomic: false,
        origin: Some(true),
        result: false,
        blocks: Blocks::Nothing,
    }
}

const fn accumulate(name: &'static str, fetches: bool) -> Call {
    Call {
        name,
        target: Some((fetches, true)),
        atomic: true,
        origin: Some(false),
        result: fetches,
        blocks: Blocks::Nothing,
    }
}

/// A call of OpenSHMEM that returns when its source can be used again, or, if it fetches, when it is over.
const fn blocking(call: Call) -> Call {
    let blocks = match call.target {
        Some((true, _)) | None => Blocks::Everything,
        Some((false, _)) => Blocks::Origin,
    };
    Call { blocks, ..call }
}

/// An atomic operation of OpenSHMEM, whose operand is a value.
const fn atomic(name: &'static str, reads: bool, writes: bool) -> Call {
    let target = Some((reads, writes));
    blocking(Call { target, origin: None, result: false, ..accumulate(name, false) })
}

/// A call whose buffer is all that it touches here: `writes` as a receive does.
const fn buffer(name: &'static str, writes: bool) -> Call {
    Call {
        name,
        target: None,
        atomic: false,
        origin: Some(writes),
        result: false,
        blocks: Blocks::Everything,
    }
}

/// All calls that access memory, by name.
pub const CALLS: [Call; 36] = [
    buffer("load", false),
    buffer("store", true),
    put("MPI_Put"),
    put("MPI_Rput"),
    get("MPI_Get"),
    get("MPI_Rget"),
    accumulate("MPI_Accumulate", false),
    accumulate("MPI_Raccumulate", false),
    accumulate("MPI_Get_accumulate", true),
    accumulate("MPI_Rget_accumulate", true),
    accumulate("MPI_Fetch_and_op", true),
    accumulate("MPI_Compare_and_swap", true),
    buffer("MPI_Send", false),
    buffer("MPI_Recv", true),
    buffer("MPI_Isend", false),
    buffer("MPI_Issend", false),
    buffer("MPI_Irecv", true),
    buffer("MPI_Ibcast (sends)", false),
    buffer("MPI_Ibcast (receives)", true),
    buffer("MPI_Iallreduce (sends)", false),
    buffer("MPI_Iallreduce (receives)", true),
    buffer("MPI_Sendrecv (sends)", false),
    buffer("MPI_Sendrecv (receives)", true),
    blocking(put("shmem_put")),
    put("shmem_put_nbi"),
    blocking(put("shmem_iput")),
    blocking(Call { origin: None, ..put("shmem_p") }),
    blocking(get("shmem_get")),
    get("shmem_get_nbi"),
    blocking(get("shmem_iget")),
    blocking(Call { origin: None, ..get("shmem_g") }),
    atomic("shmem_atomic update", false, true),
    atomic("shmem_atomic fetch", true, false),
    atomic("shmem_atomic fetch and update", true, true),
    buffer("shmem collective (sends)", false),
    buffer("shmem collective (receives)", true),
];

/// The number of `load` in [`CALLS`].
pub const LOAD: u8 = 0;
/// The number of `store` in [`CALLS`].
pub const STORE: u8 = 1;

/// The number of a call in [`CALLS`].
pub fn number(name: &str) -> Option<u8> {
    CALLS.iter().position(|c| c.name == name).map(|i| i as u8)
}

/// What completes one-sided calls, in the order of [`COMPLETIONS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Completion {
    Fence,
    Complete,
    Unlock,
    Flush,
    FlushLocal,
    Request,
    Free,
}

/// All completions, by number.
pub const COMPLETIONS: [Completion; 7] = [
    Completion::Fence,
    Completion::Complete,
    Completion::Unlock,
    Completion::Flush,
    Completion::FlushLocal,
    Completion::Request,
    Completion::Free,
];

/// How far a completion brings an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The access may still go on.
    Open,
    /// The access has ended.
    Ended,
    /// The access has ended when the target has waited (`MPI_Win_wait`) for this.
    WhenTargetWaits,
}

/// The table of completions: what each does to each side of a call.
pub fn completes(completion: Completion, call: &Call, side: Side) -> Reach {
    use Completion::{Complete, Fence, Flush, FlushLocal, Free, Request, Unlock};
    match (completion, side) {
        (Fence | Unlock | Flush | Free, _) => Reach::Ended,
        (Complete, Side::Target) => Reach::WhenTargetWaits,
        (FlushLocal | Request, Side::Target) if call.is_remote() && !call.fetches() => Reach::Open,
        (Complete | FlushLocal | Request, _) => Reach::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Basic = Basic { number: 1, size: 4 };
    const FLOAT: Basic = Basic { number: 2, size: 4 };
    const SHORT: Basic = Basic { number: 3, size: 2 };

    /// Every pair of acts at the same place, against a table written by hand: `.` no conflict, `x` conflict.
    #[test]
    fn conflicts_are_those_of_the_table() {
        let acts = [
            Act::Read,
            Act::Write,
            Act::AtomicRead(INT),
            Act::AtomicWrite(INT),
            Act::AtomicRead(FLOAT),
            Act::AtomicWrite(FLOAT),
        ];
        let table = [
            ". x . x . x",
            "x x x x x x",
            ". x . . . x",
            "x x . . x x",
            ". x . x . .",
            "x x x x . .",
        ];
        for (a, row) in acts.iter().zip(table) {
            for (b, cell) in acts.iter().zip(row.split(' ')) {
                assert_eq!(conflict(*a, 8, *b, 8), cell == "x", "{a:?} with {b:?}");
                assert_eq!(conflict(*a, 8, *b, 8), conflict(*b, 8, *a, 8), "{a:?} with {b:?}");
            }
        }
    }

    #[test]
    fn accumulates_conflict_where_their_elements_are_shifted_or_of_other_types() {
        let write = Act::AtomicWrite(INT);
        assert!(!conflict(write, 8, write, 16));
        assert!(conflict(write, 8, write, 9), "shifted by a byte");
        assert!(conflict(write, 8, Act::AtomicWrite(SHORT), 8), "ints and shorts");
        assert!(conflict(write, 8, Act::AtomicRead(FLOAT), 8), "ints and floats");
    }

    /// What covers may be kept in place of what is covered: nothing conflicts with the latter alone.
    #[test]
    fn what_covers_conflicts_with_all_that_what_is_covered_conflicts_with() {
        let acts = [
            Act::Read,
            Act::Write,
            Act::AtomicRead(INT),
            Act::AtomicWrite(INT),
            Act::AtomicRead(SHORT),
            Act::AtomicWrite(SHORT),
        ];
        for a in acts {
            for b in acts.into_iter().filter(|b| a.covers(*b)) {
                for c in acts.into_iter().filter(|c| conflict(b, 0, *c, 0)) {
                    assert!(conflict(a, 0, c, 0), "{a:?} covers {b:?}, which conflicts with {c:?}");
                }
            }
        }
    }

    /// What is over when a call of OpenSHMEM returns: target and origin.
    #[test]
    fn blocking_calls_end_at_once() {
        let ends = |name: &str| {
            let call = &CALLS[number(name).expect("a call") as usize];
            [Side::Target, Side::Origin].map(|side| call.ends_at_once(side))
        };
        assert_eq!(ends("shmem_put"), [false, true]);
        assert_eq!(ends("shmem_put_nbi"), [false, false]);
        assert!(!ends("shmem_p")[0]);
        assert_eq!(ends("shmem_get"), [true, true]);
        assert_eq!(ends("shmem_get_nbi"), [false, false]);
        assert!(!ends("shmem_atomic update")[0]);
        assert!(ends("shmem_atomic fetch and update")[0]);
        assert_eq!(ends("MPI_Put"), [false, false]);
        assert!(ends("MPI_Send")[1]);
    }

    #[test]
    fn calls_do_to_each_memory_what_the_standard_says() {
        let acts = |name: &str, no_op| {
            let call = &CALLS[number(name).expect("a call") as usize];
            [Side::Target, Side::Origin, Side::Result].map(|side| call.act(side, INT, no_op))
        };
        let (read, write) = (Some(Act::Read), Some(Act::Write));
        let atomic = Some(Act::AtomicWrite(INT));
        assert_eq!(acts("MPI_Put", false), [write, read, None]);
        assert_eq!(acts("MPI_Get", false), [read, write, None]);
        assert_eq!(acts("MPI_Accumulate", false), [atomic, read, None]);
        assert_eq!(acts("MPI_Fetch_and_op", false), [atomic, read, write]);
        assert_eq!(acts("MPI_Fetch_and_op", true), [Some(Act::AtomicRead(INT)), read, write]);
        assert_eq!(acts("MPI_Irecv", false), [None, write, None]);
        assert_eq!(number("MPI_Nothing"), None);
    }

    /// Every completion with a put, a get and a fetching atomic: `e` ended, `o` open, `w` when the target waits;
    /// target, origin and result in this order.
    #[test]
    fn completions_are_those_of_the_table() {
        let table = [
            ("Fence", "eee eee eee"),
            ("Complete", "wee wee wee"),
            ("Unlock", "eee eee eee"),
            ("Flush", "eee eee eee"),
            ("FlushLocal", "oee eee eee"),
            ("Request", "oee eee eee"),
            ("Free", "eee eee eee"),
        ];
        for (completion, (name, row)) in COMPLETIONS.into_iter().zip(table) {
            assert_eq!(format!("{completion:?}"), name);
            for (call, cells) in
                ["MPI_Put", "MPI_Get", "MPI_Fetch_and_op"].iter().zip(row.split(' '))
            {
                let call = &CALLS[number(call).expect("a call") as usize];
                let reach = |side| match completes(completion, call, side) {
                    Reach::Open => 'o',
                    Reach::Ended => 'e',
                    Reach::WhenTargetWaits => 'w',
                };
                let found: String =
                    [Side::Target, Side::Origin, Side::Result].into_iter().map(reach).collect();
                assert_eq!(found, cells, "{name} and {}", call.name);
            }
        }
    }
}
