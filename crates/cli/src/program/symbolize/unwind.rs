//! Who had called whom when a program crashed: its stack, unwound by the tables that compilers leave for
//! exceptions (`.eh_frame`; System V ABI for AMD64, section 3.7).
//!
//! A function without a table ends the walk; nothing is guessed.

use std::path::Path;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection,
};
use object::{Object, ObjectSection};
use selvedge_runtime::{Modules, Registers};

/// Frames that are looked at.
const MOST: usize = 64;
const STACK_POINTER: Register = Register(7);
const RETURN_ADDRESS: Register = Register(16);

/// The return addresses of the calls that had not returned, innermost first. `bias` says how far a file's
/// code lies from where its linker put it.
pub(super) fn callers(
    registers: &Registers,
    stack: &[u64],
    modules: &Modules,
    mut bias: impl FnMut(&selvedge_runtime::Module) -> u64,
) -> Vec<u64> {
    let mut frame = Frame { registers: *registers, from: registers[7], stack };
    let mut found = Vec::new();
    // The innermost instruction has not been executed; the others are calls, which come before.
    let mut at = frame.registers[16];
    while found.len() < MOST {
        let Some(module) = modules.find(at) else { break };
        let Some(next) = frame.caller(at.wrapping_sub(bias(module)), &module.path) else { break };
        if next.registers[16] == 0 {
            break;
        }
        found.push(next.registers[16]);
        at = next.registers[16] - 1;
        frame = next;
    }
    found
}

/// The registers of one active function.
struct Frame<'a> {
    registers: Registers,
    /// Where `stack` lies.
    from: u64,
    stack: &'a [u64],
}

impl<'a> Frame<'a> {
    /// The frame of the function that called this one, which is at `address` of the file.
    fn caller(&self, address: u64, path: &Path) -> Option<Frame<'a>> {
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let section = file.section_by_name(".eh_frame")?;
        let data = section.uncompressed_data().ok()?;
        let tables = EhFrame::new(&data, LittleEndian);
        let text = file.section_by_name(".text").map_or(0, |s| s.address());
        let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
        let mut context = UnwindContext::new();
        let row = tables
            .unwind_info_for_address(&bases, &mut context, address, EhFrame::cie_from_offset)
            .ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let base = self.register(*register)?.wrapping_add_signed(*offset);
        let mut registers = self.registers;
        for number in 0..17u16 {
            registers[usize::from(number)] = match row.register(Register(number)) {
                None | Some(RegisterRule::SameValue) => self.registers[usize::from(number)],
                Some(RegisterRule::Offset(n)) => self.word(base.wrapping_add_signed(n))?,
                Some(RegisterRule::ValOffset(n)) => base.wrapping_add_signed(n),
                Some(RegisterRule::Register(other)) => self.register(other)?,
                // The outermost function has no caller.
                Some(_) if Register(number) == RETURN_ADDRESS => return None,
                Some(_) => 0,
            };
        }
        row.register(RETURN_ADDRESS)?;
        registers[usize::from(STACK_POINTER.0)] = base;
        Some(Frame { registers, ..*self })
    }

    fn register(&self, register: Register) -> Option<u64> {
        self.registers.get(usize::from(register.0)).copied()
    }

    /// The word of the stack at an address, if it was kept.
    fn word(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.from)?;
        self.stack.get(usize::try_from(offset / 8).ok()?).copied()
    }
}
