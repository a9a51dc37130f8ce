//! What was inferred of blocks, so that later executions can be held to it.
//!
//! The executions that an inference is about are stored as those of a block of its own, which assumes and ensures what
//! was inferred ([`Promise::of`]), and are compared by the same index as all others.

use rusqlite::{OptionalExtension, params};
use selvedge_engine::Differing;
use selvedge_model::Site;
use selvedge_specs::determin::Promise;
use selvedge_specs::states::{ExecutionId, Obstacle};
use selvedge_specs::{BlockExecution, NoCallbacks};

use super::states::{About, Pruned};
use super::{Store, StoreError};

pub(super) const TABLES: &str = "
    CREATE TABLE promises (block TEXT NOT NULL, build TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (block, build)) WITHOUT ROWID;";

impl Store {
    /// Stores what was inferred of a block of a build from these executions, instead of what was inferred before.
    pub(crate) fn keep_promise(
        &mut self,
        promise: &Promise,
        build: &str,
        executions: &[BlockExecution<Site>],
    ) -> Result<(), StoreError> {
        let (block, build) = (Some(promise.name().into()), Some(build.to_owned()));
        self.prune(&Pruned { block, build: build.clone(), older_than: None })?;
        let body = serde_json::to_string(promise).expect("keys are text");
        self.connection
            .execute(
                "INSERT OR REPLACE INTO promises (block, build, body) VALUES (?, ?, ?)",
                params![&*promise.block, build, body],
            )
            .map_err(|e| StoreError::new(&self.path, e))?;
        let about = About { build: build.unwrap_or_default(), ..About::default() };
        executions.iter().try_for_each(|execution| self.check_promise(execution, &about).map(drop))
    }

    /// Compares an execution in what was inferred of its block for the same build, or with `across_builds` for any,
    /// and stores it: the first difference from an earlier execution, and that one.
    pub(crate) fn check_promise(
        &mut self,
        execution: &BlockExecution<Site>,
        about: &About,
    ) -> Result<Option<(Differing, ExecutionId)>, StoreError> {
        let select = "SELECT body FROM promises WHERE block = ?1 AND (?3 OR build = ?2)
             ORDER BY build = ?2 DESC LIMIT 1";
        let given = params![&*execution.block, about.build, about.across_builds];
        let body: Option<String> = self
            .connection
            .query_row(select, given, |row| row.get(0))
            .optional()
            .map_err(|e| StoreError::new(&self.path, e))?;
        let promise: Option<Promise> = body.and_then(|body| serde_json::from_str(&body).ok());
        let Some(promised) = promise.and_then(|promise| promise.of(execution)) else {
            return Ok(None);
        };
        match self.check_block(&promised, about, &mut NoCallbacks) {
            Ok((_, checked)) => Ok(checked.violation.map(|v| {
                let differing = Differing { first: v.first, later: v.later };
                (differing, v.earlier)
            })),
            Err(obstacle) => match *obstacle {
                Obstacle::Storage(error) => Err(error),
                // A value of another kind than before cannot be compared.
                Obstacle::Trouble(_) => Ok(None),
            },
        }
    }
}
