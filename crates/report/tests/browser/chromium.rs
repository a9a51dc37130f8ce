//! A page in headless Chromium.
//!
//! Chromium loads the page with a script of the test appended, which presses keys and writes what it sees into the
//! document; `--dump-dom` prints that.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What the script of a test has: keys, colours, and a record of everything that went wrong or was asked for.
const TOOLS: &str = include_str!("tools.js");

/// The value of `script` in the page, after it has been set up. `directory` is for files of this call.
pub(crate) fn seen(page: &str, script: &str, directory: &Path) -> Value {
    std::fs::create_dir_all(directory).expect("a directory");
    let file = directory.join("report.html");
    // What the page does before the script is recorded, too.
    let watched = page.replacen("<head>", &format!("<head><script>{TOOLS}</script>"), 1);
    let script = format!("<script>finish(() => {{ {script} }});</script></body>");
    std::fs::write(&file, watched.replace("</body>", &script)).expect("the page is written");
    let dom = browse(&file, directory);
    // The tools above have the word, too.
    let result = dom.rsplit_once("RESULT").and_then(|(_, rest)| rest.split("END").next());
    let text = result.unwrap_or_else(|| panic!("no result in: {}", &dom[..dom.len().min(2000)]));
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
