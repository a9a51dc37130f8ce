//! A program that is ready to be run under control.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selvedge_model::{Site, Symbols};
use selvedge_report::Watched;
use selvedge_runtime::control::{CodePlace, Debugger};
use selvedge_runtime::{Controlled, Form, Libraries, Modules, Resolve, Settings};
use serde::{Deserialize, Serialize};

use crate::elf::Program;
use crate::exit::Failure;
use crate::run;
use crate::store;
use crate::symbolize::SharedSymbolizer;
use crate::toolbox::Toolbox;

/// Records after which an execution is too long.
pub(crate) const RECORDS: u32 = 1_000_000;

/// Everything that running the program again needs, from whatever directory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The program's file.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Where it runs.
    pub(crate) directory: PathBuf,
    /// How the runtime gets in.
    pub(crate) form: String,
    /// The longest that an execution may take, in milliseconds.
    pub(crate) patience: u64,
    /// Tells this build of the program from others.
    pub(crate) build: String,
}

/// A program to be controlled.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) setup: Setup,
    pub(crate) form: Form,
    /// Paths are shown relative to this directory.
    pub(crate) root: PathBuf,
    libraries: Libraries,
    /// The command as it was given, for people.
    pub(crate) words: Vec<String>,
    program: Program,
}

impl Subject {
    /// Looks a program up and finds out how it can be controlled.
    pub(crate) fn find(command: &[OsString], patience: Duration) -> Result<Subject, Failure> {
        let here = std::env::current_dir()?;
        let program = Program::find(Path::new(&command[0])).map_err(Failure::Program)?;
        let path = std::path::absolute(&program.path)?;
        let program = Program { path, ..program };
        let form = run::form(&program)?;
        let setup = Setup {
            build: build(&program.path),
            program: program.path.clone(),
            arguments: command[1..].to_vec(),
            directory: here.clone(),
            form: run::mode(form).to_owned(),
            patience: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
        };
        let words = command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        Subject::new(setup, program, form, root(&here), words)
    }

    /// The program of a stored run.
    pub(crate) fn again(setup: &Setup, root: &Path, words: &[String]) -> Result<Subject, Failure> {
        let program = Program::read(&setup.program).map_err(Failure::Program)?;
        let form = run::form(&program)?;
        Subject::new(setup.clone(), program, form, root.to_owned(), words.to_vec())
    }

    fn new(
        setup: Setup,
        program: Program,
        form: Form,
        root: PathBuf,
        words: Vec<String>,
    ) -> Result<Subject, Failure> {
        let libraries = Toolbox::unpack()?.libraries;
        Ok(Subject { setup, form, root, libraries, words, program })
    }

    /// Where our libraries are.
    pub(crate) fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// Whether plain accesses of the program can be seen.
    pub(crate) fn is_instrumented(&self) -> bool {
        self.form != Form::Preloaded
    }

    /// What can be seen of the program, in words.
    pub(crate) fn sight(&self) -> String {
        run::sight(&self.program, self.form)
    }

    /// What to tell the user of a program that is not instrumented.
    pub(crate) fn shortcoming(&self) -> Option<String> {
        (!self.is_instrumented()).then(|| run::only_synchronization(&self.program))
    }

    /// Whether the file is still the one that was stored.
    pub(crate) fn is_unchanged(&self) -> bool {
        build(&self.setup.program) == self.setup.build
    }
}

/// The directory that paths are shown relative to.
pub(crate) fn root(here: &Path) -> PathBuf {
    let directory = store::directory(here);
    directory.parent().unwrap_or(here).to_owned()
}

/// A text that differs for files of different content.
fn build(program: &Path) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let bytes = std::fs::read(program).unwrap_or_default();
    for word in bytes.chunks(8) {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(padded)).wrapping_mul(0x100_0000_01b3).rotate_left(29);
    }
    format!("{:x}-{hash:016x}", bytes.len())
}

/// Where the accesses of a place are in the program.
fn code(place: &Watched) -> CodePlace {
    CodePlace { module: place.module.clone(), offset: place.offset }
}

/// What a stage is to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Plain accesses become events.
    pub(crate) accesses: bool,
    /// Seed of the program's own random numbers.
    pub(crate) seed: u64,
    /// Names of sites that are known from elsewhere, so that ids agree.
    pub(crate) symbols: Symbols,
    /// Accesses that are scheduling points.
    pub(crate) watched: Vec<Watched>,
    /// Under gdb, without a limit of time.
    pub(crate) debugger: Option<Debugger>,
}

/// A program under control, and which code its sites come from.
pub(crate) struct Stage {
    pub(crate) controlled: Controlled,
    /// The program is not the one in which a finding that it is to show was found: lines may have moved.
    pub(crate) edited: bool,
    places: Rc<RefCell<Places>>,
}

impl Stage {
    pub(crate) fn new(
        subject: &Subject,
        wishes: Wishes,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Stage, Failure> {
        let setup = &subject.setup;
        let settings = Settings {
            form: subject.form,
            records: RECORDS,
            time: match wishes.debugger {
                Some(_) => Duration::MAX,
                None => Duration::from_millis(setup.patience),
            },
            debugger: wishes.debugger.clone(),
            accesses: wishes.accesses,
            directory: Some(setup.directory.clone()),
            interrupt: Arc::clone(interrupt),
            ..Settings::default()
        };
        let mut controlled =
            Controlled::new(&setup.program, &setup.arguments, &subject.libraries, settings)?;
        controlled.seed = wishes.seed;
        controlled.symbols = wishes.symbols;
        let places = Rc::new(RefCell::new(Places::default()));
        let symbolizer = SharedSymbolizer::new(&subject.root);
        controlled.resolve_with(Box::new(Noting { symbolizer, places: Rc::clone(&places) }));
        let mut stage = Stage { controlled, edited: false, places };
        if !wishes.watched.is_empty() {
            stage.watch(&wishes.watched)?;
        }
        Ok(stage)
    }

    /// Makes accesses at these places scheduling points, instead of those named before.
    pub(crate) fn watch(&mut self, watched: &[Watched]) -> Result<(), Failure> {
        let places: Vec<CodePlace> = watched.iter().map(code).collect();
        self.controlled.watch(&places)?;
        Ok(())
    }

    /// The code behind sites, so far as it has been executed.
    pub(crate) fn code_of<'a>(&self, sites: impl IntoIterator<Item = &'a Site>) -> Vec<Watched> {
        let places = self.places.borrow();
        let mut all: Vec<Watched> = Vec::new();
        for site in sites {
            for (module, offset) in places.0.get(site).into_iter().flatten() {
                let (module, offset) = (module.clone(), *offset);
                all.push(Watched { module, offset, site: site.clone() });
            }
        }
        in_order(all)
    }

    /// All sites that have been seen.
    pub(crate) fn sites(&self) -> Vec<Site> {
        self.places.borrow().0.keys().cloned().collect()
    }
}

/// Places by their code, each once.
pub(crate) fn in_order(mut places: Vec<Watched>) -> Vec<Watched> {
    places.sort_by(|a, b| (&a.module, a.offset).cmp(&(&b.module, b.offset)));
    places.dedup_by(|a, b| (&a.module, a.offset) == (&b.module, b.offset));
    places
}

/// The site among `known` that a site of an earlier build has become: the same, or the nearest line
/// of the same function, file and column.
pub(crate) fn relocated<'a>(
    site: &Site,
    known: impl IntoIterator<Item = &'a Site> + Clone,
) -> Option<&'a Site> {
    if let Some(same) = known.clone().into_iter().find(|k| *k == site) {
        return Some(same);
    }
    let was = site.frame()?;
    let file = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let like = |k: &&Site| {
        k.frame().is_some_and(|is| {
            is.function == was.function
                && is.column == was.column
                && file(&is.file) == file(&was.file)
        })
    };
    let distance = |k: &&Site| k.frame().map_or(u32::MAX, |is| is.line.abs_diff(was.line));
    known.into_iter().filter(like).min_by_key(distance)
}

/// The code behind each site.
#[derive(Default)]
struct Places(HashMap<Site, BTreeSet<(PathBuf, u64)>>);

/// Resolves, and notes what from.
struct Noting {
    symbolizer: SharedSymbolizer,
    places: Rc<RefCell<Places>>,
}

impl Noting {
    fn note(&self, site: Site, pc: u64, modules: &Modules) -> Site {
        if let Some(code) = CodePlace::of(pc, modules) {
            let mut places = self.places.borrow_mut();
            places.0.entry(site.clone()).or_default().insert((code.module, code.offset));
        }
        site
    }
}

impl Resolve for Noting {
    fn site(&mut self, pc: u64, modules: &Modules) -> Site {
        let site = self.symbolizer.site(pc, modules);
        self.note(site, pc, modules)
    }

    fn site_within(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Site {
        let site = self.symbolizer.site_within(pc, callers, modules);
        self.note(site, pc, modules)
    }

    fn object(&mut self, addr: u64, modules: &Modules) -> Option<String> {
        self.symbolizer.object(addr, modules)
    }
}
