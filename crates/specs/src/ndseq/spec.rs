//! A specification of parallelism as a file: what the result is, what the tasks are, where the stars are.
//!
//! ```text
//! # selvedge ndseq 1
//! focus best
//! tasks expand*
//! star search.c:14-17 in expand
//! ```
//!
//! A line that begins with `#` is a comment, except that the first one may name the version of the form. A reader
//! refuses a newer one.

use std::fmt;

use selvedge_model::Symbols;

use super::execution::Execution;
use super::runs::{Observed, Run, Source, Statement};
use super::stars::Stars;

/// The version that is written.
pub const VERSION: u32 = 1;
const HEAD: &str = "# selvedge ndseq ";

/// A specification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Specification {
    /// Globals that are the result.
    pub focus: Vec<String>,
    /// Functions each call of which is a task, by patterns; if there are none, threads are the tasks.
    pub tasks: Vec<String>,
    /// Lines of functions that a sequential execution may leave out.
    pub stars: Vec<Statement>,
}

/// Why a text is no specification.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs)]
#[error("line {line}, column {column}: {why}")]
pub struct Wrong {
    pub line: usize,
    pub column: usize,
    pub why: String,
}

impl Specification {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Specification, Wrong> {
        let mut found = Specification::default();
        for (i, whole) in text.lines().enumerate() {
            let line = whole.trim_end();
            let wrong = |part: &str, why: String| {
                let column = part.as_ptr() as usize - whole.as_ptr() as usize;
                Wrong { line: i + 1, column: whole[..column].chars().count() + 1, why }
            };
            if i == 0
                && let Some(version) = line.strip_prefix(HEAD)
            {
                match version.parse::<u32>() {
                    Ok(1..=VERSION) => {}
                    Ok(newer) => {
                        let why = format!(
                            "the file has version {newer}, and this selvedge knows {VERSION}; use a newer selvedge, or infer it again"
                        );
                        return Err(wrong(version, why));
                    }
                    Err(_) => {
                        return Err(wrong(version, "expected the number of a version".to_owned()));
                    }
                }
            }
            let line = line.trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, &line[line.len()..]));
            let rest = rest.trim_start();
            match word {
                "focus" if !rest.is_empty() => found.focus.push(rest.to_owned()),
                "focus" => return Err(wrong(rest, "expected the name of a global".to_owned())),
                "tasks" if !rest.is_empty() => found.tasks.push(rest.to_owned()),
                "tasks" => return Err(wrong(rest, "expected the name of a function".to_owned())),
                "star" => found.stars.push(star(rest).ok_or_else(|| {
                    wrong(rest, "expected FILE:FIRST-LAST in FUNCTION".to_owned())
                })?),
                _ => {
                    let why = format!(
                        "`{word}` is not known; a line begins with `focus`, `tasks`, `star` or `#`"
                    );
                    return Err(wrong(word, why));
                }
            }
        }
        Ok(found)
    }

    /// The stars in an execution whose statements are regions. The error is the label of a region that is marked as a
    /// statement but is none.
    pub fn place(
        &self,
        execution: Execution,
        symbols: &Symbols,
    ) -> Result<(Execution, Stars), String> {
        let mut source = Source::default();
        let of = source.add(&execution, symbols)?;
        let placed = source.settle();
        let runs: Vec<Run> = self.stars.iter().flat_map(|star| source.inside(star)).collect();
        let observed = Observed::new(execution, &of, &placed);
        let stars = observed.stars(&runs);
        Ok((observed.execution, stars))
    }
}

fn star(text: &str) -> Option<Statement> {
    let (place, function) = text.split_once(" in ")?;
    Statement::parse(&format!("{place} {}", function.trim()))
}

impl fmt::Display for Specification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}{VERSION}")?;
        self.focus.iter().try_for_each(|name| writeln!(f, "focus {name}"))?;
        self.tasks.iter().try_for_each(|pattern| writeln!(f, "tasks {pattern}"))?;
        self.stars.iter().try_for_each(|star| {
            let Statement { file, first_line, last_line, function } = star;
            writeln!(f, "star {file}:{first_line}-{last_line} in {function}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        // The name of a file may have spaces in it.
        let text = "# selvedge ndseq 1\nfocus best\ntasks expand*\nstar a b.c:3-5 in expand\n";
        let spec = Specification::parse(text).unwrap();
        assert_eq!((&*spec.stars[0].file, &*spec.stars[0].function), ("a b.c", "expand"));
        assert_eq!(spec.to_string(), text);
        assert_eq!(Specification::parse(&spec.to_string()), Ok(spec));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, line, column, why) in [
            ("focus best\nstern a.c:1-2 in f\n", 2, 1, "`stern` is not known"),
            ("  star a.c:1 f\n", 1, 8, "expected FILE:FIRST-LAST in FUNCTION"),
            ("star a.c:5-2 in f\n", 1, 6, "expected FILE:FIRST-LAST in FUNCTION"),
            ("focus\n", 1, 6, "expected the name of a global"),
            ("tasks \n", 1, 6, "expected the name of a function"),
            ("# selvedge ndseq 7\n", 1, 18, "the file has version 7"),
        ] {
            let wrong = Specification::parse(text).unwrap_err();
            assert_eq!((wrong.line, wrong.column), (line, column), "{text:?}: {wrong}");
            assert!(wrong.why.starts_with(why), "{wrong}");
        }
    }
}
