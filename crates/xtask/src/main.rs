//! Development tasks, run as `cargo xtask TASK`.
//!
//! Depends on nothing but std, so that it builds first and fast on a fresh machine.

#![forbid(unsafe_code)]

mod bench;
mod instructions;
mod pictures;
mod port;
mod setup;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

use shell::{Outcome, cargo};

const USAGE: &str = "\
usage: cargo xtask TASK

  demo           build the tool and show what it does on bundled examples
  test           run everything that CI checks
  test --quick   run the checks and tests for every change, in less than two minutes
  bless [NAME…]  run the tests that have snapshots, and accept what they show now
  bench NAME … [--record]
                 measure one of: trace, races, programs, tsan, confirm, rust, noninterference, determinism,
                 atomicity, discipline, ndseq, specs, spmd, campaigns;
                 --record writes what it prints into docs/benchmarks.md
  instructions [--record]
                 count the instructions of small kernels, and compare with the record or write it
  corpus [RUNS] [NAME]
                 build the programs of the native and of the MPI corpus whose names contain NAME (default: all)
                 once, and run each RUNS times (default: 10)
  real [NAME…]   download real programs and crates, check their results, and compare the findings
                 with those of ThreadSanitizer
  fuzz [SECONDS] run a fuzzer on every reader of files (needs cargo-fuzz)
  port [NAME…]   run the tests of other crates under the selvedge crate, by changing their imports
  pictures       make the pictures of HTML reports in docs/pictures
  tidy           only check the source tree itself
  setup          only install what is missing";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["demo"] => demo(),
        ["test"] => test::all(),
        ["test", "--quick"] => test::quick(),
        ["bless", rest @ ..] => test::bless(rest),
        ["bench", rest @ ..] => bench::run(rest),
        ["instructions"] => instructions::run(false),
        ["instructions", "--record"] => instructions::run(true),
        ["fuzz", rest @ ..] => fuzz(rest.first().copied().unwrap_or("60")),
        ["corpus", rest @ ..] => corpus(rest),
        ["real", rest @ ..] => bench::real(rest),
        ["port", rest @ ..] => port::run(rest),
        ["pictures"] => pictures::run(),
        ["tidy"] => tidy::run(),
        ["setup"] => setup::run(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn demo() -> Outcome {
    setup::run()?;
    // The tour also uses `cargo selvedge`.
    cargo(&["build", "--release", "--package", "selvedge-cli", "--bins"])?;
    let run = ["run", "--quiet", "--release", "--package", "selvedge-cli", "--bin", "selvedge"];
    cargo(&[&run[..], &["--", "demo"]].concat())
}

fn corpus(args: &[&str]) -> Outcome {
    setup::run()?;
    let (runs, name) = args.split_first().unwrap_or((&"10", &[]));
    let test = ["test", "-p", "selvedge-runtime", "--test", "corpus", "--"];
    shell::cargo_with("CORPUS_RUNS", runs, &[&test, name].concat())?;
    let test = ["test", "-p", "selvedge-cli", "--test", "ranks", "--"];
    shell::cargo_with("CORPUS_RUNS", runs, &[&test, name].concat())
}

fn fuzz(seconds: &str) -> Outcome {
    if !shell::succeeds("cargo", &["fuzz", "--version"]) {
        return Err("cargo-fuzz is not installed: cargo install cargo-fuzz".into());
    }
    for target in ["text", "binary", "discipline"] {
        let limit = format!("-max_total_time={seconds}");
        // Coverage instrumentation is a nightly feature; this lets the stable compiler use it.
        let args = ["fuzz", "run", "--fuzz-dir", "fuzz", target, "--", &limit];
        shell::cargo_with("RUSTC_BOOTSTRAP", "1", &args)?;
    }
    Ok(())
}
