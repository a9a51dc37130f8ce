//! Turns a finding into a case: ids become names, and facts about a failure become notes.

use selvedge_model as model;
use selvedge_model::{Event, Finding, Range, Symbols};

use crate::Act;
use crate::case::{
    Case, Failure, Happened, Holder, Lock, Memory, Note, Place, Region, Role, Subject,
};

impl Case {
    /// Resolves the ids of a finding.
    pub fn new(finding: &Finding, symbols: &Symbols) -> Case {
        let (subject, notes) = about(finding, symbols);
        let mut places: Vec<Place> =
            finding.places.iter().map(|p| Place::new(p, symbols)).collect();
        if let model::Subject::Program(model::Failure::Message { thread: Some(name), .. }) =
            &finding.subject
        {
            places.iter_mut().for_each(|p| p.thread.clone_from(name));
        }
        if let model::Subject::Program(model::Failure::Signal { approximate: true, .. }) =
            &finding.subject
        {
            places.iter_mut().for_each(|p| p.approximate = true);
        }
        Case {
            verdict: finding.verdict,
            analyses: finding.analyses.iter().map(ToString::to_string).collect(),
            notes,
            places,
            occurrences: finding.occurrences,
            target: finding.target.as_ref().map(|t| t.map(|&site| symbols.site(site))),
            files: finding.places.iter().flat_map(|p| files(p, symbols)).collect(),
            ..Case::bare(finding.id(symbols), finding.kind, finding.status, subject)
        }
    }
}

/// The files whose code led to a place.
fn files(place: &model::Place, symbols: &Symbols) -> impl Iterator<Item = Box<str>> {
    let calls = symbols.calls.get(&(place.thread, place.site));
    calls.into_iter().flat_map(|c| c.files.iter().cloned())
}

/// The subject of a finding, and the notes that follow from it.
fn about(finding: &Finding, symbols: &Symbols) -> (Subject, Vec<Note>) {
    match &finding.subject {
        model::Subject::Memory(range) => {
            (Subject::Memory(Memory::new(*range, symbols)), Vec::new())
        }
        model::Subject::Locks(locks) => {
            (Subject::Locks(locks.iter().map(|&l| symbols.lock(l)).collect()), Vec::new())
        }
        model::Subject::Region(region) => {
            (Subject::Region(Region::new(*region, symbols)), Vec::new())
        }
        model::Subject::Value { block, name } => {
            (Subject::Value { block: block.to_string(), name: name.to_string() }, Vec::new())
        }
        model::Subject::Observed(names) => {
            (Subject::Observed(names.iter().map(ToString::to_string).collect()), Vec::new())
        }
        model::Subject::Misused(misuse, range) => {
            let of = Memory::new(*range, symbols);
            (Subject::Misused { misuse: misuse.clone(), of }, Vec::new())
        }
        model::Subject::Program(failure) => failed(failure, symbols),
    }
}

/// Smaller addresses come from a null pointer, or from a field of a structure at a null pointer.
const NULL_PAGE: u64 = 4096;
const SIGSEGV: i32 = 11;

fn failed(failure: &model::Failure, symbols: &Symbols) -> (Subject, Vec<Note>) {
    use model::Failure as Of;
    let mut notes = Vec::new();
    let failure = match failure {
        Of::Signal { number, address, said, .. } => {
            if *number == SIGSEGV && address.is_some_and(|a| a < NULL_PAGE) {
                notes.push(Note::NullPointer);
            }
            notes.extend(said.clone().map(Note::Said));
            Failure::Signal { number: *number, program: None }
        }
        Of::Message { text, ended, before, .. } => {
            notes.extend(before.as_ref().map(|panic| Note::PanickedBefore {
                thread: symbols.thread(panic.thread),
                text: panic.text.clone(),
                at: panic.site.map(|site| symbols.site(site)),
            }));
            notes.extend(ended.map(Note::EndedWith));
            Failure::Message(text.clone())
        }
        Of::Stuck { part, others } => {
            let locks = part.iter().filter_map(model::Blocked::lock).map(|l| symbols.lock(l));
            notes.extend(others.iter().map(|b| Note::waits(b, symbols)));
            return (Subject::Locks(locks.collect()), notes);
        }
        Of::Exit { code, usual } => Failure::Exit { code: *code, usual: *usual },
        Of::Left(_) => Failure::Left,
        Of::Unwinding(text) => Failure::Unwinding(text.clone()),
        Of::Steps(steps) => Failure::Steps(*steps),
        Of::Stall(seconds) => Failure::Stall(*seconds),
        Of::NoStack { threads, error } => {
            Failure::NoStack { threads: *threads, error: error.clone() }
        }
        Of::Shared(site) => Failure::Shared(symbols.site(*site)),
        Of::Unrepeatable { index, expected, found, cause } => Failure::Unrepeatable {
            event: index + 1,
            expected: expected.as_ref().map(|e| Box::new(Happened::new(e, symbols))),
            found: found.as_ref().map(|e| Box::new(Happened::new(e, symbols))),
            cause: cause.clone(),
        },
    };
    (Subject::Program(failure), notes)
}

impl Memory {
    /// Memory of an execution. A number means nothing in another execution, so it is no name.
    pub fn new(range: Range, symbols: &Symbols) -> Memory {
        let numbered = symbols.variables.at(range.start).is_none()
            && symbols.nameless.at(range.start).is_some();
        if numbered { Memory::Unnamed } else { Memory::Named(symbols.variable(range)) }
    }
}

impl Happened {
    /// An event with its names.
    pub fn new(event: &Event, symbols: &Symbols) -> Happened {
        Happened {
            act: Act::of_op(event.op, symbols),
            thread: symbols.thread(event.thread),
            site: symbols.site(event.site),
        }
    }
}

impl Region {
    /// The name of a region of an execution.
    pub fn new(region: model::RegionId, symbols: &Symbols) -> Region {
        match region.acquisition() {
            Some(site) => Region::Locked(symbols.site(site)),
            None => Region::Named(
                symbols
                    .region(region)
                    .map_or_else(|| format!("{region:?}"), |r| r.name.to_string()),
            ),
        }
    }
}

impl Note {
    /// A thread that waits.
    pub fn waits(blocked: &model::Blocked, symbols: &Symbols) -> Note {
        let holder = |thread| match thread == blocked.thread {
            true => Holder::Itself,
            false => Holder::Thread(symbols.thread(thread)),
        };
        Note::Waits {
            thread: symbols.thread(blocked.thread),
            wants: Role::new(blocked.wants, symbols),
            at: symbols.site(blocked.site),
            holder: blocked.waits_for.map(holder),
        }
    }
}

impl Place {
    /// Resolves the ids of a place.
    pub fn new(place: &model::Place, symbols: &Symbols) -> Place {
        let role = Role::new(place.role, symbols);
        let here = (place.thread, place.site);
        Place {
            approximate: symbols.approximate.contains(&here),
            held: Some(Lock::all(&place.held, symbols)),
            stack: symbols.calls.get(&here).map(|c| c.sites.clone()).unwrap_or_default(),
            ..Place::bare(symbols.thread(place.thread), symbols.site(place.site), role)
        }
    }
}

impl Lock {
    /// Resolves the ids of locks that are held.
    pub fn all(held: &[model::Held], symbols: &Symbols) -> Vec<Lock> {
        let lock = |h: &model::Held| Lock {
            name: symbols.lock(h.lock),
            mode: h.mode,
            site: symbols.site(h.site),
        };
        held.iter().map(lock).collect()
    }
}

impl Role {
    /// Resolves the ids of a role.
    pub fn new(role: model::Role, symbols: &Symbols) -> Role {
        match role {
            model::Role::Read => Role::Read,
            model::Role::Write => Role::Write,
            model::Role::AtomicRead => Role::AtomicRead,
            model::Role::AtomicWrite => Role::AtomicWrite,
            model::Role::Free => Role::Free,
            model::Role::Acquire(lock) => Role::Acquire(symbols.lock(lock)),
            model::Role::Release(lock) => Role::Release(symbols.lock(lock)),
            model::Role::Fork(thread) => Role::Fork(symbols.thread(thread)),
            model::Role::Join(thread) => Role::Join(symbols.thread(thread)),
            model::Role::Arrive(barrier) => Role::Arrive(symbols.barrier(barrier)),
            model::Role::Leave(barrier) => Role::Leave(symbols.barrier(barrier)),
            model::Role::Post(semaphore) => Role::Post(symbols.semaphore(semaphore)),
            model::Role::Wait(semaphore) => Role::Wait(symbols.semaphore(semaphore)),
            model::Role::Enter(region) => Role::Enter(Region::new(region, symbols)),
            // Memory without a name may be part of a lock.
            model::Role::Await(cond) => match symbols.conds.get(cond.0) {
                Some(name) if !name.is_empty() => Role::Await(name.to_string()),
                _ => Role::Sleep,
            },
            model::Role::Sleep => Role::Sleep,
            model::Role::Fail => Role::Fail,
            model::Role::Ensure => Role::Ensure,
            model::Role::Observe => Role::Observe,
            model::Role::Part(part) => Role::Part(part),
        }
    }
}
