//! Loads a live feed into a table: the collector's hourly files, each once it is complete.
//!
//! What was received and written is loaded exactly once, because the file is the unit: it gets its
//! name when it is complete, and the ledger knows it by that name. Messages that a broker with QoS
//! 0 never delivered are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dyno_ingest_collect::{Collector, Summary};

use crate::{Folder, FolderSummary, WatchError};

/// Collects until `stop` is set, loads each hour that is over, and at the end loads the last one.
///
/// # Errors
/// Those of the collector and of the folder. The other one is ended first.
pub fn run(
    collector: Collector,
    mut folder: Folder<'_>,
    stop: &AtomicBool,
) -> Result<(Summary, FolderSummary), WatchError> {
    let ended = Arc::new(AtomicBool::new(false));
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            // The collector has a flag of its own, because it must also stop when loading has
            // failed.
            let collected = collector
                .run_until(&|| stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed));
            // The collector has closed its last file. The folder may stop now, and the last look
            // below loads that file.
            ended.store(true, Ordering::Relaxed);
            collected
        });
        let loaded = folder.run(&ended);
        failed.store(true, Ordering::Relaxed);
        let collected = match collecting.join() {
            Ok(collected) => collected,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // If loading failed, that is what ended the collector, so its error comes first.
        loaded?;
        let collected = collected?;
        Ok((collected, folder.last_look()?))
    })
}
