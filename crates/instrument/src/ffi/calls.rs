//! Inserts calls of the runtime into a module.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_uint};

use super::{Handle, Module, opcode};
use crate::flow::Decided;
use crate::here;
use crate::hooks::{Argument, Hook, Insertion, Side};

/// Inserts calls into a module.
pub(super) struct Writer<'w, 'a> {
    module: &'w Module<'a>,
    builder: Handle,
    word: Handle,

    pointer: Handle,
    places: (Handle, Handle),
    hooks: HashMap<Hook, (Handle, Handle)>,
}

impl Drop for Writer<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, used by nothing else.
        unsafe { (self.module.llvm.DisposeBuilder)(self.builder) };
    }
}

impl<'w, 'a> Writer<'w, 'a> {
    /// Adds the module's table and the bytes that stand for its places.
    pub(super) fn new(module: &'w Module<'a>, decided: &Decided) -> Writer<'w, 'a> {
        const PRIVATE: c_int = 9;
        const EXTERNAL: c_int = 0;
        const HIDDEN: c_int = 1;
        let llvm = module.llvm;
        let encoded = decided.table.encode();
        let name = format!("selvedge_flow_table_{:016x}", crate::table::fingerprint(&encoded));
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: rules 2 and 3: types and constants of the module's context.
        unsafe {
            let context = module.context;
            let byte = (llvm.Int8TypeInContext)(context);
            let array = (llvm.ArrayType2)(byte, u64::from(decided.table.places()));
            let places = (llvm.AddGlobal)(module.module, array, c"selvedge_flow_places".as_ptr());
            (llvm.SetInitializer)(places, (llvm.ConstNull)(array));
            let text = (llvm.ConstStringInContext)(
                context,
                encoded.as_ptr().cast(),
                encoded.len() as c_uint,
                1,
            );
            let table = (llvm.AddGlobal)(module.module, (llvm.TypeOf)(text), name.as_ptr());
            (llvm.SetInitializer)(table, text);
            for (global, linkage, section) in
                [(places, PRIVATE, crate::table::PLACES), (table, EXTERNAL, crate::table::SECTION)]
            {
                let section = CString::new(section).unwrap_or_default();
                (llvm.SetGlobalConstant)(global, c_int::from(global == table));
                (llvm.SetLinkage)(global, linkage);
                (llvm.SetSection)(global, section.as_ptr());
                (llvm.SetAlignment)(global, 1);
            }
            (llvm.SetVisibility)(table, HIDDEN);
            Writer {
                module,
                builder: (llvm.CreateBuilderInContext)(context),
                word: (llvm.Int64TypeInContext)(context),

                pointer: (llvm.PointerTypeInContext)(context, 0),
                places: (places, array),
                hooks: HashMap::new(),
            }
        }
    }

    pub(super) fn insert(&mut self, insertions: &[Insertion]) {
        for insertion in insertions {
            self.one(insertion);
        }
    }

    fn one(&mut self, insertion: &Insertion) {
        let llvm = self.module.llvm;
        let (function, block, position) = insertion.at;
        let list = &self.module.instructions[function as usize][block as usize];
        let instruction = list[position as usize];
        // SAFETY: rules 2 and 3: an instruction of the module, and operands that the decision saw in it. What has a
        // value that is used behind it does not end a block.
        unsafe {
            let before = match insertion.side {
                Side::Before => self.first_possible(list, position as usize),
                Side::After => (llvm.GetNextInstruction)(instruction),
            };
            if before.is_null() {
                return;
            }
            (llvm.PositionBuilderBefore)(self.builder, before);
            (llvm.SetCurrentDebugLocation2)(
                self.builder,
                (llvm.InstructionGetDebugLoc)(instruction),
            );
            let mut types = Vec::new();
            let mut arguments = Vec::new();
            for argument in &insertion.arguments {
                let (kind, value) = self.argument(*argument, instruction);
                types.push(kind);
                arguments.push(value);
            }
            let (kind, callee) = self.hook(insertion.hook, &mut types);
            let count = arguments.len() as c_uint;
            (llvm.BuildCall2)(
                self.builder,
                kind,
                callee,
                arguments.as_mut_ptr(),
                count,
                c"".as_ptr(),
            );
        }
    }

    /// The first instruction from a position on in front of which a call may stand.
    fn first_possible(&self, list: &[Handle], position: usize) -> Handle {
        let llvm = self.module.llvm;
        // SAFETY: instructions.
        let has_to_come_first = |&&i: &&Handle| unsafe {
            matches!((llvm.GetInstructionOpcode)(i), opcode::PHI | opcode::LANDING_PAD)
        };
        list[position..]
            .iter()
            .find(|i| !has_to_come_first(i))
            .copied()
            .unwrap_or(std::ptr::null_mut())
    }

    /// # Safety
    /// The operands are those of the instruction, and the builder stands where they are known.
    unsafe fn argument(&self, argument: Argument, instruction: Handle) -> (Handle, Handle) {
        const INTEGER: c_int = 8;
        let llvm = self.module.llvm;
        // SAFETY: the caller's.
        unsafe {
            match argument {
                Argument::Place(number) => {
                    let mut index =
                        [0, u64::from(number)].map(|n| (llvm.ConstInt)(self.word, n, 0));
                    let (global, array) = self.places;
                    let at = (llvm.ConstInBoundsGEP2)(array, global, index.as_mut_ptr(), 2);
                    (self.pointer, at)
                }
                Argument::Number(number) => (self.word, (llvm.ConstInt)(self.word, number, 0)),
                Argument::Operand(n) => {
                    let value = (llvm.GetOperand)(instruction, n);
                    let kind = (llvm.TypeOf)(value);
                    if (llvm.GetTypeKind)(kind) == INTEGER && kind != self.word {
                        let wide = (llvm.BuildZExt)(self.builder, value, self.word, c"".as_ptr());
                        return (self.word, wide);
                    }
                    (kind, value)
                }
                Argument::Part(n) => {
                    let part = (llvm.BuildExtractValue)(self.builder, instruction, n, c"".as_ptr());
                    (self.word, (llvm.BuildZExt)(self.builder, part, self.word, c"".as_ptr()))
                }
            }
        }
    }

    /// The type and the declaration of a hook.
    fn hook(&mut self, hook: Hook, types: &mut [Handle]) -> (Handle, Handle) {
        let (llvm, module) = (self.module.llvm, self.module);

        *self.hooks.entry(hook).or_insert_with(|| {
            let name = if hook.is_here() { here::name(hook) } else { hook.name().to_owned() };
            let name = CString::new(name).unwrap_or_default();
            // SAFETY: rule 2.
            unsafe {
                let void = (llvm.VoidTypeInContext)(module.context);
                let kind = (llvm.FunctionType)(void, types.as_mut_ptr(), types.len() as c_uint, 0);
                let known = (llvm.GetNamedFunction)(module.module, name.as_ptr());
                let callee = if known.is_null() {
                    (llvm.AddFunction)(module.module, name.as_ptr(), kind)
                } else {
                    known
                };
                (kind, callee)
            }
        })
    }
}
