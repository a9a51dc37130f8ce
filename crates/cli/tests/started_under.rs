//! `selvedge run` in surroundings that are not a developer's own shell. Each program has one race and exits with 5; where
//! it cannot be observed, that is said, with a reason.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use common::{Project, stderr, stdout};

const SELVEDGE: &str = env!("CARGO_BIN_EXE_selvedge");
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

/// A project with the program that races.
fn project(name: &str) -> Project {
    let project = Project::new(&format!("under-{name}"));
    project.build("under/race.c", &[]);
    project
}

/// The race was found.
fn found(output: &Output) {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("data race on `shared` (observed)"), "{told}");
}

/// The program was refused for this reason.
fn refused(output: &Output, code: i32, reason: &str) {
    let told = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(told.contains(reason), "{told}");
}

fn mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a command as a user without rights and without a home.
fn as_nobody(project: &Project, words: &[&str]) -> Output {
    let mut args = vec!["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    args.extend(words);
    // Only root may become another user.
    let root = rustix::process::getuid().is_root();
    let (program, args) = if root { ("setpriv", &args[..]) } else { (words[0], &words[1..]) };
    let mut command = project.command(program, args);
    let cache = project.0.join("cache");
    fs::create_dir_all(&cache).unwrap();
    mode(&cache, 0o777);
    command.env("HOME", "/nonexistent").env("XDG_CACHE_HOME", cache).output().unwrap()
}

/// The command, where every user may run it.
fn shared_selvedge(project: &Project) -> String {
    let copy = project.0.join("selvedge-copy");
    fs::copy(SELVEDGE, &copy).unwrap();
    mode(&copy, 0o755);
    copy.to_str().unwrap().to_owned()
}

#[test]
fn an_ordinary_user() {
    let project = project("user");
    mode(&project.0, 0o777);
    mode(&project.0.join(".selvedge"), 0o777);
    let selvedge = shared_selvedge(&project);
    found(&as_nobody(&project, &[&selvedge, "run", "--", "./program"]));
}

#[test]
fn a_directory_that_cannot_be_written() {
    let project = project("read-only");
    let selvedge = shared_selvedge(&project);
    fs::remove_dir_all(project.0.join(".selvedge")).unwrap();
    fs::create_dir_all(project.0.join("cache")).unwrap();
    mode(&project.0, 0o555);
    let output = as_nobody(&project, &[&selvedge, "run", "--", "./program"]);
    mode(&project.0, 0o755);
    found(&output);
    assert!(stderr(&output).contains("warning"), "nothing was stored: {}", stderr(&output));
}

/// What is stored of blocks cannot be written, whoever runs the tests.
#[test]
fn states_in_a_directory_that_cannot_be_written() {
    let project = Project::new("under-read-only-states");
    project.build("blocks.c", &["-DQUIET"]);
    let selvedge = shared_selvedge(&project);
    assert_eq!(project.selvedge(&["run", "--", "./program"]).status.code(), Some(3), "the first");
    assert_eq!(project.selvedge(&["run", "--", "./program"]).status.code(), Some(0));
    let stored = || fs::read(project.0.join(".selvedge/store.db")).unwrap();
    let before = stored();
    fs::create_dir_all(project.0.join("cache")).unwrap();
    let all = [".selvedge", "."].map(|name| project.0.join(name));
    mode(&project.0.join(".selvedge/store.db"), 0o444);
    all.iter().for_each(|directory| mode(directory, 0o555));
    let run = as_nobody(&project, &[&selvedge, "run", "--", "./program"]);
    let list = as_nobody(&project, &[&selvedge, "states", "list"]);
    all.iter().for_each(|directory| mode(directory, 0o755));
    let told = stderr(&run);
    assert_eq!(run.status.code(), Some(3), "nothing could be compared: {told}");
    assert!(told.contains("permission denied, or the file system is read-only"), "{told}");
    assert!(told.contains("\"solve\" was executed once"), "{told}");
    assert_eq!(list.status.code(), Some(0), "what is there can be read: {}", stderr(&list));
    assert!(stdout(&list).contains("solve"), "{}", stdout(&list));
    assert_eq!(before, stored(), "the store is as it was");
}

#[test]
fn names_with_blanks_line_ends_and_letters_of_any_kind() {
    let project = project("names");
    for name in ["two words", "two\nlines", "ünïcödé–名前", "-dash", "quo\"te'"] {
        fs::copy(project.0.join("program"), project.0.join(name)).unwrap();
        found(&project.selvedge(&["run", "--", &format!("./{name}"), "an argument\nof two lines"]));
    }
}

#[test]
fn a_filter_of_system_calls_like_a_containers() {
    let project = project("seccomp");
    project.source("under/confined.c");
    project.call("cc", &["confined.c", "-o", "confined"]);
    let run =
        project.command("./confined", &[SELVEDGE, "run", "--", "./program"]).output().unwrap();
    found(&run);
    let args = [SELVEDGE, "test", "--schedules", "50", "--", "./program"];
    let test = project.command("./confined", &args).output().unwrap();
    assert_eq!(test.status.code(), Some(1), "{}", stderr(&test));
}

#[test]
fn too_little_address_space() {
    let project = project("ulimit");
    let line = format!("ulimit -v 4000000; exec {SELVEDGE} run -- ./program");
    let output = project.command("sh", &["-c", &line]).output().unwrap();
    refused(&output, 3, "ulimit -v");
}

#[test]
fn ten_thousand_threads_one_after_the_other() {
    found(&project("sequence").selvedge(&["run", "--", "./program", "sequence"]));
}

#[test]
fn two_thousand_threads_at_once() {
    found(&project("crowd").selvedge(&["run", "--", "./program", "crowd"]));
}

#[test]
fn a_program_that_closes_all_descriptors() {
    found(&project("close").selvedge(&["run", "--", "./program", "close"]));
}

#[test]
fn a_program_of_another_user() {
    let project = project("setuid");
    let program = project.0.join("program");
    // Only root can give a file away.
    if rustix::process::getuid().is_root() {
        std::os::unix::fs::chown(&program, Some(65534), None).unwrap();
        mode(&program, 0o4755);
        refused(&project.selvedge(&["run", "--", "./program"]), 3, "runs as another user");
        std::os::unix::fs::chown(&program, Some(0), None).unwrap();
    }
    // The bit alone changes nothing for the owner.
    mode(&program, 0o4755);
    found(&project.selvedge(&["run", "--", "./program"]));
}

#[test]
fn vfork() {
    found(&project("vfork").selvedge(&["run", "--", "./program", "vfork"]));
}

#[test]
fn an_instrumented_plug_in() {
    let project = Project::new("under-plugin");
    project.source("under/plugin.c");
    project.call(SELVEDGE, &["cc", "-g", "-shared", "-fPIC", "plugin.c", "-o", "plugin.so"]);
    project.build("under/host.c", &[]);
    found(&project.selvedge(&["run", "--", "./program"]));
}

#[test]
fn other_allocators() {
    let project = project("allocators");
    for library in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"] {
        let mut command = project.command(SELVEDGE, &["run", "--", "./program"]);
        found(&command.env("LD_PRELOAD", format!("{LIBRARIES}/{library}")).output().unwrap());
    }
}

#[test]
fn another_sanitizer_is_refused() {
    let project = project("asan");
    let args = ["cc", "-fsanitize=address", "race.c", "-o", "program"];
    refused(&project.selvedge(&args), 2, "the address sanitizer and Selvedge cannot instrument");
    project.call("cc", &["-fsanitize=address", "race.c", "-o", "program", "-lpthread"]);
    refused(&project.selvedge(&["run", "--", "./program"]), 3, "address sanitizer");
}
