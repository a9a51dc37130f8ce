//! What users see of `selvedge cc`, `selvedge c++`, `selvedge run`, `selvedge report` and
//! `cargo selvedge`, on small programs built with gcc and with clang.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A project directory of its own for each test, gone afterwards.
struct Project(PathBuf);

impl Project {
    fn new(name: &str) -> Project {
        let path =
            std::env::temp_dir().join(format!("selvedge-native-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join(".selvedge")).unwrap();
        Project(path)
    }

    /// Copies a source into the project, so that its paths are the project's.
    fn source(&self, name: &str) -> &str {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
        fs::copy(from, self.0.join(Path::new(name).file_name().unwrap())).unwrap();
        name.to_owned().leak()
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.0).env("NO_COLOR", "1").stdin(Stdio::null());
        for variable in ["SELVEDGE_CC", "SELVEDGE_CXX", "TSAN_OPTIONS"] {
            command.env_remove(variable);
        }
        command
    }

    fn selvedge(&self, args: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_selvedge"), args).output().unwrap()
    }

    /// Calls a program that must succeed.
    fn call(&self, program: &str, args: &[&str]) {
        let output = self.command(program, args).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {}", stderr(&output));
    }

    /// Builds a program of one source.
    fn build(&self, compiler: Compiler, source: &str, options: &[&str]) {
        let source = self.source(source);
        let (driver, underneath) = compiler.for_source(source);
        let underneath = format!("--selvedge-compiler={underneath}");
        let mut args = vec![driver, &underneath, "-O1", source, "-o", "program"];
        args.extend(options);
        self.call(env!("CARGO_BIN_EXE_selvedge"), &args);
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut all = vec!["run", "--", "./program"];
        all.extend(args);
        self.selvedge(&all)
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Compiler {
    Gcc,
    Clang,
}

const BOTH: [Compiler; 2] = [Compiler::Gcc, Compiler::Clang];

impl Compiler {
    fn for_source(self, source: &str) -> (&'static str, &'static str) {
        match (self, source.ends_with(".cpp")) {
            (Compiler::Gcc, false) => ("cc", "gcc"),
            (Compiler::Gcc, true) => ("c++", "g++"),
            (Compiler::Clang, false) => ("cc", "clang-19"),
            (Compiler::Clang, true) => ("c++", "clang++-19"),
        }
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The code and everything printed, as one text.
fn shown(output: &Output) -> String {
    let code = output.status.code().map_or("none".to_owned(), |c| c.to_string());
    format!("stdout: {}\n{}exit {code}", stdout(output).trim_end(), stderr(output))
}

/// The text without the number of events, which depends on what the C library does.
fn normalised(text: &str) -> String {
    let Some(end) = text.find(" events in") else { return text.to_owned() };
    let start = text[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
    format!("{}N{}", &text[..start], &text[end..])
}

#[test]
fn a_race_is_shown_with_its_source_stack_variable_and_locks() {
    for compiler in BOTH {
        let project = Project::new(&format!("account-{compiler:?}"));
        project.build(compiler, "account.c", &[]);
        let output = project.run(&[]);
        insta::assert_snapshot!(format!("account_{compiler:?}"), normalised(&shown(&output)));
    }
}

#[test]
fn its_fixed_twin_is_clean() {
    for compiler in BOTH {
        let project = Project::new(&format!("account-fixed-{compiler:?}"));
        project.build(compiler, "account.c", &["-DFIXED"]);
        let output = project.run(&[]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), "5 5\n");
        assert!(stderr(&output).starts_with("nothing found: "), "{}", stderr(&output));
    }
}

#[test]
fn a_deadlock_is_predicted_and_its_fixed_twin_has_none() {
    for compiler in BOTH {
        let project = Project::new(&format!("transfer-{compiler:?}"));
        project.build(compiler, "transfer.cpp", &[]);
        let output = project.run(&[]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "only predicted: {text}");
        assert!(text.contains("deadlock between `savings` and `checking` (predicted)"), "{text}");
        assert!(text.contains("transfer.cpp:18"), "{text}");
        let strict = project.selvedge(&["run", "--fail-on", "predicted", "--", "./program"]);
        assert_eq!(strict.status.code(), Some(1));
        project.build(compiler, "transfer.cpp", &["-DFIXED"]);
        let fixed = project.selvedge(&["run", "--fail-on", "predicted", "--", "./program"]);
        assert_eq!(fixed.status.code(), Some(0), "{}", stderr(&fixed));
        assert_eq!(stdout(&fixed), "200\n");
    }
}

#[test]
fn a_lock_that_is_only_tried_cannot_deadlock() {
    let project = Project::new("try");
    let source = project.source("transfer.cpp").to_owned();
    let text = fs::read_to_string(project.0.join(&source)).unwrap();
    let blocking = "std::lock_guard<std::mutex> second(to.lock);";
    let trying = "std::unique_lock<std::mutex> second(to.lock, std::try_to_lock);";
    assert!(text.contains(blocking));
    fs::write(project.0.join("try.cpp"), text.replace(blocking, trying)).unwrap();
    project.call(env!("CARGO_BIN_EXE_selvedge"), &["c++", "try.cpp", "-o", "program"]);
    let output = project.run(&[]);
    assert!(stderr(&output).starts_with("nothing found: "), "{}", stderr(&output));
}

#[test]
fn a_stored_run_is_shown_again_as_text_and_json() {
    let project = Project::new("stored");
    project.build(Compiler::Gcc, "account.c", &[]);
    let output = project.run(&[]);
    let again = project.selvedge(&["report"]);
    let text = stdout(&again);
    assert_eq!(again.status.code(), Some(0));
    assert!(text.starts_with("run 1: ./program (linked; exited with 0)\n"), "{text}");
    assert!(text.ends_with(&stderr(&output)), "{text}");
    let json = project.selvedge(&["report", "--json", "--run", "1"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["findings"].as_array().unwrap().len(), 2);
    let first = &document["findings"][0]["sites"];
    assert_eq!(first[0]["file"], "account.c");
    assert_eq!(first[0]["stack"][1]["function"], "teller");
    assert_eq!(first[1]["held"][0]["lock"], "door");
    assert_eq!(first[0]["held"][0]["lock"], "vault");
    assert_eq!(first[0]["stack_likely"], true);
    let missing = project.selvedge(&["report", "--run", "7"]);
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(
        stderr(&missing),
        "error: there is no run 7; `selvedge report --runs` lists the runs\n"
    );
}

#[test]
fn findings_are_the_same_however_the_runtime_gets_in() {
    let project = Project::new("forms");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let linked = project.run(&["race"]);
    project.call("gcc", &["-fsanitize=thread", "-g", "-O1", "ending.c", "-o", "program"]);
    let replaced = project.run(&["race"]);
    let ids = |output: &Output| -> Vec<String> {
        let text = stderr(output);
        let lines = text.lines().filter_map(|l| l.strip_prefix("error[")?.split(']').next());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(ids(&linked), ids(&replaced), "{}", stderr(&replaced));
    assert_eq!(ids(&linked).len(), 1);
}

#[test]
fn a_plain_program_is_observed_as_far_as_it_goes_and_the_user_told() {
    let project = Project::new("plain");
    let source = project.source("transfer.cpp");
    let include = format!("-I{}/../runtime/include", env!("CARGO_MANIFEST_DIR"));
    project.call("g++", &["-g", "-O2", &include, source, "-o", "program"]);
    let output = project.run(&[]);
    let text = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "200\n"));
    assert!(text.contains("deadlock between `savings` and `checking` (predicted)"), "{text}");
    assert!(text.contains("Selvedge saw only its synchronization"), "{text}");
    assert!(text.contains("CC=\"selvedge cc\""), "{text}");
}

#[test]
fn what_cannot_be_observed_is_3_with_a_reason() {
    let project = Project::new("unobservable");
    fs::write(project.0.join("alone.c"), "int main(void) { return 0; }\n").unwrap();
    project.call("gcc", &["alone.c", "-o", "alone"]);
    project.call("gcc", &["-static", "alone.c", "-o", "static"]);
    project.call("gcc", &["-fsanitize=address", "alone.c", "-o", "asan"]);
    project.call("gcc", &["-fsanitize=thread", "-static-libtsan", "alone.c", "-o", "tsan"]);
    fs::write(project.0.join("script"), "#!/bin/sh\necho hello\n").unwrap();
    project.call("chmod", &["+x", "script"]);
    for (program, reason) in [
        (
            "./alone",
            "./alone: this program cannot be observed: it is not instrumented, and it called no synchronization function",
        ),
        (
            "./static",
            "./static: this program cannot be observed: it is statically linked and not instrumented",
        ),
        (
            "./asan",
            "./asan: this program cannot be observed: it was built with the address sanitizer",
        ),
        (
            "./tsan",
            "./tsan: this program cannot be observed: ThreadSanitizer's runtime is statically linked",
        ),
        ("./script", "./script: this is a script; run its interpreter"),
        ("./alone.c", "./alone.c: the file is not executable"),
        ("./missing", "./missing: cannot read: "),
        ("/", "/: this is a directory"),
    ] {
        let output = project.selvedge(&["run", "--", program]);
        assert_eq!(output.status.code(), Some(3), "{program}: {}", stderr(&output));
        assert!(stderr(&output).starts_with(&format!("error: {reason}")), "{}", stderr(&output));
    }
    let runs = stdout(&project.selvedge(&["report", "--runs"]));
    assert!(runs.starts_with("run 1: ./alone (preloaded; could not be observed), 2"), "{runs}");
    assert!(runs.ends_with(" UTC: 0 findings\n"), "{runs}");
}

#[test]
fn without_findings_the_exit_code_is_the_programs() {
    let project = Project::new("codes");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let code = |how| project.run(&[how]).status.code();
    assert_eq!(code(""), Some(0));
    assert_eq!(code("five"), Some(5));
    assert_eq!(code("race"), Some(1));
    assert_eq!(code("race-five"), Some(1), "findings come first");
    let never = project.selvedge(&["run", "--fail-on", "never", "--", "./program", "race-five"]);
    assert_eq!(never.status.code(), Some(5));
    assert!(stderr(&never).contains("data race on `shared`"));
}

#[test]
fn a_crash_is_a_finding_and_loses_none() {
    let project = Project::new("crash");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let output = project.run(&["race-crash"]);
    let text = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), "running\n"));
    assert!(text.contains("crash: program, SIGSEGV (segmentation fault) (observed)"), "{text}");
    assert!(text.contains("data race on `shared`"), "{text}");
    assert!(text.ends_with("the program was killed by SIGSEGV (segmentation fault)\n"), "{text}");
    assert!(stdout(&project.selvedge(&["report"])).contains("data race on `shared`"));
}

#[test]
fn other_formats_have_standard_output_for_themselves() {
    let project = Project::new("formats");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let run = ["run", "--format", "json", "--", "./program", "race-crash"];
    let output = project.selvedge(&run);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kinds: Vec<&str> =
        report["findings"].as_array().unwrap().iter().filter_map(|f| f["kind"].as_str()).collect();
    assert_eq!(kinds, ["data-race", "crash"]);
    assert!(stderr(&output).starts_with("running\n"), "{}", stderr(&output));
    let stored = stdout(&project.selvedge(&["report", "--format", "json"]));
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["findings"], report["findings"]);
}

/// Starts the program under observation, and waits until it says that it runs.
fn start(project: &Project, how: &str) -> Child {
    let mut child = project
        .command(env!("CARGO_BIN_EXE_selvedge"), &["run", "--", "./program", how])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
    child
}

#[test]
fn killing_the_tool_leaves_the_findings_so_far() {
    let project = Project::new("killed");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let mut child = start(&project, "race-wait");
    // The finding is on its way; it must arrive without anything else having to happen.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let report = project.selvedge(&["report"]);
        if stdout(&report).contains("data race on `shared`") {
            break;
        }
        assert!(Instant::now() < deadline, "{}{}", stdout(&report), stderr(&report));
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    child.wait().unwrap();
    let report = project.selvedge(&["report"]);
    assert!(stdout(&report).contains("data race on `shared`"), "{}", stdout(&report));
    assert!(stderr(&report).contains("was killed"), "{}", stderr(&report));
    // The program itself is still there; it goes on without us.
    let _ = stdin.write_all(b"\n");
}

#[test]
fn a_signal_to_the_tool_is_handed_on_and_the_report_still_comes() {
    let project = Project::new("signal");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let child = start(&project, "race-pause");
    project.call("kill", &["-TERM", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.signal(), None);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("data race on `shared`"), "{text}");
    assert!(text.ends_with("the program was killed by SIGTERM\n"), "{text}");
}

#[test]
fn an_interrupt_from_the_terminal_ends_the_program_and_not_the_report() {
    let project = Project::new("interrupt");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let mut command =
        project.command(env!("CARGO_BIN_EXE_selvedge"), &["run", "--", "./program", "race-pause"]);
    // A terminal sends the signal to all of its foreground group: here to the tool and the program.
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    project.call("kill", &["-INT", "--", &format!("-{}", child.id())]);
    let output = child.wait_with_output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("data race on `shared`"), "{text}");
    assert!(text.ends_with("the program was killed by SIGINT\n"), "{text}");
}

#[test]
fn a_program_that_becomes_another_keeps_its_findings() {
    let project = Project::new("exec");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let output = project.run(&["race-exec"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(stdout(&output), "running\nanother program\n");
    assert!(stderr(&output).contains("data race on `shared`"), "{}", stderr(&output));
    assert!(stdout(&project.selvedge(&["report"])).contains("data race on `shared`"));
}

#[test]
fn threads_by_the_thousand_and_forks_beside_threads_are_observed() {
    let project = Project::new("many");
    let faults = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/tests/faults/");
    for (source, said) in [("threads.c", "2001 threads"), ("exec.c", "2 threads")] {
        let source = format!("{faults}{source}");
        project.call(env!("CARGO_BIN_EXE_selvedge"), &["cc", "-O1", &source, "-o", "program"]);
        let output = project.run(&[]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.starts_with("nothing found: ") && text.contains(said), "{text}");
    }
}

#[test]
fn too_little_address_space_is_3_with_a_reason() {
    let project = Project::new("address-space");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let tool = env!("CARGO_BIN_EXE_selvedge");
    let script = format!("ulimit -v 8000000; exec {tool} run -- ./program race");
    let output = project.command("sh", &["-c", &script]).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("raise `ulimit -v`"), "{text}");
    assert!(stdout(&project.selvedge(&["report", "--runs"])).contains("could not be observed"));
}

#[test]
fn a_full_disk_loses_no_finding_of_the_report_and_leaves_the_store_readable() {
    let project = Project::new("full");
    project.build(Compiler::Gcc, "ending.c", &[]);
    let tool = env!("CARGO_BIN_EXE_selvedge");
    // A file system of its own, with room for a first run, and then with none.
    let script = format!(
        "mount -t tmpfs -o size=4m none .selvedge || exit 77
         {tool} run -- ./program race || true
         cat /dev/zero > .selvedge/filler
         {tool} run -- ./program race; code=$?
         rm .selvedge/filler
         {tool} report --run 1
         exit $code"
    );
    let args = ["--map-root-user", "--mount", "sh", "-c", &script];
    let output = project.command("unshare", &args).output().unwrap();
    let text = stderr(&output);
    if output.status.code() == Some(77) || text.starts_with("unshare:") {
        println!("no file system can be mounted here: a full disk was not tried");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.matches("error[data-race-").count(), 2, "both runs report: {text}");
    assert!(text.contains("stored"), "and say that the second is not: {text}");
    assert!(stdout(&output).contains("data race on `shared`"), "{}{text}", stdout(&output));
}

#[test]
fn a_store_that_cannot_be_made_does_not_stop_the_run() {
    let project = Project::new("unstored");
    project.build(Compiler::Gcc, "ending.c", &[]);
    fs::remove_dir_all(project.0.join(".selvedge")).unwrap();
    fs::write(project.0.join(".selvedge"), "in the way").unwrap();
    let output = project.run(&["race"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with("warning: findings will not be stored: "), "{text}");
    assert!(text.contains("data race on `shared`"), "{text}");
}

#[test]
fn suppressed_findings_are_counted_and_not_shown() {
    let project = Project::new("suppressed");
    project.build(Compiler::Gcc, "account.c", &[]);
    fs::write(project.0.join("tsan.supp"), "# known\nrace:^deposit$\n").unwrap();
    let output = project.selvedge(&["run", "--suppressions", "tsan.supp", "--", "./program"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).ends_with("2 findings were suppressed\n"), "{}", stderr(&output));
    let log = project.selvedge(&["report", "--format", "sarif"]);
    let log: serde_json::Value = serde_json::from_slice(&log.stdout).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let rule = |r: &serde_json::Value| r["suppressions"][0]["justification"].clone();
    let rules: Vec<_> = results.iter().map(rule).collect();
    assert_eq!(rules, ["the rule race:^deposit$", "the rule race:^deposit$"], "{log:#}");
    fs::write(project.0.join("tsan.supp"), "race:total\n").unwrap();
    let mut command = project.command(env!("CARGO_BIN_EXE_selvedge"), &["run", "--", "./program"]);
    let output =
        command.env("TSAN_OPTIONS", "halt_on_error=0:suppressions=tsan.supp").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).ends_with("1 finding was suppressed\n"), "{}", stderr(&output));
    let wrong = project.selvedge(&["run", "--suppressions", "no.supp", "--", "./program"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn objects_archives_and_shared_libraries_are_built_as_make_would() {
    for compiler in BOTH {
        let project = Project::new(&format!("pieces-{compiler:?}"));
        let (library, main) = (project.source("library.c"), project.source("uses_library.c"));
        let cc = |args: &[&str]| {
            let underneath = format!("--selvedge-compiler={}", compiler.for_source("a.c").1);
            let all: Vec<&str> = [&["cc", underneath.as_str()], args].concat();
            project.call(env!("CARGO_BIN_EXE_selvedge"), &all);
        };
        cc(&["-fPIC", "-c", library, "-o", "library.o"]);
        cc(&["-c", main, "-o", "main.o", "-MMD", "-MF", "main.d"]);
        assert!(project.0.join("main.d").exists());
        cc(&["-shared", "-Wl,-z,defs", "library.o", "-o", "libwork.so"]);
        project.call("ar", &["rcs", "libwork.a", "library.o"]);
        for link in [
            &["main.o", "libwork.a", "-o", "program"][..],
            &["main.o", "-L.", "-lwork", "-Wl,-rpath,$ORIGIN", "-o", "program"],
            &[main, library, "-o", "program"],
        ] {
            cc(link);
            let output = project.run(&[]);
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{link:?}: {text}");
            assert!(text.contains("data race on `library_shared`"), "{link:?}: {text}");
        }
    }
}

#[test]
fn a_library_loaded_later_is_observed_too() {
    let project = Project::new("dlopen");
    let library = project.source("library.c");
    fs::write(
        project.0.join("main.c"),
        "#include <dlfcn.h>\nint main(void) {\n    void *l = dlopen(\"./libwork.so\", RTLD_NOW);\n    \
         ((void (*)(void))dlsym(l, \"library_work\"))();\n    return 0;\n}\n",
    )
    .unwrap();
    let selvedge = env!("CARGO_BIN_EXE_selvedge");
    project.call(selvedge, &["cc", "-shared", "-fPIC", library, "-o", "libwork.so"]);
    project.call(selvedge, &["cc", "main.c", "-o", "program"]);
    let output = project.run(&[]);
    let text = stderr(&output);
    assert!(text.contains("data race on `library_shared`"), "{text}");
    assert!(text.contains("library.c:7"), "{text}");
}

#[test]
fn an_unmodified_crate_is_tested_and_its_fixed_twin_is_clean() {
    let project = Project::new("crate");
    fs::create_dir(project.0.join("src")).unwrap();
    let manifest =
        "[package]\nname = \"counter\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n";
    fs::write(project.0.join("Cargo.toml"), manifest).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/counter.rs");
    fs::copy(source, project.0.join("src/lib.rs")).unwrap();
    // Crates that know of a sanitizer compile other code.
    let script = "fn main() { assert_eq!(std::env::var_os(\"CARGO_CFG_SANITIZE\"), None) }\n";
    fs::write(project.0.join("build.rs"), script).unwrap();
    let test = |filter: &str| {
        let options = ["selvedge", "--suppressions", "none.supp", "--fail-on", "predicted"];
        let args = [&options[..], &["test", "--lib", "--offline", filter]].concat();
        fs::write(project.0.join("none.supp"), "race:no_such_function\n").unwrap();
        let mut command = project.command(env!("CARGO_BIN_EXE_cargo-selvedge"), &args);
        command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").output().unwrap()
    };
    let buggy = test("buggy");
    let text = stderr(&buggy);
    assert!(!buggy.status.success(), "{text}");
    assert!(text.contains("data race on `counter::COUNTER`"), "{text}");
    assert!(text.contains("src/lib.rs:"), "{text}");
    let half = stderr(&test("half_locked"));
    assert!(half.contains("writes, holding `counter::tests::LEFT`"), "{half}");
    assert!(half.contains("writes, holding no lock"), "{half}");
    let crossed = stderr(&test("crossed"));
    assert!(crossed.contains("deadlock between `counter::tests::"), "{crossed}");
    assert!(crossed.contains("acquires `counter::tests::LEFT`, holding `counter::tests::RIGHT`"));
    assert!(crossed.contains("holding `counter::tests::LEFT`"), "{crossed}");
    for clean in ["fixed", "straight", "sleepers"] {
        let output = test(clean);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("nothing found: "), "{}", stderr(&output));
        assert!(stdout(&output).contains("1 passed"), "{}", stdout(&output));
    }
}

/// Fewer hooks: one executable, which tells races of loops when it runs, and every access under control.
#[test]
fn own_hooks_tell_what_the_compilers_do() {
    let project = Project::new("own-hooks");
    let source = project.source("sweeps.c");
    let cc = ["cc", "--selvedge-compiler=clang-19", "-O2", "-pthread"];
    let mut events = Vec::new();
    for hooks in ["compiler", "own"] {
        let option = format!("--selvedge-hooks={hooks}");
        let compile = [&cc[..], &[&option, "-c", source, "-o", "sweeps.o"]].concat();
        project.call(env!("CARGO_BIN_EXE_selvedge"), &compile);
        let link = [&cc[..], &[&option, "sweeps.o", "-o", "program"]].concat();
        project.call(env!("CARGO_BIN_EXE_selvedge"), &link);
        let ran = project.run(&[]);
        assert_eq!(stdout(&ran), "2047.5 2047 4095 6\n");
        let report = stderr(&ran);
        assert!(report.contains("data race on `to[2047]` (observed)"), "{report}");
        assert!(report.contains("sweeps.c:15:15") && report.contains("1 finding: "), "{report}");
        assert!(!report.contains("unknown code"), "{report}");
        let explored = project.selvedge(&[
            "explore",
            "--strategy",
            "random",
            "--schedules",
            "3",
            "--seed",
            "7",
            "--format",
            "json",
            "--",
            "./program",
        ]);
        let stats: serde_json::Value = serde_json::from_str(&stdout(&explored)).unwrap();
        events.push(stats["stats"]["events"].as_u64().unwrap());
    }
    assert!(
        events[0] == events[1] && events[0] > 10_000,
        "under control both have all hooks: {events:?}"
    );
    let few = fs::read(project.0.join("program")).unwrap();
    assert!(few.windows(19).any(|w| w == b"selvedge_sweep_read"));
    let unknown = project.selvedge(&["cc", "--selvedge-hooks=none", "-c", source]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("whose hooks may be `own` or `compiler`"));
}

/// With clang, own hooks are the default, unless the command line asks for something that needs one call of clang.
#[test]
fn own_hooks_are_the_default_with_clang() {
    let project = Project::new("own-by-default");
    let source = project.source("sweeps.c");
    let cc = ["cc", "--selvedge-compiler=clang-19", "-O2", "-pthread", "-c", source];
    let has_sweeps = |options: &[&str]| {
        let object = ["-o", "made.o"];
        let built = project.selvedge(&[&cc[..], options, &object].concat());
        assert!(built.status.success(), "{}", stderr(&built));
        assert_eq!(stderr(&built), "");
        let made = fs::read(project.0.join("made.o")).unwrap();
        made.windows(19).any(|w| w == b"selvedge_sweep_read")
    };
    assert!(has_sweeps(&[]));
    assert!(has_sweeps(&["-g3", "-fPIC", "-ffunction-sections", "-MD", "-march=x86-64-v3"]));
    assert!(fs::read_to_string(project.0.join("made.d")).unwrap().contains("sweeps.c"));
    assert!(!has_sweeps(&["--selvedge-hooks=compiler"]));
    assert!(!has_sweeps(&["--coverage"]));
    assert!(project.0.join("made.gcno").exists(), "coverage is kept beside the object");
}

/// A compiler whose libLLVM is not there: its own hooks are used, a line says so, and the program is observed.
#[test]
fn without_a_library_the_compilers_hooks_are_used() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new("no-library");
    let source = project.source("sweeps.c");
    let compiler = project.0.join("clang-of-another-time");
    let script = "#!/bin/sh\nfor a; do [ \"$a\" = -dumpversion ] && echo 99.0.0 && exit; done\nexec clang-19 \"$@\"\n";
    fs::write(&compiler, script).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let underneath = format!("--selvedge-compiler={}", compiler.display());
    let own = "--selvedge-hooks=own";
    let built =
        project.selvedge(&["cc", &underneath, own, "-O2", "-pthread", source, "-o", "program"]);
    assert!(built.status.success(), "{}", stderr(&built));
    let said = stderr(&built);
    assert!(said.contains("the compiler's own hooks are used: "), "{said}");
    assert!(said.contains("install the package libllvm99"), "{said}");
    let ran = stderr(&project.run(&[]));
    assert!(ran.contains("data race on `to[2047]` (observed)"), "{ran}");
    // Where nobody asked for own hooks, one line for each program says that it lacks them.
    let object = ["cc", &underneath, "-O2", "-c", source, "-o", "sweeps.o"];
    assert_eq!(stderr(&project.selvedge(&object)), "");
    let linked = project.selvedge(&["cc", &underneath, "-pthread", "sweeps.o", "-o", "program"]);
    assert!(stderr(&linked).contains("the compiler's own hooks are used: "), "{linked:?}");
}
