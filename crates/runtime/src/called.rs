//! What the threads and the objects of a native execution are called, whether it is observed or controlled.

use selvedge_model::{Site, SiteId, Symbols, ThreadId};

use crate::decode::Decoder;
use crate::modules::{Modules, Resolve};

/// Names the threads up to this one: the first is `main`, and the others have numbers.
pub(crate) fn name_threads(up_to: ThreadId, symbols: &mut Symbols) {
    for number in symbols.threads.entries().len()..=up_to.index() {
        let name = if number == 0 { "main".to_owned() } else { format!("T{number}") };
        symbols.threads.push(name.into());
    }
}

/// Names the objects that a decoder has met since the last call: as the program does, or else by a number. A lock without a
/// name in the program is also described by the place that used it first.
pub(crate) fn name_objects(
    decoder: &Decoder,
    symbols: &mut Symbols,
    resolver: &mut dyn Resolve,
    modules: &Modules,
) {
    let mut in_program = |addr: u64| resolver.object(addr, modules);
    let known = symbols.locks.entries().len();
    for (number, &(addr, site)) in decoder.locks.all().iter().enumerate().skip(known) {
        let unnamed = || format!("lock {number}{}", place(site, symbols));
        let name = in_program(addr).unwrap_or_else(unnamed);
        symbols.locks.push(name.into());
    }
    // One without a name may be the inside of a lock, and is left without.
    let known = symbols.conds.entries().len();
    for &(addr, _) in &decoder.conds.all()[known..] {
        symbols.conds.push(in_program(addr).unwrap_or_default().into());
    }
    let kinds = [
        (&decoder.semaphores, &mut symbols.semaphores, "semaphore"),
        (&decoder.barriers, &mut symbols.barriers, "barrier"),
    ];
    for (ids, names, kind) in kinds {
        let known = names.entries().len();
        for (number, &(addr, _)) in ids.all().iter().enumerate().skip(known) {
            let name = in_program(addr).unwrap_or_else(|| format!("{kind} {number}"));
            names.push(name.into());
        }
    }
}

fn place(site: SiteId, symbols: &Symbols) -> String {
    match symbols.site(site) {
        Site::Source(frame, _) => {
            let file = frame.file.rsplit('/').next().unwrap_or_default();
            format!(" ({file}:{})", frame.line)
        }
        Site::Label(_) => String::new(),
    }
}
