//! The papers' examples and our own, as text traces that say what is to be found in them.
//!
//! A line `#= NAME: …` gives the findings of an analysis: what each is about and at which sites, in order,
//! with `;` between findings.

use std::path::Path;

use selvedge_analyses::Analysis;
use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::lockregions::LockRegions;
use selvedge_analyses::singletrack::{Filtered, SingleTrack};
use selvedge_analyses::velodrome::Velodrome;
use selvedge_analyses::views::Views;
use selvedge_model::trace::parse;
use selvedge_model::{Finding, Findings, RegionKind, Subject, Symbols};

fn analysis(name: &str) -> Box<dyn Analysis> {
    match name {
        "determinism" => Box::new(SingleTrack::new()),
        "filtered determinism" => Box::new(Filtered::default()),
        "determinism regions as atomic" => Box::new(AeroDrome::of(RegionKind::Deterministic)),
        "atomicity" => Box::new(AeroDrome::new()),
        "atomicity of locked code" => Box::new(LockRegions::new(AeroDrome::new())),
        "reduction of locked code" => Box::new(LockRegions::new(Atomizer::new())),
        "velodrome" => Box::new(Velodrome::new()),
        "reduction" => Box::new(Atomizer::new()),
        "views" => Box::new(Views::new()),
        other => panic!("{other} is no analysis"),
    }
}

fn shown(finding: &Finding, symbols: &Symbols) -> String {
    let subject = match &finding.subject {
        Subject::Memory(range) => symbols.variable(*range),
        Subject::Locks(locks) => symbols.lock(locks[0]),
        Subject::Region(region) if region.acquisition().is_some() => "locked".to_owned(),
        Subject::Region(region) => symbols.region(*region).expect("it has a name").name.to_string(),
        Subject::Value { block, name } => format!("{block} {name}"),
        Subject::Observed(names) => names.join(" "),
        Subject::Misused(misuse, _) => format!("{misuse:?}"),
        Subject::Program(failure) => failure.signature(),
    };
    let sites: Vec<String> =
        finding.places.iter().map(|p| symbols.site(p.site).to_string()).collect();
    format!("{subject} @ {}", sites.join(" "))
}

/// What is found, with sites, or only the subjects if the expectation names no sites.
fn found(name: &str, text: &str, expected: &str) -> String {
    let (events, symbols) = parse(text).expect("a valid trace");
    let mut analysis = analysis(name);
    let mut out = Findings::default();
    analysis.on_events(&events, &mut out);
    analysis.finish(&mut out);
    let mut all: Vec<String> = out.iter().map(|f| shown(f, &symbols)).collect();
    if !expected.contains('@') {
        all.iter_mut().for_each(|f| f.truncate(f.find(" @").unwrap_or(f.len())));
        all.dedup();
    }
    if all.is_empty() { "none".into() } else { all.join("; ") }
}

#[test]
fn traces_have_the_verdicts_that_they_say() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/noninterference");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for entry in std::fs::read_dir(directory).expect("the traces are there") {
        let path = entry.expect("it can be listed").path();
        let text = std::fs::read_to_string(&path).expect("it can be read");
        for line in text.lines().filter_map(|l| l.strip_prefix("#= ")) {
            let (name, expected) = line.split_once(": ").expect("an analysis and what it finds");
            let found = found(name, &text, expected);
            checked += 1;
            if found != expected {
                let file = path.file_name().expect("it has a name").to_string_lossy();
                wrong.push(format!("{file}: {name}: expected {expected}, found {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 40, "only {checked} expectations");
}
