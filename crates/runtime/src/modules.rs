//! What a program counter belongs to: the files that the program has mapped, from its memory map.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_model::{Mode, RegionKind, Site};

/// A mapped piece of a file that holds code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Where the piece begins in the file.
    pub offset: u64,
    /// Lowest address at which any piece of the file is mapped.
    pub base: u64,
    /// The file.
    pub path: PathBuf,
}

/// The code of a program.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    by_start: BTreeMap<u64, Module>,
    /// First address of each image in memory, code and data, and the first address after it.
    images: BTreeMap<u64, (u64, PathBuf)>,
    files: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Modules {
    /// Understands the text of one or several `/proc/self/maps`.
    pub fn parse(text: &[u8]) -> Modules {
        let text = String::from_utf8_lossy(text);
        let mut bases: BTreeMap<&str, u64> = BTreeMap::new();
        let mut modules = Modules { images: images(&text), ..Modules::default() };
        let mut last = None;
        for line in text.lines() {
            let Some((start, end, offset, code, path)) = parse_line(line) else { continue };
            // The pieces of an image follow each other. Another process may have it elsewhere.
            if last.replace(path) != Some(path) && offset == 0 {
                bases.insert(path, start);
            }
            let base = *bases.entry(path).and_modify(|b| *b = start.min(*b)).or_insert(start);
            if code {
                // The kernel writes a line end in a name as an octal number.
                let path = PathBuf::from(path.replace("\\012", "\n"));
                modules.by_start.insert(start, Module { start, end, offset, base, path });
            }
        }
        modules
    }

    /// All pieces of code, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Module> + '_ {
        self.by_start.values()
    }

    /// The module that `pc` lies in.
    pub fn find(&self, pc: u64) -> Option<&Module> {
        self.by_start.range(..=pc).next_back().map(|(_, m)| m).filter(|m| pc < m.end)
    }

    /// Where a file is loaded.
    pub fn base_of(&self, path: &Path) -> Option<u64> {
        self.by_start.values().find(|m| m.path == path).map(|m| m.base)
    }

    /// The file whose code or static data lies at `addr`, and how far behind where it is loaded.
    pub fn image(&self, addr: u64) -> Option<(&Path, u64)> {
        let (base, (end, path)) = self.images.range(..=addr).next_back()?;
        (addr < *end).then_some((path, addr - base))
    }

    /// Whether `pc` is where a call returns to.
    pub fn is_return(&self, pc: u64) -> bool {
        let Some(module) = self.find(pc) else { return false };
        let mut files = self.files.borrow_mut();
        let file = files.entry(module.path.clone());
        let file = file.or_insert_with(|| std::fs::read(&module.path).unwrap_or_default());
        let at = (pc - module.start + module.offset) as usize;
        let before = |n: usize| at.checked_sub(n).and_then(|i| file.get(i..at));
        let direct = before(5).is_some_and(|b| b[0] == 0xe8);
        // Indirect calls are FF with the middle bits of the next byte 010, and 2 to 7 bytes long.
        let indirect =
            (2..=7).any(|n| before(n).is_some_and(|b| b[0] == 0xff && b[1] & 0x38 == 0x10));
        direct || indirect
    }
}

/// Where files are loaded: consecutive pieces of one file, and what is zero at the start behind them.
fn images(text: &str) -> BTreeMap<u64, (u64, PathBuf)> {
    let mut images: BTreeMap<u64, (u64, PathBuf)> = BTreeMap::new();
    let mut current: Option<u64> = None;
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let hex = |s: &str| u64::from_str_radix(s, 16).ok();
        let range = fields.first().and_then(|f| f.split_once('-'));
        let Some((start, end)) = range.and_then(|(a, b)| Some((hex(a)?, hex(b)?))) else {
            continue;
        };
        let path = fields.get(5).copied();
        let last = current.and_then(|base| images.get_mut(&base));
        match (path, last) {
            (Some(path), Some((until, file))) if Path::new(path) == file => *until = end,
            (None, Some((until, _))) if *until == start => *until = end,
            (Some(path), _) if path.starts_with('/') => {
                images.insert(start, (end, path.into()));
                current = Some(start);
                continue;
            }
            _ => current = None,
        }
    }
    images
}

fn parse_line(line: &str) -> Option<(u64, u64, u64, bool, &str)> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |s: &str| u64::from_str_radix(s, 16).ok();
    let code = fields.next()?.contains('x');
    let offset = hex(fields.next()?)?;
    let path = fields.nth(2)?.trim_start();
    path.starts_with('/').then_some(())?;
    Some((hex(start)?, hex(end)?, offset, code, path))
}

/// A piece of code whose functions are regions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionRegion {
    /// Where it lies in memory.
    pub code: std::ops::Range<u64>,
    /// What they claim.
    pub kinds: Vec<RegionKind>,
}

/// A number or an array of numbers that can be reached from a global variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// What the source calls it.
    pub name: String,
    /// The type of its elements, as `selvedge.h` numbers types.
    pub kind: u32,
    /// How many elements, if it is an array.
    pub elements: Option<u64>,
    /// Where the variable lies in memory; then for each pointer on the way the offset from where it points.
    pub path: Vec<u64>,
}

/// What an atomic operation does to the lock that it is a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockStep {
    /// If it writes, it takes the lock; if it does not, the thread will wait where we do not see it.
    Take(Mode),
    /// If it writes, it takes the lock; if it does not, the thread gives up.
    Try(Mode),
    /// It releases the lock.
    Give(Mode),
    /// It is inside the lock's code, and neither takes nor releases the lock.
    Inside,
}

/// A part of a lock of Rust that an atomic operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockPart<S> {
    /// What it does to the lock.
    pub step: LockStep,
    /// Where the lock is used.
    pub site: S,
    /// Every other way to take and release the lock is seen as well, as a step or in a stub around the
    /// library. Then the lock's own events order threads, and the atomic has no event.
    pub complete: bool,
}

/// What stands before a return address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// Not a call.
    None,
    /// A call of a function that is not known.
    Unknown,
    /// A call of the function with this symbol.
    Of(String),
}

/// The registers of a thread, as debug information numbers them: the last one is the instruction pointer.
pub type Registers = [u64; 17];

/// Turns return addresses into sites. The command line has one that reads debug information.
pub trait Resolve {
    /// The site of the call that returns to `pc`.
    fn site(&mut self, pc: u64, modules: &Modules) -> Site;

    /// The site of an event whose call returns to `pc`, in a function that was called by `callers`,
    /// innermost first, 0 where there is none.
    fn site_within(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Site {
        let _ = callers;
        self.site(pc, modules)
    }

    /// The calls that return to these addresses, as far as people want to see them.
    fn stack(&mut self, returns: &[u64], modules: &Modules) -> Vec<Site> {
        returns.iter().map(|&pc| self.site(pc, modules)).collect()
    }

    /// The return addresses of the calls that had not returned when a thread had these registers and, from
    /// its stack pointer on, this stack; innermost first. Nothing if that cannot be known.
    fn unwind(&mut self, registers: &Registers, stack: &[u64], modules: &Modules) -> Vec<u64> {
        let _ = (registers, stack, modules);
        Vec::new()
    }

    /// What stands before the return address `pc`.
    fn call_before(&mut self, pc: u64, modules: &Modules) -> Call {
        if modules.is_return(pc) { Call::Unknown } else { Call::None }
    }

    /// The name of the function that `pc` lies in.
    fn function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        let _ = (pc, modules);
        None
    }

    /// The same, and where it is if other functions of the program have the same name.
    fn distinct_function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        self.function(pc, modules)
    }

    /// The functions that are regions, in any order, not overlapping.
    fn regions(&mut self, modules: &Modules) -> Vec<FunctionRegion> {
        let _ = modules;
        Vec::new()
    }

    /// The locations that are states of every block.
    fn globals(&mut self, modules: &Modules) -> Vec<Location> {
        let _ = modules;
        Vec::new()
    }

    /// Which part of a lock the atomic operation is whose call returns to `pc`, if it is one.
    fn lock_step(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Option<LockPart<Site>> {
        let _ = (pc, callers, modules);
        None
    }

    /// Whether a place is in a library, and not in the user's code.
    fn is_library(&self, site: &Site) -> bool {
        let _ = site;
        false
    }

    /// The type of the `len` bytes at `addr`, if debug information has it and they are one value.
    fn shape(&mut self, addr: u64, len: u64, modules: &Modules) -> Option<Shape> {
        let _ = (addr, len, modules);
        None
    }

    /// What to call the synchronization object at `addr`, if it has a name.
    fn object(&mut self, addr: u64, modules: &Modules) -> Option<String> {
        let _ = (addr, modules);
        None
    }
}

/// The type of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Shape {
    Signed,
    Unsigned,
    Float,
    Bool,
    Char,
    Pointer,
    /// A pointer to characters.
    Text,
    /// An enumeration: its constants.
    Constants(Vec<(i64, String)>),
}

/// A place in the code, wherever it is loaded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CodePlace {
    /// The file.
    pub module: PathBuf,
    /// Return address relative to where the file is loaded.
    pub offset: u64,
}

impl CodePlace {
    /// The place of a return address.
    pub fn of(pc: u64, modules: &Modules) -> Option<CodePlace> {
        if let Some(module) = modules.find(pc) {
            return Some(CodePlace { module: module.path.clone(), offset: pc - module.base });
        }
        // Code that was compiled for data flow says where it is by the address of a constant.
        let (module, offset) = modules.image(pc)?;
        Some(CodePlace { module: module.to_owned(), offset })
    }
}

/// Sites as `file+offset`: for tests and for programs without debug information.
#[derive(Debug, Default)]
pub struct ByModule;

impl Resolve for ByModule {
    fn site(&mut self, pc: u64, modules: &Modules) -> Site {
        let label = match modules.find(pc) {
            Some(m) => {
                let name = m.path.file_name().unwrap_or(Path::new("?").as_os_str());
                format!("{}+{:#x}", name.to_string_lossy(), pc - m.base)
            }
            None => format!("{pc:#x}"),
        };
        Site::Label(label.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_where_each_process_has_it() {
        let text = b"555555554000-555555555000 r--p 00000000 fe:00 12 /usr/bin/prog\n\
            555555555000-555555556000 r-xp 00001000 fe:00 12 /usr/bin/prog\n\
            7ffff7fc1000-7ffff7fc3000 r-xp 00000000 fe:00 13 /lib/libc.so.6\n\
            560000000000-560000001000 r--p 00000000 fe:00 12 /usr/bin/prog\n\
            560000001000-560000002000 r-xp 00001000 fe:00 12 /usr/bin/prog\n";
        let modules = Modules::parse(text);
        let base = |pc| modules.find(pc).map(|m| m.base);
        assert_eq!(base(0x5555_5555_5010), Some(0x5555_5555_4000));
        assert_eq!(base(0x5600_0000_1010), Some(0x5600_0000_0000));
    }

    #[test]
    fn the_map_is_understood() {
        let text = b"555555554000-555555555000 r--p 00000000 fe:00 12 /usr/bin/prog\n\
            555555555000-555555556000 r-xp 00001000 fe:00 12                         /usr/bin/prog\n\
            7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0                          [vdso]\n";
        let modules = Modules::parse(text);
        let found = modules.find(0x5555_5555_5010).expect("code");
        assert_eq!((found.base, found.offset), (0x5555_5555_4000, 0x1000));
        assert_eq!(modules.find(0x5555_5555_4010), None, "not code");
        assert_eq!(
            ByModule.site(0x5555_5555_5010, &modules).to_string(),
            "prog+0x1010",
            "relative to the base"
        );
    }
}
