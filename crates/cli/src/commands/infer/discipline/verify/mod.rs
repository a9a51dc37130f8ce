//! `--verify`: lets clang check the attributes, and finds out what functions demand of their callers.
//!
//! Clang's thread safety analysis looks at one function at a time and believes declarations. So it complains of a
//! function that relies on its caller, and of one that locks for its caller, until their declarations say so. As
//! Houdini and FindLocks did for Java (*Hominy Grits*, §2.3), we take what clang complains of for what is
//! missing, add it, and ask again until nothing changes:
//!
//! | clang says of a function | added |
//! | --- | --- |
//! | an access, or a call, requires holding a lock | `SELVEDGE_REQUIRES` |
//! | a lock is still held at its end | `SELVEDGE_ACQUIRES` |
//! | it releases a lock that was not held | `SELVEDGE_RELEASES` |
//!
//! Accesses that a run made without the lock, before threads were started or after they were joined, get
//! `SELVEDGE_ALONE` at the head of their function. An attribute that clang cannot understand where it stands becomes
//! a comment.
//!
//! *Guarantee*: a demand stays only if a run showed it (the lock was held at the access, and not by the function
//! itself), or if clang proves that a caller keeps it; calls that do not are findings. Otherwise it is taken back,
//! and the complaint stays where it was. Functions whose address is taken get no demands: nobody would check them.
//! What clang says of an access that a run made, with the lock held or alone, is no finding. Neither is what it says of a
//! lock that guards no variable with an attribute: no discipline is broken there.

mod clang;
mod contracts;
mod functions;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_model::{FindingId, Frame, Kind, Site, Status};
use selvedge_report::{Case, Memory, Note, Place, Role, Subject};
use selvedge_specs::discipline::merge::Line;

use self::clang::{Clang, Complaint, Position, Required, Said};
use self::contracts::{Contracts, Key};
use super::annotate::{Annotations, INCLUDE, What};
use super::attribute::{Guard, MemberForm};
use crate::exit::Failure;
use crate::program::compiler::{self, CompileCommand};
use crate::program::symbolize::Declarations;

/// How often clang is asked at most; each time at least one thing is added or taken back.
const ROUNDS: usize = 40;

/// The analysis in reports.
const NAME: &str = "clang";

/// A clang, and the commands that compiled the program.
pub(super) struct Checker {
    clang: Clang,
    commands: Vec<CompileCommand>,
}

/// What the check gave.
pub(super) struct Verdict {
    pub(super) cases: Vec<Case>,
    pub(super) remarks: Vec<String>,
    /// Whether all sources could be checked.
    pub(super) complete: bool,
}

/// A complaint, at its place in the source as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Heard {
    file: PathBuf,
    offset: usize,
    line: usize,
    column: usize,
    text: String,
    error: bool,
    /// The annotation that it is about.
    inserted: Option<usize>,
    function: Option<(String, Key)>,
    /// The function whose call acquired the lock.
    acquired: Option<String>,
    /// The command that compiled the source.
    command: usize,
}

/// Whether the runs held the lock of a variable at a place, each time: by file, line and the variable's last name.
type Evidence = BTreeMap<(PathBuf, usize, String), bool>;

impl Checker {
    pub(super) fn new(program: &Path, commands: Option<&Path>) -> Result<Checker, Failure> {
        let clang = Clang::find()?;
        let commands = match commands {
            Some(path) => database(path)?,
            None => compiler::commands(program)
                .map_err(|error| Failure::Open { path: program.to_owned(), error })?,
        };
        if commands.is_empty() {
            return Err(Failure::Undecided(format!(
                "{}: how its sources were compiled is not known; build it with `selvedge cc`, or name a file with --compile-commands",
                program.display()
            )));
        }
        Ok(Checker { clang, commands })
    }

    pub(super) fn form(&self) -> MemberForm {
        self.clang.form
    }

    /// Checks the annotations and adds those of functions.
    pub(super) fn check(
        &self,
        annotations: &mut Annotations,
        lines: &[Line],
        program: &Path,
        roots: &[PathBuf],
    ) -> Result<Verdict, Failure> {
        for command in &self.commands {
            if let Ok(path) = fs::canonicalize(command.directory.join(&command.file)) {
                annotations.source(&path);
            }
        }
        let evidence = evidence(annotations, lines, roots);
        let declarations = Declarations::open(program);
        let mut contracts = Contracts::new(annotations, &declarations);
        let mut heard = self.ask(annotations)?;
        let mut settled = false;
        for _ in 0..ROUNDS {
            let changed = drop_errors(annotations, &heard)
                || self.learn(annotations, &mut contracts, &heard, &evidence)
                || contracts.take_back(annotations, &heard)
                || self.without_alone(annotations, &mut contracts)?;
            if !changed {
                settled = true;
                break;
            }
            heard = self.ask(annotations)?;
        }
        let mut verdict = self.verdict(annotations, &contracts, &heard, &evidence);
        verdict.complete &= settled;
        Ok(verdict)
    }

    /// Asks clang about all sources.
    fn ask(&self, annotations: &mut Annotations) -> Result<Vec<Heard>, Failure> {
        annotations.apply();
        let overlay = self.overlay(annotations)?;
        let mut all = BTreeSet::new();
        for (number, command) in self.commands.iter().enumerate() {
            for said in self.clang.check(command, &overlay)? {
                all.insert(heard(annotations, said, number));
            }
        }
        // What is said of a header is said for each source that includes it.
        let mut all: Vec<Heard> = all.into_iter().collect();
        all.dedup_by(|b, a| (&a.file, a.offset, &a.text) == (&b.file, b.offset, &b.text));
        Ok(all)
    }

    /// Takes back what callers keep only where they run alone: that a function may do without a lock while no other
    /// thread runs does not show that its callers hold it.
    fn without_alone(
        &self,
        annotations: &mut Annotations,
        contracts: &mut Contracts<'_>,
    ) -> Result<bool, Failure> {
        let kept: Vec<usize> = (0..annotations.items.len())
            .filter(|&i| !annotations.items[i].dropped)
            .filter(|&i| matches!(annotations.items[i].what, What::Alone(_)))
            .collect();
        if kept.is_empty() || !contracts.has_unshown() {
            return Ok(false);
        }
        kept.iter().for_each(|&i| annotations.items[i].dropped = true);
        let heard = self.ask(annotations)?;
        kept.iter().for_each(|&i| annotations.items[i].dropped = false);
        let changed = contracts.take_back(annotations, &heard);
        annotations.apply();
        Ok(changed)
    }

    /// Writes the annotated texts, and the file that shows them to clang in the place of the sources.
    fn overlay(&self, annotations: &Annotations) -> Result<PathBuf, Failure> {
        let directory = &self.clang.scratch.0;
        let write = |path: &Path, text: &str| {
            fs::write(path, text).map_err(|error| Failure::Write { path: path.to_owned(), error })
        };
        let mut files = Vec::new();
        for (number, (path, text)) in annotations.edited().enumerate() {
            let copy = directory.join(format!("{number}.txt"));
            write(&copy, &text)?;
            files.push(serde_json::json!({
                "type": "file", "name": path, "external-contents": copy,
            }));
        }
        let overlay = directory.join("overlay.json");
        let document =
            serde_json::json!({ "version": 0, "use-external-names": false, "roots": files });
        write(&overlay, &document.to_string())?;
        Ok(overlay)
    }

    /// Adds what clang misses; false if there is nothing to add.
    fn learn(
        &self,
        annotations: &mut Annotations,
        contracts: &mut Contracts<'_>,
        heard: &[Heard],
        evidence: &Evidence,
    ) -> bool {
        let mut changed = false;
        for said in heard {
            let Some((name, key)) = &said.function else { continue };
            let trees = || self.clang.trees(&self.commands[said.command], name);
            contracts.know(annotations, name, key, &self.commands[said.command], trees);
            changed |= match Complaint::of(&said.text) {
                Complaint::Requires { lock, exclusively, of } => match at(evidence, said, &of) {
                    Some(false) => contracts.alone(annotations, key, &lock),
                    shown => {
                        contracts.requires(annotations, key, &lock, exclusively, shown.is_some())
                    }
                },
                Complaint::StillHeld { lock } => {
                    let shared = said.acquired.as_deref().is_some_and(|f| contracts.is_shared(f));
                    contracts.acquires(annotations, key, &lock, shared)
                }
                Complaint::NotHeld { lock } => contracts.releases(annotations, key, &lock),
                Complaint::Twice { lock } => contracts.refuse(annotations, key, &lock),
                Complaint::Other { .. } => false,
            };
        }
        changed
    }

    fn verdict(
        &self,
        annotations: &Annotations,
        contracts: &Contracts<'_>,
        heard: &[Heard],
        evidence: &Evidence,
    ) -> Verdict {
        let guards = guards(annotations);
        let (mut passed, mut beside) = (0, 0);
        let (mut cases, mut remarks): (Vec<Case>, Vec<String>) = (Vec::new(), Vec::new());
        let errors: Vec<&Heard> = heard.iter().filter(|h| h.error).collect();
        for said in errors.iter().take(5) {
            let place = format!("{}:{}:{}", said.file.display(), said.line, said.column);
            remarks.push(format!("warning: clang cannot compile a source: {place}: {}", said.text));
        }
        for said in heard.iter().filter(|h| !h.error) {
            let complaint = Complaint::of(&said.text);
            let explained = match (&complaint, &said.function) {
                (Complaint::Requires { lock, of, .. }, Some((_, key))) => at(evidence, said, of)
                    .is_some_and(|held| !held || !contracts.refused(key, lock)),
                _ => false,
            };
            if explained {
                passed += 1;
            } else if !guards.contains(last_name(complaint.lock())) {
                beside += 1;
            } else {
                cases.push(case(annotations, said, &complaint));
            }
        }
        if passed > 0 {
            remarks.push(format!(
                "note: clang cannot express what guards {} that the runs made with the lock held, or with no other thread running",
                counted(passed, "access", "accesses")
            ));
        }
        if beside > 0 {
            remarks.push(format!(
                "note: clang also says {} of locks that guard no variable with an attribute",
                counted(beside, "thing", "things")
            ));
        }
        let (variables, functions) = counts(annotations);
        remarks.push(format!(
            "note: clang {} checked {} with attributes of {} and {}: {}",
            self.clang.version,
            counted(self.commands.len(), "source file", "source files"),
            counted(variables, "declaration", "declarations"),
            counted(functions, "function", "functions"),
            counted(cases.len(), "warning", "warnings"),
        ));
        Verdict { cases, remarks, complete: errors.is_empty() }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The last names of the locks that guard variables with attributes.
fn guards(annotations: &Annotations) -> BTreeSet<&str> {
    let kept = annotations.items.iter().filter(|item| !item.dropped);
    let guards = kept.filter_map(|item| match &item.what {
        What::Variable(variable) => variable.guard.as_ref(),
        What::Function(_) | What::Alone(_) => None,
    });
    guards.map(Guard::name).collect()
}

/// `lock` of `&account::lock`, `this->lock` and `lock`.
fn last_name(lock: &str) -> &str {
    lock.rsplit(['.', ':', '>', '&', '*']).next().unwrap_or_default()
}

/// How many declarations of variables, and functions, have attributes.
fn counts(annotations: &Annotations) -> (usize, usize) {
    let kept = || annotations.items.iter().filter(|item| !item.dropped);
    let variable = |what: &What| matches!(what, What::Variable(v) if v.guard.is_some());
    let variables = kept().filter(|i| variable(&i.what)).count();
    let function = |what: &What| matches!(what, What::Function(f) if !f.attributes.is_empty());
    let functions = kept().filter(|i| function(&i.what)).count();
    (variables, functions)
}

/// A complaint at its place in the source as it is.
fn heard(annotations: &Annotations, said: Said, command: usize) -> Heard {
    let origin = |place: &Position| {
        let source = annotations.known(&place.file)?;
        let origin = source.origin(place.line, place.column)?;
        Some((origin, source.position(origin.offset)))
    };
    let here = origin(&said.place);
    let (line, column) = here.map_or((said.place.line, said.place.column), |(_, at)| at);
    let function = said.function.and_then(|(name, brace)| {
        let body = origin(&brace).filter(|(o, _)| o.inserted.is_none())?.0.offset;
        Some((name, (brace.file, body)))
    });
    let acquired = said.acquired.and_then(|place| {
        let source = annotations.known(&place.file)?;
        let at = source.origin(place.line, place.column)?.offset;
        let rest = &source.text[at..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    });
    let of = said.declared.as_ref().and_then(|place| {
        let line = origin(place)?.1.0;
        annotations.object_at(&place.file, line)
    });
    Heard {
        file: said.place.file,
        offset: here.map_or(0, |(o, _)| o.offset),
        line,
        column,
        // Clang has no name for a structure that is only a type definition or a variable.
        text: match of {
            Some(of) => said.text.replace("(anonymous struct)", of).replace("(unnamed struct)", of),
            None => said.text,
        },
        error: said.error,
        inserted: here.and_then(|(o, _)| o.inserted).filter(|&by| by != INCLUDE),
        function,
        acquired,
        command,
    }
}

/// Takes annotations back that clang does not understand where they stand.
fn drop_errors(annotations: &mut Annotations, heard: &[Heard]) -> bool {
    let wrong = |said: &&Heard| {
        said.error || said.text.contains("' attribute ") || said.text.starts_with("attribute ")
    };
    let mut drop = BTreeSet::new();
    for said in heard.iter().filter(wrong) {
        match said.inserted {
            Some(item) => drop.extend([item]),
            None if said.error => {
                let source = annotations.known(&said.file);
                drop.extend(source.into_iter().flat_map(|s| s.inserted_in(said.line)));
            }
            None => {}
        }
    }
    drop.remove(&INCLUDE);
    let mut changed = false;
    for number in drop {
        let item = &mut annotations.items[number];
        changed |= !std::mem::replace(&mut item.dropped, true);
    }
    changed
}

fn at(evidence: &Evidence, said: &Heard, of: &Required) -> Option<bool> {
    let Required::Variable { name, .. } = of else { return None };
    evidence.get(&(said.file.clone(), said.line, name.clone())).copied()
}

/// What runs did at the places that access variables with attributes.
fn evidence(annotations: &Annotations, lines: &[Line], roots: &[PathBuf]) -> Evidence {
    let mut evidence = Evidence::new();
    let mut paths: BTreeMap<String, Option<PathBuf>> = BTreeMap::new();
    for item in &annotations.items {
        let What::Variable(variable) = &item.what else { continue };
        let Some(guard) = &variable.guard else { continue };
        for line in lines.iter().filter(|l| variable.is_of(&l.variable)) {
            for place in &line.places {
                let Some(frame) = place.site.frame() else { continue };
                let path = paths.entry(frame.file.to_string()).or_insert_with(|| {
                    let below = roots.iter().map(|root| root.join(&*frame.file));
                    below.into_iter().find_map(|p| fs::canonicalize(p).ok())
                });
                let Some(path) = path else { continue };
                let last = |lock: &String| lock.rsplit(['.', ':']).next() == Some(guard.name());
                let held = place.locks.iter().any(last);
                let key = (path.clone(), frame.line as usize, variable.name.clone());
                *evidence.entry(key).or_insert(true) &= held;
            }
        }
    }
    evidence
}

/// What clang still says, as a finding.
fn case(annotations: &Annotations, said: &Heard, complaint: &Complaint) -> Case {
    let lock = |lock: &String| Subject::Locks(vec![lock.clone()]);
    let (subject, role) = match complaint {
        Complaint::Requires { of: Required::Variable { name, writes }, .. } => {
            let full = annotations.items.iter().find_map(|item| match &item.what {
                What::Variable(v) if v.name == *name && v.guard.is_some() => Some(v.variable()),
                _ => None,
            });
            let named = Memory::Named(full.unwrap_or(name).to_owned());
            (Subject::Memory(named), if *writes { Role::Write } else { Role::Read })
        }
        Complaint::Requires { lock: of, .. } | Complaint::Twice { lock: of } => {
            (lock(of), Role::Acquire(of.clone()))
        }
        Complaint::StillHeld { lock: of } | Complaint::Other { lock: of } => {
            (lock(of), Role::Acquire(of.clone()))
        }
        Complaint::NotHeld { lock: of } => (lock(of), Role::Release(of.clone())),
    };
    let frame = Frame {
        function: said.function.as_ref().map_or("", |(name, _)| name).into(),
        file: annotations.relative(&said.file).to_string_lossy().into(),
        line: said.line as u32,
        column: said.column as u32,
    };
    let site = Site::Source(frame, Vec::new());
    let id = FindingId::new(Kind::DisciplineViolation, [site.to_string(), said.text.clone()]);
    Case {
        analyses: vec![NAME.to_owned()],
        notes: vec![Note::Clang(said.text.clone())],
        places: vec![Place::bare(String::new(), site, role)],
        ..Case::bare(id, Kind::DisciplineViolation, Status::Predicted, subject)
    }
}

/// Reads a compilation database, as cmake and other build tools write it.
fn database(path: &Path) -> Result<Vec<CompileCommand>, Failure> {
    #[derive(serde::Deserialize)]
    struct Entry {
        directory: PathBuf,
        file: PathBuf,
        #[serde(default)]
        arguments: Vec<String>,
        #[serde(default)]
        command: String,
    }
    let text =
        fs::read_to_string(path).map_err(|error| Failure::Open { path: path.to_owned(), error })?;
    let entries: Vec<Entry> = serde_json::from_str(&text).map_err(|error| {
        Failure::Usage(format!(
            "{}:{}:{}: this is not a compilation database: {error}",
            path.display(),
            error.line(),
            error.column()
        ))
    })?;
    let command = |entry: Entry| {
        let arguments = match entry.arguments.is_empty() {
            true => shlex::split(&entry.command).unwrap_or_default(),
            false => entry.arguments,
        };
        CompileCommand { directory: entry.directory, file: entry.file, arguments }
    };
    Ok(entries.into_iter().map(command).collect())
}
