//! The statements of functions, from clang's `-ast-dump=json`.
//!
//! Where a star could be put: `selvedge infer ndseq` looks for places among the statements of the source, of which
//! bitcode knows only lines. A statement is a direct part of a block, or the body of a test or of a loop; a block that
//! is such a body is none itself.
//!
//! Clang omits the file and the line of a position if they are those of the position printed before, also of one in an
//! expression. So the whole text is read, in one pass. The reader is our own and has no recursion, because expressions
//! nest as deep as they like.

use std::borrow::Cow;
use std::collections::HashMap;

/// A line and a column, from 1.
pub type Position = (u32, u32);

/// No statement.
pub const NONE: u32 = u32::MAX;

/// What a statement does to the way of control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum Kind {
    #[default]
    Plain,
    Loop,
    Switch,
    Break,
    Continue,
    Return,
    Goto,
}

impl Kind {
    /// All kinds, by number.
    pub const ALL: [Kind; 7] = [
        Kind::Plain,
        Kind::Loop,
        Kind::Switch,
        Kind::Break,
        Kind::Continue,
        Kind::Return,
        Kind::Goto,
    ];

    fn of(node: &str) -> Kind {
        match node {
            "ForStmt" | "WhileStmt" | "DoStmt" | "CXXForRangeStmt" => Kind::Loop,
            "SwitchStmt" => Kind::Switch,
            "BreakStmt" => Kind::Break,
            "ContinueStmt" => Kind::Continue,
            "ReturnStmt" => Kind::Return,
            "GotoStmt" | "IndirectGotoStmt" => Kind::Goto,
            _ => Kind::Plain,
        }
    }
}

/// A statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statement {
    /// What it does to the way of control.
    pub kind: Kind,
    /// Where its first token begins.
    pub from: Position,
    /// Where its last token ends.
    pub to: Position,
    /// The statement that it is a part of, before it in the list, or [`NONE`].
    pub parent: u32,
}

impl Statement {
    /// Whether a position is in it.
    pub fn has(&self, at: Position) -> bool {
        self.from <= at && at <= self.to
    }
}

/// The statements of functions, by the function's name in the object file, each after the one that it is a part of.
pub type Statements = HashMap<String, Vec<Statement>>;

/// Reads the output of `clang -fsyntax-only -Xclang -ast-dump=json`.
pub fn statements(json: &str) -> Statements {
    let mut reading = Reading::default();
    let mut tokens = Tokens { text: json, at: 0 };
    while let Some(token) = tokens.next() {
        reading.token(token);
    }
    reading.found
}

enum Token<'a> {
    Open,
    Close,
    Key(&'a str),
    Text(Cow<'a, str>),
    Number(u32),
}

struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at;
            self.at += 1;
            match bytes.get(start)? {
                b'{' | b'[' => return Some(Token::Open),
                b'}' | b']' => return Some(Token::Close),
                b'"' => return Some(self.string()),
                b'0'..=b'9' => {
                    while bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
                        self.at += 1;
                    }
                    return Some(Token::Number(self.text[start..self.at].parse().unwrap_or(0)));
                }
                b't' => return Some(Token::Number(1)),
                _ => {}
            }
        }
    }

    /// The opening quote has been read.
    fn string(&mut self) -> Token<'a> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut escaped = false;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        self.at += 1;
        if bytes.get(self.at) == Some(&b':') {
            return Token::Key(text);
        }
        Token::Text(if escaped { text.replace("\\\\", "\\").into() } else { text.into() })
    }
}

/// What the object or list is that is read.
enum Frame {
    Node(Box<Node>),
    /// A list of nodes.
    Parts,
    Range,
    /// A position, or the two of an expanded macro.
    Place(Place),
    Other,
}

#[derive(Default)]
struct Place {
    end: bool,
    /// It is where a macro is spelled, or where anything is that no statement begins or ends with.
    unused: bool,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    length: u32,
}

#[derive(Default)]
struct Node {
    kind: String,
    name: String,
    mangled: Option<String>,
    has_else: bool,
    from: Position,
    to: Position,
    parts: Vec<Node>,
}

impl Node {
    fn is_function(&self) -> bool {
        self.kind == "FunctionDecl" || self.kind.starts_with("CXX") && self.kind.ends_with("Decl")
    }

    fn is_statement(&self) -> bool {
        self.kind.ends_with("Stmt")
    }

    /// The parts that are statements by themselves.
    fn bodies(&self) -> &[Node] {
        let last = |n: usize| &self.parts[self.parts.len().saturating_sub(n)..];
        match self.kind.as_str() {
            "CompoundStmt" => &self.parts,
            "IfStmt" => last(if self.has_else { 2 } else { 1 }),
            "DoStmt" => &self.parts[..self.parts.len().min(1)],
            "ForStmt" | "WhileStmt" | "CXXForRangeStmt" | "SwitchStmt" | "CaseStmt"
            | "DefaultStmt" | "LabelStmt" => last(1),
            _ => &[],
        }
    }
}

#[derive(Default)]
struct Reading {
    found: Statements,
    frames: Vec<Frame>,
    key: String,
    /// The file and the line of the position that was printed last.
    file: String,
    line: u32,
}

impl Reading {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Key(key) => key.clone_into(&mut self.key),
            Token::Open => self.open(),
            Token::Close => self.close(),
            Token::Text(text) => match (self.frames.last_mut(), self.key.as_str()) {
                (Some(Frame::Node(node)), "kind") => node.kind = text.into_owned(),
                (Some(Frame::Node(node)), "name") => node.name = text.into_owned(),
                (Some(Frame::Node(node)), "mangledName") => node.mangled = Some(text.into_owned()),
                (Some(Frame::Place(place)), "file") => place.file = Some(text.into_owned()),
                _ => {}
            },
            Token::Number(number) => match (self.frames.last_mut(), self.key.as_str()) {
                (Some(Frame::Node(node)), "hasElse") => node.has_else = true,
                (Some(Frame::Place(place)), "line") => place.line = Some(number),
                (Some(Frame::Place(place)), "col") => place.column = Some(number),
                (Some(Frame::Place(place)), "tokLen") => place.length = number,
                _ => {}
            },
        }
    }

    fn open(&mut self) {
        let place = |end, unused| Frame::Place(Place { end, unused, ..Place::default() });
        let frame = match (self.frames.last(), self.key.as_str()) {
            (None | Some(Frame::Parts), _) => Frame::Node(Box::default()),
            (Some(Frame::Node(_)), "inner") => Frame::Parts,
            (Some(Frame::Node(_)), "range") => Frame::Range,
            (Some(Frame::Node(_)), "loc") => place(false, true),
            (Some(Frame::Range), "begin") => place(false, false),
            (Some(Frame::Range), "end") => place(true, false),
            (Some(Frame::Place(outer)), "spellingLoc") => place(outer.end, true),
            (Some(Frame::Place(outer)), "expansionLoc") => place(outer.end, outer.unused),
            _ => Frame::Other,
        };
        self.frames.push(frame);
    }

    fn close(&mut self) {
        match self.frames.pop() {
            Some(Frame::Place(place)) => self.place(place),
            Some(Frame::Node(node)) => self.node(*node),
            Some(Frame::Parts | Frame::Range | Frame::Other) | None => {}
        }
    }

    fn place(&mut self, place: Place) {
        let Some(column) = place.column else { return };
        if let Some(file) = place.file {
            self.file = file;
        }
        self.line = place.line.unwrap_or(self.line);
        if place.unused {
            return;
        }
        let line = self.line;
        let node = self.frames.iter_mut().rev().find_map(|f| match f {
            Frame::Node(node) => Some(node),
            _ => None,
        });
        if let Some(node) = node {
            if place.end {
                node.to = (line, (column + place.length).saturating_sub(1));
            } else {
                node.from = (line, column);
            }
        }
    }

    fn node(&mut self, node: Node) {
        if node.is_function() && node.parts.last().is_some_and(|p| p.kind == "CompoundStmt") {
            let list = flatten(&node.parts[node.parts.len() - 1]);
            self.found.insert(node.mangled.unwrap_or(node.name), list);
            return;
        }
        // Expressions have no statements of interest, but the body of a function or statement stands behind them.
        let parent = self.frames.iter_mut().rev().find_map(|f| match f {
            Frame::Node(node) => Some(node),
            _ => None,
        });
        if let Some(parent) = parent.filter(|p| p.is_function() || p.is_statement()) {
            parent.parts.push(node);
        }
    }
}

/// The statements of a body, each after the one that it is a part of.
fn flatten(body: &Node) -> Vec<Statement> {
    let mut list: Vec<Statement> = Vec::new();
    let mut open: Vec<(&Node, u32)> = body.parts.iter().rev().map(|p| (p, NONE)).collect();
    while let Some((node, parent)) = open.pop() {
        let mut inside = parent;
        match node.kind.as_str() {
            "CaseStmt" | "DefaultStmt" | "LabelStmt" => {}
            // A missing part has no kind.
            "NullStmt" | "" => continue,
            _ => {
                inside = list.len() as u32;
                let kind = Kind::of(&node.kind);
                list.push(Statement { kind, from: node.from, to: node.to, parent });
            }
        }
        for part in node.bodies().iter().rev() {
            if part.kind == "CompoundStmt" && node.kind != "CompoundStmt" {
                open.extend(part.parts.iter().rev().map(|p| (p, inside)));
            } else {
                open.push((part, inside));
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of statements, each with its depth.
    fn shown(list: &[Statement]) -> Vec<(u32, u32, usize, Kind)> {
        let depth = |mut at: u32| {
            let mut depth = 0;
            while at != NONE {
                at = list[at as usize].parent;
                depth += 1;
            }
            depth
        };
        let show = |s: &Statement| (s.from.0, s.to.0, depth(s.parent), s.kind);
        list.iter().map(show).collect()
    }

    #[test]
    fn positions_that_clang_omits_are_those_before() {
        let json = r#"{"kind":"TranslationUnitDecl","loc":{},"inner":[{"kind":"FunctionDecl",
            "loc":{"offset":4,"file":"a.c","line":1,"col":5,"tokLen":1},
            "range":{"begin":{"offset":0,"col":1,"tokLen":3},"end":{"offset":90,"line":9,"col":1,"tokLen":1}},
            "name":"f","mangledName":"f","inner":[{"kind":"CompoundStmt",
            "range":{"begin":{"offset":9,"line":1,"col":9,"tokLen":1},"end":{"offset":90,"line":9,"col":1,"tokLen":1}},
            "inner":[{"kind":"ForStmt","range":{"begin":{"offset":20,"line":2,"col":3,"tokLen":3},
            "end":{"offset":80,"line":5,"col":3,"tokLen":1}},"inner":[{},{},{},{},{"kind":"CompoundStmt",
            "range":{"begin":{"offset":22,"line":2,"col":9,"tokLen":1},"end":{"offset":80,"line":5,"col":3,"tokLen":1}},
            "inner":[{"kind":"BreakStmt","range":{"begin":{"spellingLoc":{"file":"m.h","line":70,"col":2,"tokLen":5},
            "expansionLoc":{"file":"a.c","line":3,"col":5,"tokLen":4}},"end":{"spellingLoc":{"file":"m.h","line":70,"col":2,"tokLen":5},
            "expansionLoc":{"file":"a.c","line":3,"col":5,"tokLen":4}}}}]}]},
            {"kind":"ReturnStmt","range":{"begin":{"offset":85,"line":8,"col":3,"tokLen":6},"end":{"offset":92,"col":10,"tokLen":1}}}]}]}]}"#;
        let found = statements(json);
        assert_eq!(
            shown(&found["f"]),
            [(2, 5, 0, Kind::Loop), (3, 3, 1, Kind::Break), (8, 8, 0, Kind::Return)]
        );
        assert_eq!((found["f"][2].from, found["f"][2].to), ((8, 3), (8, 10)));
    }

    #[test]
    fn expressions_may_nest_deeply() {
        let deep = 200_000;
        let json = format!(
            r#"{{"kind":"TranslationUnitDecl","inner":[{}{}]}}"#,
            r#"{"kind":"ParenExpr","inner":["#.repeat(deep),
            "]}".repeat(deep)
        );
        assert!(statements(&json).is_empty());
    }
}
