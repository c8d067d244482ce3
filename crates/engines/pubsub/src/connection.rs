//! A connection to the server, over which producers, consumers, brokers and commands speak SQL.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dyno_postgres::postgres::{Client, Statement};
use dyno_postgres::{Dsn, Notices, Session, connect};

use crate::append::{Appended, Appends};
use crate::client::Chain;
use crate::error::{Code, Error, Result};
use crate::fetch::{Fetched, Fetches};
use crate::listening::Listening;
use crate::record::Batch;
use crate::schema::{self, Installed};
use crate::start::Start;
use crate::topic::{self, Partition, Position, Topic, TopicChanges, TopicOptions, TopicPartition};

/// Settings for plans. Plans are made while tables are empty and used when they are large, so none
/// may go by a table's size. A plan that is made for each call would copy the bodies into itself as
/// constants.
const SETTINGS: [(&str, &str); 3] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
];

/// One session of the server, used by one thread at a time. After an error whose retry is
/// `Unknown`, or when [`Self::is_closed`], open another.
pub struct Connection {
    client: Client,
    notices: Arc<Notices>,
    appends: Appends,
    fetches: Fetches,
    statements: HashMap<&'static str, Statement>,
    listening: Listening,
}

impl Connection {
    /// Connects under the name `dyno-pubsub`, with no settings of the caller's.
    ///
    /// # Errors
    /// `server-lost`, `denied`, `unknown-database`, or `bad-argument` for a text that is not a
    /// connection string.
    pub fn open(dsn: &Dsn) -> Result<Self> {
        Self::open_session(dsn, "dyno-pubsub", &[])
    }

    /// Connects with a name that `pg_stat_activity` shows, and with settings (name, value). Besides
    /// these the session has settings that keep plans: they are made once and go by the index. A
    /// caller that runs large queries of its own over [`Self::client`] may reset them.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_session(dsn: &Dsn, name: &str, settings: &[(&str, &str)]) -> Result<Self> {
        let notices = Arc::new(Notices::default());
        let mut session = Session::named(name);
        session.notices = Some(notices.clone());
        for (name, value) in SETTINGS.iter().chain(settings) {
            session.set(name, value);
        }
        Ok(Self {
            client: connect(dsn, &session)?,
            notices,
            appends: Appends::default(),
            fetches: Fetches::default(),
            statements: HashMap::new(),
            listening: Listening::default(),
        })
    }

    /// The driver's client, for statements that this crate does not have.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Returns a statement, which is prepared at its first use in this session.
    pub(crate) fn prepared(&mut self, query: &'static str) -> Result<Statement> {
        if let Some(statement) = self.statements.get(query) {
            return Ok(statement.clone());
        }
        let made = self
            .client
            .prepare(query)
            .map_err(Error::statement("prepare a statement"))?;
        self.statements.insert(query, made.clone());
        Ok(made)
    }

    /// Whether the session has ended.
    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Installs the schema, or migrates it to this version.
    ///
    /// # Errors
    /// See [`schema::install`].
    pub fn install(&mut self) -> Result<Installed> {
        schema::install(&mut self.client)
    }

    /// Checks that the schema is installed in the version that this program knows.
    ///
    /// # Errors
    /// `not-installed`, `newer-schema`.
    pub fn check_schema(&mut self) -> Result<()> {
        schema::check(&mut self.client)
    }

    /// Creates a topic and returns its number.
    ///
    /// # Errors
    /// `name-taken`, `bad-argument`.
    pub fn create_topic(&mut self, name: &str, options: &TopicOptions) -> Result<i32> {
        topic::create(&mut self.client, name, options)
    }

    /// Changes a topic. On a topic that lies on several clusters, the others are changed first.
    ///
    /// # Errors
    /// `unknown-topic`, `bad-argument`; `placed-elsewhere` at another cluster than the topic's
    /// home. When a cluster cannot be reached some shares may be changed already: call again.
    pub fn alter_topic(&mut self, name: &str, changes: &TopicChanges) -> Result<()> {
        self.alter_shares(name, changes)?;
        topic::alter(&mut self.client, name, changes)
    }

    /// Drops a topic with all its records and groups. On a topic that lies on several clusters, the
    /// others are dropped first.
    ///
    /// # Errors
    /// `unknown-topic`; `placed-elsewhere` at another cluster than the topic's home. When a cluster
    /// cannot be reached some shares may be gone already: call again.
    pub fn drop_topic(&mut self, name: &str) -> Result<()> {
        self.drop_shares(name)?;
        topic::drop(&mut self.client, name)
    }

    /// A topic by name.
    ///
    /// # Errors
    /// `unknown-topic`.
    pub fn topic(&mut self, name: &str) -> Result<Topic> {
        topic::find(&mut self.client, name)
    }

    /// All topics by name.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn topics(&mut self) -> Result<Vec<Topic>> {
        topic::list(&mut self.client)
    }

    /// A topic's partitions.
    ///
    /// # Errors
    /// Whatever the server says; an unknown topic has none.
    pub fn partitions(&mut self, topic_id: i32) -> Result<Vec<Partition>> {
        topic::partitions(&mut self.client, topic_id)
    }

    /// The offset that a position stands for in a partition.
    ///
    /// # Errors
    /// `unknown-topic`.
    pub fn offset_of(&mut self, topic: &str, partition: i32, start: Start) -> Result<i64> {
        topic::offset_of(&mut self.client, topic, partition, start)
    }

    /// Returns a producer id, which no other producer gets.
    ///
    /// # Errors
    /// Whatever the server says.
    pub fn new_producer(&mut self) -> Result<i64> {
        self.client
            .query_one("SELECT pubsub.new_producer()", &[])
            .map(|row| row.get(0))
            .map_err(Error::statement("take a producer id"))
    }

    /// Appends a batch to a partition and commits. `epoch` is the broker's, 0 without one. After an
    /// error whose retry is `Unknown` the same batch may be sent again: records that are in the log
    /// already are not appended again.
    ///
    /// # Errors
    /// `unknown-topic`, `fenced`, `sequence-gap`, `outcome-unknown`, which is also the answer when
    /// the server committed without the synchronous standbys that it should have waited for.
    pub fn append(
        &mut self,
        topic_id: i32,
        partition: i32,
        epoch: i64,
        batch: &mut Batch,
    ) -> Result<Appended> {
        let key = TopicPartition {
            topic_id,
            partition,
        };
        self.acknowledged(|client, appends| appends.append(client, key, epoch, batch))
    }

    /// Appends a batch of a producer that keeps a chain over its records. The chain is stored with
    /// the batch or not at all.
    pub(crate) fn append_chained(
        &mut self,
        key: TopicPartition,
        batch: &mut Batch,
        chain: Option<&Chain>,
    ) -> Result<Appended> {
        self.acknowledged(|client, appends| match chain {
            Some(chain) => appends.append_chained(client, key, batch, chain),
            None => appends.append(client, key, 0, batch),
        })
    }

    /// Appends to several partitions in one transaction, all of them or none, each with its epoch.
    /// The batches must be ordered by partition, or two writers may wait for each other.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_all(
        &mut self,
        epoch_batches: &mut [(TopicPartition, i64, &mut Batch)],
    ) -> Result<Vec<Appended>> {
        let failed = || Error::statement("append to several partitions");
        self.acknowledged(|client, appends| {
            let mut transaction = client.transaction().map_err(failed())?;
            let mut done = Vec::with_capacity(epoch_batches.len());
            for (key, epoch, batch) in epoch_batches {
                let appended = appends.append(&mut transaction, *key, *epoch, batch)?;
                done.push(appended);
            }
            // An error of a commit leaves the outcome unknown, which the class of the error says.
            // Each partition recognises its records when the caller sends them again.
            transaction.commit().map_err(failed())?;
            Ok(done)
        })
    }

    /// Reads rows of a partition from an offset on: the one that holds it, and more while their
    /// bodies are within the bound. There are none at the end of the log. Reading on where the last
    /// fetch ended is fastest.
    ///
    /// # Errors
    /// `unknown-topic`; `offset-out-of-range` for an offset that retention has removed or that was
    /// not written yet.
    pub fn fetch(
        &mut self,
        topic_id: i32,
        partition: i32,
        offset: i64,
        most_bytes: usize,
    ) -> Result<Fetched> {
        let key = TopicPartition {
            topic_id,
            partition,
        };
        self.fetches
            .fetch(&mut self.client, key, offset, most_bytes)
    }

    /// The first offset of a partition, and the offset that its next record gets; `None` without
    /// such a partition.
    ///
    /// # Errors
    /// Those of the server.
    pub fn ends(&mut self, key: TopicPartition) -> Result<Option<(i64, i64)>> {
        crate::fetch::ends(&mut self.client, key)
    }

    /// Listens to appends to the partitions of these positions, and to no others.
    pub(crate) fn listen(&mut self, topic_id: i32, positions: &[Position]) -> Result<()> {
        let partitions = positions.iter().map(|at| at.partition).collect();
        self.listening
            .listen(&mut self.client, topic_id, partitions)
    }

    /// Requests a notice of the append at this offset, the end of the partition. Returns false if a
    /// record is there already.
    pub(crate) fn request_notice(
        &mut self,
        topic_id: i32,
        partition: i32,
        offset: i64,
    ) -> Result<bool> {
        let statement = self.prepared("SELECT pubsub.await($1, $2, $3)")?;
        self.client
            .query_one(&statement, &[&topic_id, &partition, &offset])
            .map(|row| row.get(0))
            .map_err(Error::statement(format_args!(
                "wait for partition {partition} of topic {topic_id}"
            )))
    }

    /// Waits for a notice, for at most `wait`. Returns whether one came.
    pub(crate) fn wait_for_notice(&mut self, wait: Duration) -> Result<bool> {
        self.listening.wait(&mut self.client, wait)
    }

    /// Runs `act`, whose commit is an acknowledgement. It fails with `outcome-unknown` if the
    /// server committed without the synchronous standbys that it should have waited for.
    pub(crate) fn acknowledged<T>(
        &mut self,
        act: impl FnOnce(&mut Client, &mut Appends) -> Result<T>,
    ) -> Result<T> {
        let before = self.notices.unreplicated();
        let done = act(&mut self.client, &mut self.appends)?;
        // The server answers a commit with success even if its wait for the standbys was cancelled,
        // and only warns. A takeover could lose such a commit, so it is not acknowledged.
        if self.notices.unreplicated() == before {
            return Ok(done);
        }
        let text = "the commit was not confirmed by the synchronous standbys";
        Err(Error::new(Code::OutcomeUnknown, text))
    }
}
