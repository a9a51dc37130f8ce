//! The calls by which threads came to places in the code.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use selvedge_model::{Calls, SiteId, Symbols, ThreadId};

use crate::modules::{Modules, Resolve};

/// The calls by which each thread came to each place. Where it came in several ways, those that all of them have
/// in common, from the outermost on: so what is said of an event is true of it, whichever of them led there.
#[derive(Debug, Default)]
pub(crate) struct Stacks(FxHashMap<(ThreadId, SiteId), Way>);

#[derive(Debug)]
struct Way {
    /// Return address of the operation itself.
    pc: u64,
    /// Return addresses of the calls, innermost first.
    calls: Vec<u64>,
}

impl Stacks {
    /// A thread does something at a place, inside functions that return to `calls`, innermost first, 0 behind the
    /// last.
    pub(crate) fn came(&mut self, thread: ThreadId, site: SiteId, pc: u64, calls: &[u64]) {
        let known = calls.iter().position(|&call| call == 0).unwrap_or(calls.len());
        let calls = &calls[..known];
        match self.0.entry((thread, site)) {
            Entry::Vacant(entry) => {
                entry.insert(Way { pc, calls: calls.to_vec() });
            }
            Entry::Occupied(mut entry) => {
                let first = &mut entry.get_mut().calls;
                if first != calls {
                    let same =
                        first.iter().rev().zip(calls.iter().rev()).take_while(|(a, b)| a == b);
                    let common = same.count();
                    first.drain(..first.len() - common);
                }
            }
        }
    }

    /// Adds them to what is known of the execution.
    pub(crate) fn name(
        &self,
        symbols: &mut Symbols,
        modules: &Modules,
        resolver: &mut dyn Resolve,
    ) {
        for (&(thread, site), way) in &self.0 {
            let mut calls = calls(way.pc, &way.calls, modules, resolver);
            // The place may be that of a caller, if the operation is inside a library.
            let place = symbols.site(site);
            if let Some(at) = calls.sites.iter().position(|s| *s == place) {
                calls.sites.drain(..=at);
            }
            symbols.calls.insert((thread, site), calls);
        }
    }
}

/// The calls that led to an operation.
pub(crate) fn calls(
    pc: u64,
    returns: &[u64],
    modules: &Modules,
    resolver: &mut dyn Resolve,
) -> Calls {
    let files: BTreeSet<Box<str>> = std::iter::once(&pc)
        .chain(returns)
        .filter_map(|&pc| modules.find(pc))
        .map(|module| module.path.to_string_lossy().into())
        .collect();
    Calls { sites: resolver.stack(returns, modules), files }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::ByModule;

    #[test]
    fn of_several_ways_only_the_calls_that_all_of_them_have_are_known() {
        let (mut stacks, mut symbols) = (Stacks::default(), Symbols::default());
        let (thread, site) = (ThreadId(1), SiteId(0));
        let mut known = |stacks: &mut Stacks, calls: &[u64]| {
            stacks.came(thread, site, 7, calls);
            stacks.name(&mut symbols, &Modules::default(), &mut ByModule);
            let calls = &symbols.calls[&(thread, site)];
            calls.sites.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(known(&mut stacks, &[16, 32, 48, 0, 0]), ["0x10", "0x20", "0x30"]);
        assert_eq!(known(&mut stacks, &[16, 32, 48]), ["0x10", "0x20", "0x30"]);
        assert_eq!(known(&mut stacks, &[16, 64, 48, 0]), ["0x30"], "another function is between");
        assert_eq!(known(&mut stacks, &[48, 0]), ["0x30"]);
        assert!(known(&mut stacks, &[80, 0]).is_empty());
    }
}
