//! A native run for `selvedge test`: the program's output is discarded, and the findings are returned
//! instead of printed.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use selvedge_analyses::registry::{self, Purpose, Settings};
use selvedge_model::Symbols;
use selvedge_report::Report;
use selvedge_runtime::Session;

use super::watch::Watch;
use crate::catalogue;
use crate::checking::{Checking, NativeChecking};
use crate::control::program::ControlledProgram;
use crate::deadline::Deadline;
use crate::exit::Failure;
use crate::program::suppress::Suppressions;
use crate::program::symbolize::SharedSymbolizer;
use crate::store::Journal;

/// How long a program may go on in which threads wait for each other for ever.
const STUCK: Duration = Duration::from_millis(500);

/// Observes one run. A program that does not end in time is killed.
pub(crate) fn observe_run(
    program: &ControlledProgram,
    suppressions: Suppressions,
    deadline: &Deadline,
    checking: Option<Checking>,
) -> Result<Report, Failure> {
    let analyses = catalogue::beside_program(registry::defaults(Purpose::Run), Settings::default());
    let analyses = analyses.beside_discipline(checking.is_some());
    let options = analyses.options(false);
    let symbolizer = SharedSymbolizer::new(&program.root);
    let sources = [program.root.clone()];
    let checking = checking.map(|c| NativeChecking::new(c, symbolizer.clone(), &sources));
    let mut watch =
        Watch::new(analyses.recorded, symbolizer.clone(), suppressions, Journal::default())
            .checking(checking);
    let setup = &program.setup;
    let mut command = Command::new(&setup.program);
    command.args(&setup.arguments).current_dir(&setup.directory);
    for name in &program.hidden {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let session = Session::start(command, program.form, program.libraries(), options)?;
    let pid = i32::try_from(session.pid()).ok().and_then(Pid::from_raw);
    let mut symbols = Symbols::default();
    let mut resolver = symbolizer;
    let patience = Duration::from_millis(setup.patience);
    let (ended, still) = channel::<()>();
    let stuck = Arc::clone(&watch.stuck);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            let begin = Instant::now();
            let mut stuck_since = None;
            while still.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
                if stuck.load(Ordering::Relaxed) {
                    stuck_since.get_or_insert_with(Instant::now);
                }
                let hopeless = stuck_since.is_some_and(|since| since.elapsed() > STUCK);
                if begin.elapsed() > patience || hopeless || deadline.stopped().is_some() {
                    // An error means that the program has ended in the meantime.
                    let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
                    return;
                }
            }
        });
        let outcome = session.finish(&mut symbols, &mut resolver, &mut watch);
        drop(ended);
        outcome
    })?;
    watch.ended(&setup.program, &outcome, &mut symbols);
    Ok(watch.finish(&symbols, &outcome).report)
}
