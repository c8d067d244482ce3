//! Messages of other processes of the database, and of oracles.

use dyno_net::FrameRef;
use dyno_txn_api::{Result, Timestamp};
use dyno_txn_core::message::{Address, Message};

use super::pass::Pass;
use super::peers::answer;
use crate::error::bad_argument;
use crate::hello::{
    MAP, MESSAGE, ORACLE, PEER_MESSAGE, REFUSED, decode_peer_message, decode_refusal,
};
use crate::member::{ClusterMap, Waiter};
use crate::threads::{Envelope, PeerId};

impl Pass<'_> {
    /// Handles a frame on a connection that this thread opened. An error ends the connection.
    pub fn on_link_frame(&mut self, peer: PeerId, frame: FrameRef<'_>) -> Result<()> {
        let PeerId::Oracle(oracle) = peer else {
            // Workers answer on connections of their own, so that neither end needs to tell its own
            // requests from the other's.
            return match frame.head.verb {
                REFUSED => Err(decode_refusal(frame.body)),
                verb => Err(bad_argument(format!(
                    "verb {verb} on a connection that goes one way"
                ))),
            };
        };
        match frame.head.verb {
            MESSAGE => {
                if let Message::Timestamps { ticket, result } = Message::decode(frame.body)? {
                    self.on_timestamps(oracle, ticket, result);
                }
                Ok(())
            }
            PEER_MESSAGE => {
                let to = frame.head.request;
                // An oracle speaks to partitions about bounds and about nothing else. Its number is
                // replaced by the one that this process knows it by, so that the answer finds its
                // way.
                if let (Address::Oracle(_), message @ Message::KeepBound { .. }) =
                    decode_peer_message(frame.body)?
                    && self.shard.hosts(to)
                {
                    let from = Address::Oracle(oracle as u32);
                    self.deliver(Envelope { from, to, message });
                }
                Ok(())
            }
            MAP => {
                if let Some(cluster) = &self.peers.cluster {
                    cluster.learn(ClusterMap::decode(frame.body)?);
                }
                Ok(())
            }
            REFUSED => {
                let error = decode_refusal(frame.body);
                let text = format!("an oracle refuses this process: {error}");
                self.shared.lifecycle.note(text);
                Err(error)
            }
            verb => Err(bad_argument(format!(
                "verb {verb} of an oracle is not known"
            ))),
        }
    }

    /// Handles what another process says to a partition of this thread. A process may speak for its
    /// own partitions alone: otherwise one with a wrong map could answer in the name of a partition
    /// here.
    pub fn on_member_frame(&mut self, frame: FrameRef<'_>) -> Result<()> {
        let to = frame.head.request;
        if frame.head.verb != PEER_MESSAGE || !self.shard.hosts(to) {
            return Err(bad_argument(
                "this connection brings messages for partitions of its thread",
            ));
        }
        match decode_peer_message(frame.body)? {
            (from @ Address::Partition(id), message) if !self.shard.layout.is_here(id) => {
                self.deliver(Envelope { from, to, message });
                Ok(())
            }
            _ => Err(bad_argument(
                "another process speaks for its own partitions alone",
            )),
        }
    }

    fn on_timestamps(&mut self, oracle: usize, ticket: u64, result: Result<Timestamp>) {
        let Some(cluster) = &mut self.peers.cluster else {
            return;
        };
        let now = self.shard.now;
        for (waiter, issued) in cluster.timestamps_arrived(now, oracle, ticket, result) {
            match waiter {
                Waiter::Recovery => self.end_recovery(issued),
                Waiter::Message(mut envelope) => match envelope.message {
                    Message::TakeTimestamps { ticket, .. } => {
                        let result = Ok(issued);
                        let timestamps = Message::Timestamps { ticket, result };
                        answer(
                            envelope.from,
                            ORACLE,
                            &timestamps,
                            &mut self.clients.answers,
                        );
                    }
                    _ => {
                        if let Message::OneShot { timestamp, .. } = &mut envelope.message {
                            *timestamp = Some(issued);
                        }
                        self.deliver(envelope);
                    }
                },
            }
        }
    }

    /// The oracle's first timestamp is above all that it issued to anybody before, so it is also
    /// above everything in the logs that were just read.
    fn end_recovery(&mut self, floor: Timestamp) {
        if let Some(cluster) = &mut self.peers.cluster {
            cluster.end_recovery();
        }
        if let Err(error) = self.finish_recovery(floor) {
            self.shard.fail(error);
        }
    }
}
