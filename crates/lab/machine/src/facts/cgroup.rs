//! Limits of the control group, version 2 and 1.

use crate::facts::memory;
use crate::root::Root;

const BASE: &str = "sys/fs/cgroup";

/// The directories of our group and its parents for a controller, innermost first.
fn directories(root: &Root, controller: &str) -> Vec<String> {
    let groups = root.text("proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let base = match controllers {
            "" => BASE.to_owned(),
            list if list.split(',').any(|c| c == controller) => format!("{BASE}/{controller}"),
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            found.push(format!("{base}{path}"));
            match path.rfind('/') {
                Some(cut) => path = &path[..cut],
                None => break,
            }
        }
    }
    found
}

/// Cores that the group may use; `None` without a limit.
pub(crate) fn cpu_limit(root: &Root) -> Option<f64> {
    let limits = directories(root, "cpu")
        .into_iter()
        .filter_map(|directory| {
            if let Some(max) = root.text(&format!("{directory}/cpu.max")) {
                let (quota, period) = max.split_once(' ')?;
                return Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?);
            }
            // Version 1 writes -1 for "no limit", which does not parse as a count.
            let quota = root.number(&format!("{directory}/cpu.cfs_quota_us"))?;
            let period = root.number(&format!("{directory}/cpu.cfs_period_us"))?;
            (period > 0).then(|| quota as f64 / period as f64)
        });
    // A parent group may allow less than the group itself.
    limits.min_by(f64::total_cmp)
}

/// Bytes that the group may use; `None` without a limit below the machine's memory.
pub(crate) fn memory_limit_bytes(root: &Root) -> Option<u64> {
    let limits = directories(root, "memory")
        .into_iter()
        .filter_map(|directory| {
            root.number(&format!("{directory}/memory.max"))
                .or_else(|| root.number(&format!("{directory}/memory.limit_in_bytes")))
        });
    let total = memory::total_bytes(root).unwrap_or(u64::MAX);
    limits.min().filter(|&limit| limit < total)
}

pub(crate) fn describe_cpu(root: &Root) -> String {
    cpu_limit(root).map_or_else(|| "none".to_owned(), |cores| format!("{cores:.2} cores"))
}

pub(crate) fn describe_memory(root: &Root) -> String {
    memory_limit_bytes(root).map_or_else(|| "none".to_owned(), memory::gib)
}
