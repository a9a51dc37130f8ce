//! How the interleavings of a program were judged: the columns of table 5.1 (Burnim, §5.5).

use serde::{Deserialize, Serialize};

/// How many serial orders were looked at for how many interleavings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Looked {
    /// Interleavings.
    pub interleavings: u64,
    /// Orders.
    pub orders: u64,
}

impl Looked {
    /// Adds what was looked at elsewhere.
    pub fn add(&mut self, other: Looked) {
        self.interleavings += other.interleavings;
        self.orders += other.orders;
    }

    /// Orders for each interleaving, if there was any.
    pub fn average(self) -> Option<f64> {
        (self.interleavings > 0).then(|| self.orders as f64 / self.interleavings as f64)
    }
}

/// Executions in which something was observed, by what is known of their atomic blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interleavings {
    /// Those in which no thread ran while another one had an open block: they are serial themselves.
    pub serial: u64,
    /// Those that a serial execution explains.
    pub explained: Looked,
    /// Those that none does.
    pub unexplained: Looked,
    /// Those of which no order could be executed, for a reason that says nothing about the program.
    pub unforced: u64,
    /// Those with more orders than are tried.
    pub too_many: u64,
    /// Serial executions that were run. Orders that several interleavings have in common are executed once.
    pub executions: u64,
}

impl Interleavings {
    /// Those in which blocks overlapped.
    pub fn overlapping(&self) -> u64 {
        self.decided() + self.unforced + self.too_many
    }

    /// Those about which is known whether a serial execution explains them.
    pub fn decided(&self) -> u64 {
        self.explained.interleavings + self.unexplained.interleavings
    }
}
