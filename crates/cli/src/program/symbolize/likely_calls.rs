//! The calls that led to a race's earlier access.
//!
//! When the race is found, its earlier thread has gone on. What is left is its call stack as it is now,
//! with what its last calls left behind: entries are overwritten by later calls, and not erased. They are
//! believed from the outermost on as long as each was called by the one before, and they answer if one of
//! them is of the function that made the access.
//!
//! Guarantee: these calls have led to that function, one inside the other, in that thread. May be wrong:
//! that they did so when the access was made, where the function is called in several ways. May miss:
//! calls that were overwritten since.

use selvedge_runtime::{Call, Modules};

use super::Symbolizer;
use super::binary;

/// Where a function begins in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Function(u64);

impl Symbolizer {
    /// The return addresses of the calls, innermost first, that led to the function of `pc`. Empty if
    /// they are not known. `past` has the outermost call first.
    pub(crate) fn likely_calls(&mut self, pc: u64, past: &[Call], modules: &Modules) -> Vec<u64> {
        let Some(home) = self.around(pc, modules) else { return Vec::new() };
        let mut calls: Vec<u64> = Vec::new();
        let mut outer: Option<(Function, u64)> = None;
        for call in past {
            let Some(function) = self.around(call.inside, modules) else { break };
            match outer {
                // A function that was inlined says so as well, by the return address of what it is part of.
                Some((caller, returns_to))
                    if caller == function && returns_to == call.returns_to => {}
                Some((caller, _)) if !self.may_call(caller, call.returns_to, modules) => break,
                _ => calls.push(call.returns_to),
            }
            if function == home {
                calls.reverse();
                return calls;
            }
            outer = Some((function, call.returns_to));
        }
        Vec::new()
    }

    /// Whether a call that returns to `pc` is one of `caller`, or of something in between that is not
    /// instrumented and has no entries of its own.
    fn may_call(&mut self, caller: Function, pc: u64, modules: &Modules) -> bool {
        match self.around(pc, modules) {
            Some(function) => function == caller || !self.is_instrumented(function, modules),
            None => true,
        }
    }

    /// The function of the call that returns to `pc`.
    fn around(&mut self, pc: u64, modules: &Modules) -> Option<Function> {
        let module = modules.find(pc)?.clone();
        let binary = self.binary(&module);
        let (_, offset) = binary.function(pc.wrapping_sub(binary.bias(&module)).wrapping_sub(1))?;
        Some(Function(pc - 1 - offset))
    }

    /// Whether a function says when it begins; it does so soon.
    fn is_instrumented(&mut self, Function(start): Function, modules: &Modules) -> bool {
        const SOON: u64 = 256;
        let Some(module) = modules.find(start).cloned() else { return false };
        let binary = self.binary(&module);
        let start = start.wrapping_sub(binary.bias(&module));
        (start + 5..start + SOON)
            .any(|at| binary.call_before(at) == binary::Call::Of("__tsan_func_entry"))
    }
}
