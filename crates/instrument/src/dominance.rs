//! Which blocks a block dominates (control cannot come to them without coming to it), and the loops of a function.
//!
//! Dominators by the iteration of Cooper, Harvey and Kennedy (A Simple, Fast Dominance Algorithm, 2001). A loop is natural:
//! the blocks from which a jump back to its header is reached without the header, which dominates them all.

use crate::ir::Function;

const NONE: u32 = u32::MAX;

/// The dominators of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dominators {
    /// By block the closest block that dominates it; the entry's is itself, those that are never reached have none.
    closest: Vec<u32>,
    /// By block its place in an order in which a block comes after those that dominate it.
    place: Vec<u32>,
    predecessors: Vec<Vec<u32>>,
}

impl Dominators {
    #[allow(missing_docs)]
    pub fn of(function: &Function) -> Dominators {
        let count = function.blocks.len();
        let mut predecessors = vec![Vec::new(); count];
        for (b, block) in function.blocks.iter().enumerate() {
            for &to in &block.successors {
                predecessors[to as usize].push(b as u32);
            }
        }
        let order = reverse_postorder(function);
        let mut place = vec![NONE; count];
        for (at, &block) in order.iter().enumerate() {
            place[block as usize] = at as u32;
        }
        let mut dominators = Dominators { closest: vec![NONE; count], place, predecessors };
        if let Some(entry) = dominators.closest.first_mut() {
            *entry = 0;
        }
        while order.iter().skip(1).filter(|&&b| dominators.update(b)).count() > 0 {}
        dominators
    }

    /// Takes over what the predecessors of a block have in common; whether that is new.
    fn update(&mut self, block: u32) -> bool {
        let known = |&&p: &&u32| self.closest[p as usize] != NONE;
        let common = self.predecessors[block as usize]
            .iter()
            .filter(known)
            .copied()
            .reduce(|a, b| self.common(a, b))
            .unwrap_or(NONE);
        std::mem::replace(&mut self.closest[block as usize], common) != common
    }

    fn common(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            if self.place[a as usize] < self.place[b as usize] {
                std::mem::swap(&mut a, &mut b);
            }
            a = self.closest[a as usize];
        }
        a
    }

    /// Whether control can come to a block.
    pub fn is_reached(&self, block: u32) -> bool {
        self.place[block as usize] != NONE
    }

    /// Whether control comes to `b` only through `a`. Both are reached.
    pub fn dominates(&self, a: u32, mut b: u32) -> bool {
        while self.place[b as usize] > self.place[a as usize] {
            b = self.closest[b as usize];
        }
        a == b
    }

    /// From where control comes to a block.
    pub fn predecessors(&self, block: u32) -> &[u32] {
        &self.predecessors[block as usize]
    }

    /// The blocks that are reached, each before those that only it leads to.
    pub fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.place.len() as u32).collect();
        order.retain(|&b| self.is_reached(b));
        order.sort_by_key(|&b| self.place[b as usize]);
        order
    }
}

fn reverse_postorder(function: &Function) -> Vec<u32> {
    let mut order = Vec::new();
    let mut seen = vec![false; function.blocks.len()];
    // Blocks, and how many of their successors have been visited.
    let mut open: Vec<(u32, usize)> = Vec::new();
    if let Some(entry) = seen.first_mut() {
        *entry = true;
        open.push((0, 0));
    }
    while let Some((block, next)) = open.pop() {
        match function.blocks[block as usize].successors.get(next) {
            Some(&to) => {
                open.push((block, next + 1));
                if !std::mem::replace(&mut seen[to as usize], true) {
                    open.push((to, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

/// A loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The block through which it is entered.
    pub header: u32,
    /// By block, whether it is part of the loop.
    pub contains: Vec<bool>,
    /// How many blocks it has.
    pub size: usize,
    /// The blocks that jump back to the header.
    pub latches: Vec<u32>,
    /// The only block outside from which it is entered.
    pub before: Option<u32>,
    /// The edges that leave it: from which block, and which of its successors.
    pub exits: Vec<(u32, u32)>,
}

/// The loops of a function, inner ones before those around them.
pub fn loops(function: &Function, dominators: &Dominators) -> Vec<Loop> {
    let mut found: Vec<Loop> = Vec::new();
    for header in dominators.in_order() {
        let from = dominators.predecessors(header).iter().copied();
        let from: Vec<u32> = from.filter(|&p| dominators.is_reached(p)).collect();
        let (latches, outside): (Vec<u32>, Vec<u32>) =
            from.into_iter().partition(|&p| dominators.dominates(header, p));
        if latches.is_empty() {
            continue;
        }
        let mut contains = vec![false; function.blocks.len()];
        contains[header as usize] = true;
        let mut open = latches.clone();
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut contains[block as usize], true) {
                let reached = |p: &&u32| dominators.is_reached(**p);
                open.extend(dominators.predecessors(block).iter().filter(reached));
            }
        }
        let inside = (0..contains.len() as u32).filter(|&b| contains[b as usize]);
        let exits = inside
            .flat_map(|b| (0..).zip(&function.blocks[b as usize].successors).map(move |e| (b, e)))
            .filter(|(_, (_, to))| !contains[**to as usize])
            .map(|(b, (slot, _))| (b, slot))
            .collect();
        let size = contains.iter().filter(|c| **c).count();
        let before = <[u32; 1]>::try_from(outside).ok().map(|[only]| only);
        found.push(Loop { header, contains, size, latches, before, exits });
    }
    found.sort_by_key(|l| l.size);
    found
}

/// How many edges lead to a block.
pub fn edges_to(function: &Function, block: u32) -> usize {
    function.blocks.iter().flat_map(|b| &b.successors).filter(|&&s| s == block).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Block;

    /// A function of which only the edges matter.
    pub(crate) fn shape(edges: &[&[u32]]) -> Function {
        let block = |to: &&[u32]| Block { successors: to.to_vec(), ..Block::default() };
        Function { blocks: edges.iter().map(block).collect(), ..Function::default() }
    }

    /// Whether the entry leads to a block without another one.
    fn leads(function: &Function, to: u32, without: Option<u32>) -> bool {
        let mut seen = vec![false; function.blocks.len()];
        let mut open = vec![0];
        while let Some(block) = open.pop() {
            if Some(block) != without && !std::mem::replace(&mut seen[block as usize], true) {
                open.extend(&function.blocks[block as usize].successors);
            }
        }
        seen[to as usize]
    }

    #[test]
    fn dominators_are_those_of_the_definition() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..2_000 {
            let count = 1 + next(8);
            let edges: Vec<Vec<u32>> =
                (0..count).map(|_| (0..next(3)).map(|_| next(count) as u32).collect()).collect();
            let function = shape(&edges.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let dominators = Dominators::of(&function);
            for b in 0..count as u32 {
                assert_eq!(dominators.is_reached(b), leads(&function, b, None));
                for a in 0..count as u32 {
                    if dominators.is_reached(a) && dominators.is_reached(b) {
                        let expected = !leads(&function, b, Some(a));
                        assert_eq!(dominators.dominates(a, b), expected, "{edges:?} {a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn loops_within_loops() {
        // 0 → 1 → 2 ⇄ 2, 2 → 3 → 1, 3 → 4
        let function = shape(&[&[1], &[2], &[2, 3], &[1, 4], &[]]);
        let found = loops(&function, &Dominators::of(&function));
        let parts: Vec<_> =
            found.iter().map(|l| (l.header, l.size, l.before, l.exits.clone())).collect();
        assert_eq!(parts, [(2, 1, Some(1), vec![(2, 1)]), (1, 3, Some(0), vec![(3, 1)])]);
    }
}
