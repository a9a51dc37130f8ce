//! The objects that histories are checked against, and how records are their operations.
//!
//! An object that has nothing gives null. Elements of a set and entries of a map do not concern each other, so each is an
//! object of its own here. A mutex is unlocked by the process that holds it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::future::{Future, Id};
use super::queue::{Element, Queue};
use super::record::{BadRecord, Record};
use super::search::Sequential;
use crate::Value;

/// A kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelKind {
    /// `read`, `write`, `cas`.
    Register,
    /// `add`, `get`.
    Counter,
    /// `enq`, `deq`.
    Queue,
    /// `push`, `pop`.
    Stack,
    /// `add`, `remove`, `contains`.
    Set,
    /// `get`, `put`, `remove`.
    Map,
    /// `lock`, `unlock`.
    Mutex,
}

/// All kinds, with their names and operations.
pub const MODELS: [(ModelKind, &str, &[&str]); 7] = [
    (ModelKind::Register, "register", &["read", "write", "cas"]),
    (ModelKind::Counter, "counter", &["add", "get"]),
    (ModelKind::Queue, "queue", &["enq", "deq"]),
    (ModelKind::Stack, "stack", &["push", "pop"]),
    (ModelKind::Set, "set", &["add", "remove", "contains"]),
    (ModelKind::Map, "map", &["get", "put", "remove"]),
    (ModelKind::Mutex, "mutex", &["lock", "unlock"]),
];

/// There is no model of this name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("there is no model {0:?}")]
pub struct UnknownModel(String);

impl FromStr for ModelKind {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<ModelKind, UnknownModel> {
        let found = MODELS.iter().find(|(_, name, _)| *name == text);
        found.map(|(kind, ..)| *kind).ok_or_else(|| UnknownModel(text.to_owned()))
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().1)
    }
}

/// An operation of an object.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Action {
    Read,
    Write(Value),
    CompareAndSet(Value, Value),
    Add(i128),
    /// With the times of its call and its return.
    Put(Value, i64, i64),
    Take,
    Insert,
    Delete,
    Contains,
    /// Put into a map.
    Set(Value),
    /// Take out of a map.
    Unset,
    Lock(Value),
    Unlock(Value),
}

pub(super) type Operation = super::Operation<Action, Value>;

/// The state that objects begin with.
#[derive(Clone, Debug)]
pub(super) struct Initial(Option<Value>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// A register, or an entry of a map.
    Value(Value),
    Counter(i128),
    Queue(Queue),
    /// The next to leave last.
    Stack(Box<[Id]>),
    /// Whether an element is in the set.
    Element(bool),
    /// Who holds it.
    Mutex(Option<Value>),
}

/// An object in one of its states.
#[derive(Clone, Debug)]
pub(super) struct Object {
    state: State,
    /// Elements of a queue or stack at the beginning, before they have numbers.
    first: Arc<[Value]>,
    future: Arc<Future>,
}

/// Objects of one history differ only by their states.
impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.state == other.state
    }
}

impl Eq for Object {}

impl Hash for Object {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.state.hash(hasher);
    }
}

impl ModelKind {
    fn row(self) -> &'static (ModelKind, &'static str, &'static [&'static str]) {
        let row = MODELS.iter().find(|(kind, ..)| *kind == self);
        row.expect("every kind has a row")
    }

    /// The initial state that the user gave.
    pub(super) fn initial(self, value: Option<&Value>) -> Result<Initial, BadRecord> {
        let fits = |value: &Value| match self {
            ModelKind::Register => None,
            ModelKind::Counter => (!matches!(value, Value::Int(_))).then_some("a whole number"),
            ModelKind::Queue | ModelKind::Stack | ModelKind::Set => {
                (!matches!(value, Value::List(_))).then_some("an array")
            }
            ModelKind::Map => (!matches!(value, Value::Map(_))).then_some("an object"),
            ModelKind::Mutex => None,
        };
        match value.and_then(fits) {
            Some(expected) => Err(BadRecord::Initial { model: self.row().1, expected }),
            None => Ok(Initial(value.cloned())),
        }
    }

    /// The part of the object that a record is about, and its operation.
    pub(super) fn operation(self, record: &Record) -> Result<(Value, Operation), BadRecord> {
        let op = self.op(record)?;
        let key = match (self, &record.key) {
            (ModelKind::Map, None) => return Err(BadRecord::Key { op: record.op.clone() }),
            (ModelKind::Set, None) => record.arg.clone(),
            (ModelKind::Set, Some(key)) => Value::List(vec![key.clone(), record.arg.clone()]),
            (_, key) => key.clone().unwrap_or(Value::None),
        };
        let returned = record.returned.map(|time| (record.ret.clone(), time));
        Ok((key, Operation { op, call: record.call, returned }))
    }

    fn op(self, record: &Record) -> Result<Action, BadRecord> {
        let Record { op: name, arg, process, .. } = record;
        let argument = |expected| BadRecord::Argument { op: name.clone(), expected };
        let given = || match arg {
            Value::None => Err(argument("given")),
            arg => Ok(arg.clone()),
        };
        let none = || match arg {
            Value::None => Ok(()),
            _ => Err(argument("left out")),
        };
        let (op, result) = match (self, &**name) {
            (ModelKind::Register, "read") | (ModelKind::Map, "get") => {
                none()?;
                (Action::Read, Returns::Anything)
            }
            (ModelKind::Register, "write") => (Action::Write(arg.clone()), Returns::Nothing),
            (ModelKind::Register, "cas") => match arg {
                Value::List(pair) if pair.len() == 2 => {
                    (Action::CompareAndSet(pair[0].clone(), pair[1].clone()), Returns::Bool)
                }
                _ => return Err(argument("[expected, new]")),
            },
            (ModelKind::Counter, "add") => match arg {
                Value::Int(n) => (Action::Add(*n), Returns::Nothing),
                _ => return Err(argument("a whole number")),
            },
            (ModelKind::Counter, "get") => {
                none()?;
                (Action::Read, Returns::Whole)
            }
            (ModelKind::Queue, "enq") | (ModelKind::Stack, "push") => {
                let returned = record.returned.unwrap_or(i64::MAX);
                (Action::Put(given()?, record.call, returned), Returns::Nothing)
            }
            (ModelKind::Queue, "deq") | (ModelKind::Stack, "pop") => {
                none()?;
                (Action::Take, Returns::Anything)
            }
            (ModelKind::Set, "add") => (given().map(|_| Action::Insert)?, Returns::Bool),
            (ModelKind::Set, "remove") => (given().map(|_| Action::Delete)?, Returns::Bool),
            (ModelKind::Set, "contains") => (given().map(|_| Action::Contains)?, Returns::Bool),
            (ModelKind::Map, "put") => (Action::Set(given()?), Returns::Anything),
            (ModelKind::Map, "remove") => {
                none()?;
                (Action::Unset, Returns::Anything)
            }
            (ModelKind::Mutex, "lock") => (Action::Lock(process.clone()), Returns::Nothing),
            (ModelKind::Mutex, "unlock") => (Action::Unlock(process.clone()), Returns::Nothing),
            _ => {
                let known = self.row().2.join(", ");
                return Err(BadRecord::Operation { model: self.row().1, op: name.clone(), known });
            }
        };
        match result.unfit(&record.ret).filter(|_| record.returned.is_some()) {
            Some(expected) => Err(BadRecord::Result { op: name.clone(), expected }),
            None => Ok(op),
        }
    }
}

/// What an operation returns.
enum Returns {
    Nothing,
    Anything,
    Bool,
    Whole,
}

impl Returns {
    /// What it should be, if the value is something else.
    fn unfit(self, value: &Value) -> Option<&'static str> {
        match (self, value) {
            (Returns::Nothing, Value::None)
            | (Returns::Anything, _)
            | (Returns::Bool, Value::Bool(_))
            | (Returns::Whole, Value::Int(_)) => None,
            (Returns::Nothing, _) => Some("left out"),
            (Returns::Bool, _) => Some("true or false"),
            (Returns::Whole, _) => Some("a whole number"),
        }
    }
}

impl Object {
    /// The object, or the part of it with this key, in its initial state.
    pub(super) fn new(model: ModelKind, initial: &Initial, key: &Value) -> Object {
        let mut first: &[Value] = &[];
        let state = match (model, &initial.0) {
            (ModelKind::Register, value) => State::Value(value.clone().unwrap_or(Value::None)),
            (ModelKind::Counter, Some(Value::Int(n))) => State::Counter(*n),
            (ModelKind::Counter, _) => State::Counter(0),
            (ModelKind::Queue, value) => {
                first = items(value.as_ref());
                State::Queue(Queue::default())
            }
            (ModelKind::Stack, value) => {
                first = items(value.as_ref());
                State::Stack(Box::default())
            }
            (ModelKind::Set, value) => {
                let element = match key {
                    Value::List(pair) if pair.len() == 2 => &pair[1],
                    element => element,
                };
                State::Element(items(value.as_ref()).iter().any(|v| v == element || v == key))
            }
            (ModelKind::Map, Some(Value::Map(entries))) => {
                let name = match key {
                    Value::Text(name) => name.clone(),
                    other => other.to_string().into(),
                };
                let entry = entries.iter().find(|(k, _)| *k == Value::Text(name.clone()));
                State::Value(entry.map_or(Value::None, |(_, value)| value.clone()))
            }
            (ModelKind::Map, _) => State::Value(Value::None),
            (ModelKind::Mutex, holder) => {
                State::Mutex(holder.clone().filter(|h| *h != Value::None))
            }
        };
        Object { state, first: first.into(), future: Arc::default() }
    }

    fn with(&self, state: State) -> Vec<Object> {
        vec![Object { state, first: Arc::clone(&self.first), future: Arc::clone(&self.future) }]
    }

    /// Puts an element on a stack, unless the history says that the elements then cannot leave as they must.
    fn push(&self, elements: &[Id], value: &Value) -> Vec<Object> {
        let id = self.future.id(value);
        if !self.future.allows(std::iter::once(id).chain(elements.iter().rev().copied())) {
            return Vec::new();
        }
        let mut elements = elements.to_vec();
        elements.push(id);
        // What is below an element that stays stays as well.
        let from = elements.iter().rposition(|e| self.future.stays(*e)).unwrap_or(0);
        self.with(State::Stack(elements[from..].into()))
    }

    fn pop(&self, elements: &[Id], ret: Option<&Value>) -> Vec<Object> {
        match (elements.split_last(), ret) {
            (None, None | Some(Value::None)) => self.with(self.state.clone()),
            (None, Some(_)) | (Some(_), Some(Value::None)) => Vec::new(),
            (Some((top, rest)), ret) => {
                let possible = match ret {
                    Some(value) => *top == self.future.id(value),
                    None => !self.future.stays(*top),
                };
                if possible { self.with(State::Stack(rest.into())) } else { Vec::new() }
            }
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

impl Sequential for Object {
    type Op = Action;
    type Ret = Value;

    fn knowing(&self, operations: &[Operation]) -> Option<Object> {
        let taken =
            operations.iter().filter(|o| o.op == Action::Take).filter_map(|o| match &o.returned {
                None => Some((None, o.call, i64::MAX)),
                Some((Value::None, _)) => None,
                Some((value, returned)) => Some((Some(value), o.call, *returned)),
            });
        let put = operations.iter().filter_map(|o| match &o.op {
            Action::Put(value, ..) => Some(value),
            _ => None,
        });
        let future = Arc::new(Future::new(put.chain(self.first.iter()), taken)?);
        let ids = self.first.iter().map(|value| future.id(value));
        let state = match &self.state {
            State::Queue(_) => State::Queue(Queue::of(ids)),
            State::Stack(_) => State::Stack(ids.collect()),
            other => other.clone(),
        };
        Some(Object { state, first: Arc::clone(&self.first), future })
    }

    fn idle(&self, op: &Action, ret: &Value) -> bool {
        let nothing = matches!(ret, Value::None | Value::Bool(false));
        match op {
            Action::Read | Action::Contains => true,
            Action::CompareAndSet(..)
            | Action::Insert
            | Action::Delete
            | Action::Take
            | Action::Unset => nothing,
            Action::Put(..)
            | Action::Write(_)
            | Action::Add(_)
            | Action::Set(_)
            | Action::Lock(_)
            | Action::Unlock(_) => false,
        }
    }

    fn step(&self, op: &Action, ret: Option<&Value>) -> Vec<Object> {
        let returns = |value: &Value| ret.is_none_or(|ret| ret == value);
        let if_returns = |value: Value, state: State| {
            if returns(&value) { self.with(state) } else { Vec::new() }
        };
        match (op, &self.state) {
            (Action::Read, State::Value(value)) => if_returns(value.clone(), self.state.clone()),
            (Action::Read, State::Counter(n)) => if_returns(Value::Int(*n), self.state.clone()),
            (Action::Write(value), State::Value(_)) => self.with(State::Value(value.clone())),
            (Action::CompareAndSet(expected, new), State::Value(value)) => {
                let done = expected == value;
                let state = if done { State::Value(new.clone()) } else { self.state.clone() };
                if_returns(Value::Bool(done), state)
            }
            (Action::Add(more), State::Counter(n)) => {
                self.with(State::Counter(n.wrapping_add(*more)))
            }
            (Action::Put(value, call, returned), State::Queue(queue)) => {
                let element =
                    Element { id: self.future.id(value), call: *call, returned: *returned };
                let after = queue.with(element, &self.future);
                after.map_or_else(Vec::new, |queue| self.with(State::Queue(queue)))
            }
            (Action::Put(value, ..), State::Stack(elements)) => self.push(elements, value),
            (Action::Take, State::Queue(queue)) => {
                let after = queue.taken(ret, &self.future).into_iter();
                after.flat_map(|queue| self.with(State::Queue(queue))).collect()
            }
            (Action::Take, State::Stack(elements)) => self.pop(elements, ret),
            (Action::Insert, State::Element(there)) => {
                if_returns(Value::Bool(!there), State::Element(true))
            }
            (Action::Delete, State::Element(there)) => {
                if_returns(Value::Bool(*there), State::Element(false))
            }
            (Action::Contains, State::Element(there)) => {
                if_returns(Value::Bool(*there), self.state.clone())
            }
            (Action::Set(new), State::Value(value)) => {
                if_returns(value.clone(), State::Value(new.clone()))
            }
            (Action::Unset, State::Value(value)) => {
                if_returns(value.clone(), State::Value(Value::None))
            }
            (Action::Lock(process), State::Mutex(None)) => {
                self.with(State::Mutex(Some(process.clone())))
            }
            (Action::Unlock(process), State::Mutex(Some(holder))) if process == holder => {
                self.with(State::Mutex(None))
            }
            // An operation of another model, or of a mutex that is not free.
            _ => Vec::new(),
        }
    }

    fn heap(&self) -> usize {
        match &self.state {
            State::Queue(queue) => queue.heap(),
            State::Stack(elements) => 4 * elements.len(),
            State::Value(_) | State::Counter(_) | State::Element(_) | State::Mutex(_) => 0,
        }
    }
}
