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

mod text;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;

use rustc_hash::FxHashMap;
use selvedge_analyses::devices::Device;
use selvedge_model::{Access, Event, Op, Range, Site, SiteId, Symbols, ThreadId};
use selvedge_runtime::{Modules, Object};

use super::heap::{Block, Heap};
use super::symbolize::{Member, SharedSymbolizer, Structures};
use text::{Assigned, Chain, assigned, chains_in, members_in, words_in};

/// A variable by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// The object that it is a member of, with the name of its type.
    object: Option<(Range, String)>,
    /// The element of an array with static storage that it is a member of: `floors[2]`.
    element: Option<String>,
    /// Whether it is in a heap block that nothing names, so that the name is made of where the block comes from.
    pub(crate) in_nameless_block: bool,
}

impl Named {
    fn new(name: String) -> Named {
        Named { name, object: None, element: None, in_nameless_block: false }
    }
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

/// Whether one or several structures with this member fill a block of a length.
fn fills(member: &Member, len: u64) -> bool {
    let one = (member.size..2 * member.size).contains(&len) && len - member.size < ROUNDED;
    one || holds(len, member.size, ROUNDED)
}

/// What malloc rounds sizes up by.
const ROUNDED: u64 = 16;

/// Whether a block of a length is an array of elements of a size, but for fewer bytes than `more` behind them. Of
/// elements that malloc may have rounded up by, none is there unless they fill the block.
fn holds(len: u64, size: u64, more: u64) -> bool {
    let rest = len.checked_rem(size);
    len >= size && rest.is_some_and(|rest| rest == 0 || size > ROUNDED && rest < more)
}

/// Whether a block is so large that the program may hand out structures with this member from it by itself.
fn is_handed_out(member: &Member, within: Option<(u64, u64)>) -> bool {
    const MANY: u64 = 16;
    within.is_some_and(|(_, len)| len > MANY * member.size)
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

    /// The structure that a variable of a function, or else one with static storage, is or points to.
    fn structure(&self, function: &str, variable: &str) -> Option<&str> {
        let of = |function: &str| self.locals.get(&(function.to_owned(), variable.to_owned()));
        of(function).or_else(|| of("")).map(String::as_str)
    }

    /// Whether a variable of a function is or points to a structure.
    fn is_local(&self, function: &str, variable: &str) -> bool {
        self.locals.contains_key(&(function.to_owned(), variable.to_owned()))
    }

    /// All members that a chain of them names, of one structure after the other.
    fn along<'a>(&'a self, function: &str, chain: &Chain<'_>) -> Vec<&'a Member> {
        let (mut of, mut path) = (self.structure(function, chain.variable), String::new());
        let (mut named, mut last): (Vec<&Member>, Option<&Member>) = (Vec::new(), None);
        for &(through_a_pointer, name) in &chain.members {
            if through_a_pointer && let Some(pointer) = last.take() {
                of = pointer.leads_to.as_deref();
                path.clear();
            }
            let Some(of) = of else { break };
            let first = path.is_empty();
            if !first {
                path.push('.');
            }
            path.push_str(name);
            let before = named.len();
            named.extend(self.of(of).filter(|m| m.path == path || first && m.name() == name));
            last = named[before..].first().copied();
        }
        named
    }

    /// The smallest member at an offset within a member: what the text names may be a structure.
    fn inside<'a>(&'a self, member: &'a Member, within: Option<(u64, u64)>) -> &'a Member {
        let Some((offset, _)) = within.filter(|(offset, _)| member.is_at(*offset)) else {
            return member;
        };
        let below = |m: &&Member| {
            let rest = m.path.strip_prefix(&member.path);
            rest.is_some_and(|rest| rest.starts_with('.')) && m.is_at(offset)
        };
        self.of(&member.of).filter(below).min_by_key(|m| m.len).unwrap_or(member)
    }

    /// The member that most of these name; of equals one as long as the accesses, then the one whose structure fills the
    /// block, then the largest.
    fn elect<'a>(
        &'a self,
        named: impl Iterator<Item = &'a Member>,
        wanted: &Wanted,
    ) -> Option<Member> {
        let mut votes: BTreeMap<(&str, &str), (usize, &Member)> = BTreeMap::new();
        let inside = named.map(|member| self.inside(member, wanted.within));
        for member in inside.filter(|m| !wanted.lock || m.synchronizes) {
            votes.entry((&member.of, &member.path)).or_insert((0, member)).0 += 1;
        }
        let whole = |m: &Member| wanted.within.is_some_and(|(_, of)| fills(m, of));
        let order = |(count, m): &&(usize, &Member)| {
            let shortest = std::cmp::Reverse((m.path.len(), m.of.clone()));
            (*count, m.len == wanted.len, whole(m), m.size, shortest)
        };
        votes.values().max_by_key(order).map(|(_, member)| (*member).clone())
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
            return Named::new(name.clone());
        }
        let block = self.heap.at(addr).copied();
        let data = match block {
            Some(_) => None,
            None => self.symbolizer.borrow_mut().data(addr, &self.modules),
        };
        if let Some(name) = data {
            self.remember_array(addr, &name);
            let element = element(&name).map(|(element, _)| element.to_owned());
            return Named { element, ..Named::new(array(&name, false)) };
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
            return Named { object, ..Named::new(name) };
        }
        let allocated = block.and_then(|block| self.allocated(block, symbols));
        let in_nameless_block = block.is_some() && allocated.is_none();
        let name = match (allocated, block) {
            (Some(allocated), _) => allocated.name,
            (None, Some(block)) => {
                let offset = addr - block.range.start;
                format!("heap block from {}+{offset}", symbols.site(block.site))
            }
            (None, None) => match places.iter().find_map(|&p| symbols.site(p).frame().cloned()) {
                Some(frame) => format!("stack of {}", frame.function),
                None => "memory without a name".to_owned(),
            },
        };
        let object = block.map(|b| (b.range, String::new()));
        Named { object, in_nameless_block, ..Named::new(name) }
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
        let within = wanted.within;
        let members = self.members()?;
        // The variable in front has a type, and so has every member that points to a structure.
        let typed: Vec<&Member> = lines
            .iter()
            .flat_map(|(function, line)| chains_in(line).into_iter().map(move |c| (function, c)))
            // Memory that is in no block belongs to a function.
            .filter(|(f, chain)| within.is_some() || members.is_local(f, chain.variable))
            .flat_map(|(function, chain)| members.along(function, &chain))
            .collect();
        let of_type = |fits: &dyn Fn(&Member) -> bool| {
            members.elect(typed.iter().copied().filter(|m| fits(m)), wanted)
        };
        let fills_it = |m: &Member| {
            within.is_none_or(|(offset, of)| {
                fills(m, of) && offset < of / m.size * m.size && m.is_at(offset)
            })
        };
        // Otherwise a member of a name in the text must fit the block, and nothing else.
        let of_name = |words: fn(&str) -> Vec<&str>| {
            let words = lines.iter().flat_map(|(_, line)| words(line));
            let named = words.flat_map(|word| members.named(word));
            members.elect(named.filter(|m| within.is_some() && fills_it(m)), wanted)
        };
        // There may be more in the block than the structure in front.
        let begins_it = |m: &Member| {
            within.is_some_and(|(offset, of)| of >= m.size && offset < m.size && m.is_at(offset))
        };
        of_type(&fills_it)
            .or_else(|| of_type(&|m| is_handed_out(m, within)))
            .or_else(|| of_name(members_in))
            .or_else(|| of_name(words_in))
            .or_else(|| of_type(&begins_it))
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

/// Whether a device lies in a block that is an array of such devices. That must not depend on which of them the program
/// has used so far.
fn is_one_of_many(device: Device, addr: u64, block: Block) -> bool {
    let sizes: &[u64] = match device {
        Device::Lock(_) => &[MUTEX, READER_WRITER],
        Device::Barrier(_) | Device::Semaphore(_) => &[SEMAPHORE],
        Device::Atomic(_) => &[],
    };
    /// Larger blocks are mappings of their own, of whole pages.
    const MAPPED: u64 = 128 << 10;
    const PAGE: u64 = 4096;
    let (offset, len) = (addr - block.range.start, block.range.len);
    let more = if len >= MAPPED { PAGE } else { ROUNDED };
    sizes
        .iter()
        .any(|&size| len >= 2 * size && holds(len, size, more) && offset.is_multiple_of(size))
}

/// Bytes of a pointer.
const POINTER: u32 = 8;

/// Sizes of what POSIX has, on 64-bit Linux.
const MUTEX: u64 = 40;
const READER_WRITER: u64 = 56;
/// Also that of a barrier.
const SEMAPHORE: u64 = 32;

/// The name of the function of a place, without parameters and the path to it.
fn function(site: &Site) -> String {
    let name = site.frame().map_or("", |f| &*f.function);
    let name = name.split('(').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name).to_owned()
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
    fn a_lock_is_one_of_many_whichever_was_used_first() {
        let block =
            |len| Block { range: Range { start: 64, len }, thread: ThreadId(0), site: SiteId(0) };
        let lock = Device::Lock(selvedge_model::LockId(0));
        assert!(is_one_of_many(lock, 64, block(80)));
        assert!(is_one_of_many(lock, 64 + 40, block(88)), "malloc made it longer");
        assert!(is_one_of_many(lock, 64 + 40, block(1000 * 4096 - 16)), "a mapping");
        assert!(is_one_of_many(lock, 64 + 56, block(3 * 56)));
        assert!(!is_one_of_many(lock, 64, block(40)));
        assert!(!is_one_of_many(lock, 64 + 8, block(80)));
    }
}
