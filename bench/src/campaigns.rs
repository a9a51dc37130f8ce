//! A campaign of several ranks against one process: the same reports, how fast, how much rank 0 receives, and what is
//! lost when ranks are killed.
//!
//! Rates are executions per second of the whole command, from its start to its report, in turns with the other way.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{Place, exit_code};

/// Programs with and without findings.
const PROGRAMS: [&str; 10] = [
    "account",
    "counter",
    "lost_wakeup",
    "two_stage",
    "early_free",
    "one_condition",
    "init_order",
    "reorder",
    "three_steps",
    "work_stealing",
];
const RANKS: [u32; 3] = [1, 4, 16];
const SEED: &str = "7";

/// `campaigns [KILLS] [ROUNDS]`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let number = |nth: usize, otherwise| args.get(nth).map_or(Ok(otherwise), |n| n.parse::<u32>());
    let (Ok(kills), Ok(rounds)) = (number(0, 50), number(1, 5)) else {
        eprintln!("usage: campaigns [KILLS] [ROUNDS]");
        return ExitCode::from(2);
    };
    exit_code(measure(kills, rounds))
}

fn measure(kills: u32, rounds: u32) -> Result<(), String> {
    let place = Place::new("campaigns")?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let mut built = Vec::new();
    for name in PROGRAMS {
        built.push(place.ours(
            &sources.join(format!("{name}.c")),
            "cc",
            &["-O1", "-g", "-pthread"],
        )?);
    }
    let mut wrong = Vec::new();
    println!("reports of {RANKS:?} ranks and of one process, 1000 schedules, seed {SEED}");
    for (name, program) in PROGRAMS.iter().zip(&built) {
        let one = timeless(&finished(&mut test(&place, None, program, 1000))?)?;
        let same = |ranks: u32| -> Result<bool, String> {
            Ok(timeless(&finished(&mut test(&place, Some((ranks, &[])), program, 1000))?)? == one)
        };
        let same: Vec<bool> = RANKS.iter().map(|&ranks| same(ranks)).collect::<Result<_, _>>()?;
        let findings = one["findings"].as_array().map_or(0, Vec::len);
        println!("  {name:<16} {findings:>2} findings, the same: {same:?}");
        if same.contains(&false) {
            wrong.push(format!("{name}: the reports differ"));
        }
    }
    rates(&place, &built[0], rounds)?;
    received(&place, &built[0])?;
    wrong.extend(killed(&place, &built[0], kills)?);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The command, by so many ranks with options of the launcher or by one process.
fn test(place: &Place, job: Option<(u32, &[&str])>, program: &Path, schedules: u32) -> Command {
    let mut command = match job {
        None => Command::new(&place.selvedge),
        Some((ranks, options)) => {
            let mut command = Command::new("mpirun");
            command.args(["-n", &ranks.to_string(), "--oversubscribe"]).args(options);
            command
                .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
            command.arg(&place.selvedge);
            command
        }
    };
    command.args(["--progress", "json", "test", "--fresh", "--observe", "0", "--seed", SEED]);
    command.args(["--time", "10m", "--schedules", &schedules.to_string(), "--format", "json"]);
    if job.is_none() {
        command.args(["--jobs", "2"]);
    }
    command.arg("--").arg(program).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finished(command: &mut Command) -> Result<Output, String> {
    command.output().map_err(|e| format!("{}: {e}", command.get_program().to_string_lossy()))
}

/// A report without its time.
fn timeless(output: &Output) -> Result<Value, String> {
    let mut report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    report["stats"]["seconds"] = Value::Null;
    Ok(report)
}

fn schedules(output: &Output) -> Result<f64, String> {
    let report = timeless(output)?;
    report["stats"]["schedules"].as_f64().ok_or_else(|| "a report without schedules".to_owned())
}

fn rates(place: &Place, program: &Path, rounds: u32) -> Result<(), String> {
    let budget = 20_000;
    let mut best = [0.0_f64; 2];
    for _ in 0..rounds {
        for (way, best) in best.iter_mut().enumerate() {
            let begin = Instant::now();
            let job: Option<(u32, &[&str])> = (way == 1).then_some((2, &[]));
            let done = schedules(&finished(&mut test(place, job, program, budget))?)?;
            *best = best.max(done / begin.elapsed().as_secs_f64());
        }
    }
    let [one, ranks] = best;
    println!(
        "executions per second, best of {rounds}: one process with --jobs 2 {one:.0}, 2 ranks {ranks:.0}"
    );
    println!("  2 ranks reach {:.2} of one process", ranks / one);
    Ok(())
}

/// What rank 0 receives of a program whose executions find nothing new after the first ones.
fn received(place: &Place, program: &Path) -> Result<(), String> {
    println!("what rank 0 of 4 receives:");
    for budget in [2_000, 8_000, 32_000] {
        let begin = Instant::now();
        let output = finished(&mut test(place, Some((4, &[])), program, budget))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.starts_with("{\"received\"")).unwrap_or_default();
        println!("  {budget:>6} schedules, {:.1} s: {line}", begin.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Kills a rank at another moment of each run. Every other job is one that the launcher then ends, and what is left of
/// it is merged.
fn killed(place: &Place, program: &Path, kills: u32) -> Result<Vec<String>, String> {
    const BUDGET: u32 = 6_000;
    let one = timeless(&finished(&mut test(place, None, program, BUDGET))?)?;
    let mut wrong = Vec::new();
    let (mut struck, mut merged) = (0, 0);
    for run in 0..kills {
        let options: &[&str] = if run % 2 == 0 { &["--enable-recovery"] } else { &[] };
        let rank = 1 + run % 3;
        let moment = Duration::from_millis(200 + u64::from(run * 7919 % 2_000));
        let job = test(place, Some((4, options)), program, BUDGET).spawn();
        let job = job.map_err(|e| format!("mpirun: {e}"))?;
        std::thread::sleep(moment);
        struck += u32::from(kill(place, rank));
        let output = job.wait_with_output().map_err(|e| e.to_string())?;
        let told = match timeless(&output) {
            Ok(told) if told == one => told,
            // The launcher has ended the job.
            _ => {
                merged += 1;
                let stores = stores();
                let mut merge = Command::new(&place.selvedge);
                merge.args(["merge", "--complete", "--format", "json"]).args(&stores);
                match stores.is_empty() {
                    // It was ended before it began.
                    true => one.clone(),
                    false => timeless(&finished(&mut merge)?)?,
                }
            }
        };
        if told != one {
            wrong.push(format!("run {run}: rank {rank} killed after {moment:?}: another report"));
        }
        let _ = std::fs::remove_dir_all(".selvedge/shards");
    }
    println!(
        "{kills} runs of 4 ranks, a rank killed in {struck}: {merged} were merged, {} reports differ",
        wrong.len()
    );
    Ok(wrong)
}

fn stores() -> Vec<PathBuf> {
    let shards = std::fs::read_dir(".selvedge/shards").into_iter().flatten().flatten();
    let mut stores: Vec<PathBuf> = shards.map(|entry| entry.path()).collect();
    stores.sort();
    stores
}

/// Kills a rank of a job. False if it has ended by itself.
fn kill(place: &Place, rank: u32) -> bool {
    let number = format!("OMPI_COMM_WORLD_RANK={rank}");
    let here = std::env::current_dir().unwrap_or_default();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let path = process.path();
        let is_ours = std::fs::read_link(path.join("exe")).is_ok_and(|exe| exe == place.selvedge)
            && std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == here);
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        let is_rank = environment.split(|b| *b == 0).any(|v| v == number.as_bytes());
        if is_ours && is_rank {
            let pid = process.file_name();
            return Command::new("kill").arg("-9").arg(pid).status().is_ok_and(|s| s.success());
        }
    }
    false
}
