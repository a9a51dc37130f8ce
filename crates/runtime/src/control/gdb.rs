//! A controlled execution under gdb: the same schedule, and a person who looks around in between.
//!
//! gdb starts the program, which finds the memory that it shares with us like any other: descriptors are
//! inherited through gdb. We go on deciding; while gdb has stopped the program, it does not ask us. On a
//! deadlock we interrupt the program, so that gdb takes over.
//!
//! gdb must not have a shell between itself and the program. That it lets all threads go on together is
//! its default; `set scheduler-locking on` would keep threads from running whose turn it is.

use std::process::Command;

use super::{Controlled, Debugger};

/// Signals that belong to the program or to the C library: gdb does not stop at them.
const PASSED: &str = "handle SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGVTALRM SIGPROF SIG32 SIG33 SIG34 \
                      nostop noprint pass";

impl Controlled {
    /// The command that runs gdb on the program.
    pub(super) fn under(&self, debugger: &Debugger) -> Command {
        let mut command = Command::new("gdb");
        command.args(["-q", "-nx"]);
        if debugger.batch {
            command.arg("-batch");
        }
        let mut run = |line: &str| {
            command.args(["-ex", line]);
        };
        for line in [
            "set confirm off",
            "set pagination off",
            "set breakpoint pending on",
            "set startup-with-shell off",
            "set debuginfod enabled off",
            PASSED,
        ] {
            run(line);
        }
        // The variables that load the runtime into the program must not load it into gdb.
        let mut inside = Command::new(&self.program);
        self.settings.form.put_into(&mut inside, &self.libraries);
        for (name, value) in inside.get_envs() {
            let value = value.unwrap_or_default().to_string_lossy();
            run(&format!("set environment {} {value}", name.to_string_lossy()));
        }
        debugger.before.iter().for_each(|line| run(line));
        run("run");
        debugger.after.iter().for_each(|line| run(line));
        command.arg("--args").arg(&self.program).args(&self.arguments);
        command
    }
}
