//! Chrome's trace JSON, which Perfetto and other timeline viewers open: one process per finding with an
//! interleaving, one track per thread, one slice per step.
//!
//! Time is the number of the step: an execution under control has no other. Arrows lead from what a thread
//! releases, signals, starts or writes to the next step of another thread that takes it.

use serde_json::{Value, json};

use super::{Format, View};
use crate::interleaving::Weight;
use crate::{Case, Elided, Interleaving, Report, Row, words};

/// One document.
pub(super) const FORMAT: Format = Format {
    name: "perfetto",
    about: "Interleavings as a timeline, for Perfetto and Chrome's tracing page",
    exact: false,
    render,
};

/// The length of a step, in microseconds.
const STEP: usize = 10;

fn render(report: &Report, view: &mut View<'_>) -> String {
    let mut events: Vec<Value> = Vec::new();
    for (process, case) in report.sorted().into_iter().enumerate() {
        if let Some(rows) = case.control.as_ref().and_then(|c| c.rows()) {
            timeline(process + 1, case, rows, view, &mut events);
        }
    }
    let document = json!({
        "displayTimeUnit": "ms",
        "traceEvents": events,
        "otherData": { "tool": "selvedge", "version": env!("CARGO_PKG_VERSION") },
    });
    let mut text = serde_json::to_string(&document).expect("strings and numbers serialise");
    text.push('\n');
    text
}

fn timeline(
    process: usize,
    case: &Case,
    rows: &Interleaving,
    view: &mut View<'_>,
    events: &mut Vec<Value>,
) {
    let name = format!("{} ({})", words::summary(case), case.id);
    events.push(json!({ "ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": { "name": name } }));
    for (thread, name) in rows.threads.iter().enumerate() {
        let args = json!({ "name": name });
        events.push(json!({ "ph": "M", "name": "thread_name", "pid": process, "tid": thread + 1, "args": args }));
        let args = json!({ "sort_index": thread });
        events.push(json!({ "ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread + 1, "args": args }));
    }
    let mut now = 0;
    let mut starts: Vec<usize> = Vec::new();
    let steps = rows.flat();
    for row in &steps {
        starts.push(now);
        let told = row.told();
        if let (Some(thread), Row::Stopped { .. }) = (told.thread, *row) {
            events.push(json!({
                "ph": "i", "s": "t", "name": told.text, "pid": process, "tid": thread + 1, "ts": now,
            }));
            continue;
        }
        let Some(thread) = told.thread else {
            // Steps of which only the number is known take the time of one. Others follow.
            now += if let Row::Elided(Elided::Count(_)) = row { STEP } else { 0 };
            continue;
        };
        let source = told.site.and_then(|s| view.sources.line(s)).unwrap_or_default();
        events.push(json!({
            "ph": "X",
            "name": told.text,
            "cat": if told.weight == Weight::Critical { "critical" } else { "step" },
            "pid": process,
            "tid": thread + 1,
            "ts": now,
            "dur": STEP,
            "args": { "site": told.site.map(ToString::to_string), "source": source },
        }));
        now += STEP;
    }
    for (number, (from, to)) in rows.arrows().into_iter().enumerate() {
        let id = process << 32 | number;
        let mut end = |phase: &str, row: usize| {
            let Some(thread) = steps[row].told().thread else { return };
            let mut event = json!({
                "ph": phase, "id": id, "name": "order", "cat": "order",
                "pid": process, "tid": thread + 1, "ts": starts[row] + STEP / 2,
            });
            if phase == "f" {
                event["bp"] = json!("e");
            }
            events.push(event);
        };
        end("s", from);
        end("f", to);
    }
}
