//! How much memory this machine has for a store, and how much a store may ask for.

use std::fs;
use std::path::Path;

use anyhow::ensure;

/// Bytes of the index for a page.
const INDEX_BYTES: u64 = 8;

/// Bytes of memory that this process can have: those of the machine, or of the smallest control
/// group that it is in. Nothing where the system does not say.
pub fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| total_bytes(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let read = |path: &Path| fs::read_to_string(path).ok();
    machine.into_iter().chain(group_bytes(&groups, read)).min()
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The least limit of the group and of those around it. `groups` is /proc/self/cgroup.
fn group_bytes(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(group)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (base, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        // A group is bounded by those above it too, so the least of all of them counts.
        for group in Path::new(group).ancestors() {
            let inside = group.strip_prefix("/").unwrap_or(group);
            let text = read(&Path::new(base).join(inside).join(file)).unwrap_or_default();
            // A group without a limit says "max", or a number that no machine has.
            if let Ok(bytes) = text.trim().parse::<u64>() {
                least = Some(least.map_or(bytes, |least| least.min(bytes)));
            }
        }
    }
    least
}

/// What a store of `pages` may take for its pages when no limit is given: as much as they have, or
/// what three quarters of the memory leave beside the index.
pub fn default_limit(pages: u64, wanted: u64, memory: Option<u64>) -> u64 {
    let index = pages * INDEX_BYTES;
    let most = memory.map_or(u64::MAX, |memory| (memory / 4 * 3).saturating_sub(index));
    wanted.min(most).max(1 << 20)
}

/// Refuses a size whose index alone could take more than half of the memory.
pub fn check_size(size: u64, pages: u64, memory: Option<u64>) -> anyhow::Result<()> {
    let index = pages.saturating_mul(INDEX_BYTES);
    if let Some(memory) = memory {
        ensure!(
            index <= memory / 2,
            "--size {}: the index of that many pages takes up to {}, {INDEX_BYTES} bytes a page, and this machine or \
             control group has {} of memory",
            shown(size),
            shown(index),
            shown(memory)
        );
    }
    Ok(())
}

/// A size as people read it.
pub fn shown(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_group_bounds_the_memory() {
        let meminfo = "MemTotal:       24000000 kB\nMemFree: 1 kB\n";
        assert_eq!(total_bytes(meminfo), Some(24_000_000 * 1024));
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "104857600\n",
                "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => "9223372036854771712\n",
                _ => return None,
            };
            Some(text.to_string())
        };
        assert_eq!(group_bytes("0::/a/b\n", read), Some(100 << 20));
        assert_eq!(
            group_bytes("4:cpu:/a\n3:memory:/c\n", read),
            Some(9_223_372_036_854_771_712)
        );
        assert_eq!(group_bytes("", read), None);
    }

    #[test]
    fn the_default_limit_leaves_room_for_others_and_for_the_index() {
        assert_eq!(default_limit(1000, 5 << 20, None), 5 << 20);
        let (gib, pages) = (1 << 30, 1 << 20);
        assert_eq!(
            default_limit(pages, 4 * gib, Some(4 * gib)),
            3 * gib - 8 * pages
        );
        assert!(check_size(1 << 50, 1 << 38, Some(24 * gib)).is_err());
        assert!(check_size(1 << 42, 1 << 30, Some(24 * gib)).is_ok());
    }

    #[test]
    fn sizes_are_shown_in_their_unit() {
        assert_eq!(shown(100), "100 B");
        assert_eq!(shown(8 << 30), "8 GiB");
        assert_eq!(shown((3 << 20) + (1 << 19)), "3.5 MiB");
    }
}
