//! What this machine is: facts in reading order, and a fingerprint of those that matter.

pub(crate) mod cgroup;
pub(crate) mod cpu;
pub(crate) mod memory;
pub(crate) mod storage;
pub(crate) mod system;

use std::path::Path;

use dyno_record::Machine;

use crate::doctor::doctor;
use crate::root::Root;

/// A fact and whether two runs must agree on it to be compared without a mark.
struct Fact {
    name: &'static str,
    value: String,
    binding: bool,
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
    let binding = |name, value: Option<String>| Fact {
        name,
        value: value.unwrap_or_else(|| "not available: the kernel does not tell".to_owned()),
        binding: true,
    };
    let disk = storage::Storage::of(root, path);
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
        binding("kernel", root.text("proc/sys/kernel/osrelease")),
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
    facts.push(Fact {
        name: "free disk",
        value: storage::free_bytes(path)
            .map_or_else(|error| format!("not available: {error}"), memory::gib),
        binding: false,
    });
    facts
}

/// FNV-1a, 64 bits, over the binding facts: short, and the same on every machine and version.
fn fingerprint(facts: &[Fact]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for fact in facts.iter().filter(|fact| fact.binding) {
        for byte in fact
            .name
            .bytes()
            .chain([b'='])
            .chain(fact.value.bytes())
            .chain([b'\n'])
        {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
