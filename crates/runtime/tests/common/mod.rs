//! Building programs with the runtime and running them under observation.

#![allow(dead_code, unreachable_pub)] // Each test binary uses a part.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use selvedge_engine::Execution;
use selvedge_explore::{Budget, RandomWalk, Strategy};
use selvedge_instrument::accesses::Rules;
use selvedge_instrument::{Library, SECOND_HALF};
use selvedge_model::{Blocked, Event, Failure, Subject, Symbols};
use selvedge_runtime::rust_std::Stubs;
use selvedge_runtime::{
    ByModule, Controlled, Form, Libraries, Modules, Options, Outcome, Session, Settings,
};

/// A compiler that can instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compiler {
    Gcc,
    Clang,
    /// Clang, with fewer hooks than its own (`selvedge cc --selvedge-hooks=own`).
    Own,
    /// The same, and none is left out.
    AllHooks,
    Rustc,
}

impl Compiler {
    /// The compilers for a source file, by its language.
    pub fn for_source(source: &Path) -> Vec<Compiler> {
        if options(source).iter().any(|o| o == "-mavx2") && !is_x86_feature_detected!("avx2") {
            return Vec::new();
        }
        match source.extension().and_then(OsStr::to_str) {
            Some("rs") => vec![Compiler::Rustc],
            // Neither compiler knows everything of OpenMP that the other one does.
            _ if text_of(source).contains("// clang only") => {
                vec![Compiler::Clang, Compiler::Own]
            }
            _ if text_of(source).contains("// gcc only") => vec![Compiler::Gcc],
            _ if text_of(source).contains("// own hooks only") => vec![Compiler::Own],
            _ => vec![Compiler::Gcc, Compiler::Clang, Compiler::Own],
        }
    }

    fn command(self, source: &Path) -> Command {
        let cpp = source.extension().is_some_and(|e| e == "cpp");
        Command::new(match (self, cpp) {
            (Compiler::Gcc, false) => "gcc",
            (Compiler::Gcc, true) => "g++",
            (Compiler::Clang | Compiler::Own | Compiler::AllHooks, false) => "clang-19",
            (Compiler::Clang | Compiler::Own | Compiler::AllHooks, true) => "clang++-19",
            (Compiler::Rustc, _) => "rustc",
        })
    }
}

pub fn is_openmp(source: &Path) -> bool {
    source.file_name().is_some_and(|n| n.to_string_lossy().starts_with("omp_"))
}

/// Sources in a folder beside the tests.
pub fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder is part of the repository");
    let mut list: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "c" || e == "cpp" || e == "rs"))
        .collect();
    list.sort();
    list
}

/// A directory for what a test builds.
pub fn workspace(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).expect("the target directory is writable");
    directory
}

/// The runtime's files.
pub fn libraries() -> &'static Libraries {
    static INSTALLED: OnceLock<Libraries> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        Libraries::install(&workspace("libraries")).expect("the target directory is writable")
    })
}

/// A program with the runtime linked in.
pub struct Built {
    pub program: PathBuf,
}

impl Built {
    pub fn new(
        source: &Path,
        compiler: Compiler,
        fixed: bool,
        into: &Path,
    ) -> Result<Built, String> {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let twin = if fixed { "fixed" } else { "buggy" };
        let program = into.join(format!("{stem}.{compiler:?}.{twin}"));
        let object = program.with_extension(format!("{twin}.o"));
        if compiler == Compiler::Rustc {
            build_rust(source, fixed, &program)?;
            return Ok(Built { program });
        }
        let mut compile = compiler.command(source);
        compile.args(["-O1", "-g", "-fsanitize=thread", "-c"]).arg(source).arg("-o").arg(&object);
        compile.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
        if fixed {
            compile.arg("-DFIXED");
        }
        compile.args(options(source));
        let openmp: &[&str] = if is_openmp(source) { &["-fopenmp"] } else { &[] };
        let rules = match compiler {
            Compiler::Own => Some(Rules::ALL),
            Compiler::AllHooks => Some(Rules::NONE),
            Compiler::Gcc | Compiler::Clang | Compiler::Rustc => None,
        };
        if rules.is_some() {
            compile.arg("-emit-llvm");
        }
        succeed(compile.args(openmp))?;
        if let Some(rules) = rules {
            change_hooks(&object, rules)?;
            let mut second_half = compiler.command(source);
            second_half.args(["-w", "-O1"]).args(options(source)).args(SECOND_HALF);
            let bitcode = object.with_extension("bc");
            std::fs::rename(&object, &bitcode).map_err(|e| e.to_string())?;
            succeed(second_half.arg(&bitcode).arg("-o").arg(&object))?;
        }
        let mut link = compiler.command(source);
        link.args(openmp).arg(&object).arg(&libraries().archive).arg("-o").arg(&program);
        succeed(&mut link)?;
        Ok(Built { program })
    }
}

/// Rewrites bitcode that clang has made.
fn change_hooks(bitcode: &Path, rules: Rules) -> Result<(), String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let of_clang = || Library::of_compiler(&["clang-19".into()]).map_err(|e| e.to_string());
    let library = LIBRARY.get_or_init(of_clang).as_ref().map_err(Clone::clone)?;
    selvedge_instrument::races(library, bitcode, rules).map_err(|e| e.to_string())?;
    Ok(())
}

/// Builds a program of `tests/controlled`, or elsewhere relative to it.
pub fn build(source: &str, fixed: bool) -> Built {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlled").join(source);
    let compiler = if source.ends_with(".rs") { Compiler::Rustc } else { Compiler::Gcc };
    // Tests that share a program run at the same time.
    let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
    let folder = workspace("control").join(test);
    std::fs::create_dir_all(&folder).expect("the target directory is writable");
    Built::new(&path, compiler, fixed, &folder).expect("it compiles")
}

pub fn settings(fork: bool) -> Settings {
    // No execution of these tests is long, but the machine may be busy.
    Settings { fork, time: Duration::from_secs(60), ..Settings::default() }
}

pub fn control(built: &Built, fork: bool) -> Controlled {
    control_with(built, settings(fork))
}

pub fn control_with(built: &Built, settings: Settings) -> Controlled {
    let none: [&str; 0] = [];
    Controlled::new(&built.program, none, libraries(), settings).expect("there is memory")
}

/// The threads that wait for ever, in the order of their numbers; none if the execution did not end so.
pub fn blocked(execution: &Execution) -> Vec<Blocked> {
    match &execution.outcome {
        selvedge_engine::Outcome::Failed(finding) => match &finding.subject {
            Subject::Program(stuck @ Failure::Stuck { .. }) => stuck.blocked(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// One execution at random.
pub fn run(program: &mut Controlled, seed: u64) -> Execution {
    let mut walk = RandomWalk::default();
    next(program, &mut Budget::new(seed, 1), &mut walk).expect("one execution is wanted")
}

/// The next execution of a search.
pub fn next(
    program: &mut Controlled,
    budget: &mut Budget,
    strategy: &mut dyn Strategy,
) -> Option<Execution> {
    budget.begin(strategy).then(|| program.run(strategy).expect("it is controlled"))
}

fn text_of(source: &Path) -> String {
    std::fs::read_to_string(source).unwrap_or_default()
}

/// What a source wants its compiler told, in its first line: `// options: -std=c++20`.
fn options(source: &Path) -> Vec<String> {
    let text = text_of(source);
    let first = text.lines().next().and_then(|l| l.strip_prefix("// options: "));
    first.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Builds a Rust program on the stable toolchain, with its standard library as it is.
fn build_rust(source: &Path, fixed: bool, program: &Path) -> Result<(), String> {
    let mut compile = Command::new("rustc");
    compile.env("RUSTC_BOOTSTRAP", "1").args(["--edition", "2024", "-Copt-level=1", "-g"]);
    compile.args(["-Zsanitizer=thread", "-Zexternal-clangrt", "-Awarnings"]);
    compile.args(["-Cunsafe-allow-abi-mismatch=sanitizer", "--target", TARGET]);
    // The twins are built at the same time, so their intermediate files need names of their own.
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let twin = if fixed { "fixed" } else { "buggy" };
    compile.arg(format!("--crate-name={stem}_{twin}"));
    if fixed {
        compile.args(["--cfg", "fixed"]);
    }
    for argument in rust_link_arguments()? {
        compile.arg(format!("-Zpre-link-arg={argument}"));
    }
    succeed(compile.arg(source).arg("-o").arg(program))
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The runtime and the stubs for the standard library, in front of everything else.
fn rust_link_arguments() -> Result<&'static [String], String> {
    static ARGUMENTS: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    let arguments = ARGUMENTS.get_or_init(|| {
        let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
        let sysroot = sysroot.map_err(|e| e.to_string())?.stdout;
        let sysroot = String::from_utf8_lossy(&sysroot).trim().to_owned();
        let folder = Path::new(&sysroot).join("lib/rustlib").join(TARGET).join("lib");
        let mut files = std::fs::read_dir(&folder).map_err(|e| e.to_string())?;
        let rlib = files.find_map(|f| {
            let path = f.ok()?.path();
            let name = path.file_name()?.to_string_lossy().into_owned();
            (name.starts_with("libstd-") && name.ends_with(".rlib")).then_some(path)
        });
        let stubs = Stubs::for_library(&rlib.ok_or("no libstd")?).map_err(|e| e.to_string())?;
        let (text, object) =
            (workspace("stubs").join("stubs.s"), workspace("stubs").join("stubs.o"));
        std::fs::write(&text, &stubs.assembly).map_err(|e| e.to_string())?;
        succeed(Command::new("cc").arg("-c").arg(&text).arg("-o").arg(&object))?;
        let mut arguments = vec!["-Wl,--whole-archive".to_owned()];
        arguments.push(libraries().archive.display().to_string());
        arguments.push("-Wl,--no-whole-archive".to_owned());
        arguments.push(object.display().to_string());
        arguments.extend(stubs.link_arguments());
        Ok(arguments)
    });
    arguments.as_deref().map_err(Clone::clone)
}

/// Runs a command, and takes what it says if it fails.
pub fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Runs a program under observation; what it prints is of no interest.
pub fn observe(program: &Path, form: Form) -> Result<Outcome, String> {
    let mut command = Command::new(program);
    command.stdout(Stdio::null());
    observe_with(command, form, Options::default(), &mut |_: &Event, _: &Symbols| {})
}

/// The same with everything chosen.
pub fn observe_with(
    command: Command,
    form: Form,
    options: Options,
    observer: &mut dyn selvedge_runtime::Observe,
) -> Result<Outcome, String> {
    let session = Session::start(command, form, libraries(), options).map_err(|e| e.to_string())?;
    let mut symbols = Symbols::default();
    session.finish(&mut symbols, &mut ByModule, observer).map_err(|e| e.to_string())
}

/// Source lines of a program.
pub struct Lines(addr2line::Loader);

impl Lines {
    pub fn new(program: &Path) -> Result<Lines, String> {
        addr2line::Loader::new(program).map(Lines).map_err(|e| e.to_string())
    }

    /// The line of the call that returns to `pc`. Where an optimiser has merged lines and left none,
    /// the nearest before it.
    pub fn of(&self, pc: u64, modules: &Modules) -> Option<u32> {
        let module = modules.find(pc)?;
        let line = |addr| self.0.find_location(addr).ok().flatten()?.line.filter(|&l| l > 0);
        (1..40).find_map(|back| line(pc - module.base - back))
    }
}
