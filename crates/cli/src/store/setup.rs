//! What a run stores so that its program can run again.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that is needed to run the program again, from any directory. The store keeps it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The program's file.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The directory in which it runs.
    pub(crate) directory: PathBuf,
    /// How the runtime gets into the program.
    pub(crate) form: String,
    /// The longest that an execution may take, in milliseconds.
    pub(crate) patience: u64,
    /// Identifies this build of the program.
    pub(crate) build: String,
}
