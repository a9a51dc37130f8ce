//! SARIF 2.1.0, for code scanning services and editors.
//!
//! A finding is a result, its kind is the rule. The interleaving in which it happens is a code flow with one
//! thread flow per thread; `executionOrder` says how the threads' steps follow each other. A finding's
//! identity is its fingerprint, so services recognise it in the next run. Findings that a project suppresses are
//! results with a suppression.

use selvedge_model::{Frame, Kind, Site, Status, Verdict};
use serde_json::{Map, Value, json};

use super::{Format, View};
use crate::interleaving::Weight;
use crate::{Bound, Case, Control, Interleaving, Known, Place, Report, Sources, advice, words};

/// One log with one run.
pub(super) const FORMAT: Format = Format {
    name: "sarif",
    about: "SARIF 2.1.0, for code scanning services and editors",
    exact: false,
    render,
};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

fn render(report: &Report, view: &mut View<'_>) -> String {
    let cases = report.sorted();
    let mut kinds: Vec<Kind> = cases.iter().map(|c| c.kind).collect();
    let gone = report.gone();
    kinds.extend(gone.iter().map(|known| known.kind));
    kinds.extend(report.stats.suppressed.iter().map(|suppressed| suppressed.case.kind));
    kinds.sort_by_key(|k| k.name());
    kinds.dedup();
    let mut results: Vec<Value> = Vec::new();
    for case in &cases {
        let mut result = result(case, &kinds, &mut view.sources);
        if let Some(since) = report.since(case) {
            result["baselineState"] = json!(since.name());
        }
        results.push(result);
    }
    results.extend(gone.iter().map(|known| absent(known, &kinds)));
    for suppressed in &report.stats.suppressed {
        let mut result = result(&suppressed.case, &kinds, &mut view.sources);
        result["suppressions"] = json!([{
            "kind": "external",
            "status": "accepted",
            "justification": format!("the rule {}", suppressed.rule),
        }]);
        results.push(result);
    }
    let notifications = report.stats.bounds.iter().map(Bound::words);
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Selvedge",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": kinds.iter().map(|&k| rule(k)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications
                    .map(|text| json!({ "level": "warning", "message": { "text": text } }))
                    .collect::<Vec<_>>(),
            }],
            "results": results,
        }],
    });
    let mut text = serde_json::to_string_pretty(&log).expect("strings and numbers serialise");
    text.push('\n');
    text
}

fn rule(kind: Kind) -> Value {
    let pascal: String =
        kind.name().split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    json!({
        "id": kind.name(),
        "name": pascal,
        "shortDescription": { "text": words::kind(kind) },
    })
}

fn result(case: &Case, kinds: &[Kind], sources: &mut Sources<'_>) -> Value {
    let mut result = Map::new();
    let title = format!("{} ({})", words::summary(case), words::standing(case));
    let message =
        std::iter::once(title).chain(advice::account(case)).collect::<Vec<_>>().join("\n");
    let mut put = |key: &str, value: Value| result.insert(key.to_owned(), value);
    put("ruleId", json!(case.kind.name()));
    put("ruleIndex", json!(kinds.iter().position(|&k| k == case.kind)));
    put("level", json!(level(case)));
    put("message", json!({ "text": message }));
    put("fingerprints", json!({ "selvedge/1": case.id.to_string() }));
    put("occurrenceCount", json!(case.occurrences.max(1)));
    // The last place is the one at which the finding shows.
    let (last, others) = match case.places.split_last() {
        Some((last, others)) => (Some(last), others),
        None => (None, &[][..]),
    };
    let locations = last.and_then(|p| location(case.kind, p, sources)).into_iter();
    put("locations", locations.collect());
    let related = others.iter().filter_map(|p| location(case.kind, p, sources));
    put("relatedLocations", related.collect());
    let stacks: Vec<Value> = case.places.iter().filter_map(stack).collect();
    if !stacks.is_empty() {
        put("stacks", json!(stacks));
    }
    let control = case.control.as_ref();
    if let Some([first, second]) = control.and_then(Control::beside) {
        // The one that shows the finding comes first: viewers open that.
        let flows = [second, first].map(|(title, rows)| code_flow(&title, rows, sources));
        put("codeFlows", json!(flows));
    } else if let Some(rows) = control.and_then(Control::rows) {
        put("codeFlows", json!([code_flow(&rows.heading(), rows, sources)]));
    }
    put("properties", properties(case));
    Value::Object(result)
}

/// A finding of the baseline that is gone.
fn absent(known: &Known, kinds: &[Kind]) -> Value {
    json!({
        "ruleId": known.kind.name(),
        "ruleIndex": kinds.iter().position(|&k| k == known.kind),
        "level": "none",
        "kind": "notApplicable",
        "message": { "text": known.summary },
        "fingerprints": { "selvedge/1": known.id.to_string() },
        "baselineState": "absent",
    })
}

fn level(case: &Case) -> &'static str {
    match (case.status, case.verdict) {
        (_, Some(Verdict::Benign)) => "note",
        (Status::Confirmed | Status::Observed, _) => "error",
        (Status::Predicted, _) => "warning",
        (Status::Unconfirmed, _) => "note",
    }
}

fn properties(case: &Case) -> Value {
    let control = case.control.as_ref();
    json!({
        "status": case.status.name(),
        "verdict": case.verdict.map(Verdict::name),
        "analyses": case.analyses,
        "subject": words::names(&case.subject),
        "schedule": control.and_then(|c| c.schedule.as_deref()),
    })
}

fn location(kind: Kind, place: &Place, sources: &mut Sources<'_>) -> Option<Value> {
    let mut location = physical(&place.site, sources)?;
    location["message"] = json!({ "text": words::sentence(kind, place) });
    Some(location)
}

/// The place in a file, with its line of source; `None` if the file is not known.
fn physical(site: &Site, sources: &mut Sources<'_>) -> Option<Value> {
    let frame = site.frame().filter(|f| !f.file.is_empty())?;
    let mut location = json!({ "physicalLocation": physical_of(frame) });
    if let Some(line) = sources.line(site) {
        location["physicalLocation"]["region"]["snippet"] = json!({ "text": line });
    }
    if !frame.function.is_empty() {
        location["logicalLocations"] =
            json!([{ "fullyQualifiedName": frame.function, "kind": "function" }]);
    }
    Some(location)
}

fn physical_of(frame: &Frame) -> Value {
    let mut region = json!({ "startLine": frame.line.max(1) });
    if frame.column > 0 {
        region["startColumn"] = json!(frame.column);
    }
    json!({ "artifactLocation": { "uri": uri(&frame.file) }, "region": region })
}

/// A path as a reference: absolute paths get a scheme, and what is no part of a reference is encoded.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(byte));
            }
            b'\\' => uri.push('/'),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn stack(place: &Place) -> Option<Value> {
    let frames = place.frames();
    if frames.len() < 2 {
        return None;
    }
    let frame = |f: &&Frame| {
        let mut location = Map::new();
        if !f.file.is_empty() {
            location.insert("physicalLocation".to_owned(), physical_of(f));
        }
        if !f.function.is_empty() {
            let name = json!([{ "fullyQualifiedName": f.function, "kind": "function" }]);
            location.insert("logicalLocations".to_owned(), name);
        }
        json!({ "location": location })
    };
    let likely = if place.stack_likely { "likely stack" } else { "stack" };
    Some(json!({
        "message": { "text": format!("{likely} of thread {}", place.thread) },
        "frames": frames.iter().map(frame).collect::<Vec<_>>(),
    }))
}

/// One thread flow per thread; the number of the row is the execution order.
fn code_flow(title: &str, rows: &Interleaving, sources: &mut Sources<'_>) -> Value {
    let mut flows: Vec<Vec<Value>> = vec![Vec::new(); rows.threads.len()];
    let mut depth = vec![0; rows.threads.len()];
    for (order, row) in rows.rows.iter().enumerate() {
        let step = row.told();
        let Some(thread) = step.thread.filter(|&t| t < flows.len()) else { continue };
        let mut location =
            step.site.and_then(|s| physical(s, sources)).unwrap_or_else(|| json!({}));
        location["message"] = json!({ "text": step.text });
        let nesting = &mut depth[thread];
        *nesting += step.nests.min(0);
        flows[thread].push(json!({
            "location": location,
            "executionOrder": order + 1,
            "nestingLevel": (*nesting).max(0),
            "importance": if step.weight == Weight::Critical { "essential" } else { "important" },
        }));
        *nesting += step.nests.max(0);
    }
    let flows = flows.into_iter().zip(&rows.threads).filter(|(steps, _)| !steps.is_empty());
    let flows = flows.map(|(steps, thread)| {
        json!({
            "id": thread,
            "message": { "text": format!("thread {thread}") },
            "locations": steps,
        })
    });
    json!({
        "message": { "text": title },
        "threadFlows": flows.collect::<Vec<_>>(),
    })
}
