//! Lines of source, from files that the caller reads.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use selvedge_model::Site;

use crate::escape;

type Read<'a> = Box<dyn FnMut(&str) -> Option<String> + 'a>;

/// Source files, each read once.
pub struct Sources<'a> {
    read: Read<'a>,
    files: HashMap<Box<str>, Option<String>>,
}

impl<'a> Sources<'a> {
    /// Reads files with `read`, by the path that the compiler recorded.
    pub fn new(read: impl FnMut(&str) -> Option<String> + 'a) -> Sources<'a> {
        Sources { read: Box::new(read), files: HashMap::new() }
    }

    /// The file of a site, and which bytes of it are the part of the line that matters: from the column,
    /// or the first letter, to the end.
    pub fn excerpt(&mut self, site: &Site) -> Option<(&str, Range<usize>)> {
        let (source, line) = self.find(site)?;
        let column = usize::try_from(site.frame()?.column).ok()?.saturating_sub(1);
        let text = &source[line.clone()];
        let from = match text.get(column..) {
            Some(rest) if column > 0 && !rest.trim().is_empty() => column,
            _ => text.len() - text.trim_start().len(),
        };
        let span = line.start + from..line.start + text.trim_end().len();
        Some((source, span))
    }

    /// The whole line of a site, without the blanks around it.
    pub fn line(&mut self, site: &Site) -> Option<&str> {
        let (source, line) = self.find(site)?;
        Some(source[line].trim())
    }

    /// The line of a site and as many before and after it, with their numbers and without the blanks at
    /// their ends.
    pub fn around(&mut self, site: &Site, lines: u32) -> Option<Vec<(u32, String)>> {
        let number = site.frame()?.line;
        let (source, _) = self.find(site)?;
        let first = number.saturating_sub(lines).max(1);
        let shown =
            (first..=number.saturating_add(lines)).zip(source.lines().skip(first as usize - 1));
        Some(shown.map(|(n, text)| (n, text.trim_end().to_owned())).collect())
    }

    /// The file of a site and the bytes of its line, unless that is blank.
    fn find(&mut self, site: &Site) -> Option<(&str, Range<usize>)> {
        let frame = site.frame()?;
        let read = &mut self.read;
        let file = self.files.entry(frame.file.clone()).or_insert_with(|| {
            let text = read(&frame.file)?;
            Some(match escape::visible(&text) {
                Cow::Borrowed(_) => text,
                Cow::Owned(safe) => safe,
            })
        });
        let source = file.as_deref()?;
        let number = usize::try_from(frame.line).ok()?.checked_sub(1)?;
        let start: usize = source.split_inclusive('\n').take(number).map(str::len).sum();
        let line = source[start..].lines().next().filter(|l| !l.trim().is_empty())?;
        Some((source, start..start + line.len()))
    }
}
