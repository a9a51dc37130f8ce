//! Disciplines as text.

use std::fmt::{self, Display, Formatter, Write};

use super::{Discipline, Rule, Specification, Step};

/// A name as it stands in a specification: in double quotes where it could not be read otherwise.
struct Name<'a>(&'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = |c: char| !c.is_whitespace() && !";|()=#\"".contains(c);
        if !self.0.is_empty() && self.0.chars().all(plain) {
            return f.write_str(self.0);
        }
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

fn separated<T: Display>(f: &mut Formatter<'_>, items: &[T], by: &str) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(by)?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

impl<N: AsRef<str>> Display for Step<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Step::ThreadLocal => f.write_str("thread-local"),
            Step::ReadShared => f.write_str("read-shared"),
            Step::GuardedBy(lock) => write!(f, "guarded-by {}", Name(lock.as_ref())),
            Step::Fork => f.write_str("fork"),
            Step::Join => f.write_str("join"),
            Step::Via(kind, device) => write!(f, "via {} {}", kind.word(), Name(device.as_ref())),
            Step::Repeat(steps) => {
                f.write_str("(")?;
                separated(f, steps, "; ")?;
                f.write_str(")+")
            }
        }
    }
}

impl<N: AsRef<str>> Display for Discipline<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, sequence) in self.alternatives.iter().enumerate() {
            if i > 0 {
                f.write_str(" | ")?;
            }
            separated(f, sequence, "; ")?;
        }
        Ok(())
    }
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", Name(&self.variable), self.discipline)
    }
}

/// One line for each variable.
impl Display for Specification {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}
