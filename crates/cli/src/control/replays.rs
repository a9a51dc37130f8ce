//! Schedules of native programs outlive a change of directory and edits elsewhere in the source.

use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_engine::executor::execute;
use selvedge_engine::replay::shortened;
use selvedge_engine::{Ask, Effort, Ending, Execution, Key, Noted, Outcome, Sought};
use selvedge_explore::{Budget, RandomWalk, Rng};
use selvedge_model::{Op, Site};
use selvedge_runtime::{ByModule, Controlled, Libraries, Resolve, Settings};

use super::cases::interleaving;
use crate::program::symbolize::SharedSymbolizer;

/// A directory of its own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir()
            .join(format!("selvedge-replays-{}", std::process::id()))
            .join(name);
        std::fs::create_dir_all(&path).expect("temporary files can be written");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines that an edit puts in place of the marks of a source.
fn edited(source: &str, language: &str) -> String {
    let function = match language {
        "rs" => {
            "#[allow(dead_code)]\nfn added(x: u32) -> u32 {\n    let y = x + 1;\n    y * y\n}\n"
        }
        _ => "int added(int x);\nint added(int x) {\n    int y = x + 1;\n    return y * y;\n}\n",
    };
    source
        .replace("// EDIT: above", "// Some\n// more\n// lines.\n")
        .replace("// EDIT: function", function)
}

fn compile(source: &str, language: &str, optimised: bool, into: &Folder) -> PathBuf {
    let libraries = Libraries::install(&into.0.join("libraries")).expect("they can be written");
    let (file, program) = (into.0.join(format!("transfer.{language}")), into.0.join("program"));
    std::fs::write(&file, source).expect("it can be written");
    let level = if optimised { "1" } else { "0" };
    let mut command = match language {
        "rs" => {
            let mut rustc = Command::new("rustc");
            rustc.env("RUSTC_BOOTSTRAP", "1").args([
                "--edition",
                "2024",
                "-g",
                "-Zsanitizer=thread",
            ]);
            rustc.arg(format!("-Copt-level={level}"));
            rustc.args(["-Zexternal-clangrt", "-Cunsafe-allow-abi-mismatch=sanitizer"]);
            rustc.args(["--target", "x86_64-unknown-linux-gnu"]);
            let archive = libraries.archive.display().to_string();
            for argument in ["-Wl,--whole-archive", &archive, "-Wl,--no-whole-archive"] {
                rustc.arg(format!("-Zpre-link-arg={argument}"));
            }
            rustc
        }
        _ => {
            let mut cc = Command::new(if language == "cpp" { "g++" } else { "gcc" });
            cc.args([&format!("-O{level}"), "-g", "-fsanitize=thread", "-nostdlib", "-r"]);
            let object = into.0.join("program.o");
            succeed(cc.arg(&file).arg("-o").arg(&object));
            let mut link = Command::new(if language == "cpp" { "g++" } else { "gcc" });
            succeed(link.arg(&object).arg(&libraries.archive).arg("-o").arg(&program));
            return program;
        }
    };
    succeed(command.arg(&file).arg("-o").arg(&program));
    program
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the compiler is installed");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn controlled(program: &Path, root: &Folder, resolver: Option<Box<dyn Resolve>>) -> Controlled {
    let none: [&str; 0] = [];
    let settings = Settings { time: std::time::Duration::from_secs(60), ..Settings::default() };
    let libraries = Libraries::install(&root.0.join("libraries")).expect("they can be written");
    let mut program = Controlled::new(program, none, &libraries, settings).expect("memory");
    let resolver = resolver.unwrap_or_else(|| Box::new(SharedSymbolizer::new(&root.0)));
    program.resolve_with(resolver);
    program
}

fn run(program: &mut Controlled, seed: u64) -> Execution {
    let mut walk = RandomWalk::default();
    assert!(Budget::new(seed, 1).begin(&mut walk));
    program.run(&mut walk).expect("it is controlled")
}

/// Threads, operations and functions: what an edit elsewhere leaves as it is.
fn told(execution: &Execution, program: &Controlled) -> Vec<String> {
    let function = |site| match program.symbols.site(site) {
        Site::Source(frame, _) => frame.function.to_string(),
        Site::Label(label) => label.to_string(),
    };
    execution
        .events
        .iter()
        .filter(|e| !matches!(e.op, Op::Begin | Op::End))
        .map(|e| format!("{} {:?} in {}", e.thread.0, e.op, function(e.site)))
        .collect()
}

/// How often to replay: 100 shows what is promised, fewer that it is not broken.
fn times() -> usize {
    std::env::var("SELVEDGE_REPLAYS").ok().and_then(|n| n.parse().ok()).unwrap_or(5)
}

/// Records schedules of one build and replays them with another, of an edited source in another
/// directory.
fn replays_after_an_edit(language: &str, optimised: bool) {
    let source = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs/edits")
            .join(format!("transfer.{language}")),
    )
    .expect("it is part of the repository");
    let name = format!("{language}-{optimised}");
    let (here, there) = (Folder::new(&format!("{name}-a")), Folder::new(&format!("{name}-b/deep")));
    let mut before = controlled(&compile(&source, language, optimised, &here), &here, None);
    let edited = compile(&edited(&source, language), language, optimised, &there);
    let mut after = controlled(&edited, &there, None);
    let mut unaware = controlled(&edited, &there, Some(Box::new(ByModule)));
    let mut diverged = 0;
    for seed in 0..4 {
        let recorded = run(&mut before, seed);
        let expected = told(&recorded, &before);
        assert_eq!(recorded.outcome, Outcome::Exited(0));
        assert!(recorded.schedule.preemptions() > 0, "threads are stopped");
        let text = recorded.schedule.to_string();
        for _ in 0..times() {
            let schedule = text.parse().expect("its text is a schedule");
            let (again, divergence) = after.replay(&schedule).expect("it is controlled");
            assert_eq!(divergence, None, "{text}");
            assert_eq!(told(&again, &after), expected);
            assert_eq!((&again.outcome, &again.output), (&recorded.outcome, &recorded.output));
        }
        let (_, divergence) = unaware.replay(&recorded.schedule).expect("it is controlled");
        diverged += usize::from(divergence.is_some());
    }
    assert!(diverged > 0, "the edit moved the code");
}

#[test]
fn a_schedule_of_c_outlives_an_edit() {
    replays_after_an_edit("c", true);
}

#[test]
fn a_schedule_of_cpp_outlives_an_edit() {
    replays_after_an_edit("cpp", true);
    replays_after_an_edit("cpp", false);
}

#[test]
fn a_schedule_of_rust_outlives_an_edit() {
    replays_after_an_edit("rs", true);
    replays_after_an_edit("rs", false);
}

/// `std::mutex::lock` is one place for all mutexes; what counts is who called it.
#[test]
fn locks_of_the_standard_library_are_taken_where_the_user_takes_them() {
    let here = Folder::new("callers");
    let source = include_str!("../../tests/programs/edits/transfer.cpp");
    for optimised in [true, false] {
        let program = compile(source, "cpp", optimised, &here);
        let mut program = controlled(&program, &here, None);
        let execution = run(&mut program, 0);
        let mut lines: Vec<(String, u32)> = execution
            .events
            .iter()
            .filter(|e| matches!(e.op, Op::Acquire(..)))
            .filter_map(|e| program.symbols.site(e.site).frame().cloned())
            .map(|frame| (frame.file.to_string(), frame.line))
            .collect();
        lines.sort();
        lines.dedup();
        let expected = [18, 20, 28, 31].map(|line| ("transfer.cpp".to_owned(), line));
        assert_eq!(lines, expected, "optimised: {optimised}");
        let symbols = program.named(&execution.events);
        let mut names: Vec<&str> = symbols.locks.entries().iter().map(|n| &**n).collect();
        names.sort_unstable();
        assert_eq!(names, ["from", "to"]);
        assert_eq!(symbols.thread(selvedge_model::ThreadId(0)), "main");
    }
}

/// A deadlock of a program that does other things before, minimised and shown.
#[test]
fn a_deadlock_is_minimised_and_explained() {
    let here = Folder::new("explained");
    let source = include_str!("../../tests/programs/edits/opposite.c");
    let program = compile(source, "c", true, &here);
    let mut program = controlled(&program, &here, None);
    let ask = Ask { noted: Noted::Events, ..Ask::default() };
    let mut walk = RandomWalk::default();
    let mut run = |n| {
        let execution = execute(&mut program, &mut walk, Rng::of_execution(7, n), &ask);
        let execution = execution.expect("it is controlled").expect("a walk always begins");
        let key = Ending::of(&mut program, &execution).key;
        (key, execution.schedule)
    };
    let (key, found) = (0..500)
        .map(&mut run)
        .filter(|(key, _)| matches!(key, Key::Failed(_)))
        .max_by_key(|(_, schedule)| schedule.preemptions())
        .expect("some schedule deadlocks");
    let Key::Failed(id) = key else { unreachable!("filtered") };
    let sought = Sought { failure: Some(id), ..Sought::default() };
    let effort = Effort { executions: 100, time: std::time::Duration::from_secs(60) };
    let shown = shortened(&mut program, &found, &sought, effort, &ask).expect("it is controlled");
    let shown = shown.expect("the schedule shows it");
    assert!(found.preemptions() > 1, "{found}");
    assert_eq!(shown.execution.schedule.preemptions(), 1, "{}", shown.execution.schedule);
    assert_eq!(shown.divergence, None);
    let rows = interleaving(&shown, &[]);
    let mut sources = crate::terminal::sources(std::slice::from_ref(&here.0));
    let text = selvedge_report::format::interleaving(&rows, &mut sources, 120);
    let (_, text) = text.split_once('\n').expect("a heading and rows");
    insta::assert_snapshot!("deadlock", anstream::adapter::strip_str(text));
}
