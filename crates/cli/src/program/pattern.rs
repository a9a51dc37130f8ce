//! Patterns for names: `*` matches anything.

/// A pattern with wildcards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    from_start: bool,
    to_end: bool,
    pieces: Vec<String>,
}

impl Pattern {
    /// Matches anywhere in a name, unless `^` or `$` anchors it.
    pub(crate) fn anywhere(text: &str) -> Pattern {
        let from_start = text.starts_with('^');
        let to_end = text.ends_with('$');
        let inner = text.strip_prefix('^').unwrap_or(text);
        let inner = inner.strip_suffix('$').unwrap_or(inner);
        Pattern { from_start, to_end, pieces: inner.split('*').map(str::to_owned).collect() }
    }

    /// Matches whole names.
    pub(crate) fn whole(text: &str) -> Pattern {
        let pieces = text.split('*').map(str::to_owned).collect();
        Pattern { from_start: true, to_end: true, pieces }
    }

    /// Whether it matches everything.
    pub(crate) fn is_everything(&self) -> bool {
        self.pieces.iter().all(String::is_empty) && self.pieces.len() > 1
    }

    /// Whether it matches a name. No pattern matches the empty name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let last = self.pieces.len() - 1;
        let mut rest = name;
        for (i, piece) in self.pieces.iter().enumerate() {
            let (tied_left, tied_right) = (i == 0 && self.from_start, i == last && self.to_end);
            rest = match (tied_left, tied_right) {
                (true, true) => return rest == piece,
                (true, false) => match rest.strip_prefix(piece.as_str()) {
                    Some(rest) => rest,
                    None => return false,
                },
                (false, true) => return rest.ends_with(piece.as_str()),
                (false, false) => match rest.find(piece.as_str()) {
                    Some(at) => &rest[at + piece.len()..],
                    None => return false,
                },
            };
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_thread_sanitizer() {
        for (pattern, name, expected) in [
            ("foo", "a_foo_b", true),
            ("foo", "fo", false),
            ("^foo", "foobar", true),
            ("^foo", "a_foo", false),
            ("foo$", "a_foo", true),
            ("foo$", "foo_a", false),
            ("^foo$", "foo", true),
            ("^foo$", "foofoo", false),
            ("a*c", "xabcx", true),
            ("^a*c$", "abbc", true),
            ("^a*c$", "abbd", false),
            ("*", "anything", true),
            ("*", "", false),
            ("lib*.so", "/usr/lib/libz.so.1", true),
        ] {
            assert_eq!(Pattern::anywhere(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn whole_patterns_match_whole_names() {
        for (pattern, name, matches) in [
            ("sort", "sort", true),
            ("sort", "resort", false),
            ("sort", "sorted", false),
            ("*sort*", "resorted", true),
            ("bank::*", "bank::transfer", true),
            ("a*a", "a", false),
            ("*", "anything", true),
        ] {
            assert_eq!(Pattern::whole(pattern).matches(name), matches, "{pattern} {name}");
        }
        assert!(Pattern::whole("*").is_everything() && !Pattern::whole("a*").is_everything());
    }
}
