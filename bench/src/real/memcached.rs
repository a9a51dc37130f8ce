//! A server under load: four clients on the loopback interface, each with several connections one after
//! the other, store, fetch and delete their own keys and one that all share. Every answer is checked.
//!
//! The disciplines that are inferred from the load are held against what the source says of its locks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::source::{self, With};
use super::{Result, Row, Workshop, compare, pairs_of_tsan};

const CLIENTS: usize = 4;
const CONNECTIONS: usize = 6;
const KEYS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const SCRIPT: &str = "./configure CFLAGS=\"-O1 -g $SANITIZE\" LDFLAGS=\"$SANITIZE\" >/dev/null && \
    make memcached CFLAGS=\"-O1 -g -pthread $SANITIZE\"";

/// One client: how many answers were wrong.
fn client(port: u16, number: usize) -> std::io::Result<usize> {
    let mut wrong = 0;
    for _ in 0..CONNECTIONS {
        let mut to = TcpStream::connect(("127.0.0.1", port))?;
        to.set_read_timeout(Some(PATIENCE))?;
        to.set_nodelay(true)?;
        let mut from = BufReader::new(to.try_clone()?);
        let mut line = |text: &str| -> std::io::Result<bool> {
            let mut got = String::new();
            from.read_line(&mut got)?;
            Ok(got.trim_end() == text)
        };
        for i in 0..KEYS {
            let (key, value) = (format!("key{number}_{i}"), format!("value {i} ").repeat(20));
            to.write_all(format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()).as_bytes())?;
            wrong += usize::from(!line("STORED")?);
            to.write_all(format!("get {key}\r\n").as_bytes())?;
            wrong += usize::from(!line(&format!("VALUE {key} 0 {}", value.len()))?);
            wrong += usize::from(!line(value.trim_end())?);
            wrong += usize::from(!line("END")?);
            to.write_all(format!("set shared 0 0 1\r\n{}\r\n", i % 10).as_bytes())?;
            wrong += usize::from(!line("STORED")?);
            to.write_all(b"get shared\r\n")?;
            wrong += usize::from(!line("VALUE shared 0 1")?);
            line("")?;
            wrong += usize::from(!line("END")?);
            if i % 3 == 0 {
                to.write_all(format!("delete {key}\r\n").as_bytes())?;
                wrong += usize::from(!line("DELETED")?);
            }
        }
        to.write_all(b"stats\r\n")?;
        while !line("END")? {}
    }
    Ok(wrong)
}

/// All clients at once: whether all answers were right.
pub(super) fn clients(port: u16) -> bool {
    let clients: Vec<_> = (0..CLIENTS).map(|n| thread::spawn(move || client(port, n))).collect();
    clients.into_iter().all(|c| matches!(c.join(), Ok(Ok(0))))
}

/// Runs a server under load and stops it; whether all answers were right, and what it said.
fn load(command: &mut Command) -> Result<(bool, String)> {
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr());
    let port = port.map_err(|e| e.to_string())?.port();
    command.args(["-u", "root", "-l", "127.0.0.1", "-t", "4", "-p"]).arg(port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
    let mut said = server.stderr.take().ok_or("no pipe")?;
    let said = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = said.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let answers = wait_for(port, &mut server).map(|()| clients(port));
    let _ = Command::new("kill").arg(server.id().to_string()).status();
    server.wait().map_err(|e| e.to_string())?;
    let said = said.join().unwrap_or_default();
    Ok((answers?, said))
}

fn wait_for(port: u16, server: &mut Child) -> Result<()> {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if start.elapsed() > PATIENCE || matches!(server.try_wait(), Ok(Some(_))) {
            return Err("the server does not start".into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

pub(super) fn plain(workshop: &Workshop) -> Result<Vec<Row>> {
    let directory = workshop.fresh("memcached")?;
    let mut command = workshop.selvedge(&directory, &["run", "--", "memcached"]);
    let (works, said) = load(&mut command)?;
    let findings = said.lines().filter(|l| l.starts_with("error[")).count();
    Ok(vec![Row {
        program: "memcached".into(),
        form: "Debian's, plain",
        works,
        findings: findings.to_string(),
        tsan: "-".into(),
        remarks: Vec::new(),
    }])
}

pub(super) fn built(workshop: &Workshop) -> Result<Vec<Row>> {
    const RUNS: usize = 3;
    let directory = workshop.fresh("memcached-built")?;
    let ours = source::build(workshop, "memcached", With::Selvedge, SCRIPT)?;
    let tsan = source::build(workshop, "memcached", With::Tsan, SCRIPT)?;
    let program = |at: &Path| at.join("memcached");
    let (mut works, mut seen, mut theirs) = (true, BTreeSet::new(), BTreeSet::new());
    for _ in 0..RUNS {
        let mut command = workshop.selvedge(&directory, &["run", "--"]);
        works &= load(command.arg(program(&ours)))?.0;
        let (right, said) = load(&mut Command::new(program(&tsan)))?;
        works &= right;
        seen.extend(workshop.found(&directory)?);
        theirs.extend(pairs_of_tsan(&said, &tsan));
    }
    let (findings, tsan, remarks) = compare(&seen, &theirs);
    Ok(vec![Row {
        program: "memcached".into(),
        form: "from source",
        works,
        findings,
        tsan,
        remarks,
    }])
}

/// What the source says, in comments and names, of variables that this load reaches, and that it keeps.
const KEPT: [(&str, &str); 12] = [
    ("_stritem.h_next", "guarded-by item_locks[]"),
    ("LIBEVENT_THREAD.stats.get_misses", "guarded-by this.stats.mutex"),
    ("cas_id", "guarded-by cas_id_lock"),
    ("conn_queue.head.stqh_first", "thread-local; guarded-by this.lock"),
    ("itemstats[].evicted", "guarded-by lru_locks[]"),
    ("mem_malloced", "guarded-by slabs_lock"),
    ("sizes", "guarded-by lru_locks[]"),
    ("sizes_bytes", "guarded-by lru_locks[]"),
    ("slabclass[].sl_curr", "guarded-by slabs_lock"),
    ("stats.malloc_fails", "guarded-by stats_lock"),
    ("stats.total_items", "guarded-by stats_lock"),
    ("tails", "guarded-by lru_locks[]"),
];

/// What the source does not keep: `clock_handler` reads it without `stats_lock`.
const RACES: &str = "stats_state.curr_items";

pub(super) fn discipline(workshop: &Workshop) -> Result<Vec<Row>> {
    let directory = workshop.fresh("memcached-discipline")?;
    let ours = source::build(workshop, "memcached", With::Selvedge, SCRIPT)?;
    let inferred = directory.join("memcached.discipline");
    let mut command = workshop.selvedge(&directory, &["infer", "discipline", "--emit"]);
    command.arg(&inferred).arg("--source").arg(&ours).arg("--").arg(ours.join("memcached"));
    let (mut works, _) = load(&mut command)?;
    let text = std::fs::read_to_string(&inferred).map_err(|e| format!("{e}: what was inferred"))?;
    let of = |variable: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix(variable)?.strip_prefix(" = "))?;
        // What most instances do comes first.
        line.split(" | ").next()
    };
    let mut remarks = Vec::new();
    for (variable, expected) in KEPT {
        let got = of(variable).unwrap_or("nothing");
        if got != expected {
            remarks.push(format!("{variable}: {got}, and the source says {expected}"));
        }
    }
    remarks.extend(of(RACES).map(|got| format!("{RACES}: {got}, and the source has a race")));
    works &= remarks.is_empty();
    let variables =
        text.lines().filter(|l| l.contains(" = ") && !l.starts_with([' ', '#'])).count();
    Ok(vec![Row {
        program: "memcached, discipline".into(),
        form: "from source",
        works,
        findings: format!("{variables} variables"),
        tsan: "-".into(),
        remarks,
    }])
}
