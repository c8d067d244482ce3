//! One partition on a node. It is given messages and time, its records go to its journal and its
//! messages to the network. When its node crashes, only the disk of the journal is left.

use dyno_sim::{NodeId, Random};
use dyno_txn_api::{Procedures, Timestamp};
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::{Checkpoint, Config, Effects, Partition, Position, Timestamps};
use dyno_txn_log::Lsn;

use super::journal::{End, Journal, Weather};

/// A partition, whose node is up or down.
pub(super) struct Core {
    pub node: NodeId,
    pub config: Config,
    pub journal: Journal,
    partition: Option<Partition>,
    /// The ticket of the request for a timestamp above all that were issued. A partition that has
    /// read its log waits for that.
    pub recovering: Option<u64>,
    checkpoint: Option<Copying>,
    /// When its next wake-up is due, on its node's clock.
    pub armed: Option<u64>,
    effects: Effects,
}

/// A checkpoint that is being made.
struct Copying {
    at: Checkpoint,
    records: Vec<Vec<u8>>,
    /// The last record before the checkpoint began, and the position at which it ends in the log.
    /// Recovery needs the log from there on.
    begun: Position,
    from: Lsn,
    /// The last record that may have influenced the checkpoint. It counts once the log is durable
    /// up to here.
    ended: Option<Position>,
}

/// What a partition wants to have done after an input.
#[derive(Default)]
pub(super) struct Wants {
    pub sends: Vec<(Address, Message)>,
    /// Whether the driver must check later what was written.
    pub look: bool,
    pub wake_at: Option<u64>,
}

impl Core {
    /// A partition without rows, with an empty log.
    pub fn new(
        node: NodeId,
        config: Config,
        procedures: Procedures,
        timestamps: Box<dyn Timestamps + Send>,
    ) -> Self {
        Self {
            node,
            partition: Some(Partition::new(config.clone(), procedures, timestamps)),
            journal: Journal::new(u64::from(config.id) + 1, config.seed),
            config,
            recovering: None,
            checkpoint: None,
            armed: None,
            effects: Effects::default(),
        }
    }

    /// The highest timestamp that it has seen.
    pub fn newest(&self) -> Timestamp {
        self.partition
            .as_ref()
            .map_or(0, Partition::newest_timestamp)
    }

    /// Ends the partition with its node. If it is `killed`, only the process ends and the machine
    /// continues.
    pub fn crash(&mut self, killed: bool, random: &mut Random) {
        self.partition = None;
        self.recovering = None;
        self.checkpoint = None;
        self.armed = None;
        self.effects = Effects::default();
        self.journal.crash(killed, random);
    }

    /// Starts the partition with its node: reads checkpoint and log. A record that cannot be
    /// applied is a breach, described in words. The disk may fail in the middle.
    pub fn restart(
        &mut self,
        procedures: Procedures,
        timestamps: Box<dyn Timestamps + Send>,
        (weather, random): (Weather, &mut Random),
    ) -> Result<(), End> {
        let mut partition = Partition::new(self.config.clone(), procedures, timestamps);
        self.journal.expose(weather, random);
        self.journal.read()?;
        for record in self.journal.records() {
            let unread = |error| End::Broken(format!("it cannot take in its log: {error}"));
            partition.restore(record).map_err(unread)?;
        }
        partition.start_at(self.journal.appended());
        self.partition = Some(partition);
        self.recovering = Some(0);
        Ok(())
    }

    /// Ends the recovery with a timestamp above all that were issued.
    pub fn recovered(&mut self, now: u64, timestamp: Timestamp) -> Result<Wants, String> {
        self.recovering = None;
        let id = self.config.id;
        self.input(|partition, effects| {
            let done = partition.finish_recovery(now, timestamp, effects);
            done.map_err(|error| format!("partition {id} cannot end its recovery: {error}"))
        })
    }

    /// Handles a message. During recovery only oracles are served, because they need most
    /// partitions to continue.
    pub fn handle(&mut self, now: u64, from: Address, message: Message) -> Wants {
        if self.recovering.is_some() && !matches!(message, Message::KeepBound { .. }) {
            return Wants::default();
        }
        // Every second one goes through its bytes as from a real connection, which takes a shorter
        // path in the partition.
        if matches!(&message, Message::OneShot { ticket, timestamp: None, .. } if ticket % 2 == 0) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            return self.input_ok(|partition, effects| {
                let taken = partition.handle_bytes(now, from, &bytes, effects);
                taken.expect("what was just encoded is a message");
            });
        }
        self.input_ok(|partition, effects| partition.handle(now, from, message, effects))
    }

    /// Collects what was written, and lets the partition send what waited for it.
    pub fn look(&mut self, now: u64) -> Wants {
        let position = self.journal.look();
        let mut wants =
            self.input_ok(|partition, effects| partition.durable(now, position, effects));
        self.keep_checkpoint();
        wants.look |= self.journal.write();
        wants
    }

    /// Lets the partition do what is due.
    pub fn tick(&mut self, now: u64) -> Wants {
        self.armed = None;
        if self.recovering.is_some() {
            return Wants::default();
        }
        self.input_ok(|partition, effects| partition.tick(now, effects))
    }

    /// Begins a checkpoint or continues one. Returns whether there is more to do.
    pub fn go_on_checkpoint(&mut self) -> bool {
        let Some(partition) = self
            .partition
            .as_ref()
            .filter(|_| self.recovering.is_none())
        else {
            return false;
        };
        let copying = match &mut self.checkpoint {
            Some(copying) => copying,
            none => {
                // While records wait for the log it is not known where in the log they will end.
                let Some(from) = self.journal.place() else {
                    return true;
                };
                let mut records = Vec::new();
                let begun = partition.appended();
                let at = partition.begin_checkpoint(&mut |record| records.push(record.to_vec()));
                none.insert(Copying {
                    at,
                    records,
                    begun,
                    from,
                    ended: None,
                })
            }
        };
        if copying.ended.is_none() {
            let records = &mut copying.records;
            let more = partition
                .go_on_checkpoint(&mut copying.at, &mut |record| records.push(record.to_vec()));
            if !more {
                // Rows were copied while the partition was running, so the checkpoint may hold
                // effects of all records up to now.
                copying.ended = Some(partition.appended());
                self.keep_checkpoint();
            }
            return more;
        }
        false
    }

    /// Makes a finished checkpoint current, once the log has all records whose effects it holds.
    fn keep_checkpoint(&mut self) {
        let durable = self.journal.durable();
        let ready = |copying: &mut Copying| copying.ended.is_some_and(|ended| ended <= durable);
        if let Some(copying) = self.checkpoint.take_if(ready) {
            self.journal
                .replace(copying.records, copying.from, copying.begun);
        }
    }

    /// How many transactions are open, as the records of a checkpoint show them.
    pub fn undecided(&self) -> usize {
        use dyno_txn_core::record::Record;
        let mut count = 0;
        if let Some(partition) = &self.partition {
            partition.begin_checkpoint(&mut |record| {
                let open = matches!(
                    Record::decode(record),
                    Ok(Record::Prepared { .. } | Record::Decided { .. })
                );
                count += usize::from(open);
            });
        }
        count
    }

    /// Runs `act` on the partition, and collects its effects: records for the journal, messages for
    /// the network.
    fn input_ok(&mut self, act: impl FnOnce(&mut Partition, &mut Effects)) -> Wants {
        let done = self.input(|partition, effects| {
            act(partition, effects);
            Ok(())
        });
        done.unwrap_or_default()
    }

    fn input(
        &mut self,
        act: impl FnOnce(&mut Partition, &mut Effects) -> Result<(), String>,
    ) -> Result<Wants, String> {
        let Some(partition) = &mut self.partition else {
            return Ok(Wants::default());
        };
        act(partition, &mut self.effects)?;
        for record in self.effects.records.iter() {
            self.journal.append(record);
        }
        self.effects.records.clear();
        let mut sends = std::mem::take(&mut self.effects.sends);
        for (client, _, bytes) in self.effects.answers.iter() {
            let message = Message::decode(bytes)
                .map_err(|error| format!("an answer that is not a message: {error}"))?;
            sends.push((Address::Client(client), message));
        }
        self.effects.answers.clear(0);
        Ok(Wants {
            sends,
            look: self.journal.write(),
            wake_at: partition.wake_at(),
        })
    }
}
