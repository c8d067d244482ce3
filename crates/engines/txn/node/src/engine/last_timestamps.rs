//! Remembers the last timestamp that was issued to each connection. A client that pipelines its
//! first operations with the timestamp request does not know the timestamp yet and sends 0; the
//! engine fills it in.

use std::collections::HashMap;

use dyno_net::PortId;
use dyno_txn_api::Timestamp;
use dyno_txn_core::message::{Head, Message};

/// Those of the connections of one thread.
#[derive(Debug, Default)]
pub(crate) struct LastTimestamps(HashMap<PortId, Timestamp>);

impl LastTimestamps {
    /// For a connection that has asked for another timestamp or has ended. Without this, the
    /// operations of its next transaction could be filled in with the timestamp of the previous
    /// one.
    pub fn forget(&mut self, port: PortId) {
        self.0.remove(&port);
    }

    pub fn remember(&mut self, port: PortId, timestamp: Timestamp) {
        self.0.insert(port, timestamp);
    }

    /// Fills in the timestamp of a message that lacks it. If none was issued it stays 0, which
    /// belongs to no transaction, so the partition refuses the message.
    pub fn fill_in(&self, port: PortId, message: &mut Message) {
        if let Some(head) = head_without_timestamp(message) {
            head.timestamp = self.0.get(&port).copied().unwrap_or(0);
        }
    }
}

/// Whether the client sent it before it knew its timestamp.
pub(crate) fn lacks_timestamp(message: &Message) -> bool {
    let (Message::Execute { head, .. } | Message::Abort { head }) = message else {
        return false;
    };
    head.timestamp == 0
}

fn head_without_timestamp(message: &mut Message) -> Option<&mut Head> {
    let (Message::Execute { head, .. } | Message::Abort { head }) = message else {
        return None;
    };
    (head.timestamp == 0).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abort(timestamp: Timestamp) -> Message {
        let (holder, priority) = (0, 128);
        Message::Abort {
            head: Head {
                timestamp,
                holder,
                priority,
            },
        }
    }

    #[test]
    fn only_a_message_without_one_is_filled_in_and_from_its_own_connection() {
        let (one, other) = (PortId::numbered(1), PortId::numbered(2));
        let mut issued = LastTimestamps::default();
        issued.remember(one, 7);
        for (port, says, wanted) in [(one, 0, 7), (one, 5, 5), (other, 0, 0)] {
            let mut message = abort(says);
            assert_eq!(lacks_timestamp(&message), says == 0);
            issued.fill_in(port, &mut message);
            assert_eq!(message, abort(wanted));
        }
        issued.forget(one);
        let mut message = abort(0);
        issued.fill_in(one, &mut message);
        assert_eq!(
            message,
            abort(0),
            "what was given before is not given twice"
        );
    }
}
