//! `cargo selvedge`, which Cargo finds by its name; everything is in the library beside it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    selvedge_cli::cargo_selvedge()
}
