//! What the analysis sends, keeps and computes with 2, 4, 8 and 16 ranks, where the program's own work for each rank
//! stays the same (weak scaling). Everything is counted, nothing is timed.
//!
//! - Messages, bytes and memory are counted by the ranks themselves (`selvedge_spmd_rank::figures`).
//! - Instructions are counted by callgrind, in a second execution in which one rank runs under it: those of the two
//!   libraries inside the rank and of what they call, without MPI and without waiting, for each access of that rank.
//! - The slope is that of the line through the logarithms of figure and ranks (least squares): 0 means that the figure
//!   does not grow with the number of ranks, 1 that it grows in proportion to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Form, Observed, build, source};
use crate::place::Place;

const RANKS: [u32; 4] = [2, 4, 8, 16];
const KERNELS: [&str; 3] = ["stencil", "random", "stealing"];
const SCALE: u32 = 4;

/// What one rank has counted: see `selvedge_spmd_rank::figures`.
pub(super) struct Figures(Value);

impl Figures {
    fn get(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(0.0)
    }

    fn per_phase(&self, name: &str) -> f64 {
        self.get(name) / self.get("phases").max(1.0)
    }
}

/// What the ranks of an execution have counted.
pub(super) fn figures(lines: &Path) -> Result<Vec<Figures>, String> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(lines).map_err(|e| e.to_string())? {
        let text =
            file.and_then(|f| std::fs::read_to_string(f.path())).map_err(|e| e.to_string())?;
        let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.extend(values.filter(|v| v["kind"] == "figures").map(Figures));
    }
    all.sort_by_key(|f| f.0["rank"].as_u64());
    Ok(all)
}

/// The figures of one number of ranks.
struct Row {
    ranks: u32,
    phases: f64,
    accesses: f64,
    /// In each phase, the mean over the ranks.
    messages: f64,
    calls: f64,
    bytes: f64,
    logs: f64,
    /// What the busiest rank receives over the median: of us, and of the program's own calls.
    uneven: f64,
    uneven_calls: f64,
    /// Kibibytes, the most of all ranks.
    state: f64,
    instructions: f64,
}

fn mean(all: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    all.iter().map(of).sum::<f64>() / all.len().max(1) as f64
}

/// The largest over the median.
fn unevenness(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (Some(most), Some(median)) = (values.last(), values.get(values.len() / 2)) else {
        return 1.0;
    };
    if *median > 0.0 { most / median } else { 1.0 }
}

/// The bytes of the program's own calls to each rank.
fn called(all: &[Figures]) -> Vec<f64> {
    let mut to = vec![0.0; all.len()];
    for call in all.iter().filter_map(|f| f.0["calls"].as_array()).flatten() {
        let target = call[0].as_u64().unwrap_or(0) as usize;
        if let Some(to) = to.get_mut(target) {
            *to += call[2].as_f64().unwrap_or(0.0);
        }
    }
    to
}

fn row(all: &[Figures], instructions: f64) -> Row {
    let calls = |f: &Figures| {
        let calls = f.0["calls"].as_array();
        let calls: f64 = calls.into_iter().flatten().filter_map(|c| c[1].as_f64()).sum();
        calls / f.get("phases").max(1.0)
    };
    Row {
        ranks: all.len() as u32,
        phases: mean(all, |f| f.get("phases")),
        accesses: mean(all, |f| f.per_phase("accesses")),
        messages: mean(all, |f| f.per_phase("messages")),
        calls: mean(all, calls),
        bytes: mean(all, |f| f.per_phase("sent")),
        logs: mean(all, |f| f.get("logs")),
        uneven: unevenness(all.iter().map(|f| f.get("received")).collect()),
        uneven_calls: unevenness(called(all)),
        state: all.iter().map(|f| f.get("state")).fold(0.0, f64::max) / 1024.0,
        instructions,
    }
}

/// The exponent of the growth of a figure with the number of ranks.
fn slope(rows: &[Row], of: impl Fn(&Row) -> f64) -> f64 {
    let points: Vec<(f64, f64)> =
        rows.iter().map(|r| (f64::from(r.ranks).ln(), of(r).max(1e-9).ln())).collect();
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let above: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let below: f64 = points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum();
    above / below
}

/// `spmd --growth`.
pub(super) fn measure(place: &Place, here: &Path, library: &Path) -> Result<(), String> {
    println!(
        "each rank and phase, the mean over the ranks; the nonblocking barrier and the allreduce of 4 bytes that end a phase are not counted"
    );
    for kernel in KERNELS {
        let program = build(place, here, &source("spmd", kernel), Form::Ours)?;
        println!("\n{kernel}");
        println!(
            "{:>5} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7} {:>17} {:>10} {:>13}",
            "ranks",
            "phases",
            "accesses",
            "calls",
            "messages",
            "bytes",
            "logs",
            "uneven (program)",
            "state KiB",
            "instructions"
        );
        let mut rows = Vec::new();
        for ranks in RANKS {
            let observed = Observed { ranks, scale: SCALE, library, here };
            observed.run(&program, &[("SELVEDGE_SPMD_FIGURES", "1")])?;
            let counted = figures(&observed.lines())?;
            let instructions = instructions(&observed, &program)?;
            let row = row(&counted, instructions);
            print(&row);
            rows.push(row);
        }
        println!(
            "{:>5} {:>7} {:>9} {:>9.2} {:>9.2} {:>9.2} {:>7} {:>17} {:>10.2} {:>13.2}",
            "slope",
            "",
            "",
            slope(&rows, |r| r.calls),
            slope(&rows, |r| r.messages),
            slope(&rows, |r| r.bytes),
            "",
            "",
            slope(&rows, |r| r.state),
            slope(&rows, |r| r.instructions),
        );
    }
    reduction(place, here, library)
}

fn print(row: &Row) {
    println!(
        "{:>5} {:>7.0} {:>9.1} {:>9.2} {:>9.2} {:>9.1} {:>7.1} {:>17} {:>10.1} {:>13.0}",
        row.ranks,
        row.phases,
        row.accesses,
        row.calls,
        row.messages,
        row.bytes,
        row.logs,
        format!("{:.1} ({:.1})", row.uneven, row.uneven_calls),
        row.state,
        row.instructions,
    );
}

/// What pruning removes, as in section 8.1 of the thesis: there, of MG with 64 ranks, 46% of 4.7 million accesses, and
/// 10 bytes were sent by each rank at each barrier, at most 23 KB.
fn reduction(place: &Place, here: &Path, library: &Path) -> Result<(), String> {
    const RANKS: u32 = 16;
    println!(
        "\nMG with {RANKS} ranks (thesis: 64 ranks, 4.7 million accesses, 46% removed, 10 bytes, at most 23,000)"
    );
    println!(
        "{:<17} {:>10} {:>9} {:>12} {:>19} {:>13}",
        "", "accesses", "removed", "distributed", "bytes and barrier", "at most"
    );
    for (name, form) in [("calls", Form::Native), ("and memory", Form::Ours)] {
        let program = build(place, here, &super::kernel("mg"), form)?;
        let observed = Observed { ranks: RANKS, scale: 10 * SCALE, library, here };
        observed.run(&program, &[("SELVEDGE_SPMD_FIGURES", "1")])?;
        let all = figures(&observed.lines())?;
        let sum = |of: &str| all.iter().map(|f| f.get(of)).sum::<f64>();
        println!(
            "{name:<17} {:>10} {:>8.0}% {:>12} {:>19.1} {:>13}",
            sum("accesses"),
            100.0 * (1.0 - sum("distributed") / sum("accesses").max(1.0)),
            sum("distributed"),
            mean(&all, |f| f.per_phase("sent")),
            all.iter().map(|f| f.get("most_sent")).fold(0.0, f64::max),
        );
    }
    Ok(())
}

/// Instructions of the analysis for each access of the rank in the middle.
fn instructions(observed: &Observed<'_>, program: &Path) -> Result<f64, String> {
    let counted = observed.here.join("callgrind.out");
    let wrapper = under_callgrind(observed, program, &counted)?;
    observed.run(&wrapper, &[("SELVEDGE_SPMD_FIGURES", "1")])?;
    let text = std::fs::read_to_string(&counted)
        .map_err(|e| format!("valgrind has left no {}: {e}", counted.display()))?;
    let all = figures(&observed.lines())?;
    let rank = all.get(observed.ranks as usize / 2).ok_or("a rank has counted nothing")?;
    Ok(of_analysis(&text) as f64 / rank.get("accesses").max(1.0))
}

/// A script that runs the program, in one rank under callgrind.
fn under_callgrind(
    observed: &Observed<'_>,
    program: &Path,
    counted: &Path,
) -> Result<PathBuf, String> {
    let script = observed.here.join("one-under-callgrind");
    let text = format!(
        "#!/bin/sh\nif [ \"$OMPI_COMM_WORLD_RANK\" = {} ]; then\n  \
         exec valgrind -q --tool=callgrind --callgrind-out-file={} {} \"$@\"\nfi\nexec {} \"$@\"\n",
        observed.ranks / 2,
        counted.display(),
        program.display(),
        program.display(),
    );
    std::fs::write(&script, text).map_err(|e| e.to_string())?;
    super::succeeded(Command::new("chmod").arg("+x").arg(&script))?;
    Ok(script)
}

/// Whether a module is part of the analysis.
fn is_ours(module: &str) -> bool {
    module.contains("libselvedge_")
}

/// Whether a module belongs to MPI: what it does when we call it is communication.
fn is_mpi(module: &str) -> bool {
    ["libmpi", "libopen-", "mca_", "libevent", "liboshmem"].iter().any(|name| module.contains(name))
}

/// The instructions of the analysis in a profile of callgrind: its own, and those of what it calls outside of MPI. The
/// function `sparse` is left out, which waits for messages.
fn of_analysis(profile: &str) -> u64 {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut named = |text| -> &str {
        // "(7) name" defines a number, "(7)" uses it.
        match str::split_once(text, ' ') {
            Some((number, name)) => {
                names.insert(number, name);
                name
            }
            None => names.get(text).copied().unwrap_or(text),
        }
    };
    let (mut module, mut waits, mut callee, mut is_call) = ("", false, None, false);
    let mut waiting = "";
    let mut total = 0;
    for line in profile.lines() {
        if let Some(text) = line.strip_prefix("ob=") {
            module = named(text);
        } else if let Some(text) = line.strip_prefix("cob=") {
            callee = Some(named(text));
        } else if let Some(text) = line.strip_prefix("fn=") {
            let number = text.split(' ').next().unwrap_or(text);
            waiting = if text.ends_with(" sparse") { number } else { waiting };
            waits = number == waiting;
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost = line.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            let called = callee.take().unwrap_or(module);
            let counts = match std::mem::take(&mut is_call) {
                false => !waits,
                // What a part of the analysis calls in the other one is counted there.
                true => !is_ours(called) && !is_mpi(called),
            };
            total += if counts && is_ours(module) { cost } else { 0 };
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::of_analysis;

    #[test]
    fn a_profile_is_summed_without_mpi_and_without_waiting() {
        let profile = "\
ob=(1) /x/libselvedge_rank.so
fn=(1) 0x10
0 100
cob=(2) /lib/libc.so.6
cfn=(2) malloc
calls=1 0
0 50
cob=(3) /lib/libmpi.so.40
cfn=(3) PMPI_Put
calls=1 0
0 1000
+5 7
cfn=(4) 0x20
calls=1 0
0 30

fn=(4) 0x20
0 30

ob=(5) /x/libselvedge_mpi.so
fn=(6) sparse
0 500

fn=(7) visit
0 5

fn=(6)
0 500

ob=(2)
fn=(2)
0 50

ob=(1)
fn=(1)
0 3
";
        assert_eq!(of_analysis(profile), 100 + 50 + 7 + 30 + 5 + 3);
    }
}
