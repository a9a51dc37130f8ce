//! What `selvedge explore`, `selvedge test` and `selvedge replay` have in common: a program under
//! control, how its executions end, and many of them at once.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`stage`] | a program that is ready to be run under control, and where its sites come from |
//! | [`ending`] | how an execution ended, in terms that outlive it |
//! | [`tally`] | which endings depend on the schedule, and so are findings |
//! | [`lanes`] | executions on all cores, in an order that does not depend on how fast they are |
//! | [`observe`] | executions whose events go through analyses |
//! | [`meeting`] | threads that are to come together at lines of the source |
//! | [`account`] | how a finding happens: a shorter schedule, and the interleaving |
//! | [`debug`] | the interleaving of a finding under gdb |
//! | [`halt`] | why to stop early: a signal, the end of the time |

pub(crate) mod account;
pub(crate) mod debug;
pub(crate) mod ending;
pub(crate) mod halt;
pub(crate) mod lanes;
pub(crate) mod meeting;
pub(crate) mod observe;
pub(crate) mod stage;
pub(crate) mod tally;
