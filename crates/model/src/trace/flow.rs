//! Data flow in text traces: a line such as `set(x,a,b)` stands for several events.
//!
//! `get(l,x)` is a read and the taking of its value, `set(x,a,b)` is uses and a write, `let(l,a,b)` is uses and a
//! definition, `if(l)` is uses and a branch; `updates(+)` says that the line before is an update. Reading takes a line apart; writing joins events of one thread at
//! one place that directly follow each other.

use std::io::{self, Write};

use crate::{Event, Flow, Op, Operator};

/// One event of a line, in names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part<'a> {
    Use(&'a str),
    Define(&'a str),
    Take(&'a str),
    Branch,
    Updates(Operator),
    Focus(&'a str),
    Read(&'a str),
    Write(&'a str),
}

/// The events that an operation with data flow stands for; nothing if it is another operation.
pub(super) fn parts<'a>(
    name: &str,
    operand: &'a str,
    text: &str,
) -> Result<Option<Vec<Part<'a>>>, String> {
    let (first, rest) = match operand.split_once(',') {
        Some((first, rest)) => (first.trim(), Some(rest)),
        None => (operand.trim(), None),
    };
    let names = rest.into_iter().flat_map(|rest| rest.split(',')).map(str::trim);
    let uses = names.clone().map(Part::Use);
    let parts: Vec<Part<'_>> = match (name, rest) {
        ("get", Some(variable)) => vec![Part::Read(variable.trim()), Part::Take(first)],
        ("get", None) => return Err(format!("expected get(local,variable), found {text:?}")),
        ("set", _) => uses.chain([Part::Write(first)]).collect(),
        ("let", _) => uses.chain([Part::Define(first)]).collect(),
        ("if", _) if operand.is_empty() => vec![Part::Branch],
        ("if", _) => [Part::Use(first)].into_iter().chain(uses).chain([Part::Branch]).collect(),
        ("focus", _) => return Ok(Some(vec![Part::Focus(operand)])),
        ("use", None) => vec![Part::Use(first)],
        ("take", None) => vec![Part::Take(first)],
        ("updates", None) => match Operator::named(first) {
            Some(operator) => vec![Part::Updates(operator)],
            None => {
                let known: Vec<&str> = Operator::ALL.iter().map(|o| o.1).collect();
                return Err(format!("expected one of {} in {text:?}", known.join(" ")));
            }
        },
        _ => return Ok(None),
    };
    let nameless = |p: &Part<'_>| {
        matches!(
            p,
            Part::Use("") | Part::Define("") | Part::Take("") | Part::Read("") | Part::Write("")
        )
    };
    if parts.iter().any(nameless) {
        return Err(format!("a name is missing in {text:?}"));
    }
    Ok(Some(parts))
}

/// Joins events into lines. It holds back uses until what they flow into comes, and a read until it is known
/// whether a local takes its value.
#[derive(Default)]
pub(super) struct Joiner {
    held: Vec<Held>,
}

struct Held {
    event: Event,
    /// Its operand, and the line that it is by itself.
    operand: String,
    line: String,
}

impl Joiner {
    /// The next event, which is `text` by itself; `line` makes a line of its thread at its place.
    pub(super) fn take<W: Write>(
        &mut self,
        event: &Event,
        text: &str,
        output: &mut W,
        line: impl Fn(&str) -> String,
    ) -> io::Result<()> {
        let operand = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let operand = operand.unwrap_or("");
        if self
            .held
            .last()
            .is_some_and(|h| (h.event.thread, h.event.site) != (event.thread, event.site))
        {
            self.finish(output)?;
        }
        let reads =
            matches!(self.held.last(), Some(Held { event: Event { op: Op::Read(_), .. }, .. }));
        let uses = !self.held.is_empty() && !reads;
        let joined = if let Op::Flow(flow) = event.op {
            match flow {
                Flow::Take(_) => reads.then_some("get"),
                Flow::Define(_) => uses.then_some("let"),
                Flow::Branch => uses.then_some("if"),
                Flow::Use(_) | Flow::Updates(_) => None,
            }
        } else {
            let sets = matches!(event.op, Op::Write(_)) && uses && !operand.contains(',');
            sets.then_some("set")
        };
        if let Some(name) = joined {
            let operands: Vec<String> = [operand.to_owned()]
                .into_iter()
                .chain(self.held.drain(..).map(|h| h.operand))
                .filter(|o| !o.is_empty())
                .collect();
            return writeln!(output, "{}", line(&format!("{name}({})", operands.join(","))));
        }
        let is_use = matches!(event.op, Op::Flow(Flow::Use(_)));
        if !(is_use && uses) {
            self.finish(output)?;
        }
        if is_use || matches!(event.op, Op::Read(_)) {
            self.held.push(Held { event: *event, operand: operand.to_owned(), line: line(text) });
            return Ok(());
        }
        writeln!(output, "{}", line(text))
    }

    /// Writes what is held back, each event in a line of its own.
    pub(super) fn finish(&mut self, output: &mut impl Write) -> io::Result<()> {
        self.held.drain(..).try_for_each(|h| writeln!(output, "{}", h.line))
    }
}
