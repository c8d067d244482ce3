//! What a store holds, for Prometheus; looked at when it is asked for.

use std::net::SocketAddr;
use std::sync::Arc;

use dyno_pages::Store;
use dyno_pubsub_broker::serve::{Endpoint, Registry, Settings};

/// Answers at `at` until it is dropped.
pub fn endpoint(at: SocketAddr, store: &Arc<Store>) -> anyhow::Result<Endpoint> {
    let registry = Registry::new();
    let gauge = |name: &str, help: &str| registry.gauge(name, help, &[]);
    let stored = gauge("pages_stored", "Pages that hold something.")?;
    let resident = gauge(
        "pages_resident_bytes",
        "Memory that the system holds for the store.",
    )?;
    let slots = gauge("pages_slot_bytes", "Bytes of slots taken.")?;
    let refused = gauge(
        "pages_refused",
        "Pages refused for want of space since the start.",
    )?;
    let zstd = gauge("pages_packed_again", "Pages packed by zstd.")?;
    let file = gauge("pages_written_back", "Pages in the file, not in memory.")?;
    let kept = gauge(
        "pages_kept_back",
        "Times that the file refused a page since the start.",
    )?;
    let store = Arc::clone(store);
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    registry.refresh_by(move || {
        if let Ok(stats) = store.stats() {
            stored.set(whole(stats.stored_pages()));
            resident.set(whole(stats.resident_bytes + stats.beside_bytes));
            slots.set(whole(stats.slot_bytes));
            refused.set(whole(stats.refused));
            zstd.set(whole(stats.zstd.pages));
            file.set(whole(stats.file.pages));
            kept.set(whole(stats.kept_back));
        }
    });
    Ok(Endpoint::start(at, registry, Settings::default())?)
}
