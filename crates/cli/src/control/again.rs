//! A stored finding, and the program in which to make it happen again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use selvedge_engine::replay::follow;
use selvedge_engine::witness::Unserial;
use selvedge_engine::{Ask, Contrast, Criterion, Executor, Noted, Points, Replayed, Sought};
use selvedge_model::schedule::ScheduleError;
use selvedge_model::{Schedule, Site};
use selvedge_report::{Case, Memory, Subject, Watched as ReportedAccess};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{CodePlace, WatchList, Watched};

use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::messages::named;
use crate::store::{self, RunId, Store};

/// So many serial executions of other blocks are tried to explain a replay.
const SERIAL: u64 = 1000;

/// A program, and the schedule to replay in it.
pub(crate) struct Again {
    pub(crate) program: ControlledProgram,
    pub(crate) schedule: Schedule,
    pub(crate) case: Option<Case>,
    /// The accesses that were scheduling points.
    pub(crate) points: WatchList,
    /// The program is not the one in which it was found.
    pub(crate) is_other: bool,
    /// Where the finding is stored.
    pub(crate) stored: Option<(PathBuf, RunId)>,
}

/// A finding whose program is ready to run.
pub(crate) struct Prepared {
    pub(crate) native: Native,
    pub(crate) executor: Controlled,
    pub(crate) ask: Ask<WatchList>,
    pub(crate) schedule: Schedule,
    pub(crate) case: Option<Case>,
    /// The other execution, if the finding is a difference between two.
    contrast: Option<Arc<Contrast>>,
    /// The program was built again since.
    pub(crate) edited: bool,
    pub(crate) root: PathBuf,
}

impl Again {
    /// Makes an executor that knows the places of the finding, also if the program was edited.
    pub(crate) fn prepare(self, deadline: &Deadline) -> Result<Prepared, Failure> {
        let Again { program, schedule, case, points, is_other, .. } = self;
        if !program.setup.directory.is_dir() {
            return Err(Failure::Gone(program.setup.directory));
        }
        let edited = case.is_some() && (is_other || !program.is_unchanged());
        let native = Native::new(&program, deadline);
        let points = if edited { found_again(&native, &schedule, &points)? } else { points };
        let ask = Ask { noted: Noted::Events, points, ..Ask::default() };
        let mut executor = native.executor()?;
        if edited {
            // Lets the executor see the sites of the edited program.
            follow(&mut executor, &schedule, &Sought::default(), &ask)?;
        }
        let root = program.root.clone();
        let contrast = match &case {
            Some(case) => contrast(&mut executor, case, &ask)?,
            None => None,
        };
        Ok(Prepared { native, executor, ask, schedule, case, contrast, edited, root })
    }
}

/// The first of the two executions that differ, if that is what the case is about.
fn contrast(
    executor: &mut Controlled,
    case: &Case,
    ask: &Ask<WatchList>,
) -> Result<Option<Arc<Contrast>>, Failure> {
    let schedules = case.control.as_ref().map_or(&[][..], |c| &c.schedules);
    let (Subject::Value { block, .. }, [first, _], Some(place)) =
        (&case.subject, schedules, case.places.first())
    else {
        return Ok(None);
    };
    let first: Schedule =
        first.parse().map_err(|e: ScheduleError| Failure::Usage(e.to_string()))?;
    let shown = follow(executor, &first, &Sought::default(), ask)?;
    let (block, site) = (block.as_str().into(), place.site.clone());
    Ok(Some(Arc::new(Contrast { block, site, blocks: Arc::clone(&shown.execution.blocks) })))
}

impl Prepared {
    /// What an execution must show for the finding to have happened in it.
    pub(crate) fn sought(&self) -> Sought {
        let target = self.case.as_ref().and_then(Case::aim).cloned();
        let is_failure = target.is_none() && self.contrast.is_none();
        let failure = self.case.as_ref().filter(|_| is_failure).map(Case::failure);
        let contrast = self.contrast.clone();
        let serial = self.case.as_ref().and_then(|c| c.serial.as_ref());
        let unserial = serial.map(|serial| {
            let criterion = Criterion { witness: serial.witness, model: None };
            Arc::new(Unserial::new(criterion, SERIAL))
        });
        let failure = failure.filter(|_| unserial.is_none());
        Sought { target, failure, usual_exit: Some(0), contrast, unserial, same_result: false }
    }

    /// The places that make the finding.
    pub(crate) fn critical(&self) -> Vec<Site> {
        self.case.as_ref().map(Case::critical).unwrap_or_default()
    }

    /// Whether an execution showed the finding, perhaps at lines that an edit has moved.
    pub(crate) fn is_shown(&self, replayed: &Replayed) -> bool {
        let fails = self.case.as_ref().is_some_and(|c| c.aim().is_none());
        replayed.shown || self.edited && fails && has_moved(replayed, self.case.as_ref())
    }
}

/// A schedule from its text.
pub(crate) fn parsed(schedule: &str) -> Result<Schedule, Failure> {
    schedule.parse().map_err(|e| Failure::Usage(format!("{e}")))
}

/// A stored finding, its run, and the directory of the store.
pub(crate) struct Found {
    pub(crate) directory: PathBuf,
    pub(crate) run: store::Run,
    pub(crate) case: Case,
}

/// The stored finding whose id begins with `prefix`, of `run` or of the last run that found it.
pub(crate) fn find(
    prefix: &str,
    run: Option<RunId>,
    directory: Option<&Path>,
) -> Result<Found, Failure> {
    let here = std::env::current_dir()?;
    let directory = directory.map_or_else(|| store::directory(&here), Path::to_owned);
    let store = Store::open(&directory)?;
    let mut found = store.find(prefix, run)?;
    if let Some(exact) = found.iter().position(|(_, f)| f.id.to_string() == prefix) {
        found = vec![found.swap_remove(exact)];
    }
    let (run, case) = match found.as_slice() {
        [] => {
            return Err(Failure::Usage(format!(
                "there is no finding {prefix} in {}; `selvedge report` lists what was found, by ids such as data-race-1f3a9c2b04",
                directory.display()
            )));
        }
        [one] => one.clone(),
        several => {
            let lines: Vec<String> =
                several.iter().map(|(run, case)| format!("  {}, run {run}", named(case))).collect();
            return Err(Failure::Usage(format!(
                "several ids begin with {prefix}:\n{}",
                lines.join("\n")
            )));
        }
    };
    let run = store.run(Some(run))?;
    Ok(Found { directory, run, case })
}

/// The same, with the program to replay it in.
pub(crate) fn stored(
    prefix: &str,
    run: Option<RunId>,
    directory: Option<&Path>,
) -> Result<Again, Failure> {
    let found = find(prefix, run, directory)?;
    if found.is_of_ranks() {
        return Err(Failure::RanksNotControlled("fixed"));
    }
    found.again()
}

impl Found {
    /// Whether it is a race across ranks.
    pub(crate) fn is_of_ranks(&self) -> bool {
        self.case.places.iter().any(|p| p.role.is_of_rank())
    }

    /// The program to replay it in.
    pub(crate) fn again(self) -> Result<Again, Failure> {
        let Found { directory, run, case } = self;
        let control = case.control.clone().unwrap_or_default();
        let (Some(setup), Some(schedule)) = (&run.setup, &control.schedule) else {
            return Err(Failure::Usage(format!(
                "{} is {} and has no schedule; `selvedge test` searches for one",
                case.id,
                case.status.name()
            )));
        };
        let root = directory.parent().unwrap_or(Path::new("/"));
        Ok(Again {
            program: ControlledProgram::again(setup, root, &run.command)?,
            schedule: parsed(schedule)?,
            points: watch_list(control.watched),
            case: Some(case),
            is_other: false,
            stored: Some((directory, run.id)),
        })
    }
}

/// The accesses of a stored case that were scheduling points.
pub(crate) fn watch_list(accesses: Vec<ReportedAccess>) -> WatchList {
    let watched = |a: ReportedAccess| Watched {
        code: CodePlace { module: a.module, offset: a.offset },
        site: a.site,
    };
    WatchList::new(accesses.into_iter().map(watched).collect())
}

/// Finds the accesses that were scheduling points in a program that was rebuilt: executions that note all
/// accesses show where their sites are now.
fn found_again(
    native: &Native,
    schedule: &Schedule,
    points: &WatchList,
) -> Result<WatchList, Failure> {
    let mut found = WatchList::default();
    if points.list().is_empty() {
        return Ok(found);
    }
    let mut executor = native.executor()?;
    let ask = Ask { noted: Noted::Accesses, ..Ask::default() };
    // One schedule may execute code that the other does not.
    for schedule in [schedule.clone(), Schedule::new(schedule.seed)] {
        follow(&mut executor, &schedule, &Sought::default(), &ask)?;
    }
    found.add(&points_again(points, &executor.points()));
    Ok(found)
}

/// Where accesses are in a program that was perhaps rebuilt, of which these places are known.
pub(crate) fn points_again(points: &WatchList, now: &HashMap<Site, WatchList>) -> WatchList {
    let mut found = WatchList::default();
    for watched in points.list() {
        if let Some(points) = watched.site.relocated(now.keys()).and_then(|s| now.get(s)) {
            found.add(points);
        }
    }
    found
}

/// Whether two cases are of one kind and about the same: one bug, if an edit has only moved it. What has no name
/// is recognised by where it is used.
pub(crate) fn is_same_bug(one: &Case, other: &Case) -> bool {
    let is_named = match &one.subject {
        Subject::Memory(memory) => matches!(memory, Memory::Named(_)),
        subject => !subject.is_empty(),
    };
    let is_same = match is_named {
        true => one.subject == other.subject,
        false => one.subject == other.subject && are_moved(one, other),
    };
    one.kind == other.kind && (one.id == other.id || is_same)
}

/// Whether the places of two cases are the same, except for lines that an edit has moved.
fn are_moved(one: &Case, other: &Case) -> bool {
    let sites: Vec<&Site> = other.places.iter().map(|p| &p.site).collect();
    sites.len() == one.places.len()
        && !sites.is_empty()
        && one.places.iter().all(|p| p.site.relocated(sites.iter().copied()).is_some())
}

/// Whether an execution ended with the failure of a case, except for lines that an edit has moved.
fn has_moved(replayed: &Replayed, case: Option<&Case>) -> bool {
    let ending = &replayed.ending;
    let (Some(case), Some(finding)) = (case, ending.finding()) else { return false };
    let now = Case::new(finding, &ending.symbols);
    now.kind == case.kind && now.subject == case.subject && are_moved(case, &now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::{Access, Finding, Frame, Kind, Role, SiteId, Symbols, ThreadId};

    /// A race on the memory at `addr`, which has a name if `name` is given, in `function` at two lines.
    fn race(addr: u64, name: Option<&str>, function: &str, lines: [u32; 2]) -> Case {
        let mut symbols = Symbols::default();
        let range = Access { addr, len: 8 }.range();
        match name {
            Some(name) => symbols.variables.define(name, range),
            None => symbols.nameless.add(addr),
        }
        let place = |line: u32| {
            let frame = Frame { function: function.into(), file: "a.c".into(), line, column: 3 };
            selvedge_model::Place {
                thread: ThreadId(0),
                site: SiteId(symbols.sites.intern(Site::Source(frame, Vec::new()))),
                role: Role::Write,
                held: Vec::new(),
            }
        };
        let places = lines.map(place).to_vec();
        let finding = Finding {
            subject: selvedge_model::Subject::Memory(range),
            ..Finding::failure(Kind::DataRace, selvedge_model::Failure::crash(0), places)
        };
        Case::new(&finding, &symbols)
    }

    #[test]
    fn races_on_memory_without_a_name_are_told_apart_by_their_places() {
        let one = race(0x40, None, "push", [10, 20]);
        assert!(is_same_bug(&one, &race(0x80, None, "push", [12, 22])), "moved by an edit");
        assert!(!is_same_bug(&one, &race(0x40, None, "pop", [30, 40])), "another race");
        assert!(!is_same_bug(&one, &race(0x40, Some("x"), "push", [12, 22])));
        let named = race(0x40, Some("x"), "push", [10, 20]);
        assert!(is_same_bug(&named, &race(0x80, Some("x"), "pop", [30, 40])), "the same variable");
    }
}
