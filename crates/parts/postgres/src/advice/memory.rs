//! Settings for memory, the planner and the vacuuming of tables whose rows change often.

use super::{Advice, MIB, advice, at_restart, mib};
use crate::machine_size::MachineSize;

const LEAST_BUFFERS: u64 = 64 * MIB;
const MOST_BUFFERS: u64 = 16 << 10 << 20;

pub(super) fn settings(size: &MachineSize) -> Vec<Advice> {
    let buffers = (size.memory_bytes / 8).clamp(LEAST_BUFFERS, MOST_BUFFERS);
    let pages = buffers.div_ceil(size.huge_page_bytes.max(1));
    let huge = if size.huge_pages_free >= pages {
        format!(
            "{} huge pages are free, and the buffers need {pages}: fewer TLB misses",
            size.huge_pages_free
        )
    } else {
        format!(
            "used as soon as there are any: the buffers need {pages} pages of {}, and {} are free (vm.nr_hugepages)",
            mib(size.huge_page_bytes),
            size.huge_pages_free
        )
    };
    let maintenance = (size.memory_bytes / 32).clamp(64 * MIB, 1024 * MIB);
    let mut all = vec![
        at_restart(
            "shared_buffers",
            mib(buffers),
            "an eighth of memory: a log is read at its tail, and the page cache has the rest for those who catch up",
        ),
        at_restart("huge_pages", "try", huge),
        advice(
            "effective_cache_size",
            mib((size.memory_bytes / 2).max(128 * MIB)),
            "tells the planner that half of memory caches files, so that it prefers the index",
        ),
        advice(
            "work_mem",
            "16MB",
            "a batch's arrays and a group's partitions are sorted in memory",
        ),
        advice(
            "maintenance_work_mem",
            mib(maintenance),
            "vacuum and index builds in one pass",
        ),
        advice(
            "jit",
            "off",
            "statements are short, and compiling one takes longer than running it",
        ),
        advice(
            "autovacuum",
            "on",
            "counters and cursors are updated all the time, and dead versions slow each lookup",
        ),
        advice(
            "autovacuum_naptime",
            "10s",
            "hot rows get thousands of versions a minute; once a minute is too seldom",
        ),
        advice(
            "autovacuum_vacuum_cost_delay",
            "0",
            "the hot tables are tiny, and an unhurried vacuum of them costs more than it saves",
        ),
    ];
    if size.rotational == Some(false) {
        all.push(advice(
            "random_page_cost",
            "1.1",
            "the disk does not turn, so a random page costs about as much as the next one",
        ));
    }
    all
}
