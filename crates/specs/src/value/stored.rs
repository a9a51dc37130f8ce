//! Values inside of what serde stores: in their stored form, because JSON has no NaN and one kind of numbers.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Value;

pub(crate) fn serialize<S: Serializer>(value: &Value, to: S) -> Result<S::Ok, S::Error> {
    value.encode().serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    Value::decode(&Vec::<u8>::deserialize(from)?).map_err(D::Error::custom)
}

/// The kind of a value, by its name.
pub(crate) fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    const KINDS: [&str; 13] = [
        "unit",
        "option",
        "bool",
        "whole number",
        "f32",
        "f64",
        "char",
        "text",
        "bytes",
        "list",
        "map",
        "record",
        "variant",
    ];
    let name = String::deserialize(from)?;
    let kind = KINDS.into_iter().find(|kind| *kind == name);
    kind.ok_or_else(|| D::Error::custom(format!("{name:?} is not a kind of values")))
}

/// Values that may not have been kept.
pub(crate) mod perhaps {
    use super::{Deserialize, Deserializer, Error, Serialize, Serializer, Value};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Value>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Value::encode).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Value>, D::Error> {
        let bytes = Option::<Vec<u8>>::deserialize(from)?;
        bytes.map(|bytes| Value::decode(&bytes).map_err(D::Error::custom)).transpose()
    }
}
