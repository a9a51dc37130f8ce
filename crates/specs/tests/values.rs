//! Values, their stored form, and predicates on them.

mod common;

use std::collections::{BTreeMap, HashMap};

use common::value;
use proptest::prelude::*;
use selvedge_specs::{Judge, NoCallbacks, Predicate, Unfit, Value};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f32),
    Box { width: u64, corners: Vec<(i8, i8)> },
    Both(Box<Shape>, Option<Box<Shape>>),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Everything {
    shapes: Vec<Shape>,
    by_name: BTreeMap<String, u128>,
    by_number: BTreeMap<i32, char>,
    nested: Option<Option<()>>,
    small: i128,
    unit: (),
    wrapped: Wrapped,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Wrapped(f64);

fn everything() -> Everything {
    Everything {
        shapes: vec![
            Shape::Point,
            Shape::Circle(0.1),
            Shape::Box { width: u64::MAX, corners: vec![(-1, 1)] },
            Shape::Both(Box::new(Shape::Point), None),
        ],
        by_name: [("big".to_owned(), u128::MAX), ("small".to_owned(), 0)].into(),
        by_number: [(-1, 'é')].into(),
        nested: Some(None),
        small: i128::MIN,
        unit: (),
        wrapped: Wrapped(0.1),
    }
}

#[test]
fn a_type_survives_being_a_value() {
    let value = Value::of(&everything()).unwrap();
    assert_eq!(value.to::<Everything>().unwrap(), everything());
    assert_eq!(Value::decode(&value.encode()).unwrap().to::<Everything>().unwrap(), everything());
}

#[test]
fn another_type_is_refused_with_a_reason() {
    let error = Value::of(&everything()).unwrap().to::<BTreeMap<String, u8>>().unwrap_err();
    assert!(error.to_string().contains("invalid type"), "{error}");
}

#[test]
fn a_hash_map_is_one_value_whatever_its_order() {
    let map = |range: Vec<u32>| range.into_iter().map(|n| (n, n * n)).collect::<HashMap<_, _>>();
    let there = Value::of(&map((0..100).collect())).unwrap();
    let back = Value::of(&map((0..100).rev().collect())).unwrap();
    assert_eq!((there.digest(), &there), (back.digest(), &back));
}

/// Stored digests must keep their meaning: change the form's version if this fails.
#[test]
fn digests_are_stable() {
    let value = Value::List(vec![Value::from(1), Value::from(0.5), Value::from("text")]);
    assert_eq!(value.digest().to_string(), "70fcb6a9531848f6f614edfaa24c3435");
}

#[test]
fn json_is_as_one_would_write_it() {
    let value = Value::of(&everything()).unwrap();
    let json = serde_json::to_value(&value).unwrap();
    assert_eq!(json["shapes"][0], "Point");
    assert_eq!(json["shapes"][2]["Box"]["corners"][0][0], -1);
    assert_eq!(serde_json::to_string(&Value::from(f64::NAN)).unwrap(), "\"NaN\"");
    let read: Value = serde_json::from_str(r#"{"b":[1,2.5,null,true],"a":"x"}"#).unwrap();
    assert_eq!(read.to_string(), r#"{"a": "x", "b": [1, 2.5, None, true]}"#);
}

fn predicates() -> Vec<Predicate> {
    ["equal", "within:1e-10", "within:3.0", "relative:0.5", "ulps:4", "set", "multiset", "rows"]
        .map(|text| text.parse().unwrap())
        .to_vec()
}

#[test]
fn predicates_are_written_as_they_are_read() {
    for predicate in predicates().into_iter().chain([Predicate::Callback("near enough".into())]) {
        assert_eq!(predicate.to_string().parse::<Predicate>().unwrap(), predicate);
    }
    for wrong in ["", "within", "within:-1", "within:NaN", "ulps:1.5", "same:", "close:1"] {
        assert!(wrong.parse::<Predicate>().is_err(), "{wrong}");
    }
}

fn same(predicate: &str, a: &Value, b: &Value) -> Result<bool, Unfit> {
    predicate.parse::<Predicate>().unwrap().same(a, b, &mut NoCallbacks)
}

#[test]
fn nans_are_the_same_and_zeros_are_the_same() {
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1);
    for (a, b) in [(f64::NAN, other_nan), (0.0, -0.0)] {
        let (a, b) = (Value::from(a), Value::from(b));
        assert_eq!(a.digest(), b.digest());
        for predicate in ["equal", "within:0", "relative:0", "ulps:0"] {
            assert!(same(predicate, &a, &b).unwrap(), "{predicate}");
        }
    }
}

#[test]
fn numbers_are_compared_where_they_stand() {
    let record = |x: f64| {
        Value::Record(vec![("name".into(), "a".into()), ("at".into(), vec![x, 2.0].into())])
    };
    assert!(same("within:0.1", &record(1.0), &record(1.05)).unwrap());
    assert!(!same("within:0.1", &record(1.0), &record(1.2)).unwrap());
    assert!(same("relative:0.1", &Value::from(100.0), &Value::from(109.0)).unwrap());
    assert!(!same("relative:0.1", &Value::from(1.0), &Value::from(1.2)).unwrap());
    let next = f64::from_bits(1.0_f64.to_bits() + 3);
    assert!(same("ulps:3", &Value::from(1.0), &Value::from(next)).unwrap());
    assert!(!same("ulps:2", &Value::from(1.0), &Value::from(next)).unwrap());
    assert!(
        same("ulps:2", &Value::F32(-f32::from_bits(1)), &Value::F32(f32::from_bits(1))).unwrap()
    );
    assert!(!same("within:1e300", &Value::from(f64::INFINITY), &Value::from(f64::MAX)).unwrap());
    assert!(same("within:1", &Value::from(i128::MAX), &Value::from(1_u128 << 127)).unwrap());
    assert!(!same("within:1", &vec![1.0].into(), &vec![1.0, 1.0].into()).unwrap());
}

#[test]
fn collections_are_compared_without_their_order() {
    let list = |numbers: &[i32]| Value::from(numbers.to_vec());
    assert!(same("set", &list(&[1, 2, 2]), &list(&[2, 1])).unwrap());
    assert!(!same("multiset", &list(&[1, 2, 2]), &list(&[2, 1])).unwrap());
    assert!(same("multiset", &list(&[1, 2, 2]), &list(&[2, 1, 2])).unwrap());
    let rows = |rows: [&[i32]; 2]| Value::List(rows.map(list).to_vec());
    assert!(same("rows", &rows([&[1, 2], &[3]]), &rows([&[2, 1], &[3]])).unwrap());
    assert!(!same("rows", &rows([&[1, 2], &[3]]), &rows([&[3], &[1, 2]])).unwrap());
}

#[test]
fn predicates_refuse_values_that_they_are_not_about() {
    let text = Value::from("text");
    for predicate in ["within:1", "relative:1", "ulps:1", "set", "multiset", "rows"] {
        assert!(matches!(same(predicate, &text, &text), Err(Unfit::Kind { .. })), "{predicate}");
    }
    assert!(matches!(same("ulps:1", &Value::from(1), &Value::from(1)), Err(Unfit::Kind { .. })));
    assert!(matches!(same("rows", &vec![1].into(), &vec![1].into()), Err(Unfit::Kind { .. })));
}

struct By(fn(f64, f64) -> Result<bool, String>);

impl Judge for By {
    fn same(&mut self, _: &str, a: &Value, b: &Value) -> Result<bool, String> {
        (self.0)(a.number().unwrap(), b.number().unwrap())
    }
}

#[test]
fn callbacks_must_be_reflexive_and_symmetric() {
    let ask = |f| {
        let callback = Predicate::Callback("f".into());
        callback.same(&Value::from(1), &Value::from(2), &mut By(f))
    };
    assert_eq!(ask(|a, b| Ok((a - b).abs() < 2.0)), Ok(true));
    assert_eq!(ask(|a, b| Ok((a - b).abs() < 1.0)), Ok(false));
    assert!(matches!(ask(|a, b| Ok(a < b)), Err(Unfit::NotReflexive { .. })));
    assert!(matches!(ask(|a, b| Ok(a <= b)), Err(Unfit::NotSymmetric { .. })));
    assert!(matches!(ask(|_, _| Err("it crashed".into())), Err(Unfit::NoAnswer { .. })));
}

proptest! {
    #[test]
    fn the_stored_form_keeps_the_value(value in value()) {
        let decoded = Value::decode(&value.encode()).unwrap();
        prop_assert_eq!(&decoded, &value);
        prop_assert_eq!(decoded.digest(), value.digest());
        prop_assert_eq!(decoded.encode(), value.encode());
    }

    #[test]
    fn damaged_bytes_are_refused_or_are_a_value(mut bytes in value().prop_map(|v| v.encode()), at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let at = at.index(bytes.len());
        bytes[at] = with;
        let _ = Value::decode(&bytes);
        bytes.truncate(at);
        prop_assert!(Value::decode(&bytes).is_err());
    }

    #[test]
    fn digests_agree_exactly_with_equality(a in value(), b in value()) {
        prop_assert_eq!(a.digest() == b.digest(), a == b);
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    }

    #[test]
    fn predicates_are_reflexive_and_symmetric(a in value(), b in value()) {
        for predicate in predicates() {
            if let Ok(same) = predicate.same(&a, &a, &mut NoCallbacks) {
                prop_assert!(same, "{} is not the same as itself by {}", a, predicate);
            }
            let (there, back) = (predicate.same(&a, &b, &mut NoCallbacks), predicate.same(&b, &a, &mut NoCallbacks));
            prop_assert_eq!(there.ok(), back.ok());
        }
    }
}
