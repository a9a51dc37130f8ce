//! What the processes of a campaign say to each other, and when.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::told::{Entry, Teller};
use crate::turns::Turn;

/// The number of a process. The head has the number 0.
pub type Rank = u32;

/// What is new is told after this time at the latest, unless it is urgent.
const SOON: Duration = Duration::from_millis(50);
/// That nothing new happened is told this often at most, and at least.
const SOONEST: Duration = Duration::from_millis(20);
pub(super) const LATEST: Duration = Duration::from_secs(1);

/// Carries messages between the processes of a campaign.
pub trait Link {
    /// Sends a message, and does not wait until it has arrived.
    fn send(&mut self, to: Rank, message: &str);
    /// The next message that has come, and who sent it.
    fn receive(&mut self) -> Option<(Rank, String)>;
    /// Whether it is known that no more messages will come from there.
    fn is_gone(&mut self, rank: Rank) -> bool;
}

/// Keeps what a process told.
pub trait Log {
    /// Keeps a message, which is one line.
    fn write(&mut self, message: &str);
}

#[derive(Serialize, Deserialize, Debug)]
pub(super) enum Message {
    /// What the campaign begins with, from the head.
    Word(String),
    /// A search begins, with so many numbers, and these shards are the member's.
    Search { search: u32, schedules: u64, shards: Vec<u64> },
    /// The member shall also run this shard.
    Take { search: u32, shard: u64 },
    /// Nothing more of the search is needed.
    Over { search: u32 },
    /// The campaign is over.
    End,
    /// The sender is there.
    Alive,
    /// A process has begun a search. Only results of one that is the same can be used.
    Began { search: u32, identity: String },
    /// What happened in a shard, after so many results that were told before.
    Turns { search: u32, shard: u64, after: u64, entries: Vec<Entry> },
    /// The process has run all numbers of its shards.
    Complete { search: u32 },
    /// The process cannot go on.
    Lost(String),
}

impl Message {
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).expect("names and numbers serialise")
    }
}

/// Tells what happens in the shards of this process.
#[derive(Default)]
pub(super) struct Telling {
    search: u32,
    pub(super) tellers: BTreeMap<u64, Teller>,
    /// Something must not wait.
    urgent: bool,
    times: Option<(Instant, Instant)>,
    pub(super) log: Option<Box<dyn Log>>,
}

impl Telling {
    pub(super) fn begin(&mut self, search: u32, shards: &[u64]) {
        self.search = search;
        self.tellers = shards.iter().map(|&shard| (shard, Teller::default())).collect();
        self.urgent = false;
        self.times = Some((Instant::now(), Instant::now()));
    }

    pub(super) fn done(&mut self, shard: u64, turn: &Turn) {
        self.urgent |= self.tellers.entry(shard).or_default().add(turn);
    }

    pub(super) fn is_due(&self) -> bool {
        let Some((begun, last)) = self.times else { return false };
        let (any, new) = self.tellers.values().fold((false, false), |(any, new), teller| {
            let untold = teller.has_untold();
            (any | untold.0, new | untold.1)
        });
        let wait = (begun.elapsed() / 16).clamp(SOONEST, LATEST);
        self.urgent || any && last.elapsed() >= wait || new && last.elapsed() >= SOON
    }

    /// What was not told yet. It is in the log by then.
    pub(super) fn take(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        for (&shard, teller) in &mut self.tellers {
            let (after, entries) = teller.take();
            if !entries.is_empty() {
                messages.push(Message::Turns { search: self.search, shard, after, entries }.text());
            }
        }
        self.urgent = false;
        if let Some((_, last)) = &mut self.times {
            *last = Instant::now();
        }
        self.write(&messages);
        messages
    }

    pub(super) fn write(&mut self, messages: &[String]) {
        if let Some(log) = &mut self.log {
            messages.iter().for_each(|message| log.write(message));
        }
    }
}

/// What processes told before, as a link: it only delivers.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    messages: VecDeque<(Rank, String)>,
    left: HashMap<Rank, usize>,
}

impl Recorded {
    /// These messages, each with its sender, in the order in which each sender sent them.
    pub fn new(messages: impl IntoIterator<Item = (Rank, String)>) -> Recorded {
        let messages: VecDeque<(Rank, String)> = messages.into_iter().collect();
        let mut left = HashMap::new();
        messages.iter().for_each(|(rank, _)| *left.entry(*rank).or_default() += 1);
        Recorded { messages, left }
    }
}

impl Link for Recorded {
    fn send(&mut self, _: Rank, _: &str) {}

    fn receive(&mut self) -> Option<(Rank, String)> {
        let (rank, message) = self.messages.pop_front()?;
        self.left.entry(rank).and_modify(|left| *left -= 1);
        Some((rank, message))
    }

    fn is_gone(&mut self, rank: Rank) -> bool {
        self.left.get(&rank).is_none_or(|left| *left == 0)
    }
}
