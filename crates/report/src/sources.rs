//! Lines of source, from files that the caller reads.

use std::collections::HashMap;
use std::ops::Range;

use selvedge_model::Site;

use crate::escape;

type Read<'a> = Box<dyn FnMut(&str) -> Option<String> + 'a>;

/// The longest line of source that is shown, in characters; generated files may have longer ones.
const LONGEST: usize = 1000;

/// Source files, each read once.
pub struct Sources<'a> {
    read: Read<'a>,
    files: HashMap<Box<str>, Option<File>>,
}

/// A file whose lines are safe to show.
struct File {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl File {
    fn new(read: &str) -> File {
        let mut file = File { text: String::with_capacity(read.len()), starts: Vec::new() };
        for line in read.lines() {
            file.starts.push(file.text.len());
            match line.char_indices().nth(LONGEST) {
                None => file.text.push_str(&escape::visible(line)),
                Some((end, _)) => {
                    file.text.push_str(&escape::visible(&line[..end]));
                    file.text.push('…');
                }
            }
            file.text.push('\n');
        }
        file
    }

    /// The bytes of a line, counted from 1.
    fn line(&self, number: u32) -> Option<Range<usize>> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let next = self.starts.get(index + 1).copied().unwrap_or(self.text.len());
        Some(start..next - 1)
    }
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
        self.find(site)?;
        let file = self.file(site)?;
        let shown = number.saturating_sub(lines).max(1)..=number.saturating_add(lines);
        let text = |n| Some((n, file.text[file.line(n)?].trim_end().to_owned()));
        Some(shown.map_while(text).collect())
    }

    /// The file of a site and the bytes of its line, unless that is blank.
    fn find(&mut self, site: &Site) -> Option<(&str, Range<usize>)> {
        let file = self.file(site)?;
        let line = file.line(site.frame()?.line)?;
        let blank = file.text[line.clone()].trim().is_empty();
        (!blank).then_some((file.text.as_str(), line))
    }

    fn file(&mut self, site: &Site) -> Option<&File> {
        let name = &site.frame()?.file;
        let read = &mut self.read;
        let file = self.files.entry(name.clone()).or_insert_with(|| Some(File::new(&read(name)?)));
        file.as_ref()
    }
}
