//! The page in a real browser: it is stepped through by keyboard, filtered, and asks for nothing.
//!
//! Chromium loads the page with a script of the test appended, which presses keys and writes what it sees
//! into the document; `--dump-dom` prints that.

mod common;

use std::path::Path;
use std::process::Command;

use common::{cases, shown};
use selvedge_model::{Scalar, Values};
use selvedge_report::{
    Act, Case, Compared, Format, How, Interleaving, Outcome, Report, Row, Sources, Verb, View,
};

/// Runs `script`, whose value is what the function returns, after the page has been set up.
fn seen(page: &str, script: &str) -> serde_json::Value {
    let name = std::thread::current().name().unwrap_or("page").to_owned();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("report.html");
    let wrapped = format!(
        "<script>(() => {{ const key = (k, at) => (at ?? document.body).dispatchEvent(new KeyboardEvent('keydown', {{ key: k, bubbles: true }}));\n\
         const result = (() => {{ {script} }})();\n\
         document.body.innerHTML = ''; document.body.textContent = 'RESULT' + JSON.stringify(result) + 'END'; }})();</script></body>"
    );
    std::fs::write(&file, page.replace("</body>", &wrapped)).expect("the page is written");
    let dom = browse(&file, &directory);
    let result = dom.split("RESULT").nth(1).and_then(|rest| rest.split("END").next());
    let text = result.unwrap_or_else(|| panic!("no result in: {dom}"));
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).expect("the script's value is JSON")
}

fn browse(file: &Path, profile: &Path) -> String {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args(["--window-size=1200,900", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("Chromium runs; `cargo xtask setup` installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn keys_step_through_the_interleaving_with_the_source_following() {
    let script = "
        const current = () => document.querySelector('tr[aria-current]')?.dataset.row ?? null;
        const steps = [current()];
        for (const k of ['j', 'j', 'j', 'k', 'n']) { key(k); steps.push(current()); }
        key('Home', document.querySelector('.scroll')); steps.push(current());
        return {
          steps,
          at: document.querySelector('.at').textContent,
          pane: document.querySelector('.pane .marked').textContent,
          requests: performance.getEntriesByType('resource').length,
        };";
    let seen = seen(&shown("html", 80), script);
    // Row 2 stands for steps that are left out; n goes to the next row that makes the finding.
    let steps = serde_json::json!([null, "0", "1", "3", "1", "3", "0"]);
    assert_eq!(seen["steps"], steps, "{seen}");
    assert_eq!(seen["at"], "1 of 4: main: write balance 0 → 10");
    assert_eq!(seen["pane"], "4    balance += (long)amount;");
    assert_eq!(seen["requests"], 0);
}

#[test]
fn the_filter_hides_what_does_not_fit() {
    let script = "
        const visible = () => [...document.querySelectorAll('article')].filter((a) => !a.hidden).length;
        const form = document.querySelector('.filter');
        const counts = [visible()];
        form.words.value = 'VAULT'; form.dispatchEvent(new Event('input')); counts.push(visible());
        form.words.value = ''; form.kind.value = 'crash'; form.dispatchEvent(new Event('input'));
        counts.push(visible());
        return { counts, matches: document.querySelector('.matches').textContent };";
    let seen = seen(&shown("html", 80), script);
    let crashes = cases().iter().filter(|c| c.kind.name() == "crash").count();
    let all = cases().len();
    assert_eq!(seen["counts"][0], all);
    assert!(seen["counts"][1].as_u64().is_some_and(|n| n > 0 && n < all as u64), "{seen}");
    assert_eq!(seen["counts"][2], crashes);
    assert_eq!(seen["matches"], format!("{crashes} of {all}"));
}

/// Two executions of a race beside each other: they are stepped through together until they part.
#[test]
fn two_executions_part_and_values_follow_the_steps() {
    let mut case = cases().remove(0);
    let site = case.places[0].site.clone();
    let access = |thread, verb, found, left: Option<i64>| Row::Does {
        thread,
        act: Act { verb, object: "balance".into() },
        site: site.clone(),
        critical: true,
        values: Values { found: Some(Scalar::Signed(found)), left: left.map(Scalar::Signed) },
    };
    let rows = |rows| Interleaving {
        preemptions: 1,
        threads: vec!["main".into(), "T1".into()],
        rows,
        margin: Vec::new(),
    };
    let begin = || access(0, Verb::Read, 0, None);
    let failing = vec![
        begin(),
        access(1, Verb::Read, 0, None),
        access(1, Verb::Write, 0, Some(1)),
        access(0, Verb::Write, 1, Some(1)),
    ];
    let passing = vec![
        begin(),
        access(0, Verb::Write, 0, Some(1)),
        access(1, Verb::Read, 1, None),
        access(1, Verb::Write, 1, Some(2)),
    ];
    let control = case.control.as_mut().expect("it is confirmed");
    control.how = Some(How::Rows(rows(failing)));
    control.compared = Some(Box::new(Compared {
        which: None,
        outcome: Outcome::Exit(0),
        against: Outcome::Exit(1),
        rows: rows(passing),
    }));
    let report = Report { cases: vec![case], ..Report::default() };
    let sources = Sources::new(|_| Some(common::SOURCE.to_owned()));
    let mut view = View { sources, width: 100, wraps: false, all: true };
    let page = Format::named("html").expect("a format").show(&report, &mut view);
    let script = "
        const [passing, failing] = document.querySelectorAll('.how');
        const at = (how) => how.querySelector('tr[aria-current]')?.dataset.row ?? null;
        const steps = [];
        for (let i = 0; i < 3; i += 1) { key('j'); steps.push([at(passing), at(failing)]); }
        return {
          titles: [...document.querySelectorAll('.how h3')].map((h) => h.textContent),
          steps,
          parts: [...document.querySelectorAll('tr.parts')].map((r) => r.nextElementSibling.dataset.row),
          text: failing.querySelector('tr[aria-current] .lane').textContent,
          values: [...failing.querySelectorAll('.values *')].map((e) => e.textContent),
        };";
    let seen = seen(&page, script);
    let expected = serde_json::json!({
        "titles": ["no thread is stopped: exit code 0", "as it happens: exit code 1"],
        // The first step is the same in both; from then on the keys step through the failing one.
        "steps": [["0", "0"], ["0", "1"], ["0", "2"]],
        "parts": ["1", "1"],
        "text": "write balance 0 → 1",
        "values": ["balance", "1"],
    });
    assert_eq!(seen, expected);
}

/// Twenty threads and two thousand steps, each handing a lock to the next thread.
fn large() -> Case {
    let mut case = cases().remove(0);
    let site = case.places[0].site.clone();
    let act = |verb| Act { verb, object: "vault".into() };
    let rows = (0..2000).map(|i| Row::Does {
        thread: i / 2 % 20,
        act: act(if i % 2 == 0 { Verb::Lock } else { Verb::Unlock }),
        site: site.clone(),
        critical: i == 1999,
        values: Default::default(),
    });
    let rows = Interleaving {
        preemptions: 0,
        threads: (0..20).map(|t| format!("T{t}")).collect(),
        rows: rows.collect(),
        margin: Vec::new(),
    };
    case.control.as_mut().expect("it is confirmed").how = Some(How::Rows(rows));
    case
}

#[test]
fn a_large_interleaving_has_arrows_between_the_threads() {
    let report = Report { cases: vec![large()], ..Report::default() };
    let sources = Sources::new(|_| Some(common::SOURCE.to_owned()));
    let mut view = View { sources, width: 100, wraps: false, all: true };
    let page = Format::named("html").expect("a format").show(&report, &mut view);
    let script = "
        key('n');
        const arrows = () => document.querySelectorAll('.arrows path:not(.head)').length;
        const at = document.querySelector('tr[aria-current]').dataset.row;
        key('k');
        return { rows: document.querySelectorAll('tr[data-row]').length, at, arrows: arrows(),
                 columns: document.querySelectorAll('.lanes thead th').length };";
    let seen = seen(&page, script);
    // The last lock of all takes it from the thread before.
    assert_eq!(seen, serde_json::json!({ "rows": 2000, "at": "1999", "arrows": 1, "columns": 23 }));
}
