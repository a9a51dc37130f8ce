//! LLVM's C interface, loaded at run time: the only unsafe code of this crate.
//!
//! Ground rules:
//! 1. A [`Functions`] is made only if the library has every function in it; the library is never unloaded.
//! 2. Handles of LLVM are valid as long as the context that made them. [`Module`] owns context and module and gives no
//!    handle away; the vectors in it hold handles of its own module.
//! 3. Handles are null only where said; each function is called with handles of the kind that it expects, which the
//!    kind of the value or the opcode shows before.

mod bodies;
mod calls;
mod edit;
mod emit;
mod read;
mod wide;

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::Path;

use crate::accesses::Edit;
use crate::flow::Decided;
use crate::{Error, Library, here, ir};
use calls::Writer;
use read::Reader;

type Handle = *mut c_void;
type Bool = c_int;

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a library.
        #[allow(non_snake_case, missing_docs)]
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
            /// Since 18, which also knows of the property it asks for.
            is_disjoint: Option<unsafe extern "C" fn(Handle) -> Bool>,
            /// Since 18.
            set_tail_call_kind: Option<unsafe extern "C" fn(Handle, c_int)>,
        }

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
                // SAFETY: a loaded library and a string; the function of that name has this type.
                let is_disjoint = unsafe {
                    let found = libc::dlsym(library, c"LLVMGetIsDisjoint".as_ptr());
                    std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(Handle) -> Bool>>(found)
                };
                // SAFETY: a loaded library and a string; the function of that name has this type.
                let set_tail_call_kind = unsafe {
                    let found = libc::dlsym(library, c"LLVMSetTailCallKind".as_ptr());
                    std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(Handle, c_int)>>(found)
                };
                Ok(Some(Functions { is_disjoint, set_tail_call_kind, $($name: {
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
    ParseIRInContext: fn(Handle, Handle, *mut Handle, *mut *mut c_char) -> Bool;
    DisposeModule: fn(Handle);
    GetModuleDataLayout: fn(Handle) -> Handle;
    GetDataLayoutStr: fn(Handle) -> *const c_char;
    SetDataLayout: fn(Handle, *const c_char);
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
    GetInlineAsmConstraintString: fn(Handle, *mut usize) -> *const c_char;
    GetAtomicRMWBinOp: fn(Handle) -> c_int;
    GetFirstUse: fn(Handle) -> Handle;
    GetNextUse: fn(Handle) -> Handle;
    IsAInstruction: fn(Handle) -> Handle;
    GetCalledValue: fn(Handle) -> Handle;
    GetNumArgOperands: fn(Handle) -> c_uint;
    TypeOf: fn(Handle) -> Handle;
    GetTypeKind: fn(Handle) -> c_int;
    GetIntTypeWidth: fn(Handle) -> c_uint;
    GetGEPSourceElementType: fn(Handle) -> Handle;
    ABISizeOfType: fn(Handle, Handle) -> u64;
    OffsetOfElement: fn(Handle, Handle, c_uint) -> u64;
    StructGetTypeAtIndex: fn(Handle, c_uint) -> Handle;
    GetElementType: fn(Handle) -> Handle;
    IsConstant: fn(Handle) -> Bool;
    ConstIntGetSExtValue: fn(Handle) -> i64;
    GetEnumAttributeKindForName: fn(*const c_char, usize) -> c_uint;
    GetEnumAttributeAtIndex: fn(Handle, c_uint, c_uint) -> Handle;
    GetCallSiteEnumAttribute: fn(Handle, c_uint, c_uint) -> Handle;
    AppendBasicBlockInContext: fn(Handle, Handle, *const c_char) -> Handle;
    GetBasicBlockParent: fn(Handle) -> Handle;
    GetInstructionParent: fn(Handle) -> Handle;
    SetSuccessor: fn(Handle, c_uint, Handle);
    GetFirstGlobal: fn(Handle) -> Handle;
    GetNextGlobal: fn(Handle) -> Handle;
    GetFirstGlobalAlias: fn(Handle) -> Handle;
    GetFirstGlobalIFunc: fn(Handle) -> Handle;
    GetLinkage: fn(Handle) -> c_int;
    IsGlobalConstant: fn(Handle) -> Bool;
    GetUnnamedAddress: fn(Handle) -> c_int;
    GetVisibility: fn(Handle) -> c_int;
    SetValueName2: fn(Handle, *const c_char, usize);
    SetComdat: fn(Handle, Handle);
    DeleteGlobal: fn(Handle);
    DeleteFunction: fn(Handle);
    GlobalGetValueType: fn(Handle) -> Handle;
    GetReturnType: fn(Handle) -> Handle;
    GetFunctionCallConv: fn(Handle) -> c_uint;
    SetFunctionCallConv: fn(Handle, c_uint);
    SetInstructionCallConv: fn(Handle, c_uint);
    SetTailCall: fn(Handle, Bool);
    GetAttributeCountAtIndex: fn(Handle, c_uint) -> c_uint;
    GetAttributesAtIndex: fn(Handle, c_uint, *mut Handle);
    AddAttributeAtIndex: fn(Handle, c_uint, Handle);
    AddCallSiteAttribute: fn(Handle, c_uint, Handle);
    LinkModules2: fn(Handle, Handle) -> Bool;
    InsertBasicBlockInContext: fn(Handle, Handle, *const c_char) -> Handle;
    Int32TypeInContext: fn(Handle) -> Handle;
    GetNamedGlobal: fn(Handle, *const c_char) -> Handle;
    BuildLoad2: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    BuildICmp: fn(Handle, c_int, Handle, Handle, *const c_char) -> Handle;
    BuildCondBr: fn(Handle, Handle, Handle, Handle) -> Handle;
    BuildRet: fn(Handle, Handle) -> Handle;
    BuildRetVoid: fn(Handle) -> Handle;
    InstructionEraseFromParent: fn(Handle);
    InstructionRemoveFromParent: fn(Handle);
    InsertIntoBuilder: fn(Handle, Handle);
    ReplaceAllUsesWith: fn(Handle, Handle);
    PositionBuilderAtEnd: fn(Handle, Handle);
    BuildPhi: fn(Handle, Handle, *const c_char) -> Handle;
    AddIncoming: fn(Handle, *mut Handle, *mut Handle, c_uint);
    BuildBr: fn(Handle, Handle) -> Handle;
    BuildAdd: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    BuildSub: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    BuildMul: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    BuildExactSDiv: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    BuildPtrToInt: fn(Handle, Handle, Handle, *const c_char) -> Handle;
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
    BuildBitCast: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    BuildExtractElement: fn(Handle, Handle, Handle, *const c_char) -> Handle;
    GetVectorSize: fn(Handle) -> c_uint;
    IntTypeInContext: fn(Handle, c_uint) -> Handle;
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
    WriteBitcodeToMemoryBuffer: fn(Handle) -> Handle;
    GetBufferStart: fn(Handle) -> *const c_char;
    GetBufferSize: fn(Handle) -> usize;
    InitializeX86TargetInfo: fn();
    InitializeX86Target: fn();
    InitializeX86TargetMC: fn();
    InitializeX86AsmPrinter: fn();
    InitializeX86AsmParser: fn();
    GetTarget: fn(Handle) -> *const c_char;
    GetTargetFromTriple: fn(*const c_char, *mut Handle, *mut *mut c_char) -> Bool;
    CreateTargetMachine: fn(Handle, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> Handle;
    DisposeTargetMachine: fn(Handle);
    TargetMachineEmitToFile: fn(Handle, Handle, *const c_char, c_int, *mut *mut c_char) -> Bool;
    GetSection: fn(Handle) -> *const c_char;
    GetInitializer: fn(Handle) -> Handle;
    IsNull: fn(Handle) -> Bool;
    IsThreadLocal: fn(Handle) -> Bool;
    IsAGlobalValue: fn(Handle) -> Handle;
    IsAConstant: fn(Handle) -> Handle;
    GetSourceFileName: fn(Handle, *mut usize) -> *const c_char;
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
    pub(super) const ADD: i32 = 8;
    pub(super) const FADD: i32 = 9;
    pub(super) const FSUB: i32 = 11;
    pub(super) const FMUL: i32 = 13;
    pub(super) const AND: i32 = 23;
    pub(super) const XOR: i32 = 25;
    pub(super) const TRUNC: i32 = 30;
    pub(super) const ZEXT: i32 = 31;
    pub(super) const SEXT: i32 = 32;
    pub(super) const SUB: i32 = 10;
    pub(super) const MUL: i32 = 12;
    pub(super) const SHL: i32 = 20;
    pub(super) const OR: i32 = 24;
    pub(super) const GEP: i32 = 29;
    pub(super) const PTR_TO_INT: i32 = 39;
    pub(super) const INT_TO_PTR: i32 = 40;
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
    /// The file, as it was read.
    bytes: Vec<u8>,
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
        Module::of_bytes(library, name, bytes)
    }

    /// Reads bitcode, which messages call by this name.
    pub fn of_bytes(
        library: &'a Library,
        name: String,
        bytes: Vec<u8>,
    ) -> Result<Module<'a>, Error> {
        let llvm = &library.functions;
        // SAFETY: rule 1.
        let context = unsafe { (llvm.ContextCreate)() };
        let Some(module) = parse(llvm, context, &bytes) else {
            // SAFETY: nothing was made in it.
            unsafe { (llvm.ContextDispose)(context) };
            let message = "the compiler's libLLVM cannot read this as bitcode".to_owned();
            return Err(Error::Bitcode { path: name, message });
        };
        let ir = ir::Module { name: name.clone(), ..ir::Module::default() };
        let mut read =
            Module { llvm, path: name, bytes, context, module, instructions: Vec::new(), ir };
        Reader::new(&mut read).functions();
        Ok(read)
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.path
    }

    /// The name of the source that it was made of, as its compiler calls it.
    pub fn source(&self) -> String {
        let mut len = 0;
        // SAFETY: rule 2; the text belongs to the module.
        let name = unsafe {
            let name = (self.llvm.GetSourceFileName)(self.module, &raw mut len);
            std::slice::from_raw_parts(name.cast::<u8>(), len)
        };
        String::from_utf8_lossy(name).into_owned()
    }

    /// What was read.
    pub fn ir(&self) -> ir::Module {
        self.ir.clone()
    }

    /// The module as bitcode.
    pub fn bitcode(&self) -> Vec<u8> {
        // SAFETY: rule 2; the buffer is LLVM's own, is copied and given back.
        unsafe {
            let buffer = (self.llvm.WriteBitcodeToMemoryBuffer)(self.module);
            let (start, len) =
                ((self.llvm.GetBufferStart)(buffer), (self.llvm.GetBufferSize)(buffer));
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), len).to_vec();
            (self.llvm.DisposeMemoryBuffer)(buffer);
            bytes
        }
    }

    /// Whether LLVM takes the module for valid.
    fn verify(&self) -> Result<(), Error> {
        const RETURN_STATUS: c_int = 2;
        // SAFETY: rule 2; the message is LLVM's own and is given back.
        unsafe {
            let mut message = std::ptr::null_mut();
            let wrong = (self.llvm.VerifyModule)(self.module, RETURN_STATUS, &raw mut message) != 0;
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.llvm.DisposeMessage)(message);
            if wrong {
                return Err(Error::Invalid { path: self.path.clone(), message: text });
            }
        }
        Ok(())
    }

    /// Writes the module.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        self.verify()?;
        let failed = |message: String| Error::Invalid { path: self.path.clone(), message };
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| failed("its name contains a zero".to_owned()))?;
        // SAFETY: rule 2.
        unsafe {
            if (self.llvm.WriteBitcodeToFile)(self.module, name.as_ptr()) != 0 {
                let error = std::io::Error::last_os_error();
                return Err(Error::File { path: path.display().to_string(), error });
            }
        }
        Ok(())
    }

    /// Gives hooks to the accesses that the compiler gives none. False if there are no such accesses.
    pub fn hook_wide(&self) -> bool {
        wide::Hooking::new(self).all()
    }

    /// Changes the compiler's hooks as was decided. Each function that is changed keeps what it was as a second body, which
    /// it runs if all accesses are wanted. False if that is not possible for this module, which is not to be written then.
    pub fn edit(&self, edits: &[Edit]) -> bool {
        let changed: BTreeSet<u32> = edits.iter().map(Edit::function).collect();
        if changed.is_empty() {
            return true;
        }
        let Some(second) = bodies::Second::of(self) else { return false };
        edit::Editor::new(self).all(edits);
        second.link(&changed)
    }

    /// Adds those of the functions that do what hooks do without a call that the module calls by now.
    fn link_here(&self) -> Result<(), Error> {
        let text = CString::new(here::module()).unwrap_or_default();
        let failed =
            |message: &str| Error::Invalid { path: self.path.clone(), message: message.to_owned() };
        // SAFETY: rules 1 and 2; parsing takes the buffer, whose text ends with a zero, and linking the module that was parsed.
        unsafe {
            let bytes = text.as_bytes();
            let buffer = (self.llvm.CreateMemoryBufferWithMemoryRangeCopy)(
                bytes.as_ptr().cast(),
                bytes.len(),
                c"here".as_ptr(),
            );
            let (mut module, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
            if (self.llvm.ParseIRInContext)(self.context, buffer, &raw mut module, &raw mut message)
                != 0
            {
                let text = CStr::from_ptr(message).to_string_lossy().into_owned();
                (self.llvm.DisposeMessage)(message);
                return Err(failed(&text));
            }
            (self.llvm.SetDataLayout)(module, (self.llvm.GetDataLayoutStr)(self.module));
            if (self.llvm.LinkModules2)(self.module, module) != 0 {
                return Err(failed("the functions of the hooks could not be linked"));
            }
        }
        Ok(())
    }

    /// Inserts what was decided.
    pub fn insert(&self, decided: &Decided) -> Result<(), Error> {
        Writer::new(self, decided).insert(&decided.insertions);
        self.link_here()
    }
}

/// Parses bitcode. Nothing if it is none, or of another version.
fn parse(llvm: &Functions, context: Handle, bytes: &[u8]) -> Option<Handle> {
    // SAFETY: rule 1; the buffer is copied, and disposed of once the module is parsed, which does not keep it.
    unsafe {
        let buffer = (llvm.CreateMemoryBufferWithMemoryRangeCopy)(
            bytes.as_ptr().cast(),
            bytes.len(),
            c"module".as_ptr(),
        );
        let mut module = std::ptr::null_mut();
        let failed = (llvm.ParseBitcodeInContext2)(context, buffer, &raw mut module) != 0;
        (llvm.DisposeMemoryBuffer)(buffer);
        (!failed).then_some(module)
    }
}
