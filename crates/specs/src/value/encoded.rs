//! The stored form of a value, and its digest.
//!
//! A value is a tag and what it holds; lengths are eight bytes, numbers are little-endian. The digest is XXH3 with
//! 128 bits over the same bytes, with one form for all NaNs, one for both zeros and one for every whole number.
//!
//! *Guarantee*: equal values have equal digests, on every machine and in every version that keeps `VERSION`.
//! [`Value::decode`] never reserves more memory than the input has bytes, and never recurses deeper than
//! `DEPTH`.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use twox_hash::XxHash3_128;

use super::Value;

/// The first byte of the stored form.
const VERSION: u8 = 1;
/// How deeply values may nest in the stored form.
const DEPTH: usize = 256;

/// A value in 16 bytes: equal values have equal digests, and others almost surely do not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub u128);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Digest {
    /// The digest of several things in this order.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut hasher = XxHash3_128::new();
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        Digest(hasher.finish_128())
    }
}

/// Bytes are not the stored form of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Malformed {
    /// Another version of the form.
    #[error("the value was stored in form {0}, which this version does not know")]
    Version(u8),
    /// The bytes end too early, or go on after the end.
    #[error("the stored value is cut off or too long")]
    Length,
    /// A tag, a truth value, a character or a text is not valid.
    #[error("the stored value is damaged")]
    Content,
    /// The value nests too deeply.
    #[error("the stored value nests more than {DEPTH} levels")]
    Deep,
}

impl Value {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        emit(self, &mut |part| bytes.extend_from_slice(part), false);
        bytes
    }

    /// How many bytes the stored form has.
    pub fn encoded_len(&self) -> usize {
        let mut len = size_of_val(&VERSION);
        emit(self, &mut |part| len += part.len(), false);
        len
    }

    /// The digest.
    pub fn digest(&self) -> Digest {
        // The tag and the longest number; a hasher has a buffer that is not worth its allocation for so little.
        let mut small = [0; 17];
        let mut len = 0;
        let mut large = None;
        emit(
            self,
            &mut |part| match (&mut large, small.get_mut(len..len + part.len())) {
                (None, Some(place)) => {
                    place.copy_from_slice(part);
                    len += part.len();
                }
                (large, _) => large
                    .get_or_insert_with(|| {
                        let mut hasher = XxHash3_128::new();
                        hasher.write(&small[..len]);
                        hasher
                    })
                    .write(part),
            },
            true,
        );
        Digest(large.map_or_else(|| XxHash3_128::oneshot(&small[..len]), |h| h.finish_128()))
    }

    /// The value with this stored form.
    pub fn decode(bytes: &[u8]) -> Result<Value, Malformed> {
        let (&version, rest) = bytes.split_first().ok_or(Malformed::Length)?;
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let mut reader = Reader { rest };
        let value = reader.value(DEPTH)?;
        if reader.rest.is_empty() { Ok(value) } else { Err(Malformed::Length) }
    }
}

/// Hands the parts of the form to `out`. `canonical` gives equal values equal bytes.
fn emit(value: &Value, out: &mut dyn FnMut(&[u8]), canonical: bool) {
    out(&[tag(value)]);
    match value {
        Value::Unit | Value::None => {}
        Value::Some(value) => emit(value, out, canonical),
        Value::Bool(value) => out(&[u8::from(*value)]),
        Value::Int(n) => out(&n.to_le_bytes()),
        Value::Huge(n) => out(&n.to_le_bytes()),
        Value::F32(x) => out(&single(*x, canonical).to_bits().to_le_bytes()),
        Value::F64(x) => out(&double(*x, canonical).to_bits().to_le_bytes()),
        Value::Char(c) => out(&u32::from(*c).to_le_bytes()),
        Value::Text(text) => sized(out, text.as_bytes()),
        Value::Bytes(bytes) => sized(out, bytes),
        Value::List(values) => {
            length(out, values.len());
            values.iter().for_each(|v| emit(v, out, canonical));
        }
        Value::Map(entries) => {
            length(out, entries.len());
            for (key, value) in entries {
                emit(key, out, canonical);
                emit(value, out, canonical);
            }
        }
        Value::Record(members) => {
            length(out, members.len());
            for (name, value) in members {
                sized(out, name.as_bytes());
                emit(value, out, canonical);
            }
        }
        Value::Variant(name, value) => {
            sized(out, name.as_bytes());
            emit(value, out, canonical);
        }
    }
}

/// All NaNs and both zeros have one canonical form.
fn single(x: f32, canonical: bool) -> f32 {
    match canonical {
        true if x.is_nan() => f32::NAN,
        true => x + 0.0,
        false => x,
    }
}

/// As [`single`].
fn double(x: f64, canonical: bool) -> f64 {
    match canonical {
        true if x.is_nan() => f64::NAN,
        true => x + 0.0,
        false => x,
    }
}

fn length(out: &mut dyn FnMut(&[u8]), length: usize) {
    out(&(length as u64).to_le_bytes());
}

fn sized(out: &mut dyn FnMut(&[u8]), bytes: &[u8]) {
    length(out, bytes.len());
    out(bytes);
}

/// A non-canonical `Huge` has the tag of a whole number that fits, and then also its bytes.
fn tag(value: &Value) -> u8 {
    match value {
        Value::Huge(n) if i128::try_from(*n).is_err() => 14,
        other => other.rank(),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Length)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::Length)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn sized(&mut self) -> Result<&'a [u8], Malformed> {
        let length = u64::from_le_bytes(self.array()?);
        self.take(usize::try_from(length).map_err(|_| Malformed::Length)?)
    }

    fn text(&mut self) -> Result<Box<str>, Malformed> {
        std::str::from_utf8(self.sized()?).map(Into::into).map_err(|_| Malformed::Content)
    }

    fn many<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = u64::from_le_bytes(self.array()?);
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Malformed> {
        let depth = depth.checked_sub(1).ok_or(Malformed::Deep)?;
        let [tag] = self.array()?;
        Ok(match tag {
            0 => Value::Unit,
            1 => Value::None,
            2 => Value::Some(Box::new(self.value(depth)?)),
            3 => match self.array()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                _ => return Err(Malformed::Content),
            },
            4 => Value::Int(i128::from_le_bytes(self.array()?)),
            5 => Value::F32(f32::from_bits(u32::from_le_bytes(self.array()?))),
            6 => Value::F64(f64::from_bits(u64::from_le_bytes(self.array()?))),
            7 => {
                let code = u32::from_le_bytes(self.array()?);
                Value::Char(char::from_u32(code).ok_or(Malformed::Content)?)
            }
            8 => Value::Text(self.text()?),
            9 => Value::Bytes(self.sized()?.into()),
            10 => Value::List(self.many(|r| r.value(depth))?),
            11 => Value::map(self.many(|r| Ok((r.value(depth)?, r.value(depth)?)))?),
            12 => Value::Record(self.many(|r| Ok((r.text()?, r.value(depth)?)))?),
            13 => Value::Variant(self.text()?, Box::new(self.value(depth)?)),
            14 => Value::Huge(u128::from_le_bytes(self.array()?)),
            _ => return Err(Malformed::Content),
        })
    }
}
