//! Names for the threads, locks and variables of an execution.
//!
//! Finding names takes time, and most executions are not reported. So executions use numbers, and names
//! are looked up only for the execution that ran last.

use std::sync::Arc;

use selvedge_model::{Access, CondId, Event, Op, Range, Site, SiteId, Symbols, ThreadId};

use super::{Controlled, contents};
use crate::called;
use crate::session::Object;

impl Controlled {
    /// The names of everything in the execution that ran last, whose events are given. They are looked up once.
    pub fn named(&mut self, events: &[Event]) -> Arc<Symbols> {
        if let Some(symbols) = &self.named {
            return symbols.clone();
        }
        let mut symbols = Symbols {
            sites: self.symbols.sites.clone(),
            regions: self.symbols.regions.clone(),
            tries: self.symbols.tries.clone(),
            calls: self.symbols.calls.clone(),
            ..Symbols::default()
        };
        self.name_threads(&mut symbols);
        let (decoder, resolver) = (&self.last.decoder, self.resolver.as_mut());
        called::name_objects(decoder, &mut symbols, resolver, &self.modules);
        self.name_variables(events, &mut symbols);
        self.last.stacks.name(&mut symbols, &self.modules, self.resolver.as_mut());
        symbols.values = contents::typed(&self.contents, self.resolver.as_mut(), &self.modules);
        self.symbols.sites = symbols.sites.clone();
        let symbols = Arc::new(symbols);
        self.named = Some(symbols.clone());
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

    /// Threads are also called by their function, if that is the program's own.
    fn name_threads(&self, symbols: &mut Symbols) {
        let threads = self.memory.control().threads().max(1);
        called::name_threads(ThreadId(threads as u32 - 1), symbols);
        for i in 0..threads {
            let function = match self.last.begins.get(i).and_then(|s| symbols.sites.get(s.0)) {
                Some(Site::Source(frame, callers)) => {
                    let outermost = callers.last().unwrap_or(frame);
                    let at = Site::Source(outermost.clone(), Vec::new());
                    let is_library = self.resolver.is_library(&at);
                    Some(outermost).filter(|f| !f.function.is_empty() && !is_library)
                }
                _ => None,
            };
            let function = function.filter(|_| i > 0).map_or("", |frame| short(&frame.function));
            let function: Box<str> = function.into();
            symbols.functions.push(function);
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

/// A function without its parameters and the path to it: `worker`.
fn short(function: &str) -> &str {
    let name = function.split(['(', '<']).next().unwrap_or(function);
    name.rsplit("::").next().filter(|n| !n.is_empty()).unwrap_or(function)
}
