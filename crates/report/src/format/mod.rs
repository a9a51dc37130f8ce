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

use crate::{Report, Sources, escape};

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
