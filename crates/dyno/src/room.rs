//! What this machine has for a run.

use std::path::Path;

use dyno_machine::{Root, available_memory_bytes, free_disk_bytes};
use dyno_suite::Room;

/// Free disk below `cache`, but no more than the user grants, and free memory.
pub fn of(cache: &Path, max_disk_bytes: Option<u64>) -> Room {
    let free = free_disk_bytes(cache).ok();
    Room {
        disk_bytes: [free, max_disk_bytes].into_iter().flatten().min(),
        memory_bytes: available_memory_bytes(&Root::system()),
    }
}
