//! `cargo xtask pictures`: the pictures of HTML reports in `docs/pictures`, made in headless Chromium.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::setup;
use crate::shell::{Outcome, cargo};

/// Where the pictures go.
const FOLDER: &str = "docs/pictures";
/// The name of a picture, its program, and the widths.
const PAGES: [(&str, &str, &[u32]); 3] = [
    ("race", "crates/cli/tests/programs/lost_update.c", &[400, 1200, 2000]),
    ("deadlock", "programs/three_locks.c", &[1200]),
    ("atomicity", "programs/string_buffer.cpp", &[1200]),
];
const TOOL: &str = "target/debug/selvedge";

/// Tests the programs and takes the pictures.
pub(crate) fn run() -> Outcome {
    setup::run()?;
    cargo(&["build", "--package", "selvedge-cli", "--bins"])?;
    let root = std::env::current_dir().map_err(|e| e.to_string())?;
    let tool = root.join(TOOL);
    let tool = tool.to_str().ok_or("the path of the checkout is not UTF-8")?;
    fs::create_dir_all(FOLDER).map_err(|e| e.to_string())?;
    for (name, source, widths) in PAGES {
        let work = root.join("target/pictures").join(name);
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(work.join(".selvedge")).map_err(|e| e.to_string())?;
        let file = Path::new(source).file_name().unwrap_or_default();
        fs::copy(root.join(source), work.join(file)).map_err(|e| e.to_string())?;
        let file = file.to_str().unwrap_or_default();
        let driver = if file.ends_with(".cpp") { "c++" } else { "cc" };
        let include = format!("-I{}", root.join("crates/runtime/include").display());
        let build = [driver, "-g", "-O1", &include, file, "-o", "program", "-lpthread"];
        call(&work, tool, &build)?;
        let test = ["test", "--fail-on", "never", "--schedules", "300", "--", "./program"];
        call(&work, tool, &test)?;
        call(&work, tool, &["report", "--html", "report.html"])?;
        let page = fs::read_to_string(work.join("report.html")).map_err(|e| e.to_string())?;
        for theme in ["light", "dark"] {
            let themed = work.join(format!("{theme}.html"));
            fs::write(&themed, prepared(&page, theme)).map_err(|e| e.to_string())?;
            for width in widths {
                let picture = root.join(FOLDER).join(format!("{name}-{width}-{theme}.png"));
                take(&work, &themed, &picture, *width)?;
            }
        }
    }
    Ok(())
}

/// The page in a theme, at the first interleaving, some steps into it.
fn prepared(page: &str, theme: &str) -> String {
    let html = format!("<html lang=\"en\" data-theme=\"{theme}\">");
    let script = "<script>for (let i = 0; i < 4; i += 1) document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true }));
document.documentElement.style.scrollBehavior = 'auto';
const how = document.querySelector('.hows'); if (how) scrollTo(0, how.getBoundingClientRect().top + scrollY - 70);</script></body>";
    page.replacen("<html lang=\"en\">", &html, 1).replace("</body>", script)
}

fn take(work: &Path, page: &Path, picture: &Path, width: u32) -> Outcome {
    let arguments = [
        "--headless".to_owned(),
        "--no-sandbox".to_owned(),
        "--disable-gpu".to_owned(),
        "--hide-scrollbars".to_owned(),
        format!("--user-data-dir={}", work.join("profile").display()),
        format!("--window-size={width},760"),
        format!("--screenshot={}", picture.display()),
        format!("file://{}", page.display()),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    call(work, "chromium", &arguments)
}

fn call(work: &Path, program: &str, arguments: &[&str]) -> Outcome {
    let output = Command::new(program).args(arguments).current_dir(work).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))
        }
    }
}
