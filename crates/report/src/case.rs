//! The case: a finding that has left its execution behind.
//!
//! This is also the form in which the store keeps it. A field that is added needs a default, so that
//! cases of earlier versions stay readable; a variant that is renamed keeps its stored name.

use std::path::PathBuf;

use selvedge_model::{Ended, Frame, Kind, Mode, Site, Status, Target, Verdict};

use crate::{Act, Interleaving};

/// A finding, with the names of everything in it.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Case {
    pub id: String,
    pub kind: Kind,
    pub status: Status,
    pub verdict: Option<Verdict>,
    /// Names of the analyses that found it, first finder first.
    pub analyses: Vec<String>,
    /// What it is about.
    pub subject: Subject,
    /// What else is known.
    pub notes: Vec<Note>,
    /// Who took part, where, in the order it happened.
    pub places: Vec<Place>,
    pub occurrences: u64,
    /// What to aim at to make it happen. Its locks and threads are numbers of their own.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub target: Option<Target<Site>>,
    /// What controlled executions made of it, if there were any.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub control: Option<Control>,
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
    /// Nothing is known but its address, which is another in the next run.
    Unnamed,
}

/// A marked or inferred stretch of code.
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
        /// The name of the program, where the report is not about one program anyway.
        program: Option<String>,
    },
    /// A failed assertion, a panic or an uncaught exception, by what it said.
    Message(String),
    /// The program exited with a code that other schedules do not lead to.
    Exit {
        code: i32,
        usual: i32,
    },
    /// The program is over and threads wait for ever.
    Left,
    /// A destructor had to wait for another thread while its thread was unwinding from this.
    Unwinding(String),
    /// It was not over after so many steps.
    Steps(u64),
    /// It was not over after the time for one execution, in milliseconds.
    Time(u64),
    /// No scheduling point for so many seconds.
    Stall(u64),
    NoStack {
        threads: usize,
        error: String,
    },
    /// An object, made here, is used by two executions at a time.
    Shared(Site),
    /// The same schedule did not always do the same: the number of the event, what it was, what it was
    /// another time, and the most probable cause.
    Unrepeatable {
        event: usize,
        expected: Option<Box<Happened>>,
        found: Option<Box<Happened>>,
        cause: String,
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

/// What else is known of a case.
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
    NullPointer,
    /// The last line on standard error.
    Said(String),
    EndedWith(Ended),
    /// A thread that waits as a consequence.
    Waits {
        thread: String,
        wants: Role,
        at: Site,
        holder: Option<Holder>,
    },
    NotReplayed(NotReplayed),
    /// A suspected violation happened, and did not change the result.
    NoEffect,
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// Who keeps a thread waiting.
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
    /// The program could not be run once more.
    Failed(String),
    /// The schedule led to something else.
    Otherwise {
        outcome: Outcome,
        diverged: Option<String>,
    },
    /// The target's state was reached once only.
    Once {
        diverged: Option<String>,
    },
}

/// One thread's part.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Place {
    /// Its name; empty if it is not known which thread it is.
    pub thread: String,
    /// Where.
    pub site: Site,
    /// Doing what.
    pub role: Role,
    /// The locks that it holds, outermost first; nothing if that is not known.
    pub held: Option<Vec<Lock>>,
    /// The calls that led to the site, innermost first, as far as they are known.
    pub stack: Vec<Site>,
    /// These calls led there, though perhaps not when the access was made.
    pub stack_likely: bool,
    /// The site is the likeliest of several.
    pub approximate: bool,
}

/// What a thread does, and to what where that is not the subject.
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

/// What controlled executions made of a case.
#[derive(Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Control {
    /// What replay needs, if it happened.
    pub schedule: Option<String>,
    /// Directed executions spent on it until it was confirmed or given up.
    pub attempts: u64,
    /// Controlled executions of the command when it was first seen or confirmed.
    pub after: Option<u64>,
    /// Of how many undirected executions it was seen in some.
    pub of: Option<u64>,
    /// Accesses that were scheduling points.
    pub watched: Vec<Watched>,
    /// What each order of what happened led to.
    pub orders: Vec<Order>,
    /// How it happens.
    pub how: Option<How>,
}

/// A place in the code whose accesses are scheduling points.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Watched {
    pub module: PathBuf,
    pub offset: u64,
    /// By which the place is found again in another build.
    pub site: Site,
}

/// One order of the parts of a confirmed finding, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Order {
    /// Which.
    pub which: Which,
    /// How bad it was.
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
    /// The finding has one order only.
    Only,
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// How bad what an order led to is, harmless first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Harm {
    Nothing,
    Output,
    Exit,
    Failure,
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
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// How a finding happens.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(untagged))]
pub enum How {
    /// By this interleaving.
    Rows(Interleaving),
    /// As the store of an earlier version has it: lines of text for the terminal of that time.
    Told(String),
}

impl Case {
    /// The target, if reaching it is what the finding is. A failure or a deadlock shows by itself.
    pub fn aim(&self) -> Option<&Target<Site>> {
        self.target.as_ref().filter(|t| !matches!(t, Target::Deadlock(_)))
    }

    /// The places that make the finding.
    pub fn critical(&self) -> Vec<Site> {
        match self.aim() {
            Some(target) => target.accesses().into_iter().cloned().collect(),
            None => self.places.iter().map(|p| p.site.clone()).collect(),
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
        matches!(self, Role::Write | Role::AtomicWrite | Role::Free)
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

    /// Whether the execution was cut off rather than seen to fail, which another machine may see
    /// otherwise.
    pub fn is_limit(&self) -> bool {
        use Failure::{Stall, Steps, Time};
        matches!(self, Subject::Program(Steps(_) | Time(_) | Stall(_)))
    }
}
