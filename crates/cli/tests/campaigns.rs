//! Several processes share a test or an exploration, and the report is that of one process.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Project, json, stderr, stdout};
use serde_json::Value;

/// A project with a program of `programs/`, built.
fn project(name: &str, program: &str) -> Project {
    let project = Project::new(name);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(program);
    fs::copy(&source, project.0.join(program)).unwrap();
    fs::copy(source.with_file_name("shape.h"), project.0.join("shape.h")).unwrap();
    let args = ["cc", "-g", "-O1", "-pthread", program, "-o", "program"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
    project
}

/// A report without its time.
fn timeless(output: &Output) -> Value {
    let mut report = json(output);
    let seconds = &mut report["stats"]["seconds"];
    assert!(seconds.is_number(), "a report says how long it took: {}", stderr(output));
    *seconds = Value::Null;
    report
}

/// The same arguments with others after the name of the command.
fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&args[..1], more, &args[1..]].concat()
}

const TEST: [&str; 10] =
    ["test", "--fresh", "--observe", "0", "--seed", "7", "--schedules", "300", "--", "./program"];
const EXPLORE: [&str; 9] =
    ["explore", "--keep-going", "--seed", "7", "--schedules", "300", "--", "./program", "4"];

fn in_json<'a>(args: &[&'a str]) -> Vec<&'a str> {
    with(args, &["--format", "json"])
}

/// Runs the parts of a command, and returns their stores.
fn parts(project: &Project, args: &[&str], parts: &[&str]) -> Vec<String> {
    for part in parts {
        let output = project.selvedge(&with(args, &["--shard", part]));
        assert_eq!(output.status.code(), Some(0), "{part}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "a part reports nothing");
    }
    parts.iter().map(|part| store(part)).collect()
}

fn store(part: &str) -> String {
    format!(".selvedge/shards/program-{}", part.replace('/', "-of-"))
}

fn merge(project: &Project, options: &[&str], stores: &[String]) -> Output {
    let stores: Vec<&str> = stores.iter().map(String::as_str).collect();
    project.selvedge(&[&["merge", "--format", "json"], options, &stores[..]].concat())
}

#[test]
fn parts_that_know_nothing_of_each_other_make_the_report_of_one_process() {
    for (number, args) in [&TEST[..], &EXPLORE[..]].into_iter().enumerate() {
        let project = project(&format!("merged-{number}"), "account.c");
        let one = project.selvedge(&in_json(args));
        assert_eq!(one.status.code(), Some(1), "{}", stderr(&one));
        let stores = parts(&project, args, &["0/3", "1/3", "2/3"]);
        let merged = merge(&project, &[], &stores);
        assert_eq!(merged.status.code(), Some(1), "{}", stderr(&merged));
        assert_eq!(timeless(&merged), timeless(&one));
        assert_eq!(stderr(&merged), "");
    }
}

#[test]
fn what_is_missing_is_named_and_can_be_run_by_merge() {
    let project = project("missing", "account.c");
    let one = project.selvedge(&in_json(&TEST));
    let stores = parts(&project, &TEST, &["0/3", "2/3"]);
    let merged = merge(&project, &[], &stores);
    let named =
        "selvedge test --shard 1/3 --fresh --observe 0 --seed 7 --schedules 300 -- ./program";
    assert!(stderr(&merged).contains(named), "{}", stderr(&merged));
    let completed = merge(&project, &["--complete"], &stores);
    assert_eq!(timeless(&completed), timeless(&one), "{}", stderr(&completed));
    // The command that is named runs what is missing.
    let words: Vec<&str> = named.split(' ').skip(1).collect();
    assert!(project.selvedge(&words).status.success());
    let all: Vec<String> = [&stores[..], &[store("1/3")]].concat();
    assert_eq!(timeless(&merge(&project, &[], &all)), timeless(&one));
}

#[test]
fn a_store_that_was_cut_off_gives_what_it_has() {
    let project = project("cut", "account.c");
    let one = project.selvedge(&in_json(&TEST));
    let stores = parts(&project, &TEST, &["0/2", "1/2"]);
    let log = project.0.join(&stores[1]).join("turns.log");
    let whole = fs::read(&log).unwrap();
    for keep in [whole.len() - 1, whole.len() / 2, whole.len() / 10 * 9] {
        fs::write(&log, &whole[..keep]).unwrap();
        let merged = merge(&project, &["--complete"], &stores);
        assert_eq!(timeless(&merged), timeless(&one), "{keep}: {}", stderr(&merged));
    }
    // Not even the first line.
    fs::write(&log, &whole[..20]).unwrap();
    let merged = merge(&project, &[], &stores);
    assert_eq!(merged.status.code(), Some(2));
    assert!(stderr(&merged).contains("run the part again"), "{}", stderr(&merged));
    // Damage in the middle is no end.
    let mut damaged = String::from_utf8(whole).unwrap();
    let second = damaged.find('\n').unwrap() + 1;
    damaged.replace_range(second..=second, "x");
    fs::write(&log, damaged).unwrap();
    let merged = merge(&project, &[], &stores);
    assert_eq!(merged.status.code(), Some(2));
    assert!(stderr(&merged).contains("turns.log, line 2: it is damaged"), "{}", stderr(&merged));
}

#[test]
fn stores_that_do_not_belong_together_are_refused() {
    let project = project("strangers", "account.c");
    let mut stores = parts(&project, &TEST, &["0/2"]);
    let other = ["test", "--seed", "8", "--schedules", "300", "--", "./program"];
    stores.extend(parts(&project, &other, &["1/2"]));
    let refused = merge(&project, &[], &stores);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(said.contains("the commands differ") && said.contains("--seed 8"), "{said}");
    let stores = [&stores[..1], &parts(&project, &TEST, &["1/3"])].concat();
    let said = stderr(&merge(&project, &[], &stores));
    assert!(said.contains("different divisions: 0/2 and 1/3"), "{said}");
    // The program is built anew.
    let args = ["cc", "-g", "-O2", "-pthread", "account.c", "-o", "program"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &args);
    let stores = [&stores[..1], &parts(&project, &TEST, &["1/2"])].concat();
    let said = stderr(&merge(&project, &[], &stores));
    assert!(said.contains("built anew"), "{said}");
    let said = stderr(&merge(&project, &[], &["nowhere".to_owned()]));
    assert!(said.contains("nowhere/turns.log: cannot open"), "{said}");
}

#[test]
fn parts_that_do_not_exist_are_refused() {
    let project = Project::new("no-parts");
    for (part, why) in [
        ("5/4", "there is no part 5 of 4: they are 0 to 3"),
        ("4/4", "there is no part 4 of 4"),
        ("0/0", "there are no parts to run of 0"),
        ("1", "`1` is not K/N"),
        ("-1/4", "`-1/4` is not K/N"),
        ("a/b", "`a/b` is not K/N"),
    ] {
        let refused = project.selvedge(&["test", &format!("--shard={part}"), "--", "true"]);
        assert_eq!(refused.status.code(), Some(2), "{part}");
        assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    }
    let refused = project.selvedge(&["test", "--shard", "0/2", "--ndseq", "--", "true"]);
    assert!(stderr(&refused).contains("cannot be divided by --shard"), "{}", stderr(&refused));
}

/// `mpirun` with so many ranks and these options, or nothing where there is no MPI.
fn mpirun(project: &Project, ranks: u32, options: &[&str], args: &[&str]) -> Option<Command> {
    let there = Command::new("mpirun").arg("--version").stdout(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no mpirun");
        return None;
    }
    let mut command = project.command("mpirun", &["-n", &ranks.to_string(), "--oversubscribe"]);
    command.args(options).arg(env!("CARGO_BIN_EXE_selvedge")).args(args);
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

#[test]
fn ranks_make_the_report_of_one_process() {
    for (program, args) in [("account.c", &TEST[..]), ("lost_wakeup.c", &EXPLORE[..])] {
        let project = project(&format!("ranks-{program}"), program);
        let one = timeless(&project.selvedge(&in_json(args)));
        for ranks in [1, 3] {
            let Some(mut job) = mpirun(&project, ranks, &[], &in_json(args)) else { return };
            let output = job.output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            assert_eq!(timeless(&output), one, "{ranks} ranks");
        }
        assert!(!project.0.join(".selvedge/shards").exists(), "nothing is left of ranks");
    }
}

/// The processes of `selvedge` in a job, by rank: those whose environment says so.
fn ranks_of(project: &Project) -> Vec<(u32, u32)> {
    let mut ranks = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let path = process.path();
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let is_ours = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == project.0)
            && fs::read_link(path.join("exe"))
                .is_ok_and(|exe| exe.file_name().is_some_and(|name| name == "selvedge"));
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let mut variables = environment.split('\0');
        let rank = variables.find_map(|v| v.strip_prefix("OMPI_COMM_WORLD_RANK=")?.parse().ok());
        if let (true, Some(rank)) = (is_ours, rank) {
            ranks.push((rank, pid));
        }
    }
    ranks
}

/// Kills a rank once it has logged something.
fn kill(project: &Project, rank: u32, of: u32) {
    let log = project.0.join(store(&format!("{rank}/{of}"))).join("turns.log");
    let begin = Instant::now();
    while fs::read_to_string(&log).map_or(0, |text| text.lines().count()) < 3 {
        assert!(begin.elapsed() < Duration::from_secs(20), "the rank begins");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = ranks_of(project).into_iter().find(|(number, _)| *number == rank);
    let (_, pid) = pid.expect("the rank runs");
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

const LONG: [&str; 10] =
    ["test", "--fresh", "--observe", "0", "--seed", "7", "--schedules", "3000", "--", "./program"];

#[test]
fn a_rank_that_dies_costs_time_and_no_finding() {
    let project = project("dies", "account.c");
    let one = timeless(&project.selvedge(&in_json(&LONG)));
    let Some(mut job) = mpirun(&project, 3, &["--enable-recovery"], &in_json(&LONG)) else {
        return;
    };
    let job = job.spawn().unwrap();
    kill(&project, 2, 3);
    let output = job.wait_with_output().unwrap();
    assert_eq!(timeless(&output), one, "{}", stderr(&output));
    assert!(stderr(&output).contains("rank 2: is gone"), "{}", stderr(&output));
}

#[test]
fn of_a_job_that_the_launcher_ends_the_stores_remain() {
    let project = project("ended", "account.c");
    let one = timeless(&project.selvedge(&in_json(&LONG)));
    let Some(mut job) = mpirun(&project, 3, &[], &in_json(&LONG)) else { return };
    let job = job.spawn().unwrap();
    kill(&project, 1, 3);
    let output = job.wait_with_output().unwrap();
    assert!(!output.status.success(), "mpirun says that a rank was killed");
    let stores: Vec<String> = (0..3)
        .map(|rank| store(&format!("{rank}/3")))
        .filter(|store| project.0.join(store).exists())
        .collect();
    assert!(stores.contains(&store("1/3")), "{stores:?}");
    let merged = merge(&project, &["--complete"], &stores);
    assert_eq!(timeless(&merged), one, "{}", stderr(&merged));
}
