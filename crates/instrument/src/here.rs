//! What the program does itself, without a call of the runtime: it writes a word.
//!
//! Each module gets a function for each hook that only writes a word most of the time, to be inlined wherever it is called.
//! Where the byte of the place says so, and there is room, it writes the word where the runtime said that the next one
//! goes. Otherwise it calls the hook.
//!
//! The words are those of the runtime (`crates/runtime/injected/src/word.rs`, `control/flow.rs`). Where the next word goes is
//! kept in memory at every moment: the runtime writes words too, also from functions that the compiler takes to access
//! no memory.

use crate::hooks::Hook;

/// The hooks of [`Hook::is_here`], with the kind of their word and what is in it.
const HOOKS: [(Hook, u64, Word); 6] = [
    (Hook::Enter, 1, Word::Place),
    (Hook::Block, 2, Word::Place),
    (Hook::Read, 3, Word::Address),
    (Hook::Write, 3, Word::Address),
    (Hook::Leave, 5, Word::Place),
    (Hook::Back, 6, Word::Nothing),
];

/// How far the kind of a word is shifted.
const SHIFT: u32 = 56;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Place,
    Address,
    Nothing,
}

/// The name of the function that does what a hook does.
pub fn name(hook: Hook) -> String {
    format!("{}_here", hook.name())
}

/// The functions, as a module.
pub fn module() -> String {
    let mut text = "@selvedge_flow_next = external global ptr
@selvedge_flow_end = external global ptr
@selvedge_flow_wrote = external global i8
"
    .to_owned();
    for (hook, kind, word) in HOOKS {
        text += &function(hook, kind, word);
    }
    text + "!0 = !{!\"branch_weights\", i32 1000, i32 1}\n"
}

fn function(hook: Hook, kind: u64, word: Word) -> String {
    let (hook_name, here, kind) = (hook.name(), name(hook), kind << SHIFT);
    let (types, parameters) = match word {
        Word::Address => ("ptr, ptr, i64", "ptr %place, ptr %address, i64 %len"),
        Word::Place | Word::Nothing => ("ptr", "ptr %place"),
    };
    let number = match word {
        Word::Place => "ptrtoint ptr %place to i64",
        Word::Address => "ptrtoint ptr %address to i64",
        Word::Nothing => "add i64 0, 0",
    };
    let wrote = match hook {
        Hook::Write => "  store volatile i8 1, ptr @selvedge_flow_wrote, align 1\n",
        _ => "",
    };
    let payload = (1_u64 << SHIFT) - 1;
    format!(
        "declare void @{hook_name}({types})
define linkonce_odr hidden void @{here}({parameters}) alwaysinline nounwind {{
  %state = load i8, ptr %place, align 1
  %is_plain = icmp ne i8 %state, 0
  %at = load volatile ptr, ptr @selvedge_flow_next, align 8
  %end = load volatile ptr, ptr @selvedge_flow_end, align 8
  %has_room = icmp ne ptr %at, %end
  %is_here = and i1 %is_plain, %has_room
  br i1 %is_here, label %write, label %call, !prof !0
write:
  %number = {number}
  %payload = and i64 %number, {payload}
  %word = or i64 %payload, {kind}
  store i64 %word, ptr %at, align 8
  %next = getelementptr i8, ptr %at, i64 8
  store volatile ptr %next, ptr @selvedge_flow_next, align 8
{wrote}  ret void
call:
  call void @{hook_name}({parameters})
  ret void
}}
"
    )
}
