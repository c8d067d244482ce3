//! What the experiments of `--why` can change around a child on this machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use dyno_machine::free_disk_bytes;
use dyno_rigs::MEMORY;
use dyno_suite::{Planned, Surroundings, show_bytes};

/// Looks at this machine for the cases of `planned`.
pub fn find(planned: &Planned) -> Surroundings {
    let scratch = planned.estimates.iter().map(|case| case.disk_bytes);
    Surroundings {
        cores: allowed_cores(),
        no_cores: without_taskset(),
        no_memory: without_memory(scratch.fold(0.0, f64::max)),
    }
}

fn without_taskset() -> Option<String> {
    let mut taskset = Command::new("taskset");
    taskset.arg("--version");
    taskset.stdout(Stdio::null()).stderr(Stdio::null());
    let works = taskset.status().is_ok_and(|status| status.success());
    (!works).then(|| "taskset of util-linux, which keeps a child to processors, is missing".into())
}

/// Scratch files that fill the memory would measure the lack of memory.
fn without_memory(needed_bytes: f64) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_tmpfs = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        fields.next() == Some(MEMORY) && fields.next() == Some("tmpfs")
    };
    if !mounts.lines().any(is_tmpfs) {
        return Some(format!("{MEMORY} is not a memory file system here"));
    }
    match free_disk_bytes(Path::new(MEMORY)) {
        Err(error) => Some(format!("{MEMORY}: {error}")),
        Ok(free) if (free as f64) < 2.0 * needed_bytes => Some(format!(
            "{MEMORY} has {} free, and the largest case needs {} to be safe",
            show_bytes(free as f64),
            show_bytes(2.0 * needed_bytes)
        )),
        Ok(_) => None,
    }
}

fn allowed_cores() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map_or_else(Vec::new, cores_of)
}

/// The numbers of a list such as `0-2,7`; what is not a number is passed over.
fn cores_of(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read_as_the_kernel_writes_them() {
        assert_eq!(cores_of("\t0-2,7\n"), [0, 1, 2, 7]);
        assert_eq!(cores_of("3"), [3]);
        assert_eq!(cores_of(""), [0u32; 0]);
        assert!(!allowed_cores().is_empty(), "this test runs somewhere");
    }

    #[test]
    fn files_that_do_not_fit_into_memory_stay_on_the_disk() {
        let said = without_memory(1e18).expect("no machine has so much");
        assert!(said.starts_with(MEMORY), "{said}");
    }
}
