//! Which statements control is in.
//!
//! Statements become regions, so that stars can be put around them. A region is told apart by its lines, so statements
//! that share theirs are one: with the statement around them, or with the one before.
//!
//! A run of statements that is left by a jump is noticed by whatever encloses it, as if a flag were set inside and
//! tested behind: by the loop that `break` and `continue` belong to, and by the function that `return` leaves.

use std::path::Path;

use selvedge_instrument::statements::{Kind, NONE, Position, Statement};
use selvedge_model::RegionId;

/// The statements of a function, as regions.
#[derive(Debug)]
pub struct Layout {
    statements: Vec<Statement>,
    /// By statement, the one whose region it is in.
    group: Vec<u32>,
    /// By statement, the name of its region, if it has one of its own.
    labels: Vec<Option<String>>,
}

impl Layout {
    /// Of a function of a file.
    pub fn new(statements: &[Statement], file: &Path, function: &str) -> Layout {
        let lines = |s: &Statement| (s.from.0, s.to.0);
        let mut group: Vec<u32> = (0..statements.len() as u32).collect();
        let mut labels = vec![None; statements.len()];
        let mut before: Vec<u32> = vec![NONE; statements.len() + 1];
        for (i, statement) in statements.iter().enumerate() {
            let around = statements.get(statement.parent as usize);
            // The outermost have no parent; their last one is kept at the end.
            let family =
                if around.is_some() { statement.parent as usize } else { statements.len() };
            let last = std::mem::replace(&mut before[family], i as u32);
            let (first_line, last_line) = lines(statement);
            if around.is_some_and(|a| lines(a) == lines(statement)) {
                continue;
            }
            match statements.get(last as usize) {
                Some(sibling) if lines(sibling) == lines(statement) => {
                    group[i] = group[last as usize];
                }
                _ => {
                    let file = file.display();
                    labels[i] = Some(format!("{file}:{first_line}-{last_line} {function}"));
                }
            }
        }
        Layout { statements: statements.to_vec(), group, labels }
    }

    /// The innermost statement at a position, or [`NONE`].
    pub fn innermost(&self, at: Position) -> u32 {
        self.statements.iter().rposition(|s| s.has(at)).map_or(NONE, |i| i as u32)
    }

    /// The regions around a statement and its own, outermost first.
    pub fn path(&self, mut statement: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while let Some(known) = self.statements.get(statement as usize) {
            path.push(self.group[statement as usize]);
            statement = known.parent;
        }
        path.reverse();
        path
    }

    /// What a statement does to the way of control.
    pub fn kind(&self, statement: u32) -> Kind {
        self.statements.get(statement as usize).map_or(Kind::Plain, |s| s.kind)
    }

    /// The name of a region, if it is one.
    pub fn label(&self, group: u32) -> Option<&str> {
        self.labels.get(group as usize)?.as_deref()
    }

    /// Whether the lines are those of consecutive statements of one level.
    pub fn has_run(&self, first: u32, last: u32) -> bool {
        let begins = |s: &&Statement| s.from.0 == first;
        let ends = |s: &Statement| s.to.0 == last;
        let families = self.statements.iter().filter(begins).map(|s| s.parent);
        families.into_iter().any(|p| self.statements.iter().any(|s| s.parent == p && ends(s)))
    }
}

/// The statements that control is in, in one execution of a function.
#[derive(Debug)]
pub struct Within {
    /// The innermost statement.
    pub at: u32,
    /// What is open, outermost first: each with its region, if it has one.
    pub open: Vec<(u32, Option<RegionId>)>,
}

impl Default for Within {
    fn default() -> Within {
        Within { at: NONE, open: Vec::new() }
    }
}

impl Within {
    /// How many stay open when a jump leaves the statement; nothing if the statement is no jump. A `goto` leaves
    /// whatever its target is not in.
    pub fn kept(&self, layout: &Layout, to: u32) -> Option<usize> {
        let last = |is: fn(Kind) -> bool| {
            let found = self.open.iter().rposition(|(s, _)| is(layout.kind(*s)));
            Some(found.map_or(0, |i| i + 1))
        };
        match layout.kind(self.at) {
            Kind::Plain | Kind::Loop | Kind::Switch => None,
            Kind::Break => last(|k| matches!(k, Kind::Loop | Kind::Switch)),
            Kind::Continue => last(|k| k == Kind::Loop),
            Kind::Return => Some(0),
            Kind::Goto => Some(self.common(&layout.path(to))),
        }
    }

    /// How many of those that are open are on a path.
    pub fn common(&self, path: &[u32]) -> usize {
        self.open.iter().zip(path).take_while(|(open, on)| open.0 == **on).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(kind: Kind, from: Position, to: Position, parent: u32) -> Statement {
        Statement { kind, from, to, parent }
    }

    fn layout() -> Layout {
        let all = [
            statement(Kind::Loop, (2, 3), (7, 3), NONE),
            statement(Kind::Plain, (3, 5), (3, 8), 0),
            statement(Kind::Plain, (3, 11), (3, 14), 0),
            statement(Kind::Plain, (4, 5), (4, 30), 0),
            statement(Kind::Break, (4, 12), (4, 16), 3),
            statement(Kind::Plain, (5, 5), (6, 9), 0),
        ];
        Layout::new(&all, Path::new("a.c"), "f")
    }

    #[test]
    fn statements_of_one_line_are_one_region() {
        let layout = layout();
        assert_eq!(layout.label(0), Some("a.c:2-7 f"));
        assert_eq!(layout.path(layout.innermost((3, 12))), layout.path(layout.innermost((3, 5))));
        assert_eq!(layout.path(4), [0, 3, 4]);
        assert_eq!(layout.label(4), None);
        assert_eq!(layout.innermost((9, 1)), NONE);
    }

    #[test]
    fn a_break_stays_in_its_loop() {
        let layout = layout();
        let open = layout.path(4).into_iter().map(|s| (s, None)).collect();
        assert_eq!(Within { at: 4, open }.kept(&layout, NONE), Some(1));
    }

    #[test]
    fn runs_are_of_one_level() {
        let layout = layout();
        assert!(layout.has_run(3, 4) && layout.has_run(4, 6) && layout.has_run(2, 7));
        assert!(!layout.has_run(2, 4) && !layout.has_run(3, 5) && !layout.has_run(3, 7));
    }
}
