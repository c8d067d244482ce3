//! Finds out what a machine without ublk lacks, and how to get it.

use std::fs;
use std::io;
use std::path::Path;

/// Why `/dev/ublk-control` could not be opened, in a sentence that ends with what to do.
pub fn advice(error: &io::Error) -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let folder = Path::new("/lib/modules").join(release);
    let module = has_module(&folder.join("kernel/drivers/block"));
    let io_uring = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    advice_for(error.kind(), release, module, io_uring.trim() == "2")
}

fn has_module(drivers: &Path) -> bool {
    ["ublk_drv.ko", "ublk_drv.ko.xz", "ublk_drv.ko.zst"]
        .iter()
        .any(|name| drivers.join(name).exists())
}

fn advice_for(error: io::ErrorKind, release: &str, module: bool, no_io_uring: bool) -> String {
    if error == io::ErrorKind::PermissionDenied {
        return "it takes root".to_owned();
    }
    if error != io::ErrorKind::NotFound {
        return "the driver is there and refuses".to_owned();
    }
    if no_io_uring {
        return "io_uring is off here: sysctl kernel.io_uring_disabled=0, then modprobe ublk_drv"
            .to_owned();
    }
    if module {
        return "its module is not loaded: modprobe ublk_drv".to_owned();
    }
    if older_than_6(release) {
        return format!("this kernel is Linux {release}, and ublk came with 6.0: boot a later one");
    }
    format!(
        "Linux {release} has no module ublk_drv (CONFIG_BLK_DEV_UBLK): boot a kernel that has, such as Debian 13's or \
         bookworm-backports' linux-image-cloud-amd64, or on Ubuntu install linux-modules-extra-{release}"
    )
}

fn older_than_6(release: &str) -> bool {
    release
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok())
        .is_some_and(|major| major < 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lack_has_its_remedy() {
        let missing = io::ErrorKind::NotFound;
        for (error, release, module, no_io_uring, word) in [
            (
                io::ErrorKind::PermissionDenied,
                "6.12.1",
                true,
                false,
                "root",
            ),
            (missing, "6.12.1", true, false, "modprobe ublk_drv"),
            (missing, "6.12.1", true, true, "io_uring_disabled=0"),
            (missing, "5.15.0-91-generic", false, false, "came with 6.0"),
            (
                missing,
                "6.1.0-42-amd64",
                false,
                false,
                "CONFIG_BLK_DEV_UBLK",
            ),
            (missing, "", false, false, "CONFIG_BLK_DEV_UBLK"),
            (
                io::ErrorKind::ResourceBusy,
                "6.12.1",
                true,
                false,
                "refuses",
            ),
        ] {
            let said = advice_for(error, release, module, no_io_uring);
            assert!(said.contains(word), "{said}");
        }
    }
}
