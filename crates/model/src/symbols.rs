//! What ids are called and where they stand in the source.
//!
//! Every table only grows, so a writer knows what is new since it last looked, and ids stay valid.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::Hash;

use rustc_hash::FxHashMap;

use crate::{
    Access, BarrierId, CondId, LocalId, LockId, Range, RegionId, SemaphoreId, SiteId, ThreadId,
    Values,
};

/// A line of source, with the function that it belongs to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub struct Frame {
    /// Function name, demangled; empty if unknown.
    pub function: Box<str>,
    /// Path as the compiler recorded it; empty if unknown.
    pub file: Box<str>,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// A place in the source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Site {
    /// All that is known is a text, such as a trace file's site column.
    Label(Box<str>),
    /// A line of source, and where the compiler inlined it: innermost caller first.
    Source(Frame, Vec<Frame>),
}

impl Site {
    /// Understands `file:line` and `file:line:column`, and takes anything else for a label.
    pub fn parse(text: &str) -> Site {
        let number = |s: &str| s.parse::<u32>().ok().filter(|&n| n > 0);
        let source = |file: &str, line, column| {
            Site::Source(Frame { file: file.into(), line, column, ..Frame::default() }, Vec::new())
        };
        if let Some((head, last)) = text.rsplit_once(':')
            && let Some(last) = number(last)
        {
            if let Some((file, line)) = head.rsplit_once(':')
                && let Some(line) = number(line)
                && !file.is_empty()
            {
                return source(file, line, last);
            }
            if !head.is_empty() {
                return source(head, last, 0);
            }
        }
        Site::Label(text.into())
    }

    /// The innermost frame, unless the site is only a label.
    pub fn frame(&self) -> Option<&Frame> {
        match self {
            Site::Label(_) => None,
            Site::Source(frame, _) => Some(frame),
        }
    }

    /// What a place of an earlier build has become among the `known` places of an edited one: the same
    /// place, or the nearest line of the same function, file name and column.
    pub fn relocated<'a>(
        &self,
        known: impl IntoIterator<Item = &'a Site> + Clone,
    ) -> Option<&'a Site> {
        if let Some(same) = known.clone().into_iter().find(|k| *k == self) {
            return Some(same);
        }
        let was = self.frame()?;
        let file = |frame: &Frame| frame.file.rsplit('/').next().map(str::to_owned);
        let like = |k: &&Site| {
            k.frame().is_some_and(|is| {
                is.function == was.function && is.column == was.column && file(is) == file(was)
            })
        };
        let distance = |k: &&Site| k.frame().map_or(u32::MAX, |is| is.line.abs_diff(was.line));
        known.into_iter().filter(like).min_by_key(distance)
    }
}

/// `file:line:column`, as far as it is known; the label of a site that is only a label.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Site::Label(text) => f.write_str(text),
            Site::Source(Frame { file, line, column, .. }, _) => {
                f.write_str(file)?;
                if *line > 0 {
                    write!(f, ":{line}")?;
                }
                if *column > 0 {
                    write!(f, ":{column}")?;
                }
                Ok(())
            }
        }
    }
}

/// What a region claims of the code inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RegionKind {
    /// It behaves as if nothing else ran meanwhile.
    Atomic,
    /// Its result, and that of the threads it forks, does not depend on the schedule.
    Deterministic,
    /// It is one piece of the parallel work: a sequential execution runs it without interruption.
    Task,
    /// A sequential execution may leave it out.
    Star,
    /// It commutes with the others of its name.
    Commutes,
    /// An initialisation that the task that comes first does for all.
    Lazy,
    /// One execution of a statement of the source, which a star could be put around.
    Statement,
}

impl RegionKind {
    /// All of them, with what the label of such a region starts with in a text trace.
    pub const LABELS: [(RegionKind, &str); 7] = [
        (RegionKind::Atomic, "atomic"),
        (RegionKind::Deterministic, "det"),
        (RegionKind::Task, "task"),
        (RegionKind::Star, "star"),
        (RegionKind::Commutes, "commutes"),
        (RegionKind::Lazy, "lazy"),
        (RegionKind::Statement, "stmt"),
    ];

    /// What the label of such a region starts with in a text trace.
    pub fn label(self) -> &'static str {
        RegionKind::LABELS[self as usize].1
    }
}

/// A marked stretch of code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Region {
    /// What is claimed.
    pub kind: RegionKind,
    /// What the user calls it.
    pub name: Box<str>,
}

/// An append-only table that gives equal entries the same index.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        into = "Vec<T>",
        from = "Vec<T>",
        bound = "T: Clone + Eq + Hash + serde::Serialize + serde::de::DeserializeOwned"
    )
)]
pub struct Table<T> {
    entries: Vec<T>,
    indices: FxHashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { entries: Vec::new(), indices: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// The index of `entry`, which is new if it has not been seen.
    pub fn intern(&mut self, entry: T) -> u32 {
        if let Some(&i) = self.indices.get(&entry) {
            return i;
        }
        self.push(entry)
    }

    /// Appends `entry` under the next index, even if an equal one is there already.
    pub fn push(&mut self, entry: T) -> u32 {
        let i = u32::try_from(self.entries.len())
            .expect("a table of 2^32 entries does not fit in memory");
        self.indices.entry(entry.clone()).or_insert(i);
        self.entries.push(entry);
        i
    }

    /// The entry at `index`.
    pub fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)
    }

    /// All entries in the order of their indices.
    pub fn entries(&self) -> &[T] {
        &self.entries
    }
}

/// The names of things of one kind, in the order of their ids.
pub type Names = Table<Box<str>>;

impl Table<Box<str>> {
    /// Gives the entry at `index` a name. Entries before it that are missing get none.
    pub fn rename(&mut self, index: u32, name: &str) {
        while self.entries.len() <= index as usize {
            self.push("".into());
        }
        let entry = &mut self.entries[index as usize];
        if self.indices.get(entry) == Some(&index) {
            self.indices.remove(entry);
        }
        *entry = name.into();
        self.indices.entry(name.into()).or_insert(index);
    }

    /// As [`Table::intern`], without allocating for a name that is known.
    pub fn intern_str(&mut self, name: &str) -> u32 {
        match self.indices.get(name) {
            Some(&i) => i,
            None => self.intern(name.into()),
        }
    }
}

/// Variables by the memory they occupy.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "Vec<(String, Range)>", from = "Vec<(String, Range)>"))]
pub struct Variables {
    names: Names,
    ranges: Vec<Range>,
    by_start: BTreeMap<u64, u32>,
}

impl Variables {
    /// Names a piece of memory. A name that is known keeps its memory.
    pub fn define(&mut self, name: &str, range: Range) {
        let i = self.names.intern_str(name);
        if i as usize == self.ranges.len() {
            self.ranges.push(range);
            self.by_start.insert(range.start, i);
        }
    }

    /// Memory for a variable of which only the name is known: a word of its own.
    pub fn place(&mut self, name: &str) -> Access {
        const WORD: u32 = 8;
        let next = self.ranges.len() as u64;
        let i = self.names.intern_str(name);
        if i as usize == self.ranges.len() {
            let range = Range { start: (next + 1) * u64::from(WORD), len: u64::from(WORD) };
            self.ranges.push(range);
            self.by_start.insert(range.start, i);
        }
        Access { addr: self.ranges[i as usize].start, len: WORD }
    }

    /// The variable that `addr` lies in, with the offset of `addr` in it.
    pub fn at(&self, addr: u64) -> Option<(&str, u64)> {
        let (&start, &i) = self.by_start.range(..=addr).next_back()?;
        let name = self.names.get(i)?;
        (addr < self.ranges[i as usize].end()).then(|| (&**name, addr - start))
    }

    /// All variables in the order they were defined.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, Range)> + '_ {
        self.names.entries().iter().map(|n| &**n).zip(self.ranges.iter().copied())
    }
}

/// Memory without a name, in pieces that are numbered from 1 in the order in which an execution uses them. A number
/// tells pieces of one execution apart; in another execution it may be that of another piece.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Nameless(BTreeMap<u64, usize>);

impl Nameless {
    /// The size of a piece.
    pub const PIECE: u64 = 16;

    /// Numbers the piece that `addr` lies in, if it has no number yet.
    pub fn add(&mut self, addr: u64) {
        let next = self.0.len() + 1;
        self.0.entry(addr / Nameless::PIECE).or_insert(next);
    }

    /// The number of the piece that `addr` lies in, with the offset of `addr` in it.
    pub fn at(&self, addr: u64) -> Option<(usize, u64)> {
        let number = self.0.get(&(addr / Nameless::PIECE))?;
        Some((*number, addr % Nameless::PIECE))
    }
}

/// The calls that led to something that a thread did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Calls {
    /// Where they are, innermost first, as far as they are known.
    pub sites: Vec<Site>,
    /// The files with the code of the calls and of what the thread did.
    pub files: BTreeSet<Box<str>>,
}

/// The names of everything in one execution.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Symbols {
    pub threads: Names,
    /// What each thread runs, where the report adds it to the thread's name.
    pub functions: Names,
    pub locks: Names,
    pub barriers: Names,
    pub semaphores: Names,
    pub conds: Names,
    /// Local variables; each thread has its own of every name.
    pub locals: Names,
    pub variables: Variables,
    /// Memory that the program has no name for.
    pub nameless: Nameless,
    pub regions: Table<Region>,
    pub sites: Table<Site>,
    /// What accesses found and left, by the number of the event, where that was recorded.
    pub values: BTreeMap<usize, Values>,
    /// Where threads take locks without waiting for ever.
    pub tries: BTreeSet<SiteId>,
    /// The calls that led a thread to a site, where that is known.
    #[cfg_attr(feature = "serde", serde(with = "crate::stored::pairs"))]
    pub calls: BTreeMap<(ThreadId, SiteId), Calls>,
    /// Where a thread probably was, if other places are possible.
    pub approximate: BTreeSet<(ThreadId, SiteId)>,
}

impl Symbols {
    /// The site of an id, or a label made of the id where none is known.
    pub fn site(&self, id: SiteId) -> Site {
        self.sites.get(id.0).cloned().unwrap_or_else(|| Site::Label(format!("{id:?}").into()))
    }

    /// The region of an id.
    pub fn region(&self, id: RegionId) -> Option<&Region> {
        self.regions.get(id.0)
    }

    /// What a thread is called, with what it runs: `T1 (worker)`.
    pub fn thread(&self, id: ThreadId) -> String {
        let name = name(&self.threads, id.0, &id);
        match self.functions.get(id.0) {
            Some(function) if !function.is_empty() => format!("{name} ({function})"),
            _ => name,
        }
    }

    /// What a lock is called.
    pub fn lock(&self, id: LockId) -> String {
        name(&self.locks, id.0, &id)
    }

    /// What a barrier is called.
    pub fn barrier(&self, id: BarrierId) -> String {
        name(&self.barriers, id.0, &id)
    }

    /// What a semaphore is called.
    pub fn semaphore(&self, id: SemaphoreId) -> String {
        name(&self.semaphores, id.0, &id)
    }

    /// What a condition variable is called.
    pub fn cond(&self, id: CondId) -> String {
        name(&self.conds, id.0, &id)
    }

    /// What a local variable is called.
    pub fn local(&self, id: LocalId) -> String {
        name(&self.locals, id.0, &id)
    }

    /// What a piece of memory is called: a variable or an offset into one, and otherwise its number or its address.
    pub fn variable(&self, range: Range) -> String {
        let offset = |name: &str, offset: u64| match offset {
            0 => name.to_owned(),
            _ => format!("{name}+{offset}"),
        };
        match (self.variables.at(range.start), self.nameless.at(range.start)) {
            (Some((name, at)), _) => offset(name, at),
            (None, Some((number, at))) => offset(&format!("memory {number}"), at),
            (None, None) => format!("{:#x}", range.start),
        }
    }
}

fn name(names: &Names, index: u32, id: &dyn fmt::Debug) -> String {
    match names.get(index) {
        Some(name) if !name.is_empty() => name.to_string(),
        _ => format!("{id:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_read_from_text() {
        let shown = |text: &str| {
            let site = Site::parse(text);
            (site.to_string(), site.frame().map(|f| (f.file.to_string(), f.line, f.column)))
        };
        assert_eq!(shown("a.c:12"), ("a.c:12".into(), Some(("a.c".into(), 12, 0))));
        assert_eq!(shown("/x/a.c:12:7"), ("/x/a.c:12:7".into(), Some(("/x/a.c".into(), 12, 7))));
        for label in ["12", "", ":12", "a.c:", "a.c:0", "Foo.java"] {
            assert_eq!(shown(label), (label.into(), None));
        }
    }

    #[test]
    fn memory_without_a_name_is_numbered_and_a_name_comes_first() {
        let mut symbols = Symbols::default();
        let at = |start| Range { start, len: 4 };
        symbols.nameless.add(0x48);
        symbols.nameless.add(0x20);
        symbols.nameless.add(0x40);
        symbols.variables.define("x", at(0x24));
        assert_eq!(symbols.variable(at(0x48)), "memory 1+8");
        assert_eq!(symbols.variable(at(0x20)), "memory 2");
        assert_eq!(symbols.variable(at(0x24)), "x");
        assert_eq!(symbols.variable(at(0x60)), "0x60");
    }

    #[test]
    fn variables_are_found_by_address() {
        let mut v = Variables::default();
        let x = v.place("x");
        assert_eq!(v.place("x"), x);
        assert_ne!(v.place("y"), x);
        v.define("array", Range { start: 1000, len: 40 });
        assert_eq!(v.at(1008), Some(("array", 8)));
        assert_eq!(v.at(1040), None);
        assert_eq!(v.at(x.addr), Some(("x", 0)));
    }
}
