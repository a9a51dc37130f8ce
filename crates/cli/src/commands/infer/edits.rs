//! Insertions into a source file: the new text, the same as a unified diff, and which place of the new text is
//! which place of the old one. Nothing is ever removed from a source.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a diff around a change.
const CONTEXT: usize = 3;

/// A source file.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// In the order of their places; those at one place in the order in which they were made.
    insertions: Vec<Insertion>,
}

/// A text that is put before a byte of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Insertion {
    at: usize,
    text: String,
    /// A number that the caller knows the insertion by.
    by: usize,
}

/// A place of the new text, in the old one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Origin {
    /// The byte of the old text, or the one after an insertion.
    pub(super) offset: usize,
    /// The insertion that it lies in.
    pub(super) inserted: Option<usize>,
}

impl Source {
    /// Reads a source of a program, unless it has changed since the program was built.
    pub(super) fn read(path: &Path, program: &Path) -> Result<Source, String> {
        let modified = |path: &Path| fs::metadata(path).and_then(|m| m.modified());
        let text = fs::read_to_string(path).map_err(|error| format!("cannot be read ({error})"))?;
        if let (Ok(source), Ok(built)) = (modified(path), modified(program))
            && source > built
        {
            return Err("it has changed since the program was built".to_owned());
        }
        Ok(Source { path: path.to_owned(), text, insertions: Vec::new() })
    }

    /// The source as it was.
    pub(super) fn reset(&mut self) {
        self.insertions.clear();
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.insertions.is_empty()
    }

    /// Puts a text before a byte.
    pub(super) fn insert(&mut self, at: usize, text: String, by: usize) {
        let after = self.insertions.partition_point(|i| i.at <= at);
        self.insertions.insert(after, Insertion { at, text, by });
    }

    /// Where a line begins, from 1.
    pub(super) fn line_start(&self, line: usize) -> Option<usize> {
        line_start(&self.text, line)
    }

    /// The line and column of a byte, from 1.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..offset.min(self.text.len())];
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, offset - start + 1)
    }

    /// The new text.
    pub(super) fn edited(&self) -> String {
        let mut text = String::new();
        let mut from = 0;
        for insertion in &self.insertions {
            text.push_str(&self.text[from..insertion.at]);
            text.push_str(&insertion.text);
            from = insertion.at;
        }
        text.push_str(&self.text[from..]);
        text
    }

    /// Where a place of the new text, by line and column from 1, is in the old one.
    pub(super) fn origin(&self, line: usize, column: usize) -> Option<Origin> {
        let at = line_start(&self.edited(), line)? + column.saturating_sub(1);
        let mut inserted = 0;
        for insertion in &self.insertions {
            let from = insertion.at + inserted;
            if at < from {
                break;
            }
            if at < from + insertion.text.len() {
                return Some(Origin { offset: insertion.at, inserted: Some(insertion.by) });
            }
            inserted += insertion.text.len();
        }
        Some(Origin { offset: at - inserted, inserted: None })
    }

    /// The insertions into a line of the old text, from 1.
    pub(super) fn inserted_in(&self, line: usize) -> impl Iterator<Item = usize> {
        let start = line_start(&self.text, line).unwrap_or(usize::MAX);
        let end = line_start(&self.text, line + 1).unwrap_or(self.text.len() + 1);
        let inside = move |i: &&Insertion| (start..end).contains(&i.at);
        self.insertions.iter().filter(inside).map(|i| i.by)
    }

    /// The changes as a unified diff, in which the file has this name.
    pub(super) fn patch(&self, name: &Path) -> String {
        let old: Vec<&str> = self.text.split_inclusive('\n').collect();
        let new = self.new_lines(&old);
        let changes: Vec<usize> =
            (0..old.len()).filter(|&i| new[i].as_slice() != [old[i]]).collect();
        let mut text = format!("--- a/{0}\n+++ b/{0}\n", name.display());
        let (mut next, mut shift) = (0, 0);
        while next < changes.len() {
            let from = changes[next].saturating_sub(CONTEXT);
            let mut to = changes[next] + CONTEXT + 1;
            while next < changes.len() && changes[next] < to + CONTEXT {
                to = changes[next] + CONTEXT + 1;
                next += 1;
            }
            let to = to.min(old.len());
            let written: usize = new[from..to].iter().map(Vec::len).sum();
            let start = from + 1;
            let _ = writeln!(text, "@@ -{start},{} +{},{written} @@", to - from, start + shift);
            (from..to).for_each(|i| hunk_line(&mut text, old[i], &new[i]));
            shift += written - (to - from);
        }
        text
    }

    /// What each old line has become.
    fn new_lines(&self, old: &[&str]) -> Vec<Vec<String>> {
        let mut insertions = self.insertions.iter().peekable();
        let mut start = 0;
        let mut lines = Vec::new();
        for (i, line) in old.iter().enumerate() {
            let last = i + 1 == old.len();
            let mut text = String::new();
            let mut from = 0;
            while let Some(next) = insertions.next_if(|n| n.at < start + line.len() || last) {
                text.push_str(&line[from..next.at - start]);
                text.push_str(&next.text);
                from = next.at - start;
            }
            text.push_str(&line[from..]);
            lines.push(text.split_inclusive('\n').map(str::to_owned).collect());
            start += line.len();
        }
        lines
    }
}

fn line_start(text: &str, line: usize) -> Option<usize> {
    match line.checked_sub(1)? {
        0 => Some(0),
        before => text.match_indices('\n').nth(before - 1).map(|(i, _)| i + 1),
    }
}

/// A line of a hunk. Lines before and after an unchanged one are added.
fn hunk_line(text: &mut String, old: &str, new: &[String]) {
    let kept = new.iter().position(|line| line == old);
    if kept.is_none() {
        push(text, '-', old);
    }
    for (i, line) in new.iter().enumerate() {
        push(text, if Some(i) == kept { ' ' } else { '+' }, line);
    }
}

fn push(text: &mut String, sign: char, line: &str) {
    text.push(sign);
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { path: "/p/a.c".into(), text: text.to_owned(), insertions: Vec::new() }
    }

    #[test]
    fn a_diff_has_hunks_with_context() {
        let mut source = source(&(1..=20).map(|i| format!("line {i}\n")).collect::<String>());
        source.insert(0, "#include <selvedge.h>\n".to_owned(), 0);
        source.insert(source.line_start(10).unwrap() + 4, " new".to_owned(), 1);
        let patch = source.patch(Path::new("a.c"));
        assert!(patch.starts_with("--- a/a.c\n+++ b/a.c\n@@ -1,4 +1,5 @@\n+#include"), "{patch}");
        let second = "@@ -7,7 +8,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line new 10\n";
        assert!(patch.contains(second), "{patch}");
    }

    #[test]
    fn places_of_the_new_text_are_found_in_the_old_one() {
        let mut source = source("int x;\nint y;\n");
        source.insert(0, "#include <selvedge.h>\n".to_owned(), 7);
        source.insert(12, " GUARDED".to_owned(), 8);
        assert_eq!(source.edited(), "#include <selvedge.h>\nint x;\nint y GUARDED;\n");
        let at = |line, column| source.origin(line, column).unwrap();
        assert_eq!(at(1, 3), Origin { offset: 0, inserted: Some(7) });
        assert_eq!(at(2, 5), Origin { offset: 4, inserted: None });
        assert_eq!(at(3, 7), Origin { offset: 12, inserted: Some(8) });
        assert_eq!(at(3, 14), Origin { offset: 12, inserted: None });
        assert_eq!(source.position(12), (2, 6));
        assert_eq!(source.inserted_in(2).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let mut source = source("a\nb");
        source.insert(3, " c".to_owned(), 0);
        let end = "\n\\ No newline at end of file\n";
        assert!(source.patch(Path::new("x")).ends_with(&format!("-b{end}+b c{end}")));
    }
}
