//! What accesses find and leave, in words.

use selvedge_model::{Scalar, Values};

use crate::Verb;

/// What is said after an access and its object: ` = 0` of a read, ` 0 → 1` of a write.
pub fn values(verb: Verb, values: &Values) -> String {
    let reads = matches!(verb, Verb::Read | Verb::Load);
    match (&values.found, &values.left) {
        (Some(found), None) if reads => format!(" = {}", scalar(found)),
        (Some(found), Some(left)) => format!(" {} → {}", scalar(found), scalar(left)),
        (None, Some(left)) => format!(" → {}", scalar(left)),
        (Some(found), None) => format!(" (was {})", scalar(found)),
        (None, None) => String::new(),
    }
}

/// A value as it stands in source code.
pub fn scalar(value: &Scalar) -> String {
    match value {
        Scalar::Signed(n) => n.to_string(),
        Scalar::Unsigned(n) => n.to_string(),
        Scalar::Float(text) | Scalar::Constant(text) => text.to_string(),
        Scalar::Bool(b) => b.to_string(),
        Scalar::Char(c) => format!("'{c}'"),
        Scalar::Null => "null".to_owned(),
        Scalar::To(name) => format!("&{name}"),
        Scalar::Text(text, goes_on) => {
            format!("\"{}{}\"", text.escape_debug(), if *goes_on { "…" } else { "" })
        }
        Scalar::Pointer(number) => format!("pointer {number}"),
        Scalar::Bytes(bytes) => {
            let digits: String = bytes.iter().rev().map(|b| format!("{b:02x}")).collect();
            format!("0x{digits}")
        }
    }
}
