//! Values that a program hands over, from their bytes in shared memory. The numbers are those of `selvedge.h`.

use selvedge_specs::{Predicate, Value, Word};

use crate::wire::{Chunk, call};

/// A value as the program left it.
#[derive(Clone, Debug)]
pub struct Handed {
    /// What it is.
    pub chunk: Chunk,
    /// What the program calls it.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a program says of an atomic block without handing over a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The block takes effect.
    Point,
    /// Accesses are distinguished from here …
    Distinguish,
    /// … to here.
    Indistinct,
}

/// The predicate that is a function of the program.
const SAME: u32 = 6;

/// Types of elements.
mod kind {
    pub(super) const BOOL: u32 = 1;
    pub(super) const I8: u32 = 2;
    pub(super) const I16: u32 = 3;
    pub(super) const I32: u32 = 4;
    pub(super) const I64: u32 = 5;
    pub(super) const I128: u32 = 6;
    pub(super) const U8: u32 = 7;
    pub(super) const U16: u32 = 8;
    pub(super) const U32: u32 = 9;
    pub(super) const U64: u32 = 10;
    pub(super) const U128: u32 = 11;
    pub(super) const F32: u32 = 12;
    pub(super) const F64: u32 = 13;
    pub(super) const LONG_DOUBLE: u32 = 14;
    pub(super) const TEXT: u32 = 16;
    /// Texts, each behind its length.
    pub(super) const TEXTS: u32 = 17;
    /// The stored form of a value of `specs`.
    pub(super) const ENCODED: u32 = 18;
}

impl Handed {
    /// What the program says of it; nothing if that makes no sense.
    pub fn word(&self) -> Option<Word> {
        match (self.chunk.call & call::KIND, self.chunk.call & call::AFTER != 0) {
            (call::ASSUME, _) => Some(Word::Assume),
            (call::ENSURE, _) => Some(Word::Ensure),
            (call::OBSERVE, _) => Some(Word::Observe),
            (call::STATE, false) => Some(Word::Before),
            (call::STATE, true) => Some(Word::After),
            _ => None,
        }
    }

    /// What it says without a value, if it has none.
    pub fn mark(&self) -> Option<Mark> {
        match self.chunk.call & call::KIND {
            call::POINT => Some(Mark::Point),
            call::DISTINGUISH => Some(Mark::Distinguish),
            call::INDISTINCT => Some(Mark::Indistinct),
            _ => None,
        }
    }

    /// Whether the value is in its stored form.
    pub fn is_encoded(&self) -> bool {
        self.chunk.kind == kind::ENCODED
    }

    /// The name of the predicate that is a function of the program, if the value has one, and the value's bytes.
    fn named(&self) -> (Option<&str>, &[u8]) {
        if self.chunk.predicate != SAME || !self.is_encoded() {
            return (None, &self.bytes);
        }
        let split = self.bytes.split_first_chunk().and_then(|(len, rest)| {
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)
        });
        split.map_or((None, &self.bytes), |(name, rest)| (str::from_utf8(name).ok(), rest))
    }

    /// When two such values are the same. A function of the program is known by what the value or else `name` calls
    /// it.
    pub fn predicate(&self, name: impl FnOnce(u64) -> String) -> Option<Predicate> {
        let bound = f64::from_bits(self.chunk.bound);
        Some(match self.chunk.predicate {
            0 => Predicate::Exact,
            1 => Predicate::Within(bound),
            2 => Predicate::Relative(bound),
            3 => Predicate::Ulps(bound as u64),
            4 => Predicate::Set,
            5 => Predicate::Multiset,
            SAME => match self.named() {
                (Some(own), _) => Predicate::Callback(own.into()),
                (None, _) => Predicate::Callback(name(self.chunk.same).into()),
            },
            7 => Predicate::Rows,
            _ => return None,
        })
    }

    /// The value. A function of the program compares bytes, whatever they stand for.
    pub fn value(self) -> Value {
        let is_array = self.chunk.call & call::ARRAY != 0;
        let kind = self.chunk.kind;
        if kind == kind::ENCODED {
            let (_, bytes) = self.named();
            return Value::decode(bytes).unwrap_or_else(|_| bytes.into());
        }
        if self.chunk.predicate == SAME {
            return Value::Bytes(self.bytes.into_boxed_slice());
        }
        let elements = match kind {
            kind::BOOL => self.each(|[b]: [u8; 1]| Value::Bool(b != 0)),
            kind::I8 => self.each(|b| i8::from_le_bytes(b).into()),
            kind::I16 => self.each(|b| i16::from_le_bytes(b).into()),
            kind::I32 => self.each(|b| i32::from_le_bytes(b).into()),
            kind::I64 => self.each(|b| i64::from_le_bytes(b).into()),
            kind::I128 => self.each(|b| i128::from_le_bytes(b).into()),
            kind::U8 => self.each(|b| u8::from_le_bytes(b).into()),
            kind::U16 => self.each(|b| u16::from_le_bytes(b).into()),
            kind::U32 => self.each(|b| u32::from_le_bytes(b).into()),
            kind::U64 => self.each(|b| u64::from_le_bytes(b).into()),
            kind::U128 => self.each(|b| u128::from_le_bytes(b).into()),
            kind::F32 => self.each(|b| f32::from_le_bytes(b).into()),
            kind::F64 => self.each(|b| f64::from_le_bytes(b).into()),
            kind::LONG_DOUBLE => self.each(|b| self.long_double(b)),
            kind::TEXT => return text(&self.bytes),
            kind::TEXTS => texts(&self.bytes),
            _ => return Value::Bytes(self.bytes.into_boxed_slice()),
        };
        match (is_array, elements.first()) {
            (false, Some(only)) => only.clone(),
            _ => Value::List(elements),
        }
    }

    fn each<const N: usize>(&self, of: impl Fn([u8; N]) -> Value) -> Vec<Value> {
        self.bytes.as_chunks().0.iter().map(|&bytes| of(bytes)).collect()
    }

    /// Exactly compared, all bits count; otherwise it is a number, which double precision is near enough to.
    fn long_double(&self, bytes: [u8; 16]) -> Value {
        const BIAS: i32 = 16383 + 63;
        let mantissa = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        let top = u16::from_le_bytes([bytes[8], bytes[9]]);
        let sign = if top & 0x8000 != 0 { -1.0 } else { 1.0 };
        let number = match top & 0x7fff {
            0x7fff if mantissa << 1 == 0 => sign * f64::INFINITY,
            0x7fff => f64::NAN,
            exponent => {
                // In two steps, so that neither leaves the range of `f64` too early.
                let exponent = i32::from(exponent) - BIAS;
                let half = exponent / 2;
                sign * mantissa as f64 * 2f64.powi(half) * 2f64.powi(exponent - half)
            }
        };
        let exact = self.chunk.predicate == 0 && number.is_finite();
        if exact
            && (mantissa as f64 as u128 != u128::from(mantissa) || number == 0.0 && mantissa != 0)
        {
            return Value::Bytes(bytes[..10].into());
        }
        number.into()
    }
}

fn text(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.into(),
    }
}

fn texts(mut bytes: &[u8]) -> Vec<Value> {
    let mut texts = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk() {
        let len = usize::try_from(u64::from_le_bytes(*len)).unwrap_or(usize::MAX).min(rest.len());
        let (one, rest) = rest.split_at(len);
        texts.push(text(one));
        bytes = rest;
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(call: u32, kind: u32, bytes: &[u8]) -> Handed {
        let chunk = Chunk {
            call,
            kind,
            predicate: 0,
            name_len: 0,
            bound: 0,
            same: 0,
            bytes: bytes.len() as u64,
        };
        Handed { chunk, name: "x".into(), bytes: bytes.to_vec() }
    }

    #[test]
    fn scalars_and_arrays_are_told_apart() {
        let one = 7i32.to_le_bytes();
        assert_eq!(handed(call::ENSURE, kind::I32, &one).value(), Value::Int(7));
        let array = handed(call::ENSURE | call::ARRAY, kind::I32, &one);
        assert_eq!(array.value(), Value::List(vec![Value::Int(7)]));
        let empty = handed(call::ENSURE | call::ARRAY, kind::F64, &[]);
        assert_eq!(empty.value(), Value::List(Vec::new()));
        assert_eq!(handed(call::STATE | call::AFTER, kind::I32, &one).word(), Some(Word::After));
    }

    #[test]
    fn texts_are_texts_unless_they_are_not() {
        assert_eq!(handed(call::ENSURE, kind::TEXT, b"tree").value(), "tree".into());
        assert_eq!(handed(call::ENSURE, kind::TEXT, &[0xff]).value(), Value::Bytes([0xff].into()));
        let mut bytes = Vec::new();
        for one in ["a", "", "bc"] {
            bytes.extend((one.len() as u64).to_le_bytes());
            bytes.extend(one.bytes());
        }
        let list = Value::List(vec!["a".into(), "".into(), "bc".into()]);
        assert_eq!(handed(call::ENSURE | call::ARRAY, kind::TEXTS, &bytes).value(), list);
    }

    #[test]
    fn long_doubles_keep_all_their_bits() {
        let of = |mantissa: u64, top: u16| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
            bytes[8..10].copy_from_slice(&top.to_le_bytes());
            handed(call::ENSURE, kind::LONG_DOUBLE, &bytes).value()
        };
        assert_eq!(of(1 << 63, 0x3fff), Value::F64(1.0));
        assert_eq!(of(1 << 63, 0xc000), Value::F64(-2.0));
        assert_eq!(of(0, 0), Value::F64(0.0));
        assert_ne!(of(1 << 63 | 1, 0x3fff), of(1 << 63, 0x3fff), "one bit more than a double has");
    }
}
