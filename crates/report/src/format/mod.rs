//! The formats: each is one file that ends in a string, and one line in [`FORMATS`].

mod json;
mod text;

pub use text::interleaving;

use crate::{Report, Sources};

/// How a report can be shown.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What users call it.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Shows a report.
    pub render: fn(&Report, &mut View<'_>) -> String,
}

/// All formats, the default first.
pub const FORMATS: &[Format] = &[text::FORMAT, json::FORMAT];

impl Format {
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
    /// Every finding in full, also those that are like others.
    pub all: bool,
}
