//! Two bodies for a function: one with few hooks and one with all of them.
//!
//! Under control every access is a scheduling point, and analyses of recordings want every access; a run that only looks for
//! races wants few. One executable does both: a function begins by asking the runtime's word [`FLAG`], and goes to its
//! second body if that is not 0. It costs a load and a branch that is always predicted, and code of twice the size; hooks
//! that are patched in and out would need their places in loops, which the compiler would no longer leave alone.
//!
//! LLVM's interface cannot copy a function, so the module is parsed a second time and linked to itself: before, what is
//! local to the module gets a name that both copies share, and the second copy keeps nothing but second bodies.

use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_int, c_uint};

use super::{Functions, Handle, Module, opcode, parse};

/// The word of the runtime that says whether second bodies run.
const FLAG: &std::ffi::CStr = c"selvedge_all_hooks";
const NO_NAME: *const c_char = c"".as_ptr();

const EXTERNAL: c_int = 0;
const AVAILABLE_EXTERNALLY: c_int = 1;
const INTERNAL: c_int = 8;
const PRIVATE: c_int = 9;
const HIDDEN: c_int = 1;

/// What was local to the module.
struct Local {
    global: Handle,
    name: CString,
    linkage: c_int,
    visibility: c_int,
}

/// A second copy of a module.
pub(super) struct Second<'m, 'a> {
    module: &'m Module<'a>,
    copy: Handle,
    locals: Vec<Local>,
}

impl<'m, 'a> Second<'m, 'a> {
    /// Parses the module again. Nothing if it has something whose copy would not be the same thing: aliases, and addresses of
    /// labels.
    pub(super) fn of(module: &'m Module<'a>) -> Option<Second<'m, 'a>> {
        let llvm = module.llvm;
        // SAFETY: rule 2; null if there is none.
        let has_aliases = unsafe {
            !(llvm.GetFirstGlobalAlias)(module.module).is_null()
                || !(llvm.GetFirstGlobalIFunc)(module.module).is_null()
        };
        let lasts = module.instructions.iter().flatten().filter_map(|block| block.last());
        // SAFETY: instructions.
        let jumps_to_labels = lasts
            .map(|&last| unsafe { (llvm.GetInstructionOpcode)(last) })
            .any(|code| code == opcode::INDIRECT_BR);
        if has_aliases || jumps_to_labels {
            return None;
        }
        let copy = parse(llvm, module.context, &module.bytes)?;
        let second = Second { module, copy, locals: Vec::new() };
        let variables = second.list(llvm.GetFirstGlobal, llvm.GetNextGlobal);
        if variables.into_iter().any(|v| second.name(v).is_empty() && !second.has_no_identity(v)) {
            // What has no name cannot be shared.
            // SAFETY: rule 2; nothing uses it.
            unsafe { (llvm.DisposeModule)(second.copy) };
            return None;
        }
        Some(second)
    }

    /// Whether a variable is constant, and only its content matters.
    fn has_no_identity(&self, variable: Handle) -> bool {
        // SAFETY: a variable.
        unsafe {
            (self.llvm().IsGlobalConstant)(variable) != 0
                && (self.llvm().GetUnnamedAddress)(variable) != 0
        }
    }

    fn llvm(&self) -> &'a Functions {
        self.module.llvm
    }

    /// Gives these functions their second bodies. False if LLVM cannot link the copy: the module is of no use then.
    pub(super) fn link(mut self, changed: &BTreeSet<u32>) -> bool {
        let llvm = self.llvm();
        // The module declares more than its copy by now, so its parts are found by name.
        let variables = self.list(llvm.GetFirstGlobal, llvm.GetNextGlobal);
        let functions = self.list(llvm.GetFirstFunction, llvm.GetNextFunction);
        for (number, copy) in variables.into_iter().enumerate() {
            self.variable(copy, number);
        }
        let mut second_bodies = Vec::new();
        let mut defined = 0;
        for (number, copy) in functions.into_iter().enumerate() {
            // SAFETY: a function.
            if unsafe { (llvm.IsDeclaration)(copy) } != 0 {
                continue;
            }
            second_bodies.extend(self.function(copy, number, changed.contains(&defined)));
            defined += 1;
        }
        // SAFETY: rule 2: both are modules of one context; linking takes the copy. What was named stays valid in the module.
        unsafe {
            if (llvm.LinkModules2)(self.module.module, self.copy) != 0 {
                return false;
            }
            for local in &self.locals {
                let name = local.name.as_bytes();
                (llvm.SetVisibility)(local.global, local.visibility);
                (llvm.SetLinkage)(local.global, local.linkage);
                (llvm.SetValueName2)(local.global, name.as_ptr().cast(), name.len());
            }
            for name in second_bodies {
                let body = (llvm.GetNamedFunction)(self.module.module, name.as_ptr());
                if !body.is_null() {
                    (llvm.SetVisibility)(body, 0);
                    (llvm.SetLinkage)(body, INTERNAL);
                }
            }
        }
        true
    }

    /// What a list of the copy has.
    fn list(
        &self,
        first: unsafe extern "C" fn(Handle) -> Handle,
        next: unsafe extern "C" fn(Handle) -> Handle,
    ) -> Vec<Handle> {
        let mut list = Vec::new();
        // SAFETY: rule 2; null at the end.
        let mut global = unsafe { first(self.copy) };
        while !global.is_null() {
            list.push(global);
            // SAFETY: rule 2; `global` is in the list.
            global = unsafe { next(global) };
        }
        list
    }

    fn name(&self, global: Handle) -> CString {
        let mut len = 0;
        // SAFETY: LLVM says how long its own text is.
        let name = unsafe {
            let text = (self.llvm().GetValueName2)(global, &raw mut len);
            std::slice::from_raw_parts(text.cast::<u8>(), len)
        };
        CString::new(name).unwrap_or_default()
    }

    /// Makes what is local, in the module and in its copy, visible under a name that both share.
    fn share(&mut self, original: Handle, copy: Handle, shared: &CString) {
        let llvm = self.llvm();
        let name = self.name(original);
        // SAFETY: globals of the two modules.
        unsafe {
            let (linkage, visibility) =
                ((llvm.GetLinkage)(original), (llvm.GetVisibility)(original));
            self.locals.push(Local { global: original, name, linkage, visibility });
            for global in [original, copy] {
                (llvm.SetLinkage)(global, EXTERNAL);
                (llvm.SetVisibility)(global, HIDDEN);
                let name = shared.as_bytes();
                (llvm.SetValueName2)(global, name.as_ptr().cast(), name.len());
            }
        }
    }

    /// The copy has no variables of its own but constants that have no identity.
    fn variable(&mut self, copy: Handle, number: usize) {
        let llvm = self.llvm();
        let name = self.name(copy);
        // SAFETY: a variable, and the one of the same name.
        unsafe {
            if name.as_bytes().starts_with(b"llvm.") {
                return (llvm.DeleteGlobal)(copy);
            }
            if (llvm.IsDeclaration)(copy) != 0 {
                return;
            }
            if matches!((llvm.GetLinkage)(copy), INTERNAL | PRIVATE) {
                if self.has_no_identity(copy) {
                    return;
                }
                let original = (llvm.GetNamedGlobal)(self.module.module, name.as_ptr());
                let shared =
                    CString::new(format!("selvedge.variable.{number}")).unwrap_or_default();
                self.share(original, copy, &shared);
            }
            (llvm.SetInitializer)(copy, std::ptr::null_mut());
            (llvm.SetLinkage)(copy, EXTERNAL);
            (llvm.SetComdat)(copy, std::ptr::null_mut());
        }
    }

    /// The name of the second body, if the function gets one; otherwise the copy only declares it.
    fn function(&mut self, copy: Handle, number: usize, is_changed: bool) -> Option<CString> {
        let llvm = self.llvm();
        let name = self.name(copy);
        // SAFETY: rules 2 and 3: a function, and the one of the same name.
        unsafe {
            let original = (llvm.GetNamedFunction)(self.module.module, name.as_ptr());
            let linkage = (llvm.GetLinkage)(copy);
            let mut shared = name.clone();
            if linkage == INTERNAL || linkage == PRIVATE {
                shared = CString::new(format!("selvedge.function.{number}")).unwrap_or_default();
                self.share(original, copy, &shared);
            }
            let second = [name.as_bytes(), b".all_hooks"].concat();
            (llvm.SetValueName2)(copy, second.as_ptr().cast(), second.len());
            let kind = (llvm.GlobalGetValueType)(copy);
            let declared = (llvm.AddFunction)(self.copy, shared.as_ptr(), kind);
            (llvm.SetFunctionCallConv)(declared, (llvm.GetFunctionCallConv)(copy));
            (llvm.ReplaceAllUsesWith)(copy, declared);
            if !is_changed || linkage == AVAILABLE_EXTERNALLY || original.is_null() {
                (llvm.DeleteFunction)(copy);
                return None;
            }
            (llvm.SetLinkage)(copy, EXTERNAL);
            (llvm.SetVisibility)(copy, HIDDEN);
            (llvm.SetComdat)(copy, std::ptr::null_mut());
            let second = CString::new(second).unwrap_or_default();
            self.choose(original, kind, &second);
            Some(second)
        }
    }

    /// Makes a function begin by choosing its body.
    ///
    /// # Safety
    /// A function of the module, and its type.
    unsafe fn choose(&self, function: Handle, kind: Handle, second: &CString) {
        const DIFFERENT: c_int = 33;
        const MUST: c_int = 2;
        let (llvm, context) = (self.llvm(), self.module.context);
        // SAFETY: the caller's; rule 2.
        unsafe {
            let builder = (llvm.CreateBuilderInContext)(context);
            let first = (llvm.GetFirstBasicBlock)(function);
            let begin = (llvm.InsertBasicBlockInContext)(context, first, NO_NAME);
            let other = (llvm.AppendBasicBlockInContext)(context, function, NO_NAME);
            (llvm.PositionBuilderAtEnd)(builder, begin);
            self.move_variables(first, builder);
            let int = (llvm.Int32TypeInContext)(context);
            let known = (llvm.GetNamedGlobal)(self.module.module, FLAG.as_ptr());
            let flag = if known.is_null() {
                (llvm.AddGlobal)(self.module.module, int, FLAG.as_ptr())
            } else {
                known
            };
            let now = (llvm.BuildLoad2)(builder, int, flag, NO_NAME);
            let zero = (llvm.ConstInt)(int, 0, 0);
            let all = (llvm.BuildICmp)(builder, DIFFERENT, now, zero, NO_NAME);
            (llvm.BuildCondBr)(builder, all, other, first);
            (llvm.PositionBuilderAtEnd)(builder, other);
            (llvm.SetCurrentDebugLocation2)(builder, self.place(function));
            let callee = (llvm.AddFunction)(self.module.module, second.as_ptr(), kind);
            let convention = (llvm.GetFunctionCallConv)(function);
            (llvm.SetFunctionCallConv)(callee, convention);
            let count = (llvm.CountParams)(function);
            let mut arguments: Vec<Handle> =
                (0..count).map(|n| (llvm.GetParam)(function, n)).collect();
            let call =
                (llvm.BuildCall2)(builder, kind, callee, arguments.as_mut_ptr(), count, NO_NAME);
            (llvm.SetInstructionCallConv)(call, convention);
            for index in 0..=count {
                self.copy_attributes(function, callee, call, index);
            }
            // So that the stack looks as if the second body had been called.
            match llvm.set_tail_call_kind {
                Some(set) => set(call, MUST),
                None => (llvm.SetTailCall)(call, 1),
            }
            if (llvm.GetReturnType)(kind) == (llvm.VoidTypeInContext)(context) {
                (llvm.BuildRetVoid)(builder);
            } else {
                (llvm.BuildRet)(builder, call);
            }
            (llvm.DisposeBuilder)(builder);
        }
    }

    /// Moves what reserves stack to where the builder stands: it has to be in the first block.
    ///
    /// # Safety
    /// A block of the module.
    unsafe fn move_variables(&self, block: Handle, builder: Handle) {
        let llvm = self.llvm();
        // SAFETY: the caller's.
        unsafe {
            let mut instruction = (llvm.GetFirstInstruction)(block);
            while !instruction.is_null() {
                let next = (llvm.GetNextInstruction)(instruction);
                let is_fixed = (llvm.GetInstructionOpcode)(instruction) == opcode::ALLOCA
                    && !(llvm.IsAConstantInt)((llvm.GetOperand)(instruction, 0)).is_null();
                if is_fixed {
                    (llvm.InstructionRemoveFromParent)(instruction);
                    (llvm.InsertIntoBuilder)(builder, instruction);
                }
                instruction = next;
            }
        }
    }

    /// The first place in the source that a function has.
    ///
    /// # Safety
    /// A function of the module.
    unsafe fn place(&self, function: Handle) -> Handle {
        let llvm = self.llvm();
        // SAFETY: the caller's; null at the ends of lists, and if there is no place.
        unsafe {
            let mut block = (llvm.GetFirstBasicBlock)(function);
            while !block.is_null() {
                let mut instruction = (llvm.GetFirstInstruction)(block);
                while !instruction.is_null() {
                    let place = (llvm.InstructionGetDebugLoc)(instruction);
                    if !place.is_null() {
                        return place;
                    }
                    instruction = (llvm.GetNextInstruction)(instruction);
                }
                block = (llvm.GetNextBasicBlock)(block);
            }
            std::ptr::null_mut()
        }
    }

    /// Copies the attributes of a parameter, or of what is returned: they are part of how values are passed.
    ///
    /// # Safety
    /// Two functions of one type, a call of the second, and an index that they have.
    unsafe fn copy_attributes(&self, from: Handle, to: Handle, call: Handle, index: c_uint) {
        let llvm = self.llvm();
        // SAFETY: the caller's; LLVM says how many there are.
        unsafe {
            let count = (llvm.GetAttributeCountAtIndex)(from, index);
            let mut list = vec![std::ptr::null_mut(); count as usize];
            (llvm.GetAttributesAtIndex)(from, index, list.as_mut_ptr());
            for attribute in list {
                (llvm.AddAttributeAtIndex)(to, index, attribute);
                (llvm.AddCallSiteAttribute)(call, index, attribute);
            }
        }
    }
}
