//! The analyses that a check can run, by name.

use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;

/// What runs if nothing is said.
pub(crate) const DEFAULT: &[&str] = &["races"];

/// A new instance of an analysis.
pub(crate) fn by_name(name: &str) -> Option<Box<dyn Analysis>> {
    match name {
        "races" => Some(Box::new(FastTrack::new())),
        _ => None,
    }
}

/// All names.
pub(crate) fn names() -> Vec<&'static str> {
    DEFAULT.to_vec()
}
