//! `selvedge replay --gdb`: the interleaving of a finding, with gdb looking on.
//!
//! The schedule is first followed without gdb, to know where its critical points are and how often their
//! lines are come to before. Then gdb runs the program under the same schedule, with a breakpoint at each
//! of them that passes over the visits before.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_model::{Event, Role, Schedule, SiteId, Symbols, ThreadId};
use selvedge_report::Case;
use selvedge_report::explain::Row;
use selvedge_runtime::control::Debugger;

use super::account::explained;
use super::stage::{Stage, Subject, Wishes};
use crate::exit::Failure;
use crate::replay::Replayed;

/// Runs gdb until it ends. `replayed` is the same execution without it; `commands` are what gdb does
/// once the program has stopped, nothing to ask the user.
pub(crate) fn run(
    subject: &Subject,
    wishes: Wishes,
    schedule: &Schedule,
    replayed: &Replayed,
    finding: Option<&Case>,
    commands: &[String],
) -> Result<(), Failure> {
    // At gdb's prompt the interrupt key is gdb's, and we are in its way.
    let ignored = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, ignored)?;
    let points = breakpoints(replayed, finding);
    anstream::eprintln!(
        "the program runs under gdb with the same schedule; {} set",
        match points.len() {
            1 => "1 breakpoint is".to_owned(),
            n => format!("{n} breakpoints are"),
        }
    );
    let before = points.iter().flat_map(Breakpoint::commands).collect();
    let debugger = Debugger { before, after: commands.to_vec(), batch: !commands.is_empty() };
    let wishes = Wishes { debugger: Some(debugger), ..wishes };
    let mut stage = Stage::new(subject, wishes, &Arc::default())?;
    let (_, divergence) = stage.controlled.replay(schedule)?;
    if let Some(divergence) = divergence {
        anstream::eprintln!("under gdb the execution diverged {divergence}");
    }
    Ok(())
}

/// A breakpoint at each critical point.
fn breakpoints(replayed: &Replayed, finding: Option<&Case>) -> Vec<Breakpoint> {
    let Replayed { execution, symbols, .. } = replayed;
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
    for row in explained(execution, symbols, finding).rows {
        let (site, arrival) = match row {
            Row::Does { event, critical: true } => {
                let at = critical.find(|&i| execution.events[i] == event).unwrap_or(0);
                (event.site, arrival(&execution.events[..at], event.thread))
            }
            Row::Waits(waiting) if !matches!(waiting.wants, Role::Join(_)) => {
                (waiting.site, arrival(&execution.events, waiting.thread))
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
    points.iter().filter_map(|&(site, visits)| Breakpoint::new(site, visits, symbols)).collect()
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

/// A line at which gdb stops.
struct Breakpoint {
    line: String,
    /// So many visits before are passed over.
    visits: usize,
}

impl Breakpoint {
    fn new(site: SiteId, visits: usize, symbols: &Symbols) -> Option<Breakpoint> {
        let site = symbols.site(site);
        let frame = site.frame().filter(|f| f.line > 0)?;
        Some(Breakpoint { line: format!("{}:{}", frame.file, frame.line), visits })
    }

    /// As gdb wants it.
    fn commands(&self) -> Vec<String> {
        let mut commands = vec![format!("break {}", self.line)];
        if self.visits > 0 {
            commands.push(format!("ignore $bpnum {}", self.visits));
        }
        commands
    }
}
