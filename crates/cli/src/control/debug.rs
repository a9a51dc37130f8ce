//! `selvedge replay --gdb`: the interleaving of a finding, with gdb looking on.
//!
//! The schedule is first followed without gdb, to know where its critical points are and how often their
//! lines are come to before. Then gdb runs the program under the same schedule, with a breakpoint at each
//! of them that passes over the visits before.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_explore::Step;
use selvedge_explore::explain::{Row, Story, explain};
use selvedge_model::{Event, Op, Schedule, SiteId, Symbols, ThreadId};
use selvedge_runtime::control::{Debugger, Outcome};

use super::account::places;
use super::stage::{Stage, Subject, Wishes};
use crate::exit::Failure;
use crate::replay::Replayed;
use crate::report::ReportedFinding;
use crate::report::interleaving;

/// Runs gdb until it ends. `replayed` is the same execution without it; `commands` are what gdb does
/// once the program has stopped, nothing to ask the user.
pub(crate) fn run(
    subject: &Subject,
    wishes: Wishes,
    schedule: &Schedule,
    replayed: &Replayed,
    finding: Option<&ReportedFinding>,
    commands: &[String],
) -> Result<(), Failure> {
    // At gdb's prompt the interrupt key is gdb's, and we are in its way.
    let ignored = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, ignored)?;
    let before = breakpoints(replayed, finding);
    let points = before.iter().filter(|line| line.starts_with("break")).count();
    anstream::eprintln!(
        "the program runs under gdb with the same schedule; {} set",
        match points {
            1 => "1 breakpoint is".to_owned(),
            n => format!("{n} breakpoints are"),
        }
    );
    let debugger = Debugger { before, after: commands.to_vec(), batch: !commands.is_empty() };
    let wishes = Wishes { debugger: Some(debugger), ..wishes };
    let mut stage = Stage::new(subject, wishes, &Arc::default())?;
    let (_, divergence) = stage.controlled.replay(schedule)?;
    if let Some(divergence) = divergence {
        anstream::eprintln!("under gdb the execution diverged {divergence}");
    }
    Ok(())
}

/// Commands that set a breakpoint at each critical point.
fn breakpoints(replayed: &Replayed, finding: Option<&ReportedFinding>) -> Vec<String> {
    let Replayed { execution, symbols, .. } = replayed;
    let sites = finding.map(places).unwrap_or_default();
    let blocked = match &execution.outcome {
        Outcome::Deadlock(blocked) => blocked.iter().map(|b| (b.thread, b.pending)).collect(),
        _ => Vec::new(),
    };
    let places = interleaving::ids(&sites, symbols);
    let story = Story {
        events: &execution.events,
        stops: &execution.stops,
        blocked: &blocked,
        places: &places,
        ending: None,
    };
    let mut points: Vec<(SiteId, usize)> = Vec::new();
    let mut add = |site: SiteId, arrival: usize| {
        let visits = visits(&execution.events, site, arrival);
        match points.iter_mut().find(|(s, _)| *s == site) {
            Some((_, least)) => *least = visits.min(*least),
            None => points.push((site, visits)),
        }
    };
    let mut found = false;
    let mut critical = 0..execution.events.len();
    for row in explain(&story).rows {
        let (site, arrival) = match row {
            Row::Does { event, critical: true } => {
                let at = critical.find(|&i| execution.events[i] == event).unwrap_or(0);
                (event.site, arrival(&execution.events[..at], event.thread))
            }
            Row::Waits { thread, next, .. } if !matches!(next.step, Step::Do(Op::Join(_))) => {
                (next.site, arrival(&execution.events, thread))
            }
            _ => continue,
        };
        found = true;
        add(site, arrival);
    }
    if !found {
        // Nothing but where threads were stopped made it happen.
        for stop in &execution.stops {
            add(stop.next.site, arrival(&execution.events[..stop.at], stop.thread));
        }
    }
    commands(&points, symbols)
}

/// When a thread came to where it is: after its last event.
fn arrival(events: &[Event], thread: ThreadId) -> usize {
    events.iter().rposition(|e| e.thread == thread).map_or(0, |i| i + 1)
}

/// How many times threads came to a site before.
fn visits(events: &[Event], site: SiteId, before: usize) -> usize {
    let earlier = |i: usize| arrival(&events[..i], events[i].thread) < before;
    (0..events.len()).filter(|&i| events[i].site == site && earlier(i)).count()
}

fn commands(points: &[(SiteId, usize)], symbols: &Symbols) -> Vec<String> {
    let mut lines = Vec::new();
    for (site, visits) in points {
        let site = symbols.site(*site);
        let Some(frame) = site.frame().filter(|f| f.line > 0) else { continue };
        lines.push(format!("break {}:{}", frame.file, frame.line));
        if *visits > 0 {
            lines.push(format!("ignore $bpnum {visits}"));
        }
    }
    lines
}
