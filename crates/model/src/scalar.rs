//! What lies in memory: the value that an access finds, and the one that it leaves.

/// A value of up to 16 bytes.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Scalar {
    /// A number with a sign, or one of unknown type.
    Signed(i64),
    /// A number without a sign.
    Unsigned(u64),
    /// A floating-point number, as text that gives the same number when it is read.
    Float(Box<str>),
    /// True or false.
    Bool(bool),
    /// A character.
    Char(char),
    /// A constant of an enumeration, by name.
    Constant(Box<str>),
    /// A pointer to nothing.
    Null,
    /// A pointer to a variable with this name.
    To(Box<str>),
    /// A pointer to characters, of which these are the first; the text goes on if the flag says so.
    Text(Box<str>, bool),
    /// A pointer to something without a name, by a number that is the same for the same address.
    Pointer(u32),
    /// Something else, byte by byte.
    Bytes(Vec<u8>),
}

/// The values of one access, as far as they are known.
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Values {
    /// What the access found. A write finds what it overwrites.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub found: Option<Scalar>,
    /// What a write left.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub left: Option<Scalar>,
}

impl Values {
    /// Whether no value is known.
    pub fn is_empty(&self) -> bool {
        self.found.is_none() && self.left.is_none()
    }
}
