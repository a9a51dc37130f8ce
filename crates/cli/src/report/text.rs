//! Findings for people.
//!
//! Each finding reads like a compiler's diagnostic: what, the lines of source with what each thread
//! does there, why it is a bug and what is missing. Findings about the same thing are folded under the
//! first of them.

use std::fmt;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Level, Renderer, Snippet};
use selvedge_model::{Frame, Kind, Mode, Status};

use super::sources::Sources;
use super::{Effort, Report, ReportedFinding, ReportedLock, ReportedPlace, advice};
use crate::args::Output;

/// The whole report.
pub(crate) fn render(report: &Report, output: &Output) -> String {
    let mut sources = Sources::new(&output.source);
    let mut text = String::new();
    let mut shown: Vec<&ReportedFinding> = Vec::new();
    for group in grouped(report, output.all) {
        text.push_str(&finding(group[0], &group[1..], &mut sources));
        text.push_str("\n\n");
        if let Some(how) = interleaving(group[0], &shown) {
            text.push_str(&how);
            text.push('\n');
        }
        shown.push(group[0]);
    }
    for bound in &report.stats.bounds {
        text.push_str(&format!("{}: {bound}\n", crate::exit::warning_label()));
    }
    for remark in report.stats.control.iter().flat_map(|c| &c.remarks) {
        text.push_str(&format!("note: {remark}\n"));
    }
    text.push_str(&summary(report));
    text
}

/// How a finding happens, if that is known. One execution may show several: its interleaving is shown
/// once.
fn interleaving(finding: &ReportedFinding, shown: &[&ReportedFinding]) -> Option<String> {
    let control = finding.control.as_ref().filter(|c| !c.interleaving.is_empty())?;
    let schedule = |f: &ReportedFinding| f.control.as_ref().and_then(|c| c.schedule.clone());
    match shown.iter().find(|s| schedule(s).is_some_and(|s| Some(s) == control.schedule)) {
        Some(same) => Some(format!("how it happens: in the execution that shows {}\n", same.id)),
        None => Some(control.interleaving.clone()),
    }
}

/// Findings of one kind, status and subject together, surest first.
fn grouped(report: &Report, separate: bool) -> Vec<Vec<&ReportedFinding>> {
    let mut groups: Vec<Vec<&ReportedFinding>> = Vec::new();
    for finding in report.sorted() {
        let alike = |g: &&mut Vec<&ReportedFinding>| {
            (g[0].kind, g[0].status, &g[0].subject)
                == (finding.kind, finding.status, &finding.subject)
        };
        match groups.iter_mut().find(alike) {
            Some(group) if !separate => group.push(finding),
            _ => groups.push(vec![finding]),
        }
    }
    groups
}

fn finding(f: &ReportedFinding, alike: &[&ReportedFinding], sources: &mut Sources) -> String {
    let level = if f.status >= Status::Observed { Level::ERROR } else { Level::WARNING };
    let verdict = f.verdict.map(|v| format!(", {}", v.name())).unwrap_or_default();
    let title = format!("{} ({}{verdict})", f.summary(), f.status.name());
    let mut group = level.primary_title(title).id(&f.id).elements(places(f, sources));
    for held in f.places.iter().flat_map(acquisitions) {
        group = group.element(Level::NOTE.message(held));
    }
    for place in &f.places {
        if let Some(stack) = stack(place) {
            let name = if place.stack_likely { "likely stack" } else { "stack" };
            group = group.element(Level::NOTE.with_name(name).message(stack));
        }
    }
    for note in &f.notes {
        group = group.element(Level::NOTE.message(note.clone()));
    }
    if let Some(why) = advice::why(f) {
        group = group.element(Level::NOTE.with_name("why").message(why));
    }
    if let Some(missing) = advice::missing(f) {
        group = group.element(Level::HELP.message(missing));
    }
    for (name, line) in controlled(f) {
        group = group.element(Level::NOTE.with_name(name).message(line));
    }
    group = group.element(Level::NOTE.message(provenance(f)));
    if !alike.is_empty() {
        group = group.element(Level::NOTE.message(folded(alike)));
    }
    Renderer::styled().decor_style(DecorStyle::Unicode).render(&[group])
}

/// An element for each file whose source is there, with its places marked, and a line for each of the
/// other places.
fn places(f: &ReportedFinding, sources: &mut Sources) -> Vec<Element<'static>> {
    let mut lines: Vec<Element<'static>> = Vec::new();
    let mut files: Vec<(String, Snippet<'static, Annotation<'static>>)> = Vec::new();
    for (i, place) in f.places.iter().enumerate() {
        let says = sentence(f.kind, place);
        let Some(excerpt) = sources.excerpt(&place.site) else {
            let line = format!("{}: {says}", place.site);
            lines.push(Level::NOTE.with_name("at").message(line).into());
            continue;
        };
        let last = i + 1 == f.places.len();
        let kind = if last { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(excerpt.span).label(says);
        let path = place.site.frame().map_or_else(String::new, |frame| frame.file.to_string());
        match files.iter().position(|(p, _)| *p == path) {
            Some(i) => {
                let (path, snippet) = files.swap_remove(i);
                files.push((path, snippet.annotation(annotation)));
            }
            None => {
                let snippet = Snippet::source(excerpt.source.to_owned()).path(path.clone());
                files.push((path, snippet.annotation(annotation)));
            }
        }
    }
    files.into_iter().map(|(_, s)| s.into()).chain(lines).collect()
}

/// What a thread does at a place: `thread T1 writes, holding `a` (shared)`. That no lock is held is
/// worth saying of a data race only.
fn sentence(kind: Kind, place: &ReportedPlace) -> String {
    let verb = place.role.verb();
    let does = match &place.role.object {
        Some(object) => format!("{verb} `{object}`"),
        None => verb.to_owned(),
    };
    let held: Vec<String> = place.held.iter().map(lock).collect();
    let holding = match held.as_slice() {
        [] if kind == Kind::DataRace && !place.held_unknown => ", holding no lock".to_owned(),
        [] => String::new(),
        held => format!(", holding {}", held.join(", ")),
    };
    if place.thread.is_empty() {
        return format!("{does} here");
    }
    let about = if place.approximate { " (or near here)" } else { "" };
    format!("thread {} {does}{about}{holding}", place.thread)
}

fn lock(held: &ReportedLock) -> String {
    match held.mode {
        Mode::Exclusive => format!("`{}`", held.name),
        Mode::Shared => format!("`{}` (shared)", held.name),
    }
}

/// Where a thread that waits acquired what it holds.
fn acquisitions(place: &ReportedPlace) -> Vec<String> {
    if place.role.name != "acquire" {
        return Vec::new();
    }
    let from =
        |h: &ReportedLock| format!("thread {} has held {} since {}", place.thread, lock(h), h.site);
    place.held.iter().map(from).collect()
}

/// The calls that led to a place, if any are known.
fn stack(place: &ReportedPlace) -> Option<String> {
    const SHOWN: usize = 12;
    let frames = place.frames();
    if frames.len() < 2 {
        return None;
    }
    let mut text = format!("of thread {}:", place.thread);
    for frame in frames.iter().take(SHOWN) {
        let function = if frame.function.is_empty() { "?" } else { &*frame.function };
        text.push_str(&format!("\n  {function} {}", Place(frame)));
    }
    if frames.len() > SHOWN {
        text.push_str(&format!("\n  and {} more", frames.len() - SHOWN));
    }
    Some(text)
}

/// `file:line` of a frame, or nothing.
struct Place<'a>(&'a Frame);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.0.file, self.0.line) {
            ("", _) => Ok(()),
            (file, 0) => write!(f, "({file})"),
            (file, line) => write!(f, "({file}:{line})"),
        }
    }
}

fn provenance(f: &ReportedFinding) -> String {
    let times = match (f.occurrences, f.control.as_ref().and_then(|c| c.of)) {
        (n, Some(of)) => format!(", in {n} of {}", count(of, "schedule")),
        (1, None) => String::new(),
        (n, None) => format!(", {n} times"),
    };
    format!("found by {}{times}", f.analyses.join(", "))
}

/// What controlled executions made of the finding, each line with its name.
fn controlled(f: &ReportedFinding) -> Vec<(&'static str, String)> {
    let Some(control) = &f.control else { return Vec::new() };
    let mut lines: Vec<(&str, String)> = Vec::new();
    for order in &control.orders {
        lines.push(("outcome", format!("{}: {}", order.order, order.outcome)));
    }
    if f.status == Status::Unconfirmed && control.schedule.is_none() {
        let tried = count(control.attempts, "directed execution");
        lines.push(("tried", format!("{tried} did not make it happen")));
    }
    if control.schedule.is_some() {
        lines.push(("replay", format!("selvedge replay {}", f.id)));
    }
    lines
}

fn folded(alike: &[&ReportedFinding]) -> String {
    const SHOWN: usize = 5;
    let pair = |f: &&ReportedFinding| {
        let sites: Vec<String> = f.places.iter().map(|p| p.site.to_string()).collect();
        sites.join(" with ")
    };
    let mut shown: Vec<String> = alike.iter().take(SHOWN).map(pair).collect();
    if alike.len() > SHOWN {
        shown.push(format!("and {} more", alike.len() - SHOWN));
    }
    format!(
        "the same between other places ({}; --all shows them in full): {}",
        alike.len(),
        shown.join(", ")
    )
}

fn summary(report: &Report) -> String {
    let stats = &report.stats;
    let looked = match &stats.control {
        Some(effort) => format!("{}, seed {}", schedules(effort), effort.seed),
        None => format!(
            "{} in {}, by {}",
            count(stats.events, "event"),
            count(stats.threads as u64, "thread"),
            stats.analyses.join(", ")
        ),
    };
    if report.findings.is_empty() {
        return format!("nothing found: {looked}\n");
    }
    let mut parts: Vec<String> = Vec::new();
    for status in [Status::Confirmed, Status::Observed, Status::Predicted, Status::Unconfirmed] {
        match report.findings.iter().filter(|f| f.status == status).count() {
            0 => {}
            n => parts.push(format!("{n} {}", status.name())),
        }
    }
    format!("{}: {} ({looked})\n", count(report.findings.len() as u64, "finding"), parts.join(", "))
}

fn schedules(effort: &Effort) -> String {
    let all = if effort.complete { "all " } else { "" };
    let rate = effort.schedules as f64 / effort.seconds.max(0.001);
    let many = count(effort.schedules, "schedule");
    format!("{all}{many} in {:.1} s, {rate:.0} per second", effort.seconds)
}

fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
