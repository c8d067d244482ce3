//! One partition on a node: it is given messages and time, its records go to its journal, its
//! messages to the network. When its node crashes only the journal's disk is left.

use dyno_sim::{NodeId, Random};
use dyno_txn_api::{Procedures, Stamp};
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::{Checkpoint, Config, Effects, Partition, Position, Stamps};
use dyno_txn_log::Lsn;

use super::journal::{End, Journal, Weather};

/// A partition, up or down.
pub(super) struct Core {
    pub node: NodeId,
    pub config: Config,
    pub journal: Journal,
    partition: Option<Partition>,
    /// It has read its log and waits for a stamp above all that were given, by this ticket.
    pub recovering: Option<u64>,
    checkpoint: Option<Copying>,
    /// When its next wake-up is due, by its node's clock.
    pub armed: Option<u64>,
    effects: Effects,
}

/// A checkpoint under way.
struct Copying {
    at: Checkpoint,
    records: Vec<Vec<u8>>,
    /// The log from behind this record on belongs to it; there the record ends.
    begun: Position,
    from: Lsn,
    /// It counts once the log is durable up to here.
    ended: Option<Position>,
}

/// What a partition wants after an input.
#[derive(Default)]
pub(super) struct Wants {
    pub sends: Vec<(Address, Message)>,
    /// The driver must look later what was written.
    pub look: bool,
    pub wake_at: Option<u64>,
}

impl Core {
    /// A partition that begins with nothing.
    pub fn new(
        node: NodeId,
        config: Config,
        procedures: Procedures,
        stamps: Box<dyn Stamps + Send>,
    ) -> Self {
        Self {
            node,
            partition: Some(Partition::new(config.clone(), procedures, stamps)),
            journal: Journal::new(u64::from(config.id) + 1, config.seed),
            config,
            recovering: None,
            checkpoint: None,
            armed: None,
            effects: Effects::default(),
        }
    }

    /// Up to which stamp it has seen any.
    pub fn newest(&self) -> Stamp {
        self.partition.as_ref().map_or(0, Partition::newest_stamp)
    }

    /// Its node stops, or, if it is `killed`, only what ran on it.
    pub fn crash(&mut self, killed: bool, random: &mut Random) {
        self.partition = None;
        self.recovering = None;
        self.checkpoint = None;
        self.armed = None;
        self.effects = Effects::default();
        self.journal.crash(killed, random);
    }

    /// Its node starts: checkpoint and log are read. A record that cannot be is a breach, told in
    /// words; the disk may fail in the middle of it.
    pub fn restart(
        &mut self,
        procedures: Procedures,
        stamps: Box<dyn Stamps + Send>,
        (weather, random): (Weather, &mut Random),
    ) -> Result<(), End> {
        let mut partition = Partition::new(self.config.clone(), procedures, stamps);
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

    /// Recovery ends with a stamp above all that were given.
    pub fn recovered(&mut self, now: u64, stamp: Stamp) -> Result<Wants, String> {
        self.recovering = None;
        let id = self.config.id;
        self.input(|partition, effects| {
            let done = partition.finish_recovery(now, stamp, effects);
            done.map_err(|error| format!("partition {id} cannot end its recovery: {error}"))
        })
    }

    /// A message. While it recovers only oracles are heard: they need most partitions to go on.
    pub fn handle(&mut self, now: u64, from: Address, message: Message) -> Wants {
        if self.recovering.is_some() && !matches!(message, Message::KeepBound { .. }) {
            return Wants::default();
        }
        // Every second one comes in bytes, as from a real connection, which has a shorter way.
        if matches!(&message, Message::OneShot { ticket, stamp: None, .. } if ticket % 2 == 0) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            return self.input_ok(|partition, effects| {
                let taken = partition.handle_bytes(now, from, &bytes, effects);
                taken.expect("what was just encoded is a message");
            });
        }
        self.input_ok(|partition, effects| partition.handle(now, from, message, effects))
    }

    /// Looks what was written.
    pub fn look(&mut self, now: u64) -> Wants {
        let position = self.journal.look();
        let mut wants =
            self.input_ok(|partition, effects| partition.durable(now, position, effects));
        self.keep_checkpoint();
        wants.look |= self.journal.write();
        wants
    }

    /// Time has passed.
    pub fn tick(&mut self, now: u64) -> Wants {
        self.armed = None;
        if self.recovering.is_some() {
            return Wants::default();
        }
        self.input_ok(|partition, effects| partition.tick(now, effects))
    }

    /// Begins a checkpoint, or goes on with one. True when there is more to do.
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
                // While records wait for the log it is not known where they will end.
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
                copying.ended = Some(partition.appended());
                self.keep_checkpoint();
            }
            return more;
        }
        false
    }

    fn keep_checkpoint(&mut self) {
        let durable = self.journal.durable();
        let ready = |copying: &mut Copying| copying.ended.is_some_and(|ended| ended <= durable);
        if let Some(copying) = self.checkpoint.take_if(ready) {
            self.journal
                .replace(copying.records, copying.from, copying.begun);
        }
    }

    /// What it holds that is not decided, as records of a checkpoint show it.
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
