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
    /// Makes one, with the arguments or their defaults.
    pub new: fn(Arguments) -> Box<dyn Strategy + Send>,
}

/// As many numbers as any strategy takes, in the order in which the user writes them.
pub type Arguments = [Option<usize>; 3];

/// A number that a strategy takes.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// What stands for it in usage texts.
    pub name: &'static str,
    /// What it means, as part of a sentence.
    pub about: &'static str,
    /// What it is unless the user says; none if the strategy then goes without.
    pub default: Option<usize>,
    /// What may follow, after another colon each.
    // invariant: at most two, without further ones of their own.
    pub further: &'static [Argument],
}

impl Entry {
    /// What the user may write after the name, each after a colon.
    pub fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.argument.iter().chain(self.argument.iter().flat_map(|a| a.further))
    }
}

/// `pct[:DEPTH]`, `interrupt[:R[:K[:C]]]`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.arguments().try_for_each(|argument| write!(f, "[:{}", argument.name))?;
        self.arguments().try_for_each(|_| f.write_str("]"))
    }
}
