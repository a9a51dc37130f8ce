//! Names for the threads, locks and variables of an execution.
//!
//! Finding names takes time, and most executions are not reported. So executions use numbers, and names
//! are looked up only for the execution that ran last.

use selvedge_model::{Access, CondId, Event, Op, Range, Site, SiteId, Symbols};

use super::{Controlled, contents};
use crate::session::Object;

impl Controlled {
    /// The names of everything in the execution that ran last, whose events are given.
    pub fn named(&mut self, events: &[Event]) -> Symbols {
        let mut symbols = Symbols {
            sites: std::mem::take(&mut self.symbols.sites),
            regions: self.symbols.regions.clone(),
            tries: self.symbols.tries.clone(),
            calls: std::mem::take(&mut self.symbols.calls),
            ..Symbols::default()
        };
        self.name_threads(&mut symbols);
        self.name_objects(&mut symbols);
        self.name_variables(events, &mut symbols);
        self.last.stacks.name(&mut symbols, &self.modules, self.resolver.as_mut());
        symbols.values = contents::typed(&self.contents, self.resolver.as_mut(), &self.modules);
        self.symbols.sites = symbols.sites.clone();
        symbols
    }

    /// Whether a condition variable of the execution that ran last has a name.
    pub(super) fn is_named(&mut self, cond: CondId) -> bool {
        let object = self.last.decoder.conds.all().get(cond.index()).copied();
        self.is_in_program(object)
    }

    /// Whether something that synchronized in the execution that ran last has a name in the program. What has none is
    /// described instead.
    pub fn has_name(&mut self, object: Object) -> bool {
        let decoder = &self.last.decoder;
        let (ids, index) = match object {
            Object::Lock(id) => (&decoder.locks, id.index()),
            Object::Barrier(id) => (&decoder.barriers, id.index()),
            Object::Semaphore(id) => (&decoder.semaphores, id.index()),
        };
        let object = ids.all().get(index).copied();
        self.is_in_program(object)
    }

    fn is_in_program(&mut self, object: Option<(u64, SiteId)>) -> bool {
        let Controlled { resolver, modules, .. } = self;
        object.is_some_and(|(addr, _)| resolver.object(addr, modules).is_some())
    }

    /// The first is `main`; others are called by their function, if that is the program's own.
    fn name_threads(&self, symbols: &mut Symbols) {
        let threads = self.memory.control().threads().max(1);
        for i in 0..threads {
            let function = match self.last.begins.get(i).and_then(|s| symbols.sites.get(s.0)) {
                Some(Site::Source(frame, callers)) => {
                    let outermost = callers.last().unwrap_or(frame);
                    Some(outermost).filter(|f| !f.function.is_empty() && !is_start(&f.file))
                }
                _ => None,
            };
            let function = function.filter(|_| i > 0).map_or("", |frame| short(&frame.function));
            let function: Box<str> = function.into();
            let name = if i == 0 { "main".to_owned() } else { format!("T{i}") };
            symbols.threads.push(name.into());
            symbols.functions.push(function);
        }
    }

    fn name_objects(&mut self, symbols: &mut Symbols) {
        let Controlled { resolver, modules, last, .. } = self;
        let mut name = |addr: u64| resolver.object(addr, modules);
        let place = |site: SiteId, symbols: &Symbols| match symbols.site(site) {
            Site::Source(frame, _) => {
                let file = frame.file.rsplit('/').next().unwrap_or_default().to_owned();
                format!(" ({file}:{})", frame.line)
            }
            Site::Label(_) => String::new(),
        };
        for (i, &(addr, site)) in last.decoder.locks.all().iter().enumerate() {
            let text = name(addr).unwrap_or_else(|| format!("lock {i}{}", place(site, symbols)));
            symbols.locks.push(text.into());
        }
        // One without a name may be the inside of a lock, and is left without.
        for &(addr, _) in last.decoder.conds.all() {
            symbols.conds.push(name(addr).unwrap_or_default().into());
        }
        let kinds = [
            (&last.decoder.semaphores, &mut symbols.semaphores, "semaphore"),
            (&last.decoder.barriers, &mut symbols.barriers, "barrier"),
        ];
        for (ids, names, kind) in kinds {
            for (i, &(addr, _)) in ids.all().iter().enumerate() {
                let text = name(addr).unwrap_or_else(|| format!("{kind} {i}"));
                names.push(text.into());
            }
        }
    }

    fn name_variables(&mut self, events: &[Event], symbols: &mut Symbols) {
        let Controlled { resolver, modules, last, .. } = self;
        for event in events {
            let (Op::Read(access) | Op::Write(access) | Op::Atomic(access, _)) = event.op else {
                continue;
            };
            let Access { addr, len } = access;
            if symbols.variables.at(addr).is_some() {
                continue;
            }
            let Some(address) = last.decoder.address(addr) else { continue };
            let range = Range { start: addr, len: u64::from(len.max(1)) };
            match resolver.object(address, modules) {
                Some(name) => symbols.variables.define(&name, range),
                None => symbols.nameless.add(addr),
            }
        }
    }
}

/// Whether a file holds the start of threads in a standard library.
fn is_start(file: &str) -> bool {
    file.contains("/c++/") || file.contains("library/std/") || file.contains("libstdc++")
}

/// A function without its parameters and the path to it: `worker`.
fn short(function: &str) -> &str {
    let name = function.split(['(', '<']).next().unwrap_or(function);
    name.rsplit("::").next().filter(|n| !n.is_empty()).unwrap_or(function)
}
