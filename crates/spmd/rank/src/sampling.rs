//! Which accesses of a rank are looked at, if not all are (section 7.3 of the thesis).
//!
//! What the user asks for is here, and the sampling of one-sided calls. Loads and stores are sampled by the runtime, which
//! sees them first (`crates/runtime/injected/src/sampling.rs`).

use std::fmt;
use std::str::FromStr;

use crate::hash::Map;

/// By how much a statement is less likely to be looked at each time, if functions are sampled as well.
const STATEMENTS: f64 = 0.9;

/// Factors by which probabilities fall each time something is looked at: 1 changes nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// That of a statement.
    pub instruction: f64,
    /// That of the calls of a function.
    pub function: f64,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { instruction: 1.0, function: 1.0 }
    }
}

impl FromStr for Sampling {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Sampling, &'static str> {
        const FORMS: &str =
            "one of none, instruction:B, function:B and hierarchical:B, with B from 0 to 1";
        if text == "none" {
            return Ok(Sampling::default());
        }
        let (kind, factor) = text.split_once(':').ok_or(FORMS)?;
        let factor: f64 = factor.parse().map_err(|_| FORMS)?;
        if !(0.0..=1.0).contains(&factor) {
            return Err(FORMS);
        }
        match kind {
            "instruction" => Ok(Sampling { instruction: factor, function: 1.0 }),
            "function" => Ok(Sampling { instruction: 1.0, function: factor }),
            "hierarchical" => Ok(Sampling { instruction: STATEMENTS, function: factor }),
            _ => Err(FORMS),
        }
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.instruction, self.function) {
            (1.0, 1.0) => f.write_str("none"),
            (factor, 1.0) => write!(f, "instruction:{factor}"),
            (1.0, factor) => write!(f, "function:{factor}"),
            (_, factor) => write!(f, "hierarchical:{factor}"),
        }
    }
}

/// Samples one-sided calls by the places that make them.
#[derive(Debug)]
pub struct Sampler {
    factor: f64,
    probabilities: Map<u64, f64>,
    random: u64,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler::new(1.0, 0)
    }
}

impl Sampler {
    /// One with a factor; 1 lets every call pass.
    pub fn new(factor: f64, seed: u64) -> Sampler {
        Sampler { factor, probabilities: Map::default(), random: seed | 1 }
    }

    /// Whether this call is looked at.
    pub fn wants(&mut self, pc: u64) -> bool {
        if self.factor >= 1.0 {
            return true;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let drawn = (self.random >> 11) as f64 / (1u64 << 53) as f64;
        let probability = self.probabilities.entry(pc).or_insert(1.0);
        let wanted = drawn < *probability;
        if wanted {
            *probability *= self.factor;
        }
        wanted
    }

    /// A call has raced: it is not looked at again.
    pub fn settle(&mut self, pc: u64) {
        self.probabilities.insert(pc, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_writes_is_read_and_written() {
        for text in ["none", "instruction:0.9", "function:0", "hierarchical:0.5"] {
            let sampling: Sampling = text.parse().expect(text);
            assert_eq!(sampling.to_string(), text);
        }
        let both: Sampling = "hierarchical:0.5".parse().expect("a form");
        assert_eq!(both, Sampling { instruction: 0.9, function: 0.5 });
        for text in ["", "some", "instruction", "instruction:", "instruction:2", "function:-1"] {
            assert!(text.parse::<Sampling>().is_err(), "{text}");
        }
    }

    #[test]
    fn calls_are_looked_at_less_and_less() {
        let looks = |factor, calls| {
            let mut sampler = Sampler::new(factor, 7);
            (0..calls).filter(|_| sampler.wants(1)).count()
        };
        assert_eq!(looks(1.0, 1000), 1000);
        assert_eq!(looks(0.0, 1000), 1);
        assert!((25..70).contains(&looks(0.9, 1000)), "{}", looks(0.9, 1000));
        let mut sampler = Sampler::new(0.9, 7);
        sampler.settle(1);
        assert!(!sampler.wants(1) && sampler.wants(2));
    }
}
