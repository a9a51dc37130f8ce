//! Which pairs of executions satisfy a condition: by classes, so that pairs are looked at one by one only where numbers
//! are near each other in a chain.

use rustc_hash::FxHashMap;

use super::columns::Column;
use super::set::Set;

/// One side of the table: a column for each conjunct.
pub(super) struct Side<'a> {
    pub(super) columns: Vec<Column<'a>>,
    /// Random words for each class of each column; the sum over the columns of a condition tells rows apart.
    words: Vec<Vec<u128>>,
    executions: usize,
}

/// Executions that agree on the classes of a condition.
pub(super) type Groups = Vec<Vec<u32>>;

impl<'a> Side<'a> {
    pub(super) fn new(columns: Vec<Column<'a>>, executions: usize) -> Side<'a> {
        let mut state = 0x5e17_ed6e_u128;
        let mut word = || {
            state = mixed(state);
            state
        };
        let words = columns.iter().map(|column| {
            let classes = column.classes.iter().max().map_or(0, |max| *max as usize + 1);
            (0..classes).map(|_| word()).collect()
        });
        let words = words.collect();
        Side { columns, words, executions }
    }

    /// How many conjuncts there are.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The groups of executions that agree on the classes, in the order of their first members.
    pub(super) fn groups(&self, condition: &Set) -> Groups {
        let mut sums = vec![0_u128; self.executions];
        for c in condition.iter() {
            let words = &self.words[c];
            let classes = &self.columns[c].classes;
            sums.iter_mut().zip(classes).for_each(|(s, k)| *s = s.wrapping_add(words[*k as usize]));
        }
        let mut numbers = FxHashMap::default();
        let mut groups: Groups = Vec::new();
        for (i, sum) in sums.into_iter().enumerate() {
            let group = *numbers.entry(sum).or_insert(groups.len());
            if group == groups.len() {
                groups.push(Vec::new());
            }
            groups[group].push(i as u32);
        }
        groups
    }

    /// The columns of the condition that classes alone do not decide.
    pub(super) fn loose(&self, condition: &Set) -> Vec<&Column<'a>> {
        condition.iter().map(|c| &self.columns[c]).filter(|c| c.loose.is_some()).collect()
    }

    /// The conjuncts that hold for the two executions.
    pub(super) fn agreement(&self, i: usize, j: usize) -> Set {
        let mut set = Set::empty(self.len());
        for (c, column) in self.columns.iter().enumerate() {
            if column.same(i, j) {
                set.insert(c);
            }
        }
        set
    }

    /// How many pairs of different executions satisfy the condition.
    pub(super) fn count(&self, condition: &Set) -> u64 {
        let loose = self.loose(condition);
        let groups = self.groups(condition);
        if loose.is_empty() {
            return groups.iter().map(|g| g.len() as u64 * (g.len() as u64 - 1) / 2).sum();
        }
        groups.iter().map(|group| pairs(group, &loose).count() as u64).sum()
    }
}

/// The pairs of a group that agree on the columns.
pub(super) fn pairs<'g>(
    group: &'g [u32],
    loose: &'g [&Column<'_>],
) -> impl Iterator<Item = (usize, usize)> + 'g {
    group.iter().enumerate().flat_map(move |(k, &j)| {
        let earlier = group[..k].iter().map(move |&i| (i as usize, j as usize));
        earlier.filter(move |&(i, j)| loose.iter().all(|c| c.same(i, j)))
    })
}

/// A pair of the group that the column tells apart, if there is one.
pub(super) fn apart(group: &[u32], column: &Column<'_>) -> Option<(usize, usize)> {
    let first = group[0] as usize;
    let class = column.classes[first];
    if let Some(&other) = group.iter().find(|&&i| column.classes[i as usize] != class) {
        return Some((first, other as usize));
    }
    column.loose.as_ref()?;
    pairs(group, &[]).find(|&(i, j)| !column.same(i, j))
}

/// SplitMix64 on both halves.
fn mixed(state: u128) -> u128 {
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let low = (state as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let high = ((state >> 64) as u64).wrapping_add(0xd1b5_4a32_d192_ed03);
    u128::from(mix(low)) | u128::from(mix(high ^ low)) << 64
}
