//! A strategy that several hold.

use std::cell::RefCell;
use std::rc::Rc;

use selvedge_model::{Event, ThreadId};

use crate::{Choice, Pending, Strategy};

/// A strategy that can be looked at while the executor has it.
#[derive(Debug, Default)]
pub struct Shared<S>(pub Rc<RefCell<S>>);

impl<S> Shared<S> {
    /// Shares `strategy`.
    pub fn new(strategy: S) -> Shared<S> {
        Shared(Rc::new(RefCell::new(strategy)))
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Shared<S> {
        Shared(Rc::clone(&self.0))
    }
}

impl<S: Strategy> Strategy for Shared<S> {
    fn begin(&mut self) -> bool {
        self.0.borrow_mut().begin()
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.0.borrow_mut().choose(choice)
    }
    fn follows_steps(&self) -> bool {
        self.0.borrow().follows_steps()
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.0.borrow_mut().step(thread, pending);
    }
    fn observe(&mut self, event: &Event) {
        self.0.borrow_mut().observe(event);
    }
    fn end(&mut self, pending: &[Pending]) {
        self.0.borrow_mut().end(pending);
    }
}
