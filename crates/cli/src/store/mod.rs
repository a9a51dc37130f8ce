//! The store: what runs found, in `.selvedge/` of the user's project.
//!
//! The store is one SQLite file. Each finding is written in its own transaction when it is made, so all
//! earlier findings stay readable if the program or the tool crashes or is killed.
//!
//! Changing the schema: raise [`VERSION`], and add to [`migrate`] the step from the version before;
//! never edit a step that was released. A store of a newer version is refused.

mod journal;
mod learnt;
mod place;
mod promises;
mod setup;
pub(crate) mod states;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use selvedge_report::{Case, Report, Stats, old};
use thiserror::Error;

pub(crate) use journal::{Journal, open};
pub(crate) use learnt::Learnt;
pub(crate) use place::directory;
pub(crate) use setup::{Ensured, Setup};

/// Version of the schema.
const VERSION: u32 = 6;
const FILE: &str = "store.db";
/// The number of runs to keep. The oldest are deleted when a new one begins.
const KEPT_RUNS: i64 = 1000;
/// Two runs of one project may write at the same time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why something could not be stored or read.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    #[error("{}: there is no store; `selvedge run -- PROGRAM` creates one", .0.display())]
    None(PathBuf),
    #[error(
        "{}: the store has version {found}, but this build reads versions up to {VERSION}; use a newer selvedge, or delete the store",
        path.display()
    )]
    Newer { path: PathBuf, found: u32 },
    #[error("{}: the disk is full", .0.display())]
    Full(PathBuf),
    #[error("{}: cannot create the directory: {error}", path.display())]
    Directory { path: PathBuf, error: std::io::Error },
    #[error("{}: permission denied, or the file system is read-only", .0.display())]
    ReadOnly(PathBuf),
    #[error("{}: this is not a store, or it is damaged: {error}; delete it to start a new one", path.display())]
    Damaged { path: PathBuf, error: rusqlite::Error },
    #[error("{}: {error}", path.display())]
    Other { path: PathBuf, error: rusqlite::Error },
    #[error("there is no run {0}; `selvedge report --runs` lists the runs")]
    NoRun(RunId),
    #[error("there are no runs yet; start with `selvedge run -- PROGRAM`")]
    NoRuns,
}

impl StoreError {
    fn new(path: &Path, error: rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full(path),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                StoreError::ReadOnly(path)
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StoreError::Damaged { path, error }
            }
            _ => StoreError::Other { path, error },
        }
    }
}

/// Number of a run in its store.
pub(crate) type RunId = i64;

/// What is known of a run besides its findings.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Seconds since 1970.
    pub(crate) started: u64,
    /// How the program was observed.
    pub(crate) mode: String,
    /// What could be observed, in words.
    pub(crate) instrumented: String,
    /// How the program ended; `None` while it runs, or if the tool was killed before.
    pub(crate) ending: Option<String>,
    pub(crate) stats: Stats,
    /// What is needed to run the program again, if it was controlled.
    pub(crate) setup: Option<Setup>,
}

/// An open store.
pub(crate) struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens the store in `directory`, and creates it if there is none.
    pub(crate) fn create(directory: &Path) -> Result<Store, StoreError> {
        let path = directory.join(FILE);
        std::fs::create_dir_all(directory)
            .map_err(|error| StoreError::Directory { path: directory.to_owned(), error })?;
        let connection = Connection::open(&path).map_err(|e| StoreError::new(&path, e))?;
        let mut store = Store { path, connection };
        store.refuse_newer()?;
        store.prepare().map_err(|e| StoreError::new(&store.path, e))?;
        Ok(store)
    }

    /// Opens the store in `directory` to read from it.
    pub(crate) fn open(directory: &Path) -> Result<Store, StoreError> {
        let path = directory.join(FILE);
        if !path.exists() {
            return Err(StoreError::None(directory.to_owned()));
        }
        let failed = |e| StoreError::new(&path, e);
        // A killed run may have left a write-ahead log, and opening the store then writes. If that is not
        // allowed, the file is read without the log.
        let writable = Connection::open_with_flags(
            &path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        );
        let connection = match writable.and_then(readable) {
            Ok(connection) => connection,
            Err(_) => Connection::open_with_flags(
                format!("file:{}?immutable=1", escaped(&path)),
                OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
            )
            .and_then(readable)
            .map_err(failed)?,
        };
        let mut store = Store { path: path.clone(), connection };
        store.refuse_newer()?;
        // A store that cannot be written is read in its old version.
        let _ = migrate(&mut store.connection);
        Ok(store)
    }

    fn refuse_newer(&self) -> Result<(), StoreError> {
        let found = version(&self.connection).map_err(|e| StoreError::new(&self.path, e))?;
        if found > VERSION {
            return Err(StoreError::Newer { path: self.path.clone(), found });
        }
        Ok(())
    }

    fn prepare(&mut self) -> rusqlite::Result<()> {
        self.connection.busy_timeout(PATIENCE)?;
        self.connection.pragma_update(None, "journal_mode", "wal")?;
        self.connection.pragma_update(None, "synchronous", "normal")?;
        self.connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut self.connection)
    }

    /// Adds a run.
    pub(crate) fn begin(
        &mut self,
        command: &[String],
        mode: &str,
        instrumented: &str,
    ) -> Result<RunId, StoreError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let command = serde_json::to_string(command).expect("strings serialise");
        let insert = || {
            self.connection.execute(
                "INSERT INTO runs (command, started, mode, instrumented) VALUES (?, ?, ?, ?)",
                params![command, now as i64, mode, instrumented],
            )?;
            let id = self.connection.last_insert_rowid();
            self.connection.execute("DELETE FROM runs WHERE id <= ?", [id - KEPT_RUNS])?;
            Ok(id)
        };
        insert().map_err(|e| StoreError::new(&self.path, e))
    }

    /// Stores what is needed to run the program of a run again.
    pub(crate) fn remember(&mut self, run: RunId, setup: &Setup) -> Result<(), StoreError> {
        let setup = serde_json::to_string(setup).expect("strings and numbers serialise");
        self.connection
            .execute("UPDATE runs SET setup = ? WHERE id = ?", params![setup, run])
            .map_err(|e| StoreError::new(&self.path, e))?;
        Ok(())
    }

    /// Stores a finding of a run, or replaces it.
    pub(crate) fn add(&mut self, run: RunId, finding: &Case) -> Result<(), StoreError> {
        let body = serde_json::to_string(finding).expect("strings and numbers serialise");
        let control = finding.control.as_ref();
        self.connection
            .execute(
                "INSERT INTO findings
                 (run, id, kind, status, verdict, schedule, attempts, after, body)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                 ON CONFLICT (run, id) DO UPDATE
                 SET status = excluded.status, verdict = excluded.verdict,
                     schedule = excluded.schedule, attempts = excluded.attempts,
                     after = excluded.after, body = excluded.body",
                params![
                    run,
                    finding.id.to_string(),
                    finding.kind.name(),
                    finding.status.name(),
                    finding.verdict.map(selvedge_model::Verdict::name),
                    control.and_then(|c| c.schedule.as_deref()),
                    control.map(|c| c.attempts as i64),
                    control.and_then(|c| c.after).map(|n| n as i64),
                    body
                ],
            )
            .map_err(|e| StoreError::new(&self.path, e))?;
        Ok(())
    }

    /// Stores how a run ended.
    pub(crate) fn finish(
        &mut self,
        run: RunId,
        ending: &str,
        stats: &Stats,
    ) -> Result<(), StoreError> {
        let stats = serde_json::to_string(stats).expect("strings and numbers serialise");
        self.connection
            .execute(
                "UPDATE runs SET ending = ?, stats = ? WHERE id = ?",
                params![ending, stats, run],
            )
            .map_err(|e| StoreError::new(&self.path, e))?;
        Ok(())
    }

    /// All runs, the last one first.
    pub(crate) fn runs(&self) -> Result<Vec<Run>, StoreError> {
        self.select_runs("ORDER BY id DESC", []).map_err(|e| StoreError::new(&self.path, e))
    }

    /// A run, or the last one.
    pub(crate) fn run(&self, id: Option<RunId>) -> Result<Run, StoreError> {
        let found = match id {
            Some(id) => self.select_runs("WHERE id = ?", [id]),
            None => self.select_runs("ORDER BY id DESC LIMIT 1", []),
        };
        let first = found.map_err(|e| StoreError::new(&self.path, e))?.into_iter().next();
        first.ok_or(id.map_or(StoreError::NoRuns, StoreError::NoRun))
    }

    fn select_runs(
        &self,
        which: &str,
        params: impl rusqlite::Params,
    ) -> rusqlite::Result<Vec<Run>> {
        let setup = if version(&self.connection)? >= 2 { "setup" } else { "NULL" };
        let columns = format!("id, command, started, mode, instrumented, ending, stats, {setup}");
        let mut statement =
            self.connection.prepare(&format!("SELECT {columns} FROM runs {which}"))?;
        let runs = statement.query_map(params, |row| {
            Ok(Run {
                id: row.get(0)?,
                command: serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default(),
                started: row.get::<_, i64>(2)?.unsigned_abs(),
                mode: row.get(3)?,
                instrumented: row.get(4)?,
                ending: row.get(5)?,
                stats: row
                    .get::<_, Option<String>>(6)?
                    .and_then(|s| serde_json::from_str(&s).ok())
                    .unwrap_or_default(),
                setup: row.get::<_, Option<String>>(7)?.and_then(|s| serde_json::from_str(&s).ok()),
            })
        })?;
        runs.collect()
    }

    /// The findings of a run, in the order in which they were made.
    pub(crate) fn report(&self, run: &Run) -> Result<Report, StoreError> {
        let failed = |e| StoreError::new(&self.path, e);
        let mut statement = self
            .connection
            .prepare("SELECT body FROM findings WHERE run = ? ORDER BY sequence")
            .map_err(failed)?;
        let bodies =
            statement.query_map([run.id], |row| row.get::<_, String>(0)).map_err(failed)?;
        let mut report = Report { stats: run.stats.clone(), ..Report::default() };
        for body in bodies {
            report.add(self.case(&body.map_err(failed)?)?);
        }
        Ok(report)
    }

    /// Reads a stored case, of this version or the previous one.
    fn case(&self, body: &str) -> Result<Case, StoreError> {
        serde_json::from_str(body)
            .or_else(|e| serde_json::from_str::<old::Finding>(body).map(Case::from).map_err(|_| e))
            .map_err(|e| {
                let error = rusqlite::Error::ToSqlConversionFailure(Box::new(e));
                StoreError::Damaged { path: self.path.clone(), error }
            })
    }
}

/// A case and its run.
pub(crate) type Stored = (RunId, Case);

impl Store {
    /// The findings whose id has this prefix, each from the last run with a schedule for it, or else from
    /// the last run that found it. If `run` is given, only findings of that run.
    pub(crate) fn find(&self, prefix: &str, run: Option<RunId>) -> Result<Vec<Stored>, StoreError> {
        if let Some(id) = run {
            self.run(Some(id))?;
        }
        let select = || {
            // A store of the first version that cannot be written has no schedules.
            let without = if version(&self.connection)? >= 2 { "schedule IS NULL" } else { "1" };
            let mut best = self.connection.prepare(&format!(
                "SELECT sequence, id, run FROM findings
                 WHERE id >= ?1 AND id < ?1 || char(0x10ffff) AND (?2 IS NULL OR run = ?2)
                 ORDER BY id, {without}, run DESC"
            ))?;
            let mut body =
                self.connection.prepare("SELECT body FROM findings WHERE sequence = ?")?;
            let mut rows = best.query(params![prefix, run])?;
            let mut found: Vec<(RunId, String)> = Vec::new();
            let mut last: Option<String> = None;
            while let Some(row) = rows.next()? {
                let id: String = row.get(1)?;
                if last.as_ref() != Some(&id) {
                    let text = body.query_row([row.get::<_, i64>(0)?], |row| row.get(0))?;
                    found.push((row.get(2)?, text));
                    last = Some(id);
                }
            }
            Ok(found)
        };
        let found = select().map_err(|e| StoreError::new(&self.path, e))?;
        found.into_iter().map(|(run, body)| Ok((run, self.case(&body)?))).collect()
    }
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings an older schema, or an empty file, up to date; all or nothing.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? == VERSION {
        return Ok(());
    }
    let change = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    if version(&change)? < 1 {
        change.execute_batch(
            "CREATE TABLE runs (
                 id INTEGER PRIMARY KEY AUTOINCREMENT,
                 command TEXT NOT NULL,
                 started INTEGER NOT NULL,
                 mode TEXT NOT NULL,
                 instrumented TEXT NOT NULL,
                 ending TEXT,
                 stats TEXT
             );
             CREATE TABLE findings (
                 sequence INTEGER PRIMARY KEY,
                 run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
                 id TEXT NOT NULL,
                 kind TEXT NOT NULL,
                 status TEXT NOT NULL,
                 verdict TEXT,
                 body TEXT NOT NULL,
                 UNIQUE (run, id)
             );",
        )?;
    }
    if version(&change)? < 2 {
        change.execute_batch(
            "ALTER TABLE runs ADD COLUMN setup TEXT;
             ALTER TABLE findings ADD COLUMN schedule TEXT;
             ALTER TABLE findings ADD COLUMN attempts INTEGER;
             ALTER TABLE findings ADD COLUMN after INTEGER;",
        )?;
    }
    if version(&change)? < 3 {
        // Bodies of version 2 stay unchanged: they are converted when they are read.
        change.execute_batch(
            "CREATE INDEX findings_by_id ON findings (id, (schedule IS NULL), run DESC);",
        )?;
    }
    if version(&change)? < 4 {
        change.execute_batch(states::TABLES)?;
    }
    if version(&change)? < 5 {
        change.execute_batch(promises::TABLES)?;
    }
    if version(&change)? < 6 {
        change.execute_batch(learnt::TABLES)?;
    }
    change.pragma_update(None, "user_version", VERSION)?;
    change.commit()
}

/// The connection, if it can be read from.
fn readable(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(PATIENCE)?;
    connection
        .query_row("SELECT name FROM sqlite_schema LIMIT 1", [], |_| Ok(()))
        .optional()
        .map(|_| connection)
}

/// A path in the form that SQLite's URIs want.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

#[cfg(test)]
mod tests;
