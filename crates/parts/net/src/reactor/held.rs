//! A bound on the memory that all connections hold together.
//!
//! Each connection has bounds of its own, but a thousand clients that each send most of a long
//! frame, or leave long answers unread, would still take all memory. What a connection holds is
//! known after each of its passes, so the sum costs one subtraction and one addition there, and
//! nothing is searched until the sum is too large.

use super::{Handler, PortId, Reactor};
use crate::Closed;

impl Reactor {
    /// Brings the sum up to date with what one connection holds now.
    pub(super) fn count_held(&mut self, index: usize) {
        let live = self
            .slots
            .get_mut(index)
            .and_then(|slot| slot.live.as_mut());
        if let Some(live) = live {
            let now = live.port.held_bytes();
            self.held_bytes = self.held_bytes - live.held_bytes + now;
            live.held_bytes = now;
        }
    }

    /// If all hold too much: first takes back buffers that are empty, then closes the connection
    /// that holds the most until it is little enough. A client with an ordinary request is not the
    /// one that holds the most for long, while one that sends a frame without end is.
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
            // A connection that is being drained was closed for the handler before.
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
