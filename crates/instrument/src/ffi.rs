//! LLVM's C interface, loaded at run time: the only unsafe code of this crate.
//!
//! Ground rules:
//! 1. A [`Functions`] is made only if the library has every function in it; the library is never unloaded.
//! 2. Handles of LLVM are valid as long as the context that made them. [`Module`] owns context and module and gives no
//!    handle away; the vectors in it hold handles of its own module.
//! 3. Handles are null only where said; each function is called with handles of the kind that it expects, which the
//!    kind of the value or the opcode shows before.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;

use crate::flow::Decided;
use crate::hooks::{Argument, Hook, Insertion, Side};
use crate::ir::{self, Callee, Instruction, Loc, What};
use crate::{Error, Library};

type Handle = *mut c_void;
type Bool = c_int;

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a library.
        #[allow(non_snake_case, missing_docs)]
        #[derive(Debug, Clone, Copy)]
        pub struct Functions { $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)* }

        impl Functions {
            /// Loads a library. Nothing if there is none; an error if it lacks a function.
            pub(crate) fn load(path: &Path) -> Result<Option<Functions>, Error> {
                let Ok(name) = CString::new(path.as_os_str().as_encoded_bytes()) else { return Ok(None) };
                // SAFETY: a library of LLVM may be loaded at any time; its constructors register options only.
                let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
                if library.is_null() {
                    return Ok(None);
                }
                let missing = |name| Error::NoFunction { path: path.display().to_string(), name };
                Ok(Some(Functions { $($name: {
                    const NAME: &str = concat!("LLVM", stringify!($name));
                    let symbol = CString::new(NAME).unwrap_or_default();
                    // SAFETY: a loaded library and a string.
                    let found = unsafe { libc::dlsym(library, symbol.as_ptr()) };
                    if found.is_null() {
                        return Err(missing(NAME));
                    }
                    // SAFETY: the function of that name has this type in every version since 15.
                    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) $(-> $result)?>(found) }
                },)* }))
            }
        }
    };
}

functions! {
    GetVersion: fn(*mut c_uint, *mut c_uint, *mut c_uint);
    ContextCreate: fn() -> Handle;
    ContextDispose: fn(Handle);
    CreateMemoryBufferWithMemoryRangeCopy: fn(*const c_char, usize, *const c_char) -> Handle;
    DisposeMemoryBuffer: fn(Handle);
    ParseBitcodeInContext2: fn(Handle, Handle, *mut Handle) -> Bool;
    DisposeModule: fn(Handle);
    GetModuleDataLayout: fn(Handle) -> Handle;
    GetFirstFunction: fn(Handle) -> Handle;
    GetNextFunction: fn(Handle) -> Handle;
    IsDeclaration: fn(Handle) -> Bool;
    GetValueName2: fn(Handle, *mut usize) -> *const c_char;
    CountParams: fn(Handle) -> c_uint;
    GetParam: fn(Handle, c_uint) -> Handle;
    GetFirstBasicBlock: fn(Handle) -> Handle;
    GetNextBasicBlock: fn(Handle) -> Handle;
    GetFirstInstruction: fn(Handle) -> Handle;
    GetNextInstruction: fn(Handle) -> Handle;
    GetInstructionOpcode: fn(Handle) -> c_int;
    GetNumOperands: fn(Handle) -> c_int;
    GetOperand: fn(Handle, c_uint) -> Handle;
    IsAFunction: fn(Handle) -> Handle;
    IsAInlineAsm: fn(Handle) -> Handle;
    IsAConstantInt: fn(Handle) -> Handle;
    ConstIntGetZExtValue: fn(Handle) -> u64;
    GetInlineAsmAsmString: fn(Handle, *mut usize) -> *const c_char;
    GetCalledValue: fn(Handle) -> Handle;
    GetNumArgOperands: fn(Handle) -> c_uint;
    TypeOf: fn(Handle) -> Handle;
    GetTypeKind: fn(Handle) -> c_int;
    GetAllocatedType: fn(Handle) -> Handle;
    StoreSizeOfType: fn(Handle, Handle) -> u64;
    GetOrdering: fn(Handle) -> c_int;
    GetCmpXchgSuccessOrdering: fn(Handle) -> c_int;
    GetVolatile: fn(Handle) -> Bool;
    GetNumSuccessors: fn(Handle) -> c_uint;
    GetSuccessor: fn(Handle, c_uint) -> Handle;
    CountIncoming: fn(Handle) -> c_uint;
    GetIncomingValue: fn(Handle, c_uint) -> Handle;
    GetIncomingBlock: fn(Handle, c_uint) -> Handle;
    GetDebugLocLine: fn(Handle) -> c_uint;
    GetDebugLocColumn: fn(Handle) -> c_uint;
    GetDebugLocFilename: fn(Handle, *mut c_uint) -> *const c_char;
    GetDebugLocDirectory: fn(Handle, *mut c_uint) -> *const c_char;
    InstructionGetDebugLoc: fn(Handle) -> Handle;
    CreateBuilderInContext: fn(Handle) -> Handle;
    DisposeBuilder: fn(Handle);
    PositionBuilderBefore: fn(Handle, Handle);
    SetCurrentDebugLocation2: fn(Handle, Handle);
    BuildCall2: fn(Handle, Handle, Handle, *mut Handle, c_uint, *const c_char) -> Handle;
    BuildZExt: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    BuildExtractValue: fn(Handle, Handle, c_uint, *const c_char) -> Handle;
    VoidTypeInContext: fn(Handle) -> Handle;
    Int8TypeInContext: fn(Handle) -> Handle;
    Int64TypeInContext: fn(Handle) -> Handle;
    PointerTypeInContext: fn(Handle, c_uint) -> Handle;
    ArrayType2: fn(Handle, u64) -> Handle;
    FunctionType: fn(Handle, *mut Handle, c_uint, Bool) -> Handle;
    GetNamedFunction: fn(Handle, *const c_char) -> Handle;
    AddFunction: fn(Handle, *const c_char, Handle) -> Handle;
    AddGlobal: fn(Handle, Handle, *const c_char) -> Handle;
    SetInitializer: fn(Handle, Handle);
    SetGlobalConstant: fn(Handle, Bool);
    SetLinkage: fn(Handle, c_int);
    SetVisibility: fn(Handle, c_int);
    SetSection: fn(Handle, *const c_char);
    SetAlignment: fn(Handle, c_uint);
    ConstNull: fn(Handle) -> Handle;
    ConstInt: fn(Handle, u64, Bool) -> Handle;
    ConstStringInContext: fn(Handle, *const c_char, c_uint, Bool) -> Handle;
    ConstInBoundsGEP2: fn(Handle, Handle, *mut Handle, c_uint) -> Handle;
    VerifyModule: fn(Handle, c_int, *mut *mut c_char) -> Bool;
    DisposeMessage: fn(*mut c_char);
    WriteBitcodeToFile: fn(Handle, *const c_char) -> c_int;
}

impl Functions {
    /// The library's major version.
    pub(crate) fn version(&self) -> u32 {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three places for numbers.
        unsafe { (self.GetVersion)(&raw mut major, &raw mut minor, &raw mut patch) };
        major
    }
}

/// The numbers of LLVM's C interface for instructions.
mod opcode {
    pub(super) const RET: i32 = 1;
    pub(super) const BR: i32 = 2;
    pub(super) const SWITCH: i32 = 3;
    pub(super) const INDIRECT_BR: i32 = 4;
    pub(super) const INVOKE: i32 = 5;
    pub(super) const UDIV: i32 = 14;
    pub(super) const SDIV: i32 = 15;
    pub(super) const UREM: i32 = 17;
    pub(super) const SREM: i32 = 18;
    pub(super) const ALLOCA: i32 = 26;
    pub(super) const LOAD: i32 = 27;
    pub(super) const STORE: i32 = 28;
    pub(super) const PHI: i32 = 44;
    pub(super) const CALL: i32 = 45;
    pub(super) const FENCE: i32 = 55;
    pub(super) const CMPXCHG: i32 = 56;
    pub(super) const RMW: i32 = 57;
    pub(super) const RESUME: i32 = 58;
    pub(super) const LANDING_PAD: i32 = 59;
    pub(super) const UNREACHABLE: i32 = 7;
}

/// A module of bitcode.
#[derive(Debug)]
pub struct Module<'a> {
    llvm: &'a Functions,
    path: String,
    context: Handle,
    module: Handle,
    /// By function, block and position.
    instructions: Vec<Vec<Vec<Handle>>>,
    ir: ir::Module,
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: rule 2; nothing uses them afterwards.
        unsafe {
            (self.llvm.DisposeModule)(self.module);
            (self.llvm.ContextDispose)(self.context);
        }
    }
}

impl<'a> Module<'a> {
    /// Reads a file.
    pub fn read(library: &'a Library, path: &Path) -> Result<Module<'a>, Error> {
        let name = path.display().to_string();
        let bytes =
            std::fs::read(path).map_err(|error| Error::File { path: name.clone(), error })?;
        let llvm = &library.functions;
        // SAFETY: rule 1; the buffer is copied, and disposed of once the module is parsed, which does not keep it.
        let (context, module) = unsafe {
            let context = (llvm.ContextCreate)();
            let buffer = (llvm.CreateMemoryBufferWithMemoryRangeCopy)(
                bytes.as_ptr().cast(),
                bytes.len(),
                c"module".as_ptr(),
            );
            let mut module = std::ptr::null_mut();
            let failed = (llvm.ParseBitcodeInContext2)(context, buffer, &raw mut module) != 0;
            (llvm.DisposeMemoryBuffer)(buffer);
            if failed {
                (llvm.ContextDispose)(context);
                let message = "this is no bitcode that the compiler's libLLVM can read".to_owned();
                return Err(Error::Bitcode { path: name, message });
            }
            (context, module)
        };
        let ir = ir::Module { name: name.clone(), ..ir::Module::default() };
        let mut read = Module { llvm, path: name, context, module, instructions: Vec::new(), ir };
        Reader::new(&mut read).functions();
        Ok(read)
    }

    /// What was read.
    pub fn ir(&self) -> ir::Module {
        self.ir.clone()
    }

    /// Writes the module.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |message: String| Error::Invalid { path: self.path.clone(), message };
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| failed("its name contains a zero".to_owned()))?;
        // SAFETY: rule 2; the message is LLVM's own and is given back.
        unsafe {
            const RETURN_STATUS: c_int = 2;
            let mut message = std::ptr::null_mut();
            if (self.llvm.VerifyModule)(self.module, RETURN_STATUS, &raw mut message) != 0 {
                let text = CStr::from_ptr(message).to_string_lossy().into_owned();
                (self.llvm.DisposeMessage)(message);
                return Err(failed(text));
            }
            (self.llvm.DisposeMessage)(message);
            if (self.llvm.WriteBitcodeToFile)(self.module, name.as_ptr()) != 0 {
                let error = std::io::Error::last_os_error();
                return Err(Error::File { path: path.display().to_string(), error });
            }
        }
        Ok(())
    }

    /// Inserts what was decided.
    pub fn insert(&self, decided: &Decided) -> Result<(), Error> {
        Writer::new(self, decided).insert(&decided.insertions);
        Ok(())
    }
}

/// Reads a module.
struct Reader<'r, 'a> {
    module: &'r mut Module<'a>,
    layout: Handle,
    files: HashMap<(usize, usize), u32>,
    values: HashMap<Handle, u32>,
    blocks: HashMap<Handle, u32>,
}

impl<'r, 'a> Reader<'r, 'a> {
    fn new(module: &'r mut Module<'a>) -> Reader<'r, 'a> {
        // SAFETY: rule 2.
        let layout = unsafe { (module.llvm.GetModuleDataLayout)(module.module) };
        Reader {
            module,
            layout,
            files: HashMap::new(),
            values: HashMap::new(),
            blocks: HashMap::new(),
        }
    }

    fn llvm(&self) -> &'a Functions {
        self.module.llvm
    }

    fn functions(&mut self) {
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

    fn what(&self, i: Handle) -> What {
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
                },
                opcode::RMW => What::Update {
                    at: self.operand(i, 0),
                    value: self.operand(i, 1),
                    len: self.len((llvm.GetOperand)(i, 1)),
                    order: order((llvm.GetOrdering)(i)).unwrap_or(5),
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
                opcode::FENCE | opcode::RESUME | opcode::LANDING_PAD | opcode::UNREACHABLE => {
                    What::Nothing
                }
                _ => What::Compute(self.operands(i)),
            }
        }
    }

    fn call(&self, i: Handle) -> What {
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
            let text = unsafe {
                let text = (llvm.GetInlineAsmAsmString)(assembly, &raw mut len);
                text_of(text, len)
            };
            return What::Assembly { text, arguments };
        }
        if function.is_null() {
            return What::Call { callee: Callee::Computed(self.value(called)), arguments };
        }
        let name = self.name(function);
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
        What::Call { callee: Callee::Named(name, defined), arguments }
    }
}

/// Intrinsics other than those for memory compute, or say something about the code.
fn intrinsic(name: &str, arguments: Vec<ir::Value>) -> What {
    const SILENT: [&str; 7] =
        ["dbg.", "lifetime.", "assume", "stack", "prefetch", "trap", "donothing"];
    let rest = &name["llvm.".len()..];
    if SILENT.iter().any(|s| rest.starts_with(s)) {
        What::Nothing
    } else {
        What::Compute(arguments)
    }
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

/// Inserts calls into a module.
struct Writer<'w, 'a> {
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
    fn new(module: &'w Module<'a>, decided: &Decided) -> Writer<'w, 'a> {
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
                (llvm.SetGlobalConstant)(global, 1);
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

    fn insert(&mut self, insertions: &[Insertion]) {
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
            let name = CString::new(hook.name()).unwrap_or_default();
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
