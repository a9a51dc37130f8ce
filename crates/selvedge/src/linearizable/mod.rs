//! Data structures without a harness: random scenarios of operations, checked for linearizability.
//!
//! A type that implements [`Linearizable`] says how it is made, which operations there are, and what one of them
//! returns. [`check`] makes scenarios of them (operations before, in several threads at the same time, and after), runs
//! each under many schedules, and looks for a serial order that gives the same results: of the structure itself or, if
//! there is one, of a [`Model`].
//!
//! ```
//! use selvedge::linearizable::{Linearizable, check};
//! use selvedge::sync::Mutex;
//!
//! struct Stack(Mutex<Vec<u32>>);
//!
//! #[derive(Clone, Debug)]
//! enum Op { Push(u32), Pop }
//!
//! impl Linearizable for Stack {
//!     type Op = Op;
//!     type Ret = Option<u32>;
//!     fn new() -> Stack { Stack(Mutex::default()) }
//!     fn ops() -> Vec<Op> { vec![Op::Push(1), Op::Push(2), Op::Pop] }
//!     fn apply(&self, op: &Op) -> Option<u32> {
//!         let mut stack = self.0.lock().unwrap();
//!         match op {
//!             Op::Push(value) => { stack.push(*value); None }
//!             Op::Pop => stack.pop(),
//!         }
//!     }
//! }
//!
//! check::<Stack>().scenarios(10).schedules(50).check();
//! ```

mod model;
mod results;
mod running;
mod scenario;

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use selvedge_engine::Witness;
use selvedge_explore::Plan;

use crate::failure::Failure;
use results::Results;
pub use scenario::Scenario;

/// A data structure whose operations claim to be atomic.
pub trait Linearizable: Send + Sync + Sized + 'static {
    /// An operation with its arguments. `Debug` is its name.
    type Op: Clone + Debug + Send + Sync + 'static;
    /// What an operation returns.
    type Ret: Debug + PartialEq + Send + 'static;

    /// A new structure.
    fn new() -> Self;

    /// The operations to choose from: few and small, so that they meet.
    fn ops() -> Vec<Self::Op>;

    /// Does an operation; one atomic block. A panic is a result like others.
    fn apply(&self, op: &Self::Op) -> Self::Ret;

    /// Operations of one group never overlap: those of a single consumer, say.
    fn group(op: &Self::Op) -> Option<u32> {
        let _ = op;
        None
    }

    /// Whether the operation may wait for another one.
    fn waits(op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Whether the operation is documented as not atomic: its result is not compared.
    fn weak(op: &Self::Op) -> bool {
        let _ = op;
        false
    }

    /// Whether two results of the operation count as the same.
    fn same(op: &Self::Op, a: &Self::Ret, b: &Self::Ret) -> bool {
        let _ = op;
        a == b
    }

    /// The state, compared at the end.
    fn state(&self) -> String {
        String::new()
    }

    /// Panics if the structure is broken at the end.
    fn validate(&self) {}
}

/// A sequential specification. A state may have several next states.
pub trait Model: Clone + Eq + Hash {
    /// The operations.
    type Op;
    /// What they return.
    type Ret;

    /// The first state.
    fn new() -> Self;

    /// The states after the operation, if it is possible now and returns `ret`.
    fn step(&self, op: &Self::Op, ret: &Self::Ret) -> Vec<Self>;
}

/// What a check that did not fail has seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// How many scenarios there were.
    pub scenarios: u64,
    /// How many executions there were, with the serial ones.
    pub executions: u64,
    /// Whether every schedule, or every one within the bounds of its strategy, of every scenario was seen.
    pub complete: bool,
    /// How many operations, by name, are not conflict-serializable. That is no failure.
    pub conflicts: u64,
}

/// Judges the operations of an execution by a model.
type Judge<T> = fn(Arc<Results<T>>) -> selvedge_engine::witness::Specified;

/// A check of a data structure; the methods set options, [`Check::check`] runs.
pub struct Check<T: Linearizable> {
    threads: usize,
    ops: usize,
    before: usize,
    after: usize,
    scenarios: u64,
    schedules: u64,
    strategy: Option<Plan>,
    seed: u64,
    witness: Witness,
    obstruction_free: bool,
    model: Option<Judge<T>>,
    scenario: Option<Scenario<T::Op>>,
    of: PhantomData<fn() -> T>,
}

impl<T: Linearizable> Debug for Check<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check")
            .field("threads", &self.threads)
            .field("ops", &self.ops)
            .field("scenarios", &self.scenarios)
            .field("schedules", &self.schedules)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// A check of `T` with the default options.
pub fn check<T: Linearizable>() -> Check<T> {
    Check {
        threads: 2,
        ops: 3,
        before: 2,
        after: 2,
        scenarios: 100,
        schedules: 1_000,
        strategy: None,
        seed: 0,
        witness: Witness::default(),
        obstruction_free: false,
        model: None,
        scenario: None,
        of: PhantomData,
    }
}

impl<T: Linearizable> Check<T> {
    /// How many threads do operations at the same time.
    pub fn threads(mut self, threads: usize) -> Check<T> {
        self.threads = threads.max(1);
        self
    }

    /// At most so many operations in each of these threads.
    pub fn ops(mut self, ops: usize) -> Check<T> {
        self.ops = ops.max(1);
        self
    }

    /// At most so many operations before them.
    pub fn before(mut self, ops: usize) -> Check<T> {
        self.before = ops;
        self
    }

    /// At most so many operations after them.
    pub fn after(mut self, ops: usize) -> Check<T> {
        self.after = ops;
        self
    }

    /// How many scenarios there are.
    pub fn scenarios(mut self, scenarios: u64) -> Check<T> {
        self.scenarios = scenarios;
        self
    }

    /// At most so many schedules of each scenario.
    pub fn schedules(mut self, schedules: u64) -> Check<T> {
        self.schedules = schedules;
        self
    }

    /// How schedules are chosen. By default, small scenarios run under `dpor`, others under several strategies in
    /// turn.
    pub fn strategy(mut self, plan: impl Into<Plan>) -> Check<T> {
        self.strategy = Some(plan.into());
        self
    }

    /// The seed of everything random.
    pub fn seed(mut self, seed: u64) -> Check<T> {
        self.seed = seed;
        self
    }

    /// Checks this scenario only.
    pub fn scenario(mut self, scenario: Scenario<T::Op>) -> Check<T> {
        self.scenario = Some(scenario);
        self
    }

    /// Results must be those of the model in some order that keeps the order of operations which did not overlap,
    /// instead of those of the structure itself.
    pub fn model<M: Model<Op = T::Op, Ret = T::Ret> + 'static>(mut self) -> Check<T> {
        self.model = Some(model::specified::<T, M>);
        self
    }

    /// Which serial executions count: `linearizable`, `serializable` or `atomic`, as in
    /// [`Explore::witness`](crate::Explore::witness).
    ///
    /// # Panics
    /// If the name is none of these.
    pub fn witness(mut self, name: &str) -> Check<T> {
        self.witness = name.parse().unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// Demands that an operation, left alone, ends.
    pub fn obstruction_free(mut self) -> Check<T> {
        self.obstruction_free = true;
        self
    }

    /// Runs the check.
    ///
    /// # Panics
    /// If it fails, with the failure in words. If there are no operations, or nothing could be decided.
    #[track_caller]
    pub fn check(self) {
        if let Err(failure) = self.run_at(Location::caller()) {
            panic!("{failure}");
        }
    }

    /// Runs the check, and returns a summary or the failure.
    ///
    /// # Panics
    /// If there are no operations, or nothing could be decided.
    #[track_caller]
    pub fn run(self) -> Result<Summary, Box<Failure>> {
        self.run_at(Location::caller())
    }
}
