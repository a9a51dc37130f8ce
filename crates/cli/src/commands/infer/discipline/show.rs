//! Prints what was inferred: as text, lines of a specification with comments; as JSON, part of the report.

use std::fmt::Write as _;
use std::io::Write as _;

use selvedge_report::{Exception, Other, Report, Variable};
use selvedge_specs::discipline::merge::Line;
use selvedge_specs::discipline::{Discipline, Rule, Sequence};

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
pub(super) fn variable(line: &Line, clang: Option<String>) -> Variable {
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
        clang,
        race: line.race.clone(),
        others: line.others.iter().map(other).collect(),
        exceptions: exceptions.collect(),
        sites: line.places.iter().map(|p| p.site.clone()).collect(),
    }
}
