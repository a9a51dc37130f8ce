//! Native programs: how they are built, and what is known of their code.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`elf`] | how an executable file was built |
//! | [`form`] | how the runtime gets into it, and what can be observed |
//! | [`toolbox`] | the embedded files that building and running programs needs |
//! | [`compiler`] | `selvedge cc` and `selvedge c++` |
//! | [`symbolize`] | from addresses to places in the source and names of variables |
//! | [`heap`] | the heap blocks in use |
//! | [`names`] | what memory is called in the source |
//! | [`claims`] | regions by function name and by locks |
//! | [`suppress`] | suppression files |
//! | [`pattern`] | patterns for names |

pub(crate) mod claims;
pub(crate) mod compiler;
pub(crate) mod elf;
pub(crate) mod form;
pub(crate) mod heap;
pub(crate) mod names;
pub(crate) mod pattern;
pub(crate) mod suppress;
pub(crate) mod symbolize;
pub(crate) mod toolbox;
