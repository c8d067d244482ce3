//! Batches that are refused only because one before them has failed.
//!
//! An idempotent client has several batches under way. If one fails in a way after which the client
//! sends it again, such as at a change of leaders, those behind it leave a gap. Told of a gap, a
//! client begins a new epoch and sends all again that was not answered, also to other partitions.
//! What is in the log of that would be in it twice. So the batches behind a failed one are answered
//! like it, as Kafka's brokers do: one that is not the leader refuses all.

use std::collections::HashSet;

use crate::error::ErrorCode;

/// The most entries that are kept; all are forgotten beyond that.
const MOST: usize = 10_000;

/// The topics, partitions and producers of a connection whose last batch is to be sent again.
#[derive(Default)]
pub struct Interrupted(HashSet<(String, i32, i64)>);

impl Interrupted {
    /// What is answered to a batch whose append ended with `error`. Batches are passed in the order
    /// in which they came.
    pub fn answer(
        &mut self,
        (topic, partition): (&str, i32),
        producer_id: i64,
        error: ErrorCode,
    ) -> ErrorCode {
        let key = || (topic.to_owned(), partition, producer_id);
        match error {
            ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::REQUEST_TIMED_OUT => {
                if self.0.len() >= MOST {
                    self.0.clear();
                }
                self.0.insert(key());
                error
            }
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER if self.0.contains(&key()) => {
                ErrorCode::NOT_LEADER_OR_FOLLOWER
            }
            _ => {
                // The set is empty unless a batch has failed, and a key copies the topic's name.
                if !self.0.is_empty() {
                    self.0.remove(&key());
                }
                error
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_only_told_where_no_batch_is_to_be_sent_again() {
        let mut interrupted = Interrupted::default();
        let mut answer = |partition, error| interrupted.answer(("t", partition), 7, error);
        let gap = ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER;
        for failed in [
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ErrorCode::REQUEST_TIMED_OUT,
        ] {
            assert_eq!(answer(0, gap), gap);
            assert_eq!(answer(0, failed), failed);
            assert_eq!(answer(0, gap), ErrorCode::NOT_LEADER_OR_FOLLOWER);
            assert_eq!(answer(0, gap), ErrorCode::NOT_LEADER_OR_FOLLOWER);
            assert_eq!(answer(1, gap), gap, "another partition");
            assert_eq!(answer(0, ErrorCode::NONE), ErrorCode::NONE);
        }
        assert_eq!(answer(0, gap), gap, "it came again");
    }
}
