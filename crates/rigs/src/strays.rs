//! What children of the lab leave on the machine when they are killed: at Ctrl-C, at their time
//! limit, or by the kernel when memory runs out.

use std::path::Path;

use crate::{pages, tpch};

/// Removes it: devices of compressed pages, the kernel's zram devices, and files in memory. What
/// belongs to a living process stays, since another run may use it.
pub fn remove_strays() {
    pages::remove_strays();
    tpch::remove_strays();
}

/// Whether no process has this id. An id may be in use again by another program; what its first
/// owner left stays until that one ends too, because what is in use must not be taken away.
pub(crate) fn is_gone(pid: &str) -> bool {
    pid.bytes().all(|byte| byte.is_ascii_digit()) && !Path::new("/proc").join(pid).exists()
}
