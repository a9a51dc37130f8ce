//! Checks a specification of disciplines beside the other analyses of a command.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_analyses::devices::Device;
use selvedge_analyses::discipline::{self, Checker, Naming, Violation};
use selvedge_model::{Event, HeldBack, Op, Range, SiteId, Symbols};
use selvedge_report::{Case, Lacks, Memory, Note, Subject};
use selvedge_runtime::{Modules, Object};
use selvedge_specs::discipline::satisfy::Missing;
use selvedge_specs::discipline::{Specification, Step, parse};

use crate::exit::Failure;
use crate::messages::warning_label;
use crate::program::names::{Named, Names};
use crate::program::symbolize::SharedSymbolizer;

/// A specification, and what has been found.
pub(crate) struct Checking {
    path: PathBuf,
    specification: Specification,
    rules: HashMap<String, usize>,
    checker: Checker,
    cases: Vec<Case>,
}

impl Checking {
    /// Reads a specification.
    pub(crate) fn load(path: &Path) -> Result<Checking, Failure> {
        let wrong = |error| Failure::Open { path: path.to_owned(), error };
        let text = fs::read_to_string(path).map_err(wrong)?;
        let specification =
            parse(&text).map_err(|error| Failure::Usage(format!("{}:{error}", path.display())))?;
        let names = specification.rules.iter().map(|r| r.variable.clone());
        Ok(Checking {
            path: path.to_owned(),
            rules: names.zip(0..).collect(),
            checker: Checker::new(&specification),
            specification,
            cases: Vec::new(),
        })
    }

    /// The name of the analysis.
    pub(crate) fn name(&self) -> &'static str {
        discipline::NAME
    }

    /// Takes in an event of a trace, which has names of its own.
    pub(crate) fn on_trace(&mut self, event: &Event, symbols: &Symbols) {
        let mut naming = ByTrace { rules: &self.rules, symbols };
        let found = self.checker.on_event(event, &mut naming);
        self.take(found, symbols, &symbols.thread(event.thread));
    }

    /// Takes in what an access of a thread has broken.
    fn take(&mut self, found: Vec<Violation>, symbols: &Symbols, thread: &str) {
        for violation in found {
            let case = case(&violation, &self.specification, symbols, thread.to_owned());
            self.cases.push(case);
        }
    }

    /// What was found. Says so if there was nothing to check.
    pub(crate) fn finish(self) -> Vec<Case> {
        if !self.checker.saw_anything() {
            anstream::eprintln!(
                "{}: {}: none of its variables was seen",
                warning_label(),
                self.path.display()
            );
        }
        self.cases
    }
}

fn case(
    violation: &Violation,
    specification: &Specification,
    symbols: &Symbols,
    thread: String,
) -> Case {
    let mut case = Case::new(&violation.finding, symbols);
    let variable = specification.rules[violation.rule].variable.clone();
    case.subject = Subject::Memory(Memory::Named(variable));
    case.places.iter_mut().for_each(|place| place.thread.clone_from(&thread));
    let device = |step: &Step| step.to_string().trim_start_matches("via ").to_owned();
    let lacks = match &violation.breach.missing {
        Missing::Lock(lock) => Lacks::Lock(lock.clone()),
        Missing::OnlyReads => Lacks::OnlyReads,
        Missing::Ownership => Lacks::Ownership,
        Missing::Order(steps) => Lacks::Order(steps.iter().map(device).collect()),
    };
    case.notes.push(Note::Broken { thread, step: violation.breach.step.to_string(), lacks });
    case
}

struct ByTrace<'a> {
    rules: &'a HashMap<String, usize>,
    symbols: &'a Symbols,
}

impl Naming for ByTrace<'_> {
    fn rule(&mut self, bytes: Range, _: SiteId) -> Option<usize> {
        self.rules.get(&self.symbols.variable(bytes)).copied()
    }

    fn is(&mut self, device: Device, name: &str, _: Range) -> bool {
        let symbols = self.symbols;
        match device {
            Device::Lock(id) => symbols.lock(id) == name,
            Device::Barrier(id) => symbols.barrier(id) == name,
            Device::Semaphore(id) => symbols.semaphore(id) == name,
            Device::Atomic(addr) => symbols.variable(Range { start: addr, len: 1 }) == name,
        }
    }
}

/// The same for a native run, whose memory is named by debug information.
pub(crate) struct NativeChecking {
    checking: Checking,
    names: Names,
    known: BTreeMap<u64, Named>,
}

impl NativeChecking {
    pub(crate) fn new(
        checking: Checking,
        symbolizer: SharedSymbolizer,
        sources: &[PathBuf],
    ) -> NativeChecking {
        let checker = checking.checker.of_first_accesses();
        let checking = Checking { checker, ..checking };
        NativeChecking { checking, names: Names::new(symbolizer, sources), known: BTreeMap::new() }
    }

    pub(crate) fn on_event(&mut self, event: &Event, symbols: &Symbols) {
        let NativeChecking { checking, names, known } = self;
        let mut naming = ByProgram { rules: &checking.rules, names, known, symbols };
        let found = checking.checker.on_event(event, &mut naming);
        checking.take(found, symbols, &symbols.thread(event.thread));
        if let Op::Alloc(range) = event.op {
            let gone = self.known.range(range.start..range.end()).map(|(&addr, _)| addr);
            for addr in gone.collect::<Vec<_>>() {
                self.known.remove(&addr);
            }
        }
        self.names.on_event(event, symbols);
    }

    /// Events go up to a moment of the program's.
    pub(crate) fn reached(&mut self, moment: u64) {
        self.checking.checker.reached(moment);
    }

    /// Accesses were held back in the program.
    pub(crate) fn held_back(&mut self, last: &HeldBack, symbols: &Symbols) {
        let NativeChecking { checking, names, known } = self;
        let mut naming = ByProgram { rules: &checking.rules, names, known, symbols };
        checking.checker.held_back(last, &mut naming);
    }

    pub(crate) fn object(&mut self, object: Object, addr: u64, site: SiteId) {
        self.names.object(object, addr, site);
    }

    pub(crate) fn mapped(&mut self, modules: &Modules) {
        self.names.mapped(modules);
    }

    /// The name of the analysis, and what was found.
    pub(crate) fn finish(self) -> (&'static str, Vec<Case>) {
        (self.checking.name(), self.checking.finish())
    }
}

struct ByProgram<'a> {
    rules: &'a HashMap<String, usize>,
    names: &'a mut Names,
    known: &'a mut BTreeMap<u64, Named>,
    symbols: &'a Symbols,
}

impl Naming for ByProgram<'_> {
    fn rule(&mut self, bytes: Range, site: SiteId) -> Option<usize> {
        let named = self.names.variable(bytes, &[site], self.symbols);
        let rule = self.rules.get(&named.name).copied();
        if rule.is_some() {
            self.known.insert(bytes.start, named);
        }
        rule
    }

    fn is(&mut self, device: Device, name: &str, bytes: Range) -> bool {
        let Some(of) = self.known.get(&bytes.start) else { return false };
        self.names.device(device, of, self.symbols) == name
    }
}
