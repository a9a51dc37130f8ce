//! The program as one block, which ensures what it writes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use selvedge_engine::Blocks;
use selvedge_model::Site;
use selvedge_specs::{BlockExecution, Call, Key, Predicate, ThreadName, Value, Word};

/// The name of the block that is the whole program.
pub const PROGRAM: &str = "program";

/// What of the program's output must be the same in every execution.
#[derive(Clone, Debug)]
pub enum Written {
    /// Standard output.
    Stdout,
    /// A file.
    File(WrittenFile),
}

/// A file that the program writes.
#[derive(Clone, Debug)]
pub struct WrittenFile {
    /// As the user names it.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its content before the first execution, if it existed: every execution begins with it.
    pub before: Option<Arc<[u8]>>,
}

impl WrittenFile {
    /// A file as it is now.
    pub fn new(name: String, path: PathBuf) -> io::Result<WrittenFile> {
        let before = match std::fs::read(&path) {
            Ok(content) => Some(content.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(WrittenFile { name, path, before })
    }

    /// Makes the file what it was before the first execution.
    pub(super) fn restore(&self) -> io::Result<()> {
        let now = std::fs::read(&self.path).ok();
        match &self.before {
            before if before.as_deref() == now.as_deref() => Ok(()),
            Some(content) => std::fs::write(&self.path, content),
            None => std::fs::remove_file(&self.path),
        }
    }
}

impl Written {
    fn name(&self) -> String {
        match self {
            Written::Stdout => "stdout".to_owned(),
            Written::File(file) => file.name.clone(),
        }
    }

    fn value(&self, output: &[u8]) -> Value {
        let content = match self {
            Written::Stdout => Some(output.to_vec()),
            Written::File(file) => std::fs::read(&file.path).ok(),
        };
        match content.map(String::from_utf8) {
            Some(Ok(text)) => Value::Text(text.into()),
            Some(Err(bytes)) => Value::Bytes(bytes.into_bytes().into()),
            None => Value::None,
        }
    }
}

/// Adds the block that is the whole program, which has ended. It assumes its arguments.
pub(super) fn ensure(
    written: &[Written],
    arguments: &[OsString],
    output: &[u8],
    blocks: &mut Blocks,
) {
    if written.is_empty() {
        return;
    }
    let site = Site::Label(PROGRAM.into());
    let call = |word: Word, name: String, value: Value| Call {
        key: Key { word, name: name.clone().into(), thread: ThreadName(0), nth: 0 },
        predicate: Predicate::Exact,
        value: value.into(),
        site: Site::Label(name.into()),
    };
    let texts = arguments.iter().map(|a| Value::from(&*a.to_string_lossy())).collect();
    let assumed = call(Word::Assume, "arguments".to_owned(), Value::List(texts));
    let ensured = written.iter().map(|w| call(Word::Ensure, w.name(), w.value(output)));
    let calls = std::iter::once(assumed).chain(ensured).collect();
    blocks.executions.push(BlockExecution { block: PROGRAM.into(), site, calls });
}
