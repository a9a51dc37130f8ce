//! Several strategies in turn: what one of them finds in a few executions may take another thousands.
//!
//! No strategy is the best on all of the bundled programs. [`ReadsFrom`] most often is, so every second turn is its
//! own; a random walk rarely is, so its turn comes less often than that of the others. [`Pos`](crate::Pos) decides
//! what [`ReadsFrom`] leaves open, and has no turn of its own.
//!
//! Guarantee: that of each strategy, for the executions in which it is its turn.
//!
//! Cost: that of the strategy whose turn it is.

use crate::entry::Entry;
use crate::{Flip, Pct, RandomWalk, ReadsFrom, Rng, Strategy, Surw, Wraps};

/// Strategies in turn.
#[allow(missing_debug_implementations)]
pub struct Mix {
    strategies: [Box<dyn Strategy + Send>; 5],
    /// Where in [`TURNS`] the execution that began last is; none before the first.
    turn: Option<usize>,
}

/// Whose turn it is, as an index of the strategies.
const TURNS: [usize; 16] = [2, 3, 2, 1, 2, 4, 2, 3, 2, 1, 2, 3, 2, 4, 2, 0];

impl Default for Mix {
    fn default() -> Mix {
        Mix::knowing([])
    }
}

impl Mix {
    /// With pairs that [`ReadsFrom`] knows from other executions.
    pub fn knowing(flips: impl IntoIterator<Item = Flip>) -> Mix {
        let strategies: [Box<dyn Strategy + Send>; 5] = [
            Box::new(RandomWalk::default()),
            Box::new(Pct::default()),
            Box::new(ReadsFrom::default().knowing(flips)),
            Box::new(Surw::default()),
            Box::new(Surw::uniform()),
        ];
        Mix { strategies, turn: None }
    }

    fn at(&self) -> usize {
        TURNS[self.turn.unwrap_or(0)]
    }
}

impl Wraps for Mix {
    fn wrapped(&self) -> &dyn Strategy {
        &*self.strategies[self.at()]
    }

    fn wrapped_mut(&mut self) -> &mut dyn Strategy {
        &mut *self.strategies[self.at()]
    }

    fn on_begin(&mut self, rng: &mut Rng) {
        // Searches side by side begin with different strategies.
        let turn = self.turn.map_or_else(|| rng.below(TURNS.len()), |t| (t + 1) % TURNS.len());
        self.turn = Some(turn);
    }
}

/// The strategy of `mix`.
pub const ENTRY: Entry = Entry {
    name: "mix",
    about: "reads-from, pct, surw, uniform and random in turn",
    argument: None,
    systematic: false,
    new: |_| Box::<Mix>::default(),
};
