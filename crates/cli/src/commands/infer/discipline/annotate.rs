//! Writes disciplines beside the declarations of variables: as comments, or as attributes that clang checks.
//!
//! The user's sources are read only; what is written goes to a directory of its own or into a patch.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_specs::discipline::merge::Line;

use super::{native, show};
use crate::args::InferDiscipline;
use crate::exit::Failure;
use crate::program::elf::Program;
use crate::program::symbolize::Symbolizer;

/// Lines of a patch around a change.
const CONTEXT: usize = 3;

/// A source file and its lines, with the changed ones.
struct Source {
    path: PathBuf,
    old: Vec<String>,
    /// By the number of the line, from 0.
    new: BTreeMap<usize, String>,
    /// Lines to put in front of the file.
    head: Vec<String>,
}

/// Writes the annotated sources, and returns what the user should know.
pub(super) fn write(lines: &[Line], args: &InferDiscipline) -> Result<Vec<String>, Failure> {
    let program = Program::find(Path::new(&args.command[0])).map_err(Failure::Program)?;
    let root = native::root()?;
    let mut remarks = Vec::new();
    let mut sources: BTreeMap<PathBuf, Source> = BTreeMap::new();
    for line in lines {
        let declared = Symbolizer::declaration(&program.path, &line.variable);
        let Some((path, number)) = declared.filter(|(_, number)| *number > 0) else { continue };
        let source = match sources.entry(path.clone()) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => match read(&path, &program.path) {
                Ok(source) => entry.insert(source),
                Err(why) => {
                    let remark =
                        format!("warning: {}: {why}, so it is not annotated", path.display());
                    if !remarks.contains(&remark) {
                        remarks.push(remark);
                    }
                    continue;
                }
            },
        };
        source.annotate(line, number as usize - 1, args.clang);
    }
    let changed: Vec<&Source> = sources.values().filter(|s| !s.new.is_empty()).collect();
    if let Some(directory) = &args.annotate {
        for source in &changed {
            copy(source, directory, &root)?;
        }
    }
    if let Some(path) = &args.patch {
        let text: String = changed.iter().map(|s| s.patch(&root)).collect();
        let wrong = |error| Failure::Write { path: path.clone(), error };
        fs::write(path, text).map_err(wrong)?;
    }
    Ok(remarks)
}

fn read(path: &Path, program: &Path) -> Result<Source, String> {
    let modified = |path: &Path| fs::metadata(path).and_then(|m| m.modified());
    let text = fs::read_to_string(path).map_err(|error| format!("cannot be read ({error})"))?;
    if let (Ok(source), Ok(built)) = (modified(path), modified(program))
        && source > built
    {
        return Err("it has changed since the program was built".to_owned());
    }
    let old = text.split_inclusive('\n').map(str::to_owned).collect();
    Ok(Source { path: path.to_owned(), old, new: BTreeMap::new(), head: Vec::new() })
}

/// Writes the annotated copy of a source, never over the source itself.
fn copy(source: &Source, directory: &Path, root: &Path) -> Result<(), Failure> {
    let to = directory.join(relative(&source.path, root));
    if fs::canonicalize(&to).is_ok_and(|to| fs::canonicalize(&source.path).is_ok_and(|s| s == to)) {
        let why = format!("{}: this is the source itself; name another directory", to.display());
        return Err(Failure::Usage(why));
    }
    let wrong = |error| Failure::Write { path: to.clone(), error };
    fs::create_dir_all(to.parent().unwrap_or(directory)).map_err(wrong)?;
    fs::write(&to, source.text()).map_err(wrong)
}

/// The path below the root, or the name alone of a file elsewhere.
fn relative(path: &Path, root: &Path) -> PathBuf {
    match path.strip_prefix(root) {
        Ok(below) => below.to_owned(),
        Err(_) => PathBuf::from(path.file_name().unwrap_or_default()),
    }
}

impl Source {
    fn annotate(&mut self, line: &Line, number: usize, clang: bool) {
        let Some(old) = self.old.get(number) else { return };
        let text = self.new.get(&number).unwrap_or(old).clone();
        let name = line.variable.rsplit(['.', ':']).next().unwrap_or(&line.variable);
        let attribute = show::clang(line).filter(|_| clang);
        let changed = match attribute.as_deref().and_then(|a| with_attribute(&text, name, a)) {
            Some(changed) => {
                if self.head.is_empty() && !self.old.iter().any(|l| l.contains("<selvedge.h>")) {
                    self.head.push("#include <selvedge.h>\n".to_owned());
                }
                changed
            }
            None => with_comment(&text, line),
        };
        self.new.insert(number, changed);
    }

    fn text(&self) -> String {
        let lines = self.old.iter().enumerate().map(|(i, old)| self.new.get(&i).unwrap_or(old));
        self.head.iter().chain(lines).map(String::as_str).collect()
    }

    /// The changes as a unified diff.
    fn patch(&self, root: &Path) -> String {
        let name = relative(&self.path, root);
        let mut text = format!("--- a/{0}\n+++ b/{0}\n", name.display());
        let mut changes: Vec<usize> = self.new.keys().copied().collect();
        if !self.head.is_empty() {
            changes.insert(0, 0);
        }
        let mut next = 0;
        while next < changes.len() {
            let from = changes[next].saturating_sub(CONTEXT);
            let mut to = changes[next] + CONTEXT + 1;
            while next < changes.len() && changes[next] < to + CONTEXT {
                to = changes[next] + CONTEXT + 1;
                next += 1;
            }
            self.hunk(from, to.min(self.old.len()), &mut text);
        }
        text
    }

    fn hunk(&self, from: usize, to: usize, text: &mut String) {
        let head = if from == 0 { &self.head[..] } else { &[] };
        let shift = if from == 0 { 0 } else { self.head.len() };
        let (old, new) = (to - from, to - from + head.len());
        let _ = writeln!(text, "@@ -{},{old} +{},{new} @@", from + 1, from + 1 + shift);
        head.iter().for_each(|line| push(text, '+', line));
        for i in from..to {
            match self.new.get(&i) {
                Some(new) => {
                    push(text, '-', &self.old[i]);
                    push(text, '+', new);
                }
                None => push(text, ' ', &self.old[i]),
            }
        }
    }
}

fn push(text: &mut String, sign: char, line: &str) {
    text.push(sign);
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// The line with an attribute behind a declared name and its dimensions.
fn with_attribute(line: &str, name: &str, attribute: &str) -> Option<String> {
    let inner = attribute.strip_prefix("guarded_by(")?.strip_suffix(')')?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |at: &usize| {
        let before = line[..*at].chars().next_back().is_none_or(|c| !is_word(c));
        before && line[at + name.len()..].chars().next().is_none_or(|c| !is_word(c))
    };
    let at = line.match_indices(name).map(|(at, _)| at).filter(whole).last()?;
    let mut end = at + name.len();
    while line[end..].trim_start().starts_with('[') {
        end += line[end..].find(']')? + 1;
    }
    Some(format!("{} SELVEDGE_GUARDED_BY({inner}){}", &line[..end], &line[end..]))
}

/// The line with a comment at its end.
fn with_comment(line: &str, of: &Line) -> String {
    let (text, end) = match line.strip_suffix('\n') {
        Some(text) => (text, "\n"),
        None => (line, ""),
    };
    let said = match of.all() {
        Some(discipline) => discipline.to_string(),
        None => "a data race".to_owned(),
    };
    format!("{text} /* {}: {} */{end}", of.variable, said.replace("*/", "* /"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_stands_behind_the_declared_name() {
        let with = |line, name| with_attribute(line, name, "guarded_by(m)").unwrap();
        assert_eq!(with("int x;\n", "x"), "int x SELVEDGE_GUARDED_BY(m);\n");
        assert_eq!(
            with("long hits, miss = 3;", "hits"),
            "long hits SELVEDGE_GUARDED_BY(m), miss = 3;"
        );
        assert_eq!(with("int table[4][2];", "table"), "int table[4][2] SELVEDGE_GUARDED_BY(m);");
        assert_eq!(with_attribute("int xx;", "x", "guarded_by(m)"), None);
    }

    #[test]
    fn a_patch_has_hunks_with_context() {
        let old: Vec<String> = (1..=20).map(|i| format!("line {i}\n")).collect();
        let mut source = Source {
            path: "/p/a.c".into(),
            old,
            new: BTreeMap::from([(9, "new\n".to_owned())]),
            head: vec!["#include <selvedge.h>\n".to_owned()],
        };
        let patch = source.patch(Path::new("/p"));
        assert!(patch.starts_with("--- a/a.c\n+++ b/a.c\n@@ -1,4 +1,5 @@\n+#include"), "{patch}");
        assert!(
            patch.contains("@@ -7,7 +8,7 @@\n line 7\n line 8\n line 9\n-line 10\n+new\n"),
            "{patch}"
        );
        source.head.clear();
        assert_eq!(source.patch(Path::new("/p")).matches("@@ -").count(), 1);
    }
}
