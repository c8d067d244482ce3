//! The stamp that each connection was given last. Who sends operations behind the question for their stamp, and so
//! does not know it yet, says 0.

use std::collections::HashMap;

use dyno_net::PortId;
use dyno_txn_api::Stamp;
use dyno_txn_core::message::{Head, Message};

/// Of the connections of one thread.
#[derive(Debug, Default)]
pub(crate) struct Given(HashMap<PortId, Stamp>);

impl Given {
    /// It has none any more: it asks for another, or has ended.
    pub fn forget(&mut self, port: PortId) {
        self.0.remove(&port);
    }

    /// It was given this one.
    pub fn note(&mut self, port: PortId, stamp: Stamp) {
        self.0.insert(port, stamp);
    }

    /// Tells a message its stamp. Where none was given it keeps 0, which no transaction has, and is refused.
    pub fn fill_in(&self, port: PortId, message: &mut Message) {
        if let Some(head) = without_stamp(message) {
            head.stamp = self.0.get(&port).copied().unwrap_or(0);
        }
    }
}

/// Whether it was sent before its sender knew its stamp.
pub(crate) fn lacks_stamp(message: &Message) -> bool {
    let (Message::Execute { head, .. } | Message::Abort { head }) = message else {
        return false;
    };
    head.stamp == 0
}

fn without_stamp(message: &mut Message) -> Option<&mut Head> {
    let (Message::Execute { head, .. } | Message::Abort { head }) = message else {
        return None;
    };
    (head.stamp == 0).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abort(stamp: Stamp) -> Message {
        let (holder, priority) = (0, 128);
        Message::Abort {
            head: Head {
                stamp,
                holder,
                priority,
            },
        }
    }

    #[test]
    fn only_who_says_none_is_told_and_of_its_own_connection() {
        let (one, other) = (PortId::numbered(1), PortId::numbered(2));
        let mut given = Given::default();
        given.note(one, 7);
        for (port, says, wanted) in [(one, 0, 7), (one, 5, 5), (other, 0, 0)] {
            let mut message = abort(says);
            assert_eq!(lacks_stamp(&message), says == 0);
            given.fill_in(port, &mut message);
            assert_eq!(message, abort(wanted));
        }
        given.forget(one);
        let mut message = abort(0);
        given.fill_in(one, &mut message);
        assert_eq!(
            message,
            abort(0),
            "what was given before is not given twice"
        );
    }
}
