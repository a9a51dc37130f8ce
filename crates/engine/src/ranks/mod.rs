//! Several processes share a campaign.
//!
//! One process, the *head*, holds the campaign: it takes the results in, decides when it is enough, and reports. The
//! others are its *members*. Each runs the shards that the head gives it and tells what happened (see `told`);
//! nothing else has to be known of each other, because what a shard does depends on its own results alone
//! ([`crate::shards`]). What carries the messages is a [`Link`]; what is told is also written into a [`Log`], so that it
//! is not lost if the head is.
//!
//! A member that is silent for too long counts as gone: its shards are given to others, who begin them again. If it is
//! only slow and speaks later, that does no harm, because its results are the same.
//!
//! Guarantee: the head comes to the same results as a process that runs everything itself, whichever members there are
//! and whenever they end.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `wire` | [`Link`], [`Log`], messages |
//! | `head` | the process that holds the campaign |
//! | `member` | a process that works for it |

mod head;
mod member;
mod wire;

pub use head::{Absence, Head, Received};
pub use member::Member;
pub use wire::{Link, Log, Rank, Recorded};

/// The processes of a campaign, as one of them sees them.
#[derive(Default)]
#[allow(missing_debug_implementations)]
pub enum Crew {
    /// There is only this one.
    #[default]
    Alone,
    /// This one holds the campaign.
    Head(Box<Head>),
    /// This one works for another one.
    Member(Box<Member>),
}
