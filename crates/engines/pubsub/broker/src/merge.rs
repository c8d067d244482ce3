//! Many producers' batches into one append.

use std::sync::Arc;

use dyno_pubsub::record::{Batch as Rows, Codec, Run};
use dyno_pubsub::wire::RowHead;
use dyno_pubsub::{Code, Error, Result};

use crate::batch::{Ack, Batch};
use crate::memory::Charge;

/// One append, and whom to tell when it has been done.
pub struct Append {
    pub rows: Rows,
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
    /// Merges batches. Those of one producer must be in order and without gap; a producer's records
    /// come to stand together, so that a row's list of who wrote what stays short. `codec` is the
    /// topic's, for what came uncompressed. When a batch cannot be merged all are refused, and the
    /// append is empty.
    pub fn of(mut batches: Vec<Batch>, codec: Codec, charge: Charge) -> Append {
        batches.sort_by_key(|batch| batch.producer_id);
        let mut append = Append {
            rows: Rows::new(),
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
            // Bodies are checked when they come, so this is a mistake of ours; nothing may be
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

    /// Adds a repetition of records that are in this append, `within` records after their run's
    /// first.
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

    /// The rows' headers, once its place is known.
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

    /// The rows' bodies, one after the other, and the charge for them.
    pub fn take_bodies(&mut self) -> Option<(Vec<u8>, Charge)> {
        let charge = self.charge.take()?;
        Some((std::mem::take(&mut self.rows).into_bytes(), charge))
    }

    /// Whether the offsets that the database knows of the runs are those of this very append: then
    /// an earlier attempt was committed, and this is its first offset.
    pub fn whole_at(&self, offsets: &[Option<i64>]) -> Option<i64> {
        let base_offset = (*offsets.first()?)? - self.runs.first()?.relative;
        let same = offsets.len() == self.runs.len()
            && offsets
                .iter()
                .zip(&self.runs)
                .all(|(offset, run)| *offset == Some(base_offset + run.relative));
        same.then_some(base_offset)
    }

    /// Tells everybody that the append was committed with its first record at `base_offset`.
    pub fn acknowledge(&self, base_offset: i64) {
        let mut acks = self.acks.iter().peekable();
        while let Some(waiting) = acks.next() {
            let offset = base_offset + self.runs[waiting.run].relative + waiting.within;
            waiting.ack.produced_quietly(offset, waiting.duplicate);
            // Those of one client stand together, and go in one call.
            let outbox = &waiting.ack.outbox;
            if acks
                .peek()
                .is_none_or(|next| !Arc::ptr_eq(&next.ack.outbox, outbox))
            {
                outbox.wake();
            }
        }
    }

    /// Nothing was appended: some runs were there already, at these offsets; the others are to be
    /// sent again.
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

    /// Tells everybody that nothing was appended.
    pub fn refuse(&self, error: &Error) {
        for waiting in &self.acks {
            waiting.ack.refused(error);
        }
    }
}
