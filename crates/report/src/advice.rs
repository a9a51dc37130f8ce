//! Why a finding is a bug, and which synchronization is missing.

use selvedge_model::{Kind, Mode, Status, Target};

use crate::words::{self, list, quoted};
use crate::{Case, Failure, Lacks, Lock, Memory, Note, Place, Role, Subject};

/// The whole case in sentences: what each thread does, the notes, why it is a bug, what helps, and how to
/// replay it.
pub fn account(case: &Case) -> Vec<String> {
    let place = |p: &Place| format!("{}: {}", p.site, words::sentence(case.kind, p));
    let mut lines: Vec<String> = case.places.iter().map(place).collect();
    lines.extend(case.states.iter().map(words::state));
    lines.extend(case.serial.iter().flat_map(words::serial));
    lines.extend(case.notes.iter().map(words::note));
    lines.extend(why(case).map(str::to_owned));
    lines.extend(missing(case));
    if case.control.as_ref().is_some_and(|c| c.schedule.is_some()) {
        lines.push(format!("selvedge replay {}", case.id));
    }
    lines
}

/// Why the finding is a bug, in a sentence; `None` if the summary says it already.
pub fn why(case: &Case) -> Option<&'static str> {
    Some(match (case.kind, case.status) {
        (Kind::DataRace, Status::Observed | Status::Confirmed) if is_of_ranks(case) => {
            "nothing orders the two accesses: which one comes first is open, and so is what the memory holds afterwards"
        }
        (Kind::DataRace, _) if is_of_ranks(case) => {
            "no barrier, message or common exclusive lock orders the two accesses; a lock, an atomic operation or a flag may have done so in this run"
        }
        (Kind::DataRace, Status::Observed | Status::Confirmed) => {
            "nothing orders the two accesses: the outcome depends on which comes first, and the compiler may assume that they never race"
        }
        (Kind::DataRace, _) => {
            "no lock protects both accesses: under another schedule they may race"
        }
        (Kind::Deadlock, _) if case.subject.is_empty() => {
            "every thread is waiting, and no thread can wake them"
        }
        (Kind::Deadlock, Status::Observed | Status::Confirmed) => {
            "each thread holds a lock that the next one waits for, so no thread can go on"
        }
        (Kind::Deadlock, _) => {
            "each thread can hold a lock that the next one waits for, and then no thread can go on"
        }
        (Kind::AtomicityViolation, Status::Observed | Status::Confirmed) => {
            "other threads ran between the parts of the region, and no order of whole regions explains what each thread saw"
        }
        (Kind::AtomicityViolation, _) => {
            "the region is not one critical section: under another schedule a thread may run between its parts"
        }
        (Kind::DeterminismViolation, _) if matches!(case.subject, Subject::Value { .. }) => {
            "executions of the block that assume the same must ensure the same, whatever the schedule"
        }
        (Kind::LinearizabilityViolation, _) => {
            "atomic blocks must behave as if each ran alone: what is observed must be as in some serial execution of them"
        }
        (Kind::DeterminismViolation, _) => {
            "what the region computes depends on the order in which threads happen to run"
        }
        (Kind::DisciplineViolation, _) if breaks_a_step(case) => {
            "threads keep out of each other's way at this variable by its discipline, and this access does not follow it"
        }
        (Kind::ParallelismViolation, _) => {
            "each task must come before another that must come before it: no order of whole tasks gives these accesses the same values"
        }
        (Kind::HighLevelRace, _) if is_order(case) => {
            "which thread comes first decides the result: turning this order round, and nothing else, changes it"
        }
        (Kind::HighLevelRace, _) => {
            "one thread uses these variables together in one critical section, and another uses them in separate ones under the same lock"
        }
        (Kind::Misuse, _) => match &case.subject {
            Subject::Misused { misuse, .. } => return words::why_misused(misuse),
            _ => return None,
        },
        _ => return None,
    })
}

/// Whether ranks take part, and not only threads of one process.
fn is_of_ranks(case: &Case) -> bool {
    case.places.iter().any(|p| p.role.is_of_rank())
}

/// Whether an access breaks a step of its variable's discipline; clang's complaints are of code.
fn breaks_a_step(case: &Case) -> bool {
    case.notes.iter().any(|note| matches!(note, Note::Broken { .. }))
}

/// Whether the case is the order of two acquisitions or atomics.
fn is_order(case: &Case) -> bool {
    matches!(case.target, Some(Target::Contention { .. }))
}

/// What to change in the program.
pub fn missing(case: &Case) -> Option<String> {
    if let Subject::Misused { misuse, .. } = &case.subject {
        return Some(words::missing_misused(misuse).into());
    }
    if let Subject::Program(failure) = &case.subject {
        return missing_to_run(failure).map(Into::into);
    }
    match (case.kind, case.places.as_slice()) {
        (Kind::DataRace, [_, _]) if is_of_ranks(case) => Some(between_ranks(case)),
        (Kind::DataRace, [a, b]) => Some(missing_between(a, b)),
        (Kind::Deadlock, places) if case.subject.is_empty() => {
            let notified = places.iter().any(|p| matches!(p.role, Role::Await(_)));
            notified.then(|| {
                "a notification before the wait is lost: check the condition under the lock before waiting, and notify after changing it".into()
            })
        }
        (Kind::Deadlock, [_]) => Some(format!(
            "the thread already holds {}: release it first, or make it recursive",
            quoted(&case.subject)
        )),
        (Kind::Deadlock, _) => Some(format!(
            "acquire {} in the same order everywhere, or hold one more lock around both acquisitions",
            quoted(&case.subject)
        )),
        (Kind::AtomicityViolation, _) => {
            Some("hold one lock from the first to the last use of what the region shares".into())
        }
        (Kind::HighLevelRace, _) if is_order(case) => Some(
            "make the result the same for both orders, or let a join or a signal fix the order"
                .into(),
        ),
        (Kind::DisciplineViolation, _) => case.notes.iter().find_map(|note| match note {
            Note::Broken { step, lacks, .. } => Some(to_follow(step, lacks)),
            _ => None,
        }),
        (Kind::HighLevelRace, _) => Some(
            "use the variables in one critical section wherever they must be consistent".into(),
        ),
        _ => None,
    }
}

/// What makes an access follow a step of its variable's discipline.
fn to_follow(step: &str, lacks: &Lacks) -> String {
    const OR: &str = "or write down the discipline that the program follows";
    match lacks {
        Lacks::Lock(lock) => format!("hold `{lock}` at the access, {OR}"),
        Lacks::OnlyReads => {
            format!("write before the variable is shared, {OR}")
        }
        Lacks::Ownership => format!("leave the variable to one thread, {OR}"),
        Lacks::Order(devices) => {
            let devices: Vec<String> = devices.iter().map(|d| format!("`{d}`")).collect();
            format!("order the access by {}, as `{step}` says, {OR}", list(&devices))
        }
    }
}

/// What to change so that a Rust test can be run.
fn missing_to_run(failure: &Failure) -> Option<&'static str> {
    match failure {
        Failure::Stall(_) => Some(
            "the test body loops without a scheduling point, or it blocks on something that is not controlled, such as a lock of std::sync",
        ),
        Failure::NoStack { .. } => Some("lower `Explore::stack_size`"),
        Failure::Shared(_) => Some(words::SHARED_STATIC),
        Failure::Signal { .. }
        | Failure::Message(_)
        | Failure::Told(_)
        | Failure::Exit { .. }
        | Failure::Left
        | Failure::Unwinding(_)
        | Failure::Steps(_)
        | Failure::Time(_)
        | Failure::Unrepeatable { .. } => None,
    }
}

fn between_ranks(case: &Case) -> String {
    let [a, b] = case.places.as_slice() else { return String::new() };
    let open =
        case.notes.iter().any(|n| matches!(n, Note::InFlight { .. } | Note::LocalOnly { .. }));
    if matches!(case.subject, Subject::Memory(Memory::Buffer { .. })) {
        return format!("complete the call at {} before the access at {}", a.site, b.site);
    }
    match (open, a.thread == b.thread) {
        (true, _) => "complete the call at the target (flush, unlock or fence) before the barrier".into(),
        (_, true) => format!("complete the call at {} (flush, unlock or fence) before the access at {}", a.site, b.site),
        _ => "complete the first access, and put a barrier, a message or a fence between the two; or hold the same exclusive lock around both".into(),
    }
}

fn missing_between(a: &Place, b: &Place) -> String {
    if let Some((lock, weak)) = shared_only(a, b) {
        return format!(
            "both threads hold `{lock}`, but thread {} holds it in shared mode while writing: acquire it exclusively there",
            weak.thread
        );
    }
    if a.role.is_atomic() != b.role.is_atomic() {
        let plain = if a.role.is_atomic() { b } else { a };
        return format!(
            "one access is atomic and the other is not: make the access at {} atomic too, or order the two by synchronization",
            plain.site
        );
    }
    match (a.held.as_deref(), b.held.as_deref()) {
        (None, _) | (_, None) => "protect both places with one lock, make both accesses atomic, or order them by a join or a signal".into(),
        (Some([]), Some([])) => "no lock is held at either place: protect both with one lock, make both atomic, or order them by a join or a signal".into(),
        (Some(held), Some([])) => one_sided(held, b),
        (Some([]), Some(held)) => one_sided(held, a),
        (Some(left), Some(right)) => format!(
            "the two places hold different locks ({} and {}): hold one of them at both",
            names(left),
            names(right)
        ),
    }
}

fn one_sided(held: &[Lock], lacking: &Place) -> String {
    let which = if held.len() == 1 { "it" } else { "one of them" };
    format!(
        "thread {} holds no lock at {}, but the other thread holds {}: hold {which} at both places",
        lacking.thread,
        lacking.site,
        names(held)
    )
}

fn names(held: &[Lock]) -> String {
    list(&held.iter().map(|h| h.name.clone()).collect::<Vec<_>>())
}

/// A lock that both sides hold, but a writer only in shared mode, so that it does not exclude the other.
fn shared_only<'a>(a: &'a Place, b: &'a Place) -> Option<(&'a str, &'a Place)> {
    let weak = |p: &Place, name: &str| {
        p.role.writes() && p.locks().iter().any(|h| h.name == name && h.mode == Mode::Shared)
    };
    let common = a.locks().iter().find(|h| b.locks().iter().any(|o| o.name == h.name))?;
    let place = [a, b].into_iter().find(|p| weak(p, &common.name))?;
    Some((&common.name, place))
}
