//! What processes of the lab leave on the machine when they are killed: at Ctrl-C, at their time
//! limit, or by the kernel when memory runs out.

use std::fs;
use std::path::{Path, PathBuf};

use crate::pages;

/// Where every Linux mounts a memory file system.
pub const MEMORY: &str = "/dev/shm";
/// Begins the names of our directories in there; the id of their process follows.
const PREFIX: &str = "dynolab-";

/// Where this process keeps files in memory. It makes the directory itself and removes it.
pub fn memory_scratch() -> PathBuf {
    Path::new(MEMORY).join(format!("{PREFIX}{}", std::process::id()))
}

/// Removes what killed processes have left: devices of compressed pages, the kernel's zram devices,
/// and directories in memory. What belongs to a living process stays, since another run may use it.
pub fn remove_strays() {
    pages::remove_strays();
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        if owner.is_some_and(is_gone) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether no process has this id. An id may be in use again by another program; what its first
/// owner left stays until that one ends too, because what is in use must not be taken away.
pub(crate) fn is_gone(pid: &str) -> bool {
    pid.bytes().all(|byte| byte.is_ascii_digit()) && !Path::new("/proc").join(pid).exists()
}
