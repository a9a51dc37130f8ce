//! Random values.

use proptest::prelude::*;
use selvedge_specs::Value;

/// Numbers that are close to each other, far apart, or special.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-3_i64..4).prop_map(Value::from),
        any::<i128>().prop_map(Value::from),
        any::<u128>().prop_map(Value::from),
        prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(1.5),
            Just(1.5 + 1e-12)
        ]
        .prop_map(Value::F64),
        any::<u64>().prop_map(|bits| Value::F64(f64::from_bits(bits))),
        any::<u32>().prop_map(|bits| Value::F32(f32::from_bits(bits))),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => number(),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Unit),
        1 => Just(Value::None),
        1 => any::<char>().prop_map(Value::Char),
        1 => "[ab]{0,2}".prop_map(|s| Value::Text(s.into())),
        1 => prop::collection::vec(any::<u8>(), 0..3).prop_map(|b| Value::Bytes(b.into())),
    ]
}

/// Any value.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::vec((inner.clone(), inner.clone()), 0..3).prop_map(Value::map),
            prop::collection::vec(("[xy]", inner.clone()), 0..3)
                .prop_map(|m| Value::Record(m.into_iter().map(|(n, v)| (n.into(), v)).collect())),
            ("[AB]", inner.clone()).prop_map(|(n, v)| Value::Variant(n.into(), Box::new(v))),
            inner.prop_map(|v| Value::Some(Box::new(v))),
        ]
    })
}
