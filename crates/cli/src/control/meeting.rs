//! `--meet`: threads are to come together at lines of the source.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use selvedge_explore::{Choice, Meet, Pending, Strategy};
use selvedge_model::{Event, Site, SiteId, ThreadId};
use selvedge_report::Watched;

use super::observe::Observation;
use crate::exit::Failure;

/// Where threads are to meet.
pub(crate) struct Meeting {
    places: Vec<Vec<SiteId>>,
    same_object: bool,
    /// The accesses among them, which are no scheduling points otherwise.
    pub(crate) watched: Vec<Watched>,
    met: Arc<AtomicU64>,
}

impl Meeting {
    /// At `lines`, each a `file:line`, where something happened in an observed execution.
    pub(crate) fn find(
        lines: &[String],
        same_object: bool,
        observation: &Observation,
    ) -> Result<Meeting, Failure> {
        let mut meeting =
            Meeting { places: Vec::new(), same_object, watched: Vec::new(), met: Arc::default() };
        for line in lines {
            let wanted = line.rsplit_once(':').and_then(|(f, n)| Some((f, n.parse().ok()?)));
            let Some((file, number)) = wanted else {
                return Err(Failure::Usage(format!("--meet {line}: not of the form file:line")));
            };
            let mut sites = Vec::new();
            let all = &observation.symbols.sites;
            for (id, site) in (0..).map_while(|id| Some((id, all.get(id)?))) {
                if is_at(site, file, number) {
                    sites.push(SiteId(id));
                    meeting
                        .watched
                        .extend(observation.code.get(site).into_iter().flatten().cloned());
                }
            }
            if sites.is_empty() {
                return Err(Failure::Usage(format!(
                    "--meet {line}: no thread synchronized or accessed memory there in {} observed executions",
                    observation.executions
                )));
            }
            meeting.places.push(sites);
        }
        Ok(meeting)
    }

    /// The strategy, for so many executions.
    pub(crate) fn strategy(&self, seed: u64, limit: u64) -> Box<dyn Strategy> {
        let meet = Meet::new(self.places.clone(), seed, limit);
        let meet = if self.same_object { meet.at_one_object() } else { meet };
        Box::new(Counted { meet, met: Arc::clone(&self.met) })
    }

    /// In how many executions they met, for the user.
    pub(crate) fn remark(&self) -> String {
        format!("the threads met in {} executions", self.met.load(Ordering::Relaxed))
    }
}

/// Whether a site is in that line of a file, which may be given by the end of its path.
fn is_at(site: &Site, file: &str, line: u32) -> bool {
    let Site::Source(frame, _) = site else { return false };
    let ends = frame.file.strip_suffix(file);
    frame.line == line && ends.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Counts the executions in which threads met.
struct Counted {
    meet: Meet,
    met: Arc<AtomicU64>,
}

impl Strategy for Counted {
    fn begin(&mut self) -> bool {
        self.meet.begin()
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.meet.choose(choice)
    }
    fn follows_steps(&self) -> bool {
        self.meet.follows_steps()
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.meet.step(thread, pending);
    }
    fn observe(&mut self, event: &Event) {
        self.meet.observe(event);
    }
    fn end(&mut self, pending: &[Pending]) {
        self.meet.end(pending);
        self.met.fetch_add(u64::from(!self.meet.met().is_empty()), Ordering::Relaxed);
    }
}
