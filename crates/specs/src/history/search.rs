//! The search for an order: just-in-time linearization.
//!
//! Operations are linearized no earlier than they have to be: before the first return whose operation is not yet in the
//! order, this operation or one that was called by then is next. What has been tried is remembered as (operations in
//! the order, state), so that nothing is tried twice. An operation that is possible now and that never changes a state,
//! such as a read, may as well be next: if there is an order at all, there is one in which it is. So there is no branch
//! at such operations, and none at pending operations that change nothing.
//!
//! Cost: at worst exponential in the number of operations that overlap, times the number of states.

use std::hash::Hash;

use rustc_hash::FxHashSet;

use super::Operation;

/// A sequential object in one of its states.
pub trait Sequential: Clone + Eq + Hash {
    /// What can be called.
    type Op;
    /// What it returns.
    type Ret;

    /// The states after the operation, if it is possible now and returns `ret`; `None` if its result is not known.
    /// There may be several.
    fn step(&self, op: &Self::Op, ret: Option<&Self::Ret>) -> Vec<Self>;

    /// Whether the operation, with this result, changes nothing in any state that comes after this one and in which it
    /// is possible.
    fn idle(&self, op: &Self::Op, ret: &Self::Ret) -> bool {
        let _ = (op, ret);
        false
    }

    /// The same state, knowing which operations are to be put in order. A model may then refuse steps after which there
    /// is certainly no order, and take states for equal between which the operations cannot tell. None: there is no
    /// order at all.
    fn knowing(&self, operations: &[Operation<Self::Op, Self::Ret>]) -> Option<Self> {
        let _ = operations;
        Some(self.clone())
    }

    /// About how many bytes the state occupies besides its own size.
    fn heap(&self) -> usize {
        0
    }
}

/// What a search has cost so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Configurations that were tried.
    pub tried: u64,
    /// Bytes that remembering them takes, about.
    pub bytes: usize,
}

/// Decides how long a search goes on.
pub trait Limit {
    /// Whether to go on. Asked once in a thousand configurations.
    fn go_on(&mut self, spent: Spent) -> bool;

    /// Whether configurations are remembered. Without that, nothing is kept and much is tried again.
    fn remembers(&self) -> bool {
        true
    }
}

impl<F: FnMut(Spent) -> bool> Limit for F {
    fn go_on(&mut self, spent: Spent) -> bool {
        self(spent)
    }
}

/// Where the search is: which operations are in the order, and the state after them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Configuration<M> {
    /// Every operation that returned before this return (an index) is in the order.
    returned: u32,
    /// The others that are, in order of their places.
    ahead: Box<[u32]>,
    state: M,
}

/// A configuration that is being tried: what may be next in it.
struct Level<M> {
    /// The configurations that come next, each with the operation that leads there; the first to try is last.
    next: Vec<(u32, Configuration<M>)>,
}

struct Search<'a, M: Sequential> {
    operations: &'a [Operation<M::Op, M::Ret>],
    /// Operations that return, by the time of their return.
    returns: Vec<u32>,
    /// The place of each operation among the returns.
    rank: Vec<Option<u32>>,
    /// By return: the operations that were called before it and have not returned before it.
    open: Vec<Vec<u32>>,
}

/// An order of the operations, or that there is none; nothing if the limit is reached.
#[expect(clippy::option_option, reason = "undecided, none, or an order")]
pub(super) fn search<M: Sequential>(
    operations: &[Operation<M::Op, M::Ret>],
    initial: &M,
    limit: &mut dyn Limit,
) -> Option<Option<Vec<usize>>> {
    let search = Search::new(operations);
    let mut seen = FxHashSet::default();
    let mut spent = Spent::default();
    let mut order: Vec<u32> = Vec::new();
    let Some(state) = initial.knowing(operations) else {
        return Some(None);
    };
    let first = Configuration { returned: 0, ahead: Box::default(), state };
    let mut levels = match search.level(&first) {
        Some(level) => vec![level],
        None => return Some(Some(Vec::new())),
    };
    while let Some(level) = levels.last_mut() {
        let Some((op, configuration)) = level.next.pop() else {
            levels.pop();
            order.pop();
            continue;
        };
        if limit.remembers() && !seen.insert(configuration.clone()) {
            continue;
        }
        spent.tried += 1;
        spent.bytes += 2 * size_of::<Configuration<M>>()
            + 4 * configuration.ahead.len()
            + configuration.state.heap();
        if spent.tried % 1024 == 0 && !limit.go_on(spent) {
            return None;
        }
        order.push(op);
        match search.level(&configuration) {
            Some(level) => levels.push(level),
            None => return Some(Some(order.into_iter().map(|i| i as usize).collect())),
        }
    }
    Some(None)
}

impl<'a, M: Sequential> Search<'a, M> {
    fn new(operations: &'a [Operation<M::Op, M::Ret>]) -> Search<'a, M> {
        let count = u32::try_from(operations.len()).expect("fewer than 2^32 operations");
        let time = |i: &u32| operations[*i as usize].returned.as_ref().map(|(_, time)| *time);
        let mut returns: Vec<u32> = (0..count).filter(|i| time(i).is_some()).collect();
        returns.sort_by_key(time);
        let mut rank = vec![None; operations.len()];
        returns.iter().zip(0..).for_each(|(i, r)| rank[*i as usize] = Some(r));
        let mut calls: Vec<u32> = (0..count).collect();
        calls.sort_by_key(|i| operations[*i as usize].call);
        let mut calls = calls.into_iter().peekable();
        let mut busy: Vec<u32> = Vec::new();
        let open = returns.iter().map(|r| {
            let now = time(r).unwrap_or(i64::MAX);
            busy.extend(std::iter::from_fn(|| {
                calls.next_if(|i| operations[*i as usize].call <= now)
            }));
            let open = busy.clone();
            busy.retain(|i| i != r);
            open
        });
        let open = open.collect();
        Search { operations, returns, rank, open }
    }

    fn operation(&self, i: u32) -> &'a Operation<M::Op, M::Ret> {
        &self.operations[i as usize]
    }

    fn step(&self, state: &M, i: u32) -> Vec<M> {
        let operation = self.operation(i);
        state.step(&operation.op, operation.returned.as_ref().map(|(ret, _)| ret))
    }

    /// What may come next; nothing if all operations that returned are in the order.
    fn level(&self, configuration: &Configuration<M>) -> Option<Level<M>> {
        let Configuration { returned, ahead, state } = configuration;
        let first = *self.returns.get(*returned as usize)?;
        let mut next: Vec<(u32, Configuration<M>)> = Vec::new();
        let open = self.open[*returned as usize].iter().copied();
        let mut candidates: Vec<u32> = open.filter(|i| ahead.binary_search(i).is_err()).collect();
        // The operation that has to be next is tried first, then those that return earlier. The first to try is last.
        candidates.sort_by_key(|i| {
            std::cmp::Reverse((*i != first, self.rank[*i as usize].unwrap_or(u32::MAX)))
        });
        for i in candidates {
            let states = self.step(state, i);
            let Operation { op, returned, .. } = self.operation(i);
            match returned {
                Some((ret, _)) if !states.is_empty() && state.idle(op, ret) => {
                    let after = self.after(configuration, i, state.clone());
                    return Some(Level { next: vec![(i, after)] });
                }
                None if states.iter().all(|s| s == state) => {}
                _ => {
                    let after = |state| (i, self.after(configuration, i, state));
                    next.extend(states.into_iter().rev().map(after));
                }
            }
        }
        Some(Level { next })
    }

    /// The configuration after an operation.
    fn after(&self, from: &Configuration<M>, i: u32, state: M) -> Configuration<M> {
        let mut ahead = from.ahead.to_vec();
        let at = ahead.partition_point(|a| *a < i);
        ahead.insert(at, i);
        let mut returned = from.returned;
        while let Some(next) = self.returns.get(returned as usize)
            && let Ok(at) = ahead.binary_search(next)
        {
            ahead.remove(at);
            returned += 1;
        }
        Configuration { returned, ahead: ahead.into(), state }
    }
}
