//! Values: what a program hands over to be compared across executions.
//!
//! A value describes itself, so that it can be stored, shown and compared without the type it came from.
//! [`Value::of`] makes one from anything that serde can serialize, and [`Value::to`] makes the type again.
//! [`Value::encode`] is the stored form. The [`Digest`] depends only on what the value is equal to, so two values
//! with different digests differ under [`Predicate::Exact`](crate::Predicate::Exact) and two with the same digest
//! are taken to be equal.
//!
//! Two NaNs are the same value, and so are 0.0 and -0.0. Whole numbers are compared as numbers, whatever their
//! width and sign; `f32` and `f64` stay apart.

mod de;
mod encoded;
mod json;
mod ser;
pub(crate) mod stored;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use encoded::{Digest, Malformed};
pub use ser::Unserializable;

/// What a program hands over.
#[derive(Clone, Debug)]
pub enum Value {
    /// A value of a type that has only one.
    Unit,
    /// `Option::None`, and null in JSON.
    None,
    /// `Option::Some`.
    Some(Box<Value>),
    /// A truth value.
    Bool(bool),
    /// A whole number that fits.
    Int(i128),
    /// A whole number above `i128::MAX`. [`Value::from`] picks between the two.
    Huge(u128),
    /// A number of single precision.
    F32(f32),
    /// A number of double precision.
    F64(f64),
    /// A character.
    Char(char),
    /// Text.
    Text(Box<str>),
    /// Memory without a type.
    Bytes(Box<[u8]>),
    /// An array, a tuple, any sequence.
    List(Vec<Value>),
    /// Keys and values, sorted by key: [`Value::map`] sorts.
    Map(Vec<(Value, Value)>),
    /// Members in the order of their declaration.
    Record(Vec<(Box<str>, Value)>),
    /// A variant of an enum, and what it holds.
    Variant(Box<str>, Box<Value>),
}

impl Value {
    /// The value of anything that serde can serialize.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Value, Unserializable> {
        value.serialize(ser::ToValue)
    }

    /// The value as a type: the inverse of [`Value::of`] for the type that it was made of.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, Mismatch> {
        T::deserialize(self)
    }

    /// A map with these entries, in the order that makes equal maps equal values.
    pub fn map(mut entries: Vec<(Value, Value)>) -> Value {
        entries.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        Value::Map(entries)
    }

    /// The number, as far as `f64` can represent it.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Huge(n) => Some(*n as f64),
            Value::F32(x) => Some(f64::from(*x)),
            Value::F64(x) => Some(*x),
            Value::Unit
            | Value::None
            | Value::Some(_)
            | Value::Bool(_)
            | Value::Char(_)
            | Value::Text(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Map(_)
            | Value::Record(_)
            | Value::Variant(..) => None,
        }
    }

    /// Where the value's kind stands in the order of values.
    fn rank(&self) -> u8 {
        match self {
            Value::Unit => 0,
            Value::None => 1,
            Value::Some(_) => 2,
            Value::Bool(_) => 3,
            Value::Int(_) | Value::Huge(_) => 4,
            Value::F32(_) => 5,
            Value::F64(_) => 6,
            Value::Char(_) => 7,
            Value::Text(_) => 8,
            Value::Bytes(_) => 9,
            Value::List(_) => 10,
            Value::Map(_) => 11,
            Value::Record(_) => 12,
            Value::Variant(..) => 13,
        }
    }

    /// What the value is, for messages: `f64`, `list`, `text`, …
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Unit => "unit",
            Value::None | Value::Some(_) => "option",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Huge(_) => "whole number",
            Value::F32(_) => "f32",
            Value::F64(_) => "f64",
            Value::Char(_) => "char",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Record(_) => "record",
            Value::Variant(..) => "variant",
        }
    }
}

/// A value is not of the type that was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(pub(crate) String);

/// A NaN is above every number and equal to every NaN; 0.0 and -0.0 are equal.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Some(a), Value::Some(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Huge(a), Value::Huge(b)) => a.cmp(b),
            (Value::Int(a), Value::Huge(b)) => {
                u128::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b))
            }
            (Value::Huge(_), Value::Int(_)) => other.cmp(self).reverse(),
            (Value::F32(a), Value::F32(b)) => order(f64::from(*a), f64::from(*b)),
            (Value::F64(a), Value::F64(b)) => order(*a, *b),
            (Value::Char(a), Value::Char(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => a.cmp(b),
            (Value::Map(a), Value::Map(b)) => a.cmp(b),
            (Value::Record(a), Value::Record(b)) => a.cmp(b),
            (Value::Variant(a, x), Value::Variant(b, y)) => a.cmp(b).then_with(|| x.cmp(y)),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.digest().hash(hasher);
    }
}

macro_rules! whole {
    ($($type:ty),*) => {$(
        impl From<$type> for Value {
            fn from(n: $type) -> Value {
                Value::Int(n.into())
            }
        }
    )*};
}
whole!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

impl From<u128> for Value {
    fn from(n: u128) -> Value {
        i128::try_from(n).map_or(Value::Huge(n), Value::Int)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Value {
        Value::F32(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::F64(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::Bytes(value.into())
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

/// As in Rust's source, as far as a value knows it; bytes in hexadecimal.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unit => f.write_str("()"),
            Value::None => f.write_str("None"),
            Value::Some(value) => write!(f, "Some({value})"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Huge(n) => write!(f, "{n}"),
            Value::F32(x) => write!(f, "{x:?}"),
            Value::F64(x) => write!(f, "{x:?}"),
            Value::Char(c) => write!(f, "{c:?}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Bytes(bytes) => bytes.iter().try_for_each(|b| write!(f, "{b:02x}")),
            Value::List(values) => listed(f, '[', ']', values, |f, v| write!(f, "{v}")),
            Value::Map(entries) => {
                listed(f, '{', '}', entries, |f, (key, value)| write!(f, "{key}: {value}"))
            }
            Value::Record(members) => {
                listed(f, '{', '}', members, |f, (name, value)| write!(f, "{name}: {value}"))
            }
            Value::Variant(name, value) => match &**value {
                Value::Unit => f.write_str(name),
                Value::List(values) => {
                    f.write_str(name)?;
                    listed(f, '(', ')', values, |f, v| write!(f, "{v}"))
                }
                value => write!(f, "{name} {value}"),
            },
        }
    }
}

fn listed<T>(
    f: &mut fmt::Formatter<'_>,
    open: char,
    close: char,
    items: &[T],
    show: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    write!(f, "{open}")?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        show(f, item)?;
    }
    write!(f, "{close}")
}
