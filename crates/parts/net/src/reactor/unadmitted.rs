//! Connections whose clients have not shown yet that they may be here, in the order in which they came.

use std::collections::VecDeque;
use std::time::Duration;

use super::PortId;
use crate::port::CoarseInstant;

/// Each with when it came and when it is late. They all have the same time, so the oldest is late first.
#[derive(Debug, Default)]
pub struct Unadmitted(VecDeque<(PortId, CoarseInstant, CoarseInstant)>);

/// How long a connection keeps its place in any case.
const GRACE: Duration = Duration::from_millis(250);

impl Unadmitted {
    /// How many more may come where `most` may be there: each of those that have had their time makes room for one.
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

    /// Forgets a connection, if it is among them. There are few.
    pub fn remove(&mut self, port: PortId) {
        if let Some(at) = self.0.iter().position(|(id, ..)| *id == port) {
            self.0.remove(at);
        }
    }

    pub fn pop_oldest(&mut self) -> Option<PortId> {
        self.0.pop_front().map(|(port, ..)| port)
    }

    /// The oldest, if its time is over.
    pub fn pop_late(&mut self, now: CoarseInstant) -> Option<PortId> {
        let late = self.0.pop_front_if(|(.., until)| *until < now);
        late.map(|(port, ..)| port)
    }
}
