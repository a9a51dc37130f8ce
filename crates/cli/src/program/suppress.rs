//! Suppressions, in the format of ThreadSanitizer's files, so that a project's existing files work.
//!
//! A line is `type:pattern`; `#` begins a comment. A pattern matches anywhere in a name unless `^` or `$`
//! anchors it; `*` matches anything. The names are those of the functions, files, libraries and variables
//! of a finding. Reports count what was suppressed, and SARIF and JSON list it.

use std::path::{Path, PathBuf};

use selvedge_model::{Kind, Misuse};
use selvedge_report::{Case, Stats, Subject, Suppressed};

use crate::exit::Failure;
use crate::program::pattern::Pattern;

/// The rules of all suppression files.
#[derive(Clone, Default, Debug)]
pub(crate) struct Suppressions {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    /// As users wrote it.
    text: String,
    about: About,
    pattern: Pattern,
}

/// The findings that a rule can suppress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum About {
    /// Data races, by a function, file, library or variable of either side.
    Race,
    /// Data races, by the function or file of an access itself.
    RaceTop,
    /// Deadlocks.
    Deadlock,
    /// Any finding, by a library whose code takes part.
    CalledFromLib,
    /// Threads that were never joined.
    Thread,
    /// Misuse of synchronization objects.
    Mutex,
    /// Misuse in signal handlers.
    Signal,
}

impl Suppressions {
    /// Reads the files, and the one that `TSAN_OPTIONS` names.
    pub(crate) fn load(files: &[PathBuf]) -> Result<Suppressions, Failure> {
        let options = std::env::var("TSAN_OPTIONS").unwrap_or_default();
        let mut suppressions = Suppressions::default();
        for path in files.iter().cloned().chain(named_in(&options)) {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::Open { path: path.clone(), error })?;
            suppressions.rules.extend(parse(&text, &path)?);
        }
        suppressions.rules.extend(switched_off(&options));
        Ok(suppressions)
    }

    /// Adds the rules of a text that is not a file.
    pub(crate) fn add(&mut self, text: &str, source: &str) -> Result<(), Failure> {
        self.rules.extend(parse(text, Path::new(source))?);
        Ok(())
    }

    /// Follows options of ThreadSanitizer that the program has itself.
    pub(crate) fn follow(&mut self, options: &str) -> Result<(), Failure> {
        if let Some(path) = named_in(options) {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::Open { path: path.clone(), error })?;
            self.rules.extend(parse(&text, &path)?);
        }
        self.rules.extend(switched_off(options));
        Ok(())
    }

    /// Whether a finding is suppressed.
    pub(crate) fn suppress(&self, finding: &Case) -> bool {
        self.rule(finding).is_some()
    }

    /// The finding if it is not suppressed; otherwise it is counted in `stats`.
    pub(crate) fn pass(&self, case: Case, stats: &mut Stats) -> Option<Case> {
        match self.rule(&case) {
            None => Some(case),
            Some(rule) => {
                stats.suppress(Suppressed { case, rule: rule.text.clone() });
                None
            }
        }
    }

    /// The findings that are not suppressed; the others are counted in `stats`.
    pub(crate) fn pass_all(&self, cases: Vec<Case>, stats: &mut Stats) -> Vec<Case> {
        cases.into_iter().filter_map(|case| self.pass(case, stats)).collect()
    }

    fn rule(&self, finding: &Case) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches(finding))
    }
}

impl Rule {
    fn matches(&self, finding: &Case) -> bool {
        let found = |name: &str| self.pattern.matches(name);
        let in_stack = || {
            let mut frames = finding.places.iter().flat_map(|p| p.frames());
            frames.any(|f| found(&f.function) || found(&f.file))
        };
        let named = || finding.subject.names().iter().any(|s| found(s));
        let in_module = || finding.files.iter().any(|m| found(m));
        if let Subject::Misused { misuse, .. } = &finding.subject {
            let about = about(misuse);
            return match self.about {
                About::CalledFromLib => in_module(),
                of => of == about && (in_stack() || in_module() || named()),
            };
        }
        match (self.about, finding.kind) {
            (About::Race, Kind::DataRace) => in_stack() || in_module() || named(),
            (About::RaceTop, Kind::DataRace) => {
                let mut tops = finding.places.iter().filter_map(|p| p.site.frame());
                tops.any(|f| found(&f.function) || found(&f.file))
            }
            (About::Deadlock, Kind::Deadlock) => in_stack() || named(),
            (About::CalledFromLib, _) => in_module(),
            _ => false,
        }
    }
}

/// What ThreadSanitizer calls such a misuse: that of descriptors and of memory is a race there.
fn about(misuse: &Misuse) -> About {
    match misuse {
        Misuse::DestroyedHeld(_)
        | Misuse::DestroyedAwaited(_)
        | Misuse::UsedDestroyed(_)
        | Misuse::UsedUninitialised(_)
        | Misuse::UnlockedByOther(_)
        | Misuse::UnlockedFree(_) => About::Mutex,
        Misuse::ClosedInUse(_)
        | Misuse::UsedReused(_)
        | Misuse::UsedFreed
        | Misuse::FreedTwice
        | Misuse::BeyondBlock
        | Misuse::NoEpoch
        | Misuse::BeyondWindow
        | Misuse::FreedInEpoch => About::Race,
        Misuse::ChangedErrno(_) | Misuse::UnsafeCall { .. } => About::Signal,
        Misuse::NeverJoined => About::Thread,
    }
}

fn parse(text: &str, path: &Path) -> Result<Vec<Rule>, Failure> {
    let mut rules = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| Failure::Usage(format!("{}:{}: {what}", path.display(), i + 1));
        let (kind, pattern) = line
            .split_once(':')
            .ok_or_else(|| wrong("expected type:pattern, as in race:function"))?;
        let about = match kind {
            "race" => About::Race,
            "race_top" => About::RaceTop,
            "deadlock" => About::Deadlock,
            "called_from_lib" => About::CalledFromLib,
            "thread" => About::Thread,
            "mutex" => About::Mutex,
            "signal" => About::Signal,
            other => {
                let known = "race, race_top, deadlock, called_from_lib, thread, mutex, signal";
                return Err(wrong(&format!("there is no type {other:?}; the types are {known}")));
            }
        };
        let text = line.to_owned();
        rules.push(Rule { text, about, pattern: Pattern::anywhere(pattern) });
    }
    Ok(rules)
}

/// Rules for what ThreadSanitizer's options switch off.
fn switched_off(options: &str) -> Vec<Rule> {
    let off = |name: &str| {
        let mut all = options.split([':', ',', ' ', '\t', '\n']);
        all.any(|o| o.strip_prefix(name).is_some_and(|v| matches!(v, "=0" | "=false" | "=no")))
    };
    let rule = |name: &str, about| {
        let text = format!("{name}=0");
        Rule { text, about, pattern: Pattern::anywhere("*") }
    };
    let known = [("report_thread_leaks", About::Thread), ("report_signal_unsafe", About::Signal)];
    known.into_iter().filter(|(name, _)| off(name)).map(|(name, about)| rule(name, about)).collect()
}

/// The file in `suppressions=…` among ThreadSanitizer's options.
fn named_in(options: &str) -> Option<PathBuf> {
    let named = options.split([':', ',', ' ', '\t', '\n']);
    let file = named.filter_map(|o| o.strip_prefix("suppressions=")).next_back()?;
    Some(PathBuf::from(file.trim_matches(['"', '\''])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_wrong_lines_named() {
        let path = Path::new("tsan.supp");
        let rules = parse("# ours\nrace:foo\n\n deadlock:bar*\nthread:x\n", path).unwrap();
        let about: Vec<_> = rules.iter().map(|r| r.about).collect();
        assert_eq!(about, [About::Race, About::Deadlock, About::Thread]);
        let wrong = parse("race:foo\nrase:x\n", path).unwrap_err().to_string();
        assert!(wrong.starts_with("tsan.supp:2: there is no type \"rase\""), "{wrong}");
        assert!(parse("foo", path).is_err());
    }

    #[test]
    fn options_name_a_file() {
        let named = |o| named_in(o).map(|p| p.display().to_string());
        assert_eq!(named("halt_on_error=1:suppressions=a.supp:x=y"), Some("a.supp".into()));
        assert_eq!(named("suppressions=\"b.supp\" x=1"), Some("b.supp".into()));
        assert_eq!(named("halt_on_error=1"), None);
        let off = |o| switched_off(o).iter().map(|r| r.about).collect::<Vec<_>>();
        assert_eq!(off("report_thread_leaks=0:report_signal_unsafe=1"), [About::Thread]);
    }
}
