//! Several strategies in turn: what one of them finds in a few executions may take another thousands.
//!
//! No strategy is the best on all of the bundled programs. [`ReadsFrom`] most often is, so every second execution has an
//! abstract schedule; in the others only one of the strategies that decide the rest of it chooses. These take turns, those
//! that seldom are the best less often.
//!
//! Every execution tells all of them what it shows: which writes reads have seen, and how many steps threads have taken. The
//! first execution has an abstract schedule, and [`Pos`] decides the rest: it needs to know nothing of earlier ones.
//!
//! Guarantee: that of each strategy, for the executions in which it is its turn.
//!
//! Cost: that of the strategy whose turn it is, and what [`ReadsFrom`] and [`Surw`] remember of an execution.

use crate::entry::Entry;
use crate::{Flip, Pct, Pos, RandomWalk, ReadsFrom, Rng, Share, Strategy, Surw, Wraps};

/// Strategies in turn.
#[allow(missing_debug_implementations)]
pub struct Mix {
    search: ReadsFrom,
    /// The next turn; none before the first execution.
    turn: Option<usize>,
    /// With which turn the second execution begins; none if that is drawn.
    second: Option<usize>,
}

const POS: usize = 0;
const SURW: usize = 1;
const PCT: usize = 2;
const UNIFORM: usize = 3;
const RANDOM: usize = 4;

/// Who decides the rest where there is an abstract schedule.
const AIMED: [usize; 4] = [POS, SURW, PCT, SURW];
/// Who decides where there is none.
const FREE: [usize; 8] = [SURW, PCT, POS, RANDOM, SURW, PCT, UNIFORM, PCT];

impl Default for Mix {
    fn default() -> Mix {
        Mix::knowing([], Share::default())
    }
}

impl Mix {
    /// With pairs that [`ReadsFrom`] knows from other executions, of which it tries its share.
    pub fn knowing(flips: impl IntoIterator<Item = Flip>, share: Share) -> Mix {
        let search = ReadsFrom::over([
            Box::<Pos>::default(),
            Box::<Surw>::default(),
            Box::<Pct>::default(),
            Box::new(Surw::uniform()),
            Box::<RandomWalk>::default(),
        ]);
        let search = search.knowing(flips).sharing(share);
        // Of searches side by side, every second one goes on without an abstract schedule, each with another strategy.
        let second = (share.of > 1).then_some(share.number + 1);
        Mix { search, turn: None, second }
    }
}

impl Wraps for Mix {
    fn wrapped(&self) -> &dyn Strategy {
        &self.search
    }

    fn wrapped_mut(&mut self) -> &mut dyn Strategy {
        &mut self.search
    }

    fn on_begin(&mut self, rng: &mut Rng) {
        let Some(turn) = self.turn else {
            self.turn = Some(self.second.unwrap_or_else(|| rng.below(2 * FREE.len())));
            return self.search.plan(POS, true);
        };
        self.turn = Some(turn + 1);
        match turn % 2 {
            0 => self.search.plan(AIMED[turn / 2 % AIMED.len()], true),
            _ => self.search.plan(FREE[turn / 2 % FREE.len()], false),
        }
    }
}

/// The strategy of `mix`.
pub const ENTRY: Entry = Entry {
    name: "mix",
    about: "reads-from in every second execution; pct, surw, uniform, random and pos in turn",
    argument: None,
    systematic: false,
    new: |_| Box::<Mix>::default(),
};
