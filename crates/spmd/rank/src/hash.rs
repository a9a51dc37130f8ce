//! Hashing of small keys of our own: numbers and a few of them together.
//!
//! The standard library's hash withstands keys that somebody chooses to collide, and costs several times as much. The
//! keys here come from the program under observation, which has nothing to gain by that.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map with this hash. Its order is the same in every execution.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// A set with this hash.
pub type Set<K> = HashSet<K, BuildHasherDefault<Mixed>>;

/// Each word is added and multiplied in.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    fn finish(&self) -> u64 {
        // Tables look at the low bits and at the highest, and only the high ones depend on all words so far.
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher, Hash};

    fn hash(of: impl Hash) -> u64 {
        BuildHasherDefault::<Mixed>::default().hash_one(of)
    }

    #[test]
    fn neighbours_spread_over_a_table() {
        let places = |n: u64, of: &dyn Fn(u64) -> u64| -> usize {
            let places: HashSet<u64> = (0..n).map(|i| of(i) % 1024).collect();
            places.len()
        };
        // Random numbers fill 63% of as many places.
        for step in [1, 8, 4096, 1 << 32] {
            assert!(places(1024, &|i| hash(i * step)) > 500, "{step}");
            assert!(places(1024, &|i| hash((7u32, i * step, 3u8))) > 500, "{step}");
        }
        assert_ne!(hash("one"), hash("two"));
    }
}
