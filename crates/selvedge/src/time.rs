//! Time: [`Instant`] is virtual inside a check. Sleeps and timeouts move it, nothing else does.

use std::ops::{Add, AddAssign, Sub, SubAssign};

use crate::exec::fiber::with;

pub use std::time::{Duration, SystemTime, SystemTimeError, TryFromFloatSecsError, UNIX_EPOCH};

/// See [`std::time::Instant`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(Kind);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Kind {
    /// The virtual time since the beginning of the execution.
    Virtual(Duration),
    Std(std::time::Instant),
}

impl Instant {
    /// See [`std::time::Instant::now`].
    pub fn now() -> Instant {
        Instant(match with(|e| e.now) {
            Some(nanos) => Kind::Virtual(Duration::from_nanos(nanos)),
            None => Kind::Std(std::time::Instant::now()),
        })
    }

    /// See [`std::time::Instant::duration_since`]. Zero between an instant inside a check and one outside.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        match (self.0, earlier.0) {
            (Kind::Virtual(a), Kind::Virtual(b)) => a.saturating_sub(b),
            (Kind::Std(a), Kind::Std(b)) => a.duration_since(b),
            _ => Duration::ZERO,
        }
    }

    /// See [`std::time::Instant::checked_duration_since`].
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        match (self.0, earlier.0) {
            (Kind::Virtual(a), Kind::Virtual(b)) => a.checked_sub(b),
            (Kind::Std(a), Kind::Std(b)) => a.checked_duration_since(b),
            _ => None,
        }
    }

    /// See [`std::time::Instant::saturating_duration_since`].
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        self.checked_duration_since(earlier).unwrap_or_default()
    }

    /// See [`std::time::Instant::elapsed`].
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }

    /// See [`std::time::Instant::checked_add`].
    pub fn checked_add(&self, duration: Duration) -> Option<Instant> {
        Some(Instant(match self.0 {
            Kind::Virtual(at) => Kind::Virtual(at.checked_add(duration)?),
            Kind::Std(at) => Kind::Std(at.checked_add(duration)?),
        }))
    }

    /// See [`std::time::Instant::checked_sub`].
    pub fn checked_sub(&self, duration: Duration) -> Option<Instant> {
        Some(Instant(match self.0 {
            Kind::Virtual(at) => Kind::Virtual(at.checked_sub(duration)?),
            Kind::Std(at) => Kind::Std(at.checked_sub(duration)?),
        }))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        self.checked_add(duration).expect("overflow when adding duration to instant")
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, duration: Duration) -> Instant {
        self.checked_sub(duration).expect("overflow when subtracting duration from instant")
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}
