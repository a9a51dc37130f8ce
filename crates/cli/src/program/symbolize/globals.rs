//! The locations that can be reached from the global variables of a program: numbers and arrays of numbers, through
//! members and pointers.
//!
//! Source: Burnim, §4.5: "all paths of field dereferences, up to some fixed length, through the programs' memory graphs".
//! What a pointer points to is one value, since C does not say how many there are. Members of unions, things that
//! synchronize, strings of the compiler and the addresses in pointers themselves are no locations.

use selvedge_runtime::Location;

use super::types::{At, DEPTH, Types, synchronizes};

/// Elements of an array of structures that are followed.
const ELEMENTS: u64 = 16;
/// Locations of a file.
const MOST: usize = 4096;

/// Where a walk through the memory graph is.
#[derive(Clone)]
struct Walk {
    name: String,
    /// What is at the end of the name is a structure behind a pointer.
    behind_pointer: bool,
    /// Where it begins, then after each pointer the offset from where that points.
    path: Vec<u64>,
    /// Members and pointers that may still be followed.
    depth: usize,
}

impl Walk {
    fn member(&self, name: Option<&str>, offset: u64) -> Option<Walk> {
        let mut path = self.path.clone();
        *path.last_mut()? += offset;
        let dot = if self.behind_pointer { "->" } else { "." };
        Some(match name {
            Some(name) => Walk {
                name: format!("{}{dot}{name}", self.name),
                behind_pointer: false,
                path,
                depth: self.depth.checked_sub(1)?,
            },
            // What is inside belongs to the structure around it.
            None => Walk { path, ..self.clone() },
        })
    }

    fn element(&self, index: u64, size: u64) -> Option<Walk> {
        let mut path = self.path.clone();
        *path.last_mut()? += index * size;
        let name = format!("{}[{index}]", self.name);
        Some(Walk { name, path, behind_pointer: false, ..self.clone() })
    }

    fn pointed(&self, is_structure: bool) -> Option<Walk> {
        let depth = self.depth.checked_sub(1)?;
        let path = [&self.path[..], &[0]].concat();
        let name = if is_structure { self.name.clone() } else { format!("*{}", self.name) };
        Some(Walk { name, behind_pointer: is_structure, path, depth })
    }
}

impl Types {
    /// The locations that the variables of the file lead to, with at most `depth` members and pointers in a path.
    /// Variables of the same name are told apart by a number.
    pub(super) fn locations(&self, depth: usize) -> Vec<Location> {
        let mut found = Vec::new();
        let mut variables: Vec<(u64, String, At)> = self
            .variables()
            .filter_map(|(address, at)| Some((address, self.variable_name(at)?, self.type_of(at)?)))
            .filter(|(_, name, _)| !name.starts_with("__"))
            .collect();
        variables.sort_by_key(|(address, ..)| *address);
        for i in 0..variables.len() {
            let (address, name, of) = &variables[i];
            let namesakes = variables[..i].iter().filter(|(_, other, _)| other == name).count();
            let name = match namesakes {
                0 => name.clone(),
                n => format!("{name}#{}", n + 1),
            };
            let walk = Walk { name, behind_pointer: false, path: vec![*address], depth };
            self.follow(*of, &walk, &mut found);
        }
        found.truncate(MOST);
        found
    }

    fn follow(&self, of: At, walk: &Walk, found: &mut Vec<Location>) {
        let opaque = |at: At| self.name(at).is_some_and(|name| synchronizes(&name));
        let plain = self.plain(of);
        if found.len() >= MOST || opaque(of) || opaque(plain) {
            return;
        }
        let location = |kind: u32, elements: Option<u64>| Location {
            name: walk.name.clone(),
            kind,
            elements,
            path: walk.path.clone(),
        };
        if let Some(kind) = self.number(plain) {
            found.push(location(kind, None));
            return;
        }
        match self.tag(plain) {
            Some(gimli::DW_TAG_array_type) => {
                let count: u64 = self.counts(plain).iter().product();
                let Some(element) = self.type_of(plain).filter(|_| count > 0) else { return };
                match self.number(self.plain(element)) {
                    Some(kind) => found.push(location(kind, Some(count))),
                    None => {
                        let size = self.size(element, DEPTH).unwrap_or(0);
                        let elements = (0..count.min(ELEMENTS)).filter(|_| size > 0);
                        for inside in elements.filter_map(|index| walk.element(index, size)) {
                            self.follow(element, &inside, found);
                        }
                    }
                }
            }
            Some(gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type) => {
                for (name, offset, of) in self.members_at(plain) {
                    if let Some(inside) = walk.member(name.as_deref(), offset) {
                        self.follow(of, &inside, found);
                    }
                }
            }
            Some(gimli::DW_TAG_pointer_type) => {
                let Some(of) = self.type_of(plain) else { return };
                let tag = self.tag(self.plain(of));
                let is_structure =
                    matches!(tag, Some(gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type));
                if let Some(inside) = walk.pointed(is_structure) {
                    self.follow(of, &inside, found);
                }
            }
            _ => {}
        }
    }

    /// The number of an arithmetic type in `selvedge.h`.
    fn number(&self, at: At) -> Option<u32> {
        let size = self.size(at, DEPTH)?;
        let by_size = |numbers: [u32; 5]| {
            let index = [1, 2, 4, 8, 16].iter().position(|&s| s == size)?;
            Some(numbers[index]).filter(|&n| n != 0)
        };
        if self.tag(at)? == gimli::DW_TAG_enumeration_type {
            return by_size([7, 8, 9, 10, 11]);
        }
        match self.encoding(at)? {
            gimli::DW_ATE_boolean => by_size([1, 0, 0, 0, 0]),
            gimli::DW_ATE_float => by_size([0, 0, 12, 13, 14]),
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => by_size([2, 3, 4, 5, 6]),
            gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF => {
                by_size([7, 8, 9, 10, 11])
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SOURCE: &str = "
        #include <stdbool.h>
        struct mutex { long words[5]; };
        struct node { int key; double weight; struct node *next; struct mutex lock; union { int a; long b; } either; };
        struct pair { struct node left, *right; } pairs[2];
        unsigned char bytes[2][3];
        bool flag;
        static long double wide;
        float *numbers;
        const char *text = \"text\";
        void (*function)(void);
        enum colour { RED, GREEN } colour;
        _Thread_local int own;
        int main(void) { static int flag = 3; own = flag; return (int)wide; }";

    #[test]
    fn locations_are_numbers_behind_members_and_pointers() {
        let file = std::env::temp_dir().join(format!("selvedge-globals-{}", std::process::id()));
        let source = file.with_extension("c");
        std::fs::write(&source, SOURCE).unwrap();
        for compiler in ["gcc", "clang-19"] {
            let mut command = Command::new(compiler);
            let built = command.arg("-g").arg(&source).arg("-o").arg(&file).status().unwrap();
            assert!(built.success(), "{compiler}");
            let types = Types::open(&file).unwrap();
            let names = |depth: usize| {
                let locations = types.locations(depth).into_iter();
                let mut names: Vec<String> = locations
                    .map(|l| format!("{} {} {:?} {}", l.name, l.kind, l.elements, l.path.len()))
                    .collect();
                names.sort();
                names
            };
            let shallow = [
                "*numbers 12 None 2",
                "*text 2 None 2",
                "bytes 7 Some(6) 1",
                "colour 9 None 1",
                "flag 1 None 1",
                "flag#2 4 None 1",
                "wide 14 None 1",
            ];
            let mut one = names(1);
            // Which of the two comes first in memory is the compiler's business.
            for name in &mut one {
                *name = match name.as_str() {
                    "flag 4 None 1" => "flag#2 4 None 1".to_owned(),
                    "flag#2 1 None 1" => "flag 1 None 1".to_owned(),
                    _ => name.clone(),
                };
            }
            one.sort();
            assert_eq!(one, shallow, "{compiler}");
            let all = names(5);
            for expected in [
                "pairs[0].left.key 4 None 1",
                "pairs[1].left.weight 13 None 1",
                "pairs[1].right->key 4 None 2",
                "pairs[0].left.next->weight 13 None 2",
                "pairs[0].right->next->key 4 None 3",
            ] {
                assert!(
                    all.iter().any(|name| name == expected),
                    "{compiler}: {expected}: {all:#?}"
                );
            }
            assert!(all.iter().all(|n| !n.contains("lock") && !n.contains("either")), "{all:#?}");
        }
        std::fs::remove_file(&source).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
}
