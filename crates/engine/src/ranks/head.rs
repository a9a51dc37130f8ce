//! The process that holds the campaign.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::wire::{LATEST, Link, Log, Message, Rank, Telling};
use crate::deal::Deal;
use crate::shards::{News, Others};
use crate::told::{Entry, Hearer};
use crate::turns::Turn;

/// A member that says nothing for so long counts as gone. Members speak every second.
const SILENCE: Duration = Duration::from_secs(5);

/// What the head knows of a member.
#[derive(Debug)]
struct Known {
    heard: Instant,
    /// Why nothing is expected of it, if that is so.
    gone: Option<Absence>,
    /// Whether it said that its search is the head's.
    same: bool,
}

/// Why the head goes on without a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Absence {
    /// It said nothing for too long, or the link knows that it is gone.
    Silent,
    /// It said why.
    Lost(String),
    /// It observed something else, so its executions are others.
    Other,
}

/// How much the head received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Messages with results.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The results that they stand for.
    pub results: u64,
}

/// What one member told of one shard.
#[derive(Debug, Default)]
struct Stream {
    hearer: Hearer,
    results: u64,
}

/// The process that holds the campaign.
#[allow(missing_debug_implementations)]
pub struct Head {
    link: Box<dyn Link>,
    members: BTreeMap<Rank, Known>,
    /// Whether shards of members that are gone are run again.
    completes: bool,
    /// Whether this process runs shards from the beginning.
    works: bool,
    search: Option<u32>,
    identity: String,
    deal: Deal,
    mine: Vec<u64>,
    /// Who runs each shard that is not complete.
    given: BTreeMap<u64, BTreeSet<Rank>>,
    streams: HashMap<(Rank, u64), Stream>,
    /// Messages of searches that have not begun.
    later: Vec<(Rank, u32, Message)>,
    news: Vec<News<Turn>>,
    telling: Telling,
    spoken: Instant,
    absences: Vec<(Rank, Absence)>,
    /// Shards of which results are missing, as nobody ran them.
    missing: BTreeSet<u64>,
    received: Received,
}

impl Head {
    /// The head of a campaign with these members, who do what it says.
    pub fn new(link: Box<dyn Link>, members: impl IntoIterator<Item = Rank>) -> Head {
        let known = || Known { heard: Instant::now(), gone: None, same: false };
        Head {
            link,
            members: members.into_iter().map(|rank| (rank, known())).collect(),
            completes: true,
            works: true,
            search: None,
            identity: String::new(),
            deal: Deal::one(0),
            mine: Vec::new(),
            given: BTreeMap::new(),
            streams: HashMap::new(),
            later: Vec::new(),
            news: Vec::new(),
            telling: Telling::default(),
            spoken: Instant::now(),
            absences: Vec::new(),
            missing: BTreeSet::new(),
            received: Received::default(),
        }
    }

    /// The head of a campaign whose members have told everything already. If it `completes`, it runs what is missing.
    pub fn afterwards(
        link: Box<dyn Link>,
        members: impl IntoIterator<Item = Rank>,
        completes: bool,
    ) -> Head {
        Head { completes, works: false, ..Head::new(link, members) }
    }

    /// Keeps what this process runs itself.
    pub fn logged(mut self, log: Box<dyn Log>) -> Head {
        self.telling.log = Some(log);
        self
    }

    /// Tells all members what the campaign begins with.
    pub fn begin_with(&mut self, word: &str) {
        self.send_all(&Message::Word(word.to_owned()));
    }

    /// Tells all members that the campaign is over.
    pub fn end(&mut self) {
        self.send_all(&Message::End);
    }

    /// The members that the head went on without, since this was last called.
    pub fn absences(&mut self) -> Vec<(Rank, Absence)> {
        std::mem::take(&mut self.absences)
    }

    /// The shards of which results are missing.
    pub fn missing(&self) -> &BTreeSet<u64> {
        &self.missing
    }

    /// How much was received.
    pub fn received(&self) -> Received {
        self.received
    }

    fn send_all(&mut self, message: &Message) {
        let text = message.text();
        for &rank in self.members.keys() {
            self.link.send(rank, &text);
        }
        self.spoken = Instant::now();
    }

    /// A search begins. Every member gets its part.
    pub(crate) fn begin(&mut self, identity: String, deal: Deal) {
        let search = self.search.map_or(0, |search| search + 1);
        self.search = Some(search);
        (self.identity, self.deal) = (identity, deal);
        (self.streams, self.news) = Default::default();
        let present: Vec<Rank> = self.present().collect();
        let workers: Vec<Rank> = match self.works {
            true => std::iter::once(0).chain(present).collect(),
            false => Vec::new(),
        };
        let everybody: BTreeSet<Rank> = self.members.keys().copied().collect();
        let of = |shard: u64| match self.works {
            true => BTreeSet::from([workers[shard as usize % workers.len()]]),
            false => everybody.clone(),
        };
        self.given = deal.busy().map(|shard| (shard, of(shard))).collect();
        self.mine = self.given.iter().filter(|(_, by)| by.contains(&0)).map(|(s, _)| *s).collect();
        self.telling.begin(search, &self.mine);
        self.telling.write(&[self.began(search)]);
        for (&rank, known) in &mut self.members {
            known.same = false;
            known.heard = Instant::now();
            let mine = |(shard, by): (&u64, &BTreeSet<Rank>)| by.contains(&rank).then_some(*shard);
            let shards = self.given.iter().filter_map(mine).collect();
            let message = Message::Search { search, schedules: deal.numbers, shards };
            self.link.send(rank, &message.text());
        }
        let later = std::mem::take(&mut self.later);
        later.into_iter().for_each(|(rank, _, message)| self.hear(rank, message));
    }

    fn began(&self, search: u32) -> String {
        Message::Began { search, identity: self.identity.clone() }.text()
    }

    fn present(&self) -> impl Iterator<Item = Rank> {
        self.members.iter().filter(|(_, known)| known.gone.is_none()).map(|(rank, _)| *rank)
    }

    /// The search is over.
    pub(crate) fn over(&mut self) {
        self.telling.take();
        let search = self.search.unwrap_or(0);
        self.send_all(&Message::Over { search });
    }

    fn hear(&mut self, rank: Rank, message: Message) {
        let search = match &message {
            Message::Began { search, .. } | Message::Turns { search, .. } => Some(*search),
            _ => None,
        };
        if let Some(search) = search
            && search != self.search.unwrap_or(0)
        {
            if search > self.search.unwrap_or(0) {
                self.later.push((rank, search, message));
            }
            return;
        }
        match message {
            Message::Began { identity, .. } => {
                let same = identity == self.identity;
                self.members.entry(rank).and_modify(|known| known.same = same);
                if !same {
                    self.lose(rank, Absence::Other);
                }
            }
            Message::Turns { shard, after, entries, .. } => {
                let can_use = |known: &Known| known.same && known.gone.is_none();
                let is_of_use = self.members.get(&rank).is_some_and(can_use);
                if is_of_use && self.turns(rank, (shard, after), entries).is_none() {
                    self.lose(rank, Absence::Lost("its messages make no sense".to_owned()));
                }
            }
            Message::Lost(why) => self.lose(rank, Absence::Lost(why)),
            _ => {}
        }
    }

    /// What a member tells of a shard. `None` if that makes no sense.
    fn turns(&mut self, rank: Rank, (shard, after): (u64, u64), entries: Vec<Entry>) -> Option<()> {
        if shard >= self.deal.shards() {
            return None;
        }
        self.received.messages += 1;
        let stream = self.streams.entry((rank, shard)).or_default();
        if stream.results != after {
            return None;
        }
        for entry in entries {
            let Some(turns) = stream.hearer.hear(entry).ok()? else {
                self.given.remove(&shard);
                self.news.push(News::Exhausted(shard));
                continue;
            };
            for turn in turns {
                let number = self.deal.number(shard, stream.results);
                stream.results += 1;
                self.received.results += 1;
                self.news.push(News::Done(number, turn));
            }
        }
        if self.deal.number(shard, stream.results) >= self.deal.numbers {
            self.given.remove(&shard);
        }
        Some(())
    }

    /// Goes on without a member. Its shards are given to those who have the least to do.
    fn lose(&mut self, rank: Rank, why: Absence) {
        let Some(known) = self.members.get_mut(&rank) else { return };
        if known.gone.is_none() {
            known.gone = Some(why.clone());
            self.absences.push((rank, why));
        }
        let left: Vec<u64> = self
            .given
            .iter_mut()
            .filter_map(|(shard, by)| (by.remove(&rank) && by.is_empty()).then_some(*shard))
            .collect();
        for shard in left {
            if !self.completes {
                self.given.remove(&shard);
                self.missing.insert(shard);
                self.news.push(News::Exhausted(shard));
                continue;
            }
            let load = |rank: &Rank| self.given.values().filter(|by| by.contains(rank)).count();
            let able = std::iter::once(0).chain(self.present().filter(|_| self.works));
            let next = able.min_by_key(|rank| (load(rank), *rank == 0)).unwrap_or(0);
            self.given.insert(shard, BTreeSet::from([next]));
            match next {
                0 => self.news.push(News::Take(shard)),
                _ => {
                    let search = self.search.unwrap_or(0);
                    self.link.send(next, &Message::Take { search, shard }.text());
                }
            }
        }
    }

    /// Takes in what has come.
    fn listen(&mut self) {
        while let Some((rank, text)) = self.link.receive() {
            let Some(known) = self.members.get_mut(&rank) else { continue };
            known.heard = Instant::now();
            if known.gone == Some(Absence::Silent) {
                known.gone = None;
            }
            match serde_json::from_str(&text) {
                Ok(message) => {
                    if matches!(message, Message::Turns { .. }) {
                        self.received.bytes += text.len() as u64;
                    }
                    self.hear(rank, message);
                }
                Err(error) => self.lose(rank, Absence::Lost(error.to_string())),
            }
        }
    }
}

impl Others<Turn> for Head {
    fn mine(&self, _: &Deal) -> Vec<u64> {
        self.mine.clone()
    }

    fn decides(&self) -> bool {
        true
    }

    fn done(&mut self, number: u64, turn: &Turn) {
        if self.telling.log.is_some() {
            self.telling.done(self.deal.shard(number), turn);
        }
        if self.deal.next(number) >= self.deal.numbers {
            self.given.remove(&self.deal.shard(number));
        }
    }

    fn exhausted(&mut self, shard: u64) {
        self.given.remove(&shard);
        self.telling.tellers.entry(shard).or_default().exhaust();
    }

    fn poll(&mut self) -> Vec<News<Turn>> {
        if self.telling.is_due() {
            self.telling.take();
        }
        self.listen();
        let mut lost = Vec::new();
        for (&rank, known) in &self.members {
            let is_silent = self.works && known.heard.elapsed() > SILENCE;
            let is_expected = self.given.values().any(|by| by.contains(&rank));
            match &known.gone {
                Some(why) if is_expected => lost.push((rank, why.clone())),
                None if is_silent || self.link.is_gone(rank) => lost.push((rank, Absence::Silent)),
                _ => {}
            }
        }
        lost.into_iter().for_each(|(rank, why)| self.lose(rank, why));
        if self.spoken.elapsed() > LATEST {
            self.send_all(&Message::Alive);
        }
        std::mem::take(&mut self.news)
    }

    fn goes_on(&mut self) -> bool {
        !self.given.is_empty() || !self.news.is_empty()
    }
}
