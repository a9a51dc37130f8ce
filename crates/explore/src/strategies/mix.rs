//! Several strategies in turn: what one of them finds in a few executions may take another thousands.
//!
//! No strategy is the best on all of the bundled programs. [`ReadsFrom`] most often is, so every second turn is its
//! own; a random walk rarely is, so its turn comes less often than that of the others. [`Pos`](crate::Pos) decides
//! part of what [`ReadsFrom`] leaves open, and has no turn of its own.
//!
//! Guarantee: that of each strategy, for the executions in which it is its turn.
//!
//! Cost: that of the strategy whose turn it is.

use crate::entry::Entry;
use crate::{Flip, Pct, RandomWalk, ReadsFrom, Rng, Share, Strategy, Surw, Wraps};

/// Strategies in turn.
#[allow(missing_debug_implementations)]
pub struct Mix {
    reads_from: ReadsFrom,
    others: [Box<dyn Strategy + Send>; 4],
    /// Whose turn it is; none if it is that of `reads_from`.
    other: Option<usize>,
    /// Executions so far.
    begun: usize,
    /// With which turn it began; none if that is not drawn yet.
    turn: Option<usize>,
}

/// Whose turn it is among the others: random walk, PCT, SURW, uniform.
const TURNS: [usize; 8] = [2, 0, 3, 2, 1, 2, 3, 1];

impl Default for Mix {
    fn default() -> Mix {
        Mix::knowing([], Share::default())
    }
}

impl Mix {
    /// With pairs that [`ReadsFrom`] knows from other executions, of which it tries its share.
    pub fn knowing(flips: impl IntoIterator<Item = Flip>, share: Share) -> Mix {
        let others: [Box<dyn Strategy + Send>; 4] = [
            Box::new(RandomWalk::default()),
            Box::new(Pct::default()),
            Box::new(Surw::default()),
            Box::new(Surw::uniform()),
        ];
        let reads_from = ReadsFrom::default().knowing(flips).sharing(share);
        // Of searches side by side, every second one begins with another strategy.
        let turn = (share.of > 1).then_some(share.number);
        Mix { reads_from, others, other: None, begun: 0, turn }
    }
}

impl Wraps for Mix {
    fn wrapped(&self) -> &dyn Strategy {
        match self.other {
            Some(other) => &*self.others[other],
            None => &self.reads_from,
        }
    }

    fn wrapped_mut(&mut self) -> &mut dyn Strategy {
        match self.other {
            Some(other) => &mut *self.others[other],
            None => &mut self.reads_from,
        }
    }

    fn on_begin(&mut self, rng: &mut Rng) {
        let turn = *self.turn.get_or_insert_with(|| rng.below(2 * TURNS.len()));
        let at = turn + self.begun;
        self.begun += 1;
        self.other = (at % 2 == 1).then(|| TURNS[at / 2 % TURNS.len()]);
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
