//! States of deterministic blocks: what executions assumed, ensured and recorded, and the index over them.
//!
//! Executions that handed over the same share one *content*, so a million executions that agree take a million
//! short rows and one set of values. A value is kept in full if its predicate is not exact, if `infer` needs it,
//! or if it is short; of others there is only the digest.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use selvedge_model::Site;
use selvedge_specs::states::{Checked, ExecutionId, Group, Index, Obstacle, Storage};
use selvedge_specs::{
    BlockExecution, Call, Digest, Judge, Kept, Key, Predicate, ThreadName, Value, Word,
};

use super::{RunId, Store, StoreError};

/// The longest value, in stored form, that is kept in full although its digest would do.
const SHORT: usize = 1024;

pub(super) const TABLES: &str = "
    CREATE TABLE blocks (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE contents (
        id INTEGER PRIMARY KEY,
        block INTEGER NOT NULL REFERENCES blocks (id) ON DELETE CASCADE,
        digest BLOB NOT NULL,
        assumed BLOB NOT NULL,
        ensured BLOB NOT NULL,
        site TEXT NOT NULL,
        UNIQUE (block, digest)
    );
    CREATE TABLE content_values (
        content INTEGER NOT NULL REFERENCES contents (id) ON DELETE CASCADE,
        sequence INTEGER NOT NULL,
        word TEXT NOT NULL,
        name TEXT NOT NULL,
        thread INTEGER NOT NULL,
        nth INTEGER NOT NULL,
        predicate TEXT NOT NULL,
        digest BLOB NOT NULL,
        value BLOB,
        site TEXT NOT NULL,
        PRIMARY KEY (content, sequence)
    ) WITHOUT ROWID;
    CREATE TABLE executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        content INTEGER NOT NULL REFERENCES contents (id) ON DELETE CASCADE,
        build TEXT NOT NULL,
        run INTEGER,
        at INTEGER NOT NULL,
        schedule TEXT
    );
    CREATE INDEX executions_by_content ON executions (content, build);
    CREATE TABLE state_groups (
        bucket BLOB NOT NULL,
        number INTEGER NOT NULL,
        block INTEGER NOT NULL REFERENCES blocks (id) ON DELETE CASCADE,
        body TEXT NOT NULL,
        PRIMARY KEY (bucket, number)
    ) WITHOUT ROWID;
    CREATE INDEX state_groups_by_block ON state_groups (block);";

/// What is stored with an execution of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// The build of the program: executions of other builds are not compared with it.
    pub(crate) build: String,
    pub(crate) run: Option<RunId>,
    /// The schedule, if the execution was controlled.
    pub(crate) schedule: Option<String>,
    /// Executions of all builds are compared with it.
    pub(crate) across_builds: bool,
}

/// An execution that was added, and how it compares; or why it was not.
pub(crate) type Added<E> = Result<(ExecutionId, Checked<Site>), Box<Obstacle<Site, E>>>;

/// An execution as it was stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredExecution {
    pub(crate) id: ExecutionId,
    pub(crate) build: String,
    pub(crate) schedule: Option<String>,
    pub(crate) execution: BlockExecution<Site>,
}

/// A block in the store.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub(crate) struct BlockSummary {
    pub(crate) block: String,
    pub(crate) executions: u64,
    pub(crate) inputs: u64,
    pub(crate) results: u64,
    pub(crate) builds: u64,
}

/// A content, with how many executions have it and the first of them.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) assumed: Vec<u8>,
    pub(crate) executions: u64,
    pub(crate) first: ExecutionId,
    pub(crate) builds: Vec<String>,
    pub(crate) execution: BlockExecution<Site>,
}

/// Which executions to delete: those that meet all conditions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pruned {
    pub(crate) block: Option<String>,
    pub(crate) build: Option<String>,
    pub(crate) older_than: Option<Duration>,
}

fn seconds_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

impl Store {
    /// Compares an execution of a block with the stored ones, and stores it.
    pub(crate) fn check_block(
        &mut self,
        execution: &BlockExecution<Site>,
        about: &About,
        judge: &mut dyn Judge,
    ) -> Added<StoreError> {
        let path = self.path.clone();
        let stored = |e| Box::new(Obstacle::Storage(StoreError::new(&path, e)));
        let change = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(stored)?;
        let checked =
            check(&change, execution, about, judge).map_err(|obstacle| match *obstacle {
                Obstacle::Storage(e) => stored(e),
                Obstacle::Trouble(trouble) => Box::new(Obstacle::Trouble(trouble)),
            })?;
        change.commit().map_err(stored)?;
        Ok(checked)
    }

    /// A stored execution.
    pub(crate) fn block_execution(
        &self,
        id: ExecutionId,
    ) -> Result<Option<StoredExecution>, StoreError> {
        stored_execution(&self.connection, id).map_err(|e| StoreError::new(&self.path, e))
    }

    /// The blocks, by name.
    pub(crate) fn blocks(&self) -> Result<Vec<BlockSummary>, StoreError> {
        let select = || {
            let mut statement = self.connection.prepare(
                "SELECT b.name, count(*), count(DISTINCT c.assumed),
                        count(DISTINCT c.assumed || c.ensured), count(DISTINCT e.build)
                 FROM blocks b JOIN contents c ON c.block = b.id
                 JOIN executions e ON e.content = c.id GROUP BY b.id ORDER BY b.name",
            )?;
            let rows = statement.query_map([], |row| {
                let count = |i| row.get::<_, i64>(i).map(i64::unsigned_abs);
                Ok(BlockSummary {
                    block: row.get(0)?,
                    executions: count(1)?,
                    inputs: count(2)?,
                    results: count(3)?,
                    builds: count(4)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        if self.has_states()? {
            select().map_err(|e| StoreError::new(&self.path, e))
        } else {
            Ok(Vec::new())
        }
    }

    /// The contents of a block, in the order in which they were first seen.
    pub(crate) fn contents(&self, block: &str) -> Result<Vec<Content>, StoreError> {
        self.contents_of(block, None)
    }

    /// Those of the build of the program that was executed last.
    pub(crate) fn contents_of_last_build(&self, block: &str) -> Result<Vec<Content>, StoreError> {
        let last = self.connection.query_row(
            "SELECT e.build FROM blocks b JOIN contents c ON c.block = b.id
             JOIN executions e ON e.content = c.id
             WHERE b.name = ? ORDER BY e.id DESC LIMIT 1",
            [block],
            |row| row.get::<_, String>(0),
        );
        let last = last.optional().map_err(|e| StoreError::new(&self.path, e))?;
        self.contents_of(block, last.as_deref())
    }

    fn contents_of(&self, block: &str, build: Option<&str>) -> Result<Vec<Content>, StoreError> {
        let select = || {
            let mut statement = self.connection.prepare(
                "SELECT c.id, c.assumed, count(*), min(e.id), group_concat(DISTINCT e.build)
                 FROM blocks b JOIN contents c ON c.block = b.id
                 JOIN executions e ON e.content = c.id
                 WHERE b.name = ?1 AND (?2 IS NULL OR e.build = ?2)
                 GROUP BY c.id ORDER BY min(e.id)",
            )?;
            let rows = statement.query_map(params![block, build], |row| {
                let content: i64 = row.get(0)?;
                Ok((
                    content,
                    row.get::<_, Vec<u8>>(1)?,
                    row.get::<_, i64>(2)?,
                    row.get::<_, i64>(3)?,
                    row.get::<_, String>(4)?,
                ))
            })?;
            let mut contents = Vec::new();
            for row in rows {
                let (content, assumed, count, first, builds) = row?;
                contents.push(Content {
                    assumed,
                    executions: count.unsigned_abs(),
                    first: ExecutionId(first.unsigned_abs()),
                    builds: builds.split(',').map(str::to_owned).collect(),
                    execution: read_content(&self.connection, content)?,
                });
            }
            Ok(contents)
        };
        if self.has_states()? {
            select().map_err(|e| StoreError::new(&self.path, e))
        } else {
            Ok(Vec::new())
        }
    }

    /// Deletes executions, and returns how many.
    pub(crate) fn prune(&mut self, which: &Pruned) -> Result<usize, StoreError> {
        let path = self.path.clone();
        let mut delete = || {
            let change =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let deleted = prune(&change, which)?;
            change.commit()?;
            Ok(deleted)
        };
        delete().map_err(|e| StoreError::new(&path, e))
    }

    /// A store of an older version that cannot be written has no states.
    fn has_states(&self) -> Result<bool, StoreError> {
        let version = super::version(&self.connection);
        version.map(|v| v >= 4).map_err(|e| StoreError::new(&self.path, e))
    }
}

fn check(
    change: &Transaction<'_>,
    execution: &BlockExecution<Site>,
    about: &About,
    judge: &mut dyn Judge,
) -> Added<rusqlite::Error> {
    let prepare = || {
        change.execute("INSERT OR IGNORE INTO blocks (name) VALUES (?)", [&*execution.block])?;
        let block =
            change.query_row("SELECT id FROM blocks WHERE name = ?", [&*execution.block], |r| {
                r.get(0)
            })?;
        let last = "SELECT seq FROM sqlite_sequence WHERE name = 'executions'";
        let last: Option<i64> = change.query_row(last, [], |row| row.get(0)).optional()?;
        let builds = if about.across_builds { builds(change, block)? } else { Vec::new() };
        Ok((block, ExecutionId(last.unwrap_or(0).unsigned_abs() + 1), builds))
    };
    let (block, id, mut builds) = prepare().map_err(|e| Box::new(Obstacle::Storage(e)))?;
    builds.retain(|build| *build != about.build);
    let also: Vec<&str> = builds.iter().map(String::as_str).collect();
    let mut index = Index::new(Tables { change, block, about });
    let checked = index.add(id, execution, &about.build, &also, judge).map_err(Box::new)?;
    Ok((id, checked))
}

/// The builds of which the store has executions of a block.
fn builds(connection: &Connection, block: i64) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT DISTINCT e.build FROM contents c JOIN executions e ON e.content = c.id
         WHERE c.block = ? ORDER BY e.build",
    )?;
    let rows = statement.query_map([block], |row| row.get(0))?;
    rows.collect()
}

fn prune(change: &Transaction<'_>, which: &Pruned) -> rusqlite::Result<usize> {
    let before = which
        .older_than
        .map(|age| seconds_now().saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX)));
    let condition = "(?1 IS NULL OR build = ?1) AND (?2 IS NULL OR at < ?2) AND content IN
         (SELECT c.id FROM contents c JOIN blocks b ON b.id = c.block WHERE ?3 IS NULL OR b.name = ?3)";
    let mut touched = change.prepare(&format!(
        "SELECT DISTINCT c.block FROM executions e JOIN contents c ON c.id = e.content WHERE {condition}"
    ))?;
    let given = params![which.build, before, which.block];
    let blocks: Vec<i64> =
        touched.query_map(given, |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let deleted = change.execute(
        &format!("DELETE FROM executions WHERE {condition}"),
        params![which.build, before, which.block],
    )?;
    change.execute_batch(
        "DELETE FROM contents WHERE id NOT IN (SELECT content FROM executions);
         DELETE FROM blocks WHERE id NOT IN (SELECT block FROM contents);",
    )?;
    blocks.into_iter().try_for_each(|block| index_again(change, block))?;
    Ok(deleted)
}

/// Makes the groups of a block from what is left: their witnesses may be gone.
fn index_again(change: &Transaction<'_>, block: i64) -> rusqlite::Result<()> {
    change.execute("DELETE FROM state_groups WHERE block = ?", [block])?;
    let mut left = change.prepare(
        "SELECT min(e.id), e.build, e.content, count(*) FROM executions e JOIN contents c ON c.id = e.content
         WHERE c.block = ? GROUP BY e.content, e.build ORDER BY min(e.id)",
    )?;
    let rows = left.query_map([block], |row| {
        let number = |i| row.get::<_, i64>(i);
        Ok((number(0)?, row.get::<_, String>(1)?, number(2)?, number(3)?))
    })?;
    for row in rows {
        let (id, build, content, count) = row?;
        let execution = read_content(change, content)?;
        let about = About { build, ..About::default() };
        let mut index = Index::new(Indexed(Tables { change, block, about: &about }));
        // The executions were compared when they were stored. What a predicate does not fit stays as it is.
        let alike = (ExecutionId(id.unsigned_abs()), count.unsigned_abs());
        if let Err(Obstacle::Storage(error)) = index.restore(alike, &execution, &about.build) {
            return Err(error);
        }
    }
    Ok(())
}

/// The index in the store, within one transaction.
struct Tables<'a> {
    change: &'a Transaction<'a>,
    block: i64,
    about: &'a About,
}

impl Storage<Site> for Tables<'_> {
    type Error = rusqlite::Error;

    fn groups(&mut self, bucket: Digest) -> rusqlite::Result<Vec<Group>> {
        let mut statement = self
            .change
            .prepare_cached("SELECT body FROM state_groups WHERE bucket = ? ORDER BY number")?;
        let bodies = statement.query_map([blob(bucket)], |row| row.get::<_, String>(0))?;
        bodies.map(|body| serde_json::from_str(&body?).map_err(unreadable)).collect()
    }

    fn put(&mut self, bucket: Digest, number: usize, group: &Group) -> rusqlite::Result<()> {
        let body = serde_json::to_string(group).expect("strings and numbers serialise");
        self.change
            .prepare_cached(
                "INSERT INTO state_groups (bucket, number, block, body) VALUES (?, ?, ?, ?)
                 ON CONFLICT (bucket, number) DO UPDATE SET body = excluded.body",
            )?
            .execute(params![blob(bucket), number as i64, self.block, body])?;
        Ok(())
    }

    fn keep(
        &mut self,
        id: ExecutionId,
        execution: &BlockExecution<Site>,
        _: bool,
    ) -> rusqlite::Result<()> {
        let content = self.content(execution)?;
        let About { build, run, schedule, .. } = self.about;
        self.change
            .prepare_cached(
                "INSERT INTO executions (id, content, build, run, at, schedule)
                 VALUES (?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![id.0 as i64, content, build, run, seconds_now(), schedule])?;
        Ok(())
    }

    fn execution(&mut self, id: ExecutionId) -> rusqlite::Result<Option<BlockExecution<Site>>> {
        Ok(stored_execution(self.change, id)?.map(|stored| stored.execution))
    }
}

impl Tables<'_> {
    /// The row of what an execution handed over, made if it is new.
    fn content(&self, execution: &BlockExecution<Site>) -> rusqlite::Result<i64> {
        let digest = summed(execution, |_| true);
        let known = self
            .change
            .prepare_cached("SELECT id FROM contents WHERE block = ? AND digest = ?")?
            .query_row(params![self.block, blob(digest)], |row| row.get(0))
            .optional()?;
        if let Some(known) = known {
            return Ok(known);
        }
        let of = |word: Word| blob(summed(execution, |w| w == word));
        self.change.execute(
            "INSERT INTO contents (block, digest, assumed, ensured, site) VALUES (?, ?, ?, ?, ?)",
            params![
                self.block,
                blob(digest),
                of(Word::Assume),
                of(Word::Ensure),
                site_text(&execution.site)
            ],
        )?;
        let content = self.change.last_insert_rowid();
        let mut insert = self.change.prepare_cached(
            "INSERT INTO content_values
             (content, sequence, word, name, thread, nth, predicate, digest, value, site)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?;
        for (sequence, call) in execution.calls.iter().enumerate() {
            let Call { key: Key { word, name, thread, nth }, predicate, value, site } = call;
            insert.execute(params![
                content,
                sequence as i64,
                word_text(*word),
                name,
                thread.0 as i64,
                nth,
                predicate.to_string(),
                blob(value.digest),
                kept(call),
                site_text(site)
            ])?;
        }
        Ok(content)
    }
}

/// The index over executions that are in the store already.
struct Indexed<'a>(Tables<'a>);

impl Storage<Site> for Indexed<'_> {
    type Error = rusqlite::Error;

    fn groups(&mut self, bucket: Digest) -> rusqlite::Result<Vec<Group>> {
        self.0.groups(bucket)
    }

    fn put(&mut self, bucket: Digest, number: usize, group: &Group) -> rusqlite::Result<()> {
        self.0.put(bucket, number, group)
    }

    fn keep(&mut self, _: ExecutionId, _: &BlockExecution<Site>, _: bool) -> rusqlite::Result<()> {
        Ok(())
    }

    fn execution(&mut self, id: ExecutionId) -> rusqlite::Result<Option<BlockExecution<Site>>> {
        self.0.execution(id)
    }
}

/// The stored form of a value, if the digest is not enough.
fn kept(call: &Call<Site>) -> Option<Vec<u8>> {
    let value = call.value.value.as_ref()?;
    let needed = call.predicate.needs_value()
        || matches!(call.key.word, Word::Before | Word::After)
        || value.encoded_len() <= SHORT;
    needed.then(|| value.encode())
}

fn stored_execution(
    connection: &Connection,
    id: ExecutionId,
) -> rusqlite::Result<Option<StoredExecution>> {
    let row = connection
        .prepare_cached("SELECT content, build, schedule FROM executions WHERE id = ?")?
        .query_row([id.0 as i64], |row| {
            Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?))
        })
        .optional()?;
    let Some((content, build, schedule)) = row else { return Ok(None) };
    let execution = read_content(connection, content)?;
    Ok(Some(StoredExecution { id, build, schedule, execution }))
}

fn read_content(connection: &Connection, content: i64) -> rusqlite::Result<BlockExecution<Site>> {
    let (block, site) = connection
        .prepare_cached(
            "SELECT b.name, c.site FROM contents c JOIN blocks b ON b.id = c.block WHERE c.id = ?",
        )?
        .query_row([content], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut statement = connection.prepare_cached(
        "SELECT word, name, thread, nth, predicate, digest, value, site
         FROM content_values WHERE content = ? ORDER BY sequence",
    )?;
    let mut rows = statement.query([content])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        let value: Option<Vec<u8>> = row.get(6)?;
        calls.push(Call {
            key: Key {
                word: serde_json::from_value(word.into()).map_err(unreadable)?,
                name: row.get::<_, String>(1)?.into(),
                thread: ThreadName(row.get::<_, i64>(2)? as u64),
                nth: row.get(3)?,
            },
            predicate: row.get::<_, String>(4)?.parse::<Predicate>().map_err(unreadable)?,
            value: Kept {
                digest: digest(&row.get::<_, Vec<u8>>(5)?),
                value: value.map(|v| Value::decode(&v)).transpose().map_err(unreadable)?,
            },
            site: read_site(&row.get::<_, String>(7)?),
        });
    }
    Ok(BlockExecution { block: block.into(), site: read_site(&site), calls })
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}

/// A digest of the calls with some words.
fn summed(execution: &BlockExecution<Site>, of: impl Fn(Word) -> bool) -> Digest {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for call in execution.calls.iter().filter(|c| of(c.key.word)) {
        let Key { word, name, thread, nth } = &call.key;
        let mut part = word_text(*word).into_bytes();
        for more in [name.as_bytes(), &thread.0.to_le_bytes(), &nth.to_le_bytes()] {
            part.extend((more.len() as u64).to_le_bytes());
            part.extend(more);
        }
        part.extend(call.predicate.to_string().bytes());
        parts.push(part);
        parts.push(blob(call.value.digest));
    }
    // Threads that run in parallel make their calls in any order.
    let mut pairs: Vec<&[Vec<u8>]> = parts.chunks(2).collect();
    pairs.sort();
    Digest::of(pairs.into_iter().flatten().map(Vec::as_slice))
}

fn word_text(word: Word) -> String {
    let word = serde_json::to_value(word).expect("a word is a text");
    word.as_str().unwrap_or_default().to_owned()
}

fn site_text(site: &Site) -> String {
    serde_json::to_string(site).expect("strings and numbers serialise")
}

fn read_site(text: &str) -> Site {
    serde_json::from_str(text).unwrap_or_else(|_| Site::Label(text.into()))
}

fn blob(digest: Digest) -> Vec<u8> {
    digest.0.to_le_bytes().to_vec()
}

fn digest(bytes: &[u8]) -> Digest {
    Digest(bytes.try_into().map_or(0, u128::from_le_bytes))
}

#[cfg(test)]
mod tests;
