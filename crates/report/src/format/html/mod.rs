//! One self-contained page: the list of findings, and for each the source, the stacks and the interleaving
//! as lanes that a reader can step through.
//!
//! The page loads nothing: style and script are in it, and a content security policy forbids requests. It
//! reads without the script, which only adds the filter, stepping and arrows. The template is
//! `templates/report.html`; style and script are files of their own beside this one.

mod circle;
mod lanes;

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use askama::Template;
use selvedge_model::{Frame, Site, Status, Verdict};

use super::{Format, View};
use crate::words::{self, count};
use crate::{Bound, Case, Control, How, Interleaving, Report, Sources, advice};
use circle::Circle;
use lanes::Lanes;

/// One page.
pub(super) const FORMAT: Format = Format {
    name: "html",
    about: "One page for a browser: source, stacks, and interleavings to step through",
    exact: false,
    render,
};

/// Lines of source before and after a place.
const AROUND: u32 = 3;
/// Lines of source before and after a step of an interleaving.
const AROUND_STEP: u32 = 8;

/// Source lines by file and number, for the pane that follows the steps.
type Excerpts = BTreeMap<String, BTreeMap<u32, String>>;

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    heading: String,
    counts: Vec<(&'static str, usize)>,
    kinds: Vec<(&'static str, &'static str)>,
    warnings: Vec<String>,
    /// How many findings the page leaves out.
    unlisted: Option<String>,
    findings: Vec<Finding>,
    style: &'static str,
    script: &'static str,
    data: String,
}

/// A sentence as markup: names in backquotes become code.
struct Sentence(String);

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<&str> = self.0.split('`').collect();
        // An odd backquote is part of a name.
        let paired = parts.len() % 2 == 1;
        for (i, part) in parts.iter().enumerate() {
            match (paired, i % 2) {
                (true, 1) => write!(f, "<code>{}</code>", Escaped(part))?,
                (false, _) if i > 0 => write!(f, "`{}", Escaped(part))?,
                _ => write!(f, "{}", Escaped(part))?,
            }
        }
        Ok(())
    }
}

/// Text in which nothing is markup.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '&' => f.write_str("&amp;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            c => f.write_char(c),
        })
    }
}

struct Finding {
    id: String,
    kind: &'static str,
    status: &'static str,
    verdict: Option<&'static str>,
    title: Sentence,
    /// Everything that the search field looks at.
    search: String,
    why: Option<&'static str>,
    help: Option<Sentence>,
    notes: Vec<Sentence>,
    outcomes: Vec<Sentence>,
    replay: Option<String>,
    found_by: String,
    places: Vec<Place>,
    circle: Option<Circle>,
    /// The interleaving, and before it one to compare it with.
    lanes: Vec<Lanes>,
    /// How many rows at the beginning are the same in both.
    common: usize,
    /// The interleaving as an earlier version stored it.
    told: Option<String>,
}

struct Place {
    says: Sentence,
    site: String,
    lines: Vec<Line>,
    held: Vec<Sentence>,
    stack_name: &'static str,
    stack: Vec<String>,
}

struct Line {
    number: u32,
    text: String,
    marked: bool,
}

fn render(report: &Report, view: &mut View<'_>) -> String {
    let (cases, unlisted) = super::listed(report, view.all);
    let mut excerpts = Excerpts::new();
    let findings: Vec<Finding> =
        cases.iter().map(|c| finding(c, &mut view.sources, &mut excerpts)).collect();
    let statuses = [Status::Confirmed, Status::Observed, Status::Predicted, Status::Unconfirmed];
    let counts = statuses.map(|s| (s.name(), cases.iter().filter(|c| c.status == s).count()));
    let mut kinds: Vec<_> = cases.iter().map(|c| (c.kind.name(), words::kind(c.kind))).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let arrows: BTreeMap<&str, Vec<&[(usize, usize)]>> = findings
        .iter()
        .map(|f| (f.id.as_str(), f.lanes.iter().map(|l| l.arrows.as_slice()).collect()))
        .collect();
    let data = serde_json::json!({ "files": excerpts, "arrows": arrows });
    let page = Page {
        heading: heading(report, cases.len()),
        unlisted,
        counts: counts.into_iter().filter(|(_, n)| *n > 0).collect(),
        kinds,
        warnings: report.stats.bounds.iter().map(Bound::words).collect(),
        style: include_str!("style.css"),
        script: include_str!("script.js"),
        // A script element ends at the first `</script`, also inside of a string.
        data: data.to_string().replace('<', "\\u003c"),
        findings,
    };
    page.render().expect("the template has all that it needs")
}

fn heading(report: &Report, listed: usize) -> String {
    let stats = &report.stats;
    let findings = match listed {
        0 => "nothing found".to_owned(),
        n => count(n as u64, "finding"),
    };
    match &stats.control {
        Some(effort) => {
            format!("{findings} in {}, seed {}", count(effort.schedules, "schedule"), effort.seed)
        }
        None => format!(
            "{findings} in {} of {}, by {}",
            count(stats.events, "event"),
            count(stats.threads as u64, "thread"),
            stats.analyses.join(", ")
        ),
    }
}

fn finding(case: &Case, sources: &mut Sources<'_>, excerpts: &mut Excerpts) -> Finding {
    let control = case.control.as_ref();
    let mut common = 0;
    let (lanes, told) = match control.and_then(|c| c.how.as_ref()) {
        Some(How::Rows(rows)) => match control.and_then(Control::beside) {
            Some([first, second]) => {
                common = first.1.common(second.1);
                let mut side = |(title, rows): (String, &Interleaving)| Lanes {
                    heading: title,
                    ..Lanes::new(rows, Some(common), sources, excerpts)
                };
                (vec![side(first), side(second)], None)
            }
            None => (vec![Lanes::new(rows, None, sources, excerpts)], None),
        },
        Some(How::Told(text)) => (Vec::new(), Some(without_colours(text))),
        None => (Vec::new(), None),
    };
    let outcomes = words::outcomes(control.map_or(&[][..], |c| &c.orders));
    let account = advice::account(case).join(" ");
    Finding {
        id: case.id.to_string(),
        kind: case.kind.name(),
        status: case.status.name(),
        verdict: case.verdict.map(Verdict::name),
        title: Sentence(words::summary(case)),
        search: format!("{} {} {account}", words::summary(case), case.id).to_lowercase(),
        why: advice::why(case),
        help: advice::missing(case).map(Sentence),
        notes: case.notes.iter().map(words::note).map(Sentence).collect(),
        outcomes: outcomes.into_iter().map(Sentence).collect(),
        replay: control
            .and_then(|c| c.schedule.as_ref())
            .map(|_| format!("selvedge replay {}", case.id)),
        found_by: case.analyses.join(", "),
        places: case.places.iter().map(|p| place(case, p, sources)).collect(),
        circle: Circle::of(case),
        lanes,
        common,
        told,
    }
}

fn place(case: &Case, place: &crate::Place, sources: &mut Sources<'_>) -> Place {
    let marked = place.site.frame().map_or(0, |f| f.line);
    let lines = sources.around(&place.site, AROUND).unwrap_or_default();
    let frames = place.frames();
    let frame = |f: &&Frame| {
        let function = if f.function.is_empty() { "?" } else { &*f.function };
        match (&*f.file, f.line) {
            ("", _) => function.to_owned(),
            (file, 0) => format!("{function} ({file})"),
            (file, line) => format!("{function} ({file}:{line})"),
        }
    };
    Place {
        says: Sentence(words::sentence(case.kind, place)),
        site: place.site.to_string(),
        lines: lines
            .into_iter()
            .map(|(number, text)| Line { number, text, marked: number == marked })
            .collect(),
        held: words::acquisitions(place).into_iter().map(Sentence).collect(),
        stack_name: if place.stack_likely { "likely stack" } else { "stack" },
        stack: if frames.len() < 2 { Vec::new() } else { frames.iter().map(frame).collect() },
    }
}

/// Remembers the lines around a place for the pane; the key by which the page finds them.
fn excerpt(
    site: &Site,
    sources: &mut Sources<'_>,
    excerpts: &mut Excerpts,
) -> Option<(String, u32)> {
    let frame = site.frame()?;
    let lines = sources.around(site, AROUND_STEP)?;
    excerpts.entry(frame.file.to_string()).or_default().extend(lines);
    Some((frame.file.to_string(), frame.line))
}

/// What an earlier version stored has the colours of a terminal in it.
fn without_colours(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                rest.by_ref().find(char::is_ascii_alphabetic);
            }
            c => plain.push(c),
        }
    }
    crate::escape::visible(&plain).into_owned()
}
