//! Reads what ranks have found: the other half of [`selvedge_spmd_rank::findings`].

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;

/// What the ranks of a job have told.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Told {
    /// The job, if a rank came as far as `MPI_Init`.
    pub job: Option<Job>,
    /// Races, by rank and in the order in which they were found.
    pub races: Vec<Race>,
    /// Windows that were used wrongly.
    pub misuses: Vec<Misused>,
    /// Accesses that ranks could not remember.
    pub dropped: u64,
    /// The job has started ranks of another one.
    pub spawned: bool,
    /// Pairs that are tested whose accesses were in flight at once, in the order of ranks.
    pub met: Vec<Met>,
    /// Pairs whose order was forced.
    pub ordered: Vec<Ordered>,
    /// Lines that could not be read: a rank was killed while it wrote one, or the disk is full.
    pub broken: usize,
}

/// The job as a whole.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Job {
    pub ranks: u32,
    /// Whether loads and stores of any rank were seen,
    pub instrumented: bool,
    /// and of all.
    pub all: bool,
    /// A rank was built by another version.
    pub other_version: bool,
    #[serde(default)]
    pub phases: u32,
    /// Whether all ranks came as far as `MPI_Finalize`.
    #[serde(default)]
    pub finalized: bool,
}

/// Two accesses of a pair that is tested were in flight at once.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Met {
    /// The number of the pair in the plan.
    pub pair: u32,
    /// The number of common bytes.
    pub len: u64,
    /// In the order of their first access.
    pub sides: [MetSide; 2],
}

/// One of two accesses that met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct MetSide {
    pub rank: u32,
    pub slot: u32,
    /// Which statement of the pair.
    pub side: u32,
}

/// An order of a pair was forced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Ordered {
    pub pair: u32,
    /// The statement that went first.
    pub first: u32,
}

/// Two accesses that race.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Race {
    pub status: RaceStatus,
    /// The exchange in which it was found.
    pub phase: u32,
    pub owner: u32,
    pub window: Option<Window>,
    /// Bytes from the beginning of the owner's part of the window.
    pub offset: u64,
    pub len: u64,
    /// Where the memory lies in the data of a module.
    pub data: Option<Place>,
    pub sides: [Side; 2],
}

impl Race {
    /// The modules of its two places.
    pub fn modules(&self) -> impl Iterator<Item = &str> {
        self.sides.iter().map(|side| side.place.module.as_str())
    }

    /// Whether the two are of one thread: then their order is the program's own.
    pub fn is_of_one_thread(&self) -> bool {
        let [a, b] = &self.sides;
        (a.rank, a.slot) == (b.rank, b.slot)
    }
}

/// How sure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceStatus {
    /// Nothing ordered the two.
    Observed,
    /// Locks or atomics may have ordered the two this time.
    Predicted,
}

/// A window that was used wrongly.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Misused {
    pub wrong: Wrong,
    pub rank: u32,
    pub slot: u32,
    pub call: String,
    pub place: Place,
    pub owner: u32,
    pub offset: u64,
    pub len: u64,
    pub window: Option<Window>,
}

/// What is wrong: see [`selvedge_spmd_rank::gather::epochs::Wrong`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Wrong {
    NoEpoch,
    BeyondWindow,
    FreedInEpoch,
}

/// A window.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Window {
    pub number: u64,
    pub name: String,
}

/// A place in a module.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Place {
    pub module: String,
    pub offset: u64,
}

/// One of the two accesses.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Side {
    pub rank: u32,
    pub slot: u32,
    pub call: String,
    pub side: Memory,
    pub writes: bool,
    pub place: Place,
    /// When it began and ended, among everything that the rank did; of several accesses that are alike the first.
    pub began: u64,
    pub ended: u64,
    /// When the last of them began.
    pub last: u64,
    /// It was in flight when the race was found.
    pub open: bool,
    /// It was completed at the origin, and only there.
    pub local_only: bool,
    /// The first barrier that was entered while it was in flight.
    pub barrier: Option<Place>,
    pub locks: Vec<Lock>,
}

/// Which memory of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Memory {
    Target,
    Origin,
    Result,
}

/// A lock that was held during the whole access.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Lock {
    pub window: u64,
    pub target: Option<u32>,
    pub exclusive: bool,
}

/// Reads the files of all ranks. A file may be in parts: where a rank could no longer write, it went on elsewhere.
pub fn read(directories: &[&Path]) -> io::Result<Told> {
    let mut jobs: BTreeMap<String, Told> = BTreeMap::new();
    let mut files = Vec::new();
    for directory in directories {
        for file in fs::read_dir(directory)? {
            files.push(file?.path());
        }
    }
    // By rank: `rank-10` comes after `rank-9`.
    files.sort_by_key(|f| (f.as_os_str().len(), f.clone()));
    for file in files {
        let told = jobs.entry(job_of(&file)).or_default();
        let text = String::from_utf8_lossy(&fs::read(file)?).into_owned();
        text.lines().for_each(|line| take(told, line));
    }
    let spawned = jobs.len() > 1;
    let mut all = Told { spawned, ..Told::default() };
    // The job that was started first has the empty name, and so comes first.
    for (_, mut told) in jobs {
        demote(&mut told.races);
        add(&mut all, told);
    }
    Ok(all)
}

/// The number of the job that the file of a rank belongs to: `rank-of-77-0.jsonl` to 77.
fn job_of(file: &Path) -> String {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let number = name.split_once("-of-").map_or("", |(_, rest)| rest);
    number.split(['-', '.']).next().unwrap_or_default().to_owned()
}

/// Adds what another job has told.
fn add(all: &mut Told, mut told: Told) {
    all.races.append(&mut told.races);
    all.met.append(&mut told.met);
    all.ordered.append(&mut told.ordered);
    all.misuses.append(&mut told.misuses);
    all.broken += told.broken;
    all.dropped += told.dropped;
    all.job = match (all.job.take(), told.job) {
        (Some(a), Some(b)) => Some(Job {
            ranks: a.ranks + b.ranks,
            instrumented: a.instrumented || b.instrumented,
            all: a.all && b.all,
            other_version: a.other_version || b.other_version,
            phases: a.phases.max(b.phases),
            finalized: a.finalized && b.finalized,
        }),
        (a, b) => a.or(b),
    };
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Line {
    Race(Box<Race>),
    Job(Job),
    Met(Met),
    Ordered(Ordered),
    Misuse(Misused),
    Dropped { accesses: u64 },
}

fn take(told: &mut Told, line: &str) {
    match serde_json::from_str(line) {
        Ok(Line::Race(race)) => told.races.push(*race),
        // The last line of a job says the most.
        Ok(Line::Job(job)) => told.job = Some(job),
        Ok(Line::Met(met)) => told.met.push(met),
        Ok(Line::Ordered(ordered)) => told.ordered.push(ordered),
        Ok(Line::Misuse(misused)) => told.misuses.push(misused),
        Ok(Line::Dropped { accesses }) => told.dropped += accesses,
        Err(_) => told.broken += 1,
    }
}

/// A race is only predicted if another one may have ordered its accesses: after the first access its rank wrote
/// something that the other rank read before the second access. That is how programs poll flags of their own.
fn demote(races: &mut [Race]) {
    let all: Vec<Race> = races.to_vec();
    let passes = |from: &Side, to: &Side, by: &Race| {
        let [x, y] = &by.sides;
        [(x, y), (y, x)].into_iter().any(|(x, y)| {
            x.rank == from.rank && y.rank == to.rank && x.writes && !y.writes
                // Only what has ended can be passed on, and only what had not begun can have waited for it.
                // Of accesses that are alike one of the first may have passed it on to one of the last.
                && !from.open && from.ended < x.last && y.began < to.last
        })
    };
    for race in races.iter_mut() {
        let [a, b] = &race.sides;
        if a.rank == b.rank {
            continue;
        }
        let others = all.iter().filter(|other| other.phase == race.phase);
        if others.into_iter().any(|by| passes(a, b, by) || passes(b, a, by)) {
            race.status = RaceStatus::Predicted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(rank: u32, writes: bool, began: u64) -> Side {
        let place = Place { module: "/bin/prog".into(), offset: began };
        Side {
            rank,
            slot: 0,
            call: "MPI_Put".into(),
            side: Memory::Target,
            writes,
            place,
            began,
            ended: began + 1,
            last: began,
            open: false,
            local_only: false,
            barrier: None,
            locks: Vec::new(),
        }
    }

    fn race(a: Side, b: Side) -> Race {
        let window = Some(Window { number: 7, name: "w".into() });
        let status = RaceStatus::Observed;
        Race { status, phase: 1, owner: 1, window, offset: 0, len: 4, data: None, sides: [a, b] }
    }

    #[test]
    fn what_a_rank_writes_is_what_the_host_reads() {
        use selvedge_spmd_rank::board::{Announced, State};
        use selvedge_spmd_rank::findings::{self, Object, Seen};
        use selvedge_spmd_rank::gather::Lock as Held;
        use selvedge_spmd_rank::owner::{Place as At, Record};
        use selvedge_spmd_rank::phases::Span;
        use selvedge_spmd_rank::rules::{self, Act, Bytes};
        let at = |offset| At { module: "/bin/prog \"x\"".into(), offset };
        let record = Record {
            rank: 2,
            slot: 1,
            call: rules::number("MPI_Put").expect("a call"),
            side: rules::Side::Target,
            act: Act::Write,
            from: 0,
            place: at(16),
            begin: 0,
            end: None,
            waits: None,
            fenced: None,
            spans: [Span::of_phase(0); 2],
            locks: vec![Held { window: 7, target: None, exclusive: false, acquired: 1 }],
            window: 7,
            began: 3,
            ended: 4,
            last: 3,
            local_only: true,
            barrier: Some(at(32)),
        };
        let window = Some((7, "w".to_owned()));
        let object = Object { owner: 1, window, offset: 8, len: 4, place: Some(at(64)) };
        let mut told = Told::default();
        let seen = Seen { some: true, all: false, other_version: true };
        take(&mut told, &findings::job(4, seen, None));
        take(&mut told, &findings::race("observed", 3, &object, [&record, &record]));
        take(&mut told, &findings::job(4, seen, Some(9)));
        let here = |rank, side| Announced {
            who: (rank, 1),
            thread: 0,
            call: 1,
            pair: 2,
            side,
            bytes: Bytes { start: 8, len: 4 },
            act: Act::Write,
            from: 8,
            state: State::Here,
            with: None,
            locks: Vec::new(),
        };
        take(&mut told, &findings::met(2, &here(3, 1), &here(0, 0)));
        take(&mut told, &findings::ordered(2, 1));
        let sides = [(3, 1), (0, 0)].map(|(rank, side)| MetSide { rank, slot: 0, side });
        assert_eq!(told.met, [Met { pair: 2, len: 4, sides }]);
        assert_eq!(told.ordered, [Ordered { pair: 2, first: 1 }]);
        take(&mut told, "{\"version\":1,\"kind\":\"ra");
        assert_eq!(told.broken, 1);
        let job = Job {
            ranks: 4,
            instrumented: true,
            all: false,
            other_version: true,
            phases: 9,
            finalized: true,
        };
        assert_eq!(told.job, Some(job));
        let [race] = told.races.as_slice() else { panic!("one race") };
        assert_eq!((race.owner, race.offset, race.len, race.phase), (1, 8, 4, 3));
        let [a, b] = &race.sides;
        assert_eq!(a, b);
        assert_eq!(
            (a.rank, a.slot, a.call.as_str(), a.writes, a.open),
            (2, 1, "MPI_Put", true, true)
        );
        assert_eq!(a.place, Place { module: "/bin/prog \"x\"".into(), offset: 16 });
        assert_eq!(a.locks, [Lock { window: 7, target: None, exclusive: false }]);
    }

    #[test]
    fn what_a_rank_says_of_itself_is_read() {
        use selvedge_spmd_rank::findings::{self, Object};
        use selvedge_spmd_rank::gather::epochs;
        use selvedge_spmd_rank::owner::Place as At;
        let mut told = Told::default();
        take(&mut told, &findings::dropped(5));
        take(&mut told, &findings::dropped(6));
        let place = At { module: "/bin/prog".into(), offset: 16 };
        let window = Some((7, "w".to_owned()));
        let object = Object { owner: 1, window, offset: 8, len: 4, place: None };
        let (wrong, call) = (epochs::Wrong::FreedInEpoch, "MPI_Win_free");
        let of = findings::Misuse { wrong, rank: 2, slot: 1, call, place };
        take(&mut told, &findings::misuse(&of, &object));
        assert_eq!((told.dropped, told.broken), (11, 0));
        let misused = Misused {
            wrong: Wrong::FreedInEpoch,
            rank: 2,
            slot: 1,
            call: call.to_owned(),
            place: Place { module: "/bin/prog".into(), offset: 16 },
            owner: 1,
            offset: 8,
            len: 4,
            window: Some(Window { number: 7, name: "w".into() }),
        };
        assert_eq!(told.misuses, [misused]);
    }

    #[test]
    fn a_flag_that_is_polled_may_have_ordered_what_came_before_it() {
        let data = race(side(0, true, 1), side(1, false, 9));
        let flag = race(side(0, true, 5), side(1, false, 8));
        let mut races = [data.clone(), flag];
        demote(&mut races);
        assert_eq!(races.clone().map(|r| r.status), [RaceStatus::Predicted, RaceStatus::Observed]);
        // The flag was read after the data: it did not order them.
        let late = race(side(0, true, 5), side(1, false, 10));
        let mut races = [data, late];
        demote(&mut races);
        assert_eq!(races.map(|r| r.status), [RaceStatus::Observed, RaceStatus::Observed]);
    }

    #[test]
    fn a_job_that_was_spawned_is_read_apart_from_its_parent() {
        let of = |name: &str| job_of(Path::new(name));
        assert_eq!([of("/x/job.jsonl"), of("/a-of-b/rank-12.jsonl")], ["", ""]);
        assert_eq!([of("job-of-77.jsonl"), of("rank-of-77-12.jsonl")], ["77", "77"]);
    }
}
