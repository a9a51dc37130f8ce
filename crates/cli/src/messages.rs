//! The words that introduce errors and warnings.

use anstyle::{AnsiColor, Style};

/// The word that introduces a failure.
pub(crate) fn error_label() -> String {
    label("error", AnsiColor::Red)
}

/// The word that introduces something that went less than well.
pub(crate) fn warning_label() -> String {
    label("warning", AnsiColor::Yellow)
}

fn label(word: &str, color: AnsiColor) -> String {
    let style = Style::new().bold().fg_color(Some(color.into()));
    format!("{style}{word}{style:#}")
}
