//! `cargo xtask pictures`: the pictures of HTML reports in `docs/pictures`, made in headless Chromium, and how long a
//! large report takes to open.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::setup;
use crate::shell::{Outcome, cargo, root};

/// Where the pictures go.
const FOLDER: &str = "docs/pictures";
/// The name of the pictures, the program, and the keys that are pressed before they are taken.
const PAGES: [(&str, &str, &str); 4] = [
    ("race", "programs/counter.c", "jjjjj"),
    ("atomicity", "programs/account.c", "jjjjj"),
    ("deadlock", "programs/three_locks.c", "jjjjj"),
    ("large", "crates/cli/tests/programs/twenty.c", "on"),
];
/// Width and height of the windows.
const WINDOWS: [(u32, u32); 3] = [(400, 860), (1200, 860), (2000, 1100)];
const TOOL: &str = "target/debug/selvedge";
/// The larger report has at least this many bytes.
const LARGE: usize = 5_000_000;
const TIMES: usize = 5;

/// Tests the programs and takes the pictures.
pub(crate) fn run() -> Outcome {
    setup::run()?;
    // As the tests build the tool, so that cargo builds nothing twice.
    let build = ["test", "--workspace", "--exclude", "selvedge-bench-rust", "--no-run"];
    cargo(&[&build[..], &["--test", "page"]].concat())?;
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    for (name, source, keys) in PAGES {
        let work = root().join("target/pictures").join(name);
        let page = page(&work, source, &[])?;
        for theme in ["light", "dark"] {
            let themed = work.join(format!("{theme}.html"));
            fs::write(&themed, prepared(&page, theme, keys)).map_err(|e| e.to_string())?;
            for (width, height) in WINDOWS {
                let picture = folder.join(format!("{name}-{width}-{theme}.png"));
                let how = [
                    format!("--window-size={width},{height}"),
                    format!("--screenshot={}", picture.display()),
                ];
                browse(&work, &themed, &how)?;
            }
        }
    }
    opening()
}

/// Prints how long Chromium takes from the navigation to a page that is laid out, of a report with all the steps of
/// twenty threads.
fn opening() -> Outcome {
    let work = root().join("target/pictures/opening");
    let page = page(&work, "crates/cli/tests/programs/twenty.c", &["-DROUNDS=95", "-DTWICE"])?;
    let size = page.len();
    if size < LARGE {
        return Err(format!("the page has {size} bytes, which is less than {LARGE}"));
    }
    let script = "<script>addEventListener('load', () => { void document.body.offsetHeight; \
        document.body.textContent = `OPEN${Math.round(performance.now())}END`; });</script></body>";
    let file = work.join("timed.html");
    fs::write(&file, page.replace("</body>", script)).map_err(|e| e.to_string())?;
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let dom = browse(&work, &file, &["--dump-dom".to_owned()])?;
        let time = dom.split("OPEN").nth(1).and_then(|rest| rest.split("END").next());
        let time = time.and_then(|t| t.parse::<u32>().ok());
        times.push(time.ok_or("the page did not say when it was open")?);
    }
    times.sort_unstable();
    println!(
        "a report of {:.1} MB is laid out {} ms after the navigation (median of {TIMES}; {} to {} ms)",
        size as f64 / 1e6,
        times[TIMES / 2],
        times[0],
        times[TIMES - 1],
    );
    Ok(())
}

/// Builds and tests a program in a folder of its own; the page of the report.
fn page(work: &Path, source: &str, options: &[&str]) -> Result<String, String> {
    let _ = fs::remove_dir_all(work);
    fs::create_dir_all(work.join(".selvedge")).map_err(|e| e.to_string())?;
    let source = root().join(source);
    for file in [source.clone(), root().join("programs/shape.h")] {
        let name = file.file_name().unwrap_or_default();
        fs::copy(&file, work.join(name)).map_err(|e| e.to_string())?;
    }
    let name = source.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let include = format!("-I{}", root().join("crates/runtime/include").display());
    let build = ["cc", "-g", "-O1", "-pthread", &include, name, "-o", "program"];
    tool(work, &[&build, options].concat())?;
    // With time enough, interleavings become as short as they can.
    let budget = ["--schedules", "300", "--time", "10m"];
    tool(work, &[&["test", "--fail-on", "never"], &budget[..], &["--", "./program"]].concat())?;
    tool(work, &["report", "--html", "report.html"])?;
    fs::read_to_string(work.join("report.html")).map_err(|e| e.to_string())
}

/// The page in a theme, at its first interleaving, after some keys. Chromium takes pictures of the beginning of a page
/// only, so what is above is left out.
fn prepared(page: &str, theme: &str, keys: &str) -> String {
    let html = format!("<html lang=\"en\" data-theme=\"{theme}\">");
    let script = format!(
        "<script>document.documentElement.style.scrollBehavior = 'auto';
         for (const key of '{keys}') document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }}));
         scrollTo(0, 0);
         const hows = document.querySelector('.hows');
         for (const above of [...hows.parentElement.children].slice(2)) if (above === hows) break; else if (!above.matches('.circle')) above.remove();
         if (hows.querySelector('.many')) hows.querySelector('.how').remove();
         if (innerWidth < 900) document.querySelectorAll('nav, .filter').forEach((above) => above.remove());</script></body>"
    );
    page.replacen("<html lang=\"en\">", &html, 1).replace("</body>", &script)
}

fn tool(work: &Path, arguments: &[&str]) -> Outcome {
    call(work, &root().join(TOOL), arguments).map(drop)
}

fn browse(work: &Path, page: &Path, how: &[String]) -> Result<String, String> {
    let profile = format!("--user-data-dir={}", work.join("profile").display());
    let page = format!("file://{}", page.display());
    let mut arguments = vec!["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"];
    arguments.extend([profile.as_str()].into_iter().chain(how.iter().map(String::as_str)));
    arguments.push(&page);
    call(work, Path::new("chromium"), &arguments)
}

/// What a program prints.
fn call(work: &Path, program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).current_dir(work).output();
    let output = output.map_err(|e| format!("{}: {e}", program.display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{} {arguments:?}: {said}", program.display()))
        }
    }
}
