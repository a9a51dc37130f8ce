//! Texts of the program under test cannot act on the reader, in any format: names of programs, variables and threads,
//! messages of assertions and lines of source with tags, terminal escapes, marks of direction, bytes that are no UTF-8,
//! and of a megabyte. The page itself is looked at in a browser (`browser`).

mod common;

use common::hostile::{EVIL, shown};
use selvedge_report::{FORMATS, escape};

/// How every such text begins if it is shown, and shown only. Long names are cut in the middle.
const BEGINNING: &str = r"<script>owned = 1</script>\u{1b}[2J\u{9b}31m";

/// How the text appears if it is shown, and shown only.
fn seen() -> String {
    escape::visible(EVIL).into_owned()
}

fn acts(c: char) -> bool {
    let marks = '\u{202a}'..='\u{202e}';
    c.is_control() && !matches!(c, '\n' | '\t') || marks.contains(&c) || c == '\u{fffe}'
}

/// Nothing acts, and a megabyte is cut.
fn is_harmless(text: &str) {
    assert_eq!(text.chars().find(|&c| acts(c)), None);
    assert!(text.len() < 400_000, "{} bytes", text.len());
}

#[test]
fn text() {
    // The colours of the format are its own.
    let text = common::strip(&shown("text"));
    is_harmless(&text);
    let lines = |about: &str| text.lines().filter(|l| l.contains(about)).count();
    assert!(lines(&format!("data race on `{BEGINNING}")) >= 1, "the variable");
    assert!(lines(&format!("thread {BEGINNING}")) >= 1, "the thread");
    assert!(lines(&format!("failed assertion: {BEGINNING}")) >= 1, "the assertion");
    assert!(lines("int x; /* <script>") >= 1, "the source");
}

#[test]
fn html() {
    let page = shown("html");
    is_harmless(&page);
    let escaped = seen().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let escaped = escaped.replace('"', "&quot;").replace('\'', "&#39;");
    // A name in backquotes ends at the backquote that is in it.
    let beginning = escaped.split('`').next().expect("a part");
    assert!(page.contains(beginning), "it is there as text");
    // The page has two scripts and the data of its own.
    assert_eq!(page.matches("<script").count(), 2, "no script of the program");
    assert_eq!(page.matches("</script").count(), 2, "no script ends early");
}

#[test]
fn sarif() {
    let log = shown("sarif");
    is_harmless(&log);
    let log: serde_json::Value = serde_json::from_str(&log).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    let message = |rule: &str| {
        let result = results.iter().find(|r| r["ruleId"] == rule);
        result.and_then(|r| r["message"]["text"].as_str()).expect("a message")
    };
    assert!(message("data-race").contains(&seen()));
    assert!(message("assertion").contains(&seen()));
    assert!(message("crash").contains(&seen()));
    let snippet = &results[0]["locations"][0]["physicalLocation"]["region"]["snippet"]["text"];
    assert!(snippet.as_str().is_some_and(|s| s.starts_with("int x; /* <script>")), "{snippet}");
    let uri = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert!(uri.as_str().is_some_and(|u| u.starts_with("%3Cscript%3E")), "{uri}");
}

#[test]
fn markdown() {
    use pulldown_cmark::{Event, Parser, Tag};
    let page = shown("markdown");
    is_harmless(&page);
    let (mut tags, mut texts, mut links) = (Vec::new(), String::new(), 0);
    for event in Parser::new(&page) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => tags.push(html.to_string()),
            Event::Text(text) | Event::Code(text) => texts.push_str(&text),
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => links += 1,
            _ => {}
        }
    }
    assert!(tags.iter().any(|t| t.contains("<details>")), "{tags:?}");
    assert!(!tags.iter().any(|t| t.contains("<script")), "{tags:?}");
    assert_eq!(links, 0, "no link of the program");
    assert!(texts.contains("failed assertion: <script>owned = 1</script>\\u{1b}[2J"));
}

#[test]
fn junit() {
    let xml = shown("junit");
    is_harmless(&xml);
    let document = roxmltree::Document::parse(&xml).expect("well-formed XML");
    let cases: Vec<_> = document.descendants().filter(|n| n.has_tag_name("testcase")).collect();
    let named = |with: &str| cases.iter().any(|c| c.attribute("name").unwrap().contains(with));
    assert!(named(&format!("data race on `{BEGINNING}")));
    assert!(named(&format!("failed assertion: {BEGINNING}")));
    assert!(!document.descendants().any(|n| n.has_tag_name("script")));
}

#[test]
fn github() {
    let commands = shown("github");
    is_harmless(&commands);
    let lines: Vec<&str> = commands.lines().collect();
    assert_eq!(lines.len(), 3, "one command for each finding");
    assert!(lines.iter().all(|l| l.starts_with("::error ") || l.starts_with("::warning ")));
    assert!(lines.iter().all(|l| !l.contains("%0A::error::x")));
}

#[test]
fn perfetto() {
    let trace = shown("perfetto");
    is_harmless(&trace);
    serde_json::from_str::<serde_json::Value>(&trace).expect("JSON");
}

#[test]
fn json_keeps_texts_and_escapes_what_acts() {
    let document = shown("json");
    assert_eq!(document.chars().find(|&c| acts(c)), None);
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let subject = document["findings"][0]["subject"][0].as_str().expect("a variable");
    assert!(subject.contains(EVIL) && subject.len() > 1 << 20);
}

#[test]
fn every_format_is_tested() {
    let names: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
    let tested = ["text", "json", "html", "sarif", "github", "junit", "markdown", "perfetto"];
    assert_eq!(names, tested);
}
