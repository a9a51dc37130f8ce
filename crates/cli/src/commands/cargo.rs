//! `cargo selvedge`: builds unmodified Rust crates with instrumentation, on a stable toolchain.
//!
//! Cargo does the work. We only give it other flags, another linker and another target directory, and make
//! it run programs through `selvedge run`. The standard library is not rebuilt: its generic and inlined code
//! is compiled into the program, and so instrumented with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::args::{CargoArguments, FailOn, RunOptions};
use crate::exit::Failure;
use crate::program::compiler::rust;
use crate::program::toolbox::Toolbox;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Environment variable with the user's own wrapper around the compiler.
const WRAPPER: &str = "SELVEDGE_RUSTC_WRAPPER";

/// Flags that make the compiler instrument without linking its own runtime. The third flag is needed because
/// the standard library is not instrumented; the last one turns on the region marks of the `selvedge` crate.
const FLAGS: [&str; 4] = [
    "-Zsanitizer=thread",
    "-Zexternal-clangrt",
    "-Cunsafe-allow-abi-mismatch=sanitizer",
    "--cfg=selvedge_native",
];

/// Runs Cargo. The exit code is Cargo's, which is the observed program's if Cargo runs one.
pub(crate) fn run(args: &CargoArguments) -> Result<ExitCode, Failure> {
    let (subcommand, rest) = args.command.split_first().expect("the command line requires one");
    let known = ["build", "b", "run", "r", "test", "t", "bench", "rustc", "nextest"];
    if !subcommand.to_str().is_some_and(|s| known.contains(&s)) {
        return Err(Failure::Usage(format!(
            "cargo selvedge does not support `{}`; it supports build, run, test, bench and nextest",
            subcommand.to_string_lossy()
        )));
    }
    let toolbox = Toolbox::unpack()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.arg(subcommand);
    // `cargo nextest run` takes Cargo's options after `run`.
    let own = usize::from(subcommand == "nextest").min(rest.len());
    let (own, rest) = rest.split_at(own);
    command.args(own);
    configure(&mut command, &toolbox, args)?;
    if !names(rest, "--target-dir") {
        command.arg("--target-dir").arg(target_directory(&cargo, rest)?);
    }
    command.args(rest);
    let status = command.status().map_err(|error| Failure::Open { path: cargo.into(), error })?;
    Ok(crate::program::compiler::code(status))
}

fn configure(
    command: &mut Command,
    toolbox: &Toolbox,
    args: &CargoArguments,
) -> Result<(), Failure> {
    let own = std::env::current_exe()?;
    let mut runner = vec![text(&own)?, "run".to_owned()];
    runner.push(format!("--color={}", args.color.name()));
    runner.extend(run_options(&args.options)?);
    runner.push("--".to_owned());
    let mut set = |key: &str, value: String| {
        command.arg("--config").arg(format!("target.{TARGET}.{key}={value}"));
    };
    set("linker", quoted(&text(&toolbox.cc)?));
    set("runner", list(runner.iter().map(String::as_str)));
    // Flags from the environment replace all others, so ours must go there too.
    let mut flags: Vec<&str> = FLAGS.to_vec();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let llvm = rust::is_wanted().then(|| rust::library_of(&compiler)).flatten();
    if llvm.is_some() {
        flags.push(rust::FLAG);
    }
    let from_environment = added("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", &flags);
    if from_environment.is_none() {
        set("rustflags", list(flags.iter().copied()));
    }
    let docs_from_environment = added("RUSTDOCFLAGS", "CARGO_ENCODED_RUSTDOCFLAGS", &flags);
    if docs_from_environment.is_none() {
        set("rustdocflags", list(flags.iter().copied()));
    }
    command.envs(from_environment.into_iter().chain(docs_from_environment));
    command.arg("--target").arg(TARGET);
    command.env("RUSTC_BOOTSTRAP", "1");
    command.env(WRAPPER, std::env::var_os("RUSTC_WRAPPER").unwrap_or_default());
    command.env("RUSTC_WRAPPER", &toolbox.rustc);
    command.env(rust::LIBRARY, llvm.unwrap_or_default());
    // Without line tables, findings would have no places in the source.
    for profile in ["RELEASE", "BENCH"] {
        let variable = format!("CARGO_PROFILE_{profile}_DEBUG");
        if std::env::var_os(&variable).is_none() {
            command.env(variable, "line-tables-only");
        }
    }
    // For C and C++ code in crates.
    for (variable, compiler) in [
        ("CC_x86_64_unknown_linux_gnu", &toolbox.cc),
        ("CXX_x86_64_unknown_linux_gnu", &toolbox.cxx),
    ] {
        if std::env::var_os(variable).is_none() {
            command.env(variable, compiler);
        }
    }
    Ok(())
}

/// The wrapper that Cargo calls instead of the Rust compiler, which is the first word. It changes only Cargo's
/// question about the target's `cfg`: the answer does not mention the sanitizer. If build scripts knew of it,
/// some crates would compile other code to suit ThreadSanitizer's limits (crossbeam-deque leaves out fences,
/// which Selvedge supports), and Selvedge would observe that code instead.
pub(crate) fn rustc(words: &[OsString]) -> Result<ExitCode, Failure> {
    let users = std::env::var_os(WRAPPER).filter(|w| !w.is_empty());
    let asks = words.iter().any(|w| w == "--print=cfg");
    let mut words = users.iter().chain(words).filter(|w| !asks || *w != FLAGS[0]);
    let program =
        words.next().ok_or_else(|| Failure::Usage("cargo named no compiler to call".to_owned()))?;
    let words: Vec<OsString> = words.cloned().collect();
    let call = rust::Call::of(&words);
    let more = call.iter().flat_map(|call| &call.options);
    let status = Command::new(program).args(&words).args(more).status();
    let status = status.map_err(|error| Failure::Open { path: program.into(), error })?;
    if let Some(call) = call {
        call.finish(status.success());
    }
    Ok(crate::program::compiler::code(status))
}

/// The user's flags from the environment, if there are any, followed by ours.
fn added(plain: &str, encoded: &str, flags: &[&str]) -> Option<(String, String)> {
    const SEPARATOR: &str = "\u{1f}";
    let of = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    if let Some(own) = of(encoded) {
        return Some((encoded.to_owned(), format!("{own}{SEPARATOR}{}", flags.join(SEPARATOR))));
    }
    of(plain).map(|own| (plain.to_owned(), format!("{own} {}", flags.join(" "))))
}

/// The options of `selvedge run` as command-line arguments.
fn run_options(options: &RunOptions) -> Result<Vec<String>, Failure> {
    let here = std::env::current_dir()?;
    let fail_on = match options.fail_on {
        FailOn::Confirmed => "confirmed",
        FailOn::Observed => "observed",
        FailOn::Predicted => "predicted",
        FailOn::Never => "never",
    };
    let mut words = vec![
        format!("--analyses={}", options.analyses.join(",")),
        format!("--format={}", options.format.name),
        format!("--fail-on={fail_on}"),
        format!("--linger={}ms", options.linger.as_millis()),
    ];
    if options.all {
        words.push("--all".to_owned());
    }
    // Cargo runs tests in the directory of their package.
    for directory in &options.source {
        words.push(format!("--source={}", text(&here.join(directory))?));
    }
    for file in &options.suppressions {
        words.push(format!("--suppressions={}", text(&here.join(file))?));
    }
    words.extend(options.regions.words());
    Ok(words)
}

/// A target directory of its own, so that ordinary builds and ours do not overwrite each other's files.
fn target_directory(cargo: &OsString, args: &[OsString]) -> Result<PathBuf, Failure> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    if let Some(manifest) = value(args, "--manifest-path") {
        command.arg("--manifest-path").arg(manifest);
    }
    let output = command.output().map_err(|error| Failure::Open { path: cargo.into(), error })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::Usage(message.trim_start_matches("error: ").to_owned()));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|e| Failure::Usage(format!("cannot parse the output of cargo metadata: {e}")))?;
    Ok(metadata.target_directory.join("selvedge"))
}

/// Whether Cargo's own arguments, those before `--`, have an option.
fn names(args: &[OsString], option: &str) -> bool {
    value(args, option).is_some()
}

fn value(args: &[OsString], option: &str) -> Option<OsString> {
    let own: Vec<&OsString> = args.iter().take_while(|a| *a != "--").collect();
    own.iter().enumerate().find_map(|(i, arg)| {
        let arg = arg.to_string_lossy();
        if arg == option {
            return own.get(i + 1).map(|v| (*v).clone());
        }
        arg.strip_prefix(option)?.strip_prefix('=').map(OsString::from)
    })
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        Failure::Usage(format!("{}: Cargo accepts only UTF-8 paths here", path.display()))
    })
}

/// A TOML array.
fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.map(quoted).collect();
    format!("[{}]", quoted.join(","))
}

/// A TOML string; JSON's escapes are TOML's, too.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("strings serialise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_cargos_only_before_the_separator() {
        let args =
            |line: &str| -> Vec<OsString> { line.split_whitespace().map(OsString::from).collect() };
        assert_eq!(
            value(&args("--manifest-path a/Cargo.toml"), "--manifest-path"),
            Some("a/Cargo.toml".into())
        );
        assert_eq!(value(&args("--manifest-path=b"), "--manifest-path"), Some("b".into()));
        assert!(!names(&args("-p x -- --target-dir y"), "--target-dir"));
        assert!(!names(&args("--target-directory"), "--target-dir"));
    }

    #[test]
    fn toml_is_escaped() {
        assert_eq!(list(["a b", "c\"d"].into_iter()), r#"["a b","c\"d"]"#);
    }
}
