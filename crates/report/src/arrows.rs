//! Which step of an interleaving hands something to a step of another thread, as arrows between rows: a lock, a
//! signal, a start, an end, or a value that is read.

use std::collections::HashMap;

use crate::{Act, Elided, Interleaving, Row, Verb};

impl Interleaving {
    /// Every row in the order of time. A row that stands for others is followed by them.
    pub fn flat(&self) -> Vec<&Row> {
        let inner = |row| match row {
            &Row::Elided(Elided::Rows(ref rows)) => rows.as_slice(),
            _ => &[],
        };
        self.rows.iter().flat_map(|row| std::iter::once(row).chain(inner(row))).collect()
    }

    /// Which row hands something over to a row of another thread: pairs of indices of [`Interleaving::flat`], in
    /// the order of the second.
    pub fn arrows(&self) -> Vec<(usize, usize)> {
        let rows = self.flat();
        let mut arrows = Vec::new();
        let mut on_object: HashMap<&str, Vec<(usize, usize, Verb)>> = HashMap::new();
        let mut last: Vec<Option<usize>> = vec![None; self.threads.len()];
        for (to, row) in rows.iter().enumerate() {
            let Some(thread) = row.told().thread.filter(|&t| t < last.len()) else { continue };
            if last[thread].is_none() {
                let starts = on_object.get(number(&self.threads[thread])).into_iter().flatten();
                let start = starts.rev().find(|&&(_, _, verb)| verb == Verb::Start);
                arrows.extend(start.map(|&(from, ..)| (from, to)));
            }
            last[thread] = Some(to);
            let Row::Does { act: Act { verb, object }, .. } = row else { continue };
            let from = if *verb == Verb::Join {
                let of = self.threads.iter().position(|t| t == object || number(t) == object);
                of.and_then(|ended| last[ended])
            } else {
                // Another step on the same object may come between: the last one that hands over counts.
                let earlier = on_object.get(object.as_str()).into_iter().flatten().rev();
                let mut others = earlier.filter(|&&(_, by, _)| by != thread);
                others.find(|&&(_, _, does)| hands_over(does, *verb)).map(|&(from, ..)| from)
            };
            arrows.extend(from.map(|from| (from, to)));
            on_object.entry(object).or_default().push((to, thread, *verb));
        }
        arrows
    }
}

/// The name of a thread as other threads' steps have it: `T1` of `T1 (teller)`.
fn number(thread: &str) -> &str {
    thread.split([' ', ':']).next().unwrap_or(thread)
}

/// Whether a step hands something to a later step on the same object.
fn hands_over(from: Verb, to: Verb) -> bool {
    use Verb::{
        Arrive, Await, Leave, Load, Lock, NotifyAll, NotifyOne, Read, ReadLock, ReadUnlock, Signal,
        Store, Unlock, Update, Woken, Write,
    };
    matches!(
        (from, to),
        (Unlock, Lock | ReadLock)
            | (ReadUnlock, Lock)
            | (Signal, Await)
            | (Arrive, Leave)
            | (NotifyOne | NotifyAll, Woken)
            | (Write | Store | Update, Read | Load | Update)
    )
}

#[cfg(test)]
mod tests {
    use selvedge_model::{Site, Values};

    use super::*;

    fn does(thread: usize, verb: Verb, object: &str) -> Row {
        let (act, site) = (Act { verb, object: object.into() }, Site::Label("?".into()));
        Row::Does { thread, act, site, critical: false, values: Values::default() }
    }

    #[test]
    fn threads_hand_over_starts_locks_values_and_ends() {
        let rows = vec![
            does(0, Verb::Start, "T1"),
            Row::Elided(Elided::Rows(vec![does(0, Verb::Lock, "m"), does(0, Verb::Unlock, "m")])),
            does(1, Verb::Lock, "m"),
            does(1, Verb::Write, "x"),
            does(0, Verb::Read, "x"),
            does(0, Verb::Join, "T1"),
            does(0, Verb::Read, "x"),
        ];
        let threads = vec!["main".to_owned(), "T1 (worker)".to_owned()];
        let interleaving = Interleaving { threads, rows, ..Interleaving::default() };
        // Row 1 stands for the rows 2 and 3.
        assert_eq!(interleaving.arrows(), [(0, 4), (3, 4), (5, 6), (5, 7), (5, 8)]);
    }
}
