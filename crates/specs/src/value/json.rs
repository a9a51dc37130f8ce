//! Values in JSON, for reports and for tables that users write: as JSON would have them.
//!
//! This form is for reading. It does not keep the difference between `f32` and `f64`, options and what they hold,
//! or records and maps; what is stored is [`Value::encode`]. Whole numbers of more than 64 bits are texts, and
//! so are `NaN`, `inf` and `-inf`; bytes are hexadecimal text, and a map whose keys are not all text is a list of pairs.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde::{Deserialize, Deserializer};

use super::Value;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Unit | Value::None => serializer.serialize_none(),
            Value::Some(value) => value.serialize(serializer),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(n) => match (u64::try_from(*n), i64::try_from(*n)) {
                (Ok(n), _) => serializer.serialize_u64(n),
                (_, Ok(n)) => serializer.serialize_i64(n),
                _ => serializer.collect_str(n),
            },
            Value::Huge(n) => serializer.collect_str(n),
            Value::F32(x) if !x.is_finite() => serializer.collect_str(x),
            Value::F32(x) => serializer.serialize_f32(*x),
            Value::F64(x) if !x.is_finite() => serializer.collect_str(x),
            Value::F64(x) => serializer.serialize_f64(*x),
            Value::Char(c) => serializer.serialize_char(*c),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bytes(_) => serializer.collect_str(self),
            Value::List(values) => serializer.collect_seq(values),
            Value::Map(entries) => map(entries, serializer),
            Value::Record(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
            Value::Variant(name, value) if **value == Value::Unit => serializer.serialize_str(name),
            Value::Variant(name, value) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(name, value)?;
                map.end()
            }
        }
    }
}

fn map<S: Serializer>(entries: &[(Value, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    if entries.iter().all(|(key, _)| matches!(key, Value::Text(_))) {
        serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
    } else {
        serializer.collect_seq(entries)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Natural)
    }
}

struct Natural;

macro_rules! scalars {
    ($($method:ident: $type:ty;)*) => {$(
        fn $method<E>(self, value: $type) -> Result<Value, E> {
            Ok(value.into())
        }
    )*};
}

impl<'de> Visitor<'de> for Natural {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    scalars! {
        visit_bool: bool; visit_i64: i64; visit_i128: i128; visit_u64: u64; visit_u128: u128; visit_f64: f64;
        visit_str: &str;
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Box<str>, Value>()? {
            pairs.push((Value::Text(key), value));
        }
        Ok(Value::map(pairs))
    }
}
