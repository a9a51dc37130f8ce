//! A native program as an [`Executor`] of the engine.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use selvedge_engine::{Ask, Execution, Executor, Nondeterminism, Noted, Points};
use selvedge_explore::{Replay, Rng, Strategy};
use selvedge_model::{Site, SiteId, Symbols};

use selvedge_specs::Judge;

use super::output::Written;
use super::outside::cause;
use super::{CodePlace, Controlled};
use crate::names::{NameTable, Names};
use crate::session::Error;

/// An access that is a scheduling point, as it is found again in another process or build.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Watched {
    /// Its code.
    pub code: CodePlace,
    /// Its place in the source.
    pub site: Site,
}

/// The accesses that are scheduling points, in the order of their code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WatchList(Arc<Vec<Watched>>);

impl WatchList {
    /// A list of these accesses, each once.
    pub fn new(mut list: Vec<Watched>) -> WatchList {
        list.sort_by(|a, b| a.code.cmp(&b.code));
        list.dedup_by(|a, b| a.code == b.code);
        WatchList(Arc::new(list))
    }

    /// All of them.
    pub fn list(&self) -> &[Watched] {
        &self.0
    }
}

impl Points for WatchList {
    fn add(&mut self, more: &WatchList) {
        if !more.0.is_empty() {
            *self = WatchList::new(self.0.iter().chain(&*more.0).cloned().collect());
        }
    }
}

impl Controlled {
    /// The place among those executed that a place of an earlier build has become.
    pub fn relocated(&self, site: &Site) -> Option<Site> {
        site.relocated(self.places.executed().keys()).cloned()
    }
}

impl Executor for Controlled {
    type Error = Error;
    type Names = NameTable;
    type NamesNow = Names;
    type Points = WatchList;

    fn run(
        &mut self,
        strategy: &mut dyn Strategy,
        ask: &Ask<WatchList>,
    ) -> Result<Execution, Error> {
        if self.points != ask.points {
            let places: Vec<CodePlace> = ask.points.list().iter().map(|w| w.code.clone()).collect();
            self.watch(&places)?;
            self.points = ask.points.clone();
        }
        (self.seed, self.releases) = (ask.seed, ask.releases);
        self.settings.accesses = ask.noted == Noted::Accesses;
        self.settings.values = ask.noted == Noted::Events;
        self.settings.flow = ask.noted == Noted::Flow;
        self.settings.stars = ask.stars;
        let limit = self.settings.time;
        self.settings.time = ask.time.map_or(limit, |t| t.min(limit));
        for written in &self.settings.ensured {
            if let Written::File(file) = written {
                file.restore().map_err(Error::Restore)?;
            }
        }
        let execution = Controlled::run(self, strategy);
        self.settings.time = limit;
        execution
    }

    fn named(&mut self, execution: &Execution) -> Arc<Symbols> {
        Controlled::named(self, &execution.events)
    }

    fn names(&self) -> NameTable {
        Controlled::names(self).snapshot()
    }

    fn names_now(&self) -> Names {
        Controlled::names(self)
    }

    fn site(&mut self, site: &Site) -> SiteId {
        let site = self.relocated(site).unwrap_or_else(|| site.clone());
        SiteId(self.symbols.sites.intern(site))
    }

    fn place(&self, site: SiteId) -> Site {
        self.symbols.site(site)
    }

    fn points(&self) -> HashMap<Site, WatchList> {
        let list = |(site, codes): (&Site, &BTreeSet<CodePlace>)| {
            let watched = |code: &CodePlace| Watched { code: code.clone(), site: site.clone() };
            (site.clone(), WatchList::new(codes.iter().map(watched).collect()))
        };
        self.places.executed().iter().map(list).collect()
    }

    fn judge(&self) -> Box<dyn Judge> {
        Box::new(self.settings.judges.clone())
    }

    fn repeat(
        &mut self,
        execution: &Execution,
        ask: &Ask<WatchList>,
    ) -> Result<Option<Nondeterminism>, Error> {
        /// Executions in the same process, and as many in one that is started anew.
        const TIMES: usize = 2;
        let (waited, sources) = std::mem::take(&mut self.asked);
        for round in 0..2 * TIMES {
            let anew = round >= TIMES;
            if anew {
                self.stop();
            }
            let mut replay = Replay::new(&execution.schedule);
            replay.begin(Rng::default());
            let again = Executor::run(self, &mut replay, ask)?;
            let Some(difference) = execution.difference(&again) else { continue };
            let waited = waited.first().or(self.asked.0.first());
            let cause = cause(waited, sources | self.asked.1, anew);
            let symbols = Executor::named(self, &again);
            return Ok(Some(Nondeterminism { difference, cause, symbols }));
        }
        Ok(None)
    }
}
