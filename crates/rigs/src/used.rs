//! The resources that this process and its children have used so far: processor seconds and peak
//! memory.
//!
//! The runner sees both too, but over the child's whole life, in which reading the files back is
//! the larger part. This file holds `unsafe` code: calls of libc.

use std::fs;
use std::io;
use std::mem::MaybeUninit;

/// Processor seconds of all threads, in user and kernel mode; 0 if the clock is missing.
pub(crate) fn cpu_s() -> f64 {
    clock_s(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0.0)
}

fn clock_s(clock: libc::clockid_t) -> io::Result<f64> {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: a zeroed timespec is a valid value, and clock_gettime writes only into it.
    let (failed, time) = unsafe {
        let failed = libc::clock_gettime(clock, time.as_mut_ptr());
        (failed, time.assume_init())
    };
    match failed {
        0 => Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Processor seconds of this process, and of its children that have ended and were waited for.
pub(crate) fn cpu_with_children_s() -> f64 {
    cpu_s() + children_cpu_s()
}

/// Processor seconds of another process and all of its threads, also of those that have ended.
pub(crate) fn cpu_of_s(pid: u32) -> io::Result<f64> {
    let mut clock = 0;
    // SAFETY: the call writes one number, into a place of its type.
    let refused = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    clock_s(clock)
}

/// The kernel's high-water mark of this process's resident memory, in bytes.
pub(crate) fn peak_bytes() -> Option<f64> {
    let bytes = proc_bytes("/proc/self/status", "VmHWM:").ok()?;
    Some(bytes as f64)
}

/// What a file of `/proc` has in kB on the line that begins with `name`, in bytes.
pub(crate) fn proc_bytes(path: &str, name: &str) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let kib = kib.ok_or_else(|| io::Error::other(format!("it has no {name}")))?;
    Ok(kib * 1024)
}

/// Seconds of processor time of the children that have ended and were waited for.
pub(crate) fn children_cpu_s() -> f64 {
    let usage = of_children();
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The resident memory of the largest of the children that have ended and were waited for, in
/// bytes; `None` before the first one.
pub(crate) fn children_peak_bytes() -> Option<f64> {
    let kib = of_children().ru_maxrss;
    (kib > 0).then_some(kib as f64 * 1024.0)
}

fn of_children() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a zeroed rusage is a valid value, and getrusage writes only into it.
    unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    }
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

    #[test]
    fn children_count_when_they_have_ended() {
        let count = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
        let before = children_cpu_s();
        let mut shell = std::process::Command::new("sh");
        assert!(
            shell
                .args(["-c", count])
                .status()
                .is_ok_and(|s| s.success())
        );
        assert!(children_cpu_s() > before);
        assert!(children_peak_bytes().is_some_and(|bytes| bytes > 100_000.0));
    }
}
