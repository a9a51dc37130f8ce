//! One file per strategy.

pub mod active;
pub mod alone;
pub mod atomicity;
pub mod deadlocks;
pub mod dfs;
pub mod directed;
pub mod dpor;
pub mod interrupt;
pub mod led;
pub mod meet;
pub mod mix;
pub mod pct;
pub mod pos;
pub mod prefix;
pub mod races;
pub mod random;
pub mod reads_from;
pub mod replay;
pub mod round_robin;
pub mod sequential;
pub mod serial;
pub mod surw;
pub mod turned;
