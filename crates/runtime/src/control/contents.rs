//! What accesses found in memory and left there, by its type.
//!
//! Nothing that depends on where memory lies is passed on: a pointer is called by what it points to, or else gets
//! a number in the order in which such pointers appear.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;

use selvedge_model::{Scalar, Values};

use super::wire::{self, Control, FOUND, FOUND_POINTS, LEFT, LEFT_POINTS, Words};
use crate::modules::{Modules, Resolve, Shape};

/// Characters of a text that are shown.
const CHARACTERS: usize = 12;

/// The values of one access.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    /// The number of the event.
    event: usize,
    addr: u64,
    len: usize,
    found: Option<Content>,
    left: Option<Content>,
}

#[derive(Clone, Copy, Debug)]
struct Content {
    bytes: [u8; 16],
    /// The bytes where it points, if it may be a pointer.
    points: Option<[u8; 16]>,
}

/// The values that were kept of these events.
pub(super) fn read(c: &Control, events: &[(usize, usize)]) -> Vec<Contents> {
    let bytes = |words: &Words| {
        let mut bytes = [0; 16];
        let words = words.iter().flat_map(|w| w.load(Relaxed).to_le_bytes());
        bytes.iter_mut().zip(words).for_each(|(to, from)| *to = from);
        bytes
    };
    let one = |&(event, number): &(usize, usize)| {
        let seen = &c.seen[number % wire::SEEN];
        let known = seen.known.load(Relaxed);
        let content = |words, flag, points, pointing| {
            let points = (known & pointing != 0).then(|| bytes(points));
            (known & flag != 0).then(|| Content { bytes: bytes(words), points })
        };
        Contents {
            event,
            addr: seen.addr.load(Relaxed),
            len: (seen.len.load(Relaxed) as usize).clamp(1, 16),
            found: content(&seen.found, FOUND, &seen.found_points, FOUND_POINTS),
            left: content(&seen.left, LEFT, &seen.left_points, LEFT_POINTS),
        }
    };
    events.iter().map(one).collect()
}

/// The same by their types, by the number of the event.
pub(super) fn typed(
    contents: &[Contents],
    resolver: &mut dyn Resolve,
    modules: &Modules,
) -> BTreeMap<usize, Values> {
    let mut shapes: HashMap<(u64, usize), Option<Shape>> = HashMap::new();
    let mut pointers = Pointers { resolver, modules, numbers: HashMap::new() };
    let mut all = BTreeMap::new();
    for one in contents {
        let (addr, len) = (one.addr, one.len);
        let shape = shapes
            .entry((addr, len))
            .or_insert_with(|| pointers.resolver.shape(addr, len as u64, modules));
        let mut scalar = |content: &Option<Content>| {
            content.as_ref().map(|c| scalar(c, len, shape.as_ref(), &mut pointers))
        };
        let values = Values { found: scalar(&one.found), left: scalar(&one.left) };
        all.insert(one.event, values);
    }
    all
}

/// Calls pointers by name.
struct Pointers<'a> {
    resolver: &'a mut dyn Resolve,
    modules: &'a Modules,
    numbers: HashMap<u64, u32>,
}

impl Pointers<'_> {
    fn name(&mut self, to: u64) -> Scalar {
        if to == 0 {
            return Scalar::Null;
        }
        if let Some(name) = self.resolver.object(to, self.modules) {
            return Scalar::To(name.into());
        }
        let next = self.numbers.len() as u32 + 1;
        Scalar::Pointer(*self.numbers.entry(to).or_insert(next))
    }
}

/// A value by its type. Without one it is a number, unless it looks like an address.
fn scalar(
    content: &Content,
    len: usize,
    shape: Option<&Shape>,
    pointers: &mut Pointers<'_>,
) -> Scalar {
    let bytes = &content.bytes[..len];
    if !matches!(len, 1 | 2 | 4 | 8) {
        return Scalar::Bytes(bytes.to_vec());
    }
    let mut word = [0; 8];
    word[..len].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(word);
    let unused = 64 - 8 * len as u32;
    let signed = (unsigned << unused) as i64 >> unused;
    match shape {
        Some(Shape::Signed) => Scalar::Signed(signed),
        Some(Shape::Unsigned) => Scalar::Unsigned(unsigned),
        Some(Shape::Float) if len == 4 => {
            Scalar::Float(f32::from_bits(unsigned as u32).to_string().into())
        }
        Some(Shape::Float) if len == 8 => {
            Scalar::Float(f64::from_bits(unsigned).to_string().into())
        }
        Some(Shape::Bool) if unsigned <= 1 => Scalar::Bool(unsigned == 1),
        Some(Shape::Char) => match char::from_u32(unsigned as u32) {
            Some(c) if c.is_ascii_graphic() || c == ' ' => Scalar::Char(c),
            _ => Scalar::Signed(signed),
        },
        Some(Shape::Constants(all)) => {
            let name = all.iter().find(|(value, _)| *value == signed || *value == unsigned as i64);
            name.map_or(Scalar::Signed(signed), |(_, name)| Scalar::Constant(name.as_str().into()))
        }
        Some(Shape::Text) => match content.points {
            Some(text) => characters(&text),
            None => pointers.name(unsigned),
        },
        Some(Shape::Pointer) => pointers.name(unsigned),
        None if len == 8 && (1 << 32..1 << 47).contains(&unsigned) => pointers.name(unsigned),
        None | Some(Shape::Float | Shape::Bool) => Scalar::Signed(signed),
    }
}

/// The first characters of a text that ends with a zero.
fn characters(text: &[u8]) -> Scalar {
    let end = text.iter().position(|&b| b == 0);
    let shown = end.unwrap_or(CHARACTERS).min(CHARACTERS);
    let goes_on = end.is_none_or(|end| end > shown);
    Scalar::Text(String::from_utf8_lossy(&text[..shown]).into(), goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::ByModule;

    fn shown(value: u64, len: usize, shape: Option<&Shape>, points: Option<&[u8; 16]>) -> Scalar {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&value.to_le_bytes());
        let modules = Modules::default();
        let mut pointers =
            Pointers { resolver: &mut ByModule, modules: &modules, numbers: HashMap::new() };
        scalar(&Content { bytes, points: points.copied() }, len, shape, &mut pointers)
    }

    #[test]
    fn values_are_shown_by_their_types() {
        let constants = Shape::Constants(vec![(-1, "CLOSED".into()), (1, "OPEN".into())]);
        let minus = u64::from(u32::MAX);
        for (value, len, shape, expected) in [
            (minus, 4, None, Scalar::Signed(-1)),
            (minus, 4, Some(&Shape::Unsigned), Scalar::Unsigned(minus)),
            (255, 1, Some(&Shape::Signed), Scalar::Signed(-1)),
            (1, 1, Some(&Shape::Bool), Scalar::Bool(true)),
            (7, 1, Some(&Shape::Bool), Scalar::Signed(7)),
            (65, 1, Some(&Shape::Char), Scalar::Char('A')),
            (27, 1, Some(&Shape::Char), Scalar::Signed(27)),
            (minus, 4, Some(&constants), Scalar::Constant("CLOSED".into())),
            (5, 4, Some(&constants), Scalar::Signed(5)),
            (1.5_f64.to_bits(), 8, Some(&Shape::Float), Scalar::Float("1.5".into())),
            (0, 8, Some(&Shape::Pointer), Scalar::Null),
            (0x7f00_0000_1000, 8, None, Scalar::Pointer(1)),
            (1 << 20, 8, None, Scalar::Signed(1 << 20)),
        ] {
            assert_eq!(shown(value, len, shape, None), expected);
        }
        assert!(matches!(shown(1, 16, None, None), Scalar::Bytes(b) if b.len() == 16));
    }

    #[test]
    fn of_a_text_the_first_characters_are_shown() {
        let at = 0x7f00_0000_1000;
        let text = |points: &[u8; 16]| shown(at, 8, Some(&Shape::Text), Some(points));
        assert_eq!(text(b"ready\0..........").clone(), Scalar::Text("ready".into(), false));
        assert_eq!(text(b"a longer text is"), Scalar::Text("a longer tex".into(), true));
        assert_eq!(shown(0, 8, Some(&Shape::Text), None), Scalar::Null);
    }
}
