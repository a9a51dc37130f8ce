//! The words that introduce errors and warnings, and that name a finding.

use anstyle::{AnsiColor, Style};
use selvedge_report::{Case, escape, words};

/// The word that introduces a failure.
pub(crate) fn error_label() -> String {
    label("error", AnsiColor::Red)
}

/// The word that introduces something that went less than well.
pub(crate) fn warning_label() -> String {
    label("warning", AnsiColor::Yellow)
}

/// What a finding is, and its id.
pub(crate) fn named(case: &Case) -> String {
    format!("{} ({})", escape::harmless(&words::summary(case)), case.id)
}

fn label(word: &str, color: AnsiColor) -> String {
    let style = Style::new().bold().fg_color(Some(color.into()));
    format!("{style}{word}{style:#}")
}
