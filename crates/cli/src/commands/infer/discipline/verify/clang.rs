//! Calls clang's thread safety analysis, and reads what it says.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::commands::infer::discipline::attribute::MemberForm;
use crate::exit::Failure;
use crate::program::compiler::CompileCommand;
use crate::program::toolbox::Toolbox;

/// The header that makes capabilities of POSIX locks.
const HEADER: &str = "selvedge-thread-safety.h";
/// Allows a member of C to name a member behind it.
const LATE: &str = "-fexperimental-late-parse-attributes";

/// A clang with thread safety analysis.
pub(super) struct Clang {
    program: String,
    pub(super) version: String,
    include: PathBuf,
    /// For files that are gone with this.
    pub(super) scratch: Scratch,
    late: bool,
    pub(super) form: MemberForm,
}

/// A directory that is removed in the end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A line that clang prints, with the notes below it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Said {
    pub(super) place: Position,
    pub(super) error: bool,
    pub(super) text: String,
    /// The function that it is about, and the brace of its body.
    pub(super) function: Option<(String, Position)>,
    /// Where the lock was acquired.
    pub(super) acquired: Option<Position>,
    /// Where the attribute of the variable is.
    pub(super) declared: Option<Position>,
}

/// A place as clang prints it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Position {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Clang {
    /// The first clang on the path that has the analysis.
    pub(super) fn find() -> Result<Clang, Failure> {
        let scratch = std::env::temp_dir().join(format!("selvedge-verify-{}", std::process::id()));
        fs::create_dir_all(&scratch)
            .map_err(|error| Failure::Write { path: scratch.clone(), error })?;
        let mut clang = Clang {
            program: String::new(),
            version: String::new(),
            include: Toolbox::unpack()?.include,
            scratch: Scratch(scratch),
            late: false,
            form: MemberForm::default(),
        };
        let names = std::iter::once("clang".to_owned())
            .chain((11..=30).rev().map(|n| format!("clang-{n}")));
        for name in names {
            clang.program = name;
            if clang.probe() {
                return Ok(clang);
            }
        }
        Err(Failure::Undecided(
            "--verify needs a clang with thread safety analysis (-Wthread-safety), and none is on the path; on Debian or Ubuntu: sudo apt-get install clang".to_owned(),
        ))
    }

    /// Whether it warns of a wrong program and not of the right one; which form of attributes it takes for that.
    fn probe(&mut self) -> bool {
        let Ok(output) = Command::new(&self.program).arg("--version").output() else {
            return false;
        };
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = version.split("version ").nth(1).and_then(|v| v.split_whitespace().next());
        self.version = number.unwrap_or("of an unknown version").to_owned();
        let form = |late: bool, form: MemberForm| {
            let lock = if form == MemberForm::Address { "&lock" } else { "lock" };
            let text = |body: &str| {
                format!(
                    "struct s {{ pthread_mutex_t lock; int n __attribute__((guarded_by({lock}))); }};\n\
                     void f(struct s *s) {{ {body} }}\n"
                )
            };
            let right =
                text("pthread_mutex_lock(&s->lock); s->n = 1; pthread_mutex_unlock(&s->lock);");
            self.says(&right, late) == Some(0) && self.says(&text("s->n = 1;"), late) == Some(1)
        };
        // An option that clang does not know is an error.
        for late in [true, false] {
            for name in [MemberForm::Name, MemberForm::Address] {
                if form(late, name) {
                    (self.late, self.form) = (late, name);
                    return true;
                }
            }
        }
        false
    }

    /// How many warnings a small program has, unless it is wrong.
    fn says(&self, text: &str, late: bool) -> Option<usize> {
        let source = self.scratch.0.join("probe.c");
        fs::write(&source, text).ok()?;
        let mut command = self.command();
        command.args(late.then_some(LATE)).arg(&source);
        let output = command.output().ok()?;
        let said = read(&output, Path::new("/"));
        (output.status.success() && said.iter().all(|s| !s.error)).then_some(said.len())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LC_ALL", "C").args([
            "-fsyntax-only",
            "-Wno-everything",
            "-Wthread-safety",
            "-Wthread-safety-verbose",
            "-Wignored-attributes",
            "-fno-caret-diagnostics",
            "-fno-color-diagnostics",
            "-ferror-limit=0",
            "-DSELVEDGE=1",
            "-include",
            HEADER,
            "-idirafter",
        ]);
        command.arg(&self.include).arg("-I").arg(&self.include);
        command
    }

    /// A call for a source of the program, in the directory in which it was compiled.
    fn of(&self, compiled: &CompileCommand) -> Command {
        let mut command = self.command();
        command.current_dir(&compiled.directory);
        let cxx = is_cxx(compiled);
        if self.late && !cxx {
            command.arg(LATE);
        }
        if cxx {
            command.args(["-x", "c++"]);
        }
        command.args(options(compiled));
        command
    }

    /// What clang says of a source, with annotated texts in the place of sources (`overlay`).
    pub(super) fn check(
        &self,
        compiled: &CompileCommand,
        overlay: &Path,
    ) -> Result<Vec<Said>, Failure> {
        let mut command = self.of(compiled);
        command.arg("-ivfsoverlay").arg(overlay).arg(&compiled.file);
        let output = command
            .output()
            .map_err(|error| Failure::Open { path: (&self.program).into(), error })?;
        Ok(read(&output, &compiled.directory))
    }

    /// The syntax trees of the declarations of a name, as JSON documents one behind the other.
    pub(super) fn trees(&self, compiled: &CompileCommand, name: &str) -> Vec<u8> {
        let mut command = self.of(compiled);
        command.args(["-w", "-Xclang", "-ast-dump=json", "-Xclang"]);
        command.arg(format!("-ast-dump-filter={name}")).arg(&compiled.file);
        command.output().map(|o| o.stdout).unwrap_or_default()
    }
}

fn is_cxx(compiled: &CompileCommand) -> bool {
    let extension = compiled.file.extension().and_then(OsStr::to_str).unwrap_or_default();
    let driver = compiled.arguments.first().is_some_and(|a| a.ends_with("++"));
    driver || ["cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii"].contains(&extension)
}

/// The options that decide what a source means, in gcc's and clang's words alike.
fn options(compiled: &CompileCommand) -> Vec<String> {
    const WITH_VALUE: [&str; 11] = [
        "-D",
        "-U",
        "-I",
        "-isystem",
        "-iquote",
        "-idirafter",
        "-include",
        "-imacros",
        "-isysroot",
        "--sysroot",
        "-x",
    ];
    const BEGINNINGS: [&str; 8] =
        ["-D", "-U", "-I", "-std=", "-isystem", "-iquote", "-march=", "--sysroot="];
    const WHOLE: [&str; 8] = [
        "-ansi",
        "-pthread",
        "-fopenmp",
        "-nostdinc",
        "-nostdinc++",
        "-funsigned-char",
        "-fms-extensions",
        "-fno-exceptions",
    ];
    let mut kept = Vec::new();
    let mut words = compiled.arguments.iter().skip(1);
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            kept.push(word.clone());
            kept.extend(words.next().cloned());
        } else if WHOLE.contains(&word.as_str()) || BEGINNINGS.iter().any(|b| word.starts_with(b)) {
            kept.push(word.clone());
        }
    }
    kept
}

/// The warnings and errors among the lines that clang prints, each once.
fn read(output: &Output, directory: &Path) -> Vec<Said> {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut all: Vec<Said> = Vec::new();
    for line in text.lines() {
        let parse = |word: &str| {
            let (place, rest) = line.split_once(word)?;
            Some((position(place, directory)?, rest.to_owned()))
        };
        if let Some((place, text)) = parse(": warning: ") {
            let text = text.rsplit_once(" [-W").map_or(text.as_str(), |(t, _)| t).to_owned();
            all.push(Said {
                place,
                error: false,
                text,
                function: None,
                acquired: None,
                declared: None,
            });
        } else if let Some((place, text)) = parse(": error: ").or_else(|| parse(": fatal error: "))
        {
            all.push(Said {
                place,
                error: true,
                text,
                function: None,
                acquired: None,
                declared: None,
            });
        } else if let (Some((place, note)), Some(last)) = (parse(": note: "), all.last_mut()) {
            let quoted = note.split('\'').nth(1).unwrap_or_default().to_owned();
            if note.starts_with("thread warning in function") {
                last.function = Some((quoted, place));
            } else if note.contains("acquired here") {
                last.acquired = Some(place);
            } else if note.starts_with("guarded_by declared here") {
                last.declared = Some(place);
            }
        }
    }
    let unique: BTreeSet<Said> = all.into_iter().collect();
    unique.into_iter().collect()
}

fn position(text: &str, directory: &Path) -> Option<Position> {
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    let file = directory.join(file);
    let file = fs::canonicalize(&file).unwrap_or(file);
    Some(Position { file, line: line.parse().ok()?, column: column.parse().ok()? })
}

/// What clang complains of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Complaint {
    /// An access, or a call, without a lock.
    Requires { lock: String, exclusively: bool, of: Required },
    /// A function returns with a lock that it acquired.
    StillHeld { lock: String },
    /// A function releases a lock that it did not acquire.
    NotHeld { lock: String },
    /// A function acquires a lock that counts as held.
    Twice { lock: String },
    /// Something else about a lock.
    Other { lock: String },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Required {
    Variable { name: String, writes: bool },
    Call(String),
}

impl Complaint {
    pub(super) fn of(text: &str) -> Complaint {
        let quoted: Vec<&str> = text.split('\'').skip(1).step_by(2).collect();
        let lock = quoted.last().copied().unwrap_or_default().to_owned();
        let first = quoted.first().copied().unwrap_or_default().to_owned();
        if text.contains(" requires holding ") && quoted.len() == 2 {
            let of = match text.starts_with("calling function") {
                true => Required::Call(first),
                false => Required::Variable { name: first, writes: text.starts_with("writing") },
            };
            Complaint::Requires { lock, exclusively: text.ends_with("exclusively"), of }
        } else if text.ends_with("is still held at the end of function") {
            Complaint::StillHeld { lock }
        } else if text.starts_with("releasing ") && text.ends_with("that was not held") {
            Complaint::NotHeld { lock }
        } else if text.starts_with("acquiring ") && text.ends_with("that is already held") {
            Complaint::Twice { lock }
        } else {
            Complaint::Other { lock: first }
        }
    }

    /// The lock that it is about.
    pub(super) fn lock(&self) -> &str {
        match self {
            Complaint::Requires { lock, .. }
            | Complaint::StillHeld { lock }
            | Complaint::NotHeld { lock }
            | Complaint::Twice { lock }
            | Complaint::Other { lock } => lock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_understood() {
        let lock = || "g".to_owned();
        let requires = |exclusively, of| Complaint::Requires { lock: lock(), exclusively, of };
        let variable = |name: &str, writes| Required::Variable { name: name.to_owned(), writes };
        for (text, expected) in [
            (
                "writing variable 'x' requires holding mutex 'g' exclusively",
                requires(true, variable("x", true)),
            ),
            (
                "reading variable 'x' requires holding mutex 'g'",
                requires(false, variable("x", false)),
            ),
            (
                "calling function 'f' requires holding mutex 'g' exclusively",
                requires(true, Required::Call("f".to_owned())),
            ),
            (
                "mutex 'g' is still held at the end of function",
                Complaint::StillHeld { lock: lock() },
            ),
            ("releasing mutex 'g' that was not held", Complaint::NotHeld { lock: lock() }),
            ("acquiring mutex 'g' that is already held", Complaint::Twice { lock: lock() }),
            ("mutex 'g' is not held on every path through here", Complaint::Other { lock: lock() }),
        ] {
            assert_eq!(Complaint::of(text), expected, "{text}");
        }
    }

    #[test]
    fn only_options_that_change_the_meaning_are_kept() {
        let words = "cc -O2 -g -DA=1 -I inc -Wall -fsanitize=thread -std=gnu11 -frobnicate -include c.h -c a.c";
        let compiled = CompileCommand {
            directory: "/".into(),
            file: "a.c".into(),
            arguments: words.split(' ').map(str::to_owned).collect(),
        };
        assert_eq!(options(&compiled).join(" "), "-DA=1 -I inc -std=gnu11 -include c.h");
        assert!(!is_cxx(&compiled));
    }
}
