//! Cases in the form of the previous store version: names and sentences where a [`Case`] has types.
//!
//! Sentences are not parsed: a case keeps them as they are.

use selvedge_model::{FindingId, Kind, Mode, Object, Range, Site, Status, Target, Verdict};
use serde::Deserialize;

use crate::case::{
    Case, Control, Failure, Harm, How, Lock, Memory, Note, Order, Outcome, Place, Region, Role,
    Subject, Watched, Which,
};
use crate::words;

/// A finding as it was stored.
#[derive(Deserialize)]
pub struct Finding {
    id: FindingId,
    kind: Kind,
    status: Status,
    verdict: Option<Verdict>,
    analyses: Vec<String>,
    subject: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    places: Vec<OldPlace>,
    occurrences: u64,
    #[serde(default)]
    control: Option<OldControl>,
}

#[derive(Deserialize)]
struct OldPlace {
    thread: String,
    site: Site,
    role: OldRole,
    held: Vec<OldLock>,
    #[serde(default)]
    held_unknown: bool,
    #[serde(default)]
    stack: Vec<Site>,
    #[serde(default)]
    stack_likely: bool,
    #[serde(default)]
    approximate: bool,
}

#[derive(Deserialize)]
struct OldRole {
    name: String,
    object: Option<String>,
}

#[derive(Deserialize)]
struct OldLock {
    name: String,
    mode: Mode,
    site: Site,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OldControl {
    schedule: Option<String>,
    attempts: u64,
    after: Option<u64>,
    of: Option<u64>,
    watched: Vec<Watched>,
    aim: Option<Aim>,
    orders: Vec<OldOrder>,
    interleaving: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Aim {
    Race { first: Site, second: Site },
    Split { first: Site, second: Site, between: Option<Site> },
}

#[derive(Deserialize)]
struct OldOrder {
    order: String,
    outcome: String,
    schedule: String,
}

impl From<Finding> for Case {
    fn from(old: Finding) -> Case {
        let mut control = old.control;
        let target = control.as_mut().and_then(|c| c.aim.take()).map(target);
        let subject = match signal(old.id, old.kind) {
            Some(number) => Subject::Program(Failure::Signal { number, program: None }),
            None => subject(old.kind, old.subject),
        };
        Case {
            verdict: old.verdict,
            analyses: old.analyses,
            notes: old.notes.into_iter().map(Note::Told).collect(),
            places: old.places.into_iter().map(place).collect(),
            occurrences: old.occurrences,
            target,
            control: control.map(controlled),
            ..Case::bare(old.id, old.kind, old.status, subject)
        }
    }
}

/// The signal of a crash without a place: its name was the identity, where the number is now.
fn signal(id: FindingId, kind: Kind) -> Option<i32> {
    let named = |&number: &i32| id == FindingId::new(Kind::Crash, [words::signal(number)]);
    (1..=SIGNALS).find(named).filter(|_| kind == Kind::Crash)
}

/// The number of signals that Linux has.
const SIGNALS: i32 = 64;

fn subject(kind: Kind, names: Vec<String>) -> Subject {
    let joined = || names.join(", ");
    match kind {
        Kind::Deadlock => Subject::Locks(names),
        Kind::DataRace | Kind::HighLevelRace => Subject::Memory(Memory::Named(joined())),
        Kind::Crash | Kind::Assertion | Kind::Hang => Subject::Program(Failure::Told(joined())),
        Kind::AtomicityViolation
        | Kind::DeterminismViolation
        | Kind::DisciplineViolation
        | Kind::LinearizabilityViolation
        | Kind::Misuse
        | Kind::ParallelismViolation => Subject::Region(Region::Named(joined())),
    }
}

fn target(aim: Aim) -> Target<Site> {
    match aim {
        Aim::Race { first, second } => Target::Race { first, second },
        Aim::Split { first, second, between } => Target::Split {
            region: None,
            first,
            second,
            between,
            // The strategy goes by sites alone.
            object: Object::Memory(Range { start: 0, len: 0 }),
        },
    }
}

fn place(old: OldPlace) -> Place {
    let lock = |l: OldLock| Lock { name: l.name, mode: l.mode, site: l.site };
    let held: Vec<Lock> = old.held.into_iter().map(lock).collect();
    Place {
        thread: old.thread,
        site: old.site,
        role: role(old.role),
        held: (!old.held_unknown).then_some(held),
        stack: old.stack,
        stack_likely: old.stack_likely,
        approximate: old.approximate,
    }
}

fn role(old: OldRole) -> Role {
    let object = old.object.unwrap_or_default();
    match old.name.as_str() {
        "read" => Role::Read,
        "write" => Role::Write,
        "atomic-read" => Role::AtomicRead,
        "atomic-write" => Role::AtomicWrite,
        "free" => Role::Free,
        "acquire" => Role::Acquire(object),
        "release" => Role::Release(object),
        "fork" => Role::Fork(object),
        "join" => Role::Join(object),
        "arrive" => Role::Arrive(object),
        "leave" => Role::Leave(object),
        "post" => Role::Post(object),
        "wait" => Role::Wait(object),
        "enter" => Role::Enter(Region::Named(object)),
        "await" => Role::Await(object),
        "sleep" => Role::Sleep,
        // The only other names that it wrote are `fail` and `crash`.
        _ => Role::Fail,
    }
}

fn controlled(old: OldControl) -> Control {
    let order = |o: OldOrder| Order {
        which: Which::Told(o.order),
        harm: Harm::Failure,
        outcome: Outcome::Told(o.outcome),
        schedule: o.schedule,
    };
    Control {
        schedule: old.schedule,
        attempts: old.attempts,
        after: old.after,
        of: old.of,
        watched: old.watched,
        orders: old.orders.into_iter().map(order).collect(),
        how: Some(old.interleaving).filter(|text| !text.is_empty()).map(How::Told),
        ..Control::default()
    }
}
