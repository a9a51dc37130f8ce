//! What the measurements of small C programs have in common: a directory of their own with a store, the programs
//! built there, and which of them are wanted.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::measure::succeed;

/// A temporary directory, which is also the current one, and the tool.
pub(crate) struct Place {
    directory: PathBuf,
    pub(crate) selvedge: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Place {
    /// A place for the measurement of that name.
    pub(crate) fn new(measurement: &str) -> Result<Place, String> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        let selvedge = own.with_file_name("selvedge");
        if !selvedge.exists() {
            let build = "`cargo build --release -p selvedge-cli`";
            return Err(format!("the tool is not built; run {build}"));
        }
        let name = format!("selvedge-{measurement}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(directory.join(".selvedge")).map_err(|e| e.to_string())?;
        std::env::set_current_dir(&directory).map_err(|e| e.to_string())?;
        Ok(Place { directory, selvedge })
    }

    /// The program of a source file, built by a compiler alone.
    pub(crate) fn native(
        &self,
        source: &Path,
        compiler: &str,
        options: &[&str],
    ) -> Result<PathBuf, String> {
        let form = format!("{compiler}.native");
        self.built(Command::new(compiler), &form, source, options)
    }

    /// The program of a source file, built by `selvedge cc` with that compiler.
    pub(crate) fn ours(
        &self,
        source: &Path,
        compiler: &str,
        options: &[&str],
    ) -> Result<PathBuf, String> {
        let mut command = Command::new(&self.selvedge);
        command.arg("cc").arg(format!("--selvedge-compiler={compiler}"));
        self.built(command, &format!("{compiler}.ours"), source, options)
    }

    /// The program of a Rust source file that uses the crate `selvedge`, built by `cargo selvedge`.
    pub(crate) fn rust(&self, source: &Path) -> Result<PathBuf, String> {
        let text = |e: std::io::Error| e.to_string();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().map_err(text)?;
        let package = self.directory.join("rust");
        std::fs::create_dir_all(package.join("src")).map_err(text)?;
        let manifest = format!(
            "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
             selvedge = {{ path = {:?}, default-features = false }}\n\n[profile.dev]\nopt-level = 1\n\n\
             [workspace]\n",
            root.join("crates/selvedge")
        );
        std::fs::write(package.join("Cargo.toml"), manifest).map_err(text)?;
        // The same versions as here, so that nothing has to be asked for.
        std::fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).map_err(text)?;
        std::fs::copy(source, package.join("src/main.rs")).map_err(text)?;
        let mut cargo = Command::new(self.selvedge.with_file_name("cargo-selvedge"));
        cargo.args(["selvedge", "build", "--offline", "--quiet"]).current_dir(&package);
        succeed(cargo.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS"))?;
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let program = self.directory.join(format!("{stem}.rust"));
        let built = "target/selvedge/x86_64-unknown-linux-gnu/debug/program";
        std::fs::copy(package.join(built), &program).map_err(text)?;
        Ok(program)
    }

    fn built(
        &self,
        mut command: Command,
        form: &str,
        source: &Path,
        options: &[&str],
    ) -> Result<PathBuf, String> {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy();
        let program = self.directory.join(format!("{stem}.{form}{}", options.concat()));
        command.arg("-g").args(options).arg(source);
        succeed(command.args(["-lm", "-lpthread", "-o"]).arg(&program))?;
        Ok(program)
    }
}

/// A source file of the benchmarks.
pub(crate) fn source(folder: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(format!("{name}.c"))
}

/// Those of the programs that have one of the names, or all if there are no names.
pub(crate) fn wanted<'a, T>(
    all: &'a [T],
    name: impl Fn(&T) -> &'static str,
    names: &[&str],
) -> Result<Vec<&'a T>, String> {
    let some: Vec<&T> =
        all.iter().filter(|t| names.is_empty() || names.contains(&name(t))).collect();
    if some.is_empty() {
        let all: Vec<&str> = all.iter().map(name).collect();
        return Err(format!("programs: {}", all.join(" ")));
    }
    Ok(some)
}

/// The exit code of a measurement; a problem is printed.
pub(crate) fn exit_code(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
