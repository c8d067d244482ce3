//! Queues, as they are listed. Messages of queues go straight to the server.

use super::Ask;
use super::message::{fields, message};
use crate::overview;
use crate::queue::QueueStats;

message! {
    ListQueues,
    /// Asks for all queues of the broker's database.
    ListQueues {}
}

fields! {
    /// A queue and what is in it.
    QueueIs {
        /// The name of the queue.
        queue: String,
        /// Messages that can be claimed.
        ready: i64,
        /// Messages that will be visible later.
        delayed: i64,
        /// Messages that a worker holds.
        claimed: i64,
        /// Messages that were claimed too often and are kept as dead letters.
        dead: i64,
        /// Messages that were acknowledged and are kept.
        done: i64,
        /// The age of the oldest message that is not acknowledged, in milliseconds; -1 if there is
        /// none.
        oldest_ms: i64,
    }
}

message! {
    ListQueues,
    /// The answer to [`ListQueues`].
    Queues {
        /// The queues, ordered by name.
        queues: Vec<QueueIs>,
    }
}

impl Ask for ListQueues {
    type Answer = Queues;
}

impl Queues {
    /// The answer with these queues.
    pub fn new(queues: Vec<overview::QueueState>) -> Queues {
        let queues = queues.into_iter().map(|state| QueueIs {
            queue: state.queue,
            ready: state.stats.ready,
            delayed: state.stats.delayed,
            claimed: state.stats.claimed,
            dead: state.stats.dead,
            done: state.stats.done,
            oldest_ms: state.stats.oldest_ms.unwrap_or(-1),
        });
        Queues {
            queues: queues.collect(),
        }
    }

    /// The queues as the library has them.
    pub fn read(self) -> Vec<overview::QueueState> {
        let queues = self.queues.into_iter().map(|is| overview::QueueState {
            queue: is.queue,
            stats: QueueStats {
                ready: is.ready,
                delayed: is.delayed,
                claimed: is.claimed,
                dead: is.dead,
                done: is.done,
                oldest_ms: Some(is.oldest_ms).filter(|ms| *ms >= 0),
            },
        });
        queues.collect()
    }
}
