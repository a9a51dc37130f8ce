//! What the memory of a native run is called in the source.
//!
//! | memory | name |
//! | --- | --- |
//! | static storage | the variable with its member: `stats.hits` |
//! | an element of an array | the array: `grid`; inside one, `slots[].count` |
//! | the heap | `TYPE.member`: the source text at an access has `variable->member`, and debug information the type of the variable; or it names a member whose offset fits the block |
//! | the heap, where no place names a member | the member at its offset, if two other members of its structure are named in the block and the structure fills it |
//! | an allocated array | what it is assigned to where it is allocated |
//! | anything else | where it was allocated, or the function that used it |
//!
//! A lock in the object that the variable belongs to is `this.lock`, and so is one that a member of the object points to
//! since it was allocated; an element of an array of locks is `locks[]`.
//!
//! *Guarantee*: a member is named only if its offset fits the block, unless the block holds many such structures,
//! as those of a program with its own allocator do. Which of several members that fit is meant is a guess, made by
//! how many places agree.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;

use rustc_hash::FxHashMap;
use selvedge_analyses::devices::Device;
use selvedge_model::{Access, Event, Op, Range, Site, SiteId, Symbols, ThreadId};
use selvedge_runtime::{Modules, Object};

use super::heap::{Block, Heap};
use super::symbolize::{Member, SharedSymbolizer, Structures};

/// A variable by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// The object that it is a member of, with the name of its type.
    object: Option<(Range, String)>,
    /// The element of an array with static storage that it is a member of: `floors[2]`.
    element: Option<String>,
}

/// Names the memory of one run.
pub(crate) struct Names {
    symbolizer: SharedSymbolizer,
    modules: Modules,
    pub(crate) heap: Heap,
    devices: FxHashMap<Device, Place>,
    /// Directories of source files.
    directories: Vec<PathBuf>,
    files: HashMap<String, Option<Vec<String>>>,
    members: Option<Members>,
    /// Arrays whose elements have no members: where each ends, and its name.
    arrays: BTreeMap<u64, (u64, String)>,
    /// Whether there is no debug information.
    lacks_types: bool,
    /// The structure that fills the block at an address.
    filling: Option<(u64, String)>,
    /// Members that were looked for before, of objects that are allocated and used in the same way many times.
    looked_for: FxHashMap<Wanted, Option<Member>>,
    /// The names of addresses with static storage that were asked for before.
    named: FxHashMap<u64, Option<String>>,
    /// The last block that each thread has allocated and not assigned yet.
    unassigned: FxHashMap<ThreadId, Block>,
    /// Where the pointer to a block is that it was assigned to when it was allocated.
    holders: FxHashMap<u64, u64>,
    /// Whether two places are on one line.
    same_line: FxHashMap<(SiteId, SiteId), bool>,
}

/// Memory whose member is looked for.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Wanted {
    /// The offset in the block, and the block's length.
    within: Option<(u64, u64)>,
    /// The length of the accesses.
    len: u64,
    places: Vec<SiteId>,
    /// Whether it is something that synchronizes.
    lock: bool,
}

/// So many of them are remembered.
const REMEMBERED: usize = 1 << 16;

/// Where a device lies, when it is used first.
#[derive(Clone, Copy)]
struct Place {
    addr: u64,
    site: SiteId,
    /// The block may be freed before anybody asks.
    block: Option<Block>,
}

/// The members of all structures, by their last name and by structure.
struct Members {
    all: Vec<Member>,
    by_name: HashMap<String, Vec<usize>>,
    by_type: HashMap<String, Vec<usize>>,
    locals: HashMap<(String, String), String>,
}

/// How many places name a member.
type Votes<'a> = BTreeMap<(String, String), (usize, &'a Member)>;

fn vote<'a>(votes: &mut Votes<'a>, members: impl Iterator<Item = &'a Member>) {
    for member in members {
        let key = (member.of.clone(), member.path.clone());
        votes.entry(key).or_insert((0, member)).0 += 1;
    }
}

/// The member that most places name; of equals one as long as the accesses, then the one whose structure fills the
/// block, then the largest.
fn best(votes: &Votes<'_>, within: Option<(u64, u64)>, len: u64) -> Option<Member> {
    let whole = |m: &Member| within.is_some_and(|(_, of)| fills(m, of));
    let order = |(count, m): &&(usize, &Member)| {
        (*count, m.len == len, whole(m), m.size, std::cmp::Reverse((m.path.len(), m.of.clone())))
    };
    votes.values().max_by_key(order).map(|(_, member)| (*member).clone())
}

/// Whether one or several structures with this member fill a block of a length, but for what malloc rounds sizes up by.
fn fills(member: &Member, len: u64) -> bool {
    const ROUNDED: u64 = 16;
    member.size > 0 && len >= member.size && len % member.size < ROUNDED
}

/// Whether a member may be at an offset in a block: of one structure, of an array of them, or of memory that
/// the program hands out by itself.
fn may_be_at(member: &Member, within: Option<(u64, u64)>) -> bool {
    const MANY: u64 = 16;
    within.is_none_or(|(offset, len)| {
        len > MANY * member.size || len >= member.size && member.is_at(offset)
    })
}

impl Members {
    fn new(Structures { members: all, locals }: Structures) -> Members {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_type: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, member) in all.iter().enumerate() {
            by_name.entry(member.name().to_owned()).or_default().push(i);
            by_type.entry(member.of.clone()).or_default().push(i);
        }
        Members { all, by_name, by_type, locals }
    }

    fn of(&self, structure: &str) -> impl Iterator<Item = &Member> {
        self.by_type.get(structure).into_iter().flatten().map(|&i| &self.all[i])
    }

    /// The structure that a variable of a function is or points to.
    fn local(&self, function: &str, variable: &str) -> Option<&str> {
        self.locals.get(&(function.to_owned(), variable.to_owned())).map(String::as_str)
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Member> {
        self.by_name.get(name).into_iter().flatten().map(|&i| &self.all[i])
    }

    /// The smallest member of a structure at an offset.
    fn at(&self, of: &str, offset: u64) -> Option<&Member> {
        self.of(of).filter(|m| m.is_at(offset)).min_by_key(|m| m.len)
    }

    /// The smallest member of a structure at an offset, or the one in front of the gap that is there: a structure that
    /// is copied is copied with its gaps.
    fn at_or_before(&self, of: &str, offset: u64) -> Option<&Member> {
        let before = |m: &&Member| m.size > 0 && m.from <= offset % m.size;
        self.at(of, offset).or_else(|| {
            self.of(of).filter(before).max_by_key(|m| (m.from, std::cmp::Reverse(m.len)))
        })
    }
}

impl Names {
    pub(crate) fn new(symbolizer: SharedSymbolizer, directories: &[PathBuf]) -> Names {
        Names {
            symbolizer,
            modules: Modules::default(),
            heap: Heap::default(),
            devices: FxHashMap::default(),
            directories: directories.to_vec(),
            files: HashMap::new(),
            members: None,
            arrays: BTreeMap::new(),
            lacks_types: false,
            filling: None,
            looked_for: FxHashMap::default(),
            named: FxHashMap::default(),
            unassigned: FxHashMap::default(),
            holders: FxHashMap::default(),
            same_line: FxHashMap::default(),
        }
    }

    /// These modules are loaded now.
    pub(crate) fn mapped(&mut self, modules: &Modules) {
        self.modules = modules.clone();
        self.named.clear();
        self.looked_for.clear();
    }

    /// Something that synchronizes lies at an address.
    pub(crate) fn object(&mut self, object: Object, addr: u64, site: SiteId) {
        let device = match object {
            Object::Lock(id) => Device::Lock(id),
            Object::Barrier(id) => Device::Barrier(id),
            Object::Semaphore(id) => Device::Semaphore(id),
        };
        let block = self.heap.at(addr).copied();
        self.devices.insert(device, Place { addr, site, block });
    }

    /// Whether the name of a device is the same for all objects like the one in this memory. An atomic variable on
    /// the heap may be in any of them.
    pub(crate) fn is_outside(&self, device: Device, object: Range) -> bool {
        match (device, self.devices.get(&device)) {
            (Device::Atomic(addr), _) => self.heap.at(addr).is_none(),
            (_, Some(place)) => {
                let holder = place.block.and_then(|block| self.holders.get(&block.range.start));
                let inside = |addr: &u64| (object.start..object.end()).contains(addr);
                !inside(&place.addr) && !holder.is_some_and(inside)
            }
            (_, None) => true,
        }
    }

    /// Learns from the places that access addresses of one block what structures fill it, for names of its other memory.
    pub(crate) fn learn(
        &mut self,
        accessed: impl Iterator<Item = (u64, Vec<SiteId>)>,
        symbols: &Symbols,
    ) {
        const ENOUGH: usize = 2;
        const TRIES: usize = 256;
        self.filling = None;
        let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (addr, places) in accessed.take(TRIES) {
            let Some(block) = self.heap.at(addr).copied() else { continue };
            let offset = addr - block.range.start;
            let within = Some((offset, block.range.len));
            let member = self.member(Wanted { within, len: 0, places, lock: false }, symbols);
            let is_there = |m: &Member| m.is_at(offset) && fills(m, block.range.len);
            let Some(member) = member.filter(is_there) else { continue };
            let members = seen.entry(member.of.clone()).or_default();
            members.insert(member.path);
            // One member alone may stand for anything that it points to.
            if members.len() >= ENOUGH {
                self.filling = Some((block.range.start, member.of));
                break;
            }
        }
    }

    /// The member at an offset in a block, by what is known of the rest of the block.
    fn filled(&mut self, block: Block, offset: u64) -> Option<Member> {
        let (_, of) = self.filling.clone().filter(|(start, _)| *start == block.range.start)?;
        self.members()?.at_or_before(&of, offset).cloned()
    }

    /// The array without members that memory is in, if it is known.
    pub(crate) fn array_at(&self, bytes: Range) -> Option<&str> {
        let (_, (end, name)) = self.arrays.range(..=bytes.start).next_back()?;
        (bytes.end() <= *end).then_some(name)
    }

    /// What memory is called that is accessed at these places.
    pub(crate) fn variable(&mut self, bytes: Range, places: &[SiteId], symbols: &Symbols) -> Named {
        let addr = bytes.start;
        if let Some((_, (end, name))) = self.arrays.range(..=addr).next_back()
            && addr < *end
        {
            return Named { name: name.clone(), object: None, element: None };
        }
        let block = self.heap.at(addr).copied();
        let data = match block {
            Some(_) => None,
            None => self.symbolizer.borrow_mut().data(addr, &self.modules),
        };
        if let Some(name) = data {
            self.remember_array(addr, &name);
            let element = element(&name).map(|(element, _)| element.to_owned());
            return Named { name: array(&name, false), object: None, element };
        }
        let offset = block.map(|b| addr - b.range.start);
        let within = block.map(|b| (addr - b.range.start, b.range.len));
        let wanted = Wanted { within, len: bytes.len, places: places.to_vec(), lock: false };
        let member = self.member(wanted, symbols).or_else(|| self.filled(block?, offset?));
        if let Some(member) = member {
            let name = format!("{}.{}", member.of, member.path);
            let object = block.zip(offset).map(|(block, offset)| {
                let start = match member.is_at(offset) {
                    true => block.range.start + offset / member.size * member.size,
                    false => addr - member.from,
                };
                (Range { start, len: member.size }, member.of.clone())
            });
            return Named { name, object, element: None };
        }
        let name = match block {
            Some(block) => self.allocated(block, symbols).map(|a| a.name).unwrap_or_else(|| {
                let offset = addr - block.range.start;
                format!("heap block from {}+{offset}", symbols.site(block.site))
            }),
            None => match places.iter().find_map(|&p| symbols.site(p).frame().cloned()) {
                Some(frame) => format!("stack of {}", frame.function),
                None => "memory without a name".to_owned(),
            },
        };
        let object = block.map(|b| (b.range, String::new()));
        Named { name, object, element: None }
    }

    /// All elements of an array of numbers have the name of the array.
    fn remember_array(&mut self, addr: u64, name: &str) {
        if name.ends_with(']')
            && !name.contains('.')
            && let Some(range) = self.symbolizer.borrow_mut().extent(addr, &self.modules)
        {
            self.arrays.insert(range.start, (range.end(), array(name, false)));
        }
    }

    /// What a device is called, seen from a variable.
    pub(crate) fn device(&mut self, device: Device, of: &Named, symbols: &Symbols) -> String {
        let place = self.devices.get(&device).copied();
        let (addr, block) = match (device, place) {
            (Device::Atomic(addr), _) => (Some(addr), self.heap.at(addr).copied()),
            (_, place) => (place.map(|p| p.addr), place.and_then(|p| p.block)),
        };
        let fallback = || match device {
            Device::Lock(id) => symbols.lock(id),
            Device::Barrier(id) => symbols.barrier(id),
            Device::Semaphore(id) => symbols.semaphore(id),
            Device::Atomic(_) => "atomic without a name".to_owned(),
        };
        let Some(addr) = addr else { return fallback() };
        if let Some((object, of)) = &of.object
            && (object.start..object.end()).contains(&addr)
        {
            let member = self.members().and_then(|m| m.at(of, addr - object.start));
            if let Some(member) = member {
                return format!("this.{}", member.path);
            }
        }
        let Some(block) = block else {
            let (symbolizer, modules) = (&self.symbolizer, &self.modules);
            let named = self.named.entry(addr);
            let name = named.or_insert_with(|| symbolizer.borrow_mut().data(addr, modules));
            return match name {
                Some(name) => seen_from(name, of.element.as_deref()),
                None => fallback(),
            };
        };
        let within = Some((addr - block.range.start, block.range.len));
        let places = place.iter().map(|place| place.site).collect();
        if let Some(member) = self.member(Wanted { within, len: 0, places, lock: true }, symbols) {
            return format!("{}.{}", member.of, member.path);
        }
        let holder = self.holders.get(&block.range.start).copied();
        let name = holder.and_then(|holder| self.held_in(holder, of)).or_else(|| {
            let Assigned { name, element } = self.allocated(block, symbols)?;
            Some(if element { format!("{name}[]") } else { name })
        });
        match name {
            Some(name) if is_one_of_many(device, addr, block) => format!("{name}[]"),
            Some(name) => name,
            None => fallback(),
        }
    }

    /// What the memory that points to a device is called, seen from a variable: a member of its object, or a variable
    /// with static storage.
    fn held_in(&mut self, holder: u64, of: &Named) -> Option<String> {
        if let Some((object, of)) = &of.object
            && (object.start..object.end()).contains(&holder)
        {
            let member = self.members()?.at(of, holder - object.start)?;
            return Some(format!("this.{}", member.path));
        }
        if self.heap.at(holder).is_some() {
            return None;
        }
        let name = self.symbolizer.borrow_mut().data(holder, &self.modules)?;
        Some(seen_from(&name, of.element.as_deref()))
    }

    /// Takes in an event: blocks of the heap come and go, and what one is assigned to at once points to it.
    pub(crate) fn on_event(&mut self, event: &Event, symbols: &Symbols) {
        if let Op::Alloc(range) = event.op {
            let (thread, site) = (event.thread, event.site);
            self.heap.allocated(range, thread, site);
            self.holders.remove(&range.start);
            self.unassigned.insert(thread, Block { range, thread, site });
        } else if let Op::Free(range) = event.op {
            self.heap.freed(range);
        } else if let Op::Write(Access { addr, len: POINTER }) = event.op {
            self.assign(event.thread, addr, event.site, symbols);
        }
    }

    /// A thread has written as much as a pointer: the first one outside of the block that it has allocated.
    fn assign(&mut self, thread: ThreadId, addr: u64, site: SiteId, symbols: &Symbols) {
        let Some(&block) = self.unassigned.get(&thread) else { return };
        if (block.range.start..block.range.end()).contains(&addr) {
            return;
        }
        let same_line = self.same_line.entry((block.site, site)).or_insert_with(|| {
            let line = |site| symbols.site(site).frame().map(|f| (f.file.clone(), f.line));
            line(block.site).is_some_and(|known| line(site) == Some(known))
        });
        if *same_line {
            self.holders.insert(block.range.start, addr);
        }
        self.unassigned.remove(&thread);
    }

    /// The member that places name in the source, and that lies at an offset in a block.
    fn member(&mut self, wanted: Wanted, symbols: &Symbols) -> Option<Member> {
        if let Some(found) = self.looked_for.get(&wanted) {
            return found.clone();
        }
        let found = self.look_for(&wanted, symbols);
        if self.looked_for.len() == REMEMBERED {
            self.looked_for.clear();
        }
        self.looked_for.insert(wanted, found.clone());
        found
    }

    fn look_for(&mut self, wanted: &Wanted, symbols: &Symbols) -> Option<Member> {
        let sites = wanted.places.iter().map(|&place| symbols.site(place));
        let lines: Vec<(String, String)> =
            sites.filter_map(|site| Some((function(&site), self.line(&site)?))).collect();
        let (within, len) = (wanted.within, wanted.len);
        let members = self.members()?;
        let wanted = |m: &&Member| !wanted.lock || m.synchronizes;
        // The variable before `->` has a type.
        let mut votes: Votes<'_> = BTreeMap::new();
        for (function, line) in &lines {
            for (variable, member) in accesses_in(line) {
                let Some(of) = members.local(function, variable) else { continue };
                let all = members.of(of).filter(|m| m.path == member || m.name() == member);
                vote(&mut votes, all.filter(wanted).filter(|m| may_be_at(m, within)));
            }
        }
        if let Some(member) = best(&votes, within, len) {
            return Some(member);
        }
        // Otherwise a member of that name must fit the block, and nothing else.
        let fits = |m: &&Member| {
            within.is_some_and(|(offset, of)| {
                let exactly = of % m.size == 0;
                let one = of < 2 * m.size && fills(m, of);
                (exactly || one) && m.is_at(offset)
            })
        };
        for words in [members_in as fn(&str) -> Vec<&str>, words_in] {
            for (_, line) in &lines {
                let all = words(line).into_iter().flat_map(|w| members.named(w));
                vote(&mut votes, all.filter(wanted).filter(fits));
            }
            if let Some(member) = best(&votes, within, len) {
                return Some(member);
            }
        }
        None
    }

    fn members(&mut self) -> Option<&Members> {
        if self.members.is_none() && !self.lacks_types {
            let all = self.symbolizer.borrow_mut().members(&self.modules);
            self.lacks_types = all.is_none();
            self.members = all.map(Members::new);
        }
        self.members.as_ref()
    }

    /// What a block is assigned to where it is allocated.
    fn allocated(&mut self, block: Block, symbols: &Symbols) -> Option<Assigned> {
        assigned(&self.line(&symbols.site(block.site))?)
    }

    /// The line of source at a place.
    fn line(&mut self, site: &Site) -> Option<String> {
        let frame = site.frame()?;
        let directories = &self.directories;
        let lines = self.files.entry(frame.file.to_string()).or_insert_with(|| {
            let below = directories.iter().map(|d| d.join(&*frame.file));
            let mut candidates = std::iter::once(PathBuf::from(&*frame.file)).chain(below);
            let text = candidates.find_map(|path| fs::read_to_string(path).ok())?;
            Some(text.lines().map(str::to_owned).collect())
        });
        lines.as_ref()?.get(frame.line.checked_sub(1)? as usize).cloned()
    }
}

/// What is assigned to in a line of source.
#[derive(PartialEq, Eq, Debug)]
struct Assigned {
    name: String,
    /// Whether an element of it is.
    element: bool,
}

fn assigned(line: &str) -> Option<Assigned> {
    let (left, _) = line.split_once('=')?;
    let mut left = left.trim_end();
    let element = left.ends_with(']');
    while let Some(inner) = left.strip_suffix(']') {
        left = inner.rsplit_once('[')?.0.trim_end();
    }
    let name = left.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_name.then(|| Assigned { name: name.to_owned(), element })
}

/// Whether a device lies in a block that is an array of such devices. That must not depend on which of them the program
/// has used so far.
fn is_one_of_many(device: Device, addr: u64, block: Block) -> bool {
    let sizes: &[u64] = match device {
        Device::Lock(_) => &[MUTEX, READER_WRITER],
        Device::Barrier(_) | Device::Semaphore(_) => &[SEMAPHORE],
        Device::Atomic(_) => &[],
    };
    let offset = addr - block.range.start;
    sizes.iter().any(|&size| {
        block.range.len >= 2 * size
            && block.range.len.is_multiple_of(size)
            && offset.is_multiple_of(size)
    })
}

/// Bytes of a pointer.
const POINTER: u32 = 8;

/// Sizes of what POSIX has, on 64-bit Linux.
const MUTEX: u64 = 40;
const READER_WRITER: u64 = 56;
/// Also that of a barrier.
const SEMAPHORE: u64 = 32;

/// What a thread of a native run is called.
pub(crate) fn thread(id: ThreadId) -> String {
    match id.0 {
        0 => "main".to_owned(),
        number => format!("T{number}"),
    }
}

/// The name of the function of a place, without parameters and the path to it.
fn function(site: &Site) -> String {
    let name = site.frame().map_or("", |f| &*f.function);
    let name = name.split('(').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).to_owned()
}

/// The variables before `->` and `.` in a line of source, each with the member after it.
fn accesses_in(line: &str) -> Vec<(&str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let arrows = line.match_indices("->").map(|(i, text)| (i, i + text.len()));
    let dots = line.match_indices('.').map(|(i, text)| (i, i + text.len()));
    let pair = |(end, start): (usize, usize)| {
        let before = line[..end].trim_end();
        let from = before.rfind(|c: char| !is_word(c)).map_or(0, |i| i + 1);
        let after = line[start..].trim_start();
        let to = after.find(|c: char| !is_word(c)).unwrap_or(after.len());
        (&before[from..], &after[..to])
    };
    let pairs = arrows.chain(dots).map(pair);
    pairs.filter(|(variable, member)| !variable.is_empty() && !member.is_empty()).collect()
}

/// The names after `->` and `.` in a line of source.
fn members_in(line: &str) -> Vec<&str> {
    let ends = line.match_indices("->").map(|(i, _)| i + 2);
    let dots = line.match_indices('.').map(|(i, _)| i + 1);
    let name = |at: usize| {
        let rest = line[at..].trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    let mut names: Vec<&str> = ends.chain(dots).map(name).collect();
    names.retain(|n| n.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    names.dedup();
    names
}

/// All names in a line of source.
fn words_in(line: &str) -> Vec<&str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_')).collect()
}

/// What a device with static storage is called, seen from a member of an element of an array.
pub(crate) fn seen_from(name: &str, from: Option<&str>) -> String {
    match element(name) {
        Some((same, member)) if from == Some(same) => format!("this.{member}"),
        _ => array(name, true),
    }
}

/// The element of an array that a name is a member of, and the member.
pub(crate) fn element(name: &str) -> Option<(&str, &str)> {
    let (element, member) = name.rsplit_once('.')?;
    element.contains('[').then_some((element, member))
}

/// The name without indices: an element stands for its array, or, if it is a lock, for some element of it.
pub(crate) fn array(name: &str, lock: bool) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let Some((index, after)) = after.split_once(']') else {
            plain.push('[');
            rest = after;
            continue;
        };
        if index.bytes().all(|b| b.is_ascii_digit()) {
            if !plain.ends_with("[]") {
                plain.push_str("[]");
            }
        } else {
            plain.push_str(&format!("[{index}]"));
        }
        rest = after;
    }
    plain.push_str(rest);
    // What Rust's standard library has around data.
    let mut plain = plain.as_str();
    let wrappers = [".data", ".value", ".__0", ".inner", ".v", ".i"];
    if plain.contains("::") {
        while let Some(inner) = wrappers.iter().find_map(|w| plain.strip_suffix(w)) {
            plain = inner;
        }
    }
    if !lock {
        plain = plain.trim_end_matches("[]");
    }
    plain.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stand_for_their_array() {
        assert_eq!(array("grid[2][1]", false), "grid");
        assert_eq!(array("slots[3].count", false), "slots[].count");
        assert_eq!(array("locks[7]", true), "locks[]");
        assert_eq!(array("app::TABLE[3].data.value", false), "app::TABLE");
        assert_eq!(array("shape.data", false), "shape.data");
    }

    #[test]
    fn what_is_assigned_to_is_found_in_the_text() {
        let of = |line| assigned(line).map(|a| (a.name, a.element));
        let is = |name: &str, element| Some((name.to_owned(), element));
        assert_eq!(of("    q->mut = new pthread_mutex_t;"), is("mut", false));
        assert_eq!(of("  pthread_mutex_t *lock = malloc(sizeof *lock);"), is("lock", false));
        assert_eq!(of("  locks[i + 1] = malloc(40);"), is("locks", true));
        assert_eq!(of("  grid[i][j] = malloc(40);"), is("grid", true));
        assert_eq!(of("  return malloc(40);"), None);
    }

    #[test]
    fn a_lock_is_one_of_many_whichever_was_used_first() {
        let block =
            |len| Block { range: Range { start: 64, len }, thread: ThreadId(0), site: SiteId(0) };
        let lock = Device::Lock(selvedge_model::LockId(0));
        assert!(is_one_of_many(lock, 64, block(80)));
        assert!(is_one_of_many(lock, 64 + 56, block(3 * 56)));
        assert!(!is_one_of_many(lock, 64, block(40)));
        assert!(!is_one_of_many(lock, 64 + 8, block(80)));
    }

    #[test]
    fn members_are_found_in_the_text() {
        assert_eq!(members_in("  it->nbytes += other.size + 1.5;"), ["nbytes", "size"]);
        assert_eq!(members_in("p -> next"), ["next"]);
        assert_eq!(accesses_in("if (it->prev) a.b = 1;"), [("it", "prev"), ("a", "b")]);
    }
}
