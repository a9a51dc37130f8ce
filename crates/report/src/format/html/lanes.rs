//! An interleaving as lanes: one column per thread, time downwards.

use super::{Excerpts, excerpt};
use crate::interleaving::Weight;
use crate::layout::place;
use crate::{Elided, Interleaving, Row, Sources, words};

pub(super) struct Lanes {
    pub(super) heading: String,
    pub(super) threads: Vec<String>,
    pub(super) rows: Vec<Step>,
    /// Whether rows say how likely the finding is from them on.
    pub(super) margin: bool,
    /// Which row hands something to which, by number.
    pub(super) arrows: Vec<(usize, usize)>,
}

pub(super) struct Step {
    pub(super) number: usize,
    /// `None` for steps that are left out.
    pub(super) lane: Option<usize>,
    /// How many lanes come after it.
    pub(super) after: usize,
    pub(super) text: String,
    /// What it is to the finding, for the style.
    pub(super) class: &'static str,
    pub(super) mark: &'static str,
    pub(super) place: String,
    pub(super) source: String,
    /// How likely the finding is from here on, and within which limits.
    pub(super) chance: Option<(u8, String)>,
    /// The steps that are left out here: thread, what it does, where.
    pub(super) hidden: Vec<(String, String, String)>,
    /// Where the pane finds the source around it.
    pub(super) file: String,
    pub(super) line: u32,
    /// Whether the execution that it is compared with goes otherwise from here on.
    pub(super) parts: bool,
    /// The variable that it accesses, and the value of the variable afterwards.
    pub(super) object: Option<(String, String)>,
}

impl Lanes {
    /// `parts` is the row from which on another execution goes otherwise.
    pub(super) fn new(
        rows: &Interleaving,
        parts: Option<usize>,
        sources: &mut Sources<'_>,
        excerpts: &mut Excerpts,
    ) -> Lanes {
        let lanes = rows.lanes();
        let step = |(number, row): (usize, &Row)| {
            let told = row.told();
            let (class, mark) = match (told.weight, told.thread) {
                (_, None) => ("elided", ""),
                (Weight::Plain, _) => ("plain", ""),
                (Weight::Critical, _) => ("critical", "▶"),
                (Weight::Stopped, _) => ("stopped", "‖"),
            };
            let (file, line) =
                told.site.and_then(|s| excerpt(s, sources, excerpts)).unwrap_or_default();
            let lane = told.thread.map(|t| t.min(lanes.saturating_sub(1)));
            let chance = rows.margin.get(number).copied().flatten();
            Step {
                chance: chance
                    .map(|c| (c.percent, format!("{} to {}% with 95% confidence", c.low, c.high))),
                hidden: hidden(row, &rows.threads),
                parts: parts == Some(number),
                object: object(row),
                number,
                lane,
                after: lanes.saturating_sub(lane.unwrap_or(0) + 1),
                text: told.text,
                class,
                mark,
                place: told.site.map_or_else(String::new, place),
                source: told.site.and_then(|s| sources.line(s)).unwrap_or_default().to_owned(),
                file,
                line,
            }
        };
        Lanes {
            heading: rows.heading(),
            threads: rows.threads[..lanes].to_vec(),
            margin: !rows.margin.is_empty(),
            rows: rows.rows.iter().enumerate().map(step).collect(),
            arrows: rows.arrows(),
        }
    }
}

/// The variable that a row is about, with its value afterwards.
fn object(row: &Row) -> Option<(String, String)> {
    let Row::Does { act, values, .. } = row else { return None };
    let value = values.left.as_ref().or(values.found.as_ref())?;
    Some((act.object.clone(), words::scalar(value)))
}

/// The steps that a row stands for.
fn hidden(row: &Row, threads: &[String]) -> Vec<(String, String, String)> {
    let Row::Elided(Elided::Rows(rows)) = row else { return Vec::new() };
    let step = |row: &Row| {
        let told = row.told();
        let thread = told.thread.and_then(|t| threads.get(t)).cloned().unwrap_or_default();
        (thread, told.text, told.site.map_or_else(String::new, place))
    };
    rows.iter().map(step).collect()
}
