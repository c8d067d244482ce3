//! A connection to the server: what producers, consumers, brokers and commands do over SQL.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dyno_postgres::postgres::{Client, Statement};
use dyno_postgres::{Dsn, Notices, Session, connect};

use crate::append::{Appended, Appends};
use crate::client::Chain;
use crate::error::{Code, Error, Result};
use crate::fetch::{Fetched, Fetches};
use crate::hearing::Heard;
use crate::record::Batch;
use crate::schema::{self, Installed};
use crate::start::Start;
use crate::topic::{self, Partition, Topic, TopicChanges, TopicOptions};

/// Plans are made when tables are empty and used when they are large, so none may go by the table's
/// size then; and a plan made for each call would copy the bodies into itself as constants.
const SETTINGS: [(&str, &str); 3] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
];

/// One session of the server, owned by one thread. After an error whose retry is `Unknown`, or when
/// [`Self::is_closed`], open another.
pub struct Connection {
    client: Client,
    notices: Arc<Notices>,
    appends: Appends,
    fetches: Fetches,
    statements: HashMap<&'static str, Statement>,
    heard: Heard,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// `server-lost`, `denied`, `unknown-database`, or `bad-argument` for a text that is not a
    /// connection string.
    pub fn open(dsn: &Dsn) -> Result<Self> {
        Self::open_session(dsn, "dyno-pubsub", &[])
    }

    /// Connects with a name that `pg_stat_activity` shows, and with settings (name, value). Beside
    /// them a session has those that keep plans: they are made once and go by the index. Who wants
    /// to run large queries of their own over [`Self::client`] may reset them.
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
            heard: Heard::default(),
        })
    }

    /// The client, for statements that this crate has none for.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// A statement that is prepared once in this session.
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

    /// Makes or migrates the schema.
    ///
    /// # Errors
    /// See [`schema::install`].
    pub fn install(&mut self) -> Result<Installed> {
        schema::install(&mut self.client)
    }

    /// Makes sure that the schema is there and known.
    ///
    /// # Errors
    /// `not-installed`, `newer-schema`.
    pub fn check_schema(&mut self) -> Result<()> {
        schema::check(&mut self.client)
    }

    /// Makes a topic and returns its number.
    ///
    /// # Errors
    /// `name-taken`, `bad-argument`.
    pub fn create_topic(&mut self, name: &str, options: &TopicOptions) -> Result<i32> {
        topic::create(&mut self.client, name, options)
    }

    /// Changes a topic, on other clusters first where it lies on several.
    ///
    /// # Errors
    /// `unknown-topic`, `bad-argument`; `placed-elsewhere` at another cluster than the topic's
    /// home. When a cluster cannot be reached some shares may be changed already: call again.
    pub fn alter_topic(&mut self, name: &str, changes: &TopicChanges) -> Result<()> {
        self.alter_shares(name, changes)?;
        topic::alter(&mut self.client, name, changes)
    }

    /// Drops a topic with all its records and groups, on other clusters first where it lies on
    /// several.
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

    /// The offset of a place.
    ///
    /// # Errors
    /// `unknown-topic`.
    pub fn offset_of(&mut self, topic: &str, partition: i32, start: Start) -> Result<i64> {
        topic::offset_of(&mut self.client, topic, partition, start)
    }

    /// An id for a producer, which no other producer gets.
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
    /// error whose retry is `Unknown` the same batch may be sent again: what is there already is
    /// not appended.
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
        let alone = self.notices.unreplicated();
        let done = self
            .appends
            .append(&mut self.client, (topic_id, partition), epoch, batch)?;
        self.was_replicated(alone)?;
        Ok(done)
    }

    /// The same without a broker, for a producer that keeps a chain over its records: it is stored
    /// with them or not at all.
    pub(crate) fn append_chained(
        &mut self,
        place: (i32, i32),
        batch: &mut Batch,
        chain: Option<&Chain>,
    ) -> Result<Appended> {
        let alone = self.notices.unreplicated();
        let done = match chain {
            Some(chain) => self
                .appends
                .append_chained(&mut self.client, place, batch, chain)?,
            None => self.appends.append(&mut self.client, place, 0, batch)?,
        };
        self.was_replicated(alone)?;
        Ok(done)
    }

    /// Appends to several partitions in one transaction: all of them or none. In the order of the
    /// partitions, or two writers may wait for each other.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_all(
        &mut self,
        epoch_batches: &mut [(i32, i32, i64, &mut Batch)],
    ) -> Result<Vec<Appended>> {
        let alone = self.notices.unreplicated();
        let failed = || Error::statement("append to several partitions");
        let mut transaction = self.client.transaction().map_err(failed())?;
        let mut done = Vec::with_capacity(epoch_batches.len());
        for (topic_id, partition, epoch, batch) in epoch_batches {
            done.push(self.appends.append(
                &mut transaction,
                (*topic_id, *partition),
                *epoch,
                batch,
            )?);
        }
        transaction.commit().map_err(failed())?;
        self.was_replicated(alone)?;
        Ok(done)
    }

    /// Rows of a partition from an offset on: the first that holds it, and more while their bodies
    /// are within the bound. None at the end of the log. Reading on where the last fetch ended is
    /// the fast way.
    ///
    /// # Errors
    /// `unknown-topic`; `offset-out-of-range` for what retention took away or was not written yet.
    pub fn fetch(
        &mut self,
        topic_id: i32,
        partition: i32,
        offset: i64,
        most_bytes: usize,
    ) -> Result<Fetched> {
        self.fetches
            .fetch(&mut self.client, (topic_id, partition), offset, most_bytes)
    }

    /// Listens to appends at these places and no others.
    pub(crate) fn listen(&mut self, topic_id: i32, places: &[(i32, i64)]) -> Result<()> {
        let partitions = places.iter().map(|(partition, _)| *partition).collect();
        self.heard.listen(&mut self.client, topic_id, partitions)
    }

    /// Whether the append at this offset, the end of the partition, will be told to who listens.
    /// False: it is there already.
    pub(crate) fn will_be_told(
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

    /// Waits until something that is listened to is told, at most so long; whether it was.
    pub(crate) fn wait_to_be_told(&mut self, wait: Duration) -> Result<bool> {
        self.heard.wait(&mut self.client, wait)
    }

    fn was_replicated(&self, before: u64) -> Result<()> {
        if self.notices.unreplicated() == before {
            return Ok(());
        }
        let text = "the commit was not confirmed by the synchronous standbys";
        Err(Error::new(Code::OutcomeUnknown, text))
    }
}
