//! What ranks have found, as cases.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use selvedge_model::{FindingId, Kind, Misuse, Mode, Part, Site, Status};
use selvedge_report::{Bound, Case, Lock, Memory, Note, Place, Report, Role, Subject};
use selvedge_runtime::Modules;
use selvedge_spmd::findings::{self, Misused, Race, RaceStatus, Side, Told, Wrong};

use crate::program::suppress::Suppressions;
use crate::program::symbolize::Symbolizer;

/// What could not be observed.
pub(crate) fn bounds(told: &Told) -> Vec<Bound> {
    let Some(job) = &told.job else { return Vec::new() };
    let mut bounds = Vec::new();
    if !job.finalized {
        bounds.push(Bound::LastPhase);
    }
    match job {
        _ if job.other_version => bounds.push(Bound::OtherVersion),
        _ if !job.instrumented => bounds.push(Bound::CallsOnly),
        _ if !job.all => bounds.push(Bound::SomeCallsOnly),
        _ => {}
    }
    if told.spawned {
        bounds.push(Bound::Spawned);
    }
    if told.dropped > 0 {
        bounds.push(Bound::Accesses(told.dropped));
    }
    if told.broken > 0 {
        bounds.push(Bound::Events(told.broken as u64));
    }
    bounds
}

/// Adds the wrong uses of windows to a report.
pub(crate) fn report_misuses(
    namer: &mut Namer,
    told: &Told,
    suppressions: &Suppressions,
    report: &mut Report,
) {
    for misused in &told.misuses {
        let case = suppressions.pass(namer.misuse(misused), &mut report.stats);
        case.into_iter().for_each(|case| report.add(case));
    }
}

/// What a thread of a rank is called.
pub(crate) fn thread(rank: u32, slot: u32) -> String {
    match slot {
        0 => format!("rank {rank}"),
        slot => format!("rank {rank}, T{slot}"),
    }
}

/// Puts names to what ranks say.
pub(crate) struct Namer {
    symbolizer: Symbolizer,
    modules: Modules,
    bases: BTreeMap<String, u64>,
    /// The number of each window among all that were named.
    windows: BTreeMap<u64, usize>,
}

impl Namer {
    pub(crate) fn new(root: &Path, told: &Told) -> Namer {
        let sides = told.races.iter().flat_map(|race| &race.sides);
        let code = sides.flat_map(|s| [Some(&s.place), s.barrier.as_ref()]).flatten();
        let data = told.races.iter().filter_map(|race| race.data.as_ref());
        let places = code.chain(data).chain(told.misuses.iter().map(|m| &m.place));
        let mut bases: BTreeMap<String, u64> = BTreeMap::new();
        let mut map = String::new();
        for place in places.filter(|p| !p.module.is_empty()) {
            let next = (bases.len() as u64 + 1) << 36;
            bases.entry(place.module.clone()).or_insert_with(|| {
                // Ranks load a module at different addresses, so we make up one for all.
                let _ = writeln!(
                    map,
                    "{next:x}-{:x} r-xp 00000000 00:00 0 {}",
                    next + (1 << 35),
                    place.module
                );
                next
            });
        }
        let misused = told.misuses.iter().filter_map(|m| m.window.as_ref());
        let raced = told.races.iter().filter_map(|r| r.window.as_ref());
        let numbers = raced.chain(misused).map(|w| w.number);
        let mut windows: Vec<u64> = numbers.collect();
        windows.sort_unstable();
        windows.dedup();
        let windows = windows.into_iter().zip(1..).collect();
        let modules = Modules::parse(map.as_bytes());
        Namer { symbolizer: Symbolizer::new(root), modules, bases, windows }
    }

    fn address(&self, place: &findings::Place) -> Option<u64> {
        self.bases.get(&place.module).map(|base| base + place.offset)
    }

    fn site(&mut self, place: &findings::Place) -> Site {
        match self.address(place) {
            Some(address) => self.symbolizer.call(address, &self.modules),
            None => Site::Label("unknown code".into()),
        }
    }

    /// The name of a window: the program's, or a number if there are several.
    fn window(&self, window: &findings::Window) -> Option<String> {
        if !window.name.is_empty() {
            return Some(window.name.clone());
        }
        let number = self.windows.get(&window.number).filter(|_| self.windows.len() > 1)?;
        Some(format!("window {number}"))
    }

    pub(crate) fn case(&mut self, race: &Race) -> Case {
        let places: Vec<Place> = race.sides.iter().map(|side| self.place(side)).collect();
        let sites = places.iter().map(|p| p.site.to_string());
        let id = FindingId::new(Kind::DataRace, sites);
        let status = match race.status {
            RaceStatus::Observed => Status::Observed,
            RaceStatus::Predicted => Status::Predicted,
        };
        Case {
            analyses: vec!["ranks".to_owned()],
            notes: self.notes(race),
            places,
            files: race.modules().map(Into::into).collect(),
            ..Case::bare(id, Kind::DataRace, status, Subject::Memory(self.memory(race)))
        }
    }

    /// The wrong use of a window as a case. It happened.
    pub(crate) fn misuse(&mut self, of: &Misused) -> Case {
        let misuse = match of.wrong {
            Wrong::NoEpoch => Misuse::NoEpoch,
            Wrong::BeyondWindow => Misuse::BeyondWindow,
            Wrong::FreedInEpoch => Misuse::FreedInEpoch,
        };
        let role = match of.wrong {
            Wrong::FreedInEpoch => Role::Part(Part::Destroy),
            Wrong::NoEpoch | Wrong::BeyondWindow => Role::Part(Part::Use),
        };
        let site = self.site(&of.place);
        let window = Memory::Window {
            name: of.window.as_ref().and_then(|w| self.window(w)),
            owner: of.owner,
            byte: of.offset,
            len: of.len,
        };
        let id = FindingId::new(Kind::Misuse, [site.to_string()]);
        let subject = Subject::Misused { misuse, of: window };
        Case {
            analyses: vec!["ranks".to_owned()],
            places: vec![Place::bare(thread(of.rank, of.slot), site, role)],
            files: [of.place.module.as_str().into()].into(),
            ..Case::bare(id, Kind::Misuse, Status::Observed, subject)
        }
    }

    fn memory(&mut self, race: &Race) -> Memory {
        let address = race.data.as_ref().and_then(|data| self.address(data));
        let variable = address.and_then(|a| self.symbolizer.variable(a, &self.modules));
        match &race.window {
            Some(window) => Memory::Window {
                name: self.window(window).or(variable),
                owner: race.owner,
                byte: race.offset,
                len: race.len,
            },
            None => Memory::Buffer { name: variable, owner: race.owner },
        }
    }

    fn place(&mut self, side: &Side) -> Place {
        let thread = thread(side.rank, side.slot);
        let role = match side.call.as_str() {
            "load" => Role::Load,
            "store" => Role::Store,
            // `MPI_Sendrecv (sends)`: what it does, the role says.
            call => Role::Called {
                function: call.split(' ').next().unwrap_or(call).to_owned(),
                writes: side.writes,
            },
        };
        let site = self.site(&side.place);
        let lock = |lock: &findings::Lock| Lock {
            name: match lock.target {
                Some(target) => format!("the lock of the window at rank {target}"),
                None => "the locks of the window at all ranks".to_owned(),
            },
            mode: if lock.exclusive { Mode::Exclusive } else { Mode::Shared },
            site: site.clone(),
        };
        // Locks that all ranks share exclude no rank.
        let held =
            side.locks.iter().filter(|l| l.exclusive || l.target.is_some()).map(lock).collect();
        Place { held: Some(held), ..Place::bare(thread, site, role) }
    }

    /// What was missing.
    fn notes(&mut self, race: &Race) -> Vec<Note> {
        let window = race.window.as_ref().and_then(|w| self.window(w));
        let mut notes = Vec::new();
        for side in race.sides.iter().filter(|s| s.side == findings::Memory::Target) {
            let (call, rank) = (side.call.clone(), side.rank);
            if let Some(barrier) = &side.barrier {
                let (at, barrier) = (self.site(&side.place), self.site(barrier));
                let window = window.clone();
                notes.push(Note::InFlight { call: call.clone(), rank, window, at, barrier });
            }
            if side.local_only {
                notes.push(Note::LocalOnly { call, rank });
            }
        }
        notes
    }
}
