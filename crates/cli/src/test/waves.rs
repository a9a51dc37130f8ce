//! The attempts at all predictions, on all cores.
//!
//! Attempts come in waves: the first attempt at every prediction, then the second at those that are not
//! confirmed, and so on. Cores take the attempts of a wave as they come; the results are taken in the
//! order of the predictions, so what is reported does not depend on who was faster.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use selvedge_model::{Status, Target, Verdict};
use selvedge_report::{Case, Control, Harm, Note};

use super::trial::{Confirmed, Court, Outcome, SharedCourt, Trial};
use super::verdict::Result as Left;
use crate::args::Test;
use crate::control::observe::{Observation, Prediction};
use crate::control::stage::{Stage, Wishes};
use crate::exit::Failure;
use crate::explore::Search;
use crate::progress::Schedules;
use crate::store::Journal;

/// The part of the budget that may go into directed executions, in percent.
const DIRECTED: u64 = 70;

/// What is known of a prediction so far.
struct Attempted {
    finding: Case,
    control: Control,
    settled: bool,
}

/// Tries to confirm all predictions, and says what came of each.
pub(super) fn confirm(
    args: &Test,
    observation: &Observation,
    search: &mut Search<'_>,
    journal: &mut Journal,
    progress: &mut Schedules,
) -> Result<Vec<Case>, Failure> {
    let predictions = &observation.predictions;
    let mut attempted: Vec<Attempted> = predictions.iter().map(Attempted::new).collect();
    let usual = observation.baseline.as_ref();
    let court = Arc::new(Court {
        seed: args.budget.seed,
        releases: observation.releases,
        usual: usual.map(|b| Left::new(b.ending.clone(), &b.stdout)),
    });
    let most = args.budget.schedules.saturating_mul(DIRECTED) / 100;
    for attempt in 0..args.attempts {
        let open: Vec<usize> = (0..predictions.len()).filter(|&i| !attempted[i].settled).collect();
        if open.is_empty() || search.executions() >= most || is_late(args, search) {
            break;
        }
        let wave = Wave { observation, court: &court, open: &open, attempt };
        wave.run(args, search, |search, i, trial| {
            attempted[i].take(trial, &predictions[i], search);
            if attempted[i].settled {
                journal.add(&attempted[i].finding());
            }
            let found = attempted.iter().filter(|a| a.settled).count();
            progress.advance(search.executions(), found, search.halt);
            // However many the last wave has begun, the budget counts.
            if search.executions() < most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
    }
    let findings: Vec<Case> = attempted.iter().map(Attempted::finding).collect();
    findings.iter().for_each(|f| journal.add(f));
    Ok(findings)
}

/// Whether the time for directed executions is over.
fn is_late(args: &Test, search: &Search<'_>) -> bool {
    let most = args.budget.time.as_secs_f64() * DIRECTED as f64 / 100.0;
    search.halt.reason().is_some() || search.halt.elapsed().as_secs_f64() > most
}

impl Attempted {
    fn new(prediction: &Prediction) -> Attempted {
        let finding = prediction.reported.clone();
        let control = Control { watched: prediction.watched.to_vec(), ..Control::default() };
        Attempted { finding, control, settled: false }
    }

    fn take(&mut self, trial: Trial, prediction: &Prediction, search: &mut Search<'_>) {
        self.control.attempts += 1;
        let numbers: Vec<u64> =
            trial.runs.into_iter().map(|done| search.count(done, &prediction.watched)).collect();
        search.spent += trial.replays;
        match trial.outcome {
            Outcome::Missed => {}
            Outcome::Unstable(why) => {
                let note = Note::NotReplayed(why);
                if !self.finding.notes.contains(&note) {
                    self.finding.notes.push(note);
                }
            }
            Outcome::Confirmed(confirmed) => {
                let Confirmed { schedule, orders, harm } = *confirmed;
                self.settled = true;
                // That two regions belong together is a suspicion, and only harm confirms it.
                let suspected =
                    matches!(prediction.finding.target, Some(Target::Split { region: None, .. }));
                if suspected && harm == Harm::Nothing {
                    self.finding.status = Status::Unconfirmed;
                    self.finding.notes.push(Note::NoEffect);
                } else {
                    self.finding.status = Status::Confirmed;
                }
                self.finding.verdict = Some(match harm {
                    Harm::Nothing => Verdict::Benign,
                    _ => Verdict::Harmful,
                });
                self.control.schedule = Some(schedule.to_string());
                self.control.after = numbers.first().copied();
                self.control.orders = orders;
            }
        }
    }

    /// The finding as it stands: what was predicted and tried in vain is unconfirmed, what happened in
    /// an observed execution has happened all the same.
    fn finding(&self) -> Case {
        let mut finding = self.finding.clone();
        if finding.status == Status::Predicted && self.control.attempts > 0 {
            finding.status = Status::Unconfirmed;
        }
        finding.control = Some(self.control.clone());
        finding
    }
}

/// One attempt at each prediction that is open.
struct Wave<'a> {
    observation: &'a Observation,
    court: &'a SharedCourt,
    open: &'a [usize],
    attempt: u64,
}

impl Wave<'_> {
    fn run(
        &self,
        args: &Test,
        search: &mut Search<'_>,
        mut each: impl FnMut(&mut Search<'_>, usize, Trial) -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        let workers = args.budget.jobs().min(self.open.len());
        let interrupt = Arc::new(AtomicBool::new(false));
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let (sender, receiver) = channel();
        let subject = search.subject;
        std::thread::scope(|scope| {
            for _ in 0..workers {
                let (sender, interrupt) = (sender.clone(), Arc::clone(&interrupt));
                let (next, failure) = (&next, &failure);
                scope.spawn(move || {
                    let wishes = Wishes {
                        seed: args.budget.seed,
                        symbols: self.observation.symbols.clone(),
                        ..Wishes::default()
                    };
                    let held = Stage::new(subject, wishes, &interrupt).and_then(|mut stage| {
                        loop {
                            let turn = next.fetch_add(1, Ordering::Relaxed);
                            let Some(&i) = self.open.get(turn) else { return Ok(()) };
                            let prediction = &self.observation.predictions[i];
                            let trial =
                                self.court.hold(&mut stage, prediction, i as u64, self.attempt)?;
                            if sender.send((turn, i, trial)).is_err() {
                                return Ok(());
                            }
                        }
                    });
                    match held {
                        Ok(()) | Err(Failure::Interrupted) => {}
                        Err(other) => {
                            if let Ok(mut failure) = failure.lock() {
                                failure.get_or_insert(other);
                            }
                        }
                    }
                });
            }
            drop(sender);
            let mut waiting = std::collections::BTreeMap::new();
            let mut taken = 0;
            'wave: while taken < self.open.len() {
                match receiver.recv_timeout(Duration::from_millis(20)) {
                    Ok((turn, i, trial)) => {
                        waiting.insert(turn, (i, trial));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                while let Some((i, trial)) = waiting.remove(&taken) {
                    taken += 1;
                    if each(search, i, trial).is_break() {
                        break 'wave;
                    }
                }
                if is_late(args, search) {
                    break;
                }
            }
            interrupt.store(true, Ordering::Relaxed);
        });
        match failure.into_inner() {
            Ok(Some(failure)) => Err(failure),
            _ => Ok(()),
        }
    }
}
