//! Programs of MPI and OpenSHMEM from Debian's sources: each is run as it is and under `selvedge run`, must end alike and
//! print the same, and what is found in it is listed with the tests in which it was found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::source::{self, With};
use super::{Pair, Result, Row, Workshop};

/// Programs that one launcher starts.
#[derive(Clone, Copy)]
pub(super) struct Suite {
    pub(super) name: &'static str,
    /// Empty if there is nothing to unpack.
    package: &'static str,
    /// Builds them with `MPICC` or `OSHCC`, see [`source::build`].
    build: &'static str,
    /// Where they are.
    directory: &'static str,
    /// Prints a line for each run: the number of ranks, the program, its arguments.
    list: &'static str,
    launcher: &'static str,
}

pub(super) const SUITES: [Suite; 4] = [
    Suite {
        name: "mpich rma",
        package: "mpich",
        // Open MPI does not have functions that MPI 3 took away.
        build: "cd test/mpi && ./configure --disable-fortran --disable-cxx CC=gcc MPICC=mpicc && \
            sed -i 's/MPI_Type_\\(hindexed\\|hvector\\|struct\\)(/MPI_Type_create_\\1(/' dtpools/src/dtpools_custom.c && \
            make -C util CC=\"$MPICC\" && make -C dtpools/src CC=\"$MPICC\" && make -j2 -C rma CC=\"$MPICC\" MPICC=\"$MPICC\"",
        directory: "test/mpi/rma",
        // All of the list, and of the tests with generated types one for each program, with few types.
        list: "awk '!/^#/ && NF { line = $2 \" ./\" $1; for (i = 3; i <= NF; i++) if (sub(/^arg=/, \"\", $i)) \
                line = line \" \" $i; if (FILENAME == \"testlist\" || !seen[$1]++) print line }' testlist testlist.dtp | \
            sed 's/-testsize=[0-9]*/-testsize=8/'",
        launcher: "mpirun",
    },
    Suite {
        name: "openmpi oshmem",
        package: "openmpi",
        build: "cd examples && for f in *oshmem*.c; do $OSHCC -g -O1 -w $f -o ${f%.c}; done",
        directory: "examples",
        list: "for f in *oshmem*.c; do echo 4 ./${f%.c}; done",
        launcher: "oshrun",
    },
    Suite {
        name: "fftw mpi-bench",
        package: "fftw3",
        // What communicates is built here; the rest is Debian's library.
        build: "./configure --enable-mpi --disable-fortran CC=gcc MPICC=mpicc && make -C libbench2 && \
            for f in mpi/[!ft]*.c mpi/transpose*.c tests/fftw-bench.c tests/hook.c; do $MPICC -g -O1 -w -DHAVE_CONFIG_H -I. \
                -Ikernel -Iapi -Idft -Irdft -Ireodft -Impi -Itests -Ilibbench2 -Isimd-support -c $f -o ${f%.c}.o; done && \
            $MPICC mpi/*.o tests/*.o libbench2/libbench2.a -l:libfftw3.a -lm -o mpi-bench",
        directory: ".",
        list: "for p in ofc12x14 ibc8x9x10 ibr6x10x8 ofr16x12 //obc24x6 ofc64 ibc128; do \
            echo 3 ./mpi-bench --verify-rounds=1 --verify $p; done",
        launcher: "mpirun",
    },
    Suite {
        name: "mpi4py windows",
        package: "",
        // Scripts of our own for Debian's module: only calls of MPI are seen.
        build: "for end in Flush_local Flush; do cat > $end.py <<'EOF'
import array, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
win = MPI.Win.Allocate(64, 4, comm=comm)
value = array.array('i', [comm.rank])
win.Lock_all()
if comm.rank == 0:
    win.Put([value, MPI.INT], 1, 3)
    getattr(win, sys.argv[0].removesuffix('.py').rsplit('/')[-1])(1)
comm.Barrier()
if comm.rank == 2:
    win.Get([value, MPI.INT], 1, 3)
    win.Flush(1)
win.Unlock_all()
win.Free()
print('done')
EOF
done",
        directory: ".",
        list: "for end in Flush_local Flush; do echo 3 /usr/bin/python3 $end.py; done",
        launcher: "mpirun",
    },
];

/// How long a run may take: some tests wait for each other in loops, which takes long on few processors.
const SECONDS: &str = "600";

/// One run in the directory of a build.
fn started(directory: &Path, before: &[&str], suite: Suite, line: &[&str]) -> Result<Output> {
    let mut command = Command::new("timeout");
    command.arg(SECONDS).args(before).args([suite.launcher, "--oversubscribe", "-n"]).args(line);
    command.current_dir(directory).env("NO_COLOR", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // Without the first Open MPI makes no window of a single rank, and without the second OpenSHMEM crashes at its end.
    command.env("OMPI_MCA_btl", "self,vader").env("OMPI_MCA_memory", "^patcher");
    command.output().map_err(|e| format!("{command:?}: {e}"))
}

/// What a run is compared by. A program that fails by itself prints whatever its memory holds.
fn result(output: &Output) -> (Option<i32>, Vec<String>) {
    let text = String::from_utf8_lossy(&output.stdout);
    // Ranks print in any order.
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    if !output.status.success() {
        lines.clear();
    }
    (output.status.code(), lines)
}

/// A directory with programs that need no source.
fn written(workshop: &Workshop, suite: Suite) -> Result<PathBuf> {
    let directory = workshop.fresh(suite.name)?;
    super::succeed(Command::new("sh").args(["-ec", suite.build]).current_dir(&directory))?;
    Ok(directory)
}

pub(super) fn measure(workshop: &Workshop, suite: Suite) -> Result<Vec<Row>> {
    let build = |with| match suite.package {
        "" => written(workshop, suite),
        package => source::build(workshop, package, with, suite.build),
    };
    let [native, ours] = [With::Nothing, With::Selvedge].map(build);
    let (native, ours) = (native?.join(suite.directory), ours?.join(suite.directory));
    std::fs::create_dir_all(ours.join(".selvedge")).map_err(|e| e.to_string())?;
    let mut list = Command::new("sh");
    let list = super::succeed(list.args(["-ec", suite.list]).current_dir(&native))?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let tool = workshop.selvedge.to_str().ok_or("a path that is no text")?;
    let (mut different, mut found) = (Vec::new(), BTreeMap::<Pair, BTreeSet<&str>>::new());
    let mut failing = 0;
    for line in list.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let alone = result(&started(&native, &[], suite, &words)?);
        let seen = started(&ours, &[tool, "run", "--fail-on", "never", "--"], suite, &words)?;
        failing += usize::from(alone.0 != Some(0));
        if result(&seen) != alone {
            different.push(format!(
                "{line}: {:?} natively, {:?} with Selvedge",
                alone.0,
                seen.status.code()
            ));
        }
        for pair in workshop.found(&ours)? {
            let name = words.iter().skip(1).find(|word| !word.starts_with('/'));
            found.entry(pair).or_default().insert(name.copied().unwrap_or_default());
        }
    }
    let mut remarks =
        vec![format!("{} runs, of which {failing} fail natively", list.lines().count())];
    let works = different.is_empty();
    remarks.extend(different);
    remarks.extend(found.iter().map(|((a, b), tests)| {
        let tests: Vec<&str> = tests.iter().map(|t| t.trim_start_matches("./")).collect();
        format!("{a} and {b}: {}", tests.join(", "))
    }));
    let findings = found.len().to_string();
    Ok(vec![Row {
        program: suite.name.into(),
        form: "from source",
        works,
        findings,
        tsan: String::new(),
        remarks,
    }])
}
