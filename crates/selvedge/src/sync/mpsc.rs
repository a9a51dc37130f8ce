//! Channels: the API of [`std::sync::mpsc`].
//!
//! Inside a check a channel is a queue with semaphores: one counts the messages, a bounded one has
//! another for its places, and a message of a rendezvous channel has one of its own on which its sender
//! waits. A channel made outside a check is the standard library's, also when it is used inside one.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as std_mpsc};
use std::time::Duration;

use crate::exec::fiber::controlled;
use crate::exec::ops::{self, Waited};
use crate::exec::slot::Slot;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

type Here = &'static Location<'static>;

struct Message<T> {
    value: T,
    /// Signalled when the message is taken, in a rendezvous channel.
    taken: Option<Arc<Slot>>,
}

// ordering of the atomics: relaxed. They are used by one OS thread.
struct Channel<T> {
    queue: Mutex<VecDeque<Message<T>>>,
    messages: Slot,
    /// Places left, and how many there are, in a bounded channel.
    places: Slot,
    bound: Option<usize>,
    senders: AtomicUsize,
    /// Receivers waiting now, for who tries to send without waiting.
    waiting: AtomicUsize,
    abandoned: AtomicBool,
}

impl<T> Channel<T> {
    #[track_caller]
    fn new(bound: Option<usize>) -> Arc<Channel<T>> {
        let places = Slot::new();
        ops::fill(&places, bound.unwrap_or(0));
        Arc::new(Channel {
            queue: Mutex::new(VecDeque::new()),
            messages: Slot::new(),
            places,
            bound,
            senders: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        })
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Message<T>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    fn push(&self, value: T, taken: Option<Arc<Slot>>, here: Here) {
        self.queue().push_back(Message { value, taken });
        ops::post(&self.messages, usize::MAX, here);
    }

    fn send(&self, value: T, here: Here) -> Result<(), SendError<T>> {
        match self.bound {
            None => {
                ops::before_post(&self.messages, here);
                if self.is_abandoned() {
                    return Err(SendError(value));
                }
                self.push(value, None, here);
                Ok(())
            }
            Some(0) => self.hand_over(value, here),
            Some(_) => {
                let waited = ops::wait(&self.places, None, here);
                if self.is_abandoned() || waited != Some(Waited::Taken) {
                    return Err(SendError(value));
                }
                self.push(value, None, here);
                Ok(())
            }
        }
    }

    fn hand_over(&self, value: T, here: Here) -> Result<(), SendError<T>> {
        ops::before_post(&self.messages, here);
        if self.is_abandoned() {
            return Err(SendError(value));
        }
        let taken = Arc::new(Slot::new());
        self.push(value, Some(Arc::clone(&taken)), here);
        ops::wait(&taken, None, here);
        // If it was not taken, the receiver is gone and the message is still there.
        let mut queue = self.queue();
        let mine = |m: &Message<T>| m.taken.as_ref().is_some_and(|t| Arc::ptr_eq(t, &taken));
        match queue.iter().position(mine).and_then(|i| queue.remove(i)) {
            Some(message) => Err(SendError(message.value)),
            None => Ok(()),
        }
    }

    fn try_send(&self, value: T, here: Here) -> Result<(), TrySendError<T>> {
        if self.bound == Some(0) {
            ops::before_post(&self.messages, here);
            if self.is_abandoned() {
                return Err(TrySendError::Disconnected(value));
            }
            if self.waiting.load(Ordering::Relaxed) <= self.queue().len() {
                return Err(TrySendError::Full(value));
            }
            self.push(value, None, here);
            return Ok(());
        }
        let waited = ops::try_wait(&self.places, here);
        if self.is_abandoned() {
            return Err(TrySendError::Disconnected(value));
        }
        if waited != Some(Waited::Taken) {
            return Err(TrySendError::Full(value));
        }
        self.push(value, None, here);
        Ok(())
    }

    /// The message that a wait for one has been granted.
    fn pop(&self, here: Here) -> Option<T> {
        let message = self.queue().pop_front()?;
        match message.taken {
            Some(taken) => ops::post(&taken, 1, here),
            None if self.bound.is_some_and(|b| b > 0) => ops::post(&self.places, usize::MAX, here),
            None => {}
        }
        Some(message.value)
    }

    fn recv(&self, timeout: Option<Duration>, here: Here) -> Result<T, RecvTimeoutError> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = ops::wait(&self.messages, timeout, here);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        match waited {
            Some(Waited::TimedOut) => Err(RecvTimeoutError::Timeout),
            // Outside the execution no thread sends any more: only what is in the channel can come.
            Some(Waited::Taken) | None => self.pop(here).ok_or(RecvTimeoutError::Disconnected),
            Some(Waited::Closed) => Err(RecvTimeoutError::Disconnected),
        }
    }

    fn try_recv(&self, here: Here) -> Result<T, TryRecvError> {
        match ops::try_wait(&self.messages, here) {
            Some(Waited::TimedOut) => Err(TryRecvError::Empty),
            Some(Waited::Taken) | None => self.pop(here).ok_or(TryRecvError::Disconnected),
            Some(Waited::Closed) => Err(TryRecvError::Disconnected),
        }
    }

    fn drop_sender(&self, here: Here) {
        if self.senders.load(Ordering::Relaxed) == 1 {
            // The last one: receivers notice.
            ops::before_post(&self.messages, here);
        }
        if self.senders.fetch_sub(1, Ordering::Relaxed) == 1 {
            ops::close(&self.messages, here);
        }
    }

    fn drop_receiver(&self, here: Here) {
        ops::before_post(&self.messages, here);
        self.abandoned.store(true, Ordering::Relaxed);
        ops::close(&self.places, here);
        let mut left = VecDeque::new();
        // Not in the loop's head, where the queue would stay locked.
        let messages = std::mem::take(&mut *self.queue());
        for message in messages {
            match &message.taken {
                // Its sender waits and gets it back.
                Some(taken) => {
                    ops::close(taken, here);
                    self.queue().push_back(message);
                }
                None => left.push_back(message),
            }
        }
        drop(left);
    }
}

enum Flavour<C, S> {
    Controlled(C),
    Std(S),
}

/// See [`std::sync::mpsc::Sender`].
pub struct Sender<T>(Flavour<Arc<Channel<T>>, std_mpsc::Sender<T>>);

/// See [`std::sync::mpsc::SyncSender`].
pub struct SyncSender<T>(Flavour<Arc<Channel<T>>, std_mpsc::SyncSender<T>>);

/// See [`std::sync::mpsc::Receiver`].
pub struct Receiver<T> {
    flavour: Flavour<Arc<Channel<T>>, std_mpsc::Receiver<T>>,
    not_sync: PhantomData<Cell<()>>,
}

/// See [`std::sync::mpsc::channel`].
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let not_sync = PhantomData;
    if controlled() {
        let channel = Channel::new(None);
        let sender = Sender(Flavour::Controlled(Arc::clone(&channel)));
        return (sender, Receiver { flavour: Flavour::Controlled(channel), not_sync });
    }
    let (sender, receiver) = std_mpsc::channel();
    (Sender(Flavour::Std(sender)), Receiver { flavour: Flavour::Std(receiver), not_sync })
}

/// See [`std::sync::mpsc::sync_channel`].
#[track_caller]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let not_sync = PhantomData;
    if controlled() {
        let channel = Channel::new(Some(bound));
        let sender = SyncSender(Flavour::Controlled(Arc::clone(&channel)));
        return (sender, Receiver { flavour: Flavour::Controlled(channel), not_sync });
    }
    let (sender, receiver) = std_mpsc::sync_channel(bound);
    (SyncSender(Flavour::Std(sender)), Receiver { flavour: Flavour::Std(receiver), not_sync })
}

macro_rules! senders {
    ($($name:ident $doc:literal)*) => {$(
        impl<T> $name<T> {
            #[doc = $doc]
            #[track_caller]
            pub fn send(&self, value: T) -> Result<(), SendError<T>> {
                match &self.0 {
                    Flavour::Controlled(channel) => channel.send(value, Location::caller()),
                    Flavour::Std(sender) => sender.send(value),
                }
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> $name<T> {
                $name(match &self.0 {
                    Flavour::Controlled(channel) => {
                        channel.senders.fetch_add(1, Ordering::Relaxed);
                        Flavour::Controlled(Arc::clone(channel))
                    }
                    Flavour::Std(sender) => Flavour::Std(sender.clone()),
                })
            }
        }

        impl<T> Drop for $name<T> {
            #[track_caller]
            fn drop(&mut self) {
                if let Flavour::Controlled(channel) = &self.0 {
                    channel.drop_sender(Location::caller());
                }
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

senders! {
    Sender "See [`std::sync::mpsc::Sender::send`]."
    SyncSender "See [`std::sync::mpsc::SyncSender::send`]."
}

impl<T> SyncSender<T> {
    /// See [`std::sync::mpsc::SyncSender::try_send`].
    #[track_caller]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        match &self.0 {
            Flavour::Controlled(channel) => channel.try_send(value, Location::caller()),
            Flavour::Std(sender) => sender.try_send(value),
        }
    }
}

impl<T> Receiver<T> {
    /// See [`std::sync::mpsc::Receiver::recv`].
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        match &self.flavour {
            Flavour::Controlled(c) => c.recv(None, Location::caller()).map_err(|_| RecvError),
            Flavour::Std(receiver) => receiver.recv(),
        }
    }

    /// See [`std::sync::mpsc::Receiver::try_recv`].
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match &self.flavour {
            Flavour::Controlled(channel) => channel.try_recv(Location::caller()),
            Flavour::Std(receiver) => receiver.try_recv(),
        }
    }

    /// See [`std::sync::mpsc::Receiver::recv_timeout`].
    #[track_caller]
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        match &self.flavour {
            Flavour::Controlled(channel) => channel.recv(Some(timeout), Location::caller()),
            Flavour::Std(receiver) => receiver.recv_timeout(timeout),
        }
    }

    /// See [`std::sync::mpsc::Receiver::iter`].
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// See [`std::sync::mpsc::Receiver::try_iter`].
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

impl<T> Drop for Receiver<T> {
    #[track_caller]
    fn drop(&mut self) {
        if let Flavour::Controlled(channel) = &self.flavour {
            channel.drop_receiver(Location::caller());
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// See [`std::sync::mpsc::Iter`].
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

/// See [`std::sync::mpsc::TryIter`].
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

/// See [`std::sync::mpsc::IntoIter`].
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;
    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;
    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;
    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;
    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

// A channel is right at every step: nothing that a panic leaves behind can be seen through it.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}
