//! Schedules: which thread ran, at which points. What replay needs, as a short string.
//!
//! A schedule lists *segments*: a thread runs for some steps, then another does. Only points at which
//! more than one thread could run count as steps, so a schedule is as long as the choices that were
//! made, not as the execution. A segment that ended although its thread could have gone on (a
//! preemption) also has the [`Fingerprint`] of the step that its thread was about to take. With it,
//! replay recognises the point in a program that was edited elsewhere, and says where it could not.
//!
//! The text form is `1/SEED/SEGMENT.SEGMENT…`: the version of the format (followed by `r` if releases of
//! locks were steps), the seed of the program's own random numbers in hexadecimal, and for each segment
//! `THREAD`, `xSTEPS` unless it is one step, and `:FINGERPRINT` if it was preempted. If the program asked for
//! numbers, `/NUMBER.NUMBER…` follows. Nothing in it needs quoting in a shell.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::{Site, ThreadId};

/// The only version of the text form so far.
const VERSION: &str = "1";
/// Follows the version if releases were steps.
const RELEASES: &str = "r";

/// A few bits that tell one kind of step at one place from most others. Equal steps have equal
/// fingerprints in every run; it does not depend on line numbers, ids or addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fingerprint(u16);

impl Fingerprint {
    const BITS: u32 = 12;

    /// Of a step of the given kind at a place whose [`landmark`] is given.
    pub fn new(landmark: u16, kind: u8) -> Fingerprint {
        let mixed = (u32::from(landmark) << 8 | u32::from(kind)).wrapping_mul(0x9e37_79b1);
        Fingerprint((mixed >> (32 - Fingerprint::BITS)) as u16)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03x}", self.0)
    }
}

/// A hash of the place that survives edits elsewhere in the file: of its file name, function and
/// column, not its directory and line.
pub fn landmark(site: &Site) -> u16 {
    let mut hash: u32 = 0x811c_9dc5;
    let mut add = |byte: u8| hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    match site {
        Site::Label(text) => text.bytes().for_each(&mut add),
        Site::Source(frame, _) => {
            let file = frame.file.rsplit(['/', '\\']).next().unwrap_or("");
            file.bytes().chain(frame.function.bytes()).for_each(&mut add);
            frame.column.to_le_bytes().into_iter().for_each(&mut add);
        }
    }
    (hash ^ hash >> 16) as u16
}

/// A thread runs for some steps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Segment {
    /// The thread that runs.
    pub thread: ThreadId,
    /// For how many steps at which another thread could have run instead.
    // invariant: at least 1.
    pub steps: u32,
    /// The step that it was about to take when it was preempted; nothing if it blocked or ended.
    pub until: Option<Fingerprint>,
}

/// Who ran, at which points, in one execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Schedule {
    /// Seed of the random numbers that the program drew.
    pub seed: u64,
    /// Whether to release a lock was a step. An executor that makes it one only where a thread could
    /// notice has to know in advance.
    pub releases: bool,
    /// Who ran in turn.
    pub segments: Vec<Segment>,
    /// The numbers that were chosen for the program, in the order in which it asked.
    pub numbers: Vec<u32>,
}

impl Schedule {
    /// No choice made yet.
    pub fn new(seed: u64) -> Schedule {
        Schedule { seed, ..Schedule::default() }
    }

    /// `thread` takes a step. If another thread took the one before and could have gone on, `preempted`
    /// is what that one was about to do.
    pub fn push(&mut self, thread: ThreadId, preempted: Option<Fingerprint>) {
        match self.segments.last_mut() {
            Some(last) if last.thread == thread => last.steps += 1,
            last => {
                if let Some(last) = last {
                    last.until = preempted;
                }
                self.segments.push(Segment { thread, steps: 1, until: None });
            }
        }
    }

    /// How many times a thread that could have gone on was stopped.
    pub fn preemptions(&self) -> usize {
        self.segments.iter().filter(|s| s.until.is_some()).count()
    }

    /// How many choices were made.
    pub fn len(&self) -> usize {
        self.segments.iter().map(|s| s.steps as usize).sum()
    }

    /// Whether no choice was made.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let releases = if self.releases { RELEASES } else { "" };
        write!(f, "{VERSION}{releases}/{:x}/", self.seed)?;
        for (i, segment) in self.segments.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            write!(f, "{}", segment.thread.0)?;
            if segment.steps != 1 {
                write!(f, "x{}", segment.steps)?;
            }
            if let Some(until) = segment.until {
                write!(f, ":{until}")?;
            }
        }
        for (i, number) in self.numbers.iter().enumerate() {
            write!(f, "{}{number}", if i == 0 { '/' } else { '.' })?;
        }
        Ok(())
    }
}

/// Why a text is not a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ScheduleError {
    /// It was written by another version of Selvedge.
    #[error("schedule version `{0}` is unknown; this selvedge reads `{VERSION}`")]
    Version(String),
    /// It lacks one of its three parts, as when it was cut off while being copied.
    #[error("not a schedule: it must have the form VERSION/SEED/SEGMENTS")]
    Form,
    /// The seed is not a hexadecimal number.
    #[error("the seed `{0}` of the schedule is not a hexadecimal number")]
    Seed(String),
    /// What was chosen for the program is not a number.
    #[error("`{0}`, which was chosen for the program, is not a number")]
    Number(String),
    /// A segment is not of the form `THREAD[xSTEPS][:FINGERPRINT]`.
    #[error(
        "segment {index} of the schedule, `{text}`, does not have the form THREAD[xSTEPS][:FINGERPRINT]"
    )]
    Segment {
        /// Which, from 1.
        index: usize,
        /// What stands there.
        text: String,
    },
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let mut parts = text.trim().splitn(4, '/');
        let version = parts.next().unwrap_or("");
        let (version, releases) = match version.strip_suffix(RELEASES) {
            Some(version) => (version, true),
            None => (version, false),
        };
        if version != VERSION {
            return Err(ScheduleError::Version(version.to_owned()));
        }
        let (Some(seed), Some(segments)) = (parts.next(), parts.next()) else {
            return Err(ScheduleError::Form);
        };
        let seed =
            u64::from_str_radix(seed, 16).map_err(|_| ScheduleError::Seed(seed.to_owned()))?;
        let segments = segments
            .split('.')
            .filter(|s| !s.is_empty())
            .enumerate()
            .map(|(i, text)| {
                segment(text).ok_or(ScheduleError::Segment { index: i + 1, text: text.to_owned() })
            })
            .collect::<Result<_, _>>()?;
        let numbers = parts
            .next()
            .into_iter()
            .flat_map(|numbers| numbers.split('.'))
            .map(|n| n.parse().map_err(|_| ScheduleError::Number(n.to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Schedule { seed, releases, segments, numbers })
    }
}

fn segment(text: &str) -> Option<Segment> {
    let (run, until) = match text.split_once(':') {
        Some((run, print)) => (run, Some(u16::from_str_radix(print, 16).ok()?)),
        None => (text, None),
    };
    let (thread, steps) = match run.split_once('x') {
        Some((thread, steps)) => (thread, steps.parse().ok().filter(|&n| n > 0)?),
        None => (run, 1),
    };
    let until = until.filter(|&u| u < 1 << Fingerprint::BITS).map(Fingerprint);
    Some(Segment { thread: ThreadId(thread.parse().ok()?), steps, until })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_round_trips() {
        let mut schedule = Schedule::new(0x5eed);
        for thread in [0, 0, 1, 1, 1, 0, 2] {
            schedule.push(ThreadId(thread), (thread == 1).then(|| Fingerprint::new(77, 3)));
        }
        let text = schedule.to_string();
        assert_eq!(text, format!("1/5eed/0x2:{}.1x3.0.2", Fingerprint::new(77, 3)));
        assert_eq!(text.parse(), Ok(schedule.clone()));
        assert_eq!((schedule.len(), schedule.preemptions()), (7, 1));
        assert_eq!("1/0/".parse(), Ok(Schedule::new(0)));
        schedule.numbers = vec![2, 0, 17];
        assert!(schedule.to_string().ends_with(".2/2.0.17"));
        assert_eq!(schedule.to_string().parse(), Ok(schedule.clone()));
        schedule.releases = true;
        assert!(schedule.to_string().starts_with("1r/5eed/"));
        assert_eq!(schedule.to_string().parse(), Ok(schedule));
    }

    #[test]
    fn what_is_wrong_with_a_text_is_said() {
        let error = |text: &str| text.parse::<Schedule>().unwrap_err().to_string();
        assert!(error("2/0/1").contains("version `2`"));
        assert!(error("1/0").contains("VERSION/SEED/SEGMENTS"));
        assert!(error("1/zz/1").contains("`zz`"));
        assert!(error("1/0/1/2.x").contains("`x`"));
        for bad in ["1x0", "x3", "1:zzz", "-1", "1x"] {
            assert!(
                error(&format!("1/0/0.{bad}"))
                    .contains(&format!("segment 2 of the schedule, `{bad}`"))
            );
        }
    }

    #[test]
    fn a_landmark_does_not_move_with_the_lines_above_it() {
        let at = |text: &str| landmark(&Site::parse(text));
        assert_eq!(at("src/a.rs:10:5"), at("/home/me/src/a.rs:12:5"));
        assert_ne!(at("src/a.rs:10:5"), at("src/a.rs:10:6"));
        assert_ne!(at("src/a.rs:10:5"), at("src/b.rs:10:5"));
    }
}
