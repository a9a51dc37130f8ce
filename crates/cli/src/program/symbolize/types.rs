//! What lies at an offset in a variable with static storage: `forks[1]`, `queue.head`.
//!
//! Debug information has the types of variables. From the type of the whole, elements and members are
//! followed down to the offset. What cannot be told apart by an offset alone (the members of a union, the
//! first member of a structure and the structure) is called by the whole.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianArcSlice, Operation, RunTimeEndian,
    Unit, UnitOffset,
};
use object::{Object, ObjectSection};

type Reader = EndianArcSlice<RunTimeEndian>;
type Entry = DebuggingInformationEntry<Reader>;

/// A type or variable: its unit, and where in it.
type At = (usize, UnitOffset);

/// Types within types that are followed.
const DEPTH: usize = 16;

/// The types of the variables of a file.
pub(super) struct Types {
    dwarf: Dwarf<Reader>,
    units: Vec<Unit<Reader>>,
    /// By the address of the variable.
    variables: HashMap<u64, At>,
}

impl Types {
    /// Of a file, if it has debug information.
    pub(super) fn open(path: &Path) -> Option<Types> {
        let bytes = std::fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let data = file.section_by_name(id.name()).and_then(|s| s.uncompressed_data().ok());
            Ok(Reader::new(Arc::from(&*data.unwrap_or_default()), RunTimeEndian::Little))
        };
        let dwarf = Dwarf::load(section).ok()?;
        let mut types = Types { dwarf, units: Vec::new(), variables: HashMap::new() };
        let mut headers = types.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            types.units.extend(types.dwarf.unit(header));
        }
        for unit in 0..types.units.len() {
            let found = types.variables_of(unit).unwrap_or_default();
            types.variables.extend(found);
        }
        Some(types)
    }

    fn variables_of(&self, unit: usize) -> gimli::Result<Vec<(u64, At)>> {
        let of = &self.units[unit];
        let mut found = Vec::new();
        let mut entries = of.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() == gimli::DW_TAG_variable
                && let Some(address) = self.address(unit, entry)
            {
                found.push((address, (unit, entry.offset())));
            }
        }
        Ok(found)
    }

    /// Where a variable with static storage is.
    fn address(&self, unit: usize, entry: &Entry) -> Option<u64> {
        let location = entry.attr(gimli::DW_AT_location)?.exprloc_value()?;
        let of = &self.units[unit];
        match location.operations(of.encoding()).next().ok()?? {
            Operation::Address { address } => Some(address),
            Operation::AddressIndex { index } => self.dwarf.address(of, index).ok(),
            _ => None,
        }
    }

    /// What lies at an offset in the variable that begins at an address, to be read after its name.
    pub(super) fn part(&self, variable: u64, offset: u64) -> Option<String> {
        let of = self.type_of(*self.variables.get(&variable)?)?;
        self.within(of, offset, DEPTH)
    }

    fn within(&self, at: At, offset: u64, depth: usize) -> Option<String> {
        let rest = || if offset == 0 { String::new() } else { format!("+{offset}") };
        if depth == 0 {
            return Some(rest());
        }
        match self.entry(at)?.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type => self.within(self.type_of(at)?, offset, depth - 1),
            gimli::DW_TAG_array_type => {
                let element = self.type_of(at)?;
                let size = self.size(element, DEPTH).filter(|&size| size > 0)?;
                let mut indices = String::new();
                let mut index = offset / size;
                let counts = self.counts(at);
                for (i, _) in counts.iter().enumerate() {
                    let below: u64 = counts[i + 1..].iter().product();
                    indices.push_str(&format!("[{}]", index / below.max(1)));
                    index %= below.max(1);
                }
                Some(indices + &self.within(element, offset % size, depth - 1)?)
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type if offset > 0 => {
                Some(self.member(at, offset, depth).unwrap_or_else(rest))
            }
            _ => Some(rest()),
        }
    }

    /// The member of a structure around an offset.
    fn member(&self, at: At, offset: u64, depth: usize) -> Option<String> {
        if self.entry(at)?.tag() == gimli::DW_TAG_union_type {
            return None;
        }
        for (tag, child) in self.children(at) {
            let is_part = tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_inheritance;
            let Some(entry) = self.entry(child).filter(|_| is_part) else { continue };
            let Some(from) = entry.attr(gimli::DW_AT_data_member_location) else { continue };
            let (from, of) = (from.udata_value()?, self.type_of(child)?);
            let size = self.size(of, DEPTH).unwrap_or(0);
            if !(from..from.saturating_add(size)).contains(&offset) {
                continue;
            }
            let name = match entry.attr_value(gimli::DW_AT_name) {
                Some(name) => self.dwarf.attr_string(&self.units[at.0], name).ok()?,
                // A base class, or a structure without a name, is called by what is inside.
                None => return self.member(of, offset - from, depth.checked_sub(1)?),
            };
            let name = String::from_utf8_lossy(name.bytes()).into_owned();
            return Some(format!(".{name}{}", self.within(of, offset - from, depth - 1)?));
        }
        None
    }

    /// How many elements an array has, outermost dimension first; 0 where that is not known.
    fn counts(&self, array: At) -> Vec<u64> {
        let dimensions = self.children(array).into_iter();
        let dimensions = dimensions.filter(|(tag, _)| *tag == gimli::DW_TAG_subrange_type);
        let count = |at: At| {
            let entry = self.entry(at)?;
            let number = |name| entry.attr(name).and_then(gimli::Attribute::udata_value);
            number(gimli::DW_AT_count)
                .or_else(|| Some(number(gimli::DW_AT_upper_bound)?.saturating_add(1)))
        };
        dimensions.map(|(_, at)| count(at).unwrap_or(0)).collect()
    }

    fn size(&self, at: At, depth: usize) -> Option<u64> {
        let entry = self.entry(at)?;
        if let Some(size) = entry.attr(gimli::DW_AT_byte_size) {
            return size.udata_value();
        }
        let of = self.type_of(at).filter(|_| depth > 0)?;
        let elements: u64 = match entry.tag() {
            gimli::DW_TAG_array_type => self.counts(at).iter().product(),
            _ => 1,
        };
        Some(self.size(of, depth - 1)?.saturating_mul(elements))
    }

    /// The type of a variable, member or type.
    fn type_of(&self, at: At) -> Option<At> {
        let entry = self.entry(at)?;
        if let Some(of) = entry.attr_value(gimli::DW_AT_type) {
            return self.referred(at.0, &of);
        }
        // A definition may leave its type to a declaration.
        let declared = entry.attr_value(gimli::DW_AT_specification)?;
        let (unit, offset) = self.referred(at.0, &declared)?;
        let of = self.entry((unit, offset))?.attr_value(gimli::DW_AT_type)?;
        self.referred(unit, &of)
    }

    fn referred(&self, unit: usize, value: &AttributeValue<Reader>) -> Option<At> {
        match *value {
            AttributeValue::UnitRef(offset) => Some((unit, offset)),
            AttributeValue::DebugInfoRef(offset) => {
                let inside = |i: usize| Some((i, offset.to_unit_offset(&self.units[i].header)?));
                (0..self.units.len()).find_map(inside)
            }
            _ => None,
        }
    }

    fn entry(&self, (unit, offset): At) -> Option<Entry> {
        self.units.get(unit)?.entry(offset).ok()
    }

    /// What is declared directly inside.
    fn children(&self, (unit, offset): At) -> Vec<(gimli::DwTag, At)> {
        let mut found = Vec::new();
        let Ok(mut tree) = self.units[unit].entries_tree(Some(offset)) else { return found };
        let Ok(root) = tree.root() else { return found };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            found.push((child.entry().tag(), (unit, child.entry().offset())));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use object::ObjectSymbol;

    use super::super::binary::Binary;
    use super::*;

    const SOURCE: &str = "
        struct mutex { long words[5]; };
        struct node { int key; struct { long a, b; } pair; union { long c; long d; }; };
        extern struct node late;
        struct mutex forks[3];
        volatile struct node queue;
        struct node late;
        typedef int row[3];
        row grid[4];
        union { int a; long b[2]; } choice;
        int main(void) { static long seen[2]; seen[1] = queue.key; return (int)seen[1]; }";

    #[test]
    fn elements_and_members_are_named() {
        let file = std::env::temp_dir().join(format!("selvedge-types-{}", std::process::id()));
        let source = file.with_extension("c");
        std::fs::write(&source, SOURCE).unwrap();
        for compiler in ["gcc", "clang-19"] {
            let built = Command::new(compiler)
                .arg("-g")
                .arg(&source)
                .arg("-o")
                .arg(&file)
                .status()
                .unwrap();
            assert!(built.success(), "{compiler}");
            let bytes = std::fs::read(&file).unwrap();
            let symbols = object::File::parse(&*bytes).unwrap();
            let binary = Binary::open(&file);
            let part = |name: &str, offset: u64| {
                let is = |s: &object::Symbol<'_, '_>| s.name().is_ok_and(|n| n.ends_with(name));
                let symbol = symbols.symbols().find(is).expect(name);
                binary.variable(symbol.address() + offset).expect(name)
            };
            assert_eq!(part("forks", 0), "forks[0]", "{compiler}");
            assert_eq!(part("forks", 40), "forks[1]");
            assert_eq!(part("forks", 88), "forks[2].words[1]");
            assert_eq!(part("queue", 0), "queue", "it, or its first member");
            assert_eq!(part("queue", 4), "queue+4", "padding");
            assert_eq!(part("queue", 16), "queue.pair.b");
            assert_eq!(part("queue", 24), "queue+24", "a union without a name");
            assert_eq!(part("late", 8), "late.pair", "declared before");
            assert_eq!(part("grid", 28), "grid[2][1]");
            assert_eq!(part("choice", 8), "choice+8");
        }
        std::fs::remove_file(&source).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
}
