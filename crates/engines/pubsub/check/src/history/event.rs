//! One line of a history. The field names are short in JSON, because clients write thousands of
//! lines a second.

use serde::{Deserialize, Serialize};

use crate::message::{Fingerprint, Identity};

/// Something that happened, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// On the clock of the machine that all clients share, microseconds since 1970.
    #[serde(rename = "t")]
    pub at_us: i64,
    /// What happened at that time.
    #[serde(flatten)]
    pub what: What,
}

/// The kinds of events, of producers, consumers and workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "e", rename_all = "kebab-case")]
pub enum What {
    /// A producer is about to send a message.
    Send {
        /// Which, and what it holds.
        #[serde(flatten)]
        fingerprint: Fingerprint,
        /// When it was due to be sent, microseconds since 1970.
        #[serde(rename = "d")]
        due_us: i64,
    },
    /// The system promised that the message is in the log, and where.
    Acknowledged {
        /// The message that was sent before under this identity.
        #[serde(flatten)]
        identity: Identity,
        /// Its place in its partition, negative if that was not told; in queue mode its number.
        #[serde(rename = "o")]
        offset: i64,
    },
    /// The system said that the message is not in the log and never will be.
    Failed(Identity),
    /// The producer gave up without knowing.
    Unknown(Identity),
    /// A consumer was given a message, and has done with it what it does.
    Delivered(Delivery),
    /// A consumer moved its group's cursor, or was refused.
    Commit(Commit),
    /// A worker of a queue was given a message.
    Claimed(QueueClaim),
    /// A worker said that a message is done.
    Done {
        /// The message's number in the queue.
        #[serde(rename = "o")]
        id: i64,
        /// When the worker asked, microseconds since 1970.
        #[serde(rename = "a")]
        asked_us: i64,
        /// Whether the queue accepted it; it refuses if the claim had run out.
        #[serde(rename = "y")]
        accepted: bool,
    },
}

/// A message that a consumer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The group, by its number.
    #[serde(rename = "g")]
    pub group: u32,
    /// One life of one consuming process.
    #[serde(rename = "m")]
    pub member: u32,
    /// The generation of the member's ownership; 0 if the member does not know it.
    #[serde(rename = "n")]
    pub generation: i64,
    /// The offset that it came from.
    #[serde(rename = "o")]
    pub offset: i64,
    /// The partition it came from.
    #[serde(rename = "l")]
    pub partition: u32,
    /// The identity of the message and its content.
    #[serde(flatten)]
    pub fingerprint: Fingerprint,
}

/// An answered request to move a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The group, by its number.
    #[serde(rename = "g")]
    pub group: u32,
    /// One life of one consuming process.
    #[serde(rename = "m")]
    pub member: u32,
    /// The generation of the member's ownership; 0 if the member does not know it.
    #[serde(rename = "n")]
    pub generation: i64,
    /// The number of the partition.
    #[serde(rename = "l")]
    pub partition: u32,
    /// The next offset that the group wants.
    #[serde(rename = "o")]
    pub next: i64,
    /// When it was asked, microseconds since 1970; the event's time is that of the answer.
    #[serde(rename = "a")]
    pub asked_us: i64,
    /// Whether it was agreed to.
    #[serde(rename = "y")]
    pub accepted: bool,
}

/// A message that a worker of a queue holds until it says done, or its time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueClaim {
    /// One life of one working process.
    #[serde(rename = "m")]
    pub worker: u32,
    /// The message's number in the queue.
    #[serde(rename = "o")]
    pub id: i64,
    /// How often it was claimed, this time included.
    #[serde(rename = "k")]
    pub attempt: u32,
    /// When the worker asked for work, microseconds since 1970.
    #[serde(rename = "a")]
    pub asked_us: i64,
    /// The identity of the message and its content.
    #[serde(flatten)]
    pub fingerprint: Fingerprint,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_comes_back_from_its_line() {
        let identity = Identity {
            producer: 1,
            partition: 2,
            sequence: 3,
        };
        let fingerprint = Fingerprint {
            identity,
            checksum: u64::MAX,
        };
        for what in [
            What::Send {
                fingerprint,
                due_us: 8,
            },
            What::Acknowledged {
                identity,
                offset: 9,
            },
            What::Failed(identity),
            What::Unknown(identity),
            What::Delivered(Delivery {
                group: 1,
                member: 2,
                generation: 3,
                offset: 4,
                partition: 5,
                fingerprint,
            }),
            What::Commit(Commit {
                group: 1,
                member: 2,
                generation: 3,
                partition: 4,
                next: 5,
                asked_us: 6,
                accepted: true,
            }),
            What::Claimed(QueueClaim {
                worker: 1,
                id: 2,
                attempt: 3,
                asked_us: 4,
                fingerprint,
            }),
            What::Done {
                id: 1,
                asked_us: 2,
                accepted: false,
            },
        ] {
            let event = Event { at_us: 77, what };
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(
                serde_json::from_str::<Event>(&line).unwrap(),
                event,
                "{line}"
            );
        }
    }
}
