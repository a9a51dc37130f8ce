//! Reads-from fuzzing: makes reads see other writes than before.
//!
//! Source: Wolff, Shi, Duck, Mathur and Roychoudhury, *Greybox fuzzing for concurrency testing*, ASPLOS 2024
//! (RFF). An *abstract schedule* is a set of one to four pairs of a read and the write that it shall see; see
//! [`Readings`]. The strategy holds back threads so that an execution follows the abstract schedule, and leaves
//! everything else to [`Pos`] or [`Surw`]: programs differ in which of the two is good at it.
//!
//! How: for a read that shall see a write, a thread that is about to read waits until that write is the last
//! one, and then no thread may write before it has read. For a read that shall see the beginning, every place
//! that is known to write what it reads waits until it has read. If every thread that could run would have to
//! wait, the pair that the chosen one waits for is given up. When a pair is first tried, and in half of the executions
//! after that, threads that began where the reading one did run only if no other thread can: then as much as possible
//! has changed of what the read does not concern.
//!
//! Like threads come to the same place. If a place was read more than once in an execution, a pair is first tried for
//! all of these threads: one that has read lets the others read the same before anything is written. Later that is
//! drawn. It ends when a thread comes to the read once more, or when no other thread can run.
//!
//! What is tried: every pair that an execution suggests, alone, those never seen before the others; then sets:
//! what led to a pair that was new, or a pair alone, with one pair more, mostly of a thread that began at the
//! same place. If a place reads often, its first read is meant, then its last (the end of a loop is where loops go
//! wrong), and then it is drawn which one. Searches side by side divide the pairs that all know ([`Share`]).
//!
//! Deviations: the paper also has sets of pairs that must not be, and draws sets by a power schedule.
//!
//! Guarantee: every schedule that [`Pos`] may show remains possible, because one execution in four has no
//! abstract schedule once every pair was tried. On programs whose reads each happen once, every pair that some
//! schedule shows is tried by itself.
//!
//! Cost: O(n) per choice, and that of [`Readings`].

use rustc_hash::FxHashMap;
use selvedge_model::{Event, SiteId, ThreadId};

use crate::entry::Entry;
use crate::readings::{Pair, Readings, Touch};
use crate::{Choice, Pending, Pos, Rng, Strategy, Surw};

/// The largest number of pairs in an abstract schedule.
pub const PAIRS: usize = 4;
/// How many abstract schedules that showed something new are remembered.
const REMEMBERED: usize = 32;
/// A pair that was tried so often and never seen is tried less.
const FUTILE: u32 = 2;

/// A pair to try, and what is known of it. `S` is a place: an id of one executor, or a site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flip<S = SiteId> {
    /// Where it reads.
    pub read: S,
    /// The write that the read shall see; none for what was there at the beginning.
    pub write: Option<S>,
    /// Where the reading thread was started.
    pub began: Option<S>,
    /// Whether an execution has shown the pair.
    pub seen: bool,
    /// How often executions have aimed at it.
    pub tried: u32,
    /// How often one execution has come to the read at most.
    pub times: u32,
}

/// Adds what executions told of pairs to what is known of them: each of `news` counts the executions since it was
/// last told.
pub fn learn<S: PartialEq>(known: &mut Vec<Flip<S>>, news: impl IntoIterator<Item = Flip<S>>) {
    for new in news {
        let is_same = |f: &&mut Flip<S>| f.read == new.read && f.write == new.write;
        match known.iter_mut().find(is_same) {
            Some(flip) => {
                flip.seen |= new.seen;
                flip.tried = flip.tried.saturating_add(new.tried);
                flip.times = flip.times.max(new.times);
            }
            None => known.push(new),
        }
    }
}

/// Which of several searches of one program this is. Together they try each pair that all of them know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Its number, less than `of`.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl Default for Share {
    fn default() -> Share {
        Share { number: 0, of: 1 }
    }
}

impl<S> Flip<S> {
    /// The same with its places in other terms.
    pub fn map<T>(&self, mut place: impl FnMut(&S) -> T) -> Flip<T> {
        Flip {
            read: place(&self.read),
            write: self.write.as_ref().map(&mut place),
            began: self.began.as_ref().map(&mut place),
            seen: self.seen,
            tried: self.tried,
            times: self.times,
        }
    }
}

fn promising(flip: &Flip) -> bool {
    flip.seen || flip.tried < FUTILE
}

/// One pair of the abstract schedule of this execution.
#[derive(Clone, Debug)]
struct Aim {
    read: SiteId,
    write: Option<SiteId>,
    /// How many reads at the place to let pass.
    skip: u32,
    /// Where the threads began that let all others run first.
    late: Option<SiteId>,
    /// Whether the reads of all threads shall see the write, and not the first one only.
    wide: bool,
    /// The threads that have read, if it is wide.
    done: Vec<ThreadId>,
    /// Whether it is still to be followed.
    open: bool,
}

/// Makes reads see other writes.
#[allow(missing_debug_implementations)]
pub struct ReadsFrom {
    rng: Rng,
    /// One of them decides what the abstract schedule leaves open.
    rest: Vec<Box<dyn Strategy + Send>>,
    /// The one that does in this execution.
    turn: usize,
    /// Which one does in the next execution, and whether that has an abstract schedule; none if it is drawn.
    planned: Option<(usize, bool)>,
    readings: Readings,
    flips: Vec<Flip>,
    /// The same as they were when they were last told.
    told: Vec<Flip>,
    /// Of each pair in `flips`: whether another search has it for its own.
    elsewhere: Vec<bool>,
    /// The place of each pair in `flips`.
    index: FxHashMap<Pair, usize>,
    /// The places that write what a place reads.
    writers: FxHashMap<SiteId, Vec<SiteId>>,
    /// Abstract schedules, as indices of `flips`, that showed a pair for the first time.
    fruitful: Vec<Vec<usize>>,
    /// The abstract schedule of this execution.
    chosen: Vec<usize>,
    aims: Vec<Aim>,
    free: Vec<ThreadId>,
}

impl Default for ReadsFrom {
    fn default() -> ReadsFrom {
        ReadsFrom::over([Box::<Pos>::default(), Box::<Surw>::default()])
    }
}

impl ReadsFrom {
    /// Leaves what an abstract schedule does not decide to other strategies, to one of them in each execution.
    pub fn over<const N: usize>(rest: [Box<dyn Strategy + Send>; N]) -> ReadsFrom {
        assert!(N > 0, "something decides the rest");
        ReadsFrom {
            rng: Rng::default(),
            rest: rest.into(),
            turn: 0,
            planned: None,
            readings: Readings::default(),
            flips: Vec::new(),
            told: Vec::new(),
            elsewhere: Vec::new(),
            index: FxHashMap::default(),
            writers: FxHashMap::default(),
            fruitful: Vec::new(),
            chosen: Vec::new(),
            aims: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The next execution leaves the rest to the strategy with this number, and has no abstract schedule unless it
    /// `aims`.
    pub(crate) fn plan(&mut self, rest: usize, aims: bool) {
        self.planned = Some((rest, aims));
    }

    /// The strategies that are told of this execution.
    fn listeners(&mut self) -> impl Iterator<Item = &mut Box<dyn Strategy + Send>> {
        let turn = self.turn;
        let rest = self.rest.iter_mut().enumerate();
        rest.filter(move |(i, s)| (*i == turn || s.learns()) && s.follows_steps()).map(|(_, s)| s)
    }

    /// Knows these pairs from other executions.
    pub fn knowing(mut self, flips: impl IntoIterator<Item = Flip>) -> ReadsFrom {
        for flip in flips {
            let at = self.add((flip.read, flip.write), flip.began);
            self.flips[at] = flip;
        }
        self.told.clone_from(&self.flips);
        self
    }

    /// Leaves it to the other searches to try their part of the pairs known so far, alone. Each has as many of those that
    /// were never seen, which come first.
    pub fn sharing(mut self, share: Share) -> ReadsFrom {
        let mut dealt = [0, 0];
        for (flip, elsewhere) in self.flips.iter().zip(&mut self.elsewhere) {
            let next = &mut dealt[usize::from(flip.seen)];
            *elsewhere = *next % share.of != share.number;
            *next += 1;
        }
        self
    }

    /// A place that reads often is tried at its first read and at its last.
    fn is_untried(&self, at: usize) -> bool {
        let Flip { tried, times, .. } = self.flips[at];
        !self.elsewhere[at] && tried < if times > 1 { 2 } else { 1 }
    }

    /// The pairs that executions so far have suggested, in the order in which they did.
    pub fn flips(&self) -> &[Flip] {
        &self.flips
    }

    /// The abstract schedule of the execution that began last.
    pub fn aimed(&self) -> impl Iterator<Item = Pair> + '_ {
        self.chosen.iter().map(|&i| (self.flips[i].read, self.flips[i].write))
    }

    /// What the reads of the execution that began last saw.
    pub fn readings(&self) -> &Readings {
        &self.readings
    }

    fn add(&mut self, pair: Pair, began: Option<SiteId>) -> usize {
        if let Some(&at) = self.index.get(&pair) {
            return at;
        }
        let (read, write) = pair;
        if let Some(write) = write {
            let writers = self.writers.entry(read).or_default();
            if !writers.contains(&write) {
                writers.push(write);
            }
        }
        self.index.insert(pair, self.flips.len());
        self.flips.push(Flip { read, write, began, seen: false, tried: 0, times: 1 });
        self.elsewhere.push(false);
        self.flips.len() - 1
    }

    /// Draws one of the pairs that satisfy `wanted`.
    fn draw(&mut self, wanted: impl Fn(&Flip) -> bool) -> Option<usize> {
        self.draw_at(|search, at| wanted(&search.flips[at]))
    }

    fn draw_at(&mut self, wanted: impl Fn(&ReadsFrom, usize) -> bool) -> Option<usize> {
        let fit: Vec<usize> = (0..self.flips.len()).filter(|&i| wanted(self, i)).collect();
        match fit.len() {
            0 => None,
            n => Some(fit[self.rng.below(n)]),
        }
    }

    /// Chooses the abstract schedule of the next execution.
    fn select(&mut self) -> Vec<usize> {
        let untried = self
            .draw_at(|s, at| s.is_untried(at) && s.flips[at].tried == 0 && !s.flips[at].seen)
            .or_else(|| self.draw_at(|s, at| s.is_untried(at) && s.flips[at].tried == 0))
            .or_else(|| self.draw_at(ReadsFrom::is_untried));
        if let Some(flip) = untried {
            return vec![flip];
        }
        match self.rng.below(8) {
            0 | 1 => Vec::new(),
            // What was never reached so far need not be impossible.
            2 => self.draw(|_| true).into_iter().collect(),
            3 => self.draw(promising).into_iter().collect(),
            _ => self.combined(),
        }
    }

    /// A set that showed something new, or one pair, with one pair more.
    fn combined(&mut self) -> Vec<usize> {
        let mut set = match self.fruitful.len() {
            n if n > 0 && self.rng.chance(0.5) => self.fruitful[self.rng.below(n)].clone(),
            _ => self.draw(promising).into_iter().collect(),
        };
        let began = set.first().map(|&i| self.flips[i].began);
        let near = self.rng.chance(0.75);
        let reads: Vec<SiteId> = set.iter().map(|&i| self.flips[i].read).collect();
        let other = |f: &Flip| promising(f) && !reads.contains(&f.read);
        let more = self
            .draw(|f| other(f) && (!near || Some(f.began) == began))
            .or_else(|| self.draw(other));
        if set.len() < PAIRS {
            set.extend(more);
        }
        set
    }

    /// The pair of the abstract schedule for which a thread has to wait.
    fn held_by(&self, pending: &Pending) -> Option<usize> {
        let touch = Touch::of(pending.step)?;
        self.aims.iter().position(|aim| aim.open && self.holds(aim, pending.site, touch))
    }

    fn holds(&self, aim: &Aim, site: SiteId, touch: Touch) -> bool {
        let last = self.readings.last(touch.object);
        if touch.reads && site == aim.read {
            // What was there at the beginning does not come back.
            return aim.skip == 0 && last != aim.write && aim.write.is_some();
        }
        touch.writes
            && match aim.write {
                // A like thread that writes the same leaves the pair as it is.
                Some(write) => last == Some(write) && site != write,
                None => {
                    let writers = self.writers.get(&aim.read);
                    last.is_none() && writers.is_some_and(|w| w.contains(&site))
                }
            }
    }

    /// A thread takes a step: pairs are followed by it, or cannot be any more.
    fn settle(&mut self, thread: ThreadId, pending: &Pending) {
        let Some(touch) = Touch::of(pending.step).filter(|t| t.reads) else { return };
        let last = self.readings.last(touch.object);
        for aim in self.aims.iter_mut().filter(|a| a.open && a.read == pending.site) {
            if aim.skip > 0 {
                aim.skip -= 1;
            } else if aim.wide && last == aim.write && !aim.done.contains(&thread) {
                aim.done.push(thread);
            } else {
                // Seen or not: the read is over.
                aim.open = aim.write.is_none() && last.is_some();
            }
        }
    }
}

impl Strategy for ReadsFrom {
    fn begin(&mut self, mut rng: Rng) -> bool {
        let aims;
        (self.turn, aims) =
            self.planned.take().unwrap_or_else(|| (rng.below(self.rest.len()), true));
        let seed = rng.next_u64();
        if !self.rest[self.turn].begin(Rng::new(seed)) {
            return false;
        }
        let turn = self.turn;
        for (_, other) in self.rest.iter_mut().enumerate().filter(|(i, s)| *i != turn && s.learns())
        {
            other.begin(Rng::new(seed));
        }
        self.rng = rng;
        self.readings.clear();
        self.chosen = if aims { self.select() } else { Vec::new() };
        self.aims.clear();
        for &at in &self.chosen {
            let Flip { read, write, began, times, ref mut tried, .. } = self.flips[at];
            *tried += 1;
            let late = if *tried == 1 || self.rng.chance(0.5) { began } else { None };
            let skip = match (times, *tried) {
                (0 | 1, _) | (_, 1) => 0,
                (n, 2) => n - 1,
                (n, _) => match self.rng.below(3) {
                    0 => 0,
                    1 => n - 1,
                    _ => self.rng.number(n),
                },
            };
            let wide = match *tried {
                1 => times > 1,
                2 if times > 1 => false,
                _ => self.rng.chance(0.5),
            };
            self.aims.push(Aim { read, write, skip, late, wide, done: Vec::new(), open: true });
        }
        true
    }

    fn number(&mut self, below: u32) -> u32 {
        self.rest[self.turn].number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        if !self.aims.iter().any(|aim| aim.open) {
            return self.rest[self.turn].choose(choice);
        }
        let mut free = std::mem::take(&mut self.free);
        free.clear();
        free.extend(
            choice.enabled.iter().copied().filter(|&t| self.held_by(choice.next(t)).is_none()),
        );
        // A thread that yields, alone, waits for one that is held back.
        let yields = |t: &ThreadId| choice.yielding && choice.running == Some(*t);
        if free.iter().all(yields) {
            free.clear();
        }
        let late = |t: &ThreadId| {
            let began = self.readings.began(*t);
            began.is_some() && self.aims.iter().any(|aim| aim.open && aim.late == began)
        };
        if free.iter().any(|t| !late(t)) {
            free.retain(|t| !late(t));
        }
        let thread = match free[..] {
            [] => {
                let thread = self.rest[self.turn].choose(choice);
                while let Some(aim) = self.held_by(choice.next(thread)) {
                    self.aims[aim].open = false;
                }
                thread
            }
            [only] => only,
            _ => self.rest[self.turn].choose(&Choice { enabled: &free, ..*choice }),
        };
        self.free = free;
        thread
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.listeners().for_each(|s| s.step(thread, pending));
        self.settle(thread, &pending[thread.index()]);
        self.readings.step(thread, &pending[thread.index()]);
    }

    fn observe(&mut self, event: &Event) {
        self.listeners().for_each(|s| s.observe(event));
        self.readings.observe(event);
    }

    fn learnt(&mut self) -> Vec<Flip> {
        let mut news = Vec::new();
        for (at, flip) in self.flips.iter().enumerate() {
            match self.told.get_mut(at) {
                Some(told) if told == flip => {}
                Some(told) => {
                    news.push(Flip { tried: flip.tried - told.tried, ..flip.clone() });
                    told.clone_from(flip);
                }
                None => {
                    news.push(flip.clone());
                    self.told.push(flip.clone());
                }
            }
        }
        news
    }

    fn end(&mut self, pending: &[Pending]) {
        let turn = self.turn;
        let ends = |(i, s): &(usize, &mut Box<dyn Strategy + Send>)| *i == turn || s.learns();
        self.rest.iter_mut().enumerate().filter(ends).for_each(|(_, s)| s.end(pending));
        for open in self.readings.open() {
            self.add(open.pair, open.began);
        }
        let mut is_new = false;
        for at in 0..self.readings.seen().len() {
            let pair = self.readings.seen()[at];
            // A pair that was not suggested is one that threads cannot change.
            if let Some(&flip) = self.index.get(&pair) {
                let flip = &mut self.flips[flip];
                is_new |= !flip.seen;
                flip.seen = true;
                flip.times = flip.times.max(self.readings.times(pair.0));
            }
        }
        if is_new && !self.chosen.is_empty() {
            if self.fruitful.len() == REMEMBERED {
                self.fruitful.remove(0);
            }
            self.fruitful.push(self.chosen.clone());
        }
    }
}

/// The strategy of `reads-from`.
pub const ENTRY: Entry = Entry {
    name: "reads-from",
    about: "makes reads see other writes than before, and acquisitions follow others",
    argument: None,
    systematic: false,
    new: |_| Box::<ReadsFrom>::default(),
};
