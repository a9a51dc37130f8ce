//! The types of single values: numbers, pointers, enumerations.

use gimli::AttributeValue;
use selvedge_runtime::Shape;

use super::{At, DEPTH, Types};

impl Types {
    /// The type of the `len` bytes at an offset in the variable, if they are one value.
    pub(in super::super) fn shape(&self, variable: u64, offset: u64, len: u64) -> Option<Shape> {
        let mut at = self.type_of(*self.variables.get(&variable)?)?;
        let mut offset = offset;
        for _ in 0..DEPTH {
            at = self.plain(at);
            match self.entry(at)?.tag() {
                gimli::DW_TAG_array_type => {
                    at = self.type_of(at)?;
                    offset %= self.size(at, DEPTH).filter(|&size| size > 0)?;
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                    (at, offset) = self.part_around(at, offset)?;
                }
                _ => break,
            }
        }
        let whole = offset == 0 && self.size(at, DEPTH) == Some(len);
        if whole { self.shape_of(at) } else { None }
    }

    /// The type of the member around an offset, and the offset in it.
    fn part_around(&self, at: At, offset: u64) -> Option<(At, u64)> {
        self.children(at).into_iter().find_map(|(tag, child)| {
            let is_part = tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_inheritance;
            let entry = self.entry(child).filter(|_| is_part)?;
            let from = entry.attr(gimli::DW_AT_data_member_location)?.udata_value()?;
            let of = self.type_of(child)?;
            let size = self.size(of, DEPTH)?;
            (from..from.saturating_add(size)).contains(&offset).then(|| (of, offset - from))
        })
    }

    fn shape_of(&self, at: At) -> Option<Shape> {
        let entry = self.entry(at)?;
        match entry.tag() {
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type => {
                let to = self.type_of(at).map(|to| self.plain(to));
                match to.and_then(|to| self.shape_of(to)) {
                    Some(Shape::Char) => Some(Shape::Text),
                    _ => Some(Shape::Pointer),
                }
            }
            gimli::DW_TAG_enumeration_type => {
                let constants = self.children(at).into_iter().filter_map(|(_, child)| {
                    let value = self.entry(child)?.attr(gimli::DW_AT_const_value)?.clone();
                    let value = value.sdata_value().or(value.udata_value().map(|v| v as i64))?;
                    Some((value, self.name(child)?))
                });
                Some(Shape::Constants(constants.collect()))
            }
            gimli::DW_TAG_base_type => match entry.attr_value(gimli::DW_AT_encoding)? {
                AttributeValue::Encoding(gimli::DW_ATE_boolean) => Some(Shape::Bool),
                AttributeValue::Encoding(gimli::DW_ATE_float) => Some(Shape::Float),
                AttributeValue::Encoding(gimli::DW_ATE_unsigned) => Some(Shape::Unsigned),
                AttributeValue::Encoding(gimli::DW_ATE_unsigned_char) => Some(Shape::Unsigned),
                AttributeValue::Encoding(gimli::DW_ATE_signed_char)
                    if self.name(at).as_deref() == Some("char") =>
                {
                    Some(Shape::Char)
                }
                AttributeValue::Encoding(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char) => {
                    Some(Shape::Signed)
                }
                _ => None,
            },
            _ => None,
        }
    }
}
