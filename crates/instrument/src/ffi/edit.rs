//! Changes the compiler's hooks.

use std::collections::HashMap;
use std::ffi::{CStr, c_uint};

use super::{Handle, Module, opcode};
use crate::accesses::{Edit, Place, Sweep};

const NO_NAME: *const std::ffi::c_char = c"".as_ptr();

/// Changes a module.
pub(super) struct Editor<'w, 'a> {
    module: &'w Module<'a>,
    builder: Handle,
    word: Handle,
    /// The blocks on edges, by function, block and successor.
    edges: HashMap<(u32, u32, u32), Handle>,
    /// What stands in the place of a merged value.
    renewed: HashMap<Handle, Handle>,
}

impl Drop for Editor<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, used by nothing else.
        unsafe { (self.module.llvm.DisposeBuilder)(self.builder) };
    }
}

impl<'w, 'a> Editor<'w, 'a> {
    pub(super) fn new(module: &'w Module<'a>) -> Editor<'w, 'a> {
        // SAFETY: rule 2.
        let (builder, word) = unsafe {
            let builder = (module.llvm.CreateBuilderInContext)(module.context);
            (builder, (module.llvm.Int64TypeInContext)(module.context))
        };
        Editor { module, builder, word, edges: HashMap::new(), renewed: HashMap::new() }
    }

    /// Hooks are removed last: sweeps refer to them.
    pub(super) fn all(mut self, edits: &[Edit]) {
        for edit in edits {
            match edit {
                Edit::Sweep(sweep) => self.sweep(sweep),
                Edit::Early { hook, to } => self.early(*hook, *to),
                Edit::Remove(_) => {}
            }
        }
        for edit in edits {
            if let Edit::Remove(hook) = edit {
                // SAFETY: a hook has no value, so nothing uses it.
                unsafe { (self.module.llvm.InstructionEraseFromParent)(self.at(*hook)) };
            }
        }
    }

    fn at(&self, (function, block, at): Place) -> Handle {
        let handle = self.module.instructions[function as usize][block as usize][at as usize];
        self.current(handle)
    }

    fn current(&self, handle: Handle) -> Handle {
        self.renewed.get(&handle).copied().unwrap_or(handle)
    }

    fn last(&self, function: u32, block: u32) -> Handle {
        let list = &self.module.instructions[function as usize][block as usize];
        list.last().copied().unwrap_or(std::ptr::null_mut())
    }

    fn early(&mut self, hook: Place, to: u32) {
        let (llvm, call) = (self.module.llvm, self.at(hook));
        // SAFETY: rules 2 and 3; the decision knows that the address is known there.
        unsafe {
            let place = (llvm.InstructionGetDebugLoc)(call);
            (llvm.InstructionRemoveFromParent)(call);
            (llvm.PositionBuilderBefore)(self.builder, self.last(hook.0, to));
            (llvm.SetCurrentDebugLocation2)(self.builder, place);
            (llvm.InsertIntoBuilder)(self.builder, call);
        }
    }

    fn sweep(&mut self, sweep: &Sweep) {
        let llvm = self.module.llvm;
        let edge = self.edge(sweep.function, sweep.edge);
        let phi = self.at((sweep.function, sweep.counter.phi.0, sweep.counter.phi.1));
        let hook = self.at((sweep.function, sweep.hook.0, sweep.hook.1));
        let name = if sweep.write { c"selvedge_sweep_write" } else { c"selvedge_sweep_read" };
        // SAFETY: rules 2 and 3: the hook has an address, counter and address are known on the edge because their blocks
        // dominate it, and the builder stands in front of the jump that ends the edge's block.
        unsafe {
            (llvm.PositionBuilderBefore)(self.builder, edge);
            (llvm.SetCurrentDebugLocation2)(self.builder, (llvm.InstructionGetDebugLoc)(hook));
            let b = self.builder;
            let [step, back, offset, each, stride, len, one] = [
                sweep.counter.step,
                sweep.back,
                sweep.offset,
                sweep.each,
                sweep.stride,
                sweep.len,
                1,
            ]
            .map(|n| (llvm.ConstInt)(self.word, n as u64, 1));
            let now = self.as_word(phi);
            let first = self.as_word(self.incoming(phi, sweep.function, sweep.counter.before));
            let moved = (llvm.BuildSub)(b, now, first, NO_NAME);
            let earlier = (llvm.BuildExactSDiv)(b, moved, step, NO_NAME);
            let at = (llvm.GetOperand)(hook, 0);
            let at = (llvm.BuildAdd)(b, self.as_word(self.current(at)), offset, NO_NAME);
            let before = (llvm.BuildMul)(b, earlier, back, NO_NAME);
            let start = (llvm.BuildSub)(b, at, before, NO_NAME);
            let rounds = (llvm.BuildAdd)(b, earlier, one, NO_NAME);
            let count = (llvm.BuildMul)(b, rounds, each, NO_NAME);
            self.call(name, &mut [start, stride, count, len]);
        }
    }

    /// # Safety
    /// A value of 64 bits of the function that the builder stands in.
    unsafe fn as_word(&self, value: Handle) -> Handle {
        let llvm = self.module.llvm;
        // SAFETY: the caller's.
        unsafe {
            if (llvm.TypeOf)(value) == self.word {
                return value;
            }
            (llvm.BuildPtrToInt)(self.builder, value, self.word, NO_NAME)
        }
    }

    /// # Safety
    /// A merged value, and a block that it comes from, perhaps over an edge that has a block of its own by now.
    unsafe fn incoming(&self, phi: Handle, function: u32, from: u32) -> Handle {
        let llvm = self.module.llvm;
        // SAFETY: the caller's; an edge's block holds the jump that is kept for it.
        unsafe {
            let block = (llvm.GetInstructionParent)(self.last(function, from));
            let on_edge = |other: Handle| {
                let edges =
                    self.edges.iter().filter(|(edge, _)| (edge.0, edge.1) == (function, from));
                edges.into_iter().any(|(_, &jump)| (llvm.GetInstructionParent)(jump) == other)
            };
            let mut all = 0..(llvm.CountIncoming)(phi);
            let comes = |&n: &c_uint| {
                let other = (llvm.GetIncomingBlock)(phi, n);
                other == block || on_edge(other)
            };
            let of = all.find(comes).unwrap_or(0);
            (llvm.GetIncomingValue)(phi, of)
        }
    }

    /// # Safety
    /// The builder stands in a block; the arguments are words that are known there.
    unsafe fn call(&self, name: &CStr, arguments: &mut [Handle]) {
        let (llvm, module) = (self.module.llvm, self.module.module);
        let mut types = vec![self.word; arguments.len()];
        let count = arguments.len() as c_uint;
        // SAFETY: the caller's; rule 2.
        unsafe {
            let void = (llvm.VoidTypeInContext)(self.module.context);
            let kind = (llvm.FunctionType)(void, types.as_mut_ptr(), count, 0);
            let known = (llvm.GetNamedFunction)(module, name.as_ptr());
            let callee = if known.is_null() {
                (llvm.AddFunction)(module, name.as_ptr(), kind)
            } else {
                known
            };
            (llvm.BuildCall2)(self.builder, kind, callee, arguments.as_mut_ptr(), count, NO_NAME);
        }
    }

    /// The jump that ends the block on an edge, which is made if there is none yet.
    fn edge(&mut self, function: u32, (from, slot): (u32, u32)) -> Handle {
        if let Some(&known) = self.edges.get(&(function, from, slot)) {
            return known;
        }
        let llvm = self.module.llvm;
        let branch = self.last(function, from);
        // SAFETY: rules 2 and 3: the last instruction of a block is a branch with that successor, which no other of its
        // successors is, so that its merged values have one entry for the edge.
        let jump = unsafe {
            let source = (llvm.GetInstructionParent)(branch);
            let target = (llvm.GetSuccessor)(branch, slot);
            let parent = (llvm.GetBasicBlockParent)(source);
            let block = (llvm.AppendBasicBlockInContext)(self.module.context, parent, NO_NAME);
            (llvm.PositionBuilderAtEnd)(self.builder, block);
            (llvm.SetCurrentDebugLocation2)(self.builder, (llvm.InstructionGetDebugLoc)(branch));
            let jump = (llvm.BuildBr)(self.builder, target);
            (llvm.SetSuccessor)(branch, slot, block);
            let mut phi = (llvm.GetFirstInstruction)(target);
            while (llvm.GetInstructionOpcode)(phi) == opcode::PHI {
                let next = (llvm.GetNextInstruction)(phi);
                self.redirect(phi, source, block);
                phi = next;
            }
            jump
        };
        self.edges.insert((function, from, slot), jump);
        jump
    }

    /// Makes a merged value come from another block. LLVM's interface can only add to such a value, so a new one takes its place.
    ///
    /// # Safety
    /// A merged value and blocks of its function.
    unsafe fn redirect(&mut self, old: Handle, from: Handle, to: Handle) {
        let llvm = self.module.llvm;
        // SAFETY: the caller's.
        unsafe {
            (llvm.PositionBuilderBefore)(self.builder, old);
            (llvm.SetCurrentDebugLocation2)(self.builder, (llvm.InstructionGetDebugLoc)(old));
            let new = (llvm.BuildPhi)(self.builder, (llvm.TypeOf)(old), NO_NAME);
            for n in 0..(llvm.CountIncoming)(old) {
                let mut value = (llvm.GetIncomingValue)(old, n);
                let block = (llvm.GetIncomingBlock)(old, n);
                let mut block = if block == from { to } else { block };
                (llvm.AddIncoming)(new, &raw mut value, &raw mut block, 1);
            }
            (llvm.ReplaceAllUsesWith)(old, new);
            (llvm.InstructionEraseFromParent)(old);
            for renewed in self.renewed.values_mut().filter(|r| **r == old) {
                *renewed = new;
            }
            self.renewed.insert(old, new);
        }
    }
}
