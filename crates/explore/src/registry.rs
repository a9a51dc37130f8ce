//! Strategies by name.
//!
//! What users read about strategies (`--help`, error messages) and how they choose one follows from
//! [`STRATEGIES`]. To add a strategy, write one file in `strategies/` that ends with its [`Entry`], and
//! add a line here.

use std::fmt;
use std::str::FromStr;

use crate::Strategy;
pub use crate::entry::{Argument, Arguments, Entry};
use crate::strategies;

/// The strategies that a user can choose by name. The first one is the default.
pub const STRATEGIES: &[Entry] = &[
    strategies::mix::ENTRY,
    strategies::random::ENTRY,
    strategies::pct::ENTRY,
    strategies::pos::ENTRY,
    strategies::surw::ENTRY,
    strategies::surw::UNIFORM,
    strategies::reads_from::ENTRY,
    strategies::dfs::ENTRY,
    strategies::dpor::ENTRY,
    strategies::interrupt::ENTRY,
    strategies::round_robin::ENTRY,
    strategies::sequential::ENTRY,
];

/// Short names of strategies.
const SHORT: &[(&str, &str)] = &[("rr", strategies::round_robin::ENTRY.name)];

/// A strategy that was chosen by name, with its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    entry: &'static Entry,
    arguments: Arguments,
}

impl Plan {
    /// A strategy with an argument, or with its default.
    pub fn new(entry: &'static Entry, argument: Option<usize>) -> Plan {
        Plan { entry, arguments: [argument, None, None] }
    }

    /// The strategy's name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Whether each execution depends on the one before, so that the search cannot run on several cores.
    pub fn is_systematic(&self) -> bool {
        self.entry.systematic
    }

    /// The same, with this argument if none was given and the strategy is `entry`.
    pub fn or_argument(self, entry: &Entry, argument: usize) -> Plan {
        let given = (self.name() == entry.name).then_some(argument);
        let [first, second, third] = self.arguments;
        Plan { arguments: [first.or(given), second, third], ..self }
    }

    /// The strategy, for one search.
    pub fn strategy(&self) -> Box<dyn Strategy + Send> {
        (self.entry.new)(self.effective())
    }

    fn effective(&self) -> Arguments {
        let mut defaults = self.entry.arguments().map(|a| a.default);
        self.arguments.map(|given| {
            let default = defaults.next().flatten();
            given.or(default)
        })
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan::new(&STRATEGIES[0], None)
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Plan) -> bool {
        (self.name(), self.effective()) == (other.name(), other.effective())
    }
}

impl Eq for Plan {}

/// A text that does not name a strategy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownStrategy(String);

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a strategy; there are {}", self.0, names())
    }
}

impl std::error::Error for UnknownStrategy {}

/// All strategies with their arguments, separated by commas.
pub fn names() -> String {
    STRATEGIES.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What each strategy does and what its argument means, a line for each, for `--help`.
pub fn help() -> String {
    let mut text = String::new();
    for entry in STRATEGIES {
        text.push_str(&format!("  {:<20} {}\n", entry.to_string(), entry.about));
        for Argument { name, about, default, .. } in entry.arguments() {
            let default = default.map_or(String::new(), |n| format!(", {n} by default"));
            text.push_str(&format!("  {:<20} {name}: {about}{default}\n", ""));
        }
    }
    text.trim_end().to_owned()
}

impl FromStr for Plan {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Plan, UnknownStrategy> {
        let parse = || {
            let mut words = text.split(':');
            let name = words.next()?;
            let name = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, n)| n);
            let entry = STRATEGIES.iter().find(|entry| entry.name == name)?;
            let mut arguments = Arguments::default();
            let mut places = arguments.iter_mut().zip(entry.arguments());
            for word in words {
                *places.next()?.0 = Some(word.parse::<usize>().ok()?);
            }
            Some(Plan { entry, arguments })
        };
        parse().ok_or_else(|| UnknownStrategy(text.to_owned()))
    }
}

/// As [`Plan::from_str`] reads it.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.effective().iter().flatten().try_for_each(|argument| write!(f, ":{argument}"))
    }
}

impl From<&str> for Plan {
    /// # Panics
    /// If the text does not name a strategy; [`Plan::from_str`] does not panic.
    fn from(text: &str) -> Plan {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }
}
