//! The broker's counters, for Prometheus.

use std::sync::Arc;

use dyno_serve::{Counter, Registry, Scale, ServeError};

use crate::broker::Broker;
use crate::counters::Counters;
use crate::depths::Depths;

/// The gauges of what is held now, which [`crate::front::Front::status`] adds to the counters.
const GAUGES: [(&str, &str); 7] = [
    ("partitions", "Partitions that it holds."),
    ("memory_bytes", "Memory that is held for clients."),
    ("queued_bytes", "Batches that wait for their append."),
    ("tail_bytes", "Committed rows that are kept for consumers."),
    (
        "behind_bytes",
        "Rows on their way to consumers that are behind.",
    ),
    (
        "open_connections",
        "Connections of clients that have said Hello.",
    ),
    (
        "unadmitted_connections",
        "Connections of clients that have not said Hello yet.",
    ),
];

/// The counters of the listeners, which [`crate::front::Front::status`] adds as well.
const SERVED: [(&str, &str); 4] = [
    (
        "refused_connections",
        "Connections that were closed because all places were taken.",
    ),
    (
        "displaced_connections",
        "Connections without a Hello that gave their place to newer ones.",
    ),
    (
        "late_connections",
        "Connections that were closed because no Hello came in time.",
    ),
    (
        "slow_connections",
        "Connections that were closed because the client read or sent too slowly.",
    ),
];

impl Broker {
    /// Registers the counters, what the broker holds now, and what topics, groups and queues hold,
    /// all under `dyno_pubsub_`. The values are read when the registry is.
    ///
    /// # Errors
    /// If one of the names is taken.
    pub fn show(&self, registry: &Registry) -> Result<(), ServeError> {
        let all = Counters::MEANINGS.iter().chain(&SERVED);
        let counters = all.map(|(name, meaning)| shown_counter(registry, name, meaning));
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
            for (name, counter, per_unit) in &counters {
                counter.add((value(name) * per_unit).saturating_sub(counter.get()));
            }
            for (name, gauge) in &gauges {
                gauge.set(i64::try_from(value(name)).unwrap_or(i64::MAX));
            }
        });
        let depths = Depths::new(&self.dsn);
        let shown_in = registry.clone();
        registry.refresh_by(move || depths.refresh(&shown_in));
        Ok(())
    }
}

/// Registers the counter that shows one of ours, and returns it with how many of its units ours
/// has. Prometheus wants seconds; ours counts microseconds, and a counter of seconds takes
/// nanoseconds.
fn shown_counter<'a>(
    registry: &Registry,
    name: &'a str,
    meaning: &str,
) -> Result<(&'a str, Counter, u64), ServeError> {
    let Some(stem) = name.strip_suffix("_us") else {
        let shown = format!("dyno_pubsub_{name}_total");
        return Ok((name, registry.counter(&shown, meaning, &[])?, 1));
    };
    let shown = format!("dyno_pubsub_{stem}_seconds_total");
    let meaning = meaning.replace("Microseconds", "Seconds");
    let counter = registry.scaled_counter(&shown, &meaning, &[], Scale::Nanoseconds)?;
    Ok((name, counter, 1000))
}
