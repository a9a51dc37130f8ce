//! Findings for people.
//!
//! Each finding reads like a compiler's diagnostic: what it is, the lines of source with what each thread
//! does there, why it is a bug and what helps. Findings of one kind, status and subject are folded under
//! the first of them.

use std::fmt;
use std::fmt::Write;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Element, Level, Renderer, Snippet};
use anstyle::AnsiColor;
use selvedge_model::{Frame, Status};

use super::{Format, View};
use crate::words::{self, count};
use crate::{
    Bound, Case, Effort, How, Interleaving, Place, Report, Sources, Style, advice, beside, layout,
};

/// Coloured text.
pub(super) const FORMAT: Format =
    Format { name: "text", about: "For people", exact: false, render };

/// The whole report.
fn render(report: &Report, view: &mut View<'_>) -> String {
    let mut text = String::new();
    let mut shown: Vec<&Case> = Vec::new();
    let (listed, unlisted) = super::listed(report, view.all);
    for group in grouped(&listed, view.all) {
        let room = Room(view.wraps.then_some(view.width));
        text.push_str(&finding(group[0], &group[1..], &mut view.sources, room));
        text.push_str("\n\n");
        if let Some(how) = how(group[0], &shown, view) {
            text.push_str(&how);
            text.push('\n');
        }
        shown.push(group[0]);
    }
    let warning = anstyle::Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    for bound in report.stats.bounds.iter().map(Bound::words) {
        let _ = writeln!(text, "{warning}warning{warning:#}: {bound}");
    }
    for remark in report.stats.control.iter().flat_map(|c| &c.remarks).map(words::remark) {
        let _ = writeln!(text, "note: {remark}");
    }
    if let Some(line) = unlisted {
        let _ = writeln!(text, "note: {line}");
    }
    let mut changes = report.changes().into_iter();
    if let Some(counts) = changes.next() {
        let _ = writeln!(text, "since the baseline: {counts}");
    }
    for line in changes {
        let _ = writeln!(text, "  {line}");
    }
    text.push_str(&summary(report, &listed));
    match report.stats.suppressed.len() {
        0 => {}
        1 => text.push_str("1 finding was suppressed\n"),
        n => text.push_str(&format!("{n} findings were suppressed\n")),
    }
    text
}

/// How a finding happens, if known. If one execution shows several findings, its interleaving is printed
/// once.
fn how(case: &Case, shown: &[&Case], view: &mut View<'_>) -> Option<String> {
    let control = case.control.as_ref()?;
    let how = control.how.as_ref()?;
    let schedule = |c: &Case| c.control.as_ref().and_then(|c| c.schedule.clone());
    match shown.iter().find(|s| schedule(s).is_some_and(|s| Some(s) == control.schedule)) {
        Some(same) => {
            Some(format!("how it happens: see {}; the same execution shows both\n", same.id))
        }
        None => Some(match how {
            How::Rows(rows) => match &control.other {
                Some(other) => two(other, rows, &mut view.sources, view.width),
                None => interleaving(rows, &mut view.sources, view.width),
            },
            How::Told(text) => text.clone(),
        }),
    }
}

/// Before each line of an interleaving.
const INDENT: &str = "  ";
/// The least width; a terminal that claims to be narrower is ignored.
const NARROWEST: usize = 40;

/// What the threads did, in columns that fit the width.
pub fn interleaving(shown: &Interleaving, sources: &mut Sources<'_>, width: usize) -> String {
    let lines = layout(shown, sources, room(width));
    coloured(format!("{}\n", shown.heading()), lines)
}

/// What the threads did in two executions, beside each other.
fn two(
    first: &Interleaving,
    second: &Interleaving,
    sources: &mut Sources<'_>,
    width: usize,
) -> String {
    let heading = "how two executions come to different values:\n".to_owned();
    coloured(heading, beside(first, second, sources, room(width)))
}

fn room(width: usize) -> usize {
    width.saturating_sub(INDENT.len()).max(NARROWEST)
}

fn coloured(mut text: String, lines: Vec<crate::Line>) -> String {
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

fn colours(style: Style) -> anstyle::Style {
    let plain = anstyle::Style::new();
    match style {
        Style::Plain => plain,
        Style::Head => plain.bold(),
        Style::Critical => plain.fg_color(Some(AnsiColor::Red.into())).bold(),
        Style::Stopped => plain.fg_color(Some(AnsiColor::Yellow.into())),
        Style::Dim => plain.dimmed(),
    }
}

/// Findings of one kind, status and subject together, surest first.
fn grouped<'a>(sorted: &[&'a Case], separate: bool) -> Vec<Vec<&'a Case>> {
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    for &finding in sorted {
        let alike = |g: &&mut Vec<&Case>| {
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

/// How wide notes may be, if they are wrapped.
#[derive(Clone, Copy)]
struct Room(Option<usize>);

impl Room {
    /// Breaks a message between words, so that it fits behind its name and the gutter.
    fn wrap(self, name: &str, message: &str) -> String {
        /// The widest gutter that is usual, with what follows the name.
        const GUTTER: usize = 9;
        let Some(width) = self.0 else { return message.to_owned() };
        let room = width.max(NARROWEST).saturating_sub(GUTTER + name.len()).max(NARROWEST / 2);
        let lines: Vec<String> = message.lines().map(|line| broken(line, room)).collect();
        lines.join("\n")
    }

    fn note(self, message: &str) -> Element<'static> {
        Level::NOTE.message(self.wrap("note", message)).into()
    }

    fn named(self, name: &'static str, message: &str) -> Element<'static> {
        Level::NOTE.with_name(name).message(self.wrap(name, message)).into()
    }
}

/// A line in pieces of at most `room` characters, as far as its words allow; further pieces keep its indentation.
fn broken(line: &str, room: usize) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let mut text = indent.to_owned();
    let mut used = indent.chars().count();
    for (i, word) in line.split_whitespace().enumerate() {
        let len = word.chars().count();
        if i > 0 && used + 1 + len > room {
            text.push('\n');
            text.push_str(indent);
            used = indent.chars().count();
        } else if i > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += len;
    }
    text
}

fn finding(f: &Case, alike: &[&Case], sources: &mut Sources<'_>, room: Room) -> String {
    let level = if f.status >= Status::Observed { Level::ERROR } else { Level::WARNING };
    let title = format!("{} ({})", words::summary(f), words::standing(f));
    let mut group = level.primary_title(title).id(f.id.to_string()).elements(places(f, sources));
    for held in f.places.iter().flat_map(words::acquisitions) {
        group = group.element(room.note(&held));
    }
    for place in &f.places {
        if let Some(stack) = stack(place) {
            let name = if place.stack_likely { "likely stack" } else { "stack" };
            group = group.element(room.named(name, &stack));
        }
    }
    for state in &f.states {
        group = group.element(room.note(&words::state(state)));
    }
    for line in f.serial.iter().flat_map(words::serial) {
        group = group.element(Level::NOTE.with_name("serial").message(line));
    }
    for note in &f.notes {
        group = group.element(room.note(&words::note(note)));
    }
    if let Some(why) = advice::why(f) {
        group = group.element(room.named("why", why));
    }
    if let Some(missing) = advice::missing(f) {
        group = group.element(Level::HELP.message(room.wrap("help", &missing)));
    }
    for (name, line) in controlled(f) {
        group = group.element(room.named(name, &line));
    }
    group = group.element(room.note(&provenance(f)));
    if !alike.is_empty() {
        group = group.element(room.note(&folded(alike)));
    }
    Renderer::styled().decor_style(DecorStyle::Unicode).render(&[group])
}

/// An element for each file whose source is there, with its places marked, and a line for each of the
/// other places.
fn places(f: &Case, sources: &mut Sources<'_>) -> Vec<Element<'static>> {
    let mut lines: Vec<Element<'static>> = Vec::new();
    let mut files: Vec<(String, Snippet<'static, Annotation<'static>>)> = Vec::new();
    for (i, place) in f.places.iter().enumerate() {
        let says = words::sentence(f.kind, place);
        let Some((source, span)) = sources.excerpt(&place.site) else {
            let line = format!("{}: {says}", place.site);
            lines.push(Level::NOTE.with_name("at").message(line).into());
            continue;
        };
        let last = i + 1 == f.places.len();
        let kind = if last { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(span).label(says);
        let path = place.site.frame().map_or_else(String::new, |frame| frame.file.to_string());
        match files.iter().position(|(p, _)| *p == path) {
            Some(i) => {
                let (path, snippet) = files.swap_remove(i);
                files.push((path, snippet.annotation(annotation)));
            }
            None => {
                let snippet = Snippet::source(source.to_owned()).path(path.clone());
                files.push((path, snippet.annotation(annotation)));
            }
        }
    }
    files.into_iter().map(|(_, s)| s.into()).chain(lines).collect()
}

/// The calls that led to a place, if any are known.
fn stack(place: &Place) -> Option<String> {
    const SHOWN: usize = 12;
    let frames = place.frames();
    if frames.len() < 2 {
        return None;
    }
    let mut text = format!("of thread {}:", place.thread);
    for frame in frames.iter().take(SHOWN) {
        let function = words::short(if frame.function.is_empty() { "?" } else { &frame.function });
        text.push_str(&format!("\n  {function} {}", Line(frame)));
    }
    if frames.len() > SHOWN {
        text.push_str(&format!("\n  and {} more", frames.len() - SHOWN));
    }
    Some(text)
}

/// `file:line` of a frame, or nothing.
struct Line<'a>(&'a Frame);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.0.file, self.0.line) {
            ("", _) => Ok(()),
            (file, 0) => write!(f, "({file})"),
            (file, line) => write!(f, "({file}:{line})"),
        }
    }
}

fn provenance(f: &Case) -> String {
    let times = match (f.occurrences, f.control.as_ref().and_then(|c| c.of)) {
        (n, Some(of)) => format!(", in {n} of {}", count(of, "schedule")),
        (1, None) => String::new(),
        (n, None) => format!(", {n} times"),
    };
    format!("found by {}{times}", f.analyses.join(", "))
}

/// What controlled executions made of the finding, each line with its name.
fn controlled(f: &Case) -> Vec<(&'static str, String)> {
    let Some(control) = &f.control else { return Vec::new() };
    let outcomes = words::outcomes(&control.orders).into_iter();
    let mut lines: Vec<(&str, String)> = outcomes.map(|told| ("outcome", told)).collect();
    if f.status == Status::Unconfirmed && control.schedule.is_none() {
        let tried = count(control.attempts, "directed execution");
        lines.push(("tried", format!("{tried} did not make it happen")));
    }
    if control.schedule.is_some() {
        lines.push(("replay", format!("selvedge replay {}", f.id)));
    }
    lines
}

fn folded(alike: &[&Case]) -> String {
    const SHOWN: usize = 5;
    let pair = |f: &&Case| {
        let sites: Vec<String> = f.places.iter().map(|p| p.site.to_string()).collect();
        sites.join(" with ")
    };
    let mut shown: Vec<String> = alike.iter().take(SHOWN).map(pair).collect();
    if alike.len() > SHOWN {
        shown.push(format!("and {} more", alike.len() - SHOWN));
    }
    format!(
        "{} more between other places (--all shows them in full): {}",
        alike.len(),
        shown.join(", ")
    )
}

fn summary(report: &Report, listed: &[&Case]) -> String {
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
    if listed.is_empty() {
        return format!("nothing found: {looked}\n");
    }
    let mut parts: Vec<String> = Vec::new();
    for status in [Status::Confirmed, Status::Observed, Status::Predicted, Status::Unconfirmed] {
        match listed.iter().filter(|f| f.status == status).count() {
            0 => {}
            n => parts.push(format!("{n} {}", status.name())),
        }
    }
    format!("{}: {} ({looked})\n", count(listed.len() as u64, "finding"), parts.join(", "))
}

fn schedules(effort: &Effort) -> String {
    let all = if effort.complete { "all " } else { "" };
    let rate = effort.schedules as f64 / effort.seconds.max(0.001);
    let many = count(effort.schedules, "schedule");
    format!("{all}{many} in {:.1} s, {rate:.0} per second", effort.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_fit_the_terminal() {
        let message = "nothing orders the two accesses: which one comes first is open\n  f (a.c:1)";
        let wrapped = Room(Some(40)).wrap("note", message);
        assert_eq!(
            wrapped,
            "nothing orders the two\naccesses: which one comes\nfirst is open\n  f (a.c:1)"
        );
        assert_eq!(Room(None).wrap("note", message), message);
        assert_eq!(broken("  averylongwordindeed x", 8), "  averylongwordindeed\n  x");
    }
}
