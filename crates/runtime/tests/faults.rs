//! What goes wrong in programs loses no finding and no event; and the three ways in.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Built, Compiler, libraries, observe, observe_with, succeed, workspace};
use selvedge_model::{Event, Mode, Op, Symbols};
use selvedge_runtime::{ByModule, Error, Form, Options, Session};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults").join(name)
}

/// Tests run side by side, so each program is built in a directory of its own.
fn built(name: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let directory = workspace(&format!("faults/{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    Built::new(&source(name), Compiler::Gcc, false, &directory).expect(name).program
}

/// Compiles with arguments of its own, without the runtime.
fn compiled(name: &str, output: &str, arguments: &[&str]) -> PathBuf {
    let program = workspace("faults").join(output);
    let mut compile = Command::new("gcc");
    compile.args(arguments).arg("-g").arg(source(name)).arg("-o").arg(&program);
    succeed(&mut compile).expect(name);
    program
}

#[test]
fn a_crash_loses_nothing_and_the_programs_handler_runs() {
    let seen = observe(&built("crash.c"), Form::Linked).expect("runs");
    assert_eq!(seen.status.signal(), Some(11));
    assert!(!seen.races.is_empty());
    assert!(
        seen.races
            .iter()
            .all(|r| r.earlier.as_ref().is_some_and(|e| e.pc != 0) && !r.later.stack.is_empty())
    );
}

#[test]
fn a_kill_loses_nothing() {
    let mut ends = 0;
    let mut count = |e: &Event, _: &Symbols| ends += u32::from(e.op == Op::End);
    let seen =
        observe_with(Command::new(built("killed.c")), Form::Linked, Options::default(), &mut count);
    let seen = seen.expect("runs");
    assert_eq!(seen.status.signal(), Some(9));
    assert!(!seen.races.is_empty());
    assert_eq!(ends, 1, "the thread's last event was recorded before the kill");
}

/// jemalloc and tcmalloc come as libraries like this one.
#[test]
fn a_program_with_another_allocator_runs() {
    let directory = workspace("faults/pool");
    let library = directory.join("libpool.so");
    let mut compile = Command::new("g++");
    compile.args(["-shared", "-fPIC", "-O1"]).arg(source("pool.cpp")).arg("-o").arg(&library);
    succeed(&mut compile).expect("pool.cpp");
    for (instrument, form) in [(None, Form::Preloaded), (Some("-fsanitize=thread"), Form::Replaced)]
    {
        let program = directory.join(format!("pooled.{form:?}"));
        let mut compile = Command::new("g++");
        compile.args(["-g", "-O1", "-std=c++17"]).args(instrument).arg(source("pooled.cpp"));
        compile.arg(&library).arg(format!("-Wl,-rpath,{}", directory.display()));
        succeed(compile.arg("-o").arg(&program)).expect("pooled.cpp");
        let seen = observe(&program, form).expect("runs");
        assert!(seen.status.success(), "{form:?}: {}", seen.status);
        assert_eq!(seen.races_seen, 0);
    }
    let seen = observe(&built("pooled.cpp"), Form::Linked).expect("runs");
    assert!(seen.status.success() && seen.races_seen == 0, "{seen:?}");
}

#[test]
fn two_thousand_threads_run_and_raise_no_false_alarm() {
    let seen = observe(&built("threads.c"), Form::Linked).expect("runs");
    assert!(seen.status.success(), "{}", seen.status);
    assert_eq!(seen.races_seen, 0);
}

#[test]
fn forking_and_executing_beside_running_threads_works() {
    let seen = observe(&built("exec.c"), Form::Linked).expect("runs");
    assert!(seen.status.success(), "{}", seen.status);
    assert_eq!(seen.races_seen, 0);
}

#[test]
fn too_little_address_space_is_a_clear_error() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1000000; exec \"$0\""]).arg(built("busy.c"));
    let session = Session::start(command, Form::Linked, libraries(), Options::default());
    let mut ignore = |_: &Event, _: &Symbols| {};
    let end = session.expect("the shell starts").finish(
        &mut Symbols::default(),
        &mut ByModule,
        &mut ignore,
    );
    assert!(matches!(end, Err(Error::NoAddressSpace)), "{end:?}");
}

#[test]
fn every_event_of_a_busy_program_arrives_in_an_order_that_could_have_been() {
    let mut holder = None;
    let (mut acquisitions, mut accesses) = (0u32, 0u64);
    let mut check = |e: &Event, _: &Symbols| match e.op {
        Op::Acquire(_, Mode::Exclusive) => {
            assert_eq!(holder, None, "somebody holds the lock already");
            holder = Some(e.thread);
            acquisitions += 1;
        }
        Op::Release(..) => assert_eq!(holder.take(), Some(e.thread)),
        Op::Read(_) | Op::Write(_) => accesses += 1,
        _ => {}
    };
    let options = Options { accesses: true, ..Options::default() };
    let command = Command::new(built("busy.c"));
    let seen = observe_with(command, Form::Linked, options, &mut check).expect("runs");
    assert!(seen.status.success());
    assert_eq!((acquisitions, seen.lost, seen.races_seen), (40_000, 0, 0));
    assert!(accesses >= 40_000, "each critical section is seen: {accesses}");
}

#[test]
fn a_program_whose_host_is_gone_goes_on() {
    let command = Command::new(built("busy.c"));
    let session = Session::start(command, Form::Linked, libraries(), Options::default());
    let status = session.expect("starts").abandon().expect("ends");
    assert!(status.success(), "{status}");
}

#[test]
fn a_binary_built_for_tsan_runs_with_our_library() {
    let program = compiled("killed.c", "killed.tsan", &["-O1", "-fsanitize=thread"]);
    let seen = observe(&program, Form::Replaced).expect("runs");
    assert!(seen.attached && seen.instrumented);
    assert!(!seen.races.is_empty());
}

#[test]
fn a_plain_binary_shows_its_synchronization() {
    let program = compiled("busy.c", "busy.plain", &["-O1"]);
    let mut acquisitions = 0;
    let mut count =
        |e: &Event, _: &Symbols| acquisitions += u32::from(matches!(e.op, Op::Acquire(..)));
    let options = Options::default();
    let seen = observe_with(Command::new(program), Form::Preloaded, options, &mut count);
    let seen = seen.expect("runs");
    assert!(seen.status.success());
    assert!(seen.attached && !seen.instrumented, "and says that it saw no accesses");
    assert_eq!((acquisitions, seen.races_seen), (40_000, 0));
}

#[test]
fn a_library_that_is_loaded_later_is_seen() {
    let plugin =
        compiled("plugin.c", "plugin.so", &["-O1", "-fsanitize=thread", "-shared", "-fPIC"]);
    let program = compiled("host.c", "host.plain", &["-O1"]);
    let mut command = Command::new(program);
    command.arg(plugin);
    // The library asks for `libtsan.so.2`, which is the preloaded one.
    let mut ignore = |_: &Event, _: &Symbols| {};
    let seen = observe_with(command, Form::Preloaded, Options::default(), &mut ignore);
    let seen = seen.expect("runs");
    assert!(seen.status.success(), "{}", seen.status);
    assert!(seen.instrumented && !seen.races.is_empty());
    assert!(seen.races.iter().all(|r| seen.modules.find(r.later.pc).is_some()));
}
