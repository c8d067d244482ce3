//! The queue's two protocols: the original's queue mode and our engine's. Each message goes to one
//! reader, which acknowledges it.

use std::error::Error;
use std::time::{Duration, SystemTime};

use dyno_pubsub::{Claimed, Connection, Dsn, Queue, QueueOptions};
use postgres::types::private::BytesMut;
use postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Statement};

use super::FlowError;
use super::original::{BEGIN, hexadecimal};
use super::server::connect;
use super::way::{Reader, Way, Writer};

/// The original's: single-row inserts, and readers that move one row to an archive in a
/// transaction.
///
/// The original prepares its three statements anew in each transaction, which its driver does
/// behind its back; here they are prepared once, so the original is at most this fast.
pub(super) struct OriginalQueue {
    pub dsn: Dsn,
}

/// How long the original sleeps when the queue is empty.
const ORIGINAL_PAUSE: Duration = Duration::from_micros(200);

impl Way for OriginalQueue {
    fn prepare(&self) -> Result<(), FlowError> {
        let mut client = connect(&self.dsn)?;
        // The original has the second index on the key too.
        client.batch_execute(
            "CREATE TABLE queue (
               id bigserial PRIMARY KEY, payload bytea NOT NULL, created_at timestamp NOT NULL DEFAULT now());
             CREATE TABLE queue_archive (
               id bigint, payload bytea NOT NULL, created_at timestamp NOT NULL,
               read_at timestamp NOT NULL DEFAULT now());
             CREATE INDEX idx_queue_id ON queue (id);",
        )?;
        Ok(())
    }

    fn writer(&self, _writer: usize) -> Result<Box<dyn Writer>, FlowError> {
        let mut client = connect(&self.dsn)?;
        let insert =
            client.prepare_typed("INSERT INTO queue (payload) VALUES ($1)", &[Type::BYTEA])?;
        Ok(Box::new(OriginalWriter { client, insert }))
    }

    fn reader(&self, _group: usize, _reader: usize) -> Result<Box<dyn Reader>, FlowError> {
        let mut client = connect(&self.dsn)?;
        let select = client.prepare(
            "SELECT id, payload, created_at FROM queue ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1",
        )?;
        let delete = client.prepare("DELETE FROM queue WHERE id = $1")?;
        let archive = client.prepare(
            "INSERT INTO queue_archive (id, payload, created_at, read_at) VALUES ($1, $2, $3, now())",
        )?;
        Ok(Box::new(OriginalReader {
            client,
            select,
            delete,
            archive,
        }))
    }
}

struct OriginalWriter {
    client: Client,
    insert: Statement,
}

impl Writer for OriginalWriter {
    fn write(
        &mut self,
        messages: &[Vec<u8>],
        done: &mut dyn FnMut(usize),
    ) -> Result<(), FlowError> {
        for message in messages {
            self.client.execute(&self.insert, &[&TextBytes(message)])?;
            done(1);
        }
        Ok(())
    }

    fn flush(&mut self, _done: &mut dyn FnMut(usize)) -> Result<(), FlowError> {
        Ok(())
    }
}

struct OriginalReader {
    client: Client,
    select: Statement,
    delete: Statement,
    archive: Statement,
}

impl Reader for OriginalReader {
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError> {
        self.client.batch_execute(BEGIN)?;
        let Some(row) = self.client.query_opt(&self.select, &[])? else {
            self.client.batch_execute("ROLLBACK")?;
            std::thread::sleep(ORIGINAL_PAUSE);
            return Ok(0);
        };
        let (id, payload, created): (i64, &[u8], SystemTime) = (row.get(0), row.get(1), row.get(2));
        self.client.execute(&self.delete, &[&id])?;
        self.client
            .execute(&self.archive, &[&id, &TextBytes(payload), &created])?;
        self.client.batch_execute("COMMIT")?;
        // The original's latency ends here, after the commit.
        each(0, payload);
        Ok(1)
    }
}

/// A byte string as the original's driver sends it: text, in hexadecimal digits.
#[derive(Debug)]
struct TextBytes<'a>(&'a [u8]);

impl ToSql for TextBytes<'_> {
    fn to_sql(
        &self,
        _type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.reserve(2 + 2 * self.0.len());
        out.extend_from_slice(b"\\x");
        hexadecimal(self.0, out);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }

    fn encode_format(&self, _type: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// The engine's queue, which claims and acknowledges several messages at a time, and claims the
/// next ones in the transaction that acknowledges. Acknowledged messages are kept, as the original
/// keeps them in its archive.
pub(super) struct EngineQueue {
    pub dsn: Dsn,
    /// Messages claimed in one call.
    pub batch: usize,
    /// How long readers let messages gather.
    pub linger: Duration,
}

const QUEUE: &str = "flow";
/// How long a reader waits when the queue is empty.
const PAUSE: Duration = Duration::from_millis(1);

impl Way for EngineQueue {
    fn prepare(&self) -> Result<(), FlowError> {
        let mut connection = Connection::open(&self.dsn)?;
        connection.install()?;
        let options = QueueOptions {
            keep_done: true,
            ..QueueOptions::default()
        };
        Ok(Queue::create(&mut connection, QUEUE, &options)?)
    }

    fn writer(&self, _writer: usize) -> Result<Box<dyn Writer>, FlowError> {
        Ok(Box::new(EngineClient {
            queue: Queue::open(&self.dsn, QUEUE)?,
            batch: self.batch,
            claimed: Vec::new(),
        }))
    }

    fn reader(&self, _group: usize, _reader: usize) -> Result<Box<dyn Reader>, FlowError> {
        let mut queue = Queue::open(&self.dsn, QUEUE)?;
        queue.set_linger(self.linger);
        Ok(Box::new(EngineClient {
            queue,
            batch: self.batch,
            claimed: Vec::new(),
        }))
    }
}

struct EngineClient {
    queue: Queue,
    batch: usize,
    /// What the reader has and has not acknowledged yet.
    claimed: Vec<Claimed>,
}

impl Writer for EngineClient {
    fn write(
        &mut self,
        messages: &[Vec<u8>],
        done: &mut dyn FnMut(usize),
    ) -> Result<(), FlowError> {
        let payloads: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        self.queue.send(&payloads, Duration::ZERO)?;
        done(messages.len());
        Ok(())
    }

    fn flush(&mut self, _done: &mut dyn FnMut(usize)) -> Result<(), FlowError> {
        Ok(())
    }
}

impl Reader for EngineClient {
    fn poll(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> Result<usize, FlowError> {
        let most = u32::try_from(self.batch).unwrap_or(u32::MAX);
        if self.claimed.is_empty() {
            self.claimed = self.queue.claim(most, None)?;
            if self.claimed.is_empty() {
                std::thread::sleep(PAUSE);
                return Ok(0);
            }
        }
        let next = self
            .queue
            .acknowledge_and_claim(&self.claimed, most, None)?;
        let acknowledged = std::mem::replace(&mut self.claimed, next.claimed);
        // A claim that ran out goes to another reader as well. The flow would then count a message
        // twice, so it is an error of the set-up here.
        if !next.late.is_empty() {
            return Err(FlowError::Wrong(format!(
                "{} messages were claimed for too long and come again",
                next.late.len()
            )));
        }
        for message in &acknowledged {
            each(0, &message.payload);
        }
        Ok(acknowledged.len())
    }
}
