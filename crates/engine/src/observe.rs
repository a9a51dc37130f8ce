//! Turns observed executions into predictions.
//!
//! In the first execution no thread is stopped before it blocks. Each further one differs as much as it can: the
//! accesses that may race by then are scheduling points, and [`ReadsFrom`] makes a read see another write than
//! before. What the executions show counts like what all others show.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use selvedge_analyses::pipeline::{Pipeline, Reached};
use selvedge_analyses::registry::{Entry, Settings};
use selvedge_analyses::{Witness, contention, predictive};
use selvedge_explore::rng::derive;
use selvedge_explore::{Cue, Flip, ReadsFrom, Replay, Rng, learn};
use selvedge_model::{
    Event, Finding, FindingId, Keep, Kind, Op, Region, RegionKind, Role, Schedule, Site, SiteId,
    Status, Subject, Symbols, Target, merge,
};

use crate::blocks::Blocks;
use crate::confirm::{Lead, Prediction};
use crate::ending::Ending;
use crate::executor::{Ask, Execution, Executor, Noted, Points, execute};
use crate::harm::Left;
use crate::run::Run;

/// The largest number of orders of synchronization to try.
const ORDERS: usize = 32;

/// The largest number of threads of an execution in which witnesses are looked for: what that costs grows with the pairs
/// of threads that share memory, and of many threads most are alike.
const WITNESSED: usize = 24;
/// The largest number of steps of a witness that are followed.
const CUES: usize = 50_000;

/// The results of observed executions.
pub struct Observation<X: Executor> {
    /// The findings of the analyses, each once, in the order in which they were made.
    pub seen: Vec<Seen<X::Names, X::Points>>,
    /// The places executed, each with what makes the accesses there scheduling points.
    pub points: HashMap<Site, X::Points>,
    /// The results and the schedule of the execution in which no thread is stopped before it blocks.
    pub baseline: Option<(Left, Schedule)>,
    /// Whether a thread could observe when another thread releases a lock.
    pub releases: bool,
    /// The executions, each with the accesses that were scheduling points in it.
    pub runs: Vec<(Run, X::Points)>,
    /// The reads that might see other writes.
    pub flips: Vec<Flip<Site>>,
    /// How many events there were.
    pub events: u64,
    /// The largest number of threads in one execution.
    pub threads: usize,
    /// The limits that the analyses reached.
    pub bounds: Vec<Reached>,
    /// After how many events an execution was cut off, if one was.
    pub cut_off: Option<usize>,
    /// How many conflicts `determinism` saw in blocks that ensure something.
    pub conflicts: u64,
    /// The atomic blocks that are not conflict-serializable, by name, where something is observed.
    pub serial_conflicts: BTreeSet<Box<str>>,
}

/// A finding of the analyses.
#[derive(Clone, Debug)]
pub struct Seen<N, P> {
    /// Its identity.
    pub id: FindingId,
    /// The finding itself.
    pub finding: Finding,
    /// The names in it.
    pub symbols: Arc<Symbols>,
    /// What a directed execution needs to make it happen, if it has a target.
    pub prediction: Option<Prediction<N, P>>,
}

/// What earlier observations and searches of the same program leave to a later one.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// How many executions there were.
    pub executions: u64,
    /// What they told of pairs of a read and a write.
    pub flips: Vec<Flip<Site>>,
}

/// Runs the program `executions` times, records every access that the executor can see, and runs the analyses
/// on the events.
pub fn observe<X: Executor>(
    executor: &mut X,
    seed: u64,
    executions: u64,
    (analyses, settings): (&[&'static Entry], Settings),
    before: &Before,
) -> Result<Observation<X>, X::Error> {
    let mut pipeline = Pipeline::new(settings);
    let mut observation = Observation::default();
    // The first schedule chooses nothing.
    let mut first = ReadsFrom::over([Box::new(Replay::new(&Schedule::default()))]);
    let mut further: Option<ReadsFrom> = None;
    for number in 0..executions {
        let ask = Ask {
            seed,
            releases: observation.releases,
            noted: Noted::Accesses,
            points: observation.racing(),
            time: None,
            stars: false,
        };
        let strategy = further.as_mut().unwrap_or(&mut first);
        let rng = Rng::new(derive(seed ^ 0x0b5e, before.executions + number));
        let Some(execution) = execute(executor, strategy, rng, &ask)? else { break };
        pipeline.restart();
        let is_small = threads(&execution.events) <= WITNESSED;
        let fits = |entry: &&'static Entry| is_small || entry.name != predictive::ENTRY.name;
        pipeline.start(analyses.iter().copied().filter(fits));
        if execution.blocks.ensures() {
            // What is ensured says whether an order of synchronization matters.
            pipeline.start([&contention::ENTRY]);
        }
        observation.take(executor, (&execution, &ask.points), &mut pipeline);
        let symbols = executor.named(&execution);
        let place = |flip: &Flip| flip.map(|&site| symbols.site(site));
        observation.flips = strategy.flips().iter().map(place).collect();
        let cut_off = execution.cut_off;
        observation.runs.push((Run::new(executor, execution), ask.points));
        // A program whose execution is too long to record would exceed the limit again.
        if cut_off {
            break;
        }
        if further.is_none() {
            let mut known = before.flips.clone();
            learn(&mut known, observation.flips.iter().cloned());
            let known = known.iter().map(|flip| flip.map(|site| executor.site(site)));
            further = Some(ReadsFrom::default().knowing(known));
        }
    }
    Ok(observation)
}

impl<X: Executor> Default for Observation<X> {
    /// Nothing was observed.
    fn default() -> Observation<X> {
        Observation {
            seen: Vec::new(),
            points: HashMap::new(),
            baseline: None,
            releases: false,
            runs: Vec::new(),
            flips: Vec::new(),
            events: 0,
            threads: 0,
            bounds: Vec::new(),
            cut_off: None,
            conflicts: 0,
            serial_conflicts: BTreeSet::new(),
        }
    }
}

impl<X: Executor> Observation<X> {
    /// What these executions told of pairs, beyond what was known before.
    pub fn flips_since(&self, before: &Before) -> Vec<Flip<Site>> {
        let known = |flip: &Flip<Site>| {
            before.flips.iter().find(|b| b.read == flip.read && b.write == flip.write)
        };
        let since = |flip: &Flip<Site>| {
            let tried = flip.tried - known(flip).map_or(0, |b| b.tried.min(flip.tried));
            Flip { tried, ..flip.clone() }
        };
        self.flips.iter().map(since).collect()
    }

    fn take(
        &mut self,
        executor: &mut X,
        (execution, points): (&Execution, &X::Points),
        pipeline: &mut Pipeline,
    ) {
        self.events += execution.events.len() as u64;
        self.releases |= execution.releases_matter;
        self.threads = self.threads.max(threads(&execution.events));
        pipeline.on_events(&execution.events);
        pipeline.finish();
        for bound in pipeline.bounds() {
            if !self.bounds.contains(&bound) {
                self.bounds.push(bound);
            }
        }
        if execution.cut_off {
            self.cut_off = Some(execution.events.len());
        }
        self.points = executor.points();
        let names = executor.names();
        let symbols = executor.named(execution);
        for finding in pipeline.take_findings() {
            match conflict(&finding, &symbols, &execution.blocks) {
                // What the block ensures says whether the conflict matters.
                Some(pair) => {
                    match finding.subject {
                        Subject::Region(region) if finding.kind == Kind::AtomicityViolation => {
                            let name = symbols.region(region).map(|r| r.name.clone());
                            self.serial_conflicts.extend(name);
                        }
                        _ => self.conflicts += 1,
                    }
                    pair.into_iter().for_each(|pair| self.add(pair, &symbols, &names));
                }
                None => self.add(finding, &symbols, &names),
            }
        }
        for witness in pipeline.witnesses() {
            self.lead(witness, &execution.events, &symbols, points);
        }
        if self.baseline.is_none() {
            let ending = Ending::of(executor, execution);
            let left = Left::new(ending, &execution.output, &execution.blocks);
            self.baseline = Some((left, execution.schedule.clone()));
        }
    }

    fn add(&mut self, finding: Finding, symbols: &Arc<Symbols>, names: &X::Names) {
        let id = finding.id(symbols);
        if let Some(known) = self.seen.iter_mut().find(|s| s.id == id) {
            // Keep the first target: its names belong to its own execution.
            merge(&mut known.finding, finding, Keep::First);
            return;
        }
        let is_order =
            |s: &&Seen<_, _>| matches!(s.finding.target, Some(Target::Contention { .. }));
        if matches!(finding.target, Some(Target::Contention { .. }))
            && self.seen.iter().filter(is_order).count() >= ORDERS
        {
            return;
        }
        let prediction = finding.target.as_ref().map(|target| {
            let target = target.map(|&site| symbols.site(site));
            let points = self.points_at(target.accesses());
            let names = Some(names.clone());
            Prediction { id, kind: finding.kind, target, names, points, lead: None }
        });
        self.seen.push(Seen { id, finding, symbols: Arc::clone(symbols), prediction });
    }

    /// Keeps the order of a witness with the prediction that it shows. `points` were scheduling points in its execution,
    /// so they are needed to follow it.
    fn lead(&mut self, witness: &Witness, events: &[Event], symbols: &Symbols, points: &X::Points) {
        let sites: Vec<Site> = witness.sites.iter().map(|&site| symbols.site(site)).collect();
        let shown = self.seen.iter().position(|seen| {
            let prediction = seen.prediction.as_ref();
            prediction.is_some_and(|p| p.lead.is_none() && is_at(&p.target, &sites))
        });
        let Some(shown) = shown else { return };
        let racing: HashSet<Site> = self.race_sites().cloned().collect();
        let mut known: HashMap<SiteId, (usize, bool)> = HashMap::new();
        let mut lead = Lead::default();
        for number in witness.order(events).0 {
            let event = &events[number];
            let (site, is_racing) = *known.entry(event.site).or_insert_with(|| {
                let site = symbols.site(event.site);
                let is_racing = racing.contains(&site);
                lead.sites.push(site);
                (lead.sites.len() - 1, is_racing)
            });
            let is_step = is_racing || !matches!(event.op, Op::Read(_) | Op::Write(_));
            lead.cues.extend(Cue::of(event, site).filter(|_| is_step));
        }
        if lead.cues.len() <= CUES
            && let Some(prediction) = &mut self.seen[shown].prediction
        {
            prediction.points.add(points);
            prediction.lead = Some(lead);
        }
    }

    /// The places of the accesses that may race.
    fn race_sites(&self) -> impl Iterator<Item = &Site> {
        let predictions = self.seen.iter().filter_map(|seen| seen.prediction.as_ref());
        let races = predictions.filter(|p| matches!(p.target, Target::Race { .. }));
        races.flat_map(|p| p.target.accesses())
    }

    /// What makes accesses at these places scheduling points.
    pub fn points_at<'a>(&self, sites: impl IntoIterator<Item = &'a Site>) -> X::Points {
        let mut points = X::Points::default();
        sites.into_iter().filter_map(|s| self.points.get(s)).for_each(|p| points.add(p));
        points
    }

    /// What makes the accesses that may race scheduling points.
    pub fn racing(&self) -> X::Points {
        let mut points = X::Points::default();
        for seen in &self.seen {
            let is_race = matches!(seen.finding.target, Some(Target::Race { .. }));
            if let Some(prediction) = &seen.prediction
                && is_race
                && seen.finding.status >= Status::Predicted
            {
                points.add(&prediction.points);
            }
        }
        points
    }
}

/// How many threads there are.
fn threads(events: &[Event]) -> usize {
    events.iter().map(|e| e.thread.index() + 1).max().unwrap_or(0)
}

/// Whether a witness at these places shows the target.
fn is_at(target: &Target<Site>, sites: &[Site]) -> bool {
    match (target, sites) {
        (Target::Race { first, second }, [a, b]) => {
            (first, second) == (a, b) || (first, second) == (b, a)
        }
        (Target::Deadlock(cycle), _) if cycle.len() == sites.len() => {
            let round = (0..sites.len()).map(|n| sites.iter().cycle().skip(n));
            let wants = || cycle.iter().map(|waiter| &waiter.wants.site);
            round.into_iter().any(|sites| wants().eq(sites.take(cycle.len())))
        }
        _ => false,
    }
}

/// If the finding is a conflict in a block that ensures something: the pair to try in both orders, as far as the
/// finding has one.
fn conflict(finding: &Finding, symbols: &Symbols, blocks: &Blocks) -> Option<Option<Finding>> {
    let Subject::Region(region) = finding.subject else { return None };
    let Region { name, kind } = symbols.region(region)?;
    if finding.kind == Kind::AtomicityViolation && *kind == RegionKind::Atomic && blocks.observes()
    {
        // What is observed decides about atomic blocks.
        return Some(None);
    }
    let name = &**name;
    let ensures = blocks.executions.iter().any(|b| &*b.block == name && b.ensures());
    if finding.kind != Kind::DeterminismViolation || !ensures {
        return None;
    }
    let [first, second] = &finding.places[..] else { return Some(None) };
    let is_plain = |role| matches!(role, Role::Read | Role::Write | Role::Free);
    let is_atomic = |role| matches!(role, Role::AtomicRead | Role::AtomicWrite);
    let (sites, roles) = ((first.site, second.site), [first.role, second.role]);
    let (kind, target) = match roles {
        [Role::Acquire(_), Role::Acquire(_)] => {
            (Kind::HighLevelRace, Target::Contention { first: sites.0, second: sites.1 })
        }
        [a, b] if is_atomic(a) && is_atomic(b) => {
            (Kind::HighLevelRace, Target::Contention { first: sites.0, second: sites.1 })
        }
        [a, b] if (is_plain(a) || is_atomic(a)) && (is_plain(b) || is_atomic(b)) => {
            (Kind::DataRace, Target::Race { first: sites.0, second: sites.1 })
        }
        _ => return Some(None),
    };
    Some(Some(Finding { kind, target: Some(target), status: Status::Predicted, ..finding.clone() }))
}
