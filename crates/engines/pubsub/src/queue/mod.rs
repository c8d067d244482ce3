//! Queues: each message is processed by one worker, and is delivered again if that worker does not
//! acknowledge it.

mod contents;

use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use dyno_postgres::Dsn;
use dyno_postgres::postgres::types::Type;
use dyno_postgres::postgres::{Row, Statement};

use crate::connection::Connection;
use crate::error::{Code, Error, Result};
use crate::record::RECORD_BYTES_MAX;

pub use contents::{DeadLetter, QueueStats};

/// The settings of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueOptions {
    /// How long a claimed message is hidden from others.
    pub visibility: Duration,
    /// How often a message is claimed before it becomes a dead letter.
    pub max_attempts: i32,
    /// Whether acknowledged messages are kept, for `pubsub.queue_done`.
    pub keep_done: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            visibility: Duration::from_secs(30),
            max_attempts: 5,
            keep_done: false,
        }
    }
}

/// A message that belongs to this worker until the claim runs out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its number, in the order in which messages were sent.
    pub message_id: i64,
    /// The claim, which acknowledgements carry.
    pub claim: i64,
    /// Claims so far, this one included.
    pub attempts: i32,
    /// When it was sent, by the server's clock.
    pub sent_at: SystemTime,
    /// What the sender put in.
    pub payload: Vec<u8>,
}

impl Claimed {
    fn from_row(row: &Row) -> Claimed {
        Claimed {
            message_id: row.get(0),
            claim: row.get(1),
            attempts: row.get(2),
            sent_at: row.get(3),
            payload: row.get(4),
        }
    }
}

/// What a worker has next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The numbers of those for whose acknowledgement it was too late: they are delivered again.
    pub late: Vec<i64>,
    /// What was claimed.
    pub claimed: Vec<Claimed>,
}

/// One queue over one connection. Sending is not idempotent: after an error whose retry is
/// `Unknown` the messages may be there, and sent again they may be there twice. Acknowledging is.
pub struct Queue {
    connection: Connection,
    name: String,
    queue_id: i32,
    statements: HashMap<&'static str, Statement>,
    linger: Duration,
    /// When the last claim began, if it found fewer messages than it asked for.
    short_claim: Option<Instant>,
}

impl Queue {
    /// Makes a queue.
    ///
    /// # Errors
    /// `name-taken`, `bad-argument`.
    pub fn create(connection: &mut Connection, name: &str, options: &QueueOptions) -> Result<()> {
        let visibility_ms = milliseconds(options.visibility);
        connection
            .client()
            .execute(
                "SELECT pubsub.create_queue($1, $2, $3, $4)",
                &[
                    &name,
                    &visibility_ms,
                    &options.max_attempts,
                    &options.keep_done,
                ],
            )
            .map(|_| ())
            .map_err(Error::statement(format_args!("create queue {name:?}")))
    }

    /// Drops a queue with all that is in it.
    ///
    /// # Errors
    /// `unknown-queue`.
    pub fn drop(connection: &mut Connection, name: &str) -> Result<()> {
        connection
            .client()
            .execute("SELECT pubsub.drop_queue($1)", &[&name])
            .map(|_| ())
            .map_err(Error::statement(format_args!("drop queue {name:?}")))
    }

    /// Connects to a queue.
    ///
    /// # Errors
    /// `unknown-queue`, `not-installed`, `newer-schema`, `server-lost`.
    pub fn open(dsn: &Dsn, name: &str) -> Result<Queue> {
        let mut connection = Connection::open_session(dsn, "dyno-queue", &[])?;
        connection.check_schema()?;
        let queue_id = connection
            .client()
            .query_opt(
                "SELECT queue_id FROM pubsub.queues WHERE name = $1",
                &[&name],
            )
            .map_err(Error::statement(format_args!("find queue {name:?}")))?
            .ok_or_else(|| {
                Error::new(
                    Code::UnknownQueue,
                    format_args!("there is no queue {name:?}"),
                )
            })?
            .get(0);
        Ok(Queue {
            connection,
            name: name.to_owned(),
            queue_id,
            statements: HashMap::new(),
            linger: Duration::ZERO,
            short_claim: None,
        })
    }

    /// Lets messages gather before they are claimed: after a claim that found fewer than it asked
    /// for, the next one begins `linger` after that one did. A worker that asks more often than
    /// messages arrive then claims several at once, each at a fraction of the cost, for up to
    /// `linger` more of latency. It should be far below the queue's visibility, because
    /// [`Self::acknowledge_and_claim`] waits before it acknowledges. Zero is the default.
    pub fn set_linger(&mut self, linger: Duration) {
        self.linger = linger;
    }

    /// Sends messages in one transaction and returns their numbers. They are visible after `delay`.
    ///
    /// # Errors
    /// `record-too-large` if a payload has more than [`RECORD_BYTES_MAX`] bytes, or whatever the
    /// server says.
    pub fn send(&mut self, payloads: &[&[u8]], delay: Duration) -> Result<Vec<i64>> {
        if payloads.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(payload) = payloads.iter().find(|it| it.len() > RECORD_BYTES_MAX) {
            return Err(Error::new(
                Code::RecordTooLarge,
                format_args!(
                    "a payload of {} bytes is larger than the {RECORD_BYTES_MAX} that are allowed",
                    payload.len()
                ),
            ));
        }
        let statement = self.statement(
            "send",
            "SELECT pubsub.queue_send_{q}($1, '{}', $2)",
            &[Type::BYTEA_ARRAY, Type::INT8],
        )?;
        let failed = Error::statement(format!("send to queue {:?}", self.name));
        self.connection.acknowledged(|client, _| {
            let sent = client.query_one(&statement, &[&payloads, &milliseconds(delay)]);
            Ok(sent.map_err(failed)?.get(0))
        })
    }

    /// Claims up to `most` messages, those that have been visible for longest first. `visibility`
    /// replaces the queue's own, if it is given. Messages that were claimed too often become dead
    /// letters instead.
    ///
    /// # Errors
    /// `bad-argument` for a `visibility` below a millisecond, or whatever the server says.
    pub fn claim(&mut self, most: u32, visibility: Option<Duration>) -> Result<Vec<Claimed>> {
        let claim_ms = claim_ms(visibility)?;
        let began = self.wait_to_claim();
        let query = "SELECT message_id, claim, attempts, sent_at, payload FROM pubsub.queue_claim_{q}($1, $2)";
        let statement = self.statement("claim", query, &[Type::INT4, Type::INT8])?;
        let rows = self
            .connection
            .client()
            .query(&statement, &[&most_claimed(most), &claim_ms])
            .map_err(Error::statement(format_args!(
                "claim from queue {:?}",
                self.name
            )))?;
        self.note_claim(began, rows.len(), most);
        Ok(rows.iter().map(Claimed::from_row).collect())
    }

    /// Acknowledges what a worker has processed and claims what it processes next, as
    /// [`Self::acknowledge`] and [`Self::claim`] do, in one transaction: a worker that goes from
    /// one to the other waits for one commit instead of two.
    ///
    /// # Errors
    /// Those of [`Self::claim`]; then neither was done.
    pub fn acknowledge_and_claim(
        &mut self,
        processed: &[Claimed],
        most: u32,
        visibility: Option<Duration>,
    ) -> Result<Next> {
        let claim_ms = claim_ms(visibility)?;
        let began = self.wait_to_claim();
        // There is one row at least, with nulls in place of a message.
        let query = "SELECT c.message_id, c.claim, c.attempts, c.sent_at, c.payload, a.late \
                       FROM pubsub.queue_ack_{q}($1, $2) AS a (late) \
                       LEFT JOIN pubsub.queue_claim_{q}($3, $4) AS c ON true";
        let types = [Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT4, Type::INT8];
        let statement = self.statement("acknowledge and claim", query, &types)?;
        let (ids, claims) = numbers(processed);
        let rows = self
            .connection
            .client()
            .query(&statement, &[&ids, &claims, &most_claimed(most), &claim_ms])
            .map_err(Error::statement(format_args!(
                "acknowledge and claim in queue {:?}",
                self.name
            )))?;
        let is_message = |row: &&Row| row.get::<_, Option<i64>>(0).is_some();
        let messages = rows.iter().filter(is_message);
        let claimed: Vec<Claimed> = messages.map(Claimed::from_row).collect();
        self.note_claim(began, claimed.len(), most);
        Ok(Next {
            late: rows.first().map_or_else(Vec::new, |row| row.get(5)),
            claimed,
        })
    }

    /// Waits as [`Self::set_linger`] says, and returns when the claim begins.
    fn wait_to_claim(&mut self) -> Instant {
        if let Some(began) = self.short_claim.take() {
            thread::sleep(self.linger.saturating_sub(began.elapsed()));
        }
        Instant::now()
    }

    fn note_claim(&mut self, began: Instant, found: usize, most: u32) {
        let is_short = i32::try_from(found).is_ok_and(|found| found < most_claimed(most));
        self.short_claim = is_short.then_some(began);
    }

    /// Acknowledges messages as processed. Returns the numbers of those for which it was too late:
    /// their claims had run out, and they are delivered again. A call that is repeated after
    /// `outcome-unknown` returns what the first attempt has acknowledged.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn acknowledge(&mut self, claimed: &[Claimed]) -> Result<Vec<i64>> {
        let types = [Type::INT8_ARRAY, Type::INT8_ARRAY];
        let statement =
            self.statement("acknowledge", "SELECT pubsub.queue_ack_{q}($1, $2)", &types)?;
        let (ids, claims) = numbers(claimed);
        self.connection
            .client()
            .query_one(&statement, &[&ids, &claims])
            .map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "acknowledge in queue {:?}",
                self.name
            )))
    }

    /// Releases messages, which are visible again after `delay`. The reason is kept with them if
    /// they become dead letters. Returns the numbers of those for which it was too late.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn give_back(
        &mut self,
        claimed: &[Claimed],
        delay: Duration,
        reason: &str,
    ) -> Result<Vec<i64>> {
        self.move_to(claimed, delay, Some(reason))
    }

    /// Prolongs the claims, to `visibility` from now. Returns the numbers of those for which it was
    /// too late.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn extend(&mut self, claimed: &[Claimed], visibility: Duration) -> Result<Vec<i64>> {
        self.move_to(claimed, visibility, None)
    }

    fn move_to(
        &mut self,
        claimed: &[Claimed],
        after: Duration,
        why: Option<&str>,
    ) -> Result<Vec<i64>> {
        let types = [Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8, Type::TEXT];
        let statement = self.statement(
            "move",
            "SELECT pubsub.queue_move_{q}($1, $2, $3, $4)",
            &types,
        )?;
        let (ids, claims) = numbers(claimed);
        self.connection
            .client()
            .query_one(&statement, &[&ids, &claims, &milliseconds(after), &why])
            .map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "move messages of queue {:?}",
                self.name
            )))
    }

    fn statement(&mut self, name: &'static str, query: &str, types: &[Type]) -> Result<Statement> {
        if let Some(statement) = self.statements.get(name) {
            return Ok(statement.clone());
        }
        let query = query.replace("{q}", &self.queue_id.to_string());
        let made = self
            .connection
            .client()
            .prepare_typed(&query, types)
            .map_err(Error::statement(format_args!(
                "prepare to {name} in queue {:?}",
                self.name
            )))?;
        self.statements.insert(name, made.clone());
        Ok(made)
    }
}

fn numbers(claimed: &[Claimed]) -> (Vec<i64>, Vec<i64>) {
    claimed
        .iter()
        .map(|message| (message.message_id, message.claim))
        .unzip()
}

/// All claimed payloads come in one answer, so the number of them is bounded whatever is asked for.
fn most_claimed(most: u32) -> i32 {
    i32::try_from(most.clamp(1, 10_000)).unwrap_or(1)
}

/// How long a claim lasts; `None` leaves it to the queue. A claim that is over at once would be
/// acknowledged too late each time, until its message is a dead letter.
fn claim_ms(visibility: Option<Duration>) -> Result<Option<i64>> {
    match visibility.map(milliseconds) {
        Some(0) => Err(Error::bad_argument(
            "a claim lasts a millisecond at least, or other workers have its messages at once",
        )),
        given => Ok(given),
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
