//! A process that file systems write to. Has `unsafe`: a word to the system.

/// Tells the system that this process serves a block device, as far as it may: the memory that it
/// takes to serve a write is not got by writing to the same device, which would wait for itself;
/// and others are ended first when memory is short, as its end would free nothing that the holder
/// has too. Call it before the threads are made that serve. Without the privilege the process is as
/// others.
pub fn prepare_to_serve() {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // Not the least that there is: in a group whose every process is spared the system would not
    // know what to end.
    const SPARED: &str = "-900";
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    let _ = std::fs::write("/proc/self/oom_score_adj", SPARED);
}
