//! What threads are about to do, under control.

use selvedge_explore::{Pending, Step};
use selvedge_model::{AtomicOp, CondId, LoadOrder, Mode, Op, SiteId};

use super::{Decoder, Line, code, line, mode};
use crate::modules::{LockPart, LockStep};
use crate::places::{Callers, Names};
use crate::wire::{FUTEX, Record, RecordKind, TIMED, TRY};

impl Decoder {
    /// What a thread is about to do.
    pub(crate) fn pending(
        &mut self,
        thread: u32,
        record: &Record,
        callers: Callers,
        names: &mut Names<'_>,
    ) -> Pending {
        let Some(kind) = record.kind() else {
            let (site, landmark) = names.site((0, callers));
            return Pending { site, landmark, step: Step::Busy };
        };
        let (_, landmark) = names.site(code(kind, record, callers));
        let line = line(thread, kind, record, callers, names);
        let (site, step) =
            self.pending_lock(&line).unwrap_or_else(|| (line.site, self.step(&line)));
        Pending { site, landmark, step }
    }

    /// A step that is one of a lock of Rust.
    fn pending_lock(&mut self, line: &Line<'_>) -> Option<(SiteId, Step)> {
        let addr = line.record.a;
        if let Some(LockPart { step, site, .. }) = line.part {
            let known = self.locks.live.contains_key(&addr);
            let lock = (step != LockStep::Inside || known).then(|| self.lock(addr, site))?;
            let step = match step {
                LockStep::Take(mode) => Step::Do(Op::Acquire(lock, mode)),
                LockStep::Give(mode) => Step::Do(Op::Release(lock, mode)),
                LockStep::Try(mode) => Step::TryAcquire(lock, mode),
                LockStep::Inside => Step::TryAcquire(lock, Mode::Exclusive),
            };
            return Some((site, step));
        }
        let waits = line.kind == RecordKind::FutexWait
            || line.kind == RecordKind::Wake && line.record.flags() & FUTEX != 0;
        let &(addr, mode, site) = self.awaited.get(&line.thread).filter(|_| waits)?;
        Some((site, Step::Do(Op::Acquire(self.lock(addr, site), mode))))
    }

    fn step(&mut self, line: &Line<'_>) -> Step {
        let &Line { record, site, .. } = line;
        let flags = record.flags();
        match line.kind {
            // A thread that waits for a limited time only is never in a deadlock.
            RecordKind::Acquire if flags & (TRY | TIMED) != 0 => {
                Step::TryAcquire(self.lock(record.a, site), mode(flags))
            }
            RecordKind::Enroll => {
                let cond = CondId(self.conds.id(record.a, site));
                Step::Enroll(cond, self.lock(record.b, site))
            }
            RecordKind::FutexWait => {
                let access = self.access(record);
                Step::Do(Op::Atomic(access, AtomicOp::Load(LoadOrder::SeqCst)))
            }
            _ => self.op(line).map_or(Step::Yield, Step::Do),
        }
    }
}
