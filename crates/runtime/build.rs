//! Builds the injected part, in both its forms, and leaves it where the library embeds it from.
//!
//! It is not a Cargo dependency: it needs no standard library, aborts on panic, and must end up as one
//! object in which nothing but its interface is visible, or it would collide with the core library
//! inside Rust programs. So `rustc` is called directly, and `objcopy` then
//! 1. points the runtime's own `memcpy` and the like at private versions, and gives the public names
//!    to the interposers;
//! 2. makes the interposers weak, so that a program which brings its own `malloc` keeps it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const RENAMED: [&str; 4] = ["memcpy", "memmove", "memset", "memcmp"];

fn main() {
    println!("cargo:rerun-if-changed=injected/src");
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    build(&out, "static", &[]);
    build(&out, "shared", &["--cfg", "selvedge_shared"]);

    let archive = out.join("libselvedge.a");
    let _ = std::fs::remove_file(&archive);
    run(Command::new("ar").arg("crs").arg(&archive).arg(out.join("static.o")));
    // Nothing but the C library is behind it: `-nostdlib` keeps start files out, `-lc` binds versions.
    run(Command::new("cc")
        .args([
            "-shared",
            "-nostartfiles",
            "-Wl,-soname,libtsan.so.2",
            "-Wl,-z,now",
            "-Wl,-z,noexecstack",
        ])
        .arg("-o")
        .arg(out.join("libtsan.so.2"))
        .arg(out.join("shared.o")));
    println!("cargo:rustc-env=SELVEDGE_LIBRARIES={:016x}", fingerprint(&out));
}

/// Tells this build of the libraries from all others.
fn fingerprint(out: &Path) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    for file in ["libselvedge.a", "libtsan.so.2"] {
        std::fs::read(out.join(file)).expect("was just built").hash(&mut hasher);
    }
    hasher.finish()
}

/// Compiles one form to a single object.
fn build(out: &Path, form: &str, cfg: &[&str]) {
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let library = out.join(format!("{form}.a"));
    run(Command::new(rustc)
        .args(["--edition", "2024", "--crate-name", "selvedge_injected"])
        .args(["--crate-type", "staticlib", "--cfg", "selvedge_injected", "-Awarnings"])
        .args(["-Copt-level=3", "-Cpanic=abort", "-Clto=fat", "-Ccodegen-units=1"])
        .args(["-Crelocation-model=pic", "-Cdebuginfo=line-tables-only", "-Coverflow-checks=no"])
        .args(cfg)
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .arg("-o")
        .arg(&library)
        .arg("injected/src/lib.rs"));
    let object = own_object(&library, out);
    let [own, merged, result] =
        ["own", "merged", ""].map(|step| out.join(format!("{form}{step}.o")));
    let mut rename = Command::new("objcopy");
    rename.args(RENAMED.map(|n| format!("--redefine-sym={n}=selvedge_private_{n}")));
    run(rename.arg(&object).arg(&own));
    // A partial link makes one symbol of the private versions and the calls to them.
    run(Command::new("ld").arg("-r").arg("-o").arg(&merged).arg(&own));
    let weak = out.join("weak.txt");
    std::fs::write(&weak, interposers(&merged)).expect("OUT_DIR is writable");
    let mut publish = Command::new("objcopy");
    publish.arg(format!("--weaken-symbols={}", weak.display()));
    publish.args(RENAMED.map(|n| format!("--redefine-sym=selvedge_public_{n}={n}")));
    publish.args(RENAMED.map(|n| format!("--localize-symbol=selvedge_private_{n}")));
    run(publish.arg(&merged).arg(&result));
}

/// The symbols that a program may define itself, one a line.
fn interposers(object: &Path) -> String {
    let listing =
        Command::new("nm").args(["-g", "--defined-only", "--format=posix"]).arg(object).output();
    let listing = listing.expect("nm is installed").stdout;
    let names = String::from_utf8_lossy(&listing);
    let names = names.lines().filter_map(|l| l.split_whitespace().next());
    names.filter(|n| !n.starts_with("__tsan_")).chain(RENAMED).map(|n| format!("{n}\n")).collect()
}

/// Takes our object out of the archive; the others are compiler support that the program has anyway.
fn own_object(library: &Path, out: &Path) -> PathBuf {
    let listing = Command::new("ar").arg("t").arg(library).output().expect("ar is installed");
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let member = listing
        .lines()
        .find(|m| m.contains("selvedge_injected"))
        .unwrap_or_else(|| panic!("no object of ours in {}", library.display()));
    run(Command::new("ar").current_dir(out).arg("x").arg(library).arg(member));
    out.join(member)
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    assert!(status.success(), "{command:?} failed with {status}");
}
