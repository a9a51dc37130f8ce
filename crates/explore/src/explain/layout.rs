//! Rows of an explanation as lines of text: a column for each thread, then the place, then the line of
//! source. What does not fit is shortened; if there is no room for columns, rows begin with the thread.

use selvedge_model::{Op, Site, SiteId, Symbols, ThreadId};

use super::{Explanation, Row, op_in_words, short_name, step_in_words, waiting_in_words};
use crate::Step;

/// What a piece of text is, for whoever has colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Something that matters.
    Plain,
    /// The name of a thread.
    Head,
    /// What makes the finding.
    Critical,
    /// A thread is stopped although it could go on.
    Stopped,
    /// Places, source, what was left out.
    Dim,
}

/// A piece of text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// The text.
    pub text: String,
    /// What it is.
    pub style: Style,
}

/// One line.
pub type Line = Vec<Span>;

/// The narrowest column.
const NARROWEST: usize = 14;
/// The widest column.
const WIDEST: usize = 44;
/// Source of which fewer characters could be shown is not shown.
const LEAST_SOURCE: usize = 16;
/// Between columns.
const GAP: usize = 2;
/// Before the first column: room for a mark.
const MARGIN: usize = 2;

struct Cells {
    /// Thread and text, or nothing for what was left out.
    cell: Option<(ThreadId, String)>,
    mark: &'static str,
    style: Style,
    place: String,
    source: String,
}

/// Makes lines no wider than `width`, of which the first names the threads. `source` tells the line of
/// source of a site, if it is known.
pub fn layout(
    explanation: &Explanation,
    symbols: &Symbols,
    mut source: impl FnMut(SiteId) -> Option<String>,
    width: usize,
) -> Vec<Line> {
    let cells: Vec<Cells> =
        explanation.rows.iter().map(|row| cells(row, symbols, &mut source)).collect();
    let place = cells.iter().map(|c| length(&c.place)).max().unwrap_or(0).min(width / 3);
    let heads: Vec<String> = explanation.threads.iter().map(|&t| symbols.thread(t)).collect();
    let natural = |i: usize| {
        let thread = explanation.threads[i];
        let texts = cells.iter().filter_map(|c| c.cell.as_ref());
        let widest = texts.filter(|(t, _)| *t == thread).map(|(_, text)| length(text)).max();
        widest.unwrap_or(0).max(length(&heads[i])).min(WIDEST)
    };
    let mut columns: Vec<usize> = (0..heads.len()).map(natural).collect();
    let room = width.saturating_sub(MARGIN + place);
    let fits = |columns: &[usize]| columns.iter().map(|w| w + GAP).sum::<usize>() <= room;
    // The widest give way first.
    while !fits(&columns)
        && let Some(widest) = columns.iter_mut().max()
        && *widest > NARROWEST
    {
        *widest -= 1;
    }
    let in_columns = fits(&columns);
    let left = if in_columns { columns.iter().map(|w| w + GAP).sum() } else { room };
    let source_room = room.saturating_sub(left + GAP);
    let mut lines = Vec::new();
    if in_columns {
        let head: String =
            heads.iter().zip(&columns).map(|(head, &w)| padded(head, w + GAP)).collect();
        lines.push(line([(" ".repeat(MARGIN), Style::Plain), (head, Style::Head)]));
    }
    for row in &cells {
        let Some((thread, text)) = &row.cell else {
            let text = format!("{}{}", " ".repeat(MARGIN), row.source);
            lines.push(line([(text, Style::Dim)]));
            continue;
        };
        let column = explanation.threads.iter().position(|t| t == thread).unwrap_or(0);
        let mut parts = vec![(padded(row.mark, MARGIN), row.style)];
        if in_columns {
            let before: usize = columns[..column].iter().map(|w| w + GAP).sum();
            let after: usize = columns[column + 1..].iter().map(|w| w + GAP).sum();
            parts.push((" ".repeat(before), Style::Plain));
            parts.push((padded(&cut(text, columns[column]), columns[column] + GAP), row.style));
            parts.push((" ".repeat(after), Style::Plain));
        } else {
            let text = format!("{}: {text}", heads[column]);
            let w = room.saturating_sub(GAP);
            parts.push((padded(&cut(&text, w), w + GAP), row.style));
        }
        parts.push((padded(&cut(&row.place, place), place), Style::Dim));
        if source_room >= LEAST_SOURCE && !row.source.is_empty() {
            parts.push((
                format!("{}{}", " ".repeat(GAP), cut(&row.source, source_room)),
                Style::Dim,
            ));
        }
        lines.push(line(parts));
    }
    lines
}

fn cells(row: &Row, symbols: &Symbols, source: &mut impl FnMut(SiteId) -> Option<String>) -> Cells {
    let mut at = |site: SiteId| {
        (place(&symbols.site(site)), source(site).map_or(String::new(), |s| s.trim().to_owned()))
    };
    let ((thread, text), (mark, style), (place, source)) = match row {
        Row::Does { event, critical } => {
            let how = if *critical { ("▶", Style::Critical) } else { ("", Style::Plain) };
            ((event.thread, op_in_words(event.op, symbols)), how, at(event.site))
        }
        Row::Stopped { thread, next } => {
            let text = format!("stopped before {}", step_in_words(next.step, symbols));
            ((*thread, text), ("‖", Style::Stopped), at(next.site))
        }
        Row::Waits { thread, next, holder } => {
            let held = match holder {
                Some(other) if other == thread => ", held by itself".to_owned(),
                Some(other) if !matches!(next.step, Step::Do(Op::Join(_))) => {
                    format!(", held by {}", short_name(*other, symbols))
                }
                _ => String::new(),
            };
            let text = format!("{}{held}", waiting_in_words(next.step, symbols));
            // Who waits for the end of others is stuck because they are.
            let how = match next.step {
                Step::Do(Op::Join(_)) => ("", Style::Plain),
                _ => ("▶", Style::Critical),
            };
            ((*thread, text), how, at(next.site))
        }
        Row::Ends { thread, text } => {
            let nowhere = (String::new(), String::new());
            ((*thread, text.clone()), ("▶", Style::Critical), nowhere)
        }
        Row::Elided(n) => {
            let text = if *n == 1 { "… 1 step …".into() } else { format!("… {n} steps …") };
            let (cell, mark, place) = (None, "", String::new());
            return Cells { cell, mark, style: Style::Dim, place, source: text };
        }
    };
    Cells { cell: Some((thread, text)), mark, style, place, source }
}

/// `file:line`, without directories.
fn place(site: &Site) -> String {
    match site.frame() {
        Some(frame) => {
            let file = frame.file.rsplit(['/', '\\']).next().unwrap_or("");
            format!("{file}:{}", frame.line)
        }
        None => site.to_string(),
    }
}

/// Without blanks at the end.
fn line(parts: impl IntoIterator<Item = (String, Style)>) -> Line {
    let mut line: Line = Vec::new();
    for (text, style) in parts {
        match line.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&text),
            _ if text.is_empty() => {}
            _ => line.push(Span { text, style }),
        }
    }
    while let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end().len());
        if !last.text.is_empty() {
            break;
        }
        line.pop();
    }
    line
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn padded(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(length(text));
    format!("{text}{}", " ".repeat(blanks))
}

fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}
