//! Findings for programs. The format is versioned; what is there keeps its meaning within a version.

use serde::Serialize;

use super::{Report, ReportedFinding, ReportedPlace};
use selvedge_model::Mode;

const VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    tool: &'static str,
    findings: Vec<Finding<'a>>,
    stats: Stats<'a>,
}

#[derive(Serialize)]
struct Finding<'a> {
    id: &'a str,
    kind: &'static str,
    status: &'static str,
    verdict: Option<&'static str>,
    summary: String,
    analysis: &'a str,
    analyses: &'a [&'static str],
    subject: &'a [String],
    occurrences: u64,
    sites: Vec<Place<'a>>,
    schedule: Option<&'a str>,
}

#[derive(Serialize)]
struct Place<'a> {
    /// The site as text: `file:line:column`, or the label where that is all there is.
    site: String,
    file: Option<&'a str>,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<&'a str>,
    thread: &'a str,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    held: Vec<Held<'a>>,
}

#[derive(Serialize)]
struct Held<'a> {
    lock: &'a str,
    mode: &'static str,
    site: String,
}

#[derive(Serialize)]
struct Stats<'a> {
    traces: usize,
    events: u64,
    threads: usize,
    analyses: &'a [&'static str],
    bounds: &'a [String],
}

/// The report as one JSON document and a line end.
pub(crate) fn render(report: &Report) -> String {
    let document = Document {
        version: VERSION,
        tool: "selvedge",
        findings: report.sorted().into_iter().map(finding).collect(),
        stats: Stats {
            traces: report.stats.traces,
            events: report.stats.events,
            threads: report.stats.threads,
            analyses: &report.stats.analyses,
            bounds: &report.stats.bounds,
        },
    };
    let mut text = serde_json::to_string_pretty(&document).expect("strings and numbers serialise");
    text.push('\n');
    text
}

fn finding(f: &ReportedFinding) -> Finding<'_> {
    Finding {
        id: &f.id,
        kind: f.kind.name(),
        status: f.status.name(),
        verdict: f.verdict.map(selvedge_model::Verdict::name),
        summary: f.summary(),
        analysis: f.analyses.first().copied().unwrap_or(""),
        analyses: &f.analyses,
        subject: &f.subject,
        occurrences: f.occurrences,
        sites: f.places.iter().map(place).collect(),
        schedule: None,
    }
}

fn place(p: &ReportedPlace) -> Place<'_> {
    let frame = p.site.frame();
    Place {
        site: p.site.to_string(),
        file: frame.map(|f| &*f.file),
        line: frame.map(|f| f.line).filter(|&n| n > 0),
        column: frame.map(|f| f.column).filter(|&n| n > 0),
        function: frame.map(|f| &*f.function).filter(|n| !n.is_empty()),
        thread: &p.thread,
        role: p.role.name,
        object: p.role.object.as_deref(),
        held: p.held.iter().map(held).collect(),
    }
}

fn held(h: &super::ReportedLock) -> Held<'_> {
    let mode = match h.mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
    };
    Held { lock: &h.name, mode, site: h.site.to_string() }
}
