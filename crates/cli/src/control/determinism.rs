//! Deterministic blocks of controlled executions: compared with what is stored, and differences as cases.

use selvedge_engine::determinism::{Settled, Shown, identity};
use selvedge_engine::{
    Anomaly, Campaign, Cause, Determinism, Differing, InMemory, Origin, States, Violation, Wrong,
    causes,
};
use selvedge_explore::Divergence;
use selvedge_model::{Schedule, Site, Status};
use selvedge_report::{
    Case, Control, Diverged, How, NotReplayed, Note, Outcome as CaseOutcome, Remark, State,
};
use selvedge_runtime::control::WatchList;
use selvedge_specs::states::{Checked, ExecutionId, Obstacle};
use selvedge_specs::{BlockExecution, Judge, Unclosed};

use super::cases::{accesses, effort, interleaving, outcome};
use super::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::{Failure, unless_interrupted};
use crate::messages::warning_label;
use crate::store::states::About;
use crate::store::{self, Journal, Store, StoreError};

/// The blocks of a program, compared with each other and with the executions of it that are stored. Without a
/// store they are compared with each other.
pub(crate) fn blocks(program: &ControlledProgram, across_builds: bool) -> Determinism<WatchList> {
    let build = program.setup.build.clone();
    let about = About { build, across_builds, ..About::default() };
    // That there is no store has been said when the run began.
    let states: Box<dyn States> = match Store::create(&store::directory(&program.setup.directory)) {
        Ok(store) => Box::new(Stored {
            store: Some(store),
            about,
            memory: InMemory::default(),
            anomalies: Vec::new(),
        }),
        Err(_) => Box::<InMemory>::default(),
    };
    Determinism::new(states, Box::new(program.judges.clone()))
}

/// Executions in the store. After the first error the rest is compared in memory.
struct Stored {
    store: Option<Store>,
    about: About,
    memory: InMemory,
    anomalies: Vec<Anomaly>,
}

impl States for Stored {
    fn add(
        &mut self,
        execution: &BlockExecution<Site>,
        schedule: &Schedule,
        judge: &mut dyn Judge,
    ) -> Result<Checked<Site>, Box<Wrong>> {
        if let Some(store) = &mut self.store {
            let text = Some(schedule.to_string());
            let about = About { schedule: text, ..self.about.clone() };
            match store.check_block(execution, &about, judge) {
                Ok((_, checked)) => {
                    self.promised(execution, &about, schedule);
                    return Ok(checked);
                }
                Err(obstacle) => match *obstacle {
                    Obstacle::Trouble(trouble) => return Err(Box::new(Wrong::Predicate(trouble))),
                    Obstacle::Storage(error) => {
                        warn(&error);
                        self.store = None;
                    }
                },
            }
        }
        self.memory.add(execution, schedule, judge)
    }

    fn anomalies(&mut self) -> Vec<Anomaly> {
        std::mem::take(&mut self.anomalies)
    }

    fn origin(&mut self, id: ExecutionId) -> Origin {
        let Some(store) = &self.store else { return self.memory.origin(id) };
        let Ok(Some(stored)) = store.block_execution(id) else { return Origin::default() };
        Origin {
            schedule: stored.schedule.and_then(|s| s.parse().ok()),
            build: Some(stored.build).filter(|build| *build != self.about.build),
        }
    }
}

impl Stored {
    /// Compares an execution in what was inferred of its block.
    fn promised(&mut self, execution: &BlockExecution<Site>, about: &About, schedule: &Schedule) {
        let Some(store) = &mut self.store else { return };
        match store.check_promise(execution, about) {
            Ok(None) => {}
            Ok(Some((differing, id))) => {
                let earlier = self.origin(id);
                let block = execution.block.clone();
                let schedule = Some(schedule.clone());
                self.anomalies.push(Anomaly { block, differing, earlier, schedule });
            }
            Err(error) => {
                warn(&error);
                self.store = None;
            }
        }
    }
}

fn warn(error: &StoreError) {
    anstream::eprintln!("{}: states from here on are not stored: {error}", warning_label());
}

/// What is wrong with the program's use of blocks, as the reason why there is no verdict.
pub(crate) fn refuse(determinism: &Determinism<WatchList>) -> Result<(), Failure> {
    match &determinism.wrong {
        Some(wrong) => Err(Failure::Usage(wrong.to_string())),
        None => Ok(()),
    }
}

/// What could not be decided about blocks. If every schedule was seen, blocks need not be comparable.
pub(crate) fn undecided(determinism: &Determinism<WatchList>, complete: bool) -> Vec<Remark> {
    let unclosed = determinism.never_ended().map(unclosed);
    let alone = determinism.incomparable().filter(|_| !complete);
    let alone = alone.map(|(block, known)| Remark::Incomparable {
        block: block.to_owned(),
        executions: known.executions,
    });
    unclosed.chain(alone).collect()
}

/// A block that was not left.
pub(crate) fn unclosed(of: &Unclosed<Site>) -> Remark {
    Remark::Unclosed { block: of.block.to_string(), site: of.site.clone() }
}

/// The case of an execution that is not controlled and differs from an earlier one.
pub(crate) fn observed(block: Box<str>, differing: Differing, earlier: Origin) -> Case {
    let violation = Violation {
        id: identity(differing.site()),
        block,
        differing,
        earlier,
        schedule: Schedule::default(),
        number: 0,
        points: WatchList::default(),
    };
    Case { control: None, ..case(&violation, None) }
}

/// The case of an execution that breaks what was inferred.
pub(crate) fn anomaly(of: Anomaly) -> Case {
    let Anomaly { block, differing, earlier, schedule } = of;
    let violation = Violation {
        id: identity(differing.site()),
        block,
        differing,
        earlier,
        schedule: schedule.clone().unwrap_or_default(),
        number: 0,
        points: WatchList::default(),
    };
    let mut case = case(&violation, None);
    (case.status, case.verdict) = (Status::Predicted, None);
    case.notes.push(Note::Inferred);
    if let Some(control) = &mut case.control {
        control.after = None;
    }
    case.control = case.control.filter(|_| schedule.is_some());
    case
}

/// The cases of the executions of a campaign that break what was inferred, each once.
pub(crate) fn anomalies(campaign: &mut Campaign<Native>, journal: &mut Journal) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for case in campaign.determinism.anomalies().into_iter().map(anomaly) {
        if cases.iter().all(|known| known.id != case.id) {
            journal.add(&case);
            cases.push(case);
        }
    }
    cases
}

/// The cases of the violations that a campaign has seen. One is confirmed if both schedules show it again.
pub(crate) fn violations(
    campaign: &Campaign<Native>,
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<Vec<Case>, Failure> {
    let mut executor = match (&campaign.determinism.violations[..], deadline.signal()) {
        ([], _) | (_, Some(_)) => None,
        _ => unless_interrupted(campaign.executor())?,
    };
    let mut cases = Vec::new();
    let violations = &campaign.determinism.violations;
    for (i, violation) in violations.iter().enumerate() {
        let settled = match (&mut executor, effort(deadline, 1.0, violations.len() - i)) {
            (Some(executor), Some(effort)) => {
                unless_interrupted(violation.settle(executor, effort))?
            }
            _ => None,
        };
        let case = match (settled, &mut executor) {
            (Some(Settled::Shown(shown)), Some(executor)) => {
                let causes = unless_interrupted(causes(executor, violation, &shown))?;
                confirmed(violation, &shown, &causes.unwrap_or_default())
            }
            (Some(Settled::Otherwise(ending, divergence)), _) => {
                not_again(violation, outcome(&ending), divergence)
            }
            (Some(Settled::Elsewhere | Settled::Shown(_)), _) => case(violation, None),
            (None, _) => {
                let mut case = case(violation, None);
                case.notes.push(Note::NotReplayed(NotReplayed::Interrupted));
                case
            }
        };
        journal.add(&case);
        cases.push(case);
    }
    Ok(cases)
}

/// The case of a violation, with both schedules.
pub(crate) fn case(violation: &Violation<WatchList>, shown: Option<&Shown>) -> Case {
    let (finding, symbols) = violation.finding(shown);
    let mut case = Case::new(&finding, &symbols);
    let differing = shown.map_or(&violation.differing, |shown| &shown.differing);
    case.states =
        std::iter::once(&*differing.first).chain(&differing.later).map(State::of).collect();
    case.notes.extend(violation.earlier.build.clone().map(Note::OtherBuild));
    let schedules: Vec<String> = match shown {
        Some(shown) => shown.sides.iter().map(|s| s.execution.schedule.to_string()).collect(),
        None => {
            let both = violation.earlier.schedule.iter().chain([&violation.schedule]);
            both.map(ToString::to_string).collect()
        }
    };
    case.control = Some(Control {
        schedule: schedules.last().cloned(),
        schedules,
        after: Some(violation.number),
        watched: accesses(&violation.points),
        ..Control::default()
    });
    case
}

fn confirmed(violation: &Violation<WatchList>, shown: &Shown, causes: &[Cause]) -> Case {
    let mut case = case(violation, Some(shown));
    case.notes.extend(causes.iter().map(|cause| {
        let race = Case::new(&cause.finding, &cause.symbols);
        Note::CausedBy { kind: race.kind, subject: race.subject, sites: cause.sites() }
    }));
    let critical: Vec<Site> =
        causes.iter().flat_map(Cause::sites).chain([shown.differing.site().clone()]).collect();
    if let Some(control) = &mut case.control {
        let [first, second] = &shown.sides;
        control.other = Some(interleaving(first, &critical));
        control.how = Some(How::Rows(interleaving(second, &critical)));
    }
    case
}

fn not_again(
    violation: &Violation<WatchList>,
    outcome: CaseOutcome,
    divergence: Option<Divergence>,
) -> Case {
    let mut case = case(violation, None);
    let diverged = divergence.map(Diverged::At);
    case.notes.push(Note::NotReplayed(NotReplayed::Otherwise { outcome, diverged }));
    case
}
