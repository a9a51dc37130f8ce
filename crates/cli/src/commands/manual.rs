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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names in backquotes.
    fn named(text: &str) -> BTreeSet<&str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn the_reference_names_every_command_and_no_other() {
        let reference = include_str!("../../../../docs/commands.md");
        let headings = reference.lines().filter(|l| l.starts_with("## "));
        let mut listed: BTreeSet<&str> = headings.flat_map(named).collect();
        assert!(listed.remove("cargo selvedge") && listed.remove("selvedge.toml"));
        let command = Arguments::command();
        assert_eq!(listed, command.get_subcommands().map(clap::Command::get_name).collect());
    }

    #[test]
    fn the_reference_names_every_format_and_no_other() {
        let reference = include_str!("../../../../docs/formats.md");
        let table = reference.split_once("| format | for |\n").expect("a table").1;
        let rows = table.split_once("\n\n").expect("it ends").0.lines().skip(1);
        let listed: Vec<&str> = rows.filter_map(|r| r.split('`').nth(1)).collect();
        let formats: Vec<&str> = selvedge_report::FORMATS.iter().map(|f| f.name).collect();
        assert_eq!(listed, formats);
    }
}
