//! Accesses of a loop whose addresses move by a constant in every round.

use super::Access;
use crate::dominance::Loop;
use crate::ir::{Function, Sum, What};

/// A value that counts the rounds of a loop: it begins with the value that comes from the block before the loop, and grows by
/// a constant in every round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Counter {
    /// Block and instruction.
    pub phi: (u32, u32),
    pub value: u32,
    pub before: u32,
    pub step: i64,
}

/// Accesses to tell on an edge that leaves a loop: from `start` on, each `stride` bytes behind the one before, `len` bytes
/// each. With P the address of a hook in the last round and n the rounds:
/// start = P + `offset` − `back`·(n − 1), and their number is `each`·n.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Sweep {
    pub function: u32,
    /// Block and number of the successor.
    pub edge: (u32, u32),
    /// Block and instruction of the hook.
    pub hook: (u32, u32),
    pub offset: i64,
    pub back: i64,
    pub each: i64,
    pub stride: i64,
    pub len: i64,
    pub write: bool,
    pub counter: Counter,
}

/// The counters of a loop.
pub(super) fn counters(
    function: &Function,
    around: &Loop,
    before: u32,
    sums: &[Sum],
) -> Vec<Counter> {
    let header = &function.blocks[around.header as usize];
    let mut counters = Vec::new();
    for (at, instruction) in (0..).zip(&header.instructions) {
        let What::Phi(from) = &instruction.what else { continue };
        let value = function.value(around.header as usize, at as usize);
        let next = |block: u32| from.iter().find(|f| f.0 == block).and_then(|f| f.1);
        let step = |latch: &u32| {
            let sum = &sums[next(*latch)? as usize];
            (sum.terms == [(value, 1)] && sum.fixed.is_none()).then_some(sum.offset)
        };
        let steps: Vec<Option<i64>> = around.latches.iter().map(step).collect();
        if let Some(Some(step)) = steps.first().filter(|s| steps.iter().all(|t| t == *s))
            && *step != 0
        {
            let phi = (around.header, at);
            counters.push(Counter { phi, value, before, step: *step });
        }
    }
    counters
}

/// By how much an access moves in every round, if that is constant.
pub(super) fn step(
    access: &Access,
    around: &Loop,
    counters: &[Counter],
    defined: &[Option<(u32, u32)>],
) -> Option<i64> {
    let mut step = 0_i64;
    for &(value, factor) in &access.base.terms {
        if let Some(counter) = counters.iter().find(|c| c.value == value) {
            step = step.wrapping_add(counter.step.wrapping_mul(factor));
        } else if defined[value as usize].is_some_and(|(b, _)| around.contains[b as usize]) {
            return None;
        }
    }
    Some(step)
}

/// Accesses of one round whose addresses differ by constants.
struct Group<'a> {
    base: &'a Sum,
    step: i64,
    write: bool,
    counter: Counter,
    /// The hook that the addresses are counted from, and its offset.
    hook: (u32, u32),
    from: i64,
    /// From which offset to which, in order.
    parts: Vec<(i64, i64)>,
}

/// The sweeps of hooks that move by their steps.
pub(super) fn sweeps(
    function: u32,
    around: &Loop,
    before: u32,
    counters: &[Counter],
    moving: &[((u32, u32), i64, &Access)],
) -> Vec<Sweep> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    // Writes first: reads of the same bytes are told with them.
    for write in [true, false] {
        for &(hook, step, access) in moving.iter().filter(|m| m.2.write == write) {
            let part = (access.offset, access.offset + access.len);
            let alike = |g: &Group<'_>| *g.base == access.base && g.step == step;
            let within = |g: &Group<'_>| {
                alike(g) && g.write && g.parts.iter().any(|p| p.0 <= part.0 && p.1 >= part.1)
            };
            if !write && groups.iter().any(within) {
                continue;
            }
            if let Some(group) = groups.iter_mut().find(|g| alike(g) && g.write == write) {
                group.parts.push(part);
                continue;
            }
            let Some(counter) = counter_of(access, counters, before) else { continue };
            let parts = vec![part];
            let (base, from) = (&access.base, access.offset);
            groups.push(Group { base, step, write, counter, hook, from, parts });
        }
    }
    let mut sweeps = Vec::new();
    for group in &mut groups {
        for run in runs(&mut group.parts, group.step.unsigned_abs()) {
            for &edge in &around.exits {
                sweeps.push(Sweep {
                    function,
                    edge,
                    hook: group.hook,
                    offset: run.from.wrapping_sub(group.from),
                    // Downwards, the last round is where the lowest address is.
                    back: group.step.max(0),
                    each: run.each,
                    stride: run.stride,
                    len: run.len,
                    write: group.write,
                    counter: group.counter,
                });
            }
        }
    }
    sweeps
}

fn counter_of(access: &Access, counters: &[Counter], before: u32) -> Option<Counter> {
    let counts =
        |c: &&Counter| access.base.terms.iter().any(|t| t.0 == c.value) && c.before == before;
    counters.iter().find(counts).copied()
}

/// Equal parts at equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    from: i64,
    each: i64,
    stride: i64,
    len: i64,
}

/// What the accesses of one round come to, if the next round is `step` bytes further.
fn runs(parts: &mut [(i64, i64)], step: u64) -> Vec<Run> {
    parts.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for &(from, to) in parts.iter() {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let mut runs = Vec::new();
    let mut rest = merged.as_slice();
    while let Some(first) = rest.first() {
        // Those that come before the first one does again.
        let near = rest.iter().take_while(|p| p.0 - first.0 < step).count().max(1);
        let (together, others) = rest.split_at(near);
        rest = others;
        match evenly(together, step) {
            Some(run) => runs.push(run),
            None => runs.extend(together.iter().filter_map(|&part| evenly(&[part], step))),
        }
    }
    runs
}

/// Parts as one run, if they are equally long, and equally far from each other and from the next round's first one.
fn evenly(parts: &[(i64, i64)], step: i64) -> Option<Run> {
    let (from, len) = (parts[0].0, parts[0].1 - parts[0].0);
    let each = parts.len() as i64;
    let stride = step / each;
    let is_even = step % each == 0
        && parts.iter().all(|p| p.1 - p.0 == len)
        && parts.windows(2).all(|w| w[1].0 - w[0].0 == stride);
    is_even.then_some(Run { from, each, stride, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one() {
        let all = |mut parts: Vec<(i64, i64)>, step| {
            runs(&mut parts, step)
                .iter()
                .map(|r| (r.from, r.each, r.stride, r.len))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(vec![(16, 32), (0, 16)], 32), [(0, 1, 32, 32)]);
        assert_eq!(all(vec![(0, 8), (16, 24)], 32), [(0, 2, 16, 8)]);
        assert_eq!(all(vec![(0, 8), (16, 24)], 64), [(0, 1, 64, 8), (16, 1, 64, 8)]);
        assert_eq!(all(vec![(0, 8), (4, 12)], 8), [(0, 1, 8, 12)]);
        let rows = vec![(0, 8), (16, 24), (4096, 4104), (4112, 4120)];
        assert_eq!(all(rows, 32), [(0, 2, 16, 8), (4096, 2, 16, 8)]);
    }
}
