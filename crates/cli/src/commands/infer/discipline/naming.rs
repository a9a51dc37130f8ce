//! Gives the instances of a native run the names of the source.
//!
//! Many objects are used alike. What was found out about one block of the heap holds for all of the same size that
//! are allocated at the same place and have the same stories at the same offsets, unless a device in the block has
//! a part in them; and likewise for the elements of an array. So most instances are only counted.

use rustc_hash::FxHashMap;
use selvedge_analyses::devices::Device;
use selvedge_analyses::hominy::{Ended, Inference, Instance as Found, StoryId};
use selvedge_model::{Range, SiteId, Symbols};
use selvedge_specs::discipline::Step;
use selvedge_specs::discipline::canon::Folded;
use selvedge_specs::discipline::merge::Instance;

use super::{Seen, traces};
use crate::program::heap::Block;
use crate::program::names::{Named, Names};

/// How far members that were accessed alike may be apart in memory that was found as one.
const MEMBERS: usize = 4;

/// How many instances of one block wait for a name at most.
const WAITING: usize = 1 << 16;

/// Ways to use a block that are remembered.
const REMEMBERED: usize = 1 << 14;

/// Names instances.
pub(super) struct Naming<'a> {
    pub(super) names: Names,
    /// Instances in a block: they are named together, because one may tell what another is.
    waiting: Option<(Block, Vec<Ended>)>,
    /// What blocks were found to be, by how they were used. Not yet in `seen`.
    blocks: FxHashMap<Used, Vec<Counted>>,
    /// The same for elements of arrays with static storage, by story and array.
    elements: FxHashMap<StoryId, FxHashMap<String, Counted>>,
    pub(super) seen: &'a mut Seen,
}

/// How a block was used: its length, where it was allocated, and its instances by their place in it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Used {
    len: u64,
    site: SiteId,
    instances: Vec<(u64, u64, StoryId)>,
}

/// Instances of a variable that differ in nothing.
struct Counted {
    variable: String,
    /// Of the instance that gave it its name.
    number: usize,
    instance: Instance,
    times: u64,
}

impl Counted {
    fn again(&mut self, accesses: u64) {
        self.instance.accesses += accesses;
        self.times += 1;
    }
}

impl<'a> Naming<'a> {
    pub(super) fn new(names: Names, seen: &'a mut Seen) -> Naming<'a> {
        let (blocks, elements) = (FxHashMap::default(), FxHashMap::default());
        Naming { names, waiting: None, blocks, elements, seen }
    }

    /// Takes in an instance. It has its name after [`Naming::name_waiting`].
    pub(super) fn add(&mut self, ended: Ended, inference: &mut Inference, symbols: &Symbols) {
        let start = ended.bytes.start;
        if let Some((block, all)) = &mut self.waiting
            && (block.range.start..block.range.end()).contains(&start)
            && all.len() < WAITING
        {
            return all.push(ended);
        }
        self.name_waiting(inference, symbols);
        let block = self.names.heap.at(start).copied();
        match block {
            Some(block) => self.waiting = Some((block, vec![ended])),
            None => self.name_other(&ended, inference, symbols),
        }
    }

    /// Names the instances of a block. One that was used like another has the same names.
    pub(super) fn name_waiting(&mut self, inference: &mut Inference, symbols: &Symbols) {
        let Some((block, all)) = self.waiting.take() else { return };
        let within =
            |ended: &Ended| (ended.bytes.start - block.range.start, ended.bytes.len, ended.story);
        let used = Used {
            len: block.range.len,
            site: block.site,
            instances: all.iter().map(within).collect(),
        };
        if let Some(known) = self.blocks.get_mut(&used) {
            known.iter_mut().for_each(|one| one.again(all[one.number].accesses));
            return;
        }
        let found: Vec<Found> = all.iter().map(|ended| inference.instance(ended)).collect();
        let places = |found: &Found| found.places.iter().map(|p| p.site).collect();
        self.names.learn(found.iter().map(|found| (found.bytes.start, places(found))), symbols);
        let mut counted = Vec::new();
        for (number, found) in found.iter().enumerate() {
            self.name(found, symbols, |variable, instance| {
                counted.push(Counted { variable, number, instance, times: 1 });
            });
        }
        let mut devices = found.iter().flat_map(devices);
        if devices.all(|device| self.names.is_outside(device, block.range)) {
            self.remember(used, counted);
        } else {
            counted.into_iter().for_each(|one| self.show(one));
        }
    }

    fn remember(&mut self, used: Used, counted: Vec<Counted>) {
        if self.blocks.len() == REMEMBERED {
            self.show_all();
        }
        self.blocks.insert(used, counted);
    }

    /// Names an instance that is in no block.
    fn name_other(&mut self, ended: &Ended, inference: &mut Inference, symbols: &Symbols) {
        let (names, elements) = (&self.names, &mut self.elements);
        if let Some(array) = names.array_at(ended.bytes)
            && let Some(known) = elements.get_mut(&ended.story).and_then(|all| all.get_mut(array))
        {
            return known.again(ended.accesses);
        }
        let found = inference.instance(ended);
        let mut counted = Vec::new();
        self.name(&found, symbols, |variable, instance| {
            counted.push(Counted { variable, number: 0, instance, times: 1 });
        });
        let is_array = |one: &Counted| self.names.array_at(ended.bytes) == Some(&*one.variable);
        let outside = Range { start: 0, len: 0 };
        let is_static = || devices(&found).all(|device| self.names.is_outside(device, outside));
        if let [one] = &counted[..]
            && is_array(one)
            && is_static()
        {
            let known = self.elements.entry(ended.story).or_default();
            known.extend(counted.pop().map(|one| (one.variable.clone(), one)));
        }
        counted.into_iter().for_each(|one| self.show(one));
    }

    /// Names an instance. Bytes with the same history may belong to several members.
    fn name(&mut self, found: &Found, symbols: &Symbols, mut add: impl FnMut(String, Instance)) {
        let places: Vec<SiteId> = found.places.iter().map(|p| p.site).collect();
        let mut last: Option<Named> = None;
        // Members are at least so far apart, nearly always.
        for addr in (found.bytes.start..found.bytes.end()).step_by(MEMBERS) {
            let rest = Range { start: addr, len: found.bytes.end() - addr };
            let named = self.names.variable(rest, &places, symbols);
            let part_of = |last: &Named| {
                let inside = named.name.strip_prefix(last.name.as_str());
                inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
            };
            let goes_on = |last: &Named| named.in_nameless_block || part_of(last);
            if last.as_ref().is_some_and(goes_on) {
                continue;
            }
            let names = &mut self.names;
            let instance = traces::named(found, symbols, |&d| names.device(d, &named, symbols));
            add(named.name.clone(), instance);
            last = Some(named);
        }
    }

    fn show(&mut self, one: Counted) {
        self.seen.merger.add_all(&one.variable, one.instance, one.times);
    }

    /// What was remembered is not true of what comes: it is shown and forgotten.
    pub(super) fn show_all(&mut self) {
        let blocks = std::mem::take(&mut self.blocks).into_values().flatten();
        let elements = std::mem::take(&mut self.elements).into_values();
        let elements = elements.flat_map(FxHashMap::into_values);
        blocks.chain(elements).for_each(|one| self.show(one));
    }
}

/// The devices that an instance names.
fn devices(found: &Found) -> impl Iterator<Item = Device> + '_ {
    let steps = found.steps.iter().flat_map(|part| match part {
        Folded::Once(step) => std::slice::from_ref(step),
        Folded::Repeat(block) => block,
    });
    let named = steps.flat_map(|open| {
        let by = match &open.step {
            Step::GuardedBy(devices) | Step::Via(_, devices) => &devices[..],
            Step::ThreadLocal | Step::ReadShared | Step::Fork | Step::Join | Step::Repeat(_) => &[],
        };
        by.iter().chain(&open.unless).copied()
    });
    let held = found.places.iter().flat_map(|place| &place.locks);
    named.chain(held.map(|&lock| Device::Lock(lock)))
}
