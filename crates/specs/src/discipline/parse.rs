//! Reads specifications.
//!
//! ```text
//! file       = { name "=" discipline }
//! discipline = sequence { "|" sequence }
//! sequence   = step { ";" step }
//! step       = "thread-local" | "read-shared" | "guarded-by" name | "fork" | "join"
//!            | "via" kind name | "(" sequence ")+"
//! kind       = "lock" | "atomic" | "barrier" | "semaphore"
//! ```
//!
//! One variable a line; a line that begins with a blank continues the one before. `#` begins a comment.
//! `vol x`, Grits' word, is read as `via atomic x`. A name has no blanks and none of `;|()=#"`, or stands in
//! double quotes, where `\"`, `\\` and `\n` are what they are in C.
//!
//! *Guarantee*: memory and time follow the length of the text; no text makes the reader panic.

use std::collections::HashMap;
use std::fmt;

use super::{DeviceKind, Discipline, Rule, Sequence, Specification, Step};

/// Repetitions inside repetitions.
const DEPTH: usize = 64;

const STEPS: &str =
    "`thread-local`, `read-shared`, `guarded-by`, `fork`, `join`, `via`, `vol` or `(`";

/// What is wrong with a specification, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// Something stands where something else may stand.
    Unexpected {
        /// What stands there, to be read after "found".
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// The variable has a discipline already.
    Twice {
        /// The variable.
        variable: String,
        /// The line of the first one.
        first: usize,
    },
    /// Too many repetitions inside each other.
    Deep,
}

/// `LINE:COLUMN: found …; … may stand here`, to be read after the name of the file and a colon.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        match &self.problem {
            Problem::Unexpected { found, expected } => {
                write!(f, "found {found}; {expected} may stand here")
            }
            Problem::Twice { variable, first } => {
                write!(f, "`{variable}` has a discipline already, on line {first}")
            }
            Problem::Deep => write!(f, "more than {DEPTH} repetitions inside each other"),
        }
    }
}

impl std::error::Error for Error {}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    Quoted(String),
    Semicolon,
    Bar,
    Equals,
    Open,
    /// `)+`.
    Close,
    /// Something that is no token, to be read after "found".
    Wrong(String),
    /// The end of a line that is not continued.
    End,
}

impl Token {
    fn found(&self) -> String {
        match self {
            Token::Word(text) => format!("`{text}`"),
            Token::Quoted(text) => format!("the name \"{text}\""),
            Token::Semicolon => "`;`".to_owned(),
            Token::Bar => "`|`".to_owned(),
            Token::Equals => "`=`".to_owned(),
            Token::Open => "`(`".to_owned(),
            Token::Close => "`)+`".to_owned(),
            Token::Wrong(what) => what.clone(),
            Token::End => "the end of the line".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct At {
    line: usize,
    column: usize,
}

impl At {
    fn error(self, problem: Problem) -> Error {
        Error { line: self.line, column: self.column, problem }
    }
}

/// Reads a specification.
pub fn parse(text: &str) -> Result<Specification, Error> {
    let mut parser = Parser { tokens: tokens(text), next: 0 };
    let mut rules = Vec::new();
    let mut lines: HashMap<String, usize> = HashMap::new();
    while parser.next < parser.tokens.len() {
        let at = parser.at();
        let variable = parser.name("the name of a variable")?;
        if let Some(&first) = lines.get(&variable) {
            return Err(at.error(Problem::Twice { variable, first }));
        }
        lines.insert(variable.clone(), at.line);
        parser.expect(&Token::Equals, "`=`")?;
        let discipline = parser.discipline()?;
        parser.expect(&Token::End, "`;`, `|` or the end of the line")?;
        rules.push(Rule { variable, discipline });
    }
    Ok(Specification { rules })
}

struct Parser {
    // invariant: ends with `Token::End`, or is empty.
    tokens: Vec<(Token, At)>,
    next: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(token, _)| token)
    }

    fn at(&self) -> At {
        let last = self.tokens.last().map_or(At { line: 1, column: 1 }, |(_, at)| *at);
        self.tokens.get(self.next).map_or(last, |(_, at)| *at)
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T, Error> {
        let found = self.peek().found();
        Err(self.at().error(Problem::Unexpected { found, expected }))
    }

    fn expect(&mut self, token: &Token, expected: &'static str) -> Result<(), Error> {
        if self.peek() != token {
            return self.unexpected(expected);
        }
        self.next += 1;
        Ok(())
    }

    fn accept(&mut self, token: &Token) -> bool {
        let there = self.peek() == token;
        self.next += usize::from(there);
        there
    }

    fn name(&mut self, expected: &'static str) -> Result<String, Error> {
        let (Token::Word(name) | Token::Quoted(name)) = self.peek() else {
            return self.unexpected(expected);
        };
        let name = name.clone();
        self.next += 1;
        Ok(name)
    }

    fn discipline(&mut self) -> Result<Discipline, Error> {
        let mut alternatives = vec![self.sequence(0)?];
        while self.accept(&Token::Bar) {
            alternatives.push(self.sequence(0)?);
        }
        Ok(Discipline { alternatives })
    }

    fn sequence(&mut self, depth: usize) -> Result<Sequence, Error> {
        let mut steps = vec![self.step(depth)?];
        while self.accept(&Token::Semicolon) {
            steps.push(self.step(depth)?);
        }
        Ok(steps)
    }

    fn step(&mut self, depth: usize) -> Result<Step, Error> {
        if *self.peek() == Token::Open {
            if depth == DEPTH {
                return Err(self.at().error(Problem::Deep));
            }
            self.next += 1;
            let steps = self.sequence(depth + 1)?;
            self.expect(&Token::Close, "`;` or `)+`")?;
            return Ok(Step::Repeat(steps));
        }
        let Token::Word(word) = self.peek() else { return self.unexpected(STEPS) };
        let simple = match &**word {
            "thread-local" => Some(Step::ThreadLocal),
            "read-shared" => Some(Step::ReadShared),
            "fork" => Some(Step::Fork),
            "join" => Some(Step::Join),
            "guarded-by" | "via" | "vol" => None,
            _ => return self.unexpected(STEPS),
        };
        let word = word.clone();
        self.next += 1;
        if let Some(step) = simple {
            return Ok(step);
        }
        Ok(match &*word {
            "guarded-by" => Step::GuardedBy(self.name("the name of a lock")?),
            "via" => {
                let kind = self.kind()?;
                Step::Via(kind, self.name("a name")?)
            }
            _ => Step::Via(DeviceKind::Atomic, self.name("the name of an atomic variable")?),
        })
    }

    fn kind(&mut self) -> Result<DeviceKind, Error> {
        let known = match self.peek() {
            Token::Word(word) => DeviceKind::WORDS.iter().find(|(known, _)| word == known),
            _ => None,
        };
        let Some((_, kind)) = known else {
            return self.unexpected("`lock`, `atomic`, `barrier` or `semaphore`");
        };
        self.next += 1;
        Ok(*kind)
    }
}

fn tokens(text: &str) -> Vec<(Token, At)> {
    let mut tokens: Vec<(Token, At)> = Vec::new();
    // Where a line that is not continued ended.
    let mut end = None;
    for (line, text) in text.lines().enumerate() {
        let line = line + 1;
        let continues = text.starts_with(char::is_whitespace);
        let mut found = Vec::new();
        let length = of_line(text, line, &mut found);
        if found.is_empty() {
            continue;
        }
        if let Some(end) = end
            && !continues
        {
            tokens.push((Token::End, end));
        }
        tokens.append(&mut found);
        end = Some(At { line, column: length + 1 });
    }
    tokens.extend(end.map(|end| (Token::End, end)));
    tokens
}

/// The tokens of a line, and its length without blanks and comment at its end.
fn of_line(text: &str, line: usize, tokens: &mut Vec<(Token, At)>) -> usize {
    let mut chars = text.chars().enumerate().peekable();
    let mut length = 0;
    while let Some((i, c)) = chars.next() {
        if c == '#' {
            break;
        }
        if c.is_whitespace() {
            continue;
        }
        let mut used = 1;
        let token = match c {
            ';' => Token::Semicolon,
            '|' => Token::Bar,
            '=' => Token::Equals,
            '(' => Token::Open,
            ')' if chars.next_if(|(_, c)| *c == '+').is_some() => {
                used = 2;
                Token::Close
            }
            ')' => Token::Wrong("`)` without `+`".to_owned()),
            '"' => {
                let (token, len) = quoted(&mut chars);
                used += len;
                token
            }
            c => {
                let mut word = String::from(c);
                let inside = |c: char| !c.is_whitespace() && !";|()=#\"".contains(c);
                while let Some((_, c)) = chars.next_if(|(_, c)| inside(*c)) {
                    word.push(c);
                    used += 1;
                }
                Token::Word(word)
            }
        };
        length = i + used;
        tokens.push((token, At { line, column: i + 1 }));
    }
    length
}

/// The rest of a name in double quotes, and how many characters that is.
fn quoted(chars: &mut impl Iterator<Item = (usize, char)>) -> (Token, usize) {
    let mut name = String::new();
    let mut used = 0;
    let mut escaped = false;
    for (_, c) in chars {
        used += 1;
        match c {
            'n' if escaped => name.push('\n'),
            c if escaped => name.push(c),
            '"' => return (Token::Quoted(name), used),
            '\\' => {
                escaped = true;
                continue;
            }
            c => name.push(c),
        }
        escaped = false;
    }
    (Token::Wrong("a name without closing quote".to_owned()), used)
}
