//! Direct mode of a producer: appends batches at the servers themselves. Each transport has a
//! connection and a thread, and serves some of the partitions of one server.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::Dsn;
use dyno_random::backoff;

use super::super::identity::Identity;
use super::super::named::Sent;
use super::super::options::Acknowledge;
use super::super::send_queues::{SealedBatch, SendQueues};
use crate::append::Appended;
use crate::connection::Connection;
use crate::error::{Code, Error, Result, Retry};
use crate::placement::at_cluster;
use crate::record::{Batch, Codec, Run};
use crate::topic::TopicPartition;

/// Appends the batches of some partitions to one server, one batch of each partition at a time.
pub struct Transport {
    pub server: Server,
    pub acknowledge: Acknowledge,
    pub codec: Codec,
    /// The partitions whose batches it takes.
    pub share: Vec<usize>,
    pub connection: Option<Connection>,
    /// For a producer with a name: its id, and what each partition had of it when the producer was
    /// opened. Without a name the server gives ids.
    pub named: Option<(i64, BTreeMap<i32, Sent>)>,
}

/// The server on which a transport's partitions lie.
#[derive(Clone)]
pub enum Server {
    /// The server that the caller named, with the number of the topic there.
    Named(Dsn, i32),
    /// Another cluster. It may be down when the producer is opened, so the number of the topic is
    /// looked up when it is first reached.
    Elsewhere {
        cluster: String,
        dsn: Dsn,
        topic: String,
        home: String,
        topic_id: Option<i32>,
    },
}

impl Server {
    /// Connects, and looks the number of the topic up if it is not known yet.
    pub fn connect(&mut self, acknowledge: Acknowledge) -> Result<Connection> {
        match self {
            Server::Named(dsn, _) => connect(dsn, acknowledge),
            Server::Elsewhere {
                dsn,
                topic,
                home,
                topic_id,
                ..
            } => {
                let mut connection = connect(dsn, acknowledge)?;
                if topic_id.is_none() {
                    *topic_id = Some(connection.share_of(topic, home)?);
                }
                Ok(connection)
            }
        }
    }

    pub fn topic_id(&self) -> Option<i32> {
        match self {
            Server::Named(_, topic_id) => Some(*topic_id),
            Server::Elsewhere { topic_id, .. } => *topic_id,
        }
    }

    fn named(&self, error: Error) -> Error {
        match self {
            Server::Named(..) => error,
            Server::Elsewhere { cluster, .. } => at_cluster(cluster, &error),
        }
    }
}

const PAUSE_LEAST: Duration = Duration::from_millis(10);
const PAUSE_MOST: Duration = Duration::from_secs(1);

impl Transport {
    /// Sends batches until the producer is closed and the queues are empty.
    pub fn run(mut self, queues: &Arc<SendQueues>) {
        let mut identities = HashMap::new();
        let mut ended = HashSet::new();
        while let Some(sealed) = queues.pop(&self.share, 1, None) {
            if ended.contains(&sealed.partition) {
                queues.finish(sealed, Err(behind_a_failure()));
                continue;
            }
            let outcome = self.deliver(&sealed, &mut identities);
            if outcome.is_err() && self.named.is_some() {
                // A named producer that starts again leaves out as many records as the partition
                // has. If batches were sent after this one failed, it would leave out the failed
                // ones and send the last ones twice.
                ended.insert(sealed.partition);
            } else if outcome.is_err() {
                // The server may have used the sequence numbers of this batch or not. The next
                // batch begins with a new producer id, because a wrong number would be refused as a
                // gap or taken for a repetition.
                identities.remove(&sealed.partition);
            }
            queues.finish(sealed, outcome);
        }
    }

    /// Tries until the batch is in the log, is refused for good, or its time is over. A repetition
    /// carries the same sequence numbers, so the server recognises it if an earlier attempt was
    /// committed after all.
    fn deliver(
        &mut self,
        sealed: &SealedBatch,
        identities: &mut HashMap<i32, Identity>,
    ) -> Result<i64> {
        let mut failures = 0;
        let mut may_be_there = false;
        loop {
            let error = match self.attempt(sealed, identities) {
                Ok(base_offset) => return Ok(base_offset),
                Err(error) => self.server.named(error),
            };
            if error.retry() == Retry::Never {
                return Err(error);
            }
            // One attempt whose outcome is unknown makes the whole delivery unknown, whatever fails
            // later.
            may_be_there |= error.retry() == Retry::Unknown;
            // After an unknown outcome the answer may still be on its way on this connection, where
            // the next statement would read it as its own.
            if error.retry() == Retry::Unknown
                || self.connection.as_ref().is_none_or(Connection::is_closed)
            {
                self.connection = None;
            }
            failures += 1;
            let pause = backoff(PAUSE_LEAST, PAUSE_MOST, failures);
            // The decision is made before the pause, so a batch never waits for an attempt that
            // would come too late.
            if Instant::now() + pause > sealed.deadline {
                return Err(gave_up(sealed, may_be_there, &error));
            }
            thread::sleep(pause);
        }
    }

    fn attempt(
        &mut self,
        sealed: &SealedBatch,
        identities: &mut HashMap<i32, Identity>,
    ) -> Result<i64> {
        if self.connection.is_none() {
            self.connection = Some(self.server.connect(self.acknowledge)?);
        }
        let (Some(connection), Some(topic_id)) = (&mut self.connection, self.server.topic_id())
        else {
            return Err(Error::new(Code::ServerLost, "no connection"));
        };
        let identity = match identities.entry(sealed.partition) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                // The sequence continues from what the partition had when the producer was opened,
                // because the caller left out records by that number. What it has now may be more.
                let (producer_id, next_sequence) = match &self.named {
                    Some((id, sent)) => {
                        let sent = sent.get(&sealed.partition);
                        (*id, sent.map_or(0, |sent| sent.records))
                    }
                    None => (connection.new_producer()?, 0),
                };
                unknown.insert(Identity {
                    producer_id,
                    next_sequence,
                })
            }
        };
        let run = Run {
            producer_id: identity.producer_id,
            first_sequence: identity.next_sequence,
        };
        let mut batch = Batch::new();
        batch.push_compressing(run, self.codec, &sealed.body)?;
        let key = TopicPartition {
            topic_id,
            partition: sealed.partition,
        };
        let appended = connection.append_chained(key, &mut batch, sealed.chain.as_ref())?;
        identity.next_sequence += sealed.records;
        Ok(match appended {
            Appended::New { base_offset, .. } => base_offset,
            Appended::Known { offsets } => offsets.first().copied().flatten().unwrap_or(-1),
        })
    }
}

fn behind_a_failure() -> Error {
    let text =
        "what comes before it was not acknowledged, and a producer with a name leaves no gaps";
    Error::new(Code::Closed, text)
}

/// Opens a connection for appending, whose commits wait for the disk unless the caller does not
/// want that.
pub fn connect(dsn: &Dsn, acknowledge: Acknowledge) -> Result<Connection> {
    let settings: &[(&str, &str)] = match acknowledge {
        Acknowledge::Committed => &[],
        Acknowledge::Async => &[("synchronous_commit", "off")],
    };
    Connection::open_session(dsn, "dyno-producer", settings)
}

fn gave_up(sealed: &SealedBatch, may_be_there: bool, last: &Error) -> Error {
    let (code, retry) = if may_be_there {
        (Code::OutcomeUnknown, Retry::Unknown)
    } else {
        (last.kind(), Retry::Safe)
    };
    let (records, partition) = (sealed.records, sealed.partition);
    let text = format_args!(
        "gave up on {records} records for partition {partition}; the last attempt: {}",
        last.text()
    );
    Error::with_retry(code, retry, text)
}
