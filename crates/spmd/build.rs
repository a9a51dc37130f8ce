//! Compiles the part that runs inside ranks as a shared library, and leaves it where this crate embeds it from.
//!
//! It is not a Cargo dependency in this form, because Cargo builds no shared library for another crate to embed.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=rank/src");
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let library = out.join("libselvedge_rank.so");
    let mut command = Command::new(rustc);
    command
        .args(["--edition", "2024", "--crate-name", "selvedge_spmd_rank"])
        .args(["--crate-type", "cdylib", "--cfg", "selvedge_rank", "-Awarnings"])
        .args(["-Copt-level=3", "-Cpanic=abort", "-Cstrip=symbols", "-Ccodegen-units=4"])
        .args(["-Clink-arg=-Wl,-soname,libselvedge_rank.so"])
        .args(["--target", "x86_64-unknown-linux-gnu", "-o"])
        .arg(&library)
        .arg("rank/src/lib.rs");
    let status = command.status().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    assert!(status.success(), "{command:?} failed with {status}");
}
