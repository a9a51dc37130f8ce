//! Regions by name, through the command line: the kernels of `bench/noninterference` at a small size, each
//! with the verdicts that SingleTrack's paper has for the program it is made after.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of its own for each test, gone afterwards.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("selvedge-noninterference-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join(".selvedge")).unwrap();
        Place(path)
    }

    fn selvedge(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.args(args).current_dir(&self.0).env("NO_COLOR", "1").env_remove("SELVEDGE_CC");
        command.output().unwrap()
    }

    fn build(&self, kernel: &str, options: &[&str]) {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/noninterference");
        let source = kernels.join(format!("{kernel}.c")).canonicalize().unwrap();
        let mut args = vec!["cc", "-O2", "-g", "-DTINY"];
        args.extend(options);
        let output = self
            .selvedge(&[&args[..], &[source.to_str().unwrap(), "-o", kernel, "-lm"][..]].concat());
        assert!(output.status.success(), "{kernel}: {}", stderr(&output));
    }

    /// Exit code and report of a run.
    fn run(&self, kernel: &str, options: &[&str]) -> (i32, String) {
        let program = format!("./{kernel}");
        let output = self.selvedge(&[&["run"], options, &["--", &program]].concat());
        (output.status.code().unwrap(), stderr(&output))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const KERNELS: [&str; 11] = [
    "crypt",
    "lufact",
    "series",
    "sor",
    "sparse",
    "moldyn",
    "montecarlo",
    "raytracer",
    "quicksort",
    "matrixmult",
    "workqueue",
];

/// Which functions are regions: all, but of the work queue, which is not deterministic, only its tasks.
fn pattern(kernel: &str) -> &'static str {
    if kernel == "workqueue" { "run" } else { "*" }
}

#[test]
fn correct_kernels_are_deterministic_and_not_atomic() {
    let place = Place::new("correct");
    for kernel in KERNELS {
        place.build(kernel, &[]);
        let pattern = pattern(kernel);
        let (code, report) =
            place.run(kernel, &["--analyses", "determinism", "--deterministic", pattern]);
        assert_eq!(code, 0, "{kernel}: {report}");
        assert!(report.contains("nothing found"), "{kernel}: {report}");
        // Nothing that starts threads and waits for them is atomic, though nothing is wrong with it.
        let (code, report) =
            place.run(kernel, &["--analyses", "atomicity", "--atomic-methods", pattern]);
        let region = if kernel == "workqueue" { "run" } else { "main" };
        assert_eq!(code, 1, "{kernel}: {report}");
        assert!(report.contains(&format!("atomicity violation in `{region}`")), "{report}");
    }
}

#[test]
fn both_bugs_are_found_where_they_are() {
    let place = Place::new("bugs");
    for (kernel, variable, line) in [
        ("raytracer", "checksum", "checksum = checksum + sum"),
        ("sor", "progress", "progress[me]"),
    ] {
        place.build(kernel, &["-DBUG"]);
        // The option turns the analysis on.
        let (code, report) =
            place.run(kernel, &["--deterministic", "*", "--analyses", "deadlocks"]);
        assert_eq!(code, 1, "{kernel}: {report}");
        assert!(report.contains("determinism violation in `"), "{kernel}: {report}");
        assert!(report.contains(&format!("in `{variable}")), "{kernel}: {report}");
        assert!(report.contains(line) && report.contains("enters `main`"), "{kernel}: {report}");
    }
}

#[test]
fn only_functions_of_that_name_are_regions() {
    let place = Place::new("names");
    place.build("quicksort", &[]);
    let atomic = |pattern| place.run("quicksort", &["--atomic-methods", pattern]).1;
    assert!(atomic("sort_*").contains("atomicity violation in `sort_slice`"));
    assert!(!atomic("sort_*").contains("in `main`"));
    assert!(atomic("no_such_function").contains("nothing found"));
}

/// Two threads meet inside a block that claims to be atomic; in the fixed twin one comes after the other.
/// (They must not even wait for each other: the locks of Rust's standard library are atomics to us.)
const MARKED: &str = r#"
use std::sync::{Arc, Barrier, Mutex};

fn main() {
    let (total, meeting) = (Arc::new(Mutex::new(0)), Arc::new(Barrier::new(2)));
    let teller = |total: Arc<Mutex<i32>>, meeting: Arc<Barrier>| {
        move || {
            selvedge::atomic("deposit", || {
                let seen = *total.lock().unwrap();
                if !cfg!(feature = "fixed") {
                    meeting.wait();
                }
                *total.lock().unwrap() = seen + 1;
            })
        }
    };
    let other = std::thread::spawn(teller(total.clone(), meeting.clone()));
    let mine = teller(total.clone(), meeting);
    if cfg!(feature = "fixed") {
        other.join().unwrap();
        mine();
    } else {
        mine();
        other.join().unwrap();
    }
    println!("{}", total.lock().unwrap());
}
"#;

#[test]
fn marks_in_rust_programs_are_regions() {
    let place = Place::new("rust");
    let selvedge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../selvedge");
    let manifest = format!(
        "[package]\nname = \"marked\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [features]\nfixed = []\n\
         [dependencies]\nselvedge = {{ path = {:?}, default-features = false }}\n[workspace]\n",
        selvedge.canonicalize().unwrap()
    );
    std::fs::write(place.0.join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(place.0.join("src")).unwrap();
    std::fs::write(place.0.join("src/main.rs"), MARKED).unwrap();
    // The same versions as here, so that nothing has to be asked for.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    std::fs::copy(lock, place.0.join("Cargo.lock")).unwrap();
    let run = |features: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-selvedge"));
        command.args(["selvedge", "--analyses", "atomicity", "run", "--quiet"]).args(features);
        command.current_dir(&place.0).env("NO_COLOR", "1").env("CARGO_NET_OFFLINE", "true");
        // Cargo sets these for tests, and they are not meant for another Cargo.
        command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
        command.output().unwrap()
    };
    let output = run(&[]);
    let report = stderr(&output);
    assert!(report.contains("atomicity violation in `deposit`"), "{report}");
    assert!(report.contains("selvedge::atomic(\"deposit\""), "the place of the mark: {report}");
    assert_eq!(output.status.code(), Some(1), "{report}");
    let output = run(&["--features", "fixed"]);
    let report = stderr(&output);
    assert!(output.status.success() && report.contains("nothing found"), "{report}");
}

/// Kinds and statuses of what `selvedge test` reports of a program.
fn tested(
    place: &Place,
    source: &Path,
    defines: &[&str],
    options: &[&str],
) -> Vec<(String, String)> {
    let build = [&["cc", "-g", "-O1", source.to_str().unwrap(), "-o", "program"], defines].concat();
    let output = place.selvedge(&build);
    assert!(output.status.success(), "{}", stderr(&output));
    let args = ["test", "--format", "json", "--schedules", "300"];
    let output = place.selvedge(&[&args[..], options, &["--", "./program"]].concat());
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    let findings = document["findings"].as_array().unwrap();
    findings.iter().map(|f| (text(&f["kind"]), text(&f["status"]))).collect()
}

/// A program is confirmed to be wrong, and its fixed twin is not.
fn confirms(place: &Place, source: &Path, options: &[&str], kind: &str) {
    let found = tested(place, source, &[], options);
    let confirmed = (kind.to_owned(), "confirmed".to_owned());
    assert!(found.contains(&confirmed), "{}: {found:?}", source.display());
    let found = tested(place, source, &["-DFIXED"], options);
    let sure = |(_, status): &(String, String)| status == "confirmed" || status == "observed";
    assert!(!found.iter().any(sure), "{} fixed: {found:?}", source.display());
}

#[test]
fn high_level_races_and_atomicity_violations_are_confirmed() {
    let place = Place::new("confirmed");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
    confirms(&place, &own.join("coordinates.c"), &[], "high-level-race");
    confirms(&place, &bundled.join("account.c"), &[], "atomicity-violation");
    confirms(&place, &own.join("ledger.c"), &["--lock-regions"], "atomicity-violation");
}
