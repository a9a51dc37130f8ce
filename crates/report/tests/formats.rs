//! The formats that other tools read, read by such tools.

mod common;

use std::collections::BTreeMap;

use common::{cases, hostile, shown};
use selvedge_model::{Site, Status, Values};
use selvedge_report::{
    Act, Baseline, Case, Elided, Format, How, Interleaving, Report, Row, Sources, Stats,
    Suppressed, Verb, View,
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
    for text in [shown("sarif", 80), hostile::shown("sarif"), empty("sarif"), suppressed("sarif")] {
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
        (hostile::shown("junit"), 3, Some(3)),
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

/// The rules of Chrome's trace format that viewers depend on, in place of Perfetto's trace processor, which
/// distributions do not have: every event has a phase, a process and a thread; slices have a time and a length, and
/// those of a thread do not overlap; each arrow has a beginning and an end of one number, inside of slices, forwards.
fn timeline(text: &str) -> Vec<serde_json::Value> {
    let trace: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events").clone();
    let time = |e: &serde_json::Value| e["ts"].as_u64().expect("a time");
    let end = |e: &serde_json::Value| time(e) + e["dur"].as_u64().expect("a length");
    let of = |phase: &'static str| events.iter().filter(move |e| e["ph"] == phase);
    for event in &events {
        assert!(["M", "X", "i", "s", "f"].iter().any(|ph| event["ph"] == *ph), "{event}");
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(event["name"].is_string(), "{event}");
        assert!(event["ph"] == "M" || event["ts"].is_u64(), "{event}");
    }
    let same = |a: &serde_json::Value, b: &serde_json::Value| {
        (&a["pid"], &a["tid"]) == (&b["pid"], &b["tid"])
    };
    for slice in of("X") {
        let overlaps = |o: &&serde_json::Value| time(o) < end(slice) && time(slice) < end(o);
        assert_eq!(of("X").filter(|o| same(o, slice)).filter(overlaps).count(), 1, "{slice}");
        let thread = of("M").find(|m| m["name"] == "thread_name" && same(m, slice));
        assert!(thread.is_some_and(|m| m["args"]["name"].is_string()), "{slice}");
    }
    let inside = |arrow: &serde_json::Value| {
        of("X").any(|x| same(x, arrow) && (time(x)..end(x)).contains(&time(arrow)))
    };
    for from in of("s") {
        let to = of("f").filter(|f| f["id"] == from["id"]).collect::<Vec<_>>();
        assert_eq!(to.len(), 1, "{from}");
        assert!(inside(from) && inside(to[0]) && time(from) < time(to[0]), "{from}");
        assert_eq!(to[0]["bp"], "e", "the arrow ends at the slice around it");
    }
    assert_eq!(of("s").count(), of("f").count());
    events
}

#[test]
fn perfetto_timelines_are_complete() {
    let events = timeline(&shown("perfetto", 80));
    let count = |phase: &str| events.iter().filter(|e| e["ph"] == phase).count();
    // Two cases have an interleaving.
    assert_eq!((count("X"), count("i")), (2 * 3, 2), "{events:#?}");
}

#[test]
fn perfetto_timelines_have_arrows_and_the_steps_that_are_left_out() {
    let mut case = cases().remove(0);
    let site = case.places[0].site.clone();
    let does = |thread, verb| Row::Does {
        thread,
        act: Act { verb, object: "vault".into() },
        site: site.clone(),
        critical: false,
        values: Values::default(),
    };
    let rows = vec![
        does(0, Verb::Lock),
        Row::Elided(Elided::Rows(vec![does(0, Verb::Unlock), does(2, Verb::Read)])),
        does(1, Verb::Lock),
    ];
    let threads = ["main", "T1", "T2"].map(str::to_owned).to_vec();
    let rows = Interleaving { threads, rows, ..Interleaving::default() };
    case.control.as_mut().expect("it is confirmed").how = Some(How::Rows(rows));
    let report = Report { cases: vec![case], ..Report::default() };
    let mut view = View { sources: Sources::new(|_| None), width: 100, wraps: false, all: true };
    let events = timeline(&Format::named("perfetto").expect("a format").show(&report, &mut view));
    let names = |phase: &str| {
        let of = events.iter().filter(|e| e["ph"] == phase);
        of.map(|e| e["name"].as_str().expect("a name")).collect::<Vec<_>>()
    };
    assert_eq!(names("X"), ["lock vault", "unlock vault", "read vault", "lock vault"]);
    assert_eq!(names("s"), ["order"]);
}

/// A report all of whose findings are suppressed.
fn suppressed(format: &str) -> String {
    let rule = "race:<bank>".to_owned();
    let suppressed = cases().into_iter().map(|case| Suppressed { case, rule: rule.clone() });
    let mut stats = Stats::default();
    suppressed.for_each(|s| stats.suppress(s));
    let mut view = View { sources: Sources::new(|_| None), width: 100, wraps: false, all: true };
    Format::named(format).expect("a format").show(&Report { stats, ..Report::default() }, &mut view)
}

#[test]
fn suppressed_findings_are_listed_for_programs_only() {
    let log: serde_json::Value = serde_json::from_str(&suppressed("sarif")).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert!(results.iter().all(|r| r["suppressions"][0]["kind"] == "external"), "{log:#}");
    let document: serde_json::Value = serde_json::from_str(&suppressed("json")).expect("JSON");
    assert_eq!(document["findings"], serde_json::json!([]));
    assert_eq!(document["suppressed"][0]["rule"], "race:<bank>");
    assert_eq!(document["suppressed"].as_array().map(Vec::len), Some(results.len()));
    let text = suppressed("text");
    assert!(text.ends_with(&format!("{} findings were suppressed\n", results.len())), "{text}");
}

fn empty(format: &str) -> String {
    let stats = Stats { analyses: vec!["races".to_owned()], ..Stats::default() };
    let mut view = View { sources: Sources::new(|_| None), width: 100, wraps: false, all: true };
    Format::named(format).expect("a format").show(&Report { stats, ..Report::default() }, &mut view)
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
