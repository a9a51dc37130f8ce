//! What finds bugs, whoever runs the program.
//!
//! An [`Executor`] runs one execution after another, one thread at a time: the native one controls a
//! process, the one of the `selvedge` crate runs coroutines, the one of the tests simulates. Everything
//! else is here once: observed executions become predictions, directed executions confirm them, what
//! each order leads to judges them, undirected ones look for more, and schedules are made shorter.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`executor`] | [`Executor`], [`Ask`], [`Execution`], [`Outcome`] |
//! | [`ending`] | [`Ending`]: how an execution ended, in terms that outlive it; the one notion of the same failure |
//! | [`shards`] | numbered executions on all cores, results in order |
//! | [`failures`] | which endings depend on the schedule, and so are findings |
//! | [`observe`] | observed executions become predictions |
//! | [`confirm`] | directed executions, and what each order leads to |
//! | [`harm`] | whether an order did harm |
//! | [`replay`] | the same schedule again, and shorter ones that show the same |
//! | [`run`] | what became of one execution |
//! | [`search`] | undirected executions under a plan, with predictions attempted on the way |
//! | [`campaign`] | observe, predict, confirm, judge, explore |
//!
//! *Guarantee*: nothing is confirmed that did not happen twice: the strategy itself saw the target's
//! state in an execution, and the replayed schedule shows it again. Executions are numbered, and results
//! are taken in the order of the numbers: the same seed gives the same results on any number of cores.

#![forbid(unsafe_code)]

pub mod campaign;
pub mod confirm;
pub mod ending;
pub mod executor;
pub mod failures;
pub mod harm;
pub mod observe;
pub mod replay;
pub mod run;
pub mod search;
pub mod shards;

pub use campaign::{Attempted, Budget, Campaign, Host};
pub use confirm::{Attempt, Confirmed, Confirmer, Order, Prediction, Trial};
pub use ending::{Ending, Key};
pub use executor::{
    Ask, Execution, Executor, Factory, Heartbeat, Nondeterminism, Noted, Outcome, Points,
};
pub use failures::{Failures, Found, Times};
pub use harm::{Harm, Left};
pub use observe::{Observation, Seen};
pub use replay::{Effort, Replayed, Sought};
pub use run::Run;
pub use search::Search;
