//! Weakest preconditions of a postcondition: all (definition 2), and those that occur (definition 9).
//!
//! Both searches ask [`Study::implies`] and learn from the answer: a pair that refutes a precondition refutes all that
//! hold for the pair.
//!
//! - *All*: algorithm 3 takes conjuncts away as long as it can, which gives one weakest precondition. Any other one
//!   lacks a conjunct of each that is known, so the search goes on without one of them at a time (Reiter's hitting-set
//!   tree). Conjuncts that imply others are taken away first, so that the weaker ones stay.
//! - *Occurring*: algorithm 4, where only pairs of different inputs with the same results are candidates, because a pair
//!   with different results refutes itself; and the smaller ones are tried first, so that what is found is weakest.
//!
//! The number of pairs, of tries and of results is bounded; [`Found::cut_short`] says that a bound was reached.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use super::set::Set;
use super::study::Study;
use crate::Predicate;

/// Pairs of inputs that are looked at.
const PAIRS: usize = 1_000_000;
/// Questions to [`Study::implies`].
const TRIES: usize = 1_000;
/// Preconditions that are found.
const RESULTS: usize = 64;
/// Nodes of the hitting-set tree.
const NODES: usize = 10_000;

/// The weakest preconditions that were found.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// At least one.
    pub preconditions: Vec<Set>,
    /// There may be others, and these may not be weakest among those that occur.
    pub cut_short: bool,
}

/// Asks whether preconditions imply a postcondition, and remembers.
struct Oracle<'s, 'a> {
    study: &'s Study<'a>,
    post: &'s Set,
    /// What holds for pairs that break the postcondition.
    refuted: Vec<Set>,
    tries: usize,
}

impl Oracle<'_, '_> {
    /// None: there were too many questions.
    fn implies(&mut self, pre: &Set) -> Option<bool> {
        if self.refuted.iter().any(|r| pre.is_subset(r)) {
            return Some(false);
        }
        if self.tries == TRIES {
            return None;
        }
        self.tries += 1;
        Some(match self.study.implies(pre, self.post) {
            Ok(()) => true,
            Err((i, j)) => {
                self.refuted.push(self.study.before.agreement(i, j));
                false
            }
        })
    }

    /// Algorithm 3, from a precondition that implies the postcondition.
    fn weaken(&mut self, mut pre: Set, order: &[usize]) -> Option<Set> {
        for &c in order {
            if pre.contains(c) {
                let weaker = pre.without(c);
                if self.implies(&weaker)? {
                    pre = weaker;
                }
            }
        }
        Some(pre)
    }
}

impl Study<'_> {
    fn oracle<'s>(&'s self, post: &'s Set) -> Oracle<'s, 's> {
        Oracle { study: self, post, refuted: Vec::new(), tries: 0 }
    }

    /// All weakest preconditions of the postcondition, the one that algorithm 3 finds first. The postcondition must hold
    /// for executions that begin alike.
    pub fn weakest_preconditions(&self, post: &Set) -> Found {
        let strength = |c: &usize| match self.before.columns[*c].conjunct.predicate {
            Predicate::Exact => 0,
            Predicate::Multiset => 1,
            _ => 2,
        };
        let mut order: Vec<usize> = (0..self.before.len()).collect();
        // The last locations first, so that the first ones stay.
        order.reverse();
        order.sort_by_key(strength);
        let mut oracle = self.oracle(post);
        let mut found: Vec<Set> = Vec::new();
        let mut excluded = BTreeSet::from([(0, Set::empty(self.before.len()))]);
        let mut cut_short = false;
        let mut nodes = 0;
        while let Some((_, without)) = excluded.pop_first() {
            nodes += 1;
            if nodes > NODES {
                cut_short = true;
                break;
            }
            let known = found.iter().find(|f| !f.iter().any(|c| without.contains(c)));
            let pre = match known {
                Some(pre) => pre.clone(),
                None => {
                    let mut rest = Set::full(self.before.len());
                    without.iter().for_each(|c| rest.remove(c));
                    let implied = oracle.implies(&rest);
                    let weakest = match implied {
                        Some(false) => continue,
                        Some(true) => oracle.weaken(rest.clone(), &order),
                        None => None,
                    };
                    let Some(weakest) = weakest.filter(|_| found.len() < RESULTS) else {
                        cut_short = true;
                        break;
                    };
                    found.push(weakest.clone());
                    weakest
                }
            };
            for c in pre.iter() {
                let mut more = without.clone();
                more.insert(c);
                excluded.insert((more.len(), more));
            }
        }
        if found.is_empty() {
            found.push(Set::full(self.before.len()));
        }
        Found { preconditions: found, cut_short }
    }

    /// The weakest occurring preconditions of the postcondition, the shortest first. The postcondition must hold for
    /// executions that begin alike, and there must be two such executions.
    pub fn weakest_occurring_preconditions(&self, post: &Set) -> Found {
        let (candidates, mut cut_short) = self.occurring(post);
        let mut oracle = self.oracle(post);
        let mut found: Vec<Set> = Vec::new();
        for candidate in candidates {
            if found.iter().any(|f| f.is_subset(&candidate)) {
                continue;
            }
            if found.len() == RESULTS {
                cut_short = true;
                break;
            }
            match oracle.implies(&candidate) {
                Some(true) => found.push(candidate),
                Some(false) => {}
                None => cut_short = true,
            }
        }
        // What holds between executions that begin alike: everything. It is a candidate too, and always implies.
        let everything = Set::full(self.before.len());
        if found.is_empty() {
            found.push(everything);
        }
        Found { preconditions: found, cut_short }
    }

    /// The preconditions that occur between executions of different inputs with the same results, the smaller ones first.
    fn occurring(&self, post: &Set) -> (Vec<Set>, bool) {
        let mut tight = post.clone();
        post.iter()
            .filter(|c| self.after.columns[*c].loose.is_some())
            .for_each(|c| tight.remove(c));
        let mut seen = FxHashSet::default();
        let mut candidates: FxHashMap<Set, ()> = FxHashMap::default();
        let mut pairs = 0;
        for mut group in self.after.groups(&tight) {
            // Executions of one input need only one representative: they agree on everything.
            seen.clear();
            group.retain(|&i| seen.insert(self.inputs[i as usize]));
            for (k, &j) in group.iter().enumerate() {
                for &i in &group[..k] {
                    if pairs == PAIRS {
                        return (by_size(candidates), true);
                    }
                    pairs += 1;
                    candidates.insert(self.before.agreement(i as usize, j as usize), ());
                }
            }
        }
        (by_size(candidates), false)
    }
}

fn by_size(candidates: FxHashMap<Set, ()>) -> Vec<Set> {
    let mut candidates: Vec<Set> = candidates.into_keys().collect();
    // Of equal size, those of the first conjuncts first: bits of small numbers are the low ones.
    candidates.sort_by_cached_key(|set| (set.len(), set.iter().collect::<Vec<_>>()));
    candidates
}
