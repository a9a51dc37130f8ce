//! Where stars could be put: runs of consecutive statements.
//!
//! Statements with the same parent in the same function are a *level*, in the order of the source. A run is some of
//! them that stand one after the other. One execution of it is a longest sequence of executions of its statements, in
//! the order of the source, inside of one execution of the parent, with nothing else in between.

use rustc_hash::FxHashMap;
use selvedge_model::Symbols;

use super::execution::{Execution, NONE, NodeId};
use super::stars::{Lists, Stars};

/// A statement of the source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub struct Statement {
    pub file: Box<str>,
    pub first_line: u32,
    pub last_line: u32,
    pub function: Box<str>,
}

impl Statement {
    /// Understands `FILE:FIRST-LAST FUNCTION`; the function may be missing.
    pub fn parse(label: &str) -> Option<Statement> {
        // The name of a file may have spaces in it, the name of a function has none.
        let named = label.rsplit_once(' ').and_then(|(place, name)| Statement::of(place, name));
        named.or_else(|| Statement::of(label, ""))
    }

    fn of(place: &str, function: &str) -> Option<Statement> {
        let (file, lines) = place.rsplit_once(':')?;
        let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
        let (first_line, last_line) = (first.parse().ok()?, last.parse().ok()?);
        (first_line <= last_line).then(|| Statement {
            file: file.into(),
            first_line,
            last_line,
            function: function.into(),
        })
    }
}

/// Consecutive statements of a level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Run {
    /// The level.
    pub level: u32,
    /// Positions in the level of the first and the last statement.
    pub from: u32,
    #[allow(missing_docs)]
    pub to: u32,
}

impl Run {
    /// Whether the two share statements and neither contains the other.
    pub fn overlaps(self, other: Run) -> bool {
        let meet = self.level == other.level && self.from <= other.to && other.from <= self.to;
        let inside = |a: Run, b: Run| b.from <= a.from && a.to <= b.to;
        meet && !inside(self, other) && !inside(other, self)
    }

    /// How many statements it has.
    #[allow(clippy::len_without_is_empty)] // A run has at least one statement.
    pub fn len(self) -> u32 {
        self.to - self.from + 1
    }
}

/// An execution, with its statements as numbers that all executions share.
#[derive(Debug)]
pub struct Observed {
    /// The execution.
    pub execution: Execution,
    /// By execution of a statement, its level and its position there.
    pub(super) placed: Vec<(u32, u32)>,
    /// Executions of statements of one level inside of one execution of their parent, in order.
    families: Vec<Vec<u32>>,
    /// By execution of a statement, whether something else came between it and the one before in its family.
    apart: Vec<bool>,
}

/// The statements of all executions.
#[derive(Debug, Default)]
pub struct Source {
    statements: Vec<Statement>,
    by_name: FxHashMap<Statement, u32>,
    /// By statement, its parent: [`NONE`] for the outermost of its function.
    parents: Vec<u32>,
    /// The statements of each level in the order of the source.
    levels: Vec<Vec<u32>>,
}

impl Source {
    /// The first and the last statement of a run.
    pub fn ends(&self, run: Run) -> (&Statement, &Statement) {
        let level = &self.levels[run.level as usize];
        let at = |position: u32| &self.statements[level[position as usize] as usize];
        (at(run.from), at(run.to))
    }

    /// Learns the statements of an execution. The error is a label that is no statement.
    pub fn add(&mut self, execution: &Execution, symbols: &Symbols) -> Result<Vec<u32>, String> {
        let mut by_region: FxHashMap<u32, u32> = FxHashMap::default();
        let mut of: Vec<u32> = Vec::with_capacity(execution.statements().len());
        for instance in execution.statements() {
            let known = by_region.get(&instance.region.0).copied();
            let statement = match known {
                Some(statement) => statement,
                None => {
                    let label = symbols.region(instance.region).map_or("", |r| &r.name);
                    let parsed = Statement::parse(label).ok_or_else(|| label.to_owned())?;
                    self.intern(parsed)
                }
            };
            by_region.insert(instance.region.0, statement);
            if known.is_none() && instance.outer != NONE {
                let outer = of[instance.outer as usize];
                let of_same = |s: u32| &self.statements[s as usize].function;
                if of_same(outer) == of_same(statement) {
                    self.parents[statement as usize] = outer;
                }
            }
            of.push(statement);
        }
        Ok(of)
    }

    /// The statements inside of these lines of a function, as runs of the outermost levels there.
    pub fn inside(&self, lines: &Statement) -> Vec<Run> {
        let is_inside = |statement: u32| {
            let s = &self.statements[statement as usize];
            s.file == lines.file
                && s.function == lines.function
                && lines.first_line <= s.first_line
                && s.last_line <= lines.last_line
        };
        let outermost = |statement: u32| {
            let parent = self.parents[statement as usize];
            is_inside(statement) && (parent == NONE || !is_inside(parent))
        };
        let levels = self.levels.iter().enumerate();
        let run = |(level, list): (usize, &Vec<u32>)| {
            let from = list.iter().position(|&s| outermost(s))? as u32;
            let to = list.iter().rposition(|&s| outermost(s))? as u32;
            Some(Run { level: level as u32, from, to })
        };
        levels.filter_map(run).collect()
    }

    fn intern(&mut self, statement: Statement) -> u32 {
        *self.by_name.entry(statement.clone()).or_insert_with(|| {
            self.statements.push(statement);
            self.parents.push(NONE);
            self.statements.len() as u32 - 1
        })
    }

    /// All statements are known: puts them into levels. By statement, its level and position.
    pub fn settle(&mut self) -> Vec<(u32, u32)> {
        let mut order: Vec<u32> = (0..self.statements.len() as u32).collect();
        order.sort_by(|&a, &b| {
            let key = |s: u32| &self.statements[s as usize];
            let (a, b) = (key(a), key(b));
            (&a.function, &a.file, a.first_line, a.last_line).cmp(&(
                &b.function,
                &b.file,
                b.first_line,
                b.last_line,
            ))
        });
        let mut level_of: FxHashMap<(u32, Box<str>, Box<str>), u32> = FxHashMap::default();
        let mut placed = vec![(0, 0); order.len()];
        for statement in order {
            let Statement { file, function, .. } = self.statements[statement as usize].clone();
            let next = self.levels.len() as u32;
            let key = (self.parents[statement as usize], file, function);
            let level = *level_of.entry(key).or_insert(next);
            if level == next {
                self.levels.push(Vec::new());
            }
            let level_list = &mut self.levels[level as usize];
            placed[statement as usize] = (level, level_list.len() as u32);
            level_list.push(statement);
        }
        placed
    }
}

impl Observed {
    /// An execution whose statements are in levels.
    pub fn new(execution: Execution, of: &[u32], placed: &[(u32, u32)]) -> Observed {
        let placed: Vec<(u32, u32)> = of.iter().map(|&s| placed[s as usize]).collect();
        let mut observed =
            Observed { apart: vec![false; placed.len()], families: Vec::new(), execution, placed };
        observed.find_families();
        observed
    }

    /// Who the nodes directly in an execution of a statement, or of no statement in a thread, belong to.
    fn parent_key(&self, outer: u32, thread: u32) -> u64 {
        if outer == NONE { 1 << 32 | u64::from(thread) } else { u64::from(outer) }
    }

    fn find_families(&mut self) {
        let mut direct: FxHashMap<u64, Vec<NodeId>> = FxHashMap::default();
        for (i, node) in self.execution.nodes().iter().enumerate() {
            let thread = self.execution.thread(i as NodeId).0;
            let key = self.parent_key(node.statement, thread);
            direct.entry(key).or_default().push(i as NodeId);
        }
        let mut family_of: FxHashMap<(u64, u32), u32> = FxHashMap::default();
        for (i, instance) in self.execution.statements().iter().enumerate() {
            let key = self.parent_key(instance.outer, instance.thread.0);
            let next = self.families.len() as u32;
            let family = *family_of.entry((key, self.placed[i].0)).or_insert(next);
            if family == next {
                self.families.push(Vec::new());
            }
            let members = &mut self.families[family as usize];
            if let Some(&before) = members.last() {
                let from = self.execution.statements()[before as usize].span.1;
                let nodes = direct.get(&key).map_or(&[][..], |d| d);
                let first = nodes.partition_point(|&n| n < from);
                self.apart[i] = nodes.get(first).is_some_and(|&n| n < instance.span.0);
            }
            members.push(i as u32);
        }
    }

    /// The executions of a run: each a list of executions of its statements.
    pub fn executions(&self, run: Run) -> Vec<&[u32]> {
        let mut found = Vec::new();
        for family in &self.families {
            if self.placed[family[0] as usize].0 != run.level {
                continue;
            }
            let inside =
                |i: usize| (run.from..=run.to).contains(&self.placed[family[i] as usize].1);
            let mut start = 0;
            while start < family.len() {
                if !inside(start) {
                    start += 1;
                    continue;
                }
                let position = |i: usize| self.placed[family[i] as usize].1;
                let mut end = start + 1;
                while end < family.len()
                    && inside(end)
                    && position(end) > position(end - 1)
                    && !self.apart[family[end] as usize]
                {
                    end += 1;
                }
                found.push(&family[start..end]);
                start = end;
            }
        }
        found
    }

    /// Whether some execution of a run has its first and its last statement: otherwise it is none of the source, such
    /// as the two branches of a test.
    pub fn has_whole(&self, run: Run) -> bool {
        self.executions(run).iter().any(|parts| {
            let position = |part: Option<&u32>| part.map(|&p| self.placed[p as usize].1);
            position(parts.first()) == Some(run.from) && position(parts.last()) == Some(run.to)
        })
    }

    /// Stars around all executions of some runs.
    pub fn stars(&self, runs: &[Run]) -> Stars {
        let statements = self.execution.statements();
        let (mut own, mut outer): (Vec<(u32, u32)>, Vec<u32>) = (Vec::new(), Vec::new());
        for &run in runs {
            for parts in self.executions(run) {
                let star = outer.len() as u32;
                outer.push(statements[parts[0] as usize].outer);
                own.extend(parts.iter().map(|&part| (part, star)));
            }
        }
        let count = statements.len();
        let own = Lists::of(count, || own.iter().copied());
        // What has no star of its own is in those of the statement around it.
        let mut source: Vec<u32> = (0..count as u32).collect();
        for i in 0..count {
            if own.get(i as u32).is_empty() && statements[i].outer != NONE {
                source[i] = source[statements[i].outer as usize];
            }
        }
        let around = Lists::of(count, || {
            let groups = 0..count as u32;
            let stars = |g: u32| own.get(source[g as usize]).iter().map(move |&star| (g, star));
            groups.flat_map(stars)
        });
        let of = self.execution.nodes().iter().map(|n| n.statement).collect();
        Stars { of, around, outer }
    }
}

/// All runs of the source that occur as a whole in some execution.
pub fn runs(source: &Source, observed: &[Observed]) -> Vec<Run> {
    let mut all = Vec::new();
    for (level, statements) in source.levels.iter().enumerate() {
        let n = statements.len() as u32;
        for from in 0..n {
            for to in from..n.min(from + LONGEST) {
                let run = Run { level: level as u32, from, to };
                if observed.iter().any(|o| o.has_whole(run)) {
                    all.push(run);
                }
            }
        }
    }
    all
}

/// The longest run that is considered, in statements.
const LONGEST: u32 = 32;
