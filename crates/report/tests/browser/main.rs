//! The page in a real browser: it is stepped through by keyboard, filtered, and asks for nothing.

mod chromium;
#[path = "../common/mod.rs"]
mod common;

use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::path::Path;

use common::{cases, shown};
use selvedge_model::{Scalar, Values};
use selvedge_report::{
    Act, Case, Compared, Elided, Format, How, Interleaving, Outcome, Report, Row, Sources, Verb,
    View,
};

/// The value of `script` in the page.
fn seen(page: &str, script: &str) -> serde_json::Value {
    let name = std::thread::current().name().unwrap_or("page").to_owned();
    chromium::seen(page, script, &Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
}

/// The page of one case.
fn page_of(case: Case) -> String {
    let report = Report { cases: vec![case], ..Report::default() };
    let sources = Sources::new(|_| Some(common::SOURCE.to_owned()));
    let mut view = View { sources, width: 100, wraps: false, all: true };
    Format::named("html").expect("a format").show(&report, &mut view)
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
          troubles,
        };";
    let seen = seen(&shown("html", 80), script);
    // Row 2 stands for steps that are left out; n goes to the next row that makes the finding.
    let steps = serde_json::json!([null, "0", "1", "3", "1", "3", "0"]);
    assert_eq!(seen["steps"], steps, "{seen}");
    assert_eq!(seen["at"], "1 of 4: main: write balance 0 → 10");
    assert_eq!(seen["pane"], "4    balance += (long)amount;");
    assert_eq!(seen["requests"], 0);
    assert_eq!(seen["troubles"], serde_json::json!([]));
}

/// Whatever gets into the page, it cannot ask for anything: the policy of the page refuses.
#[test]
fn no_request_leaves_the_page() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    server.set_nonblocking(true).expect("it can be asked without waiting");
    let address = server.local_addr().expect("an address");
    let script = format!(
        "const image = new Image(); image.src = 'http://{address}/image'; document.body.append(image);
         const frame = document.createElement('iframe'); frame.src = 'http://{address}/frame'; document.body.append(frame);
         const style = document.createElement('link'); style.rel = 'stylesheet'; style.href = 'http://{address}/style'; document.head.append(style);
         fetch('http://{address}/fetch').catch(() => {{}});
         return performance.getEntriesByType('resource').length;"
    );
    // What was asked for. Chromium may open a connection before it looks at the policy; it has ended by now.
    let asked = || {
        let mut requests = String::new();
        loop {
            match server.accept() {
                Ok((mut connection, _)) => {
                    connection.set_nonblocking(false).expect("it can be waited for");
                    let _ = connection.read_to_string(&mut requests);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return requests;
                }
            }
        }
    };
    seen(&shown("html", 80), &script);
    assert_eq!(asked(), "");
    // Without the policy the same script does ask.
    let open = shown("html", 80).replace("Content-Security-Policy", "x");
    seen(&open, &script);
    assert!(asked().contains("GET /"), "the script tries");
}

#[test]
fn texts_stand_out_from_their_ground_in_both_themes() {
    let script = "
        key('j'); key('o');
        const found = {};
        for (const theme of ['light', 'dark']) {
          document.documentElement.dataset.theme = theme;
          found[theme] = faint();
        }
        return found;";
    let faint = seen(&shown("html", 80), script);
    assert_eq!(faint, serde_json::json!({ "light": [], "dark": [] }));
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
    let page = page_of(case);
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

fn step(thread: usize, verb: Verb, critical: bool) -> Row {
    let site = cases()[0].places[0].site.clone();
    Row::Does {
        thread,
        act: Act { verb, object: "vault".into() },
        site,
        critical,
        values: Values::default(),
    }
}

fn with_rows(rows: Vec<Row>, threads: usize) -> Case {
    let mut case = cases().remove(0);
    let threads = (0..threads).map(|t| format!("T{t}")).collect();
    let rows = Interleaving { threads, rows, ..Interleaving::default() };
    case.control.as_mut().expect("it is confirmed").how = Some(How::Rows(rows));
    case
}

/// Twenty threads and two thousand steps, each handing a lock to the next thread.
fn large() -> Case {
    let verb = |i| if i % 2 == 0 { Verb::Lock } else { Verb::Unlock };
    with_rows((0..2000).map(|i| step(i / 2 % 20, verb(i), i == 1999)).collect(), 20)
}

#[test]
fn a_large_interleaving_has_arrows_between_the_threads() {
    let page = page_of(large());
    let script = "
        key('n');
        const arrows = () => document.querySelectorAll('.arrows path:not(.head)').length;
        const at = document.querySelector('tr[aria-current]').dataset.row;
        key('k');
        return { rows: document.querySelectorAll('tr[data-row]').length, at, arrows: arrows(),
                 columns: document.querySelectorAll('.lanes thead th').length };";
    let seen = seen(&page, script);
    // The last lock of all takes it from the thread before.
    assert_eq!(seen, serde_json::json!({ "rows": 2000, "at": "1999", "arrows": 1, "columns": 22 }));
}

/// What is left out opens in the lanes, and can be stepped through then.
#[test]
fn stretches_open_and_close() {
    let hidden = vec![step(0, Verb::Unlock, false), step(2, Verb::Write, false)];
    let rows = vec![
        step(0, Verb::Lock, false),
        Row::Elided(Elided::Rows(hidden)),
        step(1, Verb::Lock, true),
    ];
    let script = "
        const at = () => document.querySelector('tr[aria-current] .lane');
        const walk = () => { const lanes = []; key('Home', document.querySelector('.scroll')); do lanes.push(at()); while ((key('j'), at()) !== lanes.at(-1)); return lanes.map((lane) => lane.textContent); };
        const arrowsAt = () => document.querySelectorAll('.arrows path:not(.head)').length;
        const closed = walk();
        const arrows = arrowsAt();
        key('o');
        const open = walk();
        document.querySelector('.open').click();
        return { closed, arrows, open, again: walk(), at: document.querySelector('.at').textContent, pressed: document.querySelector('.all').getAttribute('aria-pressed') };";
    let seen = seen(&page_of(with_rows(rows, 3)), script);
    let expected = serde_json::json!({
        "closed": ["lock vault", "lock vault"],
        // The lock comes from a step that is left out.
        "arrows": 1,
        // The third thread has no lane of its own.
        "open": ["lock vault", "unlock vault", "T2: write vault", "lock vault"],
        "again": ["lock vault", "lock vault"],
        "at": "2 of 2: T1: lock vault",
        "pressed": "false",
    });
    assert_eq!(seen, expected);
}

/// The page of a program whose texts try to become markup or scripts.
#[test]
fn texts_of_the_program_stay_texts() {
    let script = "
        for (const k of ['j', 'n', 'o', 'j', 'k']) key(k);
        const of = (what) => document.querySelectorAll(`main ${what}`).length;
        return { owned: typeof owned, scripts: of('script'), images: of('img'), links: of('a'), troubles,
                 title: document.querySelector('h2').textContent.startsWith('data race on <script>owned = 1<\\/script>\\\\u{1b}[2J') };";
    let seen = seen(&common::hostile::shown("html"), script);
    let harmless = serde_json::json!({ "owned": "undefined", "scripts": 0, "images": 0, "links": 0, "troubles": [], "title": true });
    assert_eq!(seen, harmless);
}
