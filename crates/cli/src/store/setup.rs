//! What a run stores so that its program can run again.

use std::ffi::OsString;
use std::path::PathBuf;

use selvedge_report::path;
use serde::{Deserialize, Serialize};

/// Everything that is needed to run the program again, from any directory. The store keeps it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The program's file.
    #[serde(with = "path")]
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The directory in which it runs.
    #[serde(with = "path")]
    pub(crate) directory: PathBuf,
    /// How the runtime gets into the program.
    pub(crate) form: String,
    /// The longest that an execution may take, in milliseconds.
    pub(crate) patience: u64,
    /// Identifies this build of the program.
    pub(crate) build: String,
    /// What of its output must be the same in every execution.
    #[serde(default)]
    pub(crate) ensure: Vec<Ensured>,
    /// Globals that are the result, of a program that must be as if sequential.
    #[serde(default)]
    pub(crate) focus: Vec<String>,
    /// Functions whose calls are its tasks, by patterns.
    #[serde(default)]
    pub(crate) tasks: Vec<String>,
}

/// Output of a program that must be the same in every execution.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ensured {
    /// Standard output.
    Stdout,
    /// A file, relative to the directory in which the program runs.
    File(#[serde(with = "path")] PathBuf),
}

impl Ensured {
    /// `stdout` or `file:PATH`.
    pub(crate) fn parse(text: &str) -> Result<Ensured, String> {
        match (text, text.strip_prefix("file:")) {
            ("stdout", _) => Ok(Ensured::Stdout),
            (_, Some(path)) if !path.is_empty() => Ok(Ensured::File(path.into())),
            _ => Err(format!("`{text}` is neither `stdout` nor `file:PATH`")),
        }
    }
}
