//! What a machine has beside processors, memory and disks.

use std::collections::{BTreeMap, BTreeSet};

use crate::root::{Root, value_of};

/// Interfaces of the kernel that our engines and their peers use, each with the file that shows it.
const INTERFACES: [(&str, &str); 5] = [
    ("io_uring", "proc/sys/kernel/io_uring_disabled"),
    ("ublk", "dev/ublk-control"),
    ("zram", "sys/class/zram-control"),
    ("FUSE", "dev/fuse"),
    ("userfaultfd", "dev/userfaultfd"),
];

/// Models of graphics processors by NVIDIA's driver, or the vendor and device numbers that the
/// kernel shows of any others.
pub(crate) fn gpus(root: &Root) -> String {
    let by_driver = root.names("proc/driver/nvidia/gpus");
    let by_driver = by_driver.iter().filter_map(|gpu| {
        let text = root.text(&format!("proc/driver/nvidia/gpus/{gpu}/information"))?;
        value_of(&text, "Model").map(str::to_owned)
    });
    let models: Vec<String> = by_driver.collect();
    if !models.is_empty() {
        return counted(models);
    }
    // `card0` is a card, and `card0-DP-1` one of its outputs.
    let cards = root.names("sys/class/drm").into_iter();
    let cards = cards.filter(|name| name.starts_with("card") && !name.contains('-'));
    let numbers = cards.filter_map(|card| {
        let number = |file: &str| root.text(&format!("sys/class/drm/{card}/device/{file}"));
        Some(format!("{}:{}", number("vendor")?, number("device")?))
    });
    counted(numbers.collect())
}

/// Network devices that are not made up by the kernel, with their speed.
pub(crate) fn networks(root: &Root) -> String {
    let names = root.names("sys/class/net").into_iter();
    let real = names.filter(|name| root.has(&format!("sys/class/net/{name}/device")));
    let shown: Vec<String> = real
        .map(|name| {
            // A virtual device says -1, and one without a cable nothing.
            match root.number(&format!("sys/class/net/{name}/speed")) {
                Some(speed) => format!("{name} at {speed} Mbit/s"),
                None => format!("{name}, which does not tell its speed"),
            }
        })
        .collect();
    if shown.is_empty() {
        "none seen".to_owned()
    } else {
        shown.join("; ")
    }
}

/// Channels that hold memory, as the kernel's error detection counts them.
pub(crate) fn memory_channels(root: &Root) -> Option<String> {
    let controllers = "sys/devices/system/edac/mc";
    let mut channels = BTreeSet::new();
    for controller in root.names(controllers) {
        for module in root.names(&format!("{controllers}/{controller}")) {
            let place = format!("{controllers}/{controller}/{module}/dimm_location");
            let Some(place) = root.text(&place) else {
                continue;
            };
            // Such as `channel 2 slot 0`.
            let mut words = place.split_whitespace();
            if words.any(|word| word == "channel") {
                channels.insert((controller.clone(), words.next().map(str::to_owned)));
            }
        }
    }
    (!channels.is_empty()).then(|| channels.len().to_string())
}

/// Which of [`INTERFACES`] are there, and which are not.
pub(crate) fn interfaces(root: &Root) -> String {
    let is_there = |(name, file): &(&str, &str)| match *name {
        // 2 turns it off for everybody, 1 for those without privileges.
        "io_uring" => root.number(file).is_some_and(|disabled| disabled < 2),
        _ => root.has(file),
    };
    let (there, absent): (Vec<_>, Vec<_>) = INTERFACES.iter().partition(|one| is_there(one));
    let names = |list: Vec<&(&str, &str)>| {
        let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    };
    match (there.is_empty(), absent.is_empty()) {
        (_, true) => names(there),
        (true, _) => format!("without {}", names(absent)),
        (false, false) => format!("{}; without {}", names(there), names(absent)),
    }
}

/// `none seen`, `A100`, `2 of A100`.
fn counted(names: Vec<String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let shown: Vec<String> = counts
        .into_iter()
        .map(|(name, count)| match count {
            1 => name,
            _ => format!("{count} of {name}"),
        })
        .collect();
    if shown.is_empty() {
        "none seen".to_owned()
    } else {
        shown.join(", ")
    }
}
