//! A device on this machine, where it has ublk; `scripts/slow/ublk` has one that has.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use dyno_pages::{PAGE_BYTES, Settings as StoreSettings, Store};
use dyno_pages_disk::Disk;
use dyno_pages_ublk::{Device, Settings, UblkError, delete, hold_for_swap, supported};

fn disk() -> Arc<Disk> {
    let store = Store::create(StoreSettings::new(256, 1 << 20)).expect("memory");
    Arc::new(Disk::new(Arc::new(store)))
}

#[test]
fn what_is_written_to_the_device_is_in_the_store() {
    if let Err(error) = supported() {
        return println!("skipped: block device by ublk: {error}");
    }
    let disk = disk();
    let device = Device::create(&disk, Settings::default()).expect("a device");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(device.path());
    let file = file.expect("a block device");
    file.write_all_at(&[7; 3 * PAGE_BYTES], 8192)
        .expect("space");
    file.sync_all().expect("a device");
    drop(file);
    let mut page = [0; PAGE_BYTES];
    let mut head = disk.head().expect("memory");
    head.read(12288, &mut page).expect("whole");
    delete(device.number()).expect("a device");
    device.wait().expect("no failure");
    assert_eq!(page, [7; PAGE_BYTES]);
}

#[test]
fn settings_that_no_device_can_have_are_refused_before_the_driver_is_asked() {
    let good = Settings::default();
    for wrong in [
        Settings { queues: 0, ..good },
        Settings { depth: 0, ..good },
        Settings {
            depth: 4097,
            ..good
        },
        Settings {
            most_bytes: 0,
            ..good
        },
        Settings {
            most_bytes: 5000,
            ..good
        },
        Settings {
            most_bytes: 2 << 20,
            ..good
        },
    ] {
        let made = Device::create(&disk(), wrong);
        assert!(
            matches!(made, Err(UblkError::Settings(_))),
            "{wrong:?}: {made:?}"
        );
    }
}

#[test]
fn a_holder_of_swap_has_all_memory_of_the_store_in_place() {
    let store = Store::create(StoreSettings::new(256, 1 << 20)).expect("memory");
    let file = store.memory_file().try_clone_to_owned();
    let file = File::from(file.expect("a descriptor"));
    if let Err(error) = hold_for_swap(&file) {
        return println!("skipped: memory locked for swap: {error}");
    }
    let maps = fs::read_to_string("/proc/self/smaps").expect("a list");
    // The store's own mapping can be written to; this one is only for the lock.
    let ours = |line: &&str| line.contains(" r--s ") && line.contains("dyno-pages");
    let mut lines = maps.lines().skip_while(|line| !ours(line));
    let rss = lines.find_map(|line| line.strip_prefix("Rss:"));
    let rss = rss.expect("a mapping").trim().trim_end_matches(" kB");
    let flags = lines.find_map(|line| line.strip_prefix("VmFlags:"));
    assert!(flags.expect("flags").contains(" lo"), "it is locked");
    let len = file.metadata().expect("a size").len();
    let pages = len.div_ceil(PAGE_BYTES as u64);
    let rss: u64 = rss.parse().expect("a number");
    assert_eq!(rss * 1024, pages * PAGE_BYTES as u64);
}
