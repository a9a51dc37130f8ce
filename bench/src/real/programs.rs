//! `cargo xtask bench programs [ROUNDS] [NAME…]`: what race checking costs programs that people use.
//!
//! Each is built from Debian's sources by clang, with `-O2`, five times: as it is, with ThreadSanitizer, with Selvedge and
//! clang's hooks, and with Selvedge's own. They run in turn, so that other work of the machine slows all
//! alike. Figures are processor time (user and system, all threads) and peak memory over native; of servers only the
//! server's, under the same load. The last column is `selvedge run` as users call it, with the work of the tool itself.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::source::{self, With};
use super::{Result, Workshop, memcached, succeed};
use crate::measure::{Runs, all_processor_seconds, once_in};
use crate::plot;

const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(120);

/// What a program does while it is measured.
#[derive(Clone, Copy)]
enum Load {
    /// It runs with these arguments; `INPUT` stands for a file.
    Itself(&'static [&'static str]),
    /// It serves redis-benchmark.
    Redis,
    /// It serves four clients, ten times.
    Memcached,
}

struct Program {
    name: &'static str,
    package: &'static str,
    /// Another package whose source the script finds in `$OTHER`.
    other: Option<&'static str>,
    script: &'static str,
    program: &'static str,
    load: Load,
}

const PROGRAMS: [Program; 5] = [
    Program {
        name: "zstd -T2 -6",
        package: "libzstd",
        other: None,
        script: "make -C programs zstd CC=\"$CC\" CFLAGS=\"-O2 $SANITIZE\" LDFLAGS=\"$SANITIZE\" \
            HAVE_LZMA=0 HAVE_LZ4=0 HAVE_ZLIB=0",
        program: "programs/zstd",
        load: Load::Itself(&["-T2", "-6", "-q", "-f", "-c", "INPUT"]),
    },
    Program {
        name: "pbzip2 -p2",
        package: "bzip2",
        other: Some("pbzip2"),
        // The library that does the work is instrumented as well.
        script: "make libbz2.a CC=\"$CC\" CFLAGS=\"-O2 $SANITIZE\" && $CXX -O2 $SANITIZE -w -Wno-reserved-user-defined-literal -I. \
            -D_FILE_OFFSET_BITS=64 $OTHER/*.cpp libbz2.a -lpthread -o pbzip2",
        program: "pbzip2",
        load: Load::Itself(&["-p2", "-k", "-c", "INPUT"]),
    },
    Program {
        name: "sqlite speedtest1",
        package: "sqlite3",
        other: None,
        script: "./configure --disable-tcl && make sqlite3.c && $CC -O2 $SANITIZE -I. \
            -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION test/speedtest1.c sqlite3.c -lpthread -lm -o speedtest1",
        program: "speedtest1",
        load: Load::Itself(&["--size", "10", "--multithread", ":memory:"]),
    },
    Program {
        name: "redis io-threads 2",
        package: "redis",
        other: None,
        script: "make -C src redis-server MALLOC=libc CC=\"$CC\" CXX=\"$CXX\" OPTIMIZATION=-O2 \
            CFLAGS=\"$SANITIZE\" LDFLAGS=\"$SANITIZE\"",
        program: "src/redis-server",
        load: Load::Redis,
    },
    Program {
        name: "memcached -t 4",
        package: "memcached",
        other: None,
        script: memcached::SCRIPT,
        program: "memcached",
        load: Load::Memcached,
    },
];

const BUILDS: [With; 4] = [With::Clang, With::ClangTsan, With::ClangHooks, With::OwnHooks];

/// What is measured: a build, and whether `selvedge run` runs it.
const MEASURED: [(&str, With, bool); 5] = [
    ("native", With::Clang, false),
    ("ThreadSanitizer", With::ClangTsan, false),
    ("clang's hooks", With::ClangHooks, false),
    ("own hooks", With::OwnHooks, false),
    ("own, selvedge run", With::OwnHooks, true),
];
const NATIVE: usize = 0;
const TSAN: usize = 1;
const OWN: usize = 3;

struct Row {
    name: &'static str,
    runs: [Runs; MEASURED.len()],
    /// Processor seconds of each build.
    builds: [f64; BUILDS.len()],
}

impl Row {
    fn time(&self, of: usize) -> (f64, f64) {
        let native = self.runs[NATIVE].best();
        (self.runs[of].best() / native, self.runs[of].worst() / native)
    }

    fn memory(&self, of: usize) -> f64 {
        self.runs[of].memory / self.runs[NATIVE].memory
    }
}

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let args = match plot::Arguments::parse(args, ROUNDS) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let programs: Vec<&Program> = PROGRAMS.iter().filter(|p| args.want(p.name)).collect();
    if programs.is_empty() {
        eprintln!("programs: {}", PROGRAMS.map(|p| p.name).join(", "));
        return ExitCode::from(2);
    }
    let rows = Workshop::new().and_then(|w| {
        programs.iter().map(|p| measure(&w, p, args.rounds)).collect::<Result<Vec<_>>>()
    });
    match rows.and_then(|rows| print(&rows, args.rounds, args.svg)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(workshop: &Workshop, program: &Program, rounds: usize) -> Result<Row> {
    let directory = workshop.fresh("programs")?;
    let input = input(workshop)?;
    let other = program.other.map(|package| source::unpacked(workshop, package)).transpose()?;
    let script = match &other {
        Some(other) => format!("OTHER='{}'; {}", other.display(), program.script),
        None => program.script.to_owned(),
    };
    source::unpacked(workshop, program.package)?;
    let (mut built, mut builds) = (Vec::new(), [0.0; BUILDS.len()]);
    for (with, seconds) in BUILDS.into_iter().zip(&mut builds) {
        eprintln!("building {} ({with:?})", program.name);
        let before = all_processor_seconds();
        built.push(source::build(workshop, program.package, with, &script)?.join(program.program));
        *seconds = all_processor_seconds() - before;
    }
    let mut row = Row { name: program.name, runs: Default::default(), builds };
    for round in 0..rounds {
        eprintln!("running {} ({} of {rounds})", program.name, round + 1);
        for ((_, with, host), runs) in MEASURED.iter().zip(&mut row.runs) {
            let build = BUILDS.iter().position(|b| b == with).ok_or("it is not built")?;
            let tool = host.then_some(workshop.selvedge.as_path());
            runs.add(under_load(program.load, &built[build], tool, &directory, &input)?);
        }
    }
    Ok(row)
}

/// Text to compress: the source of SQLite in one file, twice.
fn input(workshop: &Workshop) -> Result<PathBuf> {
    let path = workshop.directory.join("text");
    if !path.exists() {
        let made = source::build(
            workshop,
            "sqlite3",
            With::Nothing,
            "./configure --disable-tcl && make sqlite3.c",
        )?;
        let text = std::fs::read(made.join("sqlite3.c")).map_err(|e| e.to_string())?;
        std::fs::write(&path, text.repeat(2)).map_err(|e| e.to_string())?;
    }
    Ok(path)
}

/// One run: its processor seconds and its peak memory.
fn under_load(
    load: Load,
    program: &Path,
    tool: Option<&Path>,
    directory: &Path,
    input: &Path,
) -> Result<(f64, f64)> {
    let port = free_port()?;
    let (program_name, input, port_name) =
        (program.display().to_string(), input.display().to_string(), port.to_string());
    let mut args: Vec<&str> = match load {
        Load::Itself(args) => {
            args.iter().map(|&arg| if arg == "INPUT" { &input } else { arg }).collect()
        }
        Load::Redis => vec![
            "--port",
            &port_name,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--io-threads",
            "2",
            "--io-threads-do-reads",
            "yes",
        ],
        // It ends when it is told to: see `-A`.
        Load::Memcached => {
            vec!["-u", "root", "-l", "127.0.0.1", "-t", "4", "-A", "-p", &port_name]
        }
    };
    if tool.is_some() {
        let run = ["run", "--fail-on", "never", "--", &program_name];
        args = run.into_iter().chain(args).collect();
    }
    let run = || once_in(directory, tool.unwrap_or(program), &args, &[0, 66]);
    if let Load::Itself(_) = load {
        return run();
    }
    thread::scope(|scope| {
        let server = scope.spawn(run);
        let served = wait_for(port, || server.is_finished()).and_then(|()| match load {
            Load::Memcached => serve_memcached(port),
            _ => serve_redis(&port_name),
        });
        if served.is_err() && !server.is_finished() {
            stop(load, port);
        }
        let measured = server.join().map_err(|_| "the server's thread panicked")?;
        served.and(measured)
    })
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr());
    Ok(listener.map_err(|e| e.to_string())?.port())
}

fn wait_for(port: u16, has_ended: impl Fn() -> bool) -> Result<()> {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if has_ended() || start.elapsed() > PATIENCE {
            return Err("the server does not start".into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn serve_redis(port: &str) -> Result<()> {
    let mut load = Command::new("redis-benchmark");
    load.args(["-p", port, "-n", "20000", "-c", "20", "-t", "set,get,incr,lpush", "-q"]);
    succeed(load.stdin(Stdio::null()))?;
    // It ends without an answer.
    let mut stop = Command::new("redis-cli");
    stop.args(["-p", port, "shutdown", "nosave"]).output().map_err(|e| e.to_string())?;
    Ok(())
}

fn serve_memcached(port: u16) -> Result<()> {
    let right = (0..10).all(|_| memcached::clients(port));
    stop(Load::Memcached, port);
    right.then_some(()).ok_or_else(|| "memcached gave a wrong answer".into())
}

/// Tells a server to end.
fn stop(load: Load, port: u16) {
    let words: &[u8] =
        if let Load::Redis = load { b"shutdown nosave\r\n" } else { b"shutdown\r\n" };
    let _ = TcpStream::connect(("127.0.0.1", port)).and_then(|mut to| to.write_all(words));
}

fn print(rows: &[Row], rounds: usize, svg: Option<&Path>) -> Result<()> {
    let compared = 1..MEASURED.len();
    println!("processor time over native, best of {rounds} (worst); peak memory over native\n");
    let head: String = compared.clone().map(|m| format!(" {:>20}", MEASURED[m].0)).collect();
    println!("{:20} |{head}", "program");
    for row in rows {
        let cell = |m: usize| {
            let (best, worst) = row.time(m);
            format!(" {:>20}", format!("{best:.2} ({worst:.2}) {:.1}", row.memory(m)))
        };
        println!("{:20} |{}", row.name, compared.clone().map(cell).collect::<String>());
    }
    let mean = |m: usize| {
        let logs: f64 = rows.iter().map(|row| row.time(m).0.ln()).sum();
        (logs / rows.len() as f64).exp()
    };
    let means: String = compared.clone().map(|m| format!(" {:>20.2}", mean(m))).collect();
    println!("{:20} |{means}", "geomean");
    let share = |row: &Row| row.time(OWN).0 / row.time(TSAN).0;
    let worst = rows.iter().map(share).fold(0.0, f64::max);
    println!(
        "own hooks over ThreadSanitizer: geometric mean {:.2}, worst program {worst:.2}\n",
        mean(OWN) / mean(TSAN)
    );
    println!(
        "processor time to build, over clang's with ThreadSanitizer: clang's hooks, own hooks"
    );
    for row in rows {
        let [_, tsan, hooks, own] = row.builds;
        println!("{:20} {:.2} {:.2}", row.name, hooks / tsan, own / tsan);
    }
    let Some(path) = svg else { return Ok(()) };
    let names: Vec<String> = compared.clone().map(|m| MEASURED[m].0.to_owned()).collect();
    let bars = |row: &Row| plot::Row {
        name: row.name.to_owned(),
        bars: compared.clone().map(|m| row.time(m)).collect(),
    };
    let title = "Processor time over native";
    plot::write(path, title, &names, &rows.iter().map(bars).collect::<Vec<_>>())
}
