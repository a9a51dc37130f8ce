//! Reads an earlier report to compare with: our JSON, or our SARIF.

use std::path::Path;

use selvedge_model::{FindingId, Kind, Status};
use selvedge_report::{Baseline, Known};
use serde_json::Value;

use crate::exit::Failure;

/// The findings of a report in a file.
pub(super) fn read(file: &Path) -> Result<Baseline, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Open { path: file.to_owned(), error })?;
    let document: Value = serde_json::from_str(&text).map_err(|e| Failure::Line {
        path: file.to_owned(),
        line: e.line(),
        why: format!("this is neither JSON nor SARIF: {e}"),
    })?;
    parse(&document).ok_or_else(|| {
        Failure::Usage(format!(
            "{}: this is not a report of Selvedge; `selvedge report --format json` writes one",
            file.display()
        ))
    })
}

fn parse(document: &Value) -> Option<Baseline> {
    let findings = if let Some(findings) = document["findings"].as_array() {
        let counts = |f: &&Value| f["status"] != Status::Unconfirmed.name();
        findings.iter().filter(counts).map(finding).collect::<Option<Vec<_>>>()?
    } else {
        let results = document["runs"].as_array()?.iter().flat_map(|run| run["results"].as_array());
        let counts = |r: &&Value| {
            r["baselineState"] != "absent"
                && r["suppressions"].is_null()
                && r["properties"]["status"] != Status::Unconfirmed.name()
        };
        results.flatten().filter(counts).map(result).collect::<Option<Vec<_>>>()?
    };
    Some(Baseline { findings })
}

fn finding(of: &Value) -> Option<Known> {
    known(of["id"].as_str()?, of["summary"].as_str().unwrap_or_default())
}

fn result(of: &Value) -> Option<Known> {
    let message = of["message"]["text"].as_str().unwrap_or_default();
    known(of["fingerprints"]["selvedge/1"].as_str()?, message.lines().next().unwrap_or_default())
}

fn known(id: &str, summary: &str) -> Option<Known> {
    let id: FindingId = id.parse().ok()?;
    let name = id.to_string();
    let kind =
        Kind::ALL.into_iter().find(|k| name.rsplit_once('-').is_some_and(|n| n.0 == k.name()));
    Some(Known { id, kind: kind?, summary: summary.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_formats_are_understood_and_others_are_not() {
        let ids = |document: Value| {
            let findings = parse(&document)?.findings;
            Some(findings.iter().map(|f| f.id.to_string()).collect::<Vec<_>>())
        };
        let (race, hang) = ("data-race-00000000aa", "hang-00000000bb");
        let ours = json!({ "findings": [
            { "id": race, "status": "confirmed", "summary": "s" },
            { "id": hang, "status": "unconfirmed", "summary": "s" },
        ]});
        assert_eq!(ids(ours), Some(vec![race.to_owned()]));
        let result = |id: &str, state: &str| json!({ "fingerprints": { "selvedge/1": id }, "baselineState": state, "message": { "text": "a\nb" } });
        let sarif =
            json!({ "runs": [{ "results": [result(race, "new"), result(hang, "absent")] }] });
        assert_eq!(ids(sarif), Some(vec![race.to_owned()]));
        assert_eq!(ids(json!({ "findings": [{ "id": "something" }] })), None);
        assert_eq!(ids(json!([])), None);
    }
}
