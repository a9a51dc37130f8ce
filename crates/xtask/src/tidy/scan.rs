//! Just enough of Rust's grammar to find functions, matches and paths in a source file.
//!
//! [`Code`] is the text with comments, strings and character literals turned into spaces, so that what
//! is left can be searched byte by byte: every brace is a brace, and offsets and lines stay as they
//! were. The formatter has been over every file, and the scanner relies on it only where it says so.

/// A source file without its comments and literals.
pub(crate) struct Code {
    bytes: Vec<u8>,
}

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// From the `fn` to the closing brace.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Code {
    pub(crate) fn new(text: &str) -> Code {
        let mut bytes = text.as_bytes().to_vec();
        let mut at = 0;
        while at < bytes.len() {
            let end = literal_end(&bytes, at);
            for byte in bytes[at..end].iter_mut().filter(|b| **b != b'\n') {
                *byte = b' ';
            }
            // A word is passed in one go: the `r` of `var"` does not begin a raw string.
            at = if end > at { end } else { word_end(&bytes, at).max(at + 1) };
        }
        Code { bytes }
    }

    /// The text between two offsets.
    pub(crate) fn slice(&self, start: usize, end: usize) -> &str {
        // Only whole literals are replaced, byte for byte, so that what is left is still UTF-8.
        std::str::from_utf8(&self.bytes[start..end]).unwrap_or_default()
    }

    /// The line of an offset, counted from one.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.bytes[..at].iter().filter(|b| **b == b'\n').count()
    }

    /// Where a word stands by itself.
    pub(crate) fn words<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        (0..self.bytes.len()).filter(move |&at| {
            self.bytes[at..].starts_with(word.as_bytes())
                && word_end(&self.bytes, at) == at + word.len()
                && (at == 0 || !is_word(self.bytes[at - 1]))
        })
    }

    /// The identifier that begins at an offset, which may be empty.
    pub(crate) fn identifier(&self, at: usize) -> &str {
        self.slice(at, word_end(&self.bytes, at))
    }

    /// The first offset from `at` that is not white space.
    pub(crate) fn skip_space(&self, at: usize) -> usize {
        at + self.bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count()
    }

    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// The first of `wanted` from `at` on that is not inside brackets of any kind opened after `at`.
    /// The end of the brackets around `at` ends the search.
    pub(crate) fn find_outside(&self, at: usize, wanted: &[u8]) -> Option<usize> {
        let mut depth = 0_usize;
        for (offset, &byte) in self.bytes.iter().enumerate().skip(at) {
            if depth == 0 && wanted.contains(&byte) {
                return Some(offset);
            }
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        None
    }

    /// The end of the brackets that open at an offset.
    pub(crate) fn closing(&self, open: usize) -> Option<usize> {
        self.find_outside(open + 1, b")]}")
    }

    /// Every function that has a body, also one within another.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let function = |start: usize| {
            let name = self.identifier(self.skip_space(start + 2));
            // The type of a function pointer has no name.
            let body = self.find_outside(start, b"{;").filter(|_| !name.is_empty())?;
            let end = if self.byte(body) == b'{' { self.closing(body)? } else { return None };
            Some(Function { name: name.to_owned(), start, end })
        };
        self.words("fn").filter_map(function).collect()
    }

    /// Turns what only tests compile into spaces.
    pub(crate) fn without_tests(mut self) -> Code {
        let modules: Vec<(usize, usize)> = self
            .words("mod")
            .filter(|&at| self.slice(0, at).trim_end().ends_with("#[cfg(test)]"))
            .filter_map(|at| Some((at, self.find_outside(at, b"{;")?)))
            .filter_map(|(at, open)| Some((at, self.closing(open)?)))
            .collect();
        for (start, end) in modules {
            for byte in self.bytes[start..end].iter_mut().filter(|b| **b != b'\n') {
                *byte = b' ';
            }
        }
        self
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|b| is_word(**b)).count()
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none begins.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let until = |pattern: &[u8], from: usize| {
        let found = rest[from..].windows(pattern.len()).position(|w| w == pattern);
        at + found.map_or(rest.len(), |i| from + i + pattern.len())
    };
    match rest {
        [b'/', b'/', ..] => until(b"\n", 2),
        [b'/', b'*', ..] => block_comment_end(bytes, at),
        [b'"', ..] => string_end(bytes, at + 1),
        [b'b' | b'c', b'"', ..] => string_end(bytes, at + 2),
        [b'r', ..] => raw_string(rest, 1).map_or(at, |close| until(&close, 2 + close.len() - 1)),
        [b'b' | b'c', b'r', ..] => {
            raw_string(rest, 2).map_or(at, |close| until(&close, 3 + close.len() - 1))
        }
        [b'\'', b'\\', ..] => until(b"'", 3),
        // Not a lifetime: those have no second quote. A character may have several bytes.
        [b'\'', first, ..] => match rest.iter().take(6).skip(2).position(|b| *b == b'\'') {
            Some(0) => at + 3,
            Some(more) if *first >= 0x80 => at + 3 + more,
            _ => at,
        },
        _ => at,
    }
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// What closes the raw string whose quote follows `prefix` letters, if one begins there.
fn raw_string(rest: &[u8], prefix: usize) -> Option<Vec<u8>> {
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    let quoted = rest.get(prefix + hashes) == Some(&b'"');
    quoted.then(|| [&b"\""[..], &b"#".repeat(hashes)].concat())
}

fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> String {
        let code = Code::new(text);
        let left = code.slice(0, text.len());
        left.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_become_spaces() {
        assert_eq!(left("a /* { /* } */ */ b // {\nc"), "a b c");
        assert_eq!(
            left(r#"f("}\"{", b"{", 'x', '\'', '\u{7d}', '{', 'ß', '→')"#),
            "f( , , , , , , , )"
        );
        assert_eq!(left("r\"{\" r#\"\"{\"# br##\"\"#{\"## end"), "end");
        assert_eq!(
            left("fn f<'a, 'b>(x: &'a str, y: &'b str) {}"),
            "fn f<'a, 'b>(x: &'a str, y: &'b str) {}"
        );
        assert_eq!(left("var\"{\" x"), "var x");
    }

    #[test]
    fn lines_stay_where_they_were() {
        let code = Code::new("/* one\ntwo */\n\"three\nfour\"\nfn f() {}");
        assert_eq!(code.line(code.functions()[0].start), 5);
    }

    #[test]
    fn functions_have_names_and_ends() {
        let text =
            "trait T { fn a(&self); fn b(&self) -> [u8; 3] { fn c() { '{'; } } }\ntype F = fn(u8);";
        let found = Code::new(text).functions();
        let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["b", "c"]);
        assert_eq!(&text[found[0].end..=found[0].end], "}");
        assert!(found[1].end < found[0].end);
    }

    #[test]
    fn modules_of_tests_are_left_out() {
        let code = Code::new("use a;\n#[cfg(test)]\nmod tests { use b; }\nmod c { use d; }");
        let code = code.without_tests();
        let uses: Vec<&str> = code.words("use").map(|at| code.identifier(at + 4)).collect();
        assert_eq!(uses, ["a", "d"]);
    }
}
