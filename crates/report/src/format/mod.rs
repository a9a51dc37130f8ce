//! The formats: each is one file that ends in a string, and one line in [`FORMATS`].

mod github;
mod html;
mod json;
mod junit;
mod markdown;
mod perfetto;
mod sarif;
mod text;

pub use text::interleaving;

use selvedge_model::Status;

use crate::{Case, Report, Sources, escape, words};

/// How a report can be shown.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What users call it.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Whether texts of the program are kept as they are, because a program reads them. For people,
    /// characters that would act on a terminal or a page are shown by their numbers.
    exact: bool,
    render: fn(&Report, &mut View<'_>) -> String,
}

/// All formats, the default first.
pub const FORMATS: &[Format] = &[
    text::FORMAT,
    json::FORMAT,
    html::FORMAT,
    sarif::FORMAT,
    github::FORMAT,
    junit::FORMAT,
    markdown::FORMAT,
    perfetto::FORMAT,
];

impl Format {
    /// Shows a report.
    pub fn show(&self, report: &Report, view: &mut View<'_>) -> String {
        match self.exact {
            true => (self.render)(report, view),
            false => (self.render)(&escape::report(report), view),
        }
    }

    /// The format of a name.
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|f| f.name == name)
    }
}

/// What a format may need besides the report.
pub struct View<'a> {
    /// The program's source.
    pub sources: Sources<'a>,
    /// How wide lines may be.
    pub width: usize,
    /// Notes are wrapped at the width, too: a terminal would break them within words.
    pub wraps: bool,
    /// Every finding in full, also those that are like others.
    pub all: bool,
}

/// The findings that a format for people lists, and a line for the others. Unless `all` are asked for, predictions that
/// controlled executions tried to make happen, or did not come to, are only counted: they say little.
fn listed(report: &Report, all: bool) -> (Vec<&Case>, Option<String>) {
    let is_listed = |case: &&Case| match case.status {
        Status::Confirmed | Status::Observed => true,
        Status::Predicted => all || report.stats.control.is_none(),
        Status::Unconfirmed => all,
    };
    let (listed, counted): (Vec<&Case>, Vec<&Case>) =
        report.sorted().into_iter().partition(is_listed);
    let of = |status| counted.iter().filter(|c| c.status == status).count() as u64;
    let parts: Vec<String> = [
        (of(Status::Unconfirmed), "could not be confirmed"),
        (of(Status::Predicted), "not tried in this time"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{} {what}", words::count(n, "prediction")))
    .collect();
    let line = (!parts.is_empty()).then(|| format!("{} (--all lists them)", parts.join(", ")));
    (listed, line)
}
