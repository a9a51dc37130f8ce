//! What the objects of an execution are called: by the variable or member that the place declares where an object was
//! made.
//!
//! Rust tells where `Mutex::new` was called, not what its result is kept in; the source text says that. `let queue =
//! Arc::new(Mutex::new(…))`, `balance: Mutex::new(…)`, `static LOCK: Mutex<…> = …` and `let (a, b) = (…, …)` are
//! understood, and the only member of its kind where `Default` is derived. What is not keeps its number, and so does what
//! the crate makes for itself, such as that by which a thread is unparked. Names are for readers only: identities of findings do not use them.

use std::collections::HashMap;
use std::panic::Location;

use selvedge_model::symbols::Names;
use selvedge_model::{Range, Symbols};

/// Where an object was made, if that is known.
pub(crate) type Place = Option<&'static Location<'static>>;

/// Lines that a declaration may begin before the object in it.
const LINES: u32 = 4;

/// Where the objects of an execution were made, by number.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) locks: Vec<Place>,
    pub(crate) conds: Vec<Place>,
    pub(crate) barriers: Vec<Place>,
    pub(crate) memory: Vec<Place>,
}

impl Made {
    pub(crate) fn clear(&mut self) {
        let Made { locks, conds, barriers, memory } = self;
        [locks, conds, barriers, memory].into_iter().for_each(Vec::clear);
    }

    /// Gives the objects their names. `address` is where memory with a number is, and how long it is.
    pub(crate) fn name(
        &self,
        symbols: &mut Symbols,
        declared: &mut Declared,
        address: impl Fn(usize) -> Range,
    ) {
        let kinds: [(_, &mut Names, &[&str]); 3] = [
            (&self.locks, &mut symbols.locks, &["Mutex", "RwLock"]),
            (&self.conds, &mut symbols.conds, &["Condvar"]),
            (&self.barriers, &mut symbols.barriers, &["Barrier"]),
        ];
        for (places, names, types) in kinds {
            for name in declared.all(places, types) {
                names.push(name.unwrap_or_default().into());
            }
        }
        for (number, name) in
            declared.all(&self.memory, &["Atomic", "Cell"]).into_iter().enumerate()
        {
            if let Some(name) = name {
                symbols.variables.define(&name, address(number));
            }
        }
    }
}

/// The names that places declare, each looked up once.
#[derive(Default)]
pub(crate) struct Declared {
    files: HashMap<&'static str, Option<String>>,
    /// By the place's address and the first of the types.
    names: HashMap<(usize, &'static str), Option<String>>,
}

impl Declared {
    /// The names of objects whose types have one of these names. If several would have one name, they are numbered.
    fn all(&mut self, places: &[Place], types: &'static [&'static str]) -> Vec<Option<String>> {
        let names: Vec<_> = places.iter().map(|place| self.at((*place)?, types)).collect();
        let mut counts: HashMap<&str, [usize; 2]> = HashMap::new();
        for name in names.iter().flatten() {
            counts.entry(name).or_default()[0] += 1;
        }
        let mut numbered = |name: &'_ String| {
            let [all, told] = counts.get_mut(name.as_str())?;
            *told += 1;
            Some(if *all > 1 { format!("{name} ({told})") } else { name.clone() })
        };
        names.iter().map(|name| numbered(name.as_ref()?)).collect()
    }

    fn at(
        &mut self,
        place: &'static Location<'static>,
        types: &'static [&'static str],
    ) -> Option<String> {
        let key = (std::ptr::from_ref(place) as usize, types[0]);
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let file = place.file();
        let text =
            self.files.entry(file).or_insert_with(|| (!is_own(file)).then(|| source(file))?);
        let name =
            text.as_deref().and_then(|t| declared_in(t, (place.line(), place.column()), types));
        self.names.insert(key, name.clone());
        name
    }
}

/// Whether a file is one of this crate: what it makes for itself has no name that a user knows.
fn is_own(file: &str) -> bool {
    file!().strip_suffix("exec/made.rs").is_some_and(|own| file.starts_with(own))
}

/// A source file, whose path is relative to this directory or one above it.
pub(crate) fn source(file: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().take(4).find_map(|dir| std::fs::read_to_string(dir.join(file)).ok())
}

/// What the object is kept in that is made at a line and a column, and whose type has one of these names.
fn declared_in(text: &str, (line, column): (u32, u32), types: &[&str]) -> Option<String> {
    let last = text.lines().nth(line as usize - 1)?;
    let at = last.char_indices().nth(column as usize - 1)?.0;
    if last.trim_start().starts_with("#[derive(") {
        let structure = text.lines().skip(line as usize);
        return only_member(structure, types);
    }
    let first = line.saturating_sub(LINES).max(1);
    let before = text.lines().skip(first as usize - 1).take((line - first) as usize);
    let before = before.map(without_comment);
    let all: Vec<&str> = before.chain(std::iter::once(&last[..at])).collect();
    declared(&all.join("\n"))
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// The member of a structure whose type has one of these names, if there is only one: what a derived `Default` makes
/// was made where `Default` is derived.
fn only_member<'a>(structure: impl Iterator<Item = &'a str>, types: &[&str]) -> Option<String> {
    let lines =
        structure.map(without_comment).take_while(|line| !line.trim_start().starts_with('}'));
    let members = lines.filter_map(|line| line.split_once(':'));
    let mut of_type = members.filter(|(_, of)| types.iter().any(|name| of.contains(name)));
    let (name, _) = of_type.next()?;
    let name = name.trim().rsplit(' ').next()?;
    of_type.next().is_none().then(|| name.to_owned())
}

/// The name that is declared around the end of a text.
fn declared(text: &str) -> Option<String> {
    // Outwards from the end: through calls, arrays and tuples, to the member or to the statement.
    let (mut depth, mut commas, mut part_end) = (0usize, 0, text.len());
    let mut in_tuple = None;
    let mut begin = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            // A block that ends a line has ended a statement.
            '}' if depth == 0 && text[at + 1..].trim_start_matches(' ').starts_with('\n') => {
                begin = at + 1;
                break;
            }
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            ',' | '(' | '[' | '{' => {
                if let Some(member) = member(&text[at + 1..part_end]) {
                    return Some(member);
                }
                part_end = part_end.min(at);
                match c {
                    ',' => commas += 1,
                    '{' => {
                        begin = at + 1;
                        break;
                    }
                    _ => {
                        let is_call =
                            text[..at].ends_with(|b: char| is_word(b) || "!>".contains(b));
                        in_tuple = (c == '(' && !is_call).then_some(commas);
                        commas = 0;
                    }
                }
            }
            ';' => {
                begin = at + 1;
                break;
            }
            _ => {}
        }
    }
    statement(&text[begin..], in_tuple)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The name in `name: …`.
fn member(text: &str) -> Option<String> {
    let (name, rest) = text.split_once(':')?;
    let name = name.trim();
    let is_name = name.chars().all(is_word) && !name.is_empty();
    (is_name && !rest.starts_with(':')).then(|| name.to_owned())
}

/// The name in `let name = …`, `static NAME: … = …` or `of.name = …`, or the one at that place in
/// `let (a, b) = (…, …)`.
fn statement(text: &str, in_tuple: Option<usize>) -> Option<String> {
    let text = text.trim_start();
    let (pattern, _) = text.split_once('=').or_else(|| text.split_once(':'))?;
    let pattern = pattern.trim();
    let pattern = match pattern.strip_prefix("let ") {
        Some(tuple) if tuple.trim_start().starts_with('(') => {
            let inside = tuple.trim_start().strip_prefix('(')?.split(')').next()?;
            inside.split(',').nth(in_tuple?)?
        }
        Some(name) => name.split(':').next()?,
        // A static, or the left side of an assignment.
        None => pattern.split(':').next()?,
    };
    let name = pattern.trim().rsplit(|c: char| !is_word(c)).next()?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name != "_";
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name for what is made where `text` has a `@`.
    fn named(text: &str) -> Option<String> {
        let at = text.find('@').expect("an @");
        let line = text[..at].lines().count().max(1) as u32;
        let begin = text[..at].rfind('\n').map_or(0, |n| n + 1);
        declared_in(&text.replace('@', ""), (line, (at - begin + 1) as u32), &["Mutex"])
    }

    #[test]
    fn declarations_name_what_is_made_in_them() {
        for (text, name) in [
            ("let queue = Arc::new(@Mutex::new(0));", Some("queue")),
            ("    let mut flag: AtomicBool = @AtomicBool::new(true);", Some("flag")),
            ("static LOCK: Mutex<u32> = @Mutex::new(0);", Some("LOCK")),
            ("pub(crate) static LOCK: Mutex<u32> = @Mutex::new(0);", Some("LOCK")),
            ("Account { number, balance: @Mutex::new(100) }", Some("balance")),
            ("Account { number: 1, balance: Arc::new(@Mutex::new(100)) }", Some("balance")),
            ("let a = |n| Arc::new(Account { n, balance: @Mutex::new(100) });", Some("balance")),
            ("let (a, b) = (Arc::new(@Mutex::new(0)), Arc::new(Mutex::new(1)));", Some("a")),
            ("let (a, b) = (Arc::new(Mutex::new(0)), Arc::new(@Mutex::new(1)));", Some("b")),
            ("let forks: Vec<_> = (0..5).map(|_| @Mutex::new(())).collect();", Some("forks")),
            ("let all = vec![Mutex::new(1), @Mutex::new(2)];", Some("all")),
            ("self.lock = @Mutex::new(2);", Some("lock")),
            (
                "f(); let x = 1;\nlet shared = Arc::new((\n    Mutex::new(false),\n    @Condvar::new(),\n));",
                Some("shared"),
            ),
            ("let shared = // both: of them\n    Arc::new(@Mutex::new(1));", Some("shared")),
            (
                "#[derive(@Default)]\nstruct Queue {\n    pub items: Mutex<Vec<u32>>,\n    added: Condvar,\n}",
                Some("items"),
            ),
            (
                "#[derive(@Default)]\nstruct Queue {\n    a: Mutex<u32>,\n    b: Mutex<u32>,\n}",
                None,
            ),
            ("if x {\n    f = 1\n}\nlet a = @Mutex::new(0);", Some("a")),
            (
                "let all = [Account { n: 1 }, Account { n: 2, balance: @Mutex::new(0) }];",
                Some("balance"),
            ),
            ("check(@Mutex::new(1));", None),
            ("@Mutex::new(1)", None),
            ("fn make() -> Mutex<u32> { @Mutex::new(1) }", None),
            ("match x { Some(v) => @Mutex::new(v) }", None),
            ("let _ = @Mutex::new(1);", None),
        ] {
            assert_eq!(named(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn several_objects_of_one_name_are_numbered() {
        #[track_caller]
        fn here() -> Place {
            Some(Location::caller())
        }
        let make = || here();
        let [first, second, alone] = [make(), make(), here()];
        let mut declared = Declared::default();
        for (place, name) in [(first, "balance"), (alone, "total")] {
            let key = std::ptr::from_ref(place.expect("one")) as usize;
            declared.names.insert((key, "Mutex"), Some(name.to_owned()));
        }
        let names = declared.all(&[first, None, alone, second], &["Mutex"]);
        let names: Vec<_> = names.iter().map(Option::as_deref).collect();
        assert_eq!(names, [Some("balance (1)"), None, Some("total"), Some("balance (2)")]);
    }
}
