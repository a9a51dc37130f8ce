//! The three heuristics of §4.5, evidence, and what is then shown.
//!
//! The first one drops locations that the block never changes from the postcondition; that happens before the
//! precondition is sought, which would otherwise have to imply them. The second drops conjuncts that hold for every pair
//! of executions, the third those that another conjunct implies.

use super::pairs::Side;
use super::set::Set;
use super::study::Study;
use super::{Condition, Conjunct, Dropped, Remark, Specification, Supported, Why};
use crate::Predicate;

/// The first heuristic.
pub(super) fn changed(study: &Study<'_>, mut post: Set, dropped: &mut Vec<Dropped>) -> Set {
    for (c, column) in study.after.columns.iter().enumerate() {
        if post.contains(c) && !study.changes(&column.conjunct) {
            post.remove(c);
            dropped.push(Dropped {
                condition: Condition::Postcondition,
                conjunct: column.conjunct.clone(),
                why: Why::NeverChanged,
            });
        }
    }
    post
}

/// Whether one conjunct implies the other, whatever the values.
fn implies(stronger: &Conjunct, weaker: &Conjunct) -> bool {
    let part = || {
        let rest = weaker.name.strip_prefix(&*stronger.name);
        rest.is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    match (&stronger.predicate, &weaker.predicate) {
        (Predicate::Exact, Predicate::Exact) => part(),
        (Predicate::Exact, _) => stronger.name == weaker.name || part(),
        (Predicate::Multiset, Predicate::Set) => stronger.name == weaker.name,
        _ => false,
    }
}

/// The second and the third heuristic.
fn simplified(side: &Side<'_>, condition: Condition, set: &Set, dropped: &mut Vec<Dropped>) -> Set {
    let mut kept = set.clone();
    let mut drop = |kept: &mut Set, c: usize, why| {
        kept.remove(c);
        let conjunct = side.columns[c].conjunct.clone();
        dropped.push(Dropped { condition, conjunct, why });
    };
    for c in set.iter() {
        if side.columns[c].constant() {
            drop(&mut kept, c, Why::AlwaysHolds);
        }
    }
    let rest = kept.clone();
    for weaker in rest.iter() {
        let conjunct = |c: usize| &side.columns[c].conjunct;
        if rest.iter().any(|stronger| implies(conjunct(stronger), conjunct(weaker))) {
            drop(&mut kept, weaker, Why::Implied);
        }
    }
    kept
}

/// What is shown of the preconditions that were found, the first of which is the one to use.
pub(super) fn specification(
    study: &Study<'_>,
    preconditions: &[Set],
    post: &Set,
    mut dropped: Vec<Dropped>,
    remarks: Vec<Remark>,
) -> Specification {
    let pre = simplified(&study.before, Condition::Precondition, &preconditions[0], &mut dropped);
    let post = simplified(&study.after, Condition::Postcondition, post, &mut dropped);
    let mut shown = vec![pre.clone()];
    for other in &preconditions[1..] {
        let other = simplified(&study.before, Condition::Precondition, other, &mut Vec::new());
        if !shown.iter().any(|known| at_least(study, &other, known)) {
            shown.push(other);
        }
    }
    let conjunct = |c: usize| study.before.columns[c].conjunct.clone();
    let satisfied = study.before.count(&pre);
    Specification {
        block: study.table.block.clone(),
        executions: study.table.rows.len(),
        inputs: study.inputs(),
        precondition: pre
            .iter()
            .map(|c| Supported {
                conjunct: conjunct(c),
                pairs: study.before.count(&pre.without(c)) - satisfied,
            })
            .collect(),
        postcondition: post
            .iter()
            .map(|c| Supported {
                conjunct: study.after.columns[c].conjunct.clone(),
                pairs: satisfied,
            })
            .collect(),
        alternatives: shown[1..].iter().map(|set| set.iter().map(conjunct).collect()).collect(),
        dropped,
        remarks,
    }
}

/// Whether a precondition demands everything that another one demands.
fn at_least(study: &Study<'_>, stronger: &Set, weaker: &Set) -> bool {
    let conjunct = |c: usize| &study.before.columns[c].conjunct;
    weaker.iter().all(|w| stronger.iter().any(|s| s == w || implies(conjunct(s), conjunct(w))))
}
