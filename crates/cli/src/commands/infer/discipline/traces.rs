//! Inference from trace files, which have names of their own.

use std::collections::BTreeSet;
use std::path::Path;

use selvedge_analyses::Analysis;
use selvedge_analyses::devices::Device;
use selvedge_analyses::hominy::{Hominy, Instance as Found};
use selvedge_model::FindingId;
use selvedge_model::{Findings, Kind, Range, Symbols};
use selvedge_report::Case;
use selvedge_specs::discipline::canon::{Folded, Open};
use selvedge_specs::discipline::merge::{Instance, Place};

use super::Seen;
use crate::commands::check;
use crate::exit::Failure;
use crate::input::Input;

/// Infers from a trace. If it becomes unreadable half-way, what came before counts.
pub(super) fn infer(path: &Path, seen: &mut Seen) -> Result<(), Failure> {
    let mut input = Input::open(path)?;
    let mut hominy = Hominy::default();
    let mut findings = Findings::default();
    let mut batch = Vec::new();
    loop {
        let outcome = input.read(&mut batch);
        seen.report.stats.events += batch.len() as u64;
        hominy.on_events(&batch, &mut findings);
        take(&mut hominy, input.reader().symbols(), seen);
        outcome?;
        if batch.is_empty() {
            break;
        }
    }
    let symbols = input.reader().symbols();
    hominy.drain(|ended, inference| add(&inference.instance(&ended), symbols, seen));
    findings.iter().for_each(|f| seen.report.add(Case::new(f, symbols)));
    let stats = &mut seen.report.stats;
    stats.traces += 1;
    stats.threads += symbols.threads.entries().len();
    let name = path.display().to_string();
    stats.bounds.extend(bound(&hominy, Some(name)));
    Ok(())
}

/// The limit that the inference reached.
pub(super) fn bound(hominy: &Hominy, trace: Option<String>) -> Option<selvedge_report::Bound> {
    let bound = hominy.bound()?;
    let reached = selvedge_analyses::pipeline::Reached { analysis: "discipline", bound };
    Some(check::bound(reached, trace))
}

fn take(hominy: &mut Hominy, symbols: &Symbols, seen: &mut Seen) {
    hominy.take_instances().iter().for_each(|found| add(found, symbols, seen));
}

fn add(found: &Found, symbols: &Symbols, seen: &mut Seen) {
    let name = variable(symbols, found.bytes);
    let named = named(found, symbols, |device| device_name(symbols, *device));
    seen.merger.add(&name, named);
}

/// What some memory is called.
pub(super) fn variable(symbols: &Symbols, bytes: Range) -> String {
    symbols.variable(bytes)
}

/// What a device is called.
pub(super) fn device_name(symbols: &Symbols, device: Device) -> String {
    match device {
        Device::Lock(id) => symbols.lock(id),
        Device::Barrier(id) => symbols.barrier(id),
        Device::Semaphore(id) => symbols.semaphore(id),
        Device::Atomic(addr) => symbols.variable(Range { start: addr, len: 1 }),
    }
}

/// An instance with names.
pub(super) fn named(
    found: &Found,
    symbols: &Symbols,
    mut name: impl FnMut(&Device) -> String,
) -> Instance {
    let mut names = |devices: &Vec<Device>| {
        let mut names: Vec<String> = devices.iter().map(&mut name).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let mut open =
        |of: &Open<Device>| Open { step: of.step.map(&mut names), unless: names(&of.unless) };
    let steps = match found.race {
        Some(sites) => {
            let sites = sites.map(|site| symbols.site(site).to_string());
            Err(FindingId::new(Kind::DataRace, sites).to_string())
        }
        None => Ok(found
            .steps
            .iter()
            .map(|part| match part {
                Folded::Once(step) => Folded::Once(open(step)),
                Folded::Repeat(block) => Folded::Repeat(block.iter().map(&mut open).collect()),
            })
            .collect()),
    };
    let threads: BTreeSet<_> = found.places.iter().map(|p| p.thread).collect();
    let places = found.places.iter().map(|place| Place {
        site: symbols.site(place.site),
        locks: place.locks.iter().map(|&l| name(&Device::Lock(l))).collect(),
    });
    Instance { steps, accesses: found.accesses, threads: threads.len(), places: places.collect() }
}
