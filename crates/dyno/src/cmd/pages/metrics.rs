//! What a store holds, for Prometheus. Figures are read when they are scraped.

use std::net::SocketAddr;
use std::sync::Arc;

use dyno_pages::Stats;
use dyno_serve::{Endpoint, Registry, Settings};

use super::about::{About, resident_bytes};

/// Reads one figure from what a process reports and from the store's statistics.
type Figure = fn(&About, &Stats) -> u64;

/// Names, what they are, and where they come from. Those that end with _total only rise.
const FIGURES: [(&str, &str, Figure); 25] = [
    (
        "pages_size",
        "Pages that the store can hold.",
        |about, _| about.disk.store().pages(),
    ),
    (
        "pages_limit_bytes",
        "Bytes that pages may take in memory.",
        |about, _| about.disk.store().settings().limit_bytes,
    ),
    ("pages_stored", "Pages that hold something.", |_, stats| {
        stats.stored_pages()
    }),
    (
        "pages_resident_bytes",
        "Memory that the system holds for the store.",
        |_, stats| stats.resident_bytes + stats.beside_bytes,
    ),
    (
        "pages_process_resident_bytes",
        "Memory of the whole process, the store included.",
        |_, _| resident_bytes().unwrap_or(0),
    ),
    ("pages_slot_bytes", "Bytes of slots taken.", |_, stats| {
        stats.slot_bytes
    }),
    (
        "pages_refused_total",
        "Writes refused for want of space.",
        |_, stats| stats.refused,
    ),
    (
        "pages_packed_again",
        "Pages packed by the second tier, or by zstd from the start.",
        |_, stats| stats.zstd.pages,
    ),
    (
        "pages_written_back",
        "Pages in the file, not in memory.",
        |_, stats| stats.file.pages,
    ),
    (
        "pages_kept_back_total",
        "Times that the file refused a page.",
        |_, stats| stats.kept_back,
    ),
    (
        "pages_corrupt_reads_total",
        "Reads refused because the page is damaged.",
        |_, stats| stats.corrupt_reads,
    ),
    (
        "pages_corrupt",
        "Different damaged pages that were met since the start.",
        |_, stats| stats.corrupt_pages,
    ),
    ("pages_reads_total", "Reads.", |about, _| {
        load(&about.disk.figures().reads)
    }),
    ("pages_read_bytes_total", "Bytes read.", |about, _| {
        load(&about.disk.figures().read_bytes)
    }),
    ("pages_writes_total", "Writes.", |about, _| {
        load(&about.disk.figures().writes)
    }),
    ("pages_written_bytes_total", "Bytes written.", |about, _| {
        load(&about.disk.figures().written_bytes)
    }),
    (
        "pages_background_running",
        "1 when the work in the background goes on.",
        |about, _| u64::from(about.progress.is_running()),
    ),
    (
        "pages_background_passes_total",
        "Passes of ageing and compaction.",
        |about, _| about.progress.passes(),
    ),
    (
        "pages_background_failures_total",
        "Steps in the background that failed.",
        |about, _| about.progress.failed(),
    ),
    ("pages_clients", "NBD connections now.", |about, _| {
        about.connected() as u64
    }),
    (
        "pages_clients_most",
        "NBD connections that there can be at once.",
        |about, _| about.server(|server| server.most_connections() as u64),
    ),
    (
        "pages_clients_refused_total",
        "NBD connections refused because there were too many.",
        |about, _| about.server(dyno_pages_nbd::Server::refused),
    ),
    (
        "pages_clients_broken_total",
        "NBD connections that failed.",
        |about, _| about.server(dyno_pages_nbd::Server::broken),
    ),
    (
        "pages_clients_late_total",
        "NBD connections closed because their handshake took too long or they were idle.",
        |about, _| about.server(dyno_pages_nbd::Server::late),
    ),
    (
        "pages_clients_displaced_total",
        "NBD connections that never sent a request, closed to make room for another.",
        |about, _| about.server(dyno_pages_nbd::Server::displaced),
    ),
];

fn load(figure: &std::sync::atomic::AtomicU64) -> u64 {
    figure.load(std::sync::atomic::Ordering::Relaxed)
}

/// Answers at `at` until it is dropped.
pub fn endpoint(at: SocketAddr, about: &Arc<About>) -> anyhow::Result<Endpoint> {
    let scraped = Arc::clone(about);
    let about = Arc::clone(about);
    endpoint_of(
        at,
        &FIGURES,
        move || scraped.disk.store().stats().ok(),
        move |figure, stats| figure(&about, stats),
    )
}

/// Answers at `at` with `figures`. Each scrape calls `scrape` once; nothing is shown anew if it has
/// nothing.
pub fn endpoint_of<F, S>(
    at: SocketAddr,
    figures: &[(&'static str, &'static str, F)],
    scrape: impl Fn() -> Option<S> + Send + Sync + 'static,
    value: impl Fn(F, &S) -> u64 + Send + Sync + 'static,
) -> anyhow::Result<Endpoint>
where
    F: Copy + Send + Sync + 'static,
{
    let registry = Registry::new();
    let mut gauges = Vec::new();
    let mut counters = Vec::new();
    for &(name, help, figure) in figures {
        if name.ends_with("_total") {
            counters.push((registry.counter(name, help, &[])?, figure))
        } else {
            gauges.push((registry.gauge(name, help, &[])?, figure))
        }
    }
    registry.refresh_by(move || {
        let Some(scraped) = scrape() else {
            return;
        };
        for (gauge, figure) in &gauges {
            gauge.set(i64::try_from(value(*figure, &scraped)).unwrap_or(i64::MAX));
        }
        for (counter, figure) in &counters {
            // A counter of the registry can only rise. A figure that was read before another scrape
            // raised it is smaller, and then nothing is added.
            counter.add(value(*figure, &scraped).saturating_sub(counter.get()));
        }
    });
    Ok(Endpoint::start(at, registry, Settings::default())?)
}
