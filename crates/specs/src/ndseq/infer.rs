//! Which stars does a program need? The fewest with which all recorded executions conform.
//!
//! Candidates are [runs](super::runs) of statements, of which at least one execution could be left out if every
//! statement were a star. More stars never make more relevant, so a set of runs that does not suffice is grown to a
//! largest one that does not; every sufficient set has a run outside of it. The fewest runs that hit all these
//! complements are found by a satisfiability solver with a totalizer, until they suffice.
//!
//! Source: Burnim, "Specifying and Checking Correctness of Parallel Programs" (2012), chapter 7. Deviations: implicit
//! hitting sets instead of the constraints 7.1 to 7.10, one for each event; overlapping runs exclude each other as in
//! 7.6. Of equally many stars, one is replaced by the shortest run of its level that is *closed*: the value of the
//! statement before it is also used elsewhere.
//!
//! *Guarantee*: the number of stars is the smallest. If there is no set, no stars make all executions conform by their
//! data flow. Whoever can run the program asks for the [`Settled::unbroken`] executions first, and
//! [excuses](Settled::excuse) those that have a sequential twin: they conform by definition 17, with any stars.

use rustsat::encodings::card::{BoundUpper, Totalizer};
use rustsat::instances::{BasicVarManager, Cnf, ManageVars};
use rustsat::solvers::{Solve, SolveIncremental, SolverResult};
use rustsat::types::{Clause, Lit, TernaryVal};
use rustsat_batsat::BasicSolver;
use selvedge_model::Symbols;

use super::check::{Circle, check_with, conforms_with};
use super::execution::{Act, Execution, NONE};
use super::relevance::relevance;
use super::runs::{Observed, Run, Source, Statement, runs};
use super::stars::Stars;

/// Executions from which stars are inferred.
#[derive(Debug, Default)]
pub struct Study {
    source: Source,
    recorded: Vec<(Execution, Vec<u32>)>,
}

/// A star that is needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The first and the last statement inside.
    pub first: Statement,
    #[allow(missing_docs)]
    pub last: Statement,
    /// A circle that it breaks, and the execution in which.
    pub breaks: Option<(usize, Circle)>,
}

/// What was inferred.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inferred {
    /// The stars; nothing if none suffice.
    pub stars: Option<Vec<Placement>>,
    /// A circle that no star breaks, and the execution in which.
    pub unbroken: Option<(usize, Circle)>,
    /// How many runs were considered.
    pub candidates: usize,
}

impl Study {
    /// Adds an execution. The error is the label of a region that is marked as a statement but is none.
    pub fn add(&mut self, execution: Execution, symbols: &Symbols) -> Result<(), String> {
        let of = self.source.add(&execution, symbols)?;
        self.recorded.push((execution, of));
        Ok(())
    }

    /// The executions.
    pub fn executions(&self) -> impl ExactSizeIterator<Item = &Execution> {
        self.recorded.iter().map(|(execution, _)| execution)
    }

    /// Settles where stars may be: none around the statements from `not.1` to `not.2` of a file `not.0`.
    pub fn settle(mut self, not: &[(String, u32, u32)]) -> Settled {
        let placed = self.source.settle();
        let observed: Vec<Observed> =
            self.recorded.into_iter().map(|(e, of)| Observed::new(e, &of, &placed)).collect();
        let ruled_out = |run: &Run| {
            let (first, last) = self.source.ends(*run);
            not.iter().any(|(file, from, to)| {
                *file == *first.file && (*from, *to) == (first.first_line, last.last_line)
            })
        };
        let mut runs = runs(&self.source, &observed);
        runs.retain(|run| !ruled_out(run));
        let excused = vec![false; observed.len()];
        Settled { source: self.source, observed, runs, excused }
    }

    /// Infers stars from data flow alone.
    pub fn infer(self, not: &[(String, u32, u32)]) -> Inferred {
        self.settle(not).infer()
    }
}

/// Executions, and where stars may be.
#[derive(Debug)]
pub struct Settled {
    source: Source,
    observed: Vec<Observed>,
    runs: Vec<Run>,
    /// By execution, whether it is known to conform without stars.
    excused: Vec<bool>,
}

impl Settled {
    /// The executions whose circles no stars break.
    pub fn unbroken(&self) -> Vec<usize> {
        let search = self.search();
        let fails = |o: &Observed| !conforms_with(&o.execution, &o.stars(&search.candidates));
        search.failing.iter().filter(|(_, o)| fails(o)).map(|(number, _)| *number).collect()
    }

    /// An execution by its number.
    pub fn execution(&self, number: usize) -> &Execution {
        &self.observed[number].execution
    }

    /// This execution conforms without stars, as a sequential execution with the same result has shown.
    pub fn excuse(&mut self, number: usize) {
        self.excused[number] = true;
    }

    fn search(&self) -> Search<'_> {
        Search::new(&self.observed, &self.excused, self.runs.clone())
    }

    /// Infers stars.
    pub fn infer(&self) -> Inferred {
        let search = self.search();
        let Some(chosen) = search.fewest() else {
            let every = |o: &Observed| o.stars(&search.candidates);
            return Inferred {
                stars: None,
                unbroken: search.circle(every),
                candidates: search.candidates.len(),
            };
        };
        let chosen = search.closed(chosen);
        let stars = chosen.iter().map(|&run| {
            let others: Vec<Run> = chosen.iter().copied().filter(|&r| r != run).collect();
            let (first, last) = self.source.ends(run);
            Placement {
                first: first.clone(),
                last: last.clone(),
                breaks: search.circle(|o| o.stars(&others)),
            }
        });
        let stars = Some(stars.collect());
        Inferred { stars, unbroken: None, candidates: search.candidates.len() }
    }
}

struct Search<'a> {
    /// Those that do not conform without stars, with their numbers.
    failing: Vec<(usize, &'a Observed)>,
    candidates: Vec<Run>,
}

impl<'a> Search<'a> {
    fn new(observed: &'a [Observed], excused: &[bool], mut candidates: Vec<Run>) -> Search<'a> {
        let fails = |o: &Observed| !conforms_with(&o.execution, &o.stars(&[]));
        let failing: Vec<(usize, &Observed)> =
            observed.iter().enumerate().filter(|(i, o)| !excused[*i] && fails(o)).collect();
        let clean: Vec<Vec<bool>> = failing
            .iter()
            .map(|(_, o)| {
                let found = relevance(&o.execution, &Stars::everywhere(&o.execution));
                (0..o.execution.statements().len() as u32).map(|s| !found.has_star(s)).collect()
            })
            .collect();
        candidates.retain(|&run| {
            failing.iter().zip(&clean).any(|((_, o), clean)| {
                o.executions(run).iter().any(|parts| parts.iter().all(|&p| clean[p as usize]))
            })
        });
        Search { failing, candidates }
    }

    fn suffices(&self, runs: &[Run]) -> bool {
        self.failing.iter().all(|(_, o)| conforms_with(&o.execution, &o.stars(runs)))
    }

    fn circle(&self, stars: impl Fn(&Observed) -> Stars) -> Option<(usize, Circle)> {
        self.failing.iter().find_map(|&(number, o)| {
            let circles = check_with(&o.execution, &stars(o)).circles;
            Some((number, circles.into_iter().next()?))
        })
    }

    /// The fewest runs that suffice; nothing if none do.
    fn fewest(&self) -> Option<Vec<Run>> {
        if !self.suffices(&self.candidates) {
            return None;
        }
        let mut hitting = Hitting::new(&self.candidates)?;
        loop {
            let chosen = hitting.smallest()?;
            let mut set: Vec<Run> = chosen.iter().map(|&i| self.candidates[i]).collect();
            if self.suffices(&set) {
                return Some(set);
            }
            let mut outside = Vec::new();
            for (i, &run) in self.candidates.iter().enumerate() {
                if chosen.contains(&i) {
                    continue;
                }
                set.push(run);
                if self.suffices(&set) {
                    set.pop();
                    outside.push(i);
                }
            }
            hitting.learn(&outside)?;
        }
    }

    /// Replaces each run by the shortest closed one of its level that also does.
    fn closed(&self, mut chosen: Vec<Run>) -> Vec<Run> {
        for i in 0..chosen.len() {
            let mut others: Vec<Run> = self.candidates.clone();
            others.retain(|r| r.level == chosen[i].level && self.is_closed(*r));
            others.sort_by_key(|r| (r.len(), r.from));
            let was = chosen[i];
            let fits = others.into_iter().find(|&run| {
                chosen[i] = run;
                let apart =
                    chosen.iter().enumerate().all(|(j, r)| j == i || !r.overlaps(run) && *r != run);
                apart && self.suffices(&chosen)
            });
            chosen[i] = fits.unwrap_or(was);
        }
        chosen.sort_unstable();
        chosen
    }

    /// Whether the statement before the run also has another purpose than the run: it writes, decides, is not used
    /// at all, or is used elsewhere.
    fn is_closed(&self, run: Run) -> bool {
        let Some(before) = run.from.checked_sub(1) else { return true };
        let mut used = false;
        for (_, o) in &self.failing {
            let belongs = |node: u32| {
                let mut statement = o.execution.nodes()[node as usize].statement;
                while statement != NONE && o.placed[statement as usize].0 != run.level {
                    statement = o.execution.statements()[statement as usize].outer;
                }
                (statement != NONE).then(|| o.placed[statement as usize].1)
            };
            for node in 0..o.execution.nodes().len() as u32 {
                let position = belongs(node);
                let acts =
                    matches!(o.execution.nodes()[node as usize].act, Act::Write | Act::Branch);
                if position == Some(before) && acts {
                    return true;
                }
                for &value in o.execution.uses(node) {
                    if belongs(value) == Some(before) && position != Some(before) {
                        if !position.is_some_and(|p| (run.from..=run.to).contains(&p)) {
                            return true;
                        }
                        used = true;
                    }
                }
            }
        }
        !used
    }
}

/// Finds the fewest numbers that hit all sets learned so far.
struct Hitting {
    solver: BasicSolver,
    literals: Vec<Lit>,
    count: Totalizer,
    /// No fewer suffice.
    least: usize,
}

impl Hitting {
    fn new(candidates: &[Run]) -> Option<Hitting> {
        let mut variables = BasicVarManager::default();
        let literals: Vec<Lit> = candidates.iter().map(|_| variables.new_var().pos_lit()).collect();
        let mut count: Totalizer = literals.iter().copied().collect();
        let mut formula = Cnf::new();
        count.encode_ub(0..=literals.len(), &mut formula, &mut variables).ok()?;
        for (i, a) in candidates.iter().enumerate() {
            for (j, b) in candidates.iter().enumerate().skip(i + 1) {
                if a.overlaps(*b) {
                    formula.add_binary(!literals[i], !literals[j]);
                }
            }
        }
        let mut solver = BasicSolver::default();
        solver.add_cnf(formula).ok()?;
        Some(Hitting { solver, literals, count, least: 0 })
    }

    /// One of these numbers is in every set that suffices.
    fn learn(&mut self, numbers: &[usize]) -> Option<()> {
        let clause: Clause = numbers.iter().map(|&i| self.literals[i]).collect();
        self.solver.add_clause(clause).ok()
    }

    fn smallest(&mut self) -> Option<Vec<usize>> {
        while self.least <= self.literals.len() {
            let bound = self.count.enforce_ub(self.least).ok()?;
            if self.solver.solve_assumps(&bound).ok()? == SolverResult::Sat {
                let chosen = self.literals.iter().enumerate().filter_map(|(i, &literal)| {
                    let value = self.solver.lit_val(literal).ok()?;
                    (value == TernaryVal::True).then_some(i)
                });
                return Some(chosen.collect());
            }
            self.least += 1;
        }
        None
    }
}
