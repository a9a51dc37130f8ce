//! From addresses in a program to places in its source and names of its variables.
//!
//! Debug information of a file is read once, when one of its addresses is first resolved. Without debug
//! information the symbol table gives the function; without that, the offset in the file is shown. So a report
//! may say less, but nothing wrong.

mod binary;
mod globals;
mod likely_calls;
mod locks;
mod types;
mod unwind;

use std::cell::{RefCell, RefMut};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use selvedge_model::{Frame, Range, Site};
use selvedge_runtime::{
    CallBefore, FunctionRegion, Location, LockPart, Module, Modules, Registers, Resolve, Shape,
};

use crate::program::claims::Claims;

use binary::{Binary, Call};
pub(crate) use types::{Declared, Member};

/// The structures of a program.
#[derive(Default)]
pub(crate) struct Structures {
    /// Their members.
    pub(crate) members: Vec<Member>,
    /// Which of them a variable of a function is or points to, by the names of both.
    pub(crate) locals: HashMap<(String, String), String>,
}

/// The declarations of a program.
pub(crate) struct Declarations(Binary);

impl Declarations {
    pub(crate) fn open(program: &Path) -> Declarations {
        Declarations(Binary::open(program))
    }

    /// Where a variable or a member is declared: `stats.hits`, `account.balance`.
    pub(crate) fn of(&self, name: &str) -> Option<Declared> {
        self.0.declaration(name)
    }
}

/// Resolves addresses of one program.
pub(crate) struct Symbolizer {
    /// Paths below this directory are shown relative to it, so that a finding is the same finding on
    /// another machine.
    root: PathBuf,
    binaries: HashMap<PathBuf, Binary>,
    sites: HashMap<u64, Site>,
    /// Which functions are regions.
    claims: Claims,
    /// Objects are named down to the data that lies there.
    names_data: bool,
    /// How many members and pointers are followed to locations that are states of blocks, if there are any.
    depth: Option<usize>,
}

impl Symbolizer {
    /// Shows paths relative to `root`.
    pub(crate) fn new(root: &Path) -> Symbolizer {
        Symbolizer {
            root: root.to_owned(),
            binaries: HashMap::new(),
            sites: HashMap::new(),
            claims: Claims::default(),
            names_data: false,
            depth: None,
        }
    }

    /// The place of the call that returns to `pc`.
    pub(crate) fn call(&mut self, pc: u64, modules: &Modules) -> Site {
        if let Some(known) = self.sites.get(&pc) {
            return known.clone();
        }
        let site = self.look_up(pc, modules);
        // A module that is not known yet may be known later.
        if modules.find(pc).is_some() {
            self.sites.insert(pc, site.clone());
        }
        site
    }

    fn call_before(&mut self, pc: u64, modules: &Modules) -> CallBefore {
        let Some(module) = modules.find(pc).cloned() else { return CallBefore::None };
        let binary = self.binary(&module);
        match binary.call_before(pc.wrapping_sub(binary.bias(&module))) {
            Call::None => CallBefore::None,
            Call::Unknown => CallBefore::Unknown,
            Call::Of(name) => CallBefore::Of(name.to_owned()),
        }
    }

    /// As [`Symbolizer::call`]; if that is inside a standard library, who called it from outside.
    fn call_within(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Site {
        let is_users = |site: &Site| site.frame().is_some_and(|f| !is_library(f));
        let innermost = self.call(pc, modules);
        if is_users(&innermost) {
            return innermost;
        }
        let callers = callers.iter().filter(|&&pc| pc != 0);
        callers.map(|&pc| self.call(pc, modules)).find(is_users).unwrap_or(innermost)
    }

    /// The calls that return to the addresses, except those without a line, and the outermost ones of
    /// a standard library, which only lead to the thread's function.
    pub(crate) fn stack(&mut self, returns: &[u64], modules: &Modules) -> Vec<Site> {
        let sites = returns.iter().map(|&pc| self.call(pc, modules));
        let mut stack: Vec<Site> = sites.filter(|site| site.frame().is_some()).collect();
        let outer = |s: &mut Site| s.frame().is_some_and(is_library);
        while stack.pop_if(outer).is_some() {}
        stack
    }

    /// The variable with static storage at `addr`, or the element or member of one.
    pub(crate) fn variable(&mut self, addr: u64, modules: &Modules) -> Option<String> {
        let module = modules.iter().filter(|m| m.base <= addr).max_by_key(|m| m.base)?.clone();
        let binary = self.binary(&module);
        binary.variable(addr.checked_sub(binary.bias(&module))?)
    }

    /// The data with static storage at `addr`: a variable, or an element or member of one.
    pub(crate) fn data(&mut self, addr: u64, modules: &Modules) -> Option<String> {
        let module = modules.iter().filter(|m| m.base <= addr).max_by_key(|m| m.base)?.clone();
        let binary = self.binary(&module);
        binary.data(addr.checked_sub(binary.bias(&module))?)
    }

    /// The type of the data with static storage at `addr`, if it is one value of `len` bytes.
    fn shape(&mut self, addr: u64, len: u64, modules: &Modules) -> Option<Shape> {
        let module = modules.iter().filter(|m| m.base <= addr).max_by_key(|m| m.base)?.clone();
        let binary = self.binary(&module);
        binary.shape(addr.checked_sub(binary.bias(&module))?, len)
    }

    /// The memory of the variable with static storage at `addr`.
    pub(crate) fn extent(&mut self, addr: u64, modules: &Modules) -> Option<Range> {
        let module = modules.iter().filter(|m| m.base <= addr).max_by_key(|m| m.base)?.clone();
        let binary = self.binary(&module);
        let bias = binary.bias(&module);
        let Range { start, len } = binary.extent(addr.checked_sub(bias)?)?;
        Some(Range { start: start.wrapping_add(bias), len })
    }

    /// The members of all structures of the program and its own libraries; `None` without debug information.
    pub(crate) fn members(&mut self, modules: &Modules) -> Option<Structures> {
        let mut files = HashSet::new();
        let mut all: Option<Structures> = None;
        for module in modules.iter().filter(|m| !is_systems(m) && files.insert(m.path.clone())) {
            let binary = self.binary(module);
            if let Some(members) = binary.members() {
                let all = all.get_or_insert_default();
                all.members.extend_from_slice(members);
                all.locals.extend(binary.locals());
            }
        }
        all
    }

    /// The functions that are regions.
    fn regions(&mut self, modules: &Modules) -> Vec<FunctionRegion> {
        if let Some(kinds) = self.claims.of_all() {
            return vec![FunctionRegion { code: 0..u64::MAX, kinds }];
        }
        let claims = self.claims.clone();
        let mut regions = Vec::new();
        let mut files = HashSet::new();
        for module in modules.iter().filter(|m| files.insert(&m.path)) {
            let binary = self.binary(module);
            let bias = binary.bias(module);
            for (name, code) in binary.functions() {
                let kinds = claims.of(&name);
                if !kinds.is_empty() {
                    let code = code.start.wrapping_add(bias)..code.end.wrapping_add(bias);
                    regions.push(FunctionRegion { code, kinds });
                }
            }
        }
        regions
    }

    /// The locations that can be reached from the globals of the program and its own libraries.
    fn globals(&mut self, modules: &Modules) -> Vec<Location> {
        let Some(depth) = self.depth else { return Vec::new() };
        let mut files = HashSet::new();
        let mut all = Vec::new();
        for module in modules.iter().filter(|m| !is_systems(m) && files.insert(m.path.clone())) {
            let binary = self.binary(module);
            let bias = binary.bias(module);
            for mut location in binary.locations(depth) {
                if let Some(address) = location.path.first_mut() {
                    *address = address.wrapping_add(bias);
                }
                all.push(location);
            }
        }
        all
    }

    /// The name of the function that `pc` lies in, without parameters.
    fn function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        let module = modules.find(pc)?.clone();
        let binary = self.binary(&module);
        let (name, _) = binary.function(pc.wrapping_sub(binary.bias(&module)))?;
        Some(binary::plain_name(&name).to_owned())
    }

    /// The same, and where it is if other functions of the program or its own libraries have the same name.
    fn distinct_function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        let name = self.function(pc, modules)?;
        let mut files = HashSet::new();
        let mut own = modules.iter().filter(|m| !is_systems(m) && files.insert(m.path.clone()));
        let mut like_this = 0;
        own.by_ref().for_each(|module| {
            like_this += self.binary(module).functions().filter(|(n, _)| *n == name).count();
        });
        if like_this < 2 {
            return Some(name);
        }
        // As if it were the return address of a call at the function's beginning.
        Some(format!("{name} ({})", self.look_up(pc.wrapping_add(1), modules)))
    }

    fn binary(&mut self, module: &Module) -> &mut Binary {
        self.binaries.entry(module.path.clone()).or_insert_with(|| Binary::open(&module.path))
    }

    fn look_up(&mut self, pc: u64, modules: &Modules) -> Site {
        let Some(module) = modules.find(pc).cloned() else {
            return Site::Label("unknown code".into());
        };
        let root = self.root.clone();
        let binary = self.binary(&module);
        // The return address belongs to the next line, or even to the next function.
        let address = pc.wrapping_sub(binary.bias(&module)).wrapping_sub(1);
        let frames = outside_libraries(binary.frames(address));
        let mut frames = frames.into_iter().map(|frame| shortened(frame, &root));
        match frames.next() {
            Some(innermost) => Site::Source(innermost, frames.collect()),
            None => Site::Label(label(&module, binary, address).into()),
        }
    }
}

/// A symbolizer for those who resolve events as they come and those who put findings into words.
#[derive(Clone)]
pub(crate) struct SharedSymbolizer(Rc<RefCell<Symbolizer>>);

impl SharedSymbolizer {
    /// Shows paths relative to `root`.
    pub(crate) fn new(root: &Path) -> SharedSymbolizer {
        SharedSymbolizer(Rc::new(RefCell::new(Symbolizer::new(root))))
    }

    /// Takes these functions for regions.
    pub(crate) fn claiming(self, claims: Claims) -> SharedSymbolizer {
        self.borrow_mut().claims = claims;
        self
    }

    /// Finds locations behind up to `depth` members and pointers from a global.
    pub(crate) fn reaching(self, depth: Option<usize>) -> SharedSymbolizer {
        self.borrow_mut().depth = depth;
        self
    }

    /// Names objects down to the data that lies there.
    pub(crate) fn naming_data(self) -> SharedSymbolizer {
        self.borrow_mut().names_data = true;
        self
    }

    /// The symbolizer itself.
    pub(crate) fn borrow_mut(&self) -> RefMut<'_, Symbolizer> {
        self.0.borrow_mut()
    }
}

impl Resolve for SharedSymbolizer {
    fn site(&mut self, pc: u64, modules: &Modules) -> Site {
        self.borrow_mut().call(pc, modules)
    }

    fn site_within(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Site {
        self.borrow_mut().call_within(pc, callers, modules)
    }

    fn stack(&mut self, returns: &[u64], modules: &Modules) -> Vec<Site> {
        self.borrow_mut().stack(returns, modules)
    }

    fn unwind(&mut self, registers: &Registers, stack: &[u64], modules: &Modules) -> Vec<u64> {
        let bias = |module: &Module| {
            let mut symbolizer = self.borrow_mut();
            let binary = symbolizer.binary(module);
            binary.bias(module)
        };
        unwind::callers(registers, stack, modules, bias)
    }

    fn call_before(&mut self, pc: u64, modules: &Modules) -> CallBefore {
        self.borrow_mut().call_before(pc, modules)
    }

    fn function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        self.borrow_mut().function(pc, modules)
    }

    fn distinct_function(&mut self, pc: u64, modules: &Modules) -> Option<String> {
        self.borrow_mut().distinct_function(pc, modules)
    }

    fn regions(&mut self, modules: &Modules) -> Vec<FunctionRegion> {
        self.borrow_mut().regions(modules)
    }

    fn globals(&mut self, modules: &Modules) -> Vec<Location> {
        self.borrow_mut().globals(modules)
    }

    fn lock_step(&mut self, pc: u64, callers: &[u64], modules: &Modules) -> Option<LockPart<Site>> {
        self.borrow_mut().lock_step(pc, callers, modules)
    }

    fn is_library(&self, site: &Site) -> bool {
        site.frame().is_some_and(is_library)
    }

    fn shape(&mut self, addr: u64, len: u64, modules: &Modules) -> Option<Shape> {
        self.borrow_mut().shape(addr, len, modules)
    }

    fn object(&mut self, addr: u64, modules: &Modules) -> Option<String> {
        let mut symbolizer = self.borrow_mut();
        match symbolizer.names_data {
            true => symbolizer.data(addr, modules),
            false => symbolizer.variable(addr, modules),
        }
    }
}

/// Whether a file belongs to the system.
fn is_systems(module: &Module) -> bool {
    module.path.starts_with("/usr/lib") || module.path.starts_with("/lib")
}

/// What is known of an address without debug information: `libz.so.1(deflate+0x1f)`.
fn label(module: &Module, binary: &Binary, address: u64) -> String {
    let file = module.path.file_name().unwrap_or_default().to_string_lossy();
    match binary.function(address) {
        Some((name, offset)) => format!("{file}({name}+{offset:#x})"),
        None => format!("{file}+{address:#x}"),
    }
}

/// The frames from the first one on that is the user's: what a container or a lock does inside itself,
/// inlined into the user's function, is of no help. Where all are a library's, they stay.
fn outside_libraries(frames: Vec<Frame>) -> Vec<Frame> {
    match frames.iter().position(|f| !is_library(f)) {
        Some(first) => frames.into_iter().skip(first).collect(),
        None => frames,
    }
}

/// Whether code belongs to the standard library of C++ or Rust, to our own runtime, which stands
/// between the C library and `main`, or to the functions of the crate `selvedge` that mark regions.
pub(crate) fn is_library(frame: &Frame) -> bool {
    let file = &*frame.file;
    let cxx = file.starts_with("/usr/") && file.contains("/c++/");
    let rust = file.starts_with("/rustc/") || file.contains("/lib/rustlib/src/rust/library/");
    // A method of a trait is `<type as trait>::method`.
    let function = frame.function.trim_start_matches('<');
    let marks = ["selvedge::regions::", "selvedge::blocks::", "selvedge::native::"]
        .iter()
        .any(|module| function.starts_with(module));
    cxx || rust || marks || file.contains("crates/runtime/injected/src/")
}

fn shortened(frame: Frame, root: &Path) -> Frame {
    let normal = normalised(Path::new(&*frame.file));
    let short = normal.strip_prefix(root).unwrap_or(&normal);
    Frame { file: short.to_string_lossy().into(), ..frame }
}

/// The path without `.` and `..`, as far as that can be known without asking the file system.
fn normalised(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(normal.components().next_back(), Some(Component::Normal(_))) =>
            {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_a_librarys_by_where_it_comes_from() {
        let is = |file: &str, function: &str| {
            let (file, function) = (file.into(), function.into());
            is_library(&Frame { file, function, ..Frame::default() })
        };
        assert!(is("/usr/include/c++/14/mutex", "std::mutex::lock"));
        assert!(is("/home/u/.cargo/x/src/regions.rs", "selvedge::regions::atomic::h12"));
        let drop = "<selvedge::regions::native::Mark as core::ops::drop::Drop>::drop";
        assert!(is("/home/u/.cargo/x/src/regions.rs", drop));
        assert!(!is("/home/u/my-selvedge-tests/src/regions.rs", "tests::regions::split"));
    }

    #[test]
    fn paths_below_the_root_are_shown_relative_to_it() {
        let shown = |file: &str| {
            let frame = Frame { file: file.into(), ..Frame::default() };
            shortened(frame, Path::new("/home/u/project")).file.to_string()
        };
        assert_eq!(shown("/home/u/project/src/a.c"), "src/a.c");
        assert_eq!(shown("/home/u/project/build/../src/./a.c"), "src/a.c");
        assert_eq!(shown("/usr/include/stdio.h"), "/usr/include/stdio.h");
        assert_eq!(shown("../a.c"), "../a.c");
        assert_eq!(shown(""), "");
    }
}
