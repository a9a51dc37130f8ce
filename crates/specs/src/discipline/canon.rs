//! The canonical form of a sequence of steps, so that the same execution always gives the same words.
//!
//! A step is not written twice in a row. A block of two to four steps that repeats is written once, as
//! `( … )+`: from the left, as soon as the last steps are a block twice, shorter blocks first. Steps that
//! begin the block once more belong to the repetition, also if the end of the execution cuts it off.
//!
//! [`Sequences`] does this step by step, and gives equal sequences equal numbers: a million variables with the
//! same history cost one. `( … )+` never stands inside another one.
//!
//! *Guarantee*: what is written depends only on the steps that were pushed, and the steps pushed are a
//! beginning of what is written.
//!
//! Cost: a look-up for a step that has followed the same sequence before. Memory follows the distinct sequences.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::{Sequence, Step};

/// The longest block that is recognised as a repetition.
const LONGEST: usize = 4;

/// A sequence of steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SequenceId(u32);

impl SequenceId {
    /// No steps.
    pub const EMPTY: SequenceId = SequenceId(0);
}

/// A part of a folded sequence.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Folded<S> {
    /// A step.
    Once(S),
    /// Steps that repeat.
    Repeat(Vec<S>),
}

/// Sequences of steps of type `S`.
#[derive(Debug)]
pub struct Sequences<S> {
    // invariant: the first one is the end of all others, and is its own parent.
    nodes: Vec<Node<S>>,
    known: FxHashMap<(SequenceId, Item<S>), SequenceId>,
    pushed: FxHashMap<(SequenceId, S), SequenceId>,
}

#[derive(Clone, Debug)]
struct Node<S> {
    before: SequenceId,
    item: Item<S>,
    len: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Item<S> {
    Nothing,
    Once(S),
    /// A block that has been there at least twice, and `begun` steps of it once more.
    // invariant: `begun` is less than the length of the block.
    Repeat {
        block: Vec<S>,
        begun: usize,
    },
}

impl<S: Clone + Eq + Hash> Default for Sequences<S> {
    fn default() -> Sequences<S> {
        let end = Node { before: SequenceId::EMPTY, item: Item::Nothing, len: 0 };
        Sequences { nodes: vec![end], known: FxHashMap::default(), pushed: FxHashMap::default() }
    }
}

impl<S: Clone + Eq + Hash> Sequences<S> {
    /// The sequence with one more step.
    pub fn push(&mut self, sequence: SequenceId, step: S) -> SequenceId {
        if self.last(sequence) == Some(&step) {
            return sequence;
        }
        let key = (sequence, step);
        if let Some(&known) = self.pushed.get(&key) {
            return known;
        }
        let step = key.1.clone();
        let Node { before, item, .. } = self.node(sequence).clone();
        let next = match item {
            Item::Nothing | Item::Once(_) => self.append(sequence, step),
            Item::Repeat { block, begun } if block[begun] == step => {
                let begun = (begun + 1) % block.len();
                self.intern(before, Item::Repeat { block, begun })
            }
            Item::Repeat { block, begun } => {
                // The repetition is over: what it had begun once more stands for itself.
                let tail = block[..begun].to_vec();
                let over = self.intern(before, Item::Repeat { block, begun: 0 });
                let tail = tail.into_iter().fold(over, |s, step| self.append(s, step));
                self.append(tail, step)
            }
        };
        self.pushed.insert(key, next);
        next
    }

    /// The step that was pushed last.
    pub fn last(&self, sequence: SequenceId) -> Option<&S> {
        match &self.node(sequence).item {
            Item::Nothing => None,
            Item::Once(step) => Some(step),
            Item::Repeat { block, begun } => block.get((begun + block.len() - 1) % block.len()),
        }
    }

    /// How many steps are written.
    pub fn len(&self, sequence: SequenceId) -> usize {
        self.node(sequence).len
    }

    /// What is written, in order.
    pub fn items(&self, sequence: SequenceId) -> Vec<Folded<S>> {
        let mut items = Vec::new();
        let mut at = sequence;
        while at != SequenceId::EMPTY {
            let node = self.node(at);
            match &node.item {
                Item::Nothing => {}
                Item::Once(step) => items.push(Folded::Once(step.clone())),
                Item::Repeat { block, .. } => items.push(Folded::Repeat(block.clone())),
            }
            at = node.before;
        }
        items.reverse();
        items
    }

    /// Forgets all sequences.
    pub fn clear(&mut self) {
        self.nodes.truncate(1);
        self.known.clear();
        self.pushed.clear();
    }

    fn node(&self, sequence: SequenceId) -> &Node<S> {
        &self.nodes[sequence.0 as usize]
    }

    fn append(&mut self, sequence: SequenceId, step: S) -> SequenceId {
        let next = self.intern(sequence, Item::Once(step));
        (2..=LONGEST).find_map(|len| self.folded(next, len)).unwrap_or(next)
    }

    /// The sequence with a repetition at its end, if its last steps are a block of `len` steps twice.
    fn folded(&mut self, sequence: SequenceId, len: usize) -> Option<SequenceId> {
        let mut tail = Vec::with_capacity(2 * len);
        let mut at = sequence;
        while tail.len() < 2 * len {
            let node = self.node(at);
            let Item::Once(step) = &node.item else { return None };
            tail.push(step);
            at = node.before;
        }
        if tail[..len] != tail[len..] {
            return None;
        }
        let block = tail[..len].iter().rev().map(|&step| step.clone()).collect();
        Some(self.intern(at, Item::Repeat { block, begun: 0 }))
    }

    fn intern(&mut self, before: SequenceId, item: Item<S>) -> SequenceId {
        if let Some(&known) = self.known.get(&(before, item.clone())) {
            return known;
        }
        let own = match &item {
            Item::Nothing => 0,
            Item::Once(_) => 1,
            Item::Repeat { block, .. } => block.len(),
        };
        let id = SequenceId(self.nodes.len() as u32);
        let len = self.node(before).len + own;
        self.nodes.push(Node { before, item: item.clone(), len });
        self.known.insert((before, item), id);
        id
    }
}

/// A step of which some names are still open.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Open<N> {
    /// Each name is one of these.
    pub step: Step<Vec<N>>,
    /// The step, a transition, is not needed if the next one is `guarded-by` one of these.
    pub unless: Vec<N>,
}

/// The sequence in which `choose` has picked one of several names, in canonical form again.
pub fn close<N: Clone + Eq + Hash>(
    sequence: &[Folded<Open<N>>],
    mut choose: impl FnMut(&[N]) -> N,
) -> Sequence<N> {
    // A repetition stands for at least two.
    let open: Vec<&Open<N>> = sequence
        .iter()
        .flat_map(|part| match part {
            Folded::Once(step) => vec![step],
            Folded::Repeat(block) => block.iter().chain(block).collect(),
        })
        .collect();
    let mut name = |of: &Vec<N>| choose(of);
    let closed: Vec<Step<N>> = open.iter().map(|o| o.step.map(&mut name)).collect();
    let mut sequences = Sequences::default();
    let mut id = SequenceId::EMPTY;
    for (i, of) in open.iter().enumerate() {
        let phase = closed[i..].iter().find(|s| !s.is_transition());
        let needless = matches!(phase, Some(Step::GuardedBy(lock)) if of.unless.contains(lock));
        if !needless {
            id = sequences.push(id, closed[i].clone());
        }
    }
    let written = |part| match part {
        Folded::Once(step) => step,
        Folded::Repeat(block) => Step::Repeat(block),
    };
    sequences.items(id).into_iter().map(written).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds letters; `(ab)+` is a repetition.
    fn folded(steps: &str) -> String {
        let mut sequences = Sequences::default();
        let id = steps.chars().fold(SequenceId::EMPTY, |s, c| sequences.push(s, c));
        let part = |part: Folded<char>| match part {
            Folded::Once(c) => c.to_string(),
            Folded::Repeat(block) => format!("({})+", block.iter().collect::<String>()),
        };
        sequences.items(id).into_iter().map(part).collect()
    }

    #[test]
    fn blocks_that_repeat_are_written_once() {
        for (steps, expected) in [
            ("", ""),
            ("aab", "ab"),
            ("aba", "aba"),
            ("abab", "(ab)+"),
            ("xababab", "x(ab)+"),
            ("xababa", "x(ab)+"),
            ("ababac", "(ab)+ac"),
            ("ababb", "(ab)+"),
            ("abcabcab", "(abc)+"),
            ("abcdabcd", "(abcd)+"),
            ("abcdeabcde", "abcdeabcde"),
            ("ababcdcd", "(ab)+(cd)+"),
            ("abacabacabab", "(abac)+(ab)+"),
        ] {
            assert_eq!(folded(steps), expected, "{steps}");
        }
    }

    #[test]
    fn equal_histories_have_equal_numbers() {
        let mut sequences = Sequences::default();
        let mut push =
            |text: &str| text.chars().fold(SequenceId::EMPTY, |s, c| sequences.push(s, c));
        assert_eq!(push("xab"), push("xab"));
        assert_eq!(push("xabab"), push("xababab"));
        assert_ne!(push("xabab"), push("xababa"), "what comes next differs");
        let id = push("xab");
        assert_eq!((sequences.len(id), sequences.last(id)), (3, Some(&'b')));
    }

    #[test]
    fn a_transition_goes_if_the_chosen_lock_orders() {
        let open =
            |step, unless: &[&'static str]| Folded::Once(Open { step, unless: unless.to_vec() });
        let sequence = [
            open(Step::ThreadLocal, &[]),
            open(Step::Join, &["m"]),
            open(Step::GuardedBy(vec!["m", "n"]), &[]),
        ];
        let first = close(&sequence, |names| names[0]);
        assert_eq!(first, [Step::ThreadLocal, Step::GuardedBy("m")]);
        let last = close(&sequence, |names| names[names.len() - 1]);
        assert_eq!(last, [Step::ThreadLocal, Step::Join, Step::GuardedBy("n")]);
    }
}
