//! Whether an order did harm, by how the program ended.
//!
//! There is no specification, so the undisturbed execution serves as one: a crash, a failed assertion, a hang or
//! an exit code that it does not show is harm. Different output is harm too, unless only the order of the lines
//! differs, as it does when several threads print.

use selvedge_model::Verdict;

use crate::ending::{Ending, Key};

/// The harm of an order, in increasing severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Harm {
    /// It ended like an undisturbed execution.
    Nothing,
    /// The output differs.
    Output,
    /// The exit code differs.
    Exit,
    /// It failed.
    Failure,
}

impl Harm {
    /// What that says of the finding whose order led to it.
    pub fn verdict(self) -> Verdict {
        match self {
            Harm::Nothing => Verdict::Benign,
            Harm::Output | Harm::Exit | Harm::Failure => Verdict::Harmful,
        }
    }
}

/// The visible results of an execution.
#[derive(Clone, Debug)]
pub struct Left {
    /// How it ended.
    pub ending: Ending,
    /// The lines of its output, sorted.
    lines: Vec<Vec<u8>>,
}

impl Left {
    /// The results of an execution with this ending and output.
    pub fn new(ending: Ending, output: &[u8]) -> Left {
        let mut lines: Vec<Vec<u8>> = output.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        Left { ending, lines }
    }

    /// The harm of this execution, compared with `usual`.
    pub fn harm(&self, usual: &Left) -> Harm {
        match (self.ending.key, usual.ending.key) {
            // What an execution does that was cut off is not known.
            (Key::Undecided, _) => Harm::Nothing,
            (Key::Failed(now), Key::Failed(then)) if now == then => Harm::Nothing,
            (Key::Failed(_), _) => Harm::Failure,
            (Key::Exited(now), Key::Exited(then)) if now != then => Harm::Exit,
            // Success is not harm, even if the undisturbed execution fails.
            (Key::Exited(_), Key::Failed(_) | Key::Undecided) => Harm::Nothing,
            (Key::Exited(_), Key::Exited(_)) if self.lines != usual.lines => Harm::Output,
            (Key::Exited(_), Key::Exited(_)) => Harm::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harm_is_what_the_undisturbed_execution_does_not_show() {
        let left = |code, text: &str| Left::new(Ending::exited(code), text.as_bytes());
        let usual = left(0, "a\nb\n");
        assert_eq!(left(0, "b\na\n").harm(&usual), Harm::Nothing);
        assert_eq!(left(0, "a\nc\n").harm(&usual), Harm::Output);
        assert_eq!(left(1, "a\nb\n").harm(&usual), Harm::Exit);
        let failed = Left::new(Ending::odd_exit(7, 0), b"a\nb\n");
        assert_eq!(failed.harm(&usual), Harm::Failure);
        assert_eq!(failed.harm(&failed), Harm::Nothing);
        assert_eq!(usual.harm(&failed), Harm::Nothing);
    }
}
