//! Regions that the program does not mark: functions by name, and code that holds a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use selvedge_analyses::registry::{ANALYSES, Entry, Needs};
use selvedge_model::{Event, Op, RegionId, RegionKind, Symbols};
use selvedge_report::Bound;

use crate::program::pattern::Pattern;

/// The options about regions.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RegionOptions {
    /// Functions that are meant to be atomic, by name (`*` matches anything); turns on `atomicity`
    ///
    /// Write the name as in the source, with namespaces or modules and without parameters. In a trace
    /// it selects the regions of that name. A function that the compiler has inlined everywhere cannot
    /// be a region by name: mark it in the source, or build with -O1 -fno-inline.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) atomic_methods: Vec<String>,
    /// Functions that are meant to be deterministic, by name; turns on `determinism`
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) deterministic: Vec<String>,
    /// Treat all code that holds a lock as atomic; turns on `atomicity`
    #[arg(long)]
    pub(crate) lock_regions: bool,
}

impl RegionOptions {
    /// The analyses in `names`, and those that check the regions.
    pub(crate) fn with_analyses(&self, names: &[String]) -> Vec<String> {
        let is_chosen = |e: &&Entry| names.iter().any(|n| n == e.name || n == "all");
        let chosen: Vec<&'static Entry> = ANALYSES.iter().filter(is_chosen).collect();
        let missing = self.checked_by(&chosen).into_iter().map(|e| e.name.to_owned());
        names.iter().cloned().chain(missing).collect()
    }

    /// Analyses that check the regions, where none of `chosen` does.
    pub(crate) fn checked_by(&self, chosen: &[&'static Entry]) -> Vec<&'static Entry> {
        let atomic = !self.atomic_methods.is_empty() || self.lock_regions;
        [
            (atomic, Needs::AtomicRegions),
            (!self.deterministic.is_empty(), Needs::DeterministicRegions),
        ]
        .into_iter()
        .filter(|(claimed, needs)| *claimed && !chosen.iter().any(|e| e.needs == *needs))
        .filter_map(|(_, needs)| ANALYSES.iter().find(|e| e.needs == needs))
        .collect()
    }

    /// The options as command-line arguments.
    pub(crate) fn words(&self) -> Vec<String> {
        let atomic = self.atomic_methods.iter().map(|p| format!("--atomic-methods={p}"));
        let deterministic = self.deterministic.iter().map(|p| format!("--deterministic={p}"));
        let locks = self.lock_regions.then(|| "--lock-regions".to_owned());
        atomic.chain(deterministic).chain(locks).collect()
    }

    /// The claims that the options make about functions.
    pub(crate) fn claims(&self) -> Claims {
        let claims = |names: &[String], option| {
            let claim = |name: &String| Claim {
                pattern: Pattern::whole(name),
                words: format!("{option} {name}"),
                matched: Arc::default(),
            };
            names.iter().map(claim).collect()
        };
        Claims {
            atomic: claims(&self.atomic_methods, "--atomic-methods"),
            deterministic: claims(&self.deterministic, "--deterministic"),
        }
    }
}

/// Which functions claim what, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    atomic: Vec<Claim>,
    deterministic: Vec<Claim>,
}

/// The functions whose name matches a pattern claim something.
#[derive(Clone, Debug)]
struct Claim {
    pattern: Pattern,
    /// The option that makes the claim.
    words: String,
    /// Whether any name has matched, in this copy or in another one.
    matched: Arc<AtomicBool>,
}

impl Claim {
    fn is_of(&self, of: impl Fn(&Pattern) -> bool) -> bool {
        let matches = of(&self.pattern);
        if matches {
            self.matched.store(true, Ordering::Relaxed);
        }
        matches
    }
}

impl Claims {
    /// Whether no function claims anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.atomic.is_empty() && self.deterministic.is_empty()
    }

    /// What a function of that name claims.
    pub(crate) fn of(&self, name: &str) -> Vec<RegionKind> {
        self.each(|pattern| pattern.matches(name))
    }

    /// What every function claims, if all patterns are `*`.
    pub(crate) fn of_all(&self) -> Option<Vec<RegionKind>> {
        let all = self.all().all(|claim| claim.pattern.is_everything());
        (all && !self.is_empty()).then(|| self.each(Pattern::is_everything))
    }

    fn all(&self) -> impl Iterator<Item = &Claim> {
        self.atomic.iter().chain(&self.deterministic)
    }

    /// The options that match nothing that was seen: most likely a name is misspelt.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = Bound> {
        let unmatched = |claim: &&Claim| !claim.matched.load(Ordering::Relaxed);
        self.all().filter(unmatched).map(|claim| Bound::Unmatched(claim.words.clone()))
    }

    fn each(&self, of: impl Fn(&Pattern) -> bool) -> Vec<RegionKind> {
        // Each pattern is asked, so that it is known which of them match.
        let any = |claims: &[Claim]| claims.iter().filter(|claim| claim.is_of(&of)).count() > 0;
        let atomic = any(&self.atomic).then_some(RegionKind::Atomic);
        let deterministic = any(&self.deterministic).then_some(RegionKind::Deterministic);
        atomic.into_iter().chain(deterministic).collect()
    }
}

/// Changes what the regions of a trace claim to what the options say. A region that both options name is
/// deterministic.
#[derive(Debug)]
pub(crate) struct Renamed {
    claims: Claims,
    kinds: Vec<Option<RegionKind>>,
}

impl Renamed {
    pub(crate) fn new(claims: Claims) -> Renamed {
        Renamed { claims, kinds: Vec::new() }
    }

    /// The options that match no region.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = Bound> {
        self.claims.unmatched()
    }

    /// Changes the claims of the region events among `events`.
    pub(crate) fn change(&mut self, events: &mut [Event], symbols: &Symbols) {
        if self.claims.is_empty() {
            return;
        }
        for (index, region) in symbols.regions.entries().iter().enumerate().skip(self.kinds.len()) {
            debug_assert_eq!(index, self.kinds.len());
            self.kinds.push(self.claims.of(&region.name).last().copied());
        }
        for event in events {
            if let Op::RegionEnter(RegionId(id), kind) = &mut event.op
                && let Some(&Some(said)) = self.kinds.get(*id as usize)
            {
                *kind = said;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(atomic: &[&str], deterministic: &[&str]) -> RegionOptions {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        RegionOptions {
            atomic_methods: owned(atomic),
            deterministic: owned(deterministic),
            lock_regions: false,
        }
    }

    #[test]
    fn claims_go_by_whole_names() {
        let claims = options(&["bank::*"], &["sort", "*_par"]).claims();
        assert_eq!(claims.of("bank::pay"), [RegionKind::Atomic]);
        assert_eq!(claims.of("sort"), [RegionKind::Deterministic]);
        assert_eq!(claims.of("bank::pay_par"), [RegionKind::Atomic, RegionKind::Deterministic]);
        assert_eq!(claims.of("resort"), []);
        assert_eq!(claims.of_all(), None);
        assert_eq!(options(&[], &["*"]).claims().of_all(), Some(vec![RegionKind::Deterministic]));
        assert_eq!(options(&["a"], &["*"]).claims().of_all(), None);
    }

    #[test]
    fn regions_turn_on_what_checks_them() {
        let names = ["races".to_owned()];
        assert_eq!(options(&[], &["*"]).with_analyses(&names), ["races", "determinism"]);
        assert_eq!(options(&["*"], &[]).with_analyses(&names), ["races", "atomicity"]);
        let reduction = ["reduction".to_owned()];
        assert_eq!(options(&["*"], &[]).with_analyses(&reduction), ["reduction"]);
        assert_eq!(options(&[], &[]).with_analyses(&names), ["races"]);
    }
}
