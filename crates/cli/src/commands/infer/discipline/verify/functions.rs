//! The declarations of a function, from clang's syntax tree.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::program::compiler::CompileCommand;

/// A function with its declarations in one source and the headers that it includes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Declared {
    pub(super) definition: Place,
    /// The byte of the brace of its body.
    pub(super) body: usize,
    /// Names and types.
    pub(super) parameters: Vec<(String, String)>,
    /// The names in other declarations, which may differ or lack: clang uses those of the first one.
    pub(super) aliases: Vec<Vec<String>>,
    /// Other declarations, in the order of the text.
    pub(super) others: Vec<Place>,
    pub(super) method: bool,
}

impl Declared {
    /// An expression that begins with a parameter, with the name that the definition has for it.
    pub(super) fn with_parameter(&self, expression: &str) -> Option<String> {
        let end = expression.find(|c: char| !c.is_alphanumeric() && c != '_');
        let (base, rest) = expression.split_at(end.unwrap_or(expression.len()));
        let is_base = |name: &String| name == base;
        let number = if base.is_empty() {
            // A parameter without a name, which must be the only pointer.
            let is_pointer = |i: &usize| self.parameters[*i].1.ends_with('*');
            let pointers: Vec<usize> = (0..self.parameters.len()).filter(is_pointer).collect();
            match pointers.as_slice() {
                [only] => *only,
                _ => return None,
            }
        } else {
            let own = self.parameters.iter().position(|(name, _)| is_base(name));
            let others = || self.aliases.iter().find_map(|names| names.iter().position(is_base));
            own.or_else(others)?
        };
        Some(format!("{}{rest}", self.parameters.get(number)?.0))
    }
}

/// A declaration: where it begins, where the name is, and where its last word ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) file: PathBuf,
    pub(super) begin: usize,
    pub(super) name: usize,
    pub(super) end: usize,
}

/// The function whose body begins at a byte of a file, in the syntax trees of all declarations of its name.
pub(super) fn declared(
    trees: &[u8],
    compiled: &CompileCommand,
    file: &Path,
    body: usize,
) -> Option<Declared> {
    let documents = serde_json::Deserializer::from_slice(trees).into_iter::<Node>();
    let nodes: Vec<Node> = documents.map_while(Result::ok).collect();
    let functions: Vec<&Node> = nodes
        .iter()
        .filter(|n| matches!(n.kind.as_str(), "FunctionDecl" | "CXXMethodDecl"))
        .collect();
    let is_definition = |node: &&&Node| {
        let place = node.place(compiled);
        node.body() == Some(body) && place.is_some_and(|p| p.file == file)
    };
    let node = functions.iter().find(is_definition)?;
    let same = |other: &&&Node| other.mangled == node.mangled && other.id != node.id;
    let others: Vec<&&Node> =
        functions.iter().filter(same).filter(|n| n.body().is_none()).collect();
    let names =
        |node: &&&Node| -> Vec<String> { node.parameters().map(|p| p.name.clone()).collect() };
    Some(Declared {
        definition: node.place(compiled)?,
        body,
        parameters: node.parameters().map(|p| (p.name.clone(), p.of.qualified.clone())).collect(),
        aliases: others.iter().map(names).collect(),
        others: others.iter().filter_map(|n| n.place(compiled)).collect(),
        method: node.kind == "CXXMethodDecl",
    })
}

/// The parts of a node that matter here. Bodies of functions are left out.
#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    id: String,
    #[serde(default)]
    kind: String,
    #[serde(default, rename = "mangledName")]
    mangled: String,
    #[serde(default)]
    loc: Location,
    #[serde(default)]
    range: Range,
    #[serde(default)]
    inner: Vec<Inner>,
}

/// A node inside, without those inside it.
#[derive(Deserialize)]
struct Inner {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default, rename = "type")]
    of: Type,
    #[serde(default)]
    range: Range,
}

#[derive(Deserialize, Default)]
struct Type {
    #[serde(default, rename = "qualType")]
    qualified: String,
}

#[derive(Deserialize, Default)]
struct Range {
    #[serde(default)]
    begin: Location,
    #[serde(default)]
    end: Location,
}

/// A place. What a macro makes is written where the macro is used.
#[derive(Deserialize, Default)]
struct Location {
    offset: Option<usize>,
    file: Option<PathBuf>,
    #[serde(default, rename = "tokLen")]
    len: usize,
    #[serde(rename = "spellingLoc")]
    spelled: Option<Box<Location>>,
    #[serde(rename = "expansionLoc")]
    expanded: Option<Box<Location>>,
}

impl Location {
    fn offset(&self) -> Option<usize> {
        self.expanded.as_ref().map_or(self.offset, |e| e.offset())
    }

    /// A file is named only where it changes.
    fn file(&self) -> Option<&PathBuf> {
        let expanded = self.expanded.as_ref().and_then(|e| e.file());
        let spelled = || self.spelled.as_ref().and_then(|s| s.file());
        self.file.as_ref().or(expanded).or_else(spelled)
    }

    fn end(&self) -> Option<usize> {
        match &self.expanded {
            // The end of a use of a macro is not known.
            Some(_) => None,
            None => Some(self.offset? + self.len),
        }
    }
}

impl Node {
    fn parameters(&self) -> impl Iterator<Item = &Inner> {
        self.inner.iter().filter(|n| n.kind == "ParmVarDecl")
    }

    fn body(&self) -> Option<usize> {
        let body = self.inner.iter().find(|n| n.kind == "CompoundStmt")?;
        body.range.begin.offset()
    }

    fn place(&self, compiled: &CompileCommand) -> Option<Place> {
        let file = compiled.directory.join(self.loc.file()?);
        Some(Place {
            file: fs::canonicalize(&file).unwrap_or(file),
            begin: self.range.begin.offset()?,
            name: self.loc.offset()?,
            end: self.range.end.end()?,
        })
    }
}
