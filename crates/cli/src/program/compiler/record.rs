//! Keeps the commands that compiled a program in the program itself, for those who must parse its sources again.
//!
//! An object gets a section that no program loads, with one line for each source: an entry of a compilation
//! database, as JSON. The linker puts the sections of all objects behind each other.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

use object::{Object, ObjectSection};
use serde::{Deserialize, Serialize};

use super::arguments::{Arguments, Item, ItemKind, Stage};

const SECTION: &str = ".selvedge.commands";

/// How one source was compiled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct CompileCommand {
    /// Where the compiler was called.
    pub(crate) directory: PathBuf,
    /// The source, as the command line has it.
    pub(crate) file: PathBuf,
    /// The compiler and its arguments: options, `-c` and the source.
    pub(crate) arguments: Vec<String>,
}

/// The commands that compiled the objects of a program, as `selvedge cc` saw them; each source once.
pub(crate) fn commands(program: &Path) -> io::Result<Vec<CompileCommand>> {
    let bytes = fs::read(program)?;
    let mut found: Vec<CompileCommand> = Vec::new();
    let Ok(file) = object::File::parse(&*bytes) else { return Ok(found) };
    for section in file.sections().filter(|s| s.name() == Ok(SECTION)) {
        let lines = section.data().unwrap_or_default().split(|&b| b == b'\n');
        for command in lines.filter_map(|l| serde_json::from_slice::<CompileCommand>(l).ok()) {
            let known = found
                .iter_mut()
                .find(|c| c.directory.join(&c.file) == command.directory.join(&command.file));
            match known {
                Some(known) => *known = command,
                None => found.push(command),
            }
        }
    }
    Ok(found)
}

/// The commands of a call of the compiler, written to a file for the tools that put them into objects.
pub(super) struct Record {
    directory: PathBuf,
}

impl Record {
    /// Of a call that makes objects of C or C++ sources, or a program of them.
    pub(super) fn new(arguments: &Arguments) -> Option<Record> {
        let lines = lines(arguments, &env::current_dir().ok()?);
        if lines.is_empty() || !is_kept(arguments) {
            return None;
        }
        let directory = env::temp_dir().join(format!("selvedge-commands-{}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let record = Record { directory };
        fs::write(record.text(), lines).ok()?;
        Some(record)
    }

    fn text(&self) -> PathBuf {
        self.directory.join("commands")
    }

    /// The call that makes an object of the commands, and the object, for a link.
    pub(super) fn object(&self) -> io::Result<(Vec<OsString>, PathBuf)> {
        let source = self.directory.join("commands.s");
        let text = format!(
            ".section {SECTION},\"\",@progbits\n.incbin {:?}\n.section .note.GNU-stack,\"\",@progbits\n",
            self.text()
        );
        fs::write(&source, text)?;
        let object = self.directory.join("commands.o");
        Ok((vec!["-c".into(), source.into(), "-o".into(), object.clone().into()], object))
    }

    /// Adds the commands to objects that were compiled. Without binutils they stay as they are.
    pub(super) fn add_to(&self, objects: &[PathBuf]) {
        let mut section = OsString::from(format!("{SECTION}="));
        section.push(self.text());
        for object in objects.iter().filter(|o| o.is_file()) {
            let _ = Command::new("objcopy")
                .arg("--add-section")
                .arg(&section)
                .arg(format!("--set-section-flags={SECTION}=readonly"))
                .arg(object)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Whether the output holds machine code: not preprocessed text, assembly or dependencies.
fn is_kept(arguments: &Arguments) -> bool {
    match arguments.stage {
        Stage::Question => false,
        Stage::Compile => {
            arguments.has("-c") && !["-S", "-E", "-M", "-MM"].iter().any(|o| arguments.has(o))
        }
        Stage::Link | Stage::LinkShared | Stage::LinkPartly => true,
    }
}

fn is_c(source: &OsStr) -> bool {
    let known = ["c", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "i", "ii"];
    Path::new(source).extension().is_some_and(|e| known.iter().any(|k| e == *k))
}

/// An entry for each source.
fn lines(arguments: &Arguments, directory: &Path) -> String {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let options =
        || arguments.items.iter().filter(|i| i.kind == ItemKind::Option && i.words[0] != "-c");
    let mut language: Option<&Item> = None;
    let mut lines = String::new();
    for item in &arguments.items {
        match item.kind {
            ItemKind::Language => language = Some(item),
            ItemKind::Source if is_c(&item.words[0]) || language.is_some() => {
                let words = options().chain(language).flat_map(|i| &i.words).map(text);
                let mut all = vec!["cc".to_owned()];
                all.extend(words);
                all.extend(["-c".to_owned(), text(&item.words[0])]);
                let command = CompileCommand {
                    directory: directory.to_owned(),
                    file: (&item.words[0]).into(),
                    arguments: all,
                };
                lines.push_str(&serde_json::to_string(&command).unwrap_or_default());
                lines.push('\n');
            }
            _ => {}
        }
    }
    lines
}

/// The objects that `-c` writes.
pub(super) fn objects(arguments: &Arguments) -> Vec<PathBuf> {
    if arguments.items.iter().any(|i| i.kind == ItemKind::Output) {
        return vec![arguments.output().to_owned()];
    }
    let sources = arguments.items.iter().filter(|i| i.kind == ItemKind::Source);
    let object = |item: &Item| {
        let stem = Path::new(&item.words[0]).file_stem().unwrap_or_default().to_owned();
        PathBuf::from(stem).with_extension("o")
    };
    sources.map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_its_command() {
        let parse = |line: &str| {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            Arguments::parse(&args)
        };
        let of = |line: &str| -> Vec<String> {
            let lines = lines(&parse(line), Path::new("/p"));
            let read = |l: &str| serde_json::from_str::<CompileCommand>(l).unwrap();
            lines.lines().map(|l| read(l).arguments.join(" ")).collect()
        };
        assert_eq!(of("-O1 -DX -I inc a.c b.o -o p -lm"), ["cc -O1 -DX -I inc -c a.c"]);
        assert_eq!(of("-c a.c b.cc"), ["cc -c a.c", "cc -c b.cc"]);
        assert_eq!(of("a.o -o p"), [""; 0]);
        assert_eq!(objects(&parse("-c x/a.c b.c")), [Path::new("a.o"), Path::new("b.o")]);
        assert_eq!(objects(&parse("-c a.c -o x/y.o")), [Path::new("x/y.o")]);
        assert!(is_kept(&parse("-c a.c")) && is_kept(&parse("a.c -o p")));
        assert!(!is_kept(&parse("-S a.c")) && !is_kept(&parse("-E a.c")));
    }
}
