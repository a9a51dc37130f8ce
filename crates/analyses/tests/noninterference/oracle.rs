//! Serializability by its definition: all pairs of events, all orders of transactions. Shares nothing
//! with the analyses but the events.

use selvedge_model::{Event, Mode, Op, RegionKind, ThreadId};

/// Whether `events[j]` has to stay behind `events[i]`, for i < j.
pub(crate) fn depends(events: &[Event], i: usize, j: usize) -> bool {
    let (a, b) = (&events[i], &events[j]);
    if a.thread == b.thread {
        return true;
    }
    match (a.op, b.op) {
        (Op::Fork(t), _) if b.thread == t => return true,
        (_, Op::Join(t)) if a.thread == t => return true,
        (Op::Fork(t), Op::Join(u)) if t == u => return true,
        (Op::Arrive(x, n), Op::Leave(y, m)) => return (x, n) == (y, m),
        (Op::Post(x), Op::Wait(y)) => return x == y,
        _ => {}
    }
    let lock = |op: &Op| match *op {
        Op::Acquire(l, mode) | Op::Release(l, mode) => Some((l, mode)),
        _ => None,
    };
    if let (Some((l, m)), Some((k, n))) = (lock(&a.op), lock(&b.op)) {
        return l == k && (m == Mode::Exclusive || n == Mode::Exclusive);
    }
    let memory = |op: &Op| match *op {
        Op::Read(a) => Some((a.addr, a.addr + u64::from(a.len), false)),
        Op::Write(a) => Some((a.addr, a.addr + u64::from(a.len), true)),
        Op::Atomic(a, op) => Some((a.addr, a.addr + u64::from(a.len), op.writes())),
        _ => None,
    };
    let (Some((s1, e1, w1)), Some((s2, e2, w2))) = (memory(&a.op), memory(&b.op)) else {
        return false;
    };
    let freed_between = |byte: u64| {
        events[i..j].iter().any(|e| match e.op {
            Op::Free(r) | Op::Alloc(r) => r.start <= byte && byte < r.start + r.len,
            _ => false,
        })
    };
    (w1 || w2) && (s1.max(s2)..e1.min(e2)).any(|byte| !freed_between(byte))
}

/// For each event a number for its transaction: those of one outermost region share one.
pub(crate) fn transactions(events: &[Event], kind: RegionKind) -> Vec<usize> {
    let mut open: Vec<(ThreadId, Vec<usize>)> = Vec::new();
    let mut result = Vec::new();
    for (i, e) in events.iter().enumerate() {
        if !open.iter().any(|(t, _)| *t == e.thread) {
            open.push((e.thread, Vec::new()));
        }
        if let Op::Join(child) = e.op
            && let Some((_, regions)) = open.iter_mut().find(|(t, _)| *t == child)
        {
            regions.clear();
        }
        let regions = &mut open.iter_mut().find(|(t, _)| *t == e.thread).unwrap().1;
        if matches!(e.op, Op::RegionEnter(_, k) if k == kind) {
            regions.push(i);
        }
        result.push(regions.first().copied().unwrap_or(i));
        if matches!(e.op, Op::RegionExit(_)) {
            regions.pop();
        }
    }
    result
}

/// The relation on `of.len()` events, joined by transactions, transitively closed; by the first event
/// of each transaction.
pub(crate) fn reachability(events: &[Event], of: &[usize]) -> Vec<Vec<bool>> {
    let n = events.len();
    let mut reaches = vec![vec![false; n]; n];
    for j in 0..n {
        for i in 0..j {
            if of[i] != of[j] && depends(events, i, j) {
                reaches[of[i]][of[j]] = true;
            }
        }
    }
    for k in 0..n {
        for i in 0..n {
            if reaches[i][k] {
                let row = reaches[k].clone();
                for (to, via) in reaches[i].iter_mut().zip(row) {
                    *to |= via;
                }
            }
        }
    }
    reaches
}

fn has_cycle(events: &[Event], of: &[usize]) -> bool {
    let reaches = reachability(events, of);
    (0..events.len()).any(|i| reaches[i][i])
}

/// The first event with which the execution is not serializable.
pub(crate) fn first_violation(events: &[Event], of: &[usize]) -> Option<usize> {
    if !has_cycle(events, of) {
        return None;
    }
    (1..=events.len()).find(|&n| has_cycle(&events[..n], &of[..n])).map(|n| n - 1)
}

/// Whether some order of whole transactions keeps every event behind those it depends on, found by
/// trying all orders.
pub(crate) fn serializable_by_permutation(events: &[Event], of: &[usize]) -> bool {
    let mut ids = of.to_vec();
    ids.sort_unstable();
    ids.dedup();
    permutations(&mut ids, 0, &mut |order| {
        let mut serial: Vec<usize> = (0..events.len()).collect();
        serial.sort_by_key(|&e| (order.iter().position(|&t| t == of[e]), e));
        let place = |e: usize| serial.iter().position(|&x| x == e);
        (0..events.len()).all(|j| (0..j).all(|i| !depends(events, i, j) || place(i) < place(j)))
    })
}

fn permutations(ids: &mut [usize], from: usize, accept: &mut impl FnMut(&[usize]) -> bool) -> bool {
    if from == ids.len() {
        return accept(ids);
    }
    (from..ids.len()).any(|i| {
        ids.swap(from, i);
        let found = permutations(ids, from + 1, accept);
        ids.swap(from, i);
        found
    })
}

/// The regions of the thread of the last event that it is in and that are on a cycle if the region
/// alone is taken for a transaction of its thread, each by the event that entered it.
pub(crate) fn violated_regions(events: &[Event], of: &[usize]) -> Vec<usize> {
    let last = events.len() - 1;
    let me = events[last].thread;
    let mut open = Vec::new();
    for (i, e) in events.iter().enumerate().filter(|(_, e)| e.thread == me) {
        match e.op {
            Op::RegionEnter(..) => open.push(i),
            Op::RegionExit(_) if i < last => {
                open.pop();
            }
            _ => {}
        }
    }
    open.into_iter()
        .filter(|&enter| {
            let split: Vec<usize> = (0..events.len())
                .map(|i| if events[i].thread == me && i >= enter { enter } else { of[i] })
                .collect();
            reachability(events, &split)[enter][enter]
        })
        .collect()
}
