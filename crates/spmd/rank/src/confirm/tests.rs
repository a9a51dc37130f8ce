//! Ranks are threads here, and boards are vectors behind locks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::board::WORDS;

/// The boards of two ranks, and what was told.
#[derive(Clone)]
struct World {
    boards: Arc<[Mutex<Vec<u64>>; 2]>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl World {
    fn new() -> World {
        let world = World {
            boards: Arc::new([const { Vec::new() }; 2].map(Mutex::new)),
            lines: Arc::default(),
        };
        for board in world.boards.iter() {
            let mut words = vec![0; WORDS];
            Board(&mut words).publish([(7, 4096)].into_iter());
            *board.lock().expect("a board") = words;
        }
        world
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("the lines").clone()
    }

    /// Whether nothing is announced any more.
    fn is_clean(&self) -> bool {
        self.boards.iter().all(|b| Board(&mut b.lock().expect("a board")).all().is_empty())
    }
}

impl Around for World {
    fn visit(&mut self, owner: u32, f: &mut dyn FnMut(&mut Board<'_>)) {
        f(&mut Board(&mut self.boards[owner as usize].lock().expect("a board")));
    }

    fn pass(&mut self, micros: u64) {
        std::thread::sleep(std::time::Duration::from_micros(micros));
    }

    fn tell(&mut self, line: &str) {
        self.lines.lock().expect("the lines").push(line.to_owned());
    }
}

fn place(offset: u64) -> Place {
    Place { module: "/bin/prog".into(), offset }
}

fn plan(first: Option<u32>) -> Plan {
    Plan { pairs: vec![[place(1), place(2)]], seed: 7, pause: 2_000, first, all: false }
}

/// Rank 0 puts into the window of rank 1, which is at address 4096 there.
fn put() -> Access {
    Access {
        thread: 0,
        call: 1,
        space: Space { owner: 1, window: Some(7) },
        bytes: vec![Bytes { start: 8, len: 4 }],
        act: Act::Write,
        from: 8,
        locks: Vec::new(),
    }
}

fn load(address: u64) -> Access {
    let space = Space { owner: 1, window: None };
    let bytes = vec![Bytes { start: address, len: 4 }];
    Access { space, bytes, act: Act::Read, from: address, call: 2, ..put() }
}

fn flight() -> Flight {
    let call = rules::number("MPI_Put").expect("a call");
    Flight { call, side: Side::Target, window: 7, target: 1, request: 0 }
}

const FLUSH: Ending = Ending::Window(Completion::Flush, 7, Some(1));

fn aims(of: &Confirm, offset: u64) -> Vec<Aim> {
    of.aims(offset, place)
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    for first in [None, Some(1)] {
        assert_eq!(Plan::parse(&plan(first).text()), Some(plan(first)));
    }
    let all = Plan { all: true, ..Plan::default() };
    assert_eq!(Plan::parse(&all.text()), Some(all));
    assert_eq!(Plan::parse("pair\tonly one"), None);
}

#[test]
fn statements_are_found_by_their_place() {
    let of = Confirm::new(plan(None), 0);
    assert_eq!((aims(&of, 1), aims(&of, 2), aims(&of, 3)), (vec![(0, 0)], vec![(0, 1)], vec![]));
}

#[test]
fn a_load_meets_a_put_that_is_in_flight() {
    let mut world = World::new();
    let (a, b) = (Confirm::new(plan(None), 0), Confirm::new(plan(None), 1));
    a.fly(&mut world, &aims(&a, 1), &put(), flight());
    b.pass(&mut world, &aims(&b, 2), &load(4096 + 8));
    assert_eq!(world.lines().len(), 1);
    assert!(aims(&b, 2).is_empty(), "the pair is settled");
    a.end(&mut world, FLUSH);
    assert!(aims(&a, 1).is_empty() && world.is_clean());
}

#[test]
fn a_load_does_not_meet_what_was_completed_or_lies_elsewhere() {
    let mut world = World::new();
    let (a, b) = (Confirm::new(plan(None), 0), Confirm::new(plan(None), 1));
    a.fly(&mut world, &aims(&a, 1), &put(), flight());
    b.pass(&mut world, &aims(&b, 2), &load(4096 + 12));
    a.end(&mut world, FLUSH);
    b.pass(&mut world, &aims(&b, 2), &load(4096 + 8));
    assert!(world.lines().is_empty() && world.is_clean());
}

#[test]
fn what_completes_a_put_at_its_origin_leaves_it_in_flight() {
    let mut world = World::new();
    let (a, b) = (Confirm::new(plan(None), 0), Confirm::new(plan(None), 1));
    a.fly(&mut world, &aims(&a, 1), &put(), flight());
    a.end(&mut world, Ending::Window(Completion::FlushLocal, 7, Some(1)));
    a.end(&mut world, Ending::Window(Completion::Flush, 7, Some(0)));
    a.end(&mut world, Ending::Request(0));
    b.pass(&mut world, &aims(&b, 2), &load(4096 + 8));
    assert_eq!(world.lines().len(), 1);
}

/// Rank 1 waits at its load until rank 0, which comes later, has its put in flight.
#[test]
fn whoever_comes_first_waits_for_the_other() {
    let world = World::new();
    // Longer than any thread takes to get going; the wait ends when the two meet.
    let plan = || Plan { pause: 20_000_000, ..plan(None) };
    let waiting = {
        let mut world = world.clone();
        std::thread::spawn(move || {
            let b = Confirm::new(plan(), 1);
            b.pass(&mut world, &aims(&b, 2), &load(4096 + 8));
        })
    };
    let mut own = world.clone();
    while world.is_clean() {
        std::thread::yield_now();
    }
    let a = Confirm::new(plan(), 0);
    a.fly(&mut own, &aims(&a, 1), &put(), flight());
    waiting.join().expect("it does not panic");
    assert_eq!(world.lines().len(), 1);
}

#[test]
fn a_statement_races_with_itself() {
    let mut world = World::new();
    let same = || Plan { pairs: vec![[place(1), place(1)]], ..plan(None) };
    let (a, b) = (Confirm::new(same(), 0), Confirm::new(same(), 1));
    a.fly(&mut world, &aims(&a, 1), &put(), flight());
    b.fly(&mut world, &aims(&b, 1), &put(), flight());
    assert_eq!(world.lines().len(), 1);
}

/// Both orders, however the threads run: who goes first has made the access when the other one may.
#[test]
fn an_order_is_forced() {
    for first in [0, 1] {
        let world = World::new();
        let made = Arc::new(AtomicBool::new(false));
        let ranks = [(0, 1, put()), (1, 2, load(4096 + 8))].map(|(rank, offset, access)| {
            let (mut world, made) = (world.clone(), Arc::clone(&made));
            std::thread::spawn(move || {
                let plan = Plan { pause: 500_000, ..plan(Some(first)) };
                let of = Confirm::new(plan, rank);
                match of.turn(&mut world, &aims(&of, offset), &access) {
                    Turn::First(owner, who) => {
                        assert_eq!(rank, first);
                        made.store(true, Ordering::SeqCst);
                        of.made(&mut world, owner, who);
                    }
                    Turn::Free => assert!(made.load(Ordering::SeqCst), "it waited"),
                }
            })
        });
        for rank in ranks {
            rank.join().expect("it does not panic");
        }
        let ordered = crate::findings::ordered(0, first);
        assert!(world.lines().contains(&ordered), "{:?}", world.lines());
        assert!(world.is_clean());
    }
}

#[test]
fn the_same_seed_decides_alike_and_waits_become_rare() {
    let decisions = |seed| {
        let of = Confirm::new(Plan { seed, ..plan(None) }, 0);
        (0..2000).map(|_| of.decide(0)).collect::<Vec<bool>>()
    };
    assert_eq!(decisions(1), decisions(1));
    assert_ne!(decisions(1), decisions(2));
    let waits = decisions(3).iter().filter(|w| **w).count();
    assert!((10..100).contains(&waits), "{waits} waits");
}
