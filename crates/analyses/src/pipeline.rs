//! The events of an execution go through analyses and become findings.

use selvedge_model::{Event, Finding, Findings, FirstRace};

use crate::entry::{Entry, Settings};
use crate::{Analysis, Bound, Witness};

/// Analyses, and what they have found in the execution that they see.
#[allow(missing_debug_implementations)]
#[derive(Default)]
pub struct Pipeline {
    settings: Settings,
    /// Those that see this execution.
    running: Vec<Stage>,
    /// Those that saw an earlier one, kept for the next.
    idle: Vec<Stage>,
    findings: Findings,
    /// How many of the findings [`Pipeline::news`] has handed out.
    told: usize,
}

struct Stage {
    entry: &'static Entry,
    analysis: Box<dyn Analysis>,
}

/// A bound that one of the analyses has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The name of the analysis.
    pub analysis: &'static str,
    /// The bound.
    pub bound: Bound,
}

impl Pipeline {
    /// No analyses yet; those that are [started](Pipeline::start) are made in this way.
    pub fn new(settings: Settings) -> Pipeline {
        Pipeline { settings, ..Pipeline::default() }
    }

    /// Makes analyses see the events that come from now on.
    pub fn start(&mut self, entries: impl IntoIterator<Item = &'static Entry>) {
        for entry in entries {
            let known = self.idle.iter().position(|s| s.entry.name == entry.name);
            self.running.push(match known.map(|i| self.idle.swap_remove(i)) {
                Some(mut known) => {
                    known.analysis.restart();
                    known
                }
                None => Stage { entry, analysis: entry.make(self.settings) },
            });
        }
    }

    /// Whether analyses see the events.
    pub fn is_started(&self) -> bool {
        !self.running.is_empty()
    }

    /// Forgets the execution. The analyses stop, and are used again when they are started again.
    pub fn restart(&mut self) {
        self.idle.append(&mut self.running);
        self.findings = Findings::default();
        self.told = 0;
    }

    /// Shows something to each analysis.
    pub fn each(&mut self, mut show: impl FnMut(&Entry, &mut dyn Analysis, &mut Findings)) {
        for Stage { entry, analysis } in &mut self.running {
            show(entry, &mut **analysis, &mut self.findings);
        }
    }

    /// The next event.
    #[inline]
    pub fn on_event(&mut self, event: &Event) {
        self.each(|_, analysis, findings| analysis.on_event(event, findings));
    }

    /// Several events.
    pub fn on_events(&mut self, events: &[Event]) {
        self.each(|_, analysis, findings| analysis.on_events(events, findings));
    }

    /// As [`Analysis::on_first_race`].
    pub fn on_first_race(&mut self, race: &FirstRace) {
        self.each(|_, analysis, findings| analysis.on_first_race(race, findings));
    }

    /// The execution is over.
    pub fn finish(&mut self) {
        self.each(|_, analysis, findings| analysis.finish(findings));
    }

    /// What has been found so far, for a front end that has something to add.
    pub fn findings(&mut self) -> &mut Findings {
        &mut self.findings
    }

    /// Takes out what has been found so far.
    pub fn take_findings(&mut self) -> Findings {
        self.told = 0;
        std::mem::take(&mut self.findings)
    }

    /// Whether something has been found since [`Pipeline::news`] was asked last.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.findings.len() > self.told
    }

    /// What has been found since the last time.
    pub fn news(&mut self) -> impl Iterator<Item = &Finding> {
        let told = std::mem::replace(&mut self.told, self.findings.len());
        self.findings.iter().skip(told)
    }

    /// The names of the analyses that see the events.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.running.iter().map(|s| s.entry.name)
    }

    /// The orders of events that show what has been found, where an analysis knows them.
    pub fn witnesses(&self) -> impl Iterator<Item = &Witness> {
        self.running.iter().flat_map(|s| s.analysis.witnesses())
    }

    /// The bounds that the analyses have reached.
    pub fn bounds(&self) -> impl Iterator<Item = Reached> {
        let reached =
            |s: &Stage| Some(Reached { analysis: s.entry.name, bound: s.analysis.bound()? });
        self.running.iter().filter_map(reached)
    }
}
