//! System packages that a fresh machine may lack.

use std::process::Command;

use crate::shell::{self, Outcome, succeeds};

/// A program that must run, and the Debian package that brings it.
type Needed = (&'static str, &'static [&'static str], &'static str);

const NEEDED: [Needed; 12] = [
    ("cc", &["--version"], "gcc"),
    ("c++", &["--version"], "g++"),
    ("objcopy", &["--version"], "binutils"),
    ("clang-19", &["--version"], "clang-19"),
    ("test", &["-e", "/usr/lib/llvm-19/lib/libomp.so"], "libomp-19-dev"),
    ("valgrind", &["--version"], "valgrind"),
    ("mpirun", &["--version"], "openmpi-bin"),
    ("mpicc", &["--version"], "libopenmpi-dev"),
    ("chromium", &["--version"], "chromium"),
    ("setpriv", &["--version"], "util-linux"),
    ("test", &["-e", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"], "libjemalloc2"),
    ("test", &["-e", "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4"], "libtcmalloc-minimal4"),
];

/// What `cargo xtask real` looks at, and what it takes to build it; nothing else needs these.
const REAL: [Needed; 19] = [
    ("pbzip2", &["-V"], "pbzip2"),
    ("zstd", &["--version"], "zstd"),
    ("xz", &["--version"], "xz-utils"),
    ("memcached", &["--version"], "memcached"),
    ("redis-benchmark", &["--version"], "redis-tools"),
    ("dpkg-source", &["--version"], "dpkg-dev"),
    ("test", &["-e", "/usr/include/event.h"], "libevent-dev"),
    ("test", &["-e", "/usr/include/bzlib.h"], "libbz2-dev"),
    ("cmake", &["--version"], "cmake"),
    ("autoreconf", &["--version"], "autoconf"),
    ("automake", &["--version"], "automake"),
    ("libtoolize", &["--version"], "libtool"),
    ("test", &["-e", "/usr/bin/tclsh"], "tcl"),
    ("test", &["-e", "/usr/include/simde/x86/sse4.1.h"], "libsimde-dev"),
    ("test", &["-e", "/usr/include/gmock/gmock.h"], "libgmock-dev"),
    ("test", &["-e", "/usr/include/benchmark/benchmark.h"], "libbenchmark-dev"),
    ("test", &["-e", "/usr/include/x86_64-linux-gnu/curl/curl.h"], "libcurl4-gnutls-dev"),
    ("test", &["-e", "/usr/include/fftw3.h"], "libfftw3-dev"),
    ("test", &["-e", "/usr/lib/python3/dist-packages/mpi4py"], "python3-mpi4py"),
];

/// What has no part in building and testing, but makes measurements complete: clang's own
/// ThreadSanitizer to compare with.
const OPTIONAL: [Needed; 1] = [(
    "test",
    &["-e", "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.tsan-x86_64.a"],
    "libclang-rt-19-dev",
)];

/// Everything that builds and tests need. What only measurements need is named if it is missing.
pub(crate) fn run() -> Outcome {
    for (_, _, package) in OPTIONAL.iter().filter(|(program, args, _)| !succeeds(program, args)) {
        eprintln!(
            "{package} is not installed (optional, for comparisons; apt-get install {package})"
        );
    }
    install(&NEEDED)
}

/// What real programs need.
pub(crate) fn for_real_programs() -> Outcome {
    install(&REAL)
}

/// What measurements compare with.
pub(crate) fn for_comparisons() -> Outcome {
    install(&OPTIONAL)
}

/// Installs what is missing with apt-get where that is allowed, and otherwise says what to run.
fn install(needed: &[Needed]) -> Outcome {
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(program, args, _)| !succeeds(program, args))
        .map(|&(_, _, package)| package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("sudo apt-get install -y {}", missing.join(" "));
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    if !root || !succeeds("apt-get", &["--version"]) {
        return Err(format!(
            "missing system packages: {}\nInstall them and try again; on Debian or Ubuntu:\n\n  {by_hand}\n",
            missing.join(", ")
        ));
    }
    shell::run(Command::new("apt-get").arg("update"))?;
    shell::run(
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(&missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
