//! Where in the text of a C or C++ source something can be written: behind a declared name, at the end of a line,
//! behind a statement, behind the includes.

/// The text with the same length and lines, in which comments, strings and characters are blanks.
pub(super) fn blanked(text: &str) -> String {
    #[derive(PartialEq)]
    enum In {
        Code,
        Line,
        Block,
        Quoted(u8),
    }
    let mut bytes = text.as_bytes().to_vec();
    let mut state = In::Code;
    let mut i = 0;
    while i < bytes.len() {
        let (now, next) = (bytes[i], bytes.get(i + 1).copied().unwrap_or(0));
        let mut blank = state != In::Code;
        let mut width = 1;
        match state {
            In::Code => match (now, next) {
                (b'/', b'/') => (state, blank) = (In::Line, true),
                (b'/', b'*') => (state, blank, width) = (In::Block, true, 2),
                (b'"' | b'\'', _) => (state, blank) = (In::Quoted(now), true),
                _ => {}
            },
            In::Line => match (now, next) {
                (b'\\', b'\n') => width = 2,
                (b'\n', _) => state = In::Code,
                _ => {}
            },
            In::Block => {
                if (now, next) == (b'*', b'/') {
                    (state, width) = (In::Code, 2);
                }
            }
            In::Quoted(quote) => match now {
                b'\\' => width = 2,
                b'\n' => state = In::Code,
                _ if now == quote => state = In::Code,
                _ => {}
            },
        }
        for byte in bytes.iter_mut().skip(i).take(width).filter(|b| blank && **b != b'\n') {
            *byte = b' ';
        }
        i += width;
    }
    // Whole characters became blanks, or none of their bytes did.
    String::from_utf8(bytes).unwrap_or_default()
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// Where a word begins in a text, each time.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    let whole = move |&at: &usize| {
        let before = at.checked_sub(1).is_none_or(|i| !is_word(bytes[i]));
        before && bytes.get(at + word.len()).is_none_or(|&c| !is_word(c))
    };
    text.match_indices(word).map(|(at, _)| at).filter(whole)
}

/// The byte after the bracket that closes the one at a byte.
fn closed(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, c) in code.bytes().enumerate().skip(open) {
        match c {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The first byte that is no blank.
fn skipped(code: &str, from: usize) -> usize {
    let rest = &code[from.min(code.len())..];
    code.len() - rest.trim_start().len()
}

/// Where an attribute of a variable goes, which is declared on the line that begins at a byte of the code: behind
/// its name, dimensions, parameters and width.
pub(super) fn behind_declarator(code: &str, line: usize, name: &str) -> Option<usize> {
    let end = code[line..].find('\n').map_or(code.len(), |i| line + i);
    words(&code[line..end], name).find_map(|at| declarator_end(code, line + at + name.len()))
}

fn declarator_end(code: &str, mut end: usize) -> Option<usize> {
    loop {
        let next = skipped(code, end);
        match code.as_bytes().get(next)? {
            b'[' => end = closed(code, next)?,
            // A pointer to a function.
            b')' => {
                let parameters = skipped(code, next + 1);
                if code.as_bytes().get(parameters) != Some(&b'(') {
                    return None;
                }
                end = closed(code, parameters)?;
            }
            b':' => {
                let width = code[next..].find([',', ';'])?;
                return Some(next + code[next..next + width].trim_end().len());
            }
            b';' | b',' | b'=' | b'{' => return Some(end),
            _ => return None,
        }
    }
}

/// The byte behind the `;` that ends a declaration.
pub(super) fn behind_statement(code: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match code.as_bytes().get(at)? {
            b';' => return Some(at + 1),
            b'(' | b'[' | b'{' => at = closed(code, at)?,
            b'}' | b')' => return None,
            _ => at += 1,
        }
    }
}

/// Where a comment goes that stands beside what is on a line: at its end, or before a comment that it does not close.
pub(super) fn end_of_line(text: &str, code: &str, line: usize) -> Option<usize> {
    let end = text[line..].find('\n').map_or(text.len(), |i| line + i);
    let written = text[line..end].trim_end();
    if written.ends_with('\\') {
        return None;
    }
    let open = match (written.rfind("/*"), written.rfind("*/")) {
        (Some(open), close) => close.is_none_or(|close| close < open),
        (None, _) => false,
    };
    match open {
        true => Some(line + code[line..end].trim_end().len()),
        false => Some(line + written.len()),
    }
}

/// Where an `#include` can stand before a line: behind the last one that no condition encloses, other than that
/// of an include guard; otherwise behind the guard, or at the head of the file.
pub(super) fn behind_includes(text: &str, code: &str, before: usize) -> usize {
    let guarded = guard_end(code);
    let (mut depth, mut best, mut at) = (0_i32, guarded.unwrap_or(0), 0);
    for line in text[..before].split_inclusive('\n') {
        let directive =
            code[at..at + line.len()].trim_start().strip_prefix('#').map(str::trim_start);
        at += line.len();
        let Some(directive) = directive else { continue };
        if directive.starts_with("if") {
            depth += 1;
        } else if directive.starts_with("endif") {
            depth -= 1;
        } else if directive.starts_with("include") && depth == i32::from(guarded.is_some()) {
            best = at;
        }
    }
    best
}

/// The byte behind `#ifndef X`, `#define X` at the head of a file, or behind `#pragma once`.
fn guard_end(code: &str) -> Option<usize> {
    let mut at = 0;
    let mut guard = None;
    for line in code.split_inclusive('\n') {
        at += line.len();
        let words: Vec<&str> =
            line.trim_start().trim_start_matches('#').split_whitespace().collect();
        match (words.as_slice(), guard) {
            ([], _) => {}
            (["ifndef", name], None) => guard = Some(*name),
            (["define", name, ..], Some(guard)) if guard == *name => return Some(at),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(line: &str, name: &str) -> Option<String> {
        let end = behind_declarator(&blanked(line), 0, name)?;
        Some(format!("{} GUARD{}", &line[..end], &line[end..]))
    }

    #[test]
    fn an_attribute_stands_behind_the_declared_name() {
        for (line, name, expected) in [
            ("int x;", "x", "int x GUARD;"),
            ("long hits, miss = 3;", "hits", "long hits GUARD, miss = 3;"),
            ("int table[4][N - 1];", "table", "int table[4][N - 1] GUARD;"),
            ("list list; /* list */", "list", "list list GUARD; /* list */"),
            ("/* x */ int x;", "x", "/* x */ int x GUARD;"),
            ("void (*call)(int, void *);", "call", "void (*call)(int, void *) GUARD;"),
            ("unsigned open : 1;", "open", "unsigned open : 1 GUARD;"),
            ("struct a x = { .x = 1 };", "x", "struct a x GUARD = { .x = 1 };"),
        ] {
            assert_eq!(with(line, name).as_deref(), Some(expected));
        }
        assert_eq!(with("int xx;", "x"), None);
        assert_eq!(with("x(1)", "x"), None, "a macro declares it");
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        let text = "a /* b\n */ c // d\n\"e\\\"f\" '\"' g";
        let code = blanked(text);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "c", "g"]);
        assert_eq!((code.len(), code.matches('\n').count()), (text.len(), 2));
    }

    #[test]
    fn a_comment_does_not_close_another_one() {
        let at = |text: &str| end_of_line(text, &blanked(text), 0);
        assert_eq!(at("int x; /* a */ \n"), Some(14));
        assert_eq!(at("int x; /* a\n b */\n"), Some(6));
        assert_eq!(at("#define X \\\n 1\n"), None);
    }

    #[test]
    fn an_include_stands_where_nothing_encloses_it() {
        let check = |text: &str, expected: &str| {
            let code = blanked(text);
            let at = behind_includes(text, &code, text.find("int").unwrap());
            assert_eq!(&text[..at], expected);
        };
        let plain = "#define _GNU_SOURCE\n#include <a.h>\n";
        check(&format!("{plain}#ifdef X\n#include <b.h>\n#endif\nint x;"), plain);
        let guard = "/* guard */\n#ifndef A_H\n#define A_H\n";
        check(&format!("{guard}int x;\n#endif\n"), guard);
        let included = format!("{guard}#include <a.h>\n");
        check(&format!("{included}int x;\n#endif\n"), &included);
    }

    #[test]
    fn a_declaration_ends_at_its_semicolon() {
        let code = "lock = { { 0; }, 1 }; next;";
        assert_eq!(behind_statement(code, 0), Some(21));
        assert_eq!(behind_statement("f(void) { a; }", 0), None);
    }
}
