//! Prints what was inferred: as text, lines of a specification with comments; as JSON, part of the report.

use std::fmt::Write as _;
use std::io::Write as _;

use selvedge_report::{Exception, Other, Report, Variable};
use selvedge_specs::discipline::merge::Line;
use selvedge_specs::discipline::{Discipline, Rule, Sequence, Step};

use crate::args::Output;
use crate::exit::Failure;
use crate::terminal;

/// Further disciplines of a variable that are shown as text.
const OTHERS: usize = 4;

/// Prints the lines, and after them the findings.
pub(super) fn print(lines: &[Line], report: &Report, output: &Output) -> Result<(), Failure> {
    let mut text = String::new();
    if output.format.name == "text" {
        lines.iter().for_each(|line| text.push_str(&shown(line)));
        if !lines.is_empty() {
            text.push('\n');
        }
    }
    text.push_str(&terminal::rendered(report, output));
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn shown(line: &Line) -> String {
    let mut text = match &line.discipline {
        Some(first) => {
            let discipline = Discipline::from(first.clone());
            format!("{}\n", Rule { variable: line.variable.clone(), discipline })
        }
        None => {
            let race = line.race.as_deref().unwrap_or("a race");
            format!("# {}: {race} ends the inference\n", line.variable)
        }
    };
    for (sequence, instances) in line.others.iter().take(OTHERS) {
        let all = line.instances;
        let _ = writeln!(text, "    # {instances} of {all} instances: {}", sequence_text(sequence));
    }
    if let Some(more) = line.others.len().checked_sub(OTHERS).filter(|&n| n > 0) {
        let _ = writeln!(
            text,
            "    # and {more} further disciplines of single instances and small groups"
        );
    }
    for likely in &line.likely {
        let sites: Vec<String> = likely.exceptions.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            text,
            "    # likely guarded-by {}; not held at {}",
            likely.lock,
            sites.join(", ")
        );
    }
    text
}

fn sequence_text(sequence: &Sequence) -> String {
    Discipline::from(sequence.clone()).to_string()
}

/// A line for the report.
pub(super) fn variable(line: &Line) -> Variable {
    let other = |(sequence, instances): &(Sequence, u64)| Other {
        discipline: sequence_text(sequence),
        instances: *instances,
    };
    let exceptions = line.likely.iter().flat_map(|likely| {
        let exception = |site| Exception { lock: likely.lock.clone(), site };
        likely.exceptions.iter().cloned().map(exception)
    });
    Variable {
        variable: line.variable.clone(),
        discipline: line.discipline.as_ref().map(sequence_text),
        instances: line.instances,
        accesses: line.accesses,
        threads: line.threads,
        locks: line.locks().into_iter().collect(),
        clang: clang(line),
        race: line.race.clone(),
        others: line.others.iter().map(other).collect(),
        exceptions: exceptions.collect(),
        sites: line.sites.clone(),
    }
}

/// The attribute of clang that says the same, as far as clang can say it: one lock, perhaps with accesses of
/// one thread before all others are started and after they are joined.
pub(super) fn clang(line: &Line) -> Option<String> {
    let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
    let steps = line.discipline.as_ref().filter(|_| line.others.is_empty())?;
    let mut guard = None;
    for step in steps {
        match step {
            Step::ThreadLocal | Step::Fork | Step::Join => {}
            Step::GuardedBy(lock) if guard.is_none_or(|g| g == lock) => guard = Some(lock),
            _ => return None,
        }
    }
    let lock = guard.filter(|lock| plain(lock))?;
    let cxx = |file: &str| [".cpp", ".cc", ".cxx", ".hpp"].iter().any(|end| file.ends_with(end));
    let cxx = line.sites.iter().filter_map(|s| s.frame()).any(|f| cxx(&f.file));
    match lock.strip_prefix("this.") {
        Some(member) if cxx => Some(format!("guarded_by({member})")),
        // Up to clang 21 a member of C must be named by its address.
        Some(member) => Some(format!("guarded_by(&{member})")),
        None => Some(format!("guarded_by({lock})")),
    }
}
