//! Prints a line of progress at intervals while a flow runs.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use dyno_measure::Clock;
use dyno_suite::protocol::PROGRESS;

use super::shared::Shared;

/// How often it checks whether the flow has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Writes a line on stderr at intervals of `every` until the flow is stopped.
pub(super) fn report(shared: &Shared, every: Duration) {
    let (mut written, mut read) = (0, 0);
    let mut last_ns = shared.clock.now_ns();
    while !shared.stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        let now_ns = shared.clock.now_ns();
        if now_ns - last_ns < every.as_nanos() as u64 {
            continue;
        }
        let writes = shared.written.load(Ordering::SeqCst);
        let groups: Vec<u64> = shared
            .read
            .iter()
            .map(|n| n.load(Ordering::SeqCst))
            .collect();
        let reads: u64 = groups.iter().sum();
        let slowest = groups.iter().min().copied().unwrap_or(writes);
        let took_s = (now_ns - last_ns) as f64 / 1e9;
        eprintln!(
            "{PROGRESS}{}",
            line(
                now_ns as f64 / 1e9,
                (writes - written) as f64 / took_s,
                (reads - read) as f64 / took_s,
                writes.saturating_sub(slowest)
            )
        );
        (written, read, last_ns) = (writes, reads, now_ns);
    }
}

/// One line: seconds, messages a second, and how many the slowest group has still to read.
fn line(at_s: f64, writes: f64, reads: f64, backlog: u64) -> String {
    format!("{at_s:7.1} s  writes {writes:8.0}/s  reads {reads:8.0}/s  backlog {backlog}")
}
