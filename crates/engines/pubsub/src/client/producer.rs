//! The producer.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use super::address::Address;
use super::broker::{self, Brokers};
use super::direct::{self, Carrier};
use super::lanes::Lanes;
use super::options::ProducerOptions;
use super::receipt::Receipt;
use crate::error::{Code, Error, Result};
use crate::key;
use crate::wire::ClientOptions;

/// Sends records to one topic. Records become batches per partition; each batch is appended exactly once,
/// however often it has to be sent, and stays in memory until it is acknowledged. May be shared by threads.
///
/// Dropping it sends what waits. Call [`Self::flush`] before to learn of failures.
pub struct Producer {
    lanes: Arc<Lanes>,
    partitions: u32,
    carriers: Vec<JoinHandle<()>>,
}

impl Producer {
    /// Connects to a server or a broker and finds the topic.
    ///
    /// # Errors
    /// `unknown-topic`, `not-installed`, `newer-schema`, `server-lost`, `denied`; `bad-argument` for an
    /// address that is none.
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
                let lanes = Arc::new(Lanes::new(partitions as usize, options.clone()));
                let carriers = options.connections.clamp(1, partitions.max(1) as usize);
                let mut first = Some(connection);
                let carriers = (0..carriers).map(|carrier| {
                    let carrier = Carrier {
                        dsn: (*dsn).clone(),
                        acknowledge: options.acknowledge,
                        topic_id: topic.topic_id,
                        codec: topic.options.compression,
                        share: (carrier, carriers),
                        connection: first.take(),
                    };
                    let lanes = lanes.clone();
                    thread::Builder::new()
                        .name("dyno-producer".to_owned())
                        .spawn(move || carrier.run(&lanes))
                        .map_err(no_thread)
                });
                let carriers = carriers.collect::<Result<Vec<_>>>();
                if carriers.is_err() {
                    lanes.close();
                }
                Ok(Producer {
                    carriers: carriers?,
                    lanes,
                    partitions,
                })
            }
            Address::Broker(broker) => {
                let client = ClientOptions {
                    token: options.token.clone().unwrap_or_default(),
                    name: "dyno-producer".to_owned(),
                    tls: options.tls.clone(),
                    ..ClientOptions::default()
                };
                let brokers = Brokers::open(&broker, topic, client)?;
                let (carrier, partitions) = broker::Carrier::new(brokers)?;
                let lanes = Arc::new(Lanes::new(partitions, options));
                let carried = lanes.clone();
                let thread = thread::Builder::new()
                    .name("dyno-producer".to_owned())
                    .spawn(move || carrier.run(&carried))
                    .map_err(no_thread)?;
                Ok(Producer {
                    carriers: vec![thread],
                    lanes,
                    partitions: u32::try_from(partitions).unwrap_or(u32::MAX),
                })
            }
        }
    }

    /// The topic's partitions.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Sends a record: to its key's partition, or to any without a key. Returns at once unless the buffer is
    /// full; the receipt says when it is acknowledged.
    ///
    /// # Errors
    /// `record-too-large`, `overloaded`, `closed`. The record was not taken then.
    pub fn send(&self, key: Option<&[u8]>, value: &[u8]) -> Result<Receipt> {
        self.send_with(key, value, &[], None)
    }

    /// Sends a record with headers, to a given partition where there is one.
    ///
    /// # Errors
    /// As [`Self::send`], and `unknown-topic` for a partition that is not there.
    pub fn send_with(
        &self,
        key: Option<&[u8]>,
        value: &[u8],
        headers: &[(&str, Option<&[u8]>)],
        partition: Option<u32>,
    ) -> Result<Receipt> {
        self.check_partition(partition)?;
        let partition =
            partition.or_else(|| key.map(|key| key::partition_of(key, self.partitions)));
        self.lanes.push(
            partition.map(|partition| partition as usize),
            now_us(),
            key,
            headers,
            value,
        )
    }

    /// Sends records without keys in one go, to a given partition where there is one: what a caller has together
    /// is appended together. One receipt for each, in order.
    ///
    /// # Errors
    /// As [`Self::send_with`]. None of the records was taken then.
    pub fn send_all<V: AsRef<[u8]>>(
        &self,
        values: &[V],
        partition: Option<u32>,
    ) -> Result<Vec<Receipt>> {
        self.check_partition(partition)?;
        let partition = partition.map(|partition| partition as usize);
        self.lanes.push_all(partition, now_us(), values)
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

    /// Sends what waits and returns when nothing is on its way any more: all of it is acknowledged or has
    /// failed. While other threads go on sending, it waits for theirs too.
    ///
    /// # Errors
    /// The first failure since the last flush; receipts tell of each.
    pub fn flush(&self) -> Result<()> {
        self.lanes.flush()
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.lanes.close();
        for carrier in self.carriers.drain(..) {
            // A carrier that panicked has said so already.
            carrier.join().ok();
        }
    }
}

fn no_thread(error: std::io::Error) -> Error {
    Error::new(
        Code::Overloaded,
        format_args!("cannot start a thread: {error}"),
    )
}

/// Microseconds since 1970.
fn now_us() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}
