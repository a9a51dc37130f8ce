//! What the executions of a program have taught, so that the next `selvedge test` of it goes on from there.

use rusqlite::{OptionalExtension, params};
use selvedge_engine::Past;
use selvedge_explore::Flip;
use selvedge_model::{FindingId, Kind, Site, Status, Verdict};
use selvedge_report::Case;
use serde::{Deserialize, Serialize};

use super::{Setup, Store, StoreError};

pub(super) const TABLES: &str = "
    CREATE TABLE learnt (program TEXT PRIMARY KEY, build TEXT NOT NULL, body TEXT NOT NULL) WITHOUT ROWID;";

/// The most pairs of a read and a write that are stored.
const PAIRS: usize = 20_000;
/// What failed in so many runs before is looked for again.
const RUNS: usize = 20;
/// The most findings that are looked for again.
const AGAIN: usize = 8;

/// What tests of one build have taught.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "Body", from = "Body")]
pub(crate) struct Learnt {
    /// How many executions there were.
    pub(crate) executions: u64,
    /// What they told of pairs of a read and a write.
    pub(crate) flips: Vec<Flip<Site>>,
    /// The attempts at each prediction.
    pub(crate) attempts: Vec<(FindingId, Past)>,
}

/// How it is stored.
#[derive(Serialize, Deserialize)]
struct Body {
    executions: u64,
    pairs: Vec<Pair>,
    attempts: Vec<Attempts>,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    read: Site,
    write: Option<Site>,
    began: Option<Site>,
    seen: bool,
    tried: u32,
    times: u32,
}

#[derive(Serialize, Deserialize)]
struct Attempts {
    id: FindingId,
    made: u64,
    confirmed: Option<u64>,
}

impl From<Body> for Learnt {
    fn from(body: Body) -> Learnt {
        let flip = |p: Pair| {
            let Pair { read, write, began, seen, tried, times } = p;
            Flip { read, write, began, seen, tried, times }
        };
        let past = |a: Attempts| (a.id, Past { made: a.made, confirmed: a.confirmed });
        Learnt {
            executions: body.executions,
            flips: body.pairs.into_iter().map(flip).collect(),
            attempts: body.attempts.into_iter().map(past).collect(),
        }
    }
}

impl From<Learnt> for Body {
    fn from(learnt: Learnt) -> Body {
        Body::from(&learnt)
    }
}

impl From<&Learnt> for Body {
    fn from(learnt: &Learnt) -> Body {
        let pair = |flip: &Flip<Site>| {
            let Flip { read, write, began, seen, tried, times } = flip.clone();
            Pair { read, write, began, seen, tried, times }
        };
        let attempts = |&(id, Past { made, confirmed }): &_| Attempts { id, made, confirmed };
        Body {
            executions: learnt.executions,
            pairs: learnt.flips.iter().take(PAIRS).map(pair).collect(),
            attempts: learnt.attempts.iter().map(attempts).collect(),
        }
    }
}

/// What makes two runs those of one program: everything but the build and the patience.
fn key(setup: &Setup) -> String {
    let key = Setup { build: String::new(), patience: 0, ..setup.clone() };
    serde_json::to_string(&key).expect("strings and numbers serialise")
}

impl Store {
    /// What earlier tests of this build of the program have taught; nothing if there were none.
    pub(crate) fn learnt(&self, setup: &Setup) -> Result<Learnt, StoreError> {
        let body: Option<String> = self
            .connection
            .query_row(
                "SELECT body FROM learnt WHERE program = ? AND build = ?",
                params![key(setup), setup.build],
                |row| row.get(0),
            )
            .optional()
            .map_err(|e| StoreError::new(&self.path, e))?;
        let body: Option<Body> = body.and_then(|body| serde_json::from_str(&body).ok());
        Ok(body.map(Learnt::from).unwrap_or_default())
    }

    /// Stores what tests of this build have taught, instead of what was stored of this program.
    pub(crate) fn learn(&mut self, setup: &Setup, learnt: &Learnt) -> Result<(), StoreError> {
        let body = serde_json::to_string(&Body::from(learnt)).expect("strings and numbers");
        self.connection
            .execute(
                "INSERT OR REPLACE INTO learnt (program, build, body) VALUES (?, ?, ?)",
                params![key(setup), setup.build, body],
            )
            .map_err(|e| StoreError::new(&self.path, e))?;
        Ok(())
    }

    /// What failed in the last runs of any build of the program and has a schedule, the last first.
    pub(crate) fn failed_before(&self, setup: &Setup) -> Result<Vec<Case>, StoreError> {
        let wanted = key(setup);
        let runs = self.runs()?;
        let is_same = |run: &&super::Run| run.setup.as_ref().is_some_and(|s| key(s) == wanted);
        let mut cases: Vec<Case> = Vec::new();
        for run in runs.iter().filter(is_same).take(RUNS) {
            for case in self.report(run)?.cases {
                let schedule = case.control.as_ref().and_then(|c| c.schedule.as_ref());
                let is_known = cases.iter().any(|c| c.id == case.id);
                if schedule.is_some() && does_harm(&case) && !is_known && cases.len() < AGAIN {
                    cases.push(case);
                }
            }
        }
        Ok(cases)
    }
}

/// Whether the schedule of a case makes the program fail.
fn does_harm(case: &Case) -> bool {
    let fails = matches!(
        case.kind,
        Kind::Assertion | Kind::Crash | Kind::Hang | Kind::Deadlock | Kind::Misuse
    );
    case.status >= Status::Confirmed && (fails || case.verdict == Some(Verdict::Harmful))
}
