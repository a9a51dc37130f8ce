//! Writes disciplines beside the declarations of variables: as comments, or as attributes that clang checks, with
//! what functions demand of their callers (`verify` finds that out).
//!
//! The user's sources are read only; what is written goes to a directory of its own or into a patch.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_specs::discipline::merge::Line;

use super::super::edits::Source;
use super::attribute::{Guard, MemberForm, is_local};
use super::text;
use crate::exit::Failure;
use crate::program::symbolize::Declarations;

/// The number of the insertions of `#include <selvedge.h>`.
pub(super) const INCLUDE: usize = usize::MAX;

/// The annotations of a program's sources.
pub(super) struct Annotations {
    program: PathBuf,
    /// Only sources below one of these are annotated.
    roots: Vec<PathBuf>,
    sources: BTreeMap<PathBuf, (Source, String)>,
    pub(super) items: Vec<Item>,
    /// What the user should know.
    pub(super) remarks: Vec<String>,
}

/// One annotation. It can be taken back.
pub(super) struct Item {
    pub(super) what: What,
    pub(super) dropped: bool,
}

pub(super) enum What {
    Variable(Variable),
    Function(Function),
    Alone(Alone),
}

/// A declaration of one or several variables: members of a structure that many have.
pub(super) struct Variable {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) name: String,
    /// The variables as lines call them, with their disciplines in words.
    of: Vec<(String, String)>,
    pub(super) guard: Option<Guard>,
}

impl Variable {
    /// What the variable is called in reports.
    pub(super) fn variable(&self) -> &str {
        self.of.first().map_or(&self.name, |(variable, _)| variable)
    }

    /// The variable or the type that it is a member of.
    pub(super) fn object(&self) -> Option<&str> {
        self.variable().rsplit_once('.').map(|(object, _)| object)
    }

    /// Whether it is the declaration of the variable that a line is about.
    pub(super) fn is_of(&self, variable: &str) -> bool {
        self.of.iter().any(|(name, _)| name == variable)
    }

    fn comment(&self) -> String {
        let said: Vec<String> =
            self.of.iter().map(|(name, said)| format!("{name}: {said}")).collect();
        format!(" /* {} */", said.join(" | ").replace("*/", "* /"))
    }
}

/// What a function demands of its callers, on declarations of its own.
pub(super) struct Function {
    /// `SELVEDGE_REQUIRES(lock)`, one behind the other; nothing if all were taken back.
    pub(super) attributes: String,
    /// The declaration up to its attributes.
    pub(super) declarator: String,
    pub(super) places: Vec<(PathBuf, usize, Style)>,
}

/// How a function's attributes are written at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Style {
    /// A declaration behind another one, or before the definition.
    Behind,
    Before,
    /// In the declaration itself: that of a member function cannot be repeated.
    Inside,
}

/// The lock counts as held in a function: it runs before threads are started, or after they are joined.
pub(super) struct Alone {
    pub(super) file: PathBuf,
    /// The byte behind the brace of the function.
    pub(super) at: usize,
    pub(super) lock: String,
}

impl Annotations {
    /// Of the variables that are shown. `clang` chooses attributes, in this form, where clang can say the same.
    pub(super) fn new(
        program: &Path,
        roots: &[PathBuf],
        lines: &[Line],
        shown: impl Fn(&Line) -> bool,
        clang: Option<MemberForm>,
    ) -> Annotations {
        let roots = roots.iter().filter_map(|r| fs::canonicalize(r).ok()).collect();
        let mut annotations = Annotations {
            program: program.to_owned(),
            roots,
            sources: BTreeMap::new(),
            items: Vec::new(),
            remarks: Vec::new(),
        };
        let declarations = Declarations::open(program);
        let mut variables: BTreeMap<(PathBuf, usize, String), Vec<&Line>> = BTreeMap::new();
        for line in lines {
            let Some(declared) = declarations.of(&line.variable) else { continue };
            let Ok(file) = fs::canonicalize(&declared.file) else { continue };
            let name = line.variable.rsplit(['.', ':']).next().unwrap_or(&line.variable);
            let key = (file, declared.line as usize, name.trim_end_matches("[]").to_owned());
            variables.entry(key).or_default().push(line);
        }
        for ((file, line, name), of) in variables {
            if !of.iter().any(|line| shown(line)) || annotations.source(&file).is_none() {
                continue;
            }
            let guard = clang.and_then(|form| common_guard(&of, &declarations, form));
            let said = |line: &&Line| (line.variable.clone(), in_words(line));
            let of = of.iter().map(said).collect();
            let mut variable = Variable { file, line, name, of, guard };
            let hidden = |g: &Guard| {
                later(g, &variable)
                    .is_some_and(|l| annotations.declared_ahead(g, &variable.file, l).is_none())
            };
            if variable.guard.as_ref().is_some_and(hidden) {
                variable.guard = None;
            }
            annotations.items.push(Item { what: What::Variable(variable), dropped: false });
        }
        annotations
    }

    /// A source that may be annotated, and its code without comments and strings.
    pub(super) fn source(&mut self, path: &Path) -> Option<&(Source, String)> {
        if !self.sources.contains_key(path) {
            if !self.roots.iter().any(|root| path.starts_with(root)) {
                self.remark(path, "is not below this directory (name others with --source)");
                return None;
            }
            match Source::read(path, &self.program) {
                Ok(source) => {
                    let code = text::blanked(&source.text);
                    self.sources.insert(path.to_owned(), (source, code));
                }
                Err(why) => {
                    self.remark(path, &why);
                    return None;
                }
            }
        }
        self.sources.get(path)
    }

    fn remark(&mut self, path: &Path, why: &str) {
        let remark = format!("warning: {}: {why}, so it is not annotated", path.display());
        let systems = path.starts_with("/usr");
        if !systems && !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// A source that is known already.
    pub(super) fn known(&self, path: &Path) -> Option<&Source> {
        self.sources.get(path).map(|(source, _)| source)
    }

    /// The code of all sources that are known, without comments and strings.
    pub(super) fn codes(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.sources.iter().map(|(path, (_, code))| (path.as_path(), code.as_str()))
    }

    /// What a structure is called of which a member with an attribute is declared on a line.
    pub(super) fn object_at(&self, file: &Path, line: usize) -> Option<&str> {
        self.items.iter().find_map(|item| match &item.what {
            What::Variable(v) if v.file == file && v.line == line => v.object(),
            What::Variable(_) | What::Function(_) | What::Alone(_) => None,
        })
    }

    /// The attribute of a variable that was not taken back.
    pub(super) fn attribute(&self, variable: &str) -> Option<String> {
        let has = |item: &&Item| match &item.what {
            What::Variable(v) => !item.dropped && v.is_of(variable),
            What::Function(_) | What::Alone(_) => false,
        };
        self.items.iter().find(has).and_then(|item| match &item.what {
            What::Variable(v) => v.guard.as_ref().map(Guard::attribute),
            What::Function(_) | What::Alone(_) => None,
        })
    }

    /// Puts all annotations into the sources.
    pub(super) fn apply(&mut self) {
        let mut insertions: BTreeMap<PathBuf, Vec<(usize, String, usize)>> = BTreeMap::new();
        for (number, item) in self.items.iter().enumerate() {
            for (path, at, text) in self.insertions(item) {
                insertions.entry(path).or_default().push((at, text, number));
            }
        }
        self.sources.values_mut().for_each(|(source, _)| source.reset());
        for (path, all) in insertions {
            let Some((source, code)) = self.sources.get_mut(&path) else { continue };
            let uses = |(_, text, _): &&(usize, String, usize)| text.contains("SELVEDGE_");
            let first = all.iter().filter(uses).map(|(at, _, _)| *at).min();
            if let Some(first) = first.filter(|_| !source.text.contains("<selvedge.h>")) {
                let at = text::behind_includes(&source.text, code, first);
                source.insert(at, "#include <selvedge.h>\n".to_owned(), INCLUDE);
            }
            all.into_iter().for_each(|(at, text, by)| source.insert(at, text, by));
        }
    }

    fn insertions(&self, item: &Item) -> Vec<(PathBuf, usize, String)> {
        match &item.what {
            What::Variable(variable) => self.of_variable(variable, item.dropped),
            What::Function(_) | What::Alone(_) if item.dropped => Vec::new(),
            What::Function(function) if function.attributes.is_empty() => Vec::new(),
            What::Function(function) => {
                let Function { attributes, declarator, places } = function;
                let text = |style| match style {
                    Style::Behind => format!("\n{declarator} {attributes};"),
                    Style::Before => format!("{declarator} {attributes};\n"),
                    Style::Inside => format!(" {attributes}"),
                };
                places.iter().map(|(path, at, style)| (path.clone(), *at, text(*style))).collect()
            }
            What::Alone(alone) => {
                let Some((source, _)) = self.sources.get(&alone.file) else { return Vec::new() };
                let rest = &source.text[alone.at..];
                let line_ends = rest.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
                let indent: String = match rest.find('\n') {
                    Some(end) => {
                        rest[end + 1..].chars().take_while(|c| " \t".contains(*c)).collect()
                    }
                    None => String::new(),
                };
                let text = match line_ends {
                    true => format!("\n{indent}SELVEDGE_ALONE({})", alone.lock),
                    false => format!(" SELVEDGE_ALONE({})", alone.lock),
                };
                vec![(alone.file.clone(), alone.at, text)]
            }
        }
    }

    fn of_variable(&self, of: &Variable, dropped: bool) -> Vec<(PathBuf, usize, String)> {
        let Some((source, code)) = self.sources.get(&of.file) else { return Vec::new() };
        let Some(start) = source.line_start(of.line) else { return Vec::new() };
        if let Some(guard) = of.guard.as_ref().filter(|_| !dropped) {
            let attribute = format!(" SELVEDGE_GUARDED_BY({})", guard.spelled);
            let at = text::behind_declarator(code, start, &of.name);
            let ahead = match later(guard, of) {
                Some(line) => self.declared_ahead(guard, &of.file, line).map(|text| vec![text]),
                None => Some(Vec::new()),
            };
            if let (Some(at), Some(ahead)) = (at, ahead) {
                let ahead = ahead.into_iter().map(|text| (of.file.clone(), start, text));
                return ahead.chain([(of.file.clone(), at, attribute)]).collect();
            }
        }
        let end = text::end_of_line(&source.text, code, start);
        end.map(|at| (of.file.clone(), at, of.comment())).into_iter().collect()
    }

    /// A declaration of a lock in front of a variable that comes before the lock. C lets a definition with internal
    /// linkage follow one without a value, C++ does not.
    fn declared_ahead(&self, guard: &Guard, file: &Path, line: usize) -> Option<String> {
        let declared = guard.declared.as_ref()?;
        let (source, code) = self.sources.get(file)?;
        let rest = &code[source.line_start(line)?..];
        let text = &rest[..rest.find([';', '=', '\n']).unwrap_or(rest.len())];
        let internal = text::words(text, "static").next().is_some();
        let word = match internal {
            true if declared.cxx => return None,
            true => "static",
            false => "extern",
        };
        let star = if declared.pointer { "*" } else { "" };
        Some(format!("{word} {} {star}{};\n", declared.of.as_deref()?, guard.lock))
    }

    /// Writes copies of the sources that have annotations, never over the sources themselves.
    pub(super) fn copy(&self, directory: &Path) -> Result<(), Failure> {
        for (source, _) in self.sources.values().filter(|(s, _)| s.is_changed()) {
            let to = directory.join(self.relative(&source.path));
            self.refuse(&to)?;
            let wrong = |error| Failure::Write { path: to.clone(), error };
            fs::create_dir_all(to.parent().unwrap_or(directory)).map_err(wrong)?;
            fs::write(&to, source.edited()).map_err(wrong)?;
        }
        Ok(())
    }

    /// Refuses to write over a source.
    fn refuse(&self, to: &Path) -> Result<(), Failure> {
        match fs::canonicalize(to).is_ok_and(|to| self.sources.contains_key(&to)) {
            true => {
                let why =
                    format!("{}: this is a source itself; write to another place", to.display());
                Err(Failure::Usage(why))
            }
            false => Ok(()),
        }
    }

    /// Writes the annotations as a unified diff.
    pub(super) fn patch(&self, path: &Path) -> Result<(), Failure> {
        self.refuse(path)?;
        let changed = self.sources.values().map(|(s, _)| s).filter(|s| s.is_changed());
        let text: String = changed.map(|s| s.patch(&self.relative(&s.path))).collect();
        fs::write(path, text).map_err(|error| Failure::Write { path: path.to_owned(), error })
    }

    /// The path below a root.
    pub(super) fn relative(&self, path: &Path) -> PathBuf {
        let below = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        below.unwrap_or(path).to_owned()
    }

    /// The new text of every source with annotations.
    pub(super) fn edited(&self) -> impl Iterator<Item = (&Path, String)> {
        let changed = self.sources.values().map(|(s, _)| s).filter(|s| s.is_changed());
        changed.map(|s| (s.path.as_path(), s.edited()))
    }
}

/// The line of a lock with static storage that is declared in the same file behind the variable.
fn later(guard: &Guard, of: &Variable) -> Option<usize> {
    let declared = guard.declared.as_ref().filter(|_| !guard.inside)?;
    let same = fs::canonicalize(&declared.file).is_ok_and(|file| file == of.file);
    let line = declared.line as usize;
    (same && line > of.line && !of.variable().contains(['.', ':'])).then_some(line)
}

/// The lock that guards all variables of one declaration that threads share.
fn common_guard(of: &[&Line], declarations: &Declarations, form: MemberForm) -> Option<Guard> {
    let mut shared = of.iter().filter(|line| !is_local(line));
    let first = Guard::of(shared.next()?, Some(declarations), form)?;
    let same = |line: &&Line| {
        Guard::of(line, Some(declarations), form).is_some_and(|g| g.spelled == first.spelled)
    };
    shared.all(same).then_some(first)
}

fn in_words(line: &Line) -> String {
    match line.all() {
        Some(discipline) => discipline.to_string(),
        None => "a data race".to_owned(),
    }
}
