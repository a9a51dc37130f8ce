//! Programs and test suites of others, built from Debian's sources by gcc three times: as they are, with Selvedge and
//! with ThreadSanitizer. They must give the results that they give natively; what is found stands beside what
//! ThreadSanitizer says, and beside both is the time of processors that they took, over native.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::source::{self, With};
use super::{Result, Row, Workshop, compare, pairs_of_tsan};

/// What is built and run.
#[derive(Clone, Copy)]
pub(super) struct Suite {
    pub(super) name: &'static str,
    package: &'static str,
    /// Builds it, see [`source::build`].
    build: &'static str,
    /// Runs it, in the directory in which it was built. What it prints are its results, which must be the same lines
    /// in every run: without times, and sorted where tests run at once.
    run: &'static str,
}

/// Builds with cmake, with debug information.
macro_rules! cmake {
    ($options:literal, $what:literal) => {
        concat!(
            "cmake -B b -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS=\"$SANITIZE\" ",
            "-DCMAKE_CXX_FLAGS=\"$SANITIZE\" ",
            $options,
            " && cmake --build b -j2 ",
            $what
        )
    };
}

pub(super) const SUITES: [Suite; 6] = [
    Suite {
        name: "fasttree",
        package: "fasttree",
        build: "$CC -O2 -g -DOPENMP -fopenmp -funroll-loops $SANITIZE fasttree.c -lm -o fasttree",
        // Two hundred related sequences, the same on every machine.
        run: "awk 'BEGIN { srand(7); for (i = 0; i < 300; i++) base[i] = int(rand() * 4); \
            for (s = 0; s < 200; s++) { print \">s\" s; line = \"\"; for (i = 0; i < 300; i++) { \
            if (rand() < 0.02) base[i] = int(rand() * 4); line = line substr(\"ACGT\", base[i] + 1, 1) } print line } }' \
            > sequences; OMP_NUM_THREADS=2 ./fasttree -quiet -nt sequences 2>&1 | grep -v ThreadSanitizer",
    },
    Suite {
        name: "libuv",
        package: "libuv1",
        build: cmake!("-DLIBUV_BUILD_BENCH=OFF", "--target uv_run_tests_a"),
        // What three tests do depends on the machine's network and file system.
        run: "UV_RUN_AS_ROOT=1 UV_TEST_TIMEOUT_MULTIPLIER=20 b/uv_run_tests_a 2>/dev/null | grep -E '^(not )?ok' | \
            sed 's/ # .*//' | grep -vE 'fs_copyfile|tcp_close_while_connecting|tcp_connect_timeout'",
    },
    Suite {
        name: "libevent",
        package: "libevent",
        build: "autoreconf -fi && ./configure --disable-shared --disable-openssl --disable-samples \
            CFLAGS=\"-g -O2 $SANITIZE\" && make -j2",
        run: "test/regress 2>&1 | grep -aoE '^[a-z_0-9]+/[a-z_0-9]+: |(OK|FAILED|SKIPPED|DISABLED)$|^[0-9]+ tests ok.*'",
    },
    Suite {
        name: "leveldb",
        package: "leveldb",
        build: cmake!("-DLEVELDB_BUILD_BENCHMARKS=OFF", ""),
        run: "for test in b/*_test; do TEST_TMPDIR=$PWD/tmp $test 2>&1 | grep -E '\\[ +(OK|FAILED|PASSED) +\\]|^PASS' | \
            sed 's/ (.*//'; done",
    },
    Suite {
        name: "libmicrohttpd",
        package: "libmicrohttpd",
        build: "./configure --disable-shared --disable-https --disable-doc --disable-examples \
            CFLAGS=\"-g -O2 $SANITIZE\" && make -j2 && make -j2 check TESTS=",
        run: "make -k check 2>&1 | grep -E '^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR): '",
    },
    Suite {
        name: "sqlite",
        package: "sqlite3",
        build: "./configure --disable-tcl && make sqlite3.c && $CC -O2 -g $SANITIZE -I. -Isrc -DSQLITE_THREADSAFE=1 \
            -DSQLITE_OMIT_LOAD_EXTENSION test/threadtest3.c src/test_multiplex.c sqlite3.c -lpthread -lm -o threadtest3",
        // Each test runs for a time, so how much it does depends on the machine.
        run: "./threadtest3 walthread1 walthread3 dynamic_triggers 2>/dev/null | grep -E '^Running|errors out of'",
    },
];

/// Seconds that processors have spent for all that was run so far.
fn spent() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|e| e.to_string())?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

/// One run in the directory of a build: what it printed, how it ended, and its time.
fn timed(command: &mut Command, directory: &Path) -> Result<(String, String, f64)> {
    let before = spent()?;
    let output =
        command.current_dir(directory).output().map_err(|e| format!("{command:?}: {e}"))?;
    let results = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), output.status);
    Ok((results, String::from_utf8_lossy(&output.stderr).into_owned(), spent()? - before))
}

pub(super) fn measure(workshop: &Workshop, suite: Suite) -> Result<Vec<Row>> {
    let [native, ours, tsan] = [With::Nothing, With::Selvedge, With::Tsan]
        .map(|with| source::build(workshop, suite.package, with, suite.build));
    let (native, ours, tsan) = (native?, ours?, tsan?);
    let shell = ["sh", "-c", suite.run];
    let (expected, _, alone) = timed(Command::new(shell[0]).args(&shell[1..]), &native)?;
    let store = ours.join(".selvedge");
    std::fs::create_dir_all(store).map_err(|e| e.to_string())?;
    let mut observed = workshop.selvedge(&ours, &["run", "--fail-on", "never", "--"]);
    let (results, _, with_ours) = timed(observed.args(shell), &ours)?;
    let log = tsan.join("tsan.log");
    let mut sanitized = Command::new(shell[0]);
    sanitized
        .args(&shell[1..])
        .env("TSAN_OPTIONS", format!("exitcode=0 log_path={}", log.display()));
    let (theirs, _, with_tsan) = timed(&mut sanitized, &tsan)?;
    let (findings, reported, mut remarks) =
        compare(&workshop.found(&ours)?, &pairs_of_tsan(&logs(&tsan)?, &tsan));
    remarks.extend(differences(&expected, &results));
    remarks.push(format!(
        "processors: {alone:.2} s natively, {:.1} times that with Selvedge, {:.1} with ThreadSanitizer{}",
        with_ours / alone,
        with_tsan / alone,
        if theirs == expected { "" } else { ", whose results differ" }
    ));
    Ok(vec![Row {
        program: suite.name.into(),
        form: "from source",
        works: results == expected,
        findings,
        tsan: reported,
        remarks,
    }])
}

/// Results that only one of the two runs has, at most ten of each.
fn differences(native: &str, ours: &str) -> Vec<String> {
    let only = |who: &str, a: &str, b: &str| -> Vec<String> {
        let others: BTreeSet<&str> = b.lines().collect();
        let lines = a.lines().filter(|line| !others.contains(line));
        lines.take(10).map(|line| format!("only {who}: {line}")).collect()
    };
    [only("natively", native, ours), only("with Selvedge", ours, native)].concat()
}

/// All that ThreadSanitizer wrote into files in the directory.
fn logs(directory: &Path) -> Result<String> {
    let entries = std::fs::read_dir(directory).map_err(|e| e.to_string())?;
    let files = entries.filter_map(|e| Some(e.ok()?.path()));
    let logs = files.filter(|p| p.to_string_lossy().contains("tsan.log"));
    Ok(logs.filter_map(|p| std::fs::read_to_string(p).ok()).collect())
}
