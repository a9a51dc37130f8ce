//! What the analyses of non-interference cost for each event, beside a `races` pass.
//!
//! They run in turn over the same events of a made-up program: four threads update a table under striped
//! locks in atomic (or deterministic) regions, sweep arrays of their own, read shared data and bump
//! atomic counters. Memory is that of a process for each pass, after a fifth of the events and after
//! all of them.

use std::time::Instant;

use selvedge_analyses::Analysis;
use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::singletrack::{Filtered, SingleTrack};
use selvedge_analyses::velodrome::Velodrome;
use selvedge_analyses::views::Views;
use selvedge_model::{
    Access, AtomicOp, Event, Findings, LockId, Mode, Op, RegionId, RegionKind, SiteId, ThreadId,
    UpdateOrder,
};

use crate::synthetic::Random;

const THREADS: u32 = 4;
const ROUNDS: usize = 3;
const PARTS: usize = 5;

struct Counting(u64);

impl Analysis for Counting {
    fn on_event(&mut self, event: &Event, _: &mut Findings) {
        self.0 += u64::from(event.is_plain_access());
    }

    fn restart(&mut self) {
        self.0 = 0;
    }
}

/// Jobs of the threads, in quanta of one job, so that regions of different threads overlap where a job is
/// cut in two.
fn program(count: usize, kind: RegionKind) -> Vec<Event> {
    let mut random = Random(0x5e1f_ed9e);
    let mut events: Vec<Event> = Vec::with_capacity(count + 64);
    let mut cut: Vec<Vec<Op>> = vec![Vec::new(); THREADS as usize];
    while events.len() < count {
        let thread = random.below(u64::from(THREADS)) as u32;
        let heap = 0x5500_0000_0000 + u64::from(thread) * 0x1_0000_0000;
        let mut job = std::mem::take(&mut cut[thread as usize]);
        if job.is_empty() {
            match random.below(10) {
                0..4 => {
                    let at = heap + random.below(1 << 15) * 8;
                    for i in 0..40 {
                        job.push(Op::Read(Access { addr: at + i * 8, len: 8 }));
                        job.push(Op::Write(Access { addr: at + 0x100_0000 + i * 8, len: 8 }));
                    }
                }
                4..7 => update(&mut job, &mut random, kind),
                7..9 => {
                    for _ in 0..30 {
                        let addr = 0x7f20_0000_0000 + random.below(1 << 13) * 8;
                        job.push(Op::Read(Access { addr, len: 8 }));
                    }
                }
                _ => {
                    let access = Access { addr: 0x7f10_0000_0000 + random.below(4) * 64, len: 8 };
                    job.push(Op::Atomic(access, AtomicOp::Update(UpdateOrder::Relaxed)));
                }
            }
        }
        // Inside of a region, other threads may come in where no lock is held.
        let locked_from = job.iter().position(|op| matches!(op, Op::Acquire(..)));
        let stop = locked_from.filter(|&i| i > 0 && random.below(2) == 0).unwrap_or(job.len());
        let rest = job.split_off(stop);
        cut[thread as usize] = rest;
        events.extend(job.into_iter().enumerate().map(|(i, op)| Event {
            thread: ThreadId(thread),
            site: SiteId(i as u32),
            op,
        }));
    }
    for (thread, rest) in cut.into_iter().enumerate() {
        let event = |op| Event { thread: ThreadId(thread as u32), site: SiteId(99), op };
        events.extend(rest.into_iter().map(event));
    }
    events
}

fn update(job: &mut Vec<Op>, random: &mut Random, kind: RegionKind) {
    job.push(Op::RegionEnter(RegionId(0), kind));
    for i in 0..6 {
        job.push(Op::Read(Access { addr: 0x7f20_0000_0000 + i * 8, len: 8 }));
    }
    let slot = random.below(1 << 14);
    let lock = LockId((slot % 64) as u32);
    job.push(Op::Acquire(lock, Mode::Exclusive));
    for i in 0..4 {
        let access = Access { addr: 0x7f00_0000_0000 + slot * 64 + i * 8, len: 8 };
        job.push(Op::Read(access));
        job.push(Op::Write(access));
    }
    job.push(Op::Release(lock, Mode::Exclusive));
    job.push(Op::RegionExit(RegionId(0)));
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}

/// Seconds for the events `PARTS` times over, memory after the first part and at the end, and findings.
fn pass(mut analysis: Box<dyn Analysis>, events: &[Event]) -> (f64, [f64; 2], usize) {
    let mut out = Findings::default();
    for child in 1..THREADS {
        let op = Op::Fork(ThreadId(child));
        analysis.on_event(&Event { thread: ThreadId(0), site: SiteId(0), op }, &mut out);
    }
    let start = Instant::now();
    let mut early = 0.0;
    for part in 0..PARTS {
        analysis.on_events(events, &mut out);
        if part == 0 {
            early = resident_mib();
        }
    }
    (start.elapsed().as_secs_f64(), [early, resident_mib()], out.len())
}

/// Memory early and late in a pass, measured in a process of its own.
fn memory(millions: usize, alternative: usize) -> Vec<f64> {
    let program = std::env::current_exe().expect("this program has a path");
    let arguments = [millions.to_string(), alternative.to_string()];
    let output = std::process::Command::new(program)
        .args(["noninterference", "pass"])
        .args(arguments)
        .output();
    let output = output.expect("this program can be run").stdout;
    let text = String::from_utf8_lossy(&output).into_owned();
    text.split_whitespace().map(|n| n.parse().expect("a number")).collect()
}

type Maker = fn() -> Box<dyn Analysis>;

/// Prints a table, or with a number only the memory of that pass.
pub(crate) fn run(millions: usize, only: Option<usize>) {
    let atomic = program(millions * 1_000_000 / PARTS, RegionKind::Atomic);
    let deterministic = program(millions * 1_000_000 / PARTS, RegionKind::Deterministic);
    let alternatives: [(&str, Maker, &[Event]); 8] = [
        ("counting", || Box::new(Counting(0)), &atomic),
        ("races", || Box::new(FastTrack::new()), &atomic),
        ("atomicity (AeroDrome)", || Box::new(AeroDrome::new()), &atomic),
        ("atomicity (Velodrome)", || Box::new(Velodrome::new()), &atomic),
        ("determinism, filtered", || Box::new(Filtered::default()), &deterministic),
        ("determinism, all accesses", || Box::new(SingleTrack::new()), &deterministic),
        ("reduction", || Box::new(Atomizer::new()), &atomic),
        ("views", || Box::new(Views::new()), &atomic),
    ];
    if let Some((_, make, events)) = only.and_then(|i| alternatives.get(i)) {
        let [early, late] = pass(make(), events).1;
        println!("{early} {late}");
        return;
    }
    let mut best = [f64::MAX; 8];
    let mut findings = [0; 8];
    for _ in 0..ROUNDS {
        for (i, (_, make, events)) in alternatives.iter().enumerate() {
            let (seconds, _, found) = pass(make(), events);
            best[i] = best[i].min(seconds);
            findings[i] = found;
        }
    }
    println!("passes over {millions} million events, best of {ROUNDS} alternating rounds");
    println!(
        "pass                        ns/event   to counting   to races   MiB early   MiB late   findings"
    );
    for (i, (name, _, events)) in alternatives.iter().enumerate() {
        let memory = memory(millions, i);
        println!(
            "{name:<27} {:>8.1} {:>13.1} {:>10.2} {:>11.0} {:>10.0} {:>10}",
            best[i] * 1e9 / (events.len() * PARTS) as f64,
            best[i] / best[0],
            best[i] / best[1],
            memory[0],
            memory[1],
            findings[i]
        );
    }
}
