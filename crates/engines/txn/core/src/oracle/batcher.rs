//! A client of a remote oracle: transactions that wait at the same time share one request.

use dyno_txn_api::{Code, Error, Result, Timestamp};

use crate::message::Message;

/// Transactions that may share a request.
const BATCH_MAX: usize = 4096;

/// Collects requests for timestamps. A timestamp is never requested before a transaction wants it,
/// so it is above the timestamp of every transaction that was over by then: that is what makes the
/// order strict.
#[derive(Debug, Default)]
pub struct Batcher {
    waiting: Vec<u64>,
    under_way: Vec<u64>,
    request: u64,
}

impl Batcher {
    /// Asks for a timestamp for `who`, a number of the caller's choice. Returns the request to send
    /// to the oracle, unless one is under way already.
    pub fn want(&mut self, who: u64) -> Option<Message> {
        self.waiting.push(who);
        if self.under_way.is_empty() {
            self.ask()
        } else {
            None
        }
    }

    /// Handles the oracle's answer. Returns who gets which timestamp, and the next request to send.
    pub fn answered(
        &mut self,
        ticket: u64,
        result: Result<Timestamp>,
    ) -> (Vec<(u64, Result<Timestamp>)>, Option<Message>) {
        if ticket != self.request {
            return (Vec::new(), None);
        }
        let who = std::mem::take(&mut self.under_way).into_iter().enumerate();
        let given = who.map(|(at, who)| (who, result.clone().map(|first| first + at as u64)));
        (given.collect(), self.ask())
    }

    /// Asks again for what was under way, after the connection was lost or another oracle was
    /// chosen. A late answer to the earlier request is ignored.
    pub fn again(&mut self) -> Option<Message> {
        let mut under_way = std::mem::take(&mut self.under_way);
        under_way.append(&mut self.waiting);
        self.waiting = under_way;
        self.ask()
    }

    /// Fails all requests with this reason.
    pub fn fail(&mut self, why: &str) -> Vec<(u64, Result<Timestamp>)> {
        let under_way = std::mem::take(&mut self.under_way);
        let all = under_way
            .into_iter()
            .chain(std::mem::take(&mut self.waiting));
        all.map(|who| (who, Err(Error::new(Code::Unavailable, why))))
            .collect()
    }

    fn ask(&mut self) -> Option<Message> {
        if self.waiting.is_empty() {
            return None;
        }
        let count = self.waiting.len().min(BATCH_MAX);
        self.under_way = self.waiting.drain(..count).collect();
        self.request += 1;
        let (ticket, count) = (self.request, count as u32);
        Some(Message::TakeTimestamps { ticket, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_together_shares_a_request() {
        let mut batcher = Batcher::default();
        let first = batcher.want(7).expect("nothing is under way");
        assert_eq!(
            first,
            Message::TakeTimestamps {
                ticket: 1,
                count: 1
            }
        );
        assert_eq!(batcher.want(8), None);
        assert_eq!(batcher.want(9), None);
        let (given, next) = batcher.answered(1, Ok(100));
        assert_eq!(given, [(7, Ok(100))]);
        assert_eq!(
            next,
            Some(Message::TakeTimestamps {
                ticket: 2,
                count: 2
            })
        );
        assert_eq!(
            batcher.again(),
            Some(Message::TakeTimestamps {
                ticket: 3,
                count: 2
            })
        );
        assert_eq!(batcher.answered(2, Ok(200)), (Vec::new(), None));
        let (given, next) = batcher.answered(3, Ok(300));
        assert_eq!(given, [(8, Ok(300)), (9, Ok(301))]);
        assert_eq!(next, None);
    }
}
