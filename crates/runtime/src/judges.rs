//! Asks predicates that are functions of the program. The program keeps a copy of itself for each of them, from the
//! moment of the first call that names it (`judges` of the injected runtime); two pipes lead there.
//!
//! Guarantee: an answer is one of the function's own. If it crashes, ends its process or takes longer than the
//! patience, there is none but a reason, then and for all later questions.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use selvedge_specs::{Judge, Value};

use crate::process;
use crate::wire::{JUDGE_ANSWER, JUDGE_ASK};

/// The longest time for one answer, where the user has not set one.
const PATIENCE: Duration = Duration::from_secs(10);

/// The predicates of a program, for all of its executions.
#[derive(Clone, Debug)]
pub struct Judges {
    patience: Duration,
    seats: Arc<Mutex<BTreeMap<String, Seat>>>,
}

impl Default for Judges {
    fn default() -> Judges {
        Judges::new(PATIENCE)
    }
}

impl Judges {
    /// None is known yet. An answer may take that long.
    pub fn new(patience: Duration) -> Judges {
        Judges { patience, seats: Arc::default() }
    }

    /// A process waits to call the function of this name. The first one stays.
    /// It takes bytes, or values in their stored form.
    pub(crate) fn offer(&self, name: &str, process: u32, encoded: bool) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let seat = Seat::open(process, encoded);
        seats.entry(name.to_owned()).or_insert(seat);
    }
}

impl Judge for Judges {
    fn same(&mut self, callback: &str, a: &Value, b: &Value) -> Result<bool, String> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seat) = seats.get_mut(callback) else {
            return Err("no execution has called it".to_owned());
        };
        match (a, b) {
            _ if seat.encoded => seat.ask([&a.encode(), &b.encode()], self.patience),
            (Value::Bytes(a), Value::Bytes(b)) => seat.ask([a, b], self.patience),
            _ => Err(format!("it takes bytes, and not {} and {}", a.kind(), b.kind())),
        }
    }
}

/// A process that calls one function.
#[derive(Debug)]
struct Seat {
    process: u32,
    /// It takes values in their stored form.
    encoded: bool,
    /// Where to ask and where to read the answer, or why it does not answer any more.
    pipes: Result<(File, File), String>,
}

impl Seat {
    fn open(process: u32, encoded: bool) -> Seat {
        let path = |fd: u32| format!("/proc/{process}/fd/{fd}");
        let ask = OpenOptions::new().write(true).open(path(JUDGE_ASK));
        let answer =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path(JUDGE_ANSWER));
        let pipes = match (ask, answer) {
            (Ok(ask), Ok(answer)) => Ok((ask, answer)),
            (Err(error), _) | (_, Err(error)) => {
                Err(format!("the process in which it runs cannot be asked: {error}"))
            }
        };
        Seat { process, encoded, pipes }
    }

    fn ask(&mut self, values: [&[u8]; 2], patience: Duration) -> Result<bool, String> {
        let (ask, answer) = match &mut self.pipes {
            Ok((ask, answer)) => (ask, answer),
            Err(why) => return Err(why.clone()),
        };
        let answered = question(ask, values).and_then(|()| reply(answer, patience));
        if let Err(why) = &answered {
            process::kill(self.process as i32);
            self.pipes = Err(why.clone());
        }
        answered
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        process::kill(self.process as i32);
    }
}

fn gone() -> String {
    "it crashed, or ended its process".to_owned()
}

fn question(ask: &mut File, values: [&[u8]; 2]) -> Result<(), String> {
    let lens = values.map(|v| (v.len() as u64).to_le_bytes());
    let [a, b] = values;
    let all = [&lens[0][..], &lens[1], a, b].concat();
    ask.write_all(&all).map_err(|_| gone())
}

fn reply(answer: &mut File, patience: Duration) -> Result<bool, String> {
    const PAUSE: Duration = Duration::from_micros(50);
    let begin = Instant::now();
    let mut byte = [0];
    loop {
        match answer.read(&mut byte) {
            Ok(0) => return Err(gone()),
            Ok(_) => return Ok(byte[0] != 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.to_string()),
        }
        if begin.elapsed() > patience {
            return Err(format!("it took longer than {patience:?} (--patience)"));
        }
        std::thread::sleep(PAUSE);
    }
}
