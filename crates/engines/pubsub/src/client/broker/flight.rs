//! The batches of one partition that are under way to a broker, in order.
//!
//! Several batches are sent before the first is answered. When one is refused those behind it are
//! refused too, because their sequences do not follow. So after a refusal nothing is sent until
//! every request is answered. Then the fate of the oldest batch is decided, and the rest is sent
//! again in order, under the same sequences.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use super::super::identity::Identity;
use super::super::send_queues::SealedBatch;
use crate::error::{Code, Error, Result, Retry};

/// The batches of one partition that were popped and not settled, and the state of their delivery.
#[derive(Default)]
pub struct Flight {
    pub batches: VecDeque<BatchInFlight>,
    /// `None` until the broker has given a producer id.
    pub identity: Option<Identity>,
    /// How many requests have no answer yet.
    pub unanswered: usize,
    /// Whether a batch was refused. Then nothing is sent until all requests are answered and `mend`
    /// was called.
    pub broken: bool,
    /// The end of the pause after a refusal.
    pub not_before: Option<Instant>,
    pub failures: u32,
}

/// One batch of a flight.
pub struct BatchInFlight {
    pub sealed: SealedBatch,
    pub body: Bytes,
    pub crc: u32,
    /// The sequence of its first record, given when the batch is first sent.
    pub sequence: Option<i64>,
    pub sent: bool,
    /// The last answer, if that was a refusal.
    pub error: Option<Error>,
    /// Whether some attempt may have been committed without an answer.
    pub may_be_there: bool,
}

/// A batch whose outcome is final.
pub type Ended = (SealedBatch, Result<i64>);

impl Flight {
    pub fn add(&mut self, mut sealed: SealedBatch) {
        let body = Bytes::from(std::mem::take(&mut sealed.body));
        self.batches.push_back(BatchInFlight {
            crc: dyno_checksum::crc32c(&body),
            sealed,
            body,
            sequence: None,
            sent: false,
            error: None,
            may_be_there: false,
        });
    }

    /// Applies the answer to the batch with this sequence. Returns the batch if it is settled.
    pub fn answered(&mut self, sequence: i64, answer: Result<i64>) -> Option<Ended> {
        self.unanswered -= 1;
        let at = self
            .batches
            .iter()
            .position(|flying| flying.sequence == Some(sequence))?;
        match answer {
            Ok(base_offset) => {
                self.failures = 0;
                let flying = self.batches.remove(at)?;
                Some((flying.whole(), Ok(base_offset)))
            }
            Err(error) => {
                let flying = &mut self.batches[at];
                // This is never taken back. A later refusal says only that the last attempt was not
                // committed.
                flying.may_be_there |= error.retry() == Retry::Unknown;
                flying.error = Some(error);
                self.broken = true;
                None
            }
        }
    }

    /// Decides what becomes of the batches after refusals, once all requests are answered: batches
    /// that cannot be saved are returned with their outcomes, and the rest is to be sent again.
    pub fn mend(&mut self, now: Instant) -> Vec<Ended> {
        self.broken = false;
        self.failures += 1;
        let mut ended = Vec::new();
        while let Some(oldest) = self.batches.front() {
            let late = now >= oldest.sealed.deadline;
            let refused = oldest
                .error
                .as_ref()
                .is_some_and(|error| error.retry() == Retry::Never);
            if !late && !refused {
                break;
            }
            let in_doubt = oldest.may_be_there;
            if let Some(oldest) = self.batches.pop_front() {
                ended.push(oldest.given_up());
            }
            // The sequences of the batch that was given up are never filled, so the rest is sent
            // under a new producer id. If that batch may be in the log, so may those behind it, and
            // under a new id they could be appended twice: they are given up as unknown, too.
            self.identity = None;
            while in_doubt
                && self
                    .batches
                    .front()
                    .is_some_and(|next| next.sequence.is_some())
            {
                if let Some(mut next) = self.batches.pop_front() {
                    next.may_be_there = true;
                    ended.push(next.given_up());
                }
            }
            for flying in &mut self.batches {
                flying.sequence = None;
                flying.error = None;
            }
        }
        for flying in &mut self.batches {
            flying.sent = false;
            flying.error = None;
        }
        ended
    }
}

impl BatchInFlight {
    /// The batch as it was popped, with its body.
    fn whole(self) -> SealedBatch {
        let mut sealed = self.sealed;
        sealed.body = self.body.into();
        sealed
    }

    fn given_up(self) -> Ended {
        let (records, partition) = (self.sealed.records, self.sealed.partition);
        let last = self
            .error
            .clone()
            .unwrap_or_else(|| Error::new(Code::ServerLost, "no broker was there"));
        let refused = last.retry() == Retry::Never && !self.may_be_there;
        let error = if refused {
            last
        } else {
            let (code, retry) = if self.may_be_there {
                (Code::OutcomeUnknown, Retry::Unknown)
            } else {
                (last.kind(), Retry::Safe)
            };
            let why = last.text();
            let text = format_args!(
                "gave up on {records} records for partition {partition}; the last attempt: {why}"
            );
            Error::with_retry(code, retry, text)
        };
        (self.whole(), Err(error))
    }
}

#[cfg(test)]
mod tests;
