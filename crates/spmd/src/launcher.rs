//! Which commands start the ranks of a job.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_names() {
        let is = |command: &str| is_launcher(OsStr::new(command), None);
        assert!(is("mpirun") && is("/usr/bin/mpiexec") && is("mpirun.openmpi") && is("srun"));
        assert!(!is("./mpirun-test") && !is("prog") && !is(""));
        assert!(is_launcher(OsStr::new("/opt/aprun"), Some("aprun")));
        assert!(is_for_shmem(OsStr::new("/usr/bin/oshrun")) && !is_for_shmem(OsStr::new("mpirun")));
    }
}
