//! What this machine is: facts in reading order, and a fingerprint of those that matter.

pub(crate) mod cgroup;
pub(crate) mod cpu;
pub(crate) mod devices;
pub(crate) mod memory;
pub(crate) mod storage;
pub(crate) mod system;

use std::path::Path;

use dyno_record::Machine;

use crate::doctor::doctor;
use crate::root::Root;

/// A fact, and what of it two runs must agree on to be compared without a mark.
struct Fact {
    name: &'static str,
    value: String,
    binding: Option<String>,
}

/// Bytes of memory that programs may still take; `None` when the kernel does not say.
pub fn available_memory_bytes(root: &Root) -> Option<u64> {
    memory::available_bytes(root)
}

/// Bytes that an ordinary user may still write to the file system of `path`, which must exist.
///
/// # Errors
/// What statvfs says.
pub fn free_disk_bytes(path: &Path) -> std::io::Result<u64> {
    storage::free_bytes(path)
}

/// Reads what the machine is and what may spoil a measurement on it. `path` is where the data will
/// live: its disk and file system are part of the machine. `pause` is called once between the two
/// readings of the processor counters and should take about half a second.
pub fn machine(root: &Root, path: &Path, pause: &mut dyn FnMut()) -> Machine {
    let facts = facts(root, path);
    Machine {
        fingerprint: fingerprint(&facts),
        facts: facts
            .into_iter()
            .map(|fact| (fact.name.to_owned(), fact.value))
            .collect(),
        checks: doctor(root, path, pause),
    }
}

fn facts(root: &Root, path: &Path) -> Vec<Fact> {
    let binding = |name, value: Option<String>| {
        let value = or_not_available(value);
        let binding = Some(value.clone());
        Fact {
            name,
            value,
            binding,
        }
    };
    let described = |name, value: Option<String>| Fact {
        name,
        value: or_not_available(value),
        binding: None,
    };
    let kernel = root.text("proc/sys/kernel/osrelease");
    let disk = storage::Storage::from_path(root, path);
    let mut facts = vec![
        binding("cpu", cpu::model(root)),
        binding("logical cpus", cpu::logical(root).map(|n| n.to_string())),
        binding("physical cores", cpu::physical(root).map(|n| n.to_string())),
        binding(
            "threads per core",
            cpu::threads_per_core(root).map(|n| n.to_string()),
        ),
        binding("caches", cpu::caches(root)),
        binding("instruction sets", cpu::instruction_sets(root)),
        binding("numa nodes", Some(cpu::numa_nodes(root).to_string())),
        binding("governor", cpu::governor(root)),
        binding(
            "turbo",
            cpu::turbo(root).map(|on| if on { "on" } else { "off" }.to_owned()),
        ),
        binding("mitigations", cpu::mitigations(root)),
        binding("memory", memory::total_bytes(root).map(memory::gib)),
        binding("swap", memory::swap_bytes(root).map(memory::gib)),
        binding("transparent huge pages", memory::huge_pages(root)),
        binding("reserved huge pages", memory::reserved_huge_pages(root)),
        Fact {
            name: "kernel",
            binding: kernel.as_deref().map(series),
            value: or_not_available(kernel),
        },
        binding("os", system::os(root)),
        binding("virtualisation", Some(system::virtualisation(root))),
        binding("clock source", system::clock_source(root)),
        binding("cpu limit", Some(cgroup::describe_cpu(root))),
        binding("memory limit", Some(cgroup::describe_memory(root))),
        binding(
            "file system",
            disk.as_ref().map(storage::Storage::describe_file_system),
        ),
        binding("disk", disk.as_ref().map(storage::Storage::describe_device)),
    ];
    // Shown, and not a part of the fingerprint: free disk changes from run to run, and the devices
    // that are plugged in say nothing of processor, memory and disk.
    let free = storage::free_bytes(path)
        .map_or_else(|error| format!("not available: {error}"), memory::gib);
    facts.extend([
        described("memory channels", devices::memory_channels(root)),
        described("gpus", Some(devices::gpus(root))),
        described("network", Some(devices::networks(root))),
        described("kernel interfaces", Some(devices::interfaces(root))),
        described("free disk", Some(free)),
    ]);
    facts
}

fn or_not_available(value: Option<String>) -> String {
    value.unwrap_or_else(|| "not available: the kernel does not tell".to_owned())
}

/// `6.1` of `6.1.0-42-amd64`: a kernel that was built again, or got a correction, is of the same
/// series, and its runs can be compared with those before.
fn series(release: &str) -> String {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = release.split('.').collect();
    match parts[..] {
        [major, minor, ..] if number(major) && number(minor) => format!("{major}.{minor}"),
        _ => release.to_owned(),
    }
}

/// FNV-1a, 64 bits, over the binding facts: short, and the same on every machine and version.
fn fingerprint(facts: &[Fact]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (name, value) in facts
        .iter()
        .filter_map(|fact| Some((fact.name, fact.binding.as_ref()?)))
    {
        let line = name.bytes().chain([b'=']).chain(value.bytes());
        for byte in line.chain([b'\n']) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
