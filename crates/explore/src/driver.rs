//! What an executor records of an execution besides its events.

pub use selvedge_model::Stop;
