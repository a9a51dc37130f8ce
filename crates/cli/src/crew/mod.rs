//! Which processes share a campaign: one, the ranks of a job, parts that the user starts by hand, or the stores that
//! such parts have left.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`exchange`] | messages between ranks, by MPI |
//! | [`log`] | what a process tells, in a file |

mod exchange;
pub(crate) mod log;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use selvedge_engine::ranks::{Absence, Crew, Head, Member, Received, Recorded};
use selvedge_spmd::launcher;
use serde_json::json;

use self::exchange::Exchange;
use self::log::{FileLog, Header, Preamble, Record};
use crate::args::{Part, Sharing};
use crate::control::program::ControlledProgram;
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure};
use crate::messages::warning_label;
use crate::progress;

/// What this process is to its campaign.
enum Role {
    Alone,
    Part(Part, Option<PathBuf>),
    Rank(Exchange),
    Merge(Vec<Record>, bool),
}

/// The processes that share a campaign, as this one sees them.
pub(crate) struct Team {
    role: Role,
    crew: Crew,
    /// Where this process logs what it tells, if it does.
    log: Option<PathBuf>,
    /// Ranks that the head went on without.
    lost: BTreeSet<u32>,
    /// Shards of which results are missing.
    missing: BTreeSet<u64>,
}

/// The number of this process among ranks, as its launcher says.
fn launched() -> Option<(u32, u32)> {
    launcher::place(|name| std::env::var(name).ok())
}

/// Refuses to divide a campaign that cannot be divided.
pub(crate) fn refuse(sharing: &Sharing, what: &str) -> Result<(), Failure> {
    let how = match (sharing.shard, launched()) {
        (Some(_), _) => "--shard",
        (None, Some(_)) => "a launcher of MPI",
        (None, None) => return Ok(()),
    };
    Err(Failure::Usage(format!("{what} cannot be divided by {how}: run it in one process")))
}

impl Team {
    fn new(role: Role) -> Team {
        let (crew, lost, missing) = Default::default();
        Team { role, crew, log: None, lost, missing }
    }

    /// Joins the other processes, if there are any.
    pub(crate) fn join(sharing: &Sharing) -> Result<Team, Failure> {
        if let Some(part) = sharing.shard {
            return Ok(Team::new(Role::Part(part, sharing.store.clone())));
        }
        let Some((_, said)) = launched() else { return Ok(Team::new(Role::Alone)) };
        let exchange = Exchange::join()?;
        if exchange.size < 2 {
            anstream::eprintln!(
                "{}: the launcher says that there are {said} ranks, but MPI knows of one: this process runs everything",
                warning_label()
            );
            exchange.quit(true);
            exchange.wait(|| true);
            return Ok(Team::new(Role::Alone));
        }
        let crew = match exchange.rank {
            0 => Crew::Head(Box::new(Head::new(Box::new(exchange.clone()), 1..exchange.size))),
            _ => Crew::Member(Box::new(Member::new(Box::new(exchange.clone())))),
        };
        Ok(Team { crew, ..Team::new(Role::Rank(exchange)) })
    }

    /// The processes that have left these records.
    pub(crate) fn of(records: Vec<Record>, completes: bool) -> Team {
        let ranks = 1..=u32::try_from(records.len()).unwrap_or(u32::MAX);
        let all = ranks.clone().zip(&records);
        let messages: Vec<_> =
            all.flat_map(|(rank, r)| r.messages.iter().map(move |m| (rank, m.clone()))).collect();
        let link = Box::new(Recorded::new(messages));
        let crew = Crew::Head(Box::new(Head::afterwards(link, ranks, completes)));
        Team { crew, ..Team::new(Role::Merge(records, completes)) }
    }

    /// Whether another process reports.
    pub(crate) fn is_member(&self) -> bool {
        match &self.role {
            Role::Alone | Role::Merge(..) => false,
            Role::Part(..) => true,
            Role::Rank(exchange) => exchange.rank > 0,
        }
    }

    /// Whether this is one of several processes that share the cores of their machines.
    pub(crate) fn is_rank(&self) -> bool {
        matches!(self.role, Role::Rank(_))
    }

    /// The variables that the launcher has set for this process alone. The program must not see them: it would do
    /// something else in each rank.
    pub(crate) fn hidden(&self) -> Vec<OsString> {
        match &self.role {
            Role::Rank(_) => {
                let all = std::env::vars_os().map(|(name, _)| name);
                all.filter(|name| launcher::is_of_launcher(name)).collect()
            }
            Role::Alone | Role::Part(..) | Role::Merge(..) => Vec::new(),
        }
    }

    /// What the campaign begins with. Only a process that reports makes it; the others are told.
    pub(crate) fn preamble(
        &mut self,
        program: &ControlledProgram,
        deadline: &Deadline,
        make: impl FnOnce() -> Result<Preamble, Failure>,
    ) -> Result<Preamble, Failure> {
        let preamble = match (&self.role, &mut self.crew) {
            (Role::Merge(records, _), _) => {
                return Ok(records.first().map(|r| r.header.preamble.clone()).unwrap_or_default());
            }
            (Role::Part(..), _) => Preamble::default(),
            (_, Crew::Member(member)) => {
                let word = member.word(|| deadline.stopped().is_some());
                let word = word.ok_or(Failure::NoHead)?;
                serde_json::from_str(&word).map_err(|_| Failure::NoHead)?
            }
            (_, Crew::Alone) => return make(),
            (_, Crew::Head(head)) => {
                let preamble = make()?;
                let word = serde_json::to_string(&preamble).expect("names and numbers serialise");
                head.begin_with(&word);
                preamble
            }
        };
        self.begin_log(program, &preamble)?;
        Ok(preamble)
    }

    fn begin_log(
        &mut self,
        program: &ControlledProgram,
        preamble: &Preamble,
    ) -> Result<(), Failure> {
        let (part, chosen) = match &self.role {
            Role::Alone | Role::Merge(..) => return Ok(()),
            Role::Part(part, store) => (*part, store.clone()),
            Role::Rank(exchange) => (Part { number: exchange.rank, of: exchange.size }, None),
        };
        let by_hand = matches!(self.role, Role::Part(..));
        let directory = chosen.unwrap_or_else(|| log::place(program, part));
        let header = Header::new(program, part, by_hand, preamble);
        let file = Box::new(FileLog::create(&directory, &header)?);
        self.crew = match std::mem::take(&mut self.crew) {
            Crew::Alone => {
                let part = (u64::from(part.number), u64::from(part.of));
                Crew::Member(Box::new(Member::by_hand(part, file)))
            }
            Crew::Head(head) => Crew::Head(Box::new(head.logged(file))),
            Crew::Member(member) => Crew::Member(Box::new(member.logged(file))),
        };
        self.log = Some(directory);
        Ok(())
    }

    /// The processes, for a campaign to share.
    pub(crate) fn crew(&mut self) -> Crew {
        std::mem::take(&mut self.crew)
    }

    /// The searches of a campaign are over.
    pub(crate) fn searched(&mut self, crew: Crew) {
        self.crew = crew;
        let Crew::Head(head) = &mut self.crew else { return };
        head.end();
        self.missing = head.missing().clone();
        for (rank, absence) in head.absences() {
            self.lost.insert(rank);
            let (who, why) = match (&self.role, absence) {
                // That a record ends is no news.
                (Role::Merge(..), Absence::Silent) => continue,
                (Role::Merge(records, _), Absence::Other) => {
                    let path = records[rank as usize - 1].path.display().to_string();
                    (path, "the program did something else there, so it is of no use".to_owned())
                }
                (Role::Merge(records, _), Absence::Lost(why)) => {
                    (records[rank as usize - 1].path.display().to_string(), why)
                }
                (_, Absence::Silent) => (format!("rank {rank}"), "is gone".to_owned()),
                (_, Absence::Lost(why)) => (format!("rank {rank}"), why),
                (_, Absence::Other) => {
                    (format!("rank {rank}"), "observed something else of the program".to_owned())
                }
            };
            let then = match &self.role {
                Role::Merge(_, false) => "",
                _ => "; its executions were run again",
            };
            anstream::eprintln!("{}: {who}: {why}{then}", warning_label());
        }
        let Received { messages, bytes, results } = head.received();
        progress::tell(&json!({
            "received": { "messages": messages, "bytes": bytes, "results": results }
        }));
    }

    /// The shards of which results are missing.
    pub(crate) fn missing(&self) -> &BTreeSet<u64> {
        &self.missing
    }

    /// A process that reports has reported; what the processes have logged is not needed any more if that is `all`.
    pub(crate) fn end(&mut self, all: bool) {
        if let Role::Rank(exchange) = &self.role {
            exchange.quit(self.lost.is_empty());
            exchange.wait(|| true);
        }
        if all {
            self.forget();
        }
    }

    fn forget(&self) {
        if let Some(directory) = &self.log {
            log::remove(directory);
        }
    }

    /// The work of a process that does not report.
    pub(crate) fn serve(
        &mut self,
        work: impl FnOnce(&mut Team) -> Result<Deadline, Failure>,
    ) -> Result<Exit, Failure> {
        let served = work(self);
        let Role::Rank(exchange) = &self.role else {
            let signal = served?.signal();
            return Ok(if signal.is_some() { Exit::Interrupted } else { Exit::Clean });
        };
        let in_order = match &served {
            Ok(deadline) => exchange.wait(|| !deadline.is_over() && deadline.signal().is_none()),
            // The head says what went wrong, once for all ranks.
            Err(failure) => {
                if let Crew::Member(member) = &mut self.crew {
                    member.lost(&failure.to_string());
                }
                exchange.wait(|| true)
            }
        };
        if in_order {
            self.forget();
        }
        Ok(Exit::Clean)
    }
}
