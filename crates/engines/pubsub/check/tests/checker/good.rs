//! A run without a fault, as evidence that tests then spoil.

use dyno_pubsub_check::checker::{
    Cursor, Entry, Evidence, PartitionLog, Reading, Rule, Verdict, check,
};
use dyno_pubsub_check::history::{Commit, Delivery, Event, What};
use dyno_pubsub_check::message::{Fingerprint, Identity, write};

/// Evidence that owns what it refers to.
#[derive(Debug, Clone)]
pub struct Case {
    pub partitions: u32,
    pub groups: u32,
    pub events: Vec<Event>,
    pub readings: Vec<Reading>,
    pub cursors: Vec<Cursor>,
    pub server_stayed: bool,
}

impl Case {
    pub fn new(partitions: u32, groups: u32) -> Self {
        let log = |_| PartitionLog {
            first_offset: 0,
            next_offset: 0,
            entries: Vec::new(),
        };
        let reading = |reader: &str| Reading {
            reader: reader.to_owned(),
            partitions: (0..partitions).map(log).collect(),
        };
        let cursor = |at: u32| Cursor {
            group: at / partitions,
            partition: at % partitions,
            committed: 0,
            redelivered: 0,
            lost: 0,
        };
        Self {
            partitions,
            groups,
            events: Vec::new(),
            readings: vec![reading("view"), reading("library")],
            cursors: (0..groups * partitions).map(cursor).collect(),
            server_stayed: true,
        }
    }

    pub fn verdict(&self) -> Verdict {
        check(&Evidence {
            partitions: self.partitions,
            groups: self.groups,
            events: &self.events,
            readings: &self.readings,
            cursors: &self.cursors,
            server_stayed: self.server_stayed,
            drained: true,
        })
    }

    /// Adds an event, one microsecond after the last.
    pub fn event(&mut self, what: What) {
        let at_us = self.events.len() as i64;
        self.events.push(Event { at_us, what });
    }

    pub fn send(&mut self, identity: Identity) -> Fingerprint {
        let (_, fingerprint) = write(identity, 0, 0);
        self.event(What::Send {
            fingerprint,
            due_us: 0,
        });
        fingerprint
    }

    /// Puts a message at the end of its partition, as every reader sees it.
    pub fn store(&mut self, fingerprint: Fingerprint) -> i64 {
        let partition = fingerprint.identity.partition as usize;
        let offset = self.readings[0].partitions[partition].next_offset;
        for reading in &mut self.readings {
            let log = &mut reading.partitions[partition];
            log.next_offset += 1;
            log.entries.push(Entry {
                offset,
                fingerprint: Ok(fingerprint),
            });
        }
        offset
    }

    pub fn fingerprint_at(&self, partition: u32, offset: i64) -> Fingerprint {
        let log = &self.readings[0].partitions[partition as usize];
        let entry = log.entries.iter().find(|entry| entry.offset == offset);
        let fingerprint = entry.and_then(|entry| entry.fingerprint.as_ref().ok());
        *fingerprint.expect("a whole message at the offset")
    }

    /// Gives a stored message to a group.
    pub fn deliver(&mut self, (group, member, generation): (u32, u32, i64), at: (u32, i64)) {
        let (partition, offset) = at;
        let fingerprint = self.fingerprint_at(partition, offset);
        self.event(What::Delivered(Delivery {
            group,
            member,
            generation,
            partition,
            offset,
            fingerprint,
        }));
    }

    /// Moves a group's cursor.
    pub fn commit(&mut self, (group, member, generation): (u32, u32, i64), at: (u32, i64)) {
        let (partition, next) = at;
        let asked_us = self.events.len() as i64;
        self.event(What::Commit(Commit {
            group,
            member,
            generation,
            partition,
            next,
            asked_us,
            accepted: true,
        }));
        self.cursor(group, partition).committed = next;
    }

    pub fn cursor(&mut self, group: u32, partition: u32) -> &mut Cursor {
        let mut all = self.cursors.iter_mut();
        all.find(|c| (c.group, c.partition) == (group, partition))
            .expect("a cursor for each group and partition")
    }
}

pub fn identity(producer: u32, partition: u32, sequence: u64) -> Identity {
    Identity {
        producer,
        partition,
        sequence,
    }
}

/// Two partitions, two groups, two producers with ten messages each for partition 0 and one
/// producer with five for partition 1; message 7 of producer 1 failed, message 8 is unknown and
/// stored, 9 unknown and absent.
pub fn good() -> Case {
    let mut case = Case::new(2, 2);
    for sequence in 0..10 {
        for producer in [1, 2] {
            let fingerprint = case.send(identity(producer, 0, sequence));
            if producer == 1 && sequence == 7 {
                case.event(What::Failed(fingerprint.identity));
            } else if producer == 1 && sequence == 9 {
                case.event(What::Unknown(fingerprint.identity));
            } else {
                let offset = case.store(fingerprint);
                let identity = fingerprint.identity;
                if producer == 1 && sequence == 8 {
                    continue;
                }
                case.event(What::Acknowledged { identity, offset });
            }
        }
    }
    for sequence in 0..5 {
        let fingerprint = case.send(identity(3, 1, sequence));
        let offset = case.store(fingerprint);
        let identity = fingerprint.identity;
        case.event(What::Acknowledged { identity, offset });
    }
    for group in 0..2 {
        for offset in 0..12 {
            case.deliver((group, 10 + group, 1), (0, offset));
        }
        case.commit((group, 10 + group, 1), (0, 10));
        // Another member takes over and is given the uncommitted two again, as the counter says.
        for offset in 10..18 {
            case.deliver((group, 20 + group, 2), (0, offset));
        }
        case.commit((group, 20 + group, 2), (0, 18));
        case.cursor(group, 0).redelivered = 2;
        for offset in 0..5 {
            case.deliver((group, 10 + group, 1), (1, offset));
        }
        case.commit((group, 10 + group, 1), (1, 5));
    }
    case
}

#[test]
fn a_good_run_passes() {
    let verdict = good().verdict();
    assert!(verdict.holds(), "{:#?}", verdict.violations);
    assert_eq!(
        (
            verdict.messages,
            verdict.acknowledged,
            verdict.failed,
            verdict.unknown
        ),
        (25, 22, 1, 2)
    );
    assert_eq!((verdict.delivered, verdict.redelivered), (50, 4));
}

/// Expects a breach of `rule`, in a sentence with all of `words`.
pub fn expect_breach(verdict: &Verdict, rule: Rule, words: &[&str]) {
    let said = verdict.violations.iter().any(|violation| {
        violation.rule == rule && words.iter().all(|word| violation.sentence.contains(word))
    });
    assert!(
        said,
        "no sentence of {rule:?} with {words:?} in {verdict:#?}"
    );
}
