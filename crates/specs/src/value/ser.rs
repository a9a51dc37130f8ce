//! Anything that serde can serialize, as a [`Value`].
//!
//! Maps are sorted by key, so a `HashMap` is the same value whatever its order. A `HashSet` is a sequence to serde:
//! compare it with its own `==`, or with [`Predicate::Set`](crate::Predicate::Set).

use serde::ser::{self, Serialize};
use thiserror::Error;

use super::Value;

/// A type refused to be serialized.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct Unserializable(String);

impl ser::Error for Unserializable {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Unserializable(message.to_string())
    }
}

type Outcome = Result<Value, Unserializable>;

/// The serializer.
pub(super) struct ToValue;

/// A sequence that is being serialized; with a name, that of a variant.
pub(super) struct Items(Vec<Value>, Option<&'static str>);
/// A map that is being serialized, and the key whose value comes next.
pub(super) struct Entries(Vec<(Value, Value)>, Option<Value>);
/// A structure that is being serialized; with a name, that of a variant.
pub(super) struct Members(Vec<(Box<str>, Value)>, Option<&'static str>);

fn named(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        Some(name) => Value::Variant(name.into(), Box::new(value)),
        None => value,
    }
}

macro_rules! scalars {
    ($($method:ident: $type:ty;)*) => {$(
        fn $method(self, value: $type) -> Outcome {
            Ok(value.into())
        }
    )*};
}

impl ser::Serializer for ToValue {
    type Ok = Value;
    type Error = Unserializable;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Entries;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    scalars! {
        serialize_bool: bool;
        serialize_i8: i8; serialize_i16: i16; serialize_i32: i32; serialize_i64: i64; serialize_i128: i128;
        serialize_u8: u8; serialize_u16: u16; serialize_u32: u32; serialize_u64: u64; serialize_u128: u128;
        serialize_f32: f32; serialize_f64: f64;
        serialize_str: &str; serialize_bytes: &[u8];
    }

    fn serialize_char(self, value: char) -> Outcome {
        Ok(Value::Char(value))
    }

    fn serialize_none(self) -> Outcome {
        Ok(Value::None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome {
        Ok(Value::Some(Box::new(Value::of(value)?)))
    }

    fn serialize_unit(self) -> Outcome {
        Ok(Value::Unit)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Outcome {
        Ok(Value::Unit)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Outcome {
        Ok(named(Some(variant), Value::Unit))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Outcome {
        Value::of(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Outcome {
        Ok(named(Some(variant), Value::of(value)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items, Unserializable> {
        Ok(Items(Vec::new(), None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Items, Unserializable> {
        Ok(Items(Vec::new(), None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items, Unserializable> {
        Ok(Items(Vec::new(), None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Items, Unserializable> {
        Ok(Items(Vec::new(), Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Entries, Unserializable> {
        Ok(Entries(Vec::new(), None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members, Unserializable> {
        Ok(Members(Vec::new(), None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members, Unserializable> {
        Ok(Members(Vec::new(), Some(variant)))
    }
}

macro_rules! sequences {
    ($($kind:ident $method:ident;)*) => {$(
        impl ser::$kind for Items {
            type Ok = Value;
            type Error = Unserializable;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unserializable> {
                self.0.push(Value::of(value)?);
                Ok(())
            }

            fn end(self) -> Outcome {
                Ok(named(self.1, Value::List(self.0)))
            }
        }
    )*};
}
sequences! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

impl ser::SerializeMap for Entries {
    type Ok = Value;
    type Error = Unserializable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Unserializable> {
        self.1 = Some(Value::of(key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unserializable> {
        let without_key = || ser::Error::custom("a map was serialized with a value before its key");
        let key = self.1.take().ok_or_else(without_key)?;
        self.0.push((key, Value::of(value)?));
        Ok(())
    }

    fn end(self) -> Outcome {
        Ok(Value::map(self.0))
    }
}

macro_rules! structures {
    ($($kind:ident;)*) => {$(
        impl ser::$kind for Members {
            type Ok = Value;
            type Error = Unserializable;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Unserializable> {
                self.0.push((name.into(), Value::of(value)?));
                Ok(())
            }

            fn end(self) -> Outcome {
                Ok(named(self.1, Value::Record(self.0)))
            }
        }
    )*};
}
structures! {
    SerializeStruct;
    SerializeStructVariant;
}
