//! The results of one execution, in terms that outlive its executor.

use std::sync::Arc;

use selvedge_model::{Schedule, Uncontrolled};

use crate::blocks::Blocks;
use crate::ending::Ending;
use crate::executor::{Execution, Executor};

/// The results of one execution.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// How it ended.
    pub ending: Ending,
    /// Which thread ran when.
    pub schedule: Schedule,
    /// What it wrote to standard output.
    #[serde(skip)]
    pub output: Vec<u8>,
    /// What was not controlled.
    pub uncontrolled: Vec<Uncontrolled>,
    /// The analyses that had events to analyse.
    #[serde(skip)]
    pub analyses: Vec<&'static str>,
    /// How many choices there were.
    #[serde(skip)]
    pub choices: usize,
    /// How many steps there were.
    #[serde(skip)]
    pub steps: usize,
    /// The deterministic blocks that it executed.
    pub blocks: Arc<Blocks>,
}

impl Run {
    /// The results of the execution that an executor has just run.
    pub fn new<X: Executor>(executor: &mut X, execution: Execution) -> Run {
        Run {
            ending: Ending::of(executor, &execution),
            schedule: execution.schedule,
            output: execution.output,
            uncontrolled: execution.uncontrolled,
            analyses: execution.analyses,
            choices: execution.choices,
            steps: execution.steps,
            blocks: execution.blocks,
        }
    }
}
