//! What a compiler's command line asks for.
//!
//! gcc and clang have many options. What matters here is which stage is the last one, which arguments are
//! inputs, and which belong to one stage only. An unknown option is passed on unchanged: at worst the
//! compiler prints its own error message.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// One argument, or an option with the argument that belongs to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) words: Vec<OsString>,
    pub(super) kind: ItemKind,
}

/// Which stage an argument belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ItemKind {
    /// A file to be compiled.
    Source,
    /// A header to be precompiled.
    Header,
    /// A file or library for the linker.
    Linked,
    /// An option of the linker.
    LinkOption,
    /// `-o`.
    Output,
    /// `-x`: the language of the inputs after it.
    Language,
    /// `-M…`: dependencies for make.
    Dependencies,
    /// Anything else.
    Option,
}

/// The last stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// A question about the compiler: nothing is compiled or linked.
    Question,
    /// Up to an object, assembly, preprocessed text or a list of dependencies.
    Compile,
    /// An executable.
    Link,
    /// A shared library.
    LinkShared,
    /// Objects to be linked further.
    LinkPartly,
}

/// A parsed command line.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) items: Vec<Item>,
    pub(super) stage: Stage,
}

/// Options whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "-A",
    "-B",
    "-D",
    "-F",
    "-G",
    "-I",
    "-U",
    "-arch",
    "-aux-info",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-idirafter",
    "-imacros",
    "-imultilib",
    "-include",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-mllvm",
    "-target",
    "-wrapper",
    "--param",
    "--sysroot",
    "--target",
    "-Xassembler",
    "-Xclang",
    "-Xpreprocessor",
    "-ivfsoverlay",
    "-include-pch",
];
const LINK_WITH_VALUE: &[&str] = &["-L", "-T", "-Xlinker", "-e", "-u", "-z", "--entry", "-rpath"];
const LINK_FLAGS: &[&str] = &[
    "-shared",
    "-static",
    "-static-pie",
    "-pie",
    "-no-pie",
    "-nopie",
    "-rdynamic",
    "-r",
    "-s",
    "-symbolic",
    "-nostdlib",
    "-nostartfiles",
    "-nodefaultlibs",
    "-nolibc",
    "-static-libgcc",
    "-static-libstdc++",
    "-shared-libgcc",
    "-static-libtsan",
    "-shared-libsan",
];
const SOURCES: &[&str] = &[
    "c", "i", "ii", "m", "mi", "mm", "M", "mii", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "s",
    "S", "sx", "f", "for", "f90", "F90", "ll", "bc",
];
const HEADERS: &[&str] = &["h", "hh", "H", "hp", "hxx", "hpp", "HPP", "h++", "tcc"];

impl Arguments {
    /// Parses a command line without the name of the compiler.
    pub(super) fn parse(args: &[OsString]) -> Arguments {
        let args = expanded(args, 0);
        let mut items = Vec::new();
        let mut typed = false;
        let mut words = args.into_iter();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy().into_owned();
            let kind = classify(&text, typed);
            let mut item = Item { words: vec![word], kind };
            if takes_next(&text) {
                item.words.extend(words.next());
            }
            if kind == ItemKind::Language {
                let language = item.words.last().map(|w| w.to_string_lossy().into_owned());
                typed = language.is_some_and(|l| !l.ends_with("none"));
            }
            items.push(item);
        }
        let stage = stage(&items);
        Arguments { items, stage }
    }

    /// Whether the command line has exactly this option.
    pub(super) fn has(&self, option: &str) -> bool {
        self.items.iter().any(|i| i.words[0] == option)
    }

    /// Whether the command line has an option with this prefix.
    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        self.items.iter().any(|i| i.words[0].to_string_lossy().starts_with(prefix))
    }

    /// Whether some input has to be compiled.
    pub(super) fn compiles(&self) -> bool {
        self.items.iter().any(|i| matches!(i.kind, ItemKind::Source | ItemKind::Header))
    }

    /// The file that the last stage writes.
    pub(super) fn output(&self) -> &Path {
        let last = self.items.iter().rfind(|i| i.kind == ItemKind::Output);
        let named = last.and_then(|i| match i.words.as_slice() {
            [_, name] => Some(Path::new(name)),
            [joined] => joined.to_str().and_then(|s| s.strip_prefix("-o")).map(Path::new),
            _ => None,
        });
        named.unwrap_or(Path::new("a.out"))
    }
}

fn classify(text: &str, typed: bool) -> ItemKind {
    if text == "-" || !text.starts_with('-') {
        return input(text, typed);
    }
    let link_prefix = ["-Wl,", "-L", "-fuse-ld", "-Xlinker", "-T", "-u", "-z"];
    if text == "-o" || (text.starts_with("-o") && !text.starts_with("-objc")) {
        ItemKind::Output
    } else if text.starts_with("-x") && !text.starts_with("-x-") {
        ItemKind::Language
    } else if text.starts_with("-l") {
        ItemKind::Linked
    } else if LINK_FLAGS.contains(&text)
        || LINK_WITH_VALUE.contains(&text)
        || link_prefix.iter().any(|p| text.starts_with(p) && !text.starts_with("-undef"))
    {
        ItemKind::LinkOption
    } else if text.starts_with("-M") {
        ItemKind::Dependencies
    } else {
        ItemKind::Option
    }
}

fn input(text: &str, typed: bool) -> ItemKind {
    let extension = Path::new(text).extension().map(OsStr::to_string_lossy).unwrap_or_default();
    if typed || SOURCES.contains(&&*extension) {
        ItemKind::Source
    } else if HEADERS.contains(&&*extension) {
        ItemKind::Header
    } else {
        ItemKind::Linked
    }
}

fn takes_next(text: &str) -> bool {
    WITH_VALUE.contains(&text)
        || LINK_WITH_VALUE.contains(&text)
        || ["-o", "-x", "-l", "-MF", "-MT", "-MQ", "-MJ"].contains(&text)
}

fn stage(items: &[Item]) -> Stage {
    let has = |options: &[&str]| items.iter().any(|i| options.iter().any(|o| i.words[0] == *o));
    let kinds = |kind| items.iter().any(|i| i.kind == kind);
    let inputs = kinds(ItemKind::Source) || kinds(ItemKind::Header) || kinds(ItemKind::Linked);
    let asks = items.iter().any(|i| {
        let text = i.words[0].to_string_lossy();
        ["-print-", "--print-", "-dump", "--help", "--version", "-###"]
            .iter()
            .any(|p| text.starts_with(p))
            && !text.starts_with("-dumpbase")
            && !text.starts_with("-dumpdir")
    });
    if asks || !inputs {
        Stage::Question
    } else if has(&["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--preprocess", "--compile"])
        || (kinds(ItemKind::Header) && !kinds(ItemKind::Source) && !kinds(ItemKind::Linked))
    {
        Stage::Compile
    } else if has(&["-r", "-Wl,-r", "-Wl,--relocatable"]) {
        Stage::LinkPartly
    } else if has(&["-shared", "--shared", "-Wl,-shared"]) {
        Stage::LinkShared
    } else {
        Stage::Link
    }
}

/// The arguments, with response files replaced by their content. A file that cannot be read stays: the
/// compiler reports it.
fn expanded(args: &[OsString], depth: usize) -> Vec<OsString> {
    const DEEPEST: usize = 16;
    let mut all = Vec::new();
    for arg in args {
        let file = arg.to_str().and_then(|a| a.strip_prefix('@'));
        match file.filter(|_| depth < DEEPEST).and_then(|f| std::fs::read_to_string(f).ok()) {
            Some(text) => all.extend(expanded(&split(&text), depth + 1)),
            None => all.push(arg.clone()),
        }
    }
    all
}

/// Splits the text of a response file at white space, except inside quotes and after a backslash.
fn split(text: &str) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', _) => word.get_or_insert_default().extend(letters.next()),
            (q, Some(open)) if q == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::parse(&split(line))
    }

    #[test]
    fn the_last_stage_is_recognised() {
        for (line, stage) in [
            ("-c a.c", Stage::Compile),
            ("-c a.c -o a.o -MMD -MF a.d", Stage::Compile),
            ("-S a.c", Stage::Compile),
            ("-E a.c", Stage::Compile),
            ("-E -dM -x c /dev/null", Stage::Compile),
            ("-M a.c", Stage::Compile),
            ("common.h", Stage::Compile),
            ("-fsyntax-only a.c", Stage::Compile),
            ("a.c", Stage::Link),
            ("-MMD a.c -o a", Stage::Link),
            ("a.o b.o -o prog -lm", Stage::Link),
            ("-shared -fPIC a.o -o liba.so", Stage::LinkShared),
            ("-r -nostdlib -o all.o a.o b.o", Stage::LinkPartly),
            ("-v", Stage::Question),
            ("--version", Stage::Question),
            ("-V", Stage::Question),
            ("-qversion", Stage::Question),
            ("-print-prog-name=ld", Stage::Question),
            ("-print-search-dirs", Stage::Question),
            ("-dumpmachine", Stage::Question),
            ("-dumpversion", Stage::Question),
            ("-v a.c -o a", Stage::Link),
            ("-x c -", Stage::Link),
            ("-x c -c -", Stage::Compile),
            ("", Stage::Question),
        ] {
            assert_eq!(parse(line).stage, stage, "{line}");
        }
    }

    #[test]
    fn values_are_not_taken_for_inputs() {
        let arguments =
            parse("-o out -I inc -D x.c -include pre.h -MT t.o -MF d.c -Xlinker l.o -L dir a.c");
        let inputs = |kind| arguments.items.iter().filter(|i| i.kind == kind).count();
        assert_eq!(inputs(ItemKind::Source), 1);
        assert_eq!(inputs(ItemKind::Linked), 0);
        assert_eq!(inputs(ItemKind::Header), 0);
        assert_eq!(arguments.output(), Path::new("out"));
        assert_eq!(parse("-oout a.c").output(), Path::new("out"));
        assert_eq!(parse("a.c").output(), Path::new("a.out"));
    }

    #[test]
    fn a_language_holds_until_it_is_taken_back() {
        let arguments = parse("-x c++ a.txt -x none b.o");
        let kinds: Vec<_> = arguments.items.iter().map(|i| i.kind).collect();
        use ItemKind::{Language, Linked, Source};
        assert_eq!(kinds, [Language, Source, Language, Linked]);
    }

    #[test]
    fn response_files_are_read() {
        let path = std::env::temp_dir().join(format!("selvedge-response-{}", std::process::id()));
        std::fs::write(&path, "-o 'my prog' \"a b.c\" c\\ d.o\n").unwrap();
        let arguments = Arguments::parse(&[format!("@{}", path.display()).into()]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(arguments.output(), Path::new("my prog"));
        let words: Vec<_> = arguments.items.iter().map(|i| i.words.last().unwrap()).collect();
        assert_eq!(words, ["my prog", "a b.c", "c d.o"]);
    }
}
