//! A live feed into a table: the collector's files of an hour, each loaded once it is whole.
//!
//! What was received and written is loaded exactly once, because the file is the unit: it has its
//! name when it is complete, and the ledger knows it by that. What a broker with QoS 0 never handed
//! over is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dyno_ingest_collect::{Collector, Summary};

use crate::{Folder, FolderSummary, WatchError};

/// Collects until `stop` is set and loads each hour that is over; then the last one, too.
///
/// # Errors
/// Those of the collector and of the folder. The other one is ended first.
pub fn run(
    collector: Collector,
    mut folder: Folder<'_>,
    stop: &AtomicBool,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(Summary, FolderSummary), WatchError> {
    let ended = Arc::new(AtomicBool::new(false));
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            // Its own flag, because it has to end when loading has failed, too.
            let collected = collector.run_until(
                &|| stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed),
                say,
            );
            ended.store(true, Ordering::Relaxed);
            collected
        });
        let loaded = folder.run(&ended, say);
        failed.store(true, Ordering::Relaxed);
        let collected = match collecting.join() {
            Ok(collected) => collected,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        loaded?;
        let collected = collected?;
        Ok((collected, folder.last_look(say)?))
    })
}
