//! Threads: the API of [`std::thread`].
//!
//! Inside a check, threads are coroutines that the strategy schedules; outside, they are the standard
//! library's. Sleeping lets virtual time pass and other threads run; it does not order threads.

pub(crate) mod local;
mod scope;

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use selvedge_model::{Op, ThreadId as Id};

use crate::exec::Local;
use crate::exec::fiber::{self, with};
use crate::exec::ops;
use crate::exec::slot::Slot;
use crate::exec::worker::thread_done;

pub use crate::thread_local;
pub use local::{AccessError, LocalKey};
pub use scope::{Scope, ScopedJoinHandle, scope};
pub use std::thread::{Result, available_parallelism, panicking};

/// The identity of a thread; see [`std::thread::ThreadId`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ThreadId(Identity);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Identity {
    Std(std::thread::ThreadId),
    /// Generation of the execution, and number in it.
    Controlled(u64, Id),
}

/// A handle to a thread; see [`std::thread::Thread`].
#[derive(Clone)]
pub struct Thread(Kind);

#[derive(Clone)]
enum Kind {
    Std(std::thread::Thread),
    Controlled(Arc<Controlled>),
}

struct Controlled {
    generation: u64,
    id: Id,
    name: Option<Arc<str>>,
    /// The token of park and unpark.
    park: Slot,
}

impl Thread {
    /// See [`std::thread::Thread::id`].
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Kind::Std(thread) => Identity::Std(thread.id()),
            Kind::Controlled(thread) => Identity::Controlled(thread.generation, thread.id),
        })
    }

    /// See [`std::thread::Thread::name`].
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Std(thread) => thread.name(),
            Kind::Controlled(thread) => thread.name.as_deref(),
        }
    }

    /// See [`std::thread::Thread::unpark`].
    #[track_caller]
    pub fn unpark(&self) {
        match &self.0 {
            Kind::Std(thread) => thread.unpark(),
            Kind::Controlled(thread) => {
                let here = Location::caller();
                ops::before_post(&thread.park, here);
                ops::post(&thread.park, 1, here);
            }
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread")
            .field("id", &self.id())
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

fn handle_of(generation: u64, id: Id, name: Option<Arc<str>>) -> Thread {
    Thread(Kind::Controlled(Arc::new(Controlled { generation, id, name, park: Slot::new() })))
}

/// See [`std::thread::current`].
pub fn current() -> Thread {
    let key = local::key_of(&CURRENT_HANDLE);
    let known = with(|e| {
        let me = e.current;
        let locals = &e.threads[me.index()].locals;
        let known = locals.iter().find(|l| l.key == key).map(|l| l.value.clone());
        (e.generation, me, e.threads[me.index()].name.clone(), known)
    });
    let Some((generation, id, name, known)) = known else {
        return Thread(Kind::Std(std::thread::current()));
    };
    if let Some(thread) = known.and_then(|k| k.downcast::<Thread>().ok()) {
        return (*thread).clone();
    }
    let thread = handle_of(generation, id, name);
    set_handle(id, &thread);
    thread
}

/// Its address is the key under which a thread keeps its own handle.
static CURRENT_HANDLE: u8 = 0;

fn set_handle(id: Id, thread: &Thread) {
    let key = local::key_of(&CURRENT_HANDLE);
    let handle: std::rc::Rc<dyn Any> = std::rc::Rc::new(thread.clone());
    with(|e| e.threads[id.index()].locals.push(Local { key, value: handle, stays: true }));
}

/// See [`std::thread::park`].
#[track_caller]
pub fn park() {
    match current().0 {
        Kind::Std(_) => std::thread::park(),
        Kind::Controlled(me) => drop(ops::wait(&me.park, None, Location::caller())),
    }
}

/// See [`std::thread::park_timeout`].
#[track_caller]
pub fn park_timeout(duration: Duration) {
    match current().0 {
        Kind::Std(_) => std::thread::park_timeout(duration),
        Kind::Controlled(me) => drop(ops::wait(&me.park, Some(duration), Location::caller())),
    }
}

/// See [`std::thread::yield_now`].
#[track_caller]
pub fn yield_now() {
    if !ops::yield_now(Location::caller()) {
        std::thread::yield_now();
    }
}

/// See [`std::thread::sleep`]. Inside a check it takes no time.
#[track_caller]
pub fn sleep(duration: Duration) {
    if !ops::sleep(duration, Location::caller()) {
        std::thread::sleep(duration);
    }
}

/// What a controlled thread leaves to the thread that joins it.
struct Packet<T> {
    result: Mutex<Option<Result<T>>>,
    /// The scope that panics if a panic of the thread is not taken out.
    scope: Option<Arc<scope::State>>,
}

impl<T> Packet<T> {
    fn new(scope: Option<Arc<scope::State>>) -> Arc<Packet<T>> {
        Arc::new(Packet { result: Mutex::new(None), scope })
    }

    fn put(&self, result: Result<T>) {
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    fn take(&self) -> Option<Result<T>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Drop for Packet<T> {
    /// The thread and its handle both have the packet; only the one that drops it last can tell that
    /// the other is not going to look.
    fn drop(&mut self) {
        let result = self.result.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(scope), Some(Err(_))) = (&self.scope, result) {
            scope.panic_is_unhandled();
        }
    }
}

/// The name of a function without the path to it; a closure and a pointer to a function have none.
fn function<F>(_: &F) -> Option<&'static str> {
    let path = std::any::type_name::<F>();
    let name = path.split('<').next()?.rsplit("::").next()?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && !path.contains("{{closure}}")).then_some(name)
}

/// Starts a controlled thread.
///
/// # Safety
/// What `f` borrows must outlive the thread: see [`fiber::job`].
unsafe fn start<'a, T: 'a>(
    f: impl FnOnce() -> T + 'a,
    packet: Arc<Packet<T>>,
    name: Option<Arc<str>>,
    done: impl FnOnce() + 'a,
    here: &'static Location<'static>,
) -> Thread {
    let done = move |result: Result<T>| {
        let panicked = result.is_err();
        packet.put(result);
        drop(packet);
        done();
        thread_done(panicked);
    };
    let function = function(&f);
    // SAFETY: passed on to the caller.
    let job = unsafe { fiber::job(f, done) };
    let started = with(|e| {
        let id = e.start(name.clone(), job, here);
        e.threads[id.index()].function = function;
        let site = e.place(here).site;
        e.emit(site, Op::Fork(id));
        (e.generation, id)
    });
    let (generation, id) = started.expect("the caller runs in a controlled execution");
    let thread = handle_of(generation, id, name);
    set_handle(id, &thread);
    thread
}

/// See [`std::thread::JoinHandle`].
pub struct JoinHandle<T>(Handle<T>);

enum Handle<T> {
    Std(std::thread::JoinHandle<T>, Thread),
    Controlled(Thread, Arc<Packet<T>>),
}

// SAFETY: a handle is made by `spawn`, which asks for `T: Send`; the result is touched by the thread that
// leaves it and by the one that takes it, in this order. Said here without the bound, as the standard
// library does.
unsafe impl<T> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives no access to the result.
unsafe impl<T> Sync for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// Waits for a controlled thread and takes what it left.
fn join_controlled<T>(
    thread: &Thread,
    packet: &Packet<T>,
    here: &'static Location<'static>,
) -> Result<T> {
    let Kind::Controlled(thread) = &thread.0 else {
        unreachable!("a controlled handle has a controlled thread");
    };
    ops::join(thread.id, here);
    packet.take().expect("a thread that has ended has left its result")
}

impl<T> JoinHandle<T> {
    /// See [`std::thread::JoinHandle::join`].
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Handle::Std(handle, _) => handle.join(),
            Handle::Controlled(thread, packet) => {
                join_controlled(&thread, &packet, Location::caller())
            }
        }
    }

    /// See [`std::thread::JoinHandle::thread`].
    pub fn thread(&self) -> &Thread {
        match &self.0 {
            Handle::Std(_, thread) | Handle::Controlled(thread, _) => thread,
        }
    }

    /// See [`std::thread::JoinHandle::is_finished`].
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Handle::Std(handle, _) => handle.is_finished(),
            Handle::Controlled(thread, _) => has_ended(thread, Location::caller()),
        }
    }
}

/// Whether a controlled thread has ended. Asking lets others run, so that a loop that asks does not hang.
fn has_ended(thread: &Thread, here: &'static Location<'static>) -> bool {
    let Kind::Controlled(thread) = &thread.0 else {
        unreachable!("a controlled handle has a controlled thread");
    };
    ops::yield_now(here);
    with(|e| e.has_ended(thread.id)).unwrap_or(true)
}

/// See [`std::thread::spawn`].
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f).expect("failed to spawn thread")
}

/// See [`std::thread::Builder`].
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// See [`std::thread::Builder::new`].
    pub fn new() -> Builder {
        Builder::default()
    }

    /// See [`std::thread::Builder::name`].
    pub fn name(mut self, name: String) -> Builder {
        self.name = Some(name);
        self
    }

    /// See [`std::thread::Builder::stack_size`]. Inside a check all stacks have the size that
    /// `Explore::stack_size` says.
    pub fn stack_size(mut self, size: usize) -> Builder {
        self.stack_size = Some(size);
        self
    }

    fn std(self) -> std::thread::Builder {
        let mut builder = std::thread::Builder::new();
        if let Some(name) = self.name {
            builder = builder.name(name);
        }
        if let Some(size) = self.stack_size {
            builder = builder.stack_size(size);
        }
        builder
    }

    /// See [`std::thread::Builder::spawn`].
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if !fiber::controlled() {
            let handle = self.std().spawn(f)?;
            let thread = Thread(Kind::Std(handle.thread().clone()));
            return Ok(JoinHandle(Handle::Std(handle, thread)));
        }
        let packet = Packet::new(None);
        let name = self.name.map(Arc::from);
        // SAFETY: `F` and `T` are `'static`.
        let thread = unsafe { start(f, Arc::clone(&packet), name, || (), Location::caller()) };
        Ok(JoinHandle(Handle::Controlled(thread, packet)))
    }

    /// See [`std::thread::Builder::spawn_scoped`].
    #[track_caller]
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        scope.spawn_built(self, f, Location::caller())
    }
}
