//! GitHub's workflow commands: one annotation per finding, at its last place.

use selvedge_model::{Status, Verdict};

use super::{Format, View};
use crate::{Case, Report, advice, words};

/// One command a line.
pub(super) const FORMAT: Format = Format {
    name: "github",
    about: "Annotations of a pull request, by GitHub's workflow commands",
    exact: false,
    render,
};

fn render(report: &Report, view: &mut View<'_>) -> String {
    let cases = report.sorted();
    let shown = cases.iter().filter(|c| view.all || c.status != Status::Unconfirmed);
    shown.map(|case| annotation(case)).collect()
}

fn annotation(case: &Case) -> String {
    let command = match (case.status, case.verdict) {
        (_, Some(Verdict::Benign)) => "notice",
        (Status::Confirmed | Status::Observed, _) => "error",
        (Status::Predicted | Status::Unconfirmed, _) => "warning",
    };
    let mut properties = Vec::new();
    let frame = case.places.iter().rev().find_map(|p| p.site.frame());
    if let Some(frame) = frame.filter(|f| !f.file.is_empty()) {
        properties.push(format!("file={}", property(&frame.file)));
        properties.push(format!("line={}", frame.line.max(1)));
        if frame.column > 0 {
            properties.push(format!("col={}", frame.column));
        }
    }
    let title = format!("{} ({})", words::summary(case), case.status.name());
    properties.push(format!("title={}", property(&title)));
    format!("::{command} {}::{}\n", properties.join(","), data(&advice::account(case).join("\n")))
}

/// The message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
