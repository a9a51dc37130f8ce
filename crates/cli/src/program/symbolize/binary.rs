//! One file of code: its debug information, its symbols, and the targets of its calls.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::elf::FileHeader64;
use object::read::elf::{ElfFile, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SymbolKind};
use selvedge_model::Frame;
use selvedge_runtime::{Location, Module, Shape};

use super::types::{Declared, Member, Types};

/// A variable that is not larger has no parts worth naming.
const SCALAR: u64 = 8;

/// The information of a file. All addresses are those that the linker assigned.
#[derive(Default)]
pub(super) struct Binary {
    path: PathBuf,
    loader: Option<Loader>,
    /// Read when they are first asked for.
    types: OnceCell<Option<Types>>,
    /// Address of the first loaded byte.
    lowest: u64,
    functions: BTreeMap<u64, Symbol>,
    variables: BTreeMap<u64, Symbol>,
    /// Which function the pointer at an address will hold.
    slots: BTreeMap<u64, String>,
    /// The loaded pieces that hold code.
    code: Vec<(u64, Vec<u8>)>,
}

struct Symbol {
    name: String,
    size: u64,
}

impl Binary {
    /// Reads a file. If that fails, nothing in it can be resolved.
    pub(super) fn open(path: &Path) -> Binary {
        let Ok(bytes) = std::fs::read(path) else { return Binary::default() };
        let Ok(file) = ElfFile::<FileHeader64<Endianness>>::parse(&*bytes) else {
            return Binary::default();
        };
        let mut binary =
            Binary { path: path.to_owned(), loader: Loader::new(path).ok(), ..Binary::default() };
        binary.take_segments(&file, &bytes);
        binary.take_symbols(&file);
        binary.take_slots(&file);
        binary
    }

    fn take_segments(&mut self, file: &ElfFile<'_, FileHeader64<Endianness>>, bytes: &[u8]) {
        let endian = file.endian();
        let loaded =
            file.elf_program_headers().iter().filter(|h| h.p_type(endian) == object::elf::PT_LOAD);
        self.lowest = loaded.clone().map(|h| h.p_vaddr(endian) & !0xfff).min().unwrap_or(0);
        for header in loaded {
            if header.p_flags(endian).contains(object::elf::PF_X)
                && let Ok(data) = header.data(endian, bytes)
            {
                self.code.push((header.p_vaddr(endian), data.to_vec()));
            }
        }
    }

    fn take_symbols(&mut self, file: &ElfFile<'_, FileHeader64<Endianness>>) {
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let table = match symbol.kind() {
                SymbolKind::Text => &mut self.functions,
                SymbolKind::Data => &mut self.variables,
                _ => continue,
            };
            if symbol.is_undefined() {
                continue;
            }
            if let Ok(name) = symbol.name() {
                let entry = Symbol { name: name.to_owned(), size: symbol.size() };
                table.entry(symbol.address()).or_insert(entry);
            }
        }
    }

    fn take_slots(&mut self, file: &ElfFile<'_, FileHeader64<Endianness>>) {
        let (Some(relocations), Some(symbols)) =
            (file.dynamic_relocations(), file.dynamic_symbol_table())
        else {
            return;
        };
        for (at, relocation) in relocations {
            if let RelocationTarget::Symbol(index) = relocation.target()
                && let Ok(name) = symbols.symbol_by_index(index).and_then(|s| s.name())
            {
                self.slots.insert(at, name.to_owned());
            }
        }
    }

    /// What to subtract from an address in memory.
    pub(super) fn bias(&self, module: &Module) -> u64 {
        module.base.wrapping_sub(self.lowest)
    }

    /// The frames at an address, innermost first, if debug information knows a line.
    pub(super) fn frames(&self, address: u64) -> Vec<Frame> {
        let Some(loader) = &self.loader else { return Vec::new() };
        let Ok(mut found) = loader.find_frames(address) else { return Vec::new() };
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let function = frame.function.and_then(|f| f.demangle().ok().map(Cow::into_owned));
            let Some(location) = frame.location else { continue };
            let Some(file) = location.file else { continue };
            frames.push(Frame {
                function: function
                    .or_else(|| Some(self.function(address)?.0))
                    .unwrap_or_default()
                    .into(),
                file: file.into(),
                line: location.line.unwrap_or(0),
                column: location.column.unwrap_or(0),
            });
        }
        frames
    }

    /// The function around an address, with the offset in it.
    pub(super) fn function(&self, address: u64) -> Option<(String, u64)> {
        within(&self.functions, address).map(|(s, offset)| (demangled(&s.name), offset))
    }

    /// All functions, by name without parameters, with their code.
    pub(super) fn functions(&self) -> impl Iterator<Item = (String, Range<u64>)> + '_ {
        let next = self.functions.keys().skip(1).copied().chain([u64::MAX]);
        self.functions.iter().zip(next).map(|((&start, symbol), next)| {
            let end = start.saturating_add(symbol.size.max(1)).min(next);
            (plain_name(&demangled(&symbol.name)).to_owned(), start..end)
        })
    }

    /// The variable around an address, with the element or member that lies there.
    pub(super) fn variable(&self, address: u64) -> Option<String> {
        let (symbol, offset) = within(&self.variables, address)?;
        let name = variable_name(&symbol.name);
        let types = (symbol.size > SCALAR).then(|| self.types()).flatten();
        Some(match types.and_then(|types| types.part(address - offset, offset)) {
            Some(part) => name + &part,
            None if offset == 0 => name,
            None => format!("{name}+{offset}"),
        })
    }

    /// The same, down to the data that lies there.
    pub(super) fn data(&self, address: u64) -> Option<String> {
        let (symbol, offset) = within(&self.variables, address)?;
        let name = without_hash(&variable_name(&symbol.name)).to_owned();
        Some(match self.types().and_then(|types| types.data(address - offset, offset)) {
            Some(part) => name + &part,
            None if offset == 0 => name,
            None => format!("{name}+{offset}"),
        })
    }

    /// The type of the data there, if it is one value of `len` bytes.
    pub(super) fn shape(&self, address: u64, len: u64) -> Option<Shape> {
        let (_, offset) = within(&self.variables, address)?;
        self.types()?.shape(address - offset, offset, len)
    }

    /// The memory of the variable around an address.
    pub(super) fn extent(&self, address: u64) -> Option<selvedge_model::Range> {
        let (symbol, offset) = within(&self.variables, address)?;
        Some(selvedge_model::Range { start: address - offset, len: symbol.size })
    }

    /// The members of all structures, if there is debug information.
    pub(super) fn members(&self) -> Option<&[Member]> {
        self.types().map(Types::members)
    }

    /// The structures that the variables of functions are or point to.
    pub(super) fn locals(&self) -> HashMap<(String, String), String> {
        self.types().map(Types::locals).unwrap_or_default()
    }

    /// Where a variable or a member is declared.
    pub(super) fn declaration(&self, name: &str) -> Option<Declared> {
        self.types()?.declaration(name)
    }

    /// The locations that the variables of the file lead to, see [`Types::locations`].
    pub(super) fn locations(&self, depth: usize) -> Vec<Location> {
        self.types().map(|types| types.locations(depth)).unwrap_or_default()
    }

    fn types(&self) -> Option<&Types> {
        self.types.get_or_init(|| Types::open(&self.path)).as_ref()
    }

    /// Whether an instruction that ends at `address` is a call, and of which function.
    pub(super) fn call_before(&self, address: u64) -> Call<'_> {
        let Some(before) = self.bytes_before::<7>(address) else { return Call::None };
        let displacement = i32::from_le_bytes([before[3], before[4], before[5], before[6]]);
        let operand = address.wrapping_add_signed(i64::from(displacement));
        if before[2] == 0xe8 {
            return match self.named(operand) {
                Some(name) => Call::Of(name),
                None => Call::Unknown,
            };
        }
        if before[1..3] == [0xff, 0x15] {
            return self.slots.get(&operand).map_or(Call::Unknown, |name| Call::Of(name));
        }
        // Calls through registers and memory: FF with the middle bits of the next byte 010.
        let indirect = (0..=5).any(|i| before[i] == 0xff && before[i + 1] & 0x38 == 0x10);
        if indirect { Call::Unknown } else { Call::None }
    }

    /// The function that begins at `address`, or that a stub there jumps to.
    fn named(&self, address: u64) -> Option<&str> {
        if let Some(symbol) = self.functions.get(&address) {
            return Some(&symbol.name);
        }
        let stub = self.bytes_before::<16>(address + 16)?;
        // `jmp *displacement(%rip)`, perhaps after `endbr64` or with a `bnd` prefix.
        let at = (0..=8).find(|&i| stub[i..i + 2] == [0xff, 0x25])?;
        let displacement = i32::from_le_bytes(stub[at + 2..at + 6].try_into().ok()?);
        let slot = (address + at as u64 + 6).wrapping_add_signed(i64::from(displacement));
        self.slots.get(&slot).map(String::as_str)
    }

    fn bytes_before<const N: usize>(&self, address: u64) -> Option<&[u8; N]> {
        let (start, data) = self.code.iter().find(|(start, data)| {
            address.checked_sub(*start).is_some_and(|i| i as usize <= data.len())
        })?;
        let end = (address - start) as usize;
        data.get(end.checked_sub(N)?..end)?.try_into().ok()
    }
}

/// What stands before a return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Call<'a> {
    /// No call.
    None,
    /// A call of something unknown.
    Unknown,
    /// A call of the function with this symbol.
    Of(&'a str),
}

/// The name of a variable as it stands in the source.
fn variable_name(symbol: &str) -> String {
    let name = demangled(symbol);
    // Compilers number the static variables of functions: `counter.0`.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    plain.strip_suffix('.').filter(|n| !n.is_empty()).unwrap_or(&name).to_owned()
}

fn within(symbols: &BTreeMap<u64, Symbol>, address: u64) -> Option<(&Symbol, u64)> {
    let (start, symbol) = symbols.range(..=address).next_back()?;
    (address - start < symbol.size.max(1)).then_some((symbol, address - start))
}

/// The name as it stands in the source. Only names that a C++ or Rust compiler has mangled are changed:
/// to a demangler, the C variable `m` is `unsigned long`.
fn demangled(name: &str) -> String {
    if ["_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix)) {
        addr2line::demangle_auto(Cow::Borrowed(name), None).into_owned()
    } else {
        name.to_owned()
    }
}

/// A function's name as it stands in the source: without parameters and result, without Rust's hash,
/// without what compilers append to clones.
pub(super) fn plain_name(name: &str) -> &str {
    let name = name.split(" [clone").next().unwrap_or(name);
    let name = name.strip_suffix(" const").unwrap_or(name);
    let name = without_hash(without_clone(name));
    let bytes = name.as_bytes();
    let mut end = bytes.len();
    if name.ends_with(')') && !name.ends_with("operator()") {
        let mut depth = 0;
        end = (0..bytes.len())
            .rev()
            .find(|&i| {
                depth += i32::from(bytes[i] == b')') - i32::from(bytes[i] == b'(');
                depth == 0
            })
            .unwrap_or(end);
    }
    let mut depth = 0;
    let start = (0..end).rev().find(|&i| {
        depth += i32::from(b")>".contains(&bytes[i])) - i32::from(b"(<".contains(&bytes[i]));
        depth == 0 && bytes[i] == b' '
    });
    match start {
        Some(space) if !name[..end].contains("operator") => &name[space + 1..end],
        _ => &name[..end],
    }
}

fn without_clone(name: &str) -> &str {
    let clone = |at: &usize| {
        ["isra", "constprop", "part", "cold", "lto_priv", "llvm"]
            .iter()
            .any(|suffix| name[at + 1..].starts_with(suffix))
    };
    match name.match_indices('.').map(|(at, _)| at).find(clone) {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            rest
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::plain_name;

    #[test]
    fn names_of_c_are_not_taken_for_mangled_types() {
        for name in ["m", "i", "x", "v", "forks", "_start"] {
            assert_eq!(super::demangled(name), name);
        }
        assert_eq!(super::demangled("_Z5queuev"), "queue()");
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("main", "main"),
            ("sort_slice.constprop.0", "sort_slice"),
            ("bank::transfer(bank::Account&, int)", "bank::transfer"),
            ("void sort<int>(int*, int (*)(int, int))", "sort<int>"),
            ("Queue<std::pair<int, long> >::push(int) const", "Queue<std::pair<int, long> >::push"),
            ("(anonymous namespace)::work(void*)", "(anonymous namespace)::work"),
            ("bank::transfer::h0123456789abcdef", "bank::transfer"),
            ("<bank::Teller as core::ops::Drop>::drop", "<bank::Teller as core::ops::Drop>::drop"),
            ("work(int) [clone .cold]", "work"),
        ] {
            assert_eq!(plain_name(symbol), name);
        }
    }
}
