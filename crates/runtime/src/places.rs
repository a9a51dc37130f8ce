//! What addresses of code mean: sites, steps of locks, functions. Each address is resolved once.

use std::collections::{BTreeSet, HashMap};

use rustc_hash::FxHashMap;
use selvedge_model::schedule::landmark;
use selvedge_model::{Region, RegionId, RegionKind, Site, SiteId, Symbols, ThreadId};

use crate::earlier::{LOW, Restored, restore};
use crate::modules::{CodePlace, LockPart, Modules, Resolve};
use crate::shm::RaceRecord;
use crate::wire::{AccessKind, CALLERS};

/// Return addresses of callers, innermost first, 0 where there is none.
pub type Callers = [u64; CALLERS];

/// A return address, and those of the functions around it.
pub type Code = (u64, Callers);

/// What is known of code. It outlives an execution, as long as code stays where it is.
#[derive(Debug, Default)]
pub struct Places {
    sites: FxHashMap<Code, (SiteId, u16)>,
    /// What is known of atomics that may be of a lock.
    steps: FxHashMap<Code, Option<LockPart<SiteId>>>,
    /// The functions that are regions, by a place in them.
    functions: HashMap<(u64, RegionKind), RegionId>,
    /// What functions are called that are predicates.
    function_names: HashMap<u64, String>,
    /// Where the earlier accesses of races were made.
    pub(crate) restored: Restored,
    /// The code behind each site that was executed, wherever it is loaded.
    executed: HashMap<Site, BTreeSet<CodePlace>>,
}

impl Places {
    /// Forgets what addresses mean: the code may be loaded elsewhere now.
    pub fn clear(&mut self) {
        let executed = std::mem::take(&mut self.executed);
        *self = Places { executed, ..Places::default() };
    }

    /// The code behind each site that was executed.
    pub fn executed(&self) -> &HashMap<Site, BTreeSet<CodePlace>> {
        &self.executed
    }
}

/// Finds a name that the program has left.
pub type ReadText<'a> = &'a dyn Fn(u64, usize) -> Option<String>;

/// Finds a race in the program's table.
pub type ReadRace<'a> = &'a dyn Fn(usize) -> Option<RaceRecord>;

/// What gives addresses their names.
pub struct Names<'a> {
    /// Takes the names.
    pub symbols: &'a mut Symbols,
    /// What was mapped where.
    pub modules: &'a Modules,
    /// Knows places in code.
    pub resolver: &'a mut dyn Resolve,
    /// Knows what the program itself calls its regions.
    pub text: ReadText<'a>,
    /// Knows the races that records name.
    pub race: ReadRace<'a>,
    /// What has been resolved already.
    pub places: &'a mut Places,
}

impl Names<'_> {
    /// The site of a call, and its landmark.
    pub fn site(&mut self, code: Code) -> (SiteId, u16) {
        let Names { symbols, modules, resolver, places, .. } = self;
        let Places { sites, executed, .. } = &mut **places;
        *sites.entry(code).or_insert_with(|| {
            let (pc, callers) = code;
            let site = match pc {
                0 => Site::Label("?".into()),
                _ => resolver.site_within(pc, &callers, modules),
            };
            if let Some(code) = CodePlace::of(pc, modules) {
                executed.entry(site.clone()).or_default().insert(code);
            }
            let landmark = landmark(&site);
            (SiteId(symbols.sites.intern(site)), landmark)
        })
    }

    /// What an atomic does to a lock, if it is part of one, and where the lock is used.
    pub(crate) fn lock_step(&mut self, (pc, callers): Code) -> Option<LockPart<SiteId>> {
        let Names { symbols, modules, resolver, places, .. } = self;
        let Places { steps, executed, .. } = &mut **places;
        *steps.entry((pc, callers)).or_insert_with(|| {
            let LockPart { step, site, complete } = resolver.lock_step(pc, &callers, modules)?;
            // A lock is a scheduling point anyway, so there is no code to watch.
            executed.entry(site.clone()).or_default();
            Some(LockPart { step, site: SiteId(symbols.sites.intern(site)), complete })
        })
    }

    /// The function around a place, as a region.
    pub(crate) fn function(&mut self, at: u64, kind: RegionKind) -> RegionId {
        if let Some(&known) = self.places.functions.get(&(at, kind)) {
            return known;
        }
        let name = self.resolver.function(at, self.modules);
        let id = self.region(name, at, kind);
        self.places.functions.insert((at, kind), id);
        id
    }

    /// What a function is called, in the same way in every process. No two functions have the same name.
    pub(crate) fn function_name(&mut self, at: u64) -> String {
        let Names { modules, resolver, places, .. } = self;
        let mut name = || {
            let placed = || {
                let CodePlace { module, offset } = CodePlace::of(at, modules)?;
                Some(format!("{}+{offset:#x}", module.display()))
            };
            resolver.distinct_function(at, modules).or_else(placed)
        };
        let known = places.function_names.entry(at);
        known.or_insert_with(|| name().unwrap_or_else(|| "?".to_owned())).clone()
    }

    /// The region that the program has left a name for.
    pub(crate) fn marked(&mut self, at: u64, len: usize, kind: RegionKind) -> RegionId {
        let name = (self.text)(at, len);
        self.region(name, at, kind)
    }

    fn region(&mut self, name: Option<String>, at: u64, kind: RegionKind) -> RegionId {
        let name = name.unwrap_or_else(|| format!("region@{at:#x}")).into();
        RegionId(self.symbols.regions.intern(Region { kind, name }))
    }

    /// Where a thread made the earlier access of a race, whose later one is at `pc`. The table has one entry for
    /// both orders of the two places.
    pub(crate) fn earlier(
        &mut self,
        number: usize,
        (thread, kind): (ThreadId, AccessKind),
        pc: u64,
    ) -> Option<SiteId> {
        let race = (self.race)(number)?;
        let Names { symbols, modules, resolver, places, .. } = self;
        if race.later.pc & LOW != pc & LOW {
            let site = resolver.site(race.later.pc, modules);
            return Some(SiteId(symbols.sites.intern(site)));
        }
        let fits = || restore(race.earlier.pc, kind, pc, modules, &mut **resolver);
        let restored = places.restored.of(number, fits);
        let site = resolver.site(restored.map_or(0, |r| r.pc), modules);
        let found = SiteId(symbols.sites.intern(site));
        if restored.is_none_or(|r| !r.certain) {
            symbols.approximate.insert((thread, found));
        }
        Some(found)
    }

    /// What the object or variable at an address is called.
    pub(crate) fn object(&mut self, addr: u64) -> Option<String> {
        self.resolver.object(addr, self.modules)
    }
}
