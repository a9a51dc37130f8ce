//! Runs atomic blocks one after the other, in a given order.
//!
//! Source: Burnim, *Specifying and testing parallelism*, §5.3, `Execute(P, s)`: the thread of the next block runs alone
//! from the begin to the end of the block. Outside of blocks threads run as far as that needs them. What is outside is
//! in blocks of one step each, so the order says of these steps, too, which come before which block; a step whose
//! thread cannot take it then is left for later.
//!
//! Guarantee: if [`Serial::unforced`] is empty after the execution, no thread took a step while another one had an open
//! block, and the threads of the order ended one top-level block each, in this order. Whether these were the blocks
//! that the caller means is his to compare: strategies know no names of blocks.
//!
//! Cost: O(n) per choice.

use std::collections::HashMap;

use selvedge_model::{Event, Nesting, Position, ThreadId};

use crate::{Abstraction, Choice, Pending, Rng, Strategy};

/// What comes next in a serial execution. Threads are known by their names across executions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Turn {
    /// The thread takes a step outside of blocks.
    Step(u64),
    /// The thread executes its next top-level block, and before that what it does outside.
    Block(u64),
}

/// Why an order could not be forced, with the number of the block in the order, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unforced {
    /// The block has to wait for another thread.
    Waits(usize),
    /// The block is not reached: its thread ends, waits, or another block has to come first.
    Missed(usize),
}

/// Forces an order of blocks.
#[derive(Clone, Debug)]
pub struct Serial<A> {
    names: A,
    turns: Vec<Turn>,
    at: usize,
    /// How many blocks of the order have ended.
    ended: usize,
    /// By thread: steps outside of blocks that were taken beyond those of past turns; negative if turns were left out.
    ahead: HashMap<u64, i64>,
    nesting: Nesting,
    unforced: Option<Unforced>,
    /// What the program gets that asks for numbers.
    numbers: Vec<u32>,
    asked: usize,
    /// Draws who begins a block, if the order does not say.
    rng: Option<Rng>,
}

impl<A: Abstraction> Serial<A> {
    /// Forces an order. `numbers` are those that the program got in the execution whose order it is.
    pub fn new(turns: Vec<Turn>, numbers: Vec<u32>, names: A) -> Serial<A> {
        Serial {
            names,
            turns,
            at: 0,
            ended: 0,
            ahead: HashMap::new(),
            nesting: Nesting::default(),
            unforced: None,
            numbers,
            asked: 0,
            rng: None,
        }
    }

    /// Any serial execution: where no block is open, any thread goes on.
    pub fn any(names: A) -> Serial<A> {
        Serial { rng: Some(Rng::default()), ..Serial::new(Vec::new(), Vec::new(), names) }
    }

    /// Why the order could not be forced, if it could not, after the execution.
    pub fn unforced(&self) -> Option<Unforced> {
        self.unforced
    }

    fn named(&self, name: u64, pending: &[Pending]) -> Option<ThreadId> {
        (0..pending.len() as u32).map(ThreadId).find(|&t| self.names.thread(t) == name)
    }

    fn is_outside(&self, thread: ThreadId) -> bool {
        self.nesting.block(thread).is_none()
    }

    /// Past turns of a thread outside of blocks: taken already, or left out.
    fn skip(&mut self, name: u64) {
        self.at += 1;
        *self.ahead.entry(name).or_default() -= 1;
    }

    fn fail(&mut self, why: fn(usize) -> Unforced) {
        self.unforced.get_or_insert(why(self.ended));
    }

    /// The thread that has an open block.
    fn open(&self, pending: &[Pending]) -> Option<ThreadId> {
        (0..pending.len() as u32).map(ThreadId).find(|&t| self.nesting.open(t).is_some())
    }

    /// Who runs if the order does not say.
    fn anyone(&mut self, choice: &Choice<'_>) -> ThreadId {
        if let Some(open) = self.open(choice.pending).filter(|&t| choice.is_enabled(t)) {
            return open;
        }
        match &mut self.rng {
            Some(rng) => choice.candidate(rng.below(choice.candidates())),
            None => choice.willing().unwrap_or_else(|| choice.candidate(0)),
        }
    }

    /// Another thread that is outside of blocks, and can run.
    fn helper(&self, choice: &Choice<'_>, not: Option<ThreadId>) -> Option<ThreadId> {
        let mut all = (0..choice.candidates()).map(|i| choice.candidate(i));
        all.find(|&t| Some(t) != not && self.is_outside(t))
    }
}

impl<A: Abstraction> Strategy for Serial<A> {
    fn begin(&mut self, rng: Rng) -> bool {
        (self.at, self.ended, self.asked) = (0, 0, 0);
        self.ahead.clear();
        self.nesting.clear();
        self.unforced = None;
        self.rng = self.rng.take().map(|_| rng);
        true
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        while self.unforced.is_none() {
            let Some(&turn) = self.turns.get(self.at) else { break };
            let (Turn::Step(name) | Turn::Block(name)) = turn;
            let thread = self.named(name, choice.pending).filter(|&t| choice.is_enabled(t));
            match (turn, thread) {
                (Turn::Step(_), Some(t))
                    if self.ahead.get(&name).is_none_or(|&n| n <= 0) && self.is_outside(t) =>
                {
                    return t;
                }
                (Turn::Step(_), _) => self.skip(name),
                (Turn::Block(_), Some(t)) => {
                    // A thread that polls outside of blocks waits for another one.
                    let polls = choice.yielding && choice.running == Some(t) && self.is_outside(t);
                    return self.helper(choice, Some(t)).filter(|_| polls).unwrap_or(t);
                }
                (Turn::Block(_), None) => {
                    if self.open(choice.pending).is_some() {
                        self.fail(Unforced::Waits);
                    } else if let Some(helper) = self.helper(choice, None) {
                        return helper;
                    } else {
                        self.fail(Unforced::Missed);
                    }
                }
            }
        }
        self.anyone(choice)
    }

    fn number(&mut self, _: u32) -> u32 {
        self.asked += 1;
        self.numbers.get(self.asked - 1).copied().unwrap_or(0)
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        if self.open(pending).is_some_and(|open| open != thread) {
            self.fail(Unforced::Waits);
        }
        let name = self.names.thread(thread);
        let matters = pending[thread.index()].step.matters();
        match self.nesting.step(thread) {
            Position::Outside if !matters => {}
            Position::Outside => *self.ahead.entry(name).or_default() += 1,
            Position::Opens(_) => {
                while let Some(&Turn::Step(other)) = self.turns.get(self.at) {
                    self.skip(other);
                }
                if self.turns.get(self.at).is_some_and(|turn| *turn != Turn::Block(name)) {
                    self.fail(Unforced::Missed);
                }
            }
            Position::Inside(_) => {}
        }
        // What was taken counts for the next turn of the thread.
        while let Some(&Turn::Step(next)) = self.turns.get(self.at)
            && self.ahead.get(&next).is_some_and(|&n| n > 0)
        {
            self.skip(next);
        }
    }

    fn observe(&mut self, event: &Event) {
        let name = self.names.thread(event.thread);
        if self.nesting.observe(event).is_some_and(|ended| ended.steps > 0)
            && self.turns.get(self.at) == Some(&Turn::Block(name))
        {
            self.at += 1;
            self.ended += 1;
        }
    }

    fn end(&mut self, _: &[Pending]) {
        if self.turns[self.at.min(self.turns.len())..].iter().any(|t| matches!(t, Turn::Block(_))) {
            self.fail(Unforced::Missed);
        }
    }
}
