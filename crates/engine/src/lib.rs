//! Finds bugs in a program that any executor can run.
//!
//! An [`Executor`] runs one execution after another, one thread at a time: the native executor controls a
//! process, the one of the `selvedge` crate runs coroutines, the one of the tests simulates a program. The
//! engine does the rest for all of them: it turns observed executions into predictions, confirms predictions
//! by directed executions, judges them by what each order leads to, searches for more bugs by undirected
//! executions, and makes schedules shorter.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`executor`] | [`Executor`], [`Ask`], [`Execution`], [`Outcome`] |
//! | [`blocks`] | what an execution says of its deterministic and atomic blocks |
//! | [`ending`] | [`Ending`]: how an execution ended, comparable with other executions; decides whether two failures are the same |
//! | [`deal`] | which shard runs which number |
//! | [`shards`] | runs numbered executions on all cores and delivers the results in order |
//! | [`ranks`] | several processes share a campaign |
//! | [`failures`] | which endings depend on the schedule, and so are findings |
//! | [`observe`] | turns observed executions into predictions |
//! | [`confirm`] | directed executions, and what each order leads to |
//! | [`harm`] | whether an order did harm |
//! | [`determinism`] | compares executions of deterministic blocks with each other |
//! | [`witness`] | whether a serial execution observes the same as one with atomic blocks |
//! | [`linearity`] | executions that no serial one explains |
//! | [`twins`] | whether a sequential execution shows the same as a parallel one |
//! | [`mod@causes`] | which races a difference between two executions comes from |
//! | [`replay`] | follows a schedule again, and searches for shorter ones that show the same |
//! | [`mod@margin`] | how likely a failure is after each beginning of an execution that shows it |
//! | [`run`] | the results of one execution |
//! | [`search`] | undirected executions under a plan, with predictions attempted on the way |
//! | [`turns`] | attempts and undirected executions in turn |
//! | [`campaign`] | observe, predict, confirm, judge, explore |
//!
//! *Guarantee*: what is confirmed happened twice: the strategy itself saw the target's state in an execution,
//! and the replayed schedule showed it again. Executions are numbered, and results are taken in the order of
//! the numbers, so the same seed gives the same results on any number of cores.

#![forbid(unsafe_code)]

pub mod blocks;
pub mod campaign;
pub mod causes;
pub mod confirm;
pub mod deal;
pub mod determinism;
pub mod ending;
pub mod executor;
pub mod failures;
pub mod harm;
pub mod linearity;
pub mod margin;
pub mod observe;
pub mod ranks;
pub mod replay;
pub mod run;
pub mod search;
pub mod shards;
mod told;
pub mod turns;
pub mod twins;
pub mod witness;

pub use blocks::{Blocks, Contrast, Differing, Wrong};
pub use campaign::{Attempted, Budget, Campaign, Host, SoFar};
pub use causes::{Cause, causes};
pub use confirm::{Attempt, Confirmed, Confirmer, JUDGED, Lead, Order, Prediction, Trial};
pub use determinism::{Anomaly, Determinism, InMemory, Origin, States, Violation};
pub use ending::{Ending, Key};
pub use executor::{
    Ask, Difference, Execution, Executor, Factory, Heartbeat, Limit, Nondeterminism, Noted,
    Outcome, Points,
};
pub use failures::{Failures, Found, Times};
pub use harm::{Harm, Left};
pub use linearity::Linearity;
pub use observe::{Before, Observation, Seen};
pub use replay::{Effort, Replayed, Sought};
pub use run::Run;
pub use search::Search;
pub use turns::{Aims, Past};
pub use twins::{Twin, Twins};
pub use witness::{Criterion, UnknownWitness, Witness};
