//! Memory, swap and huge pages.

use crate::root::{Root, chosen, value_of};

fn kib(root: &Root, key: &str) -> Option<u64> {
    let info = root.text("proc/meminfo")?;
    value_of(&info, key)?.split(' ').next()?.parse().ok()
}

pub(crate) fn total_bytes(root: &Root) -> Option<u64> {
    Some(kib(root, "MemTotal")? * 1024)
}

pub(crate) fn available_bytes(root: &Root) -> Option<u64> {
    Some(kib(root, "MemAvailable")? * 1024)
}

pub(crate) fn swap_bytes(root: &Root) -> Option<u64> {
    Some(kib(root, "SwapTotal")? * 1024)
}

pub(crate) fn swap_used_bytes(root: &Root) -> Option<u64> {
    Some(kib(root, "SwapTotal")?.saturating_sub(kib(root, "SwapFree")?) * 1024)
}

pub(crate) fn huge_pages(root: &Root) -> Option<String> {
    let setting = root.text("sys/kernel/mm/transparent_hugepage/enabled")?;
    chosen(&setting).map(str::to_owned)
}

pub(crate) fn reserved_huge_pages(root: &Root) -> Option<String> {
    let count: u64 = value_of(&root.text("proc/meminfo")?, "HugePages_Total")?
        .parse()
        .ok()?;
    Some(format!("{count} of {} KiB", kib(root, "Hugepagesize")?))
}

/// To one decimal: the last megabytes differ between boots of one machine.
pub(crate) fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
