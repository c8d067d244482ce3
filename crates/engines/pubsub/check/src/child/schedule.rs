//! When messages are due, and their identities. The loop is open: the schedule does not wait for
//! answers, so a stall shows as lateness.

use crate::clock::now_us;
use crate::message::{self, Fingerprint, Identity};

/// The most messages that are made at once when a client is behind.
const AT_ONCE_MAX: usize = 500;
/// How many keys a producer has.
const KEYS: u64 = 64;

/// A message that is due.
#[derive(Debug, Clone)]
pub struct Due {
    /// The identity of the message and its content.
    pub fingerprint: Fingerprint,
    /// When it is due, microseconds since 1970.
    pub due_us: i64,
    /// Its key, which decides the partition.
    pub key: Vec<u8>,
    /// The content, with its checksum.
    pub value: Vec<u8>,
}

/// Makes messages at a constant rate.
#[derive(Debug)]
pub struct Schedule {
    producer: u32,
    began_us: i64,
    rate: u32,
    value_bytes: usize,
    made: u64,
    /// The next sequence for each partition.
    sequences: Vec<u64>,
}

impl Schedule {
    /// Messages of `producer` for `partitions`, `rate` a second from now on.
    pub fn new(producer: u32, partitions: u32, rate: u32, value_bytes: usize) -> Self {
        Self {
            producer,
            began_us: now_us(),
            rate: rate.max(1),
            value_bytes,
            made: 0,
            sequences: vec![0; partitions.max(1) as usize],
        }
    }

    /// Makes the messages that are due now, up to a limit.
    pub fn due(&mut self) -> Vec<Due> {
        let now = now_us();
        let mut all = Vec::new();
        while all.len() < AT_ONCE_MAX {
            let due_us = self.began_us + (self.made * 1_000_000 / u64::from(self.rate)) as i64;
            if due_us > now {
                break;
            }
            all.push(self.make(due_us));
        }
        all
    }

    fn make(&mut self, due_us: i64) -> Due {
        // Keys come in an order that visits all of them and is not round robin over partitions.
        let key = format!("key {}", self.made.wrapping_mul(29) % KEYS).into_bytes();
        let partition = message::partition_of(&key, self.sequences.len() as u32);
        let sequence = &mut self.sequences[partition as usize];
        let identity = Identity {
            producer: self.producer,
            partition,
            sequence: *sequence,
        };
        *sequence += 1;
        self.made += 1;
        let (value, fingerprint) = message::write(identity, due_us, self.value_bytes);
        Due {
            fingerprint,
            due_us,
            key,
            value,
        }
    }
}
