//! The producer: batches of records for one topic, each appended exactly once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use dyno_postgres::Dsn;
use parking_lot::Mutex;

use super::address::Address;
use super::broker::{self, Everywhere};
use super::chain::Chain;
use super::direct::{self, Server, Transport};
use super::named::{self, Sent};
use super::options::ProducerOptions;
use super::receipt::Receipt;
use super::send_queues::SendQueues;
use crate::connection::Connection;
use crate::error::{Code, Error, Result};
use crate::key::Partitioner;
use crate::record;
use crate::topic::Topic;
use crate::wire::ClientOptions;

/// Sends records to one topic. The records of a partition become batches. Each batch is appended
/// exactly once, however often it has to be sent, and stays in memory until it is acknowledged.
/// Threads may share a producer.
///
/// Dropping it sends what waits, but does not report failures: call [`Self::flush`] before.
pub struct Producer {
    queues: Arc<SendQueues>,
    partitions: u32,
    partitioner: Partitioner,
    sent_before: BTreeMap<i32, Sent>,
    /// The hash chain of each partition over the records that the caller left out, because the log
    /// has them already.
    left_out: Mutex<BTreeMap<u32, Chain>>,
    transports: Vec<JoinHandle<()>>,
}

impl Producer {
    /// Connects to a server or a broker and finds the topic.
    ///
    /// # Errors
    /// `unknown-topic`, `not-installed`, `newer-schema`, `server-lost`, `denied`; `bad-argument`
    /// for a text that is not an address.
    pub fn open<A>(address: A, topic: &str, options: ProducerOptions) -> Result<Producer>
    where
        A: TryInto<Address>,
        Error: From<A::Error>,
    {
        match address.try_into()? {
            Address::Server(dsn) => {
                let mut connection = direct::connect(&dsn, options.acknowledge)?;
                connection.check_schema()?;
                let topic = connection.topic(topic)?;
                let partitions = topic.options.partitions;
                let places = (partitions, topic.options.partitioner);
                let named = options.name.is_some();
                let queues = Arc::new(SendQueues::new(partitions as usize, options.clone()));
                let (transports, sent_before) =
                    direct_transports(&dsn, connection, &topic, &options)?;
                let mut producer = Producer::running(queues, places, transports, Transport::run)?;
                // A partition without records of this name begins a new chain. One whose records
                // were written before there were chains gets one when the caller has left all of
                // them out.
                let new = |partition: &usize| !sent_before.contains_key(&(*partition as i32));
                if named {
                    for queue in (0..partitions as usize).filter(new) {
                        producer.queues.continue_chain(queue, Chain::default());
                    }
                }
                for (partition, sent) in &sent_before {
                    if let (Ok(queue), Some(chain)) = (usize::try_from(*partition), &sent.chain) {
                        producer.queues.continue_chain(queue, chain.clone());
                    }
                }
                producer.sent_before = sent_before;
                Ok(producer)
            }
            Address::Broker(_) if options.name.is_some() => Err(Error::bad_argument(
                "a producer with a name needs its server: a broker does not say what the log has of it",
            )),
            Address::Broker(broker) => {
                let client = ClientOptions {
                    token: options.token.clone().unwrap_or_default(),
                    name: "dyno-producer".to_owned(),
                    tls: options.tls.clone(),
                    ..ClientOptions::default()
                };
                let all = Everywhere::open(&broker, topic, client)?;
                let places = (all.partitions, all.partitioner);
                let queues = Arc::new(SendQueues::new(all.partitions as usize, options));
                let transports = all.clusters.into_iter();
                let transports =
                    transports.map(|(share, brokers)| broker::Transport::new(brokers, &share));
                Producer::running(queues, places, transports.collect(), broker::Transport::run)
            }
        }
    }

    /// A producer with a thread for each transport. If one thread cannot be started, the others
    /// end.
    fn running<C: Send + 'static>(
        queues: Arc<SendQueues>,
        (partitions, partitioner): (u32, Partitioner),
        transports: Vec<C>,
        run: fn(C, &Arc<SendQueues>),
    ) -> Result<Producer> {
        let threads = transports.into_iter().map(|transport| {
            let queues = queues.clone();
            thread::Builder::new()
                .name("dyno-producer".to_owned())
                .spawn(move || run(transport, &queues))
                .map_err(no_thread)
        });
        let threads = threads.collect::<Result<Vec<_>>>();
        if threads.is_err() {
            queues.close();
        }
        Ok(Producer {
            transports: threads?,
            queues,
            partitions,
            partitioner,
            sent_before: BTreeMap::new(),
            left_out: Mutex::default(),
        })
    }

    /// How many records of this producer's name a partition had when the producer was opened. A
    /// caller that chooses partitions by a rule can send the same records again and leave out this
    /// many of each partition. Each record is then in the log once, whatever was killed and when.
    /// After a failure at a partition nothing more is sent to it.
    pub fn sent_before(&self, partition: u32) -> u64 {
        let partition = i32::try_from(partition).unwrap_or(i32::MAX);
        let sent = self.sent_before.get(&partition);
        sent.map_or(0, |sent| sent.records.max(0).cast_unsigned())
    }

    /// Notes that a record of this partition is left out, as one of those that
    /// [`Self::sent_before`] counts. Returns whether the records that were left out so far are
    /// known to be the ones that were sent. That can be told at some of them only, where the stored
    /// chain was cut.
    ///
    /// # Errors
    /// `bad-argument` if they are other records, or more than were sent.
    pub fn leave_out(
        &self,
        key: Option<&[u8]>,
        value: &[u8],
        headers: &[(&str, Option<&[u8]>)],
        partition: u32,
    ) -> Result<bool> {
        let mut encoded = Vec::new();
        record::encode(&mut encoded, 0, key, headers, value)?;
        let number = i32::try_from(partition).unwrap_or(i32::MAX);
        let sent = self.sent_before.get(&number);
        let mut all = self.left_out.lock();
        let left_out = all.entry(partition).or_default();
        left_out.add(record::without_time(&encoded));
        let Some(sent) = sent.filter(|sent| left_out.records <= sent.records) else {
            let text =
                format_args!("partition {partition} has not as many records of this producer");
            return Err(Error::bad_argument(text));
        };
        match &sent.chain {
            Some(chain) => match left_out.is_of(chain) {
                Some(false) => Err(Error::bad_argument(
                    "it is not what was sent under this name before: use another name for other records",
                )),
                known => Ok(known.is_some()),
            },
            // An earlier version stored only how many records there were. They are taken for the
            // same ones, and begin the chain.
            None if left_out.records == sent.records => {
                self.queues
                    .continue_chain(partition as usize, left_out.clone());
                Ok(true)
            }
            None => Ok(true),
        }
    }

    /// How many partitions the topic has.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The partition that records with this key are sent to.
    pub fn partition_of(&self, key: &[u8]) -> u32 {
        self.partitioner.partition_of(key, self.partitions)
    }

    /// Sends a record to the partition of its key, or to any partition without a key. It returns at
    /// once unless the buffer is full. The receipt tells when the record is acknowledged.
    ///
    /// # Errors
    /// `record-too-large`, `overloaded`, `closed`. After an error the record is not sent.
    pub fn send(&self, key: Option<&[u8]>, value: &[u8]) -> Result<Receipt> {
        self.send_with(key, value, &[], None)
    }

    /// Sends a record with headers, to `partition` if it is given.
    ///
    /// # Errors
    /// As [`Self::send`], and `unknown-topic` for a partition that does not exist.
    pub fn send_with(
        &self,
        key: Option<&[u8]>,
        value: &[u8],
        headers: &[(&str, Option<&[u8]>)],
        partition: Option<u32>,
    ) -> Result<Receipt> {
        self.check_partition(partition)?;
        let partition = partition.or_else(|| key.map(|key| self.partition_of(key)));
        self.queues.push(
            partition.map(|partition| partition as usize),
            now_us(),
            key,
            headers,
            value,
        )
    }

    /// Sends records without keys to one partition, so that they are appended together. Returns a
    /// receipt for each, in order.
    ///
    /// # Errors
    /// As [`Self::send_with`]. After an error none of the records is sent.
    pub fn send_all<V: AsRef<[u8]>>(
        &self,
        values: &[V],
        partition: Option<u32>,
    ) -> Result<Vec<Receipt>> {
        self.check_partition(partition)?;
        let partition = partition.map(|partition| partition as usize);
        self.queues.push_all(partition, now_us(), values)
    }

    fn check_partition(&self, partition: Option<u32>) -> Result<()> {
        if let Some(partition) = partition.filter(|partition| *partition >= self.partitions) {
            let text = format_args!(
                "there is no partition {partition}, only 0 to {}",
                self.partitions - 1
            );
            return Err(Error::new(Code::UnknownTopic, text));
        }
        Ok(())
    }

    /// Sends what waits, and returns once every record is acknowledged or has failed. While other
    /// threads go on sending, it waits for their records too.
    ///
    /// # Errors
    /// The first failure since the last flush. The receipts have each failure.
    pub fn flush(&self) -> Result<()> {
        self.queues.flush()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.queues.close();
        for transport in self.transports.drain(..) {
            // The panic of a transport was printed when it happened, and a drop cannot report it.
            transport.join().ok();
        }
    }
}

/// Makes the transports, as many for each server as the options allow. A transport serves one
/// server only, so that a server which is down holds up only its own partitions.
fn direct_transports(
    dsn: &Dsn,
    connection: Connection,
    topic: &Topic,
    options: &ProducerOptions,
) -> Result<(Vec<Transport>, BTreeMap<i32, Sent>)> {
    let mut connection = connection;
    let placement = connection.placement(topic)?;
    let mut servers: Vec<(Server, Vec<usize>)> = Vec::new();
    let mut at_home: Vec<i32> = (0..topic.options.partitions as i32).collect();
    if let Some(placement) = placement {
        at_home = placement.at_home(topic.options.partitions);
        for share in placement.elsewhere {
            let server = Server::Elsewhere {
                cluster: share.cluster,
                dsn: share.dsn,
                topic: topic.name.clone(),
                home: placement.home.clone(),
                topic_id: None,
            };
            servers.push((server, queues_of(&share.partitions)));
        }
    }
    let home = Server::Named(dsn.clone(), topic.topic_id);
    servers.insert(0, (home, queues_of(&at_home)));
    let mut sent_before = BTreeMap::new();
    if let Some(name) = &options.name {
        sent_before = named::sent_before(&mut connection, topic.topic_id, topic, name)?;
        // A named producer must know what every partition has before it sends anything. So here,
        // and only here, a cluster that is down fails the opening.
        for (server, _) in &mut servers[1..] {
            let mut elsewhere = server.connect(options.acknowledge)?;
            let topic_id = server.topic_id().unwrap_or_default();
            sent_before.extend(named::sent_before(&mut elsewhere, topic_id, topic, name)?);
        }
    }
    let producer_id = options.name.as_deref();
    let producer_id = producer_id.map(|name| named::id(name, topic.options.partitions));
    let mut first = Some(connection);
    let mut transports = Vec::new();
    for (server, share) in servers {
        // A connection without a partition would be idle for good.
        let count = options.connections.clamp(1, share.len().max(1));
        for transport in 0..count {
            transports.push(Transport {
                server: server.clone(),
                acknowledge: options.acknowledge,
                codec: topic.options.compression,
                share: share
                    .iter()
                    .copied()
                    .skip(transport)
                    .step_by(count)
                    .collect(),
                connection: first.take(),
                named: producer_id.map(|id| (id, sent_before.clone())),
            });
        }
    }
    Ok((transports, sent_before))
}

/// The indices of the queues of these partitions.
fn queues_of(partitions: &[i32]) -> Vec<usize> {
    let queues = partitions
        .iter()
        .map(|partition| usize::try_from(*partition));
    queues.flatten().collect()
}

fn no_thread(error: std::io::Error) -> Error {
    Error::new(
        Code::Overloaded,
        format_args!("cannot start a thread: {error}"),
    )
}

/// The clock of this machine, in microseconds since 1970.
fn now_us() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}
