//! An interleaving for programs: the steps with what each finds and leaves.

use serde::Serialize;

use selvedge_model::{Scalar, Values};

use crate::interleaving::Weight;
use crate::{Interleaving, Row, words};

#[derive(Serialize)]
pub(super) struct Shown<'a> {
    preemptions: usize,
    threads: &'a [String],
    steps: Vec<Step<'a>>,
}

/// One step. Steps that are left out are one step without a thread.
#[derive(Serialize)]
struct Step<'a> {
    thread: Option<&'a str>,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    does: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    /// What an access found.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<String>,
    /// What a write left.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    /// Whether it makes the finding.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    critical: bool,
    /// Whether the thread is stopped here although it could go on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
    /// How many executions fail that begin like this one up to here, if that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    fails: Option<Fails>,
}

/// A share in percent, with the limits of 95% confidence.
#[derive(Serialize)]
struct Fails {
    percent: u8,
    low: u8,
    high: u8,
}

pub(super) fn shown(rows: &Interleaving) -> Shown<'_> {
    Shown {
        preemptions: rows.preemptions,
        threads: &rows.threads,
        steps: rows.rows.iter().enumerate().map(|(i, row)| step(row, i, rows)).collect(),
    }
}

fn step<'a>(row: &'a Row, number: usize, rows: &'a Interleaving) -> Step<'a> {
    let told = row.told();
    let nothing = Values::default();
    let (does, object, values) = match row {
        Row::Does { act, values, .. } => {
            (Some(act.verb.word()), Some(act.object.as_str()).filter(|o| !o.is_empty()), values)
        }
        Row::Stopped { .. } | Row::Waits { .. } | Row::Ends { .. } | Row::Elided(_) => {
            (None, None, &nothing)
        }
    };
    let text = |value: &Option<Scalar>| value.as_ref().map(words::scalar);
    Step {
        thread: told.thread.and_then(|t| rows.threads.get(t)).map(String::as_str),
        does,
        object,
        found: text(&values.found),
        left: text(&values.left),
        site: told.site.map(ToString::to_string),
        critical: told.weight == Weight::Critical,
        stopped: told.weight == Weight::Stopped,
        fails: rows.margin.get(number).copied().flatten().map(|c| Fails {
            percent: c.percent,
            low: c.low,
            high: c.high,
        }),
        text: told.text,
    }
}
