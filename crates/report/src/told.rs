//! A finding as plain lines, for the output of a failing test.

use selvedge_model::{Blocked, Failure, Finding, Mode, Role, Subject, Symbols};

use crate::{Act, Case, Place, advice, words};

/// A finding and its case: what happened, where, why it is a bug and what helps.
pub fn finding(finding: &Finding, case: &Case, symbols: &Symbols) -> String {
    let Subject::Program(failure) = &finding.subject else { return self::case(case) };
    let help = help(case);
    match failure {
        Failure::Message { text, .. } => match case.places.first() {
            Some(place) => {
                format!("{} panicked at {}:\n  {text}{}", place.thread, place.site, notes(case))
            }
            None => format!("a thread panicked:\n  {text}{}", notes(case)),
        },
        Failure::Stuck { part, others } => {
            let all = [&part[..], others].concat();
            let waiting = waiting(&all, symbols);
            match part.iter().any(|b| waits_behind(b, part)) {
                true => {
                    format!("deadlock: threads wait in a circle, readers behind writers{waiting}")
                }
                false => format!(
                    "deadlock: every thread is waiting, and no thread can wake them{waiting}{help}"
                ),
            }
        }
        Failure::Left(list) => {
            format!("{}{}", words::summary(case), waiting(list, symbols))
        }
        Failure::Unwinding(_)
        | Failure::Steps(_)
        | Failure::Stall(_)
        | Failure::NoStack { .. }
        | Failure::Shared(_)
        | Failure::Unrepeatable { .. }
        | Failure::Signal { .. }
        | Failure::Exit { .. } => format!("{}{}{help}", words::summary(case), places(case)),
    }
}

/// A case: what, where, how it differs, why and what helps.
pub fn case(case: &Case) -> String {
    let states: String = case.states.iter().map(|s| format!("\n  {}", words::state(s))).collect();
    let why = advice::why(case).map(|why| format!("\n  why: {why}")).unwrap_or_default();
    format!(
        "{}: {} ({}), found by {}{}{states}{}{why}{}",
        case.id,
        words::summary(case),
        words::standing(case),
        case.analyses.join(", "),
        places(case),
        notes(case),
        help(case)
    )
}

fn notes(case: &Case) -> String {
    case.notes.iter().map(|note| format!("\n  {}", words::note(note))).collect()
}

fn places(case: &Case) -> String {
    let place = |p: &Place| format!("\n  {}: {}", p.site, words::sentence(case.kind, p));
    case.places.iter().map(place).collect()
}

fn help(case: &Case) -> String {
    advice::missing(case).map(|help| format!("\n  help: {help}")).unwrap_or_default()
}

/// Whether a thread waits to read because another one waits to write.
fn waits_behind(reader: &Blocked, list: &[Blocked]) -> bool {
    let writer = reader.waits_for.and_then(|whom| list.iter().find(|b| b.thread == whom));
    writer.is_some_and(|writer| {
        (reader.mode, writer.mode) == (Mode::Shared, Mode::Exclusive)
            && reader.lock().is_some()
            && reader.lock() == writer.lock()
    })
}

/// Each thread that waits, in a line of its own.
fn waiting(list: &[Blocked], symbols: &Symbols) -> String {
    let line = |b: &Blocked| {
        let name = |thread| symbols.thread(thread);
        let holder = match b.waits_for {
            Some(t) if waits_behind(b, list) => {
                format!(", behind {}, which waits to write", name(t))
            }
            Some(t) if t == b.thread => ", which it holds itself".to_owned(),
            // The thread to join is named already.
            Some(_) if matches!(b.wants, Role::Join(_)) => String::new(),
            Some(t) => format!(", held by {}", name(t)),
            None => String::new(),
        };
        let waits = Act::of_blocked(b, symbols).waiting();
        format!("\n  {} {waits} at {}{holder}", name(b.thread), symbols.site(b.site))
    };
    list.iter().map(line).collect()
}
