//! Text from the program under test, made safe to show.
//!
//! Names of programs, threads, variables and files, assertion texts and source lines come from the program
//! under test. They may contain terminal escapes, or marks that reverse the direction of text. Reports show
//! such characters as `\u{1b}`.

use std::borrow::Cow;

/// Whether a character would act on a terminal or a page instead of being shown.
fn acts(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Direction marks, embeddings, overrides and isolates; the byte order mark; separators of lines.
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => {
            true
        }
        '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// The text with every character that would act shown by its number. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match acts(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// A JSON document with every character that would act in JSON's own escapes: programs read the same texts, and a
/// terminal shows them only.
#[cfg(feature = "formats")]
pub(crate) fn json(document: &str) -> String {
    let mut safe = String::with_capacity(document.len());
    for c in document.chars() {
        match acts(c) {
            true => {
                let mut units = [0; 2];
                let units = c.encode_utf16(&mut units).iter();
                units.for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
            }
            false => safe.push(c),
        }
    }
    safe
}

/// The longest text that is shown; a name or message may be of any length.
const LONGEST: usize = 4096;

/// The text, safe to show and not longer than a page.
pub fn harmless(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        None => visible(text),
        Some((end, _)) => {
            let shown = visible(&text[..end]);
            Cow::Owned(format!("{shown}… ({} bytes)", text.len()))
        }
    }
}

/// The report with every text safe to show. Identity does not change: it does not rest on texts.
#[cfg(feature = "formats")]
pub fn report(report: &crate::Report) -> Cow<'_, crate::Report> {
    let stored = serde_json::to_value(report).expect("a report can be stored");
    let mut safe = stored.clone();
    strings(&mut safe);
    if safe == stored {
        return Cow::Borrowed(report);
    }
    let mut safe: crate::Report = serde_json::from_value(safe).expect("it has the same form");
    for (case, from) in safe.cases.iter_mut().zip(&report.cases) {
        // Schedules are long, and texts of earlier versions have colours on purpose.
        let (Some(control), Some(from)) = (&mut case.control, &from.control) else { continue };
        control.schedule.clone_from(&from.schedule);
        for (order, from) in control.orders.iter_mut().zip(&from.orders) {
            order.schedule.clone_from(&from.schedule);
        }
        if let Some(crate::How::Told(_)) = from.how {
            control.how.clone_from(&from.how);
        }
    }
    Cow::Owned(safe)
}

#[cfg(feature = "formats")]
fn strings(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            if let Cow::Owned(safe) = harmless(text) {
                *text = safe;
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(strings),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(strings),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{harmless, visible};

    #[test]
    fn only_what_acts_is_escaped() {
        assert_eq!(visible("a\tb\n→ é"), "a\tb\n→ é");
        assert_eq!(visible("\u{1b}[31mred\u{7}"), r"\u{1b}[31mred\u{7}");
        assert_eq!(harmless(&"é".repeat(5000)).chars().count(), 4096 + "… (10000 bytes)".len() - 2);
        assert_eq!(visible("a\u{202e}b\u{9b}c\r"), r"a\u{202e}b\u{9b}c\u{d}");
    }
}
