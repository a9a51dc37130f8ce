//! A campaign of several processes, which are threads here, comes to the results of one process, whenever they end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use selvedge_engine::deal::EARLY;
use selvedge_engine::ranks::{Crew, Head, Link, Log, Member, Rank, Recorded};

use super::system::{Instr, Program};
use super::{Begun, Told, begun, begun_with, ensuring, headed, program};

/// How many messages a member sends before it dies, if it does.
type Life = Option<u64>;

/// One process's end of the wires between all.
struct Wire {
    me: Rank,
    to: Vec<Sender<(Rank, String)>>,
    from: Receiver<(Rank, String)>,
    /// Who is dead.
    dead: Arc<Vec<AtomicBool>>,
    life: Life,
    sent: u64,
}

impl Link for Wire {
    fn send(&mut self, to: Rank, message: &str) {
        if self.life == Some(self.sent) {
            self.dead[self.me as usize].store(true, Ordering::SeqCst);
        }
        self.sent += 1;
        if !self.dead[self.me as usize].load(Ordering::SeqCst) {
            let _ = self.to[to as usize].send((self.me, message.to_owned()));
        }
    }

    fn receive(&mut self) -> Option<(Rank, String)> {
        self.from.try_recv().ok()
    }

    fn is_gone(&mut self, rank: Rank) -> bool {
        self.dead[rank as usize].load(Ordering::SeqCst)
    }
}

fn wires(lives: &[Life]) -> Vec<Wire> {
    let ends: Vec<_> = (0..=lives.len()).map(|_| channel()).collect();
    let to: Vec<_> = ends.iter().map(|(sender, _)| sender.clone()).collect();
    let dead = Arc::new((0..=lives.len()).map(|_| AtomicBool::default()).collect::<Vec<_>>());
    let lives = std::iter::once(&None).chain(lives);
    (0..)
        .zip(ends)
        .zip(lives)
        .map(|((me, (_, from)), &life)| Wire {
            me,
            to: to.clone(),
            from,
            dead: Arc::clone(&dead),
            life,
            sent: 0,
        })
        .collect()
}

/// Keeps lines for all.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Log for Lines {
    fn write(&mut self, message: &str) {
        self.0.lock().expect("nobody panics").push(message.to_owned());
    }
}

/// What a campaign of several processes leaves.
struct Shared {
    told: Told,
    /// What each process has logged.
    logs: Vec<Vec<String>>,
    absences: usize,
    /// How many results the head was told.
    received: u64,
}

/// A campaign of one head and as many members as there are lives.
fn shared(program: &Program, variable: Option<u64>, seed: u64, lives: &[Life]) -> Shared {
    shared_with(program, variable, (seed, 160), lives)
}

/// The same with a budget.
fn shared_with(
    program: &Program,
    variable: Option<u64>,
    budget: (u64, u64),
    lives: &[Life],
) -> Shared {
    let logs: Vec<Lines> = vec![(); lives.len() + 1].iter().map(|()| Lines::default()).collect();
    let mut wires = wires(lives);
    let members: Vec<_> = wires
        .drain(1..)
        .zip(&logs[1..])
        .map(|(wire, log)| {
            let (program, log) = (program.clone(), log.clone());
            std::thread::spawn(move || serve(&program, variable, budget, (wire, log)))
        })
        .collect();
    let members_of_head = 1..=Rank::try_from(lives.len()).expect("a few");
    let head = Head::new(Box::new(wires.remove(0)), members_of_head);
    let mut begun = begun_with(program, variable, budget, 1);
    begun.campaign.crew = Crew::Head(Box::new(head.logged(Box::new(logs[0].clone()))));
    let (told, crew) = headed(begun);
    let Crew::Head(mut head) = crew else { panic!("it was one") };
    members.into_iter().for_each(|member| member.join().expect("members do not panic"));
    let logs = logs.into_iter().map(|log| log.0.lock().expect("nobody panics").clone()).collect();
    let (absences, received) = (head.absences().len(), head.received().results);
    Shared { told, logs, absences, received }
}

fn serve(program: &Program, variable: Option<u64>, budget: (u64, u64), (wire, log): (Wire, Lines)) {
    let dead = Arc::clone(&wire.dead);
    let me = wire.me as usize;
    let is_dead = move || dead[me].load(Ordering::SeqCst);
    let mut member = Member::new(Box::new(wire)).logged(Box::new(log));
    let Begun { mut campaign, aims, mut undirected, .. } = begun_with(program, variable, budget, 1);
    let Some(schedules) = member.next(0, &is_dead) else { return };
    undirected.search.schedules = schedules;
    campaign.crew = Crew::Member(Box::new(member));
    campaign.serve(Some(aims), undirected.search, &is_dead).expect("a simulation");
    let Crew::Member(mut member) = campaign.crew else { panic!("it was one") };
    assert_eq!(member.next(0, &is_dead), None, "there is one search");
}

/// The campaign of which these logs remain.
fn merged(
    program: &Program,
    (variable, seed): (Option<u64>, u64),
    logs: &[Vec<String>],
    completes: bool,
) -> (Told, usize) {
    let lines = (1..).zip(logs).flat_map(|(rank, log)| log.iter().map(move |l| (rank, l.clone())));
    let members = 1..=Rank::try_from(logs.len()).expect("a few");
    let mut begun = begun(program, variable, seed, 2);
    let link = Box::new(Recorded::new(lines));
    begun.campaign.crew = Crew::Head(Box::new(Head::afterwards(link, members, completes)));
    let (told, crew) = headed(begun);
    let Crew::Head(head) = crew else { panic!("it was one") };
    (told, head.missing().len())
}

fn racy() -> Program {
    let racy =
        |value| vec![Instr::Inc(8), Instr::Load(0), Instr::StoreNext(0), Instr::Put(1, value)];
    vec![racy(1), racy(2), vec![Instr::Get(1), Instr::FailIf(0, 1)]]
}

#[test]
fn the_number_of_processes_changes_nothing() {
    for variable in [None, Some(0)] {
        let one = ensuring(&racy(), variable, 5, 1);
        assert!(!one.failures.is_empty(), "there is something to find");
        for members in [0, 1, 2, 3, 7] {
            let shared = shared(&racy(), variable, 5, &vec![None; members]);
            assert_eq!(shared.told, one, "{members} members");
            assert_eq!(shared.absences, 0, "{members} members");
            assert_eq!(shared.received > 0, members > 0, "{members} members");
        }
    }
}

#[test]
fn a_large_campaign_is_divided_among_many_processes() {
    let many = (5, EARLY + 3_000);
    let one = headed(begun_with(&racy(), None, many, 2)).0;
    let shared = shared_with(&racy(), None, many, &[None; 7]);
    assert_eq!(shared.told, one);
    // Each of eight processes has an eighth of the late numbers, and four have the early ones.
    assert!(shared.received > one.executions / 2, "{} results", shared.received);
    let dying = [Some(3), None, Some(9), None, Some(0)];
    assert_eq!(shared_with(&racy(), None, many, &dying).told, one);
}

#[test]
fn what_processes_have_logged_is_as_good_as_themselves() {
    let one = ensuring(&racy(), Some(0), 5, 1);
    let logs = shared(&racy(), Some(0), 5, &[None, None]).logs;
    assert_eq!(merged(&racy(), (Some(0), 5), &logs, true), (one, 0));
}

#[test]
fn a_log_of_another_seed_is_of_no_use() {
    let logs = shared(&racy(), None, 6, &[None]).logs;
    let (_, missing) = merged(&racy(), (None, 5), &logs, false);
    assert!(missing > 0, "nothing of it was taken");
    assert_eq!(merged(&racy(), (None, 5), &logs, true).0, ensuring(&racy(), None, 5, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Members that die after any number of messages, or before the first, cost nothing but time.
    #[test]
    fn a_member_that_dies_changes_nothing(
        program in program(),
        seed in 0..1000u64,
        lives in proptest::collection::vec(proptest::option::weighted(0.7, 0..12u64), 1..4),
        variable in proptest::option::of(Just(0)),
    ) {
        let one = ensuring(&program, variable, seed, 1);
        prop_assert_eq!(shared(&program, variable, seed, &lives).told, one);
    }

    /// Logs that end anywhere, in the middle of a line or before it, give the same if what is missing is run.
    #[test]
    fn logs_that_end_early_lose_nothing_that_is_run_again(
        program in program(),
        seed in 0..1000u64,
        cuts in proptest::collection::vec(0..20usize, 3),
    ) {
        let one = ensuring(&program, Some(0), seed, 1);
        let mut logs = shared(&program, Some(0), seed, &[None, None]).logs;
        for (log, cut) in logs.iter_mut().zip(cuts) {
            log.truncate(cut);
        }
        prop_assert_eq!(merged(&program, (Some(0), seed), &logs, true).0, one);
    }
}
