//! Inserts the hooks that the compiler's pass leaves out.

use std::ffi::{CStr, c_int, c_uint};

use super::{Handle, Module};
use crate::accesses::{WideHook, wide};

const NO_NAME: *const std::ffi::c_char = c"".as_ptr();
const VECTOR: c_int = 13;
const POINTER: c_int = 12;

/// Inserts calls in front of instructions.
pub(super) struct Hooking<'w, 'a> {
    module: &'w Module<'a>,
    builder: Handle,
    word: Handle,
    layout: Handle,
}

impl Drop for Hooking<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, used by nothing else.
        unsafe { (self.module.llvm.DisposeBuilder)(self.builder) };
    }
}

/// The arguments of a masked access that matter.
struct Masked {
    /// A pointer, or a vector of them.
    at: Handle,
    /// A vector of bits.
    mask: Handle,
    lanes: c_uint,
    /// Bytes of a lane.
    len: u64,
}

impl<'w, 'a> Hooking<'w, 'a> {
    pub(super) fn new(module: &'w Module<'a>) -> Hooking<'w, 'a> {
        // SAFETY: rule 2.
        unsafe {
            Hooking {
                module,
                builder: (module.llvm.CreateBuilderInContext)(module.context),
                word: (module.llvm.Int64TypeInContext)(module.context),
                layout: (module.llvm.GetModuleDataLayout)(module.module),
            }
        }
    }

    /// Whether there was anything to insert.
    pub(super) fn all(&self) -> bool {
        let mut any = false;
        for (function, handles) in self.module.ir.functions.iter().zip(&self.module.instructions) {
            for access in wide(function) {
                let instruction = handles[access.at.0 as usize][access.at.1 as usize];
                // SAFETY: an instruction of the module, of the kind that the hook says.
                any |= unsafe { self.one(instruction, access.hook) };
            }
        }
        any
    }

    /// # Safety
    /// A load, a store, or a call of an intrinsic for masked accesses, as the hook says.
    unsafe fn one(&self, instruction: Handle, hook: WideHook) -> bool {
        let llvm = self.module.llvm;
        // SAFETY: the caller's; rule 3.
        unsafe {
            (llvm.PositionBuilderBefore)(self.builder, instruction);
            let place = (llvm.InstructionGetDebugLoc)(instruction);
            (llvm.SetCurrentDebugLocation2)(self.builder, place);
            match hook {
                WideHook::Range { write, len } => {
                    let at = (llvm.GetOperand)(instruction, c_uint::from(write));
                    let name = if write { c"__tsan_write_range" } else { c"__tsan_read_range" };
                    self.call(name, &mut [at, self.number(len)])
                }
                WideHook::Lanes { write } => {
                    let Some(masked) = self.masked(instruction, write) else { return false };
                    let bits = self.bits(masked.mask, masked.lanes);
                    let name = if write { c"selvedge_lanes_write" } else { c"selvedge_lanes_read" };
                    self.call(name, &mut [masked.at, self.number(masked.len), bits])
                }
                WideHook::Scattered { write } => {
                    let Some(masked) = self.masked(instruction, write) else { return false };
                    let name = if write { c"selvedge_lanes_write" } else { c"selvedge_lanes_read" };
                    for lane in 0..masked.lanes {
                        let lane = self.number(u64::from(lane));
                        let at = (llvm.BuildExtractElement)(self.builder, masked.at, lane, NO_NAME);
                        let bit =
                            (llvm.BuildExtractElement)(self.builder, masked.mask, lane, NO_NAME);
                        let bit = (llvm.BuildZExt)(self.builder, bit, self.word, NO_NAME);
                        self.call(name, &mut [at, self.number(masked.len), bit]);
                    }
                    true
                }
            }
        }
    }

    fn number(&self, n: u64) -> Handle {
        // SAFETY: a type of integers.
        unsafe { (self.module.llvm.ConstInt)(self.word, n, 0) }
    }

    /// What a masked access accesses. Which of its arguments is which shows in their types: versions of LLVM differ in how
    /// many there are. Nothing if it has more lanes than a word has bits.
    ///
    /// # Safety
    /// A call of an intrinsic for masked accesses.
    unsafe fn masked(&self, call: Handle, write: bool) -> Option<Masked> {
        let llvm = self.module.llvm;
        // SAFETY: the caller's; rule 3: types are asked for what their kind has.
        unsafe {
            let element = |value: Handle| {
                let kind = (llvm.TypeOf)(value);
                ((llvm.GetTypeKind)(kind) == VECTOR).then(|| (llvm.GetElementType)(kind))
            };
            let is_bit =
                |kind: Handle| (llvm.GetTypeKind)(kind) == 8 && (llvm.GetIntTypeWidth)(kind) == 1;
            let arguments = (0..(llvm.GetNumArgOperands)(call)).map(|n| (llvm.GetOperand)(call, n));
            // What is stored comes first, and may itself be a vector of pointers.
            let rest: Vec<Handle> = arguments.clone().skip(usize::from(write)).collect();
            let at = rest.iter().copied().find(|&a| {
                let kind = element(a).unwrap_or((llvm.TypeOf)(a));
                (llvm.GetTypeKind)(kind) == POINTER
            })?;
            let mask = rest.iter().copied().find(|&a| element(a).is_some_and(is_bit))?;
            let lanes = (llvm.GetVectorSize)((llvm.TypeOf)(mask));
            let value = if write { (llvm.GetOperand)(call, 0) } else { call };
            let len = (llvm.StoreSizeOfType)(self.layout, element(value)?);
            (lanes <= 64).then_some(Masked { at, mask, lanes, len })
        }
    }

    /// A vector of bits as a word.
    ///
    /// # Safety
    /// A vector of so many bits, at most 64.
    unsafe fn bits(&self, mask: Handle, lanes: c_uint) -> Handle {
        let llvm = self.module.llvm;
        // SAFETY: the caller's.
        unsafe {
            let narrow = (llvm.IntTypeInContext)(self.module.context, lanes);
            let bits = (llvm.BuildBitCast)(self.builder, mask, narrow, NO_NAME);
            if lanes == 64 {
                bits
            } else {
                (llvm.BuildZExt)(self.builder, bits, self.word, NO_NAME)
            }
        }
    }

    /// Calls a function whose first argument is a pointer and whose others are words. Always true.
    ///
    /// # Safety
    /// The builder stands in a block; the arguments are known there.
    unsafe fn call(&self, name: &CStr, arguments: &mut [Handle]) -> bool {
        let (llvm, module) = (self.module.llvm, self.module.module);
        let count = arguments.len() as c_uint;
        // SAFETY: the caller's; rule 2.
        unsafe {
            let mut types = vec![self.word; arguments.len()];
            types[0] = (llvm.PointerTypeInContext)(self.module.context, 0);
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
        true
    }
}
