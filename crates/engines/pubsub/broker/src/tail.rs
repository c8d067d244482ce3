//! The end of a partition's log in memory: what was committed last, and the fetches that wait for
//! more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use dyno_pubsub::wire::{Fetched, Rest};

use crate::backlog::Reading;
use crate::batch::Ack;
use crate::chunk::Chunk;
use dyno_pubsub::{Code, Error};

/// The committed end of one partition.
#[derive(Debug, Default)]
pub struct Tail {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// The first offset that retention has left, as last known.
    first_offset: i64,
    next_offset: i64,
    waiters: Vec<Waiter>,
}

/// A fetch that waits for records.
#[derive(Debug)]
pub struct Waiter {
    pub ack: Ack,
    /// What its connection holds of the rows that are read from the database.
    pub reading: Arc<Reading>,
    pub offset: i64,
    pub most_bytes: usize,
    pub least_bytes: usize,
    pub until: Instant,
}

/// What a tail holds at an offset.
#[derive(Debug)]
pub enum Lookup {
    /// The rows from the offset on, as parts of an answer.
    Rows(Vec<Bytes>),
    /// The offset is the end of the log, where nothing is yet.
    End,
    /// The rows are not in memory: they are older than the tail, or newer than this broker knows
    /// of.
    Elsewhere,
}

impl Tail {
    /// An empty tail of a partition that ends at `next_offset`.
    pub fn new(first_offset: i64, next_offset: i64) -> Tail {
        Tail {
            first_offset,
            next_offset,
            ..Tail::default()
        }
    }

    pub fn offsets(&self) -> (i64, i64) {
        (self.first_offset, self.next_offset)
    }

    pub fn waiters(&self) -> usize {
        self.waiters.len()
    }

    /// Adds rows that were just committed, answers the fetches that waited for them, and drops the
    /// oldest rows until `most_bytes` are left.
    pub fn publish(&mut self, chunk: Chunk, most_bytes: usize, now: Instant) {
        if self.next_offset != chunk.base_offset {
            // Records were appended without this broker, so what is in memory does not reach to
            // here.
            self.forget();
        }
        self.next_offset = chunk.end_offset;
        self.bytes += chunk.bytes();
        self.chunks.push_back(chunk);
        self.answer_waiters(now);
        self.shrink(most_bytes);
    }

    /// Drops the oldest rows until at most `most_bytes` are left.
    pub fn shrink(&mut self, most_bytes: usize) {
        while self.bytes > most_bytes {
            match self.chunks.pop_front() {
                Some(chunk) => self.bytes -= chunk.bytes(),
                None => break,
            }
        }
    }

    /// Applies what the database says of the partition, to which others may have appended.
    pub fn update_offsets(&mut self, first_offset: i64, next_offset: i64) {
        self.update_first_offset(first_offset);
        if next_offset > self.next_offset {
            self.forget();
            self.next_offset = next_offset;
        }
    }

    /// Notes the first offset that retention or a deletion has left.
    pub fn update_first_offset(&mut self, first_offset: i64) {
        self.first_offset = self.first_offset.max(first_offset);
    }

    fn forget(&mut self) {
        self.chunks.clear();
        self.bytes = 0;
    }

    pub fn find(&self, offset: i64, most_bytes: usize) -> Lookup {
        if offset == self.next_offset {
            return Lookup::End;
        }
        let from = self
            .chunks
            .partition_point(|chunk| chunk.end_offset <= offset);
        let mut rows = Vec::new();
        let mut left = most_bytes;
        let mut at = offset;
        for chunk in self.chunks.range(from..) {
            // Rows of an answer must follow each other, so a gap between chunks ends it.
            if chunk.base_offset > at {
                break;
            }
            let Some((bytes, end)) = chunk.push_rows(at, left, rows.is_empty(), &mut rows) else {
                break;
            };
            left = left.saturating_sub(bytes);
            at = end;
            if end < chunk.end_offset {
                break;
            }
        }
        if rows.is_empty() {
            return Lookup::Elsewhere;
        }
        Lookup::Rows(rows)
    }

    /// Bytes in memory from an offset on.
    fn bytes_from(&self, offset: i64) -> usize {
        let from = self
            .chunks
            .partition_point(|chunk| chunk.end_offset <= offset);
        let whole = self.chunks.range(from..).skip(1).map(|chunk| chunk.bytes());
        let first = self
            .chunks
            .get(from)
            .map_or(0, |chunk| chunk.bytes_from(offset));
        first + whole.sum::<usize>()
    }

    /// Answers a fetch from memory, or keeps it as a waiter. Returns it if the database has to be
    /// asked: for rows that are not in memory, or for how far the log goes.
    pub fn fetch(&mut self, waiter: Waiter, now: Instant) -> Option<Waiter> {
        // Records that were deleted stay in memory, and in their tables, until others take their
        // place. A reader of the database that goes on where it was would not notice either.
        if waiter.offset < self.first_offset {
            waiter.ack.refused(&self.out_of_range(waiter.offset));
            return None;
        }
        match self.find(waiter.offset, waiter.most_bytes) {
            Lookup::Elsewhere => return Some(waiter),
            Lookup::Rows(rows) if now >= waiter.until || self.enough(&waiter) => {
                self.answer(&waiter.ack, rows);
            }
            // A fetch that does not wait asks how far the log goes, and others may have appended.
            Lookup::End if now >= waiter.until => return Some(waiter),
            Lookup::Rows(_) | Lookup::End => self.waiters.push(waiter),
        }
        None
    }

    fn out_of_range(&self, offset: i64) -> Error {
        let (first, next) = self.offsets();
        let text =
            format_args!("offset {offset} cannot be read: offsets {first} to {next} are there");
        Error::new(Code::OffsetOutOfRange, text)
    }

    fn enough(&self, waiter: &Waiter) -> bool {
        waiter.least_bytes <= 1
            || self.bytes_from(waiter.offset) >= waiter.least_bytes.min(waiter.most_bytes)
    }

    /// Answers the waiters that have enough, or whose time has come.
    pub fn answer_waiters(&mut self, now: Instant) {
        for waiter in std::mem::take(&mut self.waiters) {
            if let Some(lost) = self.fetch(waiter, now) {
                // Its time is over, or what it waited for was dropped meanwhile. After an empty
                // answer the client asks again, and is served from the database.
                self.answer(&lost.ack, Vec::new());
            }
        }
    }

    /// Removes all waiters, for the caller to look after.
    pub fn take_waiters(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.waiters)
    }

    /// Refuses all waiters.
    pub fn refuse_waiters(&mut self, error: &Error) {
        for waiter in self.take_waiters() {
            waiter.ack.refused(error);
        }
    }

    fn answer(&self, ack: &Ack, rows: Vec<Bytes>) {
        ack.answer(&Fetched {
            first_offset: self.first_offset,
            next_offset: self.next_offset,
            rows: Rest(rows),
        });
    }
}
