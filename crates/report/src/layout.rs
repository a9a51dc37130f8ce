//! Rows of an interleaving as lines of text: a column for each thread, then the place, then the line of
//! source. What does not fit is shortened; if there is no room for columns, rows begin with the thread.

use std::borrow::Cow;

use selvedge_model::Site;

use crate::escape;
use crate::interleaving::Weight;
use crate::{Interleaving, Row, Sources};

/// The role of a piece of text, for a format that has colours.
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
/// Source is left out if fewer characters of it would fit.
const LEAST_SOURCE: usize = 16;
/// Between columns.
const GAP: usize = 2;
/// Before the first column: room for a mark.
const MARGIN: usize = 2;
/// How wide the column of [`Chance`](crate::Chance) is, if there is one.
const CHANCE: usize = 5;

struct Cells {
    /// How likely the finding is from here on, if that was measured.
    margin: String,
    /// Thread and text, or nothing for what was left out.
    cell: Option<(usize, String)>,
    mark: &'static str,
    style: Style,
    place: String,
    source: String,
}

/// Makes lines no wider than `width`, of which the first names the threads.
pub fn layout(shown: &Interleaving, sources: &mut Sources<'_>, width: usize) -> Vec<Line> {
    let mut cells: Vec<Cells> = shown.rows.iter().map(|row| cells(row, sources)).collect();
    for (cell, chance) in cells.iter_mut().zip(&shown.margin) {
        cell.margin = chance.map_or_else(|| " ".repeat(CHANCE), |c| format!("{:>3}% ", c.percent));
    }
    let chance = if shown.margin.is_empty() { 0 } else { CHANCE };
    let place = cells.iter().map(|c| length(&c.place)).max().unwrap_or(0).min(width / 3);
    let heads: Vec<Cow<'_, str>> =
        shown.threads.iter().take(shown.lanes()).map(|t| escape::visible(t)).collect();
    let natural = |i: usize| {
        let texts = cells.iter().filter_map(|c| c.cell.as_ref());
        let widest = texts.filter(|(t, _)| *t == i).map(|(_, text)| length(text)).max();
        widest.unwrap_or(0).max(length(&heads[i])).min(WIDEST)
    };
    let mut columns: Vec<usize> = (0..heads.len()).map(natural).collect();
    let room = width.saturating_sub(chance + MARGIN + place);
    let fits = |columns: &[usize]| columns.iter().map(|w| w + GAP).sum::<usize>() <= room;
    // Shrink the widest columns first.
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
        lines.push(line([(" ".repeat(chance + MARGIN), Style::Plain), (head, Style::Head)]));
    }
    for row in &cells {
        let Some((thread, text)) = row.cell.as_ref().filter(|_| !heads.is_empty()) else {
            let text = format!("{}{}", " ".repeat(chance + MARGIN), row.source);
            lines.push(line([(text, Style::Dim)]));
            continue;
        };
        let column = (*thread).min(heads.len().saturating_sub(1));
        let mut parts =
            vec![(row.margin.clone(), Style::Dim), (padded(row.mark, MARGIN), row.style)];
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

/// Between two executions that stand beside each other.
const BETWEEN: &str = " │ ";

/// Makes lines of two executions no wider than `width`: what both do first once, and then each in a half of its own.
pub fn beside(
    first: &Interleaving,
    second: &Interleaving,
    sources: &mut Sources<'_>,
    width: usize,
) -> Vec<Line> {
    let common = first.common(second);
    let mut lines = Vec::new();
    if common > 0 {
        lines = layout(&first.part(..common), sources, width);
        lines.push(line([("  here the two executions part".to_owned(), Style::Head)]));
    }
    let half = width.saturating_sub(length(BETWEEN)) / 2;
    let side = |shown: Interleaving, title: &str, sources: &mut Sources<'_>| {
        let mut lines = vec![line([(title.to_owned(), Style::Head)])];
        lines.extend(layout(&shown, sources, half));
        lines
    };
    let left = side(first.part(common..), "one execution", sources);
    let right = side(second.part(common..), "the other", sources);
    let nothing = Line::new();
    for i in 0..left.len().max(right.len()) {
        let (mut both, right) =
            (left.get(i).unwrap_or(&nothing).clone(), right.get(i).unwrap_or(&nothing));
        let filled: usize = both.iter().map(|span| length(&span.text)).sum();
        let gap = format!("{}{BETWEEN}", " ".repeat(half.saturating_sub(filled)));
        both.push(Span { text: gap, style: Style::Dim });
        both.extend(right.iter().cloned());
        lines.push(both);
    }
    lines
}

fn cells(row: &Row, sources: &mut Sources<'_>) -> Cells {
    let told = row.told();
    let text = escape::visible(&told.text).into_owned();
    let (mark, style) = match told.weight {
        Weight::Plain => ("", Style::Plain),
        Weight::Critical => ("▶", Style::Critical),
        Weight::Stopped => ("‖", Style::Stopped),
    };
    let Some(thread) = told.thread else {
        let (cell, place) = (None, String::new());
        return Cells { margin: String::new(), cell, mark, style: Style::Dim, place, source: text };
    };
    let source = told.site.and_then(|s| sources.line(s)).unwrap_or_default().to_owned();
    let place = told.site.map_or_else(String::new, place);
    Cells { margin: String::new(), cell: Some((thread, text)), mark, style, place, source }
}

/// `file:line`, without directories.
pub(crate) fn place(site: &Site) -> String {
    match site.frame() {
        Some(frame) => {
            let file = frame.file.rsplit(['/', '\\']).next().unwrap_or("");
            format!("{}:{}", escape::visible(file), frame.line)
        }
        None => escape::visible(&site.to_string()).into_owned(),
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
