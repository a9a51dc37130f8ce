//! The check of figure 6.8 as it is written there, with sets and all pairs. It shares no code with the real one.

use crate::program::{Do, Run};

/// The executions of stars around each step, innermost last.
pub(crate) type Around = Vec<Vec<u32>>;

/// Which steps are relevant.
pub(crate) fn relevant(run: &Run, focus: &[usize], around: &Around) -> Vec<bool> {
    let steps = &run.steps;
    let n = steps.len();
    let mut relevant = vec![false; n];
    for i in 0..n {
        let last_write = |g: usize| {
            focus.contains(&g)
                && !(i + 1..n).any(|j| {
                    steps[j].task == steps[i].task
                        && matches!(steps[j].act, Do::Write(h, _) if h == g)
                })
        };
        relevant[i] = match steps[i].act {
            Do::Write(g, _) => last_write(g),
            Do::Branch(_) => around[i].is_empty(),
            Do::Read(..) | Do::Define(..) => false,
        };
    }
    let depends = dependences(run);
    loop {
        let before = relevant.clone();
        for &(from, to) in &depends {
            relevant[from] |= relevant[to];
        }
        for i in 0..n {
            if let (Do::Branch(_), Some(star)) = (&steps[i].act, around[i].last()) {
                relevant[i] |= (0..n).any(|j| relevant[j] && around[j].contains(star));
            }
        }
        if relevant == before {
            return relevant;
        }
    }
}

/// Pairs of a step and one that depends on it, by D1 and D2.
pub(crate) fn dependences(run: &Run) -> Vec<(usize, usize)> {
    let steps = &run.steps;
    let mut pairs = Vec::new();
    for (j, step) in steps.iter().enumerate() {
        let used: Vec<usize> = match &step.act {
            Do::Define(_, used) => used.clone(),
            Do::Write(_, l) | Do::Branch(l) => vec![*l],
            Do::Read(..) => Vec::new(),
        };
        for local in used {
            let defines = |i: &usize| {
                steps[*i].task == step.task
                    && matches!(steps[*i].act, Do::Define(l, _) | Do::Read(l, _) if l == local)
            };
            pairs.extend((0..j).rev().find(defines).map(|i| (i, j)));
        }
        if let Do::Read(_, g) = step.act {
            let tasks = steps.iter().map(|s| s.task).max().unwrap_or(0);
            for task in 0..=tasks {
                let writes = |i: &usize| {
                    steps[*i].task == task && matches!(steps[*i].act, Do::Write(h, _) if h == g)
                };
                pairs.extend((0..j).rev().find(writes).map(|i| (i, j)));
                pairs.extend((j + 1..steps.len()).find(writes).map(|i| (i, j)));
            }
        }
    }
    pairs
}

/// Whether the tasks can be put into an order that keeps all conflicts of the given steps.
pub(crate) fn serializable(run: &Run, counts: &[bool]) -> bool {
    let access = |i: usize| match run.steps[i].act {
        Do::Read(_, g) => Some((g, false)),
        Do::Write(g, _) => Some((g, true)),
        Do::Define(..) | Do::Branch(_) => None,
    };
    const MOST: usize = 3;
    let mut before = [[false; MOST]; MOST];
    for i in 0..run.steps.len() {
        for j in i + 1..run.steps.len() {
            let (a, b) = (run.steps[i].task, run.steps[j].task);
            if let (Some((g, w)), Some((h, v))) = (access(i), access(j))
                && g == h
                && (w || v)
                && a != b
                && counts[i]
                && counts[j]
            {
                before[a][b] = true;
            }
        }
    }
    for k in 0..MOST {
        for i in 0..MOST {
            for j in 0..MOST {
                before[i][j] |= before[i][k] && before[k][j];
            }
        }
    }
    (0..MOST).all(|i| !before[i][i])
}
