//! What a team sets up once: baselines, `selvedge.toml`, completions and manual pages, progress for other tools,
//! nextest.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::{Project, json, stderr, stdout};

fn test(project: &Project) {
    let args = ["test", "--fail-on", "never", "--schedules", "60", "--", "./program"];
    let output = project.selvedge(&args);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn findings_are_new_still_there_or_gone() {
    let project = Project::new("configured-baseline");
    project.build("lost_update.c", &[]);
    test(&project);
    let before = stdout(&project.selvedge(&["report", "--format", "json"]));
    fs::write(project.0.join("before.json"), before).unwrap();
    let same = ["report", "--baseline", "before.json", "--fail-on", "new"];
    let output = project.selvedge(&same);
    assert_eq!(output.status.code(), Some(0), "nothing is new: {}", stderr(&output));
    assert!(stdout(&output).contains("since the baseline: 0 new, "), "{}", stdout(&output));

    project.build("abba.c", &[]);
    test(&project);
    let output = project.selvedge(&same);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let text = stdout(&output);
    assert!(text.contains("since the baseline: 1 new, 0 still there, "), "{text}");
    assert!(
        text.contains("new: deadlock between ") && text.contains("gone: data race on"),
        "{text}"
    );

    let document = json(&project.selvedge(&["report", "--diff", "1", "2", "--format", "json"]));
    assert_eq!(document["findings"][0]["baseline"], "new");
    assert!(document["gone"].as_array().unwrap().iter().any(|g| g["kind"] == "data-race"));
    let back = ["report", "--diff", "2", "2", "--fail-on", "new"];
    assert_eq!(project.selvedge(&back).status.code(), Some(0));
    // SARIF is a baseline, too.
    let sarif = stdout(&project.selvedge(&["report", "--format", "sarif"]));
    fs::write(project.0.join("before.sarif"), sarif).unwrap();
    let against = ["report", "--baseline", "before.sarif", "--fail-on", "new"];
    assert_eq!(project.selvedge(&against).status.code(), Some(0));

    assert_eq!(project.selvedge(&["report", "--fail-on", "new"]).status.code(), Some(2));
    fs::write(project.0.join("wrong.json"), "{\"findings\": [{}]}").unwrap();
    let wrong = project.selvedge(&["report", "--baseline", "wrong.json"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("wrong.json: this is not a report of Selvedge"));
}

#[test]
fn a_project_has_options_of_its_own_and_the_command_line_overrides_them() {
    let project = Project::new("configured-file");
    project.build("lost_update.c", &[]);
    let file = project.0.join("selvedge.toml");
    let text = "suppressions = \"known.supp\"\n\n[budget]\nschedules = 40\n\n[output]\nformat = \"json\"\n";
    fs::write(&file, text).unwrap();
    fs::write(project.0.join("known.supp"), "race:no_such_function\n").unwrap();
    fs::create_dir(project.0.join("below")).unwrap();
    // The file counts in directories below, and its paths stay its own.
    let mut below = project.command(
        env!("CARGO_BIN_EXE_selvedge"),
        &["test", "--fail-on", "never", "--", "../program"],
    );
    let document = json(&below.current_dir(project.0.join("below")).output().unwrap());
    assert!(document["stats"]["schedules"].as_u64().unwrap() <= 40, "{document:#}");
    let args = ["test", "--format", "text", "--fail-on", "never", "--", "./program"];
    let over = project.selvedge(&args);
    assert!(stdout(&over).contains("data race on `counter`"), "{}", stdout(&over));

    fs::write(&file, format!("{text}formt = \"text\"\n")).unwrap();
    let wrong = project.selvedge(&args);
    assert_eq!(wrong.status.code(), Some(2));
    let message = stderr(&wrong);
    assert!(message.contains("selvedge.toml, line 8: unknown key `output.formt`"), "{message}");
}

#[test]
fn completions_and_manual_pages_name_the_commands() {
    let project = Project::new("configured-pages");
    for shell in ["bash", "zsh", "fish"] {
        let text = stdout(&project.selvedge(&["completions", shell]));
        assert!(text.contains("explore") && text.contains("keep-going"), "{shell}: {text}");
    }
    let page = stdout(&project.selvedge(&["man"]));
    assert!(page.contains(".TH") && page.contains("explore"), "{page}");
    assert!(project.selvedge(&["man", "--directory", "pages"]).status.success());
    let page = fs::read_to_string(project.0.join("pages/selvedge-explore.1")).unwrap();
    assert!(page.contains("keep"), "{page}");
}

#[test]
fn progress_is_silent_in_pipes_and_json_for_tools() {
    let project = Project::new("configured-progress");
    project.build("lost_update.c", &[]);
    let explore = |how: &str| {
        let args = ["--progress", how, "explore", "--schedules", "30", "--keep-going"];
        let output = project.selvedge(&[&args[..], &["--", "./program"]].concat());
        let lines: Vec<String> = stderr(&output).lines().map(str::to_owned).collect();
        lines.into_iter().filter(|l| l.contains("\"progress\"")).collect::<Vec<_>>()
    };
    assert!(explore("auto").is_empty());
    let lines = explore("json");
    let last: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    let first: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(first["progress"]["done"], 0);
    assert_eq!(
        (&last["progress"]["what"], &last["progress"]["of"]),
        (&"explore".into(), &30.into())
    );
    assert!(last["progress"]["done"].as_u64().unwrap() > 0, "{last}");

    let args = ["--progress", "json", "test", "--fail-on", "never", "--schedules", "60"];
    let output = project.selvedge(&[&args[..], &["--", "./program"]].concat());
    let text = stderr(&output);
    for what in ["observe", "test"] {
        assert!(text.contains(&format!("\"what\":\"{what}\"")), "{what}: {text}");
    }

    // Of every other command that may take long, the last line says that the work is done.
    let id = json(&project.selvedge(&["report", "--format", "json"]))["findings"][0]["id"].clone();
    let id = id.as_str().unwrap();
    let record = ["run", "--fail-on", "never", "--record", "run.svt", "--", "./program"];
    for (what, args) in [
        ("observe", &record[..]),
        ("replay", &["replay", id, "--times", "3"]),
        ("margin", &["replay", id, "--margin", "5"]),
        ("fixed", &["fixed", id, "--executions", "20"]),
        ("run.svt", &["check", "run.svt"]),
        ("infer", &["infer", "discipline", "--schedules", "20", "--", "./program"]),
    ] {
        let output = project.selvedge(&[&["--progress", "json"], args].concat());
        let text = stderr(&output);
        let line = text.lines().rfind(|l| l.starts_with("{\"progress\""));
        let line = line.unwrap_or_else(|| panic!("{what}: {text}"));
        let progress: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(progress["progress"]["what"], what, "{line}");
        assert!(progress["progress"]["done"].as_u64() > Some(0), "{line}");
    }
}

/// Does with a test binary what nextest does: it builds with Cargo's options, lists the tests through the runner of
/// the target, and runs each by itself through that runner.
const NEXTEST: &str = r#"#!/bin/bash
set -e
[ "$1 $2" = "nextest run" ]; shift 2
runner=$(printf '%s\n' "$@" | sed -n 's/^target\.[^=]*\.runner=\[\(.*\)\]$/\1/p' | sed 's/","/ /g; s/"//g')
[ -n "$runner" ]
binary=$(cargo test --no-run --message-format short "$@" 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
failed=0
for name in $($runner "$binary" --list --format terse 2>/dev/null | sed -n 's/: test$//p'); do
  $runner "$binary" "$name" --exact --nocapture || { echo "FAIL $name"; failed=1; }
done
exit $failed
"#;

#[test]
fn each_test_of_nextest_runs_under_the_tool() {
    let project = Project::new("configured-nextest");
    fs::create_dir(project.0.join("src")).unwrap();
    let manifest =
        "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(project.0.join("Cargo.toml"), manifest).unwrap();
    // The second thread comes when the first is done, which nothing orders.
    let source = "use std::sync::Mutex;
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        static A: Mutex<u32> = Mutex::new(0);
        static B: Mutex<u32> = Mutex::new(0);
        fn after(first: fn(), second: fn()) {
            static DONE: AtomicBool = AtomicBool::new(false);
            std::thread::scope(|s| {
                s.spawn(move || { first(); DONE.store(true, Relaxed) });
                s.spawn(move || { while !DONE.load(Relaxed) { std::thread::yield_now() } second() });
            });
        }
        fn forwards() { drop((A.lock(), B.lock())) }
        fn backwards() { drop((B.lock(), A.lock())) }
        #[test] fn crossed() { after(forwards, backwards) }
        #[test] fn straight() { after(forwards, forwards) }\n";
    fs::write(project.0.join("src/lib.rs"), source).unwrap();
    let bin = project.0.join("bin");
    fs::create_dir(&bin).unwrap();
    let script = bin.join("cargo-nextest");
    fs::write(&script, NEXTEST).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let args = ["selvedge", "--fail-on", "predicted", "nextest", "run", "--offline", "--lib"];
    let mut command = project.command(env!("CARGO_BIN_EXE_cargo-selvedge"), &args);
    command.env("PATH", path).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    let output = command.output().unwrap();
    let (out, err) = (stdout(&output), stderr(&output));
    assert!(!output.status.success(), "{out}\n{err}");
    assert_eq!(out.lines().filter(|l| l.starts_with("FAIL")).collect::<Vec<_>>(), ["FAIL crossed"]);
    assert!(err.contains("deadlock between `program::"), "{err}");
}
