//! `selvedge replay` of a race across ranks: the same pair is made to meet again.
//!
//! Ranks run at their own pace, so a replay is not the same execution step by step. It happened again if both accesses
//! were in flight at once again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use selvedge_model::FindingId;
use selvedge_report::Case;
use selvedge_spmd::{Place, Plan};

use super::cases::Namer;
use super::directed::{Candidate, Executions, Numbered};
use super::{Executed, Job, builds};
use crate::args::Replay;
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure};
use crate::messages::{named, warning_label};
use crate::store::{Run, Setup};

/// So many executions may try.
const ATTEMPTS: u32 = 6;
/// The first pause.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes the race happen again, and says whether it did.
pub(crate) fn replay(args: &Replay, store: &Path, run: &Run, case: &Case) -> Result<Exit, Failure> {
    if args.gdb || args.margin.is_some() {
        let what = "--gdb and --margin follow one process; ranks are many".to_owned();
        return Err(Failure::Usage(what));
    }
    let schedule = case.control.as_ref().and_then(|c| c.schedule.as_deref());
    let (Some(setup), Some(schedule)) = (&run.setup, schedule) else {
        return Err(Failure::Usage(format!(
            "{} is {} and was not confirmed; `selvedge test` tries to",
            case.id,
            case.status.name()
        )));
    };
    let Ok(Numbered { seed, .. }) = schedule.parse() else {
        return Err(Failure::Usage(format!(
            "the stored execution of {} cannot be read ({schedule:?}); run `selvedge test` again",
            case.id
        )));
    };
    if !setup.directory.is_dir() {
        return Err(Failure::Gone(setup.directory.clone()));
    }
    let deadline = Deadline::new(None)?;
    let command: Vec<OsString> = [setup.program.clone().into_os_string()]
        .into_iter()
        .chain(setup.arguments.clone())
        .collect();
    let job = Job::new(&command, setup.directory.clone(), store.to_owned())?;
    let mut executions = Executions {
        job: &job,
        deadline: &deadline,
        patience: Duration::from_millis(setup.patience),
        seed,
        pause: PAUSE,
        done: 0,
    };
    let root = store.parent().unwrap_or(Path::new("/"));
    let pairs = pairs(&mut executions, setup, case, root)?;
    let mut happened = 0;
    for round in 0..args.times.max(1) {
        let last = meet(&mut executions, &pairs)?;
        let again = last.as_ref().is_some_and(|executed| !executed.told.met.is_empty());
        if let Some(executed) = last.filter(|_| round == 0) {
            std::io::stdout().write_all(&executed.output)?;
        }
        if round == 0 || again != (happened == round) {
            let how = if again { "happened again" } else { "did not happen" };
            anstream::eprintln!("the finding {how}: {}", named(case));
        }
        happened += u64::from(again);
    }
    if args.times > 1 {
        anstream::eprintln!("the finding happened in {happened} of {} executions", args.times);
    }
    Ok(if happened > 0 { Exit::Findings } else { Exit::Clean })
}

/// The last of the executions that try to make a pair meet; `None` if there is no pair.
fn meet(
    executions: &mut Executions<'_>,
    pairs: &[[Place; 2]],
) -> Result<Option<Executed>, Failure> {
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        if pairs.is_empty() || executions.deadline.signal().is_some() {
            break;
        }
        let pause = u64::try_from(executions.pause.as_micros()).unwrap_or(0) << attempt;
        let plan = Plan { pairs: pairs.to_vec(), pause, ..Plan::default() };
        let executed = executions.execute(Some(plan))?;
        let met = !executed.told.met.is_empty();
        last = Some(executed);
        if met {
            break;
        }
    }
    Ok(last)
}

/// The places of the race in code. If the program was built again, they are looked for in an execution.
fn pairs(
    executions: &mut Executions<'_>,
    setup: &Setup,
    case: &Case,
    root: &Path,
) -> Result<Vec<[Place; 2]>, Failure> {
    if builds(&setup.arguments, &setup.directory) == setup.build {
        let watched = case.control.as_ref().map_or(&[][..], |c| &c.watched);
        let place = |w: &selvedge_report::Watched| Place {
            module: w.module.to_string_lossy().into(),
            offset: w.offset,
        };
        return Ok(match watched {
            [a, b, ..] => vec![[place(a), place(b)]],
            _ => Vec::new(),
        });
    }
    anstream::eprintln!(
        "{}: the program has changed since the race was confirmed; it is looked for at the same places in the source",
        warning_label(),
    );
    let executed = executions.execute(None)?;
    let mut namer = Namer::new(root, &executed.told);
    let mut found: BTreeMap<FindingId, Candidate> = BTreeMap::new();
    for race in &executed.told.races {
        let seen = namer.case(race);
        if seen.id == case.id {
            Candidate::add(&mut found, seen, race);
        }
    }
    Ok(found.into_values().flat_map(|candidate| candidate.pairs).collect())
}
