//! The static tables in the files that a program has mapped.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::{Object, ObjectSection, ObjectSegment};
use selvedge_instrument::ir::Loc;
use selvedge_instrument::table::{Function, Op, PLACES, Place, SECTION, Table, Unreadable};
use selvedge_model::symbols::Frame;
use selvedge_model::{Site, SiteId, Symbols};

use super::statements::Layout;
use crate::modules::{
    Call, CodePlace, FunctionRegion, Location, LockPart, Modules, Registers, Resolve, Shape,
};

/// The tables of a program, and where its places are loaded.
#[derive(Debug, Default)]
pub struct Tables {
    files: Vec<File>,
    /// By file, where its places are in memory.
    loaded: Vec<(u64, u64, usize)>,
    root: PathBuf,
    sites: RefCell<HashMap<(usize, u32, Loc), SiteId>>,
    /// Whether statements are regions.
    with_statements: bool,
    /// Functions whose calls are tasks.
    tasks: HashSet<FunctionId>,
    layouts: RefCell<HashMap<FunctionId, Rc<Layout>>>,
}

/// The tables of one file.
#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Where its places are, from the beginning of its image.
    offset: u64,
    tables: Vec<Table>,
    places: Vec<(u32, Place)>,
}

/// A function of a file, by the numbers of file, table and function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FunctionId {
    file: u32,
    table: u32,
    function: u32,
}

impl Tables {
    /// Reads the tables of a program; nothing if it has none. Sites are shown relative to `root`.
    pub fn read(program: &Path, root: &Path) -> Result<Option<Tables>, Unreadable> {
        let mut tables = Tables { root: root.to_owned(), ..Tables::default() };
        // The kernel names mapped files without symbolic links.
        tables.add(&program.canonicalize().unwrap_or_else(|_| program.to_owned()))?;
        Ok((!tables.files.is_empty()).then_some(tables))
    }

    /// The same, with statements as regions.
    #[must_use]
    pub fn with_statements(self) -> Tables {
        Tables { with_statements: true, ..self }
    }

    /// The same, with each call of a function of such a name as a task.
    #[must_use]
    pub fn with_tasks(mut self, is_task: impl Fn(&str) -> bool) -> Tables {
        let chosen = self.all().filter(|(_, f)| is_task(&f.name)).map(|(id, _)| id).collect();
        self.tasks = chosen;
        self
    }

    /// Whether calls of a function are tasks.
    pub(super) fn is_task(&self, id: FunctionId) -> bool {
        self.tasks.contains(&id)
    }

    /// Where tasks that are calls begin.
    pub fn task_begins(&self) -> Vec<(CodePlace, Site)> {
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for (i, (table, place)) in file.places.iter().enumerate() {
                let (file_number, function) = (number as u32, place.function);
                let id = FunctionId { file: file_number, table: *table, function };
                if place.block == 0 && place.op.is_none() && self.is_task(id) {
                    let code =
                        CodePlace { module: file.path.clone(), offset: file.offset + i as u64 };
                    found.push((code, self.source(id, self.function(id).loc)));
                }
            }
        }
        found
    }

    /// All functions.
    fn all(&self) -> impl Iterator<Item = (FunctionId, &Function)> {
        self.files.iter().enumerate().flat_map(|(f, file)| {
            file.tables.iter().enumerate().flat_map(move |(t, table)| {
                table.functions.iter().enumerate().map(move |(i, function)| {
                    let [file, table, number] = [f, t, i].map(|n| n as u32);
                    (FunctionId { file, table, function: number }, function)
                })
            })
        })
    }

    /// The names of all functions.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.all().map(|(_, function)| &function.name)
    }

    fn add(&mut self, path: &Path) -> Result<(), Unreadable> {
        let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
        let Ok(elf) = object::File::parse(&*bytes) else { return Ok(()) };
        let section = |name| elf.section_by_name(name);
        let (Some(tables), Some(places)) = (section(SECTION), section(PLACES)) else {
            return Ok(());
        };
        let lowest = elf.segments().map(|s| s.address()).min().unwrap_or(0);
        let tables = Table::decode_all(tables.data().unwrap_or_default())?;
        let all = tables.iter().enumerate();
        let all: Vec<(u32, Place)> =
            all.flat_map(|(i, t)| t.all_places().map(move |p| (i as u32, p))).collect();
        if all.len() as u64 != places.size() {
            return Err(Unreadable::Damaged);
        }
        let offset = places.address() - lowest;
        self.files.push(File { path: path.to_owned(), offset, tables, places: all });
        Ok(())
    }

    /// The program has mapped these files.
    pub fn load(&mut self, modules: &Modules) {
        self.loaded.clear();
        for (i, file) in self.files.iter().enumerate() {
            if let Some(base) = modules.base_of(&file.path) {
                let start = base + file.offset;
                self.loaded.push((start, start + file.places.len() as u64, i));
            }
        }
        self.sites.borrow_mut().clear();
    }

    /// Where the places of the mapped files are: from, and up to.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.loaded.iter().map(|&(start, end, _)| (start, end))
    }

    /// Whether an address is that of a place.
    pub fn is_place(&self, addr: u64) -> bool {
        self.loaded.iter().any(|(start, end, _)| (*start..*end).contains(&addr))
    }

    /// The place at an address.
    pub fn place(&self, addr: u64) -> Option<(FunctionId, Place)> {
        let &(start, _, file) =
            self.loaded.iter().find(|(start, end, _)| (*start..*end).contains(&addr))?;
        let (table, place) = self.files[file].places[(addr - start) as usize];
        Some((FunctionId { file: file as u32, table, function: place.function }, place))
    }

    /// A function.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.files[id.file as usize].tables[id.table as usize].functions[id.function as usize]
    }

    /// The site of a place, for those who know only its address.
    pub fn site_at(&self, addr: u64) -> Option<Site> {
        let (id, place) = self.place(addr)?;
        let function = self.function(id);
        let ops = &function.blocks[place.block as usize];
        let loc = match place.op {
            Some(op) => ops[op as usize].0,
            None => ops.first().map_or(function.loc, |o| o.0),
        };
        Some(self.source(id, loc))
    }

    /// The site of a line of a function.
    pub fn site(&self, id: FunctionId, loc: Loc, symbols: &mut Symbols) -> SiteId {
        let key = ((id.file as usize) << 32 | id.table as usize, id.function, loc);
        if let Some(&known) = self.sites.borrow().get(&key) {
            return known;
        }
        let site = SiteId(symbols.sites.intern(self.source(id, loc)));
        self.sites.borrow_mut().insert(key, site);
        site
    }

    /// The statements of a function, if they are regions.
    pub(super) fn layout(&self, id: FunctionId) -> Option<Rc<Layout>> {
        if !self.with_statements {
            return None;
        }
        let made = || {
            let function = self.function(id);
            let file = self.file(id, function.loc);
            Rc::new(Layout::new(&function.statements, file, &function.name))
        };
        Some(Rc::clone(self.layouts.borrow_mut().entry(id).or_insert_with(made)))
    }

    /// The functions of a name, each with its file.
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Path, &'a Function)> + 'a {
        let named = self.all().filter(move |(_, known)| known.name == name);
        named.map(|(id, known)| (self.file(id, known.loc), known))
    }

    /// Whether the program has a function of this name in a file.
    pub fn has_function(&self, file: &str, name: &str) -> bool {
        self.named(name).any(|(path, _)| path == Path::new(file))
    }

    /// Whether lines are those of consecutive statements of a function.
    pub fn has_run(&self, file: &str, name: &str, (first, last): (u32, u32)) -> bool {
        let here = self.named(name).filter(|(path, _)| *path == Path::new(file));
        here.into_iter()
            .any(|(path, f)| Layout::new(&f.statements, path, name).has_run(first, last))
    }

    /// The file of a line, as it is shown.
    fn file(&self, id: FunctionId, loc: Loc) -> &Path {
        let table = &self.files[id.file as usize].tables[id.table as usize];
        let file = Path::new(table.files.get(loc.file as usize).map_or("?", |f| f));
        file.strip_prefix(&self.root).unwrap_or(file)
    }

    fn source(&self, id: FunctionId, loc: Loc) -> Site {
        let function = self.function(id);
        let loc = if loc.line == 0 { function.loc } else { loc };
        let shown = self.file(id, loc);
        let frame = Frame {
            function: function.name.as_str().into(),
            file: shown.display().to_string().into(),
            line: loc.line,
            column: loc.column,
        };
        Site::Source(frame, Vec::new())
    }

    /// The accesses at some sites.
    pub fn accesses_at(&self, sites: &[Site]) -> Vec<(CodePlace, Site)> {
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for (i, (table, place)) in file.places.iter().enumerate() {
                let Some(op) = place.op else { continue };
                let id =
                    FunctionId { file: number as u32, table: *table, function: place.function };
                let (loc, op) = &self.function(id).blocks[place.block as usize][op as usize];
                if matches!(op, Op::Call { .. }) {
                    continue;
                }
                let site = self.source(id, *loc);
                if sites.contains(&site) {
                    let offset = file.offset + i as u64;
                    let code = CodePlace { module: file.path.clone(), offset };
                    found.push((code, site));
                }
            }
        }
        found
    }

    /// How many functions there are.
    pub fn functions(&self) -> usize {
        self.files.iter().flat_map(|f| &f.tables).map(|t| t.functions.len()).sum()
    }
}

/// Knows the places of code that was compiled for data flow, and leaves everything else to another.
pub struct Placed<'a> {
    #[allow(missing_docs)]
    pub tables: Option<&'a Tables>,
    #[allow(missing_docs)]
    pub inner: &'a mut dyn Resolve,
}

impl Placed<'_> {
    fn placed(&self, pc: u64) -> Option<Site> {
        self.tables.and_then(|t| t.site_at(pc))
    }
}

impl Resolve for Placed<'_> {
    fn site(&mut self, pc: u64, modules: &Modules) -> Site {
        self.placed(pc).unwrap_or_else(|| self.inner.site(pc, modules))
    }
    fn site_within(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Site {
        self.placed(pc).unwrap_or_else(|| self.inner.site_within(pc, callers, modules))
    }
    fn stack(&mut self, returns: &[u64], modules: &Modules) -> Vec<Site> {
        self.inner.stack(returns, modules)
    }
    fn unwind(&mut self, registers: &Registers, stack: &[u64], modules: &Modules) -> Vec<u64> {
        self.inner.unwind(registers, stack, modules)
    }
    fn call_before(&mut self, pc: u64, modules: &Modules) -> Call {
        self.inner.call_before(pc, modules)
    }
    fn function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        self.inner.function(pc, modules)
    }
    fn distinct_function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        self.inner.distinct_function(pc, modules)
    }
    fn regions(&mut self, modules: &Modules) -> Vec<FunctionRegion> {
        self.inner.regions(modules)
    }
    fn globals(&mut self, modules: &Modules) -> Vec<Location> {
        self.inner.globals(modules)
    }
    fn lock_step(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Option<LockPart<Site>> {
        self.inner.lock_step(pc, callers, modules)
    }
    fn is_library(&self, site: &Site) -> bool {
        self.inner.is_library(site)
    }
    fn shape(&mut self, addr: u64, len: u64, modules: &Modules) -> Option<Shape> {
        self.inner.shape(addr, len, modules)
    }
    fn object(&mut self, addr: u64, modules: &Modules) -> Option<String> {
        self.inner.object(addr, modules)
    }
}
