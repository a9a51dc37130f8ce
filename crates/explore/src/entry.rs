//! What a strategy says about itself to the registry.
//!
//! An [`Entry`] names the strategy, says which argument it takes, and makes it. The list of all entries
//! is [`STRATEGIES`](crate::STRATEGIES).

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
    /// Whether each execution depends on the one before, so that the search cannot run on several cores.
    pub systematic: bool,
    /// Makes one, with the argument or its default.
    pub new: fn(Option<usize>) -> Box<dyn Strategy + Send>,
}

/// A number that a strategy takes.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Its name in usage texts.
    pub name: &'static str,
    /// What it means, as part of a sentence.
    pub about: &'static str,
    /// The default; none if the strategy then works without the number.
    pub default: Option<usize>,
}

/// `pct[:DEPTH]`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.argument.map_or(Ok(()), |argument| write!(f, "[:{}]", argument.name))
    }
}
