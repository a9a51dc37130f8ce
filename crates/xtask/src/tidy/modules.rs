//! Modules of one crate that use each other.
//!
//! Every `crate::…` and `super::…` is a use of the module that it names. Two modules with the same
//! parent may not use each other, directly or from their own submodules: a reader could then understand
//! neither without the other. A module may use its parent and be used by it. A re-exported name belongs to
//! the module that re-exports it. Uses in tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::scan::Code;

/// A module by its names from the root of its crate.
type Module = Vec<String>;

/// Two modules that use each other.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cycle {
    /// The `src` folder of the crate.
    pub(crate) folder: PathBuf,
    pub(crate) first: String,
    pub(crate) second: String,
}

/// The modules that use each other, in all crates.
pub(crate) fn cycles(files: &[(PathBuf, String)]) -> Vec<Cycle> {
    let mut crates: BTreeMap<PathBuf, BTreeMap<Module, Code>> = BTreeMap::new();
    for (path, text) in files {
        if let Some((folder, module)) = module_of(path) {
            crates.entry(folder).or_default().insert(module, Code::new(text).without_tests());
        }
    }
    let mut cycles = Vec::new();
    for (folder, modules) in &crates {
        let uses: BTreeSet<(Module, Module)> =
            modules.iter().flat_map(|(module, code)| uses_of(module, code, modules)).collect();
        for (user, used) in &uses {
            if user < used && uses.contains(&(used.clone(), user.clone())) {
                let [first, second] = [user, used].map(|m| m.join("::"));
                cycles.push(Cycle { folder: folder.clone(), first, second });
            }
        }
    }
    cycles
}

/// The crate and the module of a file; none if it is a crate of its own or holds tests.
fn module_of(path: &Path) -> Option<(PathBuf, Module)> {
    let names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let src = names.iter().position(|name| name == "src")?;
    let mut module: Module = names[src + 1..].to_vec();
    let file = module.pop()?;
    let stem = file.strip_suffix(".rs")?;
    if module.first().is_some_and(|name| name == "bin")
        || stem == "tests"
        || module.iter().any(|name| name == "tests")
    {
        return None;
    }
    if !["lib", "main", "mod"].contains(&stem) {
        module.push(stem.to_owned());
    }
    Some((names[..=src].iter().collect(), module))
}

/// For everything that a module uses, the two siblings that this makes user and used.
fn uses_of(
    module: &Module,
    code: &Code,
    modules: &BTreeMap<Module, Code>,
) -> BTreeSet<(Module, Module)> {
    let mut paths = Vec::new();
    for start in code.words("crate") {
        tree(code, start + 5, Vec::new(), &mut paths);
    }
    for start in code.words("super") {
        if code.slice(0, start).trim_end().ends_with("super::") || module.is_empty() {
            continue;
        }
        tree(code, start + 5, module[..module.len() - 1].to_vec(), &mut paths);
    }
    paths.iter().filter_map(|path| siblings(module, path, modules)).collect()
}

/// The paths that a tree of names spells, which goes on at `at` after `prefix`.
fn tree(code: &Code, at: usize, prefix: Module, paths: &mut Vec<Module>) {
    let next = code.skip_space(at);
    if code.byte(next) != b':' || code.byte(next + 1) != b':' {
        paths.push(prefix);
        return;
    }
    let next = code.skip_space(next + 2);
    if code.byte(next) == b'{' {
        let mut item = next + 1;
        loop {
            let start = code.skip_space(item);
            let name = code.identifier(start);
            tree(code, start + name.len(), extended(&prefix, name), paths);
            match code.find_outside(start, b",") {
                Some(comma) => item = comma + 1,
                None => return,
            }
        }
    }
    let name = code.identifier(next);
    tree(code, next + name.len(), extended(&prefix, name), paths);
}

fn extended(prefix: &Module, name: &str) -> Module {
    let mut path = prefix.clone();
    match name {
        "" | "self" => {}
        "super" => drop(path.pop()),
        name => path.push(name.to_owned()),
    }
    path
}

/// The children of the innermost module that holds both, if user and used are in different ones.
fn siblings(
    user: &Module,
    path: &Module,
    modules: &BTreeMap<Module, Code>,
) -> Option<(Module, Module)> {
    let depth = (0..=path.len()).rev().find(|&n| modules.contains_key(&path[..n]))?;
    let used = &path[..depth];
    let common = user.iter().zip(used).take_while(|(a, b)| a == b).count();
    let differ = common < user.len() && common < used.len();
    differ.then(|| (user[..=common].to_vec(), used[..=common].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let files: Vec<_> = files.iter().map(|(p, t)| (PathBuf::from(p), t.to_string())).collect();
        cycles(&files).into_iter().map(|c| (c.first, c.second)).collect()
    }

    fn pair(first: &str, second: &str) -> (String, String) {
        (first.to_owned(), second.to_owned())
    }

    #[test]
    fn two_that_use_each_other_are_found() {
        let a = ("c/src/a.rs", "use crate::{b::{self, Thing}, lib_thing};");
        let b = ("c/src/b/mod.rs", "fn f() { super::a::g(); }");
        let root = ("c/src/lib.rs", "mod a; mod b;");
        assert_eq!(pairs(&[root, a, b]), [pair("a", "b")]);
        assert_eq!(pairs(&[root, a, ("c/src/b/mod.rs", "// super::a::g()\n")]), []);
        assert_eq!(pairs(&[root, a, ("d/src/b.rs", "use super::a;")]), []);
    }

    #[test]
    fn what_is_further_inside_counts_for_its_parent() {
        let a = ("c/src/a/x.rs", "use super::super::b::y::Thing;");
        let b = ("c/src/b/y.rs", "use crate::a::Other;");
        let modules = [("c/src/lib.rs", ""), ("c/src/a/mod.rs", ""), ("c/src/b/mod.rs", "")];
        assert_eq!(pairs(&[&modules[..], &[a, b]].concat()), [pair("a", "b")]);
        let within = [("c/src/a/y.rs", "use super::x;"), ("c/src/a/x.rs", "use crate::a::y::Z;")];
        assert_eq!(pairs(&[&modules[..], &within].concat()), [pair("a::x", "a::y")]);
    }

    #[test]
    fn parents_and_tests_do_not_count() {
        let root = ("c/src/lib.rs", "");
        let parent = ("c/src/a/mod.rs", "use self::x::X; use crate::a::x::Y;");
        assert_eq!(pairs(&[root, parent, ("c/src/a/x.rs", "use super::Thing;")]), []);
        let b = ("c/src/b.rs", "use super::a;");
        let a = ("c/src/a.rs", "#[cfg(test)]\nmod tests { use crate::b; }");
        assert_eq!(pairs(&[root, a, b]), []);
    }
}
