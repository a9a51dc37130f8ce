//! A storage in memory. It keeps witnesses only, so it does not grow with the number of executions that agree.

use std::convert::Infallible;

use rustc_hash::FxHashMap;
use selvedge_model::SiteId;

use super::{ExecutionId, Group, Storage};
use crate::{BlockExecution, Digest};

/// Groups and witnesses in memory.
#[derive(Clone, Debug)]
pub struct Memory<S = SiteId> {
    buckets: FxHashMap<Digest, Vec<Group>>,
    witnesses: FxHashMap<ExecutionId, BlockExecution<S>>,
}

impl<S> Default for Memory<S> {
    fn default() -> Memory<S> {
        Memory { buckets: FxHashMap::default(), witnesses: FxHashMap::default() }
    }
}

impl<S> Memory<S> {
    /// How many executions are kept in full.
    pub fn witnesses(&self) -> usize {
        self.witnesses.len()
    }
}

impl<S: Clone> Storage<S> for Memory<S> {
    type Error = Infallible;

    fn groups(&mut self, bucket: Digest) -> Result<Vec<Group>, Infallible> {
        Ok(self.buckets.get(&bucket).cloned().unwrap_or_default())
    }

    fn put(&mut self, bucket: Digest, number: usize, group: &Group) -> Result<(), Infallible> {
        let groups = self.buckets.entry(bucket).or_default();
        match groups.get_mut(number) {
            Some(place) => place.clone_from(group),
            None => groups.push(group.clone()),
        }
        Ok(())
    }

    fn keep(
        &mut self,
        id: ExecutionId,
        execution: &BlockExecution<S>,
        witness: bool,
    ) -> Result<(), Infallible> {
        if witness {
            self.witnesses.insert(id, execution.clone());
        }
        Ok(())
    }

    fn execution(&mut self, id: ExecutionId) -> Result<Option<BlockExecution<S>>, Infallible> {
        Ok(self.witnesses.get(&id).cloned())
    }
}
