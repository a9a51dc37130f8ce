//! Coroutines, and the way from a controlled type to the execution it runs in.
//!
//! Ground rules, on which every SAFETY comment here leans:
//! 1. An execution and all its coroutines belong to one OS thread and never leave it.
//! 2. [`CURRENT`] points to the [`Exec`] of the execution that runs on this OS thread, and only while
//!    [`run`] is on the stack, which owns it. Outside it is null.
//! 3. A reference to the `Exec` exists only inside [`with`], which never calls user code and never
//!    switches coroutines; so there is never more than one.
//! 4. A coroutine that has not run to the end of its job when its execution is over is never resumed and
//!    never dropped: its stack, with the user's values on it, is leaked. That happens only to
//!    executions that fail.
//! 5. No coroutine is switched away from while it unwinds, unless its execution ends with that: the
//!    standard library counts panics per OS thread.
//! 6. A [`Lent`] strategy exists only in the `Exec` of rule 2, and only while [`run`] is on the stack, which
//!    borrows the strategy and does not use it otherwise.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use selvedge_explore::Strategy;
use selvedge_model::ThreadId;

use super::Exec;

/// What a controlled thread runs.
pub(crate) type Job = Box<dyn FnOnce()>;

type Input = Option<Job>;
type Switch = Yielder<Input, Why>;

/// Why a coroutine came back.
enum Why {
    /// Another thread is to run, or the execution is over.
    Switched,
    /// Its job is done.
    Idle,
}

/// A coroutine that runs one job after another, so that stacks are set up once.
struct Fiber(Coroutine<Input, Why, (), DefaultStack>);

thread_local! {
    static CURRENT: Cell<*mut Exec> = const { Cell::new(ptr::null_mut()) };
    static YIELDER: Cell<*const Switch> = const { Cell::new(ptr::null()) };
}

/// Whether the caller runs inside a controlled execution.
#[inline]
pub(crate) fn controlled() -> bool {
    !CURRENT.get().is_null()
}

/// Gives the current execution to `f`; nothing if there is none. `f` must not call user code.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut Exec) -> R) -> Option<R> {
    let exec = CURRENT.get();
    if exec.is_null() {
        return None;
    }
    // SAFETY: by rule 2 the pointer is valid, by rule 3 there is no other reference: `f` neither
    // switches nor calls anything that comes back here.
    Some(f(unsafe { &mut *exec }))
}

/// Lets another thread run; returns when this one is chosen again.
#[inline]
pub(crate) fn switch() {
    let yielder = YIELDER.get();
    debug_assert!(!yielder.is_null(), "switching outside a coroutine");
    // SAFETY: `YIELDER` is set by the coroutine that runs whenever it starts to, and the yielder lives
    // as long as the coroutine's stack, on which we are.
    unsafe { (*yielder).suspend(Why::Switched) };
    YIELDER.set(yielder);
}

impl Fiber {
    fn new(stack_size: usize) -> std::io::Result<Fiber> {
        let stack = DefaultStack::new(stack_size)?;
        Ok(Fiber(Coroutine::with_stack(stack, |yielder: &Switch, mut input: Input| {
            loop {
                YIELDER.set(ptr::from_ref(yielder));
                if let Some(job) = input.take()
                    && catch_unwind(AssertUnwindSafe(job)).is_err()
                {
                    // A destructor panicked after the thread's closure: the standard library aborts.
                    with(Exec::fail_in_destructor);
                }
                input = yielder.suspend(Why::Idle);
            }
        })))
    }

    fn resume(&mut self, job: Input) -> Why {
        match self.0.resume(job) {
            CoroutineResult::Yield(why) => why,
            CoroutineResult::Return(()) => unreachable!("a fiber loops"),
        }
    }
}

/// Coroutines at rest, kept from one execution to the next.
#[derive(Default)]
pub(crate) struct Pool {
    idle: Vec<Fiber>,
    /// Of the running execution, by thread.
    active: Vec<Option<Fiber>>,
}

/// The strategy of the execution that runs.
pub(crate) struct Lent(NonNull<dyn Strategy>);

impl Lent {
    fn new(strategy: &mut dyn Strategy) -> Lent {
        let borrowed = NonNull::from(strategy);
        // SAFETY: only the lifetime changes; by rule 6 the pointer is used while the borrow lasts.
        Lent(unsafe {
            std::mem::transmute::<NonNull<dyn Strategy + '_>, NonNull<dyn Strategy>>(borrowed)
        })
    }

    /// The strategy.
    #[inline]
    pub(crate) fn get(&mut self) -> &mut dyn Strategy {
        // SAFETY: by rule 6 the borrow lasts, and this is the only way to the strategy; `&mut self`
        // keeps a second reference from being made.
        unsafe { self.0.as_mut() }
    }
}

/// Runs an execution to its end under a strategy. `exec` has its first thread ready to run.
pub(crate) fn run(exec: &mut Exec, pool: &mut Pool, strategy: &mut dyn Strategy) {
    exec.strategy = Some(Lent::new(strategy));
    let current = ptr::from_mut(exec);
    CURRENT.set(current);
    while let Some((thread, job)) = with(Exec::take_next).flatten() {
        if let Err(error) = resume(pool, thread, job) {
            with(|exec| exec.fail_to_start(thread, &error));
            break;
        }
    }
    with(|exec| exec.strategy = None);
    CURRENT.set(ptr::null_mut());
    for fiber in pool.active.drain(..).flatten() {
        // Rule 4.
        std::mem::forget(fiber);
    }
}

fn resume(pool: &mut Pool, thread: ThreadId, job: Input) -> std::io::Result<()> {
    let index = thread.index();
    if job.is_some() {
        let fiber = match pool.idle.pop() {
            Some(fiber) => fiber,
            None => Fiber::new(with(|e| e.stack_size()).unwrap_or(0))?,
        };
        if pool.active.len() <= index {
            pool.active.resize_with(index + 1, || None);
        }
        pool.active[index] = Some(fiber);
    }
    let fiber =
        pool.active[index].as_mut().expect("a thread has a fiber from its start to its end");
    if let Why::Idle = fiber.resume(job) {
        pool.idle.extend(pool.active[index].take());
    }
    Ok(())
}

/// Makes a job of a closure that may borrow, and of what is done with its result.
///
/// # Safety
/// The job must have run to its end, or be leaked as rule 4 says, before anything that `f` borrows goes
/// away.
pub(crate) unsafe fn job<'a, T: 'a>(
    f: impl FnOnce() -> T + 'a,
    done: impl FnOnce(Result<T, Box<dyn Any + Send>>) + 'a,
) -> Job {
    let job: Box<dyn FnOnce() + 'a> = Box::new(move || done(catch_unwind(AssertUnwindSafe(f))));
    // SAFETY: only the lifetime changes, and the caller promises that it is long enough.
    unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'a>, Job>(job) }
}
