//! Executions of a program that says how its data flows, to infer stars from.
//!
//! Only executions that do not conform by themselves say where stars are needed; the others are counted.

use selvedge_engine::executor::execute;
use selvedge_engine::{Ask, Executor, Noted, Outcome};
use selvedge_explore::{Plan, Rng};
use selvedge_specs::ndseq::Stars;
use selvedge_specs::ndseq::check::conforms_with;

use super::Recorded;
use crate::args::InferNdseq;
use crate::control::flow::{self, Sharing, recorded, shared};
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::progress::Schedules;

/// Runs the program under many schedules.
pub(super) fn observe(args: &InferNdseq, into: &mut Recorded) -> Result<(), Failure> {
    let mut program = ControlledProgram::find(&args.command, args.patience)?;
    let tables = flow::tables(&program)?;
    program.setup.focus.clone_from(&args.focus);
    let focus = flow::focus(&program)?;
    let deadline = Deadline::new(Some(args.time))?;
    let native = Native::new(&program, &deadline).following_flow(focus).with_statements();
    let mut executor = native.executor()?;
    let (mut sharing, mut strategy) = (Sharing::default(), Plan::default().strategy());
    let mut progress = Schedules::new("executions to infer from", args.schedules);
    for number in 0..args.schedules {
        if deadline.stopped().is_some() {
            break;
        }
        progress.advance(number, 0, &deadline);
        let points = sharing.list.clone();
        let ask = Ask { seed: args.seed, noted: Noted::Flow, points, ..Ask::default() };
        let rng = Rng::of_execution(args.seed, number);
        let Some(execution) = execute(&mut executor, &mut *strategy, rng, &ask)? else { break };
        if let Some(why) = &executor.flowed().broken {
            return Err(flow::broken(why));
        }
        // What was cut off or failed did not come to its result.
        if !matches!(execution.outcome, Outcome::Exited(_)) {
            into.cut_off += 1;
            continue;
        }
        let symbols = Executor::named(&mut executor, &execution);
        let sites = shared(&execution.events).into_iter().map(|s| symbols.site(s)).collect();
        sharing.watch(sites, &tables);
        into.executions += 1;
        into.events += execution.events.len() as u64;
        for (name, times) in &executor.flowed().unknown {
            let known = into.unknown.entry(name.clone()).or_default();
            *known = (*known).max(*times);
        }
        let flow = recorded(&execution)?;
        if !conforms_with(&flow, &Stars::marked(&flow)) {
            into.study.add(flow, &symbols).map_err(Failure::Undecided)?;
            into.symbols.push(symbols);
        }
    }
    progress.clear();
    into.root = program.root.clone();
    into.program.clone_from(&program.setup.program);
    into.focus.extend(args.focus.iter().cloned());
    if into.executions == 0 {
        return Err(Failure::Undecided(format!(
            "{}: no execution ended by itself, so there is nothing to infer from; `--patience` gives one more time",
            into.program.display()
        )));
    }
    Ok(())
}
