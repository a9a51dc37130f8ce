//! `--meet`: makes threads meet at lines of the source.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use selvedge_engine::search::NewStrategy;
use selvedge_engine::{Observation, Points};
use selvedge_explore::{Meet, Strategy, Wraps};
use selvedge_model::Site;
use selvedge_report::Remark;
use selvedge_runtime::Controlled;
use selvedge_runtime::control::WatchList;

use crate::exit::Failure;

/// The places where threads shall meet.
pub(crate) struct Meeting {
    places: Vec<Vec<Site>>,
    same_object: bool,
    /// The accesses at these places, which must be scheduling points.
    pub(crate) points: WatchList,
    met: Arc<AtomicU64>,
}

impl Meeting {
    /// Looks up `lines`, each a `file:line`, among the places of the observed executions.
    pub(crate) fn find(
        lines: &[String],
        same_object: bool,
        observation: &Observation<Controlled>,
    ) -> Result<Meeting, Failure> {
        let mut meeting = Meeting {
            places: Vec::new(),
            same_object,
            points: WatchList::default(),
            met: Arc::default(),
        };
        for line in lines {
            let wanted = line.rsplit_once(':').and_then(|(f, n)| Some((f, n.parse().ok()?)));
            let Some((file, number)) = wanted else {
                return Err(Failure::Usage(format!("--meet {line}: expected FILE:LINE")));
            };
            let mut sites = Vec::new();
            for (site, points) in &observation.points {
                if is_at(site, file, number) {
                    sites.push(site.clone());
                    meeting.points.add(points);
                }
            }
            if sites.is_empty() {
                return Err(Failure::Usage(format!(
                    "--meet {line}: no thread synchronized or accessed memory there in {} observed executions",
                    observation.runs.len()
                )));
            }
            sites.sort_by_key(ToString::to_string);
            meeting.places.push(sites);
        }
        Ok(meeting)
    }

    /// Makes strategies that hold threads at these places.
    pub(crate) fn strategy(&self) -> NewStrategy {
        let (places, same_object) = (self.places.clone(), self.same_object);
        let met = Arc::clone(&self.met);
        Arc::new(move |site_of, _| {
            let ids = |sites: &Vec<Site>| sites.iter().map(&mut *site_of).collect();
            let meet = Meet::new(places.iter().map(ids).collect());
            let meet = if same_object { meet.at_one_object() } else { meet };
            Box::new(Counted { meet, met: Arc::clone(&met) })
        })
    }

    /// In how many executions the threads met.
    pub(crate) fn remark(&self) -> Remark {
        Remark::Met(self.met.load(Ordering::Relaxed))
    }
}

/// Whether a site is on this line. `file` may be the end of the file's path.
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

impl Wraps for Counted {
    fn wrapped(&self) -> &dyn Strategy {
        &self.meet
    }
    fn wrapped_mut(&mut self) -> &mut dyn Strategy {
        &mut self.meet
    }
    fn on_end(&mut self) {
        self.met.fetch_add(u64::from(!self.meet.met().is_empty()), Ordering::Relaxed);
    }
}
