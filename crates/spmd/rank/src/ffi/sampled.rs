//! Sampling, as the environment asks for it: `SELVEDGE_SPMD_SAMPLE` is what follows `--sample`, and
//! `SELVEDGE_SPMD_ALIAS_ONCE` is set for `--alias-once`. Executions that test races look at everything.

use std::ffi::c_int;

use super::{State, runtime};
use crate::sampling::{Sampler, Sampling};

/// Tells the runtime what to sample; returns the sampler of calls.
pub(super) fn start(rank: u32) -> Sampler {
    let set = |variable| std::env::var(variable).ok();
    if set("SELVEDGE_SPMD_PLAN").is_some() {
        return Sampler::default();
    }
    let asked = set("SELVEDGE_SPMD_SAMPLE").and_then(|text| text.parse::<Sampling>().ok());
    let Sampling { instruction, function } = asked.unwrap_or_default();
    let alias_once = set("SELVEDGE_SPMD_ALIAS_ONCE").is_some();
    // A seed of its own for each rank, the same in every execution.
    let seed = (u64::from(rank) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if let Some(runtime) = runtime() {
        let part = |factor: f64| (factor * (1u64 << 32) as f64) as u64;
        // SAFETY: no memory involved.
        unsafe {
            (runtime.sample)(part(instruction), part(function), c_int::from(alias_once), seed)
        };
    }
    Sampler::new(instruction, seed)
}

/// Statements that were found to race are not sampled again.
pub(super) fn settle(state: &mut State) {
    for pc in std::mem::take(&mut state.outside.raced) {
        state.sampler.settle(pc);
        if let Some(runtime) = runtime() {
            // SAFETY: no memory involved.
            unsafe { (runtime.settle)(pc as usize) };
        }
    }
}
