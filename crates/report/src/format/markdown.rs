//! Markdown, for the summary of a job or a comment on a pull request.

use std::fmt::Write;

use super::{Format, View};
use crate::words;
use crate::{Bound, Case, Report, Sources, advice, layout};

/// A table of the findings, then each of them.
pub(super) const FORMAT: Format = Format {
    name: "markdown",
    about: "Markdown, for the summary of a job or a pull request",
    exact: false,
    render,
};

/// How wide interleavings are.
const WIDTH: usize = 110;

fn render(report: &Report, view: &mut View<'_>) -> String {
    let (shown, unlisted) = super::listed(report, view.all);
    let mut text = String::from("## Selvedge\n\n");
    if shown.is_empty() {
        let _ = writeln!(text, "Nothing found, by {}.", report.stats.analyses.join(", "));
    } else {
        text.push_str("| finding | status | where | id |\n| --- | --- | --- | --- |\n");
    }
    for case in &shown {
        let sites: Vec<String> = case.places.iter().map(|p| code(&p.site.to_string())).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            plain(&words::summary(case)),
            words::standing(case),
            sites.join("<br>"),
            code(&case.id.to_string()),
        );
    }
    if let Some(line) = unlisted {
        let _ = writeln!(text, "\n{}.", plain(&line));
    }
    let mut changes = report.changes().into_iter();
    if let Some(counts) = changes.next() {
        let _ = writeln!(text, "\nSince the baseline: {}.\n", plain(&counts));
    }
    for line in changes {
        let _ = writeln!(text, "- {}", plain(&line));
    }
    for case in shown {
        write_case(&mut text, case, &mut view.sources);
    }
    for bound in report.stats.bounds.iter().map(Bound::words) {
        let _ = writeln!(text, "\n> **warning**: {}", plain(&bound));
    }
    text
}

fn write_case(text: &mut String, case: &Case, sources: &mut Sources<'_>) {
    let _ = writeln!(
        text,
        "\n<details><summary>{} ({})</summary>\n",
        html(&words::summary(case)),
        words::standing(case)
    );
    for place in &case.places {
        let _ = writeln!(
            text,
            "- {}: {}",
            code(&place.site.to_string()),
            plain(&words::sentence(case.kind, place))
        );
        if let Some(line) = sources.line(&place.site) {
            let _ = writeln!(text, "  {}", fenced(line, "  "));
        }
    }
    let notes = case.notes.iter().map(words::note);
    let why = advice::why(case).map(str::to_owned);
    for line in notes.chain(why).chain(advice::missing(case)) {
        let _ = writeln!(text, "\n{}", plain(&line));
    }
    if let Some(control) = &case.control {
        for line in words::outcomes(&control.orders) {
            let _ = writeln!(text, "\n{}", plain(&line));
        }
        if let Some(rows) = control.rows() {
            let lines = layout(rows, sources, WIDTH);
            let lines: Vec<String> =
                lines.iter().map(|l| l.iter().map(|s| s.text.as_str()).collect()).collect();
            let _ =
                writeln!(text, "\n{}\n\n{}", plain(&rows.heading()), fenced(&lines.join("\n"), ""));
        }
        if control.schedule.is_some() {
            let _ = writeln!(text, "\n{}", code(&format!("selvedge replay {}", case.id)));
        }
    }
    text.push_str("\n</details>\n");
}

/// A block of code, in a fence that is longer than any in the text.
fn fenced(text: &str, indent: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    let body = text.replace('\n', &format!("\n{indent}"));
    format!("{fence}text\n{indent}{body}\n{indent}{fence}")
}

/// Code within a line.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let text = text.replace('\n', " ").replace('|', "\\|");
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Text in which nothing is markup, except that names in backquotes stay code.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let quoted = text.matches('`').count().is_multiple_of(2);
    let mut in_code = false;
    for c in text.chars() {
        match c {
            '`' if quoted => {
                in_code = !in_code;
                out.push(c);
            }
            '\n' => out.push(' '),
            '|' => out.push_str("\\|"),
            c if in_code => out.push(c),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '~' | '$' | '@' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Text of an HTML element.
fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
