//! What the processor is embedded in: host, control group, memory, disk.

use std::path::Path;

use dyno_record::MachineCheck;

use super::{Trouble, good, judged, spoils, unknown};
use crate::facts::storage::Storage;
use crate::facts::{cgroup, cpu, memory, storage, system};
use crate::root::Root;

const FREE_DISK_BYTES_MIN: u64 = 10 << 30;
const FREE_MEMORY_SHARE_MIN: f64 = 0.5;

pub(super) fn virtualisation(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "neighbours on the host show as steal and uneven disk; counters and clocks may be hidden",
        mend: "measure on bare metal for published figures; here, watch steal and the noise band",
    };
    let seen = system::virtualisation(root);
    judged("virtualisation", seen == "none seen", seen, &trouble)
}

pub(super) fn cpu_limit(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "the scheduler stops all threads for the rest of a period once the quota is used: stalls in the tail",
        mend: "give the container whole processors (cpuset) instead of a quota",
    };
    let whole = cpu::logical(root).map_or(f64::INFINITY, |n| n as f64);
    match cgroup::cpu_limit(root) {
        Some(cores) if cores < whole => spoils(
            "cpu-limit",
            format!("{cores:.2} cores of {whole}"),
            &trouble,
        ),
        _ => good("cpu-limit", "none"),
    }
}

pub(super) fn memory_limit(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "page cache counts towards the limit: files are read again, and a run may be killed",
        mend: "raise the limit of the container above data and page cache",
    };
    match cgroup::memory_limit_bytes(root) {
        Some(limit) => spoils("memory-limit", memory::gib(limit), &trouble),
        None => good("memory-limit", "none"),
    }
}

pub(super) fn memory_free(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "the page cache cannot hold the data, so runs that should be warm read the disk",
        mend: "stop what holds the memory",
    };
    match memory::available_bytes(root).zip(memory::total_bytes(root)) {
        Some((available, total)) => {
            let fine = available as f64 >= FREE_MEMORY_SHARE_MIN * total as f64;
            let seen = format!(
                "{} of {} available",
                memory::gib(available),
                memory::gib(total)
            );
            judged("memory", fine, seen, &trouble)
        }
        None => unknown("memory", "/proc/meminfo cannot be read", &trouble),
    }
}

pub(super) fn swap(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "pages that were swapped out come back in the middle of a run",
        mend: "swapoff -a",
    };
    match memory::swap_used_bytes(root).zip(memory::swap_bytes(root)) {
        Some((0, 0)) => good("swap", "none"),
        Some((0, total)) => good("swap", format!("{} there, none used", memory::gib(total))),
        Some((used, _)) => spoils("swap", format!("{} used", memory::gib(used)), &trouble),
        None => unknown("swap", "/proc/meminfo cannot be read", &trouble),
    }
}

pub(super) fn huge_pages(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "`always` lets the kernel join pages at its own time: runs differ and memory use jumps",
        mend: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
    };
    match memory::huge_pages(root) {
        Some(setting) => judged("huge-pages", setting != "always", setting, &trouble),
        None => unknown("huge-pages", "the kernel does not tell", &trouble),
    }
}

pub(super) fn file_system(root: &Root, path: &Path) -> MachineCheck {
    let trouble = Trouble {
        cost: "figures of such a file system are not figures of a disk of this machine",
        mend: "put the data on a local disk with ext4 or xfs",
    };
    match Storage::from_path(root, path) {
        Some(storage) => {
            let fine = !(storage.in_memory() || storage.remote() || storage.kind == "overlay");
            let seen = format!("{} on {}", storage.kind, storage.describe_device());
            judged("file-system", fine, seen, &trouble)
        }
        None => unknown(
            "file-system",
            format!("no mount holds {}", path.display()),
            &trouble,
        ),
    }
}

pub(super) fn free_disk(path: &Path) -> MachineCheck {
    let trouble = Trouble {
        cost: "a nearly full disk writes slower, and a suite may stop half-way",
        mend: "free 10 GiB, or give another directory",
    };
    match storage::free_bytes(path) {
        Ok(bytes) => judged(
            "free-disk",
            bytes >= FREE_DISK_BYTES_MIN,
            memory::gib(bytes),
            &trouble,
        ),
        Err(error) => unknown(
            "free-disk",
            format!("{}: {error}", path.display()),
            &trouble,
        ),
    }
}

pub(super) fn counters(root: &Root) -> MachineCheck {
    let trouble = Trouble {
        cost: "`dyno run --flamegraph` may not be able to sample; figures are as sound without it",
        mend: "sysctl kernel.perf_event_paranoid=1",
    };
    match root
        .text("proc/sys/kernel/perf_event_paranoid")
        .and_then(|t| t.parse::<i32>().ok())
    {
        Some(level) if level <= 2 => good("counters", format!("perf_event_paranoid = {level}")),
        Some(level) => unknown(
            "counters",
            format!("perf_event_paranoid = {level}"),
            &trouble,
        ),
        None => unknown("counters", "this kernel offers none", &trouble),
    }
}
