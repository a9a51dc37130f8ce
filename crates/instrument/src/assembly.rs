//! Assembly that is understood: one access to memory, made by an instruction with a lock prefix or by a plain move.
//!
//! Programs that are older than atomic types of the language have their atomic operations as inline assembly. Understood
//! are `cmpxchg`, `cmpxchg8b`, `cmpxchg16b`, `xadd`, `add`, `sub`, `inc`, `dec`, `and`, `or` and `xor` with a lock prefix,
//! `xchg` and `mov`, each with one operand in memory that the compiler chose; beside them only instructions that access
//! no memory at all. Any other assembly is opaque.

use selvedge_model::Operator;

/// What assembly does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Does {
    /// Nothing to memory.
    Nothing,
    Load,
    Store,
    /// A read-modify-write; by an operator, if it is one whose updates commute.
    Update(Option<Operator>),
    CompareExchange,
}

/// Assembly that is understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Understood {
    /// What it does.
    pub does: Does,
    /// How many bytes.
    pub len: u32,
    /// The arguments that are the address of its memory; they must be the same.
    pub memory: Vec<u32>,
}

/// An operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operand {
    /// In memory, by the number of the constraint.
    Memory(usize),
    /// A register or a number.
    Value,
}

/// Understands assembly and its constraints, as LLVM writes them.
pub fn understand(text: &str, constraints: &str) -> Option<Understood> {
    let constraints: Vec<&str> =
        constraints.split(',').filter(|c| !c.starts_with('~')).map(str::trim).collect();
    let is_memory = |n: usize| constraints.get(n).is_some_and(|c| c.contains("*m"));
    let mut found: Option<(Does, u32, usize)> = None;
    let mut locked = false;
    for instruction in text.split([';', '\n']).map(str::trim).filter(|i| !i.is_empty()) {
        let (mut name, mut rest) = word(instruction);
        if name == "lock" {
            locked = true;
            (name, rest) = word(rest);
            if name.is_empty() {
                continue;
            }
        }
        let operands = operands(rest, &is_memory)?;
        if let Some((does, len)) = step(name, locked, &operands)? {
            let at = operands.iter().find_map(|o| match o {
                Operand::Memory(n) => Some(*n),
                Operand::Value => None,
            })?;
            if found.replace((does, len, at)).is_some() {
                return None;
            }
        }
        locked = false;
    }
    // An output in memory takes an argument, and so does every input.
    let takes = |c: &&&str| !c.starts_with('=') || c.contains('*');
    let argument = |n: usize| constraints[..n].iter().filter(takes).count() as u32;
    let memory: Vec<u32> = (0..constraints.len()).filter(|&n| is_memory(n)).map(argument).collect();
    match found {
        Some((does, len, _)) => Some(Understood { does, len, memory }),
        None => memory.is_empty().then_some(Understood { does: Does::Nothing, len: 0, memory }),
    }
}

fn word(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

/// The operands of an instruction; nothing if there is one that the compiler did not choose and that is in memory.
fn operands(text: &str, is_memory: &impl Fn(usize) -> bool) -> Option<Vec<Operand>> {
    if text.contains(['(', '[', '|']) {
        return None;
    }
    let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
    let operand = |part: &str| {
        let Some(chosen) = part.strip_prefix('$') else {
            return part.starts_with('%').then_some(Operand::Value);
        };
        if chosen.starts_with('$') {
            return Some(Operand::Value);
        }
        let number = chosen.trim_start_matches('{').trim_end_matches('}');
        let number: usize = number.split(':').next()?.parse().ok()?;
        Some(if is_memory(number) { Operand::Memory(number) } else { Operand::Value })
    };
    parts.map(operand).collect()
}

/// What an instruction does to memory, if it does anything; nothing at all if it is not understood.
#[allow(clippy::option_option)]
fn step(name: &str, locked: bool, operands: &[Operand]) -> Option<Option<(Does, u32)>> {
    let is_memory = |n: usize| matches!(operands.get(n), Some(Operand::Memory(_)));
    let count = operands.iter().filter(|o| matches!(o, Operand::Memory(_))).count();
    let last = operands.len().wrapping_sub(1);
    match name {
        "mfence" | "lfence" | "sfence" | "pause" | "nop" | "rep" if operands.is_empty() => {
            return Some(None);
        }
        "cmpxchg8b" if locked && count == 1 => return Some(Some((Does::CompareExchange, 8))),
        "cmpxchg16b" if locked && count == 1 => return Some(Some((Does::CompareExchange, 16))),
        _ if name.starts_with("set") && count == 0 => return Some(None),
        _ => {}
    }
    let sized = |base: &str| {
        let len = match name.strip_prefix(base)? {
            "b" => 1,
            "w" => 2,
            "l" => 4,
            "q" => 8,
            _ => return None,
        };
        Some(len)
    };
    if let Some(len) = sized("mov") {
        return match (count, is_memory(0), is_memory(1)) {
            (0, ..) => Some(None),
            (1, true, _) => Some(Some((Does::Load, len))),
            (1, _, true) => Some(Some((Does::Store, len))),
            _ => None,
        };
    }
    if let Some(len) = sized("xchg") {
        return (count == 1).then_some(Some((Does::Update(None), len)));
    }
    if !locked || count != 1 || !is_memory(last) {
        return None;
    }
    let known = [
        ("cmpxchg", Does::CompareExchange),
        ("xadd", Does::Update(Some(Operator::Add))),
        ("add", Does::Update(Some(Operator::Add))),
        ("sub", Does::Update(Some(Operator::Add))),
        ("inc", Does::Update(Some(Operator::Add))),
        ("dec", Does::Update(Some(Operator::Add))),
        ("and", Does::Update(Some(Operator::And))),
        ("or", Does::Update(Some(Operator::Or))),
        ("xor", Does::Update(Some(Operator::Xor))),
    ];
    known.into_iter().find_map(|(base, does)| Some(Some((does, sized(base)?))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, constraints: &str) -> Option<(Does, u32, Vec<u32>)> {
        understand(text, constraints).map(|u| (u.does, u.len, u.memory))
    }

    #[test]
    fn what_has_a_lock_prefix_is_understood() {
        let cas = "=*m,={ax},q,{ax},*m,~{memory},~{cc}";
        let found = Some((Does::CompareExchange, 8, vec![0, 3]));
        assert_eq!(read("lock cmpxchgq $2, $0; setz $1", cas), found);
        assert_eq!(read("lock; cmpxchgq $2, $0\n\tsete ${1:b}", cas), found);
        let pair = "=*m,=q,{bx},{cx},{ax},{dx},*m,~{memory}";
        let found = Some((Does::CompareExchange, 16, vec![0, 5]));
        assert_eq!(read("lock cmpxchg16b $0; setz $1", pair), found);
        let add = Some((Does::Update(Some(Operator::Add)), 4, vec![0, 2]));
        assert_eq!(read("lock xaddl $1, $0", "=*m,=r,1,*m,~{memory}"), add);
        let xchg = Some((Does::Update(None), 8, vec![0, 2]));
        assert_eq!(read("xchgq $0, $1", "=r,=*m,0,*m"), xchg);
        assert_eq!(read("movq $1, $0", "=q,*m,~{memory}"), Some((Does::Load, 8, vec![0])));
        assert_eq!(read("movl $1, $0", "=*m,q,~{memory}"), Some((Does::Store, 4, vec![0])));
        assert_eq!(read("mfence", "~{memory}"), Some((Does::Nothing, 0, vec![])));
        assert_eq!(read("rep; nop", "~{memory}"), Some((Does::Nothing, 0, vec![])));
    }

    #[test]
    fn everything_else_is_opaque() {
        for (text, constraints) in [
            // Without the prefix it is no step.
            ("cmpxchgq $2, $0", "=*m,={ax},q,{ax},*m"),
            ("addl $1, $0", "=*m,r,*m"),
            // Two accesses.
            ("movq $1, $0; movq $0, $1", "=*m,=*m"),
            // Memory that the compiler does not know of.
            ("movq 8($1), %rax; lock cmpxchg16b $0", "=*m,q,*m"),
            ("lock cmpxchgl $1, ($0)", "r,r,{ax}"),
            ("syscall", "={ax},{ax}"),
            ("rep; stosb", "={di},={cx},{al},0,1"),
            ("nop", "=*m"),
        ] {
            assert_eq!(read(text, constraints), None, "{text}");
        }
    }
}
