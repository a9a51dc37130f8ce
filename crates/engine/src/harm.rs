//! Whether an order did harm, by how the program ended.
//!
//! There is no specification, so another execution serves as one: for a race the same execution with the two
//! sides swapped, otherwise an undisturbed one. A crash, a failed assertion, a hang or an exit code that it does
//! not show is harm. Different output is harm too, unless only the order of the lines differs, as it does when
//! several threads print. Where deterministic blocks ensure anything, that decides instead of the output.

use std::sync::Arc;

pub use selvedge_model::Harm;
use selvedge_specs::Judge;

use crate::blocks::Blocks;
use crate::ending::{Ending, Key};
use crate::run::Run;

/// The visible results of an execution.
#[derive(Clone, Debug)]
pub struct Left {
    /// How it ended.
    pub ending: Ending,
    /// The lines of its output, sorted.
    lines: Vec<Vec<u8>>,
    /// What its blocks say.
    pub blocks: Arc<Blocks>,
}

impl Left {
    /// The results of an execution with this ending and output.
    pub fn new(ending: Ending, output: &[u8], blocks: &Arc<Blocks>) -> Left {
        let mut lines: Vec<Vec<u8>> = output.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        Left { ending, lines, blocks: Arc::clone(blocks) }
    }

    /// The results of a run.
    pub fn of(run: &Run) -> Left {
        Left::new(run.ending.clone(), &run.output, &run.blocks)
    }

    /// By how much two executions differ, whichever of them is worse.
    pub fn differs(&self, other: &Left, judge: &mut dyn Judge) -> Harm {
        self.harm(other, judge).max(other.harm(self, judge))
    }

    /// Whether this execution fails in a way that the other one does not.
    pub fn is_worse(&self, other: &Left) -> bool {
        let fails = |left: &Left| match left.ending.key {
            Key::Failed(_) => 2,
            Key::Exited(code) => i32::from(code != 0),
            Key::Undecided => 0,
        };
        fails(self) > fails(other)
    }

    /// Whether it shows what an order leads to: it came to its end, with success or as an undisturbed execution does.
    /// An undisturbed execution that fails says nothing of what the program does when it works, so then only success
    /// counts.
    pub fn is_sound(&self, usual: Option<&Left>) -> bool {
        let usual = usual.map(|usual| usual.ending.key);
        match self.ending.key {
            Key::Exited(code) => code == 0 || usual == Some(Key::Exited(code)),
            Key::Failed(_) | Key::Undecided => false,
        }
    }

    /// Of two executions that differ: whether this one did what differs. It did if it fails and the other one does not;
    /// if neither is worse, it did if the other one is like an undisturbed execution and it is not.
    pub fn did_it(&self, other: &Left, usual: Option<&Left>, judge: &mut dyn Judge) -> bool {
        if self.is_worse(other) || other.is_worse(self) {
            return self.is_worse(other);
        }
        let mut is_usual =
            |left: &Left| usual.is_some_and(|u| left.differs(u, judge) == Harm::Nothing);
        is_usual(other) && !is_usual(self)
    }

    /// The harm of this execution, compared with `usual`.
    pub fn harm(&self, usual: &Left, judge: &mut dyn Judge) -> Harm {
        match (self.ending.key, usual.ending.key) {
            // What an execution does that was cut off is not known.
            (Key::Undecided, _) => Harm::Nothing,
            (Key::Failed(now), Key::Failed(then)) if now == then => Harm::Nothing,
            (Key::Failed(_), _) => Harm::Failure,
            (Key::Exited(now), Key::Exited(then)) if now != then => Harm::Exit,
            // Success is not harm, even if the undisturbed execution fails.
            (Key::Exited(_), Key::Failed(_) | Key::Undecided) => Harm::Nothing,
            (Key::Exited(_), Key::Exited(_)) => self.result(usual, judge),
        }
    }

    fn result(&self, usual: &Left, judge: &mut dyn Judge) -> Harm {
        if self.blocks.ensures() || usual.blocks.ensures() {
            let difference = self.blocks.difference(&usual.blocks, judge);
            return if difference.is_some() { Harm::State } else { Harm::Nothing };
        }
        if self.lines != usual.lines { Harm::Output } else { Harm::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_model::Site;
    use selvedge_specs::{
        BlockExecution, Call, Key, NoCallbacks, Predicate, ThreadName, Value, Word,
    };

    use super::{Blocks, Ending, Harm, Left};
    use std::sync::Arc;

    #[test]
    fn harm_is_what_the_undisturbed_execution_does_not_show() {
        let judge = &mut NoCallbacks;
        let blocks = Arc::default();
        let left = |code, text: &str| Left::new(Ending::exited(code), text.as_bytes(), &blocks);
        let usual = left(0, "a\nb\n");
        assert_eq!(left(0, "b\na\n").harm(&usual, judge), Harm::Nothing);
        assert_eq!(left(0, "a\nc\n").harm(&usual, judge), Harm::Output);
        assert_eq!(left(1, "a\nb\n").harm(&usual, judge), Harm::Exit);
        let failed = Left::new(Ending::odd_exit(7, 0), b"a\nb\n", &blocks);
        assert_eq!(failed.harm(&usual, judge), Harm::Failure);
        assert_eq!(failed.harm(&failed, judge), Harm::Nothing);
        assert_eq!(usual.harm(&failed, judge), Harm::Nothing);
        assert!(usual.is_sound(Some(&usual)) && left(0, "c").is_sound(Some(&usual)));
        assert!(left(0, "a").is_sound(None) && left(1, "a").is_sound(Some(&left(1, "b"))));
        assert!(!left(1, "a").is_sound(Some(&usual)) && !failed.is_sound(None));
    }

    #[test]
    fn an_undisturbed_execution_that_fails_vouches_for_nothing() {
        let judge = &mut NoCallbacks;
        let blocks = Arc::default();
        let left = |code, text: &str| Left::new(Ending::exited(code), text.as_bytes(), &blocks);
        let failed = Left::new(Ending::odd_exit(7, 0), b"", &blocks);
        // Both orders exit with 1, which says nothing of what they lead to where the program works.
        assert!(!left(1, "").is_sound(Some(&failed)) && !left(1, "").is_sound(None));
        assert!(!left(1, "").is_sound(Some(&left(2, ""))));
        assert!(left(0, "").is_sound(Some(&failed)) && !failed.is_sound(Some(&failed)));
        // The order that succeeds is not the one that does harm, although the other one is like the undisturbed one.
        assert!(!left(0, "").did_it(&failed, Some(&failed), judge));
        assert!(failed.did_it(&left(0, ""), Some(&failed), judge));
        // Where neither fails, the undisturbed execution decides.
        let usual = left(0, "a");
        assert!(left(0, "b").did_it(&usual, Some(&usual), judge));
        assert!(!usual.did_it(&left(0, "b"), Some(&usual), judge));
        assert!(!left(0, "b").did_it(&left(0, "c"), Some(&usual), judge));
    }

    fn ensuring(value: i32, output: &str) -> Left {
        let call = Call {
            key: Key { word: Word::Ensure, name: "sum".into(), thread: ThreadName(0), nth: 0 },
            predicate: Predicate::Exact,
            value: Value::from(value).into(),
            site: Site::parse("a.c:1"),
        };
        let execution =
            BlockExecution { block: "b".into(), site: Site::parse("a.c:2"), calls: vec![call] };
        let blocks = Blocks { executions: vec![execution], ..Blocks::default() };
        Left::new(Ending::exited(0), output.as_bytes(), &Arc::new(blocks))
    }

    #[test]
    fn what_is_ensured_decides_instead_of_the_output() {
        let judge = &mut NoCallbacks;
        let usual = ensuring(1, "a");
        assert_eq!(ensuring(1, "b").differs(&usual, judge), Harm::Nothing);
        assert_eq!(ensuring(2, "a").differs(&usual, judge), Harm::State);
        let failed = Left::new(Ending::odd_exit(7, 0), b"a", &Arc::default());
        assert_eq!(failed.differs(&usual, judge), Harm::Failure);
    }
}
