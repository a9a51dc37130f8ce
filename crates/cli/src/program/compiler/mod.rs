//! `selvedge cc` and `selvedge c++`: the user's compiler, with instrumentation and our runtime.
//!
//! The compiler instruments as for ThreadSanitizer; the link gets our library instead of its runtime.
//! Our library is the first thing on the link line and is linked as a whole, so that its functions come
//! before the C library's. The finished executable is checked for this: otherwise the program would run
//! unobserved, and no message would say so.

mod arguments;
pub(crate) mod mpi;
mod plan;
mod record;
mod rewriting;
pub(crate) mod rust;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use crate::exit::Failure;
use crate::program::elf::{Built, Program};
use crate::program::toolbox::Toolbox;
use arguments::{Arguments, Stage};
use plan::Plan;
use record::Record;
pub(crate) use record::{CompileCommand, commands};
use rewriting::Rewriting;

/// Which of the two commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Driver {
    /// `selvedge cc`
    C,
    /// `selvedge c++`
    Cxx,
}

impl Driver {
    fn variable(self) -> &'static str {
        match self {
            Driver::C => "SELVEDGE_CC",
            Driver::Cxx => "SELVEDGE_CXX",
        }
    }

    fn default(self) -> &'static str {
        match self {
            Driver::C => "cc",
            Driver::Cxx => "c++",
        }
    }
}

/// The two families of compilers that can instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    Gcc,
    Clang,
}

/// The compiler that we call.
#[derive(Clone, Debug)]
struct Compiler {
    /// The program and its first arguments, such as `ccache gcc`.
    words: Vec<OsString>,
    family: Family,
}

/// Compiles or links. The exit code is the compiler's own.
pub(crate) fn run(driver: Driver, args: Vec<OsString>) -> Result<ExitCode, Failure> {
    const OPTION: &str = "--selvedge-compiler=";
    const INCLUDE: [&str; 2] = ["--print-include", "--selvedge-print-include-dir"];
    if args.iter().any(|a| INCLUDE.iter().any(|name| a == name)) {
        println!("{}", Toolbox::unpack()?.include.display());
        return Ok(ExitCode::SUCCESS);
    }
    let (own, args): (Vec<OsString>, Vec<OsString>) =
        args.into_iter().partition(|a| a.to_string_lossy().starts_with(OPTION));
    let chosen = own.last().map(|a| OsString::from(&a.to_string_lossy()[OPTION.len()..]));
    let (rewriting, args) = rewriting::wanted(args)?;
    let flow = rewriting == Rewriting::Flow;
    let chosen = chosen.or_else(|| if flow { a_clang(driver) } else { None });
    let compiler = Compiler::choose(driver, chosen)?;
    let mut arguments = Arguments::parse(&args);
    if arguments.stage == Stage::Question {
        return Ok(code(compiler.call(&args)?));
    }
    let toolbox = Toolbox::unpack()?;
    let is_link = matches!(arguments.stage, Stage::Link | Stage::LinkShared);
    // Deleted at the end.
    let _objects =
        is_link.then(|| rust::rewritten(&arguments.items)).flatten().map(|(items, made)| {
            arguments.items = items;
            made
        });
    rewriting::say_at_link(rewriting, &compiler, &arguments);
    match rewriting::decided(rewriting, &compiler, &arguments) {
        Rewriting::None => {}
        rewriting => return rewriting::run(rewriting, &compiler, &arguments, &toolbox),
    }
    let plan = Plan::new(&arguments, compiler.family, &toolbox)?;
    for step in &plan.before {
        let status = compiler.call(step)?;
        if !status.success() {
            return Ok(code(status));
        }
    }
    let record = Record::new(&arguments);
    let recorded = record.as_ref().filter(|_| arguments.stage != Stage::Compile);
    let recorded = recorded.and_then(|record| compiler.recorded(record));
    let last: Vec<OsString> = recorded.into_iter().chain(plan.last.iter().cloned()).collect();
    let status = compiler.call(&last)?;
    if status.success() && arguments.stage == Stage::Link {
        check(arguments.output())?;
    }
    if let Some(record) = record.filter(|_| status.success() && arguments.stage == Stage::Compile) {
        record.add_to(&record::objects(&arguments));
    }
    Ok(code(status))
}

/// A clang of this machine, if the user has named no compiler.
fn a_clang(driver: Driver) -> Option<OsString> {
    if std::env::var_os(driver.variable()).is_some_and(|v| !v.is_empty()) {
        return None;
    }
    let names = rewriting::compilers(driver == Driver::Cxx);
    names.map(OsString::from).find(|name| search(name).is_some())
}

/// Fails if our runtime does not come before the C library in an executable: it would run unobserved.
fn check(output: &Path) -> Result<(), Failure> {
    if !output.is_file() {
        // The output is `/dev/null`, or the linker was told to write nothing.
        return Ok(());
    }
    let wrong = match Program::read(output) {
        Ok(program) if program.built == Built::Ours => return Ok(()),
        Ok(_) => "Selvedge's runtime does not come before the C library in it".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Failure::Link { output: output.to_owned(), wrong })
}

impl Compiler {
    fn choose(driver: Driver, option: Option<OsString>) -> Result<Compiler, Failure> {
        let named = option.or_else(|| std::env::var_os(driver.variable()));
        let named = named.filter(|n| !n.is_empty()).unwrap_or_else(|| driver.default().into());
        let words: Vec<OsString> =
            named.to_string_lossy().split_whitespace().map(OsString::from).collect();
        let last = words.last().ok_or_else(|| {
            Failure::Usage(format!("{} is empty; name a compiler", driver.variable()))
        })?;
        let found = search(last).ok_or_else(|| Failure::NoCompiler {
            name: last.to_string_lossy().into_owned(),
            variable: driver.variable(),
        })?;
        let own = std::env::current_exe().ok().and_then(|p| p.canonicalize().ok());
        if search(&words[0]).is_some_and(|p| Some(p) == own) {
            return Err(Failure::Usage(format!(
                "{} names selvedge itself; name the compiler that it should call",
                driver.variable()
            )));
        }
        let family = family(&found, &words)?;
        Ok(Compiler { words, family })
    }

    /// An object that holds the commands of the call. A program without them can be observed as well.
    fn recorded(&self, record: &Record) -> Option<OsString> {
        let (call, object) = record.object().ok()?;
        self.call(&call).ok().filter(ExitStatus::success).map(|_| object.into())
    }

    fn call(&self, args: &[OsString]) -> Result<ExitStatus, Failure> {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).args(args);
        command.status().map_err(|error| Failure::Open { path: (&self.words[0]).into(), error })
    }
}

/// The file behind the name of a program, without symbolic links.
fn search(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return path.canonicalize().ok();
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).find_map(|d| d.join(path).canonicalize().ok())
}

/// Finds out the family by the file's name or, if that does not show it, by `--version`.
fn family(found: &Path, words: &[OsString]) -> Result<Family, Failure> {
    let of = |text: &str| {
        if text.contains("clang") {
            Some(Family::Clang)
        } else if ["gcc", "g++", "GCC", "Free Software Foundation"].iter().any(|n| text.contains(n))
        {
            Some(Family::Gcc)
        } else {
            None
        }
    };
    let name = found.file_name().unwrap_or_default().to_string_lossy();
    if let Some(family) = of(&name) {
        return Ok(family);
    }
    let asked = Command::new(&words[0]).args(&words[1..]).arg("--version").output();
    let asked = asked.map_err(|error| Failure::Open { path: found.to_owned(), error })?;
    of(&String::from_utf8_lossy(&asked.stdout)).ok_or_else(|| {
        Failure::Usage(format!(
            "{}: this is neither gcc nor clang; only those can instrument programs",
            found.display()
        ))
    })
}

/// The exit code of a program that we called, to be passed on.
pub(crate) fn code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(number).unwrap_or(1))
}
