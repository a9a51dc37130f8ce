//! Names of threads and locks that are the same in every execution, for the directed strategies.
//!
//! Source: Park, *Active testing*, section 5.2: light-weight execution indexing and k-object-sensitivity.
//! An object is recognised by where it was made: in the first by the calls around that place and how
//! often it has been made there before, in the second by the place, the place where its maker was made,
//! and so on.
//!
//! Deviations: a frame is counted together with those around it and not by itself, since calls are seen
//! only where something happens. The maker of C's locks is the thread; there is no `this`. Locks that
//! are not made by a call are named by where they lie in static memory, which is the same in every
//! execution, or else by their first use, which depends on the schedule.
//!
//! Guarantee: two executions that make their threads and locks in the same order at the same places give
//! them the same names. Different objects may have the same name, the more so the smaller k is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use selvedge_explore::Abstraction;
use selvedge_model::{LockId, ThreadId};

use crate::modules::Modules;
use crate::places::Code;

/// How many frames a name can tell apart: where it happened and the callers.
pub const FRAMES: usize = 5;

/// Numbers of the places in the code of the frames in which an object was made, innermost first, 0 for none.
pub type Origin = [u64; FRAMES];

/// The frames around a return address, in numbers that are the same in every process: ids of sites are those
/// of one executor. `statics` numbers what lies in a file.
pub(crate) fn origin((pc, callers): Code, statics: &dyn Fn(u64) -> Option<u64>) -> Origin {
    let mut origin: Origin = [0; FRAMES];
    for (number, at) in origin.iter_mut().zip(std::iter::once(pc).chain(callers)) {
        *number = if at == 0 { 0 } else { statics(at).unwrap_or(1) };
    }
    origin
}

/// A number for a place in a file that is the same wherever it is loaded; none for other memory.
pub(crate) fn static_place(modules: &Modules, addr: u64) -> Option<u64> {
    let (path, offset) = modules.image(addr)?;
    let mut hasher = std::hash::DefaultHasher::new();
    (path.file_name(), offset).hash(&mut hasher);
    Some(hasher.finish())
}

/// Which objects have one name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// Execution indexing: so many frames around the place, and how many like it came before.
    Index(usize),
    /// k-object-sensitivity: the place, that of its maker, and so on, so many in all.
    Makers(usize),
}

impl Default for Scheme {
    fn default() -> Scheme {
        Scheme::Index(FRAMES)
    }
}

/// The names of one object, by k.
#[derive(Clone, Copy, Debug, Default)]
struct Name {
    index: [u64; FRAMES],
    makers: [u64; FRAMES],
}

impl Name {
    fn by(&self, scheme: Scheme) -> u64 {
        match scheme {
            Scheme::Index(k) => self.index[k.clamp(1, FRAMES) - 1],
            Scheme::Makers(k) => self.makers[k.clamp(1, FRAMES) - 1],
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Table {
    threads: Vec<Name>,
    locks: Vec<Name>,
    counts: HashMap<u64, u64>,
}

/// The [`Names`] of an execution that has ended, which can be given to another thread.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    table: Table,
    scheme: Scheme,
}

impl Table {
    fn name(&mut self, maker: ThreadId, origin: &Origin, what: u64) -> Name {
        let maker = self.threads.get(maker.index()).copied().unwrap_or_default();
        let mut name = Name::default();
        let mut class = what;
        for (k, &frame) in origin.iter().enumerate() {
            class = mix(class, frame);
            let mine = mix(mix(class, maker.index[k]), k as u64);
            let count = self.counts.entry(mine).or_insert(0);
            *count += 1;
            name.index[k] = mix(mine, *count);
            let before = if k == 0 { 0 } else { maker.makers[k - 1] };
            name.makers[k] = mix(mix(what, origin[0]), before);
        }
        name
    }
}

fn mix(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The names of the execution that runs, or ran last.
#[derive(Clone, Debug, Default)]
pub struct Names {
    table: Rc<RefCell<Table>>,
    scheme: Scheme,
}

impl Names {
    /// The same names by another scheme.
    pub fn by(&self, scheme: Scheme) -> Names {
        Names { table: self.table.clone(), scheme }
    }

    /// The names of the execution that ended last, which do not change with the next one.
    pub fn snapshot(&self) -> NameTable {
        NameTable { table: self.table.borrow().clone(), scheme: self.scheme }
    }

    /// A new execution, with its first thread.
    pub(crate) fn begin(&self) {
        let first = Name { index: [1; FRAMES], makers: [1; FRAMES] };
        self.table.replace(Table { threads: vec![first], ..Table::default() });
    }

    pub(crate) fn thread_made(&self, thread: ThreadId, maker: ThreadId, origin: &Origin) {
        let mut table = self.table.borrow_mut();
        let name = table.name(maker, origin, 1);
        table.threads.resize(thread.index() + 1, Name::default());
        table.threads[thread.index()] = name;
    }

    /// The next lock is made, or used for the first time, at a place in static memory if it is given.
    pub(crate) fn lock_made(&self, maker: ThreadId, origin: &Origin, fixed: Option<u64>) {
        let mut table = self.table.borrow_mut();
        let name = match fixed {
            Some(place) => {
                let name = mix(place, 3);
                Name { index: [name; FRAMES], makers: [name; FRAMES] }
            }
            None => table.name(maker, origin, 2),
        };
        table.locks.push(name);
    }
}

impl NameTable {
    /// The same names by another scheme.
    pub fn by(&self, scheme: Scheme) -> NameTable {
        NameTable { table: self.table.clone(), scheme }
    }
}

fn name_of(names: &[Name], index: usize, scheme: Scheme) -> u64 {
    names.get(index).map_or(0, |n| n.by(scheme))
}

impl Abstraction for NameTable {
    fn thread(&self, thread: ThreadId) -> u64 {
        name_of(&self.table.threads, thread.index(), self.scheme)
    }
    fn lock(&self, lock: LockId) -> u64 {
        name_of(&self.table.locks, lock.index(), self.scheme)
    }
}

impl Abstraction for Names {
    fn thread(&self, thread: ThreadId) -> u64 {
        name_of(&self.table.borrow().threads, thread.index(), self.scheme)
    }
    fn lock(&self, lock: LockId) -> u64 {
        name_of(&self.table.borrow().locks, lock.index(), self.scheme)
    }
}
