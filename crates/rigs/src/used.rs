//! What this process has used so far: processor seconds, and the most memory at any time.
//!
//! The runner sees both too, but over the child's whole life, in which reading the files back is the
//! larger part. This file holds `unsafe` code: one call of libc.

use std::fs;
use std::mem::MaybeUninit;

/// Seconds of processor time of all threads, in user and kernel mode. Zero where the clock is missing.
pub(crate) fn cpu_s() -> f64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: a zeroed timespec is a valid value, and clock_gettime writes only into it.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The kernel's high-water mark of this process's resident memory, in bytes.
pub(crate) fn peak_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_more_than_nothing() {
        let before = cpu_s();
        let text = "x".repeat(1 << 20);
        assert!(peak_bytes().is_some_and(|bytes| bytes > text.len() as f64));
        assert!(cpu_s() >= before && before > 0.0);
    }
}
