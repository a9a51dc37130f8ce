//! Replays an execution that must be as if sequential, and judges it again by the sequential executions.

use std::io::Write;

use selvedge_engine::replay::{follow, watch};
use selvedge_engine::{Ask, Noted, Sought, Twin, Twins};
use selvedge_explore::Rng;
use selvedge_explore::sequential::Tasks;
use selvedge_model::{Op, RegionKind};
use selvedge_report::words;

use super::show;
use crate::args::Replay;
use crate::control::again::Again;
use crate::control::cases;
use crate::control::debug;
use crate::control::flow;
use crate::control::program::Native;
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure};

/// The most sequential executions.
const SEQUENTIAL: u64 = 1000;

/// Replays and prints what happened.
pub(super) fn run(args: &Replay, again: Again, deadline: &Deadline) -> Result<Exit, Failure> {
    let Again { program, schedule, case, points, .. } = again;
    let Some(case) = case else { return Ok(Exit::Clean) };
    let native = Native::new(&program, deadline).following_flow(flow::focus(&program)?);
    let mut executor = native.executor()?;
    // Tasks that are calls are seen by how data flows.
    let by_flow = !program.setup.tasks.is_empty();
    let noted = if by_flow { Noted::Flow } else { Noted::Events };
    let ask = Ask { noted, points, ..Ask::default() }.following(&schedule);
    let replayed = follow(&mut executor, &schedule, &Sought::default(), &ask)?;
    let result = flow::shown(&mut executor, &replayed.execution);
    let marked = replayed
        .execution
        .events
        .iter()
        .any(|e| matches!(e.op, Op::RegionEnter(_, RegionKind::Task)));
    let mut twins = Twins::new(if marked { Tasks::Marked } else { Tasks::Threads }, SEQUENTIAL);
    let noted = if by_flow { Noted::Flow } else { Noted::Ending };
    let quick = Ask { noted, stars: true, ..ask.clone() };
    let twin = match &result {
        Some(result) => twins
            .find(&mut executor, result, &quick, flow::shown, || deadline.stopped().is_some())?,
        None => Twin::Unknown,
    };
    if args.sequential {
        let Twin::Found(number) = twin else {
            return Err(Failure::Undecided(format!(
                "there is no sequential execution with the same result among {}",
                twins.executions
            )));
        };
        let ask = Ask { stars: true, ..ask };
        let ran = &twins.ran[number];
        let (again, rng) = (ran.again.clone(), Rng::new(ask.seed));
        let (sequential, again) = watch(&mut executor, again, rng, &Sought::default(), &ask)?;
        if again.interrupted() || flow::shown(&mut executor, &sequential.execution) != result {
            return Err(Failure::Undecided(
                "a sequential execution showed the same, and shows something else when it is run again; does the program depend on time or on other programs?".to_owned(),
            ));
        }
        std::io::stdout().write_all(&sequential.execution.output)?;
        anstream::eprintln!(
            "a sequential execution shows the same, with {} stars left out: {}",
            ran.left_out,
            ran.schedule
        );
        show(&cases::interleaving(&sequential, &case.critical()), &program.root);
        return Ok(Exit::Clean);
    }
    std::io::stdout().write_all(&replayed.execution.output)?;
    std::io::stderr().write_all(&replayed.execution.errors)?;
    let happened = replayed.divergence.is_none() && !matches!(twin, Twin::Found(_));
    let what = words::summary(&case);
    if happened {
        anstream::eprintln!(
            "the finding happened again: {what} ({}); none of {} sequential executions shows the same",
            case.id,
            twins.executions
        );
    } else {
        anstream::eprintln!("the finding did not happen: {what} ({})", case.id);
    }
    show(&cases::interleaving(&replayed, &case.critical()), &program.root);
    if args.gdb {
        let points = debug::breakpoints(&replayed, &case.critical());
        debug::run(native, &schedule, &points, &args.gdb_command, &ask)?;
    }
    Ok(if happened { Exit::Findings } else { Exit::Clean })
}
