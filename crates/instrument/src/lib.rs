//! The compile-time half: what a program records about itself beyond what compilers instrument.
//!
//! A module of LLVM bitcode is read into a small [representation](ir), decisions are made there in plain Rust, and
//! calls of our runtime are written back. The LLVM is the compiler's own, loaded when it is needed; nothing of LLVM is
//! linked into `selvedge`.
//!
//! | module | what |
//! | --- | --- |
//! | [`library`] | which libLLVM belongs to a compiler |
//! | [`ffi`] | that library: reads a module, inserts calls, writes it. All unsafe code of this crate |
//! | [`assembly`] | assembly that is understood |
//! | [`accesses`] | decides which of the compiler's hooks for accesses can go, or be one for many |
//! | [`ir`] | a module, as far as decisions need it |
//! | [`dominance`] | which blocks a block dominates |
//! | [`flow`](mod@flow) | decides what is recorded of the flow of data, and what the static table says |
//! | [`statements`] | the statements of functions, around which stars may be put |
//! | [`table`] | the static table: what the blocks of a function do, for the host that rebuilds the flow |
//! | [`hooks`] | the calls to insert |

#![deny(unsafe_code)]

pub mod accesses;
pub mod assembly;
pub mod dominance;
#[allow(unsafe_code)]
pub mod ffi;
pub mod flow;
pub mod here;
pub mod hooks;
pub mod ir;
pub mod library;
pub mod statements;
pub mod table;

use std::path::Path;

pub use library::Library;
use statements::Statements;

/// Why a module could not be instrumented.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    /// No library fits the compiler.
    #[error(
        "{compiler} has no libLLVM that could be loaded (looked for {wanted}); install the package libllvm{version} that belongs to it"
    )]
    NoLibrary { compiler: String, version: u32, wanted: String },
    /// The compiler does not say what it is.
    #[error("{0} does not say its version: {1}")]
    NoVersion(String, String),
    /// Something is missing in the library.
    #[error("{path} has no function {name}; install the libLLVM that belongs to the compiler")]
    NoFunction { path: String, name: &'static str },
    /// LLVM refuses to read the module.
    #[error("{path}: {message}")]
    Bitcode { path: String, message: String },
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File { path: String, error: std::io::Error },
    /// What was written back is not a module.
    #[error("{path}: the instrumented module is not valid: {message}")]
    Invalid { path: String, message: String },
    /// Something in the source cannot be followed.
    #[error("{0}")]
    Refused(flow::Refused),
}

/// Instruments a file of bitcode for data flow, in place. Returns what the static table says. Functions have these
/// statements.
pub fn flow(
    library: &Library,
    path: &Path,
    statements: &Statements,
) -> Result<table::Table, Error> {
    let module = ffi::Module::read(library, path)?;
    let mut decided = flow::decide(&module.ir()).map_err(Error::Refused)?;
    // Tables of nothing would all have the same name.
    if decided.table.functions.is_empty() {
        return Ok(decided.table);
    }
    for function in &mut decided.table.functions {
        function.statements = statements.get(&function.name).cloned().unwrap_or_default();
    }
    module.insert(&decided)?;
    module.write(path)?;
    Ok(decided.table)
}

/// What clang is told to make an object of rewritten bitcode, beside its level of optimisation: what was optimised before the
/// hooks came is not optimised again.
pub const SECOND_HALF: [&str; 5] = ["-Xclang", "-disable-llvm-passes", "-x", "ir", "-c"];

/// Gives hooks, in a file of bitcode, to the accesses that the compiler gives none, and takes out those that a race detector can
/// do without, in place. False if none was taken out, because the module has something that is not understood.
pub fn races(library: &Library, path: &Path, rules: accesses::Rules) -> Result<bool, Error> {
    let (module, is_changed) = changed(library, ffi::Module::read(library, path)?, rules)?;
    if let Some(module) = module {
        module.write(path)?;
    }
    Ok(is_changed)
}

/// Does the same with bitcode in memory, which messages call by this name, and makes an object of it. False if there is no
/// object, because nothing was changed or because the source that the bitcode was made of is not wanted.
pub fn object_with_fewer_hooks(
    library: &Library,
    name: &str,
    bitcode: Vec<u8>,
    is_wanted: impl Fn(&str) -> bool,
    rules: accesses::Rules,
    object: &Path,
) -> Result<bool, Error> {
    let module = ffi::Module::of_bytes(library, name.to_owned(), bitcode)?;
    if !is_wanted(&module.source()) {
        return Ok(false);
    }
    match changed(library, module, rules)?.0 {
        Some(module) => module.emit(object).map(|()| true),
        None => Ok(false),
    }
}

/// The module with other hooks, if it has any, and whether some were taken out.
fn changed<'a>(
    library: &'a Library,
    mut module: ffi::Module<'a>,
    rules: accesses::Rules,
) -> Result<(Option<ffi::Module<'a>>, bool), Error> {
    let name = module.name().to_owned();
    let mut with_wide = None;
    if module.hook_wide() {
        // Both bodies of a function are to have these hooks, so they are read as if the compiler had made them.
        let bitcode = module.bitcode();
        module = ffi::Module::of_bytes(library, name.clone(), bitcode.clone())?;
        with_wide = Some(bitcode);
    }
    let edits = accesses::decide(&module.ir(), rules);
    if edits.is_empty() {
        return Ok((with_wide.map(|_| module), true));
    }
    if module.edit(&edits) {
        return Ok((Some(module), true));
    }
    let with_wide = with_wide.map(|bytes| ffi::Module::of_bytes(library, name, bytes));
    Ok((with_wide.transpose()?, false))
}
