//! Inference from controlled executions, under random schedules.
//!
//! Memory has numbers there instead of addresses, so that only variables with static storage have names that
//! agree with those of native runs; others are left out, and so is what other locks than such order.

use std::ffi::OsString;
use std::time::Duration;

use selvedge_analyses::Analysis;
use selvedge_analyses::devices::Device;
use selvedge_analyses::hominy::Hominy;
use selvedge_engine::executor::execute;
use selvedge_engine::{Ask, Noted};
use selvedge_explore::{Plan, Rng};
use selvedge_model::Findings;
use selvedge_report::Case;
use selvedge_runtime::Object;

use super::{Seen, traces};
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::program::names::{self, array};
use crate::progress::Schedules;

/// The longest time for one execution.
const PATIENCE: Duration = Duration::from_secs(10);

/// Infers from executions under random schedules.
pub(super) fn infer(command: &[OsString], schedules: u64, seen: &mut Seen) -> Result<(), Failure> {
    if schedules == 0 {
        return Ok(());
    }
    let program = ControlledProgram::find(command, PATIENCE)?;
    let deadline = Deadline::new(None)?;
    let mut executor = Native::new(&program, &deadline).naming_data().executor()?;
    let mut strategy = Plan::from("random").strategy();
    let mut progress = Schedules::new("infer", schedules);
    for number in 0..schedules {
        progress.advance(number, 0, &deadline);
        let ask = Ask { noted: Noted::Accesses, seed: number, ..Ask::default() };
        let rng = Rng::of_execution(0, number);
        let execution = execute(&mut executor, &mut *strategy, rng, &ask)?;
        let Some(execution) = execution else { break };
        let symbols = executor.named(&execution.events);
        let mut hominy = Hominy::default();
        let mut findings = Findings::default();
        hominy.on_events(&execution.events, &mut findings);
        hominy.finish(&mut findings);
        for found in hominy.take_instances() {
            if symbols.variables.at(found.bytes.start).is_none() {
                continue;
            }
            let name = traces::variable(&symbols, found.bytes);
            let element = names::element(&name).map(|(element, _)| element);
            let mut all_named = true;
            let named = traces::named(&found, &symbols, |&device| {
                all_named &= match device {
                    Device::Lock(id) => executor.has_name(Object::Lock(id)),
                    Device::Barrier(id) => executor.has_name(Object::Barrier(id)),
                    Device::Semaphore(id) => executor.has_name(Object::Semaphore(id)),
                    Device::Atomic(addr) => symbols.variables.at(addr).is_some(),
                };
                names::seen_from(&traces::device_name(&symbols, device), element)
            });
            if all_named {
                seen.merger.add(&array(&name, false), named);
            }
        }
        findings.iter().for_each(|f| seen.report.add(Case::new(f, &symbols)));
        let stats = &mut seen.report.stats;
        stats.traces += 1;
        stats.events += execution.events.len() as u64;
    }
    progress.clear();
    Ok(())
}
