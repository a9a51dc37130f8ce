//! What ends an execution, as findings.

use selvedge_explore::Step;
use selvedge_model::{
    Blocked, Failure, Finding, Kind, Op, Panic, Place, Role, Site, SiteId, Status, ThreadId,
};

use super::panics::Panicked;
use super::{Exec, Go};

/// A finding of the executor itself.
pub(crate) fn finding(kind: Kind, failure: Failure, places: Vec<Place>) -> Finding {
    Finding { status: Status::Confirmed, ..Finding::failure(kind, failure, places) }
}

/// A failure that has no place in the source.
pub(crate) fn without_place(kind: Kind, failure: Failure) -> Finding {
    finding(kind, failure, Vec::new())
}

/// These threads wait for ever: for each other, or after the test body has returned.
pub(crate) fn waiting(blocked: Vec<Blocked>, body_is_over: bool) -> Finding {
    if body_is_over {
        let places = blocked.iter().map(Blocked::place).collect();
        return finding(Kind::Hang, Failure::Left(blocked), places);
    }
    Finding { status: Status::Confirmed, ..Finding::stuck(&blocked, |_| false) }
}

impl Exec {
    /// Ends the execution.
    pub(crate) fn stop(&mut self, why: Finding) -> Go {
        self.failed.get_or_insert(why);
        self.next = None;
        Go::Switch
    }

    /// Whether the execution has failed or was cut off.
    pub(crate) fn is_over(&self) -> bool {
        self.failed.is_some() || self.cut_off
    }

    /// The execution has taken all the steps that it may. That is a failure only if nothing changes any more
    /// although every thread that can run has run; otherwise the execution is merely long.
    pub(crate) fn too_long(&mut self) -> Go {
        let steps = self.limits.steps as u64;
        if self.driver.fairness.is_stuck(steps, &self.enabled) {
            return self.stop(without_place(Kind::Hang, Failure::Steps(steps)));
        }
        self.cut_off = true;
        self.next = None;
        Go::Switch
    }

    /// A thread panicked, and no other thread took the panic by joining it.
    pub(crate) fn panicked(&mut self, thread: ThreadId, panicked: &Panicked) -> Finding {
        let text = panicked.message.clone();
        let place = panicked.at.clone().map(|at| self.failing(thread, at));
        let before = self.joined_panic(thread).map(Box::new);
        let failure = Failure::Message { text, thread: None, ended: None, before };
        finding(Kind::Assertion, failure, place.into_iter().collect())
    }

    /// The panic of the first thread, but `other`, whose panic another one took by joining.
    fn joined_panic(&mut self, other: ThreadId) -> Option<Panic> {
        let taken = self.threads.iter().enumerate().find_map(|(number, thread)| {
            let panicked = thread.panicked.as_ref().filter(|_| thread.handled)?;
            (number != other.index()).then(|| (ThreadId(number as u32), panicked.clone()))
        });
        let (thread, Panicked { message, at }) = taken?;
        let site = at.map(|at| SiteId(self.symbols.sites.intern(at)));
        Some(Panic { thread, site, text: message })
    }

    fn failing(&mut self, thread: ThreadId, at: Site) -> Place {
        let site = SiteId(self.symbols.sites.intern(at));
        Place { thread, site, role: Role::Fail, held: Vec::new() }
    }

    /// A destructor has to wait at `site` while its thread unwinds, and no other thread can run meanwhile.
    pub(crate) fn blocked_in_unwinding(&mut self, site: SiteId) -> Finding {
        let thread = self.current;
        let text = self.threads[thread.index()].panicked.as_ref().map(|p| p.message.clone());
        let failure = Failure::Unwinding(text.unwrap_or_default());
        let place = Place { thread, site, role: Role::Fail, held: Vec::new() };
        finding(Kind::Assertion, failure, vec![place])
    }

    /// What a blocked thread waits for.
    pub(crate) fn describe(&self, thread: ThreadId) -> Blocked {
        let pending = self.pending[thread.index()];
        let waits_for = match pending.step {
            Step::Do(Op::Acquire(lock, _)) => self.locks[lock.index()].holder(),
            Step::Do(Op::Join(other)) => Some(other),
            _ => None,
        };
        let (wants, mode) = pending.step.awaited();
        Blocked { thread, site: pending.site, wants, mode, holds: Vec::new(), waits_for }
    }
}
