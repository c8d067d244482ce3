//! Connections whose clients have not shown yet that they may be here, oldest first.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Handler, PortId, Reactor};
use crate::port::{CoarseInstant, coarse_now};
use crate::{Closed, Port};

/// Each connection with the moments when it came and when it is late. The wait is the same for all,
/// so the oldest is late first.
#[derive(Debug, Default)]
pub struct Unadmitted(VecDeque<(PortId, CoarseInstant, CoarseInstant)>);

/// How long a connection keeps its place in any case.
const GRACE: Duration = Duration::from_millis(250);

impl Unadmitted {
    /// How many more connections may come if `most` may be there: each one that has had its grace
    /// makes room for another.
    pub fn room(&self, most: usize, now: CoarseInstant) -> usize {
        let stale =
            |(_, since, _): &&(PortId, CoarseInstant, CoarseInstant)| now.since(*since) > GRACE;
        most.saturating_sub(self.0.len()) + self.0.iter().take_while(stale).count()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn push(&mut self, port: PortId, now: CoarseInstant, wait: Duration) {
        self.0.push_back((port, now, now.after(wait)));
    }

    /// Forgets a connection, if it is among them. A linear search will do, because there are few.
    pub fn remove(&mut self, port: PortId) {
        if let Some(at) = self.0.iter().position(|(id, ..)| *id == port) {
            self.0.remove(at);
        }
    }

    pub fn pop_oldest(&mut self) -> Option<PortId> {
        self.0.pop_front().map(|(port, ..)| port)
    }

    /// Removes the oldest connection, if its time is over.
    pub fn pop_late(&mut self, now: CoarseInstant) -> Option<PortId> {
        let late = self.0.pop_front_if(|(.., until)| *until < now);
        late.map(|(port, ..)| port)
    }
}

impl Reactor {
    /// Attaches an accepted connection, whose client may be anything.
    pub(super) fn attach_unadmitted(&mut self, port: Port, handler: &mut impl Handler) {
        if self.unadmitted.len() >= self.options.most_unadmitted
            && let Some(oldest) = self.unadmitted.pop_oldest()
        {
            self.disconnect_unadmitted(oldest, handler);
        }
        if self.sockets + self.rings >= self.options.most_connections {
            self.refused += 1;
            return;
        }
        let Ok(id) = self.attach(port) else {
            self.refused += 1;
            return;
        };
        let options = &self.options;
        let most = options.most_hello_bytes.min(options.port.most_body_bytes);
        let (now, wait) = (coarse_now(), options.hello_wait);
        if let Some(live) = self.live(id) {
            live.admitted = false;
            live.port.set_most_body_bytes(most);
            self.unadmitted.push(id, now, wait);
        }
    }

    /// Ends the connections whose clients were not admitted in time.
    pub(super) fn end_late(&mut self, handler: &mut impl Handler) {
        if self.unadmitted.len() == 0 {
            return;
        }
        let now = coarse_now();
        while let Some(late) = self.unadmitted.pop_late(now) {
            self.disconnect_unadmitted(late, handler);
        }
    }

    /// Ends a connection whose client is not admitted. The handler is told if it knows of the
    /// client.
    fn disconnect_unadmitted(&mut self, id: PortId, handler: &mut impl Handler) {
        self.refused += 1;
        let opened = self.live(id).is_some_and(|live| live.unopened.is_none());
        self.close(id);
        if opened {
            handler.close(id, Closed::Service);
        }
    }
}
