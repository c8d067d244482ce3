//! One partition on a node: it is given messages and time, its records go to its journal, its messages to the
//! network. When its node crashes only the journal is left.

use dyno_sim::{NodeId, Random};
use dyno_txn_api::{Procedures, Stamp};
use dyno_txn_core::message::{Address, Message};
use dyno_txn_core::{Checkpoint, Config, Effects, Partition, Position, Stamps};

use super::journal::Journal;

/// A partition, up or down.
pub(super) struct Core {
    pub node: NodeId,
    pub config: Config,
    pub journal: Journal,
    partition: Option<Partition>,
    /// It has read its log and waits for a stamp above all that were given.
    pub recovering: bool,
    checkpoint: Option<Copying>,
    /// When its next wake-up is due, by its node's clock.
    pub armed: Option<u64>,
    effects: Effects,
}

/// A checkpoint under way.
struct Copying {
    at: Checkpoint,
    records: Vec<Vec<u8>>,
    /// The log from behind this record on belongs to it.
    begun: Position,
    /// It counts once the log is durable up to here.
    ended: Option<Position>,
}

/// What a partition wants after an input.
#[derive(Default)]
pub(super) struct Wants {
    pub sends: Vec<(Address, Message)>,
    pub sync: bool,
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
            config,
            journal: Journal::default(),
            recovering: false,
            checkpoint: None,
            armed: None,
            effects: Effects::default(),
        }
    }

    /// Up to which stamp it has seen any.
    pub fn newest(&self) -> Stamp {
        self.partition.as_ref().map_or(0, Partition::newest_stamp)
    }

    /// Its node stops.
    pub fn crash(&mut self, random: &mut Random) {
        self.partition = None;
        self.checkpoint = None;
        self.armed = None;
        self.effects = Effects::default();
        self.journal.crash(random);
    }

    /// Its node starts: checkpoint and log are read. A record that cannot be is a breach, told in words.
    pub fn restart(
        &mut self,
        procedures: Procedures,
        stamps: Box<dyn Stamps + Send>,
    ) -> Result<(), String> {
        let mut partition = Partition::new(self.config.clone(), procedures, stamps);
        for record in self.journal.read() {
            let id = self.config.id;
            partition
                .restore(record)
                .map_err(|error| format!("partition {id} cannot read its log: {error}"))?;
        }
        partition.start_at(self.journal.appended());
        self.partition = Some(partition);
        self.recovering = true;
        Ok(())
    }

    /// Recovery ends with a stamp above all that were given.
    pub fn recovered(&mut self, now: u64, stamp: Stamp) -> Result<Wants, String> {
        self.recovering = false;
        let id = self.config.id;
        self.input(|partition, effects| {
            let done = partition.finish_recovery(now, stamp, effects);
            done.map_err(|error| format!("partition {id} cannot end its recovery: {error}"))
        })
    }

    /// A message. While it recovers only oracles are heard: they need most partitions to go on.
    pub fn handle(&mut self, now: u64, from: Address, message: Message) -> Wants {
        if self.recovering && !matches!(message, Message::KeepBound { .. }) {
            return Wants::default();
        }
        self.input_ok(|partition, effects| partition.handle(now, from, message, effects))
    }

    /// A sync is done.
    pub fn synced(&mut self, now: u64) -> Wants {
        let position = self.journal.end_sync();
        let mut wants =
            self.input_ok(|partition, effects| partition.durable(now, position, effects));
        self.keep_checkpoint();
        wants.sync |= self.journal.begin_sync();
        wants
    }

    /// Time has passed.
    pub fn tick(&mut self, now: u64) -> Wants {
        self.armed = None;
        if self.recovering {
            return Wants::default();
        }
        self.input_ok(|partition, effects| partition.tick(now, effects))
    }

    /// Begins a checkpoint, or goes on with one. True when there is more to do.
    pub fn go_on_checkpoint(&mut self) -> bool {
        let Some(partition) = self.partition.as_ref().filter(|_| !self.recovering) else {
            return false;
        };
        let copying = self.checkpoint.get_or_insert_with(|| {
            let mut records = Vec::new();
            let begun = partition.appended();
            let at = partition.begin_checkpoint(&mut |record| records.push(record.to_vec()));
            Copying {
                at,
                records,
                begun,
                ended: None,
            }
        });
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
            self.journal.replace(copying.records, copying.begun);
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
        Ok(Wants {
            sends: std::mem::take(&mut self.effects.sends),
            sync: self.journal.begin_sync(),
            wake_at: partition.wake_at(),
        })
    }
}
