//! `selvedge replay --gdb`: the interleaving of a finding under gdb.
//!
//! The schedule is first followed without gdb, to find its critical points and how often threads reach their
//! lines before. Then gdb runs the program under the same schedule, with a breakpoint at each critical point
//! that ignores the earlier visits.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_engine::replay::follow;
use selvedge_engine::{Ask, Replayed, Sought};
use selvedge_model::{Event, Role, Schedule, Site, SiteId, Symbols, ThreadId};
use selvedge_report::explain::Row;
use selvedge_report::words;
use selvedge_runtime::control::{Debugger, WatchList};

use super::cases::explained;
use super::program::Native;
use crate::exit::Failure;

/// Where gdb stops the program.
#[derive(Debug)]
pub(crate) struct Breakpoint {
    file: String,
    line: u32,
    /// How often threads come there before.
    earlier: usize,
}

impl Breakpoint {
    fn commands(&self) -> impl Iterator<Item = String> + use<> {
        let ignored = (self.earlier > 0).then(|| format!("ignore $bpnum {}", self.earlier));
        std::iter::once(format!("break {}:{}", self.file, self.line)).chain(ignored)
    }
}

/// Runs gdb until it ends. gdb runs `commands` when the program has stopped; if there are none, it shows its prompt.
pub(crate) fn run(
    native: Native,
    schedule: &Schedule,
    breakpoints: &[Breakpoint],
    commands: &[String],
    ask: &Ask<WatchList>,
) -> Result<(), Failure> {
    // Ctrl-C at gdb's prompt is for gdb, not for us.
    let ignored = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, ignored)?;
    anstream::eprintln!(
        "the program runs under gdb with the same schedule; {} set",
        match breakpoints.len() {
            1 => "1 breakpoint is".to_owned(),
            n => format!("{n} breakpoints are"),
        }
    );
    let before = breakpoints.iter().flat_map(Breakpoint::commands).collect();
    let debugger = Debugger { before, after: commands.to_vec(), batch: !commands.is_empty() };
    let mut executor = native.debugged(debugger).executor()?;
    let replayed = follow(&mut executor, schedule, &Sought::default(), ask)?;
    if let Some(divergence) = replayed.divergence {
        anstream::eprintln!("under gdb the execution diverged {}", words::divergence(&divergence));
    }
    Ok(())
}

/// A breakpoint at each critical point.
pub(crate) fn breakpoints(replayed: &Replayed, critical: &[Site]) -> Vec<Breakpoint> {
    let execution = &replayed.execution;
    let mut points: Vec<(SiteId, usize)> = Vec::new();
    let mut add = |site: SiteId, arrival: usize| {
        let visits = visits(&execution.events, site, arrival);
        match points.iter_mut().find(|(s, _)| *s == site) {
            Some((_, least)) => *least = visits.min(*least),
            None => points.push((site, visits)),
        }
    };
    let mut found = false;
    for row in explained(replayed, critical).rows {
        let (site, arrival) = match row {
            Row::Does { at, event, critical: true } => {
                (event.site, arrival(&execution.events[..at], event.thread))
            }
            Row::Waits(blocked) if !matches!(blocked.wants, Role::Join(_)) => {
                (blocked.site, arrival(&execution.events, blocked.thread))
            }
            Row::Does { .. }
            | Row::Waits(_)
            | Row::Stopped { .. }
            | Row::Ends { .. }
            | Row::Elided(_) => continue,
        };
        found = true;
        add(site, arrival);
    }
    if !found {
        // No event is critical: the preemptions alone made the finding happen.
        for stop in &execution.stops {
            add(stop.next.site, arrival(&execution.events[..stop.at], stop.thread));
        }
    }
    placed(&points, &replayed.symbols)
}

/// When a thread arrived at its current place: after its last event.
fn arrival(events: &[Event], thread: ThreadId) -> usize {
    events.iter().rposition(|e| e.thread == thread).map_or(0, |i| i + 1)
}

/// How many times threads had arrived at a site before.
fn visits(events: &[Event], site: SiteId, before: usize) -> usize {
    let earlier = |i: usize| arrival(&events[..i], events[i].thread) < before;
    (0..events.len()).filter(|&i| events[i].site == site && earlier(i)).count()
}

/// Those whose lines are known.
fn placed(points: &[(SiteId, usize)], symbols: &Symbols) -> Vec<Breakpoint> {
    let at = |&(site, earlier): &(SiteId, usize)| {
        let frame = symbols.site(site).frame()?.clone();
        let known = frame.line > 0;
        known.then(|| Breakpoint { file: frame.file.to_string(), line: frame.line, earlier })
    };
    points.iter().filter_map(at).collect()
}
