//! What the database knows: topics and where their partitions are, servers, groups and offsets.

use std::collections::BTreeMap;
use std::time::Duration;

use dyno_pubsub::record::Codec;
use dyno_pubsub::{
    Connection, Dsn, Error, Result, Retry, Start, Topic, TopicChanges, TopicOptions, TopicPartition,
};
use parking_lot::{Condvar, Mutex};

/// The most sessions at once. Requests that need one wait for it.
const MOST_SESSIONS: usize = 4;
const SESSION_NAME: &str = "dyno-pubsub kafka";
/// A statement that waits longer than these milliseconds for a lock fails, and its client asks
/// again. Without this a few of them, behind one transaction that stays open, would take all
/// sessions for as long.
const SETTINGS: &[(&str, &str)] = &[("lock_timeout", "5000")];

/// Sessions of the server, opened when they are needed.
pub struct Store {
    dsn: Dsn,
    pool: Mutex<Pool>,
    freed: Condvar,
    /// What [`Store::nodes`] found last.
    last_nodes: Mutex<(Vec<Node>, String)>,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    open: usize,
}

/// A server that clients can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: i32,
    pub host: String,
    pub port: i32,
    pub broker_address: String,
}

/// A topic that lies on this cluster, and the addresses of its partitions' brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedTopic {
    pub topic_id: i32,
    pub name: String,
    /// How its rows are compressed.
    pub compression: Codec,
    /// By number; `None` for a partition that no broker has at present.
    pub brokers: Vec<Option<String>>,
}

/// How far a group has read one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub offset: i64,
    pub metadata: String,
}

/// How far a group has read, column by column, as functions of the database take it.
pub struct Columns<'a> {
    pub topics: Vec<i32>,
    pub partitions: Vec<i32>,
    pub offsets: Vec<i64>,
    pub metadata: Vec<&'a [u8]>,
}

impl Columns<'_> {
    pub fn from_commits(commits: &BTreeMap<TopicPartition, Committed>) -> Columns<'_> {
        let metadata = commits.values().map(|commit| commit.metadata.as_bytes());
        Columns {
            topics: commits.keys().map(|key| key.topic_id).collect(),
            partitions: commits.keys().map(|key| key.partition).collect(),
            offsets: commits.values().map(|commit| commit.offset).collect(),
            metadata: metadata.collect(),
        }
    }
}

impl Store {
    pub fn new(dsn: &Dsn) -> Store {
        Store {
            dsn: dsn.clone(),
            pool: Mutex::default(),
            freed: Condvar::new(),
            last_nodes: Mutex::default(),
        }
    }

    /// Runs `ask`, which must be repeatable, in a session that no other thread uses meanwhile. A
    /// session that was lost while it was idle shows that only at the next statement, which is then
    /// run again in a new one.
    pub fn run<T>(&self, ask: impl FnMut(&mut Connection) -> Result<T>) -> Result<T> {
        self.run_in_session(true, ask)
    }

    /// Runs `ask` at most once. A change that was made although its answer got lost would be
    /// refused the second time, as if it had been made by another client.
    fn run_once<T>(&self, ask: impl FnMut(&mut Connection) -> Result<T>) -> Result<T> {
        self.run_in_session(false, ask)
    }

    fn run_in_session<T>(
        &self,
        repeatable: bool,
        mut ask: impl FnMut(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let mut pool = self.pool.lock();
        while pool.idle.is_empty() && pool.open >= MOST_SESSIONS {
            self.freed.wait(&mut pool);
        }
        let idle = pool.idle.pop();
        pool.open += usize::from(idle.is_none());
        drop(pool);
        let was_idle = idle.is_some();
        let (mut session, mut done) = self.attempt(idle, &mut ask);
        let lost = |done: &Result<T>| done.as_ref().is_err_and(|e| e.retry() == Retry::Unknown);
        if repeatable && was_idle && lost(&done) {
            (session, done) = self.attempt(None, &mut ask);
        }
        // A session whose last outcome is unknown may be within a transaction that nothing will
        // end, and hold locks, so it is closed.
        let keep = session.filter(|session| !session.is_closed() && !lost(&done));
        let mut pool = self.pool.lock();
        match keep {
            Some(session) => pool.idle.push(session),
            None => pool.open -= 1,
        }
        drop(pool);
        self.freed.notify_one();
        done
    }

    fn attempt<T>(
        &self,
        session: Option<Connection>,
        ask: &mut impl FnMut(&mut Connection) -> Result<T>,
    ) -> (Option<Connection>, Result<T>) {
        let session = match session {
            Some(session) => Ok(session),
            None => Connection::open_session(&self.dsn, SESSION_NAME, SETTINGS),
        };
        match session {
            Ok(mut session) => {
                let done = ask(&mut session);
                (Some(session), done)
            }
            Err(error) => (None, Err(error)),
        }
    }

    /// Enters this server, and returns its number.
    pub fn enter(
        &self,
        (host, port): (&str, u16),
        broker_address: &str,
        lease: Duration,
    ) -> Result<i32> {
        let (port, lease_ms) = (i32::from(port), lease.as_millis() as i64);
        self.run(|session| {
            let query = "SELECT pubsub.kafka_enter($1, $2, $3, $4)";
            let row = session
                .client()
                .query_one(query, &[&host, &port, &broker_address, &lease_ms])
                .map_err(Error::statement("enter the servers of Kafka's clients"))?;
            Ok(row.get(0))
        })
    }

    /// Renews the lease of this server; false if it had lapsed.
    pub fn renew(&self, node: i32, lease: Duration) -> Result<bool> {
        let lease_ms = lease.as_millis() as i64;
        self.run(|session| {
            let row = session
                .client()
                .query_one("SELECT pubsub.kafka_renew($1, $2)", &[&node, &lease_ms])
                .map_err(Error::statement("renew the lease of a server"))?;
            Ok(row.get(0))
        })
    }

    /// Ends the lease of this server.
    pub fn leave(&self, node: i32) -> Result<()> {
        self.run(|session| {
            let left = session
                .client()
                .execute("SELECT pubsub.kafka_leave($1)", &[&node]);
            left.map(drop)
                .map_err(Error::statement("end the lease of a server"))
        })
    }

    /// The servers that live, and the identity of the database. This server, `own`, is among them
    /// even if it could not renew its lease: a client that was told of no server would give up.
    pub fn nodes(&self, own: i32) -> Result<(Vec<Node>, String)> {
        let query = "SELECT node_id, host, port, broker_address, (SELECT id::text FROM pubsub.identity) \
                       FROM pubsub.kafka_nodes WHERE lease_until >= clock_timestamp() OR node_id = $1 ORDER BY node_id";
        let rows = self.run(|session| {
            let rows = session.client().query(query, &[&own]);
            rows.map_err(Error::statement("list the servers of Kafka's clients"))
        })?;
        let identity = rows.first().map_or_else(String::new, |row| row.get(4));
        let nodes = rows.iter().map(|row| Node {
            id: row.get(0),
            host: row.get(1),
            port: row.get(2),
            broker_address: row.get(3),
        });
        let found = (nodes.collect(), identity);
        self.last_nodes.lock().clone_from(&found);
        Ok(found)
    }

    /// The same; while the database is away, what it said last. A client removes all servers that
    /// it is not told of, and librdkafka finds none again after an empty list.
    pub fn nodes_or_last(&self, own: i32) -> (Vec<Node>, String) {
        let found = self.nodes(own);
        found.unwrap_or_else(|_| self.last_nodes.lock().clone())
    }

    /// The topics of these names, or all. Topics with partitions on other clusters are left out,
    /// because a client could not reach these.
    pub fn topics(&self, names: Option<&[String]>) -> Result<Vec<PlacedTopic>> {
        let query = "SELECT t.topic_id, t.name, \
                            CASE WHEN b.lease_until >= clock_timestamp() THEN p.broker_address END, \
                            t.compression \
                       FROM pubsub.topics AS t JOIN pubsub.partitions AS p USING (topic_id) \
                       LEFT JOIN pubsub.brokers AS b USING (broker) \
                      WHERE t.share IS NULL AND ($1::text[] IS NULL OR t.name = ANY ($1)) \
                      ORDER BY t.name, p.partition";
        let rows = self.run(|session| {
            let rows = session.client().query(query, &[&names]);
            rows.map_err(Error::statement("list topics"))
        })?;
        let mut topics: Vec<PlacedTopic> = Vec::new();
        for row in rows {
            let topic_id = row.get(0);
            if topics.last().is_none_or(|topic| topic.topic_id != topic_id) {
                topics.push(PlacedTopic {
                    topic_id,
                    name: row.get(1),
                    compression: Codec::named(row.get(3))?,
                    brokers: Vec::new(),
                });
            }
            if let Some(topic) = topics.last_mut() {
                topic.brokers.push(row.get(2));
            }
        }
        Ok(topics)
    }

    /// A topic with its settings.
    pub fn topic(&self, name: &str) -> Result<Topic> {
        self.run(|session| session.topic(name))
    }

    /// Creates a topic.
    pub fn create_topic(&self, name: &str, options: &TopicOptions) -> Result<()> {
        self.run_once(|session| session.create_topic(name, options))
            .map(drop)
    }

    /// Changes a topic.
    pub fn alter_topic(&self, name: &str, changes: &TopicChanges) -> Result<()> {
        self.run_once(|session| session.alter_topic(name, changes))
    }

    /// Drops a topic.
    pub fn drop_topic(&self, name: &str) -> Result<()> {
        self.run_once(|session| session.drop_topic(name))
    }

    /// The offset of the beginning or the end of a partition.
    pub fn offset_of(&self, topic: &str, partition: i32, start: Start) -> Result<i64> {
        self.run(|session| session.offset_of(topic, partition, start))
    }

    /// Where the first row begins, or what is left of it from an offset on, that has a record which
    /// was made at this time or later.
    pub fn row_from_time(
        &self,
        key: TopicPartition,
        time_us: i64,
        from: i64,
    ) -> Result<Option<i64>> {
        self.run(|session| {
            let query = "SELECT pubsub.row_from_time($1, $2, $3, $4)";
            let row = session
                .client()
                .query_one(query, &[&key.topic_id, &key.partition, &time_us, &from]);
            let row = row.map_err(Error::statement("find a record by its time"))?;
            Ok(row.get(0))
        })
    }

    /// A producer id that no other producer gets.
    pub fn new_producer(&self) -> Result<i64> {
        self.run(Connection::new_producer)
    }

    /// The sequence of the last record of a producer in a partition; -1 if it has none.
    pub fn last_sequence(&self, key: TopicPartition, producer: i64) -> Result<i64> {
        let query = "SELECT sequence FROM pubsub.producers \
                      WHERE topic_id = $1 AND partition = $2 AND producer_id = $3";
        self.run(|session| {
            let row = session
                .client()
                .query_opt(query, &[&key.topic_id, &key.partition, &producer]);
            let row = row.map_err(Error::statement("look a producer up"))?;
            Ok(row.map_or(-1, |row| row.get(0)))
        })
    }

    /// Which server coordinates a group; this one, `node`, if no other does.
    pub fn coordinator(&self, group: &str, node: i32) -> Result<i32> {
        self.run(|session| {
            let query = "SELECT pubsub.kafka_coordinator($1, $2)";
            let row = session.client().query_one(query, &[&group, &node]);
            let row = row.map_err(Error::statement(format_args!("coordinate group {group:?}")))?;
            Ok(row.get(0))
        })
    }

    /// Stores offsets of a group that this server, `node`, coordinates.
    pub fn commit(
        &self,
        group: &str,
        node: i32,
        commits: &BTreeMap<TopicPartition, Committed>,
    ) -> Result<()> {
        let Columns {
            topics,
            partitions,
            offsets,
            metadata,
        } = Columns::from_commits(commits);
        self.run(|session| {
            let query = "SELECT pubsub.kafka_commit($1, $2, $3, $4, $5, $6)";
            let done = session.client().execute(
                query,
                &[&group, &node, &topics, &partitions, &offsets, &metadata],
            );
            done.map(drop).map_err(Error::statement(format_args!(
                "store offsets of group {group:?}"
            )))
        })
    }

    /// All offsets of a group, by topic and partition.
    pub fn committed(&self, group: &str) -> Result<BTreeMap<(String, i32), Committed>> {
        let query = "SELECT t.name, o.partition, o.committed, o.metadata FROM pubsub.kafka_offsets AS o \
                       JOIN pubsub.topics AS t USING (topic_id) WHERE o.group_name = $1";
        let rows = self.run(|session| {
            let rows = session.client().query(query, &[&group]);
            rows.map_err(Error::statement(format_args!(
                "read offsets of group {group:?}"
            )))
        })?;
        let committed = rows.iter().map(|row| {
            // PostgreSQL's texts cannot hold a zero, which some clients end theirs with, so these
            // are bytes there.
            let metadata = String::from_utf8(row.get(3)).unwrap_or_default();
            let offset = row.get(2);
            ((row.get(0), row.get(1)), Committed { offset, metadata })
        });
        Ok(committed.collect())
    }

    /// The names of the groups that this server coordinates.
    pub fn groups(&self, node: i32) -> Result<Vec<String>> {
        let query = "SELECT name FROM pubsub.kafka_groups WHERE node_id = $1 ORDER BY name";
        let rows = self.run(|session| {
            let rows = session.client().query(query, &[&node]);
            rows.map_err(Error::statement("list groups"))
        })?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Whether there is a group of this name.
    pub fn has_group(&self, group: &str) -> Result<bool> {
        let query = "SELECT EXISTS (SELECT FROM pubsub.kafka_groups WHERE name = $1)";
        self.run(|session| {
            let row = session.client().query_one(query, &[&group]);
            let row = row.map_err(Error::statement(format_args!("find group {group:?}")))?;
            Ok(row.get(0))
        })
    }

    /// Deletes a group without members that this server, `node`, coordinates.
    pub fn delete_group(&self, group: &str, node: i32) -> Result<()> {
        self.run_once(|session| {
            let query = "SELECT pubsub.kafka_delete_group($1, $2)";
            let done = session.client().execute(query, &[&group, &node]);
            done.map(drop)
                .map_err(Error::statement(format_args!("delete group {group:?}")))
        })
    }
}
