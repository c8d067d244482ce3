//! Merging the batches of many producers into one append.

use std::sync::Arc;

use dyno_pubsub::record::{self, Codec, Run};
use dyno_pubsub::wire::RowHead;
use dyno_pubsub::{Code, Error, Result};

use crate::batch::{Ack, Batch};
use crate::memory::Charge;

/// One append, and where its outcome is reported.
pub struct Append {
    pub rows: record::Batch,
    /// One run of consecutive sequences for each producer, by producer.
    pub runs: Vec<RunOf>,
    pub acks: Vec<Waiting>,
    /// For the memory of the rows.
    charge: Option<Charge>,
}

/// What one producer has in an append.
pub struct RunOf {
    pub producer_id: i64,
    pub first_sequence: i64,
    pub last_sequence: i64,
    /// The offset of its first record, relative to the append's first.
    pub relative: i64,
}

/// A batch that waits for its commit.
pub struct Waiting {
    /// Which of the runs it is in.
    run: usize,
    /// The offset of its first record, relative to the run's first.
    within: i64,
    /// Whether the records came with another batch of the same append.
    duplicate: bool,
    ack: Ack,
}

impl Append {
    /// Merges batches. Those of one producer must be in order and without a gap. A producer's
    /// records are put next to each other, which keeps a row's list of producers short. `codec` is
    /// the topic's, for bodies that came uncompressed. If a batch cannot be merged all are refused,
    /// and the append is empty.
    pub fn from_batches(mut batches: Vec<Batch>, codec: Codec, charge: Charge) -> Append {
        batches.sort_by_key(|batch| batch.producer_id);
        let mut append = Append {
            rows: record::Batch::new(),
            runs: Vec::new(),
            acks: Vec::with_capacity(batches.len()),
            charge: Some(charge),
        };
        let mut broken = None;
        for batch in batches {
            let before = append.rows.records();
            if broken.is_none() {
                broken = append.add(&batch, codec).err();
            }
            append.note(&batch, before);
        }
        if let Some(error) = broken {
            // Bodies are checked when they come, so this is a defect of the broker. Nothing may be
            // stored.
            append.refuse(&error);
            append.acks.clear();
        }
        append
    }

    fn add(&mut self, batch: &Batch, codec: Codec) -> Result<i64> {
        let run = Run {
            producer_id: batch.producer_id,
            first_sequence: batch.first_sequence,
        };
        match batch.codec {
            Codec::None => self.rows.push_compressing(run, codec, &batch.body),
            codec => self.rows.push_compressed(run, codec, batch.body.clone()),
        }
    }

    fn note(&mut self, batch: &Batch, relative: i64) {
        match self.runs.last_mut() {
            Some(run) if run.producer_id == batch.producer_id => {
                run.last_sequence = batch.last_sequence();
            }
            _ => self.runs.push(RunOf {
                producer_id: batch.producer_id,
                first_sequence: batch.first_sequence,
                last_sequence: batch.last_sequence(),
                relative,
            }),
        }
        let run = self.runs.len() - 1;
        self.acks.push(Waiting {
            run,
            within: batch.first_sequence - self.runs[run].first_sequence,
            duplicate: false,
            ack: batch.ack.clone(),
        });
    }

    pub fn is_empty(&self) -> bool {
        self.acks.is_empty()
    }

    /// Adds the acknowledgement of a repetition of records that are in this append, `within`
    /// records after their run's first.
    pub fn acknowledge_with(&mut self, batch: &Batch, within: i64) {
        let run = self
            .runs
            .binary_search_by_key(&batch.producer_id, |run| run.producer_id);
        if let Ok(run) = run {
            self.acks.push(Waiting {
                run,
                within,
                duplicate: true,
                ack: batch.ack.clone(),
            });
        }
    }

    /// The heads of the rows, given the offset of the first record.
    pub fn heads(&self, base_offset: i64, appended_at_us: i64) -> Vec<RowHead> {
        let lengths = self.rows.bodies().map(<[u8]>::len);
        let heads = self.rows.heads().zip(lengths);
        heads
            .map(|(head, bytes)| RowHead {
                base_offset: base_offset + head.relative,
                count: head.count.cast_unsigned(),
                bytes: bytes as u32,
                first_time_us: head.first_time_us,
                last_time_us: head.last_time_us,
                appended_at_us,
                crc: Some(head.crc),
                codec: head.flags as u8,
            })
            .collect()
    }

    /// Takes the bodies of the rows, one after the other, and the charge for them.
    pub fn take_bodies(&mut self) -> Option<(Vec<u8>, Charge)> {
        let charge = self.charge.take()?;
        Some((std::mem::take(&mut self.rows).into_bytes(), charge))
    }

    /// The first offset of this append, if the database knows all of its runs at the offsets that
    /// they have here. Then an earlier attempt was committed.
    pub fn whole_at(&self, offsets: &[Option<i64>]) -> Option<i64> {
        let base_offset = (*offsets.first()?)? - self.runs.first()?.relative;
        let same = offsets.len() == self.runs.len()
            && offsets
                .iter()
                .zip(&self.runs)
                .all(|(offset, run)| *offset == Some(base_offset + run.relative));
        same.then_some(base_offset)
    }

    /// Acknowledges all batches. The first record is at `base_offset`.
    pub fn acknowledge(&self, base_offset: i64) {
        let mut acks = self.acks.iter().peekable();
        while let Some(waiting) = acks.next() {
            let offset = base_offset + self.runs[waiting.run].relative + waiting.within;
            waiting.ack.produced_quietly(offset, waiting.duplicate);
            // The answers to one client stand next to each other, and its writer is woken once for
            // all of them.
            let outbox = &waiting.ack.outbox;
            if acks
                .peek()
                .is_none_or(|next| !Arc::ptr_eq(&next.ack.outbox, outbox))
            {
                outbox.wake();
            }
        }
    }

    /// Answers for an append of which nothing was stored, because some runs are in the log at these
    /// offsets. The batches of the others are to be sent again.
    pub fn acknowledge_known(&self, offsets: &[Option<i64>]) {
        let again = Error::new(Code::Conflict, "another append was in the way");
        for waiting in &self.acks {
            match offsets.get(waiting.run).copied().flatten() {
                Some(-1) => waiting.ack.produced(-1, true),
                Some(offset) => waiting.ack.produced(offset + waiting.within, true),
                None => waiting.ack.refused(&again),
            }
        }
    }

    /// Refuses all batches.
    pub fn refuse(&self, error: &Error) {
        for waiting in &self.acks {
            waiting.ack.refused(error);
        }
    }
}
