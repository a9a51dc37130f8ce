//! What functions demand of their callers, as far as clang has asked for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::functions::{self, Declared};
use super::{Complaint, Heard, Required};
use crate::commands::infer::discipline::annotate::{
    Alone, Annotations, Function, Item, Style, What,
};
use crate::commands::infer::discipline::text;
use crate::program::compiler::CompileCommand;
use crate::program::symbolize::Declarations;

/// The functions of the C library that acquire in shared mode.
const SHARED: [&str; 3] =
    ["pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_timedrdlock"];

/// A function, by its file and the byte of the brace of its body.
pub(super) type Key = (PathBuf, usize);

/// All demands.
pub(super) struct Contracts<'a> {
    declarations: &'a Declarations,
    /// The last names of locks that threads may hold together.
    reader_writer: BTreeSet<String>,
    /// The objects with static storage that have a lock, by its name.
    objects: BTreeMap<String, BTreeSet<String>>,
    functions: BTreeMap<Key, Contract>,
}

/// The demands of one function.
struct Contract {
    name: String,
    declared: Option<Declared>,
    /// How often it is called; 0 if callers could not be checked.
    calls: usize,
    /// By lock; whether shared mode suffices.
    requires: BTreeMap<String, bool>,
    acquires: BTreeMap<String, bool>,
    releases: BTreeSet<String>,
    alone: BTreeSet<String>,
    /// Locks that a run held at an access of the function.
    shown: BTreeSet<String>,
    /// Locks of demands that were taken back, as clang names them and as the demand did.
    refused: BTreeSet<String>,
    item: Option<usize>,
    alone_items: BTreeMap<String, usize>,
}

impl<'a> Contracts<'a> {
    pub(super) fn new(annotations: &Annotations, declarations: &'a Declarations) -> Contracts<'a> {
        let (mut reader_writer, mut objects) = (BTreeSet::new(), BTreeMap::new());
        for item in &annotations.items {
            let What::Variable(variable) = &item.what else { continue };
            let Some(guard) = &variable.guard else { continue };
            if guard.is_shared() {
                reader_writer.insert(guard.name().to_owned());
            }
            let object = variable.object().filter(|_| guard.inside);
            if let Some(object) = object.filter(|o| declarations.of(o).is_some_and(|d| d.variable))
            {
                let all: &mut BTreeSet<String> =
                    objects.entry(guard.name().to_owned()).or_default();
                all.insert(object.to_owned());
            }
        }
        Contracts { declarations, reader_writer, objects, functions: BTreeMap::new() }
    }

    /// Learns where a function is declared, once.
    pub(super) fn know(
        &mut self,
        annotations: &mut Annotations,
        name: &str,
        key: &Key,
        compiled: &CompileCommand,
        trees: impl FnOnce() -> Vec<u8>,
    ) {
        if self.functions.contains_key(key) {
            return;
        }
        let declared = functions::declared(&trees(), compiled, &key.0, key.1);
        for place in declared.iter().flat_map(|d| &d.others) {
            annotations.source(&place.file);
        }
        let calls = match &declared {
            Some(declared) if name != "main" => calls(annotations, name, declared),
            _ => 0,
        };
        let contract = Contract {
            name: name.to_owned(),
            declared,
            calls,
            requires: BTreeMap::new(),
            acquires: BTreeMap::new(),
            releases: BTreeSet::new(),
            alone: BTreeSet::new(),
            shown: BTreeSet::new(),
            refused: BTreeSet::new(),
            item: None,
            alone_items: BTreeMap::new(),
        };
        self.functions.insert(key.clone(), contract);
    }

    /// The function demands that its caller holds a lock. `shown` if a run held it there.
    pub(super) fn requires(
        &mut self,
        annotations: &mut Annotations,
        key: &Key,
        lock: &str,
        exclusively: bool,
        shown: bool,
    ) -> bool {
        let Some(expression) = self.for_callers(key, lock) else { return false };
        let last = expression.rsplit(['.', '>', ':']).next().unwrap_or_default();
        let shared = !exclusively && self.reader_writer.contains(last);
        let contract = self.functions.get_mut(key).expect("known");
        if shown {
            contract.shown.insert(expression.clone());
        }
        // Exclusive mode, once demanded, stays so.
        let shared = shared && contract.requires.get(&expression).copied().unwrap_or(true);
        let old = contract.requires.insert(expression, shared);
        old != Some(shared) && self.write(annotations, key)
    }

    /// The function returns with a lock held.
    pub(super) fn acquires(
        &mut self,
        annotations: &mut Annotations,
        key: &Key,
        lock: &str,
        shared: bool,
    ) -> bool {
        let Some(expression) = self.for_callers(key, lock) else { return false };
        let contract = self.functions.get_mut(key).expect("known");
        contract.acquires.insert(expression, shared) != Some(shared) && self.write(annotations, key)
    }

    /// The function releases a lock of its caller.
    pub(super) fn releases(
        &mut self,
        annotations: &mut Annotations,
        key: &Key,
        lock: &str,
    ) -> bool {
        let Some(expression) = self.for_callers(key, lock) else { return false };
        let contract = self.functions.get_mut(key).expect("known");
        contract.releases.insert(expression) && self.write(annotations, key)
    }

    /// The function runs alone, so that the lock counts as held.
    pub(super) fn alone(&mut self, annotations: &mut Annotations, key: &Key, lock: &str) -> bool {
        let Some(contract) = self.functions.get(key).filter(|c| !c.refused.contains(lock)) else {
            return false;
        };
        let expression = match member_of(lock) {
            Some((of, member)) if self.is_variable(of) => format!("&{of}.{member}"),
            Some((of, member)) => {
                let tagged = annotations.codes().any(|(_, code)| has_structure(code, of));
                let word = if tagged { "struct " } else { "" };
                format!("&(({word}{of} *)0)->{member}")
            }
            None => match self.visible(contract, lock) {
                Some(expression) => format!("&{expression}"),
                None => return false,
            },
        };
        let contract = self.functions.get_mut(key).expect("known");
        if !contract.alone.insert(lock.to_owned()) {
            return false;
        }
        let alone = Alone { file: key.0.clone(), at: key.1 + 1, lock: expression };
        contract.alone_items.insert(lock.to_owned(), annotations.items.len());
        annotations.items.push(Item { what: What::Alone(alone), dropped: false });
        true
    }

    /// The function acquires a lock itself that it was said to have: what was said is wrong.
    pub(super) fn refuse(&mut self, annotations: &mut Annotations, key: &Key, lock: &str) -> bool {
        let expression = self.for_callers(key, lock);
        let Some(contract) = self.functions.get_mut(key) else { return false };
        let required = expression.filter(|e| contract.requires.remove(e).is_some());
        // The lock of an object that the function asserts has another name than the one it acquires.
        let asserted: Vec<String> = contract.alone.iter().filter(|a| *a == lock).cloned().collect();
        for lock in &asserted {
            contract.alone.remove(lock);
            if let Some(item) = contract.alone_items.get(lock) {
                annotations.items[*item].dropped = true;
            }
        }
        if required.is_none() && asserted.is_empty() {
            return false;
        }
        contract.refused.insert(lock.to_owned());
        contract.refused.extend(required);
        self.write(annotations, key);
        true
    }

    /// Whether there are demands that no run has shown.
    pub(super) fn has_unshown(&self) -> bool {
        let unshown = |c: &Contract| c.requires.keys().any(|lock| !c.shown.contains(lock));
        self.functions.values().any(unshown)
    }

    /// Takes back what no run has shown and no caller keeps; false if there is nothing of it.
    pub(super) fn take_back(&mut self, annotations: &mut Annotations, heard: &[Heard]) -> bool {
        // The calls that lack a lock, and the callers that are left with one.
        type Calls<'h> = BTreeMap<String, BTreeSet<(&'h Path, usize)>>;
        let (mut without, mut left) = (Calls::new(), Calls::new());
        for said in heard {
            let place = (said.file.as_path(), said.offset);
            match Complaint::of(&said.text) {
                Complaint::Requires { of: Required::Call(function), .. } => {
                    without.entry(function).or_default().insert(place);
                }
                Complaint::StillHeld { .. } => {
                    let function = said.acquired.clone().unwrap_or_default();
                    left.entry(function).or_default().insert(place);
                }
                _ => {}
            }
        }
        let mut changed = Vec::new();
        for (key, contract) in &mut self.functions {
            let all = |calls: &Calls<'_>| {
                calls.get(&contract.name).is_some_and(|places| places.len() >= contract.calls)
            };
            let (no_caller, all_left) = (all(&without), all(&left));
            let (shown, refused) = (&contract.shown, &mut contract.refused);
            let before = refused.len();
            let mut keeps = |lock: &String, keep: bool| {
                if !keep {
                    refused.insert(lock.clone());
                }
                keep
            };
            contract.requires.retain(|lock, _| keeps(lock, !no_caller || shown.contains(lock)));
            contract.acquires.retain(|lock, _| keeps(lock, !all_left));
            if contract.refused.len() > before {
                changed.push(key.clone());
            }
        }
        for key in &changed {
            self.write(annotations, key);
        }
        !changed.is_empty()
    }

    /// Whether a demand for a lock was taken back.
    pub(super) fn refused(&self, key: &Key, lock: &str) -> bool {
        let expression = self.expression(key, lock);
        self.functions.get(key).is_some_and(|c| {
            c.refused.contains(lock) || expression.is_some_and(|e| c.refused.contains(&e))
        })
    }

    /// Whether a function acquires a lock in shared mode.
    pub(super) fn is_shared(&self, function: &str) -> bool {
        let shares = |c: &Contract| c.name == function && c.acquires.values().any(|&shared| shared);
        SHARED.contains(&function) || self.functions.values().any(shares)
    }

    /// A lock as callers see it, if a demand can be written and was not taken back.
    fn for_callers(&self, key: &Key, lock: &str) -> Option<String> {
        let expression = self.expression(key, lock)?;
        let contract = self.functions.get(key).filter(|c| c.calls > 0)?;
        let refused = contract.refused.contains(lock) || contract.refused.contains(&expression);
        (!refused).then_some(expression)
    }

    /// A lock as a declaration of the function can name it: clang names it as the body does, and a member of C
    /// by its structure.
    fn expression(&self, key: &Key, lock: &str) -> Option<String> {
        let contract = self.functions.get(key)?;
        let declared = contract.declared.as_ref()?;
        if let Some((of, member)) = member_of(lock) {
            let of_type = |(_, t): &&(String, String)| {
                let plain = t.strip_suffix('*').map(|t| t.trim().trim_start_matches("const "));
                plain.is_some_and(|t| t.trim_start_matches("struct ") == of)
            };
            if let Some((name, _)) = declared.parameters.iter().find(of_type) {
                return Some(format!("{name}->{member}"));
            }
            let only = self.objects.get(member).filter(|objects| objects.len() == 1);
            return only.and_then(|o| o.first()).map(|object| format!("{object}.{member}"));
        }
        self.visible(contract, lock)
    }

    fn is_variable(&self, name: &str) -> bool {
        self.declarations.of(name).is_some_and(|d| d.variable)
    }

    /// An expression as it is written at the head of a function. It begins with a parameter, a variable with static
    /// storage, or, in a member function, a member.
    fn visible(&self, contract: &Contract, lock: &str) -> Option<String> {
        let declared = contract.declared.as_ref()?;
        if let Some(expression) = declared.with_parameter(lock) {
            return Some(expression);
        }
        let end = lock.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let base = &lock[..end.unwrap_or(lock.len())];
        let known = !base.is_empty() && (declared.method || self.is_variable(base));
        known.then(|| lock.to_owned())
    }

    /// Writes the demands of a function; false if they can be written nowhere.
    fn write(&mut self, annotations: &mut Annotations, key: &Key) -> bool {
        let Some(contract) = self.functions.get_mut(key) else { return false };
        let Some(declared) = &contract.declared else { return false };
        let attributes = contract.attributes();
        let Some((declarator, places)) = places(annotations, declared) else { return false };
        let what = What::Function(Function { attributes, declarator, places });
        match contract.item {
            // Clang did not understand it: nothing more is tried.
            Some(item) if annotations.items[item].dropped => false,
            Some(item) => {
                annotations.items[item].what = what;
                true
            }
            None => {
                contract.item = Some(annotations.items.len());
                annotations.items.push(Item { what, dropped: false });
                true
            }
        }
    }
}

impl Contract {
    fn attributes(&self) -> String {
        let by_mode = |locks: &BTreeMap<String, bool>, shared: bool| -> Vec<String> {
            locks.iter().filter(|(_, s)| **s == shared).map(|(lock, _)| lock.clone()).collect()
        };
        let all = [
            ("REQUIRES", by_mode(&self.requires, false)),
            ("REQUIRES_SHARED", by_mode(&self.requires, true)),
            ("ACQUIRES", by_mode(&self.acquires, false)),
            ("ACQUIRES_SHARED", by_mode(&self.acquires, true)),
            ("RELEASES", self.releases.iter().cloned().collect()),
        ];
        let written = all.iter().filter(|(_, locks)| !locks.is_empty());
        let written: Vec<String> =
            written.map(|(word, locks)| format!("SELVEDGE_{word}({})", locks.join(", "))).collect();
        written.join(" ")
    }
}

/// `&account::lock`: clang names the lock of any object of C so.
fn member_of(lock: &str) -> Option<(&str, &str)> {
    lock.strip_prefix('&')?.rsplit_once("::")
}

/// Whether the code has `struct NAME`.
fn has_structure(code: &str, name: &str) -> bool {
    text::words(code, name).any(|at| code[..at].trim_end().ends_with("struct"))
}

/// How often a function is called; 0 if its address is taken, so that not all calls are known.
fn calls(annotations: &Annotations, name: &str, declared: &Declared) -> usize {
    let all = || declared.others.iter().chain([&declared.definition]);
    let is_declaration = |path: &Path, at: usize| all().any(|p| p.file == path && p.name == at);
    let mut calls = 0;
    for (path, code) in annotations.codes() {
        for at in text::words(code, name).filter(|&at| !is_declaration(path, at)) {
            if !code[at + name.len()..].trim_start().starts_with('(') {
                return 0;
            }
            calls += 1;
        }
    }
    calls
}

/// A file, where in it an attribute is written, and how.
type Spot = (PathBuf, usize, Style);

/// Where the demands of a function are written, and the text of its declaration.
fn places(annotations: &Annotations, declared: &Declared) -> Option<(String, Vec<Spot>)> {
    let definition = &declared.definition;
    let code = |path: &Path| annotations.codes().find(|(p, _)| *p == path).map(|(_, code)| code);
    let own = code(&definition.file)?;
    let head = own.get(definition.begin..declared.body)?;
    let declarator = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let others = declared.others.iter().filter(|p| code(&p.file).is_some());
    if declared.method {
        let place = match others.into_iter().next() {
            Some(place) => (place.file.clone(), place.end, Style::Inside),
            None => {
                let end = definition.begin + head.trim_end().len();
                (definition.file.clone(), end, Style::Inside)
            }
        };
        return Some((declarator, vec![place]));
    }
    let mut places: Vec<Spot> = Vec::new();
    for place in others {
        let first = places.iter().all(|(file, ..)| *file != place.file);
        let before = place.file != definition.file || place.begin < definition.begin;
        let end = code(&place.file).and_then(|code| text::behind_statement(code, place.name));
        if let Some(end) = end.filter(|_| first && before) {
            places.push((place.file.clone(), end, Style::Behind));
        }
    }
    if places.is_empty() {
        places.push((definition.file.clone(), definition.begin, Style::Before));
    }
    Some((declarator, places))
}
