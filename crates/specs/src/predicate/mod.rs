//! Predicates: when two values of different executions count as the same ("bridge predicates").
//!
//! Paper: Burnim, §2.3 and §3.1. Predicates are reflexive and symmetric; they need not be transitive.
//! A predicate over numbers looks into lists, maps and records: numbers that stand at the same place are compared by
//! the predicate, everything else there exactly, and different lengths or keys differ.
//!
//! *Guarantee*: what is implemented here is reflexive and symmetric on all values. Callbacks are the program's own
//! code: [`Predicate::same`] refuses one that is not reflexive on its two values or not symmetric on the pair.

mod skeleton;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Digest, Value};

/// When two values count as the same.
///
/// The text form is what users write: `equal`, `within:1e-10`, `relative:1e-6`, `ulps:4`, `set`, `multiset`, `rows`,
/// `same:NAME`.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Predicate {
    /// Equal. Two NaNs are equal, and so are 0.0 and -0.0.
    #[default]
    Exact,
    /// Numbers differ by at most this much.
    Within(f64),
    /// Numbers differ by at most this part of the larger one.
    Relative(f64),
    /// At most this many steps from one floating-point number to the other.
    Ulps(u64),
    /// Lists with the same elements, whatever their order and however often they occur.
    Set,
    /// Lists with the same elements equally often, in any order.
    Multiset,
    /// Lists of lists: row by row, each with the same elements equally often, in any order.
    Rows,
    /// The program's own function, by a name under which the [`Judge`] knows it.
    Callback(Box<str>),
}

/// Calls the program's own predicates.
pub trait Judge {
    /// Whether the callback takes the values for the same. An error says why it has no answer: it crashed, it took too
    /// long, the program has ended.
    fn same(&mut self, callback: &str, a: &Value, b: &Value) -> Result<bool, String>;
}

/// There are no callbacks.
#[derive(Clone, Copy, Debug)]
pub struct NoCallbacks;

impl Judge for NoCallbacks {
    fn same(&mut self, callback: &str, _: &Value, _: &Value) -> Result<bool, String> {
        Err(format!("there is no callback {callback} here"))
    }
}

impl<J: Judge + ?Sized> Judge for &mut J {
    fn same(&mut self, callback: &str, a: &Value, b: &Value) -> Result<bool, String> {
        (**self).same(callback, a, b)
    }
}

/// The name of a kind of values. By this name serde does not take it for a text that it borrows.
type KindName = &'static str;

/// A predicate cannot judge two values.
#[derive(Clone, PartialEq, Debug, Error, serde::Serialize, serde::Deserialize)]
pub enum Unfit {
    /// The predicate is about other kinds of values.
    #[error("the predicate {predicate} does not apply to a value of kind {kind}")]
    Kind {
        /// The predicate.
        predicate: Predicate,
        /// What the value is.
        #[serde(deserialize_with = "crate::value::stored::kind")]
        kind: KindName,
    },
    /// A value was kept as a digest only, and the predicate needs the value itself.
    #[error("the predicate {predicate} needs values in full, but only a digest was kept")]
    OnlyDigest {
        /// The predicate.
        predicate: Predicate,
    },
    /// Two executions name different predicates for the same call.
    #[error("one execution compares by {first}, the other by {second}")]
    Predicates {
        /// That of the first execution.
        first: Predicate,
        /// That of the second.
        second: Predicate,
    },
    /// A callback says that a value is not the same as itself.
    #[error(
        "the predicate {callback} is not reflexive: it says that {value} is not the same as itself"
    )]
    NotReflexive {
        /// The callback.
        callback: Box<str>,
        /// The value.
        #[serde(with = "crate::value::stored")]
        value: Value,
    },
    /// A callback depends on the order of its arguments.
    #[error(
        "the predicate {callback} is not symmetric: its answer for {a} and {b} depends on their order"
    )]
    NotSymmetric {
        /// The callback.
        callback: Box<str>,
        /// One value.
        #[serde(with = "crate::value::stored")]
        a: Value,
        /// The other.
        #[serde(with = "crate::value::stored")]
        b: Value,
    },
    /// A callback gave no answer.
    #[error("the predicate {callback} gave no answer: {why}")]
    NoAnswer {
        /// The callback.
        callback: Box<str>,
        /// The reason.
        why: String,
    },
}

impl Predicate {
    /// Whether the values count as the same.
    pub fn same(&self, a: &Value, b: &Value, judge: &mut dyn Judge) -> Result<bool, Unfit> {
        match self {
            Predicate::Exact => Ok(a == b),
            Predicate::Within(e) => self.numbers(a, b, &|a, b| near(a, b, *e)),
            Predicate::Relative(e) => self.numbers(a, b, &|a, b| near_relative(a, b, *e)),
            Predicate::Ulps(n) => self.numbers(a, b, &|a, b| steps(a, b).is_some_and(|d| d <= *n)),
            Predicate::Set => {
                let (mut a, mut b) = (self.sorted(a)?, self.sorted(b)?);
                a.dedup();
                b.dedup();
                Ok(a == b)
            }
            Predicate::Multiset => Ok(self.sorted(a)? == self.sorted(b)?),
            Predicate::Rows => self.rows(a, b),
            Predicate::Callback(name) => checked(name, a, b, judge),
        }
    }

    /// Checks that the predicate applies to the value and takes it for the same as itself.
    pub fn reflexive(&self, value: &Value, judge: &mut dyn Judge) -> Result<(), Unfit> {
        match self {
            Predicate::Callback(callback) => {
                if ask(callback, value, value, judge)? {
                    Ok(())
                } else {
                    Err(Unfit::NotReflexive { callback: callback.clone(), value: value.clone() })
                }
            }
            _ => self.same(value, value, judge).map(drop),
        }
    }

    /// Whether "the same as" falls into classes.
    pub fn is_transitive(&self) -> bool {
        match self {
            Predicate::Exact | Predicate::Set | Predicate::Multiset | Predicate::Rows => true,
            Predicate::Within(_)
            | Predicate::Relative(_)
            | Predicate::Ulps(_)
            | Predicate::Callback(_) => false,
        }
    }

    /// For a transitive predicate, what all values that count as the same have in common.
    pub fn class(&self, value: &Value) -> Result<Option<Digest>, Unfit> {
        let list = |values: Vec<&Value>| Value::List(values.into_iter().cloned().collect());
        Ok(Some(match self {
            Predicate::Exact => value.digest(),
            Predicate::Set => {
                let mut sorted = self.sorted(value)?;
                sorted.dedup();
                list(sorted).digest()
            }
            Predicate::Multiset => list(self.sorted(value)?).digest(),
            Predicate::Rows => {
                let Value::List(rows) = value else { return Err(self.unfit(value)) };
                let rows: Result<_, Unfit> =
                    rows.iter().map(|r| self.sorted(r).map(list)).collect();
                Value::List(rows?).digest()
            }
            Predicate::Within(_)
            | Predicate::Relative(_)
            | Predicate::Ulps(_)
            | Predicate::Callback(_) => return Ok(None),
        }))
    }

    /// The value itself is needed, not only its digest.
    pub fn needs_value(&self) -> bool {
        *self != Predicate::Exact
    }

    fn unfit(&self, value: &Value) -> Unfit {
        Unfit::Kind { predicate: self.clone(), kind: value.kind() }
    }

    fn sorted<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, Unfit> {
        let Value::List(values) = value else {
            return Err(self.unfit(value));
        };
        let mut sorted: Vec<&Value> = values.iter().collect();
        sorted.sort_unstable();
        Ok(sorted)
    }

    fn rows(&self, a: &Value, b: &Value) -> Result<bool, Unfit> {
        let (Value::List(a), Value::List(b)) = (a, b) else {
            return Err(self.unfit(if matches!(a, Value::List(_)) { b } else { a }));
        };
        let sort = |rows: &'_ [Value]| rows.iter().try_for_each(|row| self.sorted(row).map(drop));
        sort(a)?;
        sort(b)?;
        Ok(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.sorted(a) == self.sorted(b)))
    }

    fn numbers(&self, a: &Value, b: &Value, near: &Near<'_>) -> Result<bool, Unfit> {
        for value in [a, b] {
            if self.numberless(value) {
                return Err(self.unfit(value));
            }
        }
        Ok(alike(a, b, near))
    }

    /// The value has leaves, and none of them is a number that the predicate is about.
    fn numberless(&self, value: &Value) -> bool {
        let floats_only = matches!(self, Predicate::Ulps(_));
        let mut leaves = 0;
        let mut numbers = 0;
        each_leaf(value, &mut |leaf| {
            leaves += 1;
            let whole = matches!(leaf, Value::Int(_) | Value::Huge(_));
            numbers += usize::from(leaf.number().is_some() && !(floats_only && whole));
        });
        leaves > 0 && numbers == 0
    }
}

/// The callback's answer, after it has been found reflexive on both values and symmetric on the pair.
fn checked(callback: &str, a: &Value, b: &Value, judge: &mut dyn Judge) -> Result<bool, Unfit> {
    for value in [a, b] {
        Predicate::Callback(callback.into()).reflexive(value, judge)?;
    }
    let there = ask(callback, a, b, judge)?;
    if there == ask(callback, b, a, judge)? {
        return Ok(there);
    }
    Err(Unfit::NotSymmetric { callback: callback.into(), a: a.clone(), b: b.clone() })
}

fn ask(callback: &str, a: &Value, b: &Value, judge: &mut dyn Judge) -> Result<bool, Unfit> {
    judge.same(callback, a, b).map_err(|why| Unfit::NoAnswer { callback: callback.into(), why })
}

type Near<'a> = dyn Fn(&Value, &Value) -> bool + 'a;

fn each_leaf(value: &Value, leaf: &mut dyn FnMut(&Value)) {
    match value {
        Value::Some(value) | Value::Variant(_, value) => each_leaf(value, leaf),
        Value::List(values) => values.iter().for_each(|v| each_leaf(v, leaf)),
        Value::Map(entries) => entries.iter().for_each(|(_, v)| each_leaf(v, leaf)),
        Value::Record(members) => members.iter().for_each(|(_, v)| each_leaf(v, leaf)),
        Value::None => {}
        scalar => leaf(scalar),
    }
}

/// Place by place: numbers by `near`, everything else exactly.
fn alike(a: &Value, b: &Value, near: &Near<'_>) -> bool {
    match (a, b) {
        (Value::Some(a), Value::Some(b)) => alike(a, b, near),
        (Value::Variant(m, a), Value::Variant(n, b)) => m == n && alike(a, b, near),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b, near))
        }
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((k, a), (l, b))| k == l && alike(a, b, near))
        }
        (Value::Record(a), Value::Record(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((k, a), (l, b))| k == l && alike(a, b, near))
        }
        _ => a == b || (a.number().is_some() && b.number().is_some() && near(a, b)),
    }
}

fn near(a: &Value, b: &Value, e: f64) -> bool {
    match whole_distance(a, b) {
        // Whole numbers are at most `e` apart if and only if they are at most its whole part apart.
        Some(distance) => distance <= e as u128,
        None => floats(a, b).is_some_and(|(a, b)| (a - b).abs() <= e),
    }
}

fn near_relative(a: &Value, b: &Value, e: f64) -> bool {
    floats(a, b).is_some_and(|(x, y)| {
        let distance = whole_distance(a, b).map_or((x - y).abs(), |d| d as f64);
        distance <= e * x.abs().max(y.abs())
    })
}

/// Both numbers, if both are finite: an infinity is near nothing but itself.
fn floats(a: &Value, b: &Value) -> Option<(f64, f64)> {
    let (a, b) = (a.number()?, b.number()?);
    (a.is_finite() && b.is_finite()).then_some((a, b))
}

fn whole_distance(a: &Value, b: &Value) -> Option<u128> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.abs_diff(*b)),
        (Value::Huge(a), Value::Huge(b)) => Some(a.abs_diff(*b)),
        // With a negative number the distance may not fit: then it is larger than any other.
        (Value::Int(a), Value::Huge(b)) | (Value::Huge(b), Value::Int(a)) => Some(
            u128::try_from(*a)
                .map_or_else(|_| b.saturating_add(a.unsigned_abs()), |a| b.abs_diff(a)),
        ),
        _ => None,
    }
}

/// How many floating-point numbers of the type lie between the two, the second included.
fn steps(a: &Value, b: &Value) -> Option<u64> {
    /// Neighbouring numbers have neighbouring places; both zeros have place 0.
    fn place(bits: i64, sign: i64) -> i64 {
        if bits < 0 { sign.wrapping_sub(bits) } else { bits }
    }
    match (a, b) {
        (Value::F32(a), Value::F32(b)) if !a.is_nan() && !b.is_nan() => {
            let place = |x: f32| place(i64::from(x.to_bits().cast_signed()), i64::from(i32::MIN));
            Some(place(*a).abs_diff(place(*b)))
        }
        (Value::F64(a), Value::F64(b)) if !a.is_nan() && !b.is_nan() => {
            let place = |x: f64| place(x.to_bits().cast_signed(), i64::MIN);
            Some(place(*a).abs_diff(place(*b)))
        }
        _ => None,
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Exact => f.write_str("equal"),
            Predicate::Within(e) => write!(f, "within:{e:?}"),
            Predicate::Relative(e) => write!(f, "relative:{e:?}"),
            Predicate::Ulps(n) => write!(f, "ulps:{n}"),
            Predicate::Set => f.write_str("set"),
            Predicate::Multiset => f.write_str("multiset"),
            Predicate::Rows => f.write_str("rows"),
            Predicate::Callback(name) => write!(f, "same:{name}"),
        }
    }
}

/// A text is not a predicate.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{0:?} is not a predicate; predicates are equal, within:E, relative:E, ulps:N, set, multiset, rows, same:NAME"
)]
pub struct UnknownPredicate(String);

impl FromStr for Predicate {
    type Err = UnknownPredicate;

    fn from_str(text: &str) -> Result<Predicate, UnknownPredicate> {
        let unknown = || UnknownPredicate(text.to_owned());
        let bound =
            |number: &str| number.parse::<f64>().ok().filter(|e| *e >= 0.0).ok_or_else(unknown);
        match text.split_once(':') {
            None => match text {
                "equal" => Ok(Predicate::Exact),
                "set" => Ok(Predicate::Set),
                "multiset" => Ok(Predicate::Multiset),
                "rows" => Ok(Predicate::Rows),
                _ => Err(unknown()),
            },
            Some(("within", e)) => bound(e).map(Predicate::Within),
            Some(("relative", e)) => bound(e).map(Predicate::Relative),
            Some(("ulps", n)) => n.parse().map(Predicate::Ulps).map_err(|_| unknown()),
            Some(("same", name)) if !name.is_empty() => Ok(Predicate::Callback(name.into())),
            Some(_) => Err(unknown()),
        }
    }
}

impl Serialize for Predicate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Predicate {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Predicate, D::Error> {
        let text = Box::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
