//! The disciplines of many instances, in one or several runs, as one line for each variable of the source.
//!
//! Equal disciplines are one. A beginning of another one (the object was never shared) counts as the longer
//! one, and so does one that lacks transitions (the thread happened not to change). What still differs stays
//! apart, the most frequent first.
//!
//! Several locks may be held at all accesses of a phase. The one named is in the same object, else guards the
//! fewest variables, else comes first by name. This is decided here, where all variables are known.
//!
//! A lock that is held at all places in the source but at most one in ten is the *likely guard*, and the
//! places without it are its exceptions, whatever ordered them this time.
//!
//! *Guarantee*: the result does not depend on the order in which instances are added.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::Site;

use super::canon::{Folded, Open, close};
use super::satisfy::Automaton;
use super::{Discipline, Sequence, Step};

/// At most one place in so many is an exception.
const PLACES_PER_EXCEPTION: usize = 10;

/// A place in the source that accesses a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Where.
    pub site: Site,
    /// The locks that guard the access there.
    pub locks: BTreeSet<String>,
}

/// What was seen of one instance of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// Its discipline, or the two places of the race that ended it.
    pub steps: Result<Vec<Folded<Open<String>>>, String>,
    /// How often it was accessed.
    pub accesses: u64,
    /// How many threads accessed it.
    pub threads: usize,
    /// Where it was accessed.
    pub places: Vec<Place>,
}

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub struct Merger {
    variables: BTreeMap<String, Seen>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    shapes: BTreeMap<Vec<Folded<Open<String>>>, u64>,
    race: Option<String>,
    instances: u64,
    accesses: u64,
    threads: usize,
    /// By how they are written; the locks are those held each time.
    places: BTreeMap<String, Place>,
}

/// What is known of a variable of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Its name.
    pub variable: String,
    /// What most instances do; `None` if there was a race.
    pub discipline: Option<Sequence>,
    /// What other instances do, and how many.
    pub others: Vec<(Sequence, u64)>,
    /// How many instances there are.
    pub instances: u64,
    /// How often they were accessed.
    pub accesses: u64,
    /// By how many threads at most.
    pub threads: usize,
    /// The finding that ended the inference.
    pub race: Option<String>,
    /// Locks that are held at nearly all places.
    pub likely: Vec<Likely>,
    /// Where it is accessed, with the locks that guard it there each time.
    pub places: Vec<Place>,
}

/// A lock that is held at nearly all places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Likely {
    /// The lock.
    pub lock: String,
    /// The places without it.
    pub exceptions: Vec<Site>,
}

impl Line {
    /// All that instances do, as one discipline.
    pub fn all(&self) -> Option<Discipline> {
        let first = self.discipline.clone()?;
        let others = self.others.iter().map(|(sequence, _)| sequence.clone());
        Some(Discipline { alternatives: std::iter::once(first).chain(others).collect() })
    }

    /// The locks that the disciplines name.
    pub fn locks(&self) -> BTreeSet<String> {
        let mut locks = BTreeSet::new();
        let sequences = self.discipline.iter().chain(self.others.iter().map(|(s, _)| s));
        sequences.flatten().for_each(|step| locks_of(step, &mut locks));
        locks
    }
}

fn locks_of(step: &Step, into: &mut BTreeSet<String>) {
    match step {
        Step::GuardedBy(lock) | Step::Via(super::DeviceKind::Lock, lock) => {
            into.insert(lock.clone());
        }
        Step::Repeat(steps) => steps.iter().for_each(|step| locks_of(step, into)),
        Step::ThreadLocal | Step::ReadShared | Step::Fork | Step::Join | Step::Via(..) => {}
    }
}

impl Merger {
    /// Takes in an instance of a variable.
    pub fn add(&mut self, variable: &str, instance: Instance) {
        self.add_all(variable, instance, 1);
    }

    /// Takes in so many instances of a variable that differ in nothing. All their accesses count as one instance's.
    pub fn add_all(&mut self, variable: &str, instance: Instance, instances: u64) {
        let seen = match self.variables.get_mut(variable) {
            Some(seen) => seen,
            None => self.variables.entry(variable.to_owned()).or_default(),
        };
        match instance.steps {
            Ok(steps) => *seen.shapes.entry(steps).or_default() += instances,
            Err(race) => {
                let first = seen.race.take().map_or(race.clone(), |known| known.min(race));
                seen.race = Some(first);
            }
        }
        seen.instances += instances;
        seen.accesses += instance.accesses;
        seen.threads = seen.threads.max(instance.threads);
        for place in instance.places {
            match seen.places.entry(place.site.to_string()) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(place);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    entry.get_mut().locks.retain(|lock| place.locks.contains(lock));
                }
            }
        }
    }

    /// One line for each variable, by name.
    pub fn lines(&self) -> Vec<Line> {
        let mut guarded: BTreeMap<&str, u64> = BTreeMap::new();
        for seen in self.variables.values() {
            let locks: BTreeSet<&str> = seen.shapes.keys().flatten().flat_map(candidates).collect();
            locks.into_iter().for_each(|lock| *guarded.entry(lock).or_default() += 1);
        }
        let line = |(name, seen): (&String, &Seen)| {
            let choose = |locks: &[String]| {
                let key = |lock: &str| {
                    (!same_object(name, lock), guarded.get(lock).copied().unwrap_or(0))
                };
                let first = |a: &&String, b: &&String| key(a).cmp(&key(b)).then_with(|| a.cmp(b));
                locks.iter().min_by(first).cloned().unwrap_or_default()
            };
            seen.line(name, choose)
        };
        self.variables.iter().map(line).collect()
    }
}

/// The locks that may guard.
fn candidates(part: &Folded<Open<String>>) -> Vec<&str> {
    let steps = match part {
        Folded::Once(step) => std::slice::from_ref(step),
        Folded::Repeat(block) => block,
    };
    let guards = steps.iter().filter_map(|open| match &open.step {
        Step::GuardedBy(locks) => Some(locks),
        _ => None,
    });
    guards.flatten().map(String::as_str).collect()
}

/// Whether a lock is a member of the object that the variable belongs to.
fn same_object(variable: &str, lock: &str) -> bool {
    let object = |name: &str| name.rsplit_once('.').map(|(object, _)| object.to_owned());
    lock.starts_with("this.") || object(variable).is_some_and(|of| object(lock) == Some(of))
}

impl Seen {
    fn line(&self, name: &str, mut choose: impl FnMut(&[String]) -> String) -> Line {
        let mut closed: BTreeMap<Sequence, u64> = BTreeMap::new();
        for (shape, count) in &self.shapes {
            *closed.entry(close(shape, &mut choose)).or_default() += count;
        }
        let mut merged = merged(closed);
        let discipline =
            if self.race.is_some() || merged.is_empty() { None } else { Some(merged.remove(0).0) };
        Line {
            variable: name.to_owned(),
            likely: self.likely(discipline.as_ref()),
            discipline,
            others: merged,
            instances: self.instances,
            accesses: self.accesses,
            threads: self.threads,
            race: self.race.clone(),
            places: self.places.values().cloned().collect(),
        }
    }

    fn likely(&self, discipline: Option<&Sequence>) -> Vec<Likely> {
        if self.threads < 2 {
            return Vec::new();
        }
        let locks: BTreeSet<&String> = self.places.values().flat_map(|p| &p.locks).collect();
        let mut likely = Vec::new();
        for lock in locks {
            let guards =
                |steps: &Sequence| matches!(steps.as_slice(), [Step::GuardedBy(l)] if l == lock);
            let without = self.places.values().filter(|p| !p.locks.contains(lock));
            let exceptions: Vec<Site> = without.map(|p| p.site.clone()).collect();
            let few = exceptions.len() * PLACES_PER_EXCEPTION <= self.places.len();
            if few && !exceptions.is_empty() && !discipline.is_some_and(guards) {
                likely.push(Likely { lock: lock.clone(), exceptions });
            }
        }
        likely
    }
}

/// Merges disciplines; the most frequent comes first.
fn merged(all: BTreeMap<Sequence, u64>) -> Vec<(Sequence, u64)> {
    let steps = |s: &Sequence| -> usize {
        let of = |step: &Step| if let Step::Repeat(block) = step { 2 * block.len() } else { 1 };
        s.iter().map(of).sum()
    };
    let mut all: Vec<(Sequence, u64)> = all.into_iter().collect();
    all.sort_by(|(a, _), (b, _)| steps(b).cmp(&steps(a)).then_with(|| a.cmp(b)));
    let mut kept: Vec<(Sequence, u64, Automaton)> = Vec::new();
    for (sequence, count) in all {
        match kept.iter_mut().find(|(_, _, of)| of.implied_by(&sequence)) {
            Some((_, instances, _)) => *instances += count,
            None => {
                let automaton = Automaton::new(&Discipline::from(sequence.clone()));
                kept.push((sequence, count, automaton));
            }
        }
    }
    let mut kept: Vec<(Sequence, u64)> = kept.into_iter().map(|(s, n, _)| (s, n)).collect();
    kept.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    kept
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn sequence(text: &str) -> Sequence {
        parse(&format!("x = {text}")).unwrap().rules.remove(0).discipline.alternatives.remove(0)
    }

    fn check(disciplines: &[(&str, u64)], expected: &[(&str, u64)]) {
        let all = disciplines.iter().map(|(text, count)| (sequence(text), *count)).collect();
        let shown: Vec<(String, u64)> =
            merged(all).into_iter().map(|(s, n)| (Discipline::from(s).to_string(), n)).collect();
        let shown: Vec<(&str, u64)> = shown.iter().map(|(s, n)| (s.as_str(), *n)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn beginnings_and_missing_transitions_merge() {
        check(
            &[
                ("thread-local", 3),
                ("thread-local; fork; guarded-by m; guarded-by n", 2),
                ("thread-local; fork; guarded-by m; via atomic barrier; guarded-by n", 1),
                ("thread-local; fork; guarded-by m", 1),
            ],
            &[("thread-local; fork; guarded-by m; via atomic barrier; guarded-by n", 7)],
        );
        check(
            &[("guarded-by m", 1), ("thread-local; guarded-by n", 4)],
            &[("thread-local; guarded-by n", 4), ("guarded-by m", 1)],
        );
        check(
            &[
                ("thread-local; fork; join", 1),
                ("thread-local; join", 2),
                ("thread-local; fork", 3),
            ],
            &[("thread-local; fork; join", 6)],
        );
        check(
            &[("(via barrier b; read-shared)+", 1), ("via barrier b; read-shared", 2)],
            &[("(via barrier b; read-shared)+", 3)],
        );
    }

    fn instance(places: &[(&str, &[&str])], steps: Sequence<Vec<String>>) -> Instance {
        let open = |step| Folded::Once(Open { step, unless: Vec::new() });
        let place = |(site, locks): &(&str, &[&str])| Place {
            site: Site::parse(site),
            locks: locks.iter().map(|&l| l.to_owned()).collect(),
        };
        Instance {
            steps: Ok(steps.into_iter().map(open).collect()),
            accesses: 1,
            threads: 2,
            places: places.iter().map(place).collect(),
        }
    }

    #[test]
    fn of_several_locks_the_one_in_the_object_then_the_one_that_guards_least() {
        let locks =
            |names: &[&str]| vec![Step::GuardedBy(names.iter().map(|&n| n.to_owned()).collect())];
        let mut merger = Merger::default();
        merger.add("node.next", instance(&[], locks(&["all", "this.lock"])));
        merger.add("count", instance(&[], locks(&["all", "some"])));
        merger.add("size", instance(&[], locks(&["all"])));
        merger.add("both", instance(&[], locks(&["a", "b"])));
        let shown: Vec<String> = merger
            .lines()
            .iter()
            .map(|l| format!("{} = {}", l.variable, l.all().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                "both = guarded-by a",
                "count = guarded-by some",
                "node.next = guarded-by this.lock",
                "size = guarded-by all",
            ]
        );
    }

    #[test]
    fn a_lock_that_is_missing_at_one_place_in_ten_is_likely() {
        let names: Vec<String> = (1..=10).map(|i| format!("a.c:{i}")).collect();
        let places = |without: usize| -> Vec<Likely> {
            let held: &[&str] = &["m"];
            let places: Vec<(&str, &[&str])> = names
                .iter()
                .enumerate()
                .map(|(i, n)| (n.as_str(), if i < without { &[][..] } else { held }))
                .collect();
            let mut merger = Merger::default();
            merger.add("x", instance(&places, vec![Step::ThreadLocal]));
            merger.lines().remove(0).likely
        };
        let exceptions = vec![Site::parse("a.c:1")];
        assert_eq!(places(1), [Likely { lock: "m".to_owned(), exceptions }]);
        assert_eq!(places(2), []);
        assert_eq!(places(0), []);
    }
}
