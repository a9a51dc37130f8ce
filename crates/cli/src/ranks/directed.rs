//! Phase II from outside: which pairs are tested in which execution, and what the orders of a pair lead to.
//!
//! Guarantee: a pair is confirmed only if the ranks of an execution say that both accesses were in flight at once
//! (`selvedge_spmd_rank::confirm`). It is called benign only if both orders were forced, each
//! printed the same and ended alike whenever it was forced, and both succeeded.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use selvedge_engine::{Ending, Harm, Left, Limit};
use selvedge_explore::rng::derive;
use selvedge_model::{FindingId, Status, Verdict};
use selvedge_report::{Case, Control, Order, Watched, Which};
use selvedge_specs::NoCallbacks;
use selvedge_spmd::findings::{Met, Race};
use selvedge_spmd::{Place, Plan};

use super::{Executed, Job};
use crate::deadline::Deadline;
use crate::exit::Failure;

/// At most this many places in the code of one pair of places in the source are tested: compilers copy statements.
const COPIES: usize = 4;
/// So often an execution tries to force an order.
const TRIES: u32 = 3;
/// The pause doubles with each attempt, up to this many times.
const DOUBLINGS: u32 = 4;

/// A race that was predicted or observed, and what became of it.
pub(crate) struct Candidate {
    pub(crate) case: Case,
    /// The places of its accesses in code.
    pub(crate) pairs: Vec<[Place; 2]>,
    /// Both accesses are of one thread, so that no order can be forced.
    one_thread: bool,
    attempts: u64,
    confirmed: Option<Confirmed>,
}

struct Confirmed {
    /// Which of the pairs.
    pair: usize,
    met: Met,
    /// The number of the execution, from 1.
    execution: u64,
    orders: Vec<Order>,
    verdict: Option<Verdict>,
}

/// What a case keeps of the execution that showed it, in the place of a schedule: ranks run at their own pace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Numbered {
    pub(super) seed: u64,
    pub(super) execution: u64,
}

impl fmt::Display for Numbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.seed, self.execution)
    }
}

impl FromStr for Numbered {
    type Err = ();

    fn from_str(text: &str) -> Result<Numbered, ()> {
        let (seed, execution) = text.split_once('/').ok_or(())?;
        let number = |text: &str| text.parse().map_err(|_| ());
        Ok(Numbered { seed: number(seed)?, execution: number(execution)? })
    }
}

impl Candidate {
    /// Adds a race to the candidates.
    pub(crate) fn add(all: &mut BTreeMap<FindingId, Candidate>, case: Case, race: &Race) {
        let pair = race.sides.each_ref().map(|side| Place {
            module: side.place.module.as_str().into(),
            offset: side.place.offset,
        });
        let one_thread = race.is_of_one_thread();
        let candidate = all.entry(case.id).or_insert_with(|| Candidate {
            case,
            pairs: Vec::new(),
            one_thread,
            attempts: 0,
            confirmed: None,
        });
        candidate.one_thread &= one_thread;
        if candidate.pairs.len() < COPIES && !candidate.pairs.contains(&pair) {
            candidate.pairs.push(pair);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.confirmed.is_none()
    }

    /// The case with what is known of it now.
    pub(crate) fn settled(&self, seed: u64) -> Case {
        let mut case = self.case.clone();
        let pair = &self.pairs[self.confirmed.as_ref().map_or(0, |c| c.pair)];
        let watched = pair.iter().zip(&case.places).map(|(place, named)| Watched {
            module: (*place.module).into(),
            offset: place.offset,
            site: named.site.clone(),
        });
        let mut control =
            Control { attempts: self.attempts, watched: watched.collect(), ..Control::default() };
        match &self.confirmed {
            Some(confirmed) => {
                case.status = Status::Confirmed;
                case.verdict = confirmed.verdict;
                control.schedule =
                    Some(Numbered { seed, execution: confirmed.execution }.to_string());
                control.after = Some(confirmed.execution);
                control.orders.clone_from(&confirmed.orders);
                name_ranks(&mut case, &confirmed.met);
            }
            None if case.status == Status::Predicted && self.attempts > 0 => {
                case.status = Status::Unconfirmed;
            }
            None => {}
        }
        case.control = Some(control);
        case
    }
}

/// Names the ranks that met, which need not be those that were seen first.
fn name_ranks(case: &mut Case, met: &Met) {
    for side in &met.sides {
        if let Some(place) = case.places.get_mut(side.side as usize) {
            place.thread = super::cases::thread(side.rank, side.slot);
        }
    }
}

/// Executions of a job, numbered from 1.
pub(crate) struct Executions<'a> {
    pub(crate) job: &'a Job,
    pub(crate) deadline: &'a Deadline,
    pub(crate) patience: Duration,
    pub(crate) seed: u64,
    pub(crate) pause: Duration,
    pub(crate) done: u64,
}

impl Executions<'_> {
    /// Executes the job once more, under a plan if there is one.
    pub(crate) fn execute(&mut self, plan: Option<Plan>) -> Result<Executed, Failure> {
        self.done += 1;
        let plan = plan.map(|plan| Plan { seed: derive(self.seed, self.done), ..plan });
        let stops = || self.deadline.signal().is_some() || self.deadline.is_over();
        self.job.execute(plan.as_ref(), self.patience, &stops)
    }

    /// The plan of the `n`th attempt, from 0.
    fn plan(&self, pairs: Vec<[Place; 2]>, n: u64) -> Plan {
        let doubled = 1 << n.min(u64::from(DOUBLINGS)) as u32;
        let pause =
            u64::try_from(self.pause.as_micros()).unwrap_or(u64::MAX).saturating_mul(doubled);
        Plan { pairs, pause, ..Plan::default() }
    }

    /// One more attempt for each open candidate; candidates that share no statement share an execution.
    pub(crate) fn attempt(
        &mut self,
        candidates: &mut [&mut Candidate],
        ends: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let mut waiting: Vec<usize> =
            (0..candidates.len()).filter(|&i| candidates[i].is_open()).collect();
        while !waiting.is_empty() && !ends() {
            let (group, rest) = apart(&waiting, |i| &candidates[i].pairs);
            waiting = rest;
            let mut pairs = Vec::new();
            let mut of = Vec::new();
            for &i in &group {
                of.extend((0..candidates[i].pairs.len()).map(|pair| (i, pair)));
                pairs.extend(candidates[i].pairs.iter().cloned());
            }
            let attempt = group.iter().map(|&i| candidates[i].attempts).min().unwrap_or(0);
            let executed = self.execute(Some(self.plan(pairs, attempt)))?;
            group.iter().for_each(|&i| candidates[i].attempts += 1);
            for met in executed.told.met {
                let Some(&(i, pair)) = of.get(met.pair as usize) else { continue };
                if candidates[i].is_open() {
                    let (execution, orders) = (self.done, Vec::new());
                    let confirmed = Confirmed { pair, met, execution, orders, verdict: None };
                    candidates[i].confirmed = Some(confirmed);
                }
            }
        }
        Ok(())
    }

    /// Forces both orders of a confirmed candidate and judges by how they end.
    pub(crate) fn judge(&mut self, candidate: &mut Candidate, usual: &Left) -> Result<(), Failure> {
        let Some(confirmed) = &candidate.confirmed else { return Ok(()) };
        if candidate.one_thread {
            return Ok(());
        }
        let pair = candidate.pairs[confirmed.pair].clone();
        let orders = [self.forced(&pair, 0)?, self.forced(&pair, 1)?];
        let judged = judged(&orders, usual);
        let Some(confirmed) = &mut candidate.confirmed else { return Ok(()) };
        for (first, (order, harm)) in orders.iter().zip(judged).enumerate() {
            let (Some(Forced { left, execution, .. }), Some(harm)) = (order, harm) else {
                continue;
            };
            let place = &candidate.case.places[first.min(candidate.case.places.len() - 1)];
            let thread = confirmed.met.sides.iter().find(|s| s.side as usize == first);
            confirmed.orders.push(Order {
                which: Which::FirstRank {
                    rank: thread
                        .map_or(place.thread.clone(), |s| super::cases::thread(s.rank, s.slot)),
                    site: place.site.clone(),
                },
                harm,
                outcome: crate::control::cases::outcome(&left.ending),
                schedule: Numbered { seed: self.seed, execution: *execution }.to_string(),
            });
        }
        confirmed.verdict = verdict(&judged);
        Ok(())
    }

    /// What the job leaves if one statement goes first, and in which execution; `None` if that could not be forced.
    fn forced(&mut self, pair: &[Place; 2], first: u32) -> Result<Option<Forced>, Failure> {
        let mut forced: Option<Forced> = None;
        for _ in 0..TRIES {
            if self.deadline.signal().is_some()
                || self.deadline.until(crate::deadline::EXPLAINED).is_zero()
            {
                break;
            }
            let plan = Plan { first: Some(first), ..self.plan(vec![pair.clone()], 0) };
            let executed = self.execute(Some(plan))?;
            // An execution that was cut off shows nothing of the order.
            if executed.told.ordered.is_empty() || executed.status.is_none() {
                continue;
            }
            let left = left(&executed, self.patience);
            match &mut forced {
                None => forced = Some(Forced { left, execution: self.done, steady: true }),
                Some(known) => match left.differs(&known.left, &mut NoCallbacks) {
                    Harm::Nothing => break,
                    Harm::Output => {
                        known.steady = false;
                        break;
                    }
                    // It does not end alike under this order: something else decides.
                    _ => return Ok(None),
                },
            }
        }
        Ok(forced)
    }
}

/// What the job leaves under an order.
struct Forced {
    left: Left,
    execution: u64,
    /// Another execution with this order does not print something else; if one does, the output says nothing.
    steady: bool,
}

/// What an execution leaves.
pub(crate) fn left(executed: &Executed, patience: Duration) -> Left {
    use std::os::unix::process::ExitStatusExt;
    let ending = match executed.status {
        Some(status) => {
            Ending::exited(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
        }
        None => Ending::undecided(Limit::Time(patience)),
    };
    Left::new(ending, &executed.output, &Arc::default())
}

fn without_output(left: &Left) -> Left {
    Left::new(left.ending.clone(), b"", &left.blocks)
}

/// The harm of each order. Two orders are compared with each other, one alone with the usual execution.
fn judged(orders: &[Option<Forced>; 2], usual: &Left) -> [Option<Harm>; 2] {
    let [a, b] = orders;
    let steady = [a, b].into_iter().flatten().all(|order| order.steady);
    let harm = |of: &Option<Forced>, other: &Option<Forced>| {
        let of = &of.as_ref()?.left;
        let other = other.as_ref().map_or(usual, |other| &other.left);
        Some(match steady {
            // The other order is the bad one.
            _ if other.is_worse(of) => Harm::Nothing,
            true => of.harm(other, &mut NoCallbacks),
            false => match without_output(of).harm(&without_output(other), &mut NoCallbacks) {
                Harm::Nothing => Harm::Unknown,
                harm => harm,
            },
        })
    };
    let success = Left::new(Ending::exited(0), b"", &Arc::default());
    let known = |harm: Option<Harm>, of: &Option<Forced>| match (harm, of) {
        // Both fail alike: of what is not known.
        (Some(Harm::Nothing), Some(of)) if of.left.is_worse(&success) => Some(Harm::Unknown),
        (harm, _) => harm,
    };
    [known(harm(a, b), a), known(harm(b, a), b)]
}

/// Harm that an order did is harm. That there is none is known only if both orders were forced.
fn verdict(judged: &[Option<Harm>; 2]) -> Option<Verdict> {
    let worst = judged.iter().flatten().max()?;
    let both = judged.iter().all(Option::is_some);
    worst.verdict().filter(|_| both || *worst > Harm::Nothing)
}

/// The candidates that share no statement with one before them, and the others.
fn apart<'a>(
    waiting: &[usize],
    pairs: impl Fn(usize) -> &'a Vec<[Place; 2]>,
) -> (Vec<usize>, Vec<usize>) {
    let mut used: Vec<&Place> = Vec::new();
    waiting.iter().partition(|&&i| {
        let mine: Vec<&Place> = pairs(i).iter().flatten().collect();
        let is_apart = mine.iter().all(|place| !used.contains(place));
        if is_apart {
            used.extend(mine);
        }
        is_apart
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u64) -> Place {
        Place { module: "/bin/prog".into(), offset }
    }

    #[test]
    fn a_numbered_execution_is_read_back_or_refused() {
        let one = Numbered { seed: 7, execution: 12 };
        assert_eq!(one.to_string().parse(), Ok(one));
        for wrong in ["", "7", "7/", "x/1", "7/1/2"] {
            assert_eq!(wrong.parse::<Numbered>(), Err(()), "{wrong:?}");
        }
    }

    #[test]
    fn pairs_that_share_a_statement_are_tested_in_different_executions() {
        let pairs: Vec<Vec<[Place; 2]>> =
            [(1, 2), (2, 3), (4, 5), (3, 3)].map(|(a, b)| vec![[place(a), place(b)]]).to_vec();
        let (group, rest) = apart(&[0, 1, 2, 3], |i| &pairs[i]);
        assert_eq!((group, rest), (vec![0, 2, 3], vec![1]));
    }

    fn order(code: i32, output: &str) -> Option<Forced> {
        let left = Left::new(Ending::exited(code), output.as_bytes(), &Arc::default());
        Some(Forced { left, execution: 1, steady: true })
    }

    #[test]
    fn a_race_is_judged_by_what_its_orders_lead_to() {
        let usual = order(0, "1\n").expect("an order").left;
        let verdict_of = |orders| verdict(&judged(&orders, &usual));
        assert_eq!(verdict_of([order(0, "1\n2\n"), order(0, "2\n1\n")]), Some(Verdict::Benign));
        assert_eq!(verdict_of([order(0, "1\n"), order(0, "2\n")]), Some(Verdict::Harmful));
        let unsteady = order(0, "2\n").map(|order| Forced { steady: false, ..order });
        assert_eq!(verdict_of([order(0, "1\n"), unsteady]), None, "its output varies anyway");
        let fails = order(1, "2\n").map(|order| Forced { steady: false, ..order });
        assert_eq!(verdict_of([order(0, "1\n"), fails]), Some(Verdict::Harmful));
        assert_eq!(
            judged(&[order(0, "1\n"), order(1, "")], &usual),
            [Some(Harm::Nothing), Some(Harm::Exit)]
        );
        assert_eq!(verdict_of([order(3, "1\n"), order(3, "1\n")]), None, "both fail");
        let usual_fails = order(3, "1\n").expect("an order").left;
        let both_fail = judged(&[order(3, "1\n"), order(3, "1\n")], &usual_fails);
        assert_eq!(verdict(&both_fail), None, "both fail, as another race may make them");
        assert_eq!(verdict_of([order(3, "1\n"), None]), Some(Verdict::Harmful));
        assert_eq!(verdict_of([order(0, "1\n"), None]), None, "the other order is not known");
        assert_eq!(verdict_of([None, None]), None);
    }
}
