//! `--sample` and `--alias-once`: what is looked at again, and what is not.

use libtest_mimic::{Failed, Trial};

use super::{Place, says};

/// Rank 1 loads two elements by one statement: the first one is its own, or that of a static variable with an argument,
/// and the second one is put by rank 0.
const PROGRAM: &str = "#include <mpi.h>
#include <stdio.h>
int table[4], mine[4], one = 1, rank;
__attribute__((noinline)) int look(const volatile int *at) {
    return *at;
}
int main(int argc, char **argv) {
    MPI_Win win;
    int sum = 0;
    MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(table, sizeof table, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Put(&one, 1, MPI_INT, 1, 2, 1, MPI_INT, win);
    if (rank == 1) {
        sum += look(argc > 1 ? &mine[0] : &table[0]);
        sum += look(&table[2]);
    }
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    fprintf(stderr, \"sum %d\\n\", sum > 1);
    MPI_Finalize();
    return 0;
}
";

pub(super) fn trials() -> Vec<Trial> {
    vec![Trial::test("accesses_that_are_repeated_are_sampled", || check().map_err(Failed::from))]
}

fn check() -> Result<(), String> {
    let place = Place::new("sampled");
    let source = place.0.join("prog.c");
    std::fs::write(&source, PROGRAM).map_err(|e| e.to_string())?;
    place.compile(&["selvedge", "mpicc"], &source, false)?;
    let run = |options: &[&str], argument: &str| {
        let mut command = place.selvedge(&["run"]);
        command.args(options).args(["--", "mpirun", "--oversubscribe", "-n", "2"]);
        command.arg("./prog").args(argument.split_whitespace());
        command.output().map_err(|e| e.to_string())
    };
    let (race, nothing) = ("data race", "nothing found");
    says(&run(&[], "")?, 1, race)?;
    says(&run(&["--sample", "none"], "private")?, 1, race)?;
    // The first time is always looked at, and with a factor of 0 no other one.
    says(&run(&["--sample", "instruction:0"], "")?, 0, nothing)?;
    says(&run(&["--sample", "function:0"], "")?, 0, nothing)?;
    // Private memory does not count, except where locality is taken to be persistent.
    says(&run(&["--sample", "hierarchical:0"], "private")?, 1, race)?;
    says(&run(&["--alias-once"], "private")?, 0, nothing)?;
    says(&run(&["--alias-once"], "")?, 1, race)?;
    says(&run(&["--sample", "some"], "")?, 2, "hierarchical:B")
}
