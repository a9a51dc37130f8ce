//! Reads a module into its [representation](crate::ir).

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint};
use std::path::Path;

use selvedge_model::Operator;

use super::{Functions, Handle, Module, opcode};
use crate::assembly::understand;
use crate::ir::{self, Callee, Instruction, Loc, Sum, What};

/// Reads a module.
pub(super) struct Reader<'r, 'a> {
    module: &'r mut Module<'a>,
    layout: Handle,
    files: HashMap<(usize, usize), u32>,
    values: HashMap<Handle, u32>,
    blocks: HashMap<Handle, u32>,
    /// Constants with an address.
    fixed: HashMap<Handle, u32>,
    /// The numbers of the attributes that make a call quiet.
    quiet: [c_uint; 3],
    /// That of functions whose accesses the compiler checks.
    checked: c_uint,
}

impl<'r, 'a> Reader<'r, 'a> {
    pub(super) fn new(module: &'r mut Module<'a>) -> Reader<'r, 'a> {
        // SAFETY: rule 2.
        let layout = unsafe { (module.llvm.GetModuleDataLayout)(module.module) };
        let attribute = |name: &str| {
            // SAFETY: a text and its length.
            unsafe { (module.llvm.GetEnumAttributeKindForName)(name.as_ptr().cast(), name.len()) }
        };
        let quiet = ["nosync", "nofree", "willreturn"].map(attribute);
        let checked = attribute("sanitize_thread");
        Reader {
            module,
            layout,
            files: HashMap::new(),
            values: HashMap::new(),
            blocks: HashMap::new(),
            fixed: HashMap::new(),
            quiet,
            checked,
        }
    }

    fn llvm(&self) -> &'a Functions {
        self.module.llvm
    }

    pub(super) fn functions(&mut self) {
        let llvm = self.llvm();
        // SAFETY: rule 2, functions of the module in order; null at the end.
        let mut function = unsafe { (llvm.GetFirstFunction)(self.module.module) };
        while !function.is_null() {
            // SAFETY: a function.
            if unsafe { (llvm.IsDeclaration)(function) } == 0 {
                let (read, handles) = self.function(function);
                self.module.ir.functions.push(read);
                self.module.instructions.push(handles);
            }
            // SAFETY: a function.
            function = unsafe { (llvm.GetNextFunction)(function) };
        }
    }

    fn function(&mut self, function: Handle) -> (ir::Function, Vec<Vec<Handle>>) {
        let llvm = self.llvm();
        self.values.clear();
        self.blocks.clear();
        let mut handles: Vec<Vec<Handle>> = Vec::new();
        let mut count = 0;
        // SAFETY: rule 2: parameters, blocks and instructions of the function, null at the end of each list.
        let parameters = unsafe {
            let parameters = (llvm.CountParams)(function);
            for i in 0..parameters {
                self.values.insert((llvm.GetParam)(function, i), i);
            }
            let mut block = (llvm.GetFirstBasicBlock)(function);
            while !block.is_null() {
                self.blocks.insert(block, handles.len() as u32);
                let mut list = Vec::new();
                let mut instruction = (llvm.GetFirstInstruction)(block);
                while !instruction.is_null() {
                    self.values.insert(instruction, parameters + count);
                    count += 1;
                    list.push(instruction);
                    instruction = (llvm.GetNextInstruction)(instruction);
                }
                handles.push(list);
                block = (llvm.GetNextBasicBlock)(block);
            }
            parameters
        };
        let mut read = ir::Function {
            name: self.name(function),
            loc: self.loc(function),
            parameters,
            // SAFETY: a function and the number of an attribute; null if it does not have that.
            is_checked: unsafe {
                !(llvm.GetEnumAttributeAtIndex)(function, FUNCTION, self.checked).is_null()
            },
            blocks: Vec::new(),
        };
        let mut first = 0;
        for list in &handles {
            let instructions = list
                .iter()
                .map(|&i| Instruction { what: self.what(i), loc: self.loc(i) })
                .collect();
            let successors = list.last().map_or(Vec::new(), |&last| self.successors(last));
            read.blocks.push(ir::Block { first, instructions, successors });
            first += list.len() as u32;
        }
        (read, handles)
    }

    fn name(&self, value: Handle) -> String {
        let mut len = 0;
        // SAFETY: LLVM says how long its own text is.
        unsafe {
            let text = (self.llvm().GetValueName2)(value, &raw mut len);
            text_of(text, len)
        }
    }

    fn loc(&mut self, value: Handle) -> Loc {
        let llvm = self.llvm();
        // SAFETY: an instruction or function; texts are LLVM's own, null if there is none.
        unsafe {
            let line = (llvm.GetDebugLocLine)(value);
            if line == 0 {
                return Loc::default();
            }
            let (mut len, mut directory_len) = (0, 0);
            let file = (llvm.GetDebugLocFilename)(value, &raw mut len);
            let directory = (llvm.GetDebugLocDirectory)(value, &raw mut directory_len);
            let key = (file as usize, directory as usize);
            let files = &mut self.module.ir.files;
            let number = *self.files.entry(key).or_insert_with(|| {
                let name = text_of(file, len as usize);
                let directory = text_of(directory, directory_len as usize);
                files.push(Path::new(&directory).join(name).display().to_string());
                files.len() as u32 - 1
            });
            let is_function = !(llvm.IsAFunction)(value).is_null();
            let column = if is_function { 0 } else { (llvm.GetDebugLocColumn)(value) };
            Loc { file: number, line, column }
        }
    }

    fn successors(&self, last: Handle) -> Vec<u32> {
        let llvm = self.llvm();
        // SAFETY: the last instruction of a block.
        unsafe {
            let count = (llvm.GetNumSuccessors)(last);
            (0..count).map(|i| self.blocks[&(llvm.GetSuccessor)(last, i)]).collect()
        }
    }

    fn value(&self, handle: Handle) -> ir::Value {
        self.values.get(&handle).copied()
    }

    fn operand(&self, instruction: Handle, i: u32) -> ir::Value {
        // SAFETY: callers ask for operands that the kind of instruction has.
        self.value(unsafe { (self.llvm().GetOperand)(instruction, i) })
    }

    fn operands(&self, instruction: Handle) -> Vec<ir::Value> {
        // SAFETY: an instruction.
        let count = unsafe { (self.llvm().GetNumOperands)(instruction) };
        (0..count as u32).map(|i| self.operand(instruction, i)).collect()
    }

    /// Bytes of the type of a value.
    fn len(&self, value: Handle) -> u64 {
        // SAFETY: a value of a type that has a size, as what is loaded and stored has.
        unsafe { (self.llvm().StoreSizeOfType)(self.layout, (self.llvm().TypeOf)(value)) }
    }

    fn what(&mut self, i: Handle) -> What {
        let llvm = self.llvm();
        // SAFETY: rule 3: the opcode says which questions an instruction answers.
        unsafe {
            match (llvm.GetInstructionOpcode)(i) {
                opcode::ALLOCA => {
                    let count = (llvm.IsAConstantInt)((llvm.GetOperand)(i, 0));
                    let one = !count.is_null() && (llvm.ConstIntGetZExtValue)(count) == 1;
                    let len = (llvm.StoreSizeOfType)(self.layout, (llvm.GetAllocatedType)(i));
                    What::Variable(one.then_some(len))
                }
                opcode::LOAD => What::Load {
                    at: self.operand(i, 0),
                    len: self.len(i),
                    order: order((llvm.GetOrdering)(i)),
                    volatile: (llvm.GetVolatile)(i) != 0,
                },
                opcode::STORE => What::Store {
                    at: self.operand(i, 1),
                    value: self.operand(i, 0),
                    len: self.len((llvm.GetOperand)(i, 0)),
                    order: order((llvm.GetOrdering)(i)),
                    volatile: (llvm.GetVolatile)(i) != 0,
                    updates: self.updates((llvm.GetOperand)(i, 0)),
                },
                opcode::RMW => What::Update {
                    at: self.operand(i, 0),
                    value: self.operand(i, 1),
                    len: self.len((llvm.GetOperand)(i, 1)),
                    order: order((llvm.GetOrdering)(i)).unwrap_or(5),
                    operator: updating((llvm.GetAtomicRMWBinOp)(i)),
                },
                opcode::CMPXCHG => What::CompareExchange {
                    at: self.operand(i, 0),
                    expected: self.operand(i, 1),
                    new: self.operand(i, 2),
                    len: self.len((llvm.GetOperand)(i, 1)),
                    order: order((llvm.GetCmpXchgSuccessOrdering)(i)).unwrap_or(5),
                },
                opcode::UDIV | opcode::SDIV | opcode::UREM | opcode::SREM => {
                    What::Divide { uses: self.operands(i), divisor: self.operand(i, 1) }
                }
                opcode::PHI => {
                    let count = (llvm.CountIncoming)(i);
                    let from = |n| {
                        let block = self.blocks[&(llvm.GetIncomingBlock)(i, n)];
                        (block, self.value((llvm.GetIncomingValue)(i, n)))
                    };
                    What::Phi((0..count).map(from).collect())
                }
                opcode::BR | opcode::SWITCH | opcode::INDIRECT_BR => {
                    let conditional = (llvm.GetNumSuccessors)(i) > 1;
                    What::Branch(if conditional { self.operand(i, 0) } else { None })
                }
                opcode::RET => {
                    let has = (llvm.GetNumOperands)(i) > 0;
                    What::Return(if has { self.operand(i, 0) } else { None })
                }
                opcode::CALL | opcode::INVOKE => self.call(i),
                opcode::FENCE => What::Fence,
                opcode::RESUME | opcode::LANDING_PAD | opcode::UNREACHABLE => What::Nothing,
                _ => self.sum(i).map_or_else(|| What::Compute(self.operands(i)), What::Sum),
            }
        }
    }

    /// The load that a stored value updates, and how: it is loaded, perhaps widened, combined, and perhaps narrowed, and
    /// each of these values is used once.
    fn updates(&self, stored: Handle) -> Option<(u32, Operator)> {
        let through = |value: Handle, skipped: &[i32]| {
            let inside = self.once(value)?;
            // SAFETY: an instruction; conversions have an operand.
            unsafe {
                let is_skipped = skipped.contains(&(self.llvm().GetInstructionOpcode)(inside));
                if is_skipped {
                    self.once((self.llvm().GetOperand)(inside, 0))
                } else {
                    Some(inside)
                }
            }
        };
        let combined = through(stored, &[opcode::TRUNC])?;
        // SAFETY: an instruction; the opcode says that it has two operands.
        let (operator, sides) = unsafe {
            let (operator, sides) = match (self.llvm().GetInstructionOpcode)(combined) {
                opcode::ADD => (Operator::Add, 2),
                opcode::SUB => (Operator::Add, 1),
                opcode::MUL => (Operator::Multiply, 2),
                opcode::AND => (Operator::And, 2),
                opcode::OR => (Operator::Or, 2),
                opcode::XOR => (Operator::Xor, 2),
                opcode::FADD => (Operator::FloatAdd, 2),
                opcode::FSUB => (Operator::FloatAdd, 1),
                opcode::FMUL => (Operator::FloatMultiply, 2),
                opcode::CALL => (self.choosing(combined)?, 2),
                _ => return None,
            };
            (operator, (0..sides).map(|n| (self.llvm().GetOperand)(combined, n)))
        };
        let loads = sides.filter_map(|side| {
            let load = through(side, &[opcode::ZEXT, opcode::SEXT])?;
            // SAFETY: an instruction.
            let is_load = unsafe { (self.llvm().GetInstructionOpcode)(load) } == opcode::LOAD;
            is_load.then(|| self.value(load)).flatten()
        });
        // Whether it has the address of the store is seen when the program runs. Of two loads, the left one is taken.
        let mut loads = loads.map(|load| (load, operator));
        loads.next()
    }

    /// An instruction whose value is used once.
    fn once(&self, value: Handle) -> Option<Handle> {
        // SAFETY: a value; null if it is no instruction, or has no use, or no other one.
        unsafe {
            let instruction = (self.llvm().IsAInstruction)(value);
            if instruction.is_null() {
                return None;
            }
            let first = (self.llvm().GetFirstUse)(value);
            let once = !first.is_null() && (self.llvm().GetNextUse)(first).is_null();
            once.then_some(instruction)
        }
    }

    /// The operator of a call that chooses the lesser or the greater of two numbers.
    fn choosing(&self, call: Handle) -> Option<Operator> {
        // SAFETY: a call.
        let called = unsafe { (self.llvm().GetCalledValue)(call) };
        let name = self.name(called);
        let known = [
            ("llvm.smin.", Operator::Min),
            ("llvm.smax.", Operator::Max),
            ("llvm.umin.", Operator::UnsignedMin),
            ("llvm.umax.", Operator::UnsignedMax),
        ];
        known.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, operator)| operator)
    }

    fn call(&mut self, i: Handle) -> What {
        let llvm = self.llvm();
        // SAFETY: a call.
        let (called, count) = unsafe { ((llvm.GetCalledValue)(i), (llvm.GetNumArgOperands)(i)) };
        let arguments: Vec<ir::Value> = (0..count).map(|n| self.operand(i, n)).collect();
        // SAFETY: a value; null if it is of another kind.
        let (assembly, function) =
            unsafe { ((llvm.IsAInlineAsm)(called), (llvm.IsAFunction)(called)) };
        if !assembly.is_null() {
            let mut len = 0;
            // SAFETY: inline assembly; LLVM says how long its text is.
            let (text, constraints) = unsafe {
                let text = (llvm.GetInlineAsmAsmString)(assembly, &raw mut len);
                let text = text_of(text, len);
                let constraints = (llvm.GetInlineAsmConstraintString)(assembly, &raw mut len);
                (text, text_of(constraints, len))
            };
            let understood = understand(&text, &constraints).filter(|u| {
                // SAFETY: arguments of the call, which are its first operands.
                let at = |n: &u32| (*n < count).then(|| unsafe { (llvm.GetOperand)(i, *n) });
                u.memory.iter().all(|n| at(n).is_some() && at(n) == at(&u.memory[0]))
            });
            return What::Assembly { text, arguments, understood };
        }
        if function.is_null() {
            let quiet = self.is_quiet(i, None);
            return What::Call { callee: Callee::Computed(self.value(called)), arguments, quiet };
        }
        let name = self.name(function);
        let hook = match (count, name.as_str()) {
            (1, name) => access(name),
            (2, "__tsan_read_range") => self.range(i).map(|len| (false, len)),
            (2, "__tsan_write_range") => self.range(i).map(|len| (true, len)),
            _ => None,
        };
        if let Some((write, len)) = hook {
            // SAFETY: a call with an argument.
            let address = unsafe { (llvm.GetOperand)(i, 0) };
            if let Some(at) = self.term(address) {
                return What::Access { write, len, at };
            }
        }
        let argument = |n: usize| arguments.get(n).copied().flatten();
        if name.starts_with("llvm.memcpy") || name.starts_with("llvm.memmove") {
            return What::Copy([argument(0), argument(1), argument(2)]);
        }
        if name.starts_with("llvm.memset") {
            return What::Fill([argument(0), argument(1), argument(2)]);
        }
        if name.starts_with("llvm.") {
            return intrinsic(&name, arguments);
        }
        // SAFETY: a function.
        let defined = unsafe { (llvm.IsDeclaration)(function) } == 0;
        let quiet = OWN.contains(&name.as_str()) || self.is_quiet(i, Some(function));
        What::Call { callee: Callee::Named(name, defined), arguments, quiet }
    }

    /// How many bytes a hook for a range is about, if that is known.
    fn range(&self, call: Handle) -> Option<u32> {
        // SAFETY: a call with two arguments.
        let len = self.number(unsafe { (self.llvm().GetOperand)(call, 1) })?;
        u32::try_from(len).ok()
    }

    /// Whether a call returns, and neither synchronizes nor frees memory.
    fn is_quiet(&self, call: Handle, callee: Option<Handle>) -> bool {
        let llvm = self.llvm();
        self.quiet.iter().all(|&kind| {
            // SAFETY: a call, a function, and the number of an attribute; null if there is none.
            unsafe {
                !(llvm.GetCallSiteEnumAttribute)(call, FUNCTION, kind).is_null()
                    || callee.is_some_and(|f| {
                        !(llvm.GetEnumAttributeAtIndex)(f, FUNCTION, kind).is_null()
                    })
            }
        })
    }

    /// Whether a value is a pointer or has 64 bits.
    fn is_word(&self, value: Handle) -> bool {
        const INTEGER: c_int = 8;
        const POINTER: c_int = 12;
        // SAFETY: a value.
        unsafe {
            let kind = (self.llvm().TypeOf)(value);
            match (self.llvm().GetTypeKind)(kind) {
                INTEGER => (self.llvm().GetIntTypeWidth)(kind) == 64,
                POINTER => true,
                _ => false,
            }
        }
    }

    /// The number that a value is, if it is a constant.
    fn number(&self, value: Handle) -> Option<i64> {
        // SAFETY: a value; null if it is not a number.
        unsafe {
            let number = (self.llvm().IsAConstantInt)(value);
            let width = || (self.llvm().GetIntTypeWidth)((self.llvm().TypeOf)(number));
            (!number.is_null() && width() <= 64).then(|| (self.llvm().ConstIntGetSExtValue)(number))
        }
    }

    /// A value of 64 bits as a part of a sum.
    fn term(&mut self, value: Handle) -> Option<Sum> {
        if let Some(number) = self.number(value) {
            return Some(Sum::number(number));
        }
        if !self.is_word(value) {
            return None;
        }
        if let Some(&known) = self.values.get(&value) {
            return Some(Sum::of(known));
        }
        // SAFETY: a value.
        let is_constant = unsafe { (self.llvm().IsConstant)(value) } != 0;
        let next = self.fixed.len() as u32;
        is_constant.then(|| Sum {
            fixed: Some(*self.fixed.entry(value).or_insert(next)),
            ..Sum::default()
        })
    }

    /// The sum that an instruction computes, if it does and has 64 bits.
    fn sum(&mut self, i: Handle) -> Option<Sum> {
        let llvm = self.llvm();
        if !self.is_word(i) {
            return None;
        }
        // SAFETY: rule 3: these instructions have two operands, casts have one.
        let (code, first, second) = unsafe {
            let operand = |n| {
                let has = n < (llvm.GetNumOperands)(i);
                if has { (llvm.GetOperand)(i, n as c_uint) } else { std::ptr::null_mut() }
            };
            ((llvm.GetInstructionOpcode)(i), operand(0), operand(1))
        };
        let mut sum = Sum::default();
        let complete = match code {
            opcode::ADD => sum.add(&self.term(first)?, 1) && sum.add(&self.term(second)?, 1),
            // SAFETY: an `or`.
            opcode::OR if llvm.is_disjoint.is_some_and(|ask| unsafe { ask(i) } != 0) => {
                sum.add(&self.term(first)?, 1) && sum.add(&self.term(second)?, 1)
            }
            opcode::SUB => sum.add(&self.term(first)?, 1) && sum.add(&self.term(second)?, -1),
            opcode::MUL => sum.add(&self.term(first)?, self.number(second)?),
            opcode::SHL => {
                let by = u32::try_from(self.number(second)?).ok().filter(|&by| by < 63)?;
                sum.add(&self.term(first)?, 1 << by)
            }
            opcode::PTR_TO_INT | opcode::INT_TO_PTR if self.is_word(first) => {
                sum.add(&self.term(first)?, 1)
            }
            opcode::GEP => sum.add(&self.element(i)?, 1),
            _ => false,
        };
        complete.then_some(sum)
    }

    /// The address that a `getelementptr` computes.
    fn element(&mut self, i: Handle) -> Option<Sum> {
        const STRUCT: c_int = 10;
        const ARRAY: c_int = 11;
        let llvm = self.llvm();
        // SAFETY: rule 3: types of a `getelementptr` and its operands; those of structures are constant.
        unsafe {
            let mut sum = self.term((llvm.GetOperand)(i, 0))?;
            let mut kind = (llvm.GetGEPSourceElementType)(i);
            for n in 1..(llvm.GetNumOperands)(i) as c_uint {
                let index = self.term((llvm.GetOperand)(i, n))?;
                if n > 1 {
                    match (llvm.GetTypeKind)(kind) {
                        STRUCT => {
                            let field = index.offset as c_uint;
                            let offset = (llvm.OffsetOfElement)(self.layout, kind, field);
                            sum.offset = sum.offset.wrapping_add(offset as i64);
                            kind = (llvm.StructGetTypeAtIndex)(kind, field);
                            continue;
                        }
                        ARRAY => kind = (llvm.GetElementType)(kind),
                        _ => return None,
                    }
                }
                let size = (llvm.ABISizeOfType)(self.layout, kind) as i64;
                if !sum.add(&index, size) {
                    return None;
                }
            }
            Some(sum)
        }
    }
}

/// The index of a function's own attributes, beside those of its parameters.
const FUNCTION: c_uint = c_uint::MAX;

/// Functions of the compiler's interface, and our own, that are no accesses of a fixed number of bytes and synchronize nothing.
const OWN: [&str; 7] = [
    "__tsan_func_entry",
    "__tsan_func_exit",
    "__tsan_memcpy",
    "__tsan_memmove",
    "__tsan_memset",
    "selvedge_lanes_read",
    "selvedge_lanes_write",
];

/// Whether a function is the compiler's hook for an access; whether that writes, and how many bytes.
fn access(name: &str) -> Option<(bool, u32)> {
    let rest = name.strip_prefix("__tsan_")?;
    let rest = rest.strip_prefix("unaligned_").unwrap_or(rest);
    let (write, len) = rest
        .strip_prefix("read_write")
        .or_else(|| rest.strip_prefix("write"))
        .map(|len| (true, len))
        .or_else(|| rest.strip_prefix("read").map(|len| (false, len)))?;
    Some((write, len.parse().ok()?))
}

/// Intrinsics other than those for memory compute, or say something about the code.
fn intrinsic(name: &str, arguments: Vec<ir::Value>) -> What {
    const SILENT: [&str; 7] =
        ["dbg.", "lifetime.", "assume", "stack", "prefetch", "trap", "donothing"];
    let rest = &name["llvm.".len()..];
    if SILENT.iter().any(|s| rest.starts_with(s)) {
        What::Nothing
    } else if let Some((write, scattered)) = lanes(rest) {
        What::Lanes { write, scattered, uses: arguments }
    } else {
        What::Compute(arguments)
    }
}

/// Whether an intrinsic accesses some lanes of a vector: whether it writes, and whether each lane has a place of its own.
fn lanes(name: &str) -> Option<(bool, bool)> {
    let known = [
        ("masked.load.", (false, false)),
        ("masked.store.", (true, false)),
        ("masked.gather.", (false, true)),
        ("masked.scatter.", (true, true)),
    ];
    known.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, what)| what)
}

/// A memory order, from LLVM's numbers to those of ThreadSanitizer's interface.
fn order(ordering: c_int) -> ir::Order {
    match ordering {
        0 => None,
        1 | 2 => Some(0),
        4 => Some(2),
        5 => Some(3),
        6 => Some(4),
        _ => Some(5),
    }
}

/// # Safety
/// `text` is null or has `len` bytes.
unsafe fn text_of(text: *const c_char, len: usize) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// The operator of an atomic read-modify-write, if its updates commute.
fn updating(operation: c_int) -> Option<Operator> {
    Some(match operation {
        1 | 2 => Operator::Add,
        3 => Operator::And,
        5 => Operator::Or,
        6 => Operator::Xor,
        7 => Operator::Max,
        8 => Operator::Min,
        9 => Operator::UnsignedMax,
        10 => Operator::UnsignedMin,
        11 | 12 => Operator::FloatAdd,
        _ => return None,
    })
}
