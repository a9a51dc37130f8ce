//! What lines of source name: variables, members and what is assigned to. Lines are read as text, because a
//! place has a line but no syntax tree; what they seem to name must fit the memory before it counts.

/// What is assigned to in a line of source.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Assigned {
    pub(super) name: String,
    /// Whether an element of it is.
    pub(super) element: bool,
}

pub(super) fn assigned(line: &str) -> Option<Assigned> {
    let (left, _) = line.split_once('=')?;
    let mut left = left.trim_end();
    let element = left.ends_with(']');
    while let Some(inner) = left.strip_suffix(']') {
        left = inner.rsplit_once('[')?.0.trim_end();
    }
    let name = left.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_name.then(|| Assigned { name: name.to_owned(), element })
}

/// A variable in a line of source, and the members behind it: `c->thread->stats.mutex`.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Chain<'a> {
    pub(super) variable: &'a str,
    /// Each with whether a pointer leads to it: `->` is in front of it.
    pub(super) members: Vec<(bool, &'a str)>,
}

/// The variables of a line that have members behind them, also behind an index.
pub(super) fn chains_in(line: &str) -> Vec<Chain<'_>> {
    let mut chains = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_word) {
        // Names that follow a dot or an arrow here have something in front that is no variable: a call.
        let (in_front, from) = rest.split_at(start);
        let (variable, mut behind) = word(from);
        let mut members = Vec::new();
        while let Some((arrow, name, after)) = member(behind) {
            members.push((arrow, name));
            behind = after;
        }
        let in_front = in_front.trim_end();
        let follows = in_front.ends_with("->") || in_front.ends_with('.');
        if is_name(variable) && !follows && !members.is_empty() {
            chains.push(Chain { variable, members });
        }
        rest = behind;
    }
    chains
}

/// The member that a text begins with, perhaps behind an index, and what is behind it.
fn member(text: &str) -> Option<(bool, &str, &str)> {
    let mut text = text.trim_start();
    while text.starts_with('[') {
        let mut depth = 0usize;
        let end = text.find(|c: char| {
            depth += usize::from(c == '[');
            depth -= usize::from(c == ']');
            depth == 0
        })?;
        text = text[end + 1..].trim_start();
    }
    let arrow = text.strip_prefix("->");
    let (name, behind) = word(arrow.or_else(|| text.strip_prefix('.'))?.trim_start());
    is_name(name).then_some((arrow.is_some(), name, behind))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The word that a text begins with, and the rest.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()))
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names after `->` and `.` in a line of source.
pub(super) fn members_in(line: &str) -> Vec<&str> {
    let ends = line.match_indices("->").map(|(i, _)| i + 2);
    let dots = line.match_indices('.').map(|(i, _)| i + 1);
    let name = |at: usize| {
        let rest = line[at..].trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    let mut names: Vec<&str> = ends.chain(dots).map(name).collect();
    names.retain(|n| n.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    names.dedup();
    names
}

/// All names in a line of source.
pub(super) fn words_in(line: &str) -> Vec<&str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|w| w.starts_with(|c: char| c.is_alphabetic() || c == '_')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assigned_to_is_found_in_the_text() {
        let of = |line| assigned(line).map(|a| (a.name, a.element));
        let is = |name: &str, element| Some((name.to_owned(), element));
        assert_eq!(of("    q->mut = new pthread_mutex_t;"), is("mut", false));
        assert_eq!(of("  pthread_mutex_t *lock = malloc(sizeof *lock);"), is("lock", false));
        assert_eq!(of("  locks[i + 1] = malloc(40);"), is("locks", true));
        assert_eq!(of("  grid[i][j] = malloc(40);"), is("grid", true));
        assert_eq!(of("  return malloc(40);"), None);
    }

    #[test]
    fn members_are_found_in_the_text() {
        assert_eq!(members_in("  it->nbytes += other.size + 1.5;"), ["nbytes", "size"]);
        assert_eq!(members_in("p -> next"), ["next"]);
    }

    #[test]
    fn chains_are_found_in_the_text() {
        let of = |line| -> Vec<String> {
            let shown = |c: Chain<'_>| {
                let members =
                    c.members.iter().map(|(a, m)| format!("{}{m}", if *a { "->" } else { "." }));
                format!("{}{}", c.variable, members.collect::<String>())
            };
            chains_in(line).into_iter().map(shown).collect()
        };
        assert_eq!(of("if (it->prev) a.b = 1.5;"), ["it->prev", "a.b"]);
        assert_eq!(of("lock(&c->thread->stats.mutex);"), ["c->thread->stats.mutex"]);
        assert_eq!(of("workers[i + at[0]].stats.hits++"), ["workers.stats.hits"]);
        assert_eq!(of("first(x)->next = p -> next;"), ["p->next"]);
        assert_eq!(of("x[3; y[1]"), [] as [&str; 0]);
    }
}
