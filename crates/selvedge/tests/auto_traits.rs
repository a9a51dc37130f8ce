//! `Send` and `Sync` of our types are those of the types they stand for: one source, compiled with either.
//!
//! What holds of a type is written down once, in a list. All claims that hold make one program and all that
//! do not make another; the programs differ from one library to the other in the line that imports it.
//! trybuild demands that the first compiles and the second does not, and then each claim of the second has
//! to be among the errors: a program of many claims does not pass for the failure of one.
//!
//! The rest of what the compiler says changes from version to version, so no snapshot of it is kept:
//! trybuild runs in its mode of writing snapshots (`TRYBUILD=overwrite`), beside programs that are made in
//! the target directory, and only the codes and lines of the errors are read back.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `Rc` may be neither sent nor shared, a `Cell` sent only, the standard library's guard shared only.
const PRELUDE: &str = "
type Rc = std::rc::Rc<i32>;
type Cell = std::cell::Cell<i32>;
type Guard = std::sync::MutexGuard<'static, i32>;
fn send<T: Send + ?Sized>() {}
fn sync<T: Sync + ?Sized>() {}
fn main() {}
";

/// Types of the standard library, and what they are.
const STD: &str = "
    sync::Mutex<i32>                                send sync
    sync::Mutex<Rc>                                 -
    sync::Mutex<Cell>                               send sync
    sync::Mutex<Guard>                              -
    sync::Mutex<[Cell]>                             send sync
    sync::MutexGuard<'static, i32>                  sync
    sync::MutexGuard<'static, Rc>                   -
    sync::MutexGuard<'static, Cell>                 -
    sync::MutexGuard<'static, Guard>                sync
    sync::RwLock<i32>                               send sync
    sync::RwLock<Rc>                                -
    sync::RwLock<Cell>                              send
    sync::RwLock<Guard>                             -
    sync::RwLockReadGuard<'static, i32>             sync
    sync::RwLockReadGuard<'static, Cell>            -
    sync::RwLockReadGuard<'static, Guard>           sync
    sync::RwLockWriteGuard<'static, i32>            sync
    sync::RwLockWriteGuard<'static, Cell>           -
    sync::RwLockWriteGuard<'static, Guard>          sync
    sync::Condvar                                   send sync
    sync::WaitTimeoutResult                         send sync
    sync::Barrier                                   send sync
    sync::BarrierWaitResult                         send sync
    sync::Once                                      send sync
    sync::OnceState                                 send
    sync::OnceLock<i32>                             send sync
    sync::OnceLock<Rc>                              -
    sync::OnceLock<Cell>                            send
    sync::OnceLock<Guard>                           -
    sync::LazyLock<i32>                             send sync
    sync::LazyLock<Rc>                              -
    sync::LazyLock<Cell>                            send
    sync::LazyLock<Guard>                           -
    sync::LazyLock<i32, Rc>                         -
    sync::LazyLock<i32, Cell>                       send sync
    sync::Arc<i32>                                  send sync
    sync::Arc<Rc>                                   -
    sync::Arc<Cell>                                 -
    sync::Weak<Guard>                               -
    sync::PoisonError<Rc>                           -
    sync::TryLockError<Cell>                        send
    sync::atomic::AtomicBool                        send sync
    sync::atomic::AtomicUsize                       send sync
    sync::atomic::AtomicPtr<Rc>                     send sync
    sync::mpsc::Sender<i32>                         send sync
    sync::mpsc::Sender<Rc>                          -
    sync::mpsc::Sender<Cell>                        send sync
    sync::mpsc::Sender<Guard>                       -
    sync::mpsc::SyncSender<i32>                     send sync
    sync::mpsc::SyncSender<Rc>                      -
    sync::mpsc::SyncSender<Cell>                    send sync
    sync::mpsc::Receiver<i32>                       send
    sync::mpsc::Receiver<Rc>                        -
    sync::mpsc::Receiver<Cell>                      send
    sync::mpsc::Receiver<Guard>                     -
    sync::mpsc::Iter<'static, i32>                  -
    sync::mpsc::TryIter<'static, i32>               -
    sync::mpsc::IntoIter<i32>                       send
    sync::mpsc::IntoIter<Rc>                        -
    sync::mpsc::SendError<Rc>                       -
    thread::JoinHandle<i32>                         send sync
    thread::JoinHandle<Rc>                          send sync
    thread::Thread                                  send sync
    thread::ThreadId                                send sync
    thread::Builder                                 send sync
    thread::AccessError                             send sync
    thread::Scope<'static, 'static>                 send sync
    thread::ScopedJoinHandle<'static, i32>          send sync
    thread::ScopedJoinHandle<'static, Rc>           -
    thread::ScopedJoinHandle<'static, Cell>         send sync
    thread::LocalKey<Rc>                            send sync
    time::Instant                                   send sync
    cell::Cell<i32>                                 send
    cell::Cell<Rc>                                  -
    cell::UnsafeCell<i32>                           send
    cell::UnsafeCell<Rc>                            -
";

/// Types of the `parking_lot` crate.
const PARKING_LOT: &str = "
    Mutex<i32>                                      send sync
    Mutex<Rc>                                       -
    Mutex<Cell>                                     send sync
    Mutex<Guard>                                    -
    MutexGuard<'static, i32>                        sync
    MutexGuard<'static, Cell>                       -
    MappedMutexGuard<'static, i32>                  sync
    MappedMutexGuard<'static, Cell>                 -
    FairMutex<Rc>                                   -
    FairMutexGuard<'static, i32>                    sync
    RwLock<i32>                                     send sync
    RwLock<Rc>                                      -
    RwLock<Cell>                                    send
    RwLock<Guard>                                   -
    RwLockReadGuard<'static, i32>                   sync
    RwLockReadGuard<'static, Cell>                  -
    RwLockWriteGuard<'static, i32>                  sync
    RwLockWriteGuard<'static, Cell>                 -
    RwLockUpgradableReadGuard<'static, i32>         sync
    RwLockUpgradableReadGuard<'static, Cell>        -
    MappedRwLockReadGuard<'static, i32>             sync
    MappedRwLockWriteGuard<'static, Cell>           -
    ReentrantMutex<Cell>                            send sync
    ReentrantMutex<Rc>                              -
    ReentrantMutexGuard<'static, i32>               sync
    ReentrantMutexGuard<'static, Cell>              -
    Condvar                                         send sync
    Once                                            send sync
";

/// A list, and by which names a program gets at the library and at ours.
const FAMILIES: [(&str, [(&str, &str); 2]); 2] = [
    (STD, [("std", "std"), ("selvedge", "selvedge")]),
    (PARKING_LOT, [("parking_lot", "parking_lot"), ("ours", "selvedge::parking_lot")]),
];

/// The claims that hold or do not, and the line of each in the program that makes them.
fn program(list: &str, library: &str, hold: bool) -> (String, Vec<(usize, String)>) {
    let mut text = format!("use {library} as lib;{PRELUDE}");
    let mut claims = Vec::new();
    for entry in list.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (is, name): (Vec<&str>, Vec<&str>) = entry
            .split(' ')
            .filter(|w| !w.is_empty())
            .partition(|w| ["send", "sync", "-"].contains(w));
        let name = name.join(" ");
        for claim in ["send", "sync"].into_iter().filter(|c| is.contains(c) == hold) {
            let line = text.lines().count() + 1;
            writeln!(text, "fn claim{line}() {{ {claim}::<lib::{name}>() }}").expect("a string");
            claims.push((line, format!("{claim} {name}")));
        }
    }
    (text, claims)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("auto_traits")
}

/// Compiles the programs, if it is told to write down what the compiler says.
#[test]
fn programs_compile_or_not() {
    if std::env::var_os("TRYBUILD").is_none() {
        return;
    }
    let cases = trybuild::TestCases::new();
    for (list, libraries) in FAMILIES {
        for (short, library) in libraries {
            let path = |what: &str| folder().join(format!("{short}_{what}.rs"));
            fs::write(path("holds"), program(list, library, true).0).expect("writable");
            fs::write(path("fails"), program(list, library, false).0).expect("writable");
            cases.pass(path("holds"));
            cases.compile_fail(path("fails"));
        }
    }
}

#[test]
fn what_may_be_sent_and_shared_is_what_may_be_with_std_and_parking_lot() {
    let _ = fs::remove_dir_all(folder());
    fs::create_dir_all(folder()).expect("the target directory is writable");
    let mut again = Command::new(std::env::current_exe().expect("we run"));
    again.args(["--exact", "programs_compile_or_not", "--nocapture"]).env("TRYBUILD", "overwrite");
    // What is compiled is hardly run.
    again.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    let output = again.output().expect("we run again");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    for (list, libraries) in FAMILIES {
        for (short, library) in libraries {
            let said = folder().join(format!("{short}_fails.stderr"));
            let said = fs::read_to_string(said).expect("trybuild has written it");
            let refused = refused(&said);
            let (_, claims) = program(list, library, false);
            let accepted: Vec<_> =
                claims.iter().filter(|(line, _)| !refused.contains(line)).map(|c| &c.1).collect();
            assert!(accepted.is_empty(), "{library}: {accepted:?} should not hold\n{said}");
            assert_eq!(refused.len(), claims.len(), "{library}: other errors\n{said}");
        }
    }
}

/// The lines with errors about bounds that are not met.
fn refused(said: &str) -> Vec<usize> {
    let mut lines = said.lines();
    let mut refused = Vec::new();
    while let Some(line) = lines.find(|l| l.starts_with("error")) {
        let place = lines.next().and_then(|l| l.split_once("--> "));
        let number = place.and_then(|(_, at)| at.rsplit(':').nth(1)?.parse().ok());
        match number {
            Some(number) if line.starts_with("error[E0277]") => refused.push(number),
            _ => panic!("not about a bound: {line}"),
        }
    }
    refused.sort_unstable();
    refused.dedup();
    refused
}
