//! Records of races become findings, and so do those of misuse, which are races with one more fact.

use selvedge_model::{
    Finding, Kind, Misuse, Place, Range, SiteId, Status, Subject, Symbols, Target, ThreadId,
};

use crate::earlier::{Restored, restore};
use crate::epoch::Epoch;
use crate::misuse::{self, role};
use crate::modules::{Modules, Resolve};
use crate::shm::Shm;
use crate::stacks;
use crate::wire::{AccessKind, FRAMES, Side, THREAD_BITS};

/// One side of a race.
#[derive(Clone, Debug)]
pub struct RaceSide {
    /// The thread that made the access.
    pub thread: ThreadId,
    /// What kind of access it was.
    pub kind: AccessKind,
    /// Return address of the call that announced the access; 0 if it could not be restored, see
    /// [`NativeRace::certain`].
    pub pc: u64,
    /// The epoch of the thread in which it was.
    pub epoch: Epoch,
    /// Bytes that both sides touched.
    pub range: Range,
    /// Return addresses of the callers, innermost first; empty if unknown.
    pub stack: Vec<u64>,
}

/// A call, by two addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Where it returns to, in the function that made it.
    pub returns_to: u64,
    /// A place in the function that was called.
    pub inside: u64,
}

/// A race that the program found in itself.
#[derive(Clone, Debug)]
pub struct NativeRace {
    /// Which race of the program.
    pub number: usize,
    /// Whether only one return address of the earlier access is possible.
    pub certain: bool,
    /// What it is, if it is not a race but misuse.
    pub misuse: Option<Misuse>,
    /// The access that was there first. Of a misuse the other thread's part; none if it is not known here.
    pub earlier: Option<RaceSide>,
    /// The access that met it.
    pub later: RaceSide,
    /// How often the two places met.
    pub occurrences: u32,
    /// The call stack of the earlier thread when the race was found, outermost first: see [`Call`]. The
    /// last ones may be over, and some of them overwritten.
    pub past: Vec<Call>,
    /// It was found between the event with this stamp and the next.
    pub stamp: u64,
}

/// The child process of a thread that is not one of the program itself, and the thread's number there.
pub fn in_child(thread: ThreadId) -> Option<(u32, u32)> {
    let (process, number) = (thread.0 >> THREAD_BITS, thread.0 & ((1 << THREAD_BITS) - 1));
    (process != 0).then_some((process, number))
}

/// How often each of the races happened.
pub(crate) fn count(shm: &Shm, races: &mut [NativeRace]) {
    for race in races {
        race.occurrences = shm.race(race.number).map_or(race.occurrences, |r| r.count);
    }
}

/// The race with that number, once it is complete.
pub(crate) fn one(
    shm: &Shm,
    modules: &Modules,
    resolver: &mut dyn Resolve,
    restored: &mut Restored,
    number: usize,
) -> Option<NativeRace> {
    let race = shm.race(number)?;
    let misuse = misuse::read(race.misuse, race.detail);
    let (mut earlier, later) = (side(&race.earlier), side(&race.later)?);
    let mut certain = true;
    if let Some(earlier) = &mut earlier
        && misuse.as_ref().is_none_or(misuse::is_from_shadow)
    {
        let fits = || restore(earlier.pc, earlier.kind, later.pc, modules, resolver);
        let restored = restored.of(number, fits);
        earlier.pc = restored.map_or(0, |r| r.pc);
        certain = restored.is_some_and(|r| r.certain);
    }
    let calls = race.past.iter().map(|&[returns_to, inside]| Call { returns_to, inside });
    let past = calls.take_while(|call| call.inside != 0).collect();
    let (occurrences, stamp) = (race.count, race.stamp);
    Some(NativeRace { number, certain, misuse, earlier, later, occurrences, past, stamp })
}

fn side(side: &Side) -> Option<RaceSide> {
    let frames = (side.frames as usize).min(FRAMES);
    Some(RaceSide {
        thread: ThreadId(side.thread),
        kind: AccessKind::from_number(side.kind)?,
        pc: side.pc,
        epoch: Epoch::from_record(side.epoch),
        range: Range { start: side.addr, len: u64::from(side.len) },
        stack: side.stack[..frames].to_vec(),
    })
}

impl NativeRace {
    /// The race as a finding.
    pub fn finding(
        &self,
        symbols: &mut Symbols,
        modules: &Modules,
        resolver: &mut dyn Resolve,
    ) -> Finding {
        let mut place = |side: &RaceSide| {
            let site = SiteId(symbols.sites.intern(resolver.site(side.pc, modules)));
            let calls = stacks::calls(side.pc, &side.stack, modules, resolver);
            symbols.calls.insert((side.thread, site), calls);
            Place { thread: side.thread, site, role: role(side.kind), held: Vec::new() }
        };
        let mut places: Vec<Place> =
            self.earlier.iter().chain([&self.later]).map(&mut place).collect();
        if !self.certain {
            symbols.approximate.insert((places[0].thread, places[0].site));
        }
        if let Some(misuse) = &self.misuse {
            if *misuse == Misuse::NeverJoined {
                places.truncate(1);
            }
            return Finding {
                kind: Kind::Misuse,
                status: Status::Observed,
                verdict: None,
                analyses: vec!["misuse"],
                subject: Subject::Misused(misuse.clone(), self.later.range),
                places,
                target: None,
                occurrences: u64::from(self.occurrences),
            };
        }
        let (first, second) = (places[0].site, places[places.len() - 1].site);
        Finding {
            kind: Kind::DataRace,
            status: Status::Observed,
            verdict: None,
            analyses: vec!["races"],
            subject: Subject::Memory(self.later.range),
            places,
            target: Some(Target::Race { first, second }),
            occurrences: u64::from(self.occurrences),
        }
    }
}
