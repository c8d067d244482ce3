//! Marks the process as one that file systems write to. Has `unsafe`: the system call for it.

/// Tells the system that this process serves a block device, as far as it may: memory that it
/// allocates to serve a write is not reclaimed by writing to the same device, which would wait for
/// itself; and other processes are killed first when memory is short, because killing this one
/// frees nothing that the holder also holds. Call it before the serving threads are started.
/// Without the privilege it has no effect.
pub fn prepare_to_serve() {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // This is not the lowest value: in a control group whose every process is exempt the system
    // would not know what to kill.
    const SPARED: &str = "-900";
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    let _ = std::fs::write("/proc/self/oom_score_adj", SPARED);
}
