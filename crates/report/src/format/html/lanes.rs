//! An interleaving as lanes: one column per thread, time downwards.

use super::{Excerpts, excerpt};
use crate::interleaving::Weight;
use crate::layout::place;
use crate::{Chance, Elided, Interleaving, Row, Sources, words};

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
    /// The number of the row; `None` for one that another row stands for.
    pub(super) number: Option<usize>,
    /// `None` for a row that stands for others.
    pub(super) lane: Option<usize>,
    /// The thread, if it has no lane: all its steps are left out.
    pub(super) thread: Option<String>,
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
    /// The steps that the row stands for.
    pub(super) inner: Vec<Step>,
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
        let mut read = Reader { lanes, threads: &rows.threads, sources, excerpts };
        let step = |(number, row): (usize, &Row)| {
            let chance = rows.margin.get(number).copied().flatten();
            let limits = |c: Chance| format!("{} to {}% with 95% confidence", c.low, c.high);
            Step {
                number: Some(number),
                chance: chance.map(|c| (c.percent, limits(c))),
                inner: match row {
                    Row::Elided(Elided::Rows(rows)) => rows.iter().map(|r| read.step(r)).collect(),
                    _ => Vec::new(),
                },
                parts: parts == Some(number),
                ..read.step(row)
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

    /// How many steps are left out, but can be shown.
    pub(super) fn left_out(&self) -> usize {
        self.rows.iter().map(|r| r.inner.len()).sum()
    }
}

/// Makes steps of rows.
struct Reader<'r, 's> {
    lanes: usize,
    threads: &'r [String],
    sources: &'r mut Sources<'s>,
    excerpts: &'r mut Excerpts,
}

impl Reader<'_, '_> {
    fn step(&mut self, row: &Row) -> Step {
        let told = row.told();
        let (class, mark) = match (told.weight, told.thread) {
            (_, None) => ("elided", ""),
            (Weight::Plain, _) => ("plain", ""),
            (Weight::Critical, _) => ("critical", "▶"),
            (Weight::Stopped, _) => ("stopped", "‖"),
        };
        let (file, line) =
            told.site.and_then(|s| excerpt(s, self.sources, self.excerpts)).unwrap_or_default();
        let without_lane = told.thread.filter(|&t| t >= self.lanes);
        let lane = told.thread.map(|t| if t < self.lanes { t } else { 0 });
        Step {
            number: None,
            lane,
            thread: without_lane.and_then(|t| self.threads.get(t)).cloned(),
            after: self.lanes.saturating_sub(lane.unwrap_or(0) + 1),
            text: told.text,
            class,
            mark,
            place: told.site.map_or_else(String::new, place),
            source: told.site.and_then(|s| self.sources.line(s)).unwrap_or_default().to_owned(),
            chance: None,
            inner: Vec::new(),
            file,
            line,
            parts: false,
            object: object(row),
        }
    }
}

/// The variable that a row is about, with its value afterwards.
fn object(row: &Row) -> Option<(String, String)> {
    let Row::Does { act, values, .. } = row else { return None };
    let value = values.left.as_ref().or(values.found.as_ref())?;
    Some((act.object.clone(), words::scalar(value)))
}
