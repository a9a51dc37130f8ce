//! Results of operations, as they travel: by their text, and back.
//!
//! A result need not be serializable. What is observed is its text; results that have the same text and are not equal
//! get different texts. The results themselves stay here, for [`Linearizable::same`] and for models.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_specs::{Value, Word};

use super::{Linearizable, Scenario};
use crate::{AtomicBlock, exec, thread, values};

/// What an operation came to.
pub(super) enum Outcome<R> {
    Returned(R),
    Panicked,
}

/// An operation, and its distinct results with their texts.
struct Known<T: Linearizable> {
    op: T::Op,
    results: Vec<(Box<str>, Outcome<T::Ret>)>,
}

/// The results of all executions of a check, by the names of operations.
pub(super) struct Results<T: Linearizable> {
    known: Mutex<HashMap<Box<str>, Known<T>>>,
    /// Tells the predicates of this check from those of others.
    number: u64,
    /// Where the check is, for what has no other place.
    here: &'static Location<'static>,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// What is observed of the structure at the end.
const STATE: &str = "state";

impl<T: Linearizable> Results<T> {
    pub(super) fn new(here: &'static Location<'static>) -> Results<T> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Results { known: Mutex::default(), number, here }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Box<str>, Known<T>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text of a result.
    fn text(
        &self,
        name: &str,
        op: &T::Op,
        outcome: Result<T::Ret, Box<dyn Any + Send>>,
    ) -> Box<str> {
        let (mut text, outcome) = match outcome {
            Ok(ret) => (format!("{ret:?}"), Outcome::Returned(ret)),
            Err(payload) => (format!("a panic: {}", message(&*payload)), Outcome::Panicked),
        };
        let mut known = self.known();
        let known = known
            .entry(name.into())
            .or_insert_with(|| Known { op: op.clone(), results: Vec::new() });
        let equal = |(other, result): &&(Box<str>, Outcome<T::Ret>)| match (result, &outcome) {
            (Outcome::Returned(a), Outcome::Returned(b)) => a == b,
            (Outcome::Panicked, Outcome::Panicked) => **other == *text,
            _ => false,
        };
        if let Some((text, _)) = known.results.iter().find(equal) {
            return text.clone();
        }
        while known.results.iter().any(|(other, _)| **other == *text) {
            text.push('\'');
        }
        known.results.push((text.clone().into(), outcome));
        text.into()
    }

    /// Whether two results, by their texts, count as the same.
    fn same(&self, name: &str, a: &str, b: &str) -> bool {
        let known = self.known();
        let Some(known) = known.get(name) else { return false };
        let of = |text: &str| known.results.iter().find(|(t, _)| **t == *text).map(|(_, r)| r);
        match (of(a), of(b)) {
            _ if T::weak(&known.op) => true,
            (Some(Outcome::Returned(a)), Some(Outcome::Returned(b))) => T::same(&known.op, a, b),
            _ => a == b,
        }
    }

    /// An operation with one of its results, if it returned.
    pub(super) fn with<R>(
        &self,
        name: &str,
        text: &str,
        then: impl FnOnce(&T::Op, &T::Ret) -> R,
    ) -> Option<R> {
        let known = self.known();
        let known = known.get(name)?;
        match known.results.iter().find(|(t, _)| **t == *text) {
            Some((_, Outcome::Returned(ret))) => Some(then(&known.op, ret)),
            _ => None,
        }
    }

    /// Whether the operation of this name is documented as not atomic.
    pub(super) fn is_weak(&self, name: &str) -> bool {
        self.known().get(name).is_some_and(|known| T::weak(&known.op))
    }

    /// Does an operation in a block, and lets its result be observed.
    fn call(self: &Arc<Self>, object: &T, op: &T::Op) {
        let name = format!("{op:?}");
        let block = AtomicBlock::enter(&name);
        let outcome = catch_unwind(AssertUnwindSafe(|| object.apply(op)));
        drop(block);
        let text = self.text(&name, op, outcome);
        let (results, of) = (Arc::clone(self), name.clone());
        let same = move |a: &Value, b: &Value| match (a, b) {
            (Value::Text(a), Value::Text(b)) => Ok(results.same(&of, a, b)),
            _ => Err("a result is a text".to_owned()),
        };
        let known = format!("results of {name} in check {}", self.number);
        let predicate = values::known_by(known.into(), Arc::new(same));
        exec::blocks::say(Word::Observe, &name, predicate, Ok(Value::Text(text)), self.here);
    }

    /// The body of a test that does a scenario.
    pub(super) fn body(
        self: &Arc<Self>,
        scenario: &Scenario<T::Op>,
    ) -> impl Fn() + Send + Sync + use<T> {
        let (results, scenario) = (Arc::clone(self), Arc::new(scenario.clone()));
        move || {
            let object = Arc::new(T::new());
            scenario.before.iter().for_each(|op| results.call(&object, op));
            let threads: Vec<_> = (0..scenario.parallel.len())
                .map(|i| {
                    let (results, scenario) = (Arc::clone(&results), Arc::clone(&scenario));
                    let object = Arc::clone(&object);
                    let run = move || {
                        scenario.parallel[i].iter().for_each(|op| results.call(&object, op));
                    };
                    let named = thread::Builder::new().name(format!("thread {}", i + 1));
                    named.spawn(run).expect("a controlled thread always starts")
                })
                .collect();
            for thread in threads {
                if let Err(payload) = thread.join() {
                    std::panic::resume_unwind(payload);
                }
            }
            scenario.after.iter().for_each(|op| results.call(&object, op));
            object.validate();
            let state = object.state();
            if !state.is_empty() {
                crate::observe(STATE, &state);
            }
        }
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
