//! Runs numbered executions on all cores, and on other processes, and delivers the results in the order of the numbers.
//!
//! A strategy learns from one execution for the next, so its executions must run one after the other.
//! Therefore executions are divided among *shards*, each with its own state (a strategy, or a prediction to
//! attempt): a shard runs its numbers ([`Deal`]) in their order. Workers, each with an
//! executor on its own OS thread, take the shard with the smallest next number. A shard whose state contains
//! ids of an executor stays with that executor. The number of shards does not depend on the number of workers,
//! and results after the one that ended the search are dropped, so the same seed gives the same results on any
//! machine.
//!
//! Some of the shards may be those of [other processes](Others). What they tell is delivered in the same order. A shard
//! whose process is gone is begun again by another one, and what is delivered already is dropped: it is the same.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::deal::Deal;
use crate::executor::{Executor, Factory, Heartbeat};

/// How often to check whether the caller wants to stop.
const POLL: Duration = Duration::from_millis(20);
/// Workers send results in batches of at most this many, and at the latest after this time: an execution may
/// be as short as sending its result to another thread.
const BATCH: usize = 64;
const LATEST: Duration = Duration::from_millis(5);

/// The error of a factory's executors.
pub type Error<F> = <<F as Factory>::Executor as Executor>::Error;

/// Why a search ended without an answer.
#[derive(Debug)]
pub enum Halt<E> {
    /// An execution could not be run.
    Failed(E),
    /// A worker made no progress for the time that is allowed.
    Stalled,
}

/// What a worker does for one number of a shard. `None` if the shard is exhausted.
pub type Work<F, S, T> = Arc<
    dyn Fn(&mut <F as Factory>::Executor, &mut S, u64) -> Result<Option<T>, Error<F>> + Send + Sync,
>;

/// Makes the state of a shard that begins.
pub type Begin<S> = Box<dyn Fn(u64) -> S>;

/// The work to divide among workers.
pub struct Shards<F: Factory, S, T> {
    /// Makes the executors.
    pub factory: Arc<F>,
    /// The shards and their numbers.
    pub deal: Deal,
    /// Makes the state of a shard.
    pub begin: Begin<S>,
    /// The largest number of executions at the same time.
    pub workers: usize,
    /// Each shard stays with one worker, because its state contains ids of the worker's executor.
    pub pinned: bool,
    /// How long a worker may make no progress, if there is a limit.
    pub stall: Option<Duration>,
    /// What to do for one number.
    pub work: Work<F, S, T>,
}

/// The other processes that work on the same numbers.
pub trait Others<T> {
    /// The shards of this process.
    fn mine(&self, deal: &Deal) -> Vec<u64>;
    /// Whether this process takes the results in. Otherwise it only tells them.
    fn decides(&self) -> bool;
    /// A shard of this process has a result.
    fn done(&mut self, number: u64, result: &T);
    /// A shard of this process has no more results.
    fn exhausted(&mut self, shard: u64);
    /// What has come since this was last called.
    fn poll(&mut self) -> Vec<News<T>>;
    /// Whether more may come. This process has nothing left to do.
    fn goes_on(&mut self) -> bool;
}

/// What comes of other processes.
#[derive(Debug)]
pub enum News<T> {
    /// The result of a number.
    Done(u64, T),
    /// A shard has no more results.
    Exhausted(u64),
    /// This process shall begin a shard that another one has left.
    Take(u64),
    /// No more results are needed.
    Over,
}

/// There are no other processes.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl<T> Others<T> for Alone {
    fn mine(&self, deal: &Deal) -> Vec<u64> {
        deal.busy().collect()
    }

    fn decides(&self) -> bool {
        true
    }

    fn done(&mut self, _: u64, _: &T) {}

    fn exhausted(&mut self, _: u64) {}

    fn poll(&mut self) -> Vec<News<T>> {
        Vec::new()
    }

    fn goes_on(&mut self) -> bool {
        false
    }
}

/// The shards that wait for a worker, by the number that each does next.
type Idle<S> = BTreeMap<u64, S>;

struct Shared<F: Factory, S, T> {
    factory: Arc<F>,
    /// One queue for all workers, or one for each.
    idle: Vec<Mutex<Idle<S>>>,
    deal: Deal,
    work: Work<F, S, T>,
}

enum Message<S, T, E> {
    Done(u64, T),
    /// The shard of this number is exhausted.
    Exhausted(u64, S),
    Failed(E),
    /// A worker has ended, and whether it ran shards of another process.
    Left(bool),
}

type Batch<S, T, E> = Vec<Message<S, T, E>>;
/// What comes of the workers.
type Results<F, S, T> = Receiver<Batch<S, T, Error<F>>>;

/// A worker's way to the one who takes the results. When the worker ends, in whichever way, this says so.
struct Channel<S, T, E>(Sender<Batch<S, T, E>>, bool);

impl<S, T, E> Channel<S, T, E> {
    /// Fails if the search has ended; the results are then not needed.
    fn send(&self, batch: Batch<S, T, E>) -> bool {
        self.0.send(batch).is_ok()
    }
}

impl<S, T, E> Drop for Channel<S, T, E> {
    fn drop(&mut self) {
        let _ = self.0.send(vec![Message::Left(self.1)]);
    }
}

/// The workers of a search.
struct Crew<F: Factory, S, T> {
    /// What the workers share: those of the beginning, and those that began shards of other processes.
    shared: Vec<Arc<Shared<F, S, T>>>,
    sender: Sender<Batch<S, T, Error<F>>>,
    watch: Watch,
    /// How many of them work.
    working: usize,
    /// How many of these run shards of other processes.
    taken: usize,
    /// Shards of other processes that wait for a worker.
    waiting: Vec<u64>,
}

impl<F, S, T> Crew<F, S, T>
where
    F: Factory,
    S: Send + 'static,
    T: Send + 'static,
{
    /// Starts workers for these queues.
    fn start(&mut self, shared: Shared<F, S, T>, workers: u64, taken: bool) {
        let shared = Arc::new(shared);
        for worker in 0..workers {
            let heart = Heartbeat::default();
            self.watch.hearts.push((heart.clone(), 0, Instant::now()));
            self.working += 1;
            self.taken += usize::from(taken);
            let channel = Channel(self.sender.clone(), taken);
            start(worker, Arc::clone(&shared), heart, channel);
        }
        self.shared.push(shared);
    }

    /// Starts workers for shards of other processes, besides those for this one's.
    fn take(&mut self, work: &Shards<F, S, T>) {
        let free = work.workers.max(1).saturating_sub(self.taken).min(self.waiting.len());
        if free == 0 {
            return;
        }
        let mut idle: Vec<Idle<S>> = (0..free).map(|_| Idle::new()).collect();
        for (queue, shard) in (0..free).cycle().zip(std::mem::take(&mut self.waiting)) {
            idle[queue].insert(work.deal.number(shard, 0), (work.begin)(shard));
        }
        self.start(work.shared(idle), free as u64, true);
    }

    fn left(&mut self, taken: bool) {
        self.working -= 1;
        self.taken -= usize::from(taken);
    }

    /// Ends all work, and waits for it.
    fn end(mut self, receiver: &Results<F, S, T>) {
        let Some(factory) = self.shared.first().map(|s| Arc::clone(&s.factory)) else { return };
        factory.interrupt(true);
        for shared in &self.shared {
            shared.idle.iter().for_each(|queue| lock(queue).clear());
        }
        while self.working > 0 && self.watch.is_alive() {
            for message in receiver.recv_timeout(POLL).into_iter().flatten() {
                if let Message::Left(taken) = message {
                    self.left(taken);
                }
            }
        }
        factory.interrupt(false);
    }
}

impl<F, S, T> Shards<F, S, T>
where
    F: Factory,
    S: Send + 'static,
    T: Send + 'static,
{
    /// Does the work and passes the result of each number to `each`, in order, until `each` breaks or `stop`
    /// returns true. Returns the states of the exhausted shards. If `others` does not decide, the results are only told.
    pub fn run(
        self,
        others: &mut dyn Others<T>,
        stop: impl Fn() -> bool,
        mut each: impl FnMut(u64, T) -> ControlFlow<()>,
    ) -> Result<Vec<S>, Halt<Error<F>>> {
        let mine: BTreeMap<u64, S> =
            others.mine(&self.deal).into_iter().map(|shard| (shard, (self.begin)(shard))).collect();
        let workers = (self.workers as u64).min(mine.len() as u64);
        let queues = if self.pinned { workers.max(1) } else { 1 };
        let mut idle: Vec<Idle<S>> = (0..queues).map(|_| Idle::new()).collect();
        for (queue, (shard, state)) in (0..queues).cycle().zip(mine) {
            idle[queue as usize].insert(self.deal.number(shard, 0), state);
        }
        let (sender, receiver) = channel();
        let watch = Watch { hearts: Vec::new(), limit: self.stall };
        let (shared, waiting) = (Vec::new(), Vec::new());
        let mut crew = Crew { shared, sender, watch, working: 0, taken: 0, waiting };
        crew.start(self.shared(idle), workers, false);
        let mut order = Order {
            deal: self.deal,
            next: 0,
            early: BTreeMap::new(),
            exhausted: BTreeMap::new(),
            over: false,
        };
        let result = order.take(&self, (&receiver, &mut crew), others, stop, &mut each);
        crew.end(&receiver);
        result.map(|()| order.exhausted.into_values().flatten().collect())
    }

    fn shared(&self, idle: Vec<Idle<S>>) -> Shared<F, S, T> {
        Shared {
            factory: Arc::clone(&self.factory),
            idle: idle.into_iter().map(Mutex::new).collect(),
            deal: self.deal,
            work: Arc::clone(&self.work),
        }
    }
}

fn lock<S>(queue: &Mutex<Idle<S>>) -> MutexGuard<'_, Idle<S>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F: Factory, S, T> Shared<F, S, T> {
    /// The shards that wait for a worker.
    fn idle(&self, worker: u64) -> MutexGuard<'_, Idle<S>> {
        lock(&self.idle[worker as usize % self.idle.len()])
    }

    fn next(&self, worker: u64) -> Option<(u64, S)> {
        let mut idle = self.idle(worker);
        let number = *idle.keys().next().filter(|&&n| n < self.deal.numbers)?;
        idle.remove_entry(&number)
    }
}

/// Starts a worker. If its executor becomes unusable, it starts another worker in its place.
fn start<F, S, T>(
    worker: u64,
    shared: Arc<Shared<F, S, T>>,
    heart: Heartbeat,
    sender: Channel<S, T, Error<F>>,
) where
    F: Factory,
    S: Send + 'static,
    T: Send + 'static,
{
    let name = format!("selvedge-{worker}");
    let spawned = std::thread::Builder::new().name(name).spawn(move || {
        if work(worker, &shared, &heart, &sender) {
            start(worker, shared, heart, sender);
        }
    });
    // If no thread can be started, the channel says that the worker has ended.
    drop(spawned);
}

/// Works until there is nothing left to do, or until the executor becomes unusable, which returns true.
fn work<F: Factory, S, T>(
    worker: u64,
    shared: &Shared<F, S, T>,
    heart: &Heartbeat,
    sender: &Channel<S, T, Error<F>>,
) -> bool {
    let mut executor = match shared.factory.make(heart.clone()) {
        Ok(executor) => executor,
        Err(error) => {
            sender.send(vec![Message::Failed(error)]);
            return false;
        }
    };
    let mut batch = Vec::new();
    let mut sent = Instant::now();
    while let Some((number, mut state)) = shared.next(worker) {
        heart.beat();
        let message = match (shared.work)(&mut executor, &mut state, number) {
            Ok(Some(done)) => {
                shared.idle(worker).insert(shared.deal.next(number), state);
                Message::Done(number, done)
            }
            Ok(None) => Message::Exhausted(number, state),
            Err(error) => Message::Failed(error),
        };
        let failed = matches!(message, Message::Failed(_));
        batch.push(message);
        if failed || batch.len() == BATCH || sent.elapsed() > LATEST {
            if !sender.send(std::mem::take(&mut batch)) || failed {
                return false;
            }
            sent = Instant::now();
        }
        if !executor.is_usable() {
            return sender.send(batch);
        }
    }
    sender.send(batch);
    false
}

/// Puts results into the order of their numbers.
struct Order<S, T> {
    deal: Deal,
    next: u64,
    early: BTreeMap<u64, T>,
    /// The exhausted shards: no more results of theirs will come. Those of this process have a state.
    exhausted: BTreeMap<u64, Option<S>>,
    /// Another process needs no more results.
    over: bool,
}

impl<S: Send + 'static, T: Send + 'static> Order<S, T> {
    /// Whether every shard is exhausted and every result was delivered.
    fn is_exhausted(&self) -> bool {
        self.early.is_empty() && self.exhausted.len() as u64 == self.deal.shards()
    }

    /// Delivers what has come, as far as no earlier number is missing.
    fn deliver(&mut self, each: &mut impl FnMut(u64, T) -> ControlFlow<()>) -> ControlFlow<()> {
        while self.next < self.deal.numbers && !self.is_exhausted() {
            match self.early.remove(&self.next) {
                Some(done) => each(self.next, done)?,
                None if self.exhausted.contains_key(&self.deal.shard(self.next)) => {}
                None => break,
            }
            self.next += 1;
        }
        ControlFlow::Continue(())
    }

    fn take<F: Factory>(
        &mut self,
        work: &Shards<F, S, T>,
        (receiver, crew): (&Results<F, S, T>, &mut Crew<F, S, T>),
        others: &mut dyn Others<T>,
        stop: impl Fn() -> bool,
        each: &mut impl FnMut(u64, T) -> ControlFlow<()>,
    ) -> Result<(), Halt<Error<F>>> {
        loop {
            if self.deliver(each).is_break() {
                return Ok(());
            }
            crew.take(work);
            let is_over = self.over || self.next == self.deal.numbers || self.is_exhausted();
            if is_over || stop() || crew.working == 0 && !others.goes_on() {
                return Ok(());
            }
            match receiver.recv_timeout(POLL) {
                Ok(batch) => {
                    for message in batch {
                        match message {
                            Message::Left(taken) => crew.left(taken),
                            Message::Done(number, done) => {
                                others.done(number, &done);
                                if self.done(number, done, others.decides(), each).is_break() {
                                    return Ok(());
                                }
                            }
                            Message::Exhausted(number, state) => {
                                let shard = self.deal.shard(number);
                                others.exhausted(shard);
                                self.exhausted.insert(shard, Some(state));
                            }
                            // The signal that stops the caller may also have made the execution fail.
                            Message::Failed(_) if stop() => return Ok(()),
                            Message::Failed(error) => return Err(Halt::Failed(error)),
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) if !crew.watch.is_alive() => {
                    return Err(Halt::Stalled);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            for news in others.poll() {
                self.hear(news, &mut crew.waiting);
            }
        }
    }

    /// A result of this process.
    fn done(
        &mut self,
        number: u64,
        done: T,
        decides: bool,
        each: &mut impl FnMut(u64, T) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !decides || number < self.next {
            return ControlFlow::Continue(());
        }
        if number > self.next {
            self.early.insert(number, done);
            return ControlFlow::Continue(());
        }
        // The common case, without going through the map.
        self.next += 1;
        each(number, done)
    }

    fn hear(&mut self, news: News<T>, waiting: &mut Vec<u64>) {
        match news {
            News::Done(number, done) if number >= self.next => {
                self.early.insert(number, done);
            }
            News::Done(..) => {}
            News::Exhausted(shard) => {
                self.exhausted.entry(shard).or_default();
            }
            News::Take(shard) => waiting.push(shard),
            News::Over => self.over = true,
        }
    }
}

/// Notices workers that make no progress.
struct Watch {
    /// For each worker: its counter, the counter's last value, and since when it has had that value.
    hearts: Vec<(Heartbeat, u64, Instant)>,
    limit: Option<Duration>,
}

impl Watch {
    fn is_alive(&mut self) -> bool {
        let Some(limit) = self.limit else { return true };
        self.hearts.iter_mut().all(|(heart, last, since)| {
            let now = heart.count();
            if now != *last {
                (*last, *since) = (now, Instant::now());
            }
            since.elapsed() <= limit
        })
    }
}
