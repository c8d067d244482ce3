//! Measures how long a killed server takes to read a long log, and checks that it has everything
//! that it acknowledged.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_sim::Random;
use dyno_txn_api::{
    Database, Key, Operation, Options as TxnOptions, Pipeline, Request, Retry, TableDef, TableId,
    Transact,
};

use crate::server::{Connect, Server, ServerError, Start};

/// Rows, which are written again and again. So the log is longer than the rows that it leads to.
const ROWS: u64 = 1 << 17;
const VALUE_BYTES: usize = 1_000;
/// Rows of one transaction; transactions in flight; rows that one request reads.
const TOGETHER: u64 = 8;
const WINDOW: usize = 64;
const READ_TOGETHER: u64 = 256;
/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Settings of a measurement of recovery.
pub struct Options<'a> {
    /// Starts a server that writes no checkpoint before its log is longer than `log_bytes`.
    pub start: &'a Start<'a>,
    /// Connects a client to the server.
    pub connect: &'a Connect<'a>,
    /// An existing folder for the server's directory and its output.
    pub folder: &'a Path,
    /// Length that the log is to have at the kill.
    pub log_bytes: u64,
    /// Seed of the contents of the rows.
    pub seed: u64,
    /// Stops writing when it is set, and continues with the log as it is.
    pub stop: &'a AtomicBool,
}

/// The result of a measurement of recovery.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovered {
    /// Length of the log at the kill.
    pub log_bytes: u64,
    /// Transactions that the server acknowledged.
    pub transactions: u64,
    /// Rows that were written at least once, and were read back.
    pub rows: u64,
    /// Seconds from the start of the process until it listened.
    pub recovery_s: f64,
    /// Seconds from then until all rows had been read.
    pub read_s: f64,
    /// The first few rows that are not as acknowledged, in sentences.
    pub wrong: Vec<String>,
    /// How many rows are not as acknowledged.
    pub wrong_rows: u64,
}

/// The reason for which there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The server did not start, or ended by itself.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// An operation that must succeed failed.
    #[error("the server does not serve: {0}")]
    Database(#[from] dyno_txn_api::Error),
    /// An answer did not come within the time for it.
    #[error("the server gave no answer in {PATIENCE:?}")]
    Silent,
}

/// Writes the log, kills the server, starts it again, and reads all rows.
///
/// # Errors
/// See [`RecoveryError`]. Wrong rows are not an error; they are part of the result.
pub fn run(options: &Options<'_>) -> Result<Recovered, RecoveryError> {
    let mut server = Server::start(options.start, options.folder)?;
    let db = (options.connect)(server.address(), true)?;
    let table = db.create_table(&TableDef::hash("recovery", 0))?;
    let mut load = Load {
        table,
        seed: options.seed,
        next: 0,
        answered: vec![0; ROWS as usize],
        under_way: HashSet::new(),
        transactions: 0,
    };
    load.write(&*db, options)?;
    let log_bytes = log_bytes(&*db)?;
    // More transactions are in flight when the server is killed. Each of them may have happened or
    // not.
    let mut pipeline = db.pipeline(WINDOW, &TxnOptions::default())?;
    for _ in 0..WINDOW / 2 {
        load.submit(&mut *pipeline)?;
    }
    server.kill()?;
    drop(pipeline);
    drop(db);
    let began = Instant::now();
    let server = Server::start(options.start, options.folder)?;
    let recovery_s = began.elapsed().as_secs_f64();
    let db = (options.connect)(server.address(), true)?;
    let mut recovered = Recovered {
        log_bytes,
        transactions: load.transactions,
        rows: ROWS.min(load.next * TOGETHER),
        recovery_s,
        read_s: 0.0,
        wrong: Vec::new(),
        wrong_rows: 0,
    };
    load.read(&*db, &mut recovered)?;
    recovered.read_s = began.elapsed().as_secs_f64() - recovery_s;
    Ok(recovered)
}

/// What the server has written since it was made. It wrote no checkpoint, so that is the length of
/// its log.
fn log_bytes(db: &dyn Database) -> Result<u64, dyno_txn_api::Error> {
    let of_log = |(name, _): &(String, u64)| name == "log_bytes_since_checkpoint";
    let stats = db.stats()?.into_iter();
    Ok(stats.filter(of_log).map(|(_, bytes)| bytes).sum())
}

/// The load: rows are written in turn, so no two transactions in flight write the same row.
struct Load {
    table: TableId,
    seed: u64,
    /// The number of the next transaction.
    next: u64,
    /// For each row, the number of its last acknowledged write; 0 if it has none.
    answered: Vec<u64>,
    under_way: HashSet<u64>,
    transactions: u64,
}

impl Load {
    fn write(&mut self, db: &dyn Database, options: &Options<'_>) -> Result<(), RecoveryError> {
        let mut pipeline = db.pipeline(WINDOW, &TxnOptions::default())?;
        let mut written = 0;
        while written < options.log_bytes && !options.stop.load(Ordering::Relaxed) {
            while pipeline.outstanding() < WINDOW {
                self.submit(&mut *pipeline)?;
            }
            self.receive(&mut *pipeline)?;
            written = self.transactions * TOGETHER * VALUE_BYTES as u64;
        }
        while pipeline.outstanding() > 0 {
            self.receive(&mut *pipeline)?;
        }
        Ok(())
    }

    fn submit(&mut self, pipeline: &mut dyn Pipeline) -> Result<(), RecoveryError> {
        let ticket = self.next;
        self.next += 1;
        self.under_way.insert(ticket);
        Ok(pipeline.submit(ticket, self.request(ticket))?)
    }

    fn receive(&mut self, pipeline: &mut dyn Pipeline) -> Result<(), RecoveryError> {
        let Some((ticket, result)) = pipeline.next(PATIENCE) else {
            return Err(RecoveryError::Silent);
        };
        match result {
            Ok(_) => {
                self.transactions += 1;
                self.under_way.remove(&ticket);
                for (row, writing) in rows_of(ticket) {
                    self.answered[row as usize] = writing;
                }
                Ok(())
            }
            // An error that is safe to retry means that the transaction had no effect, so it keeps
            // its ticket.
            Err(error) if error.retry() == Retry::Safe => {
                Ok(pipeline.submit(ticket, self.request(ticket))?)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn request(&self, ticket: u64) -> Request {
        let put = |(row, writing): (u64, u64)| {
            Operation::put(self.key(row), value(self.seed, row, writing))
        };
        Request::Operations(rows_of(ticket).map(put).collect())
    }

    fn key(&self, row: u64) -> Key {
        Key::new(self.table, row.to_be_bytes())
    }

    fn read(&self, db: &dyn Database, found: &mut Recovered) -> Result<(), RecoveryError> {
        for first in (0..found.rows).step_by(READ_TOGETHER as usize) {
            let rows = first..(first + READ_TOGETHER).min(found.rows);
            let keys: Vec<_> = rows.clone().map(u64::to_be_bytes).collect();
            let keys: Vec<_> = keys.iter().map(|key| (self.table, &key[..])).collect();
            let values = db.transact(|t| t.get_many(&keys))?;
            for (row, read) in rows.zip(values.iter()) {
                if let Some(sentence) = self.judge(row, read) {
                    found.wrong_rows += 1;
                    if found.wrong.len() < 8 {
                        found.wrong.push(sentence);
                    }
                }
            }
        }
        Ok(())
    }

    /// Explains why a row is not as acknowledged, if it is not. A later write that was in flight at
    /// the kill may be there.
    fn judge(&self, row: u64, read: Option<&[u8]>) -> Option<String> {
        let answered = self.answered[row as usize];
        let later = self
            .under_way
            .iter()
            .flat_map(|&ticket| rows_of(ticket))
            .find_map(|(of, writing)| (of == row).then_some(writing));
        let mut may_be = [Some(answered), later].into_iter().flatten();
        let is = |writing: u64| match (writing, read) {
            (0, read) => read.is_none(),
            (writing, Some(read)) => read == value(self.seed, row, writing),
            (_, None) => false,
        };
        (!may_be.any(is)).then(|| {
            let found = read.map_or("no row".to_owned(), |read| {
                format!("{} bytes of something else", read.len())
            });
            format!("row {row}: write {answered} of it was acknowledged, but {found} is there")
        })
    }
}

/// The rows that a transaction writes, each with the number of that write of the row, from 1.
fn rows_of(ticket: u64) -> impl Iterator<Item = (u64, u64)> {
    let each = ROWS / TOGETHER;
    let (first, writing) = (ticket % each * TOGETHER, ticket / each + 1);
    (first..first + TOGETHER).map(move |row| (row, writing))
}

/// Random bytes that only this write of this row has, so a row of another write is noticed.
fn value(seed: u64, row: u64, writing: u64) -> Vec<u8> {
    let mut random = Random::new(seed ^ row.rotate_left(32) ^ writing);
    let words = (0..VALUE_BYTES / 8).map(|_| random.bits().to_le_bytes());
    words.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_written_once_before_any_is_written_again() {
        let each = ROWS / TOGETHER;
        let mut rows: Vec<_> = (0..each).flat_map(rows_of).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..ROWS).map(|row| (row, 1)).collect::<Vec<_>>());
        assert_eq!(rows_of(each).next(), Some((0, 2)));
    }

    #[test]
    fn a_row_is_what_was_answered_or_what_was_under_way() {
        let mut load = Load {
            table: TableId(1),
            seed: 7,
            next: 0,
            answered: vec![0; ROWS as usize],
            under_way: HashSet::new(),
            transactions: 0,
        };
        load.answered[3] = 1;
        let (first, second) = (value(7, 3, 1), value(7, 3, 2));
        assert_eq!(load.judge(3, Some(&first)), None);
        assert!(load.judge(3, Some(&second)).is_some());
        assert!(load.judge(3, None).is_some());
        assert_eq!(load.judge(4, None), None);
        load.under_way.insert(ROWS / TOGETHER);
        assert_eq!(load.judge(3, Some(&second)), None);
        assert_eq!(load.judge(3, Some(&first)), None);
    }
}
