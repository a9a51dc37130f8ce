//! What a function under `#[selvedge::test]` may return.

use std::fmt::Debug;
use std::process::ExitCode;

/// What a test may return: nothing, or whether it passed. An error fails it, as it does a test of the
/// standard library.
pub trait Outcome {
    /// Panics if it says that the test failed.
    #[track_caller]
    fn settle(self);
}

impl Outcome for () {
    fn settle(self) {}
}

impl Outcome for ExitCode {
    fn settle(self) {
        assert_eq!(self, ExitCode::SUCCESS, "the test returned an exit code of failure");
    }
}

impl<T: Outcome, E: Debug> Outcome for Result<T, E> {
    fn settle(self) {
        match self {
            Ok(value) => value.settle(),
            Err(error) => panic!("the test returned Err({error:?})"),
        }
    }
}
