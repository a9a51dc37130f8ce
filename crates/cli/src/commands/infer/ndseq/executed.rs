//! Executions of a program that says how its data flows, to infer stars from.
//!
//! Only executions that do not conform by themselves say where stars are needed; the others are counted. Of an
//! execution that no stars explain, data flow says only that its conflicts cannot be undone, so the sequential executions
//! are run: if one shows the same without leaving anything out, the execution conforms with any stars.

use selvedge_engine::executor::execute;
use selvedge_engine::{Ask, Executor, Limit, Noted, Outcome, Twin};
use selvedge_explore::{Plan, Rng};
use selvedge_runtime::Controlled;
use selvedge_specs::ndseq::Stars;
use selvedge_specs::ndseq::check::conforms_with;
use selvedge_specs::ndseq::infer::Settled;

use super::Recorded;
use crate::args::InferNdseq;
use crate::control::flow::{self, Shown, recorded, shown};
use crate::control::program::{ControlledProgram, Native};
use crate::control::sharing::shared;
use crate::control::twins::Sequentials;
use crate::deadline::Deadline;
use crate::exit::{Failure, unless_interrupted};
use crate::progress::Schedules;

/// The most sequential executions.
const SEQUENTIAL: u64 = 1000;

/// A program that was run, and can be run again to judge what it showed.
pub(super) struct Executed {
    executor: Controlled,
    sequentials: Sequentials,
    deadline: Deadline,
    /// What each execution showed that is studied.
    shown: Vec<Shown>,
}

/// How executions were judged that no stars explain.
#[derive(Clone, Copy, Default)]
pub(super) struct Judged {
    /// So many have a sequential twin.
    pub(super) excused: usize,
    /// So many have none among the sequential executions that were run.
    pub(super) left: usize,
    /// So many sequential executions were run.
    pub(super) sequential: u64,
    /// These are all there are.
    pub(super) all: bool,
}

impl Executed {
    /// Excuses executions whose circles no stars break, and that show what a sequential execution shows.
    pub(super) fn judge(&mut self, settled: &mut Settled) -> Result<Judged, Failure> {
        let mut judged = Judged::default();
        for number in settled.unbroken() {
            let (tasks, shown) = (settled.execution(number).tasks(), &self.shown[number]);
            let twin = self.sequentials.twin(&mut self.executor, &self.deadline, tasks, shown)?;
            if let Twin::Found(_) = twin {
                settled.excuse(number);
                judged.excused += 1;
            } else {
                judged.left += 1;
            }
        }
        Ok(Judged {
            sequential: self.sequentials.executions,
            all: self.sequentials.are_all(),
            ..judged
        })
    }
}

/// Runs the program under many schedules.
pub(super) fn observe(args: &InferNdseq, into: &mut Recorded) -> Result<Executed, Failure> {
    let mut program = ControlledProgram::find(&args.command, args.patience)?;
    program.setup.focus.clone_from(&args.focus);
    program.setup.tasks.clone_from(&args.tasks);
    let tables = flow::tables(&program)?;
    let focus = flow::focus(&program)?;
    let deadline = Deadline::new(Some(args.time))?;
    let native = Native::new(&program, &deadline).following_flow(focus).with_statements();
    let mut executor = native.executor()?;
    let mut strategy = Plan::default().strategy();
    let mut sequentials = Sequentials::new(tables, args.seed, SEQUENTIAL, false);
    let (mut results, mut too_long) = (Vec::new(), None);
    let mut progress = Schedules::new("executions to infer from", args.schedules);
    for number in 0..args.schedules {
        // The rest of the time is for sequential executions.
        if deadline.ends_exploring() {
            break;
        }
        progress.advance(number, 0, &deadline);
        let points = sequentials.sharing.list.clone();
        let ask = Ask { seed: args.seed, noted: Noted::Flow, points, ..Ask::default() };
        let rng = Rng::of_execution(args.seed, number);
        let execution = unless_interrupted(execute(&mut executor, &mut *strategy, rng, &ask))?;
        let Some(execution) = execution.flatten() else { break };
        if let Some(why) = &executor.flowed().broken {
            return Err(flow::broken(why));
        }
        // What was cut off or failed did not come to its result.
        if !matches!(execution.outcome, Outcome::Exited(_)) {
            if let Outcome::Undecided(Limit::Steps(steps)) = execution.outcome {
                too_long = Some(steps);
            }
            into.cut_off += 1;
            continue;
        }
        let symbols = Executor::named(&mut executor, &execution);
        let sites = shared(&execution.events).into_iter().map(|s| symbols.site(s)).collect();
        sequentials.watch(sites);
        into.executions += 1;
        into.events += execution.events.len() as u64;
        for (name, times) in &executor.flowed().unknown {
            let known = into.unknown.entry(name.clone()).or_default();
            *known = (*known).max(*times);
        }
        let result = shown(&mut executor, &execution);
        let flow = recorded(&execution, &symbols, args.commute_floats)?;
        if !conforms_with(&flow, &Stars::marked(&flow)) {
            into.study.add(flow, &symbols).map_err(Failure::Undecided)?;
            into.symbols.push(symbols);
            results.extend(result);
        }
    }
    progress.clear();
    into.root = program.root.clone();
    into.program.clone_from(&program.setup.program);
    into.focus.extend(args.focus.iter().cloned());
    if into.executions == 0 {
        if let Some(steps) = too_long {
            return Err(flow::too_long(&program, steps));
        }
        return Err(Failure::Undecided(format!(
            "{}: no execution ended by itself, so there is nothing to infer from; `--patience` gives one more time",
            into.program.display()
        )));
    }
    Ok(Executed { executor, sequentials, deadline, shown: results })
}
