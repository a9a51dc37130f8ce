//! Inference from a native run.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_analyses::Analysis;
use selvedge_analyses::hominy::Hominy;
use selvedge_model::{Event, Findings, HeldBack, Op, Site, SiteId, Subject, Symbols, ThreadId};
use selvedge_report::{Bound, Case, Memory};
use selvedge_runtime::{Form, Modules, Object, Observe, Options, Session};

use super::naming::Naming;
use super::{Seen, traces};
use crate::commands::run::signals;
use crate::exit::Failure;
use crate::program::elf::Program;
use crate::program::form::{form, only_synchronization};
use crate::program::names::Names;
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
        naming: Naming::new(names, seen),
    };
    let mut resolver = symbolizer;
    let outcome = session.finish(&mut symbols, &mut resolver, &mut observer)?;
    if !outcome.attached || !outcome.instrumented {
        let why = only_synchronization(&program);
        return Err(Failure::Unobservable { path: program.path, why });
    }
    observer.naming.names.mapped(&outcome.modules);
    observer.finish(&symbols);
    if outcome.lost > 0 {
        seen.report.stats.bounds.push(Bound::Events(outcome.lost));
    }
    Ok(())
}

struct Inferring<'a> {
    hominy: Hominy,
    findings: Findings,
    naming: Naming<'a>,
}

impl Inferring<'_> {
    /// Names the instances that have ended.
    fn take(&mut self, symbols: &Symbols) {
        let (ended, inference) = self.hominy.take_ended();
        for ended in ended {
            self.naming.add(ended, inference, symbols);
        }
        self.naming.name_waiting(inference, symbols);
    }

    fn finish(mut self, symbols: &Symbols) {
        self.take(symbols);
        let Inferring { mut hominy, findings, mut naming } = self;
        hominy.drain(|ended, inference| naming.add(ended, inference, symbols));
        naming.name_waiting(hominy.take_ended().1, symbols);
        naming.show_all();
        for finding in &findings {
            let mut case = Case::new(finding, symbols);
            if let Subject::Memory(range) = finding.subject {
                let places: Vec<SiteId> = finding.places.iter().map(|p| p.site).collect();
                let named = naming.names.variable(range, &places, symbols);
                case.subject = selvedge_report::Subject::Memory(Memory::Named(named.name));
            }
            naming.seen.report.add(case);
        }
        let remark = "warning: the program has no debug information, so variables are named as well as the symbol table can; build it with -g";
        let has_lines = |site: &Site| site.frame().is_some_and(|frame| frame.line > 0);
        let lacks_lines = !symbols.sites.entries().iter().any(has_lines);
        if lacks_lines && !naming.seen.remarks.iter().any(|r| r == remark) {
            naming.seen.remarks.push(remark.to_owned());
        }
        let stats = &mut naming.seen.report.stats;
        stats.traces += 1;
        stats.bounds.extend(traces::bound(&hominy, None));
    }
}

impl Observe for Inferring<'_> {
    fn event(&mut self, event: &Event, symbols: &Symbols) {
        let stats = &mut self.naming.seen.report.stats;
        stats.events += 1;
        stats.threads = stats.threads.max(event.thread.index() + 1);
        self.hominy.on_event(event, &mut self.findings);
        // What was there is named while the block is still known.
        if matches!(event.op, Op::Alloc(_) | Op::Free(_)) {
            self.take(symbols);
        }
        self.naming.names.on_event(event, symbols);
    }

    fn reached(&mut self, thread: ThreadId, moment: u64) {
        self.hominy.reached(thread, moment);
    }

    fn held_back(&mut self, last: &HeldBack, _: &Symbols) {
        self.hominy.held_back(last);
    }

    fn object(&mut self, object: Object, addr: u64, site: SiteId) {
        self.naming.names.object(object, addr, site);
    }

    fn mapped(&mut self, modules: &Modules) {
        self.naming.show_all();
        self.naming.names.mapped(modules);
    }
}
