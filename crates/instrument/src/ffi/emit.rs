//! Makes machine code of a module, where no compiler is there to do so: rustc makes objects and nothing else of its bitcode.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::sync::Once;

use super::{Handle, Module};
use crate::Error;

const OBJECT: c_int = 1;
const DEFAULT: c_int = 2;
const POSITION_INDEPENDENT: c_int = 2;

impl Module<'_> {
    /// Writes an object for this machine, after the module was checked. Each function and variable is in a section of its own,
    /// as rustc has it, so that linkers can leave out what nothing uses, and what only that needs.
    pub fn emit(&self, path: &Path) -> Result<(), Error> {
        self.verify()?;
        self.divide_into_sections();
        let failed = |message: String| Error::Invalid { path: self.path.clone(), message };
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| failed("its name contains a zero".to_owned()))?;
        let llvm = self.llvm;
        // SAFETY: rules 1 and 2; one thread registers the target, before any uses it; messages are LLVM's own and are given back;
        // the machine is disposed of after its last use.
        unsafe {
            // A process uses one library for this: rustc's.
            static REGISTERED: Once = Once::new();
            REGISTERED.call_once(|| {
                (llvm.InitializeX86TargetInfo)();
                (llvm.InitializeX86Target)();
                (llvm.InitializeX86TargetMC)();
                (llvm.InitializeX86AsmPrinter)();
                (llvm.InitializeX86AsmParser)();
            });
            let triple = (llvm.GetTarget)(self.module);
            let (mut target, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
            if (llvm.GetTargetFromTriple)(triple, &raw mut target, &raw mut message) != 0 {
                return Err(failed(self.taken(message)));
            }
            let machine = (llvm.CreateTargetMachine)(
                target,
                triple,
                c"x86-64".as_ptr(),
                c"".as_ptr(),
                DEFAULT,
                POSITION_INDEPENDENT,
                0,
            );
            let result = (llvm.TargetMachineEmitToFile)(
                machine,
                self.module,
                name.as_ptr(),
                OBJECT,
                &raw mut message,
            );
            (llvm.DisposeTargetMachine)(machine);
            if result != 0 { Err(failed(self.taken(message))) } else { Ok(()) }
        }
    }

    /// # Safety
    /// A message of LLVM that nothing else uses.
    unsafe fn taken(&self, message: *mut c_char) -> String {
        // SAFETY: the caller's.
        unsafe {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.llvm.DisposeMessage)(message);
            text
        }
    }

    fn divide_into_sections(&self) {
        let llvm = self.llvm;
        // SAFETY: rule 2, functions and variables of the module in order, null at the end.
        unsafe {
            let mut function: Handle = (llvm.GetFirstFunction)(self.module);
            while !function.is_null() {
                self.put_into_section(function, ".text.");
                function = (llvm.GetNextFunction)(function);
            }
            let mut variable: Handle = (llvm.GetFirstGlobal)(self.module);
            while !variable.is_null() {
                if (llvm.IsDeclaration)(variable) == 0 {
                    self.put_into_section(variable, self.kind(variable));
                }
                variable = (llvm.GetNextGlobal)(variable);
            }
        }
    }

    /// How the names of sections for such variables begin.
    ///
    /// # Safety
    /// A defined variable of the module.
    unsafe fn kind(&self, variable: Handle) -> &'static str {
        let llvm = self.llvm;
        // SAFETY: the caller's.
        let (value, is_local, is_constant) = unsafe {
            (
                (llvm.GetInitializer)(variable),
                (llvm.IsThreadLocal)(variable) != 0,
                (llvm.IsGlobalConstant)(variable) != 0,
            )
        };
        // SAFETY: the initial value of a defined variable.
        let is_zero = unsafe { (llvm.IsNull)(value) != 0 };
        match (is_local, is_constant, is_zero) {
            (true, _, true) => ".tbss.",
            (true, _, false) => ".tdata.",
            (false, true, _) if self.has_address(value) => ".data.rel.ro.",
            (false, true, _) => ".rodata.",
            (false, false, true) => ".bss.",
            (false, false, false) => ".data.",
        }
    }

    /// Whether a constant contains an address, which is known only where the program is loaded.
    fn has_address(&self, constant: Handle) -> bool {
        let llvm = self.llvm;
        let (mut known, mut open) = (HashSet::new(), vec![constant]);
        while let Some(value) = open.pop() {
            // SAFETY: rule 2; operands are read up to their number.
            unsafe {
                if !(llvm.IsAGlobalValue)(value).is_null() {
                    return true;
                }
                if (llvm.IsAConstant)(value).is_null() || !known.insert(value) {
                    continue;
                }
                for number in 0..(llvm.GetNumOperands)(value).cast_unsigned() {
                    open.push((llvm.GetOperand)(value, number));
                }
            }
        }
        false
    }

    /// # Safety
    /// A function or variable of the module.
    unsafe fn put_into_section(&self, value: Handle, kind: &str) {
        // What LLVM itself reads is in no object.
        const OF_LLVM: &[u8] = b"llvm.";
        let llvm = self.llvm;
        // SAFETY: the caller's; the name is the value's own, and a section without a name is null or empty.
        unsafe {
            let section = (llvm.GetSection)(value);
            let is_free = section.is_null() || *section == 0;
            let mut len = 0;
            let name = (llvm.GetValueName2)(value, &raw mut len);
            let name = std::slice::from_raw_parts(name.cast::<u8>(), len);
            if (llvm.IsDeclaration)(value) == 0 && is_free && !name.starts_with(OF_LLVM) {
                let section = CString::new([kind.as_bytes(), name].concat()).unwrap_or_default();
                (llvm.SetSection)(value, section.as_ptr());
            }
        }
    }
}
