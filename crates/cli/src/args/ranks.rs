//! The options of commands that observe jobs of MPI ranks.

use clap::Args;
use selvedge_spmd::Sampling;

#[derive(Args, Debug)]
pub(crate) struct RankOptions {
    /// A command that starts the ranks of an MPI program, besides mpirun, mpiexec, oshrun and srun
    #[arg(long, value_name = "NAME")]
    pub(crate) launcher: Option<String>,
    /// Look less and less often at what is repeated in an MPI program: none, instruction:B, function:B or hierarchical:B
    ///
    /// Each time that a statement or a function is looked at, the probability that it is looked at again falls by the
    /// factor B, from 0 to 1. hierarchical:B is B for functions and 0.9 for statements.
    #[arg(long, value_name = "HOW", default_value_t = Sampling::default())]
    pub(crate) sample: Sampling,
    /// Do not look again at a load or store of an MPI program that was seen on private memory only
    #[arg(long)]
    pub(crate) alias_once: bool,
}
