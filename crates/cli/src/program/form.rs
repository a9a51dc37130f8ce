//! How the runtime gets into a program, and what Selvedge can then observe of it.

use selvedge_runtime::Form;

use super::elf::{Built, Program};
use crate::exit::{Failure, HOW_TO_BUILD};
use crate::messages::warning_label;

/// How the runtime gets into the program, or why it cannot.
pub(crate) fn form(program: &Program) -> Result<Form, Failure> {
    if program.privileged {
        let why = "it runs as another user or group (setuid, setgid), and so the loader and Selvedge's runtime must not follow the environment; run a copy without that bit, or as that user";
        return Err(Failure::Unobservable { path: program.path.clone(), why: why.to_owned() });
    }
    let advice = match program.built {
        Built::Ours => return Ok(Form::Linked),
        Built::SharedTsan => return Ok(Form::Replaced),
        Built::Plain => return Ok(Form::Preloaded),
        Built::StaticTsan => {
            "ThreadSanitizer's runtime is statically linked into it and cannot be replaced"
                .to_owned()
        }
        Built::OtherSanitizer(name) => {
            format!(
                "it was built with the {name} sanitizer, which cannot run in one process with Selvedge's runtime"
            )
        }
        Built::Static => "it is statically linked and not instrumented".to_owned(),
    };
    Err(Failure::Unobservable { path: program.path.clone(), why: advice })
}

/// The name of the form in the store.
pub(crate) fn mode(form: Form) -> &'static str {
    match form {
        Form::Linked => "linked",
        Form::Replaced => "libtsan replaced",
        Form::Preloaded => "preloaded",
    }
}

/// What Selvedge can observe of the program, in words.
pub(crate) fn sight(program: &Program, form: Form) -> String {
    let what = match form {
        Form::Linked | Form::Replaced => "accesses of instrumented code, and synchronization",
        Form::Preloaded => "synchronization only, because the program is not instrumented",
    };
    let lines = if program.debug_info { "" } else { "; without debug information" };
    format!("{what}{lines}")
}

/// A warning that only synchronization was observed.
pub(crate) fn only_synchronization(program: &Program) -> String {
    format!(
        "{}: {} is {}: Selvedge saw only its synchronization and cannot find data races. To build it with instrumentation:\n{HOW_TO_BUILD}",
        warning_label(),
        program.path.display(),
        program.built
    )
}
