//! `selvedge trace`: prints, summarises and converts traces.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use selvedge_model::trace::binary::BinaryWriter;
use selvedge_model::trace::text::TextWriter;
use selvedge_model::trace::{Ending, Format};
use selvedge_model::{Event, Op, Symbols};

use crate::args::{Trace, TraceCommand};
use crate::exit::{Exit, Failure};
use crate::input::Input;

/// Runs the subcommand.
pub(crate) fn run(args: &Trace) -> Result<Exit, Failure> {
    match &args.command {
        TraceCommand::Cat { trace, limit } => cat(trace, limit.unwrap_or(u64::MAX))?,
        TraceCommand::Stats { traces } => traces.iter().try_for_each(|t| stats(t))?,
        TraceCommand::Convert { from, to } => convert(from, to)?,
    }
    Ok(Exit::Clean)
}

/// Hands every event of a trace to `each`, until that returns false.
fn for_each(
    path: &Path,
    mut each: impl FnMut(&Event, &Symbols) -> Result<bool, Failure>,
) -> Result<Input, Failure> {
    let mut input = Input::open(path)?;
    let mut batch = Vec::new();
    loop {
        let outcome = input.read(&mut batch);
        for event in &batch {
            if !each(event, input.reader().symbols())? {
                return Ok(input);
            }
        }
        outcome?;
        if batch.is_empty() {
            return Ok(input);
        }
    }
}

fn cat(path: &Path, limit: u64) -> Result<(), Failure> {
    let mut writer = TextWriter::new(BufWriter::new(io::stdout().lock()));
    let mut left = limit;
    let outcome = for_each(path, |event, symbols| {
        if left > 0 {
            writer.write(event, symbols)?;
        }
        left = left.saturating_sub(1);
        Ok(left > 0)
    });
    writer.finish()?;
    outcome.map(drop)
}

fn convert(from: &Path, to: &Path) -> Result<(), Failure> {
    if to == Path::new("-") {
        return cat(from, u64::MAX);
    }
    // Open the input first: a wrong name must not leave an empty output behind.
    drop_unless_input(from)?;
    let write = |error| Failure::Write { path: to.to_owned(), error };
    let output = BufWriter::new(File::create(to).map_err(write)?);
    if to.extension().is_some_and(|e| e == "svt") {
        let mut writer = BinaryWriter::new(output).map_err(write)?;
        let read = for_each(from, |event, symbols| {
            writer.write(event, symbols).map_err(write)?;
            Ok(true)
        })?;
        writer.finish(read.reader().symbols()).map_err(write)?;
    } else {
        let mut writer = TextWriter::new(output);
        for_each(from, |event, symbols| {
            writer.write(event, symbols).map_err(write)?;
            Ok(true)
        })?;
        writer.finish().map_err(write)?;
    }
    Ok(())
}

fn drop_unless_input(from: &Path) -> Result<(), Failure> {
    if from == Path::new("-") { Ok(()) } else { Input::open(from).map(drop) }
}

#[derive(Default)]
struct Counts {
    events: u64,
    reads: u64,
    writes: u64,
    atomics: u64,
    locks: u64,
    threads: u64,
    rendezvous: u64,
    conditions: u64,
    regions: u64,
    memory: u64,
    flow: u64,
}

impl Counts {
    fn add(&mut self, op: &Op) {
        self.events += 1;
        *match op {
            Op::Read(_) => &mut self.reads,
            Op::Write(_) => &mut self.writes,
            Op::Atomic(..) | Op::Fence(_) => &mut self.atomics,
            Op::Acquire(..) | Op::Release(..) => &mut self.locks,
            Op::Fork(_) | Op::Join(_) | Op::Begin | Op::End => &mut self.threads,
            Op::Arrive(..) | Op::Leave(..) | Op::Post(_) | Op::Wait(_) => &mut self.rendezvous,
            Op::Notify(..) | Op::Wake(_) => &mut self.conditions,
            Op::RegionEnter(..) | Op::RegionExit(_) => &mut self.regions,
            Op::Alloc(_) | Op::Free(_) => &mut self.memory,
            Op::Flow(_) | Op::Focus(_) => &mut self.flow,
        } += 1;
    }
}

fn stats(path: &Path) -> Result<(), Failure> {
    let mut counts = Counts::default();
    let input = for_each(path, |event, _| {
        counts.add(&event.op);
        Ok(true)
    })?;
    let symbols = input.reader().symbols();
    let format = match input.reader().format() {
        Format::Text => "text",
        Format::Binary => "binary",
    };
    let ending = match input.reader().ending() {
        Ending::Whole => "",
        Ending::CutOff { .. } => ", cut off",
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{} ({format}{ending})", path.display())?;
    let mut row = |name: &str, n: u64| {
        if n > 0 { writeln!(out, "  {name:<22}{n:>14}") } else { Ok(()) }
    };
    row("events", counts.events)?;
    row("reads", counts.reads)?;
    row("writes", counts.writes)?;
    row("atomics and fences", counts.atomics)?;
    row("lock operations", counts.locks)?;
    row("forks, joins, ends", counts.threads)?;
    row("barriers, semaphores", counts.rendezvous)?;
    row("notifications", counts.conditions)?;
    row("region marks", counts.regions)?;
    row("allocations, frees", counts.memory)?;
    row("data flow", counts.flow)?;
    row("threads", symbols.threads.entries().len() as u64)?;
    row("locks", symbols.locks.entries().len() as u64)?;
    row("named variables", symbols.variables.iter().len() as u64)?;
    row("sites", symbols.sites.entries().len() as u64)?;
    Ok(())
}
