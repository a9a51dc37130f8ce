//! A program that can run under control.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use selvedge_engine::{Factory, Heartbeat};
use selvedge_runtime::control::{Debugger, Global, Written, WrittenFile, wire};
use selvedge_runtime::flow::Tables;
use selvedge_runtime::{Controlled, Error, Form, Judges, Libraries, Settings};

use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::program::claims::Claims;
use crate::program::elf::Program;
use crate::program::form;
use crate::program::pattern::Pattern;
use crate::program::symbolize::SharedSymbolizer;
use crate::program::toolbox::Toolbox;
use crate::store::{self, Ensured, Setup};

/// The most records of one execution.
pub(crate) const RECORDS: u32 = 1_000_000;
/// The same where data flow is followed: an execution cannot be judged by its beginning.
pub(crate) const RECORDS_WITH_FLOW: u32 = wire::LOG as u32;

/// A program, and how it is controlled.
#[derive(Clone, Debug)]
pub(crate) struct ControlledProgram {
    pub(crate) setup: Setup,
    pub(crate) form: Form,
    /// Paths are shown relative to this directory.
    pub(crate) root: PathBuf,
    libraries: Libraries,
    /// The command as it was given, for people.
    pub(crate) words: Vec<String>,
    program: Program,
    /// Variables of our environment that the program does not get.
    pub(crate) hidden: Vec<OsString>,
    /// What of its output must be the same in every execution.
    written: Vec<Written>,
    /// Calls the predicates that are functions of the program.
    pub(crate) judges: Judges,
}

impl ControlledProgram {
    /// Looks up a program and how it can be controlled.
    pub(crate) fn find(
        command: &[OsString],
        patience: Duration,
    ) -> Result<ControlledProgram, Failure> {
        let here = std::env::current_dir()?;
        let program = Program::find(Path::new(&command[0])).map_err(Failure::Program)?;
        let path = std::path::absolute(&program.path)?;
        let program = Program { path, ..program };
        let form = form::form(&program)?;
        let setup = Setup {
            build: build(&program.path),
            program: program.path.clone(),
            arguments: command[1..].to_vec(),
            directory: here.clone(),
            form: form::mode(form).to_owned(),
            patience: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
            ensure: Vec::new(),
            focus: Vec::new(),
            tasks: Vec::new(),
        };
        let words = command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        ControlledProgram::new(setup, program, form, root(&here), words)
    }

    /// The program of a stored run.
    pub(crate) fn again(
        setup: &Setup,
        root: &Path,
        words: &[String],
    ) -> Result<ControlledProgram, Failure> {
        let program = Program::read(&setup.program).map_err(Failure::Program)?;
        let form = form::form(&program)?;
        ControlledProgram::new(setup.clone(), program, form, root.to_owned(), words.to_vec())
    }

    fn new(
        setup: Setup,
        program: Program,
        form: Form,
        root: PathBuf,
        words: Vec<String>,
    ) -> Result<ControlledProgram, Failure> {
        let libraries = Toolbox::unpack()?.libraries;
        let written = Vec::new();
        let judges = Judges::new(Duration::from_millis(setup.patience));
        let hidden = Vec::new();
        let program = ControlledProgram {
            setup,
            form,
            root,
            libraries,
            words,
            program,
            hidden,
            written,
            judges,
        };
        let ensured = program.setup.ensure.clone();
        program.ensuring(&ensured)
    }

    /// The program as a block that ensures this output. Files are as they are now when an execution begins.
    pub(crate) fn ensuring(mut self, output: &[Ensured]) -> Result<ControlledProgram, Failure> {
        let written = |ensured: &Ensured| match ensured {
            Ensured::Stdout => Ok(Written::Stdout),
            Ensured::File(path) => {
                let absolute = self.setup.directory.join(path);
                let name = format!("file:{}", path.display());
                WrittenFile::new(name, absolute.clone())
                    .map(Written::File)
                    .map_err(|error| Failure::Open { path: absolute, error })
            }
        };
        self.written = output.iter().map(written).collect::<Result<_, _>>()?;
        self.setup.ensure = output.to_vec();
        Ok(self)
    }

    /// The program without these variables of our environment.
    pub(crate) fn hiding(self, hidden: Vec<OsString>) -> ControlledProgram {
        ControlledProgram { hidden, ..self }
    }

    /// Whether two executions at the same time would write one file.
    pub(crate) fn writes_files(&self) -> bool {
        self.written.iter().any(|w| matches!(w, Written::File(_)))
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
        form::sight(&self.program, self.form)
    }

    /// A warning for a program that is not instrumented.
    pub(crate) fn shortcoming(&self) -> Option<String> {
        (!self.is_instrumented()).then(|| form::only_synchronization(&self.program))
    }

    /// Whether the file is still the one that was stored.
    pub(crate) fn is_unchanged(&self) -> bool {
        build(&self.setup.program) == self.setup.build
    }
}

/// The directory that paths are shown relative to.
fn root(here: &Path) -> PathBuf {
    let directory = store::directory(here);
    directory.parent().unwrap_or(here).to_owned()
}

/// A text that identifies the content of a file.
pub(crate) fn build(program: &Path) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let bytes = std::fs::read(program).unwrap_or_default();
    for word in bytes.chunks(8) {
        let mut padded = [0; 8];
        padded[..word.len()].copy_from_slice(word);
        hash = (hash ^ u64::from_le_bytes(padded)).wrapping_mul(0x100_0000_01b3).rotate_left(29);
    }
    format!("{:x}-{hash:016x}", bytes.len())
}

/// Makes executors of a program, on any thread.
pub(crate) struct Native {
    program: ControlledProgram,
    claims: Claims,
    names_data: bool,
    globals: Option<usize>,
    /// How data flows can be recorded, with these globals as the result.
    flow: Option<Vec<Global>>,
    statements: bool,
    debugger: Option<Debugger>,
    /// The engine no longer needs the results of running executions.
    interrupt: Arc<AtomicBool>,
    /// The command has to stop.
    stop: [Arc<AtomicBool>; 2],
}

impl Native {
    /// Executions end early when the command has to stop.
    pub(crate) fn new(program: &ControlledProgram, deadline: &Deadline) -> Native {
        Native {
            program: program.clone(),
            claims: Claims::default(),
            names_data: false,
            globals: None,
            flow: None,
            statements: false,
            debugger: None,
            interrupt: Arc::default(),
            stop: deadline.interrupts(),
        }
    }

    /// Treats functions as regions.
    pub(crate) fn claiming(self, claims: Claims) -> Native {
        Native { claims, ..self }
    }

    /// Makes what can be reached from globals, behind so many members and pointers, states of every block.
    pub(crate) fn with_globals(self, depth: Option<usize>) -> Native {
        Native { globals: depth, ..self }
    }

    /// Makes how data flows visible. These globals are the result.
    pub(crate) fn following_flow(self, focus: Vec<Global>) -> Native {
        Native { flow: Some(focus), ..self }
    }

    /// Makes the statements that are executed visible, if how data flows is.
    pub(crate) fn with_statements(self) -> Native {
        Native { statements: true, ..self }
    }

    /// Names objects down to the data that lies there.
    pub(crate) fn naming_data(self) -> Native {
        Native { names_data: true, ..self }
    }

    /// Runs the program under gdb, without a time limit.
    pub(crate) fn debugged(self, debugger: Debugger) -> Native {
        Native { debugger: Some(debugger), ..self }
    }

    /// An executor on this thread.
    pub(crate) fn executor(&self) -> Result<Controlled, Failure> {
        Ok(self.make(Heartbeat::default())?)
    }
}

impl Factory for Native {
    type Executor = Controlled;

    fn make(&self, _: Heartbeat) -> Result<Controlled, Error> {
        let ControlledProgram { setup, form, root, libraries, .. } = &self.program;
        let settings = Settings {
            form: *form,
            records: if self.flow.is_some() { RECORDS_WITH_FLOW } else { RECORDS },
            time: match self.debugger {
                Some(_) => Duration::MAX,
                None => Duration::from_millis(setup.patience),
            },
            debugger: self.debugger.clone(),
            ensured: self.program.written.clone(),
            function_regions: !self.claims.is_empty(),
            directory: Some(setup.directory.clone()),
            focus: self.flow.clone().unwrap_or_default(),
            hidden: self.program.hidden.clone(),
            judges: self.program.judges.clone(),
            interrupts: self.stop.iter().chain([&self.interrupt]).cloned().collect(),
            ..Settings::default()
        };
        let mut controlled =
            Controlled::new(&setup.program, &setup.arguments, libraries, settings)?;
        let mut symbolizer =
            SharedSymbolizer::new(root).claiming(self.claims.clone()).reaching(self.globals);
        if self.names_data {
            symbolizer = symbolizer.naming_data();
        }
        controlled.resolve_with(Box::new(symbolizer));
        if self.flow.is_some()
            && let Ok(Some(tables)) = Tables::read(&setup.program, root)
        {
            let tables = if self.statements { tables.with_statements() } else { tables };
            let tasks: Vec<Pattern> = setup.tasks.iter().map(|t| Pattern::whole(t)).collect();
            let is_task = |name: &str| tasks.iter().any(|t| t.matches(name));
            controlled.follow_flow(tables.with_tasks(is_task));
        }
        Ok(controlled)
    }

    fn interrupt(&self, on: bool) {
        self.interrupt.store(on, Ordering::Relaxed);
    }
}
