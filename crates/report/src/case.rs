//! The case: a finding with names instead of the ids of an execution.
//!
//! The store keeps cases in this form. A new field needs a default, so that cases of earlier versions stay
//! readable; a renamed variant keeps its stored name.

use std::collections::BTreeSet;
use std::path::PathBuf;

pub use selvedge_model::Harm;
use selvedge_model::{
    Cause, Divergence, Ended, FindingId, Frame, Keep, Kind, Misuse, Mode, Part, Reported, Site,
    Status, Target, Verdict, merge,
};
use selvedge_specs::{Difference, Kept, Value};

use crate::{Act, Interleaving, Serial};

/// A finding, with the names of everything in it.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Case {
    pub id: FindingId,
    pub kind: Kind,
    pub status: Status,
    pub verdict: Option<Verdict>,
    /// Names of the analyses that found it, first finder first.
    pub analyses: Vec<String>,
    /// What it is about.
    pub subject: Subject,
    /// The values that differ between two executions, the one that it is about first.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub states: Vec<State>,
    /// The serial executions that were tried, if it is that none of them explains what was observed.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub serial: Option<Serial>,
    /// Further facts.
    pub notes: Vec<Note>,
    /// The threads' parts with their places, in the order in which they happened.
    pub places: Vec<Place>,
    pub occurrences: u64,
    /// The state that an execution must reach for it to happen. Locks and threads have numbers of their own here.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub target: Option<Target<Site>>,
    /// The results of controlled executions, if there were any.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub control: Option<Control>,
    /// The files whose code took part, as far as that is known to the command that found it.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub files: BTreeSet<Box<str>>,
}

impl Case {
    /// A case that happened once, of which nothing else is known.
    pub fn bare(id: FindingId, kind: Kind, status: Status, subject: Subject) -> Case {
        Case {
            id,
            kind,
            status,
            verdict: None,
            analyses: Vec::new(),
            subject,
            states: Vec::new(),
            serial: None,
            notes: Vec::new(),
            places: Vec::new(),
            occurrences: 1,
            target: None,
            control: None,
            files: BTreeSet::new(),
        }
    }
}

/// What a case is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Subject {
    Memory(Memory),
    /// Locks by name; none if the threads of a deadlock wait for something else.
    Locks(Vec<String>),
    Region(Region),
    /// A value that a deterministic block ensures.
    Value {
        block: String,
        name: String,
    },
    /// Values that are observed, and that no serial execution gives.
    Observed(Vec<String>),
    /// Something that was misused. A thread, a handler or a descriptor has no place in memory.
    Misused {
        misuse: Misuse,
        of: Memory,
    },
    /// How the program failed.
    Program(Failure),
}

/// A piece of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Memory {
    /// A variable, or part of one.
    Named(String),
    /// A block of the heap.
    Heap {
        /// Where the program allocated it.
        from: Option<Site>,
    },
    /// Only its address is known, which differs in the next run.
    Unnamed,
    /// Memory of a rank that other ranks can access.
    Window {
        /// The window's name, or the variable's, if it has one.
        name: Option<String>,
        /// The rank that owns the memory.
        owner: u32,
        /// The first of the bytes, counted from the beginning of the owner's part of the window.
        byte: u64,
        /// The number of bytes.
        len: u64,
    },
    /// A buffer of a rank that a call of MPI uses.
    Buffer {
        /// The variable, if it has a name.
        name: Option<String>,
        /// The rank that owns the memory.
        owner: u32,
    },
}

/// A marked or inferred region of code.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Region {
    /// With the name that the user gave it.
    Named(String),
    /// The code that is locked by an acquisition at this place.
    Locked(Site),
}

/// How the program failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Failure {
    Signal {
        number: i32,
        /// The name of the program, if the report does not name it elsewhere.
        program: Option<String>,
    },
    /// A failed assertion, a panic or an uncaught exception, by what it said.
    Message(String),
    /// The program exited with a code that other schedules do not lead to.
    Exit {
        code: i32,
        usual: i32,
    },
    /// The program has ended, but threads still wait.
    Left,
    /// A destructor had to wait for another thread while its thread was unwinding from this.
    Unwinding(String),
    /// It did not end after this many steps.
    Steps(u64),
    /// It did not end within the time limit of one execution, in milliseconds.
    Time(u64),
    /// A thread reached no scheduling point for this many seconds.
    Stall(u64),
    NoStack {
        threads: usize,
        error: String,
    },
    /// Two executions used the object that was made here at the same time.
    Shared(Site),
    /// Two executions of one schedule differed: the number of the event, what it was in the first and in the
    /// second execution, and the most probable cause.
    Unrepeatable {
        event: usize,
        expected: Option<Box<Happened>>,
        found: Option<Box<Happened>>,
        cause: Cause,
    },
    /// What the store of an earlier version says.
    Told(String),
}

/// Something that happened in an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Happened {
    pub act: Act,
    pub thread: String,
    pub site: Site,
}

/// A value that differs between two executions of a deterministic block.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct State {
    /// What the program calls it.
    pub name: String,
    /// How many values of that name its thread had ensured before.
    pub nth: u32,
    /// The value in the first execution.
    pub first: Given,
    /// The value in the second one.
    pub second: Given,
}

/// What an execution gave for a value.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Given {
    /// This.
    Value(Value),
    /// A value of which only this digest was kept.
    Digest(String),
    /// Nothing: it did not come to that place.
    Nothing,
}

/// A further fact about a case.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Note {
    /// The memory is this byte of a block that a thread allocated.
    HeapBlock {
        byte: u64,
        thread: String,
        at: Option<Site>,
    },
    StartedBy {
        thread: String,
        by: String,
        at: Option<Site>,
    },
    /// Another thread took the panic by joining that thread, and then failed itself.
    PanickedBefore {
        thread: String,
        text: String,
        at: Option<Site>,
    },
    NullPointer,
    /// The last line on standard error.
    Said(String),
    EndedWith(Ended),
    /// Dropping the last `Arc` orders accesses, which is not seen.
    LastOwner,
    /// A thread that waits because of the failure.
    Waits {
        thread: String,
        wants: Role,
        at: Site,
        holder: Option<Holder>,
    },
    NotReplayed(NotReplayed),
    /// Which step of its variable's discipline an access breaks, and what it lacks.
    Broken {
        thread: String,
        step: String,
        lacks: Lacks,
    },
    /// What clang's thread safety analysis says.
    Clang(String),
    /// A suspected violation happened, and did not change the result.
    NoEffect,
    /// A one-sided call was in flight when its rank entered a barrier.
    InFlight {
        call: String,
        rank: u32,
        window: Option<String>,
        at: Site,
        barrier: Site,
    },
    /// A one-sided call was completed at its origin, and not at its target.
    LocalOnly {
        call: String,
        rank: u32,
    },
    /// Turning round this race, and nothing else, changes the value.
    CausedBy {
        kind: Kind,
        subject: Subject,
        sites: Vec<Site>,
    },
    /// The first execution is one of another build of the program.
    OtherBuild(String),
    /// That the value is the same was inferred from earlier executions, and is not asserted.
    Inferred,
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// What an access lacks to follow a discipline.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Lacks {
    /// The lock is not held in a mode that guards the access.
    Lock(String),
    /// It writes where threads only read.
    OnlyReads,
    /// Another thread has the variable.
    Ownership,
    /// Nothing of these orders it.
    Order(Vec<String>),
}

/// The holder of what a thread waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Holder {
    Itself,
    Thread(String),
}

/// Why something that happened is not confirmed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum NotReplayed {
    Interrupted,
    /// The program could not be run again.
    Failed(String),
    /// The schedule led to something else.
    Otherwise {
        outcome: Outcome,
        diverged: Option<Diverged>,
    },
    /// The target's state was reached only once.
    Once {
        diverged: Option<Diverged>,
    },
}

/// Where a replay diverged.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Diverged {
    At(Divergence),
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// One thread's part.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Place {
    /// The thread's name; empty if the thread is not known.
    pub thread: String,
    /// The place in the source.
    pub site: Site,
    /// What the thread does there.
    pub role: Role,
    /// The locks that it holds, outermost first; `None` if that is not known.
    pub held: Option<Vec<Lock>>,
    /// The calls that led to the site, innermost first, as far as they are known.
    pub stack: Vec<Site>,
    /// The calls led to the site, but perhaps at another time than the access.
    pub stack_likely: bool,
    /// The site is the most likely one of several.
    pub approximate: bool,
}

/// What a thread does, with the object if that is not the subject of the case.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Role {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
    Free,
    Acquire(String),
    Release(String),
    Fork(String),
    Join(String),
    Arrive(String),
    Leave(String),
    Post(String),
    Wait(String),
    Enter(Region),
    Await(String),
    Sleep,
    Fail,
    Ensure,
    Observe,
    /// Takes part in a misuse.
    Part(Part),
    /// A rank loads from memory that other ranks can access, or that a call of MPI uses.
    Load,
    /// A rank stores to such memory.
    Store,
    /// A rank calls a function of MPI, which reads or writes.
    Called {
        function: String,
        writes: bool,
    },
}

/// A lock that a thread holds.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Lock {
    pub name: String,
    pub mode: Mode,
    /// Where it was acquired.
    pub site: Site,
}

/// The results of controlled executions for a case.
#[derive(Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Control {
    /// The schedule that replays it, if it happened.
    pub schedule: Option<String>,
    /// The number of directed executions that tried to confirm it.
    pub attempts: u64,
    /// The number of the command's controlled executions until it was first seen or confirmed.
    pub after: Option<u64>,
    /// The number of undirected executions among which it was counted.
    pub of: Option<u64>,
    /// Accesses that were scheduling points.
    pub watched: Vec<Watched>,
    /// What each order of its parts led to.
    pub orders: Vec<Order>,
    /// The interleaving in which it happens.
    pub how: Option<How>,
    /// The schedules of both executions, if it is a difference between two.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub schedules: Vec<String>,
    /// The interleaving of the first one; `how` is that of the second.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub other: Option<Interleaving>,
    /// An execution that went otherwise: the other order of a race, or one that passes.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub compared: Option<Box<Compared>>,
}

/// An execution to compare with the one in which a finding happens.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Compared {
    /// Which order of the finding's parts it shows; `None` for an execution in which no thread is stopped.
    pub which: Option<Which>,
    /// How it ended.
    pub outcome: Outcome,
    /// How the execution that shows the finding ended.
    pub against: Outcome,
    /// What its threads do.
    pub rows: Interleaving,
}

/// A place in the code whose accesses are scheduling points.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Watched {
    #[cfg_attr(feature = "serde", serde(with = "crate::path"))]
    pub module: PathBuf,
    pub offset: u64,
    /// The place in the source, by which another build finds it again.
    pub site: Site,
}

/// One order of the parts of a confirmed finding, and what it led to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Order {
    /// Which part came first.
    pub which: Which,
    /// The harm of this order.
    pub harm: Harm,
    /// How the program ended.
    pub outcome: Outcome,
    /// The schedule that shows it.
    pub schedule: String,
}

/// Which order of the parts of a finding it is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Which {
    /// This thread went first.
    First { thread: String, site: Site },
    /// This rank of several processes, or a thread of it, went first.
    FirstRank { rank: String, site: Site },
    /// The finding has one order only.
    Only,
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// How an execution ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Outcome {
    Exit(i32),
    Failed {
        kind: Kind,
        subject: Subject,
    },
    /// It was cut off.
    Undecided,
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// How a finding happens.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(untagged))]
pub enum How {
    /// By this interleaving.
    Rows(Interleaving),
    /// As the store of an earlier version has it: lines of text for the terminal of that time.
    Told(String),
}

impl Control {
    /// The interleaving in which the finding happens, unless an earlier version stored it as text.
    pub fn rows(&self) -> Option<&Interleaving> {
        match &self.how {
            Some(How::Rows(rows)) => Some(rows),
            Some(How::Told(_)) | None => None,
        }
    }
}

impl Case {
    /// The target, if reaching it is what the finding is. A failure or a deadlock shows by itself.
    pub fn aim(&self) -> Option<&Target<Site>> {
        self.target.as_ref().filter(|t| !matches!(t, Target::Deadlock(_)))
    }

    /// The failure that an execution must end with to show the case. Earlier versions gave a crash without a
    /// place another identity.
    pub fn failure(&self) -> FindingId {
        match &self.subject {
            Subject::Program(Failure::Signal { number, .. }) if self.places.is_empty() => {
                selvedge_model::Failure::crash(*number).id(self.kind)
            }
            _ => self.id,
        }
    }

    /// Whether it is worth reporting: the order of two acquisitions or atomics is, if it is confirmed and harmful.
    pub fn is_finding(&self) -> bool {
        !matches!(self.target, Some(Target::Contention { .. })) || self.status == Status::Confirmed
    }

    /// The places that make the finding.
    pub fn critical(&self) -> Vec<Site> {
        match self.aim() {
            Some(target) => target.accesses().into_iter().cloned().collect(),
            None => self.places.iter().map(|p| p.site.clone()).collect(),
        }
    }
}

impl Reported for Case {
    type Analysis = String;

    fn merged(&mut self) -> (&mut Status, &mut Vec<String>, &mut u64) {
        (&mut self.status, &mut self.analyses, &mut self.occurrences)
    }
}

impl Case {
    /// Takes another report of the same finding in. What only the one that is not kept knows stays: locks that
    /// are held, and attempts to confirm it.
    pub fn merge(&mut self, other: Case, keep: Keep) {
        let held: Vec<_> = self.places.iter().map(|p| p.held.clone()).collect();
        let attempts = self.control.as_ref().map_or(0, |c| c.attempts);
        merge(self, other, keep);
        for (place, held) in self.places.iter_mut().zip(held) {
            place.held = place.held.take().or(held);
        }
        if let Some(control) = &mut self.control {
            control.attempts = control.attempts.max(attempts);
        }
    }
}

impl State {
    /// How a value differs between two executions.
    pub fn of(of: &Difference<Site>) -> State {
        let given = |side: &Option<(Kept, Site)>| match side {
            Some((Kept { value: Some(value), .. }, _)) => Given::Value(value.clone()),
            Some((Kept { digest, .. }, _)) => Given::Digest(digest.to_string()),
            None => Given::Nothing,
        };
        State {
            name: of.key.name.to_string(),
            nth: of.key.nth,
            first: given(&of.first),
            second: given(&of.second),
        }
    }
}

impl Place {
    /// Of which nothing else is known, nor which locks are held.
    pub fn bare(thread: String, site: Site, role: Role) -> Place {
        Place {
            thread,
            site,
            role,
            held: None,
            stack: Vec::new(),
            stack_likely: false,
            approximate: false,
        }
    }

    /// The locks that are known to be held.
    pub fn locks(&self) -> &[Lock] {
        self.held.as_deref().unwrap_or_default()
    }

    /// The frames from the site outwards, with those that the compiler inlined.
    pub fn frames(&self) -> Vec<&Frame> {
        std::iter::once(&self.site)
            .chain(&self.stack)
            .flat_map(|site| match site {
                Site::Label(_) => Vec::new(),
                Site::Source(frame, callers) => std::iter::once(frame).chain(callers).collect(),
            })
            .collect()
    }
}

impl Role {
    /// Whether the role changes memory.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Role::Write
                | Role::AtomicWrite
                | Role::Free
                | Role::Store
                | Role::Called { writes: true, .. }
        )
    }

    /// Whether it is the part of a rank, and not of a thread of one process.
    pub fn is_of_rank(&self) -> bool {
        matches!(self, Role::Load | Role::Store | Role::Called { .. })
    }

    /// Whether the role is an atomic access.
    pub fn is_atomic(&self) -> bool {
        matches!(self, Role::AtomicRead | Role::AtomicWrite)
    }
}

impl Subject {
    /// Whether there is nothing to name.
    pub fn is_empty(&self) -> bool {
        matches!(self, Subject::Locks(locks) if locks.is_empty())
    }

    /// The names that the program has for it.
    pub fn names(&self) -> &[String] {
        match self {
            Subject::Locks(names) | Subject::Observed(names) => names,
            Subject::Memory(Memory::Named(name))
            | Subject::Region(Region::Named(name))
            | Subject::Misused { of: Memory::Named(name), .. } => std::slice::from_ref(name),
            Subject::Value { name, .. } => std::slice::from_ref(name),
            Subject::Memory(
                Memory::Window { name: Some(name), .. } | Memory::Buffer { name: Some(name), .. },
            ) => std::slice::from_ref(name),
            Subject::Memory(
                Memory::Heap { .. }
                | Memory::Unnamed
                | Memory::Window { name: None, .. }
                | Memory::Buffer { name: None, .. },
            )
            | Subject::Region(Region::Locked(_))
            | Subject::Misused { .. }
            | Subject::Program(_) => &[],
        }
    }
}
