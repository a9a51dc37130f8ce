//! Numbered executions on all cores, with results in the order of the numbers.
//!
//! A strategy learns from one execution for the next, so executions cannot be dealt out at will. They are
//! shared out over *shards*, each with a state of its own (a strategy, or a prediction to attempt): shard
//! `s` of `n` does the numbers `s`, `s + n`, `s + 2n`, … one after the other. Workers, each with an
//! executor on an OS thread of its own, take the shard that has the least number next. A shard whose
//! state speaks in ids of an executor stays with it. The number of shards is fixed, whatever the number
//! of workers, so the same seed gives the same results on any machine; a result behind one that ended
//! the search is as if it had never been.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::executor::{Executor, Factory, Heartbeat};

/// How many strategies share the executions of a search. More would leave each with less to learn from.
pub const SHARDS: u64 = 4;

/// How often to look whether the caller wants to stop.
const POLL: Duration = Duration::from_millis(20);
/// Results are handed over together: so many at most, and no later than this. An execution may take
/// no longer than handing its result to another thread would.
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

/// What a worker does with a shard for one number; none if the shard wants no more.
pub type Work<F, S, T> = Arc<
    dyn Fn(&mut <F as Factory>::Executor, &mut S, u64) -> Result<Option<T>, Error<F>> + Send + Sync,
>;

/// What is to be shared out.
pub struct Shards<F: Factory, S, T> {
    /// Makes the executors.
    pub factory: Arc<F>,
    /// The states of the shards.
    pub states: Vec<S>,
    /// How many numbers there are.
    pub numbers: u64,
    /// The most executions at the same time.
    pub workers: usize,
    /// Each shard stays with one worker, because its state speaks in ids of the worker's executor.
    pub pinned: bool,
    /// For how long a worker may make no progress, if that is watched.
    pub stall: Option<Duration>,
    /// What to do for one number.
    pub work: Work<F, S, T>,
}

/// The shards that wait for a worker, by the number that each does next.
type Idle<S> = BTreeMap<u64, S>;

struct Shared<F: Factory, S, T> {
    factory: Arc<F>,
    /// One for all workers, or one for each.
    idle: Vec<Mutex<Idle<S>>>,
    numbers: u64,
    shards: u64,
    work: Work<F, S, T>,
}

enum Message<S, T, E> {
    Done(u64, T),
    /// The shard that would have done this number wants no more.
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
    /// Does the work and hands the result of each number to `each`, in order, until that breaks or
    /// `stop` says so. Returns the states of the shards that wanted no more.
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

/// Starts a worker. One whose executor cannot be used any more starts another in its place.
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
    // A machine without threads has nothing to run a search on; the search then ends without results.
    drop(spawned);
}

/// Works until there is nothing to do. True if only this executor is used up.
fn work<F: Factory, S, T>(
    worker: u64,
    shared: &Shared<F, S, T>,
    heart: &Heartbeat,
    sender: &Channel<F, S, T>,
) -> bool {
    // The search may be over, in which case the receiver ignores or drops what is sent.
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
    /// By shard. Its numbers from some on will never come.
    exhausted: BTreeMap<u64, S>,
}

impl<S, T> Order<S, T> {
    /// Whether no shard has anything more to say.
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
                            Message::Done(number, done) => drop(self.early.insert(number, done)),
                            Message::Exhausted(number, state) => {
                                self.exhausted.insert(number % self.shards, state);
                            }
                            // What makes the caller stop may have made the execution fail.
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
    /// Of each worker: its count, the last value of it, and since when.
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
