//! Whether an order did harm, by how the program ended.
//!
//! Without a specification the program itself is one: a crash, a failed assertion, a hang or an exit code
//! that the undisturbed execution does not show is harm. So is other output, unless the same lines merely
//! come in another order, as they do where several threads print.

use selvedge_report::Harm;

use crate::control::ending::Ending;

/// What an execution left behind.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Result {
    pub(super) ending: Ending,
    /// The lines of its output, sorted.
    pub(super) lines: Vec<Vec<u8>>,
}

impl Result {
    pub(super) fn new(ending: Ending, stdout: &[u8]) -> Result {
        let mut lines: Vec<Vec<u8>> = stdout.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        Result { ending, lines }
    }

    /// What this did that `usual` does not.
    pub(super) fn harm(&self, usual: &Result) -> Harm {
        match (&self.ending, &usual.ending) {
            (Ending::Failed(now), Ending::Failed(then)) if now.id == then.id => Harm::Nothing,
            (Ending::Failed(_), _) => Harm::Failure,
            (Ending::Exit(now), Ending::Exit(then)) if now != then => Harm::Exit,
            // If the undisturbed execution fails, to succeed is no harm.
            (Ending::Exit(_), Ending::Failed(_)) => Harm::Nothing,
            (Ending::Exit(_), Ending::Exit(_)) if self.lines != usual.lines => Harm::Output,
            (Ending::Exit(_), Ending::Exit(_)) => Harm::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harm_is_what_the_undisturbed_execution_does_not_show() {
        let result = |code, text: &str| Result::new(Ending::Exit(code), text.as_bytes());
        let usual = result(0, "a\nb\n");
        assert_eq!(result(0, "b\na\n").harm(&usual), Harm::Nothing);
        assert_eq!(result(0, "a\nc\n").harm(&usual), Harm::Output);
        assert_eq!(result(1, "a\nb\n").harm(&usual), Harm::Exit);
    }
}
