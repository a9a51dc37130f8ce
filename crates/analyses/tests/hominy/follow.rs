//! Executions that are made to follow a specification: they do, and it implies what is inferred from them.

use proptest::prelude::*;
use selvedge_model::{
    Access, AtomicOp, BarrierId, Event, LoadOrder, LockId, Mode, Op, SemaphoreId, SiteId,
    StoreOrder, ThreadId,
};
use selvedge_specs::discipline::satisfy::Automaton;
use selvedge_specs::discipline::{DeviceKind, Discipline, Step};

const X: u64 = 0x100;
const FLAG: u64 = 0x900;

#[derive(Clone, Debug)]
enum Stage {
    Local,
    Fork,
    /// Hands the variable to another thread.
    Via(DeviceKind, u32),
    /// All threads in turn, under a lock.
    Guarded(u32),
    /// Threads other than the owner read.
    Shared,
}

fn stages() -> impl Strategy<Value = Vec<Stage>> {
    let kind = prop::sample::select(DeviceKind::WORDS.map(|(_, kind)| kind).to_vec());
    let stage = prop_oneof![
        Just(Stage::Local),
        Just(Stage::Fork),
        (kind, 1u32..3).prop_map(|(kind, to)| Stage::Via(kind, to)),
        (0u32..2).prop_map(Stage::Guarded),
        Just(Stage::Shared),
    ];
    prop::collection::vec(stage, 0..9)
}

struct Maker {
    events: Vec<Event>,
    steps: Vec<Step>,
    owner: u32,
    threads: u32,
    round: u32,
}

impl Maker {
    fn emit(&mut self, thread: u32, op: Op) {
        let site = SiteId(self.events.len() as u32);
        self.events.push(Event { thread: ThreadId(thread), site, op });
    }

    fn access(&mut self, thread: u32, write: bool) {
        let access = Access { addr: X, len: 8 };
        self.emit(thread, if write { Op::Write(access) } else { Op::Read(access) });
    }

    fn locked(&mut self, thread: u32, lock: u32, inside: impl FnOnce(&mut Maker)) {
        self.emit(thread, Op::Acquire(LockId(lock), Mode::Exclusive));
        inside(self);
        self.emit(thread, Op::Release(LockId(lock), Mode::Exclusive));
    }

    fn stage(&mut self, stage: &Stage) {
        match *stage {
            Stage::Local => {
                self.access(self.owner, true);
                let local = |s: &Step| s.is_transition() || *s == Step::ThreadLocal;
                if !self.steps.last().is_some_and(local) {
                    self.steps.push(Step::ThreadLocal);
                }
            }
            Stage::Fork => {
                let child = self.threads;
                self.threads += 1;
                self.emit(self.owner, Op::Fork(ThreadId(child)));
                self.owner = child;
                self.access(child, true);
                self.steps.push(Step::Fork);
            }
            Stage::Via(kind, to) => self.via(kind, (self.owner + to) % self.threads),
            Stage::Guarded(lock) => {
                // So often that no other phase covers more.
                let other = |n: u32| (self.owner + n) % self.threads;
                let (next, last) = (other(1), other(2));
                for thread in [self.owner, next, last, next, last] {
                    self.locked(thread, lock, |maker| maker.access(thread, true));
                }
                self.owner = last;
                self.steps.push(Step::GuardedBy(lock.to_string()));
            }
            Stage::Shared => {
                let owner = self.owner;
                let readers: Vec<u32> = (0..self.threads).filter(|&t| t != owner).collect();
                for &reader in &readers {
                    self.emit(owner, Op::Post(SemaphoreId(0)));
                    self.emit(reader, Op::Wait(SemaphoreId(0)));
                }
                readers.iter().chain(&readers).for_each(|&reader| self.access(reader, false));
                for &reader in &readers {
                    self.emit(reader, Op::Post(SemaphoreId(1)));
                    self.emit(owner, Op::Wait(SemaphoreId(1)));
                }
                self.access(owner, true);
                let via = |n: u32| Step::Via(DeviceKind::Semaphore, n.to_string());
                self.steps.extend([via(0), Step::ReadShared, via(1)]);
            }
        }
    }

    fn via(&mut self, kind: DeviceKind, to: u32) {
        let from = self.owner;
        let name = match kind {
            DeviceKind::Lock => {
                self.locked(from, 7, |_| {});
                self.locked(to, 7, |_| {});
                7
            }
            DeviceKind::Atomic => {
                let flag = Access { addr: FLAG, len: 8 };
                self.emit(from, Op::Atomic(flag, AtomicOp::Store(StoreOrder::Release)));
                self.emit(to, Op::Atomic(flag, AtomicOp::Load(LoadOrder::Acquire)));
                FLAG
            }
            DeviceKind::Barrier => {
                let round = self.round;
                self.round += 1;
                [from, to].into_iter().for_each(|t| self.emit(t, Op::Arrive(BarrierId(0), round)));
                [from, to].into_iter().for_each(|t| self.emit(t, Op::Leave(BarrierId(0), round)));
                0
            }
            DeviceKind::Semaphore => {
                self.emit(from, Op::Post(SemaphoreId(2)));
                self.emit(to, Op::Wait(SemaphoreId(2)));
                2
            }
        };
        self.owner = to;
        self.access(to, true);
        self.steps.push(Step::Via(kind, name.to_string()));
    }
}

fn make(stages: &[Stage], join: bool) -> (Vec<Event>, Discipline) {
    let mut maker = Maker { events: vec![], steps: vec![], owner: 0, threads: 3, round: 0 };
    for child in [1, 2] {
        maker.emit(0, Op::Fork(ThreadId(child)));
    }
    maker.stage(&Stage::Local);
    stages.iter().for_each(|stage| maker.stage(stage));
    if join {
        for thread in 1..maker.threads {
            maker.emit(thread, Op::End);
            maker.emit(0, Op::Join(ThreadId(thread)));
        }
        if maker.owner == 0 {
            maker.stage(&Stage::Local);
        } else {
            maker.access(0, true);
            maker.steps.push(Step::Join);
        }
    }
    maker.steps.dedup();
    (maker.events, Discipline::from(maker.steps))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_specification_implies_what_is_inferred_from_what_follows_it(stages in stages(), join in any::<bool>()) {
        let (events, specification) = make(&stages, join);
        prop_assert_eq!(super::first_breach(&events, X, &specification), None, "{}", specification);
        let (instances, findings) = super::infer(&events);
        prop_assert!(findings.is_empty());
        let instance = instances.iter().find(|i| i.bytes.start == X).unwrap();
        let inferred = super::discipline(instance);
        let automaton = Automaton::new(&inferred);
        prop_assert!(
            automaton.implied_by(&specification.alternatives[0]),
            "{} does not imply {}", specification, inferred
        );
    }
}
