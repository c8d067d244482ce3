//! Measures the machine, because some settings depend on its size. Has `unsafe`: one call of
//! statvfs.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What settings depend on. A field that could not be read is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSize {
    /// Memory that this process may use in bytes, with the control group's limit.
    pub memory_bytes: u64,
    /// Processors that this process may use.
    pub cores: u32,
    /// Huge pages that are free now.
    pub huge_pages_free: u64,
    /// Bytes of one huge page.
    pub huge_page_bytes: u64,
    /// Free bytes on the disk that holds the data.
    pub disk_free_bytes: Option<u64>,
    /// Whether that disk is a rotating one; `None` if unknown.
    pub rotational: Option<bool>,
    /// Version of the kernel, such as (6, 1).
    pub kernel: Option<(u32, u32)>,
}

/// The memory to assume if the machine does not report how much it has.
const UNKNOWN_MEMORY_BYTES: u64 = 1 << 30;

impl MachineSize {
    /// This machine, with the disk that `data` (or the nearest parent that exists) lies on.
    pub fn with_disk_of(data: &Path) -> Self {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = |name| field(&meminfo, name).map(|kib| kib * 1024);
        let total = kib("MemTotal:").unwrap_or(UNKNOWN_MEMORY_BYTES);
        let limits = [
            "/sys/fs/cgroup/memory.max",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        ];
        let limit = limits.iter().filter_map(|path| number(path)).min();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let place = data.ancestors().find(|path| path.exists());
        Self {
            memory_bytes: limit.map_or(total, |limit| limit.min(total)),
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            huge_pages_free: field(&meminfo, "HugePages_Free:").unwrap_or(0),
            huge_page_bytes: kib("Hugepagesize:").unwrap_or(2 << 20),
            disk_free_bytes: place.and_then(disk_free_bytes),
            rotational: place.and_then(rotational),
            kernel: kernel(),
        }
    }

    /// A small machine, for servers that must use little, such as many at once in tests.
    pub fn small() -> Self {
        Self {
            memory_bytes: 512 << 20,
            cores: 1,
            huge_pages_free: 0,
            huge_page_bytes: 2 << 20,
            disk_free_bytes: Some(4 << 30),
            rotational: Some(false),
            kernel: kernel(),
        }
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Reads a number from a file; `None` also for the text "max".
fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn kernel() -> Option<(u32, u32)> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut fields = text.split(|c: char| !c.is_ascii_digit());
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn disk_free_bytes(path: &Path) -> Option<u64> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: path ends with a zero byte, and stat is large enough; it is read only when it was
    // filled.
    let stat = unsafe {
        if libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) != 0 {
            return None;
        }
        stat.assume_init()
    };
    Some(stat.f_bavail * stat.f_frsize)
}

/// Reads it from the device, or from the disk that the device is a partition of.
fn rotational(path: &Path) -> Option<bool> {
    let device = fs::metadata(path).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let block = format!("/sys/dev/block/{major}:{minor}");
    ["queue/rotational", "../queue/rotational"]
        .iter()
        .find_map(|name| number(&format!("{block}/{name}")))
        .map(|flag| flag == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_a_disk() {
        let size = MachineSize::with_disk_of(Path::new("/tmp/no/such/place"));
        assert!(size.memory_bytes > 1 << 26 && size.cores > 0);
        assert!(size.disk_free_bytes.is_some() && size.kernel.is_some());
        assert_eq!(
            field("A: 1 kB\nHugePages_Free:  7\n", "HugePages_Free:"),
            Some(7)
        );
    }
}
