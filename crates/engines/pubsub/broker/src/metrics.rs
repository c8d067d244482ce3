//! What the broker counts, for Prometheus.

use std::sync::Arc;

use dyno_serve::{Registry, ServeError};

use crate::broker::Broker;
use crate::counters::Counters;

/// What is held now: what [`crate::front::Front::status`] adds to the counters.
const GAUGES: [(&str, &str); 5] = [
    ("partitions", "Partitions that it holds."),
    ("memory_bytes", "Memory that is held for clients."),
    ("queued_bytes", "Batches that wait for their append."),
    ("tail_bytes", "Committed rows that are kept for consumers."),
    (
        "behind_bytes",
        "Rows on their way to consumers that are behind.",
    ),
];

impl Broker {
    /// Puts what it counts, and what it holds now, into a registry, all under `dyno_pubsub_`. The numbers are
    /// read when the registry is.
    ///
    /// # Errors
    /// When the names are taken.
    pub fn show(&self, registry: &Registry) -> Result<(), ServeError> {
        let counters = Counters::MEANINGS.iter().map(|(name, meaning)| {
            let shown = format!("dyno_pubsub_{name}_total");
            Ok((*name, registry.counter(&shown, meaning, &[])?))
        });
        let counters = counters.collect::<Result<Vec<_>, ServeError>>()?;
        let gauges = GAUGES.iter().map(|(name, meaning)| {
            let shown = format!("dyno_pubsub_{name}");
            Ok((*name, registry.gauge(&shown, meaning, &[])?))
        });
        let gauges = gauges.collect::<Result<Vec<_>, ServeError>>()?;
        let front = Arc::clone(&self.front);
        registry.refresh_by(move || {
            let now = front.status().counters;
            let value = |name: &str| now.iter().find(|c| c.name == name).map_or(0, |c| c.value);
            for (name, counter) in &counters {
                counter.add(value(name).saturating_sub(counter.get()));
            }
            for (name, gauge) in &gauges {
                gauge.set(i64::try_from(value(name)).unwrap_or(i64::MAX));
            }
        });
        Ok(())
    }
}
