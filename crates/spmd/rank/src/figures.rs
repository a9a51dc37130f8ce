//! What the analysis of a rank looked at, kept and sent, counted for `cargo xtask bench spmd --growth`.
//!
//! The counts are plain additions and always made; a rank tells them at its end if it is asked to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What one rank has counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Accesses to memory of windows, and of buffers in use: each piece of a call, and each load and store that the
    /// runtime's filter let pass.
    pub accesses: u64,
    /// What is left of them when they are distributed: intervals with one access each, those of own memory included.
    pub distributed: u64,
    /// Messages with accesses to other ranks.
    pub messages: u64,
    /// Their bytes,
    pub sent: u64,
    /// and the most in one phase.
    pub most_sent: u64,
    /// Messages with accesses from other ranks,
    pub received_messages: u64,
    /// and their bytes.
    pub received: u64,
    /// Phases in which logs were exchanged.
    pub logs: u64,
    /// Bytes of logs of this rank,
    pub logs_sent: u64,
    /// and of all ranks, which each one receives.
    pub logs_received: u64,
    /// One-sided calls of the program to other ranks: number and bytes by target.
    pub calls: BTreeMap<u32, (u64, u64)>,
}

impl Figures {
    /// The figures as a line for the host, with the most bytes that the analysis had allocated at once.
    pub fn line(&self, rank: u32, phases: u32, state: u64) -> String {
        let mut line =
            format!("{{\"kind\":\"figures\",\"rank\":{rank},\"phases\":{phases},\"state\":{state}");
        let counts = [
            ("accesses", self.accesses),
            ("distributed", self.distributed),
            ("messages", self.messages),
            ("sent", self.sent),
            ("most_sent", self.most_sent),
            ("received_messages", self.received_messages),
            ("received", self.received),
            ("logs", self.logs),
            ("logs_sent", self.logs_sent),
            ("logs_received", self.logs_received),
        ];
        for (name, count) in counts {
            let _ = write!(line, ",\"{name}\":{count}");
        }
        let calls: Vec<String> = self
            .calls
            .iter()
            .map(|(to, (calls, bytes))| format!("[{to},{calls},{bytes}]"))
            .collect();
        let _ = write!(line, ",\"calls\":[{}]}}", calls.join(","));
        line
    }
}
