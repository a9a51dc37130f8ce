//! Controlled executions that are stopped, do not end, or have nowhere to write: what there is gets
//! reported, and nothing is left behind.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Project, stderr, stdout};

/// Processes that run a program of this project.
fn left_behind(project: &Project) -> Vec<String> {
    let program = project.0.join("program");
    let runs = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program)
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(runs);
    processes.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until it is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(project: &Project, args: &[&str]) -> Child {
    let mut command = project.command(env!("CARGO_BIN_EXE_selvedge"), args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// What the search finds, sooner or later.
const FAILURE: &str = "failed assertion: counter == 2";

/// Whether the store has the failure, of the run that goes on.
fn has_failure(project: &Project) -> bool {
    let output = project.selvedge(&["report", "--text"]);
    stdout(&output).contains(FAILURE)
}

/// A search without end, once it has found the failure.
fn searching(project: &Project, command: &str) -> Child {
    let _ = fs::remove_file(project.0.join(".selvedge/store.db"));
    let mut args = vec![command, "--schedules", "100000000", "--time", "1h"];
    args.extend((command == "explore").then_some("--keep-going"));
    args.extend(["--", "./program"]);
    let child = start(project, &args);
    eventually("the failure is found", || has_failure(project));
    child
}

#[test]
fn a_signal_stops_and_the_report_comes() {
    let project = Project::new("stopping-signal");
    project.build("lost_update.c", &[]);
    for (command, name) in [("explore", "INT"), ("test", "TERM")] {
        let child = searching(&project, command);
        signal(&child, name);
        let output: Output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains(&format!("stopped by SIG{name}")), "{text}");
        assert!(text.contains(FAILURE), "{text}");
        assert_eq!(left_behind(&project), Vec::<String>::new());
        let runs = stdout(&project.selvedge(&["report", "--runs"]));
        assert!(runs.contains(&format!("stopped by SIG{name}")), "{runs}");
    }
    let text = stdout(&project.selvedge(&["test", "--schedules", "20", "--", "./program"]));
    assert!(text.contains("went on after") && text.contains(FAILURE), "{text}");
}

#[test]
fn being_killed_leaves_the_store_readable_and_no_process() {
    let project = Project::new("stopping-kill");
    project.build("lost_update.c", &[]);
    let mut child = searching(&project, "explore");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the programs are gone", || left_behind(&project).is_empty());
    assert!(has_failure(&project));
    assert_eq!(project.selvedge(&["replay", "assertion"]).status.code(), Some(1));
}

#[test]
fn a_test_that_is_killed_leaves_what_it_has_learnt() {
    let project = Project::new("stopping-learnt");
    project.build("lost_update.c", &[]);
    let mut time = Duration::from_secs(1);
    eventually("the next test goes on", || {
        let mut child = searching(&project, "test");
        std::thread::sleep(time);
        child.kill().unwrap();
        child.wait().unwrap();
        time *= 2;
        let next = project.selvedge(&["test", "--schedules", "5", "--", "./program"]);
        stdout(&next).contains("went on after")
    });
}

#[test]
fn a_program_that_never_ends_is_refused_and_ended() {
    let project = Project::new("stopping-endless");
    project.build("ending.c", &[]);
    for command in ["explore", "test"] {
        let output =
            project.selvedge(&[command, "--patience", "300ms", "--", "./program", "pause"]);
        assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
        let text = stderr(&output);
        assert!(text.contains("no controlled execution ended within 0.3 s"), "{text}");
        assert_eq!(left_behind(&project), Vec::<String>::new());
    }
    let child = start(&project, &["test", "--patience", "1h", "--", "./program", "pause"]);
    eventually("it runs", || !left_behind(&project).is_empty());
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(left_behind(&project), Vec::<String>::new());
}

#[test]
fn a_program_that_only_takes_long_is_not_decided() {
    let project = Project::new("stopping-long");
    project.build("long.c", &[]);
    for command in ["explore", "test"] {
        let args = [command, "--patience", "200ms", "--schedules", "20", "--", "./program"];
        let output = project.selvedge(&args);
        assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
        assert!(!stdout(&output).contains("hang"), "{}", stdout(&output));
    }
}

#[test]
fn a_deadlock_that_happens_is_reported_however_the_program_ends() {
    let project = Project::new("stopping-deadlock");
    project.build("both_block.c", &[]);
    let told = |output: &Output| {
        assert_eq!(output.status.code(), Some(1), "{}", stderr(output));
        let text = stderr(output);
        assert!(text.contains("deadlock between `b` and `a` (observed)"), "{text}");
        assert!(text.contains("thread main acquires `b`, holding `a`"), "{text}");
    };
    told(&project.selvedge(&["run", "--", "./program", "1"]));
    let child = start(&project, &["run", "--", "./program"]);
    eventually("it is stored while the program runs", || {
        let report = stdout(&project.selvedge(&["report", "--run", "2"]));
        report.contains("deadlock between")
    });
    signal(&child, "INT");
    told(&child.wait_with_output().unwrap());

    project.build("both_block.c", &["-DFIXED"]);
    let output = project.selvedge(&["run", "--", "./program"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn standard_input_is_empty() {
    let project = Project::new("stopping-input");
    project.build("ending.c", &[]);
    let output = project.selvedge(&["explore", "--schedules", "5", "--", "./program", "wait"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn without_a_store_findings_are_still_shown() {
    let project = Project::new("stopping-store");
    project.build("abba.c", &[]);
    fs::remove_dir_all(project.0.join(".selvedge")).unwrap();
    // No directory can be made where a file is, nor in one that takes no files.
    fs::create_dir(project.0.join(".selvedge")).unwrap();
    fs::create_dir(project.0.join(".selvedge/store.db")).unwrap();
    assert!(Path::new(&project.0.join(".selvedge/store.db")).is_dir());
    for command in ["explore", "test"] {
        let output = project.selvedge(&[command, "--schedules", "100", "--", "./program"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("findings will not be stored"), "{}", stderr(&output));
        assert!(stdout(&output).contains("(confirmed"), "{}", stdout(&output));
    }
}

#[test]
fn a_full_disk_loses_no_finding_of_the_report_and_leaves_the_store_readable() {
    let project = Project::new("stopping-full");
    project.build("lost_update.c", &[]);
    let tool = env!("CARGO_BIN_EXE_selvedge");
    for command in ["explore", "test"] {
        // A file system of its own, with room for a first run, and then with none.
        let script = format!(
            "mount -t tmpfs -o size=4m none .selvedge || exit 77
             {tool} {command} --schedules 200 -- ./program > /dev/null || true
             cat /dev/zero > .selvedge/filler
             {tool} {command} --schedules 200 -- ./program; code=$?
             rm .selvedge/filler
             echo the first run:
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
        assert_eq!(output.status.code(), Some(1), "{command}: {text}");
        assert!(text.contains("stored"), "it says that the second run is not: {text}");
        let reports = stdout(&output);
        let (second, first) = reports.split_once("the first run:").unwrap();
        assert!(second.contains(FAILURE) && first.contains(FAILURE), "{command}: {reports}");
        assert_eq!(left_behind(&project), Vec::<String>::new());
    }
}

#[test]
fn what_a_native_run_has_shown_is_reported_if_it_is_the_last() {
    let project = Project::new("stopping-native");
    project.build("races_then_sleeps.c", &[]);
    let child = start(&project, &["test", "--time", "1h", "--", "./program"]);
    eventually("the native run has passed its race", || project.0.join("raced").exists());
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(left_behind(&project), Vec::<String>::new());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("data race on `shared`"), "{}", stdout(&output));
}
