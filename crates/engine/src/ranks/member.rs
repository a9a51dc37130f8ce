//! A process that works for the head.

use std::time::{Duration, Instant};

use super::wire::{LATEST, Link, Log, Message, Recorded, Telling};
use crate::deal::Deal;
use crate::shards::{News, Others};
use crate::told::Teller;
use crate::turns::Turn;

/// A member whose head says nothing for so long ends. The head speaks every second while executions run.
const ORPHANED: Duration = Duration::from_secs(30);
/// How long to wait between looking for messages where nothing else is to do.
const PAUSE: Duration = Duration::from_millis(2);

/// A process that works for the head.
#[allow(missing_debug_implementations)]
pub struct Member {
    /// Without a link, the shards are fixed and what happens is only logged.
    link: Option<Box<dyn Link>>,
    /// The number of this process, and of how many.
    rank: (u64, u64),
    search: Option<u32>,
    mine: Vec<u64>,
    deal: Deal,
    telling: Telling,
    spoken: Instant,
    heard: Instant,
    ended: bool,
}

impl Member {
    /// A member whose head is reached by a link.
    pub fn new(link: Box<dyn Link>) -> Member {
        Member {
            link: Some(link),
            rank: (0, 1),
            search: None,
            mine: Vec::new(),
            deal: Deal::one(0),
            telling: Telling::default(),
            spoken: Instant::now(),
            heard: Instant::now(),
            ended: false,
        }
    }

    /// Number `rank` of `of` members that know nothing of each other.
    pub fn by_hand((rank, of): (u64, u64), log: Box<dyn Log>) -> Member {
        let unlinked = Member::new(Box::new(Recorded::default())).logged(log);
        Member { link: None, rank: (rank, of), ..unlinked }
    }

    /// Keeps what this process tells.
    pub fn logged(mut self, log: Box<dyn Log>) -> Member {
        self.telling.log = Some(log);
        self
    }

    /// Whether there is a head to talk to.
    pub fn is_linked(&self) -> bool {
        self.link.is_some()
    }

    /// Waits for what the campaign begins with. `None` if there will be no campaign.
    pub fn word(&mut self, stop: impl Fn() -> bool) -> Option<String> {
        self.wait(stop, |_, message| match message {
            Message::Word(word) => Some(word),
            _ => None,
        })
    }

    /// Waits until a search begins: how many numbers it has. A member without a link takes part in one, which has as
    /// many as it thinks. `None` if there are no more.
    pub fn next(&mut self, planned: u64, stop: impl Fn() -> bool) -> Option<u64> {
        if self.link.is_none() {
            let first = self.search.is_none();
            self.search = Some(0);
            return first.then_some(planned);
        }
        self.wait(stop, |member, message| match message {
            Message::Search { search, schedules, shards } => {
                (member.search, member.mine) = (Some(search), shards);
                Some(schedules)
            }
            _ => None,
        })
    }

    fn wait<T>(
        &mut self,
        stop: impl Fn() -> bool,
        wanted: impl Fn(&mut Member, Message) -> Option<T>,
    ) -> Option<T> {
        while !self.ended && !stop() {
            match self.receive() {
                Some(Message::End) => self.ended = true,
                Some(message) => {
                    if let Some(found) = wanted(self, message) {
                        return Some(found);
                    }
                }
                None if self.is_orphaned() => self.ended = true,
                None => std::thread::sleep(PAUSE),
            }
        }
        None
    }

    fn is_orphaned(&mut self) -> bool {
        self.link.as_mut().is_some_and(|link| link.is_gone(0))
    }

    fn receive(&mut self) -> Option<Message> {
        self.speak();
        let (_, text) = self.link.as_mut()?.receive()?;
        self.heard = Instant::now();
        serde_json::from_str(&text).ok()
    }

    fn speak(&mut self) {
        if self.spoken.elapsed() > LATEST {
            self.send(&[Message::Alive.text()]);
        }
    }

    fn send(&mut self, messages: &[String]) {
        if let Some(link) = &mut self.link {
            messages.iter().for_each(|message| link.send(0, message));
        }
        self.spoken = Instant::now();
    }

    /// The search begins.
    pub(crate) fn begin(&mut self, identity: String, deal: Deal) {
        self.deal = deal;
        if self.link.is_none() {
            let (rank, of) = self.rank;
            self.mine = deal.busy().filter(|shard| shard % of == rank).collect();
        }
        self.heard = Instant::now();
        let search = self.search.unwrap_or(0);
        self.telling.begin(search, &self.mine);
        let began = [Message::Began { search, identity }.text()];
        self.telling.write(&began);
        self.send(&began);
    }

    /// The search is over, and whether this process ran all of its numbers.
    pub(crate) fn over(&mut self, complete: bool) {
        let untold = self.telling.take();
        self.send(&untold);
        if complete && self.link.is_none() {
            let search = self.search.unwrap_or(0);
            self.telling.write(&[Message::Complete { search }.text()]);
        }
    }

    /// This process cannot go on.
    pub fn lost(&mut self, why: &str) {
        self.send(&[Message::Lost(why.to_owned()).text()]);
    }
}

impl Others<Turn> for Member {
    fn mine(&self, _: &Deal) -> Vec<u64> {
        self.mine.clone()
    }

    fn decides(&self) -> bool {
        false
    }

    fn done(&mut self, number: u64, turn: &Turn) {
        self.telling.done(self.deal.shard(number), turn);
    }

    fn exhausted(&mut self, shard: u64) {
        self.telling.tellers.entry(shard).or_default().exhaust();
    }

    fn poll(&mut self) -> Vec<News<Turn>> {
        if self.telling.is_due() {
            let untold = self.telling.take();
            self.send(&untold);
        }
        let mut news = Vec::new();
        while let Some(message) = self.receive() {
            match message {
                Message::Take { search, shard } if Some(search) == self.search => {
                    self.telling.tellers.insert(shard, Teller::default());
                    news.push(News::Take(shard));
                }
                Message::Over { search } if Some(search) == self.search => news.push(News::Over),
                Message::End => {
                    self.ended = true;
                    news.push(News::Over);
                }
                _ => {}
            }
        }
        if self.link.is_some() && self.heard.elapsed() > ORPHANED || self.is_orphaned() {
            self.ended = true;
            news.push(News::Over);
        }
        news
    }

    fn goes_on(&mut self) -> bool {
        let untold = self.telling.take();
        if !untold.is_empty() {
            self.send(&untold);
        }
        self.link.is_some()
    }
}
