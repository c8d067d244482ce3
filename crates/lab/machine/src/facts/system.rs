//! Operating system, virtual machine and clock.

use crate::root::{Root, value_of};

pub(crate) fn os(root: &Root) -> Option<String> {
    let release = root
        .text("etc/os-release")
        .or_else(|| root.text("usr/lib/os-release"))?;
    value_of(&release, "PRETTY_NAME").map(str::to_owned)
}

pub(crate) fn clock_source(root: &Root) -> Option<String> {
    root.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// The hypervisor or container that can be told from inside, or `none seen`.
pub(crate) fn virtualisation(root: &Root) -> String {
    let mut seen = Vec::new();
    if let Some(kind) = root.text("sys/hypervisor/type") {
        seen.push(kind);
    }
    let product = root
        .text("sys/class/dmi/id/sys_vendor")
        .zip(root.text("sys/class/dmi/id/product_name"));
    let virtual_cpu = root
        .text("proc/cpuinfo")
        .and_then(|info| value_of(&info, "flags").map(|f| f.split(' ').any(|f| f == "hypervisor")))
        .unwrap_or(false);
    if virtual_cpu {
        let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
        let kvm = root
            .text(clocks)
            .is_some_and(|clocks| clocks.contains("kvm-clock"));
        seen.push(if kvm { "kvm" } else { "virtual machine" }.to_owned());
        seen.extend(product.map(|(vendor, name)| format!("{vendor} {name}")));
    }
    if root.has(".dockerenv") || root.has("run/.containerenv") {
        seen.push("container".to_owned());
    }
    if seen.is_empty() {
        "none seen".to_owned()
    } else {
        seen.join(", ")
    }
}
