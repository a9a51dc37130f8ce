//! Accesses that lock-based race analyses remember, and how they report two of them.

use selvedge_model::{
    Finding, Findings, Kind, Place, Range, Role, SiteId, Status, Subject, Target, ThreadId,
};

use crate::common::held::{HeldLocks, LockSet};

/// A plain access of the past.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Past {
    pub(crate) thread: ThreadId,
    pub(crate) site: SiteId,
    pub(crate) held: LockSet,
    pub(crate) write: bool,
}

impl Past {
    fn place(self, held: &HeldLocks) -> Place {
        Place {
            thread: self.thread,
            site: self.site,
            role: if self.write { Role::Write } else { Role::Read },
            held: held.locks(self.held).to_vec(),
        }
    }
}

/// Reports that two accesses to `memory` may race, the earlier one first.
pub(crate) fn report(
    analysis: &'static str,
    memory: Range,
    [earlier, later]: [Past; 2],
    held: &HeldLocks,
    out: &mut Findings,
) {
    if out.again(analysis, Kind::DataRace, earlier.site, later.site) {
        return;
    }
    out.report(Finding {
        kind: Kind::DataRace,
        status: Status::Predicted,
        verdict: None,
        analyses: vec![analysis],
        subject: Subject::Memory(memory),
        places: vec![earlier.place(held), later.place(held)],
        target: Some(Target::Race { first: earlier.site, second: later.site }),
        occurrences: 1,
    });
}
