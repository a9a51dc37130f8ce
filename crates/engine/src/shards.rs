//! Runs numbered executions on all cores, and delivers the results in the order of the numbers.
//!
//! A strategy learns from one execution for the next, so its executions must run one after the other.
//! Therefore executions are divided among *shards*, each with its own state (a strategy, or a prediction to
//! attempt): shard `s` of `n` runs the numbers `s`, `s + n`, `s + 2n`, … in this order. Workers, each with an
//! executor on its own OS thread, take the shard with the smallest next number. A shard whose state contains
//! ids of an executor stays with that executor. The number of shards does not depend on the number of workers,
//! and results after the one that ended the search are dropped, so the same seed gives the same results on any
//! machine.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::executor::{Executor, Factory, Heartbeat};

/// The number of strategies that share the executions of a search. With more strategies, each would learn
/// from fewer executions.
pub const SHARDS: u64 = 4;

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

/// The work to divide among workers.
pub struct Shards<F: Factory, S, T> {
    /// Makes the executors.
    pub factory: Arc<F>,
    /// The states of the shards.
    pub states: Vec<S>,
    /// How many numbers there are.
    pub numbers: u64,
    /// The largest number of executions at the same time.
    pub workers: usize,
    /// Each shard stays with one worker, because its state contains ids of the worker's executor.
    pub pinned: bool,
    /// How long a worker may make no progress, if there is a limit.
    pub stall: Option<Duration>,
    /// What to do for one number.
    pub work: Work<F, S, T>,
}

/// The shards that wait for a worker, by the number that each does next.
type Idle<S> = BTreeMap<u64, S>;

struct Shared<F: Factory, S, T> {
    factory: Arc<F>,
    /// One queue for all workers, or one for each.
    idle: Vec<Mutex<Idle<S>>>,
    numbers: u64,
    shards: u64,
    work: Work<F, S, T>,
}

enum Message<S, T, E> {
    Done(u64, T),
    /// The shard of this number is exhausted.
    Exhausted(u64, S),
    Failed(E),
}

type Batch<S, T, E> = Vec<Message<S, T, E>>;
type Channel<F, S, T> = Sender<Batch<S, T, Error<F>>>;

impl<F, S, T> Shards<F, S, T>
where
    F: Factory,
    S: Send + 'static,
    T: Send + 'static,
{
    /// Does the work and passes the result of each number to `each`, in order, until `each` breaks or `stop`
    /// returns true. Returns the states of the exhausted shards.
    pub fn run(
        self,
        stop: impl Fn() -> bool,
        mut each: impl FnMut(u64, T) -> ControlFlow<()>,
    ) -> Result<Vec<S>, Halt<Error<F>>> {
        let shards = self.states.len() as u64;
        let workers = (self.workers as u64).min(shards).min(self.numbers);
        let queues = if self.pinned { workers.max(1) } else { 1 };
        let mut idle: Vec<Idle<S>> = (0..queues).map(|_| Idle::new()).collect();
        for (number, state) in (0..).zip(self.states) {
            idle[(number % queues) as usize].insert(number, state);
        }
        let shared = Arc::new(Shared {
            factory: self.factory,
            idle: idle.into_iter().map(Mutex::new).collect(),
            numbers: self.numbers,
            shards,
            work: self.work,
        });
        let (sender, receiver) = channel();
        let mut watch = Watch { hearts: Vec::new(), limit: self.stall };
        for worker in 0..workers {
            let heart = Heartbeat::default();
            watch.hearts.push((heart.clone(), 0, Instant::now()));
            start(worker, Arc::clone(&shared), heart, sender.clone());
        }
        drop(sender);
        let mut order = Order {
            shards,
            next: 0,
            numbers: self.numbers,
            early: BTreeMap::new(),
            exhausted: BTreeMap::new(),
        };
        let result = order.take(&receiver, &mut watch, stop, &mut each);
        shared.factory.interrupt(true);
        (0..queues).for_each(|queue| shared.idle(queue).clear());
        while watch.is_alive() {
            if let Err(RecvTimeoutError::Disconnected) = receiver.recv_timeout(POLL) {
                break;
            }
        }
        shared.factory.interrupt(false);
        result.map(|()| order.exhausted.into_values().collect())
    }
}

impl<F: Factory, S, T> Shared<F, S, T> {
    /// The shards that wait for a worker.
    fn idle(&self, worker: u64) -> MutexGuard<'_, Idle<S>> {
        let queue = worker as usize % self.idle.len();
        self.idle[queue].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, worker: u64) -> Option<(u64, S)> {
        let mut idle = self.idle(worker);
        let number = *idle.keys().next().filter(|&&n| n < self.numbers)?;
        idle.remove_entry(&number)
    }
}

/// Starts a worker. If its executor becomes unusable, it starts another worker in its place.
fn start<F, S, T>(
    worker: u64,
    shared: Arc<Shared<F, S, T>>,
    heart: Heartbeat,
    sender: Channel<F, S, T>,
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
    // If no thread can be started, the channel closes and the search ends without results.
    drop(spawned);
}

/// Works until there is nothing left to do, or until the executor becomes unusable, which returns true.
fn work<F: Factory, S, T>(
    worker: u64,
    shared: &Shared<F, S, T>,
    heart: &Heartbeat,
    sender: &Channel<F, S, T>,
) -> bool {
    // Sending fails if the search has ended; the result is then not needed.
    let mut executor = match shared.factory.make(heart.clone()) {
        Ok(executor) => executor,
        Err(error) => {
            let _ = sender.send(vec![Message::Failed(error)]);
            return false;
        }
    };
    let mut batch = Vec::new();
    let mut sent = Instant::now();
    while let Some((number, mut state)) = shared.next(worker) {
        heart.beat();
        let message = match (shared.work)(&mut executor, &mut state, number) {
            Ok(Some(done)) => {
                shared.idle(worker).insert(number + shared.shards, state);
                Message::Done(number, done)
            }
            Ok(None) => Message::Exhausted(number, state),
            Err(error) => Message::Failed(error),
        };
        let failed = matches!(message, Message::Failed(_));
        batch.push(message);
        if failed || batch.len() == BATCH || sent.elapsed() > LATEST {
            if sender.send(std::mem::take(&mut batch)).is_err() || failed {
                return false;
            }
            sent = Instant::now();
        }
        if !executor.is_usable() {
            return sender.send(batch).is_ok();
        }
    }
    let _ = sender.send(batch);
    false
}

/// Puts results into the order of their numbers.
struct Order<S, T> {
    shards: u64,
    next: u64,
    numbers: u64,
    early: BTreeMap<u64, T>,
    /// The states of exhausted shards, by shard: no more results of theirs will come.
    exhausted: BTreeMap<u64, S>,
}

impl<S, T> Order<S, T> {
    /// Whether every shard is exhausted and every result was delivered.
    fn is_exhausted(&self) -> bool {
        self.early.is_empty() && self.exhausted.len() == self.shards as usize
    }

    fn take<E>(
        &mut self,
        receiver: &Receiver<Batch<S, T, E>>,
        watch: &mut Watch,
        stop: impl Fn() -> bool,
        each: &mut impl FnMut(u64, T) -> ControlFlow<()>,
    ) -> Result<(), Halt<E>> {
        loop {
            while self.next < self.numbers && !self.is_exhausted() {
                match self.early.remove(&self.next) {
                    Some(done) => {
                        if each(self.next, done).is_break() {
                            return Ok(());
                        }
                    }
                    None if self.exhausted.contains_key(&(self.next % self.shards)) => {}
                    None => break,
                }
                self.next += 1;
            }
            if self.next == self.numbers || self.is_exhausted() || stop() {
                return Ok(());
            }
            match receiver.recv_timeout(POLL) {
                Ok(batch) => {
                    for message in batch {
                        match message {
                            // The common case, without going through the map.
                            Message::Done(number, done) if number == self.next => {
                                self.next += 1;
                                if each(number, done).is_break() {
                                    return Ok(());
                                }
                            }
                            Message::Done(number, done) => drop(self.early.insert(number, done)),
                            Message::Exhausted(number, state) => {
                                self.exhausted.insert(number % self.shards, state);
                            }
                            // The signal that stops the caller may also have made the execution fail.
                            Message::Failed(_) if stop() => return Ok(()),
                            Message::Failed(error) => return Err(Halt::Failed(error)),
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) if !watch.is_alive() => return Err(Halt::Stalled),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
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
