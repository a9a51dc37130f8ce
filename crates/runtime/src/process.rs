//! Processes that run a program under test: signals to them, and where their memory lies.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Kills a process, or with a negative number a group; whether there was one.
pub(crate) fn kill(process: i32) -> bool {
    // SAFETY: no memory involved. 0, 1 and -1 mean something else.
    process.unsigned_abs() > 1 && unsafe { libc::kill(process, libc::SIGKILL) } == 0
}

/// Interrupts a process, as the user would at a terminal.
pub(crate) fn interrupt(process: i32) {
    if process > 1 {
        // SAFETY: no memory involved.
        unsafe { libc::kill(process, libc::SIGINT) };
    }
}

/// The most bits by which the system may move code and mappings for them to differ in the bits of an address that
/// tables of the runtime are indexed with (`layout::SPACE_BITS` of the injected part). Code begins at
/// 0x5555_5555_4000 and moves up, mappings begin below 0x7fff_f000_0000 and move down, by 2^BITS pages of 2^12 bytes.
const MOST_BITS: u32 = 30;

/// Where the system says by how many bits it moves them.
const BITS: &str = "/proc/sys/vm/mmap_rnd_bits";

/// Keeps code and mappings of the command's process apart, on a system that moves them too far.
pub(crate) fn keep_apart(command: &mut Command) {
    let bits = std::fs::read_to_string(BITS).ok().and_then(|text| text.trim().parse().ok());
    if moves_too_far(bits) {
        do_not_move(command);
    }
}

fn moves_too_far(bits: Option<u32>) -> bool {
    bits.is_some_and(|bits| bits > MOST_BITS)
}

/// The system moves nothing of the command's process and of its children. Where that is forbidden, it does: two places
/// are then taken for one about once in ten thousand runs.
fn do_not_move(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are made, which involve no memory.
    unsafe {
        command.pre_exec(|| {
            const ASK: libc::c_ulong = 0xffff_ffff;
            let now = libc::personality(ASK);
            if now >= 0 {
                libc::personality(now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            }
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of an address that tables are indexed with.
    fn index(addr: u64) -> u64 {
        addr & ((1 << 44) - 1)
    }

    #[test]
    fn with_as_many_bits_as_allowed_code_and_mappings_differ() {
        let moved = |bits: u32| 1u64 << (bits + 12);
        let code = |bits| index(0x5555_5555_4000)..index(0x5555_5555_4000 + moved(bits));
        let mappings = |bits| index(0x7fff_f000_0000 - moved(bits))..index(0x7fff_f000_0000);
        assert!(code(MOST_BITS).end < mappings(MOST_BITS).start);
        assert!(code(MOST_BITS + 1).end >= mappings(MOST_BITS + 1).start);
        assert!(moves_too_far(Some(32)) && !moves_too_far(Some(28)) && !moves_too_far(None));
    }

    #[test]
    fn a_process_that_is_not_moved_says_so() {
        let mut command = Command::new("cat");
        command.arg("/proc/self/personality");
        do_not_move(&mut command);
        let output = command.output().expect("cat is there");
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let bits = u64::from_str_radix(&said, 16).expect("a number");
        assert_ne!(bits & libc::ADDR_NO_RANDOMIZE as u64, 0, "{said}");
    }
}
