//! When two values of different executions count as the same.
//!
//! [`ensure`](crate::ensure) and [`assume`](crate::assume) use the type's own `==`; these are for
//! [`ensure_by`](crate::ensure_by) and [`assume_by`](crate::assume_by). A predicate must be reflexive and symmetric;
//! it need not be transitive. Two NaNs are the same.

use std::fmt;
use std::marker::PhantomData;

#[cfg(any(feature = "check", selvedge_native))]
use std::panic::Location;

#[cfg(any(feature = "check", selvedge_native))]
use crate::values::{Rule, shared};

use crate::Value;

/// When two values count as the same. The functions of [`same`](crate::same) make them.
pub trait Same<T: Value>: 'static {
    #[doc(hidden)]
    #[cfg(any(feature = "check", selvedge_native))]
    fn rule(self, here: &'static Location<'static>) -> Rule;
}

/// A predicate that needs no code of the program.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(any(feature = "check", selvedge_native)), allow(dead_code))]
pub struct Given(Which);

#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(any(feature = "check", selvedge_native)), allow(dead_code))]
enum Which {
    Within(f64),
    Relative(f64),
    Ulps(u64),
    Set,
    Multiset,
    Rows,
}

impl<T: Value> Same<T> for Given {
    #[cfg(any(feature = "check", selvedge_native))]
    fn rule(self, _: &'static Location<'static>) -> Rule {
        use selvedge_specs::Predicate;
        Rule::Predicate(match self.0 {
            Which::Within(e) => Predicate::Within(e),
            Which::Relative(e) => Predicate::Relative(e),
            Which::Ulps(n) => Predicate::Ulps(n),
            Which::Set => Predicate::Set,
            Which::Multiset => Predicate::Multiset,
            Which::Rows => Predicate::Rows,
        })
    }
}

/// Numbers that differ by at most `e`, wherever they stand in the values; everything else exactly.
///
/// # Panics
/// If `e` is negative or not a number.
pub fn within(e: f64) -> Given {
    assert!(e >= 0.0, "`within({e})`: the bound must be a number that is not negative");
    Given(Which::Within(e))
}

/// Numbers that differ by at most the part `e` of the larger one; everything else exactly.
///
/// # Panics
/// If `e` is negative or not a number.
pub fn relative(e: f64) -> Given {
    assert!(e >= 0.0, "`relative({e})`: the bound must be a number that is not negative");
    Given(Which::Relative(e))
}

/// Floating-point numbers with at most `n` steps from one to the other; everything else exactly.
pub fn ulps(n: u64) -> Given {
    Given(Which::Ulps(n))
}

/// Sequences with the same elements, in any order and however often.
pub fn set() -> Given {
    Given(Which::Set)
}

/// Sequences with the same elements equally often, in any order.
pub fn multiset() -> Given {
    Given(Which::Multiset)
}

/// Sequences of sequences: row by row, each with the same elements equally often, in any order.
pub fn rows() -> Given {
    Given(Which::Rows)
}

/// A part of the value that must be equal. See [`on`].
pub struct On<T, P, F> {
    #[cfg_attr(not(any(feature = "check", selvedge_native)), allow(dead_code))]
    part: F,
    of: PhantomData<fn(&T) -> P>,
}

impl<T, P, F> fmt::Debug for On<T, P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("On")
    }
}

/// Values for which `part` gives equal results: `same::on(|route: &Route| route.length)`.
pub fn on<T: Value, P: PartialEq, F: Fn(&T) -> P + Send + Sync + 'static>(part: F) -> On<T, P, F> {
    On { part, of: PhantomData }
}

impl<T, P, F> Same<T> for On<T, P, F>
where
    T: Value,
    P: PartialEq + 'static,
    F: Fn(&T) -> P + Send + Sync + 'static,
{
    #[cfg(any(feature = "check", selvedge_native))]
    fn rule(self, here: &'static Location<'static>) -> Rule {
        let part = self.part;
        shared(here, move |a: &T, b: &T| part(a) == part(b))
    }
}

/// A function of the program. See [`by`].
pub struct By<T, F> {
    #[cfg_attr(not(any(feature = "check", selvedge_native)), allow(dead_code))]
    same: F,
    of: PhantomData<fn(&T)>,
}

impl<T, F> fmt::Debug for By<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("By")
    }
}

/// Values that `same` takes for the same. It must be reflexive and symmetric, and must not use threads or locks.
pub fn by<T: Value, F: Fn(&T, &T) -> bool + Send + Sync + 'static>(same: F) -> By<T, F> {
    By { same, of: PhantomData }
}

impl<T: Value, F: Fn(&T, &T) -> bool + Send + Sync + 'static> Same<T> for By<T, F> {
    #[cfg(any(feature = "check", selvedge_native))]
    fn rule(self, here: &'static Location<'static>) -> Rule {
        shared(here, self.same)
    }
}
