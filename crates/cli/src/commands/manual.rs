//! `selvedge completions` and `selvedge man`: made from the command's own description.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Arguments;
use crate::exit::{Exit, Failure};

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "selvedge", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(Exit::Clean)
}

/// Prints the page of `selvedge`, or writes one for every command into a directory.
pub(crate) fn pages(directory: Option<&Path>) -> Result<Exit, Failure> {
    let Some(directory) = directory else {
        let mut text = Vec::new();
        Man::new(Arguments::command()).render(&mut text)?;
        std::io::stdout().write_all(&text)?;
        return Ok(Exit::Clean);
    };
    let failed = |error| Failure::Write { path: directory.to_owned(), error };
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), directory).map_err(failed)?;
    anstream::eprintln!("wrote {}", directory.display());
    Ok(Exit::Clean)
}
