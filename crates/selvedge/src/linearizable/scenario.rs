//! Scenarios: which operations are done before, at the same time, and after.

use std::fmt::Debug;

use selvedge_explore::Rng;

use super::Linearizable;

/// Operations on one structure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario<Op> {
    /// Before the threads are started.
    pub before: Vec<Op>,
    /// What each thread does.
    pub parallel: Vec<Vec<Op>>,
    /// After the threads have ended.
    pub after: Vec<Op>,
}

/// How large random scenarios are.
pub(super) struct Size {
    pub(super) threads: usize,
    pub(super) ops: usize,
    pub(super) before: usize,
    pub(super) after: usize,
}

/// A random scenario. Operations of one group are in one thread, and those that wait are not alone.
pub(super) fn random<T: Linearizable>(
    size: &Size,
    ops: &[T::Op],
    rng: &mut Rng,
) -> Scenario<T::Op> {
    let alone: Vec<&T::Op> = ops.iter().filter(|op| !T::waits(op)).collect();
    let some = |most: usize, rng: &mut Rng| -> Vec<T::Op> {
        let count = if alone.is_empty() { 0 } else { rng.below(most + 1) };
        (0..count).map(|_| alone[rng.below(alone.len())].clone()).collect()
    };
    let before = some(size.before, rng);
    let after = some(size.after, rng);
    let mut parallel = vec![Vec::new(); size.threads];
    for thread in 0..size.threads {
        for _ in 0..=rng.below(size.ops) {
            let op = &ops[rng.below(ops.len())];
            let home = T::group(op).map_or(thread, |group| group as usize % size.threads);
            parallel[home].push(op.clone());
        }
    }
    parallel.retain(|ops| !ops.is_empty());
    Scenario { before, parallel, after }
}

impl<Op: Clone> Scenario<Op> {
    /// How many operations there are in all threads that run at the same time.
    pub(super) fn overlapping(&self) -> usize {
        self.parallel.iter().map(Vec::len).sum()
    }

    /// All operations.
    pub(super) fn all(&self) -> impl Iterator<Item = &Op> {
        self.before.iter().chain(self.parallel.iter().flatten()).chain(&self.after)
    }

    /// Scenarios that are simpler by one thing: nothing before or after, a thread less, an operation less, or an operation
    /// that stands earlier in the list of all. `place` is the place of an operation in it.
    pub(super) fn simpler(&self, ops: &[Op], place: impl Fn(&Op) -> usize) -> Vec<Scenario<Op>> {
        let mut all = Vec::new();
        if self.after.len() > 1 {
            all.push(Scenario { after: Vec::new(), ..self.clone() });
        }
        if self.before.len() > 1 {
            all.push(Scenario { before: Vec::new(), ..self.clone() });
        }
        if self.parallel.len() > 2 {
            for thread in 0..self.parallel.len() {
                let mut less = self.clone();
                less.parallel.remove(thread);
                all.push(less);
            }
        }
        let lists = 0..self.parallel.len() + 2;
        for list in lists.clone() {
            for i in 0..self.list(list).len() {
                let mut less = self.clone();
                less.list_mut(list).remove(i);
                if less.parallel.iter().all(|ops| !ops.is_empty()) {
                    all.push(less);
                }
            }
        }
        for list in lists {
            for (i, op) in self.list(list).iter().enumerate() {
                for earlier in &ops[..place(op).min(ops.len())] {
                    let mut other = self.clone();
                    other.list_mut(list)[i] = earlier.clone();
                    all.push(other);
                }
            }
        }
        all
    }

    fn list(&self, n: usize) -> &Vec<Op> {
        match n {
            0 => &self.before,
            1 => &self.after,
            n => &self.parallel[n - 2],
        }
    }

    fn list_mut(&mut self, n: usize) -> &mut Vec<Op> {
        match n {
            0 => &mut self.before,
            1 => &mut self.after,
            n => &mut self.parallel[n - 2],
        }
    }
}

impl<Op: Debug> Scenario<Op> {
    /// The scenario in lines, one for each list of operations.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |name: &str, ops: &[Op]| {
            let ops: Vec<String> = ops.iter().map(|op| format!("{op:?}")).collect();
            format!("{name}: {}", ops.join(", "))
        };
        let mut lines = Vec::new();
        if !self.before.is_empty() {
            lines.push(line("before", &self.before));
        }
        let threads = self.parallel.iter().enumerate();
        lines.extend(threads.map(|(i, ops)| line(&format!("thread {}", i + 1), ops)));
        if !self.after.is_empty() {
            lines.push(line("after", &self.after));
        }
        lines
    }

    /// The scenario as an expression.
    pub(super) fn expression(&self) -> String {
        let list = |ops: &[Op]| {
            let ops: Vec<String> = ops.iter().map(|op| format!("{op:?}")).collect();
            format!("vec![{}]", ops.join(", "))
        };
        let parallel: Vec<String> = self.parallel.iter().map(|ops| list(ops)).collect();
        format!(
            "Scenario {{ before: {}, parallel: vec![{}], after: {} }}",
            list(&self.before),
            parallel.join(", "),
            list(&self.after)
        )
    }
}
