//! Fewer hooks in Rust programs: the same races, the same executions under control, and nothing left over of the bitcode that
//! they are made of.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Project, stderr, stdout};

const TABLE: &str = r"//! A library whose code stays its own: other crates call it.
pub static mut TABLE: [u64; 512] = [0; 512];
static mut CALLS: [fn() -> u64; 2] = [first, first];

fn first() -> u64 {
    1
}

/// Adds to each number.
#[inline(never)]
pub fn fill(by: u64) {
    let table = unsafe { &mut *(&raw mut TABLE) };
    for number in table.iter_mut() {
        *number = number.wrapping_add(by);
    }
    let calls = &raw const CALLS;
    table[0] += unsafe { (*calls)[1]() };
}
";

const PROGRAM: &str = r#"//! Two threads fill a table of the library and count in a table of the program, without a lock.
static mut COUNTS: [u32; 1000] = [0; 1000];

#[inline(never)]
fn count() {
    let counts = unsafe { &mut *(&raw mut COUNTS) };
    for number in counts.iter_mut() {
        *number += 1;
    }
}

fn main() {
    let other = std::thread::spawn(|| {
        table::fill(1);
        count();
    });
    table::fill(2);
    count();
    other.join().unwrap();
    let (table, counts) = (&raw const table::TABLE, &raw const COUNTS);
    println!("{}", unsafe { (*table)[7] + u64::from((*counts)[9]) });
}
"#;

/// A program and its library, and how its profiles are built.
fn project(name: &str, profile: &str) -> Project {
    let project = Project::new(name);
    for folder in ["src", "table/src"] {
        fs::create_dir_all(project.0.join(folder)).unwrap();
    }
    let package = |name: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n")
    };
    let rest = "[dependencies]\ntable = { path = \"table\" }\n[workspace]\n";
    let manifest = format!("{}{rest}{profile}", package("filled"));
    fs::write(project.0.join("Cargo.toml"), manifest).unwrap();
    fs::write(project.0.join("table/Cargo.toml"), package("table")).unwrap();
    fs::write(project.0.join("table/src/lib.rs"), TABLE).unwrap();
    fs::write(project.0.join("src/main.rs"), PROGRAM).unwrap();
    project
}

/// Builds the program with these hooks; the executable, and the folder that it was linked from.
fn built(project: &Project, hooks: &str, options: &[&str]) -> (PathBuf, PathBuf) {
    let target = format!("target-{hooks}");
    let words = [&["selvedge", "build", "--offline", "--target-dir", &target], options].concat();
    let mut cargo = project.command(env!("CARGO_BIN_EXE_cargo-selvedge"), &words);
    cargo.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").env("SELVEDGE_HOOKS", hooks);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let profile = if options.contains(&"--release") { "release" } else { "debug" };
    let folder = project.0.join(target).join("x86_64-unknown-linux-gnu").join(profile);
    (folder.join("filled"), folder.join("deps"))
}

/// Whether a function has two bodies, one for few hooks and one for all.
fn has_two_bodies(executable: &Path, function: &str) -> bool {
    let name = format!("{function}.all_hooks");
    fs::read(executable).unwrap().windows(name.len()).any(|w| w == name.as_bytes())
}

/// The races that a run tells, with their places.
fn races(project: &Project, executable: &Path) -> Vec<String> {
    let program = executable.to_str().unwrap();
    let ran = project.selvedge(&["run", "--format", "json", "--", program]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&ran))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&ran)));
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let told = findings.map(|finding| {
        let mut sites = finding["sites"].as_array().unwrap().iter().map(|s| text(&s["site"]));
        let (first, second) = (sites.next().unwrap(), sites.next().unwrap());
        // Whichever came first.
        let (first, second) = if first < second { (first, second) } else { (second, first) };
        let summary = text(&finding["summary"]);
        // Which element they raced on is a matter of time.
        let variable = summary.split(['+', '`']).nth(1).unwrap();
        format!("{variable}: {first}, {second}")
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

/// The events of some executions under control.
fn events(project: &Project, executable: &Path) -> u64 {
    let program = executable.to_str().unwrap();
    let options = ["explore", "--strategy", "random", "--schedules", "3", "--seed", "7"];
    let words = [&options[..], &["--format", "json", "--", program]].concat();
    let explored = project.selvedge(&words);
    let stats: serde_json::Value = serde_json::from_str(&stdout(&explored)).unwrap();
    stats["stats"]["events"].as_u64().unwrap()
}

/// The program tells the same with both. Without optimisation there is nothing that a loop's body leaves to one hook.
fn same_with_both(name: &str, profile: &str, options: &[&str]) {
    let project = project(name, profile);
    let (own, folder) = built(&project, "own", options);
    let (compilers, _) = built(&project, "compiler", options);
    // `count` may be part of `main`.
    for functions in [&["fill"][..], &["count", "main"]] {
        let in_any = |executable| functions.iter().any(|f| has_two_bodies(executable, f));
        assert_eq!(in_any(&own), !options.is_empty(), "{functions:?}");
        assert!(!in_any(&compilers), "{functions:?}");
    }
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let left: Vec<PathBuf> = files.filter(|f| f.to_string_lossy().ends_with(".bc")).collect();
    assert!(left.is_empty(), "{left:?}");
    let found = races(&project, &own);
    assert!(found.iter().any(|race| race.contains("TABLE")), "{found:?}");
    assert!(found.iter().any(|race| race.contains("COUNTS")), "{found:?}");
    assert_eq!(found, races(&project, &compilers));
    let known = events(&project, &compilers);
    assert!(known > 1_500, "{known}");
    let of_own = events(&project, &own);
    // rustc may merge equal functions of a whole program only if it keeps its hooks.
    assert!(of_own == known || profile.contains("lto") && of_own > 1_500, "{of_own}, {known}");
}

#[test]
fn optimised_programs_race_alike_with_all_hooks_and_with_few() {
    let several = "[profile.release]\ncodegen-units = 4\n";
    same_with_both("rust-hooks", several, &["--release"]);
}

#[test]
fn so_do_programs_that_are_not_optimised() {
    same_with_both("rust-hooks-debug", "", &[]);
}

#[test]
fn so_do_programs_of_one_unit_and_programs_that_are_optimised_as_a_whole() {
    let one = "[profile.release]\ncodegen-units = 1\n";
    same_with_both("rust-hooks-one-unit", one, &["--release"]);
    let whole = "[profile.release]\nlto = true\ncodegen-units = 4\n";
    same_with_both("rust-hooks-whole", whole, &["--release"]);
}

#[test]
fn without_the_compilers_library_its_own_hooks_stay() {
    let project = project("rust-hooks-none", "");
    // A compiler that lies about where its files are.
    let compiler = project.0.join("compiler.sh");
    let script = "#!/bin/sh\ncase \"$*\" in '--print sysroot') echo /nowhere;; *) exec rustc \"$@\";; esac\n";
    fs::write(&compiler, script).unwrap();
    fs::set_permissions(&compiler, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let words = ["selvedge", "build", "--offline", "--release", "--target-dir", "target"];
    let mut cargo = project.command(env!("CARGO_BIN_EXE_cargo-selvedge"), &words);
    cargo.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").env("RUSTC", &compiler);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let executable = project.0.join("target/x86_64-unknown-linux-gnu/release/filled");
    assert!(!has_two_bodies(&executable, "fill"));
    let said = stderr(&output);
    assert!(said.contains("the compiler's own hooks are used"), "{said}");
    assert!(races(&project, &executable).iter().any(|race| race.contains("TABLE")));
}
