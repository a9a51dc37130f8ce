//! The attribute of clang that says the same as a discipline, as far as clang can say it: one lock, perhaps with
//! accesses of one thread before all others are started and after they are joined.

use selvedge_specs::discipline::Step;
use selvedge_specs::discipline::merge::Line;

use crate::program::symbolize::{Declarations, Declared};

/// The types of locks that `selvedge-thread-safety.h` makes capabilities. The locks of libstdc++ are none.
const CAPABILITIES: [&str; 3] = ["pthread_mutex_t", READER_WRITER, "pthread_spinlock_t"];
const READER_WRITER: &str = "pthread_rwlock_t";

/// How an attribute of a member of C names another member. In C++ it is always by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum MemberForm {
    /// `guarded_by(&lock)`: clang up to 21 has no object for `lock` alone, and takes the lock of any object for it.
    #[default]
    Address,
    /// `guarded_by(lock)`.
    Name,
}

/// The lock that guards a variable, for clang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Guard {
    /// As the discipline names it.
    pub(super) lock: String,
    /// As the attribute names it.
    pub(super) spelled: String,
    /// Where it is declared, if that is known.
    pub(super) declared: Option<Declared>,
    /// Whether it is a member of the same structure.
    pub(super) inside: bool,
}

impl Guard {
    /// Of a variable. Without declarations (a trace has none) names decide alone.
    pub(super) fn of(
        line: &Line,
        declarations: Option<&Declarations>,
        form: MemberForm,
    ) -> Option<Guard> {
        let lock = only_lock(line)?;
        let (object, member) = match line.variable.rsplit_once('.') {
            Some((object, _)) => (Some(object), true),
            None => (None, false),
        };
        let of_object = object.and_then(|object| lock.strip_prefix(object)?.strip_prefix('.'));
        let inside = lock.strip_prefix("this.").or(of_object).filter(|_| member);
        let full = match (inside, object) {
            (Some(name), Some(object)) => format!("{object}.{name}"),
            _ => lock.to_owned(),
        };
        if !is_plain(inside.unwrap_or(lock)) || inside.is_some_and(|name| name.contains('.')) {
            return None;
        }
        let declared = declarations.and_then(|d| d.of(&full));
        let capability =
            |d: &Declared| d.of.as_deref().is_some_and(|of| CAPABILITIES.contains(&of));
        if declarations.is_some() && !declared.as_ref().is_some_and(capability) {
            return None;
        }
        let cxx = declared.as_ref().is_some_and(|d| d.cxx);
        let pointer = declared.as_ref().is_some_and(|d| d.pointer);
        let spelled = match inside {
            // The lock that a member points to may be that of many objects.
            Some(_) if pointer => return None,
            None if pointer => format!("*{lock}"),
            Some(name) if cxx || form == MemberForm::Name => name.to_owned(),
            Some(name) => format!("&{name}"),
            None => lock.to_owned(),
        };
        Some(Guard { lock: lock.to_owned(), spelled, declared, inside: inside.is_some() })
    }

    /// The attribute as clang spells it.
    pub(super) fn attribute(&self) -> String {
        format!("guarded_by({})", self.spelled)
    }

    /// Whether threads may hold it together.
    pub(super) fn is_shared(&self) -> bool {
        self.declared.as_ref().is_some_and(|d| d.of.as_deref() == Some(READER_WRITER))
    }

    /// The last name of the lock.
    pub(super) fn name(&self) -> &str {
        self.lock.rsplit(['.', ':']).next().unwrap_or(&self.lock)
    }
}

fn is_plain(name: &str) -> bool {
    let inner = name.replace("::", "");
    !inner.is_empty() && inner.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.')
}

/// The only lock of a discipline without transitions other than `fork` and `join`.
fn only_lock(line: &Line) -> Option<&str> {
    let steps = line.discipline.as_ref().filter(|_| line.others.is_empty())?;
    let mut guard: Option<&str> = None;
    for step in steps {
        match step {
            Step::ThreadLocal | Step::Fork | Step::Join => {}
            Step::GuardedBy(lock) if guard.is_none_or(|g| g == lock) => guard = Some(lock),
            Step::GuardedBy(_) | Step::ReadShared | Step::Via(..) | Step::Repeat(_) => return None,
        }
    }
    guard
}

/// Whether a variable was only ever used by one thread at a time that nothing else had to be ordered with.
pub(super) fn is_local(line: &Line) -> bool {
    let sequences = line.discipline.iter().chain(line.others.iter().map(|(s, _)| s));
    line.race.is_none()
        && sequences.flatten().all(|s| matches!(s, Step::ThreadLocal | Step::Fork | Step::Join))
}

#[cfg(test)]
mod tests {
    use selvedge_specs::discipline::parse;

    use super::*;

    fn attribute(rule: &str) -> Option<String> {
        let mut rules = parse(rule).unwrap().rules;
        let rule = rules.remove(0);
        let mut alternatives = rule.discipline.alternatives.into_iter();
        let line = Line {
            variable: rule.variable,
            discipline: alternatives.next(),
            others: alternatives.map(|s| (s, 1)).collect(),
            instances: 1,
            accesses: 1,
            threads: 2,
            race: None,
            likely: Vec::new(),
            places: Vec::new(),
        };
        Guard::of(&line, None, MemberForm::Address).map(|g| g.attribute())
    }

    #[test]
    fn one_lock_can_be_said() {
        let of = |rule: &str| attribute(rule).unwrap_or_default();
        assert_eq!(of("x = thread-local; fork; guarded-by m; join"), "guarded_by(m)");
        assert_eq!(of("account.balance = guarded-by this.lock"), "guarded_by(&lock)");
        assert_eq!(of("stats.hits = guarded-by stats.lock"), "guarded_by(&lock)");
        assert_eq!(of("hits = guarded-by stats.lock"), "guarded_by(stats.lock)");
        for rule in [
            "x = guarded-by locks[]",
            "x = guarded-by m; guarded-by n",
            "x = guarded-by m; via lock q",
            "x = guarded-by m; read-shared",
            "x = guarded-by m | thread-local; join",
            "x = (guarded-by m; join)+",
            "x = thread-local; fork",
        ] {
            assert_eq!(attribute(rule), None, "{rule}");
        }
    }
}
