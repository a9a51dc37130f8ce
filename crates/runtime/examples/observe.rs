//! Runs a program that carries the runtime, and prints what was found: the quickest way to try the
//! native front end by hand.
//!
//! `cargo run -p selvedge-runtime --example observe -- [--replace|--preload] [--events] [--accesses]
//! [--libraries DIR] PROGRAM ARGS…`; with only `--libraries DIR` the files to link are written there.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use selvedge_model::{Event, Symbols};
use selvedge_runtime::{ByModule, Form, Libraries, Options, RaceSide, Resolve, Session};

fn main() -> ExitCode {
    let mut form = Form::Linked;
    let mut options = Options::default();
    let mut show = false;
    let mut directory = std::env::temp_dir().join("selvedge-libraries");
    let mut args = std::env::args().skip(1).peekable();
    while let Some(arg) = args.next_if(|a| a.starts_with("--")) {
        match arg.as_str() {
            "--replace" => form = Form::Replaced,
            "--preload" => form = Form::Preloaded,
            "--events" => show = true,
            "--accesses" => options.accesses = true,
            "--races-only" => options.synchronization = false,
            "--libraries" => directory = PathBuf::from(args.next().unwrap_or_default()),
            _ => return usage(),
        }
    }
    let libraries = match Libraries::install(&directory) {
        Ok(libraries) => libraries,
        Err(e) => {
            eprintln!("cannot write to {}: {e}", directory.display());
            return ExitCode::from(3);
        }
    };
    let Some(program) = args.next() else { return usage() };
    let mut command = Command::new(program);
    command.args(args);
    let mut symbols = Symbols::default();
    let mut count = 0u64;
    let mut observer = |event: &Event, symbols: &Symbols| {
        count += 1;
        if show {
            eprintln!("{:?} {:?} at {}", event.thread, event.op, symbols.site(event.site));
        }
    };
    let outcome = Session::start(command, form, &libraries, options)
        .and_then(|s| s.finish(&mut symbols, &mut ByModule, &mut observer));
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(3);
        }
    };
    for race in &outcome.races {
        let place = |side: &RaceSide| {
            let site = ByModule.site(side.pc, &outcome.modules);
            format!("{:?} by {:?} at {site} ({} frames)", side.kind, side.thread, side.stack.len())
        };
        let earlier = race.earlier.as_ref().map_or_else(|| "?".to_owned(), place);
        let later = place(&race.later);
        let what = race.misuse.as_ref().map_or_else(|| "race".to_owned(), |m| format!("{m:?}"));
        eprintln!("{what} on {:#x}: {earlier}, then {later}", race.later.range.start);
    }
    eprintln!(
        "{}; {count} events, {} races, {} records lost, instrumented: {}",
        outcome.status, outcome.races_seen, outcome.lost, outcome.instrumented
    );
    ExitCode::from(u8::from(!outcome.races.is_empty()))
}

fn usage() -> ExitCode {
    eprintln!(
        "observe [--replace|--preload] [--events] [--accesses] [--races-only] [--libraries DIR] \
         PROGRAM ARGS…"
    );
    ExitCode::from(2)
}
