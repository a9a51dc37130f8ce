//! What lies at an offset in a variable with static storage: `forks[1]`, `queue.head`.
//!
//! Debug information has the types of variables. From the type of the whole, elements and members are
//! followed down to the offset. What cannot be told apart by an offset alone (the members of a union, the
//! first member of a structure and the structure) is called by the whole, unless the reader asks for data:
//! then it is the first member, down to locks and other things that synchronize.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianArcSlice, Operation, RunTimeEndian,
    Unit, UnitOffset,
};
use object::{Object, ObjectSection};

mod declared;
mod shapes;

pub(crate) use declared::Declared;

type Reader = EndianArcSlice<RunTimeEndian>;
type Entry = DebuggingInformationEntry<Reader>;

/// A type or variable: its unit, and where in it.
pub(super) type At = (usize, UnitOffset);

/// Bytes of a pointer.
const POINTER: u64 = 8;
/// Types within types that are followed.
pub(super) const DEPTH: usize = 16;

/// The types of the variables of a file.
pub(super) struct Types {
    dwarf: Dwarf<Reader>,
    units: Vec<Unit<Reader>>,
    /// By the address of the variable.
    variables: HashMap<u64, At>,
    /// The members of all structures; read when they are first asked for.
    members: OnceCell<Vec<Member>>,
    /// Variables and structures by name.
    declared: OnceCell<HashMap<String, At>>,
}

/// A member of a structure, or of a structure in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// The structure, without `struct`, and its size.
    pub(crate) of: String,
    pub(crate) size: u64,
    /// How to get to the member: `pair.a`.
    pub(crate) path: String,
    /// Where in the structure it lies.
    pub(crate) from: u64,
    pub(crate) len: u64,
    /// Whether it is a lock, or synchronizes otherwise.
    pub(crate) synchronizes: bool,
    /// The structure that it is or points to.
    pub(crate) leads_to: Option<String>,
}

impl Member {
    /// The last name of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// Whether it is at an offset in a block of structures.
    pub(crate) fn is_at(&self, offset: u64) -> bool {
        self.size > 0 && (self.from..self.from + self.len).contains(&(offset % self.size))
    }
}

/// Structures within structures whose members are listed.
const NESTED: usize = 3;

/// Whether a type synchronizes, by its name: what is inside is of no interest.
pub(super) fn synchronizes(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["mutex", "rwlock", "spinlock", "sem_t", "barrier", "cond_t", "condvar", "atomic"];
    words.iter().any(|word| name.contains(word))
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
        let mut types = Types {
            dwarf,
            units: Vec::new(),
            variables: HashMap::new(),
            members: OnceCell::new(),
            declared: OnceCell::new(),
        };
        let mut headers = types.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            types.units.extend(types.dwarf.unit(header));
        }
        if types.units.is_empty() {
            return None;
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

    /// Where a variable with static storage is. An address with more behind it says something else: of a pointer that
    /// the compiler keeps nowhere it is the value.
    fn address(&self, unit: usize, entry: &Entry) -> Option<u64> {
        let location = entry.attr(gimli::DW_AT_location)?.exprloc_value()?;
        let of = &self.units[unit];
        let mut operations = location.operations(of.encoding());
        let address = match operations.next().ok()?? {
            Operation::Address { address } => Some(address),
            Operation::AddressIndex { index } => self.dwarf.address(of, index).ok(),
            _ => None,
        };
        address.filter(|_| matches!(operations.next(), Ok(None)))
    }

    /// The variables with static storage, by their address.
    pub(super) fn variables(&self) -> impl Iterator<Item = (u64, At)> {
        self.variables.iter().map(|(&address, &at)| (address, at))
    }

    /// What a variable is called, also if only its declaration says so.
    pub(super) fn variable_name(&self, at: At) -> Option<String> {
        let declared = self.entry(at)?.attr_value(gimli::DW_AT_specification);
        let declared = declared.and_then(|of| self.referred(at.0, &of));
        self.name(at).or_else(|| self.name(declared?))
    }

    /// What a type or variable is.
    pub(super) fn tag(&self, at: At) -> Option<gimli::DwTag> {
        Some(self.entry(at)?.tag())
    }

    /// How the bits of a basic type are meant.
    pub(super) fn encoding(&self, at: At) -> Option<gimli::DwAte> {
        match self.entry(at)?.attr_value(gimli::DW_AT_encoding)? {
            AttributeValue::Encoding(encoding) => Some(encoding),
            _ => None,
        }
    }

    /// The members of a structure that have a place of their own: name, offset and type.
    pub(super) fn members_at(&self, at: At) -> Vec<(Option<String>, u64, At)> {
        let member = |(tag, child): (gimli::DwTag, At)| {
            let is_part = tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_inheritance;
            let entry = self.entry(child).filter(|_| is_part)?;
            // A part of a byte has no address.
            if entry.attr(gimli::DW_AT_bit_size).is_some() {
                return None;
            }
            let offset = entry.attr(gimli::DW_AT_data_member_location)?.udata_value()?;
            Some((self.name(child), offset, self.type_of(child)?))
        };
        self.children(at).into_iter().filter_map(member).collect()
    }

    /// What lies at an offset in the variable that begins at an address, to be read after its name.
    pub(super) fn part(&self, variable: u64, offset: u64) -> Option<String> {
        let of = self.type_of(*self.variables.get(&variable)?)?;
        self.within(of, offset, DEPTH, false)
    }

    /// The same, down to the data that lies there.
    pub(super) fn data(&self, variable: u64, offset: u64) -> Option<String> {
        let of = self.type_of(*self.variables.get(&variable)?)?;
        self.within(of, offset, DEPTH, true)
    }

    /// The members of all structures.
    pub(super) fn members(&self) -> &[Member] {
        self.members.get_or_init(|| {
            let mut found = Vec::new();
            (0..self.units.len()).for_each(|unit| {
                let _ = self.members_of(unit, &mut found);
            });
            found
        })
    }

    fn members_of(&self, unit: usize, found: &mut Vec<Member>) -> gimli::Result<()> {
        let mut entries = self.units[unit].entries();
        while let Some(entry) = entries.next_dfs()? {
            let at = match entry.tag() {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => (unit, entry.offset()),
                // A structure without a name has that of its type definition.
                gimli::DW_TAG_typedef => {
                    let named = (unit, entry.offset());
                    match self.type_of(named) {
                        Some(of) if self.name(of).is_none() => {
                            self.list_members(named, of, found);
                            continue;
                        }
                        _ => continue,
                    }
                }
                _ => continue,
            };
            self.list_members(at, at, found);
        }
        Ok(())
    }

    fn list_members(&self, named: At, of: At, found: &mut Vec<Member>) {
        let is_structure = |at| {
            self.entry(at).is_some_and(|e| {
                e.tag() == gimli::DW_TAG_structure_type || e.tag() == gimli::DW_TAG_class_type
            })
        };
        let (Some(name), Some(size)) = (self.name(named), self.size(of, DEPTH)) else { return };
        if !is_structure(of) || size == 0 || synchronizes(&name) {
            return;
        }
        let mut parts = Vec::new();
        self.parts(of, "", 0, NESTED, &mut parts);
        found.extend(parts.into_iter().map(|part| Member { of: name.clone(), size, ..part }));
    }

    /// The members inside a structure or union, each with its place and size.
    fn parts(&self, at: At, prefix: &str, base: u64, depth: usize, found: &mut Vec<Member>) {
        for (tag, child) in self.children(at) {
            let is_part = tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_inheritance;
            let Some(entry) = self.entry(child).filter(|_| is_part) else { continue };
            // The members of a union have no place of their own.
            let from = base + place_of(&entry).unwrap_or(0);
            let Some(of) = self.type_of(child).map(|of| self.plain(of)) else { continue };
            let len = self.size(of, DEPTH).unwrap_or(0);
            let opaque = self.type_of(child).and_then(|of| self.name(of));
            let opaque = opaque.is_some_and(|name| synchronizes(&name));
            let inside = match self.name(child) {
                Some(name) => {
                    let path = format!("{prefix}{name}");
                    let (of, size) = (String::new(), 0);
                    let leads_to = self.type_of(child).and_then(|of| self.structure(of));
                    let synchronizes = opaque;
                    let path_to = path.clone();
                    found.push(Member {
                        of,
                        size,
                        path: path_to,
                        from,
                        len,
                        synchronizes,
                        leads_to,
                    });
                    format!("{path}.")
                }
                None => prefix.to_owned(),
            };
            if depth > 0 && !opaque {
                self.parts(of, &inside, from, depth - 1, found);
            }
        }
    }

    /// The structures that the parameters and variables of functions are or point to, by the function and the
    /// variable. Variables with static storage belong to the function without a name.
    pub(super) fn locals(&self) -> HashMap<(String, String), String> {
        let mut found = HashMap::new();
        for unit in 0..self.units.len() {
            let mut entries = self.units[unit].entries();
            while let Ok(Some(entry)) = entries.next_dfs() {
                let at = (unit, entry.offset());
                if entry.tag() == gimli::DW_TAG_compile_unit {
                    self.locals_of("", at, 0, &mut found);
                } else if entry.tag() == gimli::DW_TAG_subprogram
                    && let Some(function) = self.name(at)
                {
                    self.locals_of(&function, at, DEPTH, &mut found);
                }
            }
        }
        found
    }

    fn locals_of(
        &self,
        function: &str,
        at: At,
        depth: usize,
        found: &mut HashMap<(String, String), String>,
    ) {
        for (tag, child) in self.children(at) {
            match tag {
                gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => {
                    let of = self.type_of(child).and_then(|of| self.structure(of));
                    if let (Some(name), Some(of)) = (self.name(child), of) {
                        found.insert((function.to_owned(), name), of);
                    }
                }
                gimli::DW_TAG_lexical_block if depth > 0 => {
                    self.locals_of(function, child, depth - 1, found);
                }
                _ => {}
            }
        }
    }

    /// The name of the structure that a type is or points to.
    fn structure(&self, mut at: At) -> Option<String> {
        let mut named = None;
        for _ in 0..DEPTH {
            match self.entry(at)?.tag() {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                    return self.name(at).or(named);
                }
                gimli::DW_TAG_typedef => named = self.name(at),
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_array_type
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type => {}
                _ => return None,
            }
            at = self.type_of(at)?;
        }
        None
    }

    /// The type without type definitions and qualifiers.
    pub(super) fn plain(&self, mut at: At) -> At {
        for _ in 0..DEPTH {
            let Some(entry) = self.entry(at) else { return at };
            match (entry.tag(), self.type_of(at)) {
                (
                    gimli::DW_TAG_typedef
                    | gimli::DW_TAG_const_type
                    | gimli::DW_TAG_volatile_type
                    | gimli::DW_TAG_atomic_type,
                    Some(of),
                ) => at = of,
                _ => return at,
            }
        }
        at
    }

    pub(super) fn name(&self, at: At) -> Option<String> {
        let name = self.entry(at)?.attr_value(gimli::DW_AT_name)?;
        let name = self.dwarf.attr_string(&self.units[at.0], name).ok()?;
        Some(String::from_utf8_lossy(name.bytes()).into_owned())
    }

    fn within(&self, at: At, offset: u64, depth: usize, data: bool) -> Option<String> {
        let rest = || if offset == 0 { String::new() } else { format!("+{offset}") };
        if depth == 0 {
            return Some(rest());
        }
        let opaque = || self.name(at).is_some_and(|name| synchronizes(&name));
        if data && offset == 0 && opaque() {
            return Some(rest());
        }
        match self.entry(at)?.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_atomic_type => self.within(self.type_of(at)?, offset, depth - 1, data),
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
                Some(indices + &self.within(element, offset % size, depth - 1, data)?)
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type if offset > 0 || data => {
                Some(self.member(at, offset, depth, data).unwrap_or_else(rest))
            }
            // A byte of a number belongs to the number.
            _ if data => Some(String::new()),
            _ => Some(rest()),
        }
    }

    /// The member of a structure around an offset. For data, a gap belongs to the member in front of it: code that clears
    /// a structure clears its gaps.
    fn member(&self, at: At, offset: u64, depth: usize, data: bool) -> Option<String> {
        if self.entry(at)?.tag() == gimli::DW_TAG_union_type {
            return None;
        }
        let part = |(tag, child): (gimli::DwTag, At)| {
            let is_part = tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_inheritance;
            let entry = self.entry(child).filter(|_| is_part)?;
            let (from, of) = (place_of(&entry)?, self.type_of(child)?);
            let size = self.size(of, DEPTH).filter(|&size| size > 0)?;
            (from <= offset).then_some((from, size, of, entry))
        };
        let parts: Vec<_> = self.children(at).into_iter().filter_map(part).collect();
        let around = parts.iter().find(|(from, size, ..)| offset - from < *size);
        let in_front = || parts.iter().filter(|_| data).max_by_key(|(from, ..)| *from);
        let (from, size, of, entry) = around.or_else(in_front)?;
        let inside = (offset - from).min(size - 1);
        let name = match entry.attr_value(gimli::DW_AT_name) {
            Some(name) => self.dwarf.attr_string(&self.units[at.0], name).ok()?,
            // A base class, or a structure without a name, is called by what is inside.
            None => return self.member(*of, inside, depth.checked_sub(1)?, data),
        };
        let name = String::from_utf8_lossy(name.bytes()).into_owned();
        Some(format!(".{name}{}", self.within(*of, inside, depth - 1, data)?))
    }

    /// How many elements an array has, outermost dimension first; 0 where that is not known.
    pub(super) fn counts(&self, array: At) -> Vec<u64> {
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

    pub(super) fn size(&self, at: At, depth: usize) -> Option<u64> {
        let entry = self.entry(at)?;
        if let Some(size) = entry.attr(gimli::DW_AT_byte_size) {
            return size.udata_value();
        }
        // clang does not say how large a pointer is.
        if matches!(entry.tag(), gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type) {
            return Some(POINTER);
        }
        let of = self.type_of(at).filter(|_| depth > 0)?;
        let elements: u64 = match entry.tag() {
            gimli::DW_TAG_array_type => self.counts(at).iter().product(),
            _ => 1,
        };
        Some(self.size(of, depth - 1)?.saturating_mul(elements))
    }

    /// The type of a variable, member or type.
    pub(super) fn type_of(&self, at: At) -> Option<At> {
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

/// Where in its structure a member begins; of a bit-field the byte of its first bit.
fn place_of(member: &Entry) -> Option<u64> {
    let number = |name| member.attr(name).and_then(gimli::Attribute::udata_value);
    let bits = || Some(number(gimli::DW_AT_data_bit_offset)? / 8);
    number(gimli::DW_AT_data_member_location).or_else(bits)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use object::ObjectSymbol;
    use selvedge_runtime::Shape;

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
        _Bool flags[2];
        double ratio = 1;
        const char *who;
        void *next;
        _Atomic unsigned long size;
        enum door { SHUT = -1, OPEN = 5 };
        enum door door;
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
            let shape = |name: &str, offset: u64, len: u64| {
                let is = |s: &object::Symbol<'_, '_>| s.name().is_ok_and(|n| n == name);
                let symbol = symbols.symbols().find(is).expect(name);
                binary.shape(symbol.address() + offset, len)
            };
            assert_eq!(shape("queue", 0, 4), Some(Shape::Signed), "the first member");
            assert_eq!(shape("queue", 4, 4), None, "padding");
            assert_eq!(shape("queue", 0, 8), None, "more than the member");
            assert_eq!(shape("grid", 28, 4), Some(Shape::Signed));
            assert_eq!(shape("choice", 0, 4), None, "either member");
            assert_eq!(shape("flags", 1, 1), Some(Shape::Bool));
            assert_eq!(shape("ratio", 0, 8), Some(Shape::Float));
            assert_eq!(shape("who", 0, 8), Some(Shape::Text));
            assert_eq!(shape("next", 0, 8), Some(Shape::Pointer));
            assert_eq!(shape("size", 0, 8), Some(Shape::Unsigned));
            let door = [(-1, "SHUT".to_owned()), (5, "OPEN".to_owned())];
            assert_eq!(shape("door", 0, 4), Some(Shape::Constants(door.to_vec())));
        }
        std::fs::remove_file(&source).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
}
