//! The lock-based analyses against the papers' examples and against brute force.
//!
//! The oracles share no code with the analyses: each is written from the definition, in the most
//! direct way, and only looks at small executions.

mod deadlocks;
mod golden;
mod hybrid;
mod lockset;
mod program;

use proptest::test_runner::Config;
use selvedge_analyses::Analysis;
use selvedge_model::{Event, Findings, SiteId};

/// What an analysis finds in an execution.
fn findings(mut analysis: impl Analysis, events: &[Event]) -> Findings {
    let mut out = Findings::default();
    for event in events {
        analysis.on_event(event, &mut out);
    }
    analysis.finish(&mut out);
    assert_eq!(analysis.bound(), None);
    out
}

/// The sites of each finding, sorted.
fn sites(findings: &Findings) -> std::collections::BTreeSet<Vec<SiteId>> {
    findings
        .iter()
        .map(|f| {
            let mut sites: Vec<SiteId> = f.places.iter().map(|p| p.site).collect();
            sites.sort_unstable();
            sites
        })
        .collect()
}

fn cases(n: u32) -> Config {
    Config { failure_persistence: None, ..Config::with_cases(n) }
}
