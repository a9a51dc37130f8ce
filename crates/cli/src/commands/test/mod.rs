//! `selvedge test`: observes a program, predicts bugs, confirms them and judges their harm.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`ndseq`] | has each execution a sequential twin? |
//! | [`past`] | what earlier tests of the program leave to this one |
//! | [`predict`] | native runs and controlled executions become predictions |
//! | [`ranks`] | the same for jobs of MPI ranks |

pub(crate) mod ndseq;
mod past;
mod predict;
pub(crate) mod ranks;

use std::sync::Arc;

use selvedge_engine::{Aims, Attempted, Campaign, Confirmer, Observation, Search, SoFar};
use selvedge_explore::{Plan, learn};
use selvedge_model::{FindingId, Keep, Schedule, Status};
use selvedge_report::{Case, Remark, Report, Stats, words};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{NameTable, WatchList};
use selvedge_spmd::launcher::is_launcher;

use crate::args::Test;
use crate::commands::explore;
use crate::control::cases::{self, Predicted};
use crate::control::determinism;
use crate::control::host::{Keeper, Watcher};
use crate::control::linearity;
use crate::control::program::{ControlledProgram, Native};
use crate::crew::log::Preamble;
use crate::crew::{self, Team};
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure, unless_interrupted};
use crate::program::claims::Claims;
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::store::Journal;
use past::Known;

/// Tests the program and reports.
pub(crate) fn run(args: &Test) -> Result<Exit, Failure> {
    if is_launcher(&args.command[0], args.ranks.launcher.as_deref()) {
        crew::refuse(&args.sharing, "a test of ranks")?;
        return ranks::run(args);
    }
    if args.ndseq.ndseq {
        crew::refuse(&args.sharing, "a test with --ndseq")?;
        return ndseq::run(args);
    }
    together(args, &mut Team::join(&args.sharing)?)
}

/// Tests the program, together with other processes if there are any.
pub(crate) fn together(args: &Test, team: &mut Team) -> Result<Exit, Failure> {
    if team.is_member() {
        return team.serve(|team| serve(args, team));
    }
    let tested = lead(args, team);
    team.end(tested.as_ref().is_ok_and(|exit| *exit != Exit::Interrupted));
    tested
}

fn lead(args: &Test, team: &mut Team) -> Result<Exit, Failure> {
    let suppressions = Suppressions::load(&args.suppressions)?;
    let program = program(args, team)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut journal = explore::begin(&program);
    let (report, answer) =
        match test(args, (&program, team), &deadline, &suppressions, &mut journal) {
            Ok(tested) => tested,
            Err(failure) => {
                journal.finish("could not be controlled", &Stats::default());
                return Err(failure);
            }
        };
    let ending = deadline.stopped().map_or("tested".to_owned(), words::stopped);
    journal.finish(&ending, &report.stats);
    explore::conclude((&report, answer), &args.output, &program, &deadline)
}

fn program(args: &Test, team: &Team) -> Result<ControlledProgram, Failure> {
    let program = ControlledProgram::find(&args.command, args.budget.patience())?;
    program.hiding(team.hidden()).ensuring(&args.ensure)
}

/// What a test knows before its search.
struct Prepared {
    native: Arc<Native>,
    claims: Claims,
    known: Known,
    observation: Observation<Controlled>,
    predicted: Vec<Predicted>,
}

impl Prepared {
    /// Whether no execution had anything to choose, a thread or a number for the program, and nothing is predicted.
    fn has_one_schedule(&self) -> bool {
        let mut runs = self.observation.runs.iter();
        self.predicted.is_empty()
            && self.observation.threads <= 1
            && runs.all(|(run, _)| run.schedule.numbers.is_empty())
    }
}

/// Observes the program, or hears of another process what it observed.
fn prepare(
    args: &Test,
    (program, team): (&ControlledProgram, &mut Team),
    deadline: &Deadline,
    suppressions: &Suppressions,
    journal: &Journal,
) -> Result<(Prepared, Campaign<Native>, Report), Failure> {
    let preamble = team.preamble(program, deadline, || {
        let native = predict::native(program, args, suppressions, deadline)?;
        let (learnt, failed) = match args.fresh {
            true => Default::default(),
            false => journal.past(&program.setup),
        };
        Ok(Preamble { native, learnt, failed })
    })?;
    let known = Known::new(preamble.learnt, preamble.failed);
    let claims = args.regions.claims();
    let native = Native::new(program, deadline).claiming(claims.clone());
    let native = Arc::new(native.with_globals(args.globals.depth()));
    let seen = (args, preamble.native);
    let (observation, predicted, report) =
        predict::predict(program, &native, seen, suppressions, deadline, &known.before())?;
    let mut budget = args.budget.clone();
    if team.is_rank() {
        budget.one_by_one();
    }
    let mut budget = budget.engine(args.attempts);
    if program.writes_files() {
        budget.jobs = 1;
    }
    let mut campaign = Campaign::new(Arc::clone(&native), budget);
    if !team.is_member() {
        campaign.determinism = determinism::blocks(program, args.across_builds);
    }
    campaign.count_observed(&observation);
    campaign.learnt = known.before().flips;
    learn(&mut campaign.learnt, observation.flips_since(&known.before()));
    campaign.crew = team.crew();
    campaign.identity = explore::identity(program, &observation.racing(), &campaign.learnt);
    Ok((Prepared { native, claims, known, observation, predicted }, campaign, report))
}

/// What to aim at, and how to search for more.
fn plan(
    args: &Test,
    prepared: &Prepared,
    campaign: &Campaign<Native>,
) -> (Aims<NameTable, WatchList>, Search<WatchList>) {
    let Prepared { known, observation, predicted, .. } = prepared;
    let predictions = Arc::new(predicted.iter().map(|p| p.prediction.clone()).collect());
    let confirmer = confirmer(args, observation);
    let aims = Aims { predictions, confirmer, past: known.attempts(predicted) };
    let search = explore::search(campaign, observation.racing(), observation.releases);
    let search = Search {
        schedules: if prepared.has_one_schedule() { 0 } else { search.schedules },
        strategy: explore::knowing(Plan::default(), &campaign.learnt),
        seed: known.seed(args.budget.seed),
        witness: Some(args.serial.criterion()),
        repeat: false,
        ..search
    };
    (aims, search)
}

/// Runs the part of this process, and reports nothing.
fn serve(args: &Test, team: &mut Team) -> Result<Deadline, Failure> {
    let suppressions = Suppressions::load(&args.suppressions)?;
    let program = program(args, team)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut journal = Journal::default();
    let (prepared, mut campaign, _) =
        prepare(args, (&program, team), &deadline, &suppressions, &journal)?;
    let earlier = prepared.known.schedules(&prepared.observation);
    let mut watcher = Watcher {
        deadline: &deadline,
        journal: &mut journal,
        progress: Schedules::new("test", args.budget.schedules),
        predicted: &[],
        suppressions: &suppressions,
        by: "schedules",
        keeper: None,
    };
    let followed = follow_again(&mut campaign, &earlier, &mut watcher);
    watcher.progress.clear();
    let (aims, search) = plan(args, &prepared, &campaign);
    let served = followed
        .and_then(|()| explore::serve(&mut campaign, Some(aims), (search, false), &deadline));
    team.searched(std::mem::take(&mut campaign.crew));
    served.map(|()| deadline)
}

fn test(
    args: &Test,
    (program, team): (&ControlledProgram, &mut Team),
    deadline: &Deadline,
    suppressions: &Suppressions,
    journal: &mut Journal,
) -> Result<(Report, explore::Answer), Failure> {
    let (prepared, mut campaign, mut report) =
        prepare(args, (program, team), deadline, suppressions, journal)?;
    report.cases.iter().for_each(|case| journal.add(case));
    let store = |so_far: &SoFar<'_>, journal: &mut Journal| {
        prepared.known.store(program, so_far, &prepared.predicted, journal);
    };
    let mut watcher = Watcher {
        deadline,
        journal,
        progress: Schedules::new("test", args.budget.schedules),
        predicted: &prepared.predicted,
        suppressions,
        by: "schedules",
        keeper: Some(Keeper::new(&store)),
    };
    let earlier = prepared.known.schedules(&prepared.observation);
    follow_again(&mut campaign, &earlier, &mut watcher)?;
    let (aims, search) = plan(args, &prepared, &campaign);
    let attempted = hunt(&mut campaign, aims, (search, args.until_failure), team, &mut watcher)?;
    let (executions, learnt) = (campaign.executions(), &campaign.learnt[..]);
    store(&SoFar { executions, learnt, attempted: &attempted }, watcher.journal);
    watcher.progress.clear();
    let alone = prepared.has_one_schedule();
    let Prepared { native, claims, known, observation, predicted } = prepared;
    let remarks = explore::limits(&observation.racing()).into_iter().chain(known.remark());
    let mut remarks: Vec<Remark> = remarks.collect();
    remarks.extend(alone.then_some(Remark::OneThread));
    let cases = settled(&native, &predicted, &attempted, deadline, journal)?;
    let confirmed = |(_, case): &(_, &Case)| case.status == Status::Confirmed;
    let settled = predicted.iter().zip(&cases).filter(confirmed);
    let known: Vec<FindingId> = settled.map(|(p, _)| p.prediction.id).collect();
    report.cases = cases.into_iter().filter(Case::is_finding).chain(report.cases).collect();
    let differences = differences(&mut campaign, args, deadline, journal)?;
    let differences = suppressions.pass_all(differences, &mut report.stats);
    differences.into_iter().for_each(|case| report.add(case));
    let undecided = undecided(&campaign);
    let is_undecided = !undecided.is_empty();
    remarks.extend(undecided);
    let failures = cases::failures(&campaign, &known, "schedules", deadline, journal)?;
    for failure in suppressions.pass_all(failures, &mut report.stats) {
        journal.add(report.merge(failure, Keep::Second));
    }
    let conflicts = observation.conflicts + observation.serial_conflicts.len() as u64;
    report.stats.traces = usize::try_from(campaign.executions()).unwrap_or(usize::MAX);
    report.stats.bounds.extend(claims.unmatched());
    report.stats.conflicts = conflicts + campaign.determinism.conflicts;
    report.stats.interleavings = linearity::interleavings(&campaign);
    report.stats.control = Some(explore::effort(&campaign, deadline, alone, remarks));
    let answer = explore::Answer { ended: campaign.has_ended(), undecided: is_undecided };
    Ok((report, answer))
}

/// How predictions are attempted.
fn confirmer(args: &Test, observation: &Observation<Controlled>) -> Confirmer {
    Confirmer {
        seed: args.budget.seed,
        input: args.budget.seed,
        releases: observation.releases,
        usual: observation.baseline.as_ref().map(|(left, _)| left.clone()),
        // The turns of a prediction come again.
        judged: 0,
    }
}

/// Confirms predictions and searches for more bugs, and then checks that executions can be repeated.
fn hunt(
    campaign: &mut Campaign<Native>,
    aims: Aims<NameTable, WatchList>,
    (search, until_failure): (Search<WatchList>, bool),
    team: &mut Team,
    watcher: &mut Watcher<'_>,
) -> Result<Vec<Attempted>, Failure> {
    let again = Search {
        strategy: Arc::clone(&search.strategy),
        points: search.points.clone(),
        witness: None,
        repeat: true,
        ..search
    };
    let mut attempted = Vec::new();
    if search.schedules > 0 && watcher.deadline.stopped().is_none() {
        explore::hunt(campaign, (aims, &mut attempted), (search, until_failure), watcher)?;
    }
    team.searched(std::mem::take(&mut campaign.crew));
    if watcher.deadline.stopped().is_none() {
        unless_interrupted(campaign.check_repeats(&again).map_err(Failure::from))?;
    }
    Ok(attempted)
}

/// Follows the schedules that failed in earlier tests.
fn follow_again(
    campaign: &mut Campaign<Native>,
    earlier: &[(Schedule, WatchList)],
    watcher: &mut Watcher<'_>,
) -> Result<(), Failure> {
    if watcher.deadline.stopped().is_some() {
        return Ok(());
    }
    unless_interrupted(campaign.follow_again(earlier, watcher).map_err(Failure::from))?;
    Ok(())
}

/// What cannot be said of blocks.
fn undecided(campaign: &Campaign<Native>) -> Vec<Remark> {
    let blocks = determinism::undecided(&campaign.determinism, false);
    blocks.into_iter().chain(linearity::undecided(campaign)).collect()
}

/// What blocks show that they must not, unless they are used wrongly.
fn differences(
    campaign: &mut Campaign<Native>,
    args: &Test,
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<Vec<Case>, Failure> {
    determinism::refuse(&campaign.determinism)?;
    let mut cases = determinism::violations(campaign, deadline, journal)?;
    cases.extend(determinism::anomalies(campaign, journal));
    linearity::refuse(campaign)?;
    let criterion = args.serial.criterion();
    cases.extend(linearity::violations(campaign, &criterion, deadline, journal)?);
    Ok(cases)
}

/// The cases of the predictions. Confirmed cases get a short schedule and the interleaving.
fn settled(
    native: &Native,
    predicted: &[Predicted],
    attempted: &[Attempted],
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<Vec<Case>, Failure> {
    let untried = Attempted::default();
    let attempted: Vec<Attempted> =
        (0..predicted.len()).map(|i| attempted.get(i).unwrap_or(&untried).clone()).collect();
    let mut cases: Vec<Case> = predicted.iter().zip(&attempted).map(|(p, a)| p.after(a)).collect();
    cases.iter().filter(|case| case.is_finding()).for_each(|case| journal.add(case));
    let confirmed = cases.iter().any(|case| case.status == Status::Confirmed);
    if confirmed && deadline.signal().is_none() {
        let explained = native.executor().and_then(|mut executor| {
            let to = (deadline, &mut *journal);
            cases::explain_all(&mut executor, predicted, &attempted, &mut cases, to)
        });
        unless_interrupted(explained)?;
    }
    Ok(cases)
}
