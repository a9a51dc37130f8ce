//! Stars as a diff of the sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_specs::ndseq::infer::Placement;

use super::super::edits::Source;
use crate::exit::Failure;

const HEADER: &str = "#include <selvedge.h>";

/// A unified diff that puts stars into the sources, below a root, of a program.
pub(super) fn diff(stars: &[Placement], root: &Path, program: &Path) -> Result<String, Failure> {
    let mut sources: BTreeMap<PathBuf, Source> = BTreeMap::new();
    for (number, star) in stars.iter().enumerate() {
        let name = PathBuf::from(&*star.first.file);
        let wrong = |why: String| Failure::Undecided(format!("{}: {why}", name.display()));
        if !sources.contains_key(&name) {
            let source = Source::read(&root.join(&name), program).map_err(wrong)?;
            sources.insert(name.clone(), source);
        }
        let Some(source) = sources.get_mut(&name) else { continue };
        let (first, last) = (star.first.first_line as usize, star.last.last_line as usize);
        let lines: Vec<&str> = source.text.lines().skip(first - 1).take(last + 1 - first).collect();
        if !stand_alone(&lines) {
            return Err(wrong(format!(
                "the statements of lines {first} to {last} share their lines with other code; put each on lines of its own, or use --not {}:{first}-{last}",
                name.display()
            )));
        }
        let indent = lines[0].len() - lines[0].trim_start().len();
        let indent = lines[0][..indent].to_owned();
        let end = source.line_start(last + 1).unwrap_or(source.text.len());
        let Some(start) = source.line_start(first) else { continue };
        let label = format!("{}:{first}", star.first.function);
        source.insert(start, format!("{indent}SELVEDGE_STAR_BLOCK(\"{label}\") {{\n"), number);
        source.insert(end, format!("{indent}}}\n"), number);
    }
    for source in sources.values_mut() {
        if !source.text.lines().any(|l| l.trim() == HEADER) {
            source.insert(0, format!("{HEADER}\n"), stars.len());
        }
    }
    Ok(sources.iter().map(|(name, source)| source.patch(name)).collect())
}

/// Whether braces and parentheses open and close within the lines.
fn stand_alone(lines: &[&str]) -> bool {
    let mut depth = 0;
    for line in lines {
        let code = line.split("//").next().unwrap_or_default();
        let (mut quoted, mut escaped) = (None, false);
        for c in code.chars() {
            match (quoted, c) {
                _ if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(quote), _) if c == quote => quoted = None,
                (None, '"' | '\'') => quoted = Some(c),
                (None, '{' | '(') => depth += 1,
                (None, '}' | ')') => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                return false;
            }
        }
    }
    depth == 0 && !lines.is_empty()
}

#[cfg(test)]
mod tests {
    use super::stand_alone;

    #[test]
    fn lines_that_belong_to_other_code_too_do_not_stand_alone() {
        assert!(stand_alone(&["if (a) {", "  b(\"}\", '{');", "} // }"]));
        assert!(!stand_alone(&["} else {", "  b();", "}"]));
        assert!(!stand_alone(&["while (a) {", "  b();"]));
        assert!(!stand_alone(&["b(); }"]));
    }
}
