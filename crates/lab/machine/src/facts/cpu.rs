//! The processor, as /proc/cpuinfo and sysfs describe it.

use std::collections::BTreeSet;

use crate::root::{Root, value_of};

const CPUS: &str = "sys/devices/system/cpu";

pub(crate) fn model(root: &Root) -> Option<String> {
    let info = root.text("proc/cpuinfo")?;
    let name = value_of(&info, "model name").or_else(|| value_of(&info, "Processor"))?;
    // Clouds hide the model behind a family name, so the numbers are part of it.
    let numbers = ["cpu family", "model", "stepping"].map(|key| value_of(&info, key));
    Some(match numbers {
        [Some(family), Some(model), Some(stepping)] => {
            format!("{name} (family {family}, model {model}, stepping {stepping})")
        }
        _ => name.to_owned(),
    })
}

pub(crate) fn logical(root: &Root) -> Option<usize> {
    let info = root.text("proc/cpuinfo")?;
    Some(
        info.lines()
            .filter(|line| line.starts_with("processor"))
            .count(),
    )
    .filter(|&n| n > 0)
}

/// Groups of threads that share a core.
fn cores(root: &Root) -> BTreeSet<String> {
    let ids = root.names(CPUS).into_iter().filter(|name| {
        name.strip_prefix("cpu")
            .is_some_and(|id| id.parse::<u32>().is_ok())
    });
    ids.filter_map(|id| root.text(&format!("{CPUS}/{id}/topology/thread_siblings_list")))
        .collect()
}

pub(crate) fn physical(root: &Root) -> Option<usize> {
    Some(cores(root).len()).filter(|&n| n > 0)
}

pub(crate) fn threads_per_core(root: &Root) -> Option<usize> {
    cores(root).iter().map(|list| list_len(list)).max()
}

/// Number of items of a kernel list such as `0-3,8`.
fn list_len(list: &str) -> usize {
    list.split(',')
        .map(|part| match part.split_once('-') {
            Some((first, last)) => match (first.parse::<usize>(), last.parse::<usize>()) {
                (Ok(first), Ok(last)) if last >= first => last - first + 1,
                _ => 1,
            },
            None => 1,
        })
        .sum()
}

/// `L1d 48K, L2 1024K, L3 32768K`, per instance.
pub(crate) fn caches(root: &Root) -> Option<String> {
    let base = format!("{CPUS}/cpu0/cache");
    let mut parts = Vec::new();
    for index in root
        .names(&base)
        .iter()
        .filter(|name| name.starts_with("index"))
    {
        let read = |file: &str| root.text(&format!("{base}/{index}/{file}"));
        let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
        else {
            continue;
        };
        let suffix = match kind.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        parts.push(format!("L{level}{suffix} {size}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Bytes of one instance of the largest cache.
pub(crate) fn last_level_cache_bytes(root: &Root) -> Option<u64> {
    let base = format!("{CPUS}/cpu0/cache");
    let sizes = root.names(&base).into_iter().filter_map(|index| {
        let size = root.text(&format!("{base}/{index}/size"))?;
        let kib: u64 = size.strip_suffix('K')?.parse().ok()?;
        Some(kib * 1024)
    });
    sizes.max()
}

/// The instruction sets that our codecs and scanners look for.
pub(crate) fn instruction_sets(root: &Root) -> Option<String> {
    let info = root.text("proc/cpuinfo")?;
    let flags: BTreeSet<&str> = value_of(&info, "flags")
        .or_else(|| value_of(&info, "Features"))?
        .split(' ')
        .collect();
    let known = [
        "sse4_2",
        "pclmulqdq",
        "avx2",
        "bmi2",
        "avx512f",
        "avx512bw",
        "avx512vbmi",
        "vpclmulqdq",
        "sha_ni",
        "neon",
        "asimd",
        "sve",
        "crc32",
    ];
    let found: Vec<&str> = known
        .into_iter()
        .filter(|flag| flags.contains(flag))
        .collect();
    Some(if found.is_empty() {
        "none beyond the base".to_owned()
    } else {
        found.join(" ")
    })
}

pub(crate) fn numa_nodes(root: &Root) -> usize {
    let nodes = root
        .names("sys/devices/system/node")
        .into_iter()
        .filter(|name| {
            name.strip_prefix("node")
                .is_some_and(|id| id.parse::<u32>().is_ok())
        });
    nodes.count().max(1)
}

/// The frequency governors in use, `performance` on all in the good case.
pub(crate) fn governor(root: &Root) -> Option<String> {
    let governors: BTreeSet<String> = root
        .names(CPUS)
        .into_iter()
        .filter_map(|cpu| root.text(&format!("{CPUS}/{cpu}/cpufreq/scaling_governor")))
        .collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(", "))
}

/// Whether the clock may rise above its base.
pub(crate) fn turbo(root: &Root) -> Option<bool> {
    match root.number(&format!("{CPUS}/intel_pstate/no_turbo")) {
        Some(off) => Some(off == 0),
        None => root
            .number(&format!("{CPUS}/cpufreq/boost"))
            .map(|on| on == 1),
    }
}

/// The mitigations that are on, by the names of the kernel's vulnerability files.
pub(crate) fn mitigations(root: &Root) -> Option<String> {
    let base = format!("{CPUS}/vulnerabilities");
    let names = root.names(&base);
    if names.is_empty() {
        return None;
    }
    let on = |name: &String| {
        root.text(&format!("{base}/{name}"))
            .is_some_and(|state| state.starts_with("Mitigation"))
    };
    let active: Vec<String> = names.into_iter().filter(on).collect();
    Some(if active.is_empty() {
        "none".to_owned()
    } else {
        active.join(", ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_counted() {
        assert_eq!(list_len("0"), 1);
        assert_eq!(list_len("0,64"), 2);
        assert_eq!(list_len("0-3,8"), 5);
    }
}
