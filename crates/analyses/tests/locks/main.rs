//! The lock-based analyses against the papers' examples and against brute force.
//!
//! The oracles share no code with the analyses: each is written from the definition, in the most
//! direct way, and only looks at small executions.

mod deadlocks;
mod golden;
mod hybrid;
mod lockset;
mod predictive;
mod program;

use proptest::prelude::*;
use proptest::test_runner::Config;
use selvedge_analyses::Analysis;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockset::Lockset;
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

proptest! {
    #![proptest_config(cases(2000))]

    /// Events in an order that no program has: an analysis may say anything but does not panic.
    #[test]
    fn nonsense_does_no_harm(
        executions in prop::collection::vec(
            program::executions(program::Shape {
                threads: 4, steps: 10, locks: 3, memory: true, signals: true, forks: 2, sites: program::Sites::Few(5),
            }),
            2,
        ),
        keep in any::<u64>(),
    ) {
        let events: Vec<Event> = executions.into_iter().flat_map(|e| e.0).collect();
        let torn: Vec<Event> =
            events.iter().enumerate().filter(|&(i, _)| keep >> (i % 64) & 1 == 1).map(|(_, e)| *e).collect();
        for events in [events, torn] {
            findings(Lockset::default(), &events);
            findings(Hybrid::default(), &events);
            findings(Goodlock::default(), &events);
        }
    }
}
