//! Whether an order did harm, by how the program ended.
//!
//! Without a specification the program itself is one: a crash, a failed assertion, a hang or an exit code
//! that the undisturbed execution does not show is harm. So is different output, unless the same lines
//! merely come in another order, as they do where several threads print.

use selvedge_model::Verdict;

use crate::ending::{Ending, Key};

/// How bad what an order led to is, harmless first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Harm {
    /// It ended as undisturbed executions do.
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

/// What an execution left behind.
#[derive(Clone, Debug)]
pub struct Left {
    /// How it ended.
    pub ending: Ending,
    /// The lines of its output, sorted.
    lines: Vec<Vec<u8>>,
}

impl Left {
    /// An execution that ended so, and wrote this.
    pub fn new(ending: Ending, output: &[u8]) -> Left {
        let mut lines: Vec<Vec<u8>> = output.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        Left { ending, lines }
    }

    /// What this did that `usual` does not.
    pub fn harm(&self, usual: &Left) -> Harm {
        match (self.ending.key, usual.ending.key) {
            (Key::Failed(now), Key::Failed(then)) if now == then => Harm::Nothing,
            (Key::Failed(_), _) => Harm::Failure,
            (Key::Exited(now), Key::Exited(then)) if now != then => Harm::Exit,
            // If the undisturbed execution fails, to succeed does no harm.
            (Key::Exited(_), Key::Failed(_)) => Harm::Nothing,
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
