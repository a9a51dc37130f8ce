//! Long names of C++ and Rust, made short for people: template arguments below a depth become `…`. Formats for
//! programs have the full names.

use std::borrow::Cow;

/// Names up to here are shown as they are.
const LONGEST: usize = 80;

/// The name, or a shorter form of it: first without what the standard library adds, then with template arguments to
/// the depth that fits, then without parameters.
pub fn short(name: &str) -> Cow<'_, str> {
    if length(name) <= LONGEST {
        return Cow::Borrowed(name);
    }
    let plain = without_defaults(name);
    let depths = [3, 2, 1].map(|depth| cut(&plain, depth, '<', '>'));
    let last = cut(&depths[2], 0, '(', ')');
    let fits = |text: &&String| length(text) <= LONGEST;
    let found = [&plain].into_iter().chain(&depths).find(fits).unwrap_or(&last);
    Cow::Owned(found.clone())
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Without the default arguments of the standard library's templates and its internal namespaces.
fn without_defaults(name: &str) -> String {
    const STRING: &str = "basic_string<char, std::char_traits<char>, std::allocator<char> >";
    let text = name.replace("std::__cxx11::", "std::").replace(STRING, "string");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(", std::allocator<") {
        let (before, behind) = rest.split_at(at);
        out.push_str(before);
        let inside = &behind[", std::allocator".len()..];
        rest = &inside[end_of_arguments(inside)..];
    }
    out.push_str(rest);
    out.replace(" >", ">")
}

/// Where the template arguments that a text begins with end.
fn end_of_arguments(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// What is deeper than `most` in such brackets becomes `…`. Operators and arrows are no brackets.
fn cut(name: &str, most: usize, open: char, close: char) -> String {
    let mut out = String::new();
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        let before_it = &name[..at];
        let of_operator = match c {
            '<' | '>' => before_it.trim_end_matches(['<', '>', '=', '-']).ends_with("operator"),
            _ => before_it.ends_with("operator") || before_it.ends_with("operator("),
        };
        let is_arrow = c == '>' && before == '-';
        let is_bracket = !of_operator && !is_arrow;
        if is_bracket && c == close {
            depth = depth.saturating_sub(1);
        }
        if depth <= most {
            out.push(c);
        }
        if is_bracket && c == open {
            depth += 1;
            if depth == most + 1 {
                out.push('…');
            }
        }
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit_stay() {
        assert_eq!(short("registry<int>::add(int)"), "registry<int>::add(int)");
    }

    #[test]
    fn template_arguments_are_left_out_from_the_inside() {
        let name = "registry<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, \
                    std::vector<std::function<void (int, std::map<int, std::pair<long, long> >)>, \
                    std::allocator<std::function<void (int, std::map<int, std::pair<long, long> >)> > > >::call";
        assert_eq!(
            short(name),
            "registry<std::string, std::vector<std::function<void (int, std::map<…>)>>>::call"
        );
    }

    #[test]
    fn operators_are_not_brackets() {
        let name = format!("stream::operator<<({})", "long long int, ".repeat(10));
        assert_eq!(short(&name), "stream::operator<<(…)");
    }

    #[test]
    fn a_name_never_becomes_longer_and_brackets_stay_in_pairs() {
        let deep = format!("{}int{}", "wrapper<a_long_name, ".repeat(400), ">".repeat(400));
        let shown = short(&deep);
        assert!(length(&shown) < 80, "{shown}");
        assert_eq!(shown.matches('<').count(), shown.matches('>').count());
    }
}
