//! Why a finding is a bug, and which synchronization is missing.

use selvedge_model::{Kind, Mode};

use super::{ReportedFinding, ReportedLock, ReportedPlace, list};

/// What makes the finding a bug, in a sentence; nothing where the summary says it all.
pub(crate) fn why(finding: &ReportedFinding) -> Option<String> {
    use selvedge_model::Status;
    Some(match (finding.kind, finding.status) {
        (Kind::DataRace, Status::Observed | Status::Confirmed) => {
            "nothing orders the two accesses: the outcome depends on which comes first, and the compiler may assume that they never meet".into()
        }
        (Kind::DataRace, _) => {
            "no lock protects both accesses: another schedule may let them meet".into()
        }
        (Kind::Deadlock, _) if finding.subject.is_empty() => {
            "nobody is left who could do what the threads wait for".into()
        }
        (Kind::Deadlock, Status::Confirmed) => {
            "each thread holds a lock that the next one waits for, and none can go on".into()
        }
        (Kind::Deadlock, _) => {
            "each thread can hold a lock that the next one waits for, and then none goes on".into()
        }
        (Kind::AtomicityViolation, Status::Observed | Status::Confirmed) => {
            "other threads came between the parts of the region: no order of whole regions explains what each of them saw".into()
        }
        (Kind::AtomicityViolation, _) => {
            "the region is not one critical section: another schedule may come between its parts".into()
        }
        (Kind::DeterminismViolation, _) => {
            "what the region computes depends on the order in which threads happen to run".into()
        }
        (Kind::HighLevelRace, _) => {
            "one thread treats these variables as belonging together, another uses them under the same lock but in parts".into()
        }
        _ => return None,
    })
}

/// What to do about it.
pub(crate) fn missing(finding: &ReportedFinding) -> Option<String> {
    match (finding.kind, finding.places.as_slice()) {
        (Kind::DataRace, [a, b]) => Some(missing_between(a, b)),
        (Kind::Deadlock, places) if finding.subject.is_empty() => {
            let notified = places.iter().any(|p| p.role.name == "await");
            notified.then(|| {
                "a notification that comes before its waiter is lost: let the waiter look, under the lock, whether it still has to wait, and notify after changing what it looks at".into()
            })
        }
        (Kind::Deadlock, [_]) => Some(format!(
            "{} is acquired by the thread that holds it: release it before, or make it recursive",
            list(&finding.subject)
        )),
        (Kind::Deadlock, _) => Some(format!(
            "acquire {} in the same order everywhere, or hold one more lock around both acquisitions",
            list(&finding.subject)
        )),
        (Kind::AtomicityViolation, _) => {
            Some("hold one lock from the first to the last use of what the region shares".into())
        }
        (Kind::HighLevelRace, _) => {
            Some("use the variables in one critical section wherever they must fit together".into())
        }
        _ => None,
    }
}

fn missing_between(a: &ReportedPlace, b: &ReportedPlace) -> String {
    if let Some((lock, weak)) = shared_only(a, b) {
        return format!(
            "`{lock}` is held at both places, but thread {} holds it in shared mode while writing: acquire it exclusively there",
            weak.thread
        );
    }
    if a.role.is_atomic() != b.role.is_atomic() {
        let plain = if a.role.is_atomic() { b } else { a };
        return format!(
            "one access is atomic and the other is not: make the one at {} atomic too, or order it by synchronization",
            plain.site
        );
    }
    if a.held_unknown || b.held_unknown {
        return "protect both places with one lock, make both accesses atomic, or order them by a join or a signal".into();
    }
    match (a.held.as_slice(), b.held.as_slice()) {
        ([], []) => "no lock is held at either place: protect both with one lock, make both atomic, or order them by a join or a signal".into(),
        (held, []) => one_sided(held, b),
        ([], held) => one_sided(held, a),
        (left, right) => format!(
            "the two places hold different locks ({} and {}): hold one of them at both",
            list(&names(left)),
            list(&names(right))
        ),
    }
}

fn one_sided(held: &[ReportedLock], lacking: &ReportedPlace) -> String {
    format!(
        "thread {} does not hold {} at {}, where the other place does",
        lacking.thread,
        list(&names(held)),
        lacking.site
    )
}

fn names(held: &[ReportedLock]) -> Vec<String> {
    held.iter().map(|h| h.name.clone()).collect()
}

/// A lock held on both sides that does not exclude because a writer has it in shared mode.
fn shared_only<'a>(
    a: &'a ReportedPlace,
    b: &'a ReportedPlace,
) -> Option<(&'a str, &'a ReportedPlace)> {
    let weak = |p: &ReportedPlace, name: &str| {
        p.role.writes() && p.held.iter().any(|h| h.name == name && h.mode == Mode::Shared)
    };
    let common = a.held.iter().find(|h| b.held.iter().any(|o| o.name == h.name))?;
    let place = [a, b].into_iter().find(|p| weak(p, &common.name))?;
    Some((&common.name, place))
}
