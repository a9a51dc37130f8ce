//! The HTML report of programs that were really tested, in a real browser: every step of every finding is reached by
//! keyboard, with its source and its values.

#[path = "../../report/tests/browser/chromium.rs"]
mod chromium;
mod common;

use std::path::{Path, PathBuf};

use common::{Project, stderr};
use serde_json::{Value, json};

/// Goes through every interleaving, first the steps that are shown at once, then all, there and back.
const WALK: &str = "
    const walked = {};
    for (const article of document.querySelectorAll('article')) {
      const how = [...article.querySelectorAll('.how')].at(-1);
      if (!how) continue;
      const scroll = how.querySelector('.scroll');
      const steps = () => [...how.querySelectorAll('tbody:not([hidden]) > tr:not(.elided):not(.parts)')];
      const wrong = [];
      let arrows = 0;
      const values = new Set();
      const check = (row) => {
        if (how.querySelectorAll('tr[aria-current]').length !== 1 || !row.hasAttribute('aria-current')) wrong.push(`not at ${row.textContent}`);
        const pane = how.querySelector('.pane');
        if (row.dataset.file && !pane.querySelector('.site').textContent.endsWith(`:${row.dataset.line}`)) wrong.push(`elsewhere: ${row.textContent}`);
        if (row.dataset.file && !pane.querySelector('.marked')) wrong.push(`no source: ${row.textContent}`);
        if (row.dataset.object && pane.querySelector('.values .now')?.textContent !== row.dataset.value) wrong.push(`no value: ${row.textContent}`);
        for (const value of pane.querySelectorAll('.values dd')) values.add(value.textContent);
        arrows += how.querySelectorAll('.arrows path:not(.head)').length;
      };
      const walk = () => {
        const rows = steps();
        key('Home', scroll);
        rows.forEach((row, i) => { if (i > 0) key('j', scroll); check(row); });
        key('k', scroll);
        check(rows.at(-2));
        return rows.length;
      };
      const first = walk();
      key('n', scroll);
      if (!how.querySelector('tr.critical[aria-current]')) wrong.push('no mark');
      key('o', scroll);
      walked[article.dataset.kind] = { first, all: walk(), wrong, arrows, values: [...values], circle: Boolean(article.querySelector('.circle')), hows: article.querySelectorAll('.how').length };
    }
    return { walked, troubles, requests: performance.getEntriesByType('resource').length, size: document.documentElement.outerHTML.length };";

/// Builds and tests a program; what was seen while its page was walked through.
fn walked(name: &str, source: &Path) -> Value {
    let project = Project::new(name);
    let include = format!("-I{}", root().join("crates/runtime/include").display());
    let source = source.to_str().expect("a path of ours");
    let build = ["cc", "-g", "-O1", "-pthread", &include, source, "-o", "program"];
    project.call(env!("CARGO_BIN_EXE_selvedge"), &build);
    let test = ["test", "--fail-on", "never", "--schedules", "300", "--", "./program"];
    let tested = project.selvedge(&test);
    assert!(tested.status.success(), "{}", stderr(&tested));
    let written = project.selvedge(&["report", "--html", "page.html"]);
    assert!(written.status.success(), "{}", stderr(&written));
    let page = std::fs::read_to_string(project.0.join("page.html")).expect("the page");
    let seen = chromium::seen(&page, WALK, &project.0.join("browser"));
    assert_eq!(seen["troubles"], json!([]), "{seen}");
    assert_eq!(seen["requests"], 0, "{seen}");
    for (kind, walked) in seen["walked"].as_object().expect("findings") {
        assert_eq!(walked["wrong"], json!([]), "{kind}");
    }
    seen["walked"].clone()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_race_of_the_tour() {
    let seen = walked("page-race", &root().join("programs/counter.c"));
    let race = &seen["data-race"];
    // Both orders stand beside each other.
    assert_eq!(race["hows"], 2, "{seen}");
    assert!(race["arrows"].as_u64() > Some(0), "{seen}");
    assert!(race["all"].as_u64() > race["first"].as_u64(), "{seen}");
    let values = race["values"].as_array().expect("values");
    assert!(values.contains(&json!("0")) && values.contains(&json!("1")), "{seen}");
    assert!(seen["assertion"]["first"].as_u64() > Some(3), "{seen}");
}

#[test]
fn the_atomicity_violation_of_the_tour() {
    let seen = walked("page-atomicity", &root().join("programs/account.c"));
    assert!(seen["atomicity-violation"]["arrows"].as_u64() > Some(0), "{seen}");
}

#[test]
fn the_deadlock_of_the_tour() {
    let seen = walked("page-deadlock", &root().join("programs/three_locks.c"));
    assert_eq!(seen["deadlock"]["circle"], true, "{seen}");
}

#[test]
fn twenty_threads_and_two_thousand_steps() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/twenty.c");
    let seen = walked("page-large", &source);
    let race = &seen["data-race"];
    assert!(race["all"].as_u64() >= Some(2000), "{seen}");
    assert!(race["first"].as_u64() < Some(200), "{seen}");
}
