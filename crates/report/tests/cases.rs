//! Cases of every kind: what is stored comes back, and what is said of them.

mod common;

use common::*;
use selvedge_model as model;
use selvedge_model::CondId;
use selvedge_report::*;

#[test]
fn every_case_comes_back_as_it_was_stored() {
    for case in cases() {
        let stored = serde_json::to_string(&case).expect("cases serialise");
        assert_eq!(serde_json::from_str::<Case>(&stored).expect(&stored), case);
    }
    let bounds = bounds();
    let stored = serde_json::to_string(&bounds).expect("bounds serialise");
    assert_eq!(serde_json::from_str::<Vec<Bound>>(&stored).expect(&stored), bounds);
    let remarks = remarks();
    let stored = serde_json::to_string(&remarks).expect("remarks serialise");
    assert_eq!(serde_json::from_str::<Vec<Remark>>(&stored).expect(&stored), remarks);
}

#[test]
fn text_for_people() {
    insta::assert_snapshot!("text", shown("text", 120));
    let narrow = shown("text", 80);
    let how = narrow.split("how it happens").nth(1).and_then(|rest| rest.split("\n\n").next());
    insta::assert_snapshot!("how_it_happens_in_80_columns", how.expect("an interleaving"));
}

#[test]
fn json_for_programs() {
    insta::assert_snapshot!("json", shown("json", 80));
}

#[test]
fn a_condition_without_a_name_is_not_named() {
    let symbols = symbols();
    let unnamed = selvedge_report::Role::new(model::Role::Await(CondId(1)), &symbols);
    assert_eq!(unnamed, selvedge_report::Role::Sleep);
}

#[test]
fn what_the_version_before_stored_is_read() {
    let old: Vec<old::Finding> =
        serde_json::from_str(include_str!("fixtures/store-2.json")).expect("the old form");
    let report = Report { cases: old.into_iter().map(Case::from).collect(), ..Report::default() };
    for case in &report.cases {
        let stored = serde_json::to_string(case).expect("cases serialise");
        assert_eq!(&serde_json::from_str::<Case>(&stored).expect(&stored), case);
    }
    let mut view = View { sources: Sources::new(|_| None), width: 100, wraps: false, all: true };
    for format in ["text", "json"] {
        let text = Format::named(format).expect("a format").show(&report, &mut view);
        insta::assert_snapshot!(format!("old_{format}"), strip(&text));
    }
    let aims: Vec<bool> = report.cases.iter().map(|c| c.aim().is_some()).collect();
    assert_eq!(aims, [true, true, false, false], "races and splits are watched for again");
}

#[test]
fn a_crash_of_the_version_before_keeps_its_id_and_is_replayed_by_its_signal() {
    let mut old: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("fixtures/store-2.json")).expect("the old form");
    let mut crash = old.remove(3);
    crash["id"] = "crash-892748cfbe".into();
    crash["subject"] = serde_json::json!(["SIGSEGV (segmentation fault)"]);
    let old: old::Finding = serde_json::from_value(crash).expect("the old form");
    let case = Case::from(old);
    assert_eq!(case.id.to_string(), "crash-892748cfbe");
    assert_eq!(case.failure(), model::Failure::crash(11).id(model::Kind::Crash));
}

/// An order that fails may do so for another reason than the finding; that is not "nothing wrong".
#[test]
fn an_order_that_fails_is_not_called_right() {
    let told = |outcome: &Outcome, harm| {
        let which = Which::Only;
        words::led_to(&Order { which, harm, outcome: outcome.clone(), schedule: String::new() })
    };
    let failed = Outcome::Failed {
        kind: model::Kind::Assertion,
        subject: Subject::Program(Failure::Message("x == 1".into())),
    };
    let right = told(&Outcome::Exit(0), Harm::Nothing);
    assert_eq!(right, "nothing wrong (exit code 0)");
    for outcome in [failed, Outcome::Undecided] {
        for harm in [Harm::Unknown, Harm::Nothing, Harm::Failure] {
            assert!(!told(&outcome, harm).contains("nothing wrong"), "{outcome:?}");
        }
    }
}

#[test]
fn orders_that_led_to_the_same_are_told_once() {
    let order = |thread: &str, place: &str, code| Order {
        which: Which::First { thread: thread.into(), site: model::Site::parse(place) },
        harm: if code == 0 { Harm::Nothing } else { Harm::Exit },
        outcome: Outcome::Exit(code),
        schedule: String::new(),
    };
    let all = [
        order("T1", "a.c:1", 0),
        order("T2", "a.c:1", 0),
        order("T3", "a.c:1", 1),
        order("T2", "a.c:2", 0),
        order("T4", "a.c:1", 0),
    ];
    let told = words::outcomes(&all);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("T1") && told[0].ends_with("(with 2 other threads, too)"), "{told:?}");
    assert!(told[1].contains("T3") && told[2].contains("a.c:2"), "{told:?}");
}
