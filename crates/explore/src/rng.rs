//! Random numbers that are the same for the same seed in every version and on every machine.
//!
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one multiplication-and-shift chain per number, no
//! state beyond a word, any seed is good. A dependency's generator may change with its version, and
//! then every seed that a user has written down would mean another schedule.

/// A generator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rng(u64);

impl Rng {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The generator of the `index`th execution of a search with this seed.
    pub fn of_execution(seed: u64, index: u64) -> Rng {
        Rng(derive(seed, index))
    }

    /// A number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number less than `bound`, which is not zero. The bias is less than `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        debug_assert!(bound > 0);
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// The same with 32 bits.
    pub fn number(&mut self, below: u32) -> u32 {
        self.below(below as usize) as u32
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Puts the elements in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The seed of the `index`th execution (or shard) under `seed`, unrelated to those of its neighbours.
pub fn derive(seed: u64, index: u64) -> u64 {
    mix(mix(seed ^ 0x5e1f_ed9e) ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93))
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_never_change() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn chance_is_what_it_says() {
        let mut rng = Rng::new(7);
        let hits = (0..10_000).filter(|_| rng.chance(0.25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!rng.chance(0.0));
        assert!(rng.chance(1.0));
    }
}
