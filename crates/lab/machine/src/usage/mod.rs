//! Runs one child process and bills it.

mod kernel;
mod pipes;
mod system;
mod tree;

use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dyno_record::Usage;

use crate::error::MachineError;
pub use kernel::Exit;
pub use pipes::Captured;
use pipes::Pipes;
pub use system::{CpuTicks, load_average};
use tree::Watched;

/// How long a child may run, and how much of its output is kept.
#[derive(Debug, Clone, Copy)]
pub struct ChildLimits<'a> {
    /// After this the whole process group is killed and the run counts as hung.
    pub time_limit: Duration,
    /// How many bytes are kept of the end of its standard output.
    pub stdout_bytes_max: usize,
    /// How many bytes are kept of the end of its standard error.
    pub stderr_bytes_max: usize,
    /// When this becomes true the group is killed and the run counts as stopped.
    pub stop: Option<&'a AtomicBool>,
    /// Is told what the child writes to its standard error, part by part, while it runs.
    pub listener: Option<Listener<'a>>,
}

/// A callback that is told of bytes as they come.
#[derive(Clone, Copy)]
pub struct Listener<'a>(pub &'a dyn Fn(&[u8]));

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl ChildLimits<'_> {
    /// A time limit with outputs of 4 MiB and 256 KiB.
    pub fn time(time_limit: Duration) -> Self {
        Self {
            time_limit,
            stdout_bytes_max: 4 << 20,
            stderr_bytes_max: 256 << 10,
            stop: None,
            listener: None,
        }
    }
}

/// A child from start to end.
#[derive(Debug, Clone)]
pub struct ChildRun {
    /// How it ended; of a child that was killed, by SIGKILL.
    pub exit: Exit,
    /// Its standard output, to the last bytes that the limits allow.
    pub stdout: Captured,
    /// Its standard error, to the last bytes that the limits allow.
    pub stderr: Captured,
    /// Seconds from just before the start to the end of the child.
    pub wall_s: f64,
    /// Processor time, memory and I/O of its whole life, with its descendants.
    pub usage: Usage,
    /// It was killed at its time limit.
    pub hung: bool,
    /// It was killed because the caller asked to stop.
    pub stopped: bool,
}

/// Kills every process of the caller's group, the caller included.
pub(crate) fn kill_own_group() {
    kernel::kill_own_group();
}

/// How often memory and I/O are read.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A pause is at least so many times as long as the look before it, which bounds looking to 0.5% of
/// a core. A look at one process takes some 50 us; one at a server's hundred processes and at the
/// threads that started them takes milliseconds, which would be taken from what is measured.
const PAUSE_PER_LOOK: u32 = 200;
/// The second look; the pause then doubles, so that a short child is seen at its height too.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// How often to look for the end where the kernel offers no descriptor for it.
const LOOK_FOR_END_EVERY: Duration = Duration::from_millis(2);
/// How long a killed child may take to go.
const KILL_WAIT: Duration = Duration::from_secs(20);
/// How long outputs may stay open after the child ended and its group was killed: only a process
/// that left the group can hold them.
const DRAIN_WAIT: Duration = Duration::from_secs(1);

/// Runs `command` in a process group of its own: writes `stdin` and closes it, drains both outputs,
/// kills the whole group at the time limit, and kills what the child left behind in its group when
/// it ended, so that nothing disturbs the next sample.
///
/// CPU, faults and switches cover the child and every descendant that was waited for. Peak memory
/// is the highest of: the sum over its process tree at each look (after 1, 2, 4... ms, later every
/// 50 ms, or less often where a look is slow), each process's own high-water mark at that look, and
/// the kernel's figure at the end where that can be trusted: a child inherits the peak of the
/// process that started it, so a figure not above ours is not used.
///
/// # Errors
/// When the child cannot be started, watched or killed. A child that fails is not an error here:
/// see [`ChildRun::exit`].
pub fn run_child(
    mut command: Command,
    stdin: &[u8],
    limits: ChildLimits<'_>,
) -> Result<ChildRun, MachineError> {
    command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // The counters of the machine are read before the clock starts, so that reading them is not in
    // the wall time of the child.
    let before = Before::now();
    let started = Instant::now();
    let mut child = command.spawn().map_err(|source| MachineError::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    let pid = child.id();
    // From here on every error must kill the child: one that is left running would disturb all
    // later samples, and no later code knows of it.
    let mut guard = KillOnError { pid, armed: true };
    let mut pipes =
        Pipes::from_child(&mut child, stdin, limits).map_err(|source| MachineError::Process {
            action: "open the pipes of",
            pid,
            source,
        })?;
    let mut watched = Watched::default();
    let end = wait_for_end(&child, &mut pipes, &mut watched, started, limits)?;
    // The child has ended but is not collected, so its process id, which is also the id of the
    // group, cannot have been given to another process. Only in this state can the rest of the
    // group be killed safely, and its last I/O counts be read.
    watched.look_at_io(pid);
    kernel::kill_group(pid);
    // What the child wrote last may still be in the pipes.
    drain(&mut pipes, pid)?;
    guard.armed = false;
    let bill = kernel::collect(pid)?;
    let usage = before.usage(&bill, &watched, end.wall_s);
    let (stdout, stderr) = pipes.finish();
    let ChildEnd {
        wall_s,
        hung,
        stopped,
    } = end;
    Ok(ChildRun {
        exit: bill.exit,
        stdout,
        stderr,
        wall_s,
        usage,
        hung,
        stopped,
    })
}

struct ChildEnd {
    wall_s: f64,
    hung: bool,
    stopped: bool,
}

fn wait_for_end(
    child: &Child,
    pipes: &mut Pipes<'_>,
    watched: &mut Watched,
    started: Instant,
    limits: ChildLimits<'_>,
) -> Result<ChildEnd, MachineError> {
    let pid = child.id();
    let pidfd = kernel::open_pidfd(pid);
    let pause_max = if pidfd.is_some() {
        LOOK_EVERY
    } else {
        LOOK_FOR_END_EVERY
    };
    let mut end = ChildEnd {
        wall_s: 0.0,
        hung: false,
        stopped: false,
    };
    let mut killed_at = None;
    let mut next_look = Duration::ZERO;
    while !kernel::has_ended(pid)? {
        let now = started.elapsed();
        if now >= next_look {
            watched.look(pid);
            next_look = now + pause_after_look(now, started.elapsed().saturating_sub(now));
        }
        // The group is killed once. A process that waits in the kernel, often for a disk, does not
        // go at once, and the caller is told so instead of waiting for ever.
        match killed_at {
            None => {
                end.hung = now >= limits.time_limit;
                end.stopped = limits.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
                if end.hung || end.stopped {
                    kernel::kill_group(pid);
                    killed_at = Some(now);
                }
            }
            Some(at) if now > at + KILL_WAIT => {
                return Err(MachineError::Unkillable {
                    pid,
                    waited_s: KILL_WAIT.as_secs(),
                });
            }
            Some(_) => {}
        }
        let until_limit = limits.time_limit.saturating_sub(now);
        let pause = pause_max.min(next_look.saturating_sub(now));
        // Without this the kill would come up to one pause after the limit.
        let pause = if killed_at.is_none() {
            pause.min(until_limit)
        } else {
            pause
        };
        pipes
            .serve(pidfd.as_ref(), pause)
            .map_err(|source| MachineError::Process {
                action: "serve the pipes of",
                pid,
                source,
            })?;
    }
    end.wall_s = started.elapsed().as_secs_f64();
    Ok(end)
}

/// The pause after a look that began `at` after the start and took `took`. Early looks are close
/// together, whatever they take, so that a short child is seen at its height.
fn pause_after_look(at: Duration, took: Duration) -> Duration {
    if at < LOOK_EVERY {
        at.max(LOOK_AGAIN_AFTER)
    } else {
        LOOK_EVERY.max(took * PAUSE_PER_LOOK)
    }
}

fn drain(pipes: &mut Pipes<'_>, pid: u32) -> Result<(), MachineError> {
    let ended = Instant::now();
    while pipes.outputs_open() && ended.elapsed() < DRAIN_WAIT {
        pipes
            .serve(None, LOOK_EVERY)
            .map_err(|source| MachineError::Process {
                action: "drain the pipes of",
                pid,
                source,
            })?;
    }
    Ok(())
}

/// The machine before the child started.
struct Before {
    ticks: Option<CpuTicks>,
    load: Option<f64>,
    own_cpu_s: f64,
}

impl Before {
    fn now() -> Self {
        Self {
            ticks: CpuTicks::now(),
            load: load_average(),
            own_cpu_s: kernel::own_usage().0,
        }
    }

    fn usage(&self, bill: &kernel::Bill, watched: &Watched, wall_s: f64) -> Usage {
        let (own_cpu_s, own_peak_rss_bytes) = kernel::own_usage();
        let ticks = self.ticks.zip(CpuTicks::now());
        // What the child and the watcher used is known; the rest of the busy time is that of
        // others.
        let known_cpu_s = bill.user_s + bill.system_s + own_cpu_s - self.own_cpu_s;
        // A child inherits the high-water mark of the process that it was forked from, until its
        // own memory exceeds that mark.
        let trusted = (bill.max_rss_bytes > own_peak_rss_bytes).then_some(bill.max_rss_bytes);
        Usage {
            user_s: Some(bill.user_s),
            system_s: Some(bill.system_s),
            peak_rss_bytes: trusted.max(watched.peak_rss_bytes),
            minor_faults: Some(bill.minor_faults),
            major_faults: Some(bill.major_faults),
            voluntary_switches: Some(bill.voluntary_switches),
            involuntary_switches: Some(bill.involuntary_switches),
            read_bytes: watched.io.map(|io| io.read_bytes),
            written_bytes: watched.io.map(|io| io.written_bytes),
            storage_written_bytes: watched.io.map(|io| io.storage_written_bytes),
            steal: ticks.and_then(|(before, after)| after.steal_since(&before)),
            other_cores: ticks
                .and_then(|(before, after)| after.other_cores_since(&before, known_cpu_s, wall_s)),
            load: self.load,
        }
    }
}

/// Leaves no child behind when watching it failed half-way.
struct KillOnError {
    pid: u32,
    armed: bool,
}

impl Drop for KillOnError {
    fn drop(&mut self) {
        if self.armed {
            kernel::kill_group(self.pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_a_large_tree_are_rare_and_early_ones_are_not() {
        let ms = Duration::from_millis;
        let slow = ms(3);
        assert_eq!(pause_after_look(Duration::ZERO, slow), LOOK_AGAIN_AFTER);
        assert_eq!(pause_after_look(ms(4), slow), ms(4));
        assert_eq!(pause_after_look(ms(60), slow), ms(600));
        assert_eq!(pause_after_look(ms(60), ms(0)), LOOK_EVERY);
    }
}
