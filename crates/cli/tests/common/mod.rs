//! A project directory of its own for each test, gone afterwards.

#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) struct Project(pub(crate) PathBuf);

impl Project {
    pub(crate) fn new(name: &str) -> Project {
        let path = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join(".selvedge")).unwrap();
        Project(path)
    }

    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.0).env("NO_COLOR", "1").stdin(Stdio::null());
        for variable in ["SELVEDGE_CC", "SELVEDGE_CXX", "TSAN_OPTIONS"] {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn selvedge(&self, args: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_selvedge"), args).output().unwrap()
    }

    /// Calls a program that must succeed.
    pub(crate) fn call(&self, program: &str, args: &[&str]) {
        let output = self.command(program, args).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {}", stderr(&output));
    }

    /// Copies a source into the project, so that its paths are the project's.
    pub(crate) fn source(&self, name: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
        fs::copy(from, self.0.join(Path::new(name).file_name().unwrap())).unwrap();
    }

    /// Builds `program` of one Rust source, as a crate of its own.
    pub(crate) fn build_rust(&self, source: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
        self.build_crate(&from, "", "program");
    }

    /// Builds `program` of one Rust source that uses the crate `selvedge`.
    pub(crate) fn build_rust_with_blocks(&self, source: &str) {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let selvedge = here.join("../selvedge").canonicalize().unwrap();
        let dependency = format!(
            "[dependencies]\nselvedge = {{ path = {selvedge:?}, default-features = false }}\n"
        );
        // The same versions as here, so that nothing has to be asked for.
        fs::copy(here.join("../../Cargo.lock"), self.0.join("Cargo.lock")).unwrap();
        self.build_depending(&here.join("tests/programs").join(source), &dependency, "", "program");
    }

    /// Builds `output` of one Rust source from anywhere, with flags for the compiler.
    pub(crate) fn build_crate(&self, source: &Path, flags: &str, output: &str) {
        self.build_depending(source, "", flags, output);
    }

    fn build_depending(&self, source: &Path, dependencies: &str, flags: &str, output: &str) {
        let manifest = format!(
            "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{dependencies}\
             [profile.dev]\nopt-level = 1\n\n[workspace]\n"
        );
        fs::write(self.0.join("Cargo.toml"), manifest).unwrap();
        fs::create_dir_all(self.0.join("src")).unwrap();
        fs::copy(source, self.0.join("src/main.rs")).unwrap();
        let args = ["selvedge", "build", "--offline"];
        let mut cargo = self.command(env!("CARGO_BIN_EXE_cargo-selvedge"), &args);
        cargo.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
        if !flags.is_empty() {
            cargo.env("RUSTFLAGS", flags);
        }
        let built = cargo.output().unwrap();
        assert!(built.status.success(), "{}: {}", source.display(), stderr(&built));
        let built = "target/selvedge/x86_64-unknown-linux-gnu/debug/program";
        fs::copy(self.0.join(built), self.0.join(output)).unwrap();
    }

    /// Builds `program` of one C source.
    pub(crate) fn build(&self, source: &str, options: &[&str]) {
        self.source(source);
        let source = Path::new(source).file_name().unwrap().to_str().unwrap();
        let mut args = vec!["cc", "-g", "-O1", source, "-o", "program"];
        args.extend(options);
        self.call(env!("CARGO_BIN_EXE_selvedge"), &args);
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Standard output as a document.
pub(crate) fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}
