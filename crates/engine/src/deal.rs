//! Which shard runs which number.
//!
//! A strategy that learns finds more with fewer strategies beside it, and many processes can only share the work if there
//! are many shards. So the early numbers belong to a few shards, and the later ones to many, of which those few are
//! part: a small campaign learns as fast as it can, and a large one can be divided among many processes. Which shard a
//! number belongs to depends on nothing else.

/// The number of strategies that share the early executions of a search.
pub const FEW: u64 = 4;
/// The number of strategies that share the later ones.
pub const MANY: u64 = 64;
/// How many executions are early.
pub const EARLY: u64 = 4096;

/// The shards of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deal {
    few: u64,
    many: u64,
    /// How many numbers there are.
    pub numbers: u64,
}

impl Deal {
    /// So many numbers, for a few shards.
    pub fn few(numbers: u64) -> Deal {
        let few = FEW.min(numbers.max(1));
        Deal { few, many: few, numbers }
    }

    /// So many numbers; many shards share the later ones.
    pub fn many(numbers: u64) -> Deal {
        match numbers {
            ..=EARLY => Deal::few(numbers),
            _ => Deal { few: FEW, many: MANY, numbers },
        }
    }

    /// So many numbers, for one shard.
    pub fn one(numbers: u64) -> Deal {
        Deal { few: 1, many: 1, numbers }
    }

    /// How many shards there are.
    pub fn shards(&self) -> u64 {
        self.many
    }

    /// How many of them, the first ones, share the early numbers.
    pub fn early(&self) -> u64 {
        self.few
    }

    /// The shards that have any number.
    pub fn busy(&self) -> impl Iterator<Item = u64> + use<> {
        let deal = *self;
        (0..self.many).filter(move |shard| deal.number(*shard, 0) < deal.numbers)
    }

    /// The shard that a number belongs to.
    pub fn shard(&self, number: u64) -> u64 {
        match number.checked_sub(EARLY) {
            Some(late) => late % self.many,
            None => number % self.few,
        }
    }

    /// The number that a shard runs after so many others.
    pub fn number(&self, shard: u64, after: u64) -> u64 {
        let early = if shard < self.few { EARLY / self.few } else { 0 };
        match after.checked_sub(early) {
            Some(late) => EARLY + shard + late * self.many,
            None => shard + after * self.few,
        }
    }

    /// The number that the shard of a number runs next.
    pub fn next(&self, number: u64) -> u64 {
        match number {
            EARLY.. => number + self.many,
            _ if number + self.few < EARLY => number + self.few,
            _ => EARLY + self.shard(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_run_once_and_in_the_order_of_its_shard() {
        for numbers in [0, 1, 3, 4, 160, EARLY - 1, EARLY, EARLY + 1, EARLY + 63, 9_999] {
            for deal in [Deal::one(numbers), Deal::few(numbers), Deal::many(numbers)] {
                let mut run = vec![0; usize::try_from(numbers).unwrap()];
                for shard in deal.busy() {
                    let mut number = deal.number(shard, 0);
                    let mut after = 0;
                    while number < numbers {
                        assert_eq!(
                            (deal.shard(number), deal.number(shard, after)),
                            (shard, number)
                        );
                        run[usize::try_from(number).unwrap()] += 1;
                        after += 1;
                        let next = deal.next(number);
                        assert!(next > number);
                        number = next;
                    }
                }
                assert!(run.iter().all(|times| *times == 1), "{deal:?}");
            }
        }
    }

    #[test]
    fn a_small_search_has_few_shards_and_a_large_one_gives_every_process_work() {
        assert_eq!(Deal::many(1000), Deal::few(1000));
        assert_eq!(
            (Deal::many(EARLY + 1).busy().count(), Deal::many(5000).busy().count()),
            (4, 64)
        );
    }
}
