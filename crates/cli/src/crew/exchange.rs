//! The link between ranks: a small program that the user's `mpicc` compiled speaks MPI, and this process speaks with it
//! by pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use selvedge_engine::ranks::{Link, Rank};
use selvedge_spmd::layer;

use crate::exit::Failure;
use crate::program::compiler::mpi::mpicc;
use crate::program::toolbox;

/// How long the ranks have to find each other. MPI waits for a rank that died before that for ever.
const MEETING: Duration = Duration::from_secs(60);
/// How often to look whether the program has ended.
const POLL: Duration = Duration::from_millis(10);

/// The program that speaks MPI.
struct Process {
    child: Child,
    /// What the writer is to write. Closed when nothing more is to be sent.
    lines: Option<Sender<String>>,
    received: Receiver<(Rank, String)>,
    /// It has closed its output.
    is_closed: bool,
}

/// A handle on the link of this rank.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) rank: Rank,
    pub(crate) size: u32,
    process: Arc<Mutex<Process>>,
}

impl Exchange {
    /// Joins the ranks of the job, and waits for all of them.
    pub(crate) fn join() -> Result<Exchange, Failure> {
        let program = layer::exchange(&toolbox::cache(), &mpicc()).map_err(Failure::Mpi)?;
        let failed = |error| Failure::Open { path: program.clone(), error };
        let mut command = Command::new(&program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are pipes");
        };
        let (met, hello) = channel();
        let (sender, received) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut hello = String::new();
            if output.read_line(&mut hello).is_ok() && met.send(hello).is_ok() {
                read(output, &sender);
            }
        });
        let hello = hello.recv_timeout(MEETING).unwrap_or_default();
        let place = hello
            .trim()
            .split_once(' ')
            .and_then(|(rank, size)| Some((rank.parse::<u32>().ok()?, size.parse::<u32>().ok()?)));
        let Some((rank, size)) = place else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::NoExchange);
        };
        let (lines, to_write) = channel();
        std::thread::spawn(move || write(input, &to_write));
        let process = Process { child, lines: Some(lines), received, is_closed: false };
        Ok(Exchange { rank, size, process: Arc::new(Mutex::new(process)) })
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the job for all ranks; if some are gone, without waiting for them. For rank 0.
    pub(crate) fn quit(&self, all_are_there: bool) {
        if let Some(lines) = &self.process().lines {
            let _ = lines.send(if all_are_there { "q" } else { "x" }.to_owned());
        }
    }

    /// Waits until the program has ended, as long as `patient` says. Whether rank 0 has ended the job.
    pub(crate) fn wait(&self, patient: impl Fn() -> bool) -> bool {
        while patient() {
            if let Ok(Some(status)) = self.process().child.try_wait() {
                return status.success();
            }
            std::thread::sleep(POLL);
        }
        let mut process = self.process();
        // It ends when its input does.
        process.lines = None;
        let _ = process.child.wait();
        false
    }
}

fn write(mut input: ChildStdin, lines: &Receiver<String>) {
    for line in lines {
        if input.write_all(format!("{line}\n").as_bytes()).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

fn read(mut output: impl BufRead, sender: &Sender<(Rank, String)>) {
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        let parts = text.trim_end_matches('\n').split_once(' ');
        let message = parts.and_then(|(rank, message)| Some((rank.parse().ok()?, message)));
        if let Some((rank, message)) = message
            && sender.send((rank, message.to_owned())).is_err()
        {
            return;
        }
        line.clear();
    }
}

impl Link for Exchange {
    fn send(&mut self, to: Rank, message: &str) {
        if let Some(lines) = &self.process().lines {
            let _ = lines.send(format!("{to} {message}"));
        }
    }

    fn receive(&mut self) -> Option<(Rank, String)> {
        use std::sync::mpsc::TryRecvError;

        let mut process = self.process();
        match process.received.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                process.is_closed = true;
                None
            }
        }
    }

    fn is_gone(&mut self, _: Rank) -> bool {
        self.process().is_closed
    }
}
