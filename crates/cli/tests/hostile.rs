//! A program whose name, variables, threads, source and messages try to act on the reader, from its run to the report.

#[path = "../../report/tests/browser/chromium.rs"]
mod chromium;
mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use common::Project;

/// A tag, an escape, and a mark that turns the direction of text.
const NAME: &str = "<script>owned=1<\u{1b}[2J\u{202e}";

/// Nothing of what was printed acts on a terminal, and all of it is text.
fn harmless(output: &Output) -> String {
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(printed).expect("UTF-8");
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}';
    assert_eq!(text.chars().find(|&c| acts(c)), None, "{}", &text[..text.len().min(3000)]);
    assert!(text.len() < 500_000, "{} bytes", text.len());
    text
}

/// Builds the program under that name, with a byte at the end.
fn build(project: &Project, last: &[u8]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/hostile.c");
    let source = std::fs::read_to_string(source).unwrap();
    let line: [&[u8]; 2] =
        [b"</pre><script>owned=1</script> \x1b[2J \xff \xe2\x80\xae ", &[b'x'; 1 << 20]];
    let mut parts = source.split("LINE").map(str::as_bytes);
    let source = [parts.next().unwrap(), &line.concat()[..], parts.next().unwrap()].concat();
    std::fs::write(project.0.join("hostile.c"), source).unwrap();
    // Line tables name the places but no variable, so its name is the linker's. gcc would write that name into its
    // assembly as it is.
    let compiler = "--selvedge-compiler=clang-19";
    let build = ["cc", compiler, "-g1", "-O1", "-pthread", "hostile.c", "-o", "program"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &build);
    let name = [NAME.as_bytes(), last].concat();
    let program = Path::new(".").join(OsStr::from_bytes(&name));
    std::fs::rename(project.0.join("program"), project.0.join(&program)).unwrap();
    program
}

fn test(project: &Project, program: &Path) -> Output {
    let args = ["test", "--seed", "1", "--schedules", "200", "--"];
    let mut command = project.command(env!("CARGO_BIN_EXE_selvedge"), &args);
    command.arg(program).output().unwrap()
}

#[test]
fn hostile_texts_of_a_real_program_are_only_shown() {
    let project = Project::new("hostile");
    let program = build(&project, b"");
    let tested = test(&project, &program);
    let text = harmless(&tested);
    assert_eq!(tested.status.code(), Some(1), "{text}");
    assert!(text.contains(r"data race on `<script>owned=1</script>\u{1b}[2J\u{202e}`"), "{text}");
    assert!(text.contains(r"failed assertion: <script>owned=1</script>\u{1b}[2J"), "{text}");
    assert!(text.contains("++; /* </pre><script>owned=1</script>"), "{text}");

    let report = |format: &str| harmless(&project.selvedge(&["report", "--format", format]));
    for format in ["text", "sarif", "markdown", "junit", "github"] {
        let text = report(format);
        assert!(text.contains("owned=1"), "{format} shows the names");
    }
    serde_json::from_str::<serde_json::Value>(&report("sarif")).expect("JSON");
    let page = report("html");
    let script = "
        for (const k of ['j', 'n', 'o', 'j', 'k']) key(k);
        return { owned: typeof owned, scripts: document.querySelectorAll('main script').length, troubles };";
    let seen = chromium::seen(&page, script, &project.0.join("browser"));
    let expected = serde_json::json!({ "owned": "undefined", "scripts": 0, "troubles": [] });
    assert_eq!(seen, expected);

    assert!(harmless(&project.selvedge(&["report", "--runs"])).contains(r"\u{1b}[2J"));
    // JSON is for programs and keeps texts as they are.
    let findings = common::json(&project.selvedge(&["report", "--format", "json"]));
    let id = findings["findings"][0]["id"].as_str().expect("an id");
    harmless(&project.selvedge(&["fixed", id, "--executions", "5"]));
    harmless(&project.selvedge(&["replay", "\u{1b}[2J"]));
}

/// Places have no lines then, but everything else is as it is.
#[test]
fn the_name_of_a_program_need_not_be_utf_8() {
    let project = Project::new("hostile-bytes");
    let program = build(&project, b"\xff");
    let tested = test(&project, &program);
    let text = harmless(&tested);
    assert_eq!(tested.status.code(), Some(1), "{text}");
    let findings = common::json(&project.selvedge(&["report", "--format", "json"]));
    let id = findings["findings"][0]["id"].as_str().expect("an id");
    let again = project.selvedge(&["fixed", id]);
    assert_eq!(again.status.code(), Some(1), "it is still there: {}", harmless(&again));
    for format in ["text", "html", "sarif", "markdown", "junit"] {
        harmless(&project.selvedge(&["report", "--format", format]));
    }
}
