//! What goes wrong in jobs: each fault is said in a clear sentence, ends in time, and loses no finding that was made
//! before it.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

use super::{Found, MPI, Place, found, marked, says};

pub(super) fn trials() -> Vec<Trial> {
    type Check = fn() -> Result<(), String>;
    let all: [(&str, Check); 18] = [
        ("a_program_that_is_no_mpi_program", not_mpi),
        ("no_mpicc", no_mpicc),
        ("calls_only", calls_only),
        ("calls_only_in_some_ranks", calls_only_in_some),
        ("a_rank_of_another_version", other_version),
        ("a_rank_that_aborts", aborts),
        ("a_rank_that_exits_without_finalize", exits),
        ("a_rank_that_exits_with_success_without_finalize", exits_with_success),
        ("a_rank_that_is_killed_in_a_phase", is_killed),
        ("a_deadlock_and_an_interrupt", deadlock_interrupted),
        ("a_deadlock_and_a_time", deadlock_timed),
        ("a_window_that_is_freed_in_an_epoch", freed_in_epoch),
        ("an_access_outside_of_an_epoch", no_epoch),
        ("an_access_beyond_the_window", beyond_window),
        ("a_job_that_spawns_another_one", spawns),
        ("a_launcher_that_is_not_known", unknown_launcher),
        ("a_full_disk", full_disk),
        ("sixteen_ranks_with_little_memory", little_memory),
    ];
    let trial = |(name, check): (&str, Check)| {
        Trial::test(format!("fault::{name}"), move || check().map_err(Failed::from))
    };
    all.into_iter().map(trial).collect()
}

/// The line of the race that every program of [`with`] has.
const RACE: u64 = 11;

/// A program with a race that its owner has told before `part` begins: the barriers keep the launcher from ending the
/// owner before it has looked at the puts.
fn with(part: &str) -> String {
    format!(
        "#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int table[4], one = 1, rank;
int main(int argc, char **argv) {{
    MPI_Win win;
    MPI_Init(&argc, &argv); MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_create(table, sizeof table, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&one, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    {part}
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}}
"
    )
}

/// A place with such a program.
fn place(name: &str, part: &str) -> Result<Place, String> {
    let place = Place::new(name);
    build(&place, &["selvedge", "mpicc"], part)?;
    Ok(place)
}

fn build(place: &Place, compiler: &[&str], part: &str) -> Result<(), String> {
    let source = place.0.join("fault.c");
    std::fs::write(&source, with(part)).map_err(|e| e.to_string())?;
    place.compile(compiler, &source, false)
}

/// The report has the race and perhaps more findings, and says all this.
fn reports(output: &Output, more: &[(&str, &[u64])], texts: &[&str]) -> Result<(), String> {
    let mut expected = Found::from([("observed".to_owned(), vec![RACE, RACE])]);
    expected.extend(more.iter().map(|(status, lines)| ((*status).to_owned(), lines.to_vec())));
    let found = found(output)?;
    let report = String::from_utf8_lossy(&output.stdout);
    match found == expected && texts.iter().all(|text| report.contains(text)) {
        true => Ok(()),
        false => Err(format!("found {found:?}, not {expected:?} and {texts:?}: {report}")),
    }
}

const UNFINISHED: &str = "ended before MPI_Finalize";

fn ends_early(name: &str, part: &str, code: i32) -> Result<(), String> {
    let output = place(name, part)?.run(MPI, "2", None)?;
    reports(&output, &[], &[UNFINISHED])?;
    match String::from_utf8_lossy(&output.stderr).contains(&format!("exited with {code}")) {
        true => Ok(()),
        false => Err(format!("not {code}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn aborts() -> Result<(), String> {
    ends_early("aborts", "if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);", 7)
}

fn exits() -> Result<(), String> {
    ends_early("exits", "if (rank == 1) exit(5);", 5)
}

/// The launcher calls it improper, and ends the job.
fn exits_with_success() -> Result<(), String> {
    ends_early("exits-well", "if (rank == 1) _exit(0);", 1)
}

fn is_killed() -> Result<(), String> {
    let part = "MPI_Win_lock_all(0, win); MPI_Put(&one, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
                if (rank == 1) raise(SIGKILL);";
    ends_early("killed", part, 137)
}

const DEADLOCK: &str = "int x;
    if (rank == 1) { write(2, \"waits\\n\", 6);
        MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }";

/// Ctrl-C ends a job that hangs, and what was found is reported.
fn deadlock_interrupted() -> Result<(), String> {
    let place = place("hangs", DEADLOCK)?;
    let run = ["run", "--format", "json", "--", "mpirun", "--oversubscribe", "-n", "2", "./prog"];
    let mut command = place.selvedge(&run);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
    let mut said = Vec::new();
    let mut pipe = child.stderr.take().ok_or("no pipe")?;
    while !String::from_utf8_lossy(&said).contains("waits") {
        let mut bytes = [0; 256];
        match pipe.read(&mut bytes).map_err(|e| e.to_string())? {
            0 => return Err(format!("ended: {}", String::from_utf8_lossy(&said))),
            n => said.extend_from_slice(&bytes[..n]),
        }
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("no process")?;
    kill_process(pid, Signal::INT).map_err(|e| e.to_string())?;
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    reports(&output, &[], &[UNFINISHED])
}

/// `--time` ends the test of a job that hangs.
fn deadlock_timed() -> Result<(), String> {
    let place = place("hangs-timed", DEADLOCK)?;
    let test = ["test", "--format", "json", "--time", "8s", "--patience", "3s", "--"];
    let mut command = place.selvedge(&test);
    command.args(["mpirun", "--oversubscribe", "-n", "2", "./prog"]);
    let output = command.output().map_err(|e| e.to_string())?;
    let found = found(&output)?;
    let lines: Vec<&Vec<u64>> = found.iter().map(|(_, lines)| lines).collect();
    match lines == [&vec![RACE, RACE]] && output.status.code() == Some(1) {
        true => Ok(()),
        false => Err(format!("{found:?}: {}", String::from_utf8_lossy(&output.stdout))),
    }
}

fn freed_in_epoch() -> Result<(), String> {
    let freed = |unlock| format!("MPI_Win_lock_all(0, win); {unlock} MPI_Win_free(&win);");
    let output = place("freed", &freed(""))?.run(MPI, "2", None)?;
    reports(&output, &[("observed", &[15])], &["freed while an access epoch is open"])?;
    let output = place("freed-well", &freed("MPI_Win_unlock_all(win);"))?.run(MPI, "2", None)?;
    reports(&output, &[], &[])
}

/// Open MPI ends the job, and the report says why.
fn no_epoch() -> Result<(), String> {
    let put = |lock| {
        format!(
            "{lock}
            if (rank == 1) MPI_Put(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, win);
            if (rank == 1) MPI_Win_flush_all(win);"
        )
    };
    let output = place("no-epoch", &put(""))?.run(MPI, "2", None)?;
    let said = "is accessed outside of an access epoch";
    reports(&output, &[("observed", &[16])], &[said])?;
    let output = place("epoch", &(put("MPI_Win_lock_all(0, win);") + "MPI_Win_unlock_all(win);"))?
        .run(MPI, "2", None)?;
    reports(&output, &[], &[])
}

/// The parts of the window are of different sizes: rank 0 has 4 words, rank 1 has 2.
fn beyond_window() -> Result<(), String> {
    let put = |target, at| {
        format!(
            "MPI_Win w; MPI_Win_create(table, rank ? 8 : 16, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
            MPI_Win_lock_all(0, w);
            if (rank == {target}) MPI_Put(&one, 1, MPI_INT, {target}, {at}, 1, MPI_INT, w);
            MPI_Win_unlock_all(w); MPI_Win_free(&w);"
        )
    };
    for (target, at) in [(0, 4), (1, 2)] {
        let output = place("beyond", &put(target, at))?.run(MPI, "2", None)?;
        reports(&output, &[("observed", &[17])], &["is accessed and is not in the window"])?;
        let output = place("within", &put(target, at - 1))?.run(MPI, "2", None)?;
        reports(&output, &[], &[])?;
    }
    Ok(())
}

/// The children race for themselves, and a window of both jobs is not followed.
fn spawns() -> Result<(), String> {
    let part = "MPI_Comm parent, others, both; MPI_Win shared; MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(\"./prog\", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                       MPI_ERRCODES_IGNORE);
    else
        others = parent;
    MPI_Intercomm_merge(others, parent != MPI_COMM_NULL, &both);
    MPI_Win_create(table, sizeof table, 4, MPI_INFO_NULL, both, &shared);
    MPI_Win_fence(0, shared);
    MPI_Put(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, shared);
    MPI_Win_fence(0, shared);
    MPI_Win_free(&shared);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&others);";
    let output = place("spawns", part)?.run(MPI, "2", None)?;
    reports(&output, &[], &["each was analysed for itself"])?;
    match output.status.code() {
        Some(1) => Ok(()),
        code => Err(format!("{code:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// A script with a name of its own starts ranks: with `--launcher` it is observed, without the exit code says that it
/// is not. A program that is only an argument, of a command that does not start it, does not count.
fn unknown_launcher() -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let place = place("launcher", "")?;
    let script = place.0.join("start");
    std::fs::write(&script, "#!/bin/sh\nexec mpirun --oversubscribe \"$@\"\n")
        .and_then(|()| std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)))
        .map_err(|e| e.to_string())?;
    // Debian's PMIx destroys a lock twice, which is not what this is about.
    let args = ["run", "--fail-on", "never", "--", "sh", "./start", "-n", "2", "./prog"];
    let output = place.selvedge(&args).output().map_err(|e| e.to_string())?;
    says(&output, 3, "was not observed; if it starts ranks, say so: --launcher sh")?;
    let args = ["run", "--", "sh", "-c", "true | wc -c < \"$0\"", "./prog"];
    let output = place.selvedge(&args).output().map_err(|e| e.to_string())?;
    says(&output, 0, "nothing found")?;
    let args = ["run", "--launcher", "start", "--format", "json", "--", "./start", "-n", "2"];
    let output = place.selvedge(&args).arg("./prog").output().map_err(|e| e.to_string())?;
    reports(&output, &[], &[])
}

/// The store is on a disk without room: the findings are reported all the same.
fn full_disk() -> Result<(), String> {
    let place = place("full", "")?;
    std::fs::create_dir(place.0.join(".selvedge")).map_err(|e| e.to_string())?;
    let tool = env!("CARGO_BIN_EXE_selvedge");
    let script = format!(
        "mount -t tmpfs -o size=64k none .selvedge || exit 77
         cat /dev/zero > .selvedge/filler
         exec {tool} run --format json -- mpirun --oversubscribe -n 2 ./prog"
    );
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]).current_dir(&place.0);
    place.surround(&mut command);
    let output = command.output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || text.starts_with("unshare:") {
        println!("no file system can be mounted here: a full disk was not tried");
        return Ok(());
    }
    says(&output, 1, "findings will not be stored")?;
    reports(&output, &[], &[])
}

/// Shadow memory does not fit: that is said, and nothing is called observed.
fn little_memory() -> Result<(), String> {
    let place = place("little", "")?;
    let tool = env!("CARGO_BIN_EXE_selvedge");
    let line = format!("ulimit -v 8000000; exec {tool} run -- mpirun --oversubscribe -n 16 ./prog");
    let mut command = Command::new("bash");
    command.args(["-c", &line]).current_dir(&place.0);
    place.surround(&mut command);
    let output = command.output().map_err(|e| e.to_string())?;
    says(&output, 3, "is it limited (ulimit -v)?")?;
    says(&output, 3, "nothing was observed")
}

/// A job of two programs, of which one is not instrumented.
fn calls_only_in_some() -> Result<(), String> {
    let place = Place::new("mixed");
    build(&place, &["mpicc"], "")?;
    std::fs::rename(place.0.join("prog"), place.0.join("plain")).map_err(|e| e.to_string())?;
    build(&place, &["selvedge", "mpicc"], "")?;
    for (first, second) in [("./prog", "./plain"), ("./plain", "./prog")] {
        let args = ["run", "--format", "json", "--", "mpirun", "--oversubscribe", "-n", "1"];
        let mut command = place.selvedge(&args);
        command.args([first, ":", "-n", "1", second]);
        let output = command.output().map_err(|e| e.to_string())?;
        let report = String::from_utf8_lossy(&output.stdout);
        if !report.contains("some ranks are not instrumented") {
            return Err(format!("{first}, {second}: {report}"));
        }
    }
    Ok(())
}

/// A rank with a runtime whose functions are of another version: they are not called.
fn other_version() -> Result<(), String> {
    let place = Place::new("version");
    build(&place, &["selvedge", "mpicc"], "")?;
    std::fs::rename(place.0.join("prog"), place.0.join("new")).map_err(|e| e.to_string())?;
    let source = place.0.join("old.c");
    let old = with("")
        + "#include <stdlib.h>
#define OLD(NAME) void selvedge_spmd_##NAME(void) { abort(); }
OLD(attach) OLD(enter) OLD(leave) OLD(now) OLD(watch)
unsigned selvedge_spmd_version(void) { return 99; }
";
    std::fs::write(&source, old).map_err(|e| e.to_string())?;
    place.compile(&["mpicc", "-rdynamic"], &source, false)?;
    let args = ["run", "--format", "json", "--", "mpirun", "--oversubscribe", "-n", "1"];
    let mut command = place.selvedge(&args);
    command.args(["./new", ":", "-n", "1", "./prog"]);
    let output = command.output().map_err(|e| e.to_string())?;
    let report = String::from_utf8_lossy(&output.stdout);
    match report.contains("built by another version of Selvedge") {
        true => Ok(()),
        false => Err(format!("{report}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn not_mpi() -> Result<(), String> {
    let place = Place::new("not-mpi");
    let output =
        place.selvedge(&["run", "--", "mpirun", "--oversubscribe", "-n", "2", "true"]).output();
    says(&output.map_err(|e| e.to_string())?, 3, "no rank called MPI_Init")
}

fn no_mpicc() -> Result<(), String> {
    let place = Place::new("no-mpicc");
    let mut command = place.selvedge(&["run", "--", "mpirun", "-n", "2", "true"]);
    let output =
        command.env("SELVEDGE_MPICC", "no-such-mpicc").output().map_err(|e| e.to_string())?;
    says(&output, 3, "libopenmpi-dev")?;
    let mut command = place.selvedge(&["mpicc", "a.c"]);
    let output =
        command.env("SELVEDGE_MPICC", "no-such-mpicc").output().map_err(|e| e.to_string())?;
    says(&output, 3, "libopenmpi-dev")
}

/// A program that is not instrumented: calls of MPI are seen, and the report says that loads and stores are not.
fn calls_only() -> Result<(), String> {
    let place = Place::new("calls-only");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spmd/tests/corpus/put_and_put.c");
    place.compile(&["mpicc"], &source, false)?;
    let output = place.run(MPI, "3", None)?;
    let text = std::fs::read_to_string(&source).map_err(|e| e.to_string())?;
    let report = String::from_utf8_lossy(&output.stdout);
    match found(&output)? == marked(&text) && report.contains("its loads and stores were not") {
        true => Ok(()),
        false => Err(format!("{report}")),
    }
}
