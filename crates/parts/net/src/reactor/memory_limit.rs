//! A limit on the memory that all connections hold together.
//!
//! Each connection has limits of its own, but a thousand clients that each send most of a long
//! frame, or leave long answers unread, would still take all memory. What a connection holds is
//! known after each of its passes, so the sum costs one subtraction and one addition there, and
//! nothing is searched until the sum is too large.
//!
//! Connections within the process do not count. Their other end is part of this program and not of
//! a client that may be hostile, and many clients may share one: they would all lose it.

use super::{Handler, PortId, Reactor};
use crate::Closed;

impl Reactor {
    /// Updates the sum with what one connection holds now.
    pub(super) fn count_held(&mut self, index: usize) {
        let live = self
            .slots
            .get_mut(index)
            .and_then(|slot| slot.live.as_mut());
        if let Some(live) = live {
            let now = if live.port.is_within_process() {
                0
            } else {
                live.port.held_bytes()
            };
            self.held_bytes = self.held_bytes - live.held_bytes + now;
            live.held_bytes = now;
        }
    }

    /// If the connections hold too much together, first frees buffers that are empty, then closes
    /// the connection that holds the most until the sum is within the limit. A client with an
    /// ordinary request does not hold the most for long, but one that sends a frame without end
    /// does.
    pub(super) fn release_held(&mut self, handler: &mut impl Handler) {
        let most = self.options.most_held_bytes;
        if self.held_bytes <= most {
            return;
        }
        for index in 0..self.slots.len() {
            if let Some(live) = &mut self.slots[index].live {
                live.port.shrink();
            }
            self.count_held(index);
        }
        while self.held_bytes > most {
            let held = |slot: &super::Slot| slot.live.as_ref().map_or(0, |live| live.held_bytes);
            let largest = (0..self.slots.len()).max_by_key(|index| held(&self.slots[*index]));
            let Some(index) = largest else { return };
            let slot = &self.slots[index];
            let id = PortId::new(index, slot.generation);
            // The handler was told already of the end of a connection that is being drained.
            let opened = slot
                .live
                .as_ref()
                .is_some_and(|live| live.unopened.is_none() && !live.draining);
            self.refused += 1;
            self.close(id);
            if opened {
                handler.close(id, Closed::Crowded);
            }
        }
    }
}
