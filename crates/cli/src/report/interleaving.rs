//! An execution for people: what its threads did in columns, with the source beside it.

use std::fmt::Write;

use anstyle::{AnsiColor, Style as Colours};
use selvedge_explore::Pending;
use selvedge_explore::explain::{Story, Style, explain, layout};
use selvedge_model::schedule::landmark;
use selvedge_model::{Site, SiteId, Symbols, ThreadId};
use selvedge_runtime::Execution;
use selvedge_runtime::control::Outcome;

use super::sources::Sources;
use crate::run::ending;

/// Where nobody says how wide the terminal is.
const WIDTH: usize = 120;
/// A terminal that claims to be narrower is not believed.
const NARROWEST: usize = 40;

/// The interleaving of an execution, of which `places` are those of the finding; none if it is only
/// known by how the execution ended. `symbols` are the names of that execution. Lines fit the terminal,
/// unless another width is given.
pub(crate) fn text(
    execution: &Execution,
    symbols: &Symbols,
    places: &[Site],
    sources: &mut Sources,
    width: Option<usize>,
) -> String {
    let places = ids(places, symbols);
    let blocked: Vec<(ThreadId, Pending)> = match &execution.outcome {
        Outcome::Deadlock(blocked) => blocked.iter().map(|b| (b.thread, b.pending)).collect(),
        _ => Vec::new(),
    };
    let ending = ending(&execution.outcome);
    let story = Story {
        events: &execution.events,
        stops: &execution.stops,
        blocked: &blocked,
        places: &places,
        ending: ending.as_deref().map(|text| (execution.last, text)),
    };
    let lines = layout(
        &explain(&story),
        symbols,
        |site| sources.line(&symbols.site(site)).map(str::to_owned),
        width.unwrap_or_else(terminal).saturating_sub(INDENT.len()).max(NARROWEST),
    );
    let mut text = String::new();
    for line in lines {
        text.push_str(INDENT);
        for span in line {
            let style = colours(span.style);
            let _ = write!(text, "{style}{}{style:#}", span.text);
        }
        text.push('\n');
    }
    text
}

const INDENT: &str = "  ";

/// How wide the terminal is that errors and reports go to.
fn terminal() -> usize {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = || {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
        Some(usize::from(size.ws_col)).filter(|&w| w > 0)
    };
    columns().or_else(terminal).unwrap_or(WIDTH)
}

/// The ids of sites, so far as they are known.
pub(crate) fn ids(sites: &[Site], symbols: &Symbols) -> Vec<SiteId> {
    sites.iter().filter_map(|site| id(site, symbols)).collect()
}

/// The id of a site; in a program that was edited since, of the place that it has become.
fn id(site: &Site, symbols: &Symbols) -> Option<SiteId> {
    let sites = symbols.sites.entries();
    let function = |s: &Site| s.frame().map(|f| f.function.clone());
    let moved = |s: &Site| landmark(s) == landmark(site) && function(s) == function(site);
    let found = sites.iter().position(|s| s == site).or_else(|| {
        let mut alike = (0..sites.len()).filter(|&i| moved(&sites[i]));
        alike.next().filter(|_| alike.next().is_none())
    })?;
    Some(SiteId(u32::try_from(found).ok()?))
}

/// How an execution ended, where that is worth a line.
fn ending(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Exited(0) | Outcome::Deadlock(_) => None,
        Outcome::Exited(code) => Some(format!("exits with {code}")),
        Outcome::Signaled(signal) => Some(format!("killed by {}", ending::name(*signal))),
        Outcome::StepLimit => Some("goes on without end".to_owned()),
        Outcome::TimeLimit => Some("does not end in time".to_owned()),
    }
}

fn colours(style: Style) -> Colours {
    match style {
        Style::Plain => Colours::new(),
        Style::Head => Colours::new().bold(),
        Style::Critical => Colours::new().fg_color(Some(AnsiColor::Red.into())).bold(),
        Style::Stopped => Colours::new().fg_color(Some(AnsiColor::Yellow.into())),
        Style::Dim => Colours::new().dimmed(),
    }
}
