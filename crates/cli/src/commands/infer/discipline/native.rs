//! Inference from a native run.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_analyses::Analysis;
use selvedge_analyses::hominy::{HeldBack, Hominy, Instance};
use selvedge_model::{Event, Findings, Op, Range, SiteId, Subject, Symbols, ThreadId};
use selvedge_report::{Bound, Case, Memory};
use selvedge_runtime::{Form, Modules, Object, Observe, Options, Session, decode};

use super::{Seen, traces};
use crate::commands::run::signals;
use crate::exit::Failure;
use crate::program::elf::Program;
use crate::program::form::{form, only_synchronization};
use crate::program::names::{self, Named, Names};
use crate::program::symbolize::SharedSymbolizer;
use crate::program::toolbox::Toolbox;
use crate::store;

/// The directory that paths are shown relative to.
pub(super) fn root() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()?;
    let directory = store::directory(&here);
    Ok(directory.parent().unwrap_or(&here).to_owned())
}

/// Runs a program and infers from what it did. Its standard output is kept, unless that carries the report.
pub(super) fn infer(
    words: &[OsString],
    directories: &[PathBuf],
    quiet: bool,
    seen: &mut Seen,
) -> Result<(), Failure> {
    let program = Program::find(Path::new(&words[0])).map_err(Failure::Program)?;
    let form = form(&program)?;
    if form == Form::Preloaded {
        let why = "its accesses to memory cannot be seen".to_owned();
        return Err(Failure::Unobservable { path: program.path, why });
    }
    let toolbox = Toolbox::unpack()?;
    let symbolizer = SharedSymbolizer::new(&root()?).naming_data();
    let mut command = Command::new(&program.path);
    command.args(&words[1..]);
    if quiet {
        command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
    }
    let options = Options { accesses: true, hold_back: true, races: false, ..Options::default() };
    let signals = signals::hold().map_err(Failure::Output)?;
    let session = Session::start(command, form, &toolbox.libraries, options)?;
    signals.forward_to(session.pid());
    let mut symbols = Symbols::default();
    let names = Names::new(symbolizer.clone(), directories);
    let mut observer = Inferring {
        hominy: Hominy::default(),
        findings: Findings::default(),
        names,
        waiting: (0, Vec::new()),
        seen,
    };
    let mut resolver = symbolizer;
    let outcome = session.finish(&mut symbols, &mut resolver, &mut observer)?;
    if !outcome.attached || !outcome.instrumented {
        let why = only_synchronization(&program);
        return Err(Failure::Unobservable { path: program.path, why });
    }
    observer.names.mapped(&outcome.modules);
    observer.finish(&symbols);
    if outcome.lost > 0 {
        seen.report.stats.bounds.push(Bound::Events(outcome.lost));
    }
    Ok(())
}

/// How far members that were accessed alike may be apart in memory that was found as one.
const MEMBERS: usize = 4;

/// How many instances of one block wait for a name at most.
const WAITING: usize = 1 << 16;

struct Inferring<'a> {
    hominy: Hominy,
    findings: Findings,
    names: Names,
    /// Instances in the block at an address: they are named together, because one may tell what another is.
    waiting: (u64, Vec<Instance>),
    seen: &'a mut Seen,
}

impl Inferring<'_> {
    fn take(&mut self, symbols: &Symbols) {
        for found in self.hominy.take_instances() {
            self.add(found, symbols);
        }
        self.name_waiting(symbols);
    }

    fn add(&mut self, found: Instance, symbols: &Symbols) {
        let block = self.names.heap.at(found.bytes.start).map(|block| block.range.start);
        if block != Some(self.waiting.0) || self.waiting.1.len() == WAITING {
            self.name_waiting(symbols);
        }
        match block {
            Some(block) => {
                self.waiting.0 = block;
                self.waiting.1.push(found);
            }
            None => self.name(&found, symbols),
        }
    }

    fn name_waiting(&mut self, symbols: &Symbols) {
        let all = std::mem::take(&mut self.waiting.1);
        let places = |found: &Instance| found.places.iter().map(|p| p.site).collect();
        self.names.learn(all.iter().map(|found| (found.bytes.start, places(found))), symbols);
        all.iter().for_each(|found| self.name(found, symbols));
    }

    /// Names an instance. Bytes with the same history may belong to several members.
    fn name(&mut self, found: &Instance, symbols: &Symbols) {
        let places: Vec<SiteId> = found.places.iter().map(|p| p.site).collect();
        let mut last: Option<Named> = None;
        // Members are at least so far apart, nearly always.
        for addr in (found.bytes.start..found.bytes.end()).step_by(MEMBERS) {
            let rest = Range { start: addr, len: found.bytes.end() - addr };
            let named = self.names.variable(rest, &places, symbols);
            let part_of = |last: &Named| {
                let inside = named.name.strip_prefix(last.name.as_str());
                inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
            };
            let inside_heap = named.name.starts_with("heap block");
            if last.as_ref().is_some_and(|last| part_of(last) || inside_heap) {
                continue;
            }
            let names = &mut self.names;
            let instance = traces::named(found, symbols, |&d| names.device(d, &named, symbols));
            self.seen.merger.add(&named.name, instance);
            last = Some(named);
        }
    }

    fn finish(mut self, symbols: &Symbols) {
        self.take(symbols);
        let mut hominy = std::mem::take(&mut self.hominy);
        hominy.drain(|found| self.add(found, symbols));
        self.name_waiting(symbols);
        for finding in &self.findings {
            let mut case = Case::new(finding, symbols);
            if let Subject::Memory(range) = finding.subject {
                let places: Vec<SiteId> = finding.places.iter().map(|p| p.site).collect();
                let named = self.names.variable(range, &places, symbols);
                case.subject = selvedge_report::Subject::Memory(Memory::Named(named.name));
            }
            for (place, of) in case.places.iter_mut().zip(&finding.places) {
                place.thread = names::thread(of.thread);
            }
            self.seen.report.add(case);
        }
        let remark = "warning: the program has no debug information, so variables are named as well as the symbol table can; build it with -g";
        if self.names.lacks_types && !self.seen.remarks.iter().any(|r| r == remark) {
            self.seen.remarks.push(remark.to_owned());
        }
        let stats = &mut self.seen.report.stats;
        stats.traces += 1;
        stats.bounds.extend(traces::bound(&hominy, None));
    }
}

impl Observe for Inferring<'_> {
    fn event(&mut self, event: &Event, symbols: &Symbols) {
        let stats = &mut self.seen.report.stats;
        stats.events += 1;
        stats.threads = stats.threads.max(event.thread.index() + 1);
        self.hominy.on_event(event, &mut self.findings);
        // What was there is named while the block is still known.
        if let Op::Alloc(range) = event.op {
            self.take(symbols);
            self.names.heap.allocated(range, event.thread, event.site);
        } else if let Op::Free(range) = event.op {
            self.take(symbols);
            self.names.heap.freed(range);
        }
    }

    fn reached(&mut self, thread: ThreadId, moment: u64) {
        self.hominy.reached(thread, moment);
    }

    fn held_back(&mut self, last: &decode::HeldBack) {
        let &decode::HeldBack { thread, bytes, write, moment, site } = last;
        self.hominy.held_back(&HeldBack { thread, bytes, write, moment, site });
    }

    fn object(&mut self, object: Object, addr: u64, site: SiteId) {
        self.names.object(object, addr, site);
    }

    fn mapped(&mut self, modules: &Modules) {
        self.names.mapped(modules);
    }
}
