//! A [`Value`] as the type that it was made of: the inverse of `ser`.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Mismatch, Value};

impl de::Error for Mismatch {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Mismatch(message.to_string())
    }
}

impl<'de> IntoDeserializer<'de, Mismatch> for &'de Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Whole numbers are handed over in the narrowest form that types expect.
fn whole<'de, V: Visitor<'de>>(n: i128, visitor: V) -> Result<V::Value, Mismatch> {
    if let Ok(n) = u64::try_from(n) {
        visitor.visit_u64(n)
    } else if let Ok(n) = i64::try_from(n) {
        visitor.visit_i64(n)
    } else {
        visitor.visit_i128(n)
    }
}

impl<'de> Deserializer<'de> for &'de Value {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Value::Unit => visitor.visit_unit(),
            Value::None => visitor.visit_none(),
            Value::Some(value) => visitor.visit_some(&**value),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(n) => whole(*n, visitor),
            Value::Huge(n) => visitor.visit_u128(*n),
            Value::F32(x) => visitor.visit_f32(*x),
            Value::F64(x) => visitor.visit_f64(*x),
            Value::Char(c) => visitor.visit_char(*c),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Value::List(values) => visitor.visit_seq(SeqDeserializer::new(values.iter())),
            Value::Map(entries) => {
                visitor.visit_map(MapDeserializer::new(entries.iter().map(|(k, v)| (k, v))))
            }
            Value::Record(members) => {
                visitor.visit_map(MapDeserializer::new(members.iter().map(|(k, v)| (&**k, v))))
            }
            Value::Variant(name, value) => visitor.visit_enum(Variant { name, value }),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Value::Int(n) => visitor.visit_i128(*n),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Value::Int(n) if *n >= 0 => visitor.visit_u128(n.unsigned_abs()),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Variant<'de> {
    name: &'de str,
    value: &'de Value,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Mismatch> {
        let name: de::value::BorrowedStrDeserializer<'de, Mismatch> =
            de::value::BorrowedStrDeserializer::new(self.name);
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        match self.value {
            Value::Unit => Ok(()),
            other => Err(Mismatch(format!("the variant {} holds a {}", self.name, other.kind()))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mismatch> {
        seed.deserialize(self.value)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        self.value.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.value.deserialize_any(visitor)
    }
}
