//! Carries a producer's batches to the servers themselves, one connection and one thread for some of the queues of
//! one server.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dyno_postgres::Dsn;

use super::named::Sent;
use super::options::Acknowledge;
use super::send_queues::{SealedBatch, SendQueues};
use crate::append::Appended;
use crate::connection::Connection;
use crate::error::{Code, Error, Result, Retry};
use crate::placement::at_cluster;
use crate::record::{Batch, Codec, Run};

/// One thread's work.
pub(super) struct Carrier {
    pub server: Server,
    pub acknowledge: Acknowledge,
    pub codec: Codec,
    /// Its partitions.
    pub share: Vec<usize>,
    pub connection: Option<Connection>,
    /// The id of a producer with a name, and what partitions had of it when it was opened; without one the server
    /// gives ids.
    pub named: Option<(i64, BTreeMap<i32, Sent>)>,
}

/// The server that has a carrier's partitions.
#[derive(Clone)]
pub(super) enum Server {
    /// The one that was named, with the topic's number there.
    Named(Dsn, i32),
    /// Another cluster, which may be away when the producer opens: the topic's number is asked for later.
    Elsewhere {
        cluster: String,
        dsn: Dsn,
        topic: String,
        home: String,
        topic_id: Option<i32>,
    },
}

impl Server {
    /// Connects, and finds the topic's number where that is not known.
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

/// How the producer is known at one partition.
struct Identity {
    producer_id: i64,
    next_sequence: i64,
}

const PAUSE_LEAST: Duration = Duration::from_millis(10);
const PAUSE_MOST: Duration = Duration::from_secs(1);

impl Carrier {
    /// Sends until the producer is closed and nothing is left.
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
                // Sent behind a gap, it would be taken for what is missing there.
                ended.insert(sealed.partition);
            } else if outcome.is_err() {
                // Whether the sequences were used is not known: go on as somebody else.
                identities.remove(&sealed.partition);
            }
            queues.finish(sealed, outcome);
        }
    }

    /// Tries until the batch is in the log, cannot be, or its time is up. A repetition carries the same
    /// sequences, so it does no harm when the attempt before it was committed after all.
    fn deliver(
        &mut self,
        sealed: &SealedBatch,
        identities: &mut HashMap<i32, Identity>,
    ) -> Result<i64> {
        let mut pause = PAUSE_LEAST;
        let mut may_be_there = false;
        loop {
            let error = match self.attempt(sealed, identities) {
                Ok(base_offset) => return Ok(base_offset),
                Err(error) => self.server.named(error),
            };
            if error.retry() == Retry::Never {
                return Err(error);
            }
            may_be_there |= error.retry() == Retry::Unknown;
            if error.retry() == Retry::Unknown
                || self.connection.as_ref().is_none_or(Connection::is_closed)
            {
                self.connection = None;
            }
            if Instant::now() + pause > sealed.deadline {
                return Err(gave_up(sealed, may_be_there, &error));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MOST);
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
                // Not what the server has by now: records were left out by what it had then.
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
        let place = (topic_id, sealed.partition);
        let appended = connection.append_chained(place, &mut batch, sealed.chain.as_ref())?;
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

/// A connection for appending.
pub(super) fn connect(dsn: &Dsn, acknowledge: Acknowledge) -> Result<Connection> {
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
