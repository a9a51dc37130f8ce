//! What the registry knows of a strategy, said by the strategy itself.

use std::fmt;

use crate::Strategy;

/// A strategy that a user can choose.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What the user writes.
    pub name: &'static str,
    /// What it does, as part of a sentence.
    pub about: &'static str,
    /// What the user may write after the name and a colon.
    pub argument: Option<Argument>,
    /// Whether the search goes through schedules one by one, so that it cannot be shared out.
    pub systematic: bool,
    /// Makes one, with the argument or its default.
    pub new: fn(Option<usize>) -> Box<dyn Strategy + Send>,
}

/// A number that a strategy takes.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// What stands for it in usage texts.
    pub name: &'static str,
    /// What it means, as part of a sentence.
    pub about: &'static str,
    /// What it is unless the user says; none if the strategy then goes without.
    pub default: Option<usize>,
}

/// `pct[:DEPTH]`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.argument.map_or(Ok(()), |argument| write!(f, "[:{}]", argument.name))
    }
}
