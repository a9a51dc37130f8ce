//! The analyses of non-interference: paper examples, and random traces against brute force.

mod atomicity;
mod determinism;
mod generate;
mod golden;
mod oracle;
mod reduction;
mod restart;
mod views;

use selvedge_analyses::Analysis;
use selvedge_model::{Event, Findings};

/// How many random cases to try; `PROPTEST_CASES` overrides the number.
fn cases(usual: u32) -> proptest::test_runner::Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    proptest::test_runner::Config {
        cases: cases.unwrap_or(usual),
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..Default::default()
    }
}

/// The findings of each event that has any, by its index.
fn findings_by_event(
    mut analysis: impl Analysis,
    events: &[Event],
) -> Vec<(usize, Vec<selvedge_model::Finding>)> {
    let mut all = Vec::new();
    for (i, event) in events.iter().enumerate() {
        let mut out = Findings::default();
        analysis.on_event(event, &mut out);
        if !out.is_empty() {
            all.push((i, out.into_iter().collect()));
        }
    }
    all
}

/// An execution as a text trace, for messages.
fn shown(events: &[Event]) -> String {
    let symbols = selvedge_model::Symbols::default();
    let line = |e: &Event| {
        let op = selvedge_model::trace::text::show(&e.op, &symbols);
        format!("{}: T{} {op}\n", e.site.0, e.thread.0)
    };
    events.iter().map(line).collect()
}
