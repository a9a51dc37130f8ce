//! Which commands start the ranks of a job, and how a process knows that it is one.

use std::ffi::OsStr;
use std::path::Path;

/// The commands that are known to start ranks.
pub const LAUNCHERS: [&str; 8] =
    ["mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "oshrun", "shmemrun", "srun"];

/// Whether a command starts ranks of OpenSHMEM programs.
pub fn is_for_shmem(command: &OsStr) -> bool {
    let name = Path::new(command).file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.starts_with("oshrun") || name.starts_with("shmemrun")
}

/// Whether a command starts ranks, by its name or because it is the one that the user named.
pub fn is_launcher(command: &OsStr, named: Option<&str>) -> bool {
    let Some(name) = Path::new(command).file_name().and_then(OsStr::to_str) else { return false };
    // Debian has `mpirun.openmpi` and `mpirun.mpich`.
    let known = |launcher: &str| {
        name.strip_prefix(launcher).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    named == Some(name) || LAUNCHERS.iter().any(|l| known(l))
}

/// The variables by which launchers tell a rank its number, and how many there are: those of Open MPI, of MPICH and what
/// comes from it, and of Slurm.
const PLACES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// What the variables of a launcher begin with. Some of them differ from rank to rank.
const PREFIXES: [&str; 8] =
    ["OMPI_", "ORTE_", "PMIX_", "PMI_", "PMI2_", "HYDI_", "MPI_LOCAL", "I_MPI_"];
/// Other variables that differ from rank to rank.
const DIFFER: [&str; 6] = [
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_GTIDS",
    "SLURM_TASK_PID",
    "SLURMD_NODENAME",
];

/// The number of this process among the ranks of a job, and how many there are, as the launcher says. `None` if no
/// launcher started it, or if there is only one rank.
pub fn place(variable: impl Fn(&str) -> Option<String>) -> Option<(u32, u32)> {
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    let places = PLACES.iter().filter_map(|(rank, size)| Some((number(rank)?, number(size)?)));
    places.into_iter().find(|(rank, size)| rank < size && *size > 1)
}

/// Whether a variable is one that a launcher sets for its ranks.
pub fn is_of_launcher(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || DIFFER.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_knows_itself_by_what_its_launcher_sets() {
        let place = |set: &[(&str, &str)]| {
            place(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
        };
        let open = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(place(&open), Some((3, 4)));
        assert_eq!(place(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]), Some((0, 2)));
        assert_eq!(place(&[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "8")]), Some((1, 8)));
        // One rank is no job, and a batch script is no step.
        assert_eq!(place(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        assert_eq!(place(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), None);
        assert_eq!(place(&[("PMI_RANK", "x"), ("PMI_SIZE", "2")]), None);
        assert_eq!(place(&[]), None);
        let is = |name: &str| is_of_launcher(OsStr::new(name));
        assert!(is("OMPI_COMM_WORLD_RANK") && is("PMIX_NAMESPACE") && is("SLURM_PROCID"));
        assert!(!is("SLURM_CPUS_PER_TASK") && !is("HOME"));
    }

    #[test]
    fn launchers_are_known_by_their_names() {
        let is = |command: &str| is_launcher(OsStr::new(command), None);
        assert!(is("mpirun") && is("/usr/bin/mpiexec") && is("mpirun.openmpi") && is("srun"));
        assert!(!is("./mpirun-test") && !is("prog") && !is(""));
        assert!(is_launcher(OsStr::new("/opt/aprun"), Some("aprun")));
        assert!(is_for_shmem(OsStr::new("/usr/bin/oshrun")) && !is_for_shmem(OsStr::new("mpirun")));
    }
}
