//! `selvedge explore`: runs a program under many schedules and reports those that make it fail.

use std::sync::Arc;

use selvedge_analyses::registry::{self, Purpose, Settings};
use selvedge_engine::campaign::{Problem, Undirected};
use selvedge_engine::observe::observe;
use selvedge_engine::search::NewStrategy;
use selvedge_engine::shards::Halt;
use selvedge_engine::{
    Aims, Attempted, Before, Budget, Campaign, Criterion, Limit, Observation, Search,
};
use selvedge_explore::strategies::{interrupt, mix, pct, reads_from};
use selvedge_explore::{Coverage, Flip, Mix, Plan, ReadsFrom};
use selvedge_model::Site;
use selvedge_report::{CutOff, Effort, Remark, Report, Stats, words};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{NameTable, WatchList};
use selvedge_spmd::launcher::is_launcher;

use crate::args::{Explore, Output};
use crate::control::cases;
use crate::control::determinism;
use crate::control::host::Watcher;
use crate::control::linearity;
use crate::control::meeting::Meeting;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure, unless_interrupted};
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::store::{self, Journal};
use crate::terminal::print;

/// The number of executions in which accesses that may race are looked for.
const OBSERVED: u64 = 3;

/// Explores and reports.
pub(crate) fn run(args: &Explore) -> Result<Exit, Failure> {
    if is_launcher(&args.command[0], None) {
        return Err(Failure::RanksNotControlled("explore"));
    }
    let program = ControlledProgram::find(&args.command, args.budget.patience())?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut journal = begin(&program);
    let (report, answer) = match explore(args, &program, &deadline, &mut journal) {
        Ok(explored) => explored,
        Err(failure) => {
            journal.finish("could not be controlled", &Stats::default());
            return Err(failure);
        }
    };
    let ending = deadline.stopped().map_or("explored".to_owned(), words::stopped);
    journal.finish(&ending, &report.stats);
    conclude((&report, answer), &args.output, &program, &deadline)
}

/// Begins the stored run of a controlled program.
pub(crate) fn begin(program: &ControlledProgram) -> Journal {
    let store = store::open(&store::directory(&program.setup.directory));
    let mut journal = Journal::begin(store, &program.words, &program.setup.form, &program.sight());
    journal.remember(&program.setup);
    journal
}

/// What the executions of a command can answer.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    /// Whether a controlled execution has ended.
    pub(crate) ended: bool,
    /// Something about deterministic blocks is not decided.
    pub(crate) undecided: bool,
}

/// Prints the report and returns the exit code. It is an error if no controlled execution ended and there is
/// nothing else to tell. What is undecided about deterministic blocks does not pass.
pub(crate) fn conclude(
    (report, answer): (&Report, Answer),
    output: &Output,
    program: &ControlledProgram,
    deadline: &Deadline,
) -> Result<Exit, Failure> {
    let mut output = output.clone();
    output.source.push(program.root.clone());
    if answer.ended || !report.cases.is_empty() || deadline.signal().is_some() {
        print(report, &output)?;
    }
    if let Some(shortcoming) = program.shortcoming() {
        anstream::eprintln!("{shortcoming}");
    }
    let failed = report.cases.iter().any(|f| output.fail_on.fails(f.status));
    Ok(match deadline.signal() {
        _ if failed => Exit::Findings,
        Some(_) => Exit::Interrupted,
        None if !answer.ended => return Err(endless(program)),
        None if answer.undecided => Exit::NotRun,
        None => Exit::Clean,
    })
}

/// No controlled execution of the program ended.
pub(crate) fn endless(program: &ControlledProgram) -> Failure {
    Failure::Endless {
        path: program.setup.program.clone(),
        patience: format!("{} s", program.setup.patience as f64 / 1000.0),
        advice: "if it is only slow, give it more time (--patience, --time); a server needs a client that shuts it down",
    }
}

fn explore(
    args: &Explore,
    program: &ControlledProgram,
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<(Report, Answer), Failure> {
    let plan = args.strategy.unwrap_or_default().or_argument(&pct::ENTRY, args.pct_depth);
    let claims = args.unmarked.claims();
    let native = Native::new(program, deadline).claiming(claims.clone());
    let native = Arc::new(native.with_globals(args.unmarked.depth()));
    let observation = match program.is_instrumented() {
        true => Some(in_time(look(&native, args.budget.seed), program, deadline)?),
        false => None,
    };
    let known = observation.as_ref();
    let meeting = meeting(args, known)?;
    let mut campaign = Campaign::new(Arc::clone(&native), args.budget.engine(0));
    campaign.besides = known.map_or(0, |o| o.runs.len() as u64);
    campaign.determinism = determinism::blocks(program, args.across_builds);
    let points = match &meeting {
        Some(meeting) => meeting.points.clone(),
        None => known.map(Observation::racing).unwrap_or_default(),
    };
    let mut remarks: Vec<Remark> = limits(&points).into_iter().collect();
    let search = Search {
        strategy: match &meeting {
            Some(meeting) => meeting.strategy(),
            None => knowing(plan, known.map_or(&[], |o| &o.flips)),
        },
        systematic: plan.is_systematic() && meeting.is_none(),
        witness: Some(args.serial.criterion()),
        ..search(&campaign, points, known.is_some_and(|o| o.releases))
    };
    if let Some((left, _)) = known.and_then(|o| o.baseline.as_ref()) {
        campaign.linearity.know(&left.blocks);
    }
    let suppressions = Suppressions::default();
    let mut watcher = Watcher {
        deadline,
        journal,
        progress: Schedules::new("explore", args.budget.schedules),
        predicted: &[],
        suppressions: &suppressions,
        by: "explore",
        keeper: None,
    };
    let chosen = args.strategy.is_some() || meeting.is_some();
    let how = (!args.keep_going, chosen);
    let coverage = undirected(&mut campaign, search, how, &mut watcher)?;
    watcher.progress.clear();
    remarks.extend(meeting.as_ref().map(Meeting::remark));
    let mut report = Report::default();
    report.stats.analyses = vec!["explore".to_owned()];
    report.stats.traces = usize::try_from(campaign.executions()).unwrap_or(usize::MAX);
    report.stats.bounds.extend(claims.unmatched());
    report.stats.events = known.map_or(0, |o| o.events);
    report.stats.threads = known.map_or(0, |o| o.threads);
    let failures = cases::failures(&campaign, &[], "explore", deadline, journal)?;
    failures.into_iter().for_each(|case| report.add(case));
    determinism::refuse(&campaign.determinism)?;
    let violations = determinism::violations(&campaign, deadline, journal)?;
    violations.into_iter().for_each(|case| report.add(case));
    linearity::refuse(&campaign)?;
    let criterion = args.serial.criterion();
    let unexplained = linearity::violations(&campaign, &criterion, deadline, journal)?;
    unexplained.into_iter().for_each(|case| report.add(case));
    let complete = coverage == Coverage::Complete;
    let undecided = determinism::undecided(&campaign.determinism, complete);
    let undecided: Vec<Remark> =
        undecided.into_iter().chain(linearity::undecided(&campaign)).collect();
    let is_undecided = !undecided.is_empty();
    remarks.extend(undecided);
    report.stats.interleavings = linearity::interleavings(&campaign);
    report.stats.control = Some(effort(&campaign, deadline, complete, remarks));
    Ok((report, Answer { ended: campaign.has_ended(), undecided: is_undecided }))
}

/// Where threads are to meet, if the user wants that.
fn meeting(
    args: &Explore,
    known: Option<&Observation<Controlled>>,
) -> Result<Option<Meeting>, Failure> {
    match (args.meet.as_slice(), known) {
        ([], _) => Ok(None),
        (lines, Some(known)) => Meeting::find(lines, args.same_object, known).map(Some),
        (_, None) => {
            let why = "--meet needs a program built by `selvedge cc` or `cargo selvedge`";
            Err(Failure::Usage(why.to_owned()))
        }
    }
}

/// The result of executions that came before all others. If the time limit ended them, none has ended.
pub(crate) fn in_time<T, E: Into<Failure>>(
    outcome: Result<T, E>,
    program: &ControlledProgram,
    deadline: &Deadline,
) -> Result<T, Failure> {
    outcome.map_err(Into::into).map_err(|failure| match (&failure, deadline.signal()) {
        (Failure::Interrupted, None) => endless(program),
        _ => failure,
    })
}

/// Explores; where something is observed and the user has not chosen a strategy, half of the executions are those of
/// `interrupt`.
pub(crate) fn undirected(
    campaign: &mut Campaign<Native>,
    search: Search<WatchList>,
    (until_failure, chosen): (bool, bool),
    watcher: &mut Watcher<'_>,
) -> Result<Coverage, Failure> {
    let undirected = |search| Undirected { search, until_failure, known: Vec::new() };
    if chosen || campaign.linearity.observed.is_none() {
        return finished(campaign.explore(undirected(search), watcher));
    }
    let (schedules, before) = (search.schedules, campaign.executions());
    let coverage = finished(campaign.explore(undirected(interrupting(&search)), watcher))?;
    let left = schedules.saturating_sub(campaign.executions() - before);
    let is_over = until_failure && !campaign.linearity.violations.is_empty();
    if is_over || left == 0 || watcher.deadline.stopped().is_some() {
        return Ok(coverage);
    }
    let rest = Search { schedules: left, ..search };
    finished(campaign.explore(undirected(rest), watcher))
}

/// Confirms predictions and explores; where something is observed, half of the executions are those of
/// `interrupt`.
pub(crate) fn hunt(
    campaign: &mut Campaign<Native>,
    (aims, attempted): (Aims<NameTable, WatchList>, &mut Vec<Attempted>),
    (search, until_failure): (Search<WatchList>, bool),
    watcher: &mut Watcher<'_>,
) -> Result<(), Failure> {
    let undirected = |search| Undirected { search, until_failure, known: Vec::new() };
    if campaign.linearity.observed.is_none() {
        return finished(campaign.hunt(aims, attempted, undirected(search), watcher)).map(drop);
    }
    let (schedules, before) = (search.schedules, campaign.executions());
    finished(campaign.hunt(aims, attempted, undirected(interrupting(&search)), watcher))?;
    let left = schedules.saturating_sub(campaign.executions() - before);
    let is_over = until_failure && !campaign.linearity.violations.is_empty();
    if left > 0 && !is_over && watcher.deadline.stopped().is_none() {
        let rest = Search { schedules: left, ..search };
        finished(campaign.explore(undirected(rest), watcher))?;
    }
    Ok(())
}

/// The first half of a search where something is observed.
fn interrupting(search: &Search<WatchList>) -> Search<WatchList> {
    let plan = Plan::new(&interrupt::ENTRY, None);
    Search {
        strategy: Arc::new(move |_, _| plan.strategy()),
        systematic: plan.is_systematic(),
        schedules: search.schedules.div_ceil(2),
        points: search.points.clone(),
        witness: search.witness.clone(),
        ..*search
    }
}

/// Makes a strategy, which knows what the observed executions have suggested if it can use that.
pub(crate) fn knowing(plan: Plan, flips: &[Flip<Site>]) -> NewStrategy {
    let flips = flips.to_vec();
    Arc::new(move |site, share| {
        let known: Vec<Flip> = flips.iter().map(|flip| flip.map(&mut *site)).collect();
        match plan.name() {
            name if name == mix::ENTRY.name => Box::new(Mix::knowing(known, share)),
            name if name == reads_from::ENTRY.name => {
                Box::new(ReadsFrom::default().knowing(known).sharing(share))
            }
            _ => plan.strategy(),
        }
    })
}

/// The default search of a campaign: undirected, with the default strategy and the rest of the budget.
pub(crate) fn search(
    campaign: &Campaign<Native>,
    points: WatchList,
    releases: bool,
) -> Search<WatchList> {
    let Budget { seed, schedules, jobs, .. } = campaign.budget;
    let plan = Plan::default();
    Search {
        strategy: Arc::new(move |_, _| plan.strategy()),
        systematic: plan.is_systematic(),
        seed,
        vary_input: false,
        schedules: schedules.saturating_sub(campaign.executions() + 1),
        jobs,
        points,
        releases,
        attempts: 0,
        repeat: true,
        stall: None,
        witness: Some(Criterion::default()),
    }
}

/// The coverage of undirected executions. If a signal stopped them, the coverage is unknown.
pub(crate) fn finished(
    outcome: Result<Coverage, Problem<selvedge_runtime::Error>>,
) -> Result<Coverage, Failure> {
    match outcome {
        Ok(coverage) => Ok(coverage),
        Err(Problem::Halt(Halt::Failed(error))) => {
            Ok(unless_interrupted(Err::<Coverage, _>(error))?.unwrap_or_default())
        }
        // The executor's own time limit ends native executions.
        Err(Problem::Halt(Halt::Stalled) | Problem::Endless) => Ok(Coverage::default()),
    }
}

/// What the controlled executions cost, and remarks for the report.
pub(crate) fn effort(
    campaign: &Campaign<Native>,
    deadline: &Deadline,
    complete: bool,
    mut remarks: Vec<Remark>,
) -> Effort {
    remarks.extend(campaign.uncontrolled.iter().cloned().map(Remark::Uncontrolled));
    remarks.extend(campaign.nondeterminism.as_ref().map(cases::differs));
    if let Some(ending) = campaign.failures.always().filter(|e| e.finding().is_some()) {
        let outcome = Box::new(cases::outcome(ending));
        let schedules = campaign.failures.executions();
        remarks.push(Remark::AlwaysFails { schedules, outcome });
    }
    let limit = |limit: &Limit| match limit {
        Limit::Steps(steps) => CutOff::Steps(*steps),
        Limit::Time(time) => CutOff::Time(time.as_secs_f64()),
    };
    let undecided = campaign.failures.undecided().iter();
    remarks.extend(undecided.map(|(at, &executions)| Remark::CutOff { executions, at: limit(at) }));
    let odd = campaign.failures.usual_exit().filter(|&code| code != 0);
    remarks.extend(odd.map(Remark::AlwaysExits));
    remarks.extend(deadline.stopped().map(Remark::Stopped));
    Effort {
        schedules: campaign.executions(),
        seconds: deadline.elapsed().as_secs_f64(),
        seed: campaign.budget.seed,
        complete,
        remarks,
    }
}

/// A remark if there are more scheduling points than the runtime supports.
pub(crate) fn limits(points: &WatchList) -> Option<Remark> {
    let (all, most) = (points.list().len(), selvedge_runtime::control::wire::WATCHED);
    (all > most).then_some(Remark::Points { all, most })
}

/// The accesses that may race; they become scheduling points.
pub(crate) fn points(native: &Native, seed: u64) -> Result<WatchList, Failure> {
    Ok(look(native, seed)?.racing())
}

fn look(native: &Native, seed: u64) -> Result<Observation<Controlled>, Failure> {
    let analyses = registry::defaults(Purpose::Explore);
    let analyses = (&analyses[..], Settings::default());
    Ok(observe(&mut native.executor()?, seed, OBSERVED, analyses, &Before::default())?)
}
