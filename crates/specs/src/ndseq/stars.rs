//! Which stars nodes are in.
//!
//! Nodes are in *groups*; all nodes of a group are in the same stars. Of stars that the program marks, each is a
//! group. Where stars are only considered, executions of statements are groups, and stars may overlap: then what is
//! in several stars can be left out if any of them can.

use super::execution::{Execution, NONE, NodeId};

/// Lists by number, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// The `count` lists that pairs of a list and an item make, which `pairs` gives twice in the same order.
    pub fn of<I: Iterator<Item = (u32, u32)>>(count: usize, pairs: impl Fn() -> I) -> Lists {
        let mut starts = vec![0; count + 1];
        pairs().for_each(|(list, _)| starts[list as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[count] as usize];
        for (list, item) in pairs() {
            let at = &mut next[list as usize];
            items[*at as usize] = item;
            *at += 1;
        }
        Lists { starts, items }
    }

    /// One of them.
    #[inline]
    pub fn get(&self, list: u32) -> &[u32] {
        let list = list as usize;
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which stars nodes are in.
#[derive(Clone, Debug)]
pub struct Stars {
    /// By node, its group, or [`NONE`] outside of all.
    pub of: Vec<u32>,
    /// By group, the innermost stars around it; none if it is in no star.
    pub around: Lists,
    /// By star, the group that it is directly in, or [`NONE`].
    pub outer: Vec<u32>,
}

impl Stars {
    /// Those that the program marks.
    pub fn marked(execution: &Execution) -> Stars {
        let count = execution.stars().len();
        Stars {
            of: execution.nodes().iter().map(|n| n.star).collect(),
            around: Lists::of(count, || (0..count as u32).map(|star| (star, star))),
            outer: execution.stars().iter().map(|s| s.outer).collect(),
        }
    }

    /// One around every execution of a statement: nothing less is relevant under any stars.
    pub fn everywhere(execution: &Execution) -> Stars {
        let count = execution.statements().len();
        Stars {
            of: execution.nodes().iter().map(|n| n.statement).collect(),
            around: Lists::of(count, || (0..count as u32).map(|group| (group, group))),
            outer: execution.statements().iter().map(|s| s.outer).collect(),
        }
    }

    /// The innermost stars around a node.
    #[inline]
    pub(super) fn around_node(&self, node: NodeId) -> &[u32] {
        self.around_group(self.of[node as usize])
    }

    #[inline]
    pub(super) fn around_group(&self, group: u32) -> &[u32] {
        if group == NONE { &[] } else { self.around.get(group) }
    }
}
