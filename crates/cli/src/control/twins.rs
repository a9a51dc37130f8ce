//! The sequential executions of a program that says how its data flows, for all commands that judge by them.

use std::collections::BTreeSet;

use selvedge_engine::{Ask, Execution, Noted, Twin, Twins};
use selvedge_explore::sequential::Tasks;
use selvedge_model::{Site, SiteId};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::WatchList;
use selvedge_runtime::flow::Tables;
use selvedge_specs::ndseq::execution;

use super::flow::{Shown, shown};
use super::sharing::{Sharing, shared};
use crate::deadline::Deadline;
use crate::exit::{Failure, unless_interrupted};

/// Looks for sequential executions.
pub(crate) struct Sequentials {
    /// The scheduling points of all executions.
    pub(crate) sharing: Sharing,
    tables: Tables,
    seed: u64,
    budget: u64,
    /// Whether stars of the source may be left out.
    stars: bool,
    /// The sequential executions with these scheduling points.
    twins: Option<(Twins<Shown>, WatchList)>,
    /// The most that were run.
    pub(crate) executions: u64,
}

impl Sequentials {
    /// At most `budget` executions.
    pub(crate) fn new(tables: Tables, seed: u64, budget: u64, stars: bool) -> Sequentials {
        let sharing = Sharing::new(&tables);
        Sequentials { sharing, tables, seed, budget, stars, twins: None, executions: 0 }
    }

    /// Makes the accesses at these sites scheduling points.
    pub(crate) fn watch(&mut self, sites: Vec<Site>) -> bool {
        self.sharing.watch(sites, &self.tables)
    }

    /// Whether every sequential execution was run.
    pub(crate) fn are_all(&self) -> bool {
        self.twins.as_ref().is_some_and(|(twins, _)| twins.is_complete())
    }

    /// What the sequential executions say of a result. Where a thread outside of tasks shares memory, its accesses have
    /// to be scheduling points, or not every order would be tried; if such accesses turn up, the search begins again.
    pub(crate) fn twin(
        &mut self,
        executor: &mut Controlled,
        deadline: &Deadline,
        tasks: execution::Tasks,
        result: &Shown,
    ) -> Result<Twin, Failure> {
        let tasks = match tasks {
            execution::Tasks::Threads => Tasks::Threads,
            execution::Tasks::Marked => Tasks::Marked,
        };
        loop {
            let points = self.sharing.list.clone();
            if self.twins.as_ref().is_none_or(|(_, before)| *before != points) {
                self.twins = Some((Twins::new(tasks, self.budget), points.clone()));
            }
            let Some((twins, _)) = &mut self.twins else { return Ok(Twin::Unknown) };
            let (seed, stars) = (self.seed, self.stars);
            let ask = Ask { seed, noted: Noted::Flow, points, stars, ..Ask::default() };
            let mut sites: BTreeSet<SiteId> = BTreeSet::new();
            let run = |executor: &mut Controlled, execution: &Execution| {
                sites.extend(shared(&execution.events));
                shown(executor, execution)
            };
            let found = twins.find(executor, result, &ask, run, || deadline.stopped().is_some());
            // One that the time limit ends says nothing.
            let found = unless_interrupted(found)?.unwrap_or(Twin::Unknown);
            self.executions = self.executions.max(twins.executions);
            let symbols = &executor.symbols;
            let sites: Vec<Site> = sites.into_iter().map(|s| symbols.site(s)).collect();
            if !self.watch(sites) || found != Twin::None {
                return Ok(found);
            }
        }
    }
}
