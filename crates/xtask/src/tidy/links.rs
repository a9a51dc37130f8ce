//! Links between pages: each leads to a file of the repository, and to a heading in it.

use std::fs;
use std::path::Path;

use crate::shell::root;

/// The links of a page that lead nowhere.
pub(super) fn check(path: &Path, text: &str, problems: &mut Vec<String>) {
    let folder = path.parent().unwrap_or(Path::new(""));
    for link in links(text) {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { path.to_owned() } else { folder.join(file) };
        let there = root().join(&target);
        if !there.exists() {
            problems.push(format!("{}: {link} leads to no file", path.display()));
        } else if !anchor.is_empty() {
            let page = fs::read_to_string(there).unwrap_or_default();
            if !prose(&page).filter(|l| l.starts_with('#')).any(|l| slug(l) == anchor) {
                problems.push(format!("{}: {link} leads to no heading", path.display()));
            }
        }
    }
}

/// The lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// Targets of links and pictures that are not elsewhere.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in prose(text) {
        for (before, after) in [("](", ")"), ("src=\"", "\""), ("srcset=\"", "\"")] {
            let targets = line.split(before).skip(1);
            found.extend(targets.filter_map(|rest| Some(rest.split_once(after)?.0)));
        }
    }
    found.retain(|l| !l.contains("://") && !l.is_empty());
    found
}

/// What the services that show pages make of a heading.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_found() {
        let page = "# A `page`\nSee [b](b.md#c) and [web](https://x.y).\n```\n[no](link)\n```\n<img src=\"p.png\">\n";
        assert_eq!(links(page), ["b.md#c", "p.png"]);
        assert_eq!(slug("## `check`, `trace`"), "check-trace");
        assert_eq!(slug("# How predictions are confirmed"), "how-predictions-are-confirmed");
        let mut problems = Vec::new();
        check(
            Path::new("README.md"),
            "[x](no-such-file.md) [y](ARCHITECTURE.md#no-such)",
            &mut problems,
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
