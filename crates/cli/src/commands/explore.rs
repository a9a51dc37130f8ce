//! `selvedge explore`: runs a program under many schedules and reports those that make it fail.

use std::sync::Arc;

use selvedge_analyses::registry::{self, Purpose, Settings};
use selvedge_engine::campaign::{Problem, Undirected};
use selvedge_engine::observe::observe;
use selvedge_engine::ranks::Crew;
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
use crate::crew::Team;
use crate::crew::log::Preamble;
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure, unless_interrupted};
use crate::program::claims::Claims;
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
    together(args, &mut Team::join(&args.sharing)?)
}

/// Explores, together with other processes if there are any.
pub(crate) fn together(args: &Explore, team: &mut Team) -> Result<Exit, Failure> {
    if team.is_member() {
        return team.serve(|team| work(args, team));
    }
    let explored = lead(args, team);
    team.end(explored.as_ref().is_ok_and(|exit| *exit != Exit::Interrupted));
    explored
}

fn lead(args: &Explore, team: &mut Team) -> Result<Exit, Failure> {
    let program = program(args, team)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut journal = begin(&program);
    let (report, answer) = match explore(args, (&program, team), &deadline, &mut journal) {
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

fn program(args: &Explore, team: &Team) -> Result<ControlledProgram, Failure> {
    let program = ControlledProgram::find(&args.command, args.budget.patience())?;
    Ok(program.hiding(team.hidden()))
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

/// What is known before the search.
struct Prepared {
    observation: Option<Observation<Controlled>>,
    claims: Claims,
    meeting: Option<Meeting>,
    campaign: Campaign<Native>,
}

/// Observes the program.
fn prepare(
    args: &Explore,
    (program, team): (&ControlledProgram, &mut Team),
    deadline: &Deadline,
) -> Result<Prepared, Failure> {
    team.preamble(program, deadline, || Ok(Preamble::default()))?;
    let claims = args.unmarked.claims();
    let native = Native::new(program, deadline).claiming(claims.clone());
    let native = Arc::new(native.with_globals(args.unmarked.depth()));
    let observation = match program.is_instrumented() {
        true => Some(in_time(look(&native, args.budget.seed), program, deadline)?),
        false => None,
    };
    let known = observation.as_ref();
    let meeting = meeting(args, known)?;
    let mut budget = args.budget.clone();
    if team.is_rank() {
        budget.one_by_one();
    }
    let mut campaign = Campaign::new(native, budget.engine(0));
    campaign.besides = known.map_or(0, |o| o.runs.len() as u64);
    if !team.is_member() {
        campaign.determinism = determinism::blocks(program, args.across_builds);
    }
    if let Some((left, _)) = known.and_then(|o| o.baseline.as_ref()) {
        campaign.linearity.know(&left.blocks);
    }
    campaign.crew = team.crew();
    let flips = known.map_or(&[][..], |o| &o.flips);
    campaign.identity = identity(program, &stops(known, meeting.as_ref()), flips);
    Ok(Prepared { observation, claims, meeting, campaign })
}

/// The accesses that are scheduling points.
fn stops(known: Option<&Observation<Controlled>>, meeting: Option<&Meeting>) -> WatchList {
    match meeting {
        Some(meeting) => meeting.points.clone(),
        None => known.map(Observation::racing).unwrap_or_default(),
    }
}

/// How to search.
fn plan(args: &Explore, prepared: &Prepared) -> Search<WatchList> {
    let Prepared { observation, meeting, campaign, .. } = prepared;
    let known = observation.as_ref();
    let plan = args.strategy.unwrap_or_default().or_argument(&pct::ENTRY, args.pct_depth);
    Search {
        strategy: match meeting {
            Some(meeting) => meeting.strategy(),
            None => knowing(plan, known.map_or(&[], |o| &o.flips)),
        },
        systematic: plan.is_systematic() && meeting.is_none(),
        witness: Some(args.serial.criterion()),
        ..search(campaign, stops(known, meeting.as_ref()), known.is_some_and(|o| o.releases))
    }
}

/// Runs the part of this process, and reports nothing.
fn work(args: &Explore, team: &mut Team) -> Result<Deadline, Failure> {
    let program = program(args, team)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut prepared = prepare(args, (&program, team), &deadline)?;
    let search = plan(args, &prepared);
    let chosen = args.strategy.is_some() || prepared.meeting.is_some();
    let served = serve(&mut prepared.campaign, None, (search, chosen), &deadline);
    team.searched(std::mem::take(&mut prepared.campaign.crew));
    served.map(|()| deadline)
}

fn explore(
    args: &Explore,
    (program, team): (&ControlledProgram, &mut Team),
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<(Report, Answer), Failure> {
    let prepared = prepare(args, (program, team), deadline)?;
    let search = plan(args, &prepared);
    let Prepared { observation, claims, meeting, mut campaign } = prepared;
    let known = observation.as_ref();
    let mut remarks: Vec<Remark> = limits(&search.points).into_iter().collect();
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
    team.searched(std::mem::take(&mut campaign.crew));
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

/// Runs this process's part of the searches that another process makes with [`hunt`] or [`undirected`].
pub(crate) fn serve(
    campaign: &mut Campaign<Native>,
    aims: Option<Aims<NameTable, WatchList>>,
    (search, chosen): (Search<WatchList>, bool),
    deadline: &Deadline,
) -> Result<(), Failure> {
    let stop = || deadline.ends_exploring();
    let halves = !chosen && campaign.linearity.observed.is_some();
    let Crew::Member(member) = &mut campaign.crew else { return Ok(()) };
    if halves && !member.is_linked() {
        let why = "the program observes atomic blocks, and how the second half of its executions is made depends on the first: --shard cannot divide them; mpirun can, and so can `explore --strategy`";
        return Err(Failure::Usage(why.to_owned()));
    }
    let first = if halves { interrupting(&search) } else { search.clone() };
    let Some(schedules) = member.next(first.schedules, stop) else { return Ok(()) };
    served(campaign.serve(aims, Search { schedules, ..first }, stop))?;
    loop {
        let Crew::Member(member) = &mut campaign.crew else { return Ok(()) };
        let Some(schedules) = member.next(0, stop) else { return Ok(()) };
        served(campaign.serve(None, Search { schedules, ..search.clone() }, stop))?;
    }
}

fn served(outcome: Result<(), Halt<selvedge_runtime::Error>>) -> Result<(), Failure> {
    finished(outcome.map(|()| Coverage::default()).map_err(Problem::Halt)).map(drop)
}

/// What must be the same in all processes that share a campaign, besides the predictions.
pub(crate) fn identity(
    program: &ControlledProgram,
    points: &WatchList,
    learnt: &[Flip<Site>],
) -> String {
    let points: Vec<_> =
        points.list().iter().map(|w| (&w.code.module, w.code.offset, w.site.to_string())).collect();
    let place = |site: &Option<Site>| site.as_ref().map(Site::to_string);
    let pair = |f: &Flip<Site>| {
        let places = (f.read.to_string(), place(&f.write), place(&f.began));
        (places, f.seen, f.tried, f.times)
    };
    let learnt: Vec<_> = learnt.iter().map(pair).collect();
    serde_json::to_string(&(&program.setup.build, points, learnt)).unwrap_or_default()
}

/// The first half of a search where something is observed.
fn interrupting(search: &Search<WatchList>) -> Search<WatchList> {
    let plan = Plan::new(&interrupt::ENTRY, None);
    Search {
        strategy: Arc::new(move |_, _| plan.strategy()),
        systematic: plan.is_systematic(),
        schedules: search.schedules.div_ceil(2),
        ..search.clone()
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
