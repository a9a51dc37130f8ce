//! `selvedge merge`: one report of the parts of a campaign that other processes have run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;

use clap::{CommandFactory, FromArgMatches};

use crate::args::{Arguments, Command, Merge, Part};
use crate::commands::{explore, test};
use crate::config;
use crate::crew::Team;
use crate::crew::log::Record;
use crate::exit::{Exit, Failure};
use crate::messages::warning_label;

/// Merges and reports.
pub(crate) fn run(args: &Merge) -> Result<Exit, Failure> {
    let records: Vec<Record> =
        args.stores.iter().map(|store| Record::read(store)).collect::<Result<_, _>>()?;
    agree(&records)?;
    let Some(first) = records.first() else { return Ok(Exit::Clean) };
    let header = first.header.clone();
    let complete = records.iter().filter(|record| record.complete);
    let complete: BTreeSet<Part> = complete.map(|record| record.header.part).collect();
    std::env::set_current_dir(&header.directory)
        .map_err(|_| Failure::Gone(header.directory.clone()))?;
    let mut team = Team::of(records, args.complete);
    let exit = match parsed(&header.arguments)? {
        Command::Test(mut test) => {
            test.output = args.output.clone();
            test::together(&test, &mut team)?
        }
        Command::Explore(mut explore) => {
            explore.output = args.output.clone();
            explore::together(&explore, &mut team)?
        }
        _ => return Err(Failure::Usage("these are no parts of a test or exploration".to_owned())),
    };
    if team.missing().is_empty() {
        return Ok(exit);
    }
    let of = header.part.of;
    let lacking: BTreeSet<Part> = team
        .missing()
        .iter()
        .map(|shard| Part { number: u32::try_from(shard % u64::from(of)).unwrap_or(0), of })
        .filter(|part| !complete.contains(part))
        .collect();
    let mut what = format!("{}: the report is not complete", warning_label());
    match header.by_hand {
        true => {
            what.push_str(". These parts are missing, or did not come to their end; run them:");
            for part in &lacking {
                let _ = write!(what, "\n  {}", header.command(*part));
            }
        }
        false => what.push_str(": the job was broken off. Run it again"),
    }
    what.push_str("\nor let `selvedge merge --complete` run here what is missing");
    anstream::eprintln!("{what}");
    Ok(if exit == Exit::Clean { Exit::NotRun } else { exit })
}

/// The command of the parts.
fn parsed(arguments: &[OsString]) -> Result<Command, Failure> {
    let words = std::iter::once(OsString::from("selvedge")).chain(arguments.iter().cloned());
    let command_line = config::with_defaults(Arguments::command())?;
    let matches = command_line.try_get_matches_from(words);
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    Ok(arguments.map_err(|error| Failure::Usage(error.to_string()))?.command)
}

/// Refuses parts that are not those of one campaign.
fn agree(records: &[Record]) -> Result<(), Failure> {
    let Some((first, others)) = records.split_first() else { return Ok(()) };
    for other in others {
        let (a, b) = (&first.header, &other.header);
        let words = |all: &[OsString]| {
            all.iter().map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let why = if a.arguments != b.arguments {
            let (a, b) = (words(&a.arguments), words(&b.arguments));
            format!("the commands differ: `selvedge {a}` and `selvedge {b}`")
        } else if a.directory != b.directory {
            let (a, b) = (a.directory.display(), b.directory.display());
            format!("they ran in different directories: {a} and {b}")
        } else if a.build != b.build {
            "the program was built anew between them".to_owned()
        } else if a.part.of != b.part.of {
            format!("they are parts of different divisions: {} and {}", a.part, b.part)
        } else {
            continue;
        };
        let (a, b) = (first.path.display(), other.path.display());
        return Err(Failure::Usage(format!("{a} and {b} do not belong together: {why}")));
    }
    Ok(())
}
