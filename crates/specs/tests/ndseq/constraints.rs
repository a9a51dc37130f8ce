//! Constraints 7.1 to 7.10 of chapter 7 as they are written there, one variable for each event, solved by another solver
//! than the inference uses.

use rustsat::encodings::card::{BoundUpper, Totalizer};
use rustsat::instances::{BasicVarManager, Cnf, ManageVars};
use rustsat::solvers::{Solve, SolveIncremental, SolverResult};
use rustsat::types::{Clause, Lit};
use rustsat_cadical::CaDiCaL;

use crate::naive::dependences;
use crate::program::{Do, Run};

/// A run of statements of a block: the block, the first and the last statement.
pub(crate) type Candidate = (u32, usize, usize);

struct Formula {
    variables: BasicVarManager,
    clauses: Cnf,
}

impl Formula {
    fn variable(&mut self) -> Lit {
        self.variables.new_var().pos_lit()
    }

    fn implies(&mut self, from: Lit, to: Lit) {
        self.clauses.add_binary(!from, to);
    }

    fn never(&mut self, literal: Lit) {
        self.clauses.add_unit(!literal);
    }

    /// All constraints but 7.6 and 7.10 for one trace.
    fn trace(&mut self, run: &Run, focus: &[usize], candidates: &[(Candidate, Lit)]) {
        let n = run.steps.len();
        let events: Vec<Lit> = (0..n).map(|_| self.variable()).collect();
        self.focus(run, focus, &events);
        let mut inside: Vec<Clause> = events.iter().map(|&e| [!e].into_iter().collect()).collect();
        for &(candidate, chosen) in candidates {
            for execution in executions(run, candidate) {
                let left_out = self.variable();
                self.implies(left_out, chosen); // 7.3
                for e in execution {
                    self.implies(left_out, events[e]); // 7.4
                    inside[e].add(left_out);
                }
            }
        }
        for (step, clause) in run.steps.iter().zip(inside) {
            if let Do::Branch(_) = step.act {
                self.clauses.add_clause(clause); // 7.2
            }
        }
        for (from, to) in dependences(run) {
            self.implies(events[from], events[to]); // 7.5
        }
        self.order(run, &events);
    }

    /// 7.1: the last write of each task to what is in focus.
    fn focus(&mut self, run: &Run, focus: &[usize], events: &[Lit]) {
        for &g in focus {
            for task in 0..3 {
                let writes = |&i: &usize| {
                    let step = &run.steps[i];
                    step.task == task && matches!(step.act, Do::Write(h, _) if h == g)
                };
                if let Some(last) = (0..events.len()).rev().find(writes) {
                    self.never(events[last]);
                }
            }
        }
    }

    /// 7.7 to 7.9.
    fn order(&mut self, run: &Run, events: &[Lit]) {
        let tasks: [[Lit; 3]; 3] =
            std::array::from_fn(|_| std::array::from_fn(|_| self.variable()));
        for a in 0..3 {
            self.never(tasks[a][a]);
            for b in 0..3 {
                for c in 0..3 {
                    self.clauses.add_clause(
                        [!tasks[a][b], !tasks[b][c], tasks[a][c]].into_iter().collect(),
                    );
                }
            }
        }
        let access = |i: usize| match run.steps[i].act {
            Do::Read(_, g) => Some((g, false)),
            Do::Write(g, _) => Some((g, true)),
            Do::Define(..) | Do::Branch(_) => None,
        };
        for i in 0..events.len() {
            for j in i + 1..events.len() {
                let (a, b) = (run.steps[i].task, run.steps[j].task);
                if let (Some((g, w)), Some((h, v))) = (access(i), access(j))
                    && (a != b && g == h && (w || v))
                {
                    let clause = [events[i], events[j], tasks[a][b]];
                    self.clauses.add_clause(clause.into_iter().collect());
                }
            }
        }
    }
}

/// The steps of each execution of a run of statements.
fn executions(run: &Run, (block, first, last): Candidate) -> Vec<Vec<usize>> {
    let mut found: Vec<(u32, Vec<usize>)> = Vec::new();
    for (i, step) in run.steps.iter().enumerate() {
        for &(execution, b, index) in &step.path {
            if b != block || !(first..=last).contains(&index) {
                continue;
            }
            match found.iter_mut().find(|f| f.0 == execution) {
                Some(known) => known.1.push(i),
                None => found.push((execution, vec![i])),
            }
        }
    }
    found.into_iter().map(|f| f.1).collect()
}

/// The fewest runs with which all constraints hold; nothing if there are none.
pub(crate) fn fewest(
    runs: &[Run],
    focus: &[usize],
    candidates: &[Candidate],
    overlap: impl Fn(Candidate, Candidate) -> bool,
) -> Option<usize> {
    let mut formula = Formula { variables: BasicVarManager::default(), clauses: Cnf::new() };
    let chosen: Vec<(Candidate, Lit)> =
        candidates.iter().map(|&c| (c, formula.variable())).collect();
    for (i, &(a, x)) in chosen.iter().enumerate() {
        for &(b, y) in &chosen[i + 1..] {
            if overlap(a, b) {
                formula.implies(x, !y); // 7.6
            }
        }
    }
    runs.iter().for_each(|run| formula.trace(run, focus, &chosen));
    let Formula { mut variables, mut clauses } = formula;
    let mut count: Totalizer = chosen.iter().map(|c| c.1).collect();
    count.encode_ub(0..=chosen.len(), &mut clauses, &mut variables).unwrap();
    let mut solver = CaDiCaL::default();
    solver.add_cnf(clauses).unwrap();
    (0..=chosen.len()).find(|&most| {
        let bound = count.enforce_ub(most).unwrap(); // 7.10
        solver.solve_assumps(&bound).unwrap() == SolverResult::Sat
    })
}
