//! `selvedge replay --gdb`: the interleaving of a finding under gdb.

mod common;

use std::process::Command;

use common::{Project, json, stderr, stdout};

/// What gdb and we say about the finding of a program; nothing where there is no gdb.
fn debugged(name: &str, source: &str, commands: &[&str]) -> Option<String> {
    debugged_after("explore", name, source, commands)
}

/// The same for what another command than `explore` finds.
fn debugged_after(command: &str, name: &str, source: &str, commands: &[&str]) -> Option<String> {
    if Command::new("gdb").arg("--version").output().is_err() {
        eprintln!("skipped: gdb is not installed");
        return None;
    }
    let project = Project::new(name);
    project.build(source, &[]);
    let output = project.selvedge(&[command, "--format", "json", "--", "./program"]);
    let id = json(&output)["findings"][0]["id"].as_str().expect("a finding").to_owned();
    let mut args = vec!["replay", &id, "--gdb"];
    for command in commands {
        args.extend(["--gdb-command", command]);
    }
    let output = project.selvedge(&args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output) + &stderr(&output);
    assert!(!text.contains("diverged"), "{text}");
    Some(text)
}

#[test]
fn gdb_stops_where_both_threads_of_a_deadlock_wait() {
    let commands = ["continue", "continue", "thread apply all bt"];
    let Some(text) = debugged("gdb-deadlock", "abba.c", &commands) else { return };
    assert!(text.contains("2 breakpoints are set"), "{text}");
    for hit in ["hit Breakpoint 1, there (arg=0x0)", "hit Breakpoint 2, back_again (arg=0x0)"] {
        assert!(text.contains(hit), "{hit} in {text}");
    }
    // Nobody can go on, and gdb comes forward.
    assert!(text.contains("received signal SIGINT"), "{text}");
    let (_, stacks) = text.split_once("received signal SIGINT").expect("it was interrupted");
    for waiting in ["in there (arg=0x0) at abba.c", "in back_again (arg=0x0) at abba.c"] {
        assert!(stacks.contains(waiting), "{waiting} in {stacks}");
    }
}

#[test]
fn gdb_stops_where_a_thread_is_preempted_and_the_failure_comes_as_it_did() {
    let commands = ["info threads", "continue", "bt"];
    let Some(text) = debugged("gdb-assertion", "lost_update.c", &commands) else { return };
    assert!(text.contains("hit Breakpoint 1, add (arg=0x0)"), "{text}");
    assert!(text.contains("Assertion `counter == 2' failed"), "{text}");
    assert!(text.contains("received signal SIGABRT") && text.contains("in main ()"), "{text}");
}

#[test]
fn gdb_stops_in_the_round_of_a_loop_that_is_meant() {
    let Some(text) = debugged_after("test", "gdb-loop", "last_round.c", &["continue"]) else {
        return;
    };
    assert!(text.contains("=3) at last_round.c"), "{text}");
    assert!(!text.contains("=0) at last_round.c"), "{text}");
}
