//! `selvedge.toml`: the options of a project.
//!
//! The nearest file in the current directory or above it counts. A key has the name of an option and becomes the
//! option's default in every command that is listed for it, so that an option on the command line overrides it.
//! Paths are relative to the file. A key that is not known, and a value that the option does not accept, are errors
//! with the file and the line.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{ArgAction, Command};
use toml::de::{DeTable, DeValue};

use crate::catalogue;
use crate::exit::Failure;
use crate::program::claims::RegionOptions;

/// The name of the file.
const FILE: &str = "selvedge.toml";

/// A key, and the commands for which it counts.
struct Key {
    section: &'static str,
    name: &'static str,
    commands: &'static [&'static str],
    /// The values are paths.
    is_path: bool,
}

const fn key(section: &'static str, name: &'static str, commands: &'static [&'static str]) -> Key {
    Key { section, name, commands, is_path: false }
}

const fn path(section: &'static str, name: &'static str, commands: &'static [&'static str]) -> Key {
    Key { section, name, commands, is_path: true }
}

const ALL: &[&str] = &["run", "test", "explore", "check", "report"];
const CONTROLLED: &[&str] = &["test", "explore"];

/// Every key. The names of options are those of the command line.
const KEYS: [Key; 13] = [
    key("", "analyses", &["run", "check"]),
    path("", "suppressions", &["run", "test"]),
    key("budget", "schedules", CONTROLLED),
    key("budget", "time", CONTROLLED),
    key("budget", "seed", CONTROLLED),
    key("budget", "patience", CONTROLLED),
    key("budget", "jobs", CONTROLLED),
    key("budget", "strategy", &["explore"]),
    key("budget", "attempts", &["test"]),
    key("budget", "observe", &["test"]),
    key("output", "format", ALL),
    key("output", "fail-on", &["run", "test", "explore", "check"]),
    path("output", "source", ALL),
];

/// A file, and where in it errors are.
struct Config {
    path: PathBuf,
    text: String,
}

/// A value of the file for a key.
struct Setting {
    key: &'static Key,
    values: Vec<String>,
    span: Range<usize>,
}

/// The command line of `selvedge`, with the defaults of the project.
pub(crate) fn with_defaults(command: Command) -> Result<Command, Failure> {
    apply(command, |command, setting| {
        setting.key.commands.iter().fold(command, |command, name| {
            command.mut_subcommand(name, |sub| with_default(sub, setting))
        })
    })
}

/// The command line of `cargo selvedge`, which has the options of `selvedge run`.
pub(crate) fn with_defaults_of_run(command: Command) -> Result<Command, Failure> {
    apply(command, |command, setting| match setting.key.commands.contains(&"run") {
        true => with_default(command, setting),
        false => command,
    })
}

fn apply(
    command: Command,
    with: impl Fn(Command, &Setting) -> Command,
) -> Result<Command, Failure> {
    let Some(config) = Config::nearest(&std::env::current_dir()?)? else { return Ok(command) };
    let settings = config.settings()?;
    for setting in &settings {
        config.check(&command, setting)?;
    }
    Ok(settings.iter().fold(command, with))
}

fn with_default(command: Command, setting: &Setting) -> Command {
    let is_it = |arg: &&clap::Arg| arg.get_long() == Some(setting.key.name);
    let Some(id) = command.get_arguments().find(is_it).map(|a| a.get_id().clone()) else {
        return command;
    };
    // The command line lives as long as the process.
    let values: Vec<&'static str> = setting.values.iter().map(|v| &*v.clone().leak()).collect();
    command.mut_arg(id, |arg| arg.default_values(values))
}

impl Config {
    fn nearest(here: &Path) -> Result<Option<Config>, Failure> {
        let Some(path) = here.ancestors().map(|d| d.join(FILE)).find(|p| p.is_file()) else {
            return Ok(None);
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Config { path, text })),
            Err(error) => Err(Failure::Open { path, error }),
        }
    }

    fn wrong(&self, span: &Range<usize>, why: String) -> Failure {
        let line = self.text[..span.start.min(self.text.len())].matches('\n').count() + 1;
        Failure::Line { path: self.path.clone(), line, why }
    }

    fn settings(&self) -> Result<Vec<Setting>, Failure> {
        let document = DeTable::parse(&self.text)
            .map_err(|e| self.wrong(&e.span().unwrap_or_default(), e.message().to_owned()))?;
        let mut settings = Vec::new();
        for (name, value) in document.get_ref() {
            match value.get_ref() {
                DeValue::Table(section) if KEYS.iter().any(|k| k.section == name.get_ref()) => {
                    for (key, value) in section {
                        settings.push(self.setting(
                            name.get_ref(),
                            (key.get_ref(), key.span()),
                            value,
                        )?);
                    }
                }
                _ => settings.push(self.setting("", (name.get_ref(), name.span()), value)?),
            }
        }
        Ok(settings)
    }

    fn setting(
        &self,
        section: &str,
        (name, at): (&str, Range<usize>),
        value: &toml::Spanned<DeValue<'_>>,
    ) -> Result<Setting, Failure> {
        let Some(key) = KEYS.iter().find(|k| k.section == section && k.name == name) else {
            return Err(self.wrong(&at, unknown(section, name)));
        };
        let span = value.span();
        let texts: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|v| text(v.get_ref())).collect(),
            one => text(one).map(|one| vec![one]),
        };
        let Some(mut values) = texts else {
            let why = format!("`{name}` is a text, a number, or a list of these");
            return Err(self.wrong(&span, why));
        };
        if key.is_path {
            let directory = self.path.parent().unwrap_or(Path::new(""));
            values.iter_mut().for_each(|v| *v = directory.join(&*v).to_string_lossy().into_owned());
        }
        Ok(Setting { key, values, span })
    }

    /// Whether the option accepts the value, in every command that has it.
    fn check(&self, command: &Command, setting: &Setting) -> Result<(), Failure> {
        let name = setting.key.name;
        if name == "analyses" {
            catalogue::select(&setting.values, &RegionOptions::default())
                .map_err(|e| self.wrong(&setting.span, e.to_string()))?;
        }
        let commands = command.get_subcommands().filter(|c| {
            setting.key.commands.contains(&c.get_name()) || setting.key.commands.is_empty()
        });
        for sub in commands.chain([command]) {
            let is_it = |arg: &&clap::Arg| arg.get_long() == Some(name);
            let Some(arg) = sub.get_arguments().find(is_it) else { continue };
            if setting.values.len() != 1 && !matches!(arg.get_action(), ArgAction::Append) {
                return Err(self.wrong(&setting.span, format!("`{name}` takes one value")));
            }
            let words = setting.values.iter().map(|v| format!("--{name}={v}"));
            let words = std::iter::once(sub.get_name().to_owned()).chain(words);
            let Err(error) = sub.clone().try_get_matches_from(words) else { continue };
            if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
                let text = error.to_string();
                let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
                return Err(self.wrong(&setting.span, why.to_owned()));
            }
        }
        Ok(())
    }
}

fn text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

fn unknown(section: &str, name: &str) -> String {
    let known: Vec<String> = KEYS
        .iter()
        .map(|k| match k.section {
            "" => k.name.to_owned(),
            section => format!("{section}.{}", k.name),
        })
        .collect();
    let name = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
    format!("unknown key `{name}`; the keys are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command as Sub};
    use clap::{CommandFactory, FromArgMatches};

    fn parsed(text: &str, line: &str) -> Result<Arguments, String> {
        let config = Config { path: "/project/selvedge.toml".into(), text: text.to_owned() };
        let mut command = Arguments::command();
        let settings = config.settings().map_err(|e| e.to_string())?;
        for setting in &settings {
            config.check(&command, setting).map_err(|e| e.to_string())?;
            for name in setting.key.commands {
                command = command.mut_subcommand(name, |sub| with_default(sub, setting));
            }
        }
        let matches = command.try_get_matches_from(line.split_whitespace());
        Arguments::from_arg_matches(&matches.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
    }

    #[test]
    fn the_file_sets_defaults_and_options_override_them() {
        let text = "suppressions = \"supp.txt\"\n[budget]\nschedules = 7\ntime = \"3s\"\n\
            [output]\nformat = \"json\"\nfail-on = \"predicted\"\n";
        let Sub::Test(test) = parsed(text, "selvedge test --time 9s -- ./a").unwrap().command
        else {
            panic!("another command");
        };
        assert_eq!(test.budget.schedules, 7);
        assert_eq!(test.budget.time.as_secs(), 9, "the option counts");
        assert_eq!(test.output.format.name, "json");
        assert_eq!(test.suppressions, [PathBuf::from("/project/supp.txt")], "relative to the file");
        let Sub::Report(report) = parsed(text, "selvedge report --text").unwrap().command else {
            panic!("another command");
        };
        assert!(report.text, "a default conflicts with nothing");
    }

    #[test]
    fn every_key_is_an_option_of_its_commands() {
        let command = Arguments::command();
        for key in &KEYS {
            for name in key.commands {
                let sub = command.find_subcommand(name).expect(name);
                let has = sub.get_arguments().any(|a| a.get_long() == Some(key.name));
                assert!(has, "{name} has no --{}", key.name);
            }
        }
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, wrong) in [
            ("[budget]\nschedule = 7\n", "line 2: unknown key `budget.schedule`"),
            ("\n\nanalysis = [\"races\"]\n", "line 3: unknown key `analysis`"),
            ("[outputs]\n", "line 1: unknown key `outputs`"),
            ("[output]\nformat = \"yaml\"\n", "line 2: invalid value 'yaml'"),
            ("[budget]\ntime = [\"1s\", \"2s\"]\n", "line 2: `time` takes one value"),
            ("[budget]\nseed = true\n", "line 2: `seed` is a text"),
            ("analyses = [\"rases\"]\n", "line 1: "),
            ("[budget\n", "line 1: "),
        ] {
            let error = parsed(text, "selvedge test -- ./a").unwrap_err();
            assert!(error.contains(wrong), "{text:?}: {error}");
        }
    }
}
