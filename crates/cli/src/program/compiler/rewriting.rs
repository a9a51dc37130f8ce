//! What is rewritten between the two halves of clang: each source is compiled to bitcode, `selvedge_instrument` rewrites
//! that, and clang makes an object of the result. Objects are linked with our runtime as always. Assembly is compiled as it is.
//!
//! - **data flow** (`--selvedge-flow`): a program that says how its data flows. The bitcode is made without optimisation, and
//!   optimised afterwards. Clang is also asked for the statements of the source, around which stars may be put.
//! - **hooks**: clang's hooks for ThreadSanitizer, after all optimisation, become fewer. That is the default with clang, except
//!   where the command line asks for files or stages that bitcode in between would change ([`suits`]). Where it is not possible
//!   the object has clang's own hooks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use selvedge_instrument::accesses::Rules;
use selvedge_instrument::statements::{Statements, statements};
use selvedge_instrument::{Error, Library, SECOND_HALF};

use super::arguments::{Arguments, Item, ItemKind, Stage};
use super::plan::{Scratch, dependencies, instrumentation, link};
use super::record::{self, Record};
use super::{Compiler, Family, check, code};
use crate::exit::Failure;
use crate::messages::warning_label;
use crate::program::toolbox::{Toolbox, cache};

/// The option, and the variable that says the same.
pub(super) const OPTION: &str = "--selvedge-flow";
const VARIABLE: &str = "SELVEDGE_FLOW";
/// Whose hooks accesses get, and the variable that says the same.
const HOOKS: &str = "--selvedge-hooks=";
pub(super) const HOOKS_VARIABLE: &str = "SELVEDGE_HOOKS";

/// The options that the half of the compiler takes which makes machine code of bitcode.
const MACHINE: [&str; 9] = [
    "-f",
    "-m",
    "-pthread",
    "-Wa,",
    "-Xassembler",
    "-target",
    "--target",
    "-B",
    "-no-integrated-as",
];

/// What is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rewriting {
    /// The program says how its data flows.
    Flow,
    /// Accesses get fewer hooks than the compiler gives them: the user asks for that.
    Hooks,
    /// The same by default, where it is possible.
    HooksIfPossible,
    /// Nothing.
    None,
}

/// What a command line asks for, without the options that do.
pub(super) fn wanted(args: Vec<OsString>) -> Result<(Rewriting, Vec<OsString>), Failure> {
    let by_variable = std::env::var_os(VARIABLE).is_some_and(|v| !v.is_empty() && v != "0");
    let mut hooks = std::env::var_os(HOOKS_VARIABLE).filter(|v| !v.is_empty());
    let mut flow = by_variable;
    let mut rest = Vec::new();
    for arg in args {
        if arg == OPTION {
            flow = true;
        } else if let Some(whose) = arg.to_string_lossy().strip_prefix(HOOKS) {
            hooks = Some(whose.into());
        } else {
            rest.push(arg);
        }
    }
    let rewriting = match hooks.as_ref().map(|h| h.to_string_lossy()).as_deref() {
        _ if flow => Rewriting::Flow,
        None => Rewriting::HooksIfPossible,
        Some("own") => Rewriting::Hooks,
        Some("compiler") => Rewriting::None,
        Some(other) => {
            return Err(Failure::Usage(format!(
                "{HOOKS}{other}: whose hooks may be `own` or `compiler`"
            )));
        }
    };
    Ok((rewriting, rest))
}

/// Whether objects that are made in two halves are what the command line asks for. Coverage, profiles and split debug
/// information are files named after the object; link-time optimisation needs the compiler's bitcode itself.
fn suits(arguments: &Arguments) -> bool {
    const OTHERWISE: [&str; 9] = [
        "-flto",
        "--coverage",
        "-coverage",
        "-fprofile",
        "-fcoverage",
        "-ftest-coverage",
        "-save-temps",
        "-gsplit-dwarf",
        "-fembed-bitcode",
    ];
    let is_header = |i: &Item| i.kind == ItemKind::Header;
    !arguments.items.iter().any(is_header)
        && !arguments.has("-emit-llvm")
        && !OTHERWISE.iter().any(|o| arguments.has_prefix(o))
}

/// What is done with this command line.
pub(super) fn decided(
    rewriting: Rewriting,
    compiler: &Compiler,
    arguments: &Arguments,
) -> Rewriting {
    let is_possible = compiler.family == Family::Clang && arguments.compiles();
    match rewriting {
        Rewriting::Hooks if !is_possible => Rewriting::None,
        Rewriting::HooksIfPossible if !is_possible || !suits(arguments) => Rewriting::None,
        Rewriting::HooksIfPossible if library(compiler).is_err() => Rewriting::None,
        other => other,
    }
}

/// Says, once for a program, that it could have been made with fewer hooks.
pub(super) fn say_at_link(rewriting: Rewriting, compiler: &Compiler, arguments: &Arguments) {
    let links = matches!(arguments.stage, Stage::Link | Stage::LinkShared);
    if rewriting != Rewriting::HooksIfPossible || !links || compiler.family != Family::Clang {
        return;
    }
    if let Err(error) = library(compiler) {
        eprintln!("{}: {USED}: {error}", warning_label());
    }
}

/// What is said where the compiler's own hooks stay.
pub(super) const USED: &str = "the compiler's own hooks are used";

/// The libLLVM of a compiler.
fn library(compiler: &Compiler) -> Result<Library, Error> {
    Library::remembered(&compiler.words, &cache().join("compilers"))
}

/// The names under which clang may be installed, if the user names no compiler.
pub(super) fn compilers(cxx: bool) -> impl Iterator<Item = String> {
    let name = if cxx { "clang++" } else { "clang" };
    let versions = (14..=30).rev().map(move |v| format!("{name}-{v}"));
    [name.to_owned()].into_iter().chain(versions)
}

/// Compiles or links.
pub(super) fn run(
    rewriting: Rewriting,
    compiler: &Compiler,
    arguments: &Arguments,
    toolbox: &Toolbox,
) -> Result<ExitCode, Failure> {
    if compiler.family != Family::Clang {
        return Err(Failure::Undecided(format!(
            "{OPTION} needs clang; on Debian or Ubuntu: sudo apt-get install clang, and name it with SELVEDGE_CC"
        )));
    }
    if arguments.stage == Stage::Compile && is_text(arguments) {
        return Ok(code(compiler.call(&plain(rewriting, arguments, toolbox))?));
    }
    let scratch = Scratch::new()?;
    let building = Building { rewriting, compiler, arguments, toolbox, scratch: &scratch };
    let mut linked = Vec::new();
    let mut language = None;
    for item in &arguments.items {
        match item.kind {
            ItemKind::Source => {
                let object = building.object(item, linked.len());
                if let Err(failed) = building.compile(item, language, &object)? {
                    return Ok(failed);
                }
                linked.push(Item { words: vec![object.into()], kind: ItemKind::Linked });
            }
            ItemKind::Language => language = Some(item),
            ItemKind::Dependencies | ItemKind::Header => {}
            _ => linked.push(item.clone()),
        }
    }
    let record = Record::new(arguments);
    if arguments.stage == Stage::Compile {
        if let Some(record) = record {
            record.add_to(&record::objects(arguments));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let recorded = record.as_ref().and_then(|record| compiler.recorded(record));
    let rest = link(arguments, &linked, Family::Clang, toolbox);
    let status = compiler.call(&recorded.into_iter().chain(rest).collect::<Vec<_>>())?;
    if status.success() && arguments.stage == Stage::Link {
        check(arguments.output())?;
    }
    Ok(code(status))
}

/// Whether the output is text: nothing is instrumented.
fn is_text(arguments: &Arguments) -> bool {
    ["-E", "-S", "-M", "-MM", "-fsyntax-only"].iter().any(|o| arguments.has(o))
}

/// What every source sees.
fn seen(rewriting: Rewriting, toolbox: &Toolbox) -> Vec<OsString> {
    if rewriting != Rewriting::Flow {
        return instrumentation(Family::Clang, toolbox);
    }
    let mut options: Vec<OsString> =
        ["-g", "-DSELVEDGE=1", "-D__SELVEDGE_FLOW__=1", "-idirafter"].map(OsString::from).to_vec();
    options.push(toolbox.include.clone().into());
    options
}

fn plain(rewriting: Rewriting, arguments: &Arguments, toolbox: &Toolbox) -> Vec<OsString> {
    let words = arguments.items.iter().flat_map(|i| i.words.clone());
    seen(rewriting, toolbox).into_iter().chain(words).collect()
}

struct Building<'a> {
    rewriting: Rewriting,
    compiler: &'a Compiler,
    arguments: &'a Arguments,
    toolbox: &'a Toolbox,
    scratch: &'a Scratch,
}

impl Building<'_> {
    /// Where the object of a source goes.
    fn object(&self, source: &Item, number: usize) -> PathBuf {
        let stem = Path::new(&source.words[0]).file_stem().unwrap_or_default().to_owned();
        if self.arguments.stage != Stage::Compile {
            let mut name = OsString::from(format!("{number}-"));
            name.push(&stem);
            name.push(".o");
            return self.scratch.path().join(name);
        }
        let named = self.arguments.items.iter().any(|i| i.kind == ItemKind::Output);
        if named {
            self.arguments.output().to_owned()
        } else {
            Path::new(&stem).with_extension("o")
        }
    }

    /// The user's options that a stage takes.
    fn options(&self, wanted: impl Fn(&str) -> bool) -> Vec<OsString> {
        let options = self.arguments.items.iter().filter(|i| i.kind == ItemKind::Option);
        let options = options.filter(|i| wanted(&i.words[0].to_string_lossy()));
        options.flat_map(|i| i.words.clone()).collect()
    }

    /// Compiles a source to an instrumented object; the exit code if the compiler fails.
    fn compile(
        &self,
        source: &Item,
        language: Option<&Item>,
        object: &Path,
    ) -> Result<Result<(), ExitCode>, Failure> {
        let flow = self.rewriting == Rewriting::Flow;
        let optimises = |o: &str| o.starts_with("-O");
        let stage = |o: &str| o == "-c" || o.starts_with("-flto") || flow && optimises(o);
        let mut args = seen(self.rewriting, self.toolbox);
        args.extend(self.options(|o| !stage(o)));
        let language: Vec<OsString> = language.into_iter().flat_map(|l| l.words.clone()).collect();
        let parsed: Vec<OsString> = [&args[..], &language, &source.words[..1]].concat();
        args.extend(dependencies(self.arguments, &source.words[0], object));
        args.extend(language.clone());
        args.extend(["-c".into(), source.words[0].clone(), "-o".into()]);
        let name = source.words[0].to_string_lossy();
        let is_assembly = |words: &[OsString]| {
            words
                .iter()
                .any(|w| w.to_string_lossy().trim_start_matches("-x").starts_with("assembler"))
        };
        if name.ends_with(".s") || name.ends_with(".S") || is_assembly(&language) {
            args.push(object.into());
            let status = self.compiler.call(&args)?;
            return Ok(if status.success() { Ok(()) } else { Err(code(status)) });
        }
        let bitcode = self.scratch.path().join("module.bc");
        args.extend([bitcode.clone().into(), "-emit-llvm".into()]);
        if flow {
            args.extend(
                ["-O0", "-Xclang", "-disable-O0-optnone", "-fno-builtin"].map(OsString::from),
            );
        }
        let status = self.compiler.call(&args)?;
        if !status.success() {
            return Ok(Err(code(status)));
        }
        self.rewrite(&bitcode, &parsed)?;
        let machine = |o: &str| {
            !stage(o) && (MACHINE.iter().any(|prefix| o.starts_with(prefix)) || optimises(o))
        };
        let mut args = self.options(machine);
        args.retain(|o| !o.to_string_lossy().starts_with("-fsanitize"));
        args.extend(
            ["-Wno-unused-command-line-argument", "-Wno-override-module", "-g"].map(OsString::from),
        );
        let rest: &[&str] = if flow { &["-O2", "-x", "ir", "-c"] } else { &SECOND_HALF };
        args.extend(rest.iter().map(OsString::from));
        args.extend([bitcode.into(), "-o".into(), object.into()]);
        let status = self.compiler.call(&args)?;
        Ok(if status.success() { Ok(()) } else { Err(code(status)) })
    }

    /// Rewrites a file of bitcode, which the compiler made with these arguments.
    fn rewrite(&self, bitcode: &Path, parsed: &[OsString]) -> Result<(), Failure> {
        let library = library(self.compiler);
        if self.rewriting == Rewriting::Flow {
            let library = library.map_err(failure)?;
            let statements = self.statements(parsed)?;
            selvedge_instrument::flow(&library, bitcode, &statements).map_err(failure)?;
            return Ok(());
        }
        let rewritten =
            library.and_then(|library| selvedge_instrument::races(&library, bitcode, Rules::ALL));
        if let Err(error) = rewritten {
            eprintln!("{}: {USED}: {error}", warning_label());
        }
        Ok(())
    }

    /// The statements of a source that the compiler has compiled.
    fn statements(&self, args: &[OsString]) -> Result<Statements, Failure> {
        let words = &self.compiler.words;
        let output = Command::new(&words[0])
            .args(&words[1..])
            .args(args)
            .args(["-w", "-fsyntax-only", "-Xclang", "-ast-dump=json"])
            .output()
            .map_err(|error| Failure::Open { path: (&words[0]).into(), error })?;
        Ok(statements(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// What stands in the way is either the source or what is installed.
fn failure(error: Error) -> Failure {
    match error {
        Error::Refused(refused) => Failure::Usage(refused.to_string()),
        other => Failure::Undecided(format!("{OPTION}: {other}")),
    }
}
