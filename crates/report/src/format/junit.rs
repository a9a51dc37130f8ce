//! JUnit's XML, which every continuous integration service shows: one test case per finding.
//!
//! Observed and confirmed findings are failures. Predictions are skipped tests, so that they are listed and
//! do not fail a build. A report without findings is one test that passed.

use std::fmt::Write;

use selvedge_model::{Status, Verdict};

use super::{Format, View};
use crate::{Case, Report, advice, words};

/// One document.
pub(super) const FORMAT: Format = Format {
    name: "junit",
    about: "JUnit XML, for continuous integration services",
    exact: false,
    render,
};

fn render(report: &Report, _: &mut View<'_>) -> String {
    let cases = report.sorted();
    let failures = cases.iter().filter(|c| is_failure(c)).count();
    let skipped = cases.len() - failures;
    let tests = cases.len().max(1);
    let seconds = report.stats.control.as_ref().map_or(0.0, |c| c.seconds);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!(
        "name=\"selvedge\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\""
    );
    let _ = writeln!(xml, "<testsuites {counts}>\n  <testsuite {counts}>");
    if cases.is_empty() {
        let name = format!("nothing found by {}", report.stats.analyses.join(", "));
        let _ = writeln!(xml, "    <testcase classname=\"selvedge\" name=\"{}\"/>", text(&name));
    }
    for case in cases {
        write_case(&mut xml, case);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn is_failure(case: &Case) -> bool {
    case.status >= Status::Observed && case.verdict != Some(Verdict::Benign)
}

fn write_case(xml: &mut String, case: &Case) {
    let summary = words::summary(case);
    let frame = case.places.iter().rev().find_map(|p| p.site.frame());
    let at = frame.filter(|f| !f.file.is_empty()).map_or(String::new(), |f| {
        format!(" file=\"{}\" line=\"{}\"", text(&f.file), f.line.max(1))
    });
    let name = format!("{} ({})", summary, case.id);
    let _ = writeln!(
        xml,
        "    <testcase classname=\"selvedge.{}\" name=\"{}\"{at}>",
        case.kind.name(),
        text(&name)
    );
    let message = text(&format!("{summary} ({})", words::standing(case)));
    if is_failure(case) {
        let kind = case.kind.name();
        let _ = writeln!(
            xml,
            "      <failure type=\"{kind}\" message=\"{message}\">{}</failure>",
            text(&advice::account(case).join("\n"))
        );
    } else {
        let _ = writeln!(xml, "      <skipped message=\"{message}\"/>");
        let _ = writeln!(
            xml,
            "      <system-out>{}</system-out>",
            text(&advice::account(case).join("\n"))
        );
    }
    xml.push_str("    </testcase>\n");
}

/// Text of an element or attribute. Control characters are escaped before; XML allows none of them.
fn text(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '&' => xml.push_str("&amp;"),
            '"' => xml.push_str("&quot;"),
            '\'' => xml.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            c => xml.push(c),
        }
    }
    xml
}
