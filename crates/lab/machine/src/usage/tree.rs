//! What /proc says about a child and its descendants while they run.

use std::fs;

/// Processes looked at per reading: a fork bomb must not stop the watcher.
const PROCESSES_MAX: usize = 64;
/// Threads of each process whose children are looked for, so that a look at a program of thousands
/// of threads stays short.
const THREADS_MAX: usize = 64;

/// The highest memory and the last I/O counts seen so far.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub peak_rss_bytes: Option<u64>,
    pub io: Option<Io>,
}

/// Counters of /proc/PID/io, which include those of children that were waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Io {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub storage_written_bytes: u64,
}

impl Watched {
    /// Reads memory and I/O of the tree once.
    pub fn look(&mut self, pid: u32) {
        let mut resident = None;
        let mut own_peak = None;
        for member in members(pid) {
            // A process may end between the listing and this look; the others still count.
            let Ok(status) = fs::read_to_string(format!("/proc/{member}/status")) else {
                continue;
            };
            let bytes = |key| field(&status, key).map(|kib| kib * 1024);
            resident = Some(resident.unwrap_or(0) + bytes("VmRSS:").unwrap_or(0));
            own_peak = own_peak.max(bytes("VmHWM:"));
        }
        // The sum catches several processes at once, the high-water mark what fell between looks.
        self.peak_rss_bytes = self.peak_rss_bytes.max(resident).max(own_peak);
        self.look_at_io(pid);
    }

    /// Reads the I/O counts alone; also works on a child that has ended and is not collected.
    pub fn look_at_io(&mut self, pid: u32) {
        if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/io")) {
            self.io = parse_io(&text).or(self.io);
        }
    }
}

fn parse_io(text: &str) -> Option<Io> {
    Some(Io {
        read_bytes: field(text, "rchar:")?,
        written_bytes: field(text, "wchar:")?,
        storage_written_bytes: field(text, "write_bytes:")?,
    })
}

/// The number after `key` at the start of a line.
fn field(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The process and its descendants, as far as the kernel tells (CONFIG_PROC_CHILDREN).
fn members(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() && found.len() < PROCESSES_MAX {
        let member = found[next];
        next += 1;
        found.extend(children(member));
    }
    found.truncate(PROCESSES_MAX);
    found
}

/// The processes that `pid` started. The kernel lists a child with the thread that started it, and
/// a program that starts its servers from a thread pool would otherwise seem to have none.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten().take(THREADS_MAX);
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let mut found = Vec::new();
    for list in lists {
        let ids = list.split_whitespace();
        found.extend(ids.filter_map(|id| id.parse::<u32>().ok()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_counters_are_read_by_name() {
        let text = "rchar: 3000\nwchar: 2000\nsyscr: 7\nsyscw: 8\nread_bytes: 5\nwrite_bytes: 4096\n\
                    cancelled_write_bytes: 0\n";
        let expected = Io {
            read_bytes: 3000,
            written_bytes: 2000,
            storage_written_bytes: 4096,
        };
        assert_eq!(parse_io(text), Some(expected));
        assert_eq!(parse_io("rchar: 1\n"), None);
    }

    #[test]
    fn a_process_that_a_thread_started_belongs_to_the_tree() {
        // Tests do not run on the main thread, so this child is one of another thread.
        let mut command = std::process::Command::new("cat");
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let members = members(std::process::id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(
            members.contains(&child.id()),
            "{} is not in {members:?}",
            child.id()
        );
    }

    #[test]
    fn own_memory_is_seen() {
        let mut watched = Watched::default();
        watched.look(std::process::id());
        assert!(watched.peak_rss_bytes.unwrap() > 100_000, "{watched:?}");
    }
}
