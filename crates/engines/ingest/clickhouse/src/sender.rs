//! One connection, which inserts blocks into a stage of its own, each exactly once.
//!
//! A sender has at most one block in flight, so the stage holds either the rows of all blocks
//! before it, or those and its own. On any version of the server this decides whether a block whose
//! answer was lost has arrived. Each attempt has the block's ID as its query ID, so that a first
//! attempt that is still running can be seen and waited for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use dyno_ingest::load::ServerReport;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::http::{Client, quoted};
use crate::patience::{Patience, Waiting};
use crate::pressure::Pressure;

/// A block of rows of one partition.
pub(crate) struct Block {
    pub rows: u64,
    pub frames: Vec<u8>,
}

/// What the senders of an archive share.
#[derive(Default)]
pub(crate) struct Shared {
    /// Buffers of blocks that have been sent.
    spare: Mutex<VecDeque<Vec<u8>>>,
    /// The first failure, at which the other senders stop.
    failure: Mutex<Option<Error>>,
    report: Mutex<ServerReport>,
}

impl Shared {
    pub fn memory(&self) -> Vec<u8> {
        self.spare.lock().pop_front().unwrap_or_default()
    }

    pub fn take_failure(&self) -> Option<Error> {
        self.failure.lock().take()
    }

    pub fn has_failed(&self) -> bool {
        self.failure.lock().is_some()
    }

    pub fn report(&self) -> ServerReport {
        *self.report.lock()
    }
}

/// A connection, and the stage that only it writes to.
pub(crate) struct Sender {
    pub client: Arc<Client>,
    /// Full name of the stage.
    pub stage: String,
    /// The statement that inserts into the stage.
    pub sql: String,
    /// Distinguishes the queries of this load from those of others.
    pub load: String,
    pub pressure: Pressure,
    pub patience: Patience,
    pub sent: u64,
    pub blocks: u64,
}

impl Sender {
    /// Sends blocks until there are no more or one fails. Returns the rows that the stage has then.
    pub fn run(mut self, blocks: &Mutex<Receiver<Block>>, shared: &Shared) -> u64 {
        loop {
            // A sender waits for a block while it holds the lock, and the others wait for the lock.
            // That costs nothing, because each of them would wait for a block as well.
            let next = blocks.lock().recv();
            let Ok(block) = next else { break };
            if shared.has_failed() {
                break;
            }
            if let Err(error) = self.insert(&block, shared) {
                shared.failure.lock().get_or_insert(error);
                break;
            }
            shared.spare.lock().push_back(block.frames);
        }
        // A server that was killed may have lost a block that it had acknowledged, so the stage is
        // counted once more at the end.
        if !shared.has_failed()
            && let Err(error) = self.check()
        {
            shared.failure.lock().get_or_insert(error);
        }
        self.sent
    }

    /// Inserts a block exactly once, or fails. Repeats it only after the stage's row count has
    /// shown that the previous attempt did not arrive.
    pub fn insert(&mut self, block: &Block, shared: &Shared) -> Result<()> {
        self.blocks += 1;
        let id = format!("{}-{}-{}", self.stage, self.load, self.blocks);
        let pressed = self.pressure.obey(&self.client, &self.patience)?;
        {
            let mut report = shared.report.lock();
            report.blocks += 1;
            report.merge_wait_s += pressed.waited_s;
            report.parts_most = report.parts_most.max(pressed.parts_most);
        }
        // The limit of time is for all attempts at this block together.
        let mut waiting = Waiting::new(&self.patience);
        while let Err(failure) = self.client.insert(&self.sql, &id, &block.frames) {
            let error = failure.into_error(&self.client, "insert a block");
            if !error.may_pass() {
                return Err(error);
            }
            waiting.wait(error)?;
            if self.is_there(&id, block.rows)? {
                break;
            }
            shared.report.lock().resent += 1;
        }
        self.sent += block.rows;
        Ok(())
    }

    /// Whether the block `id` of `rows` rows has arrived. Waits until its query has ended.
    fn is_there(&self, id: &str, rows: u64) -> Result<bool> {
        let running = format!(
            "SELECT count() FROM system.processes WHERE query_id = {}",
            quoted(id)
        );
        let mut waiting = Waiting::new(&self.patience);
        let action = "ask what became of a block";
        while self
            .patience
            .with(|| self.client.number(action, &running))?
            > 0
        {
            waiting.wait(Error::Busy {
                server: self.client.server.clone(),
                action: action.to_owned(),
                code: 0,
                message: format!("query {id} goes on for {:.0} s", waiting.seconds()),
            })?;
        }
        // No attempt is running any more, so this count is final: the block is in it or will never
        // be.
        let found = self.count()?;
        if found == self.sent {
            Ok(false)
        } else if found == self.sent + rows {
            Ok(true)
        } else {
            Err(self.torn(found))
        }
    }

    fn count(&self) -> Result<u64> {
        let sql = format!("SELECT count() FROM {}", self.stage);
        self.patience
            .with(|| self.client.number("count what arrived", &sql))
    }

    /// Fails unless the stage holds exactly what was sent.
    pub fn check(&self) -> Result<()> {
        match self.count()? {
            found if found == self.sent => Ok(()),
            found => Err(self.torn(found)),
        }
    }

    fn torn(&self, found: u64) -> Error {
        Error::Torn {
            server: self.client.server.clone(),
            stage: self.stage.clone(),
            found,
            expected: self.sent,
        }
    }
}
