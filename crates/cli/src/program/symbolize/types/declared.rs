//! Where variables and members are declared in the source.

use std::collections::HashMap;
use std::path::PathBuf;

use gimli::AttributeValue;

use super::{At, DEPTH, Types};

/// A declaration of a variable or of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Declared {
    pub(crate) file: PathBuf,
    /// From 1.
    pub(crate) line: u64,
    /// The name of its type, if that has one; of a pointer the name of the type that it points to.
    pub(crate) of: Option<String>,
    pub(crate) pointer: bool,
    pub(crate) member: bool,
    /// Whether it is a variable, and not a member or a type.
    pub(crate) variable: bool,
    /// Whether it was compiled as C++.
    pub(crate) cxx: bool,
}

impl Types {
    /// Where a variable or a member is declared: `stats.hits`, `account.balance`. The line is that of the last
    /// name.
    pub(in super::super) fn declaration(&self, name: &str) -> Option<Declared> {
        let mut parts = name.split('.').map(|part| part.trim_end_matches("[]"));
        let head = parts.next()?;
        let mut at = self.declared(head)?;
        let mut member = false;
        for part in parts {
            let of = self.element(self.type_of(at).unwrap_or(at));
            let mut children = self.children(of).into_iter().map(|(_, child)| child);
            at = children.find(|&child| self.name(child).as_deref() == Some(part))?;
            member = true;
        }
        let entry = self.entry(at)?;
        let line = entry.attr(gimli::DW_AT_decl_line)?.udata_value().filter(|&line| line > 0)?;
        let file = entry.attr_value(gimli::DW_AT_decl_file)?;
        let AttributeValue::FileIndex(index) = file else { return None };
        let of = self.type_of(at);
        let is_pointer =
            |of: &At| self.entry(*of).map(|e| e.tag()) == Some(gimli::DW_TAG_pointer_type);
        let pointer = of.as_ref().is_some_and(is_pointer);
        let of = if pointer { of.and_then(|of| self.type_of(of)) } else { of };
        let of = of.and_then(|of| self.name(of));
        let variable = entry.tag() == gimli::DW_TAG_variable;
        let (file, cxx) = (self.file(at.0, index)?, self.is_cxx(at.0));
        Some(Declared { file, line, of, pointer, member, variable, cxx })
    }

    /// Whether a unit is written in C++.
    fn is_cxx(&self, unit: usize) -> bool {
        const CXX: [gimli::DwLang; 5] = [
            gimli::DW_LANG_C_plus_plus,
            gimli::DW_LANG_C_plus_plus_03,
            gimli::DW_LANG_C_plus_plus_11,
            gimli::DW_LANG_C_plus_plus_14,
            gimli::DW_LANG_C_plus_plus_17,
        ];
        let mut entries = self.units[unit].entries();
        let Ok(Some(root)) = entries.next_dfs() else { return false };
        let language = root.attr_value(gimli::DW_AT_language);
        matches!(language, Some(AttributeValue::Language(l)) if CXX.contains(&l))
    }

    /// The variable with static storage, or else the structure, of a name.
    fn declared(&self, name: &str) -> Option<At> {
        let last = name.rsplit("::").next()?;
        self.declared.get_or_init(|| self.all_declared()).get(last).copied()
    }

    fn all_declared(&self) -> HashMap<String, At> {
        let mut found = HashMap::new();
        let mut variables: Vec<At> = self.variables.values().copied().collect();
        variables.sort_unstable_by_key(|(unit, offset)| (*unit, offset.0));
        for at in variables {
            let Some(entry) = self.entry(at) else { continue };
            let declared = entry.attr_value(gimli::DW_AT_specification);
            let at = declared.and_then(|of| self.referred(at.0, &of)).unwrap_or(at);
            if let Some(name) = self.name(at) {
                found.entry(name).or_insert(at);
            }
        }
        for unit in 0..self.units.len() {
            let mut entries = self.units[unit].entries();
            while let Ok(Some(entry)) = entries.next_dfs() {
                let at = (unit, entry.offset());
                let is_type = matches!(
                    entry.tag(),
                    gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_typedef
                );
                let name = if is_type { self.name(at) } else { None };
                let Some(name) = name.filter(|n| !found.contains_key(n)) else { continue };
                if self.size(at, DEPTH).is_some() {
                    found.insert(name, at);
                }
            }
        }
        found
    }

    /// The structure behind type definitions and arrays.
    fn element(&self, at: At) -> At {
        let mut at = self.plain(at);
        for _ in 0..DEPTH {
            match (self.entry(at).map(|e| e.tag()), self.type_of(at)) {
                (Some(gimli::DW_TAG_array_type), Some(of)) => at = self.plain(of),
                _ => return at,
            }
        }
        at
    }

    /// The path of a source file.
    fn file(&self, unit: usize, index: u64) -> Option<PathBuf> {
        let of = &self.units[unit];
        let program = of.line_program.as_ref()?;
        let file = program.header().file(index)?;
        let text = |value| {
            let text = self.dwarf.attr_string(of, value).ok()?;
            Some(String::from_utf8_lossy(text.bytes()).into_owned())
        };
        let mut path = PathBuf::new();
        if let Some(directory) = &of.comp_dir {
            path.push(String::from_utf8_lossy(directory.bytes()).into_owned());
        }
        if let Some(directory) = file.directory(program.header()) {
            path.push(text(directory)?);
        }
        path.push(text(file.path_name())?);
        Some(path)
    }
}
