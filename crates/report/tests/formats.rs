//! The formats that other tools read, read by such tools, and texts that try to act on them.

mod common;

use std::collections::BTreeMap;

use common::{cases, shown};
use selvedge_model::{Frame, Scalar, Site, Status};
use selvedge_report::{
    Baseline, Case, Compared, FORMATS, Format, How, Known, Memory, Outcome, Report, Row, Sources,
    Stats, Subject, View, Which,
};

#[test]
fn sarif_is_valid_by_the_published_schema() {
    let metadata = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let with_schema = packages.iter().find(|p| p["name"] == "serde-sarif").expect("a dependency");
    let manifest = std::path::Path::new(with_schema["manifest_path"].as_str().expect("a path"));
    let schema = std::fs::read_to_string(manifest.with_file_name("src/schema.json"))
        .expect("the package has the schema");
    let mut schema: serde_json::Value = serde_json::from_str(&schema).expect("the schema is JSON");
    // The published pattern of languages has an unbalanced bracket and is no regular expression.
    for owner in ["run", "toolComponent"] {
        let language = schema["definitions"][owner]["properties"]["language"].as_object_mut();
        language.expect("a property").remove("pattern");
    }
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    for text in [shown("sarif", 80), hostile("sarif"), empty("sarif")] {
        let log = serde_json::from_str(&text).expect("the log is JSON");
        let errors: Vec<String> =
            validator.iter_errors(&log).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

#[test]
fn sarif_has_a_thread_flow_for_each_thread_in_execution_order() {
    let log: serde_json::Value = serde_json::from_str(&shown("sarif", 80)).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), cases().len());
    let flows = results.iter().find_map(|r| r["codeFlows"][0]["threadFlows"].as_array());
    let flows = flows.expect("the race has an interleaving");
    let orders: Vec<Vec<u64>> = flows
        .iter()
        .map(|f| f["locations"].as_array().expect("locations"))
        .map(|l| l.iter().filter_map(|s| s["executionOrder"].as_u64()).collect())
        .collect();
    assert_eq!(orders, [vec![1, 4], vec![2, 5]]);
}

/// The states of a baseline: what the baseline has, too, what it does not have, and what only it has.
#[test]
fn a_baseline_tells_new_from_known_and_gone() {
    let all = cases();
    let of = |cases: &[Case]| Report { cases: cases.to_vec(), ..Report::default() };
    let known: Vec<usize> =
        (0..all.len()).filter(|&i| all[i].status != Status::Unconfirmed).take(3).collect();
    let pick = |which: &[usize]| which.iter().map(|&i| all[i].clone()).collect::<Vec<_>>();
    let mut report = of(&pick(&known[1..]));
    report.baseline = Some(Baseline::of(&of(&pick(&known[..2]))));
    let show = |format: &str| {
        let mut view =
            View { sources: Sources::new(|_| None), width: 100, wraps: false, all: true };
        Format::named(format).expect("a format").show(&report, &mut view)
    };
    let log: serde_json::Value = serde_json::from_str(&show("sarif")).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let states: BTreeMap<String, String> = results
        .iter()
        .map(|r| (r["fingerprints"]["selvedge/1"].to_string(), r["baselineState"].to_string()))
        .collect();
    let state = |i: usize| states[&format!("\"{}\"", all[known[i]].id)].as_str();
    assert_eq!([state(0), state(1), state(2)], ["\"absent\"", "\"unchanged\"", "\"new\""]);
    let document: serde_json::Value = serde_json::from_str(&show("json")).expect("JSON");
    assert_eq!(document["gone"][0]["id"], all[known[0]].id.to_string());
    for format in ["text", "markdown"] {
        let text = show(format);
        assert!(text.contains("1 new, 1 still there, 1 gone"), "{format}: {text}");
    }
}

#[test]
fn the_formats_of_services() {
    insta::assert_snapshot!("github", shown("github", 80));
    insta::assert_snapshot!("markdown", shown("markdown", 80));
    insta::assert_snapshot!("junit", shown("junit", 80));
}

#[test]
fn junit_is_read_by_a_parser_of_others() {
    for (text, tests, failures) in [
        (shown("junit", 80), cases().len(), None),
        (hostile("junit"), 1, Some(1)),
        (empty("junit"), 1, Some(0)),
    ] {
        let document = roxmltree::Document::parse(&text).expect("well-formed XML");
        let named = |name: &'static str| {
            document.descendants().filter(move |n| n.has_tag_name(name)).collect::<Vec<_>>()
        };
        assert_eq!(named("testcase").len(), tests);
        let suite = &named("testsuite")[0];
        let counted = |what: &str| suite.attribute(what).and_then(|n| n.parse::<usize>().ok());
        assert_eq!(counted("tests"), Some(tests));
        assert_eq!(counted("failures"), Some(named("failure").len()));
        assert_eq!(counted("skipped"), Some(named("skipped").len()));
        assert!(failures.is_none_or(|n| n == named("failure").len()));
    }
}

/// The rules of Chrome's trace format that viewers depend on: every event has a phase, a process and a
/// thread; slices have a time and a length; each arrow begins inside a slice and ends inside a slice.
#[test]
fn perfetto_timelines_are_complete() {
    let trace: serde_json::Value = serde_json::from_str(&shown("perfetto", 80)).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let of = |phase: &'static str| events.iter().filter(move |e| e["ph"] == phase);
    // Two cases have an interleaving.
    assert_eq!(of("X").count(), 2 * 3, "{events:#?}");
    assert_eq!(of("i").count(), 2);
    for event in events {
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(event["ph"] == "M" || event["ts"].is_u64(), "{event}");
    }
    let inside = |arrow: &serde_json::Value| {
        let at = arrow["ts"].as_u64().expect("a time");
        of("X").any(|slice| {
            let from = slice["ts"].as_u64().expect("a time");
            let until = from + slice["dur"].as_u64().expect("a length");
            slice["tid"] == arrow["tid"] && (from..until).contains(&at)
        })
    };
    assert!(of("s").chain(of("f")).all(inside));
}

/// A race of which every text tries to act on the reader's terminal, page or parser.
fn hostile_report() -> Report {
    let evil = "<script>alert(1)</script>\u{1b}[2J\u{202e}`|*]]>%0A::error::\"'\u{fffe}";
    let long = "x".repeat(1 << 20);
    let mut case = cases().remove(0);
    case.subject = Subject::Memory(Memory::Named(evil.to_owned()));
    case.places[0].thread = format!("{evil}{long}");
    let frame = |file: &str| Frame { file: file.into(), line: 4, column: 5, function: evil.into() };
    case.places[1].site = Site::Source(frame(&format!("{evil}.c")), vec![frame("bank.c")]);
    if let Some(How::Rows(rows)) = case.control.as_mut().and_then(|c| c.how.as_mut()) {
        rows.threads[0] = evil.to_owned();
        if let Row::Does { act, site, values, .. } = &mut rows.rows[0] {
            act.object = evil.to_owned();
            *site = case.places[1].site.clone();
            values.found = Some(Scalar::Text(evil.into(), true));
            values.left = Some(Scalar::Constant(evil.into()));
        }
    }
    if let Some(control) = &mut case.control {
        let rows = control.rows().expect("an interleaving").clone();
        let (outcome, against) = (Outcome::Told(evil.into()), Outcome::Exit(1));
        let which = Some(Which::First { thread: evil.into(), site: case.places[1].site.clone() });
        control.compared = Some(Box::new(Compared { which, outcome, against, rows }));
    }
    let known = Known { id: cases()[1].id, kind: cases()[1].kind, summary: evil.to_owned() };
    let baseline = Some(Baseline { findings: vec![known] });
    Report { cases: vec![case], baseline, ..Report::default() }
}

fn hostile(format: &str) -> String {
    let sources =
        Sources::new(|_| Some("\n\n\nint x; /* \u{1b}[2J\u{202e}</script><script> */\n".into()));
    let mut view = View { sources, width: 100, wraps: false, all: true };
    Format::named(format).expect("a format").show(&hostile_report(), &mut view)
}

fn empty(format: &str) -> String {
    let stats = Stats { analyses: vec!["races".to_owned()], ..Stats::default() };
    let mut view = View { sources: Sources::new(|_| None), width: 100, wraps: false, all: true };
    Format::named(format).expect("a format").show(&Report { stats, ..Report::default() }, &mut view)
}

#[test]
fn texts_of_the_program_cannot_act_on_the_reader() {
    for format in FORMATS {
        let text = hostile(format.name);
        let allowed = |c: char| matches!(c, '\n' | '\t');
        // The colours of the text format are its own.
        let plain = if format.name == "text" { common::strip(&text) } else { text };
        let acting =
            |c: char| c.is_control() && !allowed(c) || ('\u{202a}'..='\u{202e}').contains(&c);
        if format.name == "json" {
            assert!(!plain.contains('\u{1b}'), "JSON escapes control characters itself");
        } else {
            let found = plain.chars().find(|&c| acting(c));
            assert_eq!(found, None, "{}", format.name);
            assert!(plain.len() < 400_000, "{}: {} bytes", format.name, plain.len());
        }
    }
    let page = hostile("markdown");
    let markup = pulldown_cmark::Parser::new(&page).filter_map(|event| match event {
        pulldown_cmark::Event::Html(html) | pulldown_cmark::Event::InlineHtml(html) => Some(html),
        _ => None,
    });
    let tags: Vec<String> = markup.map(|html| html.to_string()).collect();
    assert!(tags.iter().any(|t| t.contains("<details>")), "{tags:?}");
    assert!(!tags.iter().any(|t| t.contains("<script")), "{tags:?}");
    let commands = hostile("github");
    assert_eq!(commands.lines().count(), 1, "{commands}");
}

/// What could not be confirmed is a number in what people read, unless they ask for all of it.
#[test]
fn what_could_not_be_confirmed_is_counted() {
    let all = cases();
    let case = |status| {
        let mut case = all[0].clone();
        case.status = status;
        case
    };
    let mut unlikely = case(Status::Unconfirmed);
    unlikely.places[0].site = Site::parse("unlikely.c:77");
    let report = Report { cases: vec![case(Status::Confirmed), unlikely], ..Report::default() };
    for format in ["text", "markdown", "html"] {
        let show = |all| {
            let sources = Sources::new(|_| None);
            let mut view = View { sources, width: 100, wraps: false, all };
            Format::named(format).expect("a format").show(&report, &mut view)
        };
        let line = "1 prediction could not be confirmed";
        assert!(show(false).contains(line) && !show(false).contains("unlikely.c:77"), "{format}");
        assert!(!show(true).contains(line) && show(true).contains("unlikely.c:77"), "{format}");
    }
}
